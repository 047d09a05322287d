"""Small dense linear algebra of one lane, written so that `vmap` turns it into elementwise work over lanes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require

UNROLL = 32  # longest axis that `dot` spells out
MAX_LOSS = 1e-3  # rounding of the minuend of a rank-one update, relative to the smallest difference


def aligned(x: Array, ndim: int) -> Array:
    """Adds axes of size 1 in front until an array has `ndim`. JAX can be configured not to do so by itself."""
    return x if jnp.ndim(x) >= ndim else jnp.expand_dims(x, tuple(range(ndim - jnp.ndim(x))))


@partial(jax.jit, inline=True)
def dot(a: Array, b: Array) -> Array:
    """Computes inner products over the last axis, in full precision, broadcasting over the others.

    Up to 32 terms are spelled out. Under `vmap` a short contraction would become thousands of tiny matrix products.
    Spelled out, it is elementwise work that XLA fuses with its surroundings. Measured inside LinGapE on two cores:
    1.4e7 rounds per second against 1.0e7 (K = 6, d = 5), 2.5e6 against 1.3e6 (K = 30, d = 8).

    Args:
        a: float (..., d).
        b: float (..., d), broadcast against `a`.

    Returns:
        float (...).
    """
    if min(a.ndim, b.ndim) > 1:
        a, b = aligned(a, b.ndim), aligned(b, a.ndim)
    d = a.shape[-1]
    if d > UNROLL:
        return jnp.einsum("...d,...d->...", *jnp.broadcast_arrays(a, b), precision="highest")
    return sum((a[..., c] * b[..., c] for c in range(1, d)), start=a[..., 0] * b[..., 0])


@partial(jax.jit, inline=True)
def gram(arms: Array, weights: Array) -> Array:
    """Computes A(w) = sum_k w_k x_k x_k'.

    Args:
        arms: float (K, d).
        weights: (K,), of the arms' dtype.

    Returns:
        float (d, d).
    """
    return jnp.einsum("ki,k,kj->ij", arms, weights, arms, precision="highest")


def spd_inverse_logdet(matrix: Array) -> tuple[Array, Array]:
    """Computes inverse and log-determinant of a symmetric positive definite matrix, by sweeping one pivot at a time.

    The matrix is scaled to a unit diagonal first, which keeps float32 usable when the pull counts of the arms differ by
    factors of 10^3. A matrix that is not positive definite gives NaN.

    A sweep is a rank-one update, so under `vmap` the lanes advance side by side. LAPACK would process them one by one.
    Worse, jaxlib's batched LAPACK calls block inside the thread pool that must do their work. Two such calls at a time
    can deadlock on a machine with two cores.

    Args:
        matrix: float (d, d).

    Returns:
        float (d, d) and float (). Cost: O(d^3).

    Source: Goodnight (1979), A tutorial on the SWEEP operator.
    """
    return _swept(matrix)


@partial(jax.jit, inline=True)
def _swept(matrix: Array) -> tuple[Array, Array]:
    d = matrix.shape[0]
    diagonal = jnp.diagonal(matrix)
    scale = 1 / jnp.sqrt(diagonal)

    def sweep(k: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        swept, logdet = carry
        is_pivot = jnp.arange(d) == k
        pivot = jnp.where(swept[k, k] > 0, swept[k, k], jnp.nan)
        row = jnp.where(is_pivot, -1, swept[k])
        others = jnp.where(is_pivot[:, None] | is_pivot[None], 0, swept)
        return others - row[:, None] * (row / pivot)[None], logdet + jnp.log(pivot)

    start = scale[:, None] * matrix * scale[None], jnp.sum(jnp.log(diagonal))
    swept, logdet = lax.fori_loop(0, d, sweep, start)
    return -scale[:, None] * swept * scale[None], logdet


def spd_inverse(matrix: Array) -> Array:
    """Computes the inverse of a symmetric positive definite matrix; see `spd_inverse_logdet`."""
    return spd_inverse_logdet(matrix)[0]


@partial(jax.jit, inline=True)
def spd_solved(matrix: Array, right: Array) -> Array:
    """Solves linear systems with a symmetric positive definite matrix by Gauss-Jordan elimination.

    A batch of small systems takes one fused loop instead of a library call per lane. Where eigenvalues differ by many
    orders, each part of a solution keeps the digits that a product with the computed inverse loses.

    Args:
        matrix: float (n, n).
        right: float (n, k).

    Returns:
        float (n, k); not finite for a singular matrix.

    **Cost**: O(n^2 (n + k)).
    """
    n = right.shape[0]
    rows = jnp.arange(n)

    def eliminate(column: Array, system: Array) -> Array:
        is_pivot = rows == column
        entries = jnp.where(is_pivot, 0, system[:, column])
        row = system[column] / system[column, column]
        return jnp.where(is_pivot[:, None], row[None], system - entries[:, None] * row[None])

    return lax.fori_loop(0, n, eliminate, jnp.concatenate([matrix, right], axis=1))[:, n:]


def squared_norms(directions: Array, matrix: Array) -> Array:
    """Computes y' M y for every row y, clipped at zero.

    Args:
        directions: float (M, d).
        matrix: float (d, d), symmetric.

    Returns:
        float (M,).
    """
    return jnp.maximum(dot(jnp.matmul(directions, matrix, precision="highest"), directions), 0)


def check_rank_one(name: str, floor: Array | float, largest: Array | float, dtype: jnp.dtype, of: str) -> None:
    """Checks that rank-one updates of (floor I + sum_i x_i x_i')^-1 keep their digits.

    The first update along x leaves a share floor / |x|^2 of the minuend, whose rounding remains. If it is 1e-3 of the
    difference, squared widths of LinGapE in float32 are off until they are rebuilt: by .01 % with orthogonal arms, and
    by up to 6 % with random ones. If it is 1e-1, they are off by more than their size.

    Args:
        name: name of the argument that is the floor, for the message.
        floor: () > 0, the ridge, or the noise variance of a Gaussian process.
        largest: (), the largest |x|^2, or prior variance.
        dtype: dtype of the run.
        of: description of `largest`, for the message.

    Raises:
        ValueError: the floor is too small.
    """
    eps = float(jnp.finfo(dtype).eps)
    share = f"{eps / MAX_LOSS:.1e} times {of} in {jnp.dtype(dtype).name}"
    advice = "scale the problem, or give it in float64" if eps > 1e-10 else "scale the problem"
    if is_concrete(floor, largest):
        least = eps / MAX_LOSS * float(np.asarray(largest))
        require(float(np.asarray(floor)) >= least, name, f"be at least {least:.2g}, {share} ({advice})", floor)
    else:
        floor, largest = (jnp.asarray(x, dtype) for x in (floor, largest))
        require(floor >= eps / MAX_LOSS * largest, name, f"be at least {share} ({advice})", floor)
