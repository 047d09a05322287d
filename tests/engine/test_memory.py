"""Environments with a memory: carried through every engine alike, and refused where they break their promise."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine.toys import KEY, LIMITS, NOISE, counter

import jaxbandits
from jaxbandits import Environment, Status, memoryless, run, testing, trace

SETTINGS = {"seeds": 3, "key": KEY, "max_rounds": 1000, "progress": False}


def paid(action, noise):
    return action.astype(float) * noise


class Tired(NamedTuple):
    """Memory of rewards that fall with every pull, from a level that is drawn at the start."""

    pulls: jax.Array
    level: jax.Array


def respond(memory, action, noise):
    del noise
    reward = action.astype(float) * (memory.level - memory.pulls.astype(float))
    return reward, memory._replace(pulls=memory.pulls + action)


TIRING = Environment(lambda key: Tired(jnp.zeros((), int), jax.random.uniform(key)), NOISE.noise, respond)


def tiring(limit, key):
    return counter(limit, period=4), TIRING


def metrics(task, outcome):
    return {"total": outcome.state.total, "remembered": outcome.memory.pulls, "level": outcome.memory.level}


@pytest.fixture(scope="module")
def swept():
    """Returns the same runs in lanes that are refilled, and in lanes that are not."""
    few, many = (
        jaxbandits.sweep(tiring, LIMITS, **SETTINGS, metrics=metrics, lanes=n, chunk=c) for n, c in ((5, 7), (12, 64))
    )
    return few.columns, many.columns


def test_memory_does_not_depend_on_lanes_and_chunks(swept):
    for name, values in swept[0].items():
        np.testing.assert_array_equal(values, swept[1][name])


def test_memory_belongs_to_the_run_alone(swept):
    columns, _ = swept
    np.testing.assert_array_equal(columns["remembered"], columns["pulls"])
    n = columns["pulls"]
    np.testing.assert_allclose(columns["total"], n * columns["level"] - n * (n - 1) / 2, rtol=1e-9)
    assert len(np.unique(columns["level"])) == len(n)  # every run draws its own


def test_memory_is_carried_by_run_and_trace_as_by_sweep(swept):
    columns, _ = swept
    i = int(np.flatnonzero((columns["row"] == 2) & (columns["seed"] == 1))[0])
    key = jaxbandits.task_key(KEY, 2, 1)
    end = run(key, counter(LIMITS[2], period=4), TIRING, max_rounds=1000)
    assert (end.memory.pulls, end.memory.level) == (columns["remembered"][i], columns["level"][i])
    tape = trace(key, counter(LIMITS[2], period=4), TIRING, rounds=20)
    np.testing.assert_allclose(tape.observations[:3], columns["level"][i] - np.arange(3))
    assert (tape.observations[17:] == 0).all()


def test_memory_leaves_the_noise_of_an_environment_without():
    """Its key has a stream of its own."""

    def remember(memory, action, noise):
        return NOISE.respond((), action, noise)[0], memory + action

    counting = NOISE._replace(init=lambda key: jax.random.randint(key, (), 0, 9), respond=remember)
    with_memory, without = (run(KEY, counter(20), each, max_rounds=99).state for each in (counting, NOISE))
    assert with_memory.total == without.total


def test_check_passes_an_environment_with_a_memory():
    testing.check(counter(30), TIRING, key=KEY, rounds=40)


def drifting(memory, action, noise):
    """Moves in every round, idle or not."""
    return paid(action, noise), memory + 1.0


DRIFT = Environment(lambda key: jnp.zeros(()), NOISE.noise, drifting)


def test_memory_that_an_idle_action_changes_is_refused_by_sweep_and_check():
    said = r"respond\(memory, idle, ..\) "
    with pytest.raises(ValueError, match=rf"environment breaks its promise: {said}changed the memory: an idle action"):
        jaxbandits.sweep(lambda task, key: (counter(5), DRIFT), **SETTINGS)
    fields = TIRING._replace(respond=lambda m, action, z: (respond(m, action, z)[0], m._replace(pulls=m.pulls + 1)))
    with pytest.raises(ValueError, match=rf"{said}changed pulls: an idle action must change nothing"):
        jaxbandits.sweep(lambda task, key: (counter(5), fields), **SETTINGS)
    with pytest.raises(AssertionError, match=rf"{said}of the environment changed its memory in round 0"):
        testing.check(counter(5), DRIFT, key=KEY, rounds=9)


def in_two(respond):
    return lambda: run(KEY, counter(5), Environment(lambda key: jnp.zeros(()), NOISE.noise, respond), max_rounds=9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            in_two(lambda memory, action, noise: (paid(action, noise), memory.astype(int))),
            r"environment must keep its memory as init\(key\) makes it, got int64\[\] from .* init makes float64\[\]",
        ),
        (
            in_two(lambda memory, action, noise: (paid(action, noise), (memory, memory))),
            r"environment must keep its memory as init\(key\) makes it, got \(float64\[\], float64\[\]\)",
        ),
        (
            in_two(lambda memory, action, noise: paid(action, noise)),
            r"environment must answer by \(observation, memory\), got float64\[\] .* jaxbandits.memoryless",
        ),
        (
            in_two(lambda action, noise: paid(action, noise)),
            r"environment must have respond\(memory, action, noise\) .*, got respond\(action, noise\)\. If it",
        ),
        (
            lambda: run(KEY, counter(5), Environment(NOISE.noise, lambda action, noise: noise), max_rounds=9),
            r"environment must have three functions, init\(key\) .*, got two\. .* by jaxbandits.memoryless",
        ),
        (
            lambda: Environment(NOISE.noise, lambda action, noise: noise).respond((), 1, 2.0),
            "environment must have three functions",
        ),
        (lambda: memoryless(NOISE.noise, 3), "respond must be a function, got int"),
    ],
)
def test_environment_of_another_form_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_memory_is_part_of_a_store_s_program(tmp_path):
    """A store refuses a sweep whose environment remembers something else."""
    pytest.importorskip("pyarrow")

    def sweep(environment):
        return jaxbandits.sweep(lambda limit, key: (counter(limit), environment), LIMITS, **SETTINGS, store=tmp_path)

    first = sweep(TIRING)
    assert (first.columns["status"] == Status.STOPPED).all()
    longer = TIRING._replace(init=lambda key: Tired(jnp.zeros((), int), jax.random.normal(key)))
    with pytest.raises(ValueError, match="store"):
        sweep(longer)
