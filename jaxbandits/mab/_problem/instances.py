"""Instances: a problem with the means of its arms; and instances of the literature."""

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import require
from jaxbandits.mab._problem.laws.gaussian import CostName, check_noise_scale
from jaxbandits.mab._problem.problems import (
    Bernoulli,
    Bounded,
    Exponential,
    Gaussian,
    Poisson,
    Problem,
    check_problem,
    checked_means,
    float_dtype,
    has_unknown_variances,
)
from jaxbandits.mab._problem.questions.asked import Question, check_question, kind_of
from jaxbandits.questions import Above, is_above_in_band, require_no_epsilon


class Instance(NamedTuple):
    """Problem with its truth."""

    problem: Problem  # the part that a learner may know
    means: Array  # float (K,)   the truth: never given to a factory
    sd: Any = ()  # float (K,), standard deviations of the rewards, if they are unknown; otherwise ()


def gaussian(
    means: Array | Sequence[float],
    *,
    noise_scale: float = 1.0,
    sd: Array | Sequence[float] | None = None,
    cost: CostName = "adaptive",
    least_variance: float = 0.0,
    dtype: Any = None,
) -> Instance:
    """Builds an instance with normal rewards.

    Args:
        means: float (K,), K >= 2, in units of reward; may be traced.
        noise_scale: () > 0, standard deviation of a reward, in units of reward; a Python number.
        sd: float (K,), positive, standard deviations of the arms' rewards, which the learner does not know; may be
            traced. If None, the noise_scale, which the learner knows. The noise_scale is 1 otherwise.
        cost: evidence that a learner takes, with an sd: the likelihood ratio, "adaptive", or "plug-in", as if the
            empirical variances were the true ones.
        least_variance: () >= 0, smallest variance that a learner estimates, with an sd; in units of reward^2.
        dtype: dtype of the run. If None, JAX's default float.

    Returns:
        Instance.

    Raises:
        ValueError: an argument is out of range.
    """
    dtype = checks.float_dtype("dtype", dtype)
    check_noise_scale("noise_scale", noise_scale)
    means = checks.array("means", means, ("K",), dtype=dtype)
    K = _number(means)
    if sd is None:
        problem = Gaussian(K, float(noise_scale), dtype, cost, least_variance)
        check_problem(problem)
        return Instance(problem, means)
    require(noise_scale == 1, "noise_scale", "be 1 with an sd", noise_scale)
    problem = Gaussian(K, None, dtype, cost, least_variance)
    check_problem(problem)
    return checked_instance(Instance(problem, means, sd))


def bernoulli(means: Array | Sequence[float], *, dtype: Any = None) -> Instance:
    """Builds an instance with rewards 0 or 1.

    Args:
        means: float (K,), K >= 2, in [0, 1]; may be traced.
        dtype: dtype of the run. If None, JAX's default float.

    Returns:
        Instance.

    Raises:
        ValueError: an argument is out of range.
    """
    dtype = checks.float_dtype("dtype", dtype)
    means = checks.array("means", means, ("K",), dtype=dtype, least=0, most=1)
    return Instance(Bernoulli(_number(means), dtype), means)


def poisson(means: Array | Sequence[float], *, dtype: Any = None) -> Instance:
    """Builds an instance whose rewards are numbers of events, with Poisson laws.

    Args:
        means: float (K,), K >= 2, positive; may be traced.
        dtype: dtype of the run. If None, JAX's default float.

    Returns:
        Instance.

    Raises:
        ValueError: an argument is out of range.
    """
    dtype = checks.float_dtype("dtype", dtype)
    means = checks.array("means", means, ("K",), dtype=dtype, above=0)
    return Instance(Poisson(_number(means), dtype), means)


def exponential(means: Array | Sequence[float], *, dtype: Any = None) -> Instance:
    """Builds an instance whose rewards are waiting times, with exponential laws.

    Args:
        means: float (K,), K >= 2, positive, in units of reward; may be traced.
        dtype: dtype of the run. If None, JAX's default float.

    Returns:
        Instance.

    Raises:
        ValueError: an argument is out of range.
    """
    dtype = checks.float_dtype("dtype", dtype)
    means = checks.array("means", means, ("K",), dtype=dtype, above=0)
    return Instance(Exponential(_number(means), dtype), means)


