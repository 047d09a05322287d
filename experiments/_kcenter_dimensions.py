"""What the experiments on dimension sampling share: many runs on the first images, a few on others."""

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from experiments import _kcenter
from experiments._kcenter import Images, image_runs
from experiments.report import STANDARD_ERRORS, Claim, Line, line, number
from jaxbandits.base import Algorithm

K = 10
DRAWS = 1024  # of random sampling, each round


class Schedule(NamedTuple):
    """Which instance each run of a setting takes."""

    rows: np.ndarray  # int32 (runs, n)  its points
    instance: np.ndarray  # int (runs,)  0 is that of the first n images, which most runs take

    def of(self, columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The setting and the instance (all runs,) of the rows of a sweep."""
        setting, place = np.divmod(columns["row"], len(self.rows))
        return setting, self.instance[place]


def schedule(n: int, total: int, *, first: int, others: int = 0, runs: int = 1) -> Schedule:
    """`first` runs on the first n of `total` images and `runs` runs on each of `others` other instances."""
    instance = np.concatenate([np.zeros(first, int), np.repeat(np.arange(1, others + 1), runs)])
    return Schedule(_kcenter.consecutive(n, 1 + others, total)[instance], instance)


def scheduled_runs(
    heading: str,
    rule: Callable[..., Algorithm],
    images: Images,
    plan: Schedule,
    *,
    settings: Mapping[str, Sequence[float]] | None = None,
    options: Namespace,
    **simulated: Any,
) -> dict[str, np.ndarray]:
    """The columns of a sweep, with `setting` and `instance` beside them."""
    columns = image_runs(
        heading, rule, images, plan.rows, k=K, settings=settings, options=options, seeds=1, **simulated
    ).columns
    setting, instance = plan.of(columns)
    return columns | {"setting": setting, "instance": instance}


def chosen(columns: Mapping[str, np.ndarray], where: np.ndarray) -> dict[str, np.ndarray]:
    """The runs that are wanted."""
    return {name: values[where] for name, values in columns.items()}


class Measured(NamedTuple):
    """The queries of one rule in one setting."""

    first: Line  # on the first images
    instances: np.ndarray  # (instances,)  the mean on each instance, in units of the line
    ordered: str  # share of the runs of `first` with greedy's centers
    members: str  # or with the same set of centers
    right: tuple[int, int]  # runs with greedy's centers in order, of all runs on any instance

    @property
    def range(self) -> str:
        """Over the instances."""
        if len(self.instances) < 2:
            return ""
        mean, least, most = (number(float(f"{f(self.instances):.3g}")) for f in (np.mean, np.min, np.max))
        return f"{mean} ({least} to {most})"


def measured(
    quantity: str, columns: Mapping[str, np.ndarray], *, unit: float, k: int = K, printed: float | None = None
) -> Measured:
    """Queries until the first k centers, of the runs in `columns`.

    The paper's number is one instance's, which it does not name: it may be off by what instances differ.
    """
    queries = _kcenter.queries_until(columns, k) / unit
    match = _kcenter.matches_until(columns, k)
    is_first = columns["instance"] == 0
    means = np.array([queries[columns["instance"] == i].mean() for i in np.unique(columns["instance"])])
    first = chosen(match, is_first)
    ordered, members = (_kcenter.share(first, name) for name in ("ordered", "members"))
    shares = f"ordered {ordered}, as a set {members}"
    ours = line(quantity, queries[is_first], status=columns["status"][is_first], printed=printed, note=shares)
    spread = float(means.std(ddof=1)) if len(means) > 1 else 0.0
    return Measured(
        ours._replace(printed_se=spread),
        means,
        ordered,
        members,
        (int(match["ordered"].sum()), len(queries)),
    )


def rises(lines: Sequence[Line]) -> bool:
    """Whether no mean falls by more than standard errors allow, and the last is above the first."""
    room = [STANDARD_ERRORS * np.hypot(*np.nan_to_num((a.se, b.se))) for a, b in pairwise(lines)]
    steps = [b.ours - a.ours for a, b in pairwise(lines)]
    return bool(np.all(np.add(steps, room) >= 0) and lines[-1].ours > lines[0].ours)


def same_as_the_other(ours: Mapping[str, Line], other: Mapping[str, tuple[float, float]]) -> Claim:
    """Means of another program on the same images, each with its standard error, against ours."""
    apart = {
        name: abs(ours[name].ours - mean) / np.hypot(np.nan_to_num(ours[name].se), se)
        for name, (mean, se) in other.items()
        if name in ours
    }
    worst = max(apart, key=apart.__getitem__)
    return Claim(
        f"another program has the same means on the first images, within {STANDARD_ERRORS} standard errors",
        f"at most {apart[worst]:.1f} apart ({worst}), {np.median(list(apart.values())):.1f} in the median",
        bool(apart[worst] < STANDARD_ERRORS),
    )
