"""Binomial draws without a loop: sums of many pulls of a Bernoulli arm. Callers draw rejected ones again."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.base import Array
from jaxbandits.numerics.kl import bernoulli_kl

PROPOSALS = 4  # number of proposals, of which the first accepted one counts
UNIFORMS = 2 * PROPOSALS  # uniform numbers for one draw
TERMS = 48  # terms of the inversion; below a mean of 10 the others have a probability of 1e-17
SMALL = 10  # means below this are inverted
# log k! - (k + 1/2) log k + k - log(2 pi) / 2 for k = 1..15; the entry for 0 is not used.
STIRLING = np.array(
    [0.0, *(math.lgamma(k + 1) - (k + 0.5) * math.log(k) + k - math.log(2 * math.pi) / 2 for k in range(1, 16))]
)


def binomial_of(uniform: Array, n: Array, p: Array) -> tuple[Array, Array]:
    """Transforms uniform numbers to binomial variables, some of which are missing.

    Means n min(p, 1 - p) below 10 are inverted from one uniform number, and never missing. For larger means,
    transformed rejection makes four proposals at once, and the first accepted one counts. All four are rejected with a
    probability of .7 % at a mean of 10, and 2e-4 for large n. This event does not depend on the value accepted later,
    so drawing again with fresh numbers gives the exact law. Forcing the last proposal would not.

    Args:
        uniform: float (8, ...), uniform on [0, 1) and independent.
        n: int (...), at least 0.
        p: float (...), in [0, 1], of the uniforms' dtype.

    Returns:
        int32 (...), the number of successes in n trials, and bool (...), whether it is valid.

    **float32**: the logarithm of the law is right to 1e-5 (n <= 10^4), 1e-4 (10^6), 5e-4 (10^7) within 5 standard
    deviations.

    Source: Hormann (1993), The generation of binomial random variates, algorithm BTRS without its squeeze; the law by
    Loader (2000), Fast and accurate computation of binomial probabilities.
    """
    uniform = jnp.asarray(uniform)  # loops index it, which NumPy arrays do not support
    trials, rare = n.astype(uniform.dtype), jnp.minimum(p, 1 - p)
    is_small = trials * rare < SMALL
    few = _inverted(uniform[0], trials, jnp.where(is_small, rare, 0))
    many, accepted = _rejected(uniform, jnp.where(is_small, 100, trials), jnp.where(is_small, 0.5, rare))
    rare_count = jnp.where(is_small, few, many).astype(jnp.int32)
    return jnp.where(p > 0.5, n.astype(jnp.int32) - rare_count, rare_count), is_small | accepted


def _inverted(u: Array, n: Array, p: Array) -> Array:
    """Computes the smallest k with P(X <= k) > u, as a float."""
    odds, negligible = p / (1 - p), jnp.finfo(u.dtype).eps

    def term(k: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        count, mass, upto = carry
        # Rounding may leave the sum of all terms below u: the count ends once the terms are negligible.
        count = count + ((u >= upto) & (mass > negligible)).astype(count.dtype)
        k = k.astype(u.dtype)
        mass = mass * jnp.maximum(n - k, 0) / (k + 1) * odds
        return count, mass, upto + mass

    first = jnp.exp(n * jnp.log1p(-p))
    zero = jnp.zeros(jnp.shape(first), jnp.int32)
    return jnp.minimum(lax.fori_loop(0, TERMS, term, (zero, first, first), unroll=4)[0].astype(u.dtype), n)


def _rejected(uniform: Array, n: Array, p: Array) -> tuple[Array, Array]:
    """Returns the first accepted one of four proposals, as a float, and whether there is one. n p is at least 10."""
    spread = jnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    scale = (2.83 + 5.1 / b) * spread
    at_mode = _log_mass(jnp.floor((n + 1) * p), n, p)
    tiny = jnp.finfo(uniform.dtype).tiny

    def propose(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        chosen, is_accepted = carry
        u, v = uniform[PROPOSALS - 1 - i], uniform[2 * PROPOSALS - 1 - i]
        from_edge = 0.5 - jnp.abs(u - 0.5)
        inside = from_edge > 0
        from_edge = jnp.where(inside, from_edge, 0.5)
        k = jnp.floor((2 * a / from_edge + b) * (u - 0.5) + n * p + 0.5)
        inside &= (k >= 0) & (k <= n)
        k = jnp.clip(k, 0, n)
        ratio = jnp.log(jnp.maximum(v, tiny) * scale / (a / from_edge**2 + b))
        accepted = inside & (ratio <= _log_mass(k, n, p) - at_mode)
        return jnp.where(accepted, k, chosen), is_accepted | accepted

    # The last proposal first, so that the first one counts. Side by side, they are recomputed in each fusion that reads
    # one of them, ten times in all on a CPU.
    return lax.fori_loop(0, PROPOSALS, propose, (jnp.zeros_like(spread), jnp.zeros_like(spread, bool)))


@jax.jit
def _log_mass(k: Array, n: Array, p: Array) -> Array:
    """Computes log P(X = k) up to a constant in k, in a form that keeps its digits for large n."""
    k, n, p = jnp.broadcast_arrays(k, n, p)
    at_end = (k <= 0) | (k >= n)
    inner = jnp.where(at_end, n / 2, k)
    failures = n - inner
    middle = -n * bernoulli_kl(inner / n, p) - jnp.log(inner * failures / n) / 2 - stirling(inner) - stirling(failures)
    end = jnp.where(k <= 0, n * jnp.log1p(-p), n * jnp.log(p)) - stirling(n) + 0.5 * math.log(2 * math.pi)
    return jnp.where(at_end, end, middle)


def stirling(k: Array) -> Array:
    """Computes the error of Stirling's formula for log k!, k >= 1."""
    inverse = 1 / jnp.maximum(k, 1)
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square / 1260))
    table = jnp.asarray(STIRLING, k.dtype)[jnp.clip(k, 0, 15).astype(jnp.int32)]
    return jnp.where(k < 16, table, series)
