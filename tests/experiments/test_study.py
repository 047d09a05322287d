"""Studies: sweeps cut into cells, and what is made of the cells, on made-up runs."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from experiments import study
from experiments.report import Line, plus_minus
from jaxbandits import Status

DELTAS = (0.1, 0.01)


def runs(pulls, wrong=0):
    """Makes up a sweep of two rows, whose runs have ended in another order."""
    row = np.array([1, 0, 1, 0])
    status = np.array([Status.STOPPED, Status.STOPPED, Status.STOPPED, Status.MAX_ROUNDS])
    return {"row": row, "status": status, "pulls": pulls + 100 * row, "wrong": np.arange(4) < wrong}


@pytest.fixture
def cells():
    sizes = {"a": 100, "b": 300}
    return study.crossed(
        {"rule": sizes, "delta": DELTAS},
        lambda rule: runs(sizes[rule], wrong=rule == "b"),
        rows="delta",
        name="{rule} at {delta:g}",
        more=lambda rule, delta: {"bound": 10 / delta},
    )


def test_rows_of_a_sweep_are_the_values_of_an_axis(cells):
    assert list(cells.sweeps) == [("a",), ("b",)]
    assert [each.quantity for each in cells.lines.values()] == ["a at 0.1", "a at 0.01", "b at 0.1", "b at 0.01"]
    first, second = cells.lines["a", 0.1], cells.lines["a", 0.01]
    assert (first.ours, first.runs, first.censored, first.bound) == (100, 2, 1, 100)
    assert (second.ours, second.runs, second.censored, second.bound) == (200, 2, 0, 1000)


def test_a_column_of_a_sweep_is_cut_by_its_values():
    sweep = runs(100) | {"gap": np.array([0.2, 0.1, 0.2, 0.2])}
    made = study.crossed({"rule": ["a"], "gap": (0.1, 0.2)}, lambda rule: sweep, split="gap")
    assert [(each.runs, each.ours) for each in made.lines.values()] == [(1, 100), (3, 200)]
    assert made.cells["a", 0.2]["row"].tolist() == [1, 1, 0]
    assert study.columns(made)["gap"].tolist() == [0.1, 0.2, 0.2, 0.2]


def test_along_has_a_line_for_each_value_of_an_axis(cells):
    assert {rule: each.ours for rule, each in study.along(cells, "rule", delta=0.01).items()} == {"a": 200, "b": 400}


def test_combinations_that_a_sweep_leaves_out_have_no_cell():
    axes = {"n": (10, 20), "rule": ("a", "b")}
    made = study.crossed(axes, lambda n, rule: None if (n, rule) == (20, "b") else runs(n))
    assert list(made.cells) == [(10, "a"), (10, "b"), (20, "a")]
    assert study.by(made, "rule", made.sweeps).keys() == {"a", "b"}
    assert [each.quantity for each in study.by(made, "rule")["b"]] == ["10, b"]


def test_numbers_that_are_not_random_are_lines_without_runs():
    known = {"a": runs(100), "oracle": [Line("", 70.0), Line("", 80.0)]}
    axes = {"rule": known, "delta": DELTAS}
    made = study.crossed(axes, lambda rule: known[rule], rows="delta", more=lambda rule, delta: {"bound": 10 / delta})
    assert [each.ours for each in study.by(made, "rule")["oracle"]] == [70, 80]
    assert made.lines["oracle", 0.01] == Line("oracle, 0.01", 80.0, bound=1000)
    assert list(study.errors(made)) == [("a", 0.1), ("a", 0.01)]
    assert study.stops(made).measured == "3 of 4"
    assert study.columns(made)["rule"].tolist() == ["a"] * 4
    single = study.collected({"rule": ("a", "oracle")}, {"a": runs(100), "oracle": Line("", 70.0)})
    assert single.lines["oracle",] == Line("oracle", 70.0)


def test_by_groups_lines_in_order_and_at_a_value_of_another_axis(cells):
    assert [[each.ours for each in row] for row in study.by(cells, "rule").values()] == [[100, 200], [300, 400]]
    assert [each.ours for each in study.by(cells, "delta")[0.01]] == [200, 400]
    assert [each.ours for each in study.by(cells, "rule", delta=0.1)["b"]] == [300]


def test_only_keeps_the_cells_at_a_value(cells):
    part = study.only(cells, rule="b")
    assert list(part.lines) == list(part.cells) == [("b", 0.1), ("b", 0.01)]
    assert study.columns(part)["rule"].tolist() == ["b"] * 4


def test_errors_are_counted_in_each_cell(cells):
    assert study.errors(cells) == {("a", 0.1): (0, 1), ("a", 0.01): (0, 2), ("b", 0.1): (0, 1), ("b", 0.01): (1, 2)}
    assert study.named(cells, study.errors(cells))["b at 0.01"] == (1, 2)


def test_stops_fails_with_a_censored_run(cells):
    assert not study.stops(cells).holds
    assert study.stops(cells).measured == "6 of 8"


def test_columns_have_a_column_for_each_axis(cells):
    columns = study.columns(cells)
    assert columns["rule"].tolist() == ["a"] * 4 + ["b"] * 4
    assert columns["delta"].tolist() == [0.1, 0.1, 0.01, 0.01] * 2
    assert columns["pulls"].tolist() == [100, 100, 200, 200, 300, 300, 400, 400]


def test_columns_that_differ_in_shape_are_left_out():
    parts = {
        "a": runs(1) | {"counts": np.zeros((4, 2))},
        "b": runs(2) | {"counts": np.zeros((4, 3)), "seen": np.ones(4)},
    }
    columns = study.columns(study.collected({"rule": parts}, parts))
    assert set(columns) == {"row", "status", "pulls", "wrong", "rule"}


def test_across_puts_the_values_of_an_axis_side_by_side(cells):
    rows = study.across(cells, "rule", more=lambda delta: {"runs": f"{2 / delta:g}"})
    assert rows[1] == {"delta": "0.01", "a": plus_minus(cells.lines["a", 0.01]), "b": "400 +- 0", "runs": "200"}
    assert len(rows) == 2


def test_another_quantity_is_the_mean_of_all_runs():
    made = study.collected({"rule": ["a"]}, {"a": runs(100)}, values=lambda columns: columns["pulls"] / 2)
    assert (made.lines["a",].ours, made.lines["a",].runs, made.lines["a",].censored) == (75, 4, 0)


def test_report_has_the_lines_the_columns_and_the_figure(cells):
    draw = study.figure(cells, "delta", references={"bound": [100, 1000]}, legend=2, x_ticks=True, xscale="log")
    made = study.report("T", cells, [study.stops(cells)], draw=draw)
    assert [each.ours for each in made.lines] == [100, 200, 300, 400]
    assert made.columns["pulls"].size == 8
    figure = Figure(layout="constrained")
    made.draw(figure)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(labels) == ["a", "b", "bound"]
    assert figure.axes[0].get_xlabel() == "delta"
    assert sorted(figure.axes[0].get_xticks()) == [0.01, 0.1]


def test_curves_scale_means_and_their_errors(cells):
    axes = Figure().subplots()
    study.curves(
        axes, cells, lambda rule, delta: 1 / delta, scale=lambda rule, delta: 1 / cells.lines[rule, delta].ours
    )
    drawn = axes.containers[1].lines[0]
    assert drawn.get_xdata().tolist() == pytest.approx([10, 100])
    assert drawn.get_ydata().tolist() == pytest.approx([1, 1])
