"""Parts that the rules of a fixed budget share: designs for the remaining arms, rounding, random pulls, least squares.

A segment, the pulls under one design, is one round. The designs are solved in `plan`. For few concrete arms they are
looked up in a table over all sets of arms, which is computed once.
"""

import functools
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array, Key
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.linear._shared.allocations import pair_directions
from jaxbandits.linear._shared.least_squares import estimate_of
from jaxbandits.numerics import ties
from jaxbandits.numerics.binomial import UNIFORMS, binomial_of
from jaxbandits.numerics.design import SUPPORT, design
from jaxbandits.numerics.linalg import dot, gram, spd_inverse, squared_norms

# Largest K for which the designs of all 2^K sets of concrete arms are solved at once.
TABLE_ARMS = 12
# Number of sets solved side by side; all 2^11 at once exceed the cache, and take 2.5 times as long.
BATCH = 128
TRIES = 4  # number of binomial draws, each of four proposals; the first accepted one counts
SPAN_TOLERANCE = 1e-8  # smallest length of a vector that adds a dimension, relative to the longest


class Solved(NamedTuple):
    """A design for a set of arms."""

    allocation: Array  # float (K,)   shares of the pulls
    value: Array  # float ()          value that it attains


Solver = Callable[[Array, Array, int], Solved]  # (arms, remaining bool (K,), steps) -> design of the remaining arms
Designs = Callable[[Array], Solved]  # remaining bool (K,) -> design of the remaining arms


def checked_budget(arms: Any, horizon: Any, design_steps: Any) -> tuple[Array, int]:
    """Checks the arguments, and returns arms that span R^d and the steps; raises `ValueError` unless all are valid."""
    features = checked_arms(arms, full_rank=True)
    checks.integer("horizon", horizon, least=1, most=2**31 - 1)
    return features, checks.whole("design_steps", design_steps, least=1)


# Designs


def apart_design(arms: Array, remaining: Array, steps: int) -> Solved:
    """Computes the design over all arms for the differences of the remaining ones."""
    first, second = np.triu_indices(arms.shape[0], 1)
    weights = (remaining[first] & remaining[second]).astype(arms.dtype)
    solved = design(arms, pair_directions(arms), weights=weights, steps=steps)
    return Solved(solved.allocation, solved.value)


def spanned_design(arms: Array, remaining: Array, steps: int) -> Solved:
    """Computes the G-optimal design of the remaining arms alone, within the subspace that they span.

    Multiplicative updates increase the determinant; its optimum is also the optimum of the largest norm.

    Source: Kiefer and Wolfowitz (1960); Titterington (1976), Algorithms for computing D-optimal designs.
    """
    points = jnp.where(remaining[:, None], arms, 0)
    complement = beyond(points)

    def norms(shares: Array) -> Array:
        return squared_norms(points, spd_inverse(gram(points, shares) + complement))

    def step(_: Array, shares: Array) -> Array:
        return _normalised(shares * norms(shares))

    shares = lax.fori_loop(0, steps, step, _normalised(remaining.astype(arms.dtype)))
    shares = _normalised(jnp.where(shares < SUPPORT, 0, shares))
    return Solved(shares, norms(shares).max())


def designs_of(arms: Array, solver: Solver, steps: int) -> Designs:
    """Returns a function from a set of arms to its design: a lookup if the arms are few and concrete, else a solver."""
    K = arms.shape[0]
    if K > TABLE_ARMS or not is_concrete(arms):
        return lambda remaining: solver(arms, remaining, steps)
    table = at_once(_solve_all_sets, arms, solver, steps)

    def look_up(remaining: Array) -> Solved:
        number = jnp.sum(jnp.where(remaining, 2 ** jnp.arange(K, dtype=jnp.int32), 0), dtype=jnp.int32)
        return jax.tree.map(lambda column: jnp.asarray(column)[number], table)

    return look_up


def _solve_all_sets(arms: Array, solver: Solver, steps: int) -> Solved:
    """Computes the designs of all sets of arms (2^K, ..). Set number n holds the arms of its binary digits."""
    K = arms.shape[0]
    sets = (np.arange(2**K)[:, None] >> np.arange(K)) % 2 == 1
    # The empty set does not occur, but its entry must be finite.
    sets[0] = True
    return lax.map(lambda remaining: solver(arms, remaining, steps), jnp.asarray(sets), batch_size=BATCH)


