"""The command line of the experiments."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import jax
import pyarrow.parquet as pq
import pytest

from experiments.__main__ import keep_compiled_programs, main

ROOT = Path(__file__).resolve().parents[2]
KEPT = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")


def test_command_without_arguments_lists_the_experiments(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    for name in ("table1", "figure1", "figure2", "figure3", "width", "theorem3"):
        assert f"linear_{name}  " in shown
    assert "bench [NAME]" in shown


def test_help_lists_the_options(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["linear_figure3", "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    for option in ("--quick", "--seeds", "--lanes", "--store", "--workers", "--out", "--instance", "--r6a"):
        assert option in shown


def test_command_suggests_a_similar_name(capsys):
    assert main(["linear_figure9"]) == 2
    assert "there is no experiment 'linear_figure9': did you mean linear_figure" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["linear_table1", "--seeds", "0"], "must be at least 1, got 0"),
        (["bench", "lineal"], "invalid choice: 'lineal'"),
        (["mab_epsilon", "--set", "gap=1"], "NAME must be one of delta, epsilons, got 'gap'"),
        (["mab_epsilon", "--set", "delta=2"], "delta must lie in (0, 1), got 2"),
        (["mab_epsilon", "--set", "delta=a"], "delta must be a number like 0.1, got 'a'"),
        (["mab_epsilon", "--set", "epsilons=0,-1"], "epsilons must be at least 0, got -1"),
        (["mab_scaling", "--set", "delta=.1"], "this experiment has no parameters"),
    ],
)
def test_command_refuses_bad_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_compiled_programs_are_cached(tmp_path, monkeypatch):
    """If the user has chosen no folder, there is a default, which workers read from their environment."""
    chosen = {name: getattr(jax.config, name) for name in KEPT}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in KEPT:
        monkeypatch.setenv(name.upper(), "")
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        keep_compiled_programs()
        assert jax.config.jax_compilation_cache_dir == os.environ["JAX_COMPILATION_CACHE_DIR"]
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "jaxbandits")
    finally:
        for name, value in chosen.items():
            jax.config.update(name, value)
    # The user's choice stays.
    keep_compiled_programs()
    assert jax.config.jax_compilation_cache_dir == chosen["jax_compilation_cache_dir"]


@pytest.mark.wide
@pytest.mark.processes
def test_a_small_experiment_end_to_end(tmp_path, caplog):
    """A program on two workers fills a store. Then the experiment runs again, from the store alone."""
    words = ["cpe_radius", "--seeds", "8", "--lanes", "8", "--store", str(tmp_path / "store"), "--verbose"]
    program = [sys.executable, "-m", "experiments", *words, "--workers", "2", "--out", str(tmp_path / "first")]
    first = subprocess.run(program, cwd=ROOT, capture_output=True, text=True)
    assert first.returncode == 0, first.stderr
    assert "T, radius x 0.5" in (tmp_path / "first" / "cpe_radius.json").read_text()
    assert "written:" in first.stdout
    with caplog.at_level(logging.INFO):
        assert main([*words, "--out", str(tmp_path / "again")]) == 0
    assert caplog.text.count("48 of 48 runs are stored already") == 1
    assert "compiled in" not in caplog.text
    tables = [pq.read_table(tmp_path / name / "cpe_radius.parquet") for name in ("first", "again")]
    assert tables[0].num_rows == 6 * 8
    assert tables[0].equals(tables[1])
    assert (tmp_path / "first" / "cpe_radius.png").stat().st_size > 10_000
    assert [path.name for path in (tmp_path / "store" / "cpe").iterdir()] == ["cpe-radius-coci"]
