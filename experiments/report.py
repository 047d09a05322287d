"""Reports of experiments: lines, claims and raw columns, as text and as JSON."""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbandits import Results, Status

STANDARD_ERRORS = 4  # two means agree if they differ by less than this many standard errors of the difference

Columns = Mapping[str, np.ndarray]  # (runs, ...)   of a sweep


class Line(NamedTuple):
    """A measured number beside the paper's."""

    quantity: str
    ours: float
    se: float = 0.0  # standard error of `ours`; 0 if `ours` is not random
    runs: int = 1
    censored: int = 0  # runs that reached their budget, excluded from `ours`
    failed: int = 0  # runs that ended with a NaN
    printed: float | None = None  # the paper's number
    printed_se: float = 0.0  # standard error of `printed`, as far as it can be estimated
    spread: str = ""  # source of that standard error: "one run's"
    tolerance: float = 0.0  # largest change that another rounding may cause
    bound: float | None = None  # lower bound T* kl(delta, 1 - delta) on the mean pulls of delta-correct algorithms
    note: str = ""


class Claim(NamedTuple):
    """A statement of the paper or of theory that is not a number in a table."""

    statement: str
    measured: str
    holds: Any  # truth value


class Report(NamedTuple):
    """Results of one experiment."""

    title: str
    lines: Sequence[Line]
    claims: Sequence[Claim]
    columns: Columns  # the raw results
    draw: Callable[[Any], None] | None  # (matplotlib figure) -> None
    notes: Sequence[str] = ()
    grid: Sequence[Mapping[str, str]] = ()  # table shown instead of the lines: rows of heading and cell


# Rows of a sweep as lines of a table


def columns_of(sweep: Results | Columns) -> Columns:
    """Returns the columns of a sweep."""
    return sweep.columns if isinstance(sweep, Results) else sweep


def chosen(sweep: Results | Columns, where: Any) -> dict[str, np.ndarray]:
    """Selects the runs where `where` (runs,) is True."""
    return {name: values[where] for name, values in columns_of(sweep).items()}


def row_of(sweep: Results | Columns, n: int) -> dict[str, np.ndarray]:
    """Selects the columns of one row of a sweep."""
    return chosen(sweep, columns_of(sweep)["row"] == n)


def line(
    quantity: str, values: np.ndarray, *, status: np.ndarray | None = None, printed_runs: int | None = None, **more: Any
) -> Line:
    """Returns the mean over runs as a line.

    A number that the paper measured on `printed_runs` runs gets our standard deviation over the root of that number.
    """
    values = np.asarray(values, float)
    censored = failed = 0
    if status is not None:
        censored = int(np.isin(status, (Status.MAX_ROUNDS, Status.EXHAUSTED)).sum())
        failed = int(np.isin(status, (Status.NONFINITE, Status.INVALID_ACTION)).sum())
        values = values[status == Status.STOPPED]
    mean, se = mean_se(values)
    if printed_runs and more.get("printed") is not None:
        more["printed_se"] = se * np.sqrt(len(values) / printed_runs)
        more["spread"] = "one run's" if printed_runs == 1 else f"{printed_runs} runs'"
    runs = len(values) + censored + failed
    return Line(quantity, float(mean), float(se), runs=runs, censored=censored, failed=failed, **more)


def line_of(
    quantity: str, sweep: Results | Columns, where: Any = slice(None), *, unit: float = 1.0, **more: Any
) -> Line:
    """Returns the mean pulls of the stopped runs that `where` selects, in the unit of `printed`."""
    columns = columns_of(sweep)
    ours = line(quantity, columns["pulls"][where], status=columns["status"][where], **more)
    return ours._replace(ours=ours.ours / unit, se=ours.se / unit, printed_se=ours.printed_se / unit)


def lines_by(
    labels: Iterable[str], sweep: Results | Columns, *, by: str = "row", values: str = "pulls", **more: Any
) -> list[Line]:
    """Returns a line for every row of a sweep, or for every number in another column."""
    columns = columns_of(sweep)
    return [
        line(label, columns[values][columns[by] == n], status=columns["status"][columns[by] == n], **more)
        for n, label in enumerate(labels)
    ]