def g_optimal(arms: Array, steps: int) -> tuple[Array, Array]:
    """Computes the shares (K,) of the G-optimal design of all arms, and their images (K, d) from `importance`."""
    shares = design(arms, arms, steps=steps).allocation
    return shares, importance(arms, shares)


def _solve_all_arms(arms: Array, solver: Solver, steps: int) -> Solved:
    return solver(arms, jnp.ones(arms.shape[0], bool), steps)


def epochs_of(arms: Array, horizon: Array | int, steps: int) -> tuple[Array, Array]:
    """Computes E = max(1, ceil(log2 rho)), rho the value of `apart_design` for all arms, and floor(T / E), both int ().

    Raises:
        ValueError: floor(T / E) is 0.
    """
    value = at_once(_solve_all_arms, arms, apart_design, steps).value
    xp = jnp if isinstance(value, jax.Array) else np
    number = xp.maximum(xp.ceil(xp.log2(value)), 1).astype(int)
    length = (horizon if is_concrete(horizon) else jnp.asarray(horizon, int)) // number
    require(length >= 1, "horizon", "be at least the number of epochs, ceil(log2 of the design's value)", horizon)
    return jnp.asarray(number, int), jnp.asarray(length, int)


def at_once(function: Callable[..., Any], arms: Array, *settings: Hashable) -> Any:
    """Returns function(arms, *settings), for concrete arms computed only once, as NumPy arrays, even in a trace."""
    if not is_concrete(arms):
        return function(arms, *settings)
    values = np.asarray(arms)
    return _computed(function, values.tobytes(), values.shape, str(values.dtype), settings)


@functools.lru_cache(maxsize=32)
def _computed(function: Callable[..., Any], data: bytes, shape: tuple, dtype: str, settings: tuple) -> Any:
    # A compiled program runs when it is called; `jax.jit` alone would become part of an outer program.
    arms = np.frombuffer(data, dtype).reshape(shape)
    program = jax.jit(lambda arms: function(arms, *settings)).lower(arms).compile()
    return jax.tree.map(np.asarray, program(arms))


# Pulls


def rounded(shares: Array, n: Array, lots: Array, *, all_arms: bool = False) -> Array:
    """Rounds shares efficiently: counts of sum n whose smallest count per share is as large as possible.

    Args:
        shares: float (K,), at least 0, of sum 1.
        n: int (), at least 1. If there are fewer pulls than shares, the largest shares get one each.
        lots: int32 (K,), see `numerics.ties`. Of equal shares, the one with the largest lot gets an extra pull. By
            index, a best arm that stands first would often get it.
        all_arms: if True, an arm without a share gets one pull as well, provided that n >= K.

    Returns:
        int (K,). Cost: O(K^2): the first guess is at most K / 2 pulls off.

    Source: Pukelsheim and Rieder (1992), Efficient rounding of approximate designs.
    """
    K, dtype = shares.shape[0], shares.dtype
    support = shares > 0
    extra = jnp.where(~support & (n >= K) & all_arms, 1, 0)
    n = n - extra.sum()
    safe = jnp.where(support, shares, 1)
    level = n.astype(dtype) - support.sum().astype(dtype) / 2
    # A solver returns equal shares with rounding differences, which must not decide, just as the index must not.
    tolerance = float(jnp.finfo(dtype).eps) ** (2 / 3)
    counts = jnp.where(support, jnp.maximum(jnp.ceil(level * safe * (1 - tolerance)), 0), 0).astype(int)

    def largest(values: Array, among: Array, lots: Array) -> Array:
        values = jnp.where(among, values, -jnp.inf)
        top = values.max()
        return jnp.argmax(jnp.where(among & (values >= top - tolerance * jnp.abs(top)), lots, jnp.iinfo(jnp.int32).min))

    def correct(_: Array, counts: Array) -> Array:
        missing = n - counts.sum()
        # Arms without a pull come first, and arms with one lose it last, by their shares.
        urgency = jnp.where(counts > 0, safe / jnp.maximum(counts, 1).astype(dtype), 2 + safe)
        first = largest(urgency, support, lots)
        excess = jnp.where(counts > 1, (counts - 1).astype(dtype) / safe, -safe)
        last = largest(excess, support & (counts > 0), ~lots)
        is_corrected = jnp.arange(K) == jnp.where(missing > 0, first, last)
        return counts + jnp.where(is_corrected, jnp.sign(missing), 0)

    return lax.fori_loop(0, K, correct, counts) + extra


