"""Shared parts of the experiments on greedy k-center: data, and runs compared with the exact centers."""

import itertools
import os
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.claims import column, errors_are_rare
from experiments.report import Claim, Columns, Line, chosen, number, two_digits
from experiments.settings import Settings
from experiments.simulate import cache_folder, simulate
from jaxbandits import kcenter
from jaxbandits.base import Algorithm, Status
from jaxbandits.kcenter import Greedy, greedy, pairwise_sums
from jaxbandits.kcenter._problem.images import IMAGE_LEVELS

DELTA = 0.1
LEAP = {"leap": 16}  # dimensions drawn per round; one per round, as in the paper, gives the same law
IMAGES, SHOES = Path("tiny-imagenet-200/val/images"), Path("zappos")
VARIABLE = "JAXBANDITS_DATA"  # default of --data


Rule = Callable[..., Algorithm]  # (problem, *, delta, **settings) -> Algorithm


class Images(NamedTuple):
    """Images, or other points, and all their distances."""

    points: np.ndarray  # (N, m)
    sums: np.ndarray  # (N, N)   of squared differences
    label: str  # description
    levels: int | None  # number of integer levels; if None, points are floats in [0, 1]

    @property
    def distances(self) -> np.ndarray:
        """Distances, float64 (N, N), in [0, 1]."""
        return kcenter.normalised_distances(self.sums, m=self.points.shape[1], levels=self.levels)


def as_images(points: np.ndarray, label: str = "", levels: int | None = IMAGE_LEVELS) -> Images:
    """Computes the distances of points."""
    return Images(points, pairwise_sums(points), label, levels)


def add_arguments(parser: ArgumentParser) -> None:
    """Adds `--data`, the folder with the paper's data."""
    default = os.environ.get(VARIABLE)
    parser.add_argument(
        "--data",
        type=_folder,
        metavar="DIR",
        default=default and _folder(default),
        help=f"folder with {IMAGES} (cs231n.stanford.edu) and {SHOES} (similarity judgements of shoes, see "
        f"jaxbandits.kcenter.zappos); default: ${VARIABLE}, otherwise images and judgements from the library",
    )


@cache
def images(data: Path | None, count: int) -> Images:
    """Loads the first `count` images of Tiny ImageNet's validation set, or as many crops of two photographs."""
    if data is None:
        return as_images(kcenter.image_crops(count, 7, augment=True), "crops of two photographs")
    points = kcenter.tiny_imagenet(data / IMAGES, count, cache=cache_folder())
    return as_images(points, "Tiny ImageNet, validation images")


def on_images(options: Settings, images: Images) -> list[str]:
    """Builds a note if the images are not the paper's."""
    return [] if options.data else [f"The paper's images are Tiny ImageNet, these are {images.label}."]


def judgements(data: Path | None, count: int) -> tuple[np.ndarray, str]:
    """Returns distances of the first `count` shoes by people's judgements, or of as many simulated ones; and a
    label.
    """
    if data is None:
        return kcenter.triplet_like(count, 3), "simulated judgements"
    return kcenter.zappos(data / SHOES, count), "Zappos, judgements of shoes"


