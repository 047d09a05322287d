"""Tables of runs, worked out by hand."""

import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from scipy import stats

from jaxbandits.engine.results import statistics
from jaxbandits.engine.results.comparison import compare
from jaxbandits.engine.results.runs import Results, Stats

BIG = 2**53  # the first integer whose successor is no float64


def table(*, row, status=None, **columns):
    row = np.asarray(row)
    status = np.ones(len(row)) if status is None else status
    columns = {"row": row, "status": np.asarray(status, np.int32)} | {k: np.asarray(v) for k, v in columns.items()}
    return Results(columns, None)


def test_an_array_column_is_described_entry_by_entry():
    results = table(
        row=[0, 1, 0, 0],
        status=[1, 1, 2, 1],
        pulls_per_arm=[[10, 1], [5, 6], [999, 999], [20, 4]],
        curve=np.arange(24.0).reshape(4, 3, 2),
    )
    summary = results.summary()
    np.testing.assert_array_equal(summary["pulls_per_arm_mean"], [[15, 2.5], [5, 6]])
    # two values a distance d apart: standard deviation d / sqrt(2), standard error d / 2
    np.testing.assert_allclose(summary["pulls_per_arm_se"], [[5, 1.5], [np.nan, np.nan]])
    np.testing.assert_allclose(summary["pulls_per_arm_q05"], [[10.5, 1.15], [5, 6]])
    np.testing.assert_allclose(summary["pulls_per_arm_q95"], [[19.5, 3.85], [5, 6]])
    # the runs of row 0 that stopped are the first and the last: entries e and e + 18
    np.testing.assert_array_equal(summary["curve_mean"][0], np.arange(6).reshape(3, 2) + 9)
    np.testing.assert_array_equal(summary["curve_se"][0], np.full((3, 2), 9))
    np.testing.assert_array_equal(summary["curve_q25"][0], np.arange(6).reshape(3, 2) + 4.5)
    np.testing.assert_array_equal(summary["curve_mean"][1], np.arange(6, 12).reshape(3, 2))


def test_groups_without_a_stopped_run_are_nan():
    summary = table(row=[7, 8, 8], status=[1, 2, 3], x=[4.0, 5.0, 6.0], v=[[1, 2], [3, 4], [5, 6]]).summary()
    np.testing.assert_array_equal(summary["row"], [7, 8])
    for name, expected in (("runs", [1, 2]), ("stopped", [1, 0]), ("censored", [0, 1]), ("failed", [0, 1])):
        np.testing.assert_array_equal(summary[name], expected)
    np.testing.assert_array_equal(summary["x_mean"], [4, np.nan])
    np.testing.assert_array_equal(summary["x_q50"], [4, np.nan])
    np.testing.assert_array_equal(summary["v_mean"], [[1, 2], [np.nan, np.nan]])
    assert np.isnan(summary["v_se"]).all()


def test_no_runs_make_a_summary_without_groups():
    summary = table(row=np.zeros(0, int), x=np.zeros(0), v=np.zeros((0, 3))).summary()
    assert summary["runs"].shape == summary["x_mean"].shape == (0,)
    assert summary["v_mean"].shape == (0, 3)


