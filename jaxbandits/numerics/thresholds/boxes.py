"""Thresholds of one arm at a time, for questions in which an arm is compared with a level."""

import math
from collections.abc import Callable
from typing import Literal

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.numerics.excess import excess_root
from jaxbandits.numerics.thresholds.evidence import Evidence, Threshold, as_count, as_float, log_of, read_counts

CountName = Literal["pulls", "counts"]
LOG_ZETA = math.log(math.pi**2 / 6)


def box(*, arms: int | None = None, comparisons: Array | float | None = None, reads: CountName = "pulls") -> Threshold:
    """Builds R(2 log(comparisons / delta) + 4 log(4 + log n) + 1 / 2) / 2, R(x) the root y >= 1 of y - log y = x.

    Public code has x + log x for R(x), which is smaller and not proved.

    Args:
        arms: K, int >= 2; required if `comparisons` is None.
        comparisons: () > 0, may be traced. If None, K, the number of arms with a label each.
        reads: "pulls" if n is the number of all pulls, as published; "counts" if n is the arm's own number, for rules
            that compare one arm with a level (`mab.Above`, `mab.GoodArm`). The second is smaller.

    Returns:
        The threshold; reads `pulls`, or `counts`, (1,).

    Raises:
        ValueError: an argument is out of range; when the threshold is called, if the counts do not have shape (1,).

    **Proved** for N kl(mean, mu) of each Gaussian arm of known variance and any sampling, with a union over arms.
    Source: Jourdan, Delahaye-Duriez and Reda (2026), An anytime algorithm for good arm identification.
    """

    def excess(log_ratio: Array, log_n: Array) -> Array:
        return 2 * log_ratio + 4 * jnp.log(4 + log_n) - 0.5

    return _box("box", excess, arms, comparisons, reads)


def box_sharp(
    *, arms: int | None = None, comparisons: Array | float | None = None, reads: CountName = "pulls"
) -> Threshold:
    """Builds R(1 + 2 log(comparisons zeta(2) / delta) + 4 log(1 + log(n) / 4) + 4) / 2, with the R of `box`.

    Numbers of pulls are cut into slices of ratio e^4. Slice i has the probability delta / (zeta(2) (i + 1)^2), and in
    it one Gaussian mixture is used. `box` rounds its constant up: it is larger by .03 at most.

    Arguments, result and errors: see `box`.

    **Proved** as `box`, also for rewards that are sub-Gaussian, with the Gaussian cost. Source: the proof of `box`; the
    constant is ours.
    """

    def excess(log_ratio: Array, log_n: Array) -> Array:
        return 2 * (log_ratio + LOG_ZETA) + 4 * jnp.log1p(log_n / 4) + 4

    return _box("box_sharp", excess, arms, comparisons, reads)


def _box(
    kind: str,
    excess: Callable[[Array, Array], Array],
    arms: int | None,
    comparisons: Array | float | None,
    reads: CountName,
) -> Threshold:
    if arms is not None or comparisons is None:
        arms = checks.whole("arms", arms, least=2)
        comparisons = arms if comparisons is None else comparisons
    checks.one_of("reads", reads, CountName)
    union = log_of("comparisons", comparisons)

    def threshold(delta: Array | float, evidence: Evidence) -> Array:
        delta = as_float(delta)
        n = evidence.pulls if reads == "pulls" else read_counts(kind, evidence, 1, "the one arm")[0]
        h = excess(union(delta) - jnp.log(delta), jnp.log(as_count(n, delta)))
        return jnp.exp(excess_root(h, jnp.asarray(True))) / 2

    threshold.__name__ = kind
    return threshold
