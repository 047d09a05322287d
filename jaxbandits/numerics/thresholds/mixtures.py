"""Thresholds of Poisson and exponential arms: the largest likelihood over its mean under a Gamma law of shape 1/2."""

from collections.abc import Callable

import jax.numpy as jnp
from jax.scipy.special import gammaln

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.numerics.thresholds.evidence import (
    Evidence,
    Threshold,
    as_count,
    as_float,
    log_of,
    log_of_pairs,
    read,
    read_some_counts,
)

LARGE = 16  # above this Stirling's series is right to 1e-11


def poisson_mixture(
    *, scale: Array | float = 1.0, arms: int | None = None, comparisons: Array | float | None = None
) -> Threshold:
    """Builds log(comparisons / delta) plus, for each arm, log sup L - log E L, where the mean of L has a Gamma law.

    With S events in N pulls an arm adds S log(S / N) - S - log E[m^S exp(-N m)], m drawn from Gamma(1/2) times `scale`.

    Args:
        scale: () > 0, a number fixed before the run, in units of reward; best near the size of the means.
        arms: K, int >= 2; required if `comparisons` is None.
        comparisons: () > 0, may be traced. If None, K - 1, the number of the leader's challengers. For other questions
            see `kt`.

    Returns:
        The threshold; reads `counts` and `sums`, (n,), of the arms that are compared by a rule for Poisson arms.

    Raises:
        ValueError: an argument is out of range; when the threshold is called, if the arms have another law, or the
            counts or sums are missing.

    **Proved** for Poisson arms and any sampling: E L over L at the true mean is a martingale of mean 1, and so is the
    product of several arms' ones. Source: Robbins (1970), for mixtures; the formula is ours.
    """
    shift = log_of("scale", scale)

    def excess(delta: Array, N: Array, S: Array) -> Array:
        log_n = jnp.log(N) + shift(delta)
        return _half(S) + (S + 0.5) * jnp.log1p(jnp.exp(-log_n)) + log_n / 2

    return _mixture("poisson_mixture", "Poisson", excess, arms, comparisons)


def exponential_mixture(
    *, scale: Array | float = 1.0, arms: int | None = None, comparisons: Array | float | None = None
) -> Threshold:
    """Builds log(comparisons / delta) plus, for each arm, log sup L - log E L, where the rate of L has a Gamma law.

    With N pulls of sum S an arm adds N log(N / S) - N - log E[r^N exp(-S r)], r drawn from Gamma(1/2) / `scale`.

    Arguments: see `poisson_mixture`.

    Returns:
        The threshold; reads `counts` and `sums`, (n,), of the arms that are compared by a rule for exponential arms.

    **Proved** for exponential arms and any sampling, as `poisson_mixture`.
    """
    shift = log_of("scale", scale)

    def excess(delta: Array, N: Array, S: Array) -> Array:
        log_s = jnp.log(S) - shift(delta)
        return _half(N) + (N + 0.5) * jnp.log1p(jnp.exp(-log_s)) + log_s / 2

    return _mixture("exponential_mixture", "Exponential", excess, arms, comparisons)


def _mixture(
    kind: str,
    law: str,
    excess: Callable[[Array, Array, Array], Array],
    arms: int | None,
    comparisons: Array | float | None,
) -> Threshold:
    union = log_of_pairs(arms, comparisons)

    def threshold(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        checks.require(evidence.law == law, "evidence.law", f"be {law} for {kind}", evidence.law)
        N = as_count(read_some_counts(kind, evidence), delta)
        S = read(kind, "sums", evidence.sums, delta)
        return (union(delta) - jnp.log(delta)) + jnp.sum(excess(delta, N, S))

    threshold.__name__ = kind
    return threshold


def _half(x: Array) -> Array:
    """Computes x log x - x - log Gamma(x + 1/2) + log(pi) / 2, which tends to log(pi) / 2 - log(2 pi) / 2."""
    is_large = x > LARGE
    few = jnp.where(is_large, 1, x)
    direct = jnp.where(few > 0, few * jnp.log(jnp.where(few > 0, few, 1)), 0) - few - gammaln(few + 0.5)
    inverse = 1 / jnp.where(is_large, x, 1)
    square = inverse * inverse
    # The difference of the large terms, without their digits.
    series = inverse * (1 / 24 - square * (7 / 2880 - square * 31 / 40320))
    return jnp.where(is_large, series - jnp.log(2.0) / 2, direct + jnp.log(jnp.pi) / 2)
