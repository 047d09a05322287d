"""What a person sees while a sweep runs."""

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(total: int, *, show: bool) -> Iterator[Callable[[int, int], None]]:
    """Yields `report(finished, pulls_per_second)`, which moves a bar over `total` tasks; a silent one if not `show`."""
    if not show:
        yield lambda finished, pulls_per_second: None
        return
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "progress=True draws its bar with tqdm: pip install 'jaxbandits[sweep]', or pass progress=False"
        ) from error
    with tqdm(total=total, unit="run", dynamic_ncols=True, smoothing=0.05) as bar:

        def report(finished: int, pulls_per_second: int) -> None:
            bar.set_postfix_str(f"{pulls_per_second:.2e} pulls/s", refresh=False)
            bar.update(finished)
            bar.refresh()

        yield report
