"""Action of all algorithms of this family, and the environment that answers it."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Environment, Key
from jaxbandits.checks import known, require
from jaxbandits.mab._problem.instances import Instance, checked_instance
from jaxbandits.mab._problem.problems import Bernoulli, Gaussian, Problem, float_dtype, scale
from jaxbandits.numerics.binomial import UNIFORMS, binomial_of
from jaxbandits.numerics.brownian import increment, one_step
from jaxbandits.numerics.indexing import entries
from jaxbandits.streams import Numbered, key_of, opened, plain


class Pull(NamedTuple):
    """Action: slot j pulls arm `arms[j]` `times[j]` times; 0 times for an idle slot."""

    arms: Array  # int32 (slots,)
    times: Array  # int32 (slots,)


class Rewards(NamedTuple):
    """Observation of a `Pull`."""

    sums: Array  # float (slots,)   sums of the rewards
    times: Array  # int32 (slots,)   pulls that were made: 0, or as many as requested


def environment(
    instance: Instance, *, slots: int | None = None, leap: int = 1, stream: Key | None = None
) -> Environment:
    """Answers `Pull` with the sum of the rewards of each slot.

    n pulls of a Gaussian arm sum to n mean + noise_scale sqrt(n) z with one normal variable z, exactly in law. n pulls
    of a Bernoulli arm are one binomial variable (`numerics.binomial`). If its sampler misses, nothing was pulled, and
    the algorithm pulls again.

    Args:
        instance: the truth.
        slots: number of slots of an action, an int >= 1: 2 for `lucb` and `kl_lucb`. If None, 1, or with leaps one for
            every arm, the only number that leaps permit.
        leap: largest number of pulls of a slot, an int >= 1, as for the algorithm. More pulls give NaN, which ends the
            run, for Bernoulli arms, and for a stream without leaps.
        stream: a key. If None, noise is fresh in every round. With a key, the n-th pull of an arm pays the same to any
            algorithm, so that algorithms can be compared on the same rewards. For Gaussian arms this holds also within
            a leap; leaps of Bernoulli arms, whose sums are binomial, are refused. Answers the actions of
            `jaxbandits.numbered(algorithm)`.

    Returns:
        Environment. Its noise is normal (slots,) for Gaussian arms; for Bernoulli arms uniform, (slots,) without leaps
        and (8, slots) with them; with a stream nothing. An idle slot pays exactly 0. Cost per round: O(slots), with a
        stream for Gaussian arms 32 normal variables per slot, and 64 with leaps.

    Raises:
        ValueError: the instance is not valid, or another argument is out of range.
    """
    problem, means = checked_instance(instance)
    leap = checks.whole("leap", leap, least=1)
    slots = (problem.arms if leap > 1 else 1) if slots is None else checks.whole("slots", slots, least=1)
    require(leap == 1 or slots == problem.arms, "slots", f"be {problem.arms} with leaps, one for every arm", slots)
    is_gaussian = isinstance(problem, Gaussian)
    checked: dict[str, Any] = {"problem": lambda: {"arms": problem.arms}, "accepts": partial(_accepts, problem.arms)}
    checked["admits"] = lambda answer: (answer >= 0) & (answer < problem.arms)
    if stream is not None:
        checks.key("stream", stream)
        require(
            is_gaussian or leap == 1, "stream", "be None for leaps of Bernoulli arms, whose sums are binomial", stream
        )
        paid = _walks(means, scale(problem), stream, leap) if is_gaussian else _numbered(means, stream)

        def respond_stream(action: Numbered, noise: tuple[()]) -> Rewards:
            del noise
            pull, before = opened(action)
            _check_action(pull, problem.arms, slots)
            return paid(pull, before)

        return Environment(lambda key: (), respond_stream, stream, **checked)

    answer = _sums(means, scale(problem)) if is_gaussian else _single(means) if leap == 1 else _many(means, leap)
    shape = (slots,) if is_gaussian or leap == 1 else (UNIFORMS, slots)
    draw = jax.random.normal if is_gaussian else jax.random.uniform

    def respond(action: Pull, noise: Array) -> Rewards:
        _check_action(action, problem.arms, slots)
        return answer(action, noise)

    return Environment(lambda key: draw(key, shape, means.dtype), respond, **checked)


def receive(problem: Problem, action: Pull, rewards: Any) -> Rewards:
    """Returns the rewards as arrays; raises `ValueError` unless the action can have this observation."""
    checks.instance("observation", rewards, Rewards)
    shape = action.arms.shape
    times = checks.array("observation.times", rewards.times, shape, kind="int", dtype=jnp.int32)
    is_paid = (known(times) == 0) | (known(times) == known(action.times))
    require(is_paid, "observation.times", "be the times of the action, or 0 where an arm was not pulled", times)
    sums = checks.numbers("observation.sums", rewards.sums, shape, float_dtype(problem))
    require((known(times) > 0) | (known(sums) == 0), "observation.sums", "be 0 where nothing was pulled", sums)
    if isinstance(problem, Bernoulli):
        is_count = (known(sums) >= 0) & (known(sums) <= known(times)) & (known(sums) == known(sums) // 1)
        require(is_count, "observation.sums", "count the ones among the rewards, each of which is 0 or 1", sums)
    return Rewards(sums, times)


def _accepts(arms: int, action: Any) -> Array:
    """True if every slot is idle or pulls an arm that exists."""
    pull = plain(action)
    exists = (pull.arms >= 0) & (pull.arms < arms) & (pull.times > 0)
    return jnp.all(exists | (pull.times == 0))


def _check_action(action: Pull, arms: int, slots: int) -> None:
    """Raises `ValueError` for an action of another shape, or an arm that is known not to exist."""
    # Broadcasting would answer an action of another shape with too little noise.
    shape = action.arms.shape
    rule = f"fit the algorithm's actions, arrays of shape {shape} (if it leaps, give its leap instead)"
    require(shape == (slots,), "slots", rule, slots)
    checks.domain(action, partial(_accepts, arms), f"pull arms of 0..{arms - 1}, as often as its times say")


def _sums(means: Array, noise_scale: float) -> Callable[[Pull, Array], Rewards]:
    def respond(action: Pull, noise: Array) -> Rewards:
        times = action.times.astype(means.dtype)
        return Rewards(times * entries(means, action.arms) + noise_scale * jnp.sqrt(times) * noise, action.times)

    return respond


def _walks(means: Array, noise_scale: float, stream: Key, leap: int) -> Callable[[Pull, Array], Rewards]:
    def respond(action: Pull, before: Array) -> Rewards:
        def noise(arm: Array, start: Array, times: Array) -> Array:
            walk = key_of(stream, arm)
            if leap > 1:
                return increment(walk, start, times, means.dtype)
            one = jnp.where(times == 0, 0, one_step(walk, start, means.dtype))
            return jnp.where(times <= 1, one, jnp.nan)

        steps = jax.vmap(noise)(action.arms, before, action.times)
        times = action.times.astype(means.dtype)
        return Rewards(times * entries(means, action.arms) + noise_scale * steps, action.times)

    return respond


def _numbered(means: Array, stream: Key) -> Callable[[Pull, Array], Rewards]:
    single = _single(means)

    def respond(action: Pull, before: Array) -> Rewards:
        def uniform(arm: Array, number: Array) -> Array:
            return jax.random.uniform(key_of(stream, arm, number), (), means.dtype)

        return single(action, jax.vmap(uniform)(action.arms, before))

    return respond


def _single(means: Array) -> Callable[[Pull, Array], Rewards]:
    def respond(action: Pull, noise: Array) -> Rewards:
        mean = entries(means, action.arms)
        sums = ((noise < mean) & (action.times > 0)).astype(means.dtype)
        # Traced means could not be checked: a number without a distribution must not pass for a reward.
        is_lawful = (action.times <= 1) & (mean >= 0) & (mean <= 1)
        return Rewards(jnp.where(is_lawful, sums, jnp.nan), action.times)

    return respond


def _many(means: Array, leap: int) -> Callable[[Pull, Array], Rewards]:
    def respond(action: Pull, noise: Array) -> Rewards:
        mean = entries(means, action.arms)
        ones, accepted = binomial_of(noise, action.times, mean)
        is_lawful = (action.times <= leap) & (mean >= 0) & (mean <= 1)
        sums = jnp.where(accepted, ones, 0).astype(means.dtype)
        return Rewards(jnp.where(is_lawful, sums, jnp.nan), jnp.where(accepted, action.times, 0))

    return respond
