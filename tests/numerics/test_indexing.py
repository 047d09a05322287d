"""Entries and places of extremes agree with NumPy's indexing, eagerly, under `jit` and under `vmap`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.numerics import indexing

VALUES = np.random.default_rng(0).integers(0, 5, (6, 9)).astype(float)  # values tie
INDICES = np.array([0, 8, 3, 3, 5, 1], np.int32)


@pytest.mark.parametrize("form", [indexing.entry, indexing.sliced])
def test_entry_and_sliced_read_the_indexed_value(form):
    read = jax.jit(jax.vmap(form))(VALUES, INDICES)
    np.testing.assert_array_equal(read, VALUES[np.arange(6), INDICES])


def test_entry_out_of_range_is_0():
    assert indexing.entry(jnp.asarray(VALUES[0]), jnp.int32(9)) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entry_of_floats_keeps_every_bit_and_its_derivative(dtype):
    values = np.array([-0.0, np.inf, 1 / 3, np.nan, -2.5], dtype)
    read = jax.jit(jax.vmap(indexing.entry, in_axes=(None, 0)))(values, np.arange(5, dtype=np.int32))
    assert np.asarray(read).tobytes() == values.tobytes()
    slopes = jax.jit(jax.grad(indexing.entry))(jnp.ones(5, dtype), jnp.int32(2))
    np.testing.assert_array_equal(slopes, np.arange(5) == 2)


@pytest.mark.parametrize("size", [5, indexing.RANKED, indexing.RANKED + 1])
def test_largest_entries_by_ranks_and_by_sorting_equal_a_stable_sort(size):
    values = np.random.default_rng(size).integers(0, 9, (4, size)).astype(float)  # values tie
    values[1, : size // 2] = -np.inf
    order = np.argsort(-values, axis=1, kind="stable")
    m = size // 2

    def three(row):
        return indexing.ranks(row), indexing.largest_first(row, m), indexing.is_among_largest(row, m)

    ranks, first, among = jax.jit(jax.vmap(three))(values)
    np.testing.assert_array_equal(ranks, np.argsort(order, axis=1))
    np.testing.assert_array_equal(first, np.take_along_axis(values, order[:, :m], axis=1))
    np.testing.assert_array_equal(among, ranks < m)


@pytest.mark.parametrize("size", [1, 9, indexing.FEW, indexing.FEW + 1])
def test_reads_and_extremes_by_a_chain_and_by_reductions_equal_numpy(size):
    values = np.random.default_rng(size).integers(0, 5, (8, size)).astype(float)  # values tie
    values[1, size // 2], values[2, 0], values[3, 1:] = np.nan, np.nan, np.nan
    indices = np.array([0, size - 1, size // 2, -1, size], np.int32)

    def read(row):
        places = indexing.first_argmax(row), indexing.first_argmin(row)
        return indexing.entries(row, jnp.asarray(indices)), indexing.largest(row), indexing.smallest(row), *places

    several, largest, smallest, top, bottom = jax.jit(jax.vmap(read))(values)
    outside = np.zeros((8, 2))  # for indices that do not exist
    np.testing.assert_array_equal(several, np.concatenate([values[:, indices[:3]], outside], axis=1))
    np.testing.assert_array_equal(largest, np.max(values, axis=1))
    np.testing.assert_array_equal(smallest, np.min(values, axis=1))
    np.testing.assert_array_equal(top, np.argmax(values, axis=1))
    np.testing.assert_array_equal(bottom, np.argmin(values, axis=1))


def test_sliced_reads_rows():
    np.testing.assert_array_equal(indexing.sliced(jnp.asarray(VALUES), jnp.int32(4)), VALUES[4])


@pytest.mark.parametrize("form", [indexing.first_largest, indexing.first_largest_in_rows])
def test_first_largest_takes_the_first_of_ties_and_the_last_index_for_nan(form):
    with_nan = np.where(np.arange(9) == 2, np.nan, VALUES)
    np.testing.assert_array_equal(jax.jit(jax.vmap(form))(VALUES), np.argmax(VALUES, axis=1))
    np.testing.assert_array_equal(jax.vmap(form)(with_nan), np.full(6, 8))


def test_is_first_largest_marks_one_place():
    marks = jax.vmap(indexing.is_first_largest)(jnp.asarray(VALUES))
    np.testing.assert_array_equal(marks, np.arange(9) == np.argmax(VALUES, axis=1)[:, None])


def test_first_true_without_a_true_entry_is_the_last_index():
    masks = VALUES > 3
    expected = np.where(masks.any(axis=1), np.argmax(masks, axis=1), 8)
    np.testing.assert_array_equal(jax.vmap(indexing.first_true)(jnp.asarray(masks)), expected)


def test_first_smallest_by_blocks_equals_argmin():
    rng = np.random.default_rng(3)
    for size in (3, 1024, 1025, 4096):
        values = rng.integers(0, 5, (4, size)).astype(float)
        values[1] += 1 + 10 * np.arange(size)  # the smallest is the first
        values[2] = values[1, ::-1]  # the smallest is the last
        values[3] = np.inf
        np.testing.assert_array_equal(jax.jit(jax.vmap(indexing.first_smallest))(values), np.argmin(values, axis=1))


def test_select_chooses_whole_trees():
    new, old = {"a": jnp.ones(2), "b": jnp.int32(1)}, {"a": jnp.zeros(2), "b": jnp.int32(0)}
    for condition, expected in ((True, new), (False, old)):
        chosen = indexing.select(jnp.asarray(condition), new, old)
        jax.tree.map(np.testing.assert_array_equal, chosen, expected)
