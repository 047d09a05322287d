"""The Python blocks of the README, and the script of the engine's page, run as they stand."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import jaxbandits.engine
from experiments import experiments

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCKS, SCRIPTS = (
    re.findall(r"```python\n(.*?)```", text, re.DOTALL) for text in (README.read_text(), jaxbandits.engine.__doc__)
)


def test_python_blocks_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "[20 20 20] [0 0 0]" in shown  # all runs stopped, none censored
    assert int(names["state"].pulls) == 1
    assert len(names["results"].columns["pulls"]) == 60


def test_readme_is_short():
    assert len(README.read_text().splitlines()) <= 180


@pytest.mark.slow
@pytest.mark.processes
def test_script_of_the_engine_page_runs(tmp_path):
    """Runs as a file, since its workers import it. tests/engine always tries a pool; Dask is tried with slow tests."""
    (tmp_path / "script.py").write_text(SCRIPTS[0])
    flags = [flag for flag in os.environ["XLA_FLAGS"].split() if "device_count" not in flag]
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env=os.environ | {"XLA_FLAGS": " ".join(flags)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    processes, dask = done.stdout.splitlines()
    assert processes == dask


@pytest.mark.parametrize(
    "page", [README, README.parent / "experiments" / "README.md"], ids=lambda page: page.parent.name
)
def test_relative_links_exist(page):
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    relative = [link for link in links if not link.startswith("http")]
    assert relative
    assert [link for link in relative if not (page.parent / link).exists()] == []


def test_commands_name_experiments_that_exist():
    commands = set()
    for page in (README, README.parent / "experiments" / "README.md"):
        commands |= set(re.findall(r"`((?:mab|linear|fullbandit|kcenter|cpe|kernel)_\w+)[` ]", page.read_text()))
    assert len(commands) > 15
    assert commands <= set(experiments())
