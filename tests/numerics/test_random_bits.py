import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32

from jaxbandits.numerics import random_bits
from jaxbandits.numerics.platforms import compiled_for
from jaxbandits.numerics.random_bits import bits, fold_in, fold_in_each, uniform, uniform_from_bits, uniform_in_block


@pytest.mark.parametrize("number", [1, 2, 7])
def test_words_are_the_same_in_both_precisions(number):
    key = jax.random.key(3)
    pairs = jax.random.bits(key, (-(-number // 2),), jnp.uint64)
    expected = np.concatenate([pairs >> 32, pairs & 0xFFFFFFFF])[:number]
    for has_64_bits in (True, False):
        with jax.enable_x64(has_64_bits):
            drawn = bits(key, number)
        assert drawn.dtype == jnp.uint32
        np.testing.assert_array_equal(drawn, expected)


def test_words_of_other_generators_are_their_bits():
    key = jax.random.key(3, impl="rbg")
    np.testing.assert_array_equal(bits(key, 5), jax.random.bits(key, (5,), jnp.uint32))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_uniform_numbers_are_multiples_below_one(dtype):
    drawn = np.asarray(uniform_from_bits(bits(jax.random.key(0), 50_000), dtype))
    assert drawn.dtype == dtype
    np.testing.assert_array_equal(drawn * 2**24 % 1, 0)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 5 * (1 / 12 / 50_000) ** 0.5


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5)])
def test_uniform_has_the_bits_of_jax(shape, dtype):
    for key in (jax.random.key(7), jax.random.key(7, impl="rbg")):
        drawn = jax.jit(lambda key: uniform(key, shape, dtype))(key)
        assert drawn.dtype == dtype
        np.testing.assert_array_equal(drawn, jax.random.uniform(key, shape, dtype))


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_folded_keys_have_the_bits_of_jax(impl, is_kept):
    keys = jax.random.split(jax.random.key(7, impl=impl), 20)
    numbers = np.array([0, 1, 2**31 - 1, *range(2, 19)], np.int32)
    for number, key in zip(numbers, keys, strict=True):
        ours, theirs = random_bits.folded(key, jnp.asarray(number), is_kept=is_kept), jax.random.fold_in(key, number)
        np.testing.assert_array_equal(jax.random.key_data(ours), jax.random.key_data(theirs))
        assert ours.dtype == theirs.dtype


def test_blocks_of_uniform_numbers_have_counters_of_their_own():
    for key in (jax.random.key(7), jax.random.key(7, impl="rbg")):
        blocks = [np.asarray(uniform_in_block(key, jnp.uint32(n), (6,), jnp.float64)) for n in range(3)]
        assert np.unique(blocks).size == 18
    words = jnp.array([2] * 6 + list(range(6)), jnp.uint32)  # block 2, and the numbers in it
    high, low = np.split(np.asarray(threefry_2x32(jax.random.key_data(jax.random.key(7)), words)).astype(np.uint64), 2)
    expected = ((high << np.uint64(32) | low) >> np.uint64(12)) * 2.0**-52
    np.testing.assert_array_equal(uniform_in_block(jax.random.key(7), jnp.uint32(2), (6,), jnp.float64), expected)
    for dtype in (jnp.float32, jnp.float64):
        first = uniform_in_block(jax.random.key(7), jnp.uint32(0), (2, 3), dtype)
        np.testing.assert_array_equal(first, uniform(jax.random.key(7), (2, 3), dtype))


def test_uniform_has_the_bits_of_jax_without_64_bits():
    key = jax.random.key(7)
    with jax.enable_x64(False):
        np.testing.assert_array_equal(uniform(key, (6,), jnp.float32), jax.random.uniform(key, (6,), jnp.float32))


@pytest.mark.parametrize("generator", ["threefry2x32", "rbg", "unsafe_rbg"])
def test_keys_that_are_folded_once_are_those_of_jax(generator):
    key, numbers = jax.random.key(3, impl=generator), [0, 1, 5, 2**31 - 1]
    expected = [jax.random.key_data(jax.random.fold_in(key, number)) for number in numbers]

    def one_by_one(key):
        return [jax.random.key_data(fold_in(key, jnp.int32(number))) for number in numbers]

    def together(key):
        return list(map(jax.random.key_data, fold_in_each(key, numbers)))

    for fold in (one_by_one, together, jax.jit(one_by_one), jax.jit(together)):
        for platform in ("cpu", "gpu", None):
            with compiled_for(platform):
                np.testing.assert_array_equal(fold(key), expected)
