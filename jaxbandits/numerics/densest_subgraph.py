"""Quadratic forms over sets of k elements: the densest k-subgraph and its greedy peeling."""

from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.numerics.linalg import dot, spd_inverse

Reduction = Literal["paper", "exact"]
# Squarings of a matrix for its largest eigenvalue: the 2^30-th root of n differs from 1 by log(n) 1e-9.
SQUARINGS = 30


class Peeled(NamedTuple):
    """The remaining set, and the order of removal."""

    mask: Array  # bool (n,)
    value: Array  # float ()          mask' W mask
    removal_order: Array  # int (n-k,)


def quadratic_maximization(W: Array, k: int, *, reduction: Reduction = "paper") -> Peeled:
    """Finds a set of k elements with a large chi' W chi, by peeling a weighted graph down to k vertices.

    The vertex with the smallest remaining degree, the lowest index on ties, is removed n - k times.

    Args:
        W: float (n, n), symmetric.
        k: size of the set, a Python int in 2..n.
        reduction: weight of the edge (i, j). "paper" is w_ij + w_ii + w_jj, in which the diagonal counts 2 (k-1) times
            too much against the other entries. "exact" is 2 w_ij + (w_ii + w_jj)/(k-1), for which the weight inside a
            set of k vertices is chi' W chi.

    Returns:
        Peeled of W's dtype. Several sets may have nearly the same degrees, so in float32 the set can be another one.

    Raises:
        ValueError: `W` is not square or not finite, `k` is out of range, or `reduction` is unknown.

    **Guarantee**: for a positive definite W, "paper" and k >= 3 the value is at least `theorem1_ratio(W, k)` times the
    optimum. For k = 2, for "exact" and for a W with negative edge weights there is none. **Cost**: O(n^2).

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama, Polynomial-time algorithms for multiple-arm identification with
    full-bandit feedback, Algorithm 1; the peeling by Asahiro, Iwama, Tamaki and Tokuyama (2000).
    """
    W, k = _checked(W, k)
    checks.one_of("reduction", reduction, Reduction)
    return _peel(W, k=k, reduction=reduction)


def edge_weights(W: Array, k: int, *, reduction: Reduction) -> Array:
    """Builds the graph of `quadratic_maximization`.

    Args:
        W: float (n, n), symmetric.
        k: size of the sets, a Python int, at least 2.
        reduction: "paper" or "exact".

    Returns:
        float (n, n), symmetric, with a zero diagonal.
    """
    diagonal = jnp.diagonal(W)
    ends = diagonal[:, None] + diagonal[None]
    weights = W + ends if reduction == "paper" else 2 * W + ends / (k - 1)
    return jnp.where(jnp.eye(diagonal.size, dtype=bool), 0, weights)


@partial(jax.jit, static_argnames=("k", "reduction"), inline=True)
def _peel(W: Array, *, k: int, reduction: Reduction) -> Peeled:
    weights = edge_weights(W, k, reduction=reduction)
    n = weights.shape[0]

    def remove(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        alive, degrees = carry
        removed = jnp.argmin(jnp.where(alive, degrees, jnp.inf))
        return (alive & (jnp.arange(n) != removed), degrees - weights[removed]), removed

    (mask, _), order = lax.scan(remove, (jnp.ones(n, bool), weights.sum(0)), length=n - k)
    chi = mask.astype(W.dtype)
    return Peeled(mask, dot(chi, jnp.matmul(W, chi, precision="highest")), order)


def alpha_dks(n: int, k: int) -> float:
    """Returns the share of the largest weight inside k of n vertices that peeling is guaranteed to reach, weights >= 0.

    Args:
        n: number of vertices.
        k: size of the set, in 2..n.

    Returns:
        A number in (0, 1]. Terms that vanish as n grows are dropped, as in the source.

    Raises:
        ValueError: `n` or `k` is out of range.

    Source: Asahiro, Iwama, Tamaki and Tokuyama (2000), Greedily finding a dense subgraph.
    """
    n = checks.whole("n", n, least=2)
    k = checks.whole("k", k, least=2, most=n)
    return (1 / 2 + n / (2 * k)) ** -2 if 3 * k >= n else 1 / (2 * (n / k - 1))


def theorem1_ratio(W: Array, k: int) -> Array:
    """Computes the share of the largest chi' W chi that `quadratic_maximization` with "paper" is guaranteed to reach.

    The share of the largest norm sqrt(chi' W chi) is its square root.

    Args:
        W: float (n, n), symmetric and positive definite; only the ratio of its extreme eigenvalues matters.
        k: size of the sets, a Python int in 2..n.

    Returns:
        float () in (0, 1): lambda_min / lambda_max / (k-1) times `alpha_dks`. Up to rounding it is never too large.

    Raises:
        ValueError: `W` is not square or `k` is out of range.

    Cost: O(n^3), some 60 products of matrices.

    Source: Kuroki et al., Theorem 1.
    """
    # ERRATUM: Lemma 5, which it rests on, claims that the weight of an edge set bounds chi' W chi from above. It does
    # for k >= 3; for k = 2 it fails wherever w_ij > 0.
    W, k = _checked(W, k)
    condition = largest_eigenvalue(W) * largest_eigenvalue(spd_inverse(W))
    return alpha_dks(W.shape[0], k) / (k - 1) / condition


def largest_eigenvalue(matrix: Array) -> Array:
    """Computes an upper bound on the largest eigenvalue, which exceeds it by a factor of at most 1 + log(n) 1e-9.

    Rounding comes on top. The bound is the p-th root of trace M^p at p = 2^30, by squaring. It makes no LAPACK call, so
    it may run in any lane.

    Args:
        matrix: float (n, n), symmetric and positive semidefinite, not 0.

    Returns:
        float (). Cost: O(n^3), 31 products of matrices.
    """
    return _root_of_trace(matrix)


@partial(jax.jit, inline=True)
def _root_of_trace(matrix: Array) -> Array:
    def square(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        power, log_root = carry
        trace = jnp.trace(power)
        power = power / trace
        return jnp.matmul(power, power, precision="highest"), log_root + jnp.log(trace) * 0.5 ** i.astype(trace.dtype)

    return jnp.exp(lax.fori_loop(0, SQUARINGS + 1, square, (matrix, jnp.zeros((), matrix.dtype)))[1])


def _checked(W: Array, k: int) -> tuple[Array, int]:
    W = checks.array("W", W, ("n", "n"))
    return W, checks.whole("k", k, least=2, most=W.shape[0])
