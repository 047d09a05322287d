"""Scalar replacement: the same rounds as by arrays, for every operation of a rule, and for rules of every family."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract.cases import CASES
from engine.toys import LIMITS, counting
from jax import lax

import jaxbandits
from jaxbandits.engine import scalars
from jaxbandits.engine.scalars import pieces as scalar_pieces
from jaxbandits.engine.sweep import program
from jaxbandits.engine.sweep.layout import OpenLayout
from jaxbandits.engine.sweep.tasks import make_job

KEY = jax.random.key(5)
LANES, CHUNK, CHUNKS = 64, 20, 5
SHARED = np.random.default_rng(2).random((24, 4))
ULPS = 512  # units in the last place of the largest entry: a hundred rounds of sums in another order
# Lanes that may part: tracking makes near ties of two arms, which are then pulled in the other order; rounding breaks
# them. With JAX 0.12, XLA also rounds the bounds of two Bernoulli arms with equal counts and sums apart (21 of 50,688
# lane-rounds of KL-LUCB, all such ties).
PARTED = {"fws": 1, "kl-lucb": 2}
# The rounds of these have all 85 operations that a round of any rule has. Scalar replacement does not depend on XLA's
# optimisations.
ALWAYS = ("clucb",)
WIDELY = ("track-and-stop", "rage", "pfws", "duets", "fws", "ds-ts", "ds-random", "tas-top")
# Several rounds per turn, as users run them. Without optimisation, a lane or two of the first two differ, because
# logarithms do.
SLOW, LONGEST = [pytest.mark.slow], [pytest.mark.slow, pytest.mark.thorough]
OPTIMISED = {"kl-lucb": SLOW, "ns-ts": LONGEST, "lingape": SLOW, "coci": SLOW}


def lane_of(name, scalars=False):
    job = make_job(
        lambda task, key: CASES[name].make(jnp.float64), None, seeds=LANES, key=KEY, max_rounds=10**6, metrics=None
    )
    return program.trace(job, OpenLayout(LANES, CHUNK, scalars), tasks=LANES)


def advanced(lane):
    """Advances a batch by some chunks; returns it with its report."""
    empty = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), program._of_lanes(lane.inputs, LANES)[-1])
    seeds, fresh = np.arange(LANES, dtype=np.int32), np.ones(LANES, bool)
    limits = program.Limits(np.full(LANES, 10**6, np.int32), None)
    # One number of chunks per call, as in a sweep, so that a program takes any.
    given = (0 * seeds, seeds, fresh, limits, np.int32(CHUNKS), empty)
    return jax.device_get(jax.jit(program._batched(lane))(lane.data, lane.job.tasks, lane.job.key, *given))


def room_of(a):
    """Returns the tolerance of a leaf of floats."""
    size = np.abs(a)
    return ULPS * np.spacing(np.max(size[size < np.finfo(a.dtype).max], initial=1e-300))  # the largest: "none yet"


def parted_lanes(a, b):
    """Returns a mask (lanes,) of the lanes in which a leaf differs."""
    is_other = a != b
    if a.dtype.kind == "f":
        is_other &= ~(np.abs(a - b) <= room_of(a))
    return is_other.reshape(LANES, -1).any(1)


def assert_alike(expected, ours, parted=0):
    """Asserts that integers and booleans are equal, and floats up to rounding, except in some lanes."""
    if parted:
        pairs = zip(*(map(np.asarray, jax.tree.leaves(tree)) for tree in (expected, ours)), strict=True)
        same = ~np.any([parted_lanes(a, b) for a, b in pairs if a.shape[:1] == (LANES,)], axis=0)
        assert np.sum(~same) <= parted
        expected, ours = jax.tree.map(lambda leaf: leaf[same] if leaf.shape[:1] == (LANES,) else leaf, (expected, ours))
    pairs = zip(jax.tree.leaves_with_path(expected), jax.tree.leaves(ours), strict=True)
    for (path, a), b in pairs:
        where = jax.tree_util.keystr(path)
        assert a.dtype == b.dtype, where
        if a.dtype.kind == "f":
            np.testing.assert_allclose(b, a, rtol=0, atol=room_of(a), err_msg=where)
        else:
            np.testing.assert_array_equal(b, a, err_msg=where)


@pytest.mark.parametrize(
    "name",
    [
        *ALWAYS,
        *[pytest.param(name, marks=[pytest.mark.wide, pytest.mark.thorough]) for name in WIDELY],
        *[pytest.param(name, marks=marks) for name, marks in OPTIMISED.items()],
    ],
)
def test_rounds_by_scalars_are_those_by_arrays(name, monkeypatch):
    if name in WIDELY:  # a round a turn is the smaller program, of the same rules
        monkeypatch.setattr(scalars, "IN_A_TURN", {})
    lane = lane_of(name)
    assert scalars.qualifies(program.loop_of(lane))
    assert_alike(advanced(lane), advanced(lane_of(name, scalars=True)), PARTED.get(name, 0))


@jax.custom_vjp
def _with_own_derivatives(x):
    return jnp.sin(x)


_with_own_derivatives.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x),))


def rounds(x, table, key, n):
    """Runs a lane whose rounds use every operation; carries (values, matrix, counts, at, sum of all lanes)."""

    large = jnp.tile(table, (4, 1))  # 132 entries, which stay together

    def one(r, carry):
        values, matrix, counts, at, total = carry
        order = jnp.argsort(values)
        values = values.at[at].set(table[r, at % 3]).at[at + 7].add(1.0)  # out of bounds
        matrix = matrix.at[at % 2].add(values[:3]).at[:, order[0] % 3].multiply(0.5)
        counts = counts.at[jnp.array([0, 2])].add(1).at[jnp.argmax(values * jnp.array([1, -1, 1, jnp.nan]))].add(3)
        rows, _ = lax.scan(lambda c, y: (0.5 * c + y, c.sum()), jnp.zeros(3), matrix)
        _, sums = lax.scan(lambda c, y: (c + y.sum(), c), 0.0, matrix, reverse=True)
        values = lax.dynamic_update_slice(values, rows[:2], (at,)) + jnp.cumsum(values, 0)[::-1] / 100
        values = lax.cond(values[0] > 1, lambda v: v / 2, lambda v: v + sums.sum() / 10, values)
        turns, values = lax.while_loop(lambda c: c[1][1] > 2, lambda c: (c[0] + 1, c[1] * 0.75), (0, values))
        total = lax.psum(at, "lanes")
        shift = lax.cond(total % 2 == 0, lambda: values[order], lambda: jnp.take(values, order + 3, mode="fill"))
        values = values + jnp.where(jnp.isfinite(shift), shift, 0.25) / 10
        values += jnp.where((values > jnp.array([jnp.inf, -jnp.inf, 0.5, 0.1])) | (values < -jnp.inf), 0.01, 0.0)
        values += jax.random.normal(jax.random.fold_in(key, r), values.shape) / 8
        values = jnp.tanh(values) + (matrix @ values[:3]).sum() / 50 + jnp.einsum("ij,ij->j", matrix, matrix).max() / 50
        values += jnp.stack([values, values[::-1]], axis=1)[:, at % 2] / 100
        row = 5 * counts[1] + at - 2  # row of shared tables, also out of bounds
        shared = jnp.asarray(SHARED)
        values += (shared.at[row].get(mode="clip") + lax.dynamic_slice(shared, (row, 0), (1, 4)).squeeze(0)) / 100
        places = jnp.stack([row + 20, 9 * at])  # also out of bounds
        read = large.at[places].get(mode="fill", fill_value=2.0).sum(axis=1), large[places, at % jnp.arange(1, 3)]
        values += jnp.concatenate(read) / 10
        values += (jax.checkpoint(jnp.cos)(values) + jax.nn.silu(values) + _with_own_derivatives(values)) / 100
        block = lax.dynamic_slice(jnp.pad(matrix, ((0, 0), (1, 0))), (at, turns), (1, 2)).squeeze(0)
        return values, matrix / 2, counts, (at + jnp.argmin(block) + counts[2] + turns) % 4, total

    start = x, jnp.outer(x[:2], x[:3]), jnp.zeros(4, int), jnp.zeros((), int) + n, jnp.zeros((), int)
    return lax.fori_loop(0, 11, one, start)


@pytest.mark.parametrize("most", [scalar_pieces.MOST, 60])
def test_every_rule(most, monkeypatch):
    monkeypatch.setattr(scalar_pieces, "MOST", most)
    monkeypatch.setattr(scalar_pieces, "CUT", most)
    x, table = np.random.default_rng(0).random((LANES, 4)), np.random.default_rng(1).random((LANES, 11, 3))
    keys, n = jax.random.split(KEY, LANES), np.arange(LANES) % 4
    closed = jax.make_jaxpr(rounds, axis_env=[("lanes", 1)])(x[0], table[0], keys[0], n[0])
    carried = [v.aval for v in closed.jaxpr.outvars]
    loop = scalars.rounds_of(closed.jaxpr, 11, carried)
    assert scalars.qualifies(loop)

    def by_scalars(*arguments):
        given = [(argument, 0) for argument in arguments]
        settings = {"loop": loop, "lanes": LANES, "axis_name": "lanes"}
        return scalars.replace_scalars(closed, closed.consts, given, **settings)

    expected = jax.jit(jax.vmap(rounds, axis_name="lanes"))(x, table, keys, n)
    ours = jax.jit(by_scalars)(x, table, keys, n)
    assert_alike(jax.device_get(expected), tuple(jax.device_get(ours)))


def test_store_records_scalars(tmp_path):
    def sweep(seeds, **settings):
        settings |= {"key": KEY, "max_rounds": 60, "lanes": 4, "chunk": 4, "store": tmp_path, "progress": False}
        return jaxbandits.sweep(counting, LIMITS, seeds=seeds, **settings)

    first = sweep(2, scalars=True)
    arguments = json.loads((tmp_path / "_manifest.json").read_text())["arguments"]
    assert arguments["scalars"] is True
    with pytest.raises(ValueError, match=r"arguments\.scalars: true in the store, false now"):
        sweep(2, scalars=False)
    np.testing.assert_array_equal(sweep(2).columns["pulls"], first.columns["pulls"])  # as the store holds
    assert not lane_of("coci", scalars=None).layout.scalars  # a CPU
    with pytest.raises(ValueError, match="scalars must be"):
        sweep(2, scalars=2)
