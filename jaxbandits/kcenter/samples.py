"""What the algorithms for noisy distances remember of their rewards: counts and sums, by arm."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp

from jaxbandits.base import Array, PyTree
from jaxbandits.checks import require, require_positive
from jaxbandits.kcenter import intervals
from jaxbandits.numerics import compensated
from jaxbandits.numerics.compensated import Sum

Noise = Literal["gaussian", "bernoulli"]


class Samples(NamedTuple):
    """Pulls and rewards of the arms of all nodes (n, k-1), of some (..., k-1), or of one (k-1,).

    Float sums are compensated: in float32 a plain sum of 10^7 rewards is off by 5e-3 of itself.
    """

    counts: Array  # int32 (..., k-1)
    sums: Sum | Array  # of floats (..., k-1) or, of Bernoulli rewards, int32 (..., k-1)


def empty(n: int, k: int, noise: Noise, dtype: Any) -> Samples:
    """No reward of any arm yet."""
    none = jnp.zeros((n, k - 1), jnp.int32)
    return Samples(none, compensated.zeros(none.shape, dtype) if noise == "gaussian" else none)


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
    """The mean rewards, float (..., k-1); 0 where there is none."""
    return total(samples, dtype) / jnp.maximum(samples.counts, 1).astype(dtype)


def rows(table: PyTree, nodes: Array) -> PyTree:
    """The rows of some nodes; that of node n means nothing."""
    return jax.tree.map(lambda x: x.at[nodes].get(mode="clip"), table)


def put(table: PyTree, nodes: Array, new: PyTree) -> PyTree:
    """Replaces the rows of some nodes; that of node n is dropped."""
    return jax.tree.map(lambda x, row: x.at[nodes].set(row, mode="drop"), table, new)


def confidence_interval(
    n: int,
    *,
    noise: Noise,
    variance: Array | float | None,
    delta: Array | float,
    alpha: Array | float,
    k1: Array | float | None,
) -> Callable[[Array, Array], tuple[Array, Array]]:
    """The interval (14) of the noise, (means, counts) -> (lower, upper), with delta shared by all pairs of nodes."""
    intervals.check_kl(alpha, k1)
    settings = {
        "delta": intervals.shared_delta(delta, n, "pairs"),
        "alpha": alpha,
        "k1": intervals.least_k1(alpha) if k1 is None else k1,
    }
    if noise == "bernoulli":
        return partial(intervals.kl, **settings)
    return partial(intervals.kl_gaussian, **settings, variance=variance)


def check_noise(noise: Noise, variance: Array | float | None) -> None:
    """Raises `ValueError` unless the noise is known, and its variance positive and, if Gaussian, given."""
    require(noise in get_args(Noise), "noise", f"be one of {get_args(Noise)}", noise)
    require(noise != "gaussian" or variance is not None, "variance", "be given for Gaussian noise", variance)
    if variance is not None:
        require_positive("variance", variance)


def check_dtype(dtype: Any) -> Any:
    """The dtype of a run, JAX's own by default; raises `ValueError` unless it is one of floats."""
    dtype = jnp.dtype(float if dtype is None else dtype)
    require(jnp.issubdtype(dtype, jnp.floating), "dtype", "be a float type", dtype.name)
    return dtype
