"""What every experiment hands back, and how it is shown: a table, a figure, the raw columns."""

import argparse
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxbandits import Status

FALSE_ALARM = 1e-3  # with which a delta-correct algorithm, erring as often as it may, is said to err too often
STANDARD_ERRORS = 4  # two means agree if they differ by less than this many standard errors of the difference
# Distinguishable in black and white: by marker and by line.
STYLES = (
    {"marker": "o", "linestyle": "-", "color": "#1b4f8f"},
    {"marker": "s", "linestyle": "--", "color": "#b03a2e"},
    {"marker": "^", "linestyle": ":", "color": "#1e7d4f"},
    {"marker": "D", "linestyle": "-.", "color": "#6c3483"},
    {"marker": "v", "linestyle": (0, (5, 1, 1, 1, 1, 1)), "color": "#7d6608"},
)


class Line(NamedTuple):
    """One measured number, and the paper's beside it."""

    quantity: str
    ours: float
    se: float = 0.0  # standard error of `ours`; 0 if there is no randomness in it
    runs: int = 1
    censored: int = 0  # runs that reached their budget; `ours` is taken over the others
    failed: int = 0  # runs that ended with a NaN
    printed: float | None = None  # the paper's number
    printed_se: float = 0.0  # its standard error, from our own spread and the paper's number of runs
    tolerance: float = 0.0  # what a different rounding may change
    bound: float | None = None  # T* kl(delta, 1 - delta), no delta-correct algorithm needs fewer pulls
    note: str = ""


class Claim(NamedTuple):
    """A statement of the paper, or of theory, that is not a number in a table."""

    statement: str
    measured: str
    holds: bool


class Report(NamedTuple):
    """The result of one experiment."""

    title: str
    lines: list[Line]
    claims: list[Claim]
    columns: dict[str, np.ndarray]  # (runs, ...)    the raw results
    draw: Callable[[Any], None] | None  # (matplotlib figure) -> None
    notes: Sequence[str] = ()
    grid: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None  # a table of another kind: head and rows


def line(
    quantity: str,
    values: np.ndarray,
    *,
    status: np.ndarray | None = None,
    printed: float | None = None,
    printed_runs: int | None = None,
    bound: float | None = None,
    note: str = "",
) -> Line:
    """The mean over runs. A number that the paper measured on `printed_runs` runs has our spread over their root."""
    values = np.asarray(values, float)
    censored = failed = 0
    if status is not None:
        censored, failed = int(np.sum(status == Status.MAX_ROUNDS)), int(np.sum(status == Status.NONFINITE))
        values = values[status == Status.STOPPED]
    n = len(values)
    spread = float(np.std(values, ddof=1)) if n > 1 else np.nan
    return Line(
        quantity=quantity,
        ours=float(np.mean(values)) if n else np.nan,
        se=spread / np.sqrt(n) if n > 1 else np.nan,
        runs=n + censored + failed,
        censored=censored,
        failed=failed,
        printed=printed,
        printed_se=spread / np.sqrt(printed_runs) if printed_runs else 0.0,
        bound=bound,
        note=note,
    )


def answers_are_right(wrong: int, stopped: int, delta: float) -> Claim:
    """Whether the errors are as rare as promised: a binomial test with a false alarm of 0.1 %."""
    from scipy.stats import binom  # half a second

    most = int(binom.ppf(1 - FALSE_ALARM, stopped, delta))
    return Claim(
        f"a share of at most delta = {delta} of the answers is wrong",
        f"{wrong} of {stopped}, {most} allowed",
        stopped > 0 and wrong <= most,
    )


def verdict(line: Line) -> str:
    """Whether ours and the printed number agree within four standard errors of their difference."""
    if line.printed is None:
        return "nothing printed"
    room = STANDARD_ERRORS * np.hypot(line.se, line.printed_se) + line.tolerance
    return "agrees" if abs(line.ours - line.printed) <= room else "DIFFERS"


