"""Counts and sums of noisy rewards, by arm."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Array, PyTree
from jaxbandits.kcenter._problem.problem import Distances
from jaxbandits.kcenter._shared import arm_table
from jaxbandits.kcenter._shared.arm_table import ArmTable
from jaxbandits.numerics import compensated
from jaxbandits.numerics.compensated import Sum
from jaxbandits.numerics.platforms import by_platform


class Samples(NamedTuple):
    """Pulls and rewards of the arms of all nodes (n, k-1), of some nodes (..., k-1), or of one (k-1,).

    Float sums are compensated: in float32 a plain sum of 10^7 rewards is off by 5e-3 of itself.
    """

    counts: Array  # int32 (..., k-1)
    sums: Sum | Array  # (..., k-1)  compensated float sums; int32 sums of Bernoulli rewards


def empty(problem: Distances, dtype: Any) -> Samples:
    """Returns the statistics without a reward."""
    counts = jnp.zeros((problem.n, problem.k - 1), jnp.int32)
    return Samples(counts, compensated.zeros(counts.shape, dtype) if problem.noise == "gaussian" else counts)


def add(samples: Samples, pulls: Array, rewards: Array) -> Samples:
    """Adds further rewards.

    Args:
        samples: Samples.
        pulls: int32, shape of the counts: number of new rewards of each arm.
        rewards: sums of the new rewards, of a shape that broadcasts to the counts; not read where there are no pulls.

    Returns:
        Samples, the same bits where there are no pulls.
    """
    sums = samples.sums
    if isinstance(sums, Sum):
        new = jnp.where(pulls > 0, rewards.astype(sums.total.dtype), 0)
        return Samples(samples.counts + pulls, compensated.add(sums, new))
    return Samples(samples.counts + pulls, sums + jnp.where(pulls > 0, rewards.astype(jnp.int32), 0))


def total(samples: Samples, dtype: Any) -> Array:
    """Returns the sums of the rewards, float (..., k-1)."""
    return compensated.value(samples.sums) if isinstance(samples.sums, Sum) else samples.sums.astype(dtype)


def mean(samples: Samples, dtype: Any) -> Array:
    """Computes the mean rewards, float (..., k-1); 0 for an arm without a sample."""
    return total(samples, dtype) / jnp.maximum(samples.counts, 1).astype(dtype)


def of_nodes(table: PyTree, nodes: Array) -> PyTree:
    """Returns the rows of some nodes; the row of node n has no meaning."""
    return jax.tree.map(lambda x: x.at[nodes].get(mode="clip"), table)


def replace(table: PyTree, nodes: Array, new: PyTree) -> PyTree:
    """Replaces the rows of some nodes; the row of node n is dropped."""
    return jax.tree.map(lambda x, row: x.at[nodes].set(row, mode="drop"), table, new)


def add_to_arms(table: ArmTable, nodes: Array, slots: Array, pulls: Array, rewards: Array) -> tuple[ArmTable, Samples]:
    """Adds rewards of one arm of each of some nodes (b,); returns the table and the nodes' rows (b, k-1)."""

    def by_rows(table: ArmTable) -> tuple[ArmTable, Samples]:
        old: Samples = arm_table.rows(table, nodes).tree
        is_arm = jnp.arange(old.counts.shape[-1], dtype=jnp.int32)[None] == slots[:, None]
        rows = add(old, jnp.where(is_arm, pulls[:, None], 0), rewards[:, None])
        return arm_table.replace(table, nodes, rows), rows

    def by_entries(table: ArmTable) -> tuple[ArmTable, Samples]:
        arms = add(arm_table.arms(table, nodes, slots), pulls, rewards)
        table = arm_table.replace_arms(table, nodes, slots, arms)
        return table, arm_table.rows(table, nodes).tree

    return by_platform(table, cpu=by_rows, default=by_entries)
