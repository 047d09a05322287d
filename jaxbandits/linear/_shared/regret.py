"""Rules that maximise reward: the algorithm of an index."""

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.linear._problem.environment import Pull, made_for
from jaxbandits.linear._shared import ridge as ridge_regression
from jaxbandits.linear._shared.ridge import State
from jaxbandits.numerics.linalg import dot


def algorithm_from_index(arms: Array, ridge: Array, index: Callable[[Key, State], Array]) -> Algorithm:
    """Builds the algorithm that pulls the arm of largest index until the horizon, and answers the largest estimate.

    Args:
        arms: float (K, d).
        ridge: float (), of the dtype of the arms.
        index: (key, state) -> float (K,).

    Returns:
        Algorithm with actions `Pull` and answers int ().
    """

    def init(key: Key) -> State:
        del key
        return ridge_regression.start(arms, ridge)

    def decide(key: Key, state: State) -> Decision:
        action = Pull(jnp.argmax(index(key, state)), jnp.ones((), int))
        return Decision(action, jnp.zeros((), bool), jnp.argmax(dot(arms, state.theta)))

    idle = Pull(jnp.zeros((), int), jnp.zeros((), int))
    return Algorithm(
        init,
        decide,
        partial(ridge_regression.observe, arms),
        idle,
        partial(ridge_regression.refresh, arms, ridge),
        **made_for(arms),
    )