def table(report: Report) -> str:
    """The report as text for a terminal."""
    head = ("", "paper", "ours", "+- s.e.", "runs", "pulls / (T* kl)", "verdict")
    rows = [
        (
            line.quantity,
            "" if line.printed is None else number(line.printed),
            number(line.ours),
            "" if line.se == 0 else number(line.se),
            f"{line.runs}" + _troubles(line),
            "" if not line.bound else f"{line.ours / line.bound:.3g}",
            verdict(line) + (f" ({line.note})" if line.note else ""),
        )
        for line in report.lines
    ]
    text = [report.title, "=" * len(report.title), "", *_aligned(*(report.grid or (head, rows)))]
    if report.claims:
        text.append("")
    text += [f"[{'holds' if c.holds else 'FAILS'}] {c.statement}: {c.measured}" for c in report.claims]
    for note in report.notes:
        text += ["", *textwrap.wrap(note, 110)]
    return "\n".join(text)


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A line each: the first and the last column to the left, those between to the right."""
    widths = [max(len(row[c]) for row in [head, *rows]) for c in range(len(head))]

    def show(row: Sequence[str]) -> str:
        cells = [
            cell.ljust(width) if c in (0, len(head) - 1) else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return [show(head), "  ".join("-" * width for width in widths), *map(show, rows)]


def curve(axes: Any, x: Sequence[float], lines: Sequence[Line], label: str, style: int, *, scale: Any = 1.0) -> None:
    """Draws one algorithm's means with bars of two standard errors, times `scale` for every x.

    A bar ends at a tenth of its mean, so that it has an end on a log axis.
    """
    y = np.array([line.ours for line in lines]) * scale
    se = np.array([line.se for line in lines]) * scale
    bars = 2 * np.nan_to_num(se)
    axes.errorbar(x, y, yerr=[np.minimum(bars, 0.9 * y), bars], label=label, mfc="w", **STYLES[style])


def number(value: float) -> str:
    """Digits that a person can compare: integers up to 10^9 in full, four significant digits below 1000."""
    if not np.isfinite(value):
        return "-"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    if 1000 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def record(report: Report) -> dict[str, Any]:
    """All but the raw columns and the figure, as JSON takes it: a number that is not finite is None."""
    lines = [
        {name: _plain(value) for name, value in line._asdict().items()} | {"verdict": verdict(line)}
        for line in report.lines
    ]
    return {
        "title": report.title,
        "lines": lines,
        "claims": [claim._asdict() | {"holds": bool(claim.holds)} for claim in report.claims],
        "notes": list(report.notes),
        "grid": report.grid and [list(report.grid[0]), [list(map(str, row)) for row in report.grid[1]]],
    }


def save(report: Report, name: str, folder: Path) -> list[Path]:
    """Writes NAME.txt (the table), NAME.parquet (the raw columns) and NAME.png (the figure)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.txt", folder / f"{name}.parquet"]
    written[0].write_text(table(report) + "\n")
    pq.write_table(pa.table({key: _arrow(values) for key, values in report.columns.items()}), written[1])
    if report.draw is not None:
        import matplotlib as mpl
        from matplotlib.figure import Figure

        style = {
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "#dddddd",
            "legend.frameon": False,
            "lines.markersize": 6,
            "errorbar.capsize": 3,
        }
        with mpl.rc_context(style):
            figure = Figure(figsize=(6.4, 4.4), layout="constrained", dpi=150)
            report.draw(figure)
            written.append(folder / f"{name}.png")
            whole(written[-1], lambda path: figure.savefig(path, format="png"))
    return written


def whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Writes a file under another name and renames it, so that a reader never sees half of it."""
    hidden = path.with_name(f".{path.name}")
    write(hidden)
    hidden.replace(path)


def joined(parts: dict[str, dict[str, np.ndarray]], label: str = "algorithm") -> dict[str, np.ndarray]:
    """Stacks the columns of several sweeps, with a column that says which; keeps the columns they share."""
    shared = set.intersection(*(set(part) for part in parts.values()))
    names = [name for name in next(iter(parts.values())) if name in shared]
    widths = {name: {part[name].shape[1:] for part in parts.values()} for name in names}
    columns = {label: np.concatenate([np.full(len(part["row"]), key) for key, part in parts.items()])}
    return columns | {
        name: np.concatenate([part[name] for part in parts.values()]) for name in names if len(widths[name]) == 1
    }


def positive(text: str) -> int:
    """A command line's whole number, at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, (str, type(None))):
        return value
    value = np.asarray(value).item()
    return value if np.isfinite(value) else None


def _troubles(line: Line) -> str:
    words = [f"{line.censored} censored"] * (line.censored > 0) + [f"{line.failed} failed"] * (line.failed > 0)
    return f" ({', '.join(words)})" if words else ""


def _arrow(values: np.ndarray) -> Any:
    import pyarrow as pa

    values = np.ascontiguousarray(values)
    if values.ndim == 1:
        return pa.array(values)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), int(np.prod(values.shape[1:])))
