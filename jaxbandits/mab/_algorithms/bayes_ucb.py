"""Bayes-UCB: the arm with the largest quantile of its posterior (Kaufmann, Cappe, Garivier, 2012)."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import ndtri

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_problem, float_dtype, law_of
from jaxbandits.mab._shared.frame import Estimates
from jaxbandits.mab._shared.indices import algorithm_from_index, next_pull


class LogFactor(NamedTuple):
    """Factor log(T)^c of t in the quantile of `bayes_ucb`: a higher quantile, for which a theorem holds."""

    horizon: Array | int  # () >= 2: T, pulls. It sets only the quantile, and does not end the run
    c: Array | float = 5.0  # () > 0; the theorem needs 5


def bayes_ucb(problem: Problem, *, factor: LogFactor | None = None) -> Algorithm:
    """Pulls the arm with the largest quantile at 1 - 1/t of its posterior, or at 1 - 1 / (t log(T)^c).

    The posteriors are as in `thompson`. The Beta quantile is approximate: the probability above it is off by at most
    7 % of itself (1 to 10^4 pulls of an arm, t up to 10^6).

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`.
        factor: `LogFactor(horizon, c)` for the factor log(T)^c of t. If None, 1, as the authors recommend.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean. It never stops: give
        `run` or `sweep` a `horizon`.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (Theorem 1, Bernoulli, a factor with c >= 5): regret / log(t) tends to the smallest possible limit,
    `lai_robbins`. **Cost**: O(K) per round; for Bernoulli arms 6 K relative entropies. **Limit**: 2^31 - 1 pulls.

    Source: Kaufmann, Cappe and Garivier (2012), On Bayesian upper confidence bounds for bandit problems, Algorithm 1.
    """
    check_problem(problem)
    quantile = law_of(problem).posterior_quantile
    checks.require(quantile is not None, "problem", "be Gaussian, Bernoulli or Bounded", problem)
    assert quantile is not None
    dtype = float_dtype(problem)
    if factor is not None:
        checks.instance("factor", factor, LogFactor)
        checks.integer("factor.horizon", factor.horizon, least=2)
        checks.positive("factor.c", factor.c)

    def index(key: Key, estimates: Estimates) -> Array:
        del key
        t = next_pull(estimates)
        if factor is not None:
            t = t * jnp.log(jnp.asarray(factor.horizon).astype(dtype)) ** jnp.asarray(factor.c, dtype)
        z = -ndtri(1 / t)
        return quantile(problem, estimates.counts, estimates.means, z)

    return algorithm_from_index(problem, index)
