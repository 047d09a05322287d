"""Files of a report: its table, its raw columns and its figure."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.figures import drawn
from experiments.report import Report, table


def save(report: Report, name: str, folder: Path) -> list[Path]:
    """Writes NAME.txt (the table), NAME.parquet (the raw columns), NAME.png and NAME.svg (the figure)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.txt", folder / f"{name}.parquet"]
    written[0].write_text(table(report) + "\n")
    pq.write_table(pa.table({key: _arrow(values) for key, values in report.columns.items()}), written[1])
    if report.draw is not None:
        figure = drawn(report.draw, name)
        for kind in ("png", "svg"):
            written.append(folder / f"{name}.{kind}")
            atomically(written[-1], lambda path, kind=kind: figure(path, kind))
    return written


def atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Writes a file under another name and renames it, so that a reader never sees half of it."""
    hidden = path.with_name(f".{path.name}")
    write(hidden)
    hidden.replace(path)


def _arrow(values: np.ndarray) -> Any:
    import pyarrow as pa

    values = np.ascontiguousarray(values)
    if values.ndim == 1:
        return pa.array(values)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), int(np.prod(values.shape[1:])))
