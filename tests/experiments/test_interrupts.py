"""Ctrl-C arrives, wherever the main thread is."""

import gc
import importlib
import os
import signal
import sys
import time

import pytest

from experiments import __main__ as command_line
from experiments._interrupts import raised_again


class Slow:
    """An interrupt comes while the garbage collector ends it; what is raised there is only printed."""

    lost = 0

    def __init__(self):
        self.myself = self

    def __del__(self):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        except KeyboardInterrupt:
            Slow.lost += 1
            raise


def lose_an_interrupt_and_wait():
    Slow()
    gc.collect()
    for _ in range(600):
        time.sleep(0.1)


def test_an_interrupt_in_the_garbage_collector_is_raised_again():
    others = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), raised_again():
        lose_an_interrupt_and_wait()
    assert Slow.lost == 1
    assert sys.unraisablehook is others


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
