"""The action of all algorithms of this family, and who answers it."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Environment
from jaxbandits.checks import require
from jaxbandits.mab._instances import Instance, checked_instance
from jaxbandits.mab._problems import Gaussian, scale
from jaxbandits.numerics.binomial import UNIFORMS, binomial_of


class Pull(NamedTuple):
    """Slot j pulls arm `arms[j]` `times[j]` times; 0 for an idle slot."""

    arms: Array  # int32 (slots,)
    times: Array  # int32 (slots,)


class Rewards(NamedTuple):
    """What the slots of a `Pull` have paid."""

    sums: Array  # float (slots,)   of the rewards
    times: Array  # int32 (slots,)   how often the arm was really pulled: 0, or as often as asked


def environment(instance: Instance, *, slots: int = 1, leap: int = 1) -> Environment:
    """Answers `Pull` with the sum of the rewards of each slot.

    n pulls of a Gaussian arm sum to n mean + noise_scale sqrt(n) z with one normal variable z, exactly in law. n pulls
    of a Bernoulli arm are one binomial variable (`numerics.binomial`): where its sampler misses, nothing was pulled,
    and the algorithm asks again.

    Args:
        instance: the truth.
        slots: of an action: 1, or 2 for `lucb` and `kl_lucb`; an int >= 1. With leaps there is one for every arm.
        leap: the most pulls of a slot, that of the algorithm: an int >= 1. A Bernoulli slot that asks for more gives
            NaN, which ends the run.

    Returns:
        Environment. Its noise is normal (slots,) for Gaussian arms; for Bernoulli arms uniform, (slots,) without leaps
        and (8, slots) with them. An idle slot pays exactly 0. Cost per round: O(slots).

    Raises:
        ValueError: the instance is not valid, or another argument is out of range.
    """
    problem, means = checked_instance(instance)
    slots, leap = checks.whole("slots", slots, least=1), checks.whole("leap", leap, least=1)
    slots = problem.arms if leap > 1 else slots
    dtype = means.dtype
    if isinstance(problem, Gaussian):
        noise_scale = scale(problem)

        def respond_gaussian(action: Pull, noise: Array) -> Rewards:
            _check_slots(action, slots)
            times = action.times.astype(dtype)
            return Rewards(times * _of(means, action.arms) + noise_scale * jnp.sqrt(times) * noise, action.times)

        return Environment(lambda key: jax.random.normal(key, (slots,), dtype), respond_gaussian)

    shape = (slots,) if leap == 1 else (UNIFORMS, slots)
    answer = _single(means) if leap == 1 else _many(means, leap)

    def respond(action: Pull, noise: Array) -> Rewards:
        _check_slots(action, slots)
        return answer(action, noise)

    return Environment(lambda key: jax.random.uniform(key, shape, dtype), respond)


def _check_slots(action: Pull, slots: int) -> None:
    """Raises `ValueError` for an action of another form, which broadcasting would answer with too little noise."""
    asked = action.arms.shape
    require(asked == (slots,), "slots", f"be those of the algorithm's actions, arrays of shape {asked}", slots)


def _single(means: Array) -> Callable[[Pull, Array], Rewards]:
    def respond(action: Pull, noise: Array) -> Rewards:
        mean = _of(means, action.arms)
        sums = ((noise < mean) & (action.times > 0)).astype(means.dtype)
        # Traced means could not be checked: what has no law must not pass for a reward.
        is_lawful = (action.times <= 1) & (mean >= 0) & (mean <= 1)
        return Rewards(jnp.where(is_lawful, sums, jnp.nan), action.times)

    return respond


def _many(means: Array, leap: int) -> Callable[[Pull, Array], Rewards]:
    def respond(action: Pull, noise: Array) -> Rewards:
        mean = _of(means, action.arms)
        ones, accepted = binomial_of(noise, action.times, mean)
        is_lawful = (action.times <= leap) & (mean >= 0) & (mean <= 1)
        sums = jnp.where(accepted, ones, 0).astype(means.dtype)
        return Rewards(jnp.where(is_lawful, sums, jnp.nan), jnp.where(accepted, action.times, 0))

    return respond


def _of(means: Array, arms: Array) -> Array:
    """The means of the slots' arms, without a gather, which a batch makes slow."""
    chosen = arms[:, None] == jnp.arange(means.shape[0], dtype=arms.dtype)
    return jnp.sum(jnp.where(chosen, means, 0), axis=1)
