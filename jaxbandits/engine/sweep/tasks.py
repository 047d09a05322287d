"""The tasks of a sweep: the table, the keys, and all other inputs that affect the results."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Environment, Key, Outcome, PyTree
from jaxbandits.engine.run.gradients import refuse_traced
from jaxbandits.engine.run.loop import BUDGET
from jaxbandits.engine.run.recording import Record
from jaxbandits.numerics.random_bits import fold_in

Build = Callable[[Any, Key], tuple[Algorithm, Environment] | tuple[Algorithm, Environment, Record]]
Metrics = Callable[[Any, Outcome], Mapping[str, Array]]
Horizon = int | str | Sequence[int] | np.ndarray | Array  # one for all rows; a column of the table; one entry per row

# Errors of code that asks for the value of a traced array.
TRACING = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
LARGEST = 2**31 - 1  # largest count that the device holds as int32


class Job(NamedTuple):
    """The arguments of a sweep that affect its results."""

    build: Build
    tasks: PyTree  # leaves (rows, ...)
    rows: int
    seeds: int
    key: Key
    max_rounds: int | None  # budget of rounds; if None, the row's horizon
    metrics: Metrics | None
    horizon: np.ndarray | None = None  # int (rows,)    number of pulls after which the runs of each row end

    @property
    def total(self) -> int:
        """Counts the runs of the whole sweep."""
        return self.rows * self.seeds

    def budgets(self, row: np.ndarray) -> np.ndarray | int:
        """Returns the budget of rounds in these rows: int, shaped as `row`, or one number for all."""
        if self.max_rounds is not None:
            return self.max_rounds
        assert self.horizon is not None  # ensured by `make_job`
        return np.minimum(self.horizon[row], LARGEST)


class JaxSettings(NamedTuple):
    """JAX settings that affect results. They belong to a thread, and are passed to other threads and processes."""

    enable_x64: bool
    numpy_dtype_promotion: str
    default_matmul_precision: str | None
    threefry_partitionable: bool


def task_key(key: Key, row: Array | int, seed: Array | int) -> Key:
    """Returns the key of one task: `run(task_key(key, row, seed), ...)` repeats the sweep's run (row, seed).

    Args:
        key: root key of the sweep.
        row: int (), row of the table of tasks.
        seed: int (), number of the repetition.

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
    """Returns the key of one task, as `task_key` does, without its checks."""
    return fold_in(fold_in(key, row), seed)


def make_job(
    build: Build,
    tasks: PyTree,
    *,
    seeds: int,
    key: Key,
    max_rounds: int | None = None,
    metrics: Metrics | None = None,
    horizon: Horizon | None = None,
) -> Job:
    """Checks the arguments of a sweep and makes its job.

    Raises:
        ValueError: an argument is invalid; the message names it.
    """
    checks.function("build", build, "(task, key)")
    if metrics is not None:
        checks.function("metrics", metrics, "(task, outcome)")
    seeds = checks.whole("seeds", seeds, least=1, most=LARGEST)
    if max_rounds is not None or horizon is None:
        max_rounds = checks.whole("max_rounds", max_rounds, least=1, most=LARGEST, advice=BUDGET)
    checks.key("key", key)
    refuse_traced((tasks, key))
    rows = _count_rows(tasks)
    table = jax.tree.map(jnp.asarray, tasks)
    horizons = None if horizon is None else _horizons(horizon, tasks, rows)
    return Job(
        build=build,
        tasks=table,
        rows=rows,
        seeds=seeds,
        key=key,
        max_rounds=max_rounds,
        metrics=metrics,
        horizon=horizons,
    )


def build_row(job: Job, task: PyTree, key: Key) -> tuple[Algorithm, Environment, Record | None]:
    """Builds the algorithm, the environment and the record, if any, of one row.

    Raises:
        ValueError: `build` returns something else, or asks for the value of a traced array.
    """
    row = " It gets one row of tasks: one entry along the first axis of each array." if jax.tree.leaves(task) else ""
    with calling("build", "of a task", "or make a sweep for each value", hint=row):
        built = job.build(task, key)
    is_tuple = isinstance(built, tuple) and len(built) in (2, 3)
    if not is_tuple or not all(map(isinstance, built, (Algorithm, Environment, Record))):
        raise ValueError(
            f"build must return (algorithm, environment), or (algorithm, environment, record), got {_kinds_of(built)}. "
            "Write (algorithm, environment)"
        )
    return built if len(built) == 3 else (*built, None)


@contextlib.contextmanager
def calling(name: str, of: str, otherwise: str = "", *, hint: str = "") -> Iterator[None]:
    """Names a function of the caller in the errors that its body raises.

    Args:
        name: name of the argument that is the function.
        of: what the traced values are values of.
        otherwise: what can be done instead of using `jax.numpy`.
        hint: sentence for the note that an error of the body gets.

    Raises:
        ValueError: the body asks for the value of a traced array, as `float`, `if` and NumPy do.
    """
    try:
        yield
    except TRACING as error:
        kind, what = type(error).__name__, f"{name} must work on traced values"
        asked = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(
            f"{what}, got {kind}: {asked}. The values {of} are traced: use jax.numpy{otherwise and f', {otherwise}'}"
        ) from error
    except Exception as error:
        error.add_note(f"The error is in {name}.{hint}")
        raise


def _kinds_of(built: Any) -> str:
    """Returns the text of what `build` returned: an algorithm or environment is named by its type alone."""
    if isinstance(built, (Algorithm, Environment, Record)):
        return f"{'an' if not isinstance(built, Record) else 'a'} {type(built).__name__} alone"
    if type(built) is tuple:
        return f"({', '.join(type(part).__name__ for part in built)})"
    return checks.show(built)


def current_settings() -> JaxSettings:
    """Returns the JAX settings of this thread."""
    return JaxSettings(*(getattr(jax.config, f"jax_{name}") for name in JaxSettings._fields))


@contextlib.contextmanager
def use_settings(settings: JaxSettings) -> Iterator[None]:
    """Runs a block of code under JAX settings of another thread or process."""
    with contextlib.ExitStack() as stack:
        for name, value in settings._asdict().items():
            stack.enter_context(getattr(jax, name)(value))
        yield


def _horizons(horizon: Horizon, tasks: PyTree, rows: int) -> np.ndarray:
    """Returns the horizon of every row: int (rows,)."""
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
    """Returns the length of the leading axis that all arrays of the table share; 1 if there is no table."""
    leaves = jax.tree.leaves(tasks)
    for leaf in leaves:
        if not isinstance(leaf, jax.Array) and not (isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufcV"):
            raise ValueError(
                "tasks must be a pytree of arrays whose leading axis counts the rows (jaxbandits.rows and "
                f"jaxbandits.grid make one of lists), got {checks.show(leaf)} in {checks.show(tasks)}"
            )
    sizes = {np.shape(leaf)[:1] for leaf in leaves}
    if () in sizes or len(sizes) > 1:
        paths = jax.tree.leaves_with_path(tasks)
        names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]
        counts = [str(np.shape(leaf)[0]) if np.shape(leaf) else "no axis" for leaf in leaves]
        shown = ", ".join(f"{name or 'tasks'}: {count}" for name, count in zip(names, counts, strict=True))
        raise ValueError(
            f"tasks must be arrays with one common leading axis, which counts the rows, got lengths {shown}. Write "
            "jaxbandits.grid(..) for all combinations, or jaxbandits.rows(..), where a number stands for all rows"
        )
    if sizes and next(iter(sizes)) == (0,):
        raise ValueError("tasks must have at least one row, got 0")
    return next(iter(sizes))[0] if sizes else 1
