"""Tables, verdicts and the command line of the experiments."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments import report
from experiments.report import Claim, Line, Report

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (Line("a", 100.0, se=3.0), "nothing printed"),
        (Line("a", 100.0, se=3.0, printed=111.9), "agrees"),
        (Line("a", 100.0, se=3.0, printed=112.1), "DIFFERS"),
        (Line("a", 100.0, se=3.0, printed=119.9, printed_se=4.0), "agrees"),
        (Line("a", 100.0, printed=101.0), "DIFFERS"),
        (Line("a", 100.0, printed=101.0, tolerance=1.0), "agrees"),
        (Line("a", np.nan, se=np.nan, printed=101.0), "DIFFERS"),
    ],
)
def test_verdicts(line, expected):
    assert report.verdict(line) == expected


def test_a_line_is_over_the_stopped_runs():
    status = np.array([1, 1, 2, 3, 1])
    line = report.line("x", np.array([1.0, 2.0, 50.0, np.nan, 3.0]), status=status, printed=5.0, printed_runs=4)
    assert (line.ours, line.runs, line.censored, line.failed) == (2.0, 5, 1, 1)
    assert line.se == pytest.approx(1 / np.sqrt(3))
    assert line.printed_se == pytest.approx(0.5)


def test_a_line_without_a_stopped_run_has_no_mean():
    line = report.line("x", np.array([1.0]), status=np.array([2]))
    assert np.isnan(line.ours)
    assert line.censored == 1


def test_numbers_as_people_read_them():
    numbers = (2742463, 1234.5, 0.01234, 3.0, np.nan, 2.5e12)
    assert [report.number(x) for x in numbers] == ["2,742,463", "1,234", "0.01234", "3", "-", "2.5e+12"]


def test_table_and_files(tmp_path):
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
    written = report.save(result, "thing", tmp_path)
    assert [path.name for path in written] == ["thing.txt", "thing.parquet", "thing.png"]
    assert written[2].read_bytes()[:4] == b"\x89PNG"
    table = pq.read_table(written[1])
    assert table["counts"].to_pylist() == [[0, 1], [2, 3], [4, 5]]
    assert str(table["counts"].type) == "fixed_size_list<element: int64>[2]"


def command(*arguments, cwd=ROOT, **environment):
    return subprocess.run(
        [sys.executable, "-m", "experiments", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": "cpu"} | environment,
    )


def test_the_command_lists_what_exists():
    done = command()
    assert done.returncode == 0
    for name in ("table1", "figure1", "figure2", "figure3", "width", "theorem3"):
        assert f"linear_{name}  " in done.stdout
    assert "bench [NAME]" in done.stdout


def test_help_tells_the_options():
    done = command("linear_figure3", "--help")
    assert done.returncode == 0
    for option in ("--quick", "--seeds", "--lanes", "--store", "--workers", "--out", "--instance", "--r6a"):
        assert option in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["linear_figure9"], "there is no experiment 'linear_figure9': did you mean linear_figure"),
        (["linear_table1", "--seeds", "0"], "must be at least 1, got 0"),
        (["bench", "lineal"], "invalid choice: 'lineal'"),
    ],
)
def test_the_command_names_what_is_wrong(arguments, message):
    done = command(*arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_small_experiment_end_to_end(tmp_path):
    """On two workers into a store; then once more, from the store alone; compiled programs are kept meanwhile."""
    stored = ("linear_figure2", "--seeds", "8", "--lanes", "8", "--store", str(tmp_path / "store"), "--verbose")
    own_cache = {"XDG_CACHE_HOME": str(tmp_path), "JAX_COMPILATION_CACHE_DIR": ""}
    first = command(*stored, "--workers", "2", "--out", str(tmp_path / "first"), **own_cache)
    assert first.returncode == 0, first.stderr
    assert "LinGapE, gap 0.5" in first.stdout
    assert "written:" in first.stdout
    assert any((tmp_path / "jaxbandits").iterdir())
    again = command(*stored, "--out", str(tmp_path / "again"), **own_cache)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("40 of 40 runs are stored already") == 2
    assert "compiled in" not in again.stderr
    tables = [pq.read_table(tmp_path / name / "linear_figure2.parquet") for name in ("first", "again")]
    assert tables[0].num_rows == 2 * 5 * 8
    assert tables[0].equals(tables[1])
    assert (tmp_path / "first" / "linear_figure2.png").stat().st_size > 10_000
    assert {path.name for path in (tmp_path / "store" / "linear_figure2").iterdir()} == {
        "figure-2-lingape",
        "figure-2-xy-static",
    }
