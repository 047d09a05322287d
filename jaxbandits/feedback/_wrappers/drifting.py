"""Rewards that change with every pull."""

from collections.abc import Callable

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Environment, Key, PyTree
from jaxbandits.feedback._wrappers.changing import Clock, inner_functions
from jaxbandits.feedback._wrappers.counted import pulls_of


def drifting(make: Callable[[Array], Environment]) -> Environment:
    """Answers by an environment that is made for the number of pulls so far.

    Args:
        make: (pulls) -> Environment, called in every round with pulls, int (), the pulls made so far. Only its answers
            may depend on them: noise and problem are taken from `make(0)`.

    Returns:
        Environment. A leap is answered by the environment of its first pull. Cost per round: `make` and an answer.

    Raises:
        ValueError: `make` is no function, or does not return an Environment that says how many pulls an action makes.

    Example:
        Two arms whose means swing once in 1000 pulls.

        >>> import jax
        >>> import jax.numpy as jnp
        >>> import jaxbandits
        >>> from jaxbandits import feedback, mab
        >>> def swinging(pulls):
        ...     swing = jnp.sin(2 * jnp.pi * pulls.astype(float) / 1000)
        ...     return mab.environment(mab.gaussian(jnp.stack([swing, -swing])))
        >>> algorithm = mab.ucb1(mab.Gaussian(2))
        >>> end = jaxbandits.run(jax.random.key(0), algorithm, feedback.drifting(swinging), horizon=1000)
        >>> print(end.state.counts.sum())
        1000
    """
    checks.function("make", make, "(pulls)")
    first = make(jnp.zeros((), int))
    count = pulls_of("make", first)

    def init(key: Key) -> Clock:
        return Clock(jnp.zeros((), int), first.init(key))

    def respond(memory: Clock, action: PyTree, noise: PyTree) -> tuple[PyTree, Clock]:
        observation, inner = make(memory.pulls).respond(memory.inner, action, noise)
        return observation, Clock(memory.pulls + count(action).astype(memory.pulls.dtype), inner)

    return first._replace(init=init, respond=respond, **inner_functions(first))
