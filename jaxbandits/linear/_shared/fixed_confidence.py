"""Settings of all rules with a likelihood-ratio stop, checked in one place."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear._problem.arms import check_ridge, checked_arms
from jaxbandits.numerics.thresholds import Evidence, Threshold

EliminateName = Literal["stop", "both"]
StartName = Literal["arms", "spanner"]
SPANNER_TOLERANCE = 1e-8  # smallest residual, relative to the norm, of an arm that raises the rank


class FixedConfidenceSettings(NamedTuple):
    """Knowledge of a rule before the run. Statistics are in units of the noise."""

    arms: Array  # float (K, d)     features of the arms, which are pulled
    items: Array  # float (M, d)    features of the items, which are compared
    points: Array  # float (N, d)   the arms, then the items if they are other points
    delta: Array  # float ()
    threshold: Threshold
    epsilon: Array  # float ()      in units of noise_scale
    ridge: Array  # float ()
    noise_scale: Array  # float ()
    least_squares: bool  # True if the stop has no ridge
    eliminate: str | None
    start: np.ndarray  # int (s,)   arms that are pulled first, once each
    least: float | None  # smallest eigenvalue of the start's Gram matrix; None if the threshold does not read it


def checked_settings(
    arms: Array,
    *,
    delta: Array | float,
    threshold: Threshold,
    items: Array | None,
    epsilon: Array | float,
    ridge: Array | float,
    glr_ridge: float | None,
    noise_scale: Array | float,
    eliminate: EliminateName | None,
    start: StartName,
    spanner: Any = None,
) -> FixedConfidenceSettings:
    """Checks the common arguments and collects them; raises `ValueError` unless they are in range."""
    if glr_ridge is not None:
        require(is_concrete(glr_ridge), "glr_ridge", "be None or 0, and concrete", glr_ridge)
        checks.real("glr_ridge", glr_ridge, least=0, most=0)
        glr_ridge = float(glr_ridge)
    features = checked_arms(arms, full_rank=glr_ridge is not None)
    K, d = features.shape
    compared = features if items is None else checked_arms(items, name="items")
    fits = compared.shape[1] == d
    require(fits, "items", f"have {d} columns, as the arms", compared.shape)
    checks.probability("delta", delta)
    checks.function("threshold", threshold, "delta and evidence")
    checks.not_negative("epsilon", epsilon)
    check_ridge(features, ridge)
    checks.positive("noise_scale", noise_scale)
    checks.one_of("start", start, StartName)
    if eliminate is not None:
        checks.one_of("eliminate", eliminate, EliminateName)
        is_zero = is_concrete(epsilon) and float(np.asarray(epsilon)) == 0
        require(is_zero, "epsilon", "be 0 where items are eliminated", epsilon)
    if glr_ridge is not None and getattr(threshold, "__name__", "") in ("ellipsoid", "ellipsoid_trace"):
        raise ValueError(
            f"glr_ridge must be None with the threshold {threshold.__name__}, which requires the ridge, got 0"
        )
    order = np.arange(K)
    if start == "spanner":
        order = first_spanner(arms) if spanner is None else spanner
    dtype = features.dtype
    least = _checked_threshold(threshold, arms, order, dtype)
    delta, epsilon, ridge, noise_scale = (jnp.asarray(x, dtype) for x in (delta, epsilon, ridge, noise_scale))
    return FixedConfidenceSettings(
        arms=features,
        items=compared if items is None else compared.astype(dtype),
        points=features if items is None else jnp.concatenate([features, compared.astype(dtype)]),
        delta=delta,
        threshold=threshold,
        epsilon=epsilon / noise_scale,
        ridge=ridge,
        noise_scale=noise_scale,
        least_squares=glr_ridge is not None,
        eliminate=eliminate,
        start=order,
        least=least,
    )


def first_spanner(arms: Array) -> np.ndarray:
    """Returns the first d arms by index of which each raises the rank, int (d,).

    Raises:
        ValueError: the arms are traced, or do not span R^d.
    """
    require(is_concrete(arms), "arms", "be concrete where a spanner is needed", arms)
    features = np.asarray(arms, np.float64)
    chosen, basis = [], np.zeros((0, features.shape[1]))
    for k, x in enumerate(features):
        residual = x - basis.T @ (basis @ x)
        residual -= basis.T @ (basis @ residual)
        if np.linalg.norm(residual) > SPANNER_TOLERANCE * max(np.linalg.norm(x), np.finfo(float).tiny):
            chosen.append(k)
            basis = np.vstack([basis, residual / np.linalg.norm(residual)])
    rank = len(chosen)
    require(rank == features.shape[1], "arms", f"have rank {features.shape[1]} (see linear.reduce_rank)", rank)
    return np.array(chosen)


def least_eigenvalue(arms: Array, chosen: np.ndarray) -> float:
    """Computes the smallest eigenvalue of the Gram matrix of some arms, on the host."""
    features = np.asarray(arms, np.float64)[chosen]
    return float(np.linalg.eigvalsh(features.T @ features)[0])


def _checked_threshold(threshold: Threshold, arms: Array, order: np.ndarray, dtype: Any) -> float | None:
    """Returns the smallest eigenvalue if the threshold reads one; raises `ValueError` unless it fits the problem."""
    number: Any = jax.ShapeDtypeStruct((), dtype)
    count: Any = jax.ShapeDtypeStruct((), jnp.int32)
    counts: Any = jax.ShapeDtypeStruct((len(arms),), jnp.int32)

    def level_of(delta: Array, evidence: Evidence) -> Any:
        return threshold(delta, evidence)

    least = None
    try:
        level = jax.eval_shape(level_of, number, Evidence(count, counts, number, None))
    except ValueError as error:
        if not is_concrete(arms):
            raise ValueError(f"threshold must accept traced arms, got {error}") from error
        least = least_eigenvalue(arms, order)
        try:
            level = jax.eval_shape(level_of, number, Evidence(count, counts, number, number))
        except ValueError as second:
            raise ValueError(f"threshold must accept this rule's evidence, got {second}") from second
    fits = isinstance(level, jax.ShapeDtypeStruct) and (level.shape, level.dtype) == ((), dtype)
    require(fits, "threshold", f"give a float () of dtype {jnp.dtype(dtype).name}", level)
    return least
