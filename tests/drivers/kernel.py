"""Drives a kernel bandit with recorded rewards: one program for all numbers, of the runs of one shape."""

import inspect
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from drivers.tape import KEY, answered, whole

import jaxbandits
from experiments.bench.reference.kernel_ucb import KERNEL, NOISE_VARIANCE


class Step(NamedTuple):
    """Queries of one round, and the state and the answer after it, planned if that was due."""

    action: np.ndarray
    state: Any
    answer: np.ndarray


@partial(jax.jit, static_argnames=("factory", "kernel"))
def _recorded(key, candidates, rewards, coins, *, scale, settings, factory, kernel):
    horizon, agents, _ = rewards.shape
    takes = inspect.signature(factory).parameters
    others = {"n_agents": agents} if "n_agents" in takes else {}
    others |= {"coins": coins} if "coins" in takes else {}
    algorithm = factory(candidates, kernel=lambda x, y: scale * kernel(x, y), horizon=horizon, **others, **settings)

    def answer(state, action):
        return rewards[state.pulls // agents, jnp.arange(agents), action]

    course = jaxbandits.trace(key, *answered(algorithm, answer), rounds=horizon + 1, watch=whole)
    before, after = slice(horizon), slice(1, None)
    states = jax.tree.map(lambda x: x[after], course.watched)
    return course.stops[-1], Step(course.actions[before], states, course.answers[after])


def follow(factory, candidates, rewards, coins=None, *, key=KEY, kernel=KERNEL, scale=1.0, **settings):
    """Runs all rounds on rewards (T, N, M), as a list of `Step`; the last one is the first whose state stops."""
    settings = {"beta": 1.0, "noise_variance": NOISE_VARIANCE} | settings
    stop, steps = jax.device_get(
        _recorded(
            key, candidates, rewards, coins, scale=jnp.asarray(scale), settings=settings, factory=factory, kernel=kernel
        )
    )
    assert stop
    return [jax.tree.map(lambda x, t=t: x[t], steps) for t in range(len(rewards))]
