"""Claims that many experiments test, each in one wording."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.report import STANDARD_ERRORS, Claim, Columns, Line, columns_of, listed, number
from jaxbandits import Results, Status
from jaxbandits.engine.results.intervals import clopper_pearson

# Probability of blaming a delta-correct algorithm that errs as often as it may.
FALSE_ALARM = 1e-3

Values = Mapping[Any, float] | Sequence[float] | np.ndarray  # numbers that a claim shows side by side


def column(sweeps: Iterable[Results | Columns], name: str) -> np.ndarray:
    """Returns a column of all runs of several sweeps."""
    return np.concatenate([columns_of(sweep)[name] for sweep in sweeps])


def every_run_stops(sweeps: Iterable[Results | Columns], what: str = "every run stops") -> Claim:
    """Claims that no run reached its budget and none met a NaN."""
    stopped = column(sweeps, "status") == Status.STOPPED
    return Claim(what, f"{number(int(stopped.sum()))} of {number(len(stopped))}", stopped.all())


def all_of(statement: str, holds: np.ndarray, more: str = "") -> Claim:
    """Claims that a condition holds in every run; `more` is added to the count."""
    return Claim(statement, f"{number(int(np.sum(holds)))} of {number(np.size(holds))}{more}", np.all(holds))


def allowed(runs: Any, delta: Any, *, false_alarm: float = FALSE_ALARM) -> np.ndarray:
    """Returns the number of errors that a rule of error probability delta exceeds with probability `false_alarm`."""
    from scipy.stats import binom  # half a second

    return binom.ppf(1 - false_alarm, runs, delta)


def interval(errors: int, runs: int) -> str:
    """Formats the exact 95 % confidence interval of a probability."""
    return "[{:.2g}, {:.2g}]".format(*clopper_pearson(errors, runs)) if runs else "-"


def answers_are_right(wrong: int, stopped: int, delta: float, who: str = "") -> Claim:
    """Claims that errors are as rare as promised: a binomial test with a false-alarm rate of 0.1 %."""
    most = int(allowed(stopped, delta))
    return Claim(
        f"{who and who + ': '}a share of at most delta = {delta} of the answers is wrong",
        f"{wrong} of {stopped}, {most} allowed",
        stopped > 0 and wrong <= most,
    )


def in_range(statement: str, values: Mapping[Any, float], least: float, most: float, *, digits: int = 3) -> Claim:
    """Claims that all values lie in a range; names the smallest and the largest."""
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    return Claim(
        f"{statement} lies in [{least:g}, {most:g}]",
        f"{values[low]:.{digits}f} ({low}) to {values[high]:.{digits}f} ({high})",
        least <= values[low] and values[high] <= most,
    )


def errors(sweeps: Iterable[Results | Columns], right: str = "right") -> tuple[int, int]:
    """Counts the wrong answers, by a column that says which are right, and the runs that stopped."""
    stopped, is_right = column(sweeps := list(sweeps), "status") == Status.STOPPED, column(sweeps, right)
    return int(np.sum(stopped & ~is_right)), int(stopped.sum())


def errors_of(sweep: Results | Columns) -> tuple[int, int]:
    """Counts the wrong answers, by a column `wrong` or `right`, and the runs that stopped."""
    columns = columns_of(sweep)
    stopped = columns["status"] == Status.STOPPED
    wrong = columns["wrong"] if "wrong" in columns else ~columns["right"]
    return int(np.sum(wrong & stopped)), int(np.sum(stopped))


def errors_are_rare(sweeps: Iterable[Results | Columns], delta: float, *, right: str = "right", who: str = "") -> Claim:
    """Claims that the runs that stopped are right as often as promised."""
    return answers_are_right(*errors(sweeps, right), delta, who)


def above_bound(lines: Iterable[Line]) -> Claim:
    """Claims that no mean is below the lower bound that its line has."""
    ratios = {each.quantity: each.ours / each.bound for each in lines if each.bound}
    least = min(ratios, key=ratios.__getitem__)
    measured = f"at least {ratios[least]:.2f} ({least})"
    return Claim("no mean is below T* kl(delta, 1 - delta)", measured, ratios[least] >= 1)


def apart(statement: str, lines: Mapping[Any, Line], examples: Mapping[Any, tuple[float, float]]) -> Claim:
    """Claims that means are within four standard errors of another program's, each (mean, standard error)."""
    return between(statement, differences(lines, examples), -STANDARD_ERRORS, STANDARD_ERRORS, "+.1f")


def differences(lines: Mapping[Any, Line], examples: Mapping[Any, tuple[float, float]]) -> dict[Any, float]:
    """Computes how far means are from another program's, in standard errors of both, in the cells that were run."""
    return {
        key: (lines[key].ours - mean) / float(np.hypot(lines[key].se, se))
        for key, (mean, se) in examples.items()
        if key in lines
    }


def below(statement: str, values: Values, most: float = 1.0, form: str = ".3g") -> Claim:
    """Claims that all values are below a number; at least one value is needed."""
    return Claim(statement, listed(values, form), len(values) > 0 and np.all(_plain(values) < most))


def above(statement: str, values: Values, least: float = 1.0, form: str = ".3g") -> Claim:
    """Claims that all values are above a number; at least one value is needed."""
    return Claim(statement, listed(values, form), len(values) > 0 and np.all(_plain(values) > least))


def between(
    statement: str,
    values: Values,
    least: float = -np.inf,
    most: float = np.inf,
    form: str = ".3g",
    more: str = "",
) -> Claim:
    """Claims that all values lie in a closed range; shows them all, followed by `more`."""
    holds = len(values) > 0 and np.all((least <= _plain(values)) & (_plain(values) <= most))
    return Claim(statement, listed(values, form) + more, holds)


def _plain(values: Values) -> np.ndarray:
    return np.array(list(values.values()) if isinstance(values, Mapping) else values)


def never_falls(values: Sequence[float] | np.ndarray) -> bool:
    """True if a sequence never falls and has no NaN."""
    return bool(np.all(np.diff(values) >= 0))


def rises(lines: Sequence[Line]) -> bool:
    """True if no mean falls by more than standard errors allow, and the last is above the first."""
    ours, se = np.array([[line.ours, np.nan_to_num(line.se)] for line in lines]).T
    room = STANDARD_ERRORS * np.hypot(se[1:], se[:-1])
    return bool(np.all(np.diff(ours) + room >= 0) and ours[-1] > ours[0])


def grows(statement: str, lines: Sequence[Line], form: str = ".3g", *, down: bool = False) -> Claim:
    """Claims that the means rise (with `down`, fall) from the first line to the last; shows them all."""
    turned = [line._replace(ours=-line.ours) for line in lines] if down else lines
    return Claim(statement, listed((line.ours for line in lines), form), rises(turned))
