"""Action of all algorithms of this family, and the environment that answers it."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Environment, Key, PyTree, memoryless
from jaxbandits.checks import known, require
from jaxbandits.mab._problem.instances import Instance, checked_instance
from jaxbandits.mab._problem.laws.law import Slots
from jaxbandits.mab._problem.problems import Gaussian, Problem, float_dtype, has_unknown_variances, law_of, scale
from jaxbandits.noises import Sampler, Shape, sampler_of
from jaxbandits.numerics.indexing import entries
from jaxbandits.numerics.kernels import apart
from jaxbandits.queries import form_of
from jaxbandits.streams import key_of


class Pull(NamedTuple):
    """Action: slot j pulls arm `arms[j]` `times[j]` times; 0 times for an idle slot."""

    arms: Array  # int32 (slots,)
    times: Array  # int32 (slots,)


class Rewards(NamedTuple):
    """Observation of a `Pull`."""

    sums: Array  # float (slots,)   sums of the rewards
    times: Array  # int32 (slots,)   pulls that were made: 0, or as many as requested


class SquaredRewards(NamedTuple):
    """Observation of a `Pull` of several rewards per slot whose variance is to be estimated."""

    sums: Array  # float (slots,)   as in `Rewards`
    times: Array  # int32 (slots,)   as in `Rewards`
    squares: Array  # float (slots,)   sums of squared deviations of the rewards from their mean in the slot


def environment(
    instance: Instance,
    algorithm: Algorithm | Pull | None = None,
    *,
    noise: Shape | Sampler | None = None,
    stream: Key | None = None,
) -> Environment:
    """Answers `Pull` with the sum of the rewards of each slot.

    n pulls of a Gaussian arm sum to n mean + noise_scale sqrt(n) z with one normal variable z, exactly in law. With
    unknown variances the instance's sd stands for the noise_scale, and leaps also pay the sum of squared deviations, a
    chi-square variable with n - 1 degrees of freedom. n pulls
    of a Bernoulli arm are one binomial variable (`numerics.binomial`), of a Poisson arm one Poisson variable
    (`numerics.poisson`), of an exponential arm a gamma variable. A bounded arm is pulled once a round. If its sampler
    misses, nothing was pulled, and the algorithm pulls again; a single reward misses only for Poisson arms with means
    from 10.

    Args:
        instance: the truth.
        algorithm: the algorithm that will pull. Its actions say the number of slots, and its problem the largest number
            of pulls of a slot, `leap`. More pulls give NaN, which ends the run, unless arms are Gaussian, and for a
            stream without leaps. If None, an action has one slot and makes one pull; an action stands for an algorithm
            of your own that does not leap.
        noise: noise of Gaussian arms in units of their noise_scale. If None, it is normal. Otherwise "uniform" on
            [-sqrt 3, sqrt 3], "rademacher" (-1 or 1), or a function (key) -> float () of mean 0 and sub-Gaussian
            constant 1. Theory that needs no more than that holds; sums of several pulls have no closed form.
        stream: a key. If None, noise is fresh in every round. With a key, the n-th pull of an arm pays the same to any
            algorithm, so that algorithms can be compared on the same rewards. For Gaussian arms this holds also within
            a leap; leaps of other arms are refused.

    Returns:
        Environment. Its noise is `noise`, (slots,), for Gaussian arms; for other arms uniform, (slots,) without leaps
        and (8, slots) with them or for Poisson arms; with a stream nothing. Its memory is (), with a stream the number
        of pulls of each arm, int32 (K,). An idle slot pays exactly 0. Cost per round: O(slots), with a stream for
        Gaussian arms 32 normal variables per slot, and 64 with leaps, and for Poisson arms 64 uniform ones.

    Raises:
        ValueError: the instance is not valid; the algorithm makes other actions; `noise` is none of these, or is given
            for other arms or leaps; or `stream` is no key or is given for leaps of other arms.
    """
    problem, means, sd = checked_instance(instance)
    slots, leap, checked = declared_form(algorithm, problem.arms)
    law, sampler = law_of(problem), None
    deviations = {} if isinstance(sd, tuple) else {"sd": sd}
    if law.largest_leap is not None:
        require(leap <= law.largest_leap, "algorithm", f"not leap with {type(problem).__name__} arms", leap)
    if noise is not None:
        sampler = sampler_of("noise", noise, means.dtype)
        has_scale = isinstance(problem, Gaussian)
        require(has_scale and leap == 1, "noise", "be None for leaps, and unless arms are Gaussian", noise)
    if stream is not None:
        checks.key("stream", stream)
        require(law.can_share(leap), "stream", "be None for leaps, unless arms are Gaussian", stream)
        if sampler is not None:
            paid = _samples(means, _spread(problem, sd), stream, sampler)
        else:
            paid = _numbered(law.pay_from_stream(problem, stream, means, leap, **deviations))

        def respond_stream(counts: Array, action: Pull, noise: tuple[()]) -> tuple[Rewards, Array]:
            del noise
            require_form(action, problem.arms, slots)
            return paid(action, earlier_pulls(counts, action)), counts.at[action.arms].add(
                action.times.astype(counts.dtype)
            )

        return Environment(
            lambda key: jnp.zeros(problem.arms, jnp.int32), lambda key: (), respond_stream, stream, **checked
        )

    if sampler is not None:
        several = jax.vmap(sampler)
        one_each = _one_each(means, _spread(problem, sd))

        def respond_one(action: Pull, noise: Array) -> Rewards:
            require_form(action, problem.arms, slots)
            return one_each(action, noise)

        return memoryless(lambda key: several(jax.random.split(key, slots)), respond_one)._replace(**checked)

    def respond(action: Pull, noise: PyTree) -> Rewards | SquaredRewards:
        require_form(action, problem.arms, slots)
        struct = SquaredRewards if has_unknown_variances(problem) and leap > 1 else Rewards

        def pay(noise: PyTree, means: Array, deviations: dict[str, Array], action: Pull) -> tuple[Array, ...]:
            return law.pay(problem, noise, means, action, leap, **deviations)

        # Otherwise XLA:CPU makes the rewards anew for every arm of a lane (LUCB on four arms: 71 core-ns a round, 48).
        return struct(*apart(pay, noise, means, deviations, action))

    return memoryless(lambda key: law.draw(problem, key, slots, leap, means.dtype), respond)._replace(**checked)


def declared_form(algorithm: Algorithm | Pull | None, arms: int) -> tuple[int, int, dict[str, Any]]:
    """Returns the slots and the leap of an algorithm's actions, and an environment's fields for them."""
    require_pull(algorithm)
    idle, problem = form_of(algorithm, idle_pull(1))
    leap = problem.get("leap", 1)
    declared: dict[str, Any] = {"problem": lambda: {"arms": arms, "leap": leap}, "accepts": partial(_accepts, arms)}
    declared["admits"] = partial(_admits, arms, problem.get("answers", arms))
    declared["pulls"] = lambda pull: jnp.sum(pull.times)
    return idle.arms.size, leap, declared


def require_pull(algorithm: Algorithm | Pull | None) -> None:
    """Raises `ValueError` unless the actions of an algorithm are `Pull`."""
    if algorithm is not None:
        action = algorithm.idle if isinstance(algorithm, Algorithm) else algorithm
        require(isinstance(action, Pull), "algorithm", "be an algorithm with actions mab.Pull", algorithm)


def idle_pull(slots: int) -> Pull:
    """Returns the action that pulls nothing."""
    return Pull(jnp.zeros(slots, jnp.int32), jnp.zeros(slots, jnp.int32))


def receive(problem: Problem, action: Pull, rewards: Any) -> Rewards | SquaredRewards:
    """Returns the rewards as arrays; raises `ValueError` unless the action can have this observation."""
    advice = "Write mab.Rewards(sums, action.times), with the sum of the rewards of each slot"
    is_unknown = has_unknown_variances(problem)
    checks.instance("observation", rewards, (Rewards, SquaredRewards) if is_unknown else Rewards, advice=advice)
    shape = action.arms.shape
    times = checks.array("observation.times", rewards.times, shape, kind="int", dtype=jnp.int32)
    is_paid = (known(times) == 0) | (known(times) == known(action.times))
    require(is_paid, "observation.times", "be the times of the action, or 0 where an arm was not pulled", times)
    sums = checks.numbers("observation.sums", rewards.sums, shape, float_dtype(problem))
    require((known(times) > 0) | (known(sums) == 0), "observation.sums", "be 0 where nothing was pulled", sums)
    law = law_of(problem)
    if law.are_sums is not None:
        require(law.are_sums(problem, known(sums), known(times)), "observation.sums", law.sums_are, sums)
    if isinstance(rewards, SquaredRewards):
        squares = checks.numbers("observation.squares", rewards.squares, shape, float_dtype(problem))
        is_possible = (known(squares) >= 0) & ((known(times) > 1) | (known(squares) == 0))
        require(is_possible, "observation.squares", "be at least 0, and 0 for a single reward", squares)
        return SquaredRewards(sums, times, squares)
    if is_unknown:
        expected, advice = "hold one pull per slot", "Write mab.SquaredRewards(sums, times, squares)"
        require(known(times) <= 1, "observation", expected, rewards, advice=advice)
    return Rewards(sums, times)


def earlier_pulls(counts: Array, action: Pull) -> Array:
    """Counts the earlier pulls of each slot's arm, in earlier rounds and slots: int32 (slots,)."""
    is_same = jnp.tril(action.arms[None] == action.arms[:, None], -1)
    return entries(counts, action.arms) + jnp.sum(jnp.where(is_same, action.times[None], 0), axis=1, dtype=jnp.int32)


