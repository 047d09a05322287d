"""The engine on toy algorithms whose runs are known in advance."""

import contextlib
import subprocess
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine.toys import KEY, LIMITS, NOISE, counter, counting, total

import jaxbandits
from jaxbandits.base import Algorithm, Decision, Status, memoryless
from jaxbandits.engine.run.loop import advance, ask, run
from jaxbandits.engine.run.round import streams
from jaxbandits.engine.sweep.progress import Bar
from jaxbandits.engine.sweep.queue import Queue


def test_refilled_lanes_equal_plain_runs_bit_for_bit():
    results = jaxbandits.sweep(
        counting, LIMITS, seeds=25, key=KEY, max_rounds=1000, metrics=total, lanes=8, chunk=16, progress=False
    )
    columns = results.columns
    np.testing.assert_array_equal(columns["row"], np.repeat(np.arange(4), 25))
    np.testing.assert_array_equal(columns["seed"], np.tile(np.arange(25), 4))
    np.testing.assert_array_equal(columns["pulls"], np.repeat(np.asarray(LIMITS), 25))
    np.testing.assert_array_equal(columns["answer"], columns["pulls"] % 7)
    assert (columns["status"] == Status.STOPPED).all()
    for n in (0, 30, 60, 99):
        key = jaxbandits.task_key(KEY, columns["row"][n], columns["seed"][n])
        single = run(key, counter(LIMITS[columns["row"][n]]), NOISE, max_rounds=1000, chunk=16)
        assert single.state.total == columns["total"][n]
    assert len(np.unique(columns["total"])) == 100  # no two tasks share their noise


@pytest.mark.parametrize(
    ("settings", "chunk"), [({"max_rounds": 51}, 64), ({"max_rounds": 1}, 1), ({"max_rounds": 300}, 256)]
)
def test_a_chunk_is_no_longer_than_runs_may_be(caplog, settings, chunk):
    with caplog.at_level("DEBUG", logger="jaxbandits"):
        jaxbandits.sweep(counting, LIMITS, seeds=2, key=KEY, lanes=8, progress=False, **settings)
    assert f"chunks of {chunk} rounds" in caplog.text


@pytest.mark.parametrize(("lanes", "chunk"), [(1, 7), (3, 16), (64, 1), (200, 1000)])
def test_lanes_and_chunk_do_not_change_the_streams(lanes, chunk):
    settings = {"seeds": 5, "key": KEY, "max_rounds": 1000, "metrics": total, "progress": False}
    a = jaxbandits.sweep(counting, LIMITS, **settings, lanes=lanes, chunk=chunk)
    b = jaxbandits.sweep(counting, LIMITS, **settings)
    for name in ("pulls", "rounds", "status", "answer"):
        np.testing.assert_array_equal(a.columns[name], b.columns[name])
    np.testing.assert_allclose(a.columns["total"], b.columns["total"], rtol=1e-12)


