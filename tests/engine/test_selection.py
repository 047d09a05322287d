"""Columns by name, selected runs, and the tables that are printed."""

import pickle

import jax
import numpy as np
import pytest
from engine.toys import KEY, NOISE, counter

import jaxbandits
from jaxbandits import Results, Status, compare, concatenate
from jaxbandits.engine.results.printing import decimals, escaped, labels, with_error, with_interval

STATUS = [1, 1, 2, 1, 1, 1, 3, 1]
COLUMNS = {
    "row": np.arange(8) // 2 % 2,
    "seed": np.arange(8) % 2,
    "rule": np.repeat(["RAGE", "LinGapE"], 4),
    "task.delta": np.array([0.1, 0.1, 0.05, 0.05] * 2, np.float32),
    "status": np.array(STATUS, np.int32),
    "pulls": np.array([10, 20, 99, 40, 11, 13, 7, 30]),
    "wrong": np.arange(8) == 1,
    "curve.regret": np.arange(16.0).reshape(8, 2),
}
RESULTS = Results(COLUMNS, None, root=(0, 3))


def test_columns_are_read_by_name():
    assert RESULTS["pulls"] is COLUMNS["pulls"]
    assert RESULTS["delta"] is COLUMNS["task.delta"]
    assert RESULTS["regret"] is COLUMNS["curve.regret"]
    assert "delta" in RESULTS
    assert "gap" not in RESULTS
    for name in ("gap", 0, slice(2)):
        with pytest.raises(ValueError, match="name must be the name of a column, one of .*'pulls'.* got"):
            RESULTS[name]
    with pytest.raises(ValueError, match=r"got 'pull'\. Did you mean 'pulls'\?$"):
        RESULTS["pull"]


def test_length_is_the_number_of_runs_and_iteration_is_refused():
    assert len(RESULTS) == 8
    assert len(Results({}, None)) == 0
    with pytest.raises(TypeError, match=r"Results must not be iterated over: .* Use results\.columns"):
        list(RESULTS)


def test_results_can_be_pickled():
    copy = pickle.loads(pickle.dumps(RESULTS))
    assert copy.columns.keys() == COLUMNS.keys()
    assert copy.root == (0, 3)
    np.testing.assert_array_equal(copy["regret"], RESULTS["regret"])
    summary = pickle.loads(pickle.dumps(RESULTS.summary()))
    assert repr(summary) == repr(RESULTS.summary())


def test_printed_results_are_a_short_table():
    assert repr(RESULTS).splitlines() == [
        "8 runs: 6 stopped, 1 censored, 1 failed",
        "rule     delta  runs  censored  failed        pulls",
        "RAGE     0.1       2         0       0  15.0 +- 5.0",
        "RAGE     0.05      2         1       0           40",
        "LinGapE  0.1       2         0       0  12.0 +- 1.0",
        "LinGapE  0.05      2         0       1           30",
    ]


def test_printed_results_tell_concatenated_sweeps_and_rows_apart():
    def of(size, rows):
        columns = {"row": np.repeat(np.arange(rows), 2), "status": np.ones(2 * rows, int)}
        return Results(columns | {"pulls": size + np.arange(2 * rows)}, None)

    assert repr(concatenate({size: of(size, 1) for size in (3, 5, 8)}, name="d")).splitlines()[1:] == [
        "d  runs         pulls",
        "3     2  3.50 +- 0.50",
        "5     2  5.50 +- 0.50",
        "8     2  8.50 +- 0.50",
    ]
    lines = repr(concatenate({size: of(size, 2) for size in (3, 5)}, name="d")).splitlines()[1:]
    assert [line.split()[:2] for line in lines] == [["d", "row"], ["3", "0"], ["3", "1"], ["5", "0"], ["5", "1"]]


