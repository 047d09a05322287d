"""The largest value of the smallest of several concave functions of weights, with a certificate."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.numerics.linalg import solved

CENTERING = 0.1  # target of a step, as a fraction of the current mean of multiplier times slack
TO_BOUNDARY = 0.95  # share of the way to the boundary that a step takes if it would leave the positive numbers
STEPS = 30  # a relative gap of 1e-12 takes 14 to 25


class Maximin(NamedTuple):
    """Weights with a certificate."""

    weights: Array  # float (K,)   sum 1
    shares: Array  # float (P,)    sum 1, the multipliers of the functions; 0 for a masked one
    lower: Array  # float ()       the smallest function at the weights: the maximum is at least this
    upper: Array  # float ()       the maximum is at most this


class _Iterate(NamedTuple):
    w: Array  # float (K,)
    z: Array  # float ()
    nu: Array  # float ()
    slack: Array  # float (P,)   f - z at convergence
    q: Array  # float (P,)
    u: Array  # float (K,)   multipliers of w >= 0
    best: Maximin


def maximin(slopes: Callable[[Array], Array], mask: Array, start: Array, *, steps: int = STEPS) -> Maximin:
    """Maximises min_p f_p(w) over weights w >= 0 of sum 1, for concave f_p that are homogeneous of degree 1.

    Args:
        slopes: (w (K,)) -> df_p/dw_a (P, K), differentiable for positive weights. So f_p(w) = sum_a w_a df_p/dw_a.
            The slopes of masked functions must be finite.
        mask: bool (P,), the functions that count.
        start: float (K,), positive weights of sum 1.
        steps: number of Newton steps.

    Returns:
        Maximin, the best of all points visited. If a function is 0 or less at the start, that is returned, with 0 as
        both values.

    The method follows the primal-dual path: Newton steps on the optimality conditions with multiplier * slack = const,
    which is driven to 0. For any shares q, homogeneity proves max_w min_p f_p(w) <= max_a sum_p q_p df_p/dw_a, the
    slopes at any one w.

    **Cost**: the slopes and their K derivatives, and a linear system of size K + 2, per step.

    Source: Wright (1997), Primal-dual interior-point methods, chapter 5.
    """
    K, dtype = start.shape[0], start.dtype
    at_start = _dot(slopes(start), start)
    unit = jnp.min(jnp.where(mask, at_start, jnp.inf))
    is_flat = ~((unit > 0) & (unit < jnp.inf))
    unit = jnp.where(is_flat, 1, unit)
    number = jnp.sum(mask, dtype=dtype)
    one = jnp.ones(K, dtype)

    def scaled(w: Array) -> Array:
        return jnp.where(mask[:, None], slopes(w) / unit, 0)

    def certified(w: Array, q: Array, f: Array, G: Array) -> Maximin:
        total, share = jnp.sum(w), q / jnp.sum(q)
        lower = jnp.min(jnp.where(mask, f, jnp.inf)) / total
        return Maximin(w / total, share, lower, jnp.maximum(jnp.max(_dot(G.T, share)), lower))

    def step(_: Array, x: _Iterate) -> _Iterate:
        G = scaled(x.w)
        f = _dot(G, x.w)
        now = certified(x.w, x.q, f, G)
        is_better = now.upper - now.lower < x.best.upper - x.best.lower
        best = jax.tree.map(lambda new, old: jnp.where(is_better, new, old), now, x.best)
        bend = jax.jacfwd(lambda w: _dot(scaled(w).T, x.q))(x.w)
        target = CENTERING * (jnp.sum(x.slack * x.q) + jnp.sum(x.w * x.u)) / (number + K)
        stiff = jnp.where(mask, x.q / x.slack, 0)
        off = jnp.where(mask, f - x.z - x.slack, 0)
        pull = jnp.where(mask, target / x.slack, 0) - stiff * off  # the new q where w and z stay
        loaded = _dot(G.T, stiff)
        matrix = bend - _dot(G.T, stiff[:, None] * G) - jnp.diag(x.u / x.w)
        rows = jnp.block(
            [[matrix, loaded[:, None], -one[:, None]], [-loaded[None], jnp.sum(stiff), jnp.zeros(1, dtype)]]
        )
        system = jnp.concatenate([rows, jnp.concatenate([one, jnp.zeros(2, dtype)])[None]])
        right = jnp.concatenate(
            [x.nu - _dot(G.T, pull) - target / x.w, jnp.stack([1 - jnp.sum(pull), 1 - jnp.sum(x.w)])]
        )
        moved = solved(system, right)
        dw, dz, dnu = moved[:K], moved[K], moved[K + 1]
        d_slack = jnp.where(mask, _dot(G, dw) - dz + off, 0)
        dq = pull - x.q + stiff * (off - d_slack)
        du = target / x.w - x.u - x.u / x.w * dw
        primal = _length(jnp.maximum(jnp.max(-dw / x.w), jnp.max(-d_slack / x.slack)))
        dual = _length(jnp.maximum(jnp.max(jnp.where(mask, -dq / x.q, 0)), jnp.max(-du / x.u)))
        new = _Iterate(
            w=x.w + primal * dw,
            z=x.z + primal * dz,
            nu=x.nu + dual * dnu,
            slack=x.slack + primal * d_slack,
            q=x.q + dual * dq,
            u=x.u + dual * du,
            best=best,
        )
        # At the end of the path the system is singular to rounding: the best point so far stays.
        is_sound = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in new[:6]]))
        return jax.tree.map(lambda new, old: jnp.where(is_sound, new, old), new, x._replace(best=best))

    q = mask.astype(dtype) / jnp.maximum(number, 1)
    slack = jnp.where(mask, at_start / unit - 0.5, 1)
    nothing = Maximin(start, q, jnp.zeros((), dtype), jnp.asarray(jnp.inf, dtype))
    first = _Iterate(
        w=start,
        z=jnp.asarray(0.5, dtype),
        nu=jnp.ones((), dtype),
        slack=slack,
        q=q,
        u=one,
        best=nothing,
    )
    best = lax.fori_loop(0, steps, step, first).best
    best = best._replace(lower=best.lower * unit, upper=best.upper * unit)
    flat = nothing._replace(upper=jnp.zeros((), dtype))
    return jax.tree.map(lambda a, b: jnp.where(is_flat, a, b), flat, best)


def _dot(a: Array, b: Array) -> Array:
    return jnp.matmul(a, b, precision="highest")


def _length(shrink: Array) -> Array:
    """Returns the length of a step that keeps all entries positive, if they shrink at most at this rate."""
    return jnp.where(shrink > TO_BOUNDARY, TO_BOUNDARY / shrink, 1)
