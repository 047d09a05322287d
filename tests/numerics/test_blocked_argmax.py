import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxbandits.numerics import blocked_argmax

LEAST = np.finfo(float).min


def expected(values):
    """Returns leader, challenger and their values, from a stable sort."""
    order = np.argsort(-np.asarray(values), kind="stable")
    return (
        order[0],
        values[order[0]],
        values[order[1]] if len(order) > 1 else LEAST,
        order[1] if len(order) > 1 else None,
    )


def check(leader, values):
    index, value, runner_up, challenger = expected(values)
    assert (leader.index, leader.value, leader.runner_up) == (index, value, runner_up)
    if challenger is not None:
        assert leader.challenger == challenger


def test_ten_thousand_updates_with_many_ties():
    n, steps = 37, 10_000
    rng = np.random.default_rng(0)
    start = rng.integers(0, 9, n).astype(float)
    indices = rng.integers(0, n + 20, steps).astype(np.int32)  # n and more change nothing
    values = np.where(rng.random(steps) < 0.1, LEAST, rng.integers(0, 9, steps))

    @jax.jit
    def run(start, indices, values):
        def one(blocks, change):
            blocks = blocked_argmax.update(blocks, *change)
            return blocks, (blocked_argmax.leader(blocks), blocked_argmax.read(blocks, change[0] % n))

        return lax.scan(one, blocked_argmax.build(start), (indices, values))

    end, (leaders, read) = jax.tree.map(np.asarray, run(start, indices, values))
    current = start.copy()
    for step in range(steps):
        if indices[step] < n:
            current[indices[step]] = values[step]
        check(jax.tree.map(lambda x, step=step: x[step], leaders), current)
        assert read[step] == current[indices[step] % n]
    rebuilt = jax.jit(blocked_argmax.build)(current)
    for old, new in zip(jax.tree.leaves(end), jax.tree.leaves(rebuilt), strict=True):
        np.testing.assert_array_equal(old, new)


def test_code_for_accelerators_finds_the_leaders(monkeypatch):
    """Runs the code for accelerators, which scans all entries, on a CPU."""
    monkeypatch.setattr(blocked_argmax, "_update_in_blocks", blocked_argmax._update_in_all)
    monkeypatch.setattr(blocked_argmax, "_leader_of_blocks", lambda one: blocked_argmax._leaders_of_all(one)[0])
    values = np.random.default_rng(2).integers(0, 5, (200, 21)).astype(float)
    indices = np.random.default_rng(3).integers(0, 25, (200, 2)).astype(np.int32)  # 21 and more change nothing

    @jax.jit
    @jax.vmap
    def changed(values, indices):
        blocks = blocked_argmax.update(blocked_argmax.build(jnp.zeros(21)), jnp.arange(21, dtype=jnp.int32), values)
        blocks = blocked_argmax.update(blocks, indices[0], jnp.asarray(4.0))
        return blocked_argmax.leader(blocked_argmax.update(blocks, indices[1], jnp.finfo(float).min))

    leaders = jax.tree.map(np.asarray, changed(values, indices))
    for n, current in enumerate(values):
        for index, value in zip(indices[n], (4.0, LEAST), strict=True):
            current[index : index + 1] = value
        check(jax.tree.map(lambda x, n=n: x[n], leaders), current)
    several = [blocked_argmax.build(jnp.asarray(row)) for row in values[:3]]
    for leader, row in zip(jax.jit(blocked_argmax._leaders_of_all)(*several), values, strict=False):
        check(jax.tree.map(np.asarray, leader), row)


@pytest.mark.parametrize(("n", "width"), [(1, None), (2, None), (3, 1), (9, 4), (9, 16), (1000, None)])
def test_leader_of_blocks_of_any_width(n, width):
    values = np.random.default_rng(1).integers(0, max(2, n // 2), n).astype(float)
    leader = jax.jit(lambda values: blocked_argmax.leader(blocked_argmax.build(values, width)))(values)
    check(jax.tree.map(np.asarray, leader), values)


def test_default_width_is_the_power_of_two_next_to_the_root():
    assert [blocked_argmax.build(jnp.zeros(n)).values.shape for n in (1000, 10_000)] == [(32, 32), (79, 128)]


def test_several_updates_at_once_equal_single_ones():
    start = np.arange(10.0)
    indices, values = jnp.array([3, 12, 7, 3], jnp.int32), jnp.array([20.0, 99.0, 30.0, 20.0])
    together = blocked_argmax.update(blocked_argmax.build(jnp.asarray(start)), indices, values)
    start[[3, 7]] = 20.0, 30.0
    for old, new in zip(
        jax.tree.leaves(together), jax.tree.leaves(blocked_argmax.build(jnp.asarray(start))), strict=True
    ):
        np.testing.assert_array_equal(old, new)


def test_an_index_beyond_the_last_changes_no_bit():
    before = blocked_argmax.build(jnp.asarray([3.0, 1.0, 2.0, 5.0, 4.0]))
    for index in (5, 6, 7, 8, 1000):  # the first three are padding
        after = blocked_argmax.update(before, jnp.asarray(index, jnp.int32), jnp.asarray(9.0))
        for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
            np.testing.assert_array_equal(old, new)
