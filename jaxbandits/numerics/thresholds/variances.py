"""Thresholds of Gaussian arms whose variances are not known, for the likelihood ratio and the plug-in one."""

import math

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.numerics.excess import excess_root
from jaxbandits.numerics.thresholds.evidence import (
    Evidence,
    Threshold,
    as_count,
    as_float,
    log_of,
    log_of_pairs,
    read_counts,
)

LOG_ZETA = math.log(math.pi**2 / 6)


def student(
    *, prior: Array | float = 1.0, arms: int | None = None, comparisons: Array | float | None = None
) -> Threshold:
    """Builds the threshold by which the squared t statistics of two arms exceed their mixtures with probability delta.

    For the N rewards of an arm with mean mu, S = sum of x - mu and V = sum of (x - mu)^2, G = sqrt(c / (N + c)) ((N +
    c) V / ((N + c) V - S^2))^(N / 2) is a martingale of mean 1 in the ratios of the x - mu, with c the `prior`. For two
    independent ones P(sup G sup G' >= y) <= (1 + log y) / y. The cost of both arms is largest where all of log G + log
    G' is on one of them. One arm, as for `Above`, has the bound 1 / y.

    Args:
        prior: c, () > 0, a number of pulls, fixed before the run.
        arms: K, int >= 2; required if `comparisons` is None.
        comparisons: () > 0, may be traced. If None, K - 1, the number of the leader's challengers. `TopM(m)` needs m (K
            - m), `Above` and `GoodArm` K.

    Returns:
        The threshold; reads `counts`, (1,) or (2,), of a rule for Gaussian arms of unknown variance. It is infinite for
        few pulls, up to 10 at delta = .1 and K = 10.

    Raises:
        ValueError: an argument is out of range; when the threshold is called, if variances are known or the counts have
            another shape.

    **Proved** for Gaussian arms of unknown variances, both costs, any sampling and all times. Source: Lai (1976), On
    confidence sequences, for one arm; the product of two and the threshold are ours.
    """
    union = log_of_pairs(arms, comparisons)
    log_prior = log_of("prior", prior)

    def student(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        n = _counts("student", evidence, delta, (1, 2))
        c = jnp.exp(log_prior(delta))
        level = union(delta) - jnp.log(delta)
        if n.shape == (2,):
            level = jnp.expm1(excess_root(level, jnp.asarray(True)))
        level = level + jnp.sum(jnp.log1p(n / c)) / 2
        q = (n + c) / n * -jnp.expm1(-2 * level / n)
        inner = jnp.where(q < 1, q, 0)
        costs = n / 2 * (-jnp.log1p(-inner) if evidence.cost == "adaptive" else inner / (1 - inner))
        return jnp.max(jnp.where(q < 1, costs, jnp.inf))

    return student


def uv_box(*, arms: int | None = None, comparisons: Array | float | None = None) -> Threshold:
    """Builds the threshold from one interval for the mean and one bound for the variance of each arm.

    With R(x) >= 1 >= R0(x) the roots y of y - log y = x, e = 1 / log(1 / delta) and l = log(4 comparisons zeta(2) /
    delta), an arm with N pulls adds N / 2 log(1 + A / B), or N A / (2 B) for the plug-in cost, with A = R(1 + 2 l + 4
    log(1 + log(N) / 4) + 4) and B = N R0(1 + 2 (1 + e) / N (l + 2 log(1 + log(N) / log(1 + e)))) - 1.

    Args:
        arms: K, int >= 2; required if `comparisons` is None.
        comparisons: () > 0, may be traced. If None, K - 1, the number of the leader's challengers.

    Returns:
        The threshold; reads `counts`, (2,), of a rule for Gaussian arms of unknown variance. It is infinite for few
        pulls, and 3 to 6 times `student` beyond.

    Raises:
        ValueError: an argument is out of range; when the threshold is called, if variances are known or the counts have
            another shape.

    **Proved** for Gaussian arms of unknown variances. Source: Jourdan, Degenne and Kaufmann (2023), Dealing with
    unknown variances in best-arm identification, with the constants of its authors' program.
    """
    union = log_of_pairs(arms, comparisons)

    def uv_box(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        n = _counts("uv_box", evidence, delta, (2,))
        log_n, log_4 = jnp.log(n), math.log(4)
        eta = -1 / jnp.log(delta)
        l = log_4 + LOG_ZETA + union(delta) - jnp.log(delta)
        far = 2 * l + 4 * jnp.log1p(log_n / 4) + 4
        near = 2 * (1 + eta) / n * (l + 2 * jnp.log1p(log_n / jnp.log1p(eta)))
        a = jnp.exp(excess_root(far, jnp.asarray(True)))
        b = n * jnp.exp(excess_root(near, jnp.asarray(False))) - 1
        is_finite = (n >= 2) & (b > 0)
        ratio = a / jnp.where(is_finite, b, 1)
        costs = n / 2 * (jnp.log1p(ratio) if evidence.cost == "adaptive" else ratio)
        return jnp.sum(jnp.where(is_finite, costs, jnp.inf))

    return uv_box


def _counts(kind: str, evidence: Evidence, delta: Array, sizes: tuple[int, ...]) -> Array:
    expected = f"be adaptive or plug-in for {kind}, as for arms of unknown variance"
    checks.require(evidence.cost in ("adaptive", "plug-in"), "evidence.cost", expected, evidence.cost)
    counts = evidence.counts
    size = jnp.shape(counts)[0] if counts is not None and jnp.shape(counts) in {(n,) for n in sizes} else 2
    return as_count(read_counts(kind, evidence, size, "the arms that are compared"), delta)
