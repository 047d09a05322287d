"""Ridge regression of the rewards: the state, its start, the update by a pull, and the refresh of its cache.

`lingape` and the rules of an index have this state. Likelihood-ratio rules have the update alone, because their cache
also holds the images of items.
"""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.linear._problem.environment import Pull
from jaxbandits.numerics.compensated import add_at, no_loss
from jaxbandits.numerics.elementary import log1p
from jaxbandits.numerics.indexing import sliced
from jaxbandits.numerics.kernels import added, apart
from jaxbandits.numerics.linalg import dot, gram, spd_inverse_logdet


class State(NamedTuple):
    """Statistics and cache, with A = ridge I + sum_k counts_k x_k x_k'."""

    pulls: Array  # int ()
    counts: Array  # int (K,)        exact
    sums: Array  # float (K,)        exact: sums of rewards
    images: Array  # float (K, d)    A^-1 x_k, one row per arm
    leverage: Array  # float (K,)    x_k' A^-1 x_k
    theta: Array  # float (d,)       ridge estimate A^-1 sum_k sums_k x_k
    logdet: Array  # float ()        log det(A / ridge)
    lost: Array | tuple[()] = ()  # float (K,) in 32 bit: rounding error of `sums`, as in `compensated`


class Update(NamedTuple):
    """Changes of a cache by pulls of one arm x."""

    moved: Array  # float (N,)      y' A^-1 x of each point y
    gain: Array  # float ()         A^-1 loses gain A^-1 x x' A^-1
    surprise: Array  # float ()     theta gains surprise A^-1 x


def update(
    points: Array, arms: Array, theta: Array, *, arm: Array, image: Array, leverage: Array, times: Array, reward: Array
) -> Update:
    """Computes the changes by `times` pulls of an arm, by Sherman and Morrison. Cost: O(N d)."""
    moved = apart(dot, points, image)
    gain = times / (1 + times * leverage)
    surprise = (reward - times * dot(sliced(arms, arm), theta)) / (1 + times * leverage)
    return Update(moved, gain, surprise)


def start(arms: Array, ridge: Array) -> State:
    """Returns the state before the first pull."""
    K, dtype = arms.shape[0], arms.dtype
    return State(
        pulls=jnp.zeros((), int),
        counts=jnp.zeros(K, int),
        sums=jnp.zeros(K, dtype),
        images=arms / ridge,
        leverage=dot(arms, arms) / ridge,
        theta=jnp.zeros_like(arms[0]),
        logdet=jnp.zeros((), dtype),
        lost=no_loss((K,), dtype),
    )


def observe(arms: Array, state: State, action: Pull, observation: Array) -> State:
    """Adds the sum of the rewards of one arm's pulls. Cost: O(K d)."""
    pulled, times = jnp.arange(arms.shape[0]) == action.arm, action.times.astype(arms.dtype)
    image, leverage = sliced(state.images, action.arm), sliced(state.leverage, action.arm)
    moved, gain, surprise = update(
        arms, arms, state.theta, arm=action.arm, image=image, leverage=leverage, times=times, reward=observation
    )
    sums, lost = add_at(state.sums, state.lost, action.arm, observation)
    return State(
        pulls=added(state.pulls, action.times),
        counts=state.counts + jnp.where(pulled, action.times, 0),
        sums=sums,
        images=state.images - (gain * moved)[:, None] * image[None],
        leverage=state.leverage - gain * moved**2,
        theta=state.theta + surprise * image,
        lost=lost,
        logdet=state.logdet + jnp.where(action.times > 0, apart(log1p, times * leverage), 0),
    )


def refresh(arms: Array, ridge: Array, state: State) -> State:
    """Rebuilds the cache from counts and sums. Cost: O(K d^2 + d^3)."""
    inverse, logdet = spd_inverse_logdet(gram_of(arms, ridge, state.counts) / ridge)
    images = jnp.matmul(arms, inverse, precision="highest") / ridge
    return state._replace(
        images=images,
        leverage=dot(images, arms),
        theta=jnp.matmul(state.sums, images, precision="highest"),
        logdet=logdet,
    )


def gram_of(arms: Array, ridge: Array, counts: Array) -> Array:
    """Computes A = ridge I + sum_k counts_k x_k x_k', float (d, d)."""
    return ridge * jnp.eye(arms.shape[1], dtype=arms.dtype) + gram(arms, counts.astype(arms.dtype))