def test_printed_results_of_many_rows_have_a_line_per_rule():
    many = {"row": np.tile(np.arange(30), 2), "rule": np.repeat(["b", "a"], 30), "pulls": np.arange(60)}
    status = np.full(60, Status.HORIZON)
    assert repr(Results(many | {"status": status}, None)).splitlines() == [
        "60 runs: 60 horizon reached",
        "rule  runs        pulls",
        "b       30  14.5 +- 1.6",
        "a       30  44.5 +- 1.6",
    ]
    lines = repr(Results({name: many[name] for name in ("row", "pulls")} | {"status": status}, None)).splitlines()
    assert len(lines) == 23
    assert lines[-1] == ".. and 10 more groups"


def test_results_without_runs_or_status_can_be_printed():
    assert repr(Results({"row": np.zeros(0, int)}, None)) == "0 runs with the columns row"
    assert repr(Results({"beta": np.ones(3)}, None)) == "3 runs with the columns beta"


@pytest.mark.parametrize(
    ("conditions", "runs"),
    [
        ({}, range(8)),
        ({"rule": "RAGE"}, range(4)),
        ({"rule": ["LinGapE", "RAGE"]}, range(8)),
        ({"delta": 0.1}, [0, 1, 4, 5]),
        ({"delta": np.float32(0.05), "rule": "LinGapE"}, [6, 7]),
        ({"delta": [0.1, 0.05], "seed": 1}, [1, 3, 5, 7]),
        ({"status": Status.STOPPED, "row": np.array([0])}, [0, 1, 4, 5]),
        ({"wrong": True}, [1]),
        ({"pulls": 40.0}, [3]),
        ({"seed": jax.numpy.array(1), "row": (1,)}, [3, 7]),
    ],
)
def test_where_chooses_runs_by_values(conditions, runs):
    chosen = RESULTS.where(**conditions)
    assert chosen["pulls"].tolist() == COLUMNS["pulls"][list(runs)].tolist()
    np.testing.assert_array_equal(chosen["regret"], COLUMNS["curve.regret"][list(runs)])
    assert chosen.root == RESULTS.root


def test_where_compares_numbers_as_they_are_printed():
    single = np.array([0.1, 0.3], np.float32)
    results = Results(
        {"x": np.array([0.1 * 3, 0.3 + 1e-9, np.nan, -np.inf]), "y": np.append(single, [0.2, np.nan])}, None
    )
    assert len(results.where(x=0.3)) == 1  # 0.1 * 3 is 0.30000000000000004; the next number is another one
    assert results.where(y=0.3)["x"].tolist() == [0.3 + 1e-9]  # a float32 in a column of float64
    assert len(results.where(x=np.nan)) == len(results.where(x=-np.inf)) == 1


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"dleta": 0.1}, r"dleta must be the name of a scalar column, .*'rule'.* Did you mean 'delta'\?$"),
        ({"regret": 0.1}, "regret must be the name of a scalar column"),
        ({"rule": "Rage"}, "rule must be a value of a run, one of LinGapE, RAGE, got 'Rage'. Did you mean 'RAGE'\\?$"),
        ({"rule": ["RAGE", "UGapE"]}, "rule must be a value of a run, .* got 'UGapE'"),
        ({"delta": 0.2}, r"delta must be a value of a run, one of 0\.05, 0\.1, got 0\.2"),
        ({"delta": "0.1"}, "delta must be a value of a run, .* got '0.1'"),
        ({"rule": 1}, "rule must be a value of a run, .* got 1"),
        ({"rule": None}, "rule must be a value of a run, .* got None"),
    ],
)
def test_where_refuses_unknown_names_and_values(conditions, message):
    with pytest.raises(ValueError, match=message):
        RESULTS.where(**conditions)


def test_summary_is_a_mapping_in_order_of_appearance():
    summary = RESULTS.summary(by=("rule", "delta"))
    assert summary["rule"].tolist() == ["RAGE", "RAGE", "LinGapE", "LinGapE"]
    assert dict(summary)["pulls_mean"].tolist() == [15, 40, 12, 30]
    assert "curve.regret_mean" in summary
    assert repr(summary).splitlines() == [
        "rule     delta  runs  censored  failed        pulls              wrong",
        "RAGE     0.1       2         0       0  15.0 +- 5.0  0.50 [0.01, 0.99]",
        "RAGE     0.05      2         1       0           40  0.00 [0.00, 0.98]",
        "LinGapE  0.1       2         0       0  12.0 +- 1.0  0.00 [0.00, 0.84]",
        "LinGapE  0.05      2         0       1           30  0.00 [0.00, 0.98]",
        "not shown: curve.regret_mean",
    ]
    # Rules are not averaged over by default.
    assert RESULTS.summary()["rule"].tolist() == summary["rule"].tolist()
    frame = summary.to_pandas()
    assert frame["pulls_mean"].tolist() == [15, 40, 12, 30]
    assert "curve.regret_mean" not in frame


