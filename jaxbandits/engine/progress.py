"""The progress bar of a sweep."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

from jaxbandits.engine.results import Stats

TERMINAL_SECONDS, LOG_SECONDS = 0.2, 5.0  # between two redraws; a log file keeps all of them


@contextlib.contextmanager
def progress_bar(total: int, *, done: int = 0, show: bool) -> Iterator[Callable[[int, Stats, int], None]]:
    """Yields `report(count, stats, censored)`, which moves a bar over `total` tasks; it does nothing unless `show`.

    `count` is the number of runs that finished since the last report; `stats` and `censored` describe all runs but
    those that were `done` before. Until the first round has been reported the bar says "compiling", and its clock
    stands still.
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
    pause = TERMINAL_SECONDS if sys.stderr.isatty() else LOG_SECONDS
    drawn = time.time()
    lock = threading.Lock()  # every batch reports from its own thread
    with tqdm(total=total, initial=done, unit="run", mininterval=pause, smoothing=0.05, postfix="compiling") as bar:
        is_compiling = True

        def report(count: int, stats: Stats, censored: int) -> None:
            nonlocal drawn, is_compiling
            with lock:
                if is_compiling:
                    bar.unpause()  # so that what it says of the time left is of the runs
                    is_compiling = not stats.rounds
                if is_compiling:
                    return
                speed = f"{stats.pulls / stats.seconds:.2e} pulls/s" if stats.seconds else ""
                bar.set_postfix_str(f"{speed}, lanes {stats.occupancy:.0%} busy, {censored} censored", refresh=False)
                bar.update(count)
                drawn = max(drawn, bar.last_print_t)
                if time.time() - drawn > pause:  # the rate changes even if no run has finished
                    bar.refresh()
                    drawn = time.time()

        yield report
