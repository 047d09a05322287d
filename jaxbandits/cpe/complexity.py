"""How hard an instance is: consistent radii, hardness, and the bounds on the pulls.

All of it is about the truth, and none of it is for an algorithm to see.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, known, require
from jaxbandits.cpe.candidates import candidates
from jaxbandits.cpe.oracles import solve
from jaxbandits.cpe.problem import Enumerated, Problem, Table, arm_count, entry_values, float_dtype, row_values

HALVINGS = 60  # of the interval that holds a radius
NEWTON_STEPS = 50
MAX_WIDTH_ROWS = 60  # decisions of a class whose width is found by trying all triples

# Radii and gaps


def consistent_radius(problem: Problem, theta: Array) -> Array:
    """How far all of theta can be off, in the largest coordinate, before the level of an arm changes: Lambda_i.

    Lambda_i = inf {max_j |theta'_j - theta_j| : theta' in [0, 1]^m, phi_i(theta') != phi_i(theta)}.

    Args:
        problem: any; an `Oracle` that is bi-monotone.
        theta: float (m,), in [0, 1].

    Returns:
        float (m,), inf for an arm whose level never changes, 0 (up to rounding) for one that is tied.

    Raises:
        ValueError: `theta` is not a vector in [0, 1], or the oracle is not bi-monotone.

    Cost: m candidates tests, 60 times.

    Source: Huang, Ok, Li and Chen (2018), Definition 2.
    """
    m, dtype = arm_count(problem), float_dtype(problem)
    promised = getattr(problem, "bi_monotone", True)
    require(promised, "problem", "be bi-monotone (for a small class use enumerated)", problem)
    theta = _theta(theta, m).astype(dtype)
    levels = solve(problem, theta)

    def varies(half: Array) -> Array:
        """Whether level i changes in the box of half-width half[i], bool (m,)."""
        boxes = jnp.clip(theta - half[:, None], 0, 1), jnp.clip(theta + half[:, None], 0, 1)
        return jnp.diagonal(jax.vmap(lambda lo, hi: candidates(problem, lo, hi, levels))(*boxes))

    def halve(_: int, span: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = span
        middle = (low + high) / 2
        out = varies(middle)
        return jnp.where(out, low, middle), jnp.where(out, middle, high)

    one = jnp.ones(m, dtype)
    _, radius = lax.fori_loop(0, HALVINGS, halve, (jnp.zeros_like(one), one))
    return jnp.where(varies(one), radius, jnp.inf)


def radius_top_k(theta: Array, k: int) -> Array:
    """The consistent radii of top-k, in closed form: half the distance from the other side of the border.

    Args:
        theta: float (m,).
        k: arms to find, a Python int in 1..m-1.

    Returns:
        float (m,).

    Raises:
        ValueError: `k` is out of range.

    Source: Huang, Ok, Li and Chen (2018), the radius of `consistent_radius`, worked out for top-k.
    """
    return _top_gaps(jnp.asarray(theta), k) / 2


def reward_gaps(problem: Table | Enumerated, theta: Array) -> Array:
    """By how much the best decision beats the best one with the other y_i: Delta_i.

    Args:
        problem: an `Enumerated` class, or a table of width 1 that takes exactly `quota` entries (concrete).
        theta: float (m,).

    Returns:
        float (m,), inf for an arm whose level never changes.

    Raises:
        ValueError: the problem is of another kind, or `theta` has the wrong shape.

    Source: Chen, Lin, King, Lyu and Chen (2014), equation (1).
    """
    require(isinstance(problem, (Table, Enumerated)), "problem", "be a Table or Enumerated", type(problem).__name__)
    theta = _theta(theta, arm_count(problem)).astype(float_dtype(problem))
    if isinstance(problem, Table):
        width = problem.coef.shape[1]
        require(width == 1, "problem", "have 0/1 decisions, a table of width 1", width)
        known_kind = is_concrete(problem.quota, problem.floor, problem.ceiling)
        exactly = known_kind and not np.isfinite(problem.floor) and not np.isfinite(problem.ceiling)
        require(exactly, "problem", "take exactly a known number of entries", problem)
        return _top_gaps(entry_values(problem, theta)[:, 0], int(problem.quota))
    values = row_values(problem, theta)
    best = problem.rows[jnp.argmax(values)]
    other = jnp.where(problem.rows != best, values[:, None], -jnp.inf)
    return values.max() - other.max(axis=0)


def _top_gaps(values: Array, k: int) -> Array:
    m = values.shape[0]
    require(1 <= k <= m - 1, "k", f"lie in 1..{m - 1}", k)
    ranked = jnp.sort(values, descending=True)
    return jnp.where(values >= ranked[k - 1], values - ranked[k], ranked[k - 1] - values)


def width(rows: Any) -> int:
    """The width of a class of 0/1 decisions: how many arms must be exchanged at once, at worst.

    It is the largest, over decisions S and S' and arms i of S that S' lacks, of the smallest exchange that takes i out
    of S, moves S towards S', and can be undone from S' as well. Matroids have width 2.

    Args:
        rows: (N, m), zeros and ones, N <= 60, such as those of an `Enumerated`; concrete.

    Returns:
        int.

    Raises:
        ValueError: there are more than 60 rows, or an entry is neither 0 nor 1.

    Cost: O(N^3 m), on the host.

    Source: Chen, Lin, King, Lyu and Chen (2014), section 3.
    """
    rows = np.asarray(rows)
    require(rows.ndim == 2, "rows", "have shape (N, m)", rows.shape)
    require(len(rows) <= MAX_WIDTH_ROWS, "rows", f"be at most {MAX_WIDTH_ROWS}", len(rows))
    require(np.isin(rows, (0, 1)), "rows", "hold zeros and ones only", rows)
    decisions = {tuple(row) for row in rows.tolist()}
    distance = np.abs(rows[:, None] - rows).sum(axis=2)
    widest = 0
    for s, start in enumerate(rows):
        for end in rows:
            # After the exchange S is `between`, and S' is what makes up the same sum.
            undone = start + end - rows
            valid = [t for t, rest in enumerate(undone.tolist()) if tuple(rest) in decisions]
            for i in np.flatnonzero(start > end):
                widest = max(widest, min(distance[s, t] for t in valid if rows[t, i] == 0))
    return int(widest)


# Hardness and bounds


def hardness(radii: Array) -> Array:
    """H = sum_i 1 / Lambda_i^2, the hardness for COCI.

    Args:
        radii: float (m,), positive, inf where a level never changes.

    Returns:
        float ().

    Source: Huang, Ok, Li and Chen (2018), Theorem 1.
    """
    # ERRATUM: the proof of Theorem 2 there prints sum 1 / Lambda_i. The square is missing.
    return jnp.sum(1 / jnp.asarray(radii) ** 2)


def uniform_hardness(radii: Array) -> Array:
    """H_U = m / min_i Lambda_i^2, the hardness for uniform sampling.

    Args:
        radii: as in `hardness`.

    Returns:
        float (), at least H.

    Source: Huang, Ok, Li and Chen (2018), Theorem 4.
    """
    radii = jnp.asarray(radii)
    return radii.shape[0] / jnp.min(radii) ** 2


def theorem1_bound(H: Array | float, m: int, tau: int, delta: Array | float) -> Array:
    """The pulls within which COCI stops with probability 1 - delta; with H_U, uniform sampling (Theorem 4).

    2 m + 12 H ln(24 H) + 4 H ln(4 / (tau delta)). An arm whose level never changes may cost tau - 1 pulls beyond it.

    Args:
        H: float (), `hardness` or `uniform_hardness`, at least 1.
        m: number of arms.
        tau: 1 for means, 2 for variances.
        delta: float () in (0, 1), error probability.

    Returns:
        float (). Runs stay below 0.18 of it.

    Raises:
        ValueError: an argument is out of range.

    Source: Huang, Ok, Li and Chen (2018), Theorems 1 and 4.
    """
    # ERRATUM: the proof of Theorem 1 takes Lambda_i <= 1 for the first tau pulls. An infinite one adds nothing to H.
    H, delta = _check_bound(H, tau, delta)
    return 2 * m + 12 * H * jnp.log(24 * H) + 4 * H * jnp.log(4 / (tau * delta))


def arm_bound(radii: Array, pulls: Array | float, tau: int, delta: Array | float) -> Array:
    """The pulls of each arm that COCI does not exceed in a run of `pulls`, with probability 1 - delta.

    T_i <= 1 + (2 / Lambda_i^2) ln(4 T^3 / (tau delta)).

    Args:
        radii: float (m,), as in `hardness`.
        pulls: (), pulls of the run, T.
        tau: 1 for means, 2 for variances.
        delta: float () in (0, 1), error probability.

    Returns:
        float (m,). Runs stay below 0.42 of it.

    Raises:
        ValueError: `tau` or `delta` is out of range.

    Source: Huang, Ok, Li and Chen (2018), equation (6).
    """
    radii = jnp.asarray(radii)
    _, delta = _check_bound(1.0, tau, delta)
    return 1 + 2 / radii**2 * _log_term(jnp.asarray(pulls).astype(radii.dtype), tau, delta)


def implicit_time(H: Array | float, m: int, tau: int, delta: Array | float, c: Array | float) -> Array:
    """The largest root of T = m + c H ln(4 T^3 / (tau delta)).

    Args:
        H: float (), `hardness` or `uniform_hardness`, at least 1.
        m: number of arms.
        tau: 1 for means, 2 for variances.
        delta: float () in (0, 1), error probability.
        c: float (), at least 1/2. 2 is what the proof of Theorem 1 shows. 1/2 is what runs do: without noise arm i
            stops being a candidate when its confidence radius reaches Lambda_i. The mean stopping time of COCI is 0.93
            to 1.03 times that root.

    Returns:
        float ().

    Raises:
        ValueError: an argument is out of range.
    """
    H, delta = _check_bound(H, tau, delta)
    require(known(c) >= 0.5, "c", "be at least 1/2", c)
    c = jnp.asarray(c).astype(H.dtype)

    def newton(_: int, time: Array) -> Array:
        excess = time - m - c * H * _log_term(time, tau, delta)
        return time - excess / (1 - 3 * c * H / time)

    # The excess is convex, with its minimum at 3 c H: from the right of it Newton's method comes down on the root.
    start = jnp.maximum(theorem1_bound(H, m, tau, delta), 6 * c * H)
    return lax.fori_loop(0, NEWTON_STEPS, newton, start)


def clucb_bound(H_gap: Array | float, width: Array | int, m: int, delta: Array | float) -> Array:
    """The pulls within which CLUCB stops with probability 1 - delta: 2 m + 499 w^2 H_gap ln(4 m w^2 H_gap / delta).

    Args:
        H_gap: float (), sum_i 1 / Delta_i^2 over `reward_gaps`.
        width: (), `width` of the class.
        m: number of arms.
        delta: float () in (0, 1), error probability.

    Returns:
        float ().

    Raises:
        ValueError: `delta` is out of range.

    Source: Chen, Lin, King, Lyu and Chen (2014), Theorem 1, as equation (5) of Huang, Ok, Li and Chen (2018).
    """
    H_gap, delta = _check_bound(H_gap, 1, delta)
    scaled = jnp.asarray(width).astype(H_gap.dtype) ** 2 * H_gap
    return 2 * m + 499 * scaled * jnp.log(4 * m * scaled / delta)


def lower_bound_rate(H: Array | float, m: int, delta: Array | float) -> Array:
    """H + (H / m) ln(1 / delta), the order of the pulls that every algorithm needs. Its constant is not known.

    Args:
        H: float (), `hardness`.
        m: number of arms.
        delta: float () in (0, 1), error probability.

    Returns:
        float (), up to an unknown constant.

    Raises:
        ValueError: `delta` is out of range.

    Source: Huang, Ok, Li and Chen (2018), Theorem 2.
    """
    H, delta = _check_bound(H, 1, delta)
    return H + H / m * jnp.log(1 / delta)


def _log_term(time: Array, tau: int, delta: Array) -> Array:
    """ln(4 T^3 / (tau delta)), in a form that does not overflow."""
    return jnp.log(4 / (tau * delta)) + 3 * jnp.log(time)


def _check_bound(H: Array | float, tau: int, delta: Array | float) -> tuple[Array, Array]:
    require(known(H) > 0, "H", "be positive", H)
    require(tau in (1, 2), "tau", "be 1 or 2", tau)
    require((known(delta) > 0) & (known(delta) < 1), "delta", "lie in (0, 1)", delta)
    H = jnp.asarray(H)
    H = H if jnp.issubdtype(H.dtype, jnp.floating) else H.astype(float)
    return H, jnp.asarray(delta).astype(H.dtype)


def _theta(theta: Array, m: int) -> Array:
    require(jnp.shape(theta) == (m,), "theta", f"have shape ({m},)", jnp.shape(theta))
    require((known(theta) >= 0) & (known(theta) <= 1), "theta", "lie in [0, 1]", theta)
    return jnp.asarray(theta)
