"""Thresholds of independent arms, from the number of pulls or the counts."""

import math
from functools import partial

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.numerics import elementary
from jaxbandits.numerics.kernels import apart
from jaxbandits.numerics.thresholds.evidence import (
    Evidence,
    Threshold,
    as_count,
    as_float,
    check_arms,
    log_of,
    log_of_pairs,
    read_counts,
    read_some_counts,
)


def gk16(*, arms: int | None = None, comparisons: Array | float = 1) -> Threshold:
    """Builds the threshold log(1 + log t) + log(comparisons / delta), common in experiments and without a proof.

    With two equal Gaussian arms pulled in turn up to t = 10^5 and delta = .1, the ratio exceeds it in 14 % of the runs.

    Args:
        arms: int >= 2, ignored.
        comparisons: () > 0, may be traced.

    Returns:
        The threshold; reads `pulls`.

    Raises:
        ValueError: an argument is out of range.

    **Heuristic**. Source: Garivier and Kaufmann (2016), section 6.
    """
    check_arms(arms)
    union = log_of("comparisons", comparisons)

    def gk16(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        return apart(_log1p_log, as_count(evidence.pulls, delta)) + (union(delta) - jnp.log(delta))

    return gk16


def _log1p_log(x: Array) -> Array:
    return elementary.log1p(elementary.log(x))


def log_t(*, arms: int | None = None, comparisons: Array | float = 1) -> Threshold:
    """Builds the threshold log(t + 1) + log(comparisons / delta).

    Arguments, result and errors: see `gk16`.

    **Heuristic**. Source: Tirinzoni and Degenne (2022), Table 1.
    """
    check_arms(arms)
    union = log_of("comparisons", comparisons)

    def log_t(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        return jnp.log1p(as_count(evidence.pulls, delta)) + (union(delta) - jnp.log(delta))

    return log_t


def gk_union(*, arms: int, comparisons: Array | float = 1) -> Threshold:
    """Builds the threshold log(2 t (K - 1)) + log(comparisons / delta).

    Args:
        arms: K, int >= 2.
        comparisons: () > 0, may be traced.

    Returns:
        The threshold; reads `pulls`.

    Raises:
        ValueError: an argument is out of range.

    **Proved** for Bernoulli arms, generalised likelihood ratios and any sampling: Garivier and Kaufmann (2016),
    Theorem 10.
    """
    K = checks.whole("arms", arms, least=2)
    union = log_of("comparisons", comparisons)

    def gk_union(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        return math.log(2 * (K - 1)) + jnp.log(as_count(evidence.pulls, delta)) + (union(delta) - jnp.log(delta))

    return gk_union


def kl_lucb(*, arms: int, exponent: float = 1.1, constant: float = 405.5) -> Threshold:
    """Builds the threshold x + log x with x = log(constant K t^exponent / delta).

    Args:
        arms: K, int >= 2.
        exponent: a > 1.
        constant: a number above 2 e + 1 + e / (a - 1) + (e + 1) / (a - 1)^2, which is 405.45 at a = 1.1.

    Returns:
        The threshold; reads `pulls`.

    Raises:
        ValueError: an argument is out of range.

    **Proved** for the intervals of KL-LUCB, and so for the wider ones of LUCB. Without the term log x it is not proved.
    Source: Kaufmann and Kalyanakrishnan (2013), Theorem 1.
    """
    K = checks.whole("arms", arms, least=2)
    for name, value in {"exponent": exponent, "constant": constant}.items():
        checks.require(checks.is_concrete(value), name, "be concrete", value)
    exponent = float(checks.real("exponent", exponent, above=1))
    least = 2 * math.e + 1 + math.e / (exponent - 1) + (math.e + 1) / (exponent - 1) ** 2
    constant = float(checks.real("constant", constant, above=least))

    def kl_lucb(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        x = math.log(constant * K) + exponent * jnp.log(as_count(evidence.pulls, delta)) - jnp.log(delta)
        return x + jnp.log(x)

    return kl_lucb


def kt(*, arms: int | None = None, comparisons: Array | float | None = None) -> Threshold:
    """Builds log(comparisons / delta) + the sum over the arms a that are compared of log 2 + log(N_a) / 2.

    Args:
        arms: K, int >= 2; required if `comparisons` is None.
        comparisons: () > 0, may be traced. If None, K - 1, the number of the leader's challengers. `TopM(m)` needs m (K
            - m), `Above` and `GoodArm` K, `AllGood` 1.

    Returns:
        The threshold; reads `counts`, (n,), of the two arms of a pair, of the one arm of `Above` and `GoodArm`, or of
        all arms, as for `AllGood`.

    Raises:
        ValueError: an argument is out of range; when the threshold is called, if counts are missing, or if rewards may
            lie outside [0, 1].

    **Proved** for likelihood ratios of Bernoulli arms and any sampling, and with these for any rewards in [0, 1]: the
    likelihood averaged over Beta(1/2, 1/2) is at least the largest one over 2 sqrt(N), also at sums that are not whole.
    The averages of several arms multiply to a martingale of mean 1. Source: Krichevsky and Trofimov (1981), The
    performance of universal encoding; the product and the union are ours.
    """
    union = log_of_pairs(arms, comparisons)

    def kt(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        counts = as_count(read_some_counts("kt", evidence), delta)
        is_bounded = evidence.law in ("Bernoulli", "Bounded") or (evidence.law is None and counts.size == 2)
        checks.require(is_bounded, "evidence.law", "be Bernoulli or Bounded for kt", evidence.law)
        return counts.size * math.log(2) + jnp.sum(jnp.log(counts)) / 2 + (union(delta) - jnp.log(delta))

    return kt


def kk_pair(*, arms: int | None = None, comparisons: Array | float | None = None) -> Threshold:
    """Builds 2 C(log(comparisons / delta) / 2) + 2 log(4 + log N_a) + 2 log(4 + log N_b), C the `mixture_constant`.

    For arms without structure only: in a linear or combinatorial problem a challenger moves all means (`kk_all`).

    Args:
        arms: K, int >= 2; required if `comparisons` is None.
        comparisons: () > 0, may be traced. If None, K - 1, the number of the leader's challengers.

    Returns:
        The threshold; reads `counts`, (2,).

    Raises:
        ValueError: an argument is out of range; when the threshold is called, if the counts do not have shape (2,).

    **Proved** for Gaussian arms and any sampling. Also proved for Bernoulli rewards with the Gaussian statistic with
    noise_scale 1/2, but not with the Bernoulli one. Source: Kaufmann and Koolen (2021), mixture martingales.
    """
    union = log_of_pairs(arms, comparisons)

    def kk_pair(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        counts = read_counts("kk_pair", evidence, 2, "the two arms")
        explored = 2 * jnp.sum(_log_log(counts, delta))
        return 2 * mixture_constant((union(delta) - jnp.log(delta)) / 2) + explored

    return kk_pair


def kk_all(*, arms: int) -> Threshold:
    """Builds the threshold K C(log(1 / delta) / K) + 2 sum_k log(4 + log max(1, N_k)), C the `mixture_constant`.

    Args:
        arms: K, int >= 2.

    Returns:
        The threshold; reads `counts`, (K,).

    Raises:
        ValueError: an argument is out of range; when the threshold is called, if the counts do not have shape (K,).

    **Proved** for Gaussian arms, any structure and any sampling, for least squares without ridge. It bounds the whole
    vector of means, so no union over challengers is needed. Source: Kaufmann and Koolen (2021).
    """
    K = checks.whole("arms", arms, least=2)

    def kk_all(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        counts = read_counts("kk_all", evidence, K, "all arms")
        return K * mixture_constant(-jnp.log(delta) / K) + 2 * jnp.sum(_log_log(counts, delta))

    return kk_all


@partial(jax.jit, inline=True)
def mixture_constant(x: Array) -> Array:
    """Computes C(x) = min over l in (1/2, 1) of (2 l - 2 l log(4 l) + log zeta(2 l) - log(1 - l) / 2 + x) / l.

    Every l gives a valid, larger value, so no minimisation is needed: the l used here is near the best one. C is not
    x + log x at practical sizes: C(1.7) = 3.262, C(10) = 11.955.

    Args:
        x: float (...), at least 0.

    Returns:
        float (...), never below C(x) and at most 1.2e-5 above it for x in [0, 200].

    Source: Kaufmann and Koolen (2021), Mixture martingales revisited with applications to sequential tests and
    confidence intervals, the Gaussian case.
    """
    complement = 1 / (2.02 * x + 0.23 * jnp.log1p(x) + 11.01)  # 1 - l
    l = 1 - complement
    e = 1 - 2 * complement
    # zeta(1 + e) by its Stieltjes constants, with a relative error of 1.4e-7 for e in (0, 1).
    series = (0.5772156649, 0.0728158455, -0.0048451816, -0.0003423057, 0.0000968905, -0.0000066110)
    tail = jnp.zeros_like(e)
    for coefficient in reversed(series):
        tail = coefficient + e * tail
    log_zeta = jnp.log(1 / e + tail)
    # 1e-6 covers the error of zeta.
    return (2 * l - 2 * l * jnp.log(4 * l) + log_zeta - jnp.log(complement) / 2 + x) / l + 1e-6


@partial(jax.jit, inline=True)
def _log_log(counts: Array, delta: Array) -> Array:
    return jnp.log(4 + jnp.log(as_count(counts, delta)))
