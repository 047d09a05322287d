"""The stop by likelihood ratios, which any sampling rule takes as its `stop`."""

from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.numerics.thresholds import Evidence, Threshold

EliminateName = Literal["stop", "both"]


class LikelihoodRatio(NamedTuple):
    """A stop, from `likelihood_ratio` or `no_stop`. A rule checks it against its arms."""

    threshold: Threshold  # (delta, evidence) -> float ()
    delta: Array | float  # () in (0, 1)
    items: Array | None  # float (M, d)   features of the items; None if they are the arms
    epsilon: Array | float  # () >= 0, in units of reward
    least_squares: bool  # True if the statistic has no ridge
    eliminate: EliminateName | None  # None if no item is eliminated


def likelihood_ratio(
    threshold: Threshold,
    *,
    delta: Array | float,
    items: Array | None = None,
    epsilon: Array | float = 0.0,
    glr_ridge: float | None = None,
    eliminate: EliminateName | None = None,
) -> LikelihoodRatio:
    """Builds the stop by likelihood ratios: the leading item against each other one, with the threshold of `delta`.

    A run stops once the smallest ratio exceeds the threshold; the answer is the leading item. Call it where the rule is
    made: its parts may be traced, and the struct is no input of a compiled function.

    Args:
        threshold: one of `numerics.thresholds`: `gk16`, `log_t`, `ellipsoid`, `ellipsoid_trace`, `jp`, `jp_heuristic`
            or `kk_all`. `jp` and `kk_all` are proved for glr_ridge=0 only, and heuristic otherwise. The `ellipsoid`s
            are proved for glr_ridge=None only; their ridge must be the rule's. `jp` reads the smallest eigenvalue of
            the Gram matrix of the start's arms.
        delta: () in (0, 1), allowed probability of error.
        items: float (M, d), features of the items that are compared; the answer is one of them. If None, the arms.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward. No sampling rule reads it.
        glr_ridge: None or 0. If 0, stop and answer use least squares without ridge, and the arms of the start must
            span R^d; the sampling rule keeps its ridge.
        eliminate: None, "stop" or "both". If "stop", an item is eliminated for good once its statistic has passed
            the threshold, and the last one is the answer. If "both", the sampling rule ignores it as well. Both
            require epsilon = 0.

    Returns:
        LikelihoodRatio.

    Raises:
        ValueError: an argument lies outside the range above. Shapes, and the threshold's evidence, are checked by the
            rule.

    **Guarantee**: with a proved threshold, P(the answer is not epsilon-best) <= delta, whatever the sampling rule.

    Source: Tirinzoni and Degenne (2022), with `eliminate`; Wang, Tzeng and Proutiere (2021).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxbandits import linear
        >>> from jaxbandits.numerics import thresholds
        >>> stop = linear.likelihood_ratio(thresholds.gk16(arms=3), delta=0.1)
        >>> algorithm = linear.fws(jnp.eye(3), stop=stop)
    """
    if glr_ridge is not None:
        require(is_concrete(glr_ridge), "glr_ridge", "be None or 0, and concrete", glr_ridge)
        checks.real("glr_ridge", glr_ridge, least=0, most=0)
    stop = LikelihoodRatio(
        threshold=threshold,
        delta=delta,
        items=items,
        epsilon=epsilon,
        least_squares=glr_ridge is not None,
        eliminate=eliminate,
    )
    check_stop(stop)
    return stop


def check_stop(stop: LikelihoodRatio, prefix: str = "") -> None:
    """Raises `ValueError` unless the parts of a stop lie in their ranges."""
    threshold, delta, items, epsilon, least_squares, eliminate = stop
    checks.function(f"{prefix}threshold", threshold, "delta and evidence")
    checks.probability(f"{prefix}delta", delta)
    if items is not None:
        checked_arms(items, name=f"{prefix}items")
    checks.not_negative(f"{prefix}epsilon", epsilon)
    if least_squares and getattr(threshold, "__name__", "") in ("ellipsoid", "ellipsoid_trace"):
        raise ValueError(
            f"glr_ridge must be None with the threshold {threshold.__name__}, which requires the ridge, got 0"
        )
    if eliminate is not None:
        checks.one_of(f"{prefix}eliminate", eliminate, EliminateName)
        is_zero = is_concrete(epsilon) and float(np.asarray(epsilon)) == 0
        require(is_zero, f"{prefix}epsilon", "be 0 where items are eliminated", epsilon)


def no_stop(items: Array | None = None) -> LikelihoodRatio:
    """Builds the stop of a run that lasts until the horizon of `jaxbandits.sweep`, to be judged by its answers.

    Args:
        items: float (M, d), features of the items that are compared; the answer is one of them. If None, the arms.

    Returns:
        LikelihoodRatio whose threshold no statistic exceeds.

    Raises:
        ValueError: `items` are no rows of features.
    """
    stop = LikelihoodRatio(
        threshold=_never, delta=_ANY_DELTA, items=items, epsilon=0.0, least_squares=False, eliminate=None
    )
    check_stop(stop)
    return stop


_ANY_DELTA = 0.5  # the threshold of `no_stop` does not depend on it


def _never(delta: Array | float, evidence: Evidence) -> Any:
    del evidence
    return jnp.full_like(delta, jnp.inf)
