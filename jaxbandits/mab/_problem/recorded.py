"""Rewards that were recorded, one after the other or drawn from the record."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Environment, memoryless
from jaxbandits.checks import require
from jaxbandits.mab._problem.environment import Pull, Rewards, declared_form, earlier_pulls, require_form, require_pull
from jaxbandits.recordings import Order, drawn, paid, recording_of


def recorded(
    rewards: Any, algorithm: Algorithm | Pull | None = None, *, order: Order = "in turn", dtype: Any = None
) -> Environment:
    """Answers by rewards that an organisation has recorded.

    Args:
        rewards: a table (n, K) with a column for each arm, as an array or a DataFrame, NaN where a reward is missing;
            or a list of K lists, the rewards of each arm.
        algorithm: the algorithm that will pull, as for `environment`.
        order: "in turn": the i-th pull of an arm pays the i-th reward of its column. A run that asks for more than
            there are ends as `Status.EXHAUSTED`. "bootstrap": every pull draws one of them, with replacement.
        dtype: dtype of the rewards. If None, JAX's default for floats.

    Returns:
        Environment. In turn, its memory is the number of pulls of each arm, int32 (K,), and there is no noise; sums of
        several pulls are differences of sums from the start. For "bootstrap", its noise is uniform (slots,). Rules for
        `Bernoulli` arms end as `Status.NONFINITE` if a reward is neither 0 nor 1. Cost per round: O(slots).

    Raises:
        ValueError: the rewards are no such table, an arm has none, one is infinite, or `order` is "bootstrap" for an
            algorithm that leaps.

    Example:
        A log of two versions of a page, 1 for a visit that paid. A Parquet file is `pd.read_parquet(FILE)`.

        >>> import jax
        >>> import pandas as pd
        >>> import jaxbandits
        >>> from jaxbandits import Status, mab
        >>> log = pd.DataFrame({"old": [0, 1, 0, 0, 1, 0, None, None], "new": [1, 1, 0, 1, 1, 1, 1, 0]})
        >>> algorithm = mab.ttucb(mab.Bernoulli(2), delta=0.01)
        >>> end = jaxbandits.run(jax.random.key(0), algorithm, mab.recorded(log), max_rounds=100)
        >>> print(Status(int(end.status)).name, end.answer, end.memory)
        EXHAUSTED 1 [6 8]
    """
    checks.one_of("order", order, Order)
    require_pull(algorithm)
    recording = recording_of(rewards, checks.float_dtype("dtype", dtype))
    K = recording.lengths.size
    slots, leap, declared = declared_form(algorithm, K)

    def draw(pull: Pull, u: Array) -> Rewards:
        require_form(pull, K, slots)
        each = jax.vmap(partial(drawn, recording))(pull.arms, u)
        return Rewards(jnp.where(pull.times <= 1, pull.times.astype(each.dtype) * each, jnp.nan), pull.times)

    if order == "bootstrap":
        require(leap == 1, "order", "be 'in turn' for an algorithm that leaps", order)
        dtype = recording.rewards.dtype
        return memoryless(lambda key: jax.random.uniform(key, (slots,), dtype), draw)._replace(**declared)

    def respond(counts: Array, pull: Pull, noise: tuple[()]) -> tuple[Rewards, Array]:
        del noise
        require_form(pull, K, slots)
        sums = jax.vmap(partial(paid, recording))(pull.arms, earlier_pulls(counts, pull), pull.times)
        return Rewards(sums, pull.times), counts.at[pull.arms].add(pull.times.astype(counts.dtype))

    def available(counts: Array, pull: Pull) -> Array:
        return jnp.all(earlier_pulls(counts, pull) + pull.times <= recording.lengths[pull.arms])

    start = lambda key: jnp.zeros(K, jnp.int32)  # noqa: E731
    return Environment(start, lambda key: (), respond, available=available, **declared)