@pytest.mark.parametrize("block", [1, 7, 40, 2**22])
def test_blocks_do_not_change_a_summary(monkeypatch, block):
    rng = np.random.default_rng(5)
    row = rng.integers(0, 6, 60)
    status = rng.integers(1, 3, 60)
    values = rng.normal(size=(60, 2, 5))
    monkeypatch.setattr(statistics, "MAX_NUMBERS", block)
    summary = table(row=row, status=status, v=values).summary()
    assert summary["row"].tolist() == list(dict.fromkeys(row.tolist()))
    for group, of_group in enumerate(summary["row"]):
        chosen = values[(row == of_group) & (status == 1)]
        np.testing.assert_allclose(summary["v_mean"][group], chosen.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(
            summary["v_se"][group], chosen.std(axis=0, ddof=1) / np.sqrt(len(chosen)), rtol=1e-12
        )
        np.testing.assert_allclose(summary["v_q75"][group], np.quantile(chosen, 0.75, axis=0), rtol=1e-12)


def test_group_values_are_kept_exactly():
    """An integer too large for float64, with a floating-point column: two groups, not one."""
    results = table(
        row=[0, 0, 0, 0],
        limit=[BIG + 1, BIG, BIG + 1, BIG],
        delta=np.asarray([0.1, 0.2, 0.1, 0.1], np.float32),
        x=[1.0, 2.0, 3.0, 4.0],
    )
    summary = results.summary(by=("limit", "delta"))
    assert summary["limit"].tolist() == [BIG + 1, BIG, BIG]
    assert summary["limit"].dtype == np.int64
    np.testing.assert_array_equal(summary["delta"], np.asarray([0.1, 0.1, 0.2], np.float32))
    assert summary["delta"].dtype == np.float32
    np.testing.assert_array_equal(summary["x_mean"], [2, 4, 2])
    np.testing.assert_array_equal(results.summary(by=("delta", "limit"))["x_mean"], [2, 4, 2])


def test_group_values_of_any_scalar_kind():
    results = table(
        row=[0, 0, 0], name=["b", "a", "b"], flag=[True, False, True], gap=[np.nan, 1.0, np.nan], x=[1, 2, 3]
    )
    summary = results.summary(by=("name", "flag", "gap"))
    assert summary["name"].tolist() == ["b", "a"]
    assert summary["flag"].tolist() == [True, False]
    np.testing.assert_array_equal(summary["gap"], [np.nan, 1])
    np.testing.assert_array_equal(summary["x_mean"], [2, 2])


def test_summary_is_of_real_columns():
    summary = table(
        row=[0, 0],
        flag=[True, False],
        half=np.asarray([1, 2], ml_dtypes.bfloat16),
        name=["a", "b"],
        root=[1j, 2j],
        infinite=[1.0, np.inf],
        missing=[1.0, np.nan],
    ).summary()
    assert {name.removesuffix("_mean") for name in summary if name.endswith("_mean")} == {
        "flag",
        "half",
        "infinite",
        "missing",
    }
    assert summary["flag_mean"] == 0.5
    assert summary["half_mean"] == 1.5
    assert summary["infinite_mean"] == np.inf
    assert np.isnan(summary["missing_mean"])


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ((), r"by must name at least one column, got \(\)"),
        ("v", r"by must name scalar columns, one of \['row', 'runs', 'status', 'x'\], got 'v'"),
        ("runs", "by must not name a column that is named like one of the results, got 'runs'"),
    ],
)
def test_summary_names_a_bad_by(by, message):
    with pytest.raises(ValueError, match=message):
        table(row=[0], x=[1.0], v=[[1.0]], runs=[3]).summary(by=by)


def test_to_pandas_keeps_dtypes_and_one_array_a_run():
    curve = np.arange(12.0).reshape(3, 2, 2)
    results = table(
        row=[0, 0, 1],
        status=[1, 2, 3],
        pulls=np.asarray([1, 2, 3], np.int64),
        regret=np.asarray([0.5, 0.25, np.nan], np.float32),
        correct=[True, False, True],
        curve=curve,
        empty=np.zeros((3, 0)),
    )
    frame = results.to_pandas()
    assert list(frame.columns) == ["row", "status", "pulls", "regret", "correct", "curve", "empty"]
    assert [str(dtype) for dtype in frame.dtypes] == ["int64", "int32", "int64", "float32", "bool", "object", "object"]
    assert frame["status"].tolist() == [1, 2, 3]
    assert frame["pulls"].tolist() == [1, 2, 3]
    for run in range(3):
        assert isinstance(frame["curve"][run], np.ndarray)
        np.testing.assert_array_equal(frame["curve"][run], curve[run])
    assert frame["empty"][2].shape == (0,)
    assert len(table(row=[], v=np.zeros((0, 2))).to_pandas()) == 0


