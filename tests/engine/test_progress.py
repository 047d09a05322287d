"""The progress bar and log lines: failures to write them end no sweep."""

import errno
import io
import logging
import sys
import threading

import pytest
import tqdm
from engine.toys import KEY, LIMITS, counting

import jaxbandits
from jaxbandits.engine.logs import say
from jaxbandits.engine.results.runs import Stats
from jaxbandits.engine.sweep.progress import progress_bar

STATS = Stats(
    seconds=1.0,
    compile_seconds=0.5,
    pulls=10,
    rounds=10,
    occupancy=0.5,
    lanes=4,
    devices=1,
    batches=1,
    chunk=16,
    bytes=100,
    finished=1,
    visits=1,
)
ERRORS = {
    "broken pipe": BrokenPipeError(errno.EPIPE, "Broken pipe"),
    "full disk": OSError(errno.ENOSPC, "No space left on device"),
    "closed": ValueError("I/O operation on closed file"),
    "detached": ValueError("underlying buffer has been detached"),
}


class Stream(io.StringIO):
    """A terminal that raises from its n-th write on."""

    def __init__(self, error, *, after):
        super().__init__()
        self.error, self.after, self.writes = error, after, 0

    def isatty(self):
        return True

    def write(self, text):
        self.writes += 1
        if self.writes > self.after:
            raise self.error
        return super().write(text)


def tqdm_lock_is_free():
    """True if another thread can take tqdm's lock, as every bar of the process must."""
    taken = []

    def take():
        if tqdm.tqdm.get_lock().acquire(timeout=1):
            tqdm.tqdm.get_lock().release()
            taken.append(True)

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return bool(taken)


@pytest.fixture
def thread_lock(monkeypatch):
    """tqdm's lock as a thread lock, which has a timeout."""
    monkeypatch.setattr(tqdm.tqdm, "_lock", threading.RLock(), raising=False)


@pytest.mark.usefixtures("thread_lock")
@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_progress_bar_whose_stream_fails_is_dropped(monkeypatch, caplog, error, after):
    caplog.set_level("INFO", "jaxbandits")
    stream = Stream(error, after=after)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar(10, show=True) as (_, report):
        for _ in range(3):
            threads = [threading.Thread(target=report, args=(1, STATS, 0, 0)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            report(1, STATS, 0, 0)
    assert tqdm_lock_is_free()
    if "closed" not in str(error):  # tqdm handles that itself
        assert "the progress bar is dropped, since it cannot be written" in caplog.text


@pytest.mark.usefixtures("thread_lock")
def test_progress_bar_that_fails_at_its_end_keeps_what_the_sweep_raises(monkeypatch):
    stream = Stream(ERRORS["full disk"], after=10**6)
    monkeypatch.setattr(sys, "stderr", stream)

    def fail():
        with progress_bar(10, show=True) as (_, report):
            report(1, STATS, 0, 0)
            stream.after = 0
            raise KeyError("of the sweep")

    with pytest.raises(KeyError, match="of the sweep"):
        fail()
    assert tqdm_lock_is_free()


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, closed(), object()], ids=["none", "closed", "no stream"])
def test_sweep_without_a_stderr_runs(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    results = jaxbandits.sweep(counting, LIMITS[:2], seeds=2, key=KEY, max_rounds=1000)
    assert len(results.columns["row"]) == 4


def test_progress_bar_counts_runs_of_no_rounds(capfd):
    idle = STATS._replace(pulls=0, rounds=0, occupancy=0.0)
    with progress_bar(10, show=True) as (_, report):
        report(10, idle, 0, 0)
    assert "10/10" in capfd.readouterr().err


@pytest.mark.parametrize(
    "stream", [None, closed(), Stream(ERRORS["full disk"], after=0)], ids=["none", "closed", "full"]
)
def test_say_whose_line_cannot_be_written_raises_nothing(monkeypatch, stream):
    """Without a handler, logging writes warnings to stderr and reports failures there."""
    monkeypatch.setattr(sys, "stderr", stream)
    say(logging.Logger("alone"), logging.WARNING, "%d", 3)
    monkeypatch.setattr(logging, "lastResort", logging.StreamHandler(stream))
    alone = logging.Logger("alone")
    say(alone, logging.WARNING, "%d", 3)
    alone.addHandler(logging.StreamHandler(stream))
    say(alone, logging.WARNING, "%d", 3)


def test_say_names_the_line_that_speaks(caplog):
    say(logging.getLogger("jaxbandits.test"), logging.WARNING, "%s: %d runs", "store", 3)
    (record,) = caplog.records
    assert (record.getMessage(), record.funcName) == ("store: 3 runs", "test_say_names_the_line_that_speaks")
