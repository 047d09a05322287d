"""The command line of the experiments."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import pyarrow.parquet as pq
import pytest

from experiments import __main__ as command
from experiments import load
from experiments.__main__ import keep_compiled_programs, main
from experiments.report import Line, Report
from experiments.settings import parameters, settings_of

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
        (["linear_table1", "--set", "delta=.1"], "the experiment has no parameters that can be set, got 'delta'"),
    ],
)
def test_command_refuses_bad_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def made_up(options, *, delta=0.1, sizes=(1.0, 2.0)):
    """Stands for the run of an experiment with two parameters."""
    return Report("A title", [Line("delta", delta), *(Line("size", size) for size in sizes)], [], {}, None)


@pytest.fixture
def one_experiment(monkeypatch):
    monkeypatch.setattr(command, "load", lambda name: SimpleNamespace(run=made_up, __doc__="Made up."))


@pytest.mark.usefixtures("one_experiment")
def test_set_parameters_reach_the_run_and_the_report(tmp_path, capsys):
    words = ["mab_epsilon", "--out", str(tmp_path)]
    assert main([*words, "--set", "delta=.01", "--set", "sizes=3,4"]) == 0
    assert main(words) == 0
    names = ("mab_epsilon_delta=0.01_sizes=3,4", "mab_epsilon")
    chosen, plain = (json.loads((tmp_path / f"{name}.json").read_text()) for name in names)
    assert [line["ours"] for line in chosen["lines"]] == [0.01, 3, 4]
    assert [line["ours"] for line in plain["lines"]] == [0.1, 1, 2]
    assert chosen["title"] == "A title [set: delta = 0.01, sizes = 3,4]"
    assert chosen["notes"] == ["Set on the command line: delta = 0.01 (default 0.1), sizes = 3,4 (default 1,2)."]
    assert chosen["set"] == {"delta": 0.01, "sizes": [3, 4]}
    assert (plain["title"], plain["notes"], plain.get("set")) == ("A title", [], None)
    assert chosen["stamp"] == f"{plain['stamp']}, delta=0.01, sizes=(3.0, 4.0)"
    assert "[set: delta = 0.01, sizes = 3,4]" in capsys.readouterr().out


@pytest.mark.usefixtures("one_experiment")
def test_set_parameters_have_a_store_of_their_own(tmp_path):
    stores = []
    for words in ([], ["--set", "delta=.01"]):
        options = command.parser_of("mab_epsilon").parse_args(["mab_epsilon", "--store", str(tmp_path), *words])
        with command.placed(settings_of(options), options, "mab_epsilon") as placed:
            stores.append(placed.store)
    assert stores == [tmp_path / "mab", tmp_path / "mab" / "delta=0.01"]


@pytest.mark.parametrize(
    ("name", "known"), [("mab_epsilon", {"delta": 0.1, "epsilons": (0.0, 0.02, 0.05, 0.1)}), ("linear_table1", {})]
)
def test_parameters_are_the_keywords_of_run(name, known):
    assert parameters(load(name).run) == known


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
