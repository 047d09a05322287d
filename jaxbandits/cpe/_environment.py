"""The action of all algorithms of this family, and who answers it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Environment, Key
from jaxbandits.cpe._arms import ROUNDING
from jaxbandits.cpe._instances import Instance, check_instance
from jaxbandits.numbering import Numbered, key_of, opened


class Pulls(NamedTuple):
    """Slot q pulls arm `arms[q]`, or none where `arms[q]` = m."""

    arms: Array  # int32 (leap,)


def environment(instance: Instance, *, leap: int = 1, stream: Key | None = None) -> Environment:
    """Answers `Pulls` with one sample for each slot.

    Args:
        instance: the truth, of which the arms are drawn from.
        leap: slots of an action, that of the algorithm: a Python int, at least 1.
        stream: None for fresh samples in every round. With a key, sample s of arm i is a function of (stream, i, s)
            and nothing else, so that all algorithms that get the same stream see the same samples in any order of
            their pulls: common random numbers. Actions must be `numbered`.

    Returns:
        Environment. Its noise is uniform (leap,), or nothing with a stream; its observation is float (leap,), in the
        arms' dtype, 0 in an empty slot. A sample is made from 24 random bits in every dtype, so runs in 32 and in 64
        bit see the same samples; the mean of a Bernoulli arm is off by less than 6e-8. Cost per round: O(leap V).

    Raises:
        ValueError: `leap` is not a positive int, `stream` is no key, or the instance is not one.
    """
    check_instance(instance)
    checks.whole("leap", leap, least=1)
    if stream is not None:
        checks.key("stream", stream)
    arms = instance.arms
    m, dtype = arms.low.shape[0], arms.low.dtype
    # Ends at exactly 1, so no sample can fall into a segment of weight 0 behind the last.
    upto = jnp.cumsum(arms.weight, axis=1)
    upto = upto / upto[:, -1:]
    # Traced arms could not be checked: what has no law must not pass for a sample.
    in_range = (arms.low >= 0) & (arms.low <= arms.high) & (arms.high <= 1) & (arms.weight >= 0)
    lawful = in_range.all(axis=1) & (jnp.abs(arms.weight.sum(axis=1) - 1) <= ROUNDING)

    def uniforms(bits: Array) -> Array:
        return (bits >> 8).astype(dtype) * 2**-24

    def sample(arm: Array, u: Array) -> Array:
        i = jnp.minimum(arm, m - 1)
        c = jnp.sum(upto[i] <= u, dtype=jnp.int32)
        before = jnp.where(c > 0, upto[i, c - 1], 0)
        low, high = arms.low[i, c], arms.high[i, c]
        x = low + (high - low) * ((u - before) / (upto[i, c] - before))
        return jnp.where(arm < m, jnp.where(lawful[i], x, jnp.nan), 0)

    def respond_fresh(pulls: Pulls, noise: Array) -> Array:
        return jax.vmap(sample)(pulls.arms, noise)

    if stream is None:
        return Environment(lambda key: uniforms(jax.random.bits(key, (leap,), jnp.uint32)), respond_fresh)

    def draw(arm: Array, before: Array) -> Array:
        return jax.random.bits(key_of(stream, arm, before), (), jnp.uint32)

    def respond_stream(action: Numbered, noise: tuple[()]) -> Array:
        del noise
        pulls, before = opened(action)
        return jax.vmap(sample)(pulls.arms, uniforms(jax.vmap(draw)(pulls.arms, before)))

    return Environment(lambda key: (), respond_stream, stream)


def pulled_before(counts: Array, pulls: Pulls) -> Array:
    """How often the arm of each slot was pulled before, in earlier rounds and slots: int32 (leap,), 0 for no arm."""
    earlier = jnp.tril(pulls.arms == pulls.arms[:, None], -1)
    before = counts.at[pulls.arms].get(mode="fill", fill_value=0) + jnp.sum(earlier, axis=1, dtype=counts.dtype)
    return jnp.where(pulls.arms < counts.shape[0], before, 0)
