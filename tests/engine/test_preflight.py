"""Refusals of a sweep before its first round."""

from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine.toys import KEY, LIMITS, NOISE, counter, counting

import jaxbandits
from jaxbandits import checks
from jaxbandits.base import memoryless
from jaxbandits.engine.sweep import driving, preflight

SETTINGS = {"seeds": 3, "key": KEY, "max_rounds": 1000, "lanes": 4, "chunk": 16, "progress": False}
SHARES = jnp.asarray([0.1, 0.3, 0.05, 1.5, 0.2, -1.0])


def sharing(share, key):
    """Builds an algorithm that checks its limit as a tracer, in a function under `jit`."""
    checks.probability("share", share)
    return counter(jax.jit(lambda x: (100 * checks.positive("x", x)).astype(int))(share)), NOISE


def refusing(*arguments, **settings):
    raise AssertionError("nothing was to be done")


@pytest.fixture
def nothing_runs(monkeypatch):
    monkeypatch.setattr(driving, "compile_lanes", refusing)


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize("rows_at_once", [4096, 4, 1])
def test_a_parameter_out_of_range_is_refused_with_its_row(monkeypatch, rows_at_once):
    monkeypatch.setattr(preflight, "ROWS", rows_at_once)
    with pytest.raises(ValueError, match=r"^row 3 of tasks: share must lie in \(0, 1\), got 1.5$"):
        jaxbandits.sweep(sharing, SHARES, **SETTINGS)


@pytest.mark.usefixtures("nothing_runs")
def test_refusal_of_a_single_row_names_no_row():
    with pytest.raises(ValueError, match=r"^share must lie in \(0, 1\), got 2.0$"):
        jaxbandits.sweep(lambda task, key: sharing(jax.random.uniform(key) * 0 + 2, key), **SETTINGS)


def test_valid_rows_give_the_runs_of_run():
    columns = jaxbandits.sweep(sharing, SHARES[:3], **SETTINGS).columns
    np.testing.assert_array_equal(columns["pulls"], np.repeat([10, 30, 5], 3))


@pytest.mark.usefixtures("nothing_runs")
def test_refused_sweep_submits_nothing(tmp_path):
    nobody = SimpleNamespace(submit=refusing)
    with pytest.raises(ValueError, match="row 3 of tasks: share must lie"):
        jaxbandits.sweep(sharing, SHARES, **SETTINGS, store=tmp_path, executor=nobody)


