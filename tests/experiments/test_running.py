"""Experiments of a report run in separate processes: finished ones stay, and no process outlives the report."""

import json
import signal
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import psutil
import pytest

from experiments import page
from experiments.__main__ import parser_of
from experiments.page import running
from experiments.settings import settings_of, stamp

ROOT = Path(__file__).resolve().parents[2]
SHORT, LONGER = "fullbandit_table1", "cpe_radius"  # the first has nothing random
SEEDS = ["--seeds", "10000"]  # too many for the second to end before it is stopped
UNSET = dict.fromkeys(("seeds", "lanes", "store", "data", "quizzes"))


def program(arguments):
    command = [sys.executable, "-m", "experiments", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def report(folder, arguments):
    return program(["report", "--quick", "--jobs", "2", "--out", str(folder), *arguments])


def until(process, *conditions):
    """Waits until all conditions hold; returns the processes of the experiments."""
    deadline = time.monotonic() + 120
    while not all(condition() for condition in conditions):
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return psutil.Process(process.pid).children(recursive=True)


def simulates(folder):
    log = folder / f"{LONGER}.log"
    return lambda: log.exists() and "pulls" in log.read_text()


@pytest.mark.wide
@pytest.mark.processes
@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_report_keeps_finished_experiments(tmp_path):
    ended = tmp_path / f"{SHORT}.json"
    process = report(tmp_path, [*SEEDS, "--only", SHORT, LONGER])
    workers = until(process, simulates(tmp_path), ended.exists)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert psutil.wait_procs(workers, timeout=60)[1] == []  # none is alive
    assert process.returncode == 130
    assert ended.exists()
    assert not (tmp_path / f"{LONGER}.json").exists()


@pytest.mark.wide
@pytest.mark.processes
def test_no_process_outlives_a_killed_report(tmp_path):
    process = report(tmp_path, [*SEEDS, "--only", LONGER])
    workers = until(process, simulates(tmp_path))
    process.kill()
    process.communicate(timeout=60)
    assert psutil.wait_procs(workers, timeout=60)[1] == []
    assert not (tmp_path / f"{LONGER}.json").exists()


@pytest.mark.wide
@pytest.mark.processes
def test_report_reuses_a_single_experiment_and_shows_a_failed_one(tmp_path):
    single = program([SHORT, "--quick", "--out", str(tmp_path)])
    single.communicate(timeout=120)
    assert single.returncode == 0
    ended = (tmp_path / f"{SHORT}.json").stat().st_mtime_ns
    process = report(tmp_path, ["--only", SHORT, "kcenter_table1", "--data", str(tmp_path / "nowhere")])
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "kcenter_table1 failed" in output
    assert (tmp_path / f"{SHORT}.json").stat().st_mtime_ns == ended
    text = (tmp_path / "index.html").read_text()
    assert "nowhere" in text  # the experiment's own message
    assert "Failed to run." in text


def test_report_runs_missing_experiments_only(tmp_path, monkeypatch):
    names, ran = ["linear_table1", "linear_width", "kernel_beta"], []

    def run_all(missing, options, ended):
        ran.append([name for name in missing if not running.is_up_to_date(name, options)])
        for name in ran[-1]:
            settings = settings_of(parser_of(name).parse_args(running.command(name, options)))
            written = {"title": "", "lines": [], "claims": [], "notes": [], "seconds": 1.0, "pulls": 0}
            (options.out / f"{name}.json").write_text(json.dumps(written | {"stamp": stamp(name, settings)}))
        return {}

    monkeypatch.setattr(running, "run_all", run_all)
    options = Namespace(out=tmp_path, only=names, quick=True, rerun=False, tables=False, jobs=1, workers=1, **UNSET)
    assert page.run(Namespace(**vars(options))) == page.run(Namespace(**vars(options))) == 0
    assert ran == [["linear_table1", "linear_width", "kernel_beta"], []]
    page.run(Namespace(**vars(options) | {"quick": False}))
    page.run(Namespace(**vars(options) | {"seeds": 3}))
    assert len(ran[2]) == len(ran[3]) == 3


def test_own_store_differs_between_quick_and_full_runs(tmp_path):
    options = Namespace(out=tmp_path, quick=True, **UNSET)
    small, full = running.own_store(options), running.own_store(Namespace(**vars(options) | {"quick": False}))
    assert small == running.own_store(options)
    assert small != full
    assert small.parent == tmp_path / "runs"


def test_stamp_depends_on_what_changes_the_runs():
    parser = parser_of("kcenter_table3")
    plain = stamp("kcenter_table3", settings_of(parser.parse_args(["kcenter_table3"])))
    same = ["kcenter_table3", "--out", "elsewhere", "--workers", "2", "--lanes", "8", "--verbose"]
    assert stamp("kcenter_table3", settings_of(parser.parse_args(same))) == plain
    for more in (["--quick"], ["--seeds", "2"], ["--up-to", "100"]):
        assert stamp("kcenter_table3", settings_of(parser.parse_args(["kcenter_table3", *more]))) != plain


def test_in_order_has_the_longest_first_then_all_families_in_turn():
    names = ["cpe_delta", "cpe_gap", "cpe_osa", "kernel_beta", "kernel_scaling", "linear_table1"]
    expected = ["kernel_scaling", "cpe_delta", "kernel_beta", "linear_table1", "cpe_gap", "cpe_osa"]
    assert running.in_order(names) == expected


def test_data_flags_go_to_the_experiments_that_take_them():
    options = Namespace(data="images", quizzes=None)
    assert running.data_flags("kcenter_table1", options) == ["--data", "images"]
    assert running.data_flags("fullbandit_table2", options) == []
    assert running.data_flags("linear_table1", options) == []
    assert running.data_flags("fullbandit_replay", options) is None
    given = Namespace(data=None, quizzes="quizzes")
    assert running.data_flags("fullbandit_replay", given) == ["--data", "quizzes"]
    assert running.data_flags("kcenter_table1", given) == []
