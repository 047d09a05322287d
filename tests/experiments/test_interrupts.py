"""Ctrl-C arrives, wherever the main thread is."""

import gc
import importlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import __main__ as command_line
from experiments._interrupts import raised_again

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import gc, os, signal, sys, time

from experiments._interrupts import raised_again


class Slow:
    def __init__(self):
        self.myself = self

    def __del__(self):
        try:
            os.kill(os.getpid(), number)
            time.sleep(60)
        except KeyboardInterrupt:
            print("lost", flush=True)
            raise


number = int(sys.argv[1])
for other in (signal.SIGINT, signal.SIGTERM):
    signal.signal(other, signal.default_int_handler if other == number else signal.SIG_IGN)
others = sys.unraisablehook
try:
    with raised_again():
        Slow()
        gc.collect()
        time.sleep(60)
        print("never raised")
except KeyboardInterrupt:
    print("raised")
print(sys.unraisablehook is others)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])  # as the report's experiments have it
def test_an_interrupt_in_the_garbage_collector_is_raised_again(number):
    arguments = [sys.executable, "-c", SCRIPT, str(int(number))]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=30)  # it waits for longer
    assert done.stdout.split() == ["lost", "raised", "True"], done.stderr


class Failing:
    def __del__(self):
        raise RuntimeError("else")


def test_other_exceptions_are_left_to_others(monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda lost: seen.append(str(lost.exc_value)))
    with raised_again():
        Failing()
        gc.collect()
    assert seen == ["else"]


@pytest.mark.parametrize(
    ("name", "words", "store", "told"),
    [
        ("fullbandit_table1", "", False, "interrupted: nothing is kept without --store DIR"),
        (
            "fullbandit_table1",
            "",
            True,
            "interrupted: what is finished is stored in {}; the same call goes on from there",
        ),
        ("fullbandit_table1", "7 of 9 runs are stored", True, "interrupted: 7 of 9 runs are stored"),
        ("bench", "", False, "interrupted: nothing is kept"),
    ],
)
def test_what_an_interrupted_experiment_says(tmp_path, monkeypatch, capsys, name, words, store, told):
    def interrupted(options):
        raise KeyboardInterrupt(*[words] * bool(words))

    monkeypatch.setattr(importlib.import_module(f"experiments.{name}"), "run", interrupted)
    monkeypatch.setattr(command_line, "keep_compiled_programs", lambda: None)  # this process's own choice stays
    arguments = [name, "--out", str(tmp_path), *["--store", str(tmp_path / "runs")] * store]
    assert command_line.main(arguments) == 130
    assert capsys.readouterr().err.strip() == told.format(tmp_path / "runs" / name)
