"""The promises of `jaxbandits.base`, checked for every algorithm in `cases.py`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract.cases import CASES

import jaxbandits
from jaxbandits.base import Decision, Environment, Status
from jaxbandits.engine.running import advance, run, streams


def each(*names, of=lambda case: [()]):
    """Parameters for every case; those of one case run in one process, which compiles its programs once."""
    return pytest.mark.parametrize(
        ("case", *names),
        [
            pytest.param(
                case,
                *more,
                id="-".join(map(str, (name, *more[:1]))),
                marks=pytest.mark.xdist_group(f"contract, {name}"),
            )
            for name, case in CASES.items()
            for more in of(case)
        ],
    )


every_case = each()
every_dtype = each("dtype", of=lambda case: [(dtype,) for dtype in case.dtypes])
every_change = each("name", "value", of=lambda case: list(case.changes.items()))
# Integers cannot be NaN.
every_dtype_of_floats = each("dtype", of=lambda case: [] if case.integers else [(dtype,) for dtype in case.dtypes])
KEY = jax.random.key(7)


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def assert_same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


@functools.cache
def compiled(make, dtype="float64", **hyperparameters):
    """A whole run as one compiled function of its key and budget: most tests need no other."""
    algorithm, environment = make(dtype, **hyperparameters)
    return jax.jit(lambda key, max_rounds: run(key, algorithm, environment, max_rounds=max_rounds))


def outcome(case, key=KEY, *, max_rounds=None, **settings):
    budget = jnp.int32(case.max_rounds if max_rounds is None else max_rounds)
    return compiled(case.make, **settings)(key, budget)


@functools.cache
def parts(make, dtype):
    """The functions of an algorithm and its environment, compiled one by one."""
    algorithm, environment = make(dtype)
    names = ("init", "decide", "observe", "refresh", "stale")
    jitted = algorithm._replace(**{name: jax.jit(getattr(algorithm, name)) for name in names})
    return jitted, environment._replace(respond=jax.jit(environment.respond))


def partway(case, dtype, rounds=20):
    """An algorithm, its environment, and a state some rounds into a run."""
    return *parts(case.make, dtype), outcome(case, max_rounds=rounds, dtype=dtype).state


@every_dtype
def test_signatures(case, dtype):
    algorithm, environment, state = partway(case, dtype)
    decision = algorithm.decide(KEY, state)
    assert isinstance(decision, Decision)
    assert decision.stop.shape == ()
    assert decision.stop.dtype == bool
    assert state.pulls.shape == ()
    assert jnp.issubdtype(state.pulls.dtype, jnp.integer)
    assert algorithm.stale(state).shape == ()
    assert jax.tree.map(jnp.shape, decision.action) == jax.tree.map(jnp.shape, algorithm.idle)
    dtypes = [jax.tree.map(lambda x: jnp.asarray(x).dtype, tree) for tree in (decision.action, algorithm.idle)]
    assert dtypes[0] == dtypes[1]
    environment.respond(decision.action, environment.noise(KEY))


@every_dtype
def test_state_keeps_its_structure_shapes_and_dtypes(case, dtype):
    algorithm, environment, state = partway(case, dtype)
    expected = jax.tree.map(lambda x: (x.shape, x.dtype), algorithm.init(KEY))
    assert {leaf.dtype for leaf in jax.tree.leaves(state) if jnp.issubdtype(leaf.dtype, jnp.inexact)} <= {
        jnp.dtype(dtype)
    }
    decision = algorithm.decide(KEY, state)
    observation = environment.respond(decision.action, environment.noise(KEY))
    for new in (state, algorithm.refresh(state), algorithm.observe(state, decision.action, observation)):
        assert jax.tree.map(lambda x: (x.shape, x.dtype), new) == expected


@every_case
def test_idle_changes_no_bit(case):
    algorithm, environment, state = partway(case, "float64")
    observation = environment.respond(algorithm.idle, environment.noise(KEY))
    assert_same(algorithm.observe(state, algorithm.idle, observation), state)


@every_dtype
def test_refresh_changes_nothing_but_rounding(case, dtype):
    algorithm, _, state = partway(case, dtype)
    state = algorithm.refresh(state)  # it may have been stale
    assert not algorithm.stale(state)
    again = algorithm.refresh(state)
    tolerance = 1e-9 if dtype == "float64" else 2e-3
    for old, new in zip(leaves(state), leaves(again), strict=True):
        np.testing.assert_allclose(new, old, rtol=tolerance, atol=tolerance)


@every_case
def test_cache_equals_a_rebuild_after_many_rounds(case):
    algorithm, _, state = partway(case, "float64", rounds=200)
    rebuilt = algorithm.refresh(state)
    if algorithm.stale(state):
        return  # heavy work was due: the two differ by right
    for old, new in zip(leaves(state), leaves(rebuilt), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-8, atol=1e-9)


@every_case
def test_a_stopped_lane_stays_as_it_is(case):
    algorithm, environment = case.make("float64")
    end = outcome(case)
    assert end.status == Status.STOPPED
    more = jax.jit(
        lambda end: advance(
            algorithm._replace(refresh=lambda state: state),
            environment,
            streams(KEY),
            end.state,
            end.rounds,
            max_rounds=2**30,
            chunk=10,
        )
    )(end)
    assert_same(more, end)


@every_case
def test_a_prefix_is_the_same_run(case):
    end = outcome(case)
    short = outcome(case, max_rounds=max(1, int(end.rounds) - 1))
    assert short.status == Status.MAX_ROUNDS
    assert int(short.rounds) == max(1, int(end.rounds) - 1)
    assert int(short.pulls) <= int(end.pulls)


@every_case
def test_vmap_equals_a_loop(case):
    algorithm, environment = case.make("float64")
    keys = jax.random.split(KEY, 3)

    def one(key):
        return run(key, algorithm, environment, max_rounds=case.max_rounds, axis_name="lanes")

    batched = jax.jit(jax.vmap(one, axis_name="lanes"))(keys)
    for n, key in enumerate(keys):
        single = outcome(case, key)
        for name in ("status", "pulls", "rounds"):
            assert getattr(batched, name)[n] == getattr(single, name)
        assert_same(jax.tree.map(lambda x, n=n: x[n], batched.answer), single.answer)


@every_case
def test_sweep_equals_plain_runs(case):
    results = jaxbandits.sweep(
        lambda task, key: case.make("float64"),
        seeds=12,
        key=KEY,
        max_rounds=case.max_rounds,
        lanes=3,
        chunk=256,
        progress=False,
    )
    for seed in range(12):
        single = outcome(case, jaxbandits.task_key(KEY, 0, seed))
        fields = single.answer._asdict() if hasattr(single.answer, "_asdict") else {}
        expected = {f"answer.{name}": value for name, value in fields.items()} or {"answer": single.answer}
        expected |= {name: getattr(single, name) for name in ("status", "pulls", "rounds")}
        for name, value in expected.items():
            np.testing.assert_array_equal(results.columns[name][seed], value, err_msg=f"{seed}, {name}")


@every_case
def test_seeds_decide(case):
    first, again, other = outcome(case), outcome(case), outcome(case, jax.random.key(8))
    assert_same(first, again)
    assert any(not np.array_equal(x, y) for x, y in zip(leaves(first.state), leaves(other.state), strict=True))


@every_change
def test_every_hyperparameter_changes_something(case, name, value):
    base, changed = outcome(case), outcome(case, **{name: value})
    assert any(not np.array_equal(x, y) for x, y in zip(leaves(base), leaves(changed), strict=True))


@every_case
def test_traced_hyperparameters_compile_once(case):
    traces = []

    @jax.jit
    def batch(values, key):
        def one(value):
            traces.append(None)
            algorithm, environment = case.make("float64", **dict.fromkeys(case.traced, value))
            return run(key, algorithm, environment, max_rounds=case.max_rounds, axis_name="lanes").pulls

        return jax.vmap(one, axis_name="lanes")(values)

    values = jnp.asarray([0.2, 0.05])
    pulls = batch(values, KEY)
    batch(values / 2, jax.random.key(1))
    assert len(traces) == 1
    for value, expected in zip(values, pulls, strict=True):
        assert outcome(case, **dict.fromkeys(case.traced, float(value))).pulls == expected


@every_dtype_of_floats
def test_nan_observations_end_as_nonfinite(case, dtype):
    algorithm, environment = case.make(dtype)

    def poisoned(action, noise):
        observation = environment.respond(action, noise)
        return jax.tree.map(lambda x: x * jnp.asarray(jnp.nan, dtype) if x.dtype == dtype else x, observation)

    broken = Environment(environment.noise, poisoned)
    end = jax.jit(lambda key: run(key, algorithm, broken, max_rounds=case.max_rounds))(KEY)
    assert end.status == Status.NONFINITE


@every_case
def test_budget_of_rounds_is_censoring(case):
    end = outcome(case, max_rounds=1)
    assert end.status == Status.MAX_ROUNDS
    assert end.rounds == 1


@every_case
def test_no_lapack_call(case):
    """jaxlib's batched LAPACK calls block the threads that a sweep computes with (see numerics.linalg)."""
    assert "lapack" not in compiled(case.make).lower(KEY, jnp.int32(1)).as_text()
