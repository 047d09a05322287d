"""The tasks of a sweep: the table, the keys, and all else that decides the results."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Environment, Key, Outcome, PyTree
from jaxbandits.engine.run.gradients import refuse_traced
from jaxbandits.engine.run.recording import Record

Build = Callable[[Any, Key], tuple[Algorithm, Environment] | tuple[Algorithm, Environment, Record]]
Metrics = Callable[[Any, Outcome], Mapping[str, Array]]
Horizon = int | str | Sequence[int] | np.ndarray | Array  # of all rows; a column of the table; one entry a row

LARGEST = 2**31 - 1  # of the counts that the device holds as int32


class Job(NamedTuple):
    """The arguments of a sweep that decide its results."""

    build: Build
    tasks: PyTree  # leaves (rows, ...)
    rows: int
    seeds: int
    key: Key
    max_rounds: int | None  # None: as many as the row's horizon has pulls
    metrics: Metrics | None
    horizon: np.ndarray | None = None  # int (rows,)    pulls that the runs of each row are meant to last

    @property
    def total(self) -> int:
        """Runs of the whole sweep."""
        return self.rows * self.seeds

    def budgets(self, row: np.ndarray) -> np.ndarray | int:
        """The most rounds of the runs of these rows: int, as `row`, or one number for all."""
        if self.max_rounds is not None:
            return self.max_rounds
        assert self.horizon is not None  # as `checked` makes sure
        return np.minimum(self.horizon[row], LARGEST)


class Settings(NamedTuple):
    """The JAX settings that decide results. They belong to a thread, and are handed to other threads and processes."""

    enable_x64: bool
    numpy_dtype_promotion: str
    default_matmul_precision: str | None
    threefry_partitionable: bool


def task_key(key: Key, row: Array | int, seed: Array | int) -> Key:
    """The key of one task: `run(task_key(key, row, seed), ...)` is what the sweep ran as (row, seed).

    Args:
        key: root key of the sweep.
        row: int (), of the table of tasks.
        seed: int (), the repetition.

    Returns:
        Key of the task, for `run`.

    Raises:
        ValueError: `row` or `seed` is no integer of at least 0, or `key` is no key.
    """
    checks.key("key", key)
    checks.integer("row", row, least=0)
    checks.integer("seed", seed, least=0)
    return fold_task(key, row, seed)


def fold_task(key: Key, row: Array | int, seed: Array | int) -> Key:
    """`task_key` without its checks, which the engine's own program does not need."""
    return jax.random.fold_in(jax.random.fold_in(key, row), seed)


def checked(
    build: Build,
    tasks: PyTree,
    *,
    seeds: int,
    key: Key,
    max_rounds: int | None = None,
    metrics: Metrics | None = None,
    horizon: Horizon | None = None,
) -> Job:
    """The job that these arguments describe.

    Raises:
        ValueError: one of them does not fit; it is named.
    """
    checks.function("build", build, "(task, key)")
    if metrics is not None:
        checks.function("metrics", metrics, "(task, outcome)")
    seeds = checks.whole("seeds", seeds, least=1, most=LARGEST)
    if max_rounds is not None or horizon is None:
        max_rounds = checks.whole("max_rounds", max_rounds, least=1, most=LARGEST)
    checks.key("key", key)
    refuse_traced((tasks, key))
    rows = _count_rows(tasks)
    table = jax.tree.map(jnp.asarray, tasks)
    horizons = None if horizon is None else _horizons(horizon, tasks, rows)
    return Job(build, table, rows, seeds, key, max_rounds, metrics, horizons)


def build_row(job: Job, task: PyTree, key: Key) -> tuple[Algorithm, Environment, Record | None]:
    """What `build` makes of one row: the algorithm, the environment, and what is recorded, if anything.

    Raises:
        ValueError: `build` returns something else.
    """
    built = job.build(task, key)
    is_tuple = isinstance(built, tuple) and len(built) in (2, 3)
    if not is_tuple or not all(map(isinstance, built, (Algorithm, Environment, Record))):
        raise ValueError(
            f"build must return (Algorithm, Environment), or (Algorithm, Environment, Record), got {checks.show(built)}"
        )
    return built if len(built) == 3 else (*built, None)


def current_settings() -> Settings:
    """The settings of this thread."""
    return Settings(*(getattr(jax.config, f"jax_{name}") for name in Settings._fields))


@contextlib.contextmanager
def under(settings: Settings) -> Iterator[None]:
    """Runs a block of code under settings of another thread or process."""
    with contextlib.ExitStack() as stack:
        for name, value in settings._asdict().items():
            stack.enter_context(getattr(jax, name)(value))
        yield


def _horizons(horizon: Horizon, tasks: PyTree, rows: int) -> np.ndarray:
    """The horizon of every row: int (rows,)."""
    if isinstance(horizon, str):
        leaves = jax.tree.leaves_with_path(tasks)
        columns = {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
        if horizon not in columns:
            raise ValueError(f"horizon must name a column of tasks, one of {sorted(columns)}, got {horizon!r}")
        horizon = columns[horizon]
    most = int(jnp.iinfo(jnp.result_type(int)).max)
    if isinstance(horizon, (int, np.integer)):
        horizon = np.full(rows, checks.whole("horizon", horizon, least=1, most=most))
    return np.asarray(checks.array("horizon", horizon, (rows,), kind="int", least=1, most=most, dtype=int))


def _count_rows(tasks: PyTree) -> int:
    """The length of the leading axis that all arrays of the table share; 1 where there is no table."""
    leaves = jax.tree.leaves(tasks)
    for leaf in leaves:
        if not isinstance(leaf, jax.Array) and not (isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufcV"):
            raise ValueError(
                "tasks must be a pytree of arrays whose leading axis counts the rows (jaxbandits.rows and "
                f"jaxbandits.grid make one of lists), got {checks.show(leaf)} in {checks.show(tasks)}"
            )
    sizes = {np.shape(leaf)[:1] for leaf in leaves}
    if () in sizes or len(sizes) > 1:
        shapes = [np.shape(leaf) for leaf in leaves]
        raise ValueError(f"tasks must be arrays with one common leading axis, got shapes {shapes}")
    if sizes and next(iter(sizes)) == (0,):
        raise ValueError("tasks must have at least one row, got 0")
    return next(iter(sizes))[0] if sizes else 1