@pytest.mark.parametrize("name", ["to_pandas", "curves_to_pandas"])
def test_a_missing_pandas_is_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=f"{name} needs pandas: pip install pandas"):
        getattr(table(row=[0]), name)()


CURVES = {
    "seed": [0, 1],
    "pulls": [7, 9],
    "task.delta": np.asarray([0.1, 0.2], np.float32),
    "curve.rounds": [[1, 2, 4], [1, 2, 8]],
    "curve.regret": np.arange(6.0).reshape(2, 3),
    "curve.counts": np.arange(24).reshape(2, 3, 2, 2),
    "curve.last": [True, False],  # a metric that is named like a curve
    "theta": np.zeros((2, 3)),
}


def test_curves_to_pandas_has_a_row_for_every_run_and_mark():
    frame = table(row=[0, 0], **CURVES).curves_to_pandas()
    scalars = ["row", "status", "seed", "pulls", "task.delta"]
    entries = [f"curve.counts.{i}.{j}" for i in (0, 1) for j in (0, 1)]
    assert list(frame.columns) == [*scalars, "curve.rounds", "curve.regret", *entries, "curve.last"]
    assert frame["curve.rounds"].tolist() == [1, 2, 4, 1, 2, 8]
    assert frame["curve.regret"].tolist() == [0, 1, 2, 3, 4, 5]
    assert frame["curve.counts.1.0"].tolist() == [2, 6, 10, 14, 18, 22]
    assert frame["pulls"].tolist() == [7, 7, 7, 9, 9, 9]
    assert [str(frame[name].dtype) for name in ("task.delta", "curve.rounds", "status")] == [
        "float32",
        "int64",
        "int32",
    ]
    chosen = table(row=[0, 0], **CURVES).curves_to_pandas(["delta", "rounds", "regret"])
    assert list(chosen.columns) == ["delta", "rounds", "regret"]
    assert len(chosen) == 6


def test_curves_to_pandas_is_written_as_a_whole():
    """`to_pandas` is not: it cuts cells of more than a thousand numbers to six."""
    marks = np.broadcast_to(np.arange(1500), (2, 1500))
    results = table(row=[0, 1], **{"curve.pulls": marks, "curve.regret": marks / 7})
    assert "..." in results.to_pandas().to_csv()
    text = results.curves_to_pandas().to_csv(index=False)
    assert "..." not in text
    read = np.loadtxt(text.splitlines()[1:], delimiter=",")
    np.testing.assert_array_equal(read[:, 3].reshape(2, 1500), marks / 7)


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        ({}, None, "results must have curves, which `record` makes, got columns"),
        (CURVES, ["theta"], "columns must name scalar columns and curves, got 'theta'"),
        (CURVES, ["nothing"], "columns must be names of .* got 'nothing'"),
        (CURVES, "seed", "columns must be a sequence of names, got 'seed'"),
    ],
)
def test_curves_to_pandas_names_bad_columns(columns, names, message):
    with pytest.raises(ValueError, match=message):
        table(row=[0, 0], **columns).curves_to_pandas(names)


def test_pandas_is_imported_only_where_it_is_used():
    code = "import sys, jaxbandits.engine.results.runs; assert 'pandas' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compare_by_hand():
    a = table(row=[0, 0, 0, 1, 2], status=[1, 1, 2, 1, 1], pulls=[10, 20, 999, 5, 0])
    b = table(row=[1, 0, 0, 0, 3], status=[3, 1, 1, 1, 1], pulls=[5, 12, 15, 21, 0])
    compared = compare(a, b)
    counts = {
        "row": [0, 1],
        "runs_a": [3, 1],
        "finished_a": [2, 1],
        "stopped_a": [2, 1],
        "censored_a": [1, 0],
        "failed_a": [0, 0],
        "runs_b": [3, 1],
        "finished_b": [3, 0],
        "stopped_b": [3, 0],
        "censored_b": [0, 0],
        "failed_b": [0, 1],
    }
    for name, expected in counts.items():
        np.testing.assert_array_equal(compared[name], expected)
    statistics = [
        "difference",
        "difference_low",
        "difference_high",
        "se",
        "ratio",
        "ratio_low",
        "ratio_high",
        "ks",
        "p",
    ]
    assert set(compared) == {*counts, *(f"pulls_{name}" for name in (*statistics, "ks", "p"))}
    np.testing.assert_allclose(compared["pulls_ratio"], [15 / 16, np.nan])
    # row 0: means 15 and 16; squared standard errors 50 / 2 and 21 / 3
    np.testing.assert_array_equal(compared["pulls_difference"], [-1, np.nan])
    np.testing.assert_allclose(compared["pulls_se"], [np.sqrt(32), np.nan])
    # in order they are a b b a b: the distribution functions are farthest apart at the first a, 1/2 against 0. Of the
    # ten orders only b a b a b stays below.
    np.testing.assert_allclose(compared["pulls_ks"], [0.5, np.nan])
    np.testing.assert_allclose(compared["pulls_p"], [0.9, np.nan])


