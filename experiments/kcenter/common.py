"""What the experiments on greedy k-center share: the data, and runs that are compared with the exact centers."""

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
from experiments.report import Claim, Columns, Line, number, two_digits
from experiments.settings import Settings
from experiments.simulate import cache_folder, simulate
from jaxbandits import kcenter
from jaxbandits.base import Algorithm, Status
from jaxbandits.kcenter import Greedy, greedy, pairwise_sums
from jaxbandits.kcenter._problem.images import IMAGE_LEVELS

DELTA = 0.1
LEAP = {"leap": 16}  # dimensions drawn each round; the paper's one a round gives the same law
IMAGES, SHOES = Path("tiny-imagenet-200/val/images"), Path("zappos")
VARIABLE = "JAXBANDITS_DATA"  # the folder that --data names where it is not given


Rule = Callable[..., Algorithm]  # (problem, *, delta, **settings) -> Algorithm


class Images(NamedTuple):
    """Images, or other points, and all their distances."""

    points: np.ndarray  # (N, m)
    sums: np.ndarray  # (N, N)   of squared differences
    label: str  # what they are
    levels: int | None  # of integer points; None: floats in [0, 1]

    @property
    def distances(self) -> np.ndarray:
        """Float64 (N, N), in [0, 1]."""
        return kcenter.normalised_distances(self.sums, m=self.points.shape[1], levels=self.levels)


def as_images(points: np.ndarray, label: str = "", levels: int | None = IMAGE_LEVELS) -> Images:
    """Points with their distances."""
    return Images(points, pairwise_sums(points), label, levels)


def add_arguments(parser: ArgumentParser) -> None:
    """`--data`, the folder with the paper's data."""
    given = os.environ.get(VARIABLE)
    parser.add_argument(
        "--data",
        type=_folder,
        metavar="DIR",
        default=given and _folder(given),
        help=f"folder with {IMAGES} (cs231n.stanford.edu) and {SHOES} (similarity judgements of shoes, see "
        f"jaxbandits.kcenter.zappos); default: ${VARIABLE}, else images and judgements that come with the library",
    )


@cache
def images(data: Path | None, count: int) -> Images:
    """The first `count` images of Tiny ImageNet's validation set, or as many crops of two photographs."""
    if data is None:
        return as_images(kcenter.image_crops(count, 7, augment=True), "crops of two photographs")
    found = kcenter.tiny_imagenet(data / IMAGES, count, cache=cache_folder())
    return as_images(found, "Tiny ImageNet, validation images")


def on_images(options: Settings, images: Images) -> list[str]:
    """A note where they are not those of the paper."""
    return [] if options.data else [f"The paper's images are Tiny ImageNet, these are {images.label}."]


def judgements(data: Path | None, count: int) -> tuple[np.ndarray, str]:
    """Distances of the first `count` shoes by people's judgements, or of as many things judged at random; a label."""
    if data is None:
        return kcenter.triplet_like(count, 3), "simulated judgements"
    return kcenter.zappos(data / SHOES, count), "Zappos, judgements of shoes"


