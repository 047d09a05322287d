"""Roots of increasing functions, elementwise: Newton's method that never leaves a bracket."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array

STEPS = 12  # the bracket is halved wherever a step would leave it


def bracketed_root(f: Callable[[Array], Array], lo: Array, hi: Array, start: Array, steps: int = STEPS) -> Array:
    """Computes a root of each entry of f, differentiably in whatever f closes over.

    Args:
        f: (...) -> (...), entry i a smooth function of entry i alone, negative at the lower end of its bracket and
            positive at the upper one.
        lo: float (...), lower ends.
        hi: float (...), upper ends, at least the lower ones. Where both are equal, that is the root.
        start: float (...), first points, in the brackets.
        steps: number of steps.

    Returns:
        float (...). Its first derivative is the derivative of the root. The second one is wrong, which does not matter
        where the root minimises what is computed from it.

    **Cost**: f and its slope, `steps` times.
    """

    def newton(x: Array) -> tuple[Array, Array]:
        value, slope = jax.jvp(f, (x,), (jnp.ones_like(x),))
        return value, jnp.where(slope == 0, 1, lax.stop_gradient(slope))

    lo, hi, x = map(lax.stop_gradient, jnp.broadcast_arrays(lo, hi, start))

    def step(_: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        lo, hi, x = carry
        value, slope = map(lax.stop_gradient, newton(x))
        lo, hi = jnp.where(value < 0, x, lo), jnp.where(value < 0, hi, x)
        new = x - value / slope
        return lo, hi, jnp.where((new >= lo) & (new <= hi), new, (lo + hi) / 2)

    lo, hi, x = lax.fori_loop(0, steps - 1, step, (lo, hi, x))
    value, slope = newton(x)
    new = x - value / slope
    return jnp.where((new >= lo) & (new <= hi), new, x)
