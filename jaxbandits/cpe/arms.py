"""The arms of an instance: laws of samples in [0, 1], and the environment that draws from them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Array, Environment, Key
from jaxbandits.checks import known, require
from jaxbandits.cpe.problem import Pulls, floats

ROUNDING = 1e-6  # admitted in the sum of an arm's weights


class Arms(NamedTuple):
    """m laws on [0, 1], the truth: never given to a factory.

    A sample of arm i falls into segment c with probability weight[i, c], and is uniform on [low, high] there.
    """

    low: Array  # float (m, V)
    high: Array  # float (m, V)
    weight: Array  # float (m, V)   0 for a segment that is not there


# Laws


def bernoulli(p: Any, *, dtype: Any = None) -> Arms:
    """Samples 1 with probability p_i, else 0.

    Args:
        p: (m,), in [0, 1].
        dtype: dtype of the samples; by default JAX's own.

    Returns:
        Arms.

    Raises:
        ValueError: `p` is not a vector in [0, 1].
    """
    p = _vector("p", p, dtype)
    values = jnp.broadcast_to(jnp.asarray([1, 0], p.dtype), (p.shape[0], 2))
    return Arms(values, values, jnp.stack([p, 1 - p], axis=1))


def uniform_arms(low: Any, high: Any, *, dtype: Any = None) -> Arms:
    """Samples uniform on [low_i, high_i].

    Args:
        low: (m,), in [0, 1].
        high: (m,), in [0, 1], at least `low`.
        dtype: dtype of the samples; by default JAX's own.

    Returns:
        Arms.

    Raises:
        ValueError: the shapes differ or a value is out of range.
    """
    low, high = _vector("low", low, dtype), _vector("high", high, dtype)
    require(high.shape == low.shape, "high", f"have shape {low.shape}", high.shape)
    _check_order("high", low, high)
    return Arms(jnp.asarray(low[:, None]), jnp.asarray(high[:, None]), jnp.ones((low.shape[0], 1), low.dtype))


def discrete(values: Any, weights: Any, *, dtype: Any = None) -> Arms:
    """Samples values[i, c] with probability weights[i, c].

    Args:
        values: (m, V), in [0, 1].
        weights: (m, V), at least 0, each row summing to 1 within 1e-6.
        dtype: dtype of the samples; by default JAX's own.

    Returns:
        Arms.

    Raises:
        ValueError: the shapes differ or a value is out of range.
    """
    values, weights = floats(values, dtype), floats(weights, dtype)
    require(values.ndim == 2, "values", "have shape (m, V)", values.shape)
    require(weights.shape == values.shape, "weights", f"have shape {values.shape}", weights.shape)
    _check_unit("values", values)
    _check_weights("weights", weights)
    values = jnp.asarray(values)
    return Arms(values, values, jnp.asarray(weights))


def constant(values: Any, *, dtype: Any = None) -> Arms:
    """Samples that are always values[i]: a run without noise.

    Args:
        values: (m,), in [0, 1].
        dtype: dtype of the samples; by default JAX's own.

    Returns:
        Arms.

    Raises:
        ValueError: `values` is not a vector in [0, 1].
    """
    values = _vector("values", values, dtype)
    return uniform_arms(values, values, dtype=values.dtype)


def stack_arms(*parts: Arms) -> Arms:
    """The arms of all parts, in their order: laws of different kinds in one instance.

    Args:
        *parts: Arms of one dtype, with any numbers of segments.

    Returns:
        Arms.
    """
    width = max(part.low.shape[1] for part in parts)
    padded = [jax.tree.map(lambda field: jnp.pad(field, ((0, 0), (0, width - field.shape[1]))), part) for part in parts]
    return jax.tree.map(lambda *fields: jnp.concatenate(fields), *padded)


def means(arms: Arms) -> Array:
    """The mean of each arm, float (m,)."""
    return jnp.sum(arms.weight * (arms.low + arms.high) / 2, axis=1)


def variances(arms: Arms) -> Array:
    """The variance of each arm, float (m,)."""
    middle = (arms.low + arms.high) / 2
    spread = (arms.high - arms.low) ** 2 / 12 + (middle - means(arms)[:, None]) ** 2
    return jnp.sum(arms.weight * spread, axis=1)


# The environment


def environment(arms: Arms, *, block: int = 1, stream: Key | None = None) -> Environment:
    """Answers `Pulls` with one sample for each slot.

    Args:
        arms: the m laws.
        block: slots of an action, that of the algorithm: a Python int, at least 1.
        stream: None for fresh samples in every round. With a key, sample s of arm i is a function of (stream, i, s)
            and nothing else, so that all algorithms that get the same stream see the same samples, whatever the order
            of their pulls: common random numbers. Fold it from the number of the replicate, not of the task.

    Returns:
        Environment. Its noise is uniform (block,), or nothing with a stream; its observation is float (block,), in the
        arms' dtype, 0 in an empty slot. A sample is made from 24 random bits in every dtype, so runs in 32 and in 64
        bit see the same samples; the mean of a Bernoulli arm is off by less than 6e-8. Cost per round: O(block V).

    Raises:
        ValueError: `block` is not a positive int, or the arms are no laws on [0, 1].
    """
    require(isinstance(block, int) and block >= 1, "block", "be a positive int", block)
    _check_arms(arms)
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
        return Environment(lambda key: uniforms(jax.random.bits(key, (block,), jnp.uint32)), respond_fresh)

    def draw(arm: Array, index: Array) -> Array:
        return jax.random.bits(jax.random.fold_in(jax.random.fold_in(stream, arm), index), (), jnp.uint32)

    def respond_stream(pulls: Pulls, noise: tuple[()]) -> Array:
        del noise
        return jax.vmap(sample)(pulls.arms, uniforms(jax.vmap(draw)(pulls.arms, pulls.index)))

    return Environment(lambda key: (), respond_stream)


# Checks


def _check_arms(arms: Arms) -> None:
    shape = jnp.shape(arms.low)
    require(len(shape) == 2, "arms.low", "have shape (m, V)", shape)
    require(jnp.shape(arms.high) == shape, "arms.high", f"have shape {shape}", jnp.shape(arms.high))
    require(jnp.shape(arms.weight) == shape, "arms.weight", f"have shape {shape}", jnp.shape(arms.weight))
    _check_unit("arms.low", arms.low)
    _check_unit("arms.high", arms.high)
    _check_order("arms.high", arms.low, arms.high)
    _check_weights("arms.weight", arms.weight)


def _vector(name: str, values: Any, dtype: Any) -> Array | np.ndarray:
    vector = floats(values, dtype)
    require(vector.ndim == 1, name, "have shape (m,)", vector.shape)
    _check_unit(name, vector)
    return vector


def _check_unit(name: str, values: Array | np.ndarray) -> None:
    require((known(values) >= 0) & (known(values) <= 1), name, "lie in [0, 1]", values)


def _check_order(name: str, low: Array | np.ndarray, high: Array | np.ndarray) -> None:
    require(known(high) >= known(low), name, "be at least low", high)


def _check_weights(name: str, weights: Array | np.ndarray) -> None:
    require(known(weights) >= 0, name, "be at least 0", weights)
    require(abs(known(weights).sum(axis=1) - 1) <= ROUNDING, name, "sum to 1 for every arm", weights)
