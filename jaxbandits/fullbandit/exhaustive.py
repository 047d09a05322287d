"""Exhaustive: stops when no super-arm can beat the estimated best one within the confidence ellipsoid, all tried."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.base import Algorithm, Array
from jaxbandits.checks import require
from jaxbandits.fullbandit.confidence import ellipsoid_radius
from jaxbandits.fullbandit.design import MAX_SUPERARMS, Design, all_superarms
from jaxbandits.fullbandit.state import Estimate, Gram, Look, check_run, top_set, track_and_test
from jaxbandits.fullbandit.stride import largest_change
from jaxbandits.numerics.linalg import squared_norms

CHUNK = 4096  # super-arms worked on at a time, in every lane


def exhaustive(
    design: Design,
    k: int,
    *,
    delta: Array | float,
    epsilon: Array | float,
    sigma: Array | float | None = None,
    superarms: np.ndarray | None = None,
    first_test: Array | int | None = None,
    resolution: Array | float | None = 1e-3,
    stride_z: Array | float = 8.0,
    stride_variance: Array | float | None = None,
    gram: Gram = "counts",
) -> Algorithm:
    """Tracks a design until no other super-arm can lead the estimated best one by epsilon, trying them all.

    Args:
        design: as in `icb`.
        k: as in `icb`.
        delta: as in `icb`.
        epsilon: as in `icb`.
        sigma: as in `icb`.
        superarms: 0/1 (K, n), concrete: the class of super-arms, if not all sets of k arms. Rows of k ones, no two
            equal, at least two. The union bound stays that over all sets of k arms.
        first_test: as in `icb`.
        resolution: as in `icb`.
        stride_z: as in `icb`.
        stride_variance: as in `icb`.
        gram: as in `icb`.

    Returns:
        Algorithm with actions `Block` and answers bool (n,), the k arms.

    Raises:
        ValueError: an argument lies outside the range above, the design is too ill-conditioned for its dtype, or
            there are more than 5e6 super-arms.

    **Guarantee**: P(loss of the answer > epsilon) <= delta, up to the constants that `ellipsoid_radius` names.
    **Cost**: O(K n^2) a test with K super-arms, K = C(n, k) by default, and 4096 n numbers of memory a lane; K n bytes
    for the table.

    **float32**: as `icb`.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama, Polynomial-time algorithms for multiple-arm identification with
    full-bandit feedback, Algorithm 5 and equation (5).
    """
    check_run(design, k, delta=delta, epsilon=epsilon, sigma=sigma)
    n = design.support.shape[1]
    table = superarm_table(n, k, superarms=superarms)
    reach = largest_change(design.spectral, min(k, n - k))

    def look(estimate: Estimate, t: Array) -> tuple[Look, Array]:
        seen = _rule(
            estimate.inverse,
            estimate.theta,
            t,
            k=k,
            delta=delta,
            epsilon=epsilon,
            sigma=sigma,
            table=table,
            is_whole=superarms is None,
        )
        return seen, seen.radius * reach / jnp.sqrt(t)

    return track_and_test(
        design,
        k,
        look,
        reach=reach,
        first_test=first_test,
        resolution=resolution,
        stride_z=stride_z,
        stride_variance=stride_variance,
        gram=gram,
    )


def exhaustive_rule(
    inverse: Array,
    theta: Array,
    t: Array | int,
    *,
    k: int,
    delta: Array | float,
    epsilon: Array | float,
    sigma: Array | float | None = None,
    superarms: np.ndarray | None = None,
) -> Look:
    """The stopping rule of `exhaustive`, whose other arguments it takes.

    Args:
        inverse: float (n, n), A_t^-1.
        theta: float (n,), the estimate.
        t: () >= 1, pulls.
        k: as in `exhaustive`.
        delta: as in `exhaustive`.
        epsilon: as in `exhaustive`.
        sigma: as in `exhaustive`.
        superarms: as in `exhaustive`.

    Returns:
        Look; the margin is epsilon - V, and the rule holds where V < epsilon. V, equation (5) less the value of the
        best set M^, is the maximum over all M but M^ of theta(M) - theta(M^) + C_t |chi_M - chi_M^|, norms in A_t^-1.
    """
    table = superarm_table(theta.size, k, superarms=superarms)
    return _rule(
        inverse,
        theta,
        t,
        k=k,
        delta=delta,
        epsilon=epsilon,
        sigma=sigma,
        table=table,
        is_whole=superarms is None,
    )


def superarm_table(n: int, k: int, *, superarms: np.ndarray | None = None) -> np.ndarray:
    """A class of super-arms, cut into chunks that are worked on one after another.

    Args:
        n: number of arms.
        k: size of a super-arm.
        superarms: 0/1 (K, n), the class; all sets of k arms, in lexicographic order, by default.

    Returns:
        bool (C, K', n), K' <= 4096. The last row fills up the last chunk.

    Raises:
        ValueError: K > 5e6, or a row is not a set of k arms, or rows are equal, or K < 2.
    """
    if superarms is None:
        rows = all_superarms(n, k)
    else:
        rows = np.asarray(superarms)
        require(rows.ndim == 2 and rows.shape[1] == n, "superarms", f"have shape (K, {n})", rows.shape)
        require(2 <= len(rows) <= MAX_SUPERARMS, "superarms", f"number 2..{MAX_SUPERARMS}", len(rows))
        require(np.all((rows == 0) | (rows == 1)), "superarms", "be 0 or 1", rows)
        rows = rows.astype(bool)
        require(np.all(rows.sum(1) == k), "superarms", f"have k = {k} arms each", rows.sum(1))
        require(len(np.unique(rows, axis=0)) == len(rows), "superarms", "have no two equal rows", rows)
    size = min(CHUNK, len(rows))
    chunks = -(-len(rows) // size)
    filler = np.repeat(rows[-1:], chunks * size - len(rows), axis=0)
    return np.concatenate([rows, filler]).reshape(chunks, size, n)


def largest_squared_norm(matrix: Array, table: np.ndarray) -> Array:
    """The largest chi_M' W chi_M over the super-arms M of a `superarm_table`, float ()."""
    return _largest(table, lambda rows: squared_norms(rows, matrix), matrix.dtype)


def _rule(
    inverse: Array,
    theta: Array,
    t: Array | int,
    *,
    k: int,
    delta: Array | float,
    epsilon: Array | float,
    sigma: Array | float | None,
    table: np.ndarray,
    is_whole: bool,
) -> Look:
    dtype = theta.dtype
    radius = ellipsoid_radius(jnp.asarray(t, dtype), theta.size, k, delta, sigma)
    answer = top_set(theta, k) if is_whole else _best_row(theta, table)
    best = answer.astype(dtype)

    def lead(rows: Array) -> Array:
        # The norm is that of the difference itself: from the Gram form short differences would lose their digits.
        change = rows - best
        value = jnp.matmul(change, theta, precision="highest") + radius * jnp.sqrt(squared_norms(change, inverse))
        return jnp.where(jnp.any(change != 0, axis=1), value, -jnp.inf)

    # ERRATUM: the norm is printed with the unknown best super-arm M* in place of M^.
    margin = jnp.asarray(epsilon, dtype) - _largest(table, lead, dtype)
    return Look(answer, margin > 0, margin, radius)


def _largest(table: np.ndarray, score: Callable[[Array], Array], dtype) -> Array:
    return lax.map(lambda rows: score(rows.astype(dtype)).max(), jnp.asarray(table)).max()


def _best_row(theta: Array, table: np.ndarray) -> Array:
    values = lax.map(lambda rows: jnp.matmul(rows.astype(theta.dtype), theta, precision="highest"), jnp.asarray(table))
    return jnp.asarray(table.reshape(-1, theta.size))[jnp.argmax(values)]
