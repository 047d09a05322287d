"""Problems, the number of arms and the law of their rewards, and the functions that depend on that law."""

import math
from typing import Any, cast, get_args

from jaxbandits import checks
from jaxbandits.base import Array, Key
from jaxbandits.checks import require
from jaxbandits.mab._problem.laws import bernoulli, bounded, exponential, gaussian, measured, poisson, unknown_variance
from jaxbandits.mab._problem.laws.bernoulli import Bernoulli
from jaxbandits.mab._problem.laws.bounded import Bounded
from jaxbandits.mab._problem.laws.exponential import Exponential
from jaxbandits.mab._problem.laws.gaussian import Gaussian
from jaxbandits.mab._problem.laws.law import Law
from jaxbandits.mab._problem.laws.measured import Measured
from jaxbandits.mab._problem.laws.poisson import Poisson
from jaxbandits.mab._problem.laws.pooled import Sample

Problem = Gaussian | Bernoulli | Poisson | Exponential | Bounded

LAWS: dict[type, Law] = {
    Gaussian: gaussian.LAW,
    Bernoulli: bernoulli.LAW,
    Poisson: poisson.LAW,
    Exponential: exponential.LAW,
    Bounded: bounded.LAW,
    Measured: measured.LAW,
}


def law_of(problem: Problem) -> Law:
    """Returns the functions of the law of the problem's rewards."""
    return unknown_variance.LAW if has_unknown_variances(problem) else LAWS[type(problem)]


def has_unknown_variances(problem: Problem) -> bool:
    """True if every arm has a variance of its own, which a rule estimates."""
    return isinstance(problem, Gaussian) and problem.noise_scale is None


def measured_problem(problem: Problem, variances: Array | tuple[()]) -> Problem:
    """Returns the problem with estimates of its unknown variances, float (K,); without unknown ones, the problem."""
    if not has_unknown_variances(problem):
        return problem
    assert isinstance(problem, Gaussian)
    assert not isinstance(variances, tuple)
    return cast(Any, Measured(variances, problem.arms, problem.cost, problem.dtype))


def sample_of(problem: Problem, counts: Array, means: Array) -> Sample:
    """Returns the statistics of all arms, with the variances of a measured problem."""
    return Sample(counts, means, problem.variances) if isinstance(problem, Measured) else Sample(counts, means)


def check_problem(problem: Any, name: str = "problem") -> None:
    """Raises `ValueError` unless it is a problem, and its fields are what their comments say."""
    checks.instance(name, problem, get_args(Problem))
    checks.whole(f"{name}.arms", problem.arms, least=2)
    law_of(problem).check(problem, name)
    checks.float_dtype(f"{name}.dtype", problem.dtype)


def check_sub_gaussian(problem: Any, instead: str) -> None:
    """Raises `ValueError` unless it is a problem whose rewards have a sub-Gaussian constant."""
    check_problem(problem)
    is_sub_gaussian = law_of(problem).scale is not None
    require(is_sub_gaussian, "problem", f"have a sub-Gaussian constant ({instead} needs none)", problem)


def checked_means(name: str, problem: Problem, means: Any) -> Array:
    """Returns the means as an array of the problem's dtype; raises `ValueError` unless its arms can have them."""
    return law_of(problem).checked_means(problem, name, means)


def float_dtype(problem: Problem) -> Any:
    """Returns the dtype of a run."""
    return checks.float_dtype("problem.dtype", problem.dtype)


def scale(problem: Problem) -> float:
    """Returns the sub-Gaussian constant of a reward, in units of reward."""
    of_law = law_of(problem).scale
    assert of_law is not None, "check_sub_gaussian"
    return of_law(problem)


def mean_range(problem: Problem) -> tuple[float, float]:
    """Returns the ends of the interval of possible means."""
    law = law_of(problem)
    if law.width is not None:
        return 0.0, float(law.width)
    return (-math.inf, math.inf) if law.is_location else (0.0, math.inf)


def divergence(problem: Problem, p: Array, q: Array) -> Array:
    """Computes the relative entropy of a reward of mean p with respect to a reward of mean q.

    Args:
        problem: law of the rewards.
        p: float (...), means.
        q: float (...), means, of p's dtype.

    Returns:
        float (...).
    """
    return law_of(problem).divergence(problem, p, q)


def bounds(problem: Problem, mean: Array, c: Array) -> tuple[Array, Array]:
    """Computes the interval of means q with divergence(mean, q) <= c, as (upper, lower).

    Args:
        problem: law of the rewards.
        mean: float (...).
        c: float (...), at least 0, of the means' dtype.

    Returns:
        float (...), twice.
    """
    return law_of(problem).bounds(problem, mean, c)


def upper_bound(problem: Problem, mean: Array, c: Array) -> Array:
    """Computes the first of `bounds`."""
    return law_of(problem).upper_bound(problem, mean, c)


def bound(problem: Problem, mean: Array, c: Array, is_upper: Array) -> Array:
    """Computes the first of `bounds` where `is_upper`, otherwise the second, at the cost of one."""
    return law_of(problem).bound(problem, mean, c, is_upper)


def posterior_draws(problem: Problem, key: Key, counts: Array, means: Array, number: int | None = None) -> Array:
    """Draws the means of all arms from their posterior under a prior without information.

    Args:
        problem: law of the rewards.
        key: the key.
        counts: float (K,), pulls of every arm, at least 1.
        means: float (K,), their empirical means.
        number: number of draws. If None, one draw without an axis of its own.

    Returns:
        float (K,) or (number, K): Normal(mean, noise_scale^2 / count), Beta(1 + sum, 1 + count - sum), for Poisson arms
        Gamma(sum + 1/2) / count, for exponential arms sum / Gamma(count). A Beta variable costs 6 uniform numbers, a
        Gamma variable 8, or 9 with a shape of 1/2, a normal one 1.
    """
    return law_of(problem).posterior_draws(problem, key, counts, means, number)


def posterior_draw_and_uniforms(
    problem: Problem, key: Key, counts: Array, means: Array, number: int
) -> tuple[Array, Array]:
    """Draws means as `posterior_draws` does, and independent uniform variables, float (number,), in [0, 1)."""
    return law_of(problem).posterior_draw_and_uniforms(problem, key, counts, means, number)
