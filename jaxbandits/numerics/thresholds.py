"""How large a log likelihood ratio must be before a run trusts it: ten thresholds, and what is proved of each.

A threshold is made from what is known before the run, and is then a pure function of the confidence and of what the run
has seen; `threshold.__name__` is its kind. Statistics are log likelihood ratios, free of units (Gaussian: squares over
noise_scale^2), and must exceed it; intervals use the same number, as kl(mean, q) <= threshold / pulls.

    >>> from jaxbandits.numerics import thresholds
    >>> threshold = thresholds.gk16(arms=4)
    >>> print(threshold.__name__, threshold(0.1, thresholds.Evidence(pulls=1000)).round(3))
    gk16 4.37

| kind | status |
| --- | --- |
| `gk16` | heuristic; the default of the families |
| `log_t` | heuristic |
| `gk_union` | proved for Bernoulli arms, likelihood ratios, any sampling |
| `kl_lucb` | proved for the intervals of KL-LUCB, LUCB and UGapE |
| `kk_pair` | proved for Gaussian arms without structure, any sampling |
| `kk_all` | proved for Gaussian arms, any structure, least squares without ridge |
| `ellipsoid` | proved for linear means, any sampling, least squares of the same ridge |
| `ellipsoid_trace` | proved as `ellipsoid`, from the number of pulls alone |
| `jp` | proved for linear means without ridge |
| `jp_heuristic` | heuristic |

Every kind takes `arms`, so that a loop can make them all; those whose formula has no number of arms do not read it.
Where `comparisons` is given, delta is divided by it: a union bound. The file is longer than others because it is such a
table: every kind states its own formula and proof.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import require


class Evidence(NamedTuple):
    """What a run has seen. A kind reads what it needs; the rest may be None."""

    pulls: Array | int  # int ()   oracle queries so far, t
    counts: Array | None = None  # int (n,)   pulls of the arms whose means are compared: the 2 of a pair, or all K
    log_det: Array | None = None  # float ()   log det(I + V / ridge), V = sum_k counts_k x_k x_k'
    least_eigenvalue: Array | None = None  # float ()   that of V, or a lower bound of it


Threshold = Callable[[Array | float, Evidence], Array]  # (delta, evidence) -> float (), of delta's dtype


def gk16(*, arms: int | None = None, comparisons: Array | float = 1) -> Threshold:
    """log(1 + log t) + log(comparisons / delta): what experiments have used, and nobody has proved.

    With two equal Gaussian arms pulled in turn up to t = 10^5 and delta = .1, the ratio passes it in 14 % of the runs.

    Args:
        arms: int >= 2, not read.
        comparisons: () > 0, may be traced.

    Returns:
        The threshold; reads `pulls`.

    Raises:
        ValueError: an argument is out of range.

    **Heuristic**. Source: Garivier and Kaufmann (2016), section 6.
    """
    _check_arms(arms)
    union = _log_of("comparisons", comparisons)

    def gk16(delta: Array | float, evidence: Evidence) -> Array:
        delta = _float(delta)
        return jnp.log1p(jnp.log(_count(evidence.pulls, delta))) + (union(delta) - jnp.log(delta))

    return gk16


def log_t(*, arms: int | None = None, comparisons: Array | float = 1) -> Threshold:
    """log(t + 1) + log(comparisons / delta).

    Arguments, result and errors are those of `gk16`.

    **Heuristic**. Source: Tirinzoni and Degenne (2022), Table 1.
    """
    _check_arms(arms)
    union = _log_of("comparisons", comparisons)

    def log_t(delta: Array | float, evidence: Evidence) -> Array:
        delta = _float(delta)
        return jnp.log1p(_count(evidence.pulls, delta)) + (union(delta) - jnp.log(delta))

    return log_t


def gk_union(*, arms: int, comparisons: Array | float = 1) -> Threshold:
    """log(2 t (K - 1)) + log(comparisons / delta).

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
    union = _log_of("comparisons", comparisons)

    def gk_union(delta: Array | float, evidence: Evidence) -> Array:
        delta = _float(delta)
        return math.log(2 * (K - 1)) + jnp.log(_count(evidence.pulls, delta)) + (union(delta) - jnp.log(delta))

    return gk_union