def consecutive(n: int, count: int, total: int) -> np.ndarray:
    """Chooses the points of instances among `total`, int32 (count, n).

    Instances are disjoint if there are enough points. Otherwise they overlap, but their first points differ, and so do
    their first centers.
    """
    step = min(n, total // count)
    return ((np.arange(count)[:, None] * step + np.arange(n)) % total).astype(np.int32)


def blocks(n: int, count: int) -> np.ndarray:
    """Returns the points of `count` disjoint instances, int32 (count, n)."""
    return np.arange(n * count, dtype=np.int32).reshape(count, n)


def image_runs(
    heading: str, rule: Rule, images: Images, rows: np.ndarray, *, k: int, drawn: Any = LEAP, **shared: Any
) -> dict[str, np.ndarray]:
    """Runs a rule that samples dimensions; `drawn` is their number per round, `leap` or, for `ds_random`, `test_every`.

    `rule` is (problem, *, delta, **drawn, **settings) -> Algorithm; see `compared_runs`.
    """
    points = jnp.asarray(images.points)
    problem = kcenter.Dimensions(rows.shape[1], points.shape[1], k, images.levels)

    def made(task: Any, settings: Any, sums: jax.Array) -> tuple[Algorithm, jaxbandits.Environment]:
        instance = kcenter.DimensionInstance(problem, points, sums, task["rows"])
        algorithm = rule(problem, **drawn, **settings)
        return algorithm, kcenter.environment(instance, algorithm)

    return compared_runs(heading, made, images.sums, rows, k=k, **shared)


def distance_runs(
    heading: str,
    rule: Rule,
    distances: np.ndarray,
    rows: np.ndarray,
    *,
    k: int,
    noise_scale: float | np.ndarray | None = None,
    first_center: int = 0,
    **shared: Any,
) -> dict[str, np.ndarray]:
    """Runs a rule that reads noisy distances; see `compared_runs`.

    `rule` is (problem, *, delta, noise_scale, first_center, **settings) -> Algorithm. `noise_scale` may hold one
    value per instance. If None, rewards are Bernoulli.
    """
    problem = kcenter.Distances(rows.shape[1], k, "bernoulli" if noise_scale is None else "gaussian")
    several = {"noise_scale": noise_scale} if np.ndim(noise_scale) > 0 else {}

    def made(task: Any, settings: Any, table: jax.Array) -> tuple[Algorithm, jaxbandits.Environment]:
        scale = task.get("noise_scale", noise_scale)
        instance = kcenter.DistanceInstance(problem, table, scale, task["rows"])
        algorithm = rule(problem, noise_scale=scale, first_center=first_center, **settings)
        return algorithm, kcenter.environment(instance, algorithm)

    return compared_runs(heading, made, distances, rows, k=k, several=several, first_center=first_center, **shared)


def compared_runs(
    heading: str,
    made: Callable[..., tuple[Algorithm, jaxbandits.Environment]],  # (task, settings of the rule, distances) -> pair
    distances: np.ndarray,  # (N, N)  of all points, in any unit
    rows: np.ndarray,  # int (instances, n)  points of each instance
    *,
    k: int,
    settings: Mapping[str, Sequence[float]] = {},  # arguments of the rule, of equal lengths; default delta: DELTA
    several: Mapping[str, np.ndarray] = {},  # further entries of a task, (instances,)
    first_center: int = 0,  # first center of greedy and of the rule
    metrics: Callable[..., dict[str, Any]] | None = None,  # (task, outcome) -> further columns
    max_rounds: int = 2**30,
    **simulated: Any,
) -> dict[str, np.ndarray]:
    """Runs every setting on every instance and compares the answers with greedy's centers.

    Columns of a run: its settings, the index of its instance (`instance`), True if it stopped with greedy's centers in
    order (`ordered`) or as a set (`members`), these centers (`greedy`), and its radius over theirs (`radius`).
    """
    table, count = jnp.asarray(distances), max(map(len, settings.values()), default=1)
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    centers = [solution.centers for _, solution in solved(distances, distinct, k, first_center)]
    truth = np.stack(centers)[which.reshape(-1)]
    tasks = {
        "settings": {name: np.repeat(values, len(rows)) for name, values in settings.items()},
        "rows": np.tile(rows, (count, 1)),
        "truth": np.tile(truth, (count, 1)),
    } | {name: np.tile(values, count) for name, values in several.items()}

    def compared(task: dict[str, Any], outcome: jaxbandits.Outcome) -> dict[str, jax.Array]:
        stopped, centers = outcome.status == Status.STOPPED, outcome.answer.indices
        same = kcenter.centers_match(centers, task["truth"])
        return {
            "ordered": stopped & same.ordered,
            "members": stopped & same.members,
            "greedy": task["truth"],
            "radius": kcenter.radius_ratio(centers, task["truth"], table, task["rows"]),
        } | (metrics(task, outcome) if metrics else {})

    def build(task: dict[str, Any], key: jax.Array) -> tuple[Algorithm, jaxbandits.Environment]:
        return made(task, {"delta": DELTA} | task["settings"], table)

    columns = simulate(heading, build, tasks, max_rounds=max_rounds, metrics=compared, **simulated).columns
    setting, instance = np.divmod(columns["row"], len(rows))
    given = {name: np.asarray(values)[setting] for name, values in settings.items()}
    return columns | given | {"instance": instance}


def solved(
    distances: np.ndarray, rows: np.ndarray, k: int, first_center: int = 0
) -> Iterator[tuple[np.ndarray, Greedy]]:
    """Yields the distances of every instance, and greedy's centers."""
    for row in rows:
        between = distances[np.ix_(row, row)]
        yield between, greedy(between, k=k, first_center=first_center)


def by_value(columns: Columns, name: str) -> dict[Any, dict[str, np.ndarray]]:
    """Groups runs by the values of a column."""
    return {value: chosen(columns, columns[name] == value) for value in dict.fromkeys(columns[name].tolist())}


def stopped(columns: Columns) -> dict[str, np.ndarray]:
    """Selects the runs that stopped by themselves."""
    return chosen(columns, columns["status"] == Status.STOPPED)


def until(columns: Columns, k: int) -> dict[str, np.ndarray]:
    """Cuts runs at their first k centers, which is possible because the rules do not use the total number.

    A run counts as stopped if it has k centers. `ordered` and `members` compare these with greedy's first k.
    """
    reached = columns["answer.found"] >= k
    ours, greedys = columns["answer.indices"][:, :k], columns["greedy"][:, :k]
    return {
        **columns,
        "pulls": columns["answer.queries"][:, : k - 1].sum(axis=1, dtype=np.int64),
        "status": np.where(reached, Status.STOPPED, columns["status"]),
        "ordered": reached & (ours == greedys).all(axis=1),
        "members": reached & (np.sort(ours, axis=1) == np.sort(greedys, axis=1)).all(axis=1),
    }


def greedy_was_found(sweeps: Iterable[Columns], who: str = "") -> Claim:
    """Claims that the runs that stopped have greedy's centers, in order, as often as promised."""
    return errors_are_rare(sweeps, DELTA, right="ordered", who=who)


def matches(*sweeps: Columns) -> str:
    """Counts the runs with greedy's centers in order and, in brackets, as a set: "3 (4) of 5"."""
    ordered, members = (column(sweeps, name) for name in ("ordered", "members"))
    return f"{ordered.sum()} ({members.sum()}) of {len(ordered)}"


def rounded(value: float, digits: int = 3) -> str:
    """Formats a number with `digits` significant digits."""
    return number(float(f"{value:.{digits}g}"))


def spread(values: np.ndarray, form: Callable[[float], str] = rounded, middle: Callable[[Any], Any] = np.median) -> str:
    """Formats the middle of several numbers and, in brackets, their range."""
    return "{} ({} to {})".format(*(form(f(values)) for f in (middle, np.min, np.max)))


def mean(line: Line | None, digits: int = 4) -> str:
    """Formats a mean with its standard error, if there is one."""
    if line is None:
        return ""
    return rounded(line.ours, digits) + (f" +- {two_digits(line.se):g}" if np.isfinite(line.se) else "")


def untied(make: Callable[..., np.ndarray], k: int, count: int) -> list[np.ndarray]:
    """Draws instances (n, m) of the first seeds for which greedy's centers are unique."""
    drawn = (make(seed=seed) for seed in itertools.count())
    return list(itertools.islice((x for x in drawn if greedy(pairwise_sums(x), k=k).gaps.min() > 0), count))


def _folder(text: str) -> Path:
    folder = Path(text)
    missing = [str(folder / part) for part in (IMAGES, SHOES) if not (folder / part).is_dir()]
    if missing:
        raise ArgumentTypeError(f"must hold {' and '.join(missing)}")
    return folder
