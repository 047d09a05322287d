"""The report's experiments run in processes of their own: what has ended stays, and nothing outlives the report."""

import json
import signal
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import psutil
import pytest

from experiments.page import running

ROOT = Path(__file__).resolve().parents[2]
SHORT, LONGER = "fullbandit_table1", "cpe_eight"  # nothing is random in the first
SEEDS = "--seeds", "10000"  # so that the second does not end by itself before it is stopped


def report(folder, *more):
    words = [sys.executable, "-m", "experiments", "report", "--quick", "--jobs", "2", "--out", str(folder), *more]
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def until_under_way(process, folder):
    """Waits until the short one has ended and the longer one simulates; returns the processes of the experiments."""
    log, done = folder / f"{LONGER}.log", folder / f"{SHORT}.json"
    deadline = time.monotonic() + 120
    while not (done.exists() and "stamp" in done.read_text() and log.exists() and "pulls" in log.read_text()):
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return psutil.Process(process.pid).children(recursive=True)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_report_that_is_stopped_goes_on(tmp_path, how):
    process = report(tmp_path, *SEEDS, "--only", SHORT, LONGER)
    workers = until_under_way(process, tmp_path)
    process.send_signal(how)
    output, _ = process.communicate(timeout=60)
    assert psutil.wait_procs(workers, timeout=60)[1] == []  # none is alive
    assert not (tmp_path / f"{LONGER}.json").exists()
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "goes on with what has not ended" in output

    ended = (tmp_path / f"{SHORT}.json").stat().st_mtime_ns
    again = report(tmp_path, *SEEDS, "--only", SHORT)
    assert again.communicate(timeout=120)[0].splitlines()[-1] == f"written: {tmp_path / 'index.html'}"
    assert again.returncode == 0
    assert (tmp_path / f"{SHORT}.json").stat().st_mtime_ns == ended


def test_no_experiment_starts_after_all_were_told_to_end():
    class Process:
        told = ""

        def start(self):
            self.told += "start "

        def terminate(self):
            self.told += "end"

    under_way, first, late = running.UnderWay(), Process(), Process()
    assert under_way.start("first", first)
    under_way.end()
    assert not under_way.start("late", late)
    assert (first.told, late.told) == ("start end", "")
    assert under_way.names() == ["first"]


def test_the_last_words_of_an_experiment_that_fails(tmp_path):
    process = report(tmp_path, "--only", SHORT, "kcenter_table1", "--data", str(tmp_path / "nowhere"))
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "kcenter_table1 failed: exit status 2 after" in output
    assert output.splitlines()[-1].endswith(f"all of it: {tmp_path / 'kcenter_table1.log'}")
    page = (tmp_path / "index.html").read_text()
    assert "nowhere" in page  # what it said itself
    assert "Failed to run." in page
    assert "stamp" in (tmp_path / f"{SHORT}.json").read_text()  # the others have run


def test_the_longest_first_and_then_all_families_in_turn():
    names = ["cpe_delta", "cpe_gap", "cpe_osa", "kernel_beta", "kernel_scaling", "linear_table1"]
    expected = ["kernel_scaling", "cpe_delta", "kernel_beta", "linear_table1", "cpe_gap", "cpe_osa"]
    assert running.in_order(names) == expected


def test_the_stamp_tells_what_ran(tmp_path):
    options = Namespace(quick=True, seeds=None, data=None, quizzes=None)
    stamp = running.stamp_of(options)
    assert stamp == running.stamp_of(options)
    assert stamp != running.stamp_of(Namespace(**vars(options) | {"quick": False}))
    (tmp_path / "x.json").write_text(json.dumps({"stamp": stamp}))
    assert running.record_of(tmp_path, "x") == {"stamp": stamp}
    assert running.record_of(tmp_path, "y") is None
