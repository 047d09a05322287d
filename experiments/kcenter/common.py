"""What the experiments on greedy k-center share: the data, and runs that are compared with the exact centers."""

import itertools
import os
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.claims import answers_are_right, column
from experiments.report import Claim
from experiments.settings import Settings
from experiments.simulate import cache_folder, simulate
from jaxbandits import kcenter
from jaxbandits.base import Algorithm, Status
from jaxbandits.kcenter import greedy, pairwise_sums

DELTA = 0.1
LEVELS = 255  # of a colour
LEAP = 16  # dimensions drawn each round; the paper's one a round gives the same law
IMAGES, SHOES = Path("tiny-imagenet-200/val/images"), Path("zappos")
VARIABLE = "JAXBANDITS_DATA"  # the folder that --data names where it is not given


class Images(NamedTuple):
    """Images as points, and all their distances."""

    points: np.ndarray  # uint8 (N, m)
    sums: np.ndarray  # int32 (N, N)   of squared differences
    label: str  # what they are

    @property
    def distances(self) -> np.ndarray:
        """Float64 (N, N), in [0, 1]."""
        return kcenter.normalised_distances(self.sums, m=self.points.shape[1], levels=LEVELS)


class Judgements(NamedTuple):
    """Distances that people's judgements of similarity give."""

    distances: np.ndarray  # (N, N), in [0, 1]
    label: str


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


def images(options: Settings, count: int) -> Images:
    """The first `count` images of Tiny ImageNet's validation set, or as many crops of two photographs."""
    return _images(options.data, count)


@cache
def _images(data: Path | None, count: int) -> Images:
    if data is None:
        points, label = kcenter.image_crops(count, 7, augment=True), "crops of two photographs"
    else:
        points = kcenter.tiny_imagenet(data / IMAGES, count, cache=cache_folder())
        label = "Tiny ImageNet, validation images"
    return Images(points, pairwise_sums(points), label)


def judgements(options: Settings, count: int) -> Judgements:
    """The first `count` shoes of the Zappos judgements, or as many things judged at random."""
    if options.data is None:
        return Judgements(kcenter.triplet_like(count, 3), "simulated judgements")
    return Judgements(kcenter.zappos(options.data / SHOES, count), "Zappos, judgements of shoes")