def test_a_wide_summary_names_what_it_does_not_show():
    columns = {f"metric_{n}": np.arange(4.0) for n in range(20)} | {"row": np.zeros(4, int), "status": np.ones(4, int)}
    lines = repr(Results(columns, None).summary()).splitlines()
    assert max(map(len, lines[:2])) <= 120
    assert lines[-1].endswith("metric_18_mean, metric_19_mean")


@pytest.mark.parametrize(
    ("mean", "se", "text"),
    [
        (7312.4, 83.2, "7312 +- 83"),
        (7312.4, 830.0, "7310 +- 830"),
        (0.45678, 0.0123, "0.457 +- 0.012"),
        (5.0, 0.0996, "5.00 +- 0.10"),
        (5.0, 0.994, "5.00 +- 0.99"),
        (1.2345e9, 2.5e7, "(1.234 +- 0.025)e9"),
        (3.0e-6, 1.5e-7, "(3.00 +- 0.15)e-6"),
        (-0.001, 0.5, "0.00 +- 0.50"),
        (12.5, 0.0, "12.5"),
        (12.5, np.nan, "12.5"),
        (np.nan, np.nan, "-"),
        (np.inf, np.nan, "inf"),
    ],
)
def test_a_mean_has_the_digits_of_its_error(mean, se, text):
    assert with_error(mean, se) == text


def test_errors_keep_two_digits():
    for error in np.random.default_rng(0).lognormal(0, 5, 200):
        shown = f"{round(error, decimals(error)):e}"
        assert abs(float(shown) / error - 1) <= 0.05 + 1e-9
        assert set(shown.partition("e")[0][3:]) <= {"0", "9"} or len(shown.partition("e")[0].rstrip("0")) <= 3


def test_shares_have_the_digits_of_their_interval():
    assert with_interval(0.03, 0.00623, 0.0852) == "0.030 [0.006, 0.085]"
    assert with_interval(0.0, 0.0, 0.000369) == "0.00000 [0.00000, 0.00037]"
    assert with_interval(np.nan, np.nan, np.nan) == "-"


def test_latex_sets_numbers_in_math_mode_with_visible_spaces():
    assert with_interval(0.03, 0.00623, 0.0852, "latex") == r"$0.030\ [0.006, 0.085]$"
    assert with_interval(0.5, np.nan, np.nan, "latex") == "$0.5$"
    assert with_error(-7312.4, 83.2, "latex") == r"$-7312 \pm 83$"
    assert with_error(1.2345e9, 2.5e7, "latex") == r"$(1.234 \pm 0.025) \times 10^{9}$"
    assert with_error(-2.5e9, 0.0, "latex") == r"$-2.5 \times 10^{9}$"


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("1e-05", r"$1 \times 10^{-5}$"),
        ("-0.5", "$-0.5$"),
        ("[0, 1]", "{[}0, 1]"),
        ("UCB_1 < 5 %", r"UCB\_1 \textless{} 5 \%"),
        ("1e-5 or 3", "1e-5 or 3"),
    ],
)
def test_names_in_latex(name, latex):
    assert escaped(name) == latex


def test_labels_have_as_few_digits_as_tell_values_apart():
    assert labels(np.array([0.1, 0.05], np.float32)) == ["0.1", "0.05"]
    assert labels(np.array([0.123456, 0.1234567])) == ["0.123456", "0.123457"]
    assert labels(np.array([1, 2**60])) == ["1", str(2**60)]
    assert labels(np.array([np.nan, 1.0])) == ["nan", "1"]