def test_a_complete_store_is_not_checked_again(tmp_path, monkeypatch):
    jaxbandits.sweep(counting, LIMITS, **SETTINGS, store=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("jaxbandits.engine.sweep.driving.preflight", refusing)
        jaxbandits.sweep(counting, LIMITS, **SETTINGS, store=tmp_path)
        next(tmp_path.glob("part-*.parquet")).unlink()
        with pytest.raises(AssertionError, match="nothing was to be done"):
            jaxbandits.sweep(counting, LIMITS, **SETTINGS, store=tmp_path)


class Averages(NamedTuple):
    pulls: jax.Array
    means: dict
    last: jax.Array


def averaging(limit, observe):
    """Builds running means, with an `observe` that may be wrong."""
    algorithm = counter(limit)
    start = Averages(jnp.zeros((), int), {"first": jnp.zeros(()), "second": jnp.zeros(3)}, jnp.zeros(()))
    return algorithm._replace(init=lambda key: start, observe=observe)


def right(state, action, observation):
    pulls = state.pulls + action
    step = (observation - state.means["first"]) / jnp.maximum(pulls, 1).astype(float)
    return Averages(
        pulls,
        state.means | {"first": jnp.where(action > 0, state.means["first"] + step, state.means["first"])},
        jnp.where(action > 0, observation, state.last),
    )


def without_times(state, action, observation):
    return right(state, action, observation)._replace(pulls=state.pulls + 1)


def mean_of_every_round(state, action, observation):
    """Updates a mean in every round, idle or not, which the initial state does not reveal."""
    after = right(state, action, observation)
    step = (observation - state.means["first"]) / jnp.maximum(after.pulls, 1).astype(float)
    return after._replace(means=after.means | {"first": state.means["first"] + step})


def last_of_every_round(state, action, observation):
    return right(state, action, observation)._replace(last=observation)


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(
    ("observe", "changed"),
    [(without_times, "pulls"), (mean_of_every_round, "means.first"), (last_of_every_round, "last")],
)
def test_an_idle_action_that_changes_the_state_is_refused(observe, changed):
    with pytest.raises(
        ValueError, match=rf"observe\(state, idle, ..\) changed {changed}: an idle action must change n"
    ):
        jaxbandits.sweep(lambda task, key: (averaging(5, observe), NOISE), **SETTINGS)


@pytest.mark.usefixtures("nothing_runs")
def test_an_environment_of_other_actions_is_refused():
    pairs = memoryless(NOISE.noise, lambda action, noise: action[0] * noise)
    with pytest.raises(ValueError, match=r"environment does not answer this algorithm: .* idle action is int64\[\]"):
        jaxbandits.sweep(lambda task, key: (counter(5), pairs), **SETTINGS)


class Odd(NamedTuple):
    pulls: jax.Array
    entries: tuple


def test_every_kind_of_entry_is_compared_bit_for_bit():
    """NaN, minus zero, complex and short floats keep their bits; a run of NaN ends as it would."""
    algorithm = counter(5)

    def observe(state, action, observation):
        return state._replace(pulls=state.pulls + action)

    def build(task, key):
        entries = jnp.nan, jnp.asarray(-0.0), jnp.asarray(1j), jnp.ones(2, jnp.bfloat16), jnp.zeros(0), True
        start = Odd(jnp.zeros((), int), jax.tree.map(jnp.asarray, entries))
        return algorithm._replace(init=lambda key: start, observe=observe, refresh=None), NOISE

    columns = jaxbandits.sweep(build, **SETTINGS).columns
    np.testing.assert_array_equal(columns["status"], jaxbandits.Status.NONFINITE)

    def flipped(state, action, observation):
        nan, zero, *others = observe(state, action, observation).entries
        return observe(state, action, observation)._replace(entries=(nan, jnp.abs(zero), *others))

    def another(task, key):
        algorithm, environment = build(task, key)
        return algorithm._replace(observe=flipped), environment

    with pytest.raises(ValueError, match=r"changed entries.1: an idle"):
        jaxbandits.sweep(another, **SETTINGS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"build": counter(5)}, r"build must be a function of \(task, key\), got Algorithm"),
        (
            {"build": lambda task, key: counter(5)},
            r"build must return \(algorithm, environment\), or .*, got an Algorithm alone",
        ),
        ({"metrics": 3}, r"metrics must be a function of \(task, outcome\), got 3"),
        ({"metrics": lambda task, outcome: outcome.pulls}, "metrics must return a dict of arrays, got a traced value"),
        ({"tasks": [0.1, 0.2]}, r"tasks must be a pytree of arrays .*jaxbandits.rows.*, got 0.1 in \[0.1, 0.2\]"),
        ({"tasks": np.array(["a"])}, "tasks must be a pytree of arrays .*, got"),
        ({"progress": 1}, "progress must be True or False, got 1"),
        ({"mesh": jax.devices()}, "mesh must be of type Mesh, got"),
        ({"store": 3}, "store must be a path, got 3"),
        ({"executor": 3, "store": "s"}, "executor must have a method submit, as in concurrent.futures, got 3"),
        ({"key": jax.random.split(KEY)}, r"key must be a JAX key, such as jax.random.key\(0\), got an array of shape"),
    ],
)
def test_bad_arguments_are_named(settings, message):
    settings = {"build": counting, "tasks": LIMITS} | SETTINGS | settings
    with pytest.raises(ValueError, match=message):
        jaxbandits.sweep(settings.pop("build"), settings.pop("tasks"), **settings)
