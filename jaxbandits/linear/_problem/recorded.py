"""Rewards that were recorded, one after the other or drawn from the record."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Environment, memoryless
from jaxbandits.checks import require
from jaxbandits.linear._problem.environment import Action, Pull, Step, declared_form
from jaxbandits.recordings import Order, drawn, paid, recording_of


def recorded(
    rewards: Any, arms: Any, algorithm: Algorithm | Action | None = None, *, order: Order = "in turn"
) -> Environment:
    """Answers by rewards that an organisation has recorded.

    Args:
        rewards: a table (n, K) with a column for each arm, as an array or a DataFrame, NaN where a reward is missing;
            or a list of K lists, the rewards of each arm.
        arms: (K, d), feature vectors of the arms.
        algorithm: the algorithm that will pull, as for `environment`; it has actions `Pull`, `Step` or `Allocation`.
        order: "in turn": the i-th pull of an arm pays the i-th reward of its column. A run that asks for more than
            there are ends as `Status.EXHAUSTED`. "bootstrap": every pull draws one of them, with replacement.

    Returns:
        Environment, whose rewards have the dtype of the arms. In turn, its memory is the number of pulls of each arm,
        int32 (K,), and there is no noise; sums of several pulls are differences of sums from the start. For
        "bootstrap", its noise is uniform (), and more than one pull gives NaN, which ends the run. Cost per round:
        O(1), for an `Allocation` O(K).

    Raises:
        ValueError: the rewards are no such table, an arm has none, or one is infinite; the algorithm has other actions;
            or `order` is "bootstrap" for allocations, or for an algorithm that leaps.

    Example:
        >>> import jax
        >>> import numpy as np
        >>> import jaxbandits
        >>> from jaxbandits import linear
        >>> arms = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
        >>> rewards = np.random.default_rng(0).normal(arms @ [1.0, 0.2], 0.5, size=(400, 3))
        >>> algorithm = linear.lingape(arms, delta=0.05, noise_scale=0.5)
        >>> print(jaxbandits.run(jax.random.key(0), algorithm, linear.recorded(rewards, arms), max_rounds=10**3).answer)
        0
    """
    checks.one_of("order", order, Order)
    arms = checks.array("arms", arms, ("K", "d"))
    K = arms.shape[0]
    kind, leap, declared = declared_form(algorithm, arms)
    recording = recording_of(rewards, arms.dtype, arms=K)
    is_single = kind is Pull

    def draw(pull: Pull | Step, u: Array) -> Array:
        reward = pull.times.astype(arms.dtype) * drawn(recording, pull.arm, u)
        return jnp.where(pull.times <= 1, reward, jnp.nan)

    if order == "bootstrap":
        require(is_single and leap == 1, "order", "be 'in turn' for allocations and leaps", order)
        return memoryless(lambda key: jax.random.uniform(key, (), arms.dtype), draw)._replace(**declared)

    def respond(counts: Array, action: Any, noise: tuple[()]) -> tuple[Array, Array]:
        del noise
        if is_single:
            times = action.times.astype(counts.dtype)
            reward = paid(recording, action.arm, counts[action.arm], times)
            return reward, counts.at[action.arm].add(times.astype(counts.dtype))
        times = action.counts.astype(counts.dtype)
        return jax.vmap(partial(paid, recording))(jnp.arange(K), counts, times), counts + times

    def available(counts: Array, action: Any) -> Array:
        if is_single:
            return counts[action.arm] + action.times.astype(counts.dtype) <= recording.lengths[action.arm]
        return jnp.all(counts + action.counts.astype(counts.dtype) <= recording.lengths)

    start = lambda key: jnp.zeros(K, jnp.int32)  # noqa: E731
    return Environment(start, lambda key: (), respond, available=available, **declared)
