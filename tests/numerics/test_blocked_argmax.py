import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxbandits.numerics import blocked_argmax

LEAST = np.finfo(float).min


def expected(values):
    """Leader, challenger and their values, from a stable sort."""
    order = np.argsort(-np.asarray(values), kind="stable")
    return (
        order[0],
        values[order[0]],
        values[order[1]] if len(order) > 1 else LEAST,
        order[1] if len(order) > 1 else None,
    )


def check(found, values):
    index, value, runner_up, challenger = expected(values)
    assert (found.index, found.value, found.runner_up) == (index, value, runner_up)
    if challenger is not None:
        assert found.challenger == challenger


def test_ten_thousand_updates_with_many_ties():
    n, steps = 37, 10_000
    rng = np.random.default_rng(0)
    start = rng.integers(0, 9, n).astype(float)
    places = rng.integers(0, n + 20, steps).astype(np.int32)  # beyond n: nothing changes
    values = np.where(rng.random(steps) < 0.1, LEAST, rng.integers(0, 9, steps))

    @jax.jit
    def run(start, places, values):
        def one(found, change):
            found = blocked_argmax.update(found, *change)
            return found, (blocked_argmax.leader(found), blocked_argmax.read(found, change[0] % n))

        return lax.scan(one, blocked_argmax.build(start), (places, values))

    end, (leaders, read) = jax.tree.map(np.asarray, run(start, places, values))
    current = start.copy()
    for step in range(steps):
        if places[step] < n:
            current[places[step]] = values[step]
        check(jax.tree.map(lambda x, step=step: x[step], leaders), current)
        assert read[step] == current[places[step] % n]
    rebuilt = jax.jit(blocked_argmax.build)(current)
    for old, new in zip(jax.tree.leaves(end), jax.tree.leaves(rebuilt), strict=True):
        np.testing.assert_array_equal(old, new)


def test_accelerators_look_at_all_entries_of_a_few(monkeypatch):
    """What they run, run here."""
    monkeypatch.setattr(blocked_argmax, "_update_in_blocks", blocked_argmax._update_in_all)
    monkeypatch.setattr(blocked_argmax, "_leader_of_blocks", lambda one: blocked_argmax._leaders_of_all(one)[0])
    values = np.random.default_rng(2).integers(0, 5, (200, 21)).astype(float)
    places = np.random.default_rng(3).integers(0, 25, (200, 2)).astype(np.int32)  # 21 and more: nothing changes

    @jax.jit
    @jax.vmap
    def changed(values, places):
        found = blocked_argmax.update(blocked_argmax.build(jnp.zeros(21)), jnp.arange(21, dtype=jnp.int32), values)
        found = blocked_argmax.update(found, places[0], jnp.asarray(4.0))
        return blocked_argmax.leader(blocked_argmax.update(found, places[1], jnp.finfo(float).min))

    leaders = jax.tree.map(np.asarray, changed(values, places))
    for n, current in enumerate(values):
        for place, value in zip(places[n], (4.0, LEAST), strict=True):
            current[place : place + 1] = value
        check(jax.tree.map(lambda x, n=n: x[n], leaders), current)
    several = [blocked_argmax.build(jnp.asarray(row)) for row in values[:3]]
    for found, row in zip(jax.jit(blocked_argmax._leaders_of_all)(*several), values, strict=False):
        check(jax.tree.map(np.asarray, found), row)


@pytest.mark.parametrize(("n", "width"), [(1, None), (2, None), (3, 1), (9, 4), (9, 16), (1000, None)])
def test_any_width(n, width):
    values = np.random.default_rng(1).integers(0, max(2, n // 2), n).astype(float)
    found = jax.jit(lambda values: blocked_argmax.leader(blocked_argmax.build(values, width)))(values)
    check(jax.tree.map(np.asarray, found), values)


def test_the_default_width_is_the_power_of_two_next_to_the_root():
    assert [blocked_argmax.build(jnp.zeros(n)).values.shape for n in (1000, 10_000)] == [(32, 32), (79, 128)]


def test_several_updates_at_once_are_those_one_by_one():
    start = np.arange(10.0)
    places, values = np.array([3, 12, 7, 3], np.int32), np.array([20.0, 99.0, 30.0, 20.0])
    together = blocked_argmax.update(blocked_argmax.build(jnp.asarray(start)), jnp.asarray(places), jnp.asarray(values))
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
