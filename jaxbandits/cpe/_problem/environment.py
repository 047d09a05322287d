"""Who answers the actions of this family: `Pulls` of single arms, and `Play` of whole decisions."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri

from jaxbandits import checks
from jaxbandits.base import Array, Environment, Key
from jaxbandits.checks import known, require
from jaxbandits.cpe._problem.arms import ROUNDING, Arms, GaussianArms, check_bounded, number_of
from jaxbandits.cpe._problem.instances import Instance, check_instance
from jaxbandits.cpe._problem.play import Play
from jaxbandits.cpe._problem.problems import Enumerated, Graphic, Problem, arm_count, float_dtype
from jaxbandits.streams import Numbered, key_of, opened, plain


class Pulls(NamedTuple):
    """Slot q pulls arm `arms[q]`, or none where `arms[q]` = m."""

    arms: Array  # int32 (leap,)


def environment(
    instance: Instance, action: type[Pulls] | type[Play] = Pulls, *, leap: int = 1, stream: Key | None = None
) -> Environment:
    """Answers `Pulls` with one sample for each slot, or a `Play` with one sample of every arm in the decision.

    Args:
        instance: the truth, of which the arms are drawn from. Arms of `gaussian` can be played only: what `Pulls` are
            for (`coci`, `uniform`, `clucb`) needs samples in [0, 1].
        action: `Pulls` or `Play`, what the algorithm does.
        leap: slots of `Pulls`, that of the algorithm: a Python int, at least 1; 1 for a `Play`.
        stream: None for fresh samples in every round. With a key, sample s of arm i is a function of (stream, i, s)
            and nothing else, so that all algorithms that get the same stream see the same samples in any order of
            their pulls: common random numbers. `Pulls` must be `numbered`; a `Play` says itself which samples are next.

    Returns:
        Environment. Its observation is float (leap,), in the arms' dtype, 0 in an empty slot; for a `Play` float (K,),
        0 where an arm is not in it. Its noise is as large, uniform or, for Gaussian arms, normal; with a stream
        nothing. From a stream a sample is made of 24 random bits in every dtype, and so are fresh uniform ones, so that
        runs in 32 and in 64 bit see the same samples; the mean of a Bernoulli arm is off by less than 6e-8, and a
        Gaussian sample lies within 5.4 noise_scale of its mean. Cost per round: O(leap V), for a `Play` O(K V).

    Raises:
        ValueError: `leap` is not a positive int, `stream` is no key, the instance is not one, or its arms do not fit
            the action.
    """
    check_instance(instance)
    require(action in (Pulls, Play), "action", "be cpe.Pulls or cpe.Play", action)
    checks.whole("leap", leap, least=1)
    if stream is not None:
        checks.key("stream", stream)
    said: dict[str, Any] = {"problem": partial(_said, instance.problem), "admits": partial(_admits, instance.problem)}
    if action is Play:
        require(leap == 1, "leap", "be 1 for plays", leap)
        return _plays(instance.arms, stream)._replace(**said)
    return _pulls(check_bounded(instance.arms, "instance.arms"), leap, stream)._replace(**said)


def made_for(problem: Problem, observations: str | None = None) -> dict[str, Any]:
    """What an algorithm for a problem says of itself.

    Args:
        problem: that it was made for.
        observations: "binary" for samples that are 0 or 1, "unit" for samples in [0, 1], None for any.
    """
    return {"problem": partial(_said, problem), "receive": partial(_receive, problem, observations)}


def _said(problem: Problem) -> dict[str, Any]:
    return {"arms": arm_count(problem), "problem": problem}


def _receive(problem: Problem, observations: str | None, action: Any, samples: Any) -> Array:
    """The samples as an array; raises `ValueError` unless an action can be answered so."""
    m, dtype = arm_count(problem), float_dtype(problem)
    pulled = known(action.arms) < m if hasattr(action, "arms") else known(action.decision) > 0
    bounds = {} if observations is None else {"least": 0, "most": 1}
    samples = checks.numbers("observation", samples, np.shape(pulled), dtype, **bounds)
    require(pulled | (known(samples) == 0), "observation", "be 0 where nothing was pulled", samples)
    if observations == "binary":
        is_bit = (known(samples) == 0) | (known(samples) == 1)
        require(is_bit, "observation", "hold 0 or 1 for every arm with observations='binary'", samples)
    return samples


def _admits(problem: Problem, answer: Any) -> Array:
    """True if no level is negative, and no arm of a 0/1 decision is taken more than once."""
    admitted = answer >= 0
    if isinstance(problem, (Enumerated, Graphic)):
        admitted &= answer <= 1
    return jnp.all(admitted)


def _accepts_pulls(m: int, action: Any) -> Array:
    """True if every slot pulls an arm that exists, or m, none."""
    arms = plain(action).arms
    return jnp.all((arms >= 0) & (arms <= m))


def _accepts_play(action: Any) -> Array:
    """True if every arm is played once or not at all."""
    play = plain(action)
    return jnp.all(((play.decision == 0) | (play.decision == 1)) & (play.index >= 0))


def _pulls(arms: Arms, leap: int, stream: Key | None) -> Environment:
    m, dtype, sample = number_of(arms), arms.low.dtype, _sampler(arms)

    accepts = partial(_accepts_pulls, m)

    def answer(pulls: Pulls, noise: Array) -> Array:
        checks.domain(pulls, accepts, f"pull arms of 0..{m - 1}, or {m} in an empty slot")
        return jnp.where(pulls.arms < m, jax.vmap(sample)(jnp.minimum(pulls.arms, m - 1), noise), 0)

    def respond_fresh(pulls: Pulls, noise: Array) -> Array:
        _check_action(pulls, Pulls)
        return answer(pulls, noise)

    if stream is None:
        return Environment(
            lambda key: _uniforms(jax.random.bits(key, (leap,), jnp.uint32), dtype), respond_fresh, accepts=accepts
        )

    def respond_stream(action: Numbered, noise: tuple[()]) -> Array:
        del noise
        pulls, before = opened(action)
        _check_action(pulls, Pulls)
        return answer(pulls, _uniforms(jax.vmap(_bits, (None, 0, 0))(stream, pulls.arms, before), dtype))

    return Environment(lambda key: (), respond_stream, stream, accepts=accepts)


def _plays(arms: Arms | GaussianArms, stream: Key | None) -> Environment:
    K = number_of(arms)
    dtype = (arms.means if isinstance(arms, GaussianArms) else arms.low).dtype
    every = jnp.arange(K, dtype=jnp.int32)

    if isinstance(arms, GaussianArms):

        def samples(noise: Array) -> Array:
            return arms.means + arms.noise_scale.astype(dtype) * noise

        def of_bits(bits: Array) -> Array:
            # The number is (bits + 1/2) 2^-24, or 1 less it where that is smaller: so it is exact in 32 bit, too.
            bits = (bits >> 8).astype(jnp.int32)
            is_upper = bits >= 2**23
            small = jnp.where(is_upper, 2**24 - 1 - bits, bits).astype(dtype)
            return jnp.where(is_upper, -1, 1).astype(dtype) * ndtri((small + 0.5) * 2**-24)

        def fresh(key: Key) -> Array:
            return jax.random.normal(key, (K,), dtype)

    else:
        sample = _sampler(arms)

        def samples(noise: Array) -> Array:
            return jax.vmap(sample)(every, noise)

        def of_bits(bits: Array) -> Array:
            return _uniforms(bits, dtype)

        def fresh(key: Key) -> Array:
            return of_bits(jax.random.bits(key, (K,), jnp.uint32))

    def respond_fresh(action: Any, noise: Array) -> Array:
        play = _check_action(plain(action), Play)
        checks.domain(play, _accepts_play, "play every arm once or not at all")
        return jnp.where(play.decision > 0, samples(noise), 0)

    if stream is None:
        return Environment(fresh, respond_fresh, accepts=_accepts_play)

    def respond_stream(action: Any, noise: tuple[()]) -> Array:
        del noise
        return respond_fresh(action, of_bits(jax.vmap(_bits, (None, 0, 0))(stream, every, plain(action).index)))

    return Environment(lambda key: (), respond_stream, stream, accepts=_accepts_play)


@partial(jax.jit, inline=True)
def _shares(arms: Arms) -> tuple[Array, Array]:
    """The weights of an arm's segments up to each, and which arms have a law."""
    # Ends at exactly 1, so no sample can fall into a segment of weight 0 behind the last.
    upto = jnp.cumsum(arms.weight, axis=1)
    upto = upto / upto[:, -1:]
    # Traced arms could not be checked: what has no law must not pass for a sample.
    in_range = (arms.low >= 0) & (arms.low <= arms.high) & (arms.high <= 1) & (arms.weight >= 0)
    return upto, in_range.all(axis=1) & (jnp.abs(arms.weight.sum(axis=1) - 1) <= ROUNDING)


