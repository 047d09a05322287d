"""Arms of a linear bandit: their checks, the space that they span, and the leads of the best one."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.numerics.linalg import check_rank_one, dot

NEARLY = 1e-5  # largest relative difference of squared lengths that count as tied
RANK_TOLERANCE = 1e-10  # singular values below this fraction of the largest count as zero


def checked_arms(arms: Any, *, name: str = "arms", full_rank: bool = False) -> Array:
    """Returns the arms as an array, float (K, d) with K >= 2, finite, no two rows equal.

    Args:
        arms: the argument. If traced, its shape and finiteness are checked, but not its rows and rank.
        name: name of the argument, for the message.
        full_rank: if True, they must also span R^d, which an unregularised estimate requires.

    Returns:
        float (K, d).

    Raises:
        ValueError: the arms are not of this kind.
    """
    array = checks.array(name, arms, ("K", "d"))
    require(array.shape[0] >= 2, name, "have at least 2 rows", array.shape)
    if is_concrete(arms):
        values = np.asarray(arms)
        require(len(np.unique(values, axis=0)) == len(values), name, "have no two equal rows", values)
        basis = span(values, array.dtype) if full_rank else None
        if basis is not None:
            raise ValueError(f"{name} must have rank {values.shape[1]} (see linear.reduce_rank), got {basis.shape[1]}")
    return array


def check_ridge(arms: Array, ridge: Any) -> None:
    """Raises `ValueError` unless the ridge is positive, and not too small for rank-one updates with these arms."""
    checks.positive("ridge", ridge)
    squares = np.sum(np.asarray(arms, np.float64) ** 2, axis=1) if is_concrete(arms) else dot(arms, arms)
    check_rank_one("ridge", ridge, squares.max(), arms.dtype, "the largest |x|^2")


def span(arms: np.ndarray, dtype: Any) -> np.ndarray | None:
    """Computes an orthonormal basis (d, r) of the arms' span, or returns None if they span R^d.

    Singular values below 1e-10 of the largest, or below what `dtype` distinguishes from zero, count as zero.
    """
    tolerance = max(RANK_TOLERANCE, max(arms.shape) * float(jnp.finfo(dtype).eps))
    _, values, directions = np.linalg.svd(arms.astype(np.float64), full_matrices=False)
    rank = int(np.sum(values > tolerance * values[0]))
    return None if rank == arms.shape[1] else directions[:rank].T


def reduce_rank(arms: Array | np.ndarray) -> Array:
    """Computes the coordinates of the arms in an orthonormal basis of their span.

    Gaps, widths, log det(A / ridge) and ridge predictions are the same in these coordinates, in which A is regular once
    every arm has been pulled. Arms that span R^d already are returned as they are.

    Args:
        arms: float (K, d), concrete: the rank is a shape.

    Returns:
        float (K, r), with r the rank: singular values below 1e-10 of the largest, or below what the dtype distinguishes
        from zero, count as zero. Cost: O(K d min(K, d)), on the host.

    Raises:
        ValueError: `arms` is not a valid (K, d) array, or is traced.
    """
    array = checked_arms(arms)
    require(is_concrete(arms), "arms", "be concrete", arms)
    values = np.asarray(arms)
    basis = span(values, array.dtype)
    return array if basis is None else jnp.asarray(values.astype(np.float64) @ basis, array.dtype)


def spanning(arms: Array) -> Array:
    """Selects d arms that span R^d, bool (K,), fewer if the arms do not span it. Traceable. Cost: O(K d^2).

    Each is the longest one in the complement of the span of the arms before it.
    """
    K, d = arms.shape
    chosen, residuals = jnp.zeros(K, bool), arms
    for _ in range(d):
        squares = dot(residuals, residuals)
        # The first of the arms that tie up to rounding, because arms are often unit vectors.
        longest = jnp.arange(K) == jnp.argmax(squares >= (1 - NEARLY) * jnp.max(squares))
        direction = jnp.matmul(longest.astype(arms.dtype), residuals, precision="highest")
        direction *= lax.rsqrt(jnp.maximum(dot(direction, direction), jnp.finfo(arms.dtype).tiny))
        chosen, residuals = chosen | longest, residuals - dot(residuals, direction)[:, None] * direction[None]
    return chosen


class Leads(NamedTuple):
    """Leads of the best arm over each arm."""

    best: Array  # int ()
    directions: Array  # float (K, d)   x_best - x_k
    gaps: Array  # float (K,)           (x_best - x_k).theta, 0 for the best


def leads(arms: Array, theta: Array) -> Leads:
    """Computes the best arm and its leads over the others.

    Args:
        arms: float (K, d).
        theta: float (d,).

    Returns:
        Leads. The gaps are taken from the differences of the features, because the means of two good arms agree in
        their leading digits.

    Raises:
        ValueError: `arms` or `theta` is not valid, or two arms tie for the best.
    """
    arms = checked_arms(arms)
    theta = checks.array("theta", theta, (arms.shape[1],), dtype=arms.dtype)
    if is_concrete(arms, theta):
        # The check runs on the host, so that nothing is compiled for arguments that are refused.
        features, truth = np.asarray(arms), np.asarray(theta)
        _require_unique((features[np.argmax(features @ truth)] - features) @ truth)
    result = _leads(arms, theta)
    if not is_concrete(result.gaps):
        _require_unique(result.gaps)
    return result


@partial(jax.jit, inline=True)
def _leads(arms: Array, theta: Array) -> Leads:
    best = jnp.argmax(jnp.matmul(arms, theta, precision="highest"))
    directions = arms[best][None] - arms
    return Leads(best, directions, jnp.matmul(directions, theta, precision="highest"))


@partial(jax.jit, inline=True)
def inverse_squares(gaps: Array) -> Array:
    """Computes 1 / gap^2 of each arm (K,), 0 for the best."""
    return jnp.where(gaps > 0, 1 / jnp.where(gaps > 0, gaps, 1) ** 2, 0)


def _require_unique(behind: Any) -> None:
    require((behind <= 0).sum() == 1, "theta", "have a unique best arm", behind)