def bounded(means: Array | Sequence[float], *, dtype: Any = None) -> Instance:
    """Builds an instance whose rewards lie in [0, 1], of a law that a learner does not know.

    Args:
        means: float (K,), K >= 2, in [0, 1]; may be traced. Rewards of `environment` are uniform around them, on the
            widest interval inside [0, 1]. `recorded` gives rewards of any other law.
        dtype: dtype of the run. If None, JAX's default float.

    Returns:
        Instance.

    Raises:
        ValueError: an argument is out of range.
    """
    dtype = checks.float_dtype("dtype", dtype)
    means = checks.array("means", means, ("K",), dtype=dtype, least=0, most=1)
    return Instance(Bounded(_number(means), dtype), means)


def is_right(
    instance: Instance, answer: Any, *, question: Question | None = None, epsilon: Array | float = 0.0
) -> Array:
    """True if an answer to a question is right.

    Args:
        instance: the truth.
        answer: int (), an arm; for `GoodArm` also K, which says that there is none; for sets bool (K,).
        question: the question. If None, the best arm.
        epsilon: () >= 0, in units of reward. For the best arm, the allowed suboptimality. For `Above`, arms less than
            this above the level, or at most this below it, may be in the answer or not. Otherwise 0.

    Returns:
        bool ().

    Raises:
        ValueError: the instance is not valid, `answer` is no answer to the question, or `epsilon` is negative.
    """
    means = checked_instance(instance).means
    if question is not None:
        check_question(question, instance.problem)
        answer = kind_of(question).check_answer(question, answer, means.shape[0])
        if isinstance(question, Above):
            checks.not_negative("epsilon", epsilon)
            return is_above_in_band(question, means, answer, jnp.asarray(epsilon, means.dtype))
        require_no_epsilon(epsilon)
        return kind_of(question).is_right(question, means, answer)
    checks.integer("answer", answer, least=0, most=means.shape[0] - 1)
    checks.not_negative("epsilon", epsilon)
    return jnp.max(means) - means[answer] <= jnp.asarray(epsilon, means.dtype)


def checked_instance(instance: Instance) -> Instance:
    """Returns the instance with means of its problem's dtype; raises `ValueError` unless it is valid."""
    lines: Any = [(get_args(Problem), "Write instance instead of instance.problem")]
    lines += [((jax.Array, np.ndarray, list), "Write mab.gaussian(means) or mab.bernoulli(means)")]
    checks.instance("instance", instance, Instance, lines=lines)
    check_problem(instance.problem, "instance.problem")
    problem = instance.problem
    means = checked_means("instance.means", problem, instance.means)
    if not has_unknown_variances(problem):
        has_none = isinstance(instance.sd, tuple) and instance.sd == ()
        require(has_none, "instance.sd", "be () unless variances are unknown", instance.sd)
        return Instance(problem, means)
    return Instance(problem, means, checked_sd("instance.sd", problem, instance.sd))


def checked_sd(name: str, problem: Problem, sd: Any) -> Array:
    """Returns the standard deviations of all arms as an array; raises `ValueError` unless they are positive."""
    return checks.array(name, sd, (problem.arms,), dtype=float_dtype(problem), above=0)


def gk1(*, dtype: Any = None) -> Instance:
    """Builds Bernoulli arms of means .5, .45, .43, .4 (Garivier and Kaufmann, 2016): characteristic time 989.8.

    Args:
        dtype: dtype of the run. If None, JAX's default float.

    Returns:
        Instance, K = 4.
    """
    return bernoulli((0.5, 0.45, 0.43, 0.4), dtype=dtype)


def gk2(*, dtype: Any = None) -> Instance:
    """Builds Bernoulli arms of means .3, .21, .2, .19, .18 (Garivier and Kaufmann, 2016): characteristic time 326.6.

    Args:
        dtype: dtype of the run. If None, JAX's default float.

    Returns:
        Instance, K = 5.
    """
    return bernoulli((0.3, 0.21, 0.2, 0.19, 0.18), dtype=dtype)


def gauss4(*, dtype: Any = None) -> Instance:
    """Builds Gaussian arms of means 1, .85, .8, .7 and noise_scale 1.

    Args:
        dtype: dtype of the run. If None, JAX's default float.

    Returns:
        Instance, K = 4.
    """
    return gaussian((1.0, 0.85, 0.8, 0.7), dtype=dtype)


def audibert1(*, dtype: Any = None) -> Instance:
    """Builds Bernoulli arms, 1 of mean .5 and 19 of mean .4 (Audibert, Bubeck and Munos, 2010), for a horizon of 2000.

    Args:
        dtype: dtype of the run. If None, JAX's default float.

    Returns:
        Instance, K = 20.
    """
    return bernoulli((0.5, *[0.4] * 19), dtype=dtype)


def _number(means: Array) -> int:
    """Returns the number of arms; raises `ValueError` if it is below 2."""
    K = means.shape[0]
    require(K >= 2, "means", "have at least 2 entries", K)
    return K