def _sampler(arms: Arms) -> Callable[[Array, Array], Array]:
    """The sample of an arm () of a uniform number ()."""
    upto, lawful = _shares(arms)

    def sample(i: Array, u: Array) -> Array:
        c = jnp.sum(upto[i] <= u, dtype=jnp.int32)
        before = jnp.where(c > 0, upto[i, c - 1], 0)
        low, high = arms.low[i, c], arms.high[i, c]
        x = low + (high - low) * ((u - before) / (upto[i, c] - before))
        return jnp.where(lawful[i], x, jnp.nan)

    return sample


def _uniforms(bits: Array, dtype: Any) -> Array:
    return (bits >> 8).astype(dtype) * 2**-24


def _bits(stream: Key, arm: Array, number: Array) -> Array:
    return jax.random.bits(key_of(stream, arm, number), (), jnp.uint32)


def _check_action(action: Any, kind: type) -> Any:
    """The action; raises `ValueError` where it is of the other kind. Plays of an algorithm may carry more fields."""
    advice = {
        Pulls: "Pulls of single arms, with samples in [0, 1]; give action=cpe.Play for whole decisions",
        Play: "a Play of a whole decision; COCI, uniform and CLUCB make Pulls, whose samples must lie in [0, 1]",
    }
    fits = all(hasattr(action, name) for name in kind._fields)
    require(fits, "action", f"be {advice[kind]}", type(action).__name__)
    return action


def pulled_before(counts: Array, pulls: Pulls) -> Array:
    """How often the arm of each slot was pulled before, in earlier rounds and slots: int32 (leap,), 0 for no arm."""
    earlier = jnp.tril(pulls.arms[None] == pulls.arms[:, None], -1)
    before = counts.at[pulls.arms].get(mode="fill", fill_value=0) + jnp.sum(earlier, axis=1, dtype=counts.dtype)
    return jnp.where(pulls.arms < counts.shape[0], before, 0)