def kl_lucb(*, arms: int, exponent: float = 1.1, constant: float = 405.5) -> Threshold:
    """The sum x + log x with x = log(constant K t^exponent / delta).

    Args:
        arms: K, int >= 2.
        exponent: a > 1.
        constant: more than 2 e + 1 + e / (a - 1) + (e + 1) / (a - 1)^2, which is 405.45 at a = 1.1.

    Returns:
        The threshold; reads `pulls`.

    Raises:
        ValueError: an argument is out of range.

    **Proved** for the intervals of KL-LUCB, and so for the wider ones of LUCB; without the term log x it is not.
    Source: Kaufmann and Kalyanakrishnan (2013), Theorem 1.
    """
    K = checks.whole("arms", arms, least=2)
    exponent = float(checks.real("exponent", exponent, above=1))
    least = 2 * math.e + 1 + math.e / (exponent - 1) + (math.e + 1) / (exponent - 1) ** 2
    constant = float(checks.real("constant", constant, above=least))

    def kl_lucb(delta: Array | float, evidence: Evidence) -> Array:
        delta = _float(delta)
        x = math.log(constant * K) + exponent * jnp.log(_count(evidence.pulls, delta)) - jnp.log(delta)
        return x + jnp.log(x)

    return kl_lucb


def kk_pair(*, arms: int | None = None, comparisons: Array | float | None = None) -> Threshold:
    """2 C(log(comparisons / delta) / 2) + 2 log(4 + log N_a) + 2 log(4 + log N_b), C the `mixture_constant`.

    For arms without structure only: in a linear or combinatorial problem a challenger moves all means (`kk_all`).

    Args:
        arms: K, int >= 2; read if `comparisons` is None.
        comparisons: () > 0, may be traced; K - 1, the challengers of the leader, by default.

    Returns:
        The threshold; reads `counts`, (2,).

    Raises:
        ValueError: an argument is out of range; when it is called: the counts are not those of two arms.

    **Proved** for Gaussian arms and any sampling, also for Bernoulli rewards with the Gaussian statistic of noise_scale
    1/2, not with their own. Source: Kaufmann and Koolen (2021), mixture martingales.
    """
    if arms is not None or comparisons is None:
        arms = checks.whole("arms", arms, least=2)
    union = _log_of("comparisons", (arms or 2) - 1 if comparisons is None else comparisons)

    def kk_pair(delta: Array | float, evidence: Evidence) -> Array:
        delta = _float(delta)
        counts = _counts("kk_pair", evidence, 2, "the two arms")
        explored = 2 * jnp.sum(_log_log(counts, delta))
        return 2 * mixture_constant((union(delta) - jnp.log(delta)) / 2) + explored

    return kk_pair


def kk_all(*, arms: int) -> Threshold:
    """K C(log(1 / delta) / K) + 2 sum_k log(4 + log max(1, N_k)), C the `mixture_constant`.

    Args:
        arms: K, int >= 2.

    Returns:
        The threshold; reads `counts`, (K,).

    Raises:
        ValueError: an argument is out of range; when it is called: the counts are not those of K arms.

    **Proved** for Gaussian arms, any structure and any sampling, for least squares without ridge. It bounds the whole
    vector of means, so no union over challengers is needed. Source: Kaufmann and Koolen (2021).
    """
    K = checks.whole("arms", arms, least=2)

    def kk_all(delta: Array | float, evidence: Evidence) -> Array:
        delta = _float(delta)
        counts = _counts("kk_all", evidence, K, "all arms")
        return K * mixture_constant(-jnp.log(delta) / K) + 2 * jnp.sum(_log_log(counts, delta))

    return kk_all