def _accepts(arms: int, pull: Pull) -> Array:
    """True if every slot is idle or pulls an arm that exists."""
    exists = (pull.arms >= 0) & (pull.arms < arms) & (pull.times > 0)
    return jnp.all(exists | (pull.times == 0))


def _admits(arms: int, answers: int, answer: Array) -> Array:
    """True if the answer is a set of the arms, or the number of an answer that exists."""
    if answer.dtype == bool:
        return jnp.asarray(answer.shape == (arms,))
    return (answer >= 0) & (answer < answers)


def require_form(action: Pull, arms: int, slots: int) -> None:
    """Raises `ValueError` for an action of another shape, or an arm that is known not to exist."""
    # Broadcasting would answer an action of another shape with too little noise.
    shape = action.arms.shape
    expected, advice = (
        f"have arrays of shape {(slots,)}, as the environment was made",
        "environment(instance, algorithm)",
    )
    require(shape == (slots,), "action", expected, shape, advice=f"Write mab.{advice}")
    checks.domain(action, partial(_accepts, arms), f"pull arms of 0..{arms - 1}, as often as its times say")


def _spread(problem: Problem, sd: Any) -> Any:
    """Returns the standard deviations of the rewards: of each arm where they are unknown, otherwise of all."""
    return sd if has_unknown_variances(problem) else scale(problem)


