"""Integer pull counts that follow a real-valued allocation."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array

# Largest number of arms for which the trip count is fixed, so that the host need not read it in every round. With more
# arms, fewer corrections are worth that.
FEW = 32


def tracked_counts(allocation: Array, n: Array | int) -> Array:
    """Computes the pull counts after n pulls of the rule that tracks an allocation.

    The rule pulls every arm once and then, at each step, the arm of the support with the smallest count_a / p_a, the
    lowest index among ties. Its n-th state is computed directly. Counts grow with n, arm by arm, and
    count_a >= (n - K) p_a, so a squared confidence width is at most n / (n - K) times the width under the allocation
    itself.

    Rounding n p by largest remainders would not do, because its counts do not grow with n arm by arm.

    Args:
        allocation: float (K,), at least 0, with sum 1. An arm with share 0 keeps its single pull, which
            counts.
        n: int (), number of pulls, at least K.

    Returns:
        int (K,) of the default integer type, with sum n. In float32 exact up to about n = 1e5; beyond, the
        sum is still n but single counts may be off by a few pulls.

    Raises:
        ValueError: `allocation` is not a vector or `n` is below K.

    Cost: O(K) for each of K / 2 + 1 corrections; with more than 32 arms, for each of about sqrt(K) / 3.
    """
    allocation = _checked(allocation)
    arms = allocation.shape[0]
    checks.integer("n", n)
    checks.require(checks.known(n) >= arms, "n", f"be at least {arms}, the number of arms", n)
    return _tracked(allocation, n)


def round_allocation(allocation: Array, n: Array | int) -> Array:
    """Rounds an allocation to counts with sum n and the largest possible min_a count_a / p_a over the support.

    A design loses at most the factor n / (n - s), with s the size of the support.

    Args:
        allocation: float (K,), at least 0, with sum 1. An arm with share 0 gets no pull.
        n: int (), number of pulls, at least the size of the support.

    Returns:
        int (K,) of the default integer type, with sum n.

    Raises:
        ValueError: `allocation` is not a vector or `n` is below the size of the support.

    Source: Pukelsheim and Rieder (1992), the efficient rounding; it is Adams' divisor method.
    """
    allocation = _checked(allocation)
    checks.integer("n", n)
    support = (checks.known(allocation) > 0).sum()
    checks.require(checks.known(n) >= support, "n", "be at least the number of arms with a positive share", n)
    return _round(allocation, n)


def _checked(allocation: Array) -> Array:
    """Returns the allocation as an array. Its entries are not checked, because a failed design has NaN."""
    return checks.array("allocation", allocation, ("K",), nan=True)


@partial(jax.jit, inline=True)
def _tracked(allocation: Array, n: Array | int) -> Array:
    outside = (allocation == 0).astype(int)
    return _round(allocation, jnp.asarray(n, int) - outside.sum()) + outside


@partial(jax.jit, inline=True)
def _round(allocation: Array, n: Array | int) -> Array:
    n = jnp.asarray(n, int)
    support = allocation > 0
    share = jnp.where(support, allocation, 1)
    # Shares such as 1/3 are rounded, and so are the quotients: a smaller difference is a tie.
    slack = 8 * jnp.finfo(allocation.dtype).eps
    # At level l the rule has made every pull whose count_a / p_a was below l: ceil(l p_a) pulls of arm a.
    # They sum to about l + s/2. Pulls at the level itself are ties, and left to the corrections.
    level = (n.astype(allocation.dtype) - support.sum(dtype=allocation.dtype) / 2) * (1 - slack)
    counts = jnp.where(support, jnp.maximum(jnp.ceil(level * share).astype(int), 1), 0)

    def correct(_: Array, counts: Array) -> Array:
        missing = n - counts.sum()
        next_pull = jnp.where(support, counts.astype(share.dtype) / share, jnp.inf)
        last_pull = jnp.where(support, (counts - 1).astype(share.dtype) / share, -jnp.inf)
        first = jnp.argmax(next_pull <= next_pull.min() * (1 + slack))
        # Undoing the rule takes back the last of the tied pulls first.
        last = share.size - 1 - jnp.argmax((last_pull >= last_pull.max() * (1 - slack))[::-1])
        return counts.at[jnp.where(missing > 0, first, last)].add(jnp.sign(missing))

    # The level is off by at most s/2 pulls and its slack; by more only in float32 with large n.
    steps = share.size // 2 + 1
    if share.size > FEW:
        steps = jnp.minimum(jnp.abs(n - counts.sum()), steps)
    counts = lax.fori_loop(0, steps, correct, counts)
    return counts.at[jnp.argmax(jnp.where(support, share, 0))].add(n - counts.sum())