@pytest.mark.parametrize("lanes", [1, 5])
def test_stale_lanes_are_planned_in_time_and_only_then(lanes):
    results = jaxbandits.sweep(
        lambda limit, key: (counter(limit, period=3), NOISE),
        LIMITS,
        seeds=4,
        key=KEY,
        max_rounds=1000,
        metrics=lambda task, outcome: {"planned": outcome.state.planned},
        lanes=lanes,
        chunk=8,
        progress=False,
    )
    # a plan is due at pulls 3, 6, .. below the limit
    np.testing.assert_array_equal(results.columns["planned"], (results.columns["pulls"] - 1) // 3)


def test_a_run_does_not_depend_on_how_long_its_lane_waits_for_its_plan():
    def runs(lanes, chunk):
        return jaxbandits.sweep(
            lambda task, key: (counter(task[0], period=task[1]), NOISE),
            (LIMITS, jnp.asarray([2, 3, 5, 40])),
            seeds=5,
            key=KEY,
            max_rounds=300,  # the run of 400 rounds is cut: waiting must not use up its budget
            metrics=total,
            lanes=lanes,
            chunk=chunk,
            progress=False,
        ).columns

    alone = runs(1, 64)  # never waits
    for lanes, chunk in [(5, 8), (20, 7), (20, 64)]:
        for name, values in runs(lanes, chunk).items():
            np.testing.assert_array_equal(values, alone[name])
    np.testing.assert_array_equal(alone["rounds"], np.repeat([5, 300, 17, 90], 5))


def test_plan_runs_once_half_of_the_lanes_wait():
    """One lane is due after every round and three never are, so it is planned once per chunk."""
    period = jnp.asarray([1, 1000, 1000, 1000])

    def one(key, period):
        algorithm = counter(1000, period=period)
        keys, start = streams(key), algorithm.init(key)
        settings = {"max_rounds": 100, "chunk": 10, "axis_name": "lanes"}
        outcome, _ = advance(algorithm, NOISE, keys, start, (), rounds=jnp.int32(0), **settings)
        return outcome.rounds

    rounds = jax.vmap(one, axis_name="lanes")(jax.random.split(KEY, 4), period)
    np.testing.assert_array_equal(rounds, [1, 10, 10, 10])
    rounds = jax.vmap(one, axis_name="lanes")(jax.random.split(KEY, 2), period[:2])
    np.testing.assert_array_equal(rounds, [10, 10])


def test_planning_is_a_branch_of_its_own():
    """Under an axis name, planning is behind a conditional with one predicate for all lanes."""

    def one(key, limit):
        return run(key, counter(limit, period=3), NOISE, max_rounds=100, axis_name="lanes").pulls

    keys = jax.random.split(KEY, 4)
    text = str(jax.make_jaxpr(jax.vmap(one, axis_name="lanes"))(keys, LIMITS))
    assert " cond[" in text


def test_censored_and_failed_runs_are_reported_apart():
    def build(task, key):
        limit, bad = task
        environment = memoryless(
            NOISE.noise, lambda action, noise: jnp.where(bad, jnp.nan, NOISE.respond((), action, noise)[0])
        )
        return counter(limit), environment

    tasks = (jnp.asarray([5, 5000, 50]), jnp.asarray([False, False, True]))
    results = jaxbandits.sweep(build, tasks, seeds=3, key=KEY, max_rounds=100, progress=False)
    summary = results.summary()
    np.testing.assert_array_equal(summary["runs"], [3, 3, 3])
    np.testing.assert_array_equal(summary["stopped"], [3, 0, 0])
    np.testing.assert_array_equal(summary["censored"], [0, 3, 0])
    np.testing.assert_array_equal(summary["failed"], [0, 0, 3])
    assert summary["pulls_mean"][0] == 5
    assert np.isnan(summary["pulls_mean"][1:]).all()
    np.testing.assert_array_equal(results.columns["rounds"][3:6], [100, 100, 100])


def test_summary_by_hand():
    columns = {
        "row": np.array([0, 0, 0, 1]),
        "seed": np.array([0, 1, 2, 0]),
        "status": np.array([1, 1, 2, 1]),
        "pulls": np.array([10, 20, 999, 7]),
        "group": np.array([4, 4, 4, 4]),
    }
    results = jaxbandits.Results(columns, None)
    by_row = results.summary()
    np.testing.assert_array_equal(by_row["pulls_mean"], [15, 7])
    np.testing.assert_allclose(by_row["pulls_se"], [5, np.nan])
    np.testing.assert_array_equal(by_row["pulls_q50"], [15, 7])
    np.testing.assert_array_equal(by_row["censored"], [1, 0])
    by_group = results.summary(by="group")
    np.testing.assert_allclose(by_group["pulls_mean"], [37 / 3])


def test_structured_answers_and_vector_metrics_become_columns():
    def build(task, key):
        algorithm = counter(5)

        def decide(key, state):
            return algorithm.decide(key, state)._replace(answer={"arm": state.pulls, "vector": jnp.arange(3)})

        return algorithm._replace(decide=decide), NOISE

    results = jaxbandits.sweep(
        build,
        seeds=2,
        key=KEY,
        max_rounds=100,
        metrics=lambda task, outcome: {"v": jnp.ones(4)},
        progress=False,
    )
    assert results.columns["answer.arm"].shape == (2,)
    assert results.columns["answer.vector"].shape == (2, 3)
    assert results.columns["v"].shape == (2, 4)


def test_random_instances_take_the_runs_own_key():
    def build(task, key):
        return counter(1 + jax.random.randint(key, (), 0, 1000)), NOISE

    results = jaxbandits.sweep(build, seeds=30, key=KEY, max_rounds=2000, progress=False)
    assert len(np.unique(results.columns["pulls"])) > 20
    expected = 1 + jax.random.randint(streams(jaxbandits.task_key(KEY, 0, 4)).build, (), 0, 1000)
    assert results.columns["pulls"][4] == expected


def test_occupancy_counts_the_busy_share():
    # 8 equal runs of 10 rounds in 4 lanes with chunks of 20: half of every chunk is idle
    results = jaxbandits.sweep(
        counting, jnp.asarray([10]), seeds=8, key=KEY, max_rounds=99, lanes=4, chunk=20, progress=False
    )
    assert results.stats.occupancy == pytest.approx(0.5)
    assert results.stats.pulls == results.stats.rounds == 80
    assert results.stats.visits == 1  # two devices have a lane for every run
    assert 0 < results.stats.host_seconds < results.stats.seconds


def test_progress_shows_runs_speed_and_time_left(capfd):
    jaxbandits.sweep(counting, LIMITS, seeds=10, key=KEY, max_rounds=1000)
    shown = capfd.readouterr().err
    assert "40/40" in shown
    assert "pulls/s" in shown
    first, *_ = shown.split("\r", 2)[1:]
    assert "0/40" in first
    assert "compiling" in first
    assert "compiling" not in shown.splitlines()[-1].rpartition("\r")[2]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_sweep_ends_at_the_chunk(monkeypatch, error):
    """During runs of 2^31 rounds, an error in one thread ends all of them at once."""
    chunks = []

    @contextlib.contextmanager
    def failing(total, *, show):
        def report(finished, stats, censored, failed):
            chunks.append(finished)
            if len(chunks) == 3:
                raise error("enough")

        yield Bar(lambda rule: None, report)

    monkeypatch.setattr(sys.modules["jaxbandits.engine.sweeping"], "progress_bar", failing)
    with pytest.raises(error, match="enough"):
        jaxbandits.sweep(
            lambda task, key: (counter(2**31), NOISE), seeds=16, key=KEY, max_rounds=2**31 - 1, lanes=4, progress=False
        )
    assert len(chunks) < 50


def test_single_nan_reward_ends_a_run_as_nonfinite():
    """A single broken observation in the middle of a run ends it as NONFINITE, whatever follows."""

    def build(task, key):
        noise = lambda key: (jax.random.normal(key), jax.random.uniform(key) < 0.01)  # noqa: E731
        return counter(500), memoryless(
            noise, lambda action, z: jnp.where(z[1], jnp.nan, NOISE.respond((), action, z[0])[0])
        )

    results = jaxbandits.sweep(build, seeds=20, key=KEY, max_rounds=1000, progress=False)
    assert np.mean(results.columns["status"] == Status.NONFINITE) > 0.8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_rounds": 2**31}, r"max_rounds must be an integer in \[1, 2147483647\], got 2147483648"),
        (
            {"tasks": (jnp.ones(3), jnp.ones(4))},
            "tasks must be arrays with one common leading axis, which counts the rows, got lengths",
        ),
        (
            {"metrics": lambda task, outcome: {"pulls": outcome.pulls}},
            "metrics must not return the name of a column that every sweep has, got 'pulls'",
        ),
    ],
)
def test_bad_arguments_are_named(settings, message):
    settings = {"tasks": LIMITS, "seeds": 2, "key": KEY, "max_rounds": 10, "progress": False} | settings
    with pytest.raises(ValueError, match=message):
        jaxbandits.sweep(counting, settings.pop("tasks"), **settings)


