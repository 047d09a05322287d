"""What a person sees while a sweep runs."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

from jaxbandits.engine.results import Stats

TERMINAL_SECONDS, LOG_SECONDS = 0.2, 5.0  # between two redraws: a log file keeps every one of them


@contextlib.contextmanager
def progress_bar(total: int, *, done: int = 0, show: bool) -> Iterator[Callable[[int, Stats, int], None]]:
    """Yields `report(finished, stats, censored)`, which moves a bar over `total` tasks; a silent one if not `show`.

    `finished` counts the runs since the last report, `stats` and `censored` describe all that were not `done` before.
    """
    if not show:
        yield lambda finished, stats, censored: None
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
    with tqdm(total=total, initial=done, unit="run", mininterval=pause, smoothing=0.05) as bar:

        def report(finished: int, stats: Stats, censored: int) -> None:
            nonlocal drawn
            with lock:
                speed = f"{stats.pulls / stats.seconds:.2e} pulls/s" if stats.seconds else ""
                bar.set_postfix_str(f"{speed}, lanes {stats.occupancy:.0%} busy, {censored} censored", refresh=False)
                bar.update(finished)
                drawn = max(drawn, bar.last_print_t)
                if time.time() - drawn > pause:  # the rate is news even where no run has finished
                    bar.refresh()
                    drawn = time.time()

        yield report