def test_comparison_does_not_depend_on_the_order_of_runs():
    rng = np.random.default_rng(2)
    columns = {"row": rng.integers(0, 4, 50), "status": rng.integers(1, 4, 50), "x": rng.normal(size=50)}
    order = rng.permutation(50)
    other = table(row=np.arange(40) % 5, x=rng.normal(size=40))
    one = compare(table(**columns), other)
    two = compare(table(**{name: values[order] for name, values in columns.items()}), other)
    swapped = compare(other, table(**columns))
    # Groups are in the order in which they appear in the first sweep.
    first, second, third = (np.argsort(compared["row"]) for compared in (one, two, swapped))
    for name, values in one.items():
        np.testing.assert_allclose(values[first], two[name][second], rtol=1e-12)
    np.testing.assert_allclose(swapped["x_difference"][third], -one["x_difference"][first], rtol=1e-12)
    np.testing.assert_array_equal(swapped["censored_b"][third], one["censored_a"][first])
    np.testing.assert_allclose(swapped["x_p"][third], one["x_p"][first], rtol=1e-9)


def test_kolmogorov_smirnov_with_ties():
    rng = np.random.default_rng(4)
    a = table(row=np.repeat(np.arange(8), 15), x=rng.integers(0, 6, 120))
    b = table(row=np.tile(np.arange(8), 20), x=rng.integers(1, 8, 160))
    compared = compare(a, b)
    assert len(np.unique(compared["x_ks"])) > 4
    for row in range(8):
        x, y = (side.columns["x"][side.columns["row"] == row] for side in (a, b))
        distance = max(abs(np.mean(x <= v) - np.mean(y <= v)) for v in range(8))
        assert compared["x_ks"][row] == pytest.approx(distance)
        assert compared["x_p"][row] == stats.ks_2samp(x, y).pvalue


def test_compare_keeps_large_integers_apart():
    compared = compare(table(row=[0, 0], x=[BIG + 1, BIG + 1]), table(row=[0, 0], x=[BIG, BIG]))
    assert compared["x_ks"] == 1
    assert compared["x_p"] == pytest.approx(1 / 3)  # two of the six orders keep the samples apart


def test_kolmogorov_smirnov_of_almost_equal_samples_is_one():
    compared = compare(table(row=[0] * 5, x=[14, 22, 55, 61, 74]), table(row=[0] * 5, x=[15, 29, 45, 60, 90]))
    assert compared["x_ks"] == pytest.approx(0.2)
    assert compared["x_p"] == pytest.approx(1)


def test_compare_takes_the_scalar_real_columns_of_both():
    a = table(row=[0, 1], delta=[0.1, 0.2], x=[1.0, np.inf], half=np.asarray([1, 2], ml_dtypes.bfloat16), mine=[1, 2])
    b = table(row=[5, 6], delta=[0.2, 0.1], x=[np.inf, 3.0], half=np.asarray([4, 8], np.float32), v=[[1], [2]])
    compared = compare(a, b, by="delta")
    assert {name for name in compared if name.endswith("_ks")} == {"x_ks", "half_ks"}
    np.testing.assert_array_equal(compared["delta"], [0.1, 0.2])
    np.testing.assert_array_equal(compared["x_difference"], [-2, np.nan])
    np.testing.assert_array_equal(compared["half_difference"], [-7, -2])
    np.testing.assert_array_equal(compared["half_ks"], [1, 1])