def test_importing_the_library_changes_no_setting():
    code = (
        "import jax; before = dict(jax.config.values); import jaxbandits; "
        "assert dict(jax.config.values) == before; assert not jax.config.jax_enable_x64"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_last_tasks_are_of_the_shortest_rows():
    """Three rows, eight seeds each: the last quarter is ordered by the mean length of a row's runs."""
    queue = Queue(np.arange(24), 3)
    taken = [queue.take(9), queue.take(9)]  # six seeds of every row
    np.testing.assert_array_equal(np.concatenate(taken), np.arange(18))
    part = {"row": np.array([0, 2, 2]), "rounds": np.array([10, 40, 60]), "status": np.ones(3, int)}
    queue.add(part, pulls=110, rounds=110, capacity=200, host_seconds=0.1)
    # Row 1 has no finished run yet, row 2 takes 50 rounds, row 0 takes 10.
    np.testing.assert_array_equal(queue.take(4), [19, 22, 20, 23])
    np.testing.assert_array_equal(queue.take(4), [18, 21])
    assert queue.take(4).size == 0


class Drawn(NamedTuple):
    pulls: jax.Array
    total: jax.Array
    planned: jax.Array


def drawing(limit):
    """Adds a number drawn in planning after every round."""

    def plan(key, state):
        return state._replace(planned=state.pulls, total=state.total + jax.random.normal(key))

    def decide(key, state):
        is_planned = state.planned == state.pulls
        return Decision(jnp.ones((), int), (state.pulls >= limit) & is_planned, jnp.zeros((), int))

    return Algorithm(
        init=lambda key: Drawn(jnp.zeros((), int), jnp.zeros(()), jnp.zeros((), int)),
        decide=decide,
        observe=lambda state, action, observation: state._replace(pulls=state.pulls + action),
        idle=jnp.zeros((), int),
        plan=plan,
        stale=lambda state: state.planned < state.pulls,
    )


@pytest.mark.parametrize(("lanes", "max_rounds"), [(1, 100), (3, 100), (3, 10)])
def test_planning_has_a_key_of_its_own_and_a_run_is_planned_to_its_end(lanes, max_rounds):
    """Round r plans with the key of r, however long it waits, and a spent budget still leaves a planned state."""
    limits, settings = jnp.asarray([10, 20]), {"seeds": 4, "key": KEY, "progress": False, "chunk": 4}
    build = lambda limit, key: (drawing(limit), NOISE)  # noqa: E731
    results = jaxbandits.sweep(build, limits, max_rounds=max_rounds, lanes=lanes, metrics=total, **settings)
    for n in range(8):
        row, seed, rounds = (int(results.columns[name][n]) for name in ("row", "seed", "rounds"))
        key = streams(jaxbandits.task_key(KEY, row, seed)).plan
        drawn = sum(float(jax.random.normal(jax.random.fold_in(key, r))) for r in range(1, rounds + 1))
        assert rounds == min(max_rounds, limits[row])
        assert results.columns["status"][n] == (Status.STOPPED if limits[row] <= max_rounds else Status.MAX_ROUNDS)
        np.testing.assert_allclose(results.columns["total"][n], drawn)


def test_plan_and_stale_come_together():
    with pytest.raises(ValueError, match="algorithm must have both plan and stale, or neither, got plan without stale"):
        run(KEY, drawing(3)._replace(stale=None), NOISE, max_rounds=3)


def test_an_environment_of_other_actions_is_refused():
    pairs = memoryless(NOISE.noise, lambda action, noise: action[0] * noise)
    with pytest.raises(ValueError, match=r"environment does not answer this algorithm: .* idle action is int64\[\]"):
        run(KEY, counter(3), pairs, max_rounds=3)
    vectors = memoryless(NOISE.noise, lambda action, noise: jnp.zeros(3))
    with pytest.raises(ValueError, match=r"does not keep its state with this environment: .* by float64\[3\]"):
        run(KEY, counter(3), vectors, max_rounds=3)


def test_ask_plans_a_stale_state():
    algorithm = drawing(3)
    state = algorithm.init(KEY)
    same, decision = ask(algorithm, KEY, state)
    assert (int(same.planned), float(same.total)) == (0, 0.0)
    state, _ = ask(algorithm, KEY, algorithm.observe(state, decision.action, 0.0))
    assert (int(state.planned), bool(state.total == 0.0)) == (1, False)


@pytest.mark.parametrize("settings", [{}, {"progress": True}, {"scalars": True}], ids=["quiet", "bar", "scalars"])
def test_sweep_of_runs_without_a_round_returns_them(tmp_path, settings):
    """They are STOPPED with no pulls, as in `run`, with a store and without."""
    settings = {"seeds": 3, "key": KEY, "max_rounds": 9, "progress": False} | settings
    for store in (None, tmp_path):
        results = jaxbandits.sweep(counting, jnp.zeros(2, int), store=store, **settings)
        np.testing.assert_array_equal(results.columns["status"], [Status.STOPPED] * 6)
        np.testing.assert_array_equal(results.columns["pulls"], [0] * 6)
        assert (results.stats.advice, results.stats.occupancy) == ("", 0.0)
        np.testing.assert_array_equal(results.summary()["pulls_mean"], [0, 0])
    assert run(KEY, *counting(jnp.asarray(0), KEY), max_rounds=9).status == Status.STOPPED


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "store"])
@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"x": None}, "metrics must return a dict of arrays, got None as 'x'"),
        ({"x": [1, 2]}, r"metrics must return a dict of arrays, got \[1, 2\] as 'x'"),
        ({"x": (1, 2)}, r"metrics must return a dict of arrays, got \(1, 2\) as 'x'"),
        ({"x": {"y": 1}}, "metrics must return a dict of arrays, got {'y': 1} as 'x'"),
        ({"x": "a"}, "metrics must return a dict of arrays, got 'a' as 'x'"),
        ({"x": np.array(["a"])}, r"metrics must return a dict of arrays, got \['a'\] as 'x'"),
        ({"x": KEY}, r"metrics must return a dict of arrays, got an array of shape \(\) and dtype key<fry> as 'x'"),
        ({1: 2.0, "x": 1.0}, "metrics must return arrays by names, which are strings, got the name 1"),
        (None, "metrics must return a dict of arrays, got None"),
        ([("x", 1)], "metrics must return a dict of arrays, got"),
    ],
)
def test_sweep_whose_metrics_return_no_numbers_is_refused_before_it_runs(
    tmp_path, monkeypatch, metrics, message, stored
):
    monkeypatch.setattr(sys.modules["jaxbandits.engine.sweep.driving"], "compile_lanes", None)  # nothing is compiled
    settings = {"seeds": 1, "key": KEY, "max_rounds": 9, "progress": False, "store": tmp_path if stored else None}
    with pytest.raises(ValueError, match=message):
        jaxbandits.sweep(counting, LIMITS, metrics=lambda task, outcome: metrics, **settings)


