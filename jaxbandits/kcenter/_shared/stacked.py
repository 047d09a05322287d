"""Several numbers of every arm, stacked in one array a dtype: a GPU reads or sets those of an arm in one launch."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Array, PyTree, static_fields


class Layout(NamedTuple):
    """Which number stands where; hashable."""

    structure: Any  # of the tree of numbers
    dtypes: tuple[np.dtype, ...]  # of its leaves


@static_fields("layout")
class Stacked(NamedTuple):
    """A tree of numbers of every arm, of all nodes (n, k-1) or of some (..., k-1)."""

    arrays: tuple[Array, ...]  # (n, p, k-1) or (..., p, k-1), p leaves of one dtype
    layout: Layout  # static

    @property
    def tree(self) -> PyTree:
        """The numbers as they were stacked; before or after, axes of batches may be added at the front."""
        order = list(dict.fromkeys(self.layout.dtypes))
        places = [self.layout.dtypes[:n].count(dtype) for n, dtype in enumerate(self.layout.dtypes)]
        found = [
            self.arrays[order.index(dtype)][..., place, :]
            for dtype, place in zip(self.layout.dtypes, places, strict=True)
        ]
        return jax.tree.unflatten(self.layout.structure, found)


def stack(tree: PyTree) -> Stacked:
    """Stacks arrays of one shape (..., k-1)."""
    leaves, structure = jax.tree.flatten(tree)
    layout = Layout(structure, tuple(leaf.dtype for leaf in leaves))
    return Stacked(_stacks(tree, layout, -2), layout)


def rows(table: Stacked, nodes: Array) -> Stacked:
    """The numbers of some nodes; those of node n have no meaning."""
    return table._replace(arrays=tuple(x.at[nodes].get(mode="clip") for x in table.arrays))


def arms(table: Stacked, nodes: Array, slots: Array) -> PyTree:
    """The numbers of an arm of each of some nodes; those of one that does not exist have no meaning."""
    found = tuple(x.at[nodes, :, slots].get(mode="clip")[..., None] for x in table.arrays)
    return jax.tree.map(lambda x: x[..., 0], table._replace(arrays=found).tree)


def replace(table: Stacked, nodes: Array, rows: PyTree) -> Stacked:
    """Replaces the rows of some nodes; that of node n is dropped."""
    new = _stacks(rows, table.layout, -2)
    return table._replace(
        arrays=tuple(x.at[nodes].set(row, mode="drop") for x, row in zip(table.arrays, new, strict=True))
    )


def replace_arms(table: Stacked, nodes: Array, slots: Array, arms: PyTree) -> Stacked:
    """Replaces an arm of each of some nodes; one that does not exist is dropped."""
    new = _stacks(arms, table.layout, -1)
    return table._replace(
        arrays=tuple(x.at[nodes, :, slots].set(arm, mode="drop") for x, arm in zip(table.arrays, new, strict=True))
    )


def _stacks(tree: PyTree, layout: Layout, axis: int) -> tuple[Array, ...]:
    """One array a dtype, in the order in which the dtypes come."""
    leaves = [leaf.astype(dtype) for leaf, dtype in zip(jax.tree.leaves(tree), layout.dtypes, strict=True)]
    return tuple(
        jnp.stack([leaf for leaf in leaves if leaf.dtype == dtype], axis) for dtype in dict.fromkeys(layout.dtypes)
    )
