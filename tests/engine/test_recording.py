"""Curves and horizons, on an algorithm whose runs are known in advance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine.toys import KEY, PERTURBED, stride

import jaxbandits
from jaxbandits.base import Status, memoryless
from jaxbandits.engine.run.loop import run
from jaxbandits.engine.run.round import streams

MARKS = (0, 2, 3, 12, 20, 21, 1000)
SETTINGS = {"key": KEY, "max_rounds": 100, "progress": False, "chunk": 4}


def recorded(by, at=MARKS):
    return jaxbandits.record(
        at=at,
        by=by,
        value=lambda state, decision: {"seen": state.pulls, "planned": state.planned, "ends": decision.stop},
        total=lambda state, decision, observation: {
            "sum": observation,
            "rounds_so_far": 1,
            "odd": decision.action % 2 == 1,
            "both": jnp.stack([observation, -observation]),
        },
    )


def build(task, key):
    return stride(task["limit"], task["period"]), PERTURBED, recorded("pulls")


TASKS = {
    "limit": np.array([20, 20, 1000, 4]),
    "period": np.array([1, 100, 2, 3]),
    "horizon": np.array([100, 19, 11, 100]),
}


@pytest.fixture(scope="module")
def results():
    return jaxbandits.sweep(build, TASKS, seeds=3, horizon="horizon", lanes=5, **SETTINGS)


def followed(row, seed):
    """Recomputes the rounds of a run from its keys: pulls before each round, and their observations."""
    keys = streams(jaxbandits.task_key(KEY, row, seed))
    pulls = [r * (r + 1) // 2 for r in range(50)]
    end = next(r for r, n in enumerate(pulls) if n >= min(TASKS["limit"][row], TASKS["horizon"][row]))
    noise = [float(jax.random.normal(jax.random.fold_in(keys.noise, r))) for r in range(end)]
    return pulls[: end + 1], np.array([r + 1 + noise[r] for r in range(end)])


def test_curve_entry_is_of_the_last_decision_before_its_mark(results):
    columns = results.columns
    for n in (0, 4, 8, 9):
        pulls, observations = followed(columns["row"][n], columns["seed"][n])
        last = [max(r for r, spent in enumerate(pulls) if spent <= mark) for mark in MARKS]
        curve = {name.removeprefix("curve."): x[n] for name, x in columns.items() if name.startswith("curve.")}
        np.testing.assert_array_equal(curve["pulls"], MARKS)
        np.testing.assert_array_equal(curve["seen"], [pulls[r] for r in last])
        np.testing.assert_array_equal(curve["rounds_so_far"], last)
        np.testing.assert_array_equal(curve["odd"], [(r + 1) // 2 for r in last])
        np.testing.assert_array_equal(curve["ends"], [pulls[r] >= TASKS["limit"][columns["row"][n]] for r in last])
        sums = [observations[:r].sum() for r in last]
        np.testing.assert_allclose(curve["sum"], sums, rtol=1e-12)
        np.testing.assert_allclose(curve["both"], np.stack([sums, np.negative(sums)], axis=1), rtol=1e-12)
        # Marks are taken after planning: no stale state is recorded. A state that stops is not planned.
        period = TASKS["period"][columns["row"][n]]
        planned = [(r - ends) // period * period for r, ends in zip(last, curve["ends"], strict=True)]
        np.testing.assert_array_equal(curve["planned"], planned)


def test_endings_of_runs(results):
    status, pulls = (results.columns[name].reshape(4, 3) for name in ("status", "pulls"))
    np.testing.assert_array_equal(pulls[:, 0], [21, 21, 15, 6])
    ends = [Status.STOPPED, Status.STOPPED, Status.HORIZON, Status.STOPPED]  # STOPPED wins where both hold
    np.testing.assert_array_equal(status, np.repeat(ends, 3).reshape(4, 3))
    assert (Status.STOPPED, Status.MAX_ROUNDS, Status.NONFINITE) == (1, 2, 3)  # numbers that stores hold


def test_run_records_what_a_sweep_does(results):
    @jax.jit
    def one(key, limit, period, horizon):
        algorithm = stride(limit, period)
        return run(key, algorithm, PERTURBED, max_rounds=100, horizon=horizon, record=recorded("pulls"), chunk=4)

    for n in (0, 8):
        row = results.columns["row"][n]
        key = jaxbandits.task_key(KEY, row, results.columns["seed"][n])
        outcome = one(key, *(TASKS[name][row] for name in ("limit", "period", "horizon")))
        assert outcome.status == results.columns["status"][n]
        for name, curve in outcome.curves.items():
            np.testing.assert_array_equal(curve, results.columns[f"curve.{name}"][n])


def test_summary_counts_a_horizon_as_finished_and_has_bands(results):
    summary = results.summary()
    np.testing.assert_array_equal(summary["finished"], [3, 3, 3, 3])
    np.testing.assert_array_equal(summary["stopped"], [3, 3, 0, 3])
    np.testing.assert_array_equal(summary["censored"], [0, 0, 0, 0])
    np.testing.assert_array_equal(summary["pulls_mean"], [21, 21, 15, 6])
    np.testing.assert_array_equal(summary["curve.pulls"], [MARKS] * 4)
    by_row = results.columns["curve.sum"].reshape(4, 3, len(MARKS))
    np.testing.assert_allclose(summary["curve.sum_mean"], by_row.mean(axis=1))
    np.testing.assert_allclose(summary["curve.sum_se"], by_row.std(axis=1, ddof=1) / np.sqrt(3))
    assert summary["curve.both_q50"].shape == (4, len(MARKS), 2)


def test_a_store_keeps_curves_and_horizons(results, tmp_path):
    settings = SETTINGS | {"lanes": 5, "seeds": 3, "store": tmp_path}
    stored = jaxbandits.sweep(build, TASKS, horizon=TASKS["horizon"], **settings)
    assert stored.columns.keys() == results.columns.keys()
    for name, values in results.columns.items():
        np.testing.assert_array_equal(values, stored.columns[name])
        assert values.dtype == stored.columns[name].dtype
    part = next(tmp_path.glob("part-*.parquet"))
    part.unlink()  # its runs are missing, and run again
    again = jaxbandits.sweep(build, TASKS, horizon="horizon", **settings)
    np.testing.assert_array_equal(again.columns["curve.sum"], results.columns["curve.sum"])
    with pytest.raises(ValueError, match=r"arguments.horizon.*in the store"):
        jaxbandits.sweep(build, TASKS, horizon=19, **settings)
    with pytest.raises(ValueError, match="holds another sweep"):
        jaxbandits.sweep(build, TASKS, **settings)

    def other_marks(task, key):
        return *build(task, key)[:2], recorded("pulls", at=(1, *MARKS[1:]))

    with pytest.raises(ValueError, match="holds another sweep"):
        jaxbandits.sweep(other_marks, TASKS, horizon="horizon", **settings)


def test_a_store_with_a_horizon_for_every_row_grows(results, tmp_path):
    settings = SETTINGS | {"lanes": 5, "store": tmp_path}
    for rows, seeds in ((1, 1), (3, 2), (4, 3), (2, 2)):
        table = {name: values[:rows] for name, values in TASKS.items()}
        grown = jaxbandits.sweep(build, table, seeds=seeds, horizon="horizon", **settings)
        chosen = (results.columns["row"] < rows) & (results.columns["seed"] < seeds)
        for name, values in results.columns.items():
            np.testing.assert_array_equal(grown.columns[name], values[chosen], err_msg=name)
    with pytest.raises(ValueError, match=r"arguments.horizon\[2\]: 11 in the store, 12 now"):
        jaxbandits.sweep(build, TASKS, seeds=2, horizon=[100, 19, 12, 100], **settings)


def test_marks_may_count_rounds_and_depend_on_the_task():
    @jax.jit
    def curves(at):
        outcome = run(KEY, stride(20, 1), PERTURBED, max_rounds=100, record=recorded("rounds", at=at), chunk=4)
        return outcome.status, outcome.curves

    for at in ([1, 2, 5], [0, 4, 9]):
        status, curve = curves(jnp.asarray(at))
        assert status == Status.STOPPED
        np.testing.assert_array_equal(curve["rounds"], at)
        np.testing.assert_array_equal(curve["rounds_so_far"], np.minimum(at, 6))


def test_precedence_of_endings():
    @jax.jit
    @jax.vmap
    def status(limit, horizon, max_rounds, bad):
        environment = memoryless(PERTURBED.noise, lambda action, noise: jnp.where(bad, jnp.nan, noise))
        return run(KEY, stride(limit, 3), environment, max_rounds=max_rounds, horizon=horizon).status

    table = [
        (21, 21, 6, True, Status.NONFINITE),
        (21, 21, 6, False, Status.STOPPED),
        (1000, 21, 6, False, Status.HORIZON),
        (1000, 22, 6, False, Status.MAX_ROUNDS),
        (1000, 16, 100, False, Status.HORIZON),
    ]
    limits, horizons, budgets, bad, expected = (np.array(column) for column in zip(*table, strict=True))
    np.testing.assert_array_equal(status(limits, horizons, budgets.astype(np.int32), bad), expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"at": ()}, r"at must be an array of integers of shape \(G,\), got"),
        ({"at": (3, 3)}, r"at must increase, got \(3, 3\)"),
        ({"at": (-1, 3)}, r"at must lie in .*, got"),
        ({"at": (1.0, 3.0)}, "at must be an array of integers"),
        ({"value": None}, r"value must be a function of \(state, decision\) where there is no total, got None"),
    ],
)
def test_record_names_bad_arguments(changes, message):
    with pytest.raises(ValueError, match=message):
        jaxbandits.record(**({"at": (1, 2), "value": lambda state, decision: {}} | changes))


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({"value": lambda *_: 3}, "value must return a dict of arrays, got 3"),
        ({"total": lambda *_: {"x": "a"}}, "total must return a dict of arrays, got 'a' as 'x'"),
        ({"value": lambda *_: {"x": KEY}}, "value must return a dict of arrays, got an array of .* key<fry> as 'x'"),
        ({"value": lambda *_: {"x": np.array(["a"])}}, r"value must return a dict of arrays, got \['a'\] as 'x'"),
        ({"value": lambda *_: {0: 1}}, "value must return arrays by names, which are strings, got the name 0"),
        (
            {"value": lambda *_: {"pulls": 1}},
            "value must return arrays by names other than pulls and rounds, got 'pulls'",
        ),
        (
            {"value": lambda *_: {"x": 1}, "total": lambda *_: {"x": 1}},
            "total must use other names than value, got 'x'",
        ),
    ],
)
def test_record_checks_the_functions_results(functions, message):
    with pytest.raises(ValueError, match=message):
        run(KEY, stride(20, 1), PERTURBED, max_rounds=9, record=jaxbandits.record(at=(1, 2), **functions))


@pytest.mark.parametrize(
    ("horizon", "message"),
    [
        ("delta", r"horizon must name a column of tasks, one of \['horizon', 'limit', 'period'\], got 'delta'"),
        (2.0, r"horizon must be an array of integers of shape \(4,\), got 2.0"),
        ([1, 2], r"horizon must be an array of integers of shape \(4,\), got"),
        ([1, 2, 0, 4], "horizon must lie in .*, got"),
    ],
)
def test_sweep_names_a_bad_horizon(horizon, message):
    with pytest.raises(ValueError, match=message):
        jaxbandits.sweep(build, TASKS, seeds=1, horizon=horizon, **SETTINGS)
