"""The largest value of the smallest of several concave functions of weights, with a certificate."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.numerics.linalg import spd_solved

CENTERING = 0.1  # target of a step, as a fraction of the current mean of multiplier times slack
TO_BOUNDARY = 0.95  # share of the way to the boundary that a step takes if it would leave the positive numbers
STEPS = 30  # a relative gap of 1e-11 takes 20, or 30 for many arms of which some hardly matter
LEVEL = 1e-4  # largest slope in x at a minimum, relative to its summands
LEAST = 1e-3  # first weight of an arm of which the functions cost much, relative to the largest


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


def maximin(
    nearest: Callable[[Array], Array],
    rates: Callable[[Array], Array],
    mask: Array,
    start: Array,
    *,
    steps: int = STEPS,
) -> Maximin:
    """Maximises min_p f_p(w) over weights w >= 0 of sum 1, for f_p(w) = min over x_p of sum_a w_a r_pa(x_p).

    Args:
        nearest: (w (K,)) -> the x_p of the minimum for positive weights, float (P,). It may be another point, if a
            further function has the minimum.
        rates: (x (P,)) -> r_pa(x_p), float (P, K), at least 0 and twice differentiable in x. Row p depends on x_p only.
            The rows of masked functions may be anything.
        mask: bool (P,), the functions that count.
        start: float (K,), positive weights of sum 1.
        steps: number of Newton steps.

    Returns:
        Maximin, the best of all points visited. If a function is 0 or less at the start, that is returned, with 0 as
        both values.

    The method follows the primal-dual path: Newton steps on the optimality conditions with multiplier * slack = const,
    which is driven to 0. At the minimum over x, the derivatives of f in w are the rates r, and the second ones are
    -r' r'^T / (w . r'') for their derivatives r', r'' in x. For any shares q, homogeneity proves max_w min_p f_p(w) <=
    max_a sum_p q_p r_pa(x_p), at any x.

    **Cost**: O(P K^2 + K^3) per step.

    Source: Wright (1997), Primal-dual interior-point methods, chapter 5.
    """
    K, dtype = start.shape[0], start.dtype

    def bent(w: Array) -> tuple[Array, Array, Array]:
        """Computes the rates and their derivative, float (P, K), and 1 / (w . r''), float (P,); 0 where masked.

        A function counts as linear where its point is no minimum: an end of its range, or a point that another one
        undercuts.
        """
        x = nearest(w)
        one = jnp.ones_like(x)

        def sloped(x: Array) -> tuple[Array, Array]:
            return jax.jvp(rates, (x,), (one,))

        (r, slope), (_, curvature) = jax.jvp(sloped, (x,), (one,))
        bend = _dot(curvature, w)
        is_bent = mask & (bend > 0) & (jnp.abs(_dot(slope, w)) <= LEVEL * _dot(jnp.abs(slope), w))
        r, slope = (jnp.where(mask[:, None], each, 0) for each in (r, slope))
        return r, slope, jnp.where(is_bent, 1 / jnp.where(is_bent, bend, 1), 0)

    # An arm gets more weight the less the cheapest function costs that it has a part in: they are of one order then.
    r = rates(nearest(start))
    costs = jnp.where(mask, _dot(r, start), jnp.inf)
    cheapest = jnp.min(jnp.where(r > 0, costs[:, None], jnp.inf), axis=0)
    guess = jnp.min(cheapest) / cheapest + LEAST
    guess = guess / jnp.sum(guess)
    at_guess = _dot(rates(nearest(guess)), guess)
    unit = jnp.min(jnp.where(mask, at_guess, jnp.inf))
    is_flat = ~((unit > 0) & (unit < jnp.inf))
    unit = jnp.where(is_flat, 1, unit)
    number = jnp.sum(mask, dtype=dtype)
    one = jnp.ones(K, dtype)

    def certified(w: Array, q: Array, f: Array, r: Array) -> Maximin:
        total, share = jnp.sum(w), q / jnp.sum(q)
        lower = jnp.min(jnp.where(mask, f, jnp.inf)) / total
        return Maximin(w / total, share, lower, jnp.maximum(jnp.max(_dot(r.T, share)), lower))

    def step(_: Array, x: _Iterate) -> _Iterate:
        r, slope, flexibility = bent(x.w)
        r, slope = r / unit, slope / unit
        f = _dot(r, x.w)
        now = certified(x.w, x.q, f, r)
        is_better = now.upper - now.lower < x.best.upper - x.best.lower
        best = jax.tree.map(lambda new, old: jnp.where(is_better, new, old), now, x.best)
        target = CENTERING * (jnp.sum(x.slack * x.q) + jnp.sum(x.w * x.u)) / (number + K)
        stiff = jnp.where(mask, x.q / x.slack, 0)
        off = jnp.where(mask, f - x.z - x.slack, 0)
        pull = jnp.where(mask, target / x.slack, 0) - stiff * off  # the new q where w and z stay
        # z is eliminated first: what remains are the rates less their mean, which lose no digits by cancellation.
        total = jnp.sum(stiff)
        middle = _dot(r.T, stiff) / total
        ahead = (1 - jnp.sum(pull)) / total  # dz where w stays
        apart = jnp.concatenate([r - middle[None], slope])
        matrix = _dot(apart.T, jnp.concatenate([stiff, x.q * flexibility * unit])[:, None] * apart)
        # The sum of the weights is given, so any multiple of ones may be added; without it the matrix is nearly
        # singular along w.
        matrix = matrix + jnp.diag(x.u / x.w) + 1
        missing = 1 - jnp.sum(x.w)
        force = _dot(r.T, pull + ahead * stiff) + target / x.w - x.nu + missing
        free, held = jnp.moveaxis(spd_solved(matrix, jnp.stack([force, one], axis=1)), 1, 0)
        dnu = (jnp.sum(free) - missing) / jnp.sum(held)
        dw = free - dnu * held
        dz = ahead + _dot(middle, dw)
        d_slack = jnp.where(mask, _dot(r - middle[None], dw) - ahead + off, 0)
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

    slack = jnp.where(mask, at_guess / unit - 0.5, 1)
    q = jnp.where(mask, 1 / slack, 0)
    level = 1 / jnp.sum(q)
    q = q * level
    nothing = Maximin(start, q, jnp.zeros((), dtype), jnp.asarray(jnp.inf, dtype))
    first = _Iterate(
        w=guess,
        z=jnp.asarray(0.5, dtype),
        nu=jnp.ones((), dtype),
        slack=slack,
        q=q,
        u=level / guess,
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