def _one_each(means: Array, spread: float | Array) -> Callable[[Pull, Array], Rewards]:
    """Builds the answer to single pulls with samples of noise; `spread` is one scale, or float (K,)."""

    def respond(action: Pull, noise: Array) -> Rewards:
        noise_scale = entries(spread, action.arms) if isinstance(spread, jax.Array) else spread
        # The selection stands between a product and a sum, so that no compiler rounds them together: the noise of a
        # stream is the same in the programs of all algorithms.
        noise = jnp.where(action.times <= 1, noise_scale * noise, jnp.nan)
        return Rewards(jnp.where(action.times == 0, 0, entries(means, action.arms) + noise), action.times)

    return respond


def _samples(means: Array, spread: float | Array, stream: Key, sampler: Sampler) -> Callable[[Pull, Array], Rewards]:
    one_each = _one_each(means, spread)

    def respond(action: Pull, before: Array) -> Rewards:
        noise = jax.vmap(lambda arm, number: sampler(key_of(stream, arm, number)))(action.arms, before)
        return one_each(action, noise)

    return respond


def _numbered(pay: Callable[[Slots, Array], Slots]) -> Callable[[Pull, Array], Rewards]:
    def respond(action: Pull, before: Array) -> Rewards:
        return Rewards(*pay(action, before))

    return respond
