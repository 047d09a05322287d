"""What a sweep is asked to do: the table of tasks, and all that decides the results."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Algorithm, Array, Environment, Key, Outcome, PyTree

Build = Callable[[Any, Key], tuple[Algorithm, Environment]]
Metrics = Callable[[Any, Outcome], Mapping[str, Array]]

SHOWN = 10_000  # numbers of a task table that a description spells out; a longer one is known by its hash alone


class Job(NamedTuple):
    """The arguments of a sweep that decide its results."""

    build: Build
    tasks: PyTree  # leaves (rows, ...)
    rows: int
    seeds: int
    key: Key
    max_rounds: int
    metrics: Metrics | None

    @property
    def total(self) -> int:
        """Runs of the whole sweep."""
        return self.rows * self.seeds


class Settings(NamedTuple):
    """The JAX settings that decide results. They belong to a thread, so another thread or process has to be told."""

    enable_x64: bool
    numpy_dtype_promotion: str
    default_matmul_precision: str | None
    threefry_partitionable: bool


def task_key(key: Key, row: Array | int, seed: Array | int) -> Key:
    """The key of one task: `run(task_key(key, row, seed), ...)` is what the sweep ran as (row, seed)."""
    return jax.random.fold_in(jax.random.fold_in(key, row), seed)


def checked(
    build: Build, tasks: PyTree, *, seeds: int, key: Key, max_rounds: int, metrics: Metrics | None, **widths: int | None
) -> Job:
    """The job that these arguments describe.

    Raises:
        ValueError: one of them does not fit; it is named. `widths` are further integers to look at.
    """
    for name, value in {"seeds": seeds, "max_rounds": max_rounds, **widths}.items():
        if value is not None and not (isinstance(value, (int, np.integer)) and 1 <= value < 2**31):
            raise ValueError(f"{name} must be an integer in [1, 2^31), got {value}")
    if not isinstance(key, jax.Array):
        raise ValueError(f"key must be a JAX key, such as jax.random.key(0), got {key!r}")
    rows = _count_rows(tasks)
    if rows == 0:
        raise ValueError(f"tasks must have at least one row, got {rows}")
    return Job(build, jax.tree.map(jnp.asarray, tasks), rows, seeds, key, max_rounds, metrics)


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


def describe_tasks(tasks: PyTree) -> dict[str, Any]:
    """The table for a person and for comparison: a hash of its bytes, shapes, and values where there are few."""
    table: dict[str, Any] = {}
    sha = hashlib.sha256()
    for path, leaf in jax.tree.flatten_with_path(tasks)[0]:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        # A PRNG key has no bytes of its own.
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        values = np.asarray(jax.random.key_data(leaf) if is_key else leaf)
        sha.update(f"{name} {leaf.dtype} {values.shape}".encode())
        sha.update(np.ascontiguousarray(values).tobytes())
        table[name] = {"dtype": str(leaf.dtype), "shape": list(values.shape)}
        # JSON has no word for what is not finite.
        if values.size <= SHOWN and values.dtype.kind in "biuf" and np.isfinite(values).all():
            table[name]["values"] = values.tolist()
    return {"sha256": sha.hexdigest(), "table": table}


def describe_key(key: Key) -> dict[str, Any]:
    """A PRNG key, typed or raw, as plain values."""
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return {"impl": str(jax.random.key_impl(key)), "data": np.asarray(jax.random.key_data(key)).tolist()}
    return {"impl": "raw", "data": np.asarray(key).tolist()}


def name_of(function: Callable | None) -> str | None:
    """Where a function comes from, as far as it tells."""
    inner = getattr(function, "func", function)  # of a functools.partial
    if inner is None:
        return None
    return f"{getattr(inner, '__module__', '?')}.{getattr(inner, '__qualname__', type(inner).__qualname__)}"


def _count_rows(tasks: PyTree) -> int:
    leaves = jax.tree.leaves(tasks)
    sizes = {np.shape(leaf)[:1] for leaf in leaves}
    if () in sizes or len(sizes) > 1:
        shapes = [np.shape(leaf) for leaf in leaves]
        raise ValueError(f"tasks must be arrays with one common leading axis, got shapes {shapes}")
    return next(iter(sizes))[0] if sizes else 1
