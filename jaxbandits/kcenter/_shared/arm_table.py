"""Several numbers of every arm, packed in one array per dtype: a GPU reads or sets all of an arm in one launch."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Array, PyTree, static_fields


class Layout(NamedTuple):
    """Order of the numbers in the arrays; hashable."""

    structure: Any  # tree structure of the numbers
    dtypes: tuple[np.dtype, ...]  # one per leaf


@static_fields("layout")
class ArmTable(NamedTuple):
    """Tree of numbers of every arm, for all nodes (n, k-1) or some of them (..., k-1)."""

    arrays: tuple[Array, ...]  # (n, p, k-1) or (..., p, k-1), p leaves of one dtype
    layout: Layout  # static

    @property
    def tree(self) -> PyTree:
        """Returns the numbers as they were packed; axes of batches may stand at the front."""
        order = list(dict.fromkeys(self.layout.dtypes))
        columns = [self.layout.dtypes[:n].count(dtype) for n, dtype in enumerate(self.layout.dtypes)]
        leaves = [
            self.arrays[order.index(dtype)][..., column, :]
            for dtype, column in zip(self.layout.dtypes, columns, strict=True)
        ]
        return jax.tree.unflatten(self.layout.structure, leaves)


def pack(tree: PyTree) -> ArmTable:
    """Packs arrays of one shape (..., k-1)."""
    leaves, structure = jax.tree.flatten(tree)
    layout = Layout(structure, tuple(leaf.dtype for leaf in leaves))
    return ArmTable(_stack_by_dtype(tree, layout, -2), layout)


def rows(table: ArmTable, nodes: Array) -> ArmTable:
    """Returns the rows of some nodes; the row of node n has no meaning."""
    return table._replace(arrays=tuple(x.at[nodes].get(mode="clip") for x in table.arrays))


def arms(table: ArmTable, nodes: Array, slots: Array) -> PyTree:
    """Returns one arm of each of some nodes; an arm that does not exist has no meaning."""
    entries = tuple(x.at[nodes, :, slots].get(mode="clip")[..., None] for x in table.arrays)
    return jax.tree.map(lambda x: x[..., 0], table._replace(arrays=entries).tree)


def replace(table: ArmTable, nodes: Array, rows: PyTree) -> ArmTable:
    """Replaces the rows of some nodes; the row of node n is dropped."""
    new = _stack_by_dtype(rows, table.layout, -2)
    return table._replace(
        arrays=tuple(x.at[nodes].set(row, mode="drop") for x, row in zip(table.arrays, new, strict=True))
    )


def replace_arms(table: ArmTable, nodes: Array, slots: Array, arms: PyTree) -> ArmTable:
    """Replaces one arm of each of some nodes; an arm that does not exist is dropped."""
    new = _stack_by_dtype(arms, table.layout, -1)
    return table._replace(
        arrays=tuple(x.at[nodes, :, slots].set(arm, mode="drop") for x, arm in zip(table.arrays, new, strict=True))
    )


def _stack_by_dtype(tree: PyTree, layout: Layout, axis: int) -> tuple[Array, ...]:
    """Stacks the leaves in one array per dtype, in the order in which the dtypes first appear."""
    leaves = [leaf.astype(dtype) for leaf, dtype in zip(jax.tree.leaves(tree), layout.dtypes, strict=True)]
    return tuple(
        jnp.stack([leaf for leaf in leaves if leaf.dtype == dtype], axis) for dtype in dict.fromkeys(layout.dtypes)
    )