def mean_se(values: np.ndarray, axis: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Computes means and their standard errors; NaN where there are too few values."""
    values = np.asarray(values, float)
    n = values.shape[axis]
    blank = np.full(np.delete(values.shape, axis), np.nan)
    mean = values.mean(axis) if n else blank
    return mean, values.std(axis, ddof=1) / np.sqrt(n) if n > 1 else blank


def means(lines: Iterable[Line]) -> np.ndarray:
    """Returns the measured numbers of lines."""
    return np.array([each.ours for each in lines])


def joined(parts: Mapping[Any, Results | Columns], label: str = "algorithm") -> dict[str, np.ndarray]:
    """Stacks the columns that several sweeps share, with a column `label` that names the sweep."""
    tables = {key: columns_of(part) for key, part in parts.items()}
    shared = set.intersection(*(set(part) for part in tables.values()))
    columns = {label: np.concatenate([np.full(len(part["row"]), _name(key)) for key, part in tables.items()])}
    for name in next(iter(tables.values())):
        if name in shared and len({part[name].shape[1:] for part in tables.values()}) == 1:
            columns[name] = np.concatenate([part[name] for part in tables.values()])
    return columns


def _name(key: Any) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


# As text


def verdict(line: Line) -> str:
    """Compares our number with the printed one: they agree within four standard errors of their difference."""
    if line.printed is None:
        return "nothing printed"
    room = STANDARD_ERRORS * np.hypot(line.se, line.printed_se) + line.tolerance
    if not abs(line.ours - line.printed) <= room:
        return "DIFFERS"
    return f"agrees within {line.spread} spread" if line.spread else "agrees"


def table(report: Report) -> str:
    """Formats the report as text for a terminal."""
    rows = report.grid or [
        {
            "": line.quantity,
            "paper": "" if line.printed is None else number(line.printed),
            "ours": number(line.ours),
            "+- s.e.": "" if line.se == 0 else number(two_digits(line.se)),
            "runs": f"{line.runs}" + _troubles(line),
            "pulls / (T* kl)": "" if not line.bound else number(float(f"{line.ours / line.bound:.3g}")),
            "verdict": verdict(line) + (f" ({line.note})" if line.note else ""),
        }
        for line in report.lines
    ]
    text = [report.title, "=" * len(report.title), "", *_aligned(rows)]
    if report.claims:
        text.append("")
    text += [f"[{'holds' if c.holds else 'FAILS'}] {c.statement}: {c.measured}" for c in report.claims]
    for note in report.notes:
        text += ["", *textwrap.wrap(note, 110)]
    return "\n".join(text)


def _aligned(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Aligns rows as lines of text: the first and the last column to the left, the others to the right."""
    cells = [list(rows[0]), *([str(cell) for cell in row.values()] for row in rows)] if rows else [[""]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]

    def show(row: Sequence[str]) -> str:
        at_edge = (0, len(widths) - 1)
        shown = [c.ljust(w) if n in at_edge else c.rjust(w) for n, (c, w) in enumerate(zip(row, widths, strict=True))]
        return "  ".join(shown).rstrip()

    head, *body = map(show, cells)
    return [head, "  ".join("-" * width for width in widths), *body]


def number(value: float) -> str:
    """Formats a number so that people can compare: integers up to 10^9 in full, four significant digits below 1000."""
    if not np.isfinite(value):
        return "-"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    if 1000 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def two_digits(value: float) -> float:
    """Rounds to two significant digits, as precise as a standard error is."""
    return float(f"{value:.2g}") if np.isfinite(value) else value


def plus_minus(line: Line, digits: int = 0) -> str:
    """Formats a mean with its standard error, if known, and the number of censored and failed runs."""
    error = f" +- {line.se:,.{digits}f}" if np.isfinite(line.se) else ""
    return f"{line.ours:,.{digits}f}{error}{_troubles(line)}"


def listed(values: Mapping[Any, float] | Iterable[float], form: str = ".3g", between: str = ", ") -> str:
    """Lists numbers side by side, each after its name if it has one."""
    if isinstance(values, Mapping):
        return between.join(f"{name} {value:{form}}" for name, value in values.items())
    return between.join(f"{value:{form}}" for value in values)


def _troubles(line: Line) -> str:
    words = [f"{line.censored} censored"] * (line.censored > 0) + [f"{line.failed} failed"] * (line.failed > 0)
    return f" ({', '.join(words)})" if words else ""


# As JSON


def record(report: Report) -> dict[str, Any]:
    """Converts all except raw columns and figure to values for JSON; numbers that are not finite become None."""
    lines = [
        {name: _plain(value) for name, value in line._asdict().items()} | {"verdict": verdict(line)}
        for line in report.lines
    ]
    grid = [list(report.grid[0]), [list(map(str, row.values())) for row in report.grid]] if report.grid else None
    claims = [claim._asdict() | {"holds": bool(claim.holds)} for claim in report.claims]
    return {"title": report.title, "lines": lines, "claims": claims, "notes": list(report.notes), "grid": grid}


def _plain(value: Any) -> Any:
    if isinstance(value, (str, type(None))):
        return value
    value = np.asarray(value).item()
    return value if np.isfinite(value) else None