def multinomial(key: Key, n: Array, shares: Array) -> tuple[Array, Array]:
    """Draws how often each arm is pulled in n independent pulls of these shares.

    Args:
        key: key of the draw.
        n: int (), number of pulls.
        shares: float (K,), at least 0, of sum 1.

    Returns:
        int (K,) of sum n, and bool (), True if the draw succeeded. It fails with probability below 1e-8 per arm; draw
        again then. The law is exact up to that.
    """
    K, dtype = shares.shape[0], shares.dtype
    uniforms = jax.random.uniform(key, (K - 1, UNIFORMS, TRIES), dtype)
    # Each arm's share of the pulls that remain for it and the arms behind it; the last with a share gets exactly 1.
    behind = jnp.cumsum(shares[::-1])[::-1]
    odds = jnp.where(behind > 0, jnp.clip(shares / jnp.where(behind > 0, behind, 1), 0, 1), 0)

    def draw(carry: tuple[Array, Array], arm: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
        remaining, is_drawn = carry
        uniform, p = arm
        drawn, accepted = binomial_of(uniform, jnp.broadcast_to(remaining, TRIES), jnp.broadcast_to(p, TRIES))
        is_first = accepted & (jnp.cumsum(accepted, dtype=jnp.int32) == 1)
        count = jnp.sum(jnp.where(is_first, drawn, 0)).astype(remaining.dtype)
        return (remaining - count, is_drawn & accepted.any()), count

    start = n.astype(int), jnp.ones((), bool)
    (remaining, is_drawn), counts = lax.scan(draw, start, (uniforms, odds[:-1]))
    return jnp.append(counts, remaining), is_drawn


# Estimates


def least_squares_in_span(arms: Array, counts: Array, sums: Array) -> Array:
    """Computes the least-squares solution of smallest norm, float (d,). Cost: O(K d^2 + d^3)."""
    counted = counts.astype(arms.dtype)
    pulled = jnp.where(counts[:, None] > 0, arms, 0)
    A = gram(arms, counted) + jnp.maximum(counted.max(), 1) * beyond(pulled)
    return estimate_of(spd_inverse(A), arms, sums)


def beyond(points: Array) -> Array:
    """Computes the projection on the complement of the points' span, float (d, d), times their largest squared norm.

    Added to a Gram matrix of the points, it makes the matrix regular and changes nothing within the span. No
    singular value decomposition is needed.
    """
    d, dtype = points.shape[1], points.dtype
    scale = dot(points, points).max()
    least = max(SPAN_TOLERANCE, d * float(jnp.finfo(dtype).eps)) ** 2 * scale

    def turn(_: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        residuals, projection = carry
        squares = dot(residuals, residuals)
        longest = jnp.sum(
            jnp.where((jnp.arange(squares.shape[0]) == jnp.argmax(squares))[:, None], residuals, 0), axis=0
        )
        square = squares.max()
        basis = jnp.where(square > least, longest / jnp.sqrt(jnp.where(square > least, square, 1)), 0)
        return residuals - dot(residuals, basis)[:, None] * basis[None], projection - basis[:, None] * basis[None]

    return scale * lax.fori_loop(0, d, turn, (points, jnp.eye(d, dtype=dtype)))[1]


def importance(arms: Array, shares: Array) -> Array:
    """Computes A(w)^-1 x_k of each arm, float (K, d); times the reward of an arm drawn from w it estimates theta."""
    return jnp.matmul(arms, spd_inverse(gram(arms, shares)), precision="highest")


def ranks(values: Array, among: Array, lots: Array) -> Array:
    """Counts how many of a set are better than each, int (K,); of two equal ones the smaller lot is worse."""
    # XLA may compute a value twice, in two kernels that round differently, and then an arm is better than itself. With
    # the barrier each is computed once; rounds by scalars drop it, so an arm is not compared with itself.
    values = lax.optimization_barrier(values)
    better = (values[None] > values[:, None]) | ((values[None] == values[:, None]) & (lots[None] > lots[:, None]))
    better &= ~jnp.eye(values.shape[0], dtype=bool)
    return jnp.sum(better & among[None], axis=1)


def best_of(values: Array, words: Array, pulls: Array) -> Array:
    """Returns the arm of the largest value, int (); of several, the one with the largest lot after these pulls.

    Estimates tie where rewards are discrete, `noise="sign"`, and arms are alike, as unit vectors are. If the first
    won, the error would depend on the order of the arms.
    """
    return ties.argmax(lax.optimization_barrier(values), ties.lots(words, pulls)).astype(int)


def _normalised(weights: Array) -> Array:
    return weights / weights.sum()
