"""One compilation for a study: within a process, a program is compiled once."""

import threading
from concurrent.futures import wait
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine.toys import KEY, LIMITS, NOISE, counter, total

import jaxbandits
from jaxbandits import mab
from jaxbandits.engine.programs import compiling
from jaxbandits.engine.programs.identity import identity_of_types
from jaxbandits.engine.sweep import driving

compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: compiled.append(event) if event.endswith("backend_compile_duration") else None
)
SETTINGS = {"seeds": 3, "max_rounds": 1000, "metrics": total, "lanes": 3, "chunk": 16, "progress": False}


def build(limit, key):
    return counter(limit), NOISE


@pytest.fixture(scope="module", autouse=True)
def _new_process():
    """Hides the programs that tests of other files have compiled in this process, maybe the same ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "_known", {})
        yield


@pytest.fixture(scope="module")
def first():
    """Makes the first sweep of the study, which compiles."""
    return jaxbandits.sweep(build, LIMITS, key=KEY, **SETTINGS)


def compilations(function):
    for thread in threading.enumerate():  # a sweep that failed its check in another test may still be compiled
        if thread.name.startswith("jaxbandits-xla"):
            thread.join()
    before = len(compiled)
    return function(), len(compiled) - before


def test_sweep_with_other_key_and_values_compiles_nothing(first, tmp_path):
    key, tasks, fewer = jax.random.key(8), LIMITS + 1, LIMITS[:3]  # created beforehand, since this may compile too
    results, count = compilations(lambda: jaxbandits.sweep(build, LIMITS, key=key, **SETTINGS))
    assert count == 0
    assert not np.array_equal(results.columns["total"], first.columns["total"])
    results, count = compilations(lambda: jaxbandits.sweep(build, tasks, key=KEY, **SETTINGS | {"max_rounds": 90}))
    assert count == 0
    np.testing.assert_array_equal(results.columns["pulls"], np.repeat([6, 90, 18, 90], 3))
    _, count = compilations(lambda: jaxbandits.sweep(build, LIMITS, key=KEY, store=tmp_path, **SETTINGS))
    assert count == 0
    assert (
        jaxbandits.sweep(build, fewer, key=KEY, **SETTINGS).columns["pulls"].tolist() == [5] * 3 + [400] * 3 + [17] * 3
    )


@pytest.mark.usefixtures("first")
def test_sweep_of_another_program_compiles():
    def other(limit, key):
        return counter(limit + 1), NOISE

    results, count = compilations(lambda: jaxbandits.sweep(other, LIMITS, key=KEY, **SETTINGS))
    assert count > 0
    np.testing.assert_array_equal(results.columns["pulls"][::3], LIMITS + 1)
    for change in ({"chunk": 17}, {"lanes": 5}):
        assert compilations(lambda: jaxbandits.sweep(build, LIMITS, key=KEY, **SETTINGS | change))[1] > 0  # noqa: B023


def test_second_run_of_an_algorithm_compiles_nothing():
    def run(limit, key):
        return jaxbandits.run(key, counter(jnp.asarray(limit)), NOISE, max_rounds=1000)

    other = jax.random.key(8)  # created beforehand, since this may compile too
    first, count = compilations(lambda: run(5, KEY))
    assert count > 0
    for limit, key in ((5, KEY), (5, other), (17, KEY)):
        outcome, count = compilations(lambda: run(limit, key))  # noqa: B023
        assert count == 0
        assert outcome.pulls == limit
        assert bool(outcome.state.total == first.state.total) == (limit == 5 and key is KEY)
    longer = jaxbandits.run(KEY, counter(jnp.asarray(17)), NOISE, max_rounds=1000, chunk=7)
    assert longer.state.total == outcome.state.total
    with jax.disable_jit(), jax.numpy_dtype_promotion("standard"):
        slow = jaxbandits.run(KEY, counter(jnp.asarray(2)), NOISE, max_rounds=1000, chunk=2)
    assert slow.pulls == 2


def doubled():
    class Pair(NamedTuple):
        value: jax.Array

    def double(pair):
        return Pair(2 * pair.value)

    return Pair, double


@pytest.mark.parametrize("is_known", [True, False])
def test_program_with_another_class_of_the_same_name_compiles(is_known):
    """Checks the case of a notebook whose cell with a state is run again."""
    for kind, double in (doubled(), doubled()):
        pair = kind(jnp.ones(3))
        name = "double", identity_of_types(pair) if is_known else None
        program = compiling.compiled(name, lambda: jax.jit(double).lower(pair))  # noqa: B023
        assert isinstance(program.call(pair), kind)


def test_program_without_an_identity_is_known_by_its_text():
    def get(n):
        return compilations(lambda: compiling.compiled(("add", None), lambda: jax.jit(lambda x: x + n).lower(1.0)))

    (first, compiled_first), (second, compiled_second), (again, compiled_again) = get(1), get(2), get(1)
    assert (compiled_first, compiled_second, compiled_again) == (1, 1, 0)
    assert (first.call(1.0), second.call(1.0), again.call(1.0)) == (2, 3, 2)
    assert compiling.seconds_of([first.span, again.span]) > 0
    assert again.span is None


def begin(name, function):
    """Begins to compile a function of a float, and returns the arguments for `compiled`."""
    arguments = {"lower": lambda: jax.jit(function).lower(1.0), "options": None, "examine": lambda _: None}
    compiling.begin_compiling(name, **arguments)
    return arguments


def test_program_that_is_being_compiled_is_awaited():
    def get():
        return compiling.compiled(("triple",), **begin(("triple",), lambda x: 3 * x))

    (program, count), (again, recount) = compilations(get), compilations(get)
    assert (count, recount) == (1, 0)
    assert program.call(2.0) == 6
    assert program.span.ended > program.span.began
    assert again.span is None


def test_time_of_xla_is_told_once_even_if_nothing_waits_for_it():
    arguments = begin(("quadruple",), lambda x: 4 * x)
    (future,) = (kept for name, kept in compiling._known.items() if name[0] == ("quadruple",))
    wait([future])
    assert compiling.compiled(("quadruple",), **arguments).span is not None
    assert compiling.compiled(("quadruple",), **arguments).span is None


def test_program_that_did_not_compile_is_compiled_once_more():
    calls = []

    def examine(program):
        calls.append(program)
        if len(calls) < 3:
            raise MemoryError("no room")

    arguments = {"lower": lambda: jax.jit(lambda x: 5 * x).lower(1.0), "options": None, "examine": examine}
    compiling.begin_compiling(("five",), **arguments)
    for _ in range(2):
        with pytest.raises(MemoryError, match="no room"):
            compiling.compiled(("five",), **arguments)
    assert compiling.compiled(("five",), **arguments).call(2.0) == 10


def test_program_without_an_identity_is_not_begun():
    name = "seven", None
    assert compilations(lambda: begin(name, lambda x: 7 * x))[1] == 0


@pytest.mark.parametrize("is_stored", [False, True])
def test_sweep_is_compiled_while_it_is_checked(monkeypatch, tmp_path, is_stored):
    begun, counts = [], []
    monkeypatch.setattr(compiling, "begin_compiling", lambda **program: begun.append(program))
    monkeypatch.setattr(driving, "preflight", lambda job, lane: counts.append(len(begun)))

    def other(limit, key):
        return counter(limit + 3), NOISE

    rules, store = {"first": build, "second": other}, tmp_path / "store" if is_stored else None
    jaxbandits.sweep(rules, LIMITS, key=KEY, store=store, **SETTINGS)
    assert counts == [1, 1]  # the second rule is compiled while the first one runs
    assert begun[0]["name"][0] == "lanes"


def test_program_cache_drops_the_oldest(monkeypatch):
    monkeypatch.setattr(compiling, "KEPT", 2)
    monkeypatch.setattr(compiling, "_known", {})

    def get(n):
        return compilations(lambda: compiling.compiled(("add", n), lambda: jax.jit(lambda x: x + n).lower(1.0)))[1]

    assert [get(n) for n in (1, 2, 1, 3, 1, 2)] == [1, 1, 0, 1, 0, 1]
    assert len(compiling._known) == 2


def test_spans_that_overlap_count_once():
    spans = [
        compiling.Span(5.0, 6.0),
        None,
        compiling.Span(1.0, 3.0),
        compiling.Span(2.0, 4.0),
        compiling.Span(2.0, 3.0),
    ]
    assert compiling.seconds_of(spans) == 4
    assert compiling.seconds_of([None]) == 0


def test_stats_tell_what_xla_took(first):
    assert 0 < first.stats.xla_seconds < first.stats.compile_seconds  # even if nothing had to wait for XLA
    again = jaxbandits.sweep(build, LIMITS, key=KEY, **SETTINGS).stats
    assert again.xla_seconds == 0
    assert again.compile_seconds > 0


def test_repeated_sweep_traces_its_test_once_and_runs_it_again():
    """The test of `idle` is traced with `decide`, `observe` and `respond`, and so is the lane."""
    observed = []

    def make(changes):
        def observe(state, action, observation):
            observed.append(None)
            kept = algorithm.observe(state, action, observation)
            return kept._replace(sums=kept.sums + changes)

        instance = mab.gauss4()
        algorithm = mab.ucb1(instance.problem)
        return lambda task, key: (algorithm._replace(observe=observe), mab.environment(instance, algorithm))

    def sweep(changes):
        observed.clear()
        jaxbandits.sweep(make(changes), seeds=4, key=KEY, max_rounds=8, lanes=4, progress=False)
        return len(observed)

    first, again, other_value = sweep(0.0), sweep(0.0), sweep(-0.0)
    assert first > again
    assert other_value == first
    # The test reads the first row of a table, whose length is no part of a lane.
    for rows in (2, 3):
        tasks = np.arange(rows)
        columns = jaxbandits.sweep(make(0.0), tasks, seeds=4, key=KEY, max_rounds=8, lanes=4, progress=False).columns
        assert len(columns["row"]) == 4 * rows
    # A lane that the process knows is known by the values of its arrays too.
    for _ in range(2):
        with pytest.raises(ValueError, match="changed sums"):
            sweep(1.0)


def test_wide_vectors_change_no_bit(monkeypatch):
    def columns():
        monkeypatch.setattr(compiling, "_known", {})
        instance = mab.gauss4()
        algorithm = mab.t3c(instance.problem, delta=0.1)
        build = lambda task, key: (algorithm, mab.environment(instance, algorithm))  # noqa: E731
        settings = {"metrics": lambda task, outcome: {"sums": outcome.state.sums}, "max_rounds": 200}
        return jaxbandits.sweep(build, seeds=20, key=KEY, lanes=20, progress=False, **settings).columns

    wide = columns()
    monkeypatch.setitem(compiling.ON_CPU, "xla_cpu_prefer_vector_width", 128)
    narrow, count = compilations(columns)
    assert count > 0
    for name, column in wide.items():
        np.testing.assert_array_equal(column, narrow[name], err_msg=name)
