"""Rules that maximise reward: the state, and the algorithm of an index."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.linear._problem.environment import Pull, made_for
from jaxbandits.numerics.compensated import add_at, no_loss
from jaxbandits.numerics.indexing import sliced
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


def algorithm_from_index(arms: Array, ridge: Array, index: Callable[[Key, State], Array]) -> Algorithm:
    """Builds the algorithm that pulls the arm of largest index until the horizon, and answers the largest estimate.

    Args:
        arms: float (K, d).
        ridge: float (), of the dtype of the arms.
        index: (key, state) -> float (K,).

    Returns:
        Algorithm with actions `Pull` and answers int ().
    """
    K, dtype = arms.shape[0], arms.dtype

    def init(key: Key) -> State:
        del key
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

    def decide(key: Key, state: State) -> Decision:
        action = Pull(jnp.argmax(index(key, state)), jnp.ones((), int))
        return Decision(action, jnp.zeros((), bool), jnp.argmax(dot(arms, state.theta)))

    def observe(state: State, action: Pull, observation: Array) -> State:
        pulled, m = jnp.arange(K) == action.arm, action.times.astype(dtype)
        image, leverage = sliced(state.images, action.arm), sliced(state.leverage, action.arm)
        gain = m / (1 + m * leverage)
        g = dot(arms, image)
        surprise = (observation - m * dot(sliced(arms, action.arm), state.theta)) / (1 + m * leverage)
        sums, lost = add_at(state.sums, state.lost, action.arm, observation)
        return State(
            pulls=state.pulls + action.times,
            counts=state.counts + jnp.where(pulled, action.times, 0),
            sums=sums,
            images=state.images - (gain * g)[:, None] * image[None],
            leverage=state.leverage - gain * g**2,
            theta=state.theta + surprise * image,
            lost=lost,
            logdet=state.logdet + jnp.log1p(m * leverage),
        )

    def refresh(state: State) -> State:
        A = ridge * jnp.eye(arms.shape[1], dtype=dtype) + gram(arms, state.counts.astype(dtype))
        inverse, logdet = spd_inverse_logdet(A / ridge)
        images = jnp.matmul(arms, inverse, precision="highest") / ridge
        return state._replace(
            images=images,
            leverage=dot(images, arms),
            theta=jnp.matmul(state.sums, images, precision="highest"),
            logdet=logdet,
        )

    idle = Pull(jnp.zeros((), int), jnp.zeros((), int))
    return Algorithm(
        init, decide, observe, idle, refresh, before=lambda state, pull: state.counts[pull.arm], **made_for(arms)
    )
