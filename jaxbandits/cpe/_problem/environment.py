"""The actions of this family, `Pulls` of single arms and `Play` of whole decisions, and the environment for both."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Environment, Key, memoryless
from jaxbandits.checks import known, require
from jaxbandits.cpe._problem.arms import ROUNDING, Arms, GaussianArms, check_bounded, number_of
from jaxbandits.cpe._problem.instances import Instance, check_instance
from jaxbandits.cpe._problem.problems import Problem, arm_count, float_dtype, kind_of
from jaxbandits.numerics.normal import normal_noise
from jaxbandits.numerics.random_bits import word_noise
from jaxbandits.queries import form_of
from jaxbandits.streams import key_of


class Pulls(NamedTuple):
    """Slot q pulls arm `arms[q]`, or none where `arms[q]` = m."""

    arms: Array  # int32 (slots,)


class Play(NamedTuple):
    """One play of a 0/1 decision. Its observation is float (K,): a sample of every arm in it, 0 elsewhere."""

    decision: Array  # int32 (K,)   1 for the arms that are played, otherwise 0; all 0 for no play


def environment(
    instance: Instance, algorithm: Algorithm | Pulls | Play | None = None, *, stream: Key | None = None
) -> Environment:
    """Answers `Pulls` with one sample for each slot, or a `Play` with one sample of every arm in the decision.

    Args:
        instance: the truth, whose arms give the samples. Arms of `gaussian` can only be played: `coci`, `uniform` and
            `clucb`, which make `Pulls`, need samples in [0, 1].
        algorithm: the algorithm that will pull. Its actions say the number of slots, or that it plays whole decisions.
            If None, an action is `Pulls` with one slot. A `Pulls` or a `Play` stands for an algorithm of your own.
        stream: if None, samples are fresh in every round. With a key, sample s of arm i is a function of (stream, i, s)
            only. All algorithms on the same stream then observe the same samples in any order of their pulls (common
            random numbers).

    Returns:
        Environment. Its observation is float (slots,), in the arms' dtype, 0 in an empty slot; for a `Play` float (K,),
        0 where an arm is not in it. Its noise has the same shape and is uniform, or normal for Gaussian arms; with a
        stream it is empty. Its memory is (), with a stream the number of samples of each arm, int32 (K,). Samples
        from a stream are made of 24 random bits in every dtype, and so are fresh uniform ones. Runs in 32 and in 64 bit
        therefore observe the same samples. The mean of a Bernoulli arm is off by less than 6e-8, and a Gaussian sample
        from a stream lies within 5.4 noise_scale of its mean. Cost per round: O(slots V), for a `Play` O(K V).

    Raises:
        ValueError: `stream` is not a key, `instance` is not a valid Instance, its arms cannot be pulled one by one, or
            the algorithm makes other actions.
    """
    check_instance(instance)
    idle, _ = form_of(algorithm, Pulls(jnp.zeros(1, jnp.int32)))
    if stream is not None:
        checks.key("stream", stream)
    problem = instance.problem
    described: dict[str, Any] = {"problem": partial(_description, problem), "admits": partial(_admits, problem)}
    # An algorithm's own play may have more fields.
    if hasattr(idle, "decision") and not isinstance(idle, type):
        checks.array("algorithm.decision", idle.decision, (number_of(instance.arms),), kind="int")
        described["pulls"] = lambda play: jnp.any(play.decision > 0).astype(int)
        return _plays(instance.arms, stream)._replace(**described)
    checks.instance("algorithm", idle, (Pulls, Play))
    slots = checks.array("algorithm.arms", idle.arms, ("slots",), kind="int").size
    expected = "be Arms, whose samples lie in [0, 1], unless the algorithm plays whole decisions"
    is_bounded, kind = not isinstance(instance.arms, GaussianArms), type(instance.arms).__name__
    advice = "Write cpe.environment(instance, algorithm)" if algorithm is None else ""
    require(is_bounded, "instance.arms", expected, kind, advice=advice)
    described["pulls"] = lambda pulls: jnp.sum(pulls.arms < number_of(instance.arms))
    return _pulls(check_bounded(instance.arms, "instance.arms"), slots, stream)._replace(**described)


def made_for(problem: Problem, observations: str | None = None) -> dict[str, Any]:
    """Builds the arguments of `Algorithm` by which an algorithm describes its problem.

    Args:
        problem: problem of the algorithm.
        observations: "binary" for samples that are 0 or 1, "unit" for samples in [0, 1], None for any.
    """
    return {"problem": partial(_description, problem), "receive": partial(_receive, problem, observations)}


def _description(problem: Problem) -> dict[str, Any]:
    return {"arms": arm_count(problem), "problem": problem}


def _receive(problem: Problem, observations: str | None, action: Any, samples: Any) -> Array:
    """Returns the samples as an array; raises `ValueError` unless they can be an observation of the action."""
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
    if kind_of(problem).is_binary:
        admitted &= answer <= 1
    return jnp.all(admitted)


def _accepts_pulls(m: int, action: Any) -> Array:
    """True if every slot pulls an arm that exists, or m, none."""
    return jnp.all((action.arms >= 0) & (action.arms <= m))


def _accepts_play(action: Any) -> Array:
    """True if every arm is played once or not at all."""
    return jnp.all((action.decision == 0) | (action.decision == 1))


def _pulls(arms: Arms, slots: int, stream: Key | None) -> Environment:
    m, dtype, sample = number_of(arms), arms.low.dtype, _sampler(arms)

    accepts = partial(_accepts_pulls, m)

    def answer(pulls: Pulls, noise: Array) -> Array:
        _check_action(pulls, Pulls)
        expected = f"have arms of shape {(slots,)}, as the environment was made"
        fits, advice = pulls.arms.shape == (slots,), "Write cpe.environment(instance, algorithm)"
        require(fits, "action", expected, pulls.arms.shape, advice=advice)
        checks.domain(pulls, accepts, f"pull arms of 0..{m - 1}, or {m} in an empty slot")
        return jnp.where(pulls.arms < m, jax.vmap(sample)(jnp.minimum(pulls.arms, m - 1), noise), 0)

    if stream is None:
        fresh = lambda key: _uniforms(word_noise(key, (slots,)), dtype)  # noqa: E731
        return memoryless(fresh, answer)._replace(accepts=accepts)

    def respond_stream(counts: Array, pulls: Pulls, noise: tuple[()]) -> tuple[Array, Array]:
        del noise
        _check_action(pulls, Pulls)
        bits = jax.vmap(_bits, (None, 0, 0))(stream, pulls.arms, _earlier(counts, pulls))
        return answer(pulls, _uniforms(bits, dtype)), counts.at[pulls.arms].add(1, mode="drop")

    return Environment(lambda key: jnp.zeros(m, jnp.int32), lambda key: (), respond_stream, stream, accepts=accepts)


def _plays(arms: Arms | GaussianArms, stream: Key | None) -> Environment:
    K = number_of(arms)
    dtype = (arms.means if isinstance(arms, GaussianArms) else arms.low).dtype
    arm = jnp.arange(K, dtype=jnp.int32)

    if isinstance(arms, GaussianArms):

        def samples(noise: Array) -> Array:
            return arms.means + arms.noise_scale.astype(dtype) * noise

        def noise_from_bits(bits: Array) -> Array:
            # The uniform number is u = (bits + 1/2) 2^-24. The smaller of u and 1 - u is exact in 32 bit, too.
            bits = (bits >> 8).astype(jnp.int32)
            is_upper = bits >= 2**23
            small = jnp.where(is_upper, 2**24 - 1 - bits, bits).astype(dtype)
            return jnp.where(is_upper, -1, 1).astype(dtype) * ndtri((small + 0.5) * 2**-24)

        def fresh(key: Key) -> Array:
            return normal_noise(key, (K,), dtype)

    else:
        sample = _sampler(arms)

        def samples(noise: Array) -> Array:
            return jax.vmap(sample)(arm, noise)

        def noise_from_bits(bits: Array) -> Array:
            return _uniforms(bits, dtype)

        def fresh(key: Key) -> Array:
            return noise_from_bits(word_noise(key, (K,)))

    def respond_fresh(action: Any, noise: Array) -> Array:
        play = _check_action(action, Play)
        checks.domain(play, _accepts_play, "play every arm once or not at all")
        return jnp.where(play.decision > 0, samples(noise), 0)

    if stream is None:
        return memoryless(fresh, respond_fresh)._replace(accepts=_accepts_play)

    def respond_stream(counts: Array, action: Any, noise: tuple[()]) -> tuple[Array, Array]:
        del noise
        samples = respond_fresh(action, noise_from_bits(jax.vmap(_bits, (None, 0, 0))(stream, arm, counts)))
        return samples, counts + action.decision

    return Environment(
        lambda key: jnp.zeros(K, jnp.int32), lambda key: (), respond_stream, stream, accepts=_accepts_play
    )


@partial(jax.jit, inline=True)
def _shares(arms: Arms) -> tuple[Array, Array]:
    """Returns the cumulative weights of each arm's segments, and True for the arms whose parameters are valid."""
    # The sums end at exactly 1, so no sample can fall into a segment of weight 0 behind the last.
    upto = jnp.cumsum(arms.weight, axis=1)
    upto = upto / upto[:, -1:]
    # Traced arms could not be checked. An arm with invalid parameters must not return a plausible sample.
    in_range = (arms.low >= 0) & (arms.low <= arms.high) & (arms.high <= 1) & (arms.weight >= 0)
    return upto, in_range.all(axis=1) & (jnp.abs(arms.weight.sum(axis=1) - 1) <= ROUNDING)


def _sampler(arms: Arms) -> Callable[[Array, Array], Array]:
    """Returns the function (arm (), uniform number ()) -> sample ()."""
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
    """Returns the action; raises `ValueError` if it is of the other kind. An algorithm's play may have more fields."""
    expected = {Pulls: "Pulls of single arms", Play: "a Play of a whole decision"}[kind]
    fits, advice = all(hasattr(action, name) for name in kind._fields), "Write cpe.environment(instance, algorithm)"
    require(fits, "action", f"be {expected}, as the environment was made", type(action).__name__, advice=advice)
    return action


def _earlier(counts: Array, pulls: Pulls) -> Array:
    """Counts the earlier pulls of each slot's arm, in earlier rounds and slots: int32 (slots,), 0 for no arm."""
    earlier = jnp.tril(pulls.arms[None] == pulls.arms[:, None], -1)
    before = counts.at[pulls.arms].get(mode="fill", fill_value=0) + jnp.sum(earlier, axis=1, dtype=counts.dtype)
    return jnp.where(pulls.arms < counts.shape[0], before, 0)
