"""Problems of the user's own, known by a maximiser, and the search for a proof that it is not bi-monotone."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array, Key, static_fields
from jaxbandits.checks import require
from jaxbandits.cpe._problem.kinds.corners import lasting_by_range, open_by_range
from jaxbandits.cpe._problem.kinds.kind import Kind

PAIRS_AT_ONCE = 1000  # pairs per batch in the search for a violation


@static_fields("solve", "arms", "bi_monotone")
class Oracle(NamedTuple):
    """A problem of your own, given by its maximiser. It is static throughout; `oracle` builds one."""

    solve: Callable[[Array], Array]  # theta (m,) -> levels int (m,); static
    arms: int  # m; static
    bi_monotone: bool  # True if the two-call test may be used; static


def oracle(solve: Callable[[Array], Array], arms: int, *, bi_monotone: bool) -> Oracle:
    """Builds a problem of your own from its maximiser.

    Args:
        solve: pure JAX function, theta float (m,) -> levels int (m,): one fixed, deterministic maximiser.
        arms: m, a Python int, at least 2.
        bi_monotone: promise that raising theta_i never lowers the level of arm i and never raises another level. If it
            does not hold, the test that algorithms use for an oracle is silently wrong. See
            `find_bi_monotone_violation`.

    Returns:
        Oracle.

    Raises:
        ValueError: `solve` is not a function or does not return integers (m,), `arms` is below 2, or `bi_monotone` is
            not a bool.
    """
    checks.function("solve", solve, "theta")
    checks.whole("arms", arms, least=2)
    checks.flag("bi_monotone", bi_monotone)
    levels = jax.eval_shape(solve, jax.ShapeDtypeStruct((arms,), jnp.result_type(float)))
    fits = getattr(levels, "shape", None) == (arms,) and jnp.issubdtype(levels.dtype, jnp.integer)
    require(fits, "solve", f"return integers of shape ({arms},)", levels)
    return Oracle(solve, arms, bi_monotone)


def _check(problem: Oracle, name: str) -> None:
    checks.function(f"{name}.solve", problem.solve, "theta")
    checks.whole(f"{name}.arms", problem.arms, least=2)
    checks.flag(f"{name}.bi_monotone", problem.bi_monotone)


def _check_candidates(problem: Oracle) -> None:
    expected = "be bi-monotone for the two-call test (for a small class use enumerated(...))"
    require(problem.bi_monotone, "problem", expected, problem)


# The two-call test


def _level_range(problem: Oracle, lo: Array, hi: Array) -> tuple[Array, Array]:
    return called_at_corners(problem.solve, lo, hi)


def called_at_corners(solve: Callable[[Array], Array], lo: Array, hi: Array) -> tuple[Array, Array]:
    """Computes the lowest and the highest level of every arm, int32 (m,), at its two extreme corners."""
    diagonal = jnp.eye(lo.shape[0], dtype=bool)

    def at_own_corner(one: Array, others: Array) -> Array:
        levels = jax.vmap(solve)(jnp.where(diagonal, one[None], others[None])).astype(jnp.int32)
        return jnp.sum(jnp.where(diagonal, levels, 0), axis=1, dtype=jnp.int32)

    return at_own_corner(lo, hi), at_own_corner(hi, lo)


def find_bi_monotone_violation(
    solve: Callable[[Array], Array], key: Key, arms: int, *, samples: int = 10_000
) -> tuple[Array, Array] | None:
    """Searches for a proof that a maximiser is not bi-monotone.

    It raises one coordinate at a time. Half the samples are uniform points of [0, 1]^m; half lie on the grid of
    eighths, where ties are common.

    Args:
        solve: theta float (m,) -> levels int (m,).
        key: random key for the samples.
        arms: m, a Python int, at least 2.
        samples: number of pairs tried, a Python int, at least 2.

    Returns:
        (theta, theta'), which differ in one coordinate i, larger in theta', where level i falls or another one rises.
        None if no such pair was found, which proves nothing.

    Raises:
        ValueError: an argument is not as above.

    Cost: 2 * samples calls of `solve`, read on the host: it cannot be called while a program is traced.
    """
    checks.function("solve", solve, "theta")
    checks.key("key", key)
    checks.require(checks.is_concrete(key), "key", "be concrete", key)
    checks.whole("arms", arms, least=2)
    checks.whole("samples", samples, least=2)

    def change(draw: Array, i: Array) -> tuple[Array, Array, Array]:
        theta, other = draw[:arms], draw[arms]
        before = theta.at[i].min(other)
        after = theta.at[i].max(other)
        rise = solve(after) - solve(before)
        is_raised = jnp.arange(arms) == i
        return before, after, jnp.any(jnp.where(is_raised, -rise, rise) > 0)

    @jax.jit
    def search(key: Key) -> tuple[Array, Array, Array]:
        keys = jax.random.split(key, 3)
        shape = (samples, arms + 1)
        fine = jax.random.uniform(keys[0], shape)
        coarse = jax.random.randint(keys[1], shape, 0, 9).astype(fine.dtype) / 8
        draws = jnp.where(jnp.arange(samples)[:, None] % 2 == 0, fine, coarse)
        moved = jax.random.randint(keys[2], (samples,), 0, arms)
        return jax.lax.map(lambda pair: change(*pair), (draws, moved), batch_size=PAIRS_AT_ONCE)

    before, after, broken = search(key)
    violations = np.flatnonzero(np.asarray(broken))
    return (before[violations[0]], after[violations[0]]) if violations.size else None


KIND = Kind(
    arm_count=lambda problem: problem.arms,
    float_dtype=lambda problem: jnp.result_type(float),
    check=_check,
    best_levels=lambda problem, theta: problem.solve(theta).astype(jnp.int32),
    open_arms=partial(open_by_range, _level_range),
    lasting_arms=partial(lasting_by_range, _level_range),
    check_candidates=_check_candidates,
)
