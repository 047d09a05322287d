"""The progress bar of a sweep."""

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jaxbandits.engine.logs import say
from jaxbandits.engine.results.runs import Stats

TERMINAL_SECONDS, LOG_SECONDS = 0.2, 5.0  # time between two redraws; a log file keeps all of them

log = logging.getLogger(__name__)


# (count, stats, censored, failed): number of runs that ended since the last report; the others describe all runs of the
# current rule in this call.
Report = Callable[[int, Stats, int, int], None]


class Bar(NamedTuple):
    """A progress bar that the rules of a sweep share."""

    begin: Callable[[str], None]  # (rule) -> None    shows the rule whose runs follow; "" if there is only one
    report: Report  # counts runs that have ended


@contextlib.contextmanager
def progress_bar(total: int, *, done: int = 0, show: bool) -> Iterator[Bar]:
    """Yields a bar over `total` tasks, of which `done` have ended before; it does nothing unless `show`.

    Until the first visit of a rule has been reported, the bar says "compiling", and its clock stands still. A bar that
    cannot be written is dropped: stderr may be missing, closed, full, or a pipe without a reader.
    """
    if not show:
        yield Bar(lambda rule: None, silent)
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
    earlier, latest = (0, 0), (0, 0)  # censored and failed runs of the earlier rules; of all rules

    def drop(error: Exception) -> None:
        nonlocal bar
        if bar is not None:
            bar.disable = True  # otherwise its `__del__` would draw it once more
        bar = None
        # tqdm releases its lock only after a successful refresh.
        with contextlib.suppress(Exception):
            tqdm.get_lock().release()
        say(log, logging.INFO, "the progress bar is dropped, since it cannot be written: %r", error)

    def draw(count: int, stats: Stats, censored: int, failed: int) -> None:
        nonlocal drawn, is_compiling, latest
        latest = earlier[0] + censored, earlier[1] + failed
        if is_compiling:
            # Restarts its clock, so that the estimate of the remaining time excludes compiling.
            bar.unpause()
            # Runs may end before their first round.
            is_compiling = not (stats.rounds or stats.visits)
        if is_compiling:
            return
        speed = f"{stats.pulls / stats.seconds:.2e} pulls/s" if stats.seconds else ""
        endings = f"{latest[0]} censored" + (f", {latest[1]} failed" if latest[1] else "")
        bar.set_postfix_str(f"{speed}, lanes {stats.occupancy:.0%} busy, {endings}", refresh=False)
        bar.update(count)
        drawn = max(drawn, bar.last_print_t)
        if time.time() - drawn > pause:  # the rate changes even if no run has finished
            bar.refresh()
            drawn = time.time()

    def name(rule: str) -> None:
        nonlocal is_compiling, earlier
        earlier, is_compiling = latest, True
        bar.set_description_str(rule or None, refresh=False)
        bar.set_postfix_str("compiling")

    def attempt(action: Callable[..., None], *arguments: Any) -> None:
        with lock:
            if bar is None:
                return
            try:
                action(*arguments)
            except Exception as error:
                drop(error)

    try:
        if sys.stderr is not None:  # it is None in a daemon, and in Windows without a console
            pause = TERMINAL_SECONDS if sys.stderr.isatty() else LOG_SECONDS
            bar = tqdm(total=total, initial=done, unit="run", mininterval=pause, smoothing=0.05, postfix="compiling")
    except Exception as error:
        drop(error)
    try:
        yield Bar(lambda rule: attempt(name, rule), lambda *counts: attempt(draw, *counts))
    finally:
        with lock:
            try:
                if bar is not None:
                    bar.close()
            except Exception as error:
                drop(error)


def silent(count: int, stats: Stats, censored: int, failed: int) -> None:
    """Reports to nobody, as in a worker."""
