"""lil'UCB: upper bounds from the law of the iterated logarithm (Jamieson et al., 2014)."""

import math
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, scale
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, algorithm_from_rule, argmax, one_arm
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.indexing import entry


def lil_ucb(
    problem: Problem,
    *,
    delta: Array | float,
    lil_epsilon: Array | float = 0.0,
    lil_beta: Array | float = 0.5,
    lil_lambda: Array | float | None = None,
) -> Algorithm:
    """Pulls the arm with the best upper bound, until one arm has far more pulls than all others together.

    With constants e, b, lambda and d, the bound of an arm with N pulls is mean + (1 + b) (1 + sqrt(e)) noise_scale
    sqrt(2 (1 + e) log(log((1 + e) N + 2) / d) / N), with noise_scale 1/2 for Bernoulli arms. It stops when one arm has
    at least 1 + lambda times the pulls of all others. The defaults are the paper's heuristic.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`.
        delta: () in (0, 1), d: for the heuristic, the allowed probability of error. For the guarantee it is far
            smaller, and `lil_ucb_constants` computes it.
        lil_epsilon: () >= 0, e.
        lil_beta: () >= 0, b.
        lil_lambda: () > 0, lambda. If None, 1 + 10 / K.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the largest number of pulls.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee**: none for the defaults, a heuristic; with `lil_ucb_constants(p)`, P(the answer is not the best arm)
    <= p. **Cost**: O(K) per round. **Limit**: 2^31 - 1 pulls.

    Source: Jamieson, Malloy, Nowak and Bubeck (2014), lil' UCB: an optimal exploration algorithm for multi-armed
    bandits. The "+ 2" keeps log log finite.
    """
    check_sub_gaussian(problem, "kl_lucb")
    checks.probability("delta", delta)
    checks.not_negative("lil_epsilon", lil_epsilon)
    checks.not_negative("lil_beta", lil_beta)
    lil_lambda = 1 + 10 / problem.arms if lil_lambda is None else lil_lambda
    checks.positive("lil_lambda", lil_lambda)
    dtype = float_dtype(problem)
    e, b, ratio, d = (jnp.asarray(x, dtype) for x in (lil_epsilon, lil_beta, lil_lambda, delta))
    factor = scale(problem) * (1 + b) * (1 + jnp.sqrt(e))

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        N = estimates.counts
        log_log = log(log((1 + e) * N + 2)) - jnp.log(d)
        arm = argmax(estimates.means + factor * jnp.sqrt(2 * (1 + e) * log_log / N), estimates.lots)
        most = argmax(state.counts, estimates.lots)
        count = entry(N, most)
        return Choice(one_arm(arm), count >= 1 + ratio * (jnp.sum(N) - count), most)

    return algorithm_from_rule(problem, Rule(choose))


class LilConstants(NamedTuple):
    """Constants of `lil_ucb` for which its guarantee is proved."""

    lil_epsilon: float  # e
    lil_beta: float  # b
    lil_lambda: float  # ((2 + b) / b)^2
    delta: float  # d


def lil_ucb_constants(delta: float) -> LilConstants:
    """Computes the analysed constants e = .01, b = 1, lambda = 9 and d with 4 sqrt(c d) + 4 c d = delta.

    Args:
        delta: () in (0, 1), allowed probability of error; a Python number.

    Returns:
        LilConstants, for `lil_ucb(problem, **lil_ucb_constants(delta)._asdict())`; d = 2.8e-8 at delta .1.
        Theorem 2 requires a lambda above 9 by a factor that tends to 1 as d falls.

    Raises:
        ValueError: `delta` is out of range.

    Source: Jamieson, Malloy, Nowak and Bubeck (2014), Theorem 2, with c = (2 + e) / e (1 / log(1 + e))^(1 + e).
    """
    checks.probability("delta", delta)
    checks.require(checks.is_concrete(delta), "delta", "be concrete", delta)
    e, b = 0.01, 1.0
    c = (2 + e) / e * (1 / math.log1p(e)) ** (1 + e)
    return LilConstants(e, b, ((2 + b) / b) ** 2, (math.sqrt(1 + float(delta)) - 1) ** 2 / (4 * c))