def test_tables_put_rules_side_by_side():
    table = RESULTS.table(across="rule")
    assert repr(table).splitlines() == [
        "delta                  RAGE             LinGapE",
        "0.1             15.0 +- 5.0         12.0 +- 1.0",
        "0.05   40 (1 censored of 2)  30 (1 failed of 2)",
    ]
    assert repr(RESULTS.table(by=("rule", "delta"), across="rule")) == repr(table)
    assert table.to_markdown().splitlines() == [
        "| delta | RAGE | LinGapE |",
        "| :-- | --: | --: |",
        "| 0.1 | 15.0 ± 5.0 | 12.0 ± 1.0 |",
        "| 0.05 | 40 (1 censored of 2) | 30 (1 failed of 2) |",
    ]
    assert RESULTS.to_latex(across="rule").splitlines() == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"delta & RAGE & LinGapE \\",
        r"\midrule",
        r"$0.1$ & $15.0 \pm 5.0$ & $12.0 \pm 1.0$ \\",
        r"$0.05$ & $40$ (1 censored of 2) & $30$ (1 failed of 2) \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_tables_across_numbers_name_the_numbers_and_the_quantity():
    table = RESULTS.table(across="delta")
    assert repr(table).splitlines()[0].endswith("  pulls, delta = 0.05")
    assert table.to_markdown().splitlines()[0] == "| rule | pulls, delta = 0.1 | pulls, delta = 0.05 |"
    assert r"rule & pulls, delta = 0.1 & pulls, delta = 0.05 \\" in table.to_latex()
    several = RESULTS.table(("pulls", "wrong"), across="delta")
    assert several.header == tuple(f"{name}, delta = {delta}" for delta in (0.1, 0.05) for name in ("pulls", "wrong"))


def test_tables_of_several_columns_and_of_missing_groups():
    columns = {name: values[:6] for name, values in COLUMNS.items()} | {"a|b_%": np.arange(6) > 2}
    table = Results(columns, None).table(("pulls", "wrong"), by="delta", across="rule")
    assert table.header == ("RAGE pulls", "RAGE wrong", "LinGapE pulls", "LinGapE wrong")
    assert repr(table).splitlines()[-1].split()[-2:] == ["-", "-"]
    other = Results(columns, None).table("a|b_%", by=("rule",))
    assert other.to_markdown().splitlines()[0] == r"| rule | a\|b_% |"
    assert r"rule & a\textbar{}b\_\% \\" in other.to_latex()
    assert repr(other).splitlines()[1] == "RAGE     0.33 [0.01, 0.91] (1 censored of 4)"
    # Without a rule and a table of tasks, each row is a group.
    plain = {name: columns[name] for name in ("row", "status", "pulls")}
    assert Results(plain, None).table().names == ("row",)


def test_tables_over_clusters_have_their_errors():
    summary = RESULTS.summary("rule", cluster="row")
    table = RESULTS.table(by="rule", cluster="row")
    assert [line[0].se for line in table.cells] == summary["pulls_se"].tolist()
    assert summary["pulls_se"][0] != RESULTS.summary("rule")["pulls_se"][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": "regret"}, r"y must name scalar columns, got 'regret'\. regret is a curve: plot it, or return its last"),
        ({"y": "regrets"}, "y must name scalar columns, one of .* got 'regrets'$"),
        ({"y": "pull"}, r"y must name scalar columns, one of .* got 'pull'\. Did you mean 'pulls'\?$"),
        ({"y": "delta"}, "y must name scalar columns of numbers that runs have as a result, got 'delta'"),
        ({"y": ()}, "y must name at least one column"),
        ({"by": "gap"}, "by must name scalar columns"),
        ({"by": "dleta"}, r"by must name scalar columns, one of \['delta', .* got 'dleta'\. Did you mean 'delta'\?$"),
        ({"across": "rules"}, r"across must name scalar columns, .* got 'rules'\. Did you mean 'rule'\?$"),
        ({"by": "pulls"}, "by must not name a column that y names, got 'pulls'"),
        ({"across": "gap"}, "across must name scalar columns"),
        ({"across": ("rule", "delta")}, "across must be the name of a column or None"),
        ({"cluster": "gap"}, "cluster must name scalar columns"),
    ],
)
def test_table_names_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        RESULTS.table(**arguments)


