"""Parts that the top-two rules share: posterior draws, the pull for a pair, and checks of the leader's share."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Key
from jaxbandits.checks import require
from jaxbandits.linear._shared.fixed_confidence import FixedConfidenceSettings
from jaxbandits.linear._shared.likelihood_ratio import (
    ItemComparison,
    State,
    compare_items,
    image_between,
    most_informative,
    statistics,
)
from jaxbandits.linear._shared.stop import LikelihoodRatio
from jaxbandits.numerics.linalg import dot
from jaxbandits.numerics.normal import normals_and_uniforms


def check_leader_share(leader_share: Array | float | None, stop: LikelihoodRatio) -> None:
    """Raises `ValueError` unless it is None, or a number in (0, 1) with items that are the arms."""
    checks.instance("stop", stop, LikelihoodRatio)
    if leader_share is not None:
        checks.probability("leader_share", leader_share)
        require(stop.items is None, "leader_share", "be None where items are apart from the arms", leader_share)


class Numbers(NamedTuple):
    """Random numbers of a round."""

    normals: Array  # float (n,)
    tie: Array  # float (), uniform
    coin: Array  # float (), uniform


def numbers_of(key: Key, n: int, dtype: jnp.dtype) -> Numbers:
    """Draws all numbers of a round at once.

    On a CPU, a call of JAX's generator takes about as long for a few numbers as for many.
    """
    normals, uniforms = normals_and_uniforms(key, n, 2, dtype)
    return Numbers(normals, *uniforms)


def posterior_draws(settings: FixedConfidenceSettings, state: State, normals: Array) -> Array:
    """Draws theta from the posterior, N(theta_hat, noise_scale^2 A^-1), float (n, d); `normals` (n, d)."""
    assert isinstance(state.root, jax.Array)
    root, d = state.root, state.root.shape[0]
    drawn = sum((normals[:, k, None] * root[k, None] for k in range(1, d)), start=normals[:, 0, None] * root[0, None])
    return state.cache.theta[None] + settings.noise_scale * drawn


def challenger_of(
    settings: FixedConfidenceSettings, state: State, leader: Array, rivals: Array, uniform: Array
) -> Array:
    """Returns the rival with the smallest likelihood ratio against the leader, one of several at random, int ()."""
    against = compare_items(settings, state.cache, leader)
    costs = jnp.where(rivals & against.rivals, statistics(against), jnp.inf)
    tied = costs == jnp.min(costs)
    rank = jnp.cumsum(tied)
    chosen = jnp.floor(rank[-1].astype(uniform.dtype) * uniform).astype(rank.dtype)
    return jnp.argmax(tied & (rank == jnp.minimum(chosen + 1, rank[-1])))


def open_items(comparison: ItemComparison) -> Array:
    """Returns a mask of the items that may lead or challenge, bool (M,): all that have not been eliminated."""
    return comparison.rivals | (jnp.arange(comparison.rivals.shape[0]) == comparison.answer)


def best_items(settings: FixedConfidenceSettings, thetas: Array, is_open: Array) -> Array:
    """Returns the best open item of each draw (n, d), int (n,)."""
    means = dot(thetas[:, None], settings.items)
    return jnp.argmax(jnp.where(is_open[None], means, -jnp.inf), axis=1)


def pulled_of(
    settings: FixedConfidenceSettings,
    state: State,
    *,
    leader: Array,
    challenger: Array,
    leader_share: Array | float | None,
    coin: Array,
) -> Array:
    """Returns the arm that separates the two best or, with a `leader_share`, one of them at random, int ()."""
    if leader_share is not None:
        return jnp.where(coin < jnp.asarray(leader_share, coin.dtype), leader, challenger)
    return most_informative(settings, state, image_between(settings, state, leader, challenger))