def test_sweep_takes_metrics_of_every_kind_of_number():
    metrics = {"flag": True, "int": 3, "float": 0.5, "complex": 1j, "numpy": np.float32(2), "array": np.arange(3)}
    metrics |= {"jax": jnp.ones((2, 2), jnp.bfloat16)}
    results = jaxbandits.sweep(
        counting, LIMITS, seeds=1, key=KEY, max_rounds=9, metrics=lambda task, outcome: metrics, progress=False
    )
    for name, value in metrics.items():
        np.testing.assert_array_equal(results.columns[name], np.broadcast_to(value, (4, *np.shape(value))))


def test_sweep_whose_answer_is_a_key_is_refused(monkeypatch):
    monkeypatch.setattr(sys.modules["jaxbandits.engine.sweep.driving"], "compile_lanes", None)  # nothing is compiled

    def build(limit, key):
        algorithm = counter(limit)
        decide = lambda key, state: algorithm.decide(key, state)._replace(answer={"a": key})  # noqa: E731
        return algorithm._replace(decide=decide), NOISE

    with pytest.raises(ValueError, match="answer must be a pytree of arrays of numbers, got .* key<fry> as 'answer.a'"):
        jaxbandits.sweep(build, LIMITS, seeds=1, key=KEY, max_rounds=9, progress=False)