def ellipsoid(*, norm_bound: float, ridge: float = 1.0, noise_scale: float = 1.0, arms: int | None = None) -> Threshold:
    """(sqrt(log_det + 2 log(1 / delta)) + sqrt(ridge) norm_bound / noise_scale)^2 / 2.

    Args:
        norm_bound: () >= 0, at least the norm of theta.
        ridge: () > 0, that of the statistic.
        noise_scale: () > 0, in units of reward.
        arms: int >= 2, not read.

    Returns:
        The threshold; reads `log_det`.

    Raises:
        ValueError: an argument is out of range; when it is called: there is no `log_det`.

    **Proved** for linear means and any sampling; no union over challengers is needed. Source: Abbasi-Yadkori, Pal and
    Szepesvari (2011), Theorem 2.
    """
    _check_arms(arms)
    checks.not_negative("norm_bound", norm_bound)
    checks.positive("ridge", ridge)
    checks.positive("noise_scale", noise_scale)

    def ellipsoid(delta: Array | float, evidence: Evidence) -> Array:
        delta = _float(delta)
        log_det = _read("ellipsoid", "log_det", evidence.log_det, delta)
        return _squared_radius(log_det, delta, norm_bound, ridge, noise_scale)

    return ellipsoid


def ellipsoid_trace(
    *,
    dimension: int,
    arm_norm: float,
    norm_bound: float,
    ridge: float = 1.0,
    noise_scale: float = 1.0,
    arms: int | None = None,
) -> Threshold:
    """`ellipsoid` with d log(1 + t arm_norm^2 / (ridge d)) for log_det, which it never exceeds.

    Args:
        dimension: d, int >= 1.
        arm_norm: () > 0, at least the norm of every arm's features.
        norm_bound: () >= 0, at least the norm of theta.
        ridge: () > 0, that of the statistic.
        noise_scale: () > 0, in units of reward.
        arms: int >= 2, not read.

    Returns:
        The threshold; reads `pulls`.

    Raises:
        ValueError: an argument is out of range.

    **Proved** as `ellipsoid`, by the inequality of determinant and trace. Source: Abbasi-Yadkori, Pal and Szepesvari
    (2011), Theorem 2 and Lemma 10.
    """
    d = checks.whole("dimension", dimension, least=1)
    _check_arms(arms)
    checks.positive("arm_norm", arm_norm)
    checks.not_negative("norm_bound", norm_bound)
    checks.positive("ridge", ridge)
    checks.positive("noise_scale", noise_scale)

    def ellipsoid_trace(delta: Array | float, evidence: Evidence) -> Array:
        delta = _float(delta)
        log_det = d * jnp.log1p(_count(evidence.pulls, delta) * (arm_norm**2 / (ridge * d)))
        return _squared_radius(log_det, delta, norm_bound, ridge, noise_scale)

    return ellipsoid_trace


def jp(*, dimension: int, ridge: float, least: float, excess: float = 0.1, arms: int | None = None) -> Threshold:
    """(1 + u) (D / 2 + log(1 / delta)) with u = excess and D >= log det(I + V / (u c)); inf while V is below c = least.

    D is made from the log-determinant at another ridge: log_det + d log(ridge / (u c)) + d max(0, log((u c + e) /
    (ridge + e))) with e the least eigenvalue of V, since (u c + v) / (ridge + v) <= that for every v >= e. It is exact
    where ridge = u c; for u c < ridge the excess vanishes as V grows.

    Args:
        dimension: d, int >= 1.
        ridge: () > 0, of `log_det`.
        least: c > 0, a constant of the arms: the least eigenvalue that V must have.
        excess: u > 0.
        arms: int >= 2, not read.

    Returns:
        The threshold; reads `log_det` and `least_eigenvalue`.

    Raises:
        ValueError: an argument is out of range; when it is called: one of the two is missing.

    **Proved** for least squares without ridge. Source: Jedra and Proutiere (2020), the threshold "LT" of later papers.
    """
    d = checks.whole("dimension", dimension, least=1)
    _check_arms(arms)
    checks.positive("ridge", ridge)
    checks.positive("least", least)
    checks.positive("excess", excess)
    own = excess * least

    def jp(delta: Array | float, evidence: Evidence) -> Array:
        delta = _float(delta)
        log_det = _read("jp", "log_det", evidence.log_det, delta)
        e = _read("jp", "least_eigenvalue", evidence.least_eigenvalue, delta)
        moved = jnp.log(ridge / own) + jnp.maximum(0, jnp.log((own + e) / (ridge + e)))
        bound = (1 + excess) * ((log_det + d * moved) / 2 - jnp.log(delta))
        return jnp.where(e < least, jnp.inf, bound.astype(delta.dtype))

    return jp