def consecutive(n: int, count: int, total: int) -> np.ndarray:
    """Int32 (count, n): the points of as many instances, of `total`; disjoint where there is room.

    Else they overlap, and still start and end at points of their own, so that their first centers differ.
    """
    step = min(n, total // count)
    return ((np.arange(count)[:, None] * step + np.arange(n)) % total).astype(np.int32)


def blocks(n: int, count: int) -> np.ndarray:
    """Int32 (count, n): the points of `count` disjoint instances."""
    return np.arange(n * count, dtype=np.int32).reshape(count, n)


def image_runs(
    heading: str, rule: Rule, images: Images, rows: np.ndarray, *, k: int, drawn: Any = LEAP, **shared: Any
) -> dict[str, np.ndarray]:
    """Runs of a rule that samples dimensions, so many a round: `leap` or, for `ds_random`, `test_every`.

    `rule` is (problem, *, delta, **drawn, **settings) -> Algorithm; see `compared_runs`.
    """
    points = jnp.asarray(images.points)
    problem = kcenter.Dimensions(rows.shape[1], points.shape[1], k, images.levels)

    def made(task: Any, settings: Any, sums: jax.Array) -> tuple[Algorithm, jaxbandits.Environment]:
        instance = kcenter.DimensionInstance(problem, points, sums, task["rows"])
        return rule(problem, **drawn, **settings), kcenter.environment(instance, **drawn)

    return compared_runs(heading, made, images.sums, rows, k=k, **shared)


def distance_runs(
    heading: str,
    rule: Rule,
    distances: np.ndarray,
    rows: np.ndarray,
    *,
    k: int,
    action: type,
    noise_scale: float | np.ndarray | None = None,
    first_center: int = 0,
    **shared: Any,
) -> dict[str, np.ndarray]:
    """Runs of a rule that sees distances through noise; see `compared_runs`.

    `rule` is (problem, *, delta, noise_scale, first_center, **settings) -> Algorithm. `noise_scale` may be one of each
    instance; None: rewards are Bernoulli.
    """
    problem = kcenter.Distances(rows.shape[1], k, "bernoulli" if noise_scale is None else "gaussian")
    several = {"noise_scale": noise_scale} if np.ndim(noise_scale) > 0 else {}

    def made(task: Any, settings: Any, table: jax.Array) -> tuple[Algorithm, jaxbandits.Environment]:
        scale = task.get("noise_scale", noise_scale)
        instance = kcenter.DistanceInstance(problem, table, scale, task["rows"])
        algorithm = rule(problem, noise_scale=scale, first_center=first_center, **settings)
        return algorithm, kcenter.environment(instance, action=action)

    return compared_runs(heading, made, distances, rows, k=k, several=several, first_center=first_center, **shared)


def compared_runs(
    heading: str,
    made: Callable[..., tuple[Algorithm, jaxbandits.Environment]],  # of a task, the rule's settings and the distances
    distances: np.ndarray,  # (N, N)  of all points, in any unit
    rows: np.ndarray,  # int (instances, n)  the points of each
    *,
    k: int,
    settings: Mapping[str, Sequence[float]] = {},  # numbers that the rule takes, all of one length; delta is DELTA
    several: Mapping[str, np.ndarray] = {},  # what else a task has, (instances,)
    first_center: int = 0,  # greedy's, and the rule's
    metrics: Callable[..., dict[str, Any]] | None = None,  # (task, outcome) -> what to know of a run besides
    max_rounds: int = 2**30,
    **simulated: Any,
) -> dict[str, np.ndarray]:
    """Columns of runs of every setting on every instance, which are compared with greedy's centers.

    Every run has its settings, the place of its instance among the rows (`instance`), whether it stopped with greedy's
    centers (`ordered`, or as a set: `members`), these centers (`greedy`), and its radius over theirs (`radius`).
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
    """Every instance's own distances, and greedy's centers of them."""
    for row in rows:
        own = distances[np.ix_(row, row)]
        yield own, greedy(own, k=k, first_center=first_center)


def chosen(columns: Columns, where: np.ndarray) -> dict[str, np.ndarray]:
    """The runs that `where` (runs,) marks."""
    return {name: values[where] for name, values in columns.items()}


def by_value(columns: Columns, name: str) -> dict[Any, dict[str, np.ndarray]]:
    """The runs of every value in a column."""
    return {value: chosen(columns, columns[name] == value) for value in dict.fromkeys(columns[name].tolist())}


def stopped(columns: Columns) -> dict[str, np.ndarray]:
    """The runs that ended by themselves."""
    return chosen(columns, columns["status"] == Status.STOPPED)


def until(columns: Columns, k: int) -> dict[str, np.ndarray]:
    """The runs until the first k centers: the rules do not know how many will be wanted.

    A run has stopped here if it found so many, and is `ordered` if they are greedy's, or as a set one of `members`.
    """
    found = columns["answer.found"] >= k
    ours, greedys = columns["answer.indices"][:, :k], columns["greedy"][:, :k]
    return {
        **columns,
        "pulls": columns["answer.queries"][:, : k - 1].sum(axis=1, dtype=np.int64),
        "status": np.where(found, Status.STOPPED, columns["status"]),
        "ordered": found & (ours == greedys).all(axis=1),
        "members": found & (np.sort(ours, axis=1) == np.sort(greedys, axis=1)).all(axis=1),
    }


def greedy_was_found(sweeps: Iterable[Columns], who: str = "") -> Claim:
    """Whether the runs that stopped have greedy's centers, in order, as often as promised."""
    return errors_are_rare(sweeps, DELTA, right="ordered", who=who)


def matches(*sweeps: Columns) -> str:
    """How many of the runs ended with greedy's centers in order and, in brackets, with their set: 3 (4) of 5."""
    ordered, members = (column(sweeps, name) for name in ("ordered", "members"))
    return f"{ordered.sum()} ({members.sum()}) of {len(ordered)}"


def rounded(value: float, digits: int = 3) -> str:
    """A number as far as it matters."""
    return number(float(f"{value:.{digits}g}"))


def spread(values: np.ndarray, form: Callable[[float], str] = rounded, middle: Callable[[Any], Any] = np.median) -> str:
    """The middle of several numbers and, in brackets, their range."""
    return "{} ({} to {})".format(*(form(f(values)) for f in (middle, np.min, np.max)))


def mean(line: Line | None, digits: int = 4) -> str:
    """A mean with its standard error, if there is one."""
    if line is None:
        return ""
    return rounded(line.ours, digits) + (f" +- {two_digits(line.se):g}" if np.isfinite(line.se) else "")


def untied(make: Callable[..., np.ndarray], k: int, count: int) -> list[np.ndarray]:
    """The instances (n, m) of the first seeds that leave no doubt which centers are greedy's."""
    drawn = (make(seed=seed) for seed in itertools.count())
    return list(itertools.islice((x for x in drawn if greedy(pairwise_sums(x), k=k).gaps.min() > 0), count))


def _folder(text: str) -> Path:
    folder = Path(text)
    missing = [str(folder / part) for part in (IMAGES, SHOES) if not (folder / part).is_dir()]
    if missing:
        raise ArgumentTypeError(f"must hold {' and '.join(missing)}")
    return folder
