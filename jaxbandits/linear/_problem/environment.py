"""The actions of the algorithms, and the environment that answers them."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Environment, Key, PyTree, memoryless
from jaxbandits.checks import is_concrete, known, require
from jaxbandits.linear._problem.instances import Instance, checked_instance
from jaxbandits.noises import Sampler, sampler_of
from jaxbandits.numerics.brownian import increment
from jaxbandits.numerics.linalg import dot
from jaxbandits.numerics.normal import normal_noise
from jaxbandits.numerics.random_bits import uniform_noise
from jaxbandits.queries import form_of
from jaxbandits.streams import key_of


class Pull(NamedTuple):
    """Pulls one arm `times` times. The observation is the sum of the rewards, float ()."""

    arm: Array  # int ()
    times: Array  # int ()


class Step(NamedTuple):
    """Pulls one arm like `Pull`, for a rule with a memory; the environment reads `arm` and `times` alone."""

    arm: Array  # int ()
    times: Array  # int ()   1, or 0 in the idle action
    carried: PyTree  # the rule's memory after this pull; zeros in the idle action


class Allocation(NamedTuple):
    """Pulls arm k `counts[k]` times. The observation is the sum of the rewards of each arm, float (K,)."""

    counts: Array  # int (K,)


class Bridge(NamedTuple):
    """Draws the first part of pulls whose sum is already known.

    The observation is the sum of the next `counts` pulls of each arm, float (K,), given that its next `ahead` pulls sum
    to `ahead_sums`. A simulation may therefore draw an end point first, and the sums before it only where they matter.
    Given both ends of a stretch of pulls, the middle is drawn from its exact conditional law.
    """

    counts: Array  # int (K,)     0 <= counts <= ahead, or any counts >= 0 if ahead is 0
    ahead: Array  # int (K,)      if 0, no sum is known ahead and the pulls are fresh
    ahead_sums: Array  # float (K,)   not read if ahead is 0


Action = Pull | Step | Allocation | Bridge
Noise = Literal["gaussian", "sign", "uniform", "rademacher"]


def environment(
    instance: Instance,
    algorithm: Algorithm | Action | None = None,
    *,
    noise: Noise | Sampler = "gaussian",
    stream: Key | None = None,
) -> Environment:
    """Builds the environment of an instance: a pull of arm a pays x_a.theta plus noise.

    With `noise="gaussian"`, m pulls of arm a sum to N(m x_a.theta, m noise_scale^2), so any number of pulls costs one
    normal variable per arm, exactly in law.

    With `noise="sign"`, a pull of arm a pays +1 with probability p = (1 + x_a.theta)/2 and -1 otherwise, which is
    1-sub-Gaussian. m pulls sum to 2 Binomial(m, p) - m, drawn from that law and not from its normal limit. JAX's
    binomial sampler does so in 64 bit only: in 32 bit, m = 10^7 and p = 0.51 gave a variance 6 per cent too low.

    Theory that needs no more than sub-Gaussian noise holds for the others too: "uniform" on [-sqrt 3, sqrt 3],
    "rademacher" (-1 or 1), or a function (key) -> float () of mean 0 and sub-Gaussian constant 1, each times the
    instance's noise_scale. Sums of several pulls have no closed form there, so a round makes one.

    Args:
        instance: the truth; the observations have the dtype of its arms. Signs do not use its noise_scale.
        algorithm: the algorithm that will pull; its actions are `Pull`, `Step`, `Allocation` or, without signs,
            `Bridge`. An action stands for an algorithm of your own. If None, actions are `Pull`.
        noise: "gaussian", "sign", "uniform", "rademacher", or a function (key) -> float (). Under signs, the
            algorithm's problem says the largest number of pulls of a `Pull`, `leap`; if it does not, 1. More pulls give
            NaN, which ends the run. One pull costs a uniform variable, a sum a binomial one. An `Allocation` may make
            any number of pulls of Gaussian rewards or signs, and none of the others.
        stream: None or a key. If None, every round has fresh noise. With a key, the n-th pull of an arm pays the same
            in every run, at any time, alone or with others. Gaussian sums are then differences of one Brownian path
            (`numerics.brownian`), for up to 2^31 pulls of an arm. Neither a `Bridge` nor binomial sums can be drawn
            this way.

    Returns:
        Environment. Its noise is normal, or as named, () for `Pull` and `Step`, (K,) otherwise. For signs it is a
        uniform variable (), or the round's key if sums are binomial; with a stream there is none. Its memory is (),
        with a stream the number of pulls of each arm, int (K,). Zero pulls of an arm give exactly 0. Cost per round:
        O(1), or O(K); with a stream 64 normal variables per arm, or one draw for other noise.

    Raises:
        ValueError: the instance is not valid, the algorithm has other actions, or `noise` or `stream` is not one of
            these. Under signs, abs(x.theta) > 1 for some arm, or binomial sums are needed without `jax_enable_x64`.
    """
    arms, theta, noise_scale, items = checked_instance(instance)
    if not callable(noise):
        checks.one_of("noise", noise, Noise)
    sampler = None if noise in ("gaussian", "sign") else sampler_of("noise", noise, arms.dtype)
    idle, declared = form_of(algorithm, Pull(jnp.zeros((), int), jnp.zeros((), int)))
    _check_form(idle, noise)
    kind = Pull if isinstance(idle, Step) else type(idle)  # both have the same answers
    leap = checks.whole("leap", declared.get("leap", 1), least=1)
    require(sampler is None or leap == 1, "noise", "be 'gaussian' or 'sign' for an algorithm that leaps", noise)
    is_single = sampler is not None or (noise == "sign" and kind is Pull and leap == 1)
    if stream is not None:
        checks.key("stream", stream)
        can_share = is_single or (noise == "gaussian" and kind is not Bridge)
        require(can_share, "stream", "be None for a Bridge and for binomial sums, which cannot be shared", stream)
    truth = {"arms": instance.arms} if items is None else {"arms": instance.arms, "items": instance.items}
    # Leaps change nothing else, so an environment made without the algorithm answers a leaping one too.
    truth |= {"leap": leap} if noise == "sign" and kind is Pull else {}
    checked: dict[str, Any] = {"problem": lambda: truth, "accepts": partial(_accepts, arms.shape[0])}
    checked["admits"] = partial(_admits, (arms if items is None else items).shape[0])
    checked["pulls"] = pulls_of_action

    def check(action: Any) -> None:
        if not isinstance(action, (Pull, Step) if kind is Pull else kind):
            expected = f"be of type {kind.__name__}, for which the environment was made"
            raise ValueError(
                f"action must {expected}, got {type(action).__name__}. Write linear.environment(instance, algorithm)"
            )
        checks.domain(action, checked["accepts"], f"pull arms of 0..{arms.shape[0] - 1}, each as often as it says")

    def answering(draw: Callable[[Key], Any], respond: Callable[[Any, Any], Array]) -> Environment:
        def respond_checked(action: Any, noise: Any) -> Array:
            check(action)
            return respond(action, noise)

        return memoryless(draw, respond_checked)._replace(**checked)

    def counting(respond: Callable[[Any, Array], Array]) -> Environment:
        """Returns the environment of (action, earlier pulls of its arms) -> observation."""

        def respond_stream(counts: Array, action: Any, noise: tuple[()]) -> tuple[Array, Array]:
            del noise
            check(action)
            if kind is Pull:
                return respond(action, counts[action.arm]), counts.at[action.arm].add(action.times.astype(counts.dtype))
            return respond(action, counts), counts + action.counts.astype(counts.dtype)

        start = lambda key: jnp.zeros(arms.shape[0], int)  # noqa: E731
        return Environment(start, lambda key: (), respond_stream, stream, **checked)

    if noise == "gaussian":
        means = dot(arms, theta)
        if stream is not None:
            return counting(_gaussian_sum_from(stream, kind, means, noise_scale))
        shape = () if kind is Pull else means.shape
        respond = _bridge(means, noise_scale) if kind is Bridge else _gaussian_sum(kind, means, noise_scale)
        return answering(lambda key: normal_noise(key, shape, means.dtype), respond)

    if sampler is not None:
        one = _one_each(dot(arms, theta), noise_scale)
        if stream is not None:
            return counting(lambda action, before: one(action, sampler(key_of(stream, action.arm, before))))
        return answering(sampler, one)

    if is_concrete(arms, theta):
        largest = float(np.abs(np.asarray(arms) @ np.asarray(theta)).max())
        require(largest <= 1, "instance.theta", "give abs(x.theta) <= 1 for every arm x", largest)
    if is_single:
        means = dot(arms, theta)
        if stream is not None:
            return counting(_single_sign_from(stream, means))
        return answering(lambda key: uniform_noise(key, (), means.dtype), _single_sign(means))
    has_64_bit = jnp.result_type(float) == jnp.float64
    require(has_64_bit, "jax_enable_x64", "be on for sums of more than one sign", has_64_bit)
    return answering(lambda key: key, _sign_sum(kind, dot(arms, theta), leap))


def made_for(arms: Any, items: Any = None, **more: Any) -> dict[str, Any]:
    """Returns `problem`, with `more`, and `receive` of an algorithm for these arms; without items, answers are arms."""
    problem = {"arms": arms, "items": arms if items is None else items, **more}
    return {"problem": lambda: problem, "receive": partial(_receive, np.shape(arms)[0], jnp.result_type(arms))}


def declared_form(algorithm: Algorithm | Action | None, arms: Array) -> tuple[type, int, dict[str, Any]]:
    """Returns class and leap of the actions of an algorithm, and the fields of an environment of recorded rewards."""
    idle, declared = form_of(algorithm, Pull(jnp.zeros((), int), jnp.zeros((), int)))
    _check_form(idle, "sign")
    items = declared.get("items", arms)
    fields: dict[str, Any] = {"problem": lambda: {"arms": arms, "items": items}, "pulls": pulls_of_action}
    fields["accepts"], fields["admits"] = partial(_accepts, arms.shape[0]), partial(_admits, jnp.shape(items)[0])
    return Pull if isinstance(idle, Step) else type(idle), declared.get("leap", 1), fields


def pulls_of_action(action: Any) -> Array:
    """Counts the pulls of an action, int ()."""
    return action.times if hasattr(action, "times") else jnp.sum(action.counts)


def _check_form(idle: Any, noise: Noise | Sampler) -> None:
    """Raises `ValueError` unless the environment of this noise answers actions of this class."""
    answered = (Pull, Step)
    if noise in ("gaussian", "sign"):
        answered = (Pull, Step, Allocation, Bridge) if noise == "gaussian" else (Pull, Step, Allocation)
    names = [kind.__name__ for kind in answered]
    expected = f"have actions {', '.join(names[:-1])} or {names[-1]} with noise={noise!r}"
    require(isinstance(idle, answered), "algorithm", expected, idle)


def _receive(K: int, dtype: Any, action: Any, rewards: Any) -> Array:
    """Returns the rewards as an array; raises `ValueError` unless they fit the action."""
    counts = action.times if hasattr(action, "times") else action.counts
    rewards = checks.numbers("observation", rewards, () if hasattr(action, "times") else (K,), dtype)
    require((known(counts) > 0) | (known(rewards) == 0), "observation", "be 0 where nothing was pulled", rewards)
    return rewards


def _accepts(K: int, action: Any) -> Array:
    """True if an action pulls arms that exist, none a negative number of times."""
    if hasattr(action, "times"):
        return ((action.arm >= 0) & (action.arm < K) & (action.times > 0)) | (action.times == 0)
    accepted = action.counts >= 0
    if hasattr(action, "ahead"):
        accepted &= (action.ahead == 0) | ((action.ahead > 0) & (action.counts <= action.ahead))
    return jnp.all(accepted)


def _admits(number: int, answer: Any) -> Array:
    """True if an answer is the index of one of `number` items."""
    return jnp.all((answer >= 0) & (answer < number))


def _pulls_of(kind: type, action: Any, means: Array) -> tuple[Array, Array]:
    """Returns the pulls of an action and the means of its arms, both () for a `Pull`, both (K,) for an `Allocation`."""
    return (action.times, means[action.arm]) if kind is Pull else (action.counts, means)


def _gaussian_sum(kind: type, means: Array, noise_scale: Array) -> Callable[[Any, Array], Array]:
    def respond(action: Any, noise: Array) -> Array:
        counts, mean = _pulls_of(kind, action, means)
        counts = counts.astype(means.dtype)
        return counts * mean + noise_scale * jnp.sqrt(counts) * noise

    return respond


def _gaussian_sum_from(stream: Key, kind: type, means: Array, noise_scale: Array) -> Callable[[Any, Array], Array]:
    def pulled(arm: Array, before: Array, times: Array) -> Array:
        noise = increment(key_of(stream, arm), before, times, means.dtype)
        return times.astype(means.dtype) * means[arm] + noise_scale * noise

    def respond(action: Any, before: Array) -> Array:
        if kind is Pull:
            return pulled(action.arm, before, action.times)
        return jax.vmap(pulled)(jnp.arange(means.shape[0]), before, action.counts)

    return respond


def _single_sign_from(stream: Key, means: Array) -> Callable[[Any, Array], Array]:
    single = _single_sign(means)

    def respond(action: Any, before: Array) -> Array:
        return single(action, jax.random.uniform(key_of(stream, action.arm, before), (), means.dtype))

    return respond


def _bridge(means: Array, noise_scale: Array) -> Callable[[Bridge, Array], Array]:
    def respond(action: Bridge, noise: Array) -> Array:
        # Both fractions come from integers, so that counts == ahead returns ahead_sums bit for bit.
        counts, ahead = (x.astype(means.dtype) for x in (action.counts, jnp.maximum(action.ahead, 1)))
        remaining = (action.ahead - action.counts).astype(means.dtype)
        is_known = action.ahead > 0
        mean = jnp.where(is_known, action.ahead_sums * (counts / ahead), counts * means)
        variance = jnp.where(is_known, counts * (remaining / ahead), counts)
        return mean + noise_scale * jnp.sqrt(variance) * noise

    return respond


def _one_each(means: Array, noise_scale: Array) -> Callable[[Any, Array], Array]:
    def respond(action: Any, noise: Array) -> Array:
        reward = jnp.where(action.times == 0, 0, means[action.arm] + noise_scale * noise)
        return jnp.where(action.times <= 1, reward, jnp.nan)

    return respond


def _single_sign(means: Array) -> Callable[[Pull, Array], Array]:
    def respond(action: Pull, noise: Array) -> Array:
        mean = means[action.arm]
        reward = jnp.where(noise < (1 + mean) / 2, 1, -1) * action.times
        # A traced theta could not be checked, so a mean without a law gives NaN instead of a reward.
        is_lawful = (action.times <= 1) & (jnp.abs(mean) <= 1)
        return jnp.where(is_lawful, reward.astype(means.dtype), jnp.nan)

    return respond


def _sign_sum(kind: type, means: Array, leap: int) -> Callable[[Any, Key], Array]:
    def respond(action: Any, noise: Key) -> Array:
        counts, mean = (x.astype(jnp.float64) for x in _pulls_of(kind, action, means))
        sums = 2 * jax.random.binomial(noise, counts, (1 + mean) / 2) - counts
        is_lawful = counts <= leap if kind is Pull else True
        return jnp.where(is_lawful, sums, jnp.nan).astype(means.dtype)

    return respond
