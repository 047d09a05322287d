"""What the top-two rules share: posterior draws, the pull for a pair, and the checks of the coin."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import DTypeLike

from jaxbandits import checks
from jaxbandits.base import Array, Key
from jaxbandits.checks import require
from jaxbandits.linear._fixed_confidence import Settings
from jaxbandits.linear._glr import Comparison, State, compare, statistics, telling
from jaxbandits.numerics.linalg import dot

EIGHT = 8


def check_leader_share(leader_share: Array | float | None, items: Array | None) -> None:
    """Raises `ValueError` unless it is None, or a number in (0, 1) with items that are the arms."""
    if leader_share is not None:
        checks.probability("leader_share", leader_share)
        require(items is None, "leader_share", "be None where items are apart from the arms", leader_share)


class Numbers(NamedTuple):
    """The random numbers of a round."""

    normals: Array  # float (n or a few more,): to cut them off would cost what their number gains
    tie: Array  # float (), uniform
    coin: Array  # float (), uniform


def numbers_of(key: Key, n: int, dtype: DTypeLike) -> Numbers:
    """All numbers of a round at once.

    A call of JAX's generator takes a CPU about as long however few numbers it makes, and the inverse of erf is 1.5
    times as fast for 8 numbers as for 6: only eights fill its vectors.
    """
    above = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype))
    u = jax.random.uniform(key, (-(-(n + 2) // EIGHT) * EIGHT,), dtype, minval=above)
    normals = 2**0.5 * lax.erf_inv(u)  # as jax.random.normal makes them
    return Numbers(normals, (u[n] + 1) / 2, (u[n + 1] + 1) / 2)


def posterior_draws(settings: Settings, state: State, normals: Array) -> Array:
    """Draws of theta from the posterior, N(theta_hat, noise_scale^2 A^-1), float (n, d); `normals` (n, d or more)."""
    assert isinstance(state.root, jax.Array)
    d = state.root.shape[0]
    drawn = sum((normals[:, k, None] * state.root[k] for k in range(1, d)), start=normals[:, 0, None] * state.root[0])
    return state.cache.theta + settings.noise_scale * drawn


def challenger_of(settings: Settings, state: State, leader: Array, rivals: Array, uniform: Array) -> Array:
    """The rival of the least likelihood ratio against any item, one of several with equal probabilities, int ()."""
    against = compare(settings, state.cache, leader)
    costs = jnp.where(rivals & against.rivals, statistics(against), jnp.inf)
    tied = costs == jnp.min(costs)
    rank = jnp.cumsum(tied)
    chosen = jnp.floor(rank[-1].astype(uniform.dtype) * uniform).astype(rank.dtype)
    return jnp.argmax(tied & (rank == jnp.minimum(chosen + 1, rank[-1])))


def open_items(seen: Comparison) -> Array:
    """What may lead or challenge, bool (M,): all but what has been eliminated."""
    return seen.rivals | (jnp.arange(seen.rivals.shape[0]) == seen.leader)


def best_items(settings: Settings, thetas: Array, is_open: Array) -> Array:
    """The best open item of every draw (n, d), int (n,)."""
    means = dot(thetas[:, None], settings.items)
    return jnp.argmax(jnp.where(is_open, means, -jnp.inf), axis=1)


def pulled_of(
    settings: Settings,
    state: State,
    leader: Array,
    challenger: Array,
    leader_share: Array | float | None,
    coin: Array,
) -> Array:
    """The arm that tells the two apart best, or one of them as a coin falls, int ()."""
    if leader_share is not None:
        return jnp.where(coin < jnp.asarray(leader_share, coin.dtype), leader, challenger)
    return telling(settings, state, leader, challenger)
