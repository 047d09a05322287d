"""Tables of tasks, and the columns that they add to the results."""

from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import PyTree
from jaxbandits.checks import is_concrete, show

PREFIX = "task"  # prefix of the columns with the values of the table


def grid(**axes: Any) -> dict[str, PyTree]:
    """Builds a table of tasks with a row for every combination of values.

    The last axis varies fastest: row n of `grid(delta=D, gap=G)` has `delta` D[n // len(G)] and `gap` G[n % len(G)].

    Args:
        **axes: values of every parameter: a sequence of numbers, or of lists of numbers, which are vectors; an array
            whose leading axis counts them; a pytree of such arrays (instances built under `jax.vmap`); or a list of
            pytrees of one structure, such as instances.

    Returns:
        dict with the names of the axes, for `sweep`: NumPy arrays, or pytrees of them, whose leading axis counts rows.

    Raises:
        ValueError: an axis has no values, or is no sequence of numbers. The message names it.

    Example:
        >>> grid(delta=[0.1, 0.01], gap=[1, 2, 3])["gap"]
        array([1, 2, 3, 1, 2, 3])
    """
    if not axes:
        raise ValueError("axes must have at least one name, got none")
    values = {name: _stacked(name, axis) for name, axis in axes.items()}
    lengths = [_length(name, value) for name, value in values.items()]
    indices = np.meshgrid(*map(np.arange, lengths), indexing="ij")
    return {
        name: jax.tree.map(lambda leaf, index=index: leaf[index.ravel()], value)
        for (name, value), index in zip(values.items(), indices, strict=True)
    }


def rows(**columns: Any) -> dict[str, PyTree]:
    """Builds a table of tasks whose n-th row takes the n-th value of every column.

    Args:
        **columns: values of every parameter, as in `grid`, equally many of each; or a single number, which all rows
            share.

    Returns:
        dict with the names of the columns, for `sweep`: NumPy arrays, or pytrees of them, whose leading axis counts
        rows.

    Raises:
        ValueError: a column is empty, differs in length from the others, or is no sequence of numbers. The message
            names it.

    Example:
        >>> table = rows(delta=[0.1, 0.05, 0.01], horizon=[100, 200, 300], gap=0.5)
        >>> table["gap"]
        array([0.5, 0.5, 0.5])

        A list of lists gives each task a vector:

        >>> rows(means=[[0.5, 0.4], [0.5, 0.3]])["means"].shape
        (2, 2)
    """
    if not columns:
        raise ValueError("columns must have at least one name, got none")
    shared = {name: np.asarray(value) for name, value in columns.items() if _is_number(value)}
    values = {name: _stacked(name, value) for name, value in columns.items() if name not in shared}
    lengths = {name: _length(name, value) for name, value in values.items()}
    if len(set(lengths.values())) > 1:
        got = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"{' and '.join(lengths)} must be of one length, got: {got}")
    count = next(iter(lengths.values()), 1)
    return {name: np.repeat(shared[name], count) if name in shared else values[name] for name in columns}


def leaves_of(tasks: PyTree) -> dict[str, Any]:
    """Returns the arrays (rows, ...) of a table by their path. A table that is one array has the path ""."""
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): leaf
        for path, leaf in jax.tree.flatten_with_path(tasks)[0]
    }


def column_name(path: str) -> str:
    """Returns the name of the column that holds the leaf at a path."""
    return f"{PREFIX}.{path}" if path else PREFIX


def is_task_column(name: str) -> bool:
    """True if a column holds values of the table."""
    return name == PREFIX or name.startswith(f"{PREFIX}.")


def number_columns(leaves: dict[str, Any]) -> dict[str, np.ndarray]:
    """Returns the columns (rows,) that a table adds to the results: every leaf with one number per row.

    A leaf with an array per row, such as the arms of an instance, would cost more memory than all other columns, since
    every run repeats it. `tasks[row]` returns it.
    """
    columns = {}
    for path, leaf in leaves.items():
        if leaf.ndim == 1 and any(jnp.issubdtype(leaf.dtype, kind) for kind in (np.bool_, np.integer, np.floating)):
            values = np.asarray(leaf)
            # A floating-point type that only JAX has is a float32 with fewer digits.
            columns[column_name(path)] = values if values.dtype.kind in "biuf" else values.astype(np.float32)
    return columns


def with_tasks(columns: dict[str, np.ndarray], table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Inserts the columns of `number_columns` after `row` and `seed` of the runs."""
    leading = {name: columns[name] for name in ("row", "seed")}
    return leading | {name: values[columns["row"]] for name, values in table.items()} | columns


def _stacked(name: str, value: Any) -> PyTree:
    """Returns values as a pytree of arrays whose leading axis counts them."""
    refused = ValueError(
        f"{name} must be a sequence of numbers, or a pytree of arrays whose leading axis counts its values, got "
        f"{show(value)}"
    )
    if is_concrete(value) and _is_nested(value):
        lengths = [len(each) for each in value]
        if len(set(lengths)) > 1:
            raise ValueError(f"{name} must have vectors of one length, got lengths {lengths}")
        try:
            value = np.asarray(value)
        except ValueError as error:  # ragged further inside
            raise refused from error
    if isinstance(value, (list, tuple, range)) and not hasattr(value, "_fields"):
        trees = [jax.tree.flatten(each) for each in value]
        if not trees or len({structure for _, structure in trees}) > 1:
            raise refused
        try:
            value = jax.tree.unflatten(
                trees[0][1], [_joined(leaves) for leaves in zip(*(t for t, _ in trees), strict=True)]
            )
        except ValueError as error:  # the shapes differ
            raise refused from error
    if not jax.tree.leaves(value):
        raise refused
    for leaf in jax.tree.leaves(value):
        if not is_concrete(leaf) or not isinstance(leaf, (np.ndarray, jax.Array)):
            raise refused
        if not (is_key(leaf) or leaf.dtype.kind in "biufcV") or leaf.ndim == 0 or leaf.size == 0:
            raise refused
    return jax.tree.map(lambda leaf: leaf if is_key(leaf) else np.asarray(leaf), value)


def _is_nested(value: Any) -> bool:
    """True if this is a sequence of vectors or of arrays, written as lists or tuples of numbers."""

    def is_list(each: Any) -> bool:
        return isinstance(each, (list, tuple)) and not hasattr(each, "_fields")

    def is_vector(each: Any) -> bool:
        return is_list(each) and len(each) > 0 and all(_is_number(x) or is_vector(x) for x in each)

    return is_list(value) and len(value) > 0 and all(map(is_vector, value))


def _joined(leaves: tuple[Any, ...]) -> Any:
    """Stacks several arrays along a new leading axis."""
    return jnp.stack(leaves) if is_key(leaves[0]) else np.stack([np.asarray(leaf) for leaf in leaves])


def _length(name: str, value: PyTree) -> int:
    """Returns the length of the leading axis that all leaves share."""
    lengths = {len(leaf) for leaf in jax.tree.leaves(value)}
    if len(lengths) > 1:
        raise ValueError(
            f"{name} must be a pytree of arrays with one common leading axis, got lengths {sorted(lengths)}"
        )
    return lengths.pop()


def _is_number(value: Any) -> bool:
    """True if this is a single number, of Python, NumPy or JAX."""
    return isinstance(value, (bool, int, float, complex, np.generic)) or (
        isinstance(value, (np.ndarray, jax.Array)) and value.ndim == 0 and not is_key(value)
    )


def is_key(leaf: Any) -> bool:
    """True if this is an array of typed PRNG keys, which NumPy does not have."""
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
