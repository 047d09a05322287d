"""The progress bar of a sweep."""

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from jaxbandits.engine.logs import say
from jaxbandits.engine.results.runs import Stats

TERMINAL_SECONDS, LOG_SECONDS = 0.2, 5.0  # time between two redraws; a log file keeps all of them

log = logging.getLogger(__name__)


@contextlib.contextmanager
def progress_bar(total: int, *, done: int = 0, show: bool) -> Iterator[Callable[[int, Stats, int], None]]:
    """Yields `report(count, stats, censored)`, which moves a bar over `total` tasks; it does nothing unless `show`.

    `count` is the number of runs that finished since the last report; `stats` and `censored` describe all runs except
    those that were `done` before. Until the first visit has been reported the bar says "compiling", and its clock
    stands still. A bar that cannot be written is dropped: stderr may be missing, closed, full, or a pipe without a
    reader.
    """
    if not show:
        yield lambda count, stats, censored: None
        return
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "progress=True draws its bar with tqdm: pip install tqdm, or pass progress=False"
        ) from error
    lock = threading.Lock()  # every batch reports from its own thread
    pause = LOG_SECONDS
    bar: Any = None  # the bar; None once it is dropped
    is_compiling, drawn = True, time.time()

    def drop(error: Exception) -> None:
        nonlocal bar
        if bar is not None:
            bar.disable = True  # otherwise its `__del__` would draw it once more
        bar = None
        # tqdm releases its lock only after a successful refresh.
        with contextlib.suppress(Exception):
            tqdm.get_lock().release()
        say(log, logging.INFO, "the progress bar is dropped, since it cannot be written: %r", error)

    def draw(count: int, stats: Stats, censored: int) -> None:
        nonlocal drawn, is_compiling
        if is_compiling:
            # Restarts its clock, so that the estimate of the remaining time excludes compiling.
            bar.unpause()
            # Runs may end before their first round.
            is_compiling = not (stats.rounds or stats.visits)
        if is_compiling:
            return
        speed = f"{stats.pulls / stats.seconds:.2e} pulls/s" if stats.seconds else ""
        bar.set_postfix_str(f"{speed}, lanes {stats.occupancy:.0%} busy, {censored} censored", refresh=False)
        bar.update(count)
        drawn = max(drawn, bar.last_print_t)
        if time.time() - drawn > pause:  # the rate changes even if no run has finished
            bar.refresh()
            drawn = time.time()

    def report(count: int, stats: Stats, censored: int) -> None:
        with lock:
            if bar is None:
                return
            try:
                draw(count, stats, censored)
            except Exception as error:
                drop(error)

    try:
        if sys.stderr is not None:  # it is None in a daemon, and in Windows without a console
            pause = TERMINAL_SECONDS if sys.stderr.isatty() else LOG_SECONDS
            bar = tqdm(total=total, initial=done, unit="run", mininterval=pause, smoothing=0.05, postfix="compiling")
    except Exception as error:
        drop(error)
    try:
        yield report
    finally:
        with lock:
            try:
                if bar is not None:
                    bar.close()
            except Exception as error:
                drop(error)
