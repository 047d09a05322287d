"""Fingerprints of programs, here and in another revision: the test of a restructuring."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from experiments.__main__ import main
from experiments.bench import programs
from experiments.bench.fingerprints import fingerprint

ROOT = Path(__file__).parents[2]
needs_git = pytest.mark.skipif(
    shutil.which("git") is None or not (ROOT / ".git").exists(), reason="this is no git checkout"
)


class First(NamedTuple):
    sums: jax.Array


class Other(NamedTuple):
    totals: jax.Array


def cloned(folder):
    """Clones this checkout into a folder."""
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    return clone


def text_of(name, fields, factor, operation=jnp.sin):
    """Returns a program with an inner function of this name and a result with these fields."""

    def inner(x):
        return operation(x) * factor

    inner.__name__ = name
    return jax.jit(lambda x: fields(jax.jit(inner)(x))).lower(jnp.ones(3)).as_text()


def test_fingerprint_ignores_names_and_sees_operations_and_constants():
    first = fingerprint(text_of("step", First, 2.0))
    assert text_of("step", First, 2.0) != text_of("advance", Other, 2.0)
    assert fingerprint(text_of("advance", Other, 2.0)) == first
    assert fingerprint(text_of("step", First, 2.0000000000000004)) != first
    assert fingerprint(text_of("step", First, 2.0, jnp.cos)) != first
    # A large constant counts to its last entry.
    many = jnp.arange(10_000.0)
    changed = many.at[-1].add(1e-9)
    texts = [jax.jit(lambda x, c=c: (x + c).sum()).lower(1.0).as_text() for c in (many, changed)]
    assert fingerprint(texts[0]) != fingerprint(texts[1])


def test_programs_refuses_a_folder_that_is_no_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="must be called in a checkout with tests/contract/cases.py, got"):
        programs.checkout()


@needs_git
def test_programs_refuses_an_unknown_revision(monkeypatch):
    monkeypatch.chdir(ROOT)
    with (
        pytest.raises(SystemExit, match="--against must be a revision of this repository, got no-such-branch"),
        programs.worktree(ROOT, "no-such-branch"),
    ):
        pass


@needs_git
@pytest.mark.wide
@pytest.mark.processes
def test_programs_tells_a_changed_constant_from_the_same_programs(tmp_path, monkeypatch, capsys):
    """Shown in a clone, in whose working tree one case runs another rule."""
    clone = cloned(tmp_path)
    path = clone / "tests" / "contract" / "mab.py"
    path.write_text(path.read_text() + '\nCASES["ucb1"] = CASES["moss"]\n')
    monkeypatch.chdir(clone)
    arguments = ["bench", "programs", "--against", "HEAD", "--out", str(tmp_path / "out"), "--only"]
    assert main([*arguments, "kl-ucb"]) == 0
    assert "[holds] every program is the same: 4 of 4 are" in capsys.readouterr().out
    assert main([*arguments, "ucb1"]) == 1
    assert "ucb1, float64" in capsys.readouterr().out
    listed = subprocess.run(["git", "worktree", "list"], cwd=clone, capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) == 1  # the temporary one is gone


@needs_git
@pytest.mark.processes
def test_programs_reports_a_case_that_cannot_be_traced_beside_the_others(tmp_path, monkeypatch, capsys):
    clone = cloned(tmp_path)
    path = clone / "tests" / "contract" / "mab.py"
    path.write_text(path.read_text() + '\nCASES["moss"] = CASES["moss"]._replace(make=lambda dtype: 1 / 0)\n')
    monkeypatch.chdir(clone)
    assert main(["bench", "programs", "--out", str(tmp_path / "out"), "--only", "moss", "kl-ucb"]) == 1
    printed = capsys.readouterr().out
    assert "moss, float64 in here: ZeroDivisionError: division by zero" in printed
    assert "fails" not in next(line for line in printed.splitlines() if line.startswith("kl-ucb, float64"))


@needs_git
@pytest.mark.processes
def test_programs_that_is_terminated_leaves_no_worktree_and_no_process(tmp_path):
    clone = cloned(tmp_path)

    def worktrees():
        listed = subprocess.run(["git", "worktree", "list"], cwd=clone, capture_output=True, text=True, check=True)
        return len(listed.stdout.splitlines())

    command = [sys.executable, "-m", "experiments", "bench", "programs", "--against", "HEAD"]
    with subprocess.Popen(command, cwd=clone, stderr=subprocess.PIPE, text=True) as process:
        # After the first case, both processes of fingerprints have begun.
        assert process.stderr.readline()
        assert worktrees() == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
        assert worktrees() == 1
        process.stderr.read()  # ends once the last process that writes to it has ended
