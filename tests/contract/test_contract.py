"""The promises of `jaxbandits.base`, checked for every algorithm in `cases.py`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract.cases import CASES

import jaxbandits
from jaxbandits.base import Environment, Status
from jaxbandits.engine.running import advance, run, streams
from jaxbandits.testing import check


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


@every_dtype
def test_promises(case, dtype):
    check(*case.make(dtype), key=KEY)


@every_dtype
def test_the_floats_of_a_state_are_those_of_the_problem(case, dtype):
    algorithm, _ = case.make(dtype)
    state = jax.eval_shape(algorithm.init, KEY)
    floats = {leaf.dtype for leaf in jax.tree.leaves(state) if jnp.issubdtype(leaf.dtype, jnp.inexact)}
    assert floats <= {jnp.dtype(dtype)}


@every_case
def test_a_stopped_lane_stays_as_it_is(case):
    algorithm, environment = case.make("float64")
    end = outcome(case)
    assert end.status == Status.STOPPED
    more = jax.jit(
        lambda end: advance(
            algorithm._replace(refresh=None),
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
