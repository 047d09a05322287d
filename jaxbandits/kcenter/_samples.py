"""What the algorithms for noisy distances remember of their rewards: counts and sums, by arm."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array, PyTree
from jaxbandits.kcenter._problem import Distances
from jaxbandits.numerics import compensated
from jaxbandits.numerics.compensated import Sum


class Samples(NamedTuple):
    """Pulls and rewards of the arms of all nodes (n, k-1), of some (..., k-1), or of one (k-1,).

    Float sums are compensated: in float32 a plain sum of 10^7 rewards is off by 5e-3 of itself.
    """

    counts: Array  # int32 (..., k-1)
    sums: Sum | Array  # of floats (..., k-1) or, of Bernoulli rewards, int32 (..., k-1)


def empty(problem: Distances, dtype: Any) -> Samples:
    """No reward of any arm yet."""
    counts = jnp.zeros((problem.n, problem.k - 1), jnp.int32)
    return Samples(counts, compensated.zeros(counts.shape, dtype) if problem.noise == "gaussian" else counts)


def add(samples: Samples, pulls: Array, rewards: Array) -> Samples:
    """Adds further rewards.

    Args:
        samples: Samples.
        pulls: int32, of the counts' shape, how many rewards of each arm.
        rewards: their sums, of a shape that broadcasts to that of the counts; not read where there are no pulls.

    Returns:
        Samples, the same bits where there are no pulls.
    """
    sums = samples.sums
    if isinstance(sums, Sum):
        new = jnp.where(pulls > 0, rewards.astype(sums.total.dtype), 0)
        return Samples(samples.counts + pulls, compensated.add(sums, new))
    return Samples(samples.counts + pulls, sums + jnp.where(pulls > 0, rewards.astype(jnp.int32), 0))


def total(samples: Samples, dtype: Any) -> Array:
    """The sums of the rewards, float (..., k-1)."""
    return compensated.value(samples.sums) if isinstance(samples.sums, Sum) else samples.sums.astype(dtype)


def mean(samples: Samples, dtype: Any) -> Array:
    """The mean rewards, float (..., k-1); 0 for an arm without a sample."""
    return total(samples, dtype) / jnp.maximum(samples.counts, 1).astype(dtype)


def of_nodes(table: PyTree, nodes: Array) -> PyTree:
    """The rows of some nodes; that of node n has no meaning."""
    return jax.tree.map(lambda x: x.at[nodes].get(mode="clip"), table)


def replace(table: PyTree, nodes: Array, new: PyTree) -> PyTree:
    """Replaces the rows of some nodes; that of node n is dropped."""
    return jax.tree.map(lambda x, row: x.at[nodes].set(row, mode="drop"), table, new)


def replace_arms(table: PyTree, nodes: Array, slots: Array, new: PyTree, rows: PyTree) -> PyTree:
    """Replaces an arm of each of some nodes; one that does not exist is dropped.

    Args:
        table: arrays (n, k-1).
        nodes: int (...,).
        slots: int (...,).
        new: of the arms, (...,).
        rows: of the nodes with them, (..., k-1). A CPU writes these, which it does as fast, and reads no entry.

    Returns:
        The arrays.
    """

    def by_rows(table: PyTree) -> PyTree:
        return replace(table, nodes, rows)

    def by_entries(table: PyTree) -> PyTree:
        return jax.tree.map(lambda x, value: x.at[nodes, slots].set(value, mode="drop"), table, new)

    return lax.platform_dependent(table, cpu=by_rows, default=by_entries)


def add_to_arms(samples: Samples, nodes: Array, slots: Array, pulls: Array, rewards: Array) -> tuple[Samples, Samples]:
    """`add` for an arm of each of some nodes (b,): the samples of all, and the nodes' rows (b, k-1)."""
    size = samples.counts.shape[-1]

    def by_rows(samples: Samples) -> tuple[Samples, Samples]:
        is_arm = jnp.arange(size, dtype=jnp.int32) == slots[:, None]
        rows = add(of_nodes(samples, nodes), jnp.where(is_arm, pulls[:, None], 0), rewards[:, None])
        return replace(samples, nodes, rows), rows

    def by_entries(samples: Samples) -> tuple[Samples, Samples]:
        arms = jax.tree.map(lambda x: x.at[nodes, slots].get(mode="clip"), samples)
        arms = add(arms, pulls, rewards)
        samples = jax.tree.map(lambda x, value: x.at[nodes, slots].set(value, mode="drop"), samples, arms)
        return samples, of_nodes(samples, nodes)

    return lax.platform_dependent(samples, cpu=by_rows, default=by_entries)