def consecutive(n: int, count: int, total: int) -> np.ndarray:
    """Int32 (count, n): the points of as many instances, of `total`; disjoint where there is room, else overlapping.

    Where they overlap they still start, and end, at points of their own, so their first centers differ.
    """
    step = min(n, total // count)
    return ((np.arange(count)[:, None] * step + np.arange(n)) % total).astype(np.int32)


def blocks(n: int, count: int) -> np.ndarray:
    """Int32 (count, n): the points of `count` disjoint instances."""
    return np.arange(n * count, dtype=np.int32).reshape(count, n)


def image_runs(
    heading: str,
    rule: Callable[..., Algorithm],
    images: Images,
    rows: np.ndarray,
    *,
    k: int = 10,
    settings: Mapping[str, Sequence[float]] | None = None,
    options: Settings,
    seeds: int,
    leap: int = LEAP,
    test_every: int | None = None,
    levels: int | None = LEVELS,
    metrics: Callable[..., dict[str, Any]] | None = None,
    max_rounds: int = 2**30,
    **simulated: Any,
) -> jaxbandits.Results:
    """Runs of a rule that samples dimensions, from first center 0.

    Args:
        heading: unique to these runs.
        rule: (problem, *, leap, **settings) -> Algorithm; with `test_every`, it takes that in place of `leap`.
        images: what all instances take their points from.
        rows: int (instances, n), the points of each.
        k: number of centers.
        settings: numbers that the rule takes, all of one length. The table of tasks has a row for each setting and
            instance, the instances of a setting side by side.
        options: of the command line.
        seeds: runs of a row.
        leap: dimensions drawn each round.
        test_every: draws of a round, for `ds_random`; None: the rule is another one.
        levels: of the points; None for floats.
        metrics: (task, outcome) -> dict of arrays, what to know of a run besides.
        max_rounds: the budget of a run.
        simulated: for `simulate`.

    Returns:
        Results with, a run, whether it stopped with greedy's centers (`ordered`, or as a set: `members`), these
        centers (`greedy`), and its radius over theirs (`radius`).
    """
    problem = kcenter.Dimensions(rows.shape[1], images.points.shape[1], k, levels)
    several: dict[str, Any] = {"leap": leap} if test_every is None else {"test_every": test_every}
    points, sums = jnp.asarray(images.points), jnp.asarray(images.sums)
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    truth = np.stack([greedy(images.sums[np.ix_(row, row)], k=k).centers for row in distinct])[which.reshape(-1)]

    def build(task: dict[str, Any], key: jax.Array) -> tuple[Algorithm, jaxbandits.Environment]:
        instance = kcenter.DimensionInstance(problem, points, sums, task["rows"])
        return rule(problem, **several, **task["settings"]), kcenter.environment(instance, **several)

    return simulate(
        heading,
        build,
        _tasks(settings, rows, truth),
        options=options,
        seeds=seeds,
        max_rounds=max_rounds,
        metrics=partial(_compared, distances=sums, besides=metrics),
        **simulated,
    )


def distance_runs(
    heading: str,
    rule: Callable[..., Algorithm],
    distances: np.ndarray,
    rows: np.ndarray,
    *,
    k: int,
    action: type,
    noise_scale: float | Sequence[float] | None = None,
    settings: Mapping[str, Sequence[float]] | None = None,
    first_center: int = 0,
    options: Settings,
    seeds: int,
    metrics: Callable[..., dict[str, Any]] | None = None,
    max_rounds: int,
    **simulated: Any,
) -> jaxbandits.Results:
    """Runs of a rule that sees distances through noise; as `image_runs`.

    `rule` is (problem, *, noise_scale, first_center, **settings) -> Algorithm. `noise_scale` may be one of each
    instance; None: rewards are Bernoulli.
    """
    problem = kcenter.Distances(rows.shape[1], k, "bernoulli" if noise_scale is None else "gaussian")
    table = jnp.asarray(distances)
    truth = np.stack([greedy(distances[np.ix_(row, row)], k=k, first_center=first_center).centers for row in rows])

    tasks = _tasks(settings, rows, truth)
    if np.ndim(noise_scale) > 0:
        tasks["noise_scale"] = np.resize(noise_scale, len(tasks["rows"]))

    def build(task: dict[str, Any], key: jax.Array) -> tuple[Algorithm, jaxbandits.Environment]:
        instance = kcenter.DistanceInstance(problem, table, task.get("noise_scale", noise_scale), task["rows"])
        algorithm = rule(problem, noise_scale=instance.noise_scale, first_center=first_center, **task["settings"])
        return algorithm, kcenter.environment(instance, action=action)

    return simulate(
        heading,
        build,
        tasks,
        options=options,
        seeds=seeds,
        max_rounds=max_rounds,
        metrics=partial(_compared, distances=table, besides=metrics),
        **simulated,
    )


def _tasks(settings: Mapping[str, Sequence[float]] | None, rows: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    settings = {name: np.asarray(values) for name, values in (settings or {}).items()}
    count = len(next(iter(settings.values()))) if settings else 1
    return {
        "settings": {name: np.repeat(values, len(rows)) for name, values in settings.items()},
        "rows": np.tile(rows, (count, 1)),
        "truth": np.tile(truth, (count, 1)),
    }


def _compared(
    task: dict[str, Any],
    outcome: jaxbandits.Outcome,
    *,
    distances: jax.Array,
    besides: Callable[..., Any] | None = None,
) -> dict[str, jax.Array]:
    stopped = outcome.status == Status.STOPPED
    same = kcenter.centers_match(outcome.answer.indices, task["truth"])
    return {
        "ordered": stopped & same.ordered,
        "members": stopped & same.members,
        "greedy": task["truth"],
        "radius": kcenter.radius_ratio(outcome.answer.indices, task["truth"], distances, task["rows"]),
    } | (besides(task, outcome) if besides is not None else {})


def greedy_was_found(sweeps: Collection[Mapping[str, np.ndarray]], who: str = "") -> Claim:
    """Whether the runs that stopped have greedy's centers, in order, as often as promised."""
    stopped = int(np.sum(column(sweeps, "status") == Status.STOPPED))
    return answers_are_right(stopped - int(column(sweeps, "ordered").sum()), stopped, DELTA, who)


def queries_until(columns: Mapping[str, np.ndarray], k: int) -> np.ndarray:
    """Queries (runs,) until the first k centers were found: the rules do not know how many will be wanted."""
    return columns["answer.queries"][:, : k - 1].sum(axis=1, dtype=np.int64)


def matches_until(columns: Mapping[str, np.ndarray], k: int) -> dict[str, np.ndarray]:
    """Whether the first k centers (runs,) were found and are greedy's: `ordered`, or as a set `members`."""
    found = columns["answer.found"] >= k
    ours, greedys = columns["answer.indices"][:, :k], columns["greedy"][:, :k]
    return {
        "ordered": found & (ours == greedys).all(axis=1),
        "members": found & (np.sort(ours, axis=1) == np.sort(greedys, axis=1)).all(axis=1),
    }


def share(columns: Mapping[str, np.ndarray], name: str = "ordered") -> str:
    """How many of the runs ended with exactly greedy's centers."""
    return f"{int(columns[name].sum())} of {len(columns[name])}"


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
