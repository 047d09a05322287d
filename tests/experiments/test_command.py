"""The command line of the experiments."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]


def command(*arguments, cwd=ROOT, **environment):
    return subprocess.run(
        [sys.executable, "-m", "experiments", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        env=os.environ | {"JAX_PLATFORMS": "cpu"} | environment,
    )


@pytest.mark.processes
def test_the_command_lists_what_exists():
    done = command()
    assert done.returncode == 0
    for name in ("table1", "figure1", "figure2", "figure3", "width", "theorem3"):
        assert f"linear_{name}  " in done.stdout
    assert "bench [NAME]" in done.stdout


@pytest.mark.processes
def test_help_tells_the_options():
    done = command("linear_figure3", "--help")
    assert done.returncode == 0
    for option in ("--quick", "--seeds", "--lanes", "--store", "--workers", "--out", "--instance", "--r6a"):
        assert option in done.stdout


@pytest.mark.processes
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


@pytest.mark.processes
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
    assert {path.name for path in (tmp_path / "store" / "linear").iterdir()} == {
        "figure-2-lingape",
        "figure-2-xy-static",
    }
