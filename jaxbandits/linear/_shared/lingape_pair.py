"""The pair of arms that LinGapE compares, and the arm that it pulls for the pair."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.linear._shared.ridge import State
from jaxbandits.numerics.linalg import dot


class LinGapESettings(NamedTuple):
    """Settings of LinGapE's rule and stop."""

    arms: Array  # float (K, d)
    epsilon: Array  # float ()
    radius: Callable[[Array], Array]  # (log det(A / ridge)) -> C, the confidence radius of theta in the norm of A
    shares: Array | None  # float (K, K, K)   shares of the rule "ratio"
    leap_margin: float
    leap_noise_scale: Array | float


class LinGapEPair(NamedTuple):
    """The leader, its strongest challenger, and the distances between them."""

    leader: Array  # int ()
    challenger: Array  # int ()
    radius: Array  # float ()     C: confidence radius of theta in the norm of A
    gaps: Array  # float (K,)     (x_k - x_leader).theta, at most 0
    widths: Array  # float (K,)   ||x_k - x_leader|| in A^-1
    bound: Array  # float ()      B: upper confidence bound of the challenger's lead over the leader


def find_pair(settings: LinGapESettings, state: State) -> LinGapEPair:
    """Finds the leader and its strongest challenger. Cost: O(K d)."""
    # Differences first: near ties, x_k.theta - x_i.theta and the Gram form of the widths lose all their digits.
    arms = settings.arms
    leader = jnp.argmax(dot(arms, state.theta))
    directions = arms - arms[leader][None]
    gaps = dot(directions, state.theta)
    widths = jnp.sqrt(jnp.maximum(dot(directions, state.images - state.images[leader][None]), 0))
    C = settings.radius(state.logdet)
    upper = jnp.where(jnp.arange(arms.shape[0]) == leader, -jnp.inf, gaps + C * widths)
    challenger = jnp.argmax(upper)
    return LinGapEPair(
        leader=leader, challenger=challenger, radius=C, gaps=gaps, widths=widths, bound=upper[challenger]
    )


def pick(settings: LinGapESettings, state: State, pair: LinGapEPair) -> Array:
    """Returns the arm that the rule pulls for a pair, int ()."""
    if settings.shares is not None:
        return jnp.argmin(pulls_per_share(state.counts, settings.shares[pair.leader, pair.challenger]))
    # y'(A + x x')^-1 y = y'A^-1 y - (x'A^-1 y)^2 / (1 + x'A^-1 x)
    influence = dot(settings.arms, state.images[pair.leader] - state.images[pair.challenger])
    return jnp.argmax(influence**2 / (1 + state.leverage))


def pulls_per_share(counts: Array, share: Array) -> Array:
    """Computes pulls over share of each arm (K,); the smallest is due next, and an arm without a share never is."""
    return jnp.where(share > 0, counts.astype(share.dtype) / jnp.where(share > 0, share, 1), jnp.inf)
