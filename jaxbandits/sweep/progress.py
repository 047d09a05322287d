"""What a person sees while a sweep runs."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

TERMINAL_SECONDS, LOG_SECONDS = 0.2, 5.0  # between two redraws: a log file keeps every one of them


@contextlib.contextmanager
def progress_bar(total: int, *, show: bool) -> Iterator[Callable[[int, float], None]]:
    """Yields `report(finished, pulls_per_second)`, which moves a bar over `total` tasks; a silent one if not `show`."""
    if not show:
        yield lambda finished, pulls_per_second: None
        return
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "progress=True draws its bar with tqdm: pip install tqdm, or pass progress=False"
        ) from error
    pause = TERMINAL_SECONDS if sys.stderr.isatty() else LOG_SECONDS
    drawn = time.time()
    with tqdm(total=total, unit="run", mininterval=pause, smoothing=0.05) as bar:

        def report(finished: int, pulls_per_second: float) -> None:
            nonlocal drawn
            bar.set_postfix_str(f"{pulls_per_second:.2e} pulls/s", refresh=False)
            bar.update(finished)
            drawn = max(drawn, bar.last_print_t)
            if time.time() - drawn > pause:  # the rate is news even where no run has finished
                bar.refresh()
                drawn = time.time()

        yield report
