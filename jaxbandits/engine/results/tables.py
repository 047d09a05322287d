"""Tables of tasks: how they are spelled, and the columns that they add to the results."""

from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import PyTree
from jaxbandits.checks import is_concrete, show

PREFIX = "task"  # of the columns that hold the values of the table


def grid(**axes: Any) -> dict[str, PyTree]:
    """A table of tasks with a row for every combination of values.

    The last axis varies fastest: row n of `grid(delta=D, gap=G)` has `delta` D[n // len(G)] and `gap` G[n % len(G)].

    Args:
        **axes: for every parameter its values: a sequence of numbers; an array whose leading axis counts them; a pytree
            of such arrays (instances that `jax.vmap` has made); or a list of equal pytrees, such as instances.

    Returns:
        dict with the names of the axes, for `sweep`: NumPy arrays, or pytrees of them, with the rows in front.

    Raises:
        ValueError: an axis has no values, or is no sequence of numbers; it is named.

    Example:
        >>> grid(delta=[0.1, 0.01], gap=[1, 2, 3])["gap"]
        array([1, 2, 3, 1, 2, 3])
    """
    if not axes:
        raise ValueError("axes must have at least one name, got none")
    values = {name: _stacked(name, axis) for name, axis in axes.items()}
    lengths = [_length(name, value) for name, value in values.items()]
    places = np.meshgrid(*map(np.arange, lengths), indexing="ij")
    return {
        name: jax.tree.map(lambda leaf, place=place: leaf[place.ravel()], value)
        for (name, value), place in zip(values.items(), places, strict=True)
    }


def rows(**columns: Any) -> dict[str, PyTree]:
    """A table of tasks whose n-th row takes the n-th value of every column.

    Args:
        **columns: for every parameter its values, as in `grid`, equally many of each; or a single number, which all
            rows share.

    Returns:
        dict with the names of the columns, for `sweep`: NumPy arrays, or pytrees of them, with the rows in front.

    Raises:
        ValueError: a column is empty, of another length than the others, or no sequence of numbers; it is named.

    Example:
        >>> table = rows(delta=[0.1, 0.05, 0.01], horizon=[100, 200, 300], gap=0.5)
        >>> table["gap"]
        array([0.5, 0.5, 0.5])
    """
    if not columns:
        raise ValueError("columns must have at least one name, got none")
    shared = {name: np.asarray(value) for name, value in columns.items() if _is_number(value)}
    values = {name: _stacked(name, value) for name, value in columns.items() if name not in shared}
    lengths = {name: _length(name, value) for name, value in values.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"{' and '.join(lengths)} must be of one length, got: {found}")
    count = next(iter(lengths.values()), 1)
    return {name: np.repeat(shared[name], count) if name in shared else values[name] for name in columns}


def leaves_of(tasks: PyTree) -> dict[str, Any]:
    """The arrays of a table (rows, ...) by their path; a table that is one array has the path ""."""
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): leaf
        for path, leaf in jax.tree.flatten_with_path(tasks)[0]
    }


def column_name(path: str) -> str:
    """The name of the column that holds the leaf at a path."""
    return f"{PREFIX}.{path}" if path else PREFIX


def is_task_column(name: str) -> bool:
    """Whether a column holds values of the table."""
    return name == PREFIX or name.startswith(f"{PREFIX}.")


def number_columns(leaves: dict[str, Any]) -> dict[str, np.ndarray]:
    """The columns that a table adds to the results: one value a row (rows,), of every leaf with a number a row.

    A leaf with an array a row, such as the arms of an instance, would cost more memory than all other columns, once for
    every run: `row` says which it was, and `tasks[row]` what it holds.
    """
    columns = {}
    for path, leaf in leaves.items():
        if leaf.ndim == 1 and any(jnp.issubdtype(leaf.dtype, kind) for kind in (np.bool_, np.integer, np.floating)):
            values = np.asarray(leaf)
            # Of the types that only JAX knows, a floating-point one is a float32 with fewer digits.
            columns[column_name(path)] = values if values.dtype.kind in "biuf" else values.astype(np.float32)
    return columns


def with_tasks(columns: dict[str, np.ndarray], table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns of runs, with those of `number_columns` after `row` and `seed`."""
    place = {name: columns[name] for name in ("row", "seed")}
    return place | {name: values[columns["row"]] for name, values in table.items()} | columns


def _stacked(name: str, value: Any) -> PyTree:
    """Values as a pytree of arrays, with the values along the leading axis."""
    refused = ValueError(
        f"{name} must be a sequence of numbers, or a pytree of arrays whose leading axis counts its values, got "
        f"{show(value)}"
    )
    if isinstance(value, (list, tuple, range)) and not hasattr(value, "_fields"):
        trees = [jax.tree.flatten(each) for each in value]
        if not trees or len({structure for _, structure in trees}) > 1:
            raise refused
        try:
            value = jax.tree.unflatten(
                trees[0][1], [_joined(leaves) for leaves in zip(*(t for t, _ in trees), strict=True)]
            )
        except ValueError as error:  # of several shapes
            raise refused from error
    if not jax.tree.leaves(value):
        raise refused
    for leaf in jax.tree.leaves(value):
        if not is_concrete(leaf) or not isinstance(leaf, (np.ndarray, jax.Array)):
            raise refused
        if not (is_key(leaf) or leaf.dtype.kind in "biufcV") or leaf.ndim == 0 or leaf.size == 0:
            raise refused
    return jax.tree.map(lambda leaf: leaf if is_key(leaf) else np.asarray(leaf), value)


def _joined(leaves: tuple[Any, ...]) -> Any:
    """One array of several, along a new leading axis."""
    return jnp.stack(leaves) if is_key(leaves[0]) else np.stack([np.asarray(leaf) for leaf in leaves])


def _length(name: str, value: PyTree) -> int:
    """The length of the leading axis that all leaves share."""
    lengths = {len(leaf) for leaf in jax.tree.leaves(value)}
    if len(lengths) > 1:
        raise ValueError(
            f"{name} must be a pytree of arrays with one common leading axis, got lengths {sorted(lengths)}"
        )
    return lengths.pop()


def _is_number(value: Any) -> bool:
    """Whether this is a single number, of Python or NumPy."""
    return isinstance(value, (bool, int, float, complex, np.generic)) or (
        isinstance(value, (np.ndarray, jax.Array)) and value.ndim == 0 and not is_key(value)
    )


def is_key(leaf: Any) -> bool:
    """Whether this is an array of typed PRNG keys, which NumPy does not know."""
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