def jp_heuristic(*, dimension: int, excess: float = 0.1, arms: int | None = None) -> Threshold:
    """(1 + u) (log(1 / delta) + log(t) / 2 + (d / 2) log(1 + 1 / u)) with u = excess.

    Args:
        dimension: d, int >= 1.
        excess: u > 0.
        arms: int >= 2, not read.

    Returns:
        The threshold; reads `pulls`.

    Raises:
        ValueError: an argument is out of range.

    **Heuristic**. Source: Jedra and Proutiere (2020), the threshold "LT-H" of later papers.
    """
    d = checks.whole("dimension", dimension, least=1)
    _check_arms(arms)
    checks.positive("excess", excess)

    def jp_heuristic(delta: Array | float, evidence: Evidence) -> Array:
        delta = _float(delta)
        shape = d * math.log1p(1 / excess)
        return (1 + excess) * ((jnp.log(_count(evidence.pulls, delta)) + shape) / 2 - jnp.log(delta))

    return jp_heuristic


def mixture_constant(x: Array) -> Array:
    """C(x) = min over l in (1/2, 1) of (2 l - 2 l log(4 l) + log zeta(2 l) - log(1 - l) / 2 + x) / l.

    Every l gives a valid, larger value, so no minimisation is needed: the l used here is near the best one. C is not
    x + log x at the sizes that occur: C(1.7) = 3.262, C(10) = 11.955.

    Args:
        x: float (...), at least 0.

    Returns:
        float (...), never below C(x) and at most 1.2e-5 above it for x in [0, 200].

    Source: Kaufmann and Koolen (2021), Mixture martingales revisited with applications to sequential tests and
    confidence intervals, the Gaussian case.
    """
    rest = 1 / (2.02 * x + 0.23 * jnp.log1p(x) + 11.01)  # 1 - l
    l = 1 - rest
    e = 1 - 2 * rest
    # zeta(1 + e) by its Stieltjes constants: relative error 1.4e-7 for e in (0, 1).
    series = (0.5772156649, 0.0728158455, -0.0048451816, -0.0003423057, 0.0000968905, -0.0000066110)
    tail = jnp.zeros_like(e)
    for coefficient in reversed(series):
        tail = coefficient + e * tail
    log_zeta = jnp.log(1 / e + tail)
    # 1e-6 pays for the error of zeta.
    return (2 * l - 2 * l * jnp.log(4 * l) + log_zeta - jnp.log(rest) / 2 + x) / l + 1e-6


def _squared_radius(log_det: Array, delta: Array, norm_bound: float, ridge: float, noise_scale: float) -> Array:
    bias = (ridge**0.5) * (norm_bound / noise_scale)
    return ((jnp.sqrt(log_det - 2 * jnp.log(delta)) + bias) ** 2 / 2).astype(delta.dtype)


def _float(delta: Array | float) -> Array:
    return jnp.asarray(delta, jnp.result_type(delta))


def _count(count: Array | int, delta: Array) -> Array:
    """A number of pulls as a float of delta's dtype, at least 1."""
    return jnp.maximum(jnp.asarray(count).astype(delta.dtype), 1)


def _log_log(counts: Array, delta: Array) -> Array:
    return jnp.log(4 + jnp.log(_count(counts, delta)))


def _read(kind: str, field: str, value: Array | None, delta: Array) -> Array:
    require(value is not None, f"evidence.{field}", f"be given to {kind}", None)
    return jnp.asarray(value).astype(delta.dtype)


def _counts(kind: str, evidence: Evidence, n: int, of: str) -> Array:
    expected = f"be the pulls of {of}, an array of shape ({n},), for {kind}"
    require(evidence.counts is not None, "evidence.counts", expected, None)
    counts = jnp.asarray(evidence.counts)
    require(counts.shape == (n,), "evidence.counts", expected, f"an array of shape {counts.shape}")
    return counts


def _check_arms(arms: int | None) -> None:
    if arms is not None:
        checks.whole("arms", arms, least=2)


def _log_of(name: str, value: Array | float) -> Callable[[Array], Array | float]:
    """The logarithm of an argument that may be traced, as a function of delta, whose dtype it takes."""
    checks.positive(name, value)
    if checks.is_concrete(value):
        logarithm = math.log(float(value))
        return lambda delta: logarithm
    return lambda delta: jnp.log(jnp.asarray(value).astype(delta.dtype))
