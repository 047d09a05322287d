"""Settings of all rules with a likelihood-ratio stop, checked in one place."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear._problem.arms import check_ridge, checked_arms
from jaxbandits.linear._problem.questions.asked import Question, asked
from jaxbandits.linear._shared.stop import LikelihoodRatio, check_stop
from jaxbandits.numerics.thresholds import Evidence, Threshold
from jaxbandits.questions import Above, TopM

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
    question: TopM | Above | None  # None for the best item


def checked_settings(
    arms: Array,
    stop: LikelihoodRatio,
    *,
    ridge: Array | float,
    noise_scale: Array | float,
    start: StartName,
    spanner: Any = None,
    question: Question | None = None,
) -> FixedConfidenceSettings:
    """Checks the arguments that all rules share, and the stop against the arms; raises `ValueError` unless they fit."""
    checks.instance("stop", stop, LikelihoodRatio)
    with checks.without_traced():  # traced parts were checked where the stop was made
        check_stop(stop, "stop.")
    features = checked_arms(arms, full_rank=stop.least_squares)
    K, d = features.shape
    dtype = features.dtype
    items = None if stop.items is None else jnp.asarray(stop.items).astype(dtype)
    if items is not None:
        require(items.shape[1] == d, "items", f"have {d} columns, as the arms", items.shape)
    about, epsilon = asked(question, K if items is None else items.shape[0], stop.epsilon, name="stop.epsilon")
    if about is not None:
        name = type(about).__name__
        require(stop.eliminate is None, "stop.eliminate", f"be None with the question {name}", stop.eliminate)
    check_ridge(features, ridge)
    checks.positive("noise_scale", noise_scale)
    checks.one_of("start", start, StartName)
    order = np.arange(K)
    if start == "spanner":
        order = first_spanner(arms) if spanner is None else spanner
    least = _checked_threshold(stop.threshold, arms, order, dtype)
    delta, epsilon, ridge, noise_scale = (jnp.asarray(x, dtype) for x in (stop.delta, epsilon, ridge, noise_scale))
    return FixedConfidenceSettings(
        arms=features,
        items=features if items is None else items,
        points=features if items is None else jnp.concatenate([features, items]),
        delta=delta,
        threshold=stop.threshold,
        epsilon=epsilon / noise_scale,
        ridge=ridge,
        noise_scale=noise_scale,
        least_squares=stop.least_squares,
        eliminate=stop.eliminate,
        start=order,
        least=least,
        question=about,
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
