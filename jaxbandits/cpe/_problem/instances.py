"""Instances: a problem and the truth about its arms; eight small ones, one or two of each kind, with unique optima."""

from typing import Any, NamedTuple, get_args

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array, static_fields
from jaxbandits.cpe._problem.arms import (
    Arms,
    GaussianArms,
    bernoulli,
    check_arms,
    means,
    number_of,
    stack_arms,
    uniform_arms,
    variances,
)
from jaxbandits.cpe._problem.classes import perfect_matchings, spanning_trees, st_paths
from jaxbandits.cpe._problem.kinds.opinions import opinion_sampling
from jaxbandits.cpe._problem.problems import Problem, arm_count, best_levels, check_problem, float_dtype, kind_of
from jaxbandits.cpe._problem.tables import best_arm, sites, top_k, water

ESTIMATORS = ("mean", "variance")  # names of the estimators of theta, with tau 1 and 2


@static_fields("tau")
class Instance(NamedTuple):
    """A problem and the truth about its arms."""

    problem: Problem  # the decisions and their reward, known to the learner
    arms: Arms | GaussianArms  # the truth: never given to a factory
    tau: int  # 1 if theta are means, 2 if variances; static
    theta: Array  # float (m,), the truth


def instance(problem: Problem, arms: Arms | GaussianArms, *, estimator: str = "mean") -> Instance:
    """Builds an instance of a problem and arms of your own.

    Args:
        problem: any.
        arms: m laws, as many as the problem has arms.
        estimator: "mean" if theta are the means of the samples, "variance" if they are their variances.

    Returns:
        Instance.

    Raises:
        ValueError: an argument is not as above, or the estimator of opinion sampling is "mean".
    """
    check_problem(problem)
    check_arms(arms)
    checks.one_of("estimator", estimator, ESTIMATORS)
    checks.one_size(problem=(arm_count(problem), problem), arms=(number_of(arms), arms))
    kind_of(problem).check_estimator(estimator)
    theta = means(arms) if estimator == "mean" else variances(arms)
    return Instance(problem, arms, 1 + ESTIMATORS.index(estimator), theta)


def is_right(instance: Instance, answer: Array) -> Array:
    """True if an answer is the best decision.

    If several decisions tie, the leading one is right. An algorithm then stops only by error, because all tied arms
    stay candidates.

    Args:
        instance: the truth.
        answer: int (m,), levels, such as an algorithm's answer.

    Returns:
        bool ().

    Raises:
        ValueError: an argument is not as above.
    """
    check_instance(instance)
    answer = checks.array("answer", answer, instance.theta.shape, kind="int")
    best = best_levels(instance.problem, instance.theta.astype(float_dtype(instance.problem)))
    return jnp.all(answer.astype(best.dtype) == best)


def check_instance(instance: Any) -> None:
    """Raises `ValueError` unless this is an Instance whose parts are as its comments say."""
    lines: Any = [(get_args(Problem), "Write instance instead of instance.problem")]
    lines += [((Arms, GaussianArms), "Write cpe.instance(problem, arms)")]
    checks.instance("instance", instance, Instance, lines=lines)
    check_problem(instance.problem, "instance.problem")
    check_arms(instance.arms, "instance.arms")
    checks.whole("instance.tau", instance.tau, least=1, most=2)
    within: dict[str, Any] = {} if isinstance(instance.arms, GaussianArms) else {"least": 0, "most": 1}
    checks.array("instance.theta", instance.theta, (arm_count(instance.problem),), **within)
    checks.one_size(
        **{
            "instance.theta": (instance.theta.shape[0], instance.theta),
            "instance.arms": (number_of(instance.arms), instance.arms),
        }
    )


# Eight instances


def best5(*, dtype: Any = None) -> Instance:
    """Builds 5 Bernoulli arms; the best is arm 0.

    Args:
        dtype: dtype of all arrays; by default JAX's own.

    Returns:
        Instance with Lambda = (.125, .125, .15, .25, .375).
    """
    return _bernoulli_instance(best_arm(5, dtype=dtype), [0.85, 0.6, 0.55, 0.35, 0.1])