def test_rules_of_one_sweep_are_compared():
    a, b = RESULTS.where(rule="RAGE"), RESULTS.where(rule="LinGapE")
    advice = r"repeat the sweeps with environment\(.*, stream=key\) in build, and write compare\(a, b, paired=True\)$"
    with pytest.warns(UserWarning, match=advice):
        compared = compare(a, b, by="delta")
    assert compared["pulls_difference"].tolist() == [3, 10]
    assert "rule" not in compared
    assert repr(compared).splitlines()[0].split()[:3] == ["delta", "runs_a", "censored_a"]


def test_a_comparison_shows_metrics_first_and_names_what_it_leaves_out():
    def of(key, shift):
        columns = {"row": np.repeat([0, 1], 4), "seed": np.tile(np.arange(4), 2), "status": np.array([1] * 7 + [2])}
        columns |= {"pulls": np.arange(8) + 5, "rounds": np.arange(8) + 5, "answer": np.arange(8) % 3}
        return Results(columns | {"loss": np.arange(8) ** 2 + shift}, None, root=(0, key))

    compared = compare(of(0, 0.0), of(1, 3.0))
    assert not any(name.startswith("answer") for name in compared)
    lines = repr(compared).splitlines()
    assert lines[0].split()[5:8] == ["loss_difference", "pulls_difference", "rounds_difference"]
    listed = lines[-1].removeprefix("not shown: ").split(", ")
    statistics = ("difference", "ratio", "ks", "p")
    known = {f"{name}_{each}" for name in ("loss", "pulls", "rounds") for each in statistics}
    assert set(listed) == known - set(lines[0].split())
    heading = compared.to_markdown().splitlines()[0]
    assert heading.endswith("| loss_p | pulls_p | rounds_p |")
    assert len(compared.to_latex().splitlines()) == 8
    assert r"loss\_difference & pulls\_difference" in compared.to_latex()
    with pytest.raises(KeyError, match="no column 'pulls'. Did you mean 'pulls_difference' or 'pulls_se'"):
        compared["pulls"]
    assert "pulls" not in compared
    assert compared.get("pulls") is None
    # Without finished runs nothing is known, and all cells say so alike.
    columns = of(0, 0.0).columns | {"status": np.full(8, 2)}
    line = repr(compare(Results(columns, None, root=(0, 2)), of(1, 3.0))).splitlines()[1]
    assert "nan" not in line
    assert line.split()[-3:] == ["-"] * 3


def test_two_sweeps_of_several_rules_are_compared_rule_by_rule():
    other = Results(COLUMNS | {"pulls": COLUMNS["pulls"] + 1}, None, root=(0, 4))
    compared = compare(RESULTS, other)
    assert compared["rule"].tolist() == ["RAGE", "RAGE", "LinGapE", "LinGapE"]
    assert compared["pulls_difference"].tolist() == [-1] * 4


def sweep(seed, **settings):
    """Sweeps a counter: its runs do not depend on the key, which the results name nevertheless."""
    key = jax.random.fold_in(KEY, seed)
    settings = {"seeds": 2, "key": key, "max_rounds": 30, "lanes": 4, "chunk": 16, "progress": False} | settings
    return jaxbandits.sweep(lambda task, key: (counter(5), NOISE), np.zeros(2), **settings)


def test_results_name_their_root_key(tmp_path):
    one, other, stored = sweep(0), sweep(1), sweep(0, store=tmp_path)
    assert one.root == stored.root == jaxbandits.load(tmp_path).root
    assert one.root != other.root
    assert concatenate({"a": one, "b": stored}).root == one.root
    assert concatenate({"a": one, "b": other}).root is None
    compare(one, other)
    compare(one.where(row=0), one.where(row=1), by="pulls")  # no task in common
    with pytest.warns(UserWarning, match="share random numbers"):
        compare(one, stored)
