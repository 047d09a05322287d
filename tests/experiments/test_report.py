"""Tables, verdicts and the files of an experiment."""

import re

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments import files, report
from experiments.report import Claim, Line, Report


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (Line("a", 100.0, se=3.0), "nothing printed"),
        (Line("a", 100.0, se=3.0, printed=111.9), "agrees"),
        (Line("a", 100.0, se=3.0, printed=112.1), "DIFFERS"),
        (Line("a", 100.0, se=3.0, printed=119.9, printed_se=4.0, spread="one run's"), "agrees within one run's spread"),
        (Line("a", 100.0, se=3.0, printed=120.1, printed_se=4.0, spread="one run's"), "DIFFERS"),
        (Line("a", 100.0, printed=101.0), "DIFFERS"),
        (Line("a", 100.0, printed=101.0, tolerance=1.0), "agrees"),
        (Line("a", np.nan, se=np.nan, printed=101.0), "DIFFERS"),
    ],
)
def test_verdicts(line, expected):
    assert report.verdict(line) == expected


def test_line_is_over_the_stopped_runs():
    status = np.array([1, 1, 2, 3, 1])
    line = report.line("x", np.array([1.0, 2.0, 50.0, np.nan, 3.0]), status=status, printed=5.0, printed_runs=4)
    assert (line.ours, line.runs, line.censored, line.failed) == (2.0, 5, 1, 1)
    assert line.se == pytest.approx(1 / np.sqrt(3))
    assert line.printed_se == pytest.approx(0.5)
    assert line.spread == "4 runs'"
    columns = {"pulls": np.array([1.0, 5, 3, 7]), "status": np.ones(4, int), "row": np.array([0, 1, 0, 1])}
    assert [each.ours for each in report.lines_by(("a", "b"), columns)] == [2, 6]
    assert report.line_of("a", columns, columns["row"] == 1, bound=2.0).bound == 2.0


def test_line_without_a_stopped_run_has_no_mean():
    line = report.line("x", np.array([1.0]), status=np.array([2]))
    assert np.isnan(line.ours)
    assert line.censored == 1


def test_number_has_separators_and_few_digits():
    numbers = (2742463, 1234.5, 0.01234, 3.0, np.nan, 2.5e12)
    assert [report.number(x) for x in numbers] == ["2,742,463", "1,234", "0.01234", "3", "-", "2.5e+12"]


def test_table_and_save_write_all_parts(tmp_path):
    result = Report(
        "A title",
        [Line("pulls", 1234.0, se=2.0, runs=7, censored=2, printed=1230.0, bound=100.0)],
        [Claim("it holds", "3 < 4", True), Claim("it does not", "4 < 3", False)],
        {"row": np.arange(3), "counts": np.arange(6).reshape(3, 2), "name": np.array(["a", "b", "c"])},
        lambda figure: figure.subplots().plot([1, 2], [3, 4]),
        notes=["a note"],
    )
    text = report.table(result)
    assert "7 (2 censored)" in text
    assert "12.3" in text
    assert "agrees" in text
    assert "[holds] it holds: 3 < 4" in text
    assert "[FAILS] it does not: 4 < 3" in text
    written = files.save(result, "thing", tmp_path)
    assert [path.name for path in written] == ["thing.txt", "thing.parquet", "thing.png", "thing.svg"]
    assert written[2].read_bytes()[:4] == b"\x89PNG"
    svg = written[3].read_text()
    # The dark page has another colour for ink.
    assert "var(--ink, #000000)" in svg
    assert not re.search(r"(?<!, )#000000", svg)
    # Colours that a caller leaves open, as `Results.plot` does, are the page's.
    assert "var(--c0, #1b4f8f)" in svg
    table = pq.read_table(written[1])
    assert table["counts"].to_pylist() == [[0, 1], [2, 3], [4, 5]]
    assert str(table["counts"].type) == "fixed_size_list<element: int64>[2]"


def test_a_grid_replaces_the_lines():
    result = Report("T", [Line("pulls", 1.0)], [], {}, None, grid=[{"": "a", "runs": "10"}, {"": "bcd", "runs": "9"}])
    assert report.table(result).splitlines()[3:] == ["     runs", "---  ----", "a    10", "bcd  9"]
    assert report.record(result)["grid"] == [["", "runs"], [["a", "10"], ["bcd", "9"]]]


def test_joined_stacks_the_common_columns():
    one = {"row": np.arange(2), "x": np.zeros(2), "y": np.zeros((2, 3))}
    two = {"row": np.arange(1), "x": np.ones(1), "y": np.zeros((1, 4))}
    stacked = report.joined({("a", 1): one, ("b", 2): two})
    assert stacked["algorithm"].tolist() == ["a, 1", "a, 1", "b, 2"]
    assert stacked["x"].tolist() == [0, 0, 1]
    assert "y" not in stacked