def test_compare_by_several_columns():
    a = table(row=[0, 0, 1], limit=[BIG, BIG + 1, BIG], x=[1, 2, 3])
    b = table(row=[0, 1, 1], limit=[BIG + 1, BIG + 1, BIG], x=[20, 30, 40])
    compared = compare(a, b, by=("row", "limit"))
    assert compared["row"].tolist() == [0, 1]
    assert compared["limit"].tolist() == [BIG + 1, BIG]
    np.testing.assert_array_equal(compared["x_difference"], [-18, -37])


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("row", r"by must name columns with a value that both sweeps have, got none in common for \('row',\)"),
        ("only_a", r"by must name scalar columns, one of \['row', 'runs_a', 'setting', 'status'\], got 'only_a'"),
        ("setting", "by must name columns of the same kind in both sweeps, got 'setting' of int64 and float64"),
        ("runs_a", "by must not name a column that is named like one of the results, got 'runs_a'"),
    ],
)
def test_compare_names_a_bad_by(by, message):
    a = table(row=[0, 1], setting=[1, 2], runs_a=[1, 1], only_a=[1, 2])
    b = table(row=[2, 3], setting=[1.0, 2.0], runs_a=[1, 1])
    with pytest.raises(ValueError, match=message):
        compare(a, b, by=by)


def test_compare_refuses_a_folder_with_advice(tmp_path):
    runs = table(row=[0, 1])
    with pytest.raises(ValueError, match=r"b must be Results, got the folder .*\. Load it: jaxbandits\.load\("):
        compare(runs, tmp_path)


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({}, ""),
        ({"occupancy": 0.55}, "Lanes were 55% busy: runs lasted 144 rounds, .* chunk of 256. chunk=64 would keep more"),
        ({"occupancy": 0.55, "chunk": 64}, ""),  # no smaller chunk would help
        ({"rounds": 20_000_000, "pulls": 20_000_000}, "Runs lasted 20000 rounds of one pull each."),
        ({"pulls": 180_000}, r"A round stood for 1.25 pulls. Rounds of single pulls \(leap=1\) cost less"),
        ({"occupancy": 0.5, "finished": 0}, ""),
        ({"occupancy": 0.0, "rounds": 0, "pulls": 0}, ""),  # runs stopped before their first round
    ],
)
def test_stats_advise_on_lanes_and_chunk(changes, advice):
    settings = {"seconds": 1.0, "compile_seconds": 1.0, "pulls": 144_000, "rounds": 144_000, "occupancy": 0.9}
    settings |= {"lanes": 64, "devices": 1, "batches": 2, "chunk": 256, "bytes": 100, "finished": 1000}
    suggestion = Stats(**settings | changes).advice
    assert re.match(advice, suggestion) if advice else suggestion == ""


def test_groups_of_two_columns_stand_together_by_the_first():
    """The runs of a rule come one after the other; a table by delta and rule has the rules of each delta together."""
    results = table(row=[0, 1, 0, 1], rule=["b", "b", "a", "a"], delta=[0.1, 0.01, 0.1, 0.01], x=[1.0, 2.0, 3.0, 4.0])
    summary = results.summary(by=("delta", "rule"))
    assert list(zip(summary["delta"], summary["rule"], strict=True)) == [
        (0.1, "b"),
        (0.1, "a"),
        (0.01, "b"),
        (0.01, "a"),
    ]


def test_print_takes_a_parameter_called_mean_for_what_it_is():
    results = table(**{"row": [0, 0, 1], "task.mean": [1.0, 1.0, 2.0], "pulls": [3, 5, 5]})
    assert str(results).splitlines()[1].split() == ["mean", "runs", "pulls"]
