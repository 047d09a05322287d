"""What the top-two rules share: posterior draws, the pull for a pair, and the checks of the coin."""

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Key
from jaxbandits.checks import require
from jaxbandits.linear._factor import backward, factored, gram_of
from jaxbandits.linear._fixed_confidence import Settings
from jaxbandits.linear._glr import Comparison, State, compare, statistics, telling
from jaxbandits.numerics.linalg import dot


def check_leader_share(leader_share: Array | float | None, items: Array | None) -> None:
    """Raises `ValueError` unless it is None, or a number in (0, 1) with items that are the arms."""
    if leader_share is not None:
        checks.probability("leader_share", leader_share)
        require(items is None, "leader_share", "be None where items are apart from the arms", leader_share)


def posterior_draws(settings: Settings, state: State, key: Key, n: int) -> Array:
    """Draws of theta from the posterior, N(theta_hat, noise_scale^2 A^-1), float (n, d). Cost: O(K d^2 + d^3)."""
    arms, dtype = settings.arms, settings.arms.dtype
    d = arms.shape[1]
    A = gram_of(arms, state.counts.astype(dtype)) + settings.ridge * jnp.eye(d, dtype=dtype)
    z = jax.random.normal(key, (d, n), dtype)
    return state.cache.theta + settings.noise_scale * backward(factored(A), list(z))


def challenger_of(settings: Settings, state: State, leader: Array, rivals: Array, key: Key) -> Array:
    """The rival of the least likelihood ratio against any item, drawn uniformly among several, int ()."""
    against = compare(settings, state.cache, leader)
    costs = jnp.where(rivals & against.rivals, statistics(against), jnp.inf)
    is_least = costs == jnp.min(costs)
    return jnp.argmax(jnp.where(is_least, jax.random.uniform(key, costs.shape, costs.dtype), -1))


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
    key: Key,
) -> Array:
    """The arm that tells the two apart best, or one of them as a coin falls, int ()."""
    if leader_share is not None:
        uniform = jax.random.uniform(key, (), settings.arms.dtype)
        return jnp.where(uniform < jnp.asarray(leader_share, uniform.dtype), leader, challenger)
    return telling(settings, state, leader, challenger)