def top2of6(*, dtype: Any = None) -> Instance:
    """Builds 6 Bernoulli arms; the best 2 are arms 0 and 1.

    Args:
        dtype: dtype of all arrays; by default JAX's own.

    Returns:
        Instance with Lambda = (.2, .13, .13, .165, .265, .315).
    """
    return _bernoulli_instance(top_k(6, 2, dtype=dtype), [0.92, 0.78, 0.52, 0.45, 0.25, 0.15])


def water3(*, dtype: Any = None) -> Instance:
    """Builds a demand of six steps of water from 3 sources with costs a y + q y^2 / 2; the best is y = (3, 2, 1).

    Args:
        dtype: dtype of all arrays; by default JAX's own.

    Returns:
        Instance with Lambda = (.1, .1, .325).
    """
    y = np.arange(5)
    costs = [a * y + q * y**2 / 2 for a, q in ((1.1, 0.4), (1.3, 0.5), (1.1, 0.8))]
    return _bernoulli_instance(water(costs, 6, dtype=dtype), [0.6, 0.85, 0.15])


def sites5(*, dtype: Any = None) -> Instance:
    """Builds 5 sites with known costs; the best 2 net of their costs are sites 0 and 1.

    Args:
        dtype: dtype of all arrays; by default JAX's own.

    Returns:
        Instance with Lambda = (.2, .225, .225, .2, .2).
    """
    return _bernoulli_instance(sites([1.3, 1.1, 1.45, 1.2, 1.05], 2, dtype=dtype), [0.8, 0.65, 0.5, 0.3, 0.15])


def osa4(*, dtype: Any = None) -> Instance:
    """Builds seven interviews in 4 groups of sizes 1, 3, 4, 1; the best is y = (1, 2, 3, 1), levels (0, 1, 2, 0).

    Args:
        dtype: dtype of all arrays; by default JAX's own.

    Returns:
        Instance whose theta are variances, with Lambda = (.177368, .07, .07, .209342).
    """
    arms = stack_arms([bernoulli([0.3, 0.5, 0.5], dtype=dtype), uniform_arms([0.35], [0.65], dtype=dtype)])
    return instance(opinion_sampling([1, 3, 4, 1], 7, dtype=dtype), arms, estimator="variance")


def paths5(*, dtype: Any = None) -> Instance:
    """Builds the 5 paths from node 0 to node 4 over 7 edges; the best has edges 0, 2, 4, 6.

    Args:
        dtype: dtype of all arrays; by default JAX's own.

    Returns:
        Instance with Lambda = (.316667, .316667, .216667, .216667, .2, .2, .2).
    """
    edges = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)]
    return _bernoulli_instance(st_paths(edges, 0, 4, dtype=dtype), [0.8, 0.35, 0.5, 0.3, 0.45, 0.6, 0.75])


def trees5(*, dtype: Any = None) -> Instance:
    """Builds the 8 spanning trees of 4 nodes and 5 edges; the best has edges 0, 1, 3.

    Args:
        dtype: dtype of all arrays; by default JAX's own.

    Returns:
        Instance with Lambda = (.275, .125, .125, .25, .175).
    """
    edges = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    return _bernoulli_instance(spanning_trees(4, edges, dtype=dtype), [0.85, 0.55, 0.3, 0.7, 0.2])


def matching3(*, dtype: Any = None) -> Instance:
    """Builds the 6 perfect matchings of 3 + 3 nodes; the best has edges 0, 4, 8.

    Args:
        dtype: dtype of all arrays; by default JAX's own.

    Returns:
        Instance with Lambda = (.225, .233333, .225, .225, .15, .15, .233333, .15, .15).
    """
    theta = [0.85, 0.35, 0.25, 0.3, 0.75, 0.45, 0.2, 0.5, 0.8]
    return _bernoulli_instance(perfect_matchings(3, dtype=dtype), theta)


def _bernoulli_instance(problem: Problem, theta: list[float]) -> Instance:
    return instance(problem, bernoulli(theta, dtype=float_dtype(problem)))
