"""Exact statistics of the samples, estimates from them, and the box that they leave for theta."""

import math
from typing import Literal, NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.cpe._problem.environment import Pulls
from jaxbandits.numerics import compensated
from jaxbandits.numerics.compensated import Sum
from jaxbandits.numerics.elementary import log

Estimator = Literal["mean", "variance"]
Observations = Literal["binary", "unit"]


class Moments(NamedTuple):
    """Sums of samples in [0, 1] about 1/2, where the variance loses fewest digits to cancellation."""

    first: Sum  # float (m,)            sums of X - 1/2
    second: Sum | None  # float (m,)    sums of (X - 1/2)^2, for the variance only


class Statistics(NamedTuple):
    """Counts and sums of the samples."""

    counts: Array  # int32 (m,)
    sums: Array | Moments  # int32 (m,), the number of ones, if samples are 0 or 1
    poison: Array  # float ()   0; NaN after a sample that is not of the kind `observations`, which ends the run


class Box(NamedTuple):
    """Box that holds theta if all confidence intervals are right."""

    lo: Array  # float (m,)
    hi: Array  # float (m,)


def initial_pulls(estimator: Estimator) -> int:
    """Returns tau, the number of samples that an arm's estimate requires."""
    return {"mean": 1, "variance": 2}[estimator]


def empty(m: int, dtype: jnp.dtype, *, estimator: Estimator, observations: Observations) -> Statistics:
    """Returns the statistics without samples.

    Args:
        m: number of arms.
        dtype: dtype of the run.
        estimator: "mean" or "variance".
        observations: "binary" for samples that are 0 or 1, whose sums are integers, or "unit" for samples in [0, 1].

    Returns:
        Statistics.
    """
    counts, poison = jnp.zeros(m, jnp.int32), jnp.zeros((), dtype)
    if observations == "binary":
        return Statistics(counts, counts, poison)
    sums = compensated.zeros((m,), dtype)
    return Statistics(counts, Moments(sums, sums if estimator == "variance" else None), poison)


def add(statistics: Statistics, pulls: Pulls, samples: Array) -> Statistics:
    """Adds the samples of one round.

    Args:
        statistics: statistics of the samples so far.
        pulls: the arms that were pulled.
        samples: float (leap,); the entry of an empty slot is ignored.

    Returns:
        Statistics. A round of empty slots changes no bit.

    Cost: O(m leap).
    """
    counts, sums, poison = statistics
    m = counts.shape[0]
    pulled = pulls.arms[None] == jnp.arange(m, dtype=jnp.int32)[:, None]
    if isinstance(sums, Moments):
        valid = (samples >= 0) & (samples <= 1)
        centred = jnp.where(pulled, (samples - 0.5)[None], 0)
        first = compensated.add(sums.first, jnp.sum(centred, axis=1))
        second = None if sums.second is None else compensated.add(sums.second, jnp.sum(centred**2, axis=1))
        sums = Moments(first, second)
    else:
        valid = (samples == 0) | (samples == 1)
        sums = sums + jnp.sum(pulled & (samples == 1)[None], axis=1, dtype=jnp.int32)
    is_lawful = jnp.all(valid | (pulls.arms == m))
    counts = counts + jnp.sum(pulled, axis=1, dtype=jnp.int32)
    return Statistics(counts, sums, jnp.where(is_lawful, poison, jnp.nan))


def estimate(statistics: Statistics, estimator: Estimator) -> Array:
    """Computes the mean or the unbiased variance of every arm's samples.

    Args:
        statistics: statistics of the samples so far.
        estimator: "mean" or "variance".

    Returns:
        float (m,), in [0, 1]. An arm with fewer than tau samples counts as having tau, so its estimate is finite.
    """
    counts, sums, poison = statistics
    T = jnp.maximum(counts, initial_pulls(estimator)).astype(poison.dtype)
    if isinstance(sums, Moments):
        total = compensated.value(sums.first)
        if sums.second is None:
            return total / T + 0.5
        return jnp.maximum((compensated.value(sums.second) - total * (total / T)) / (T - 1), 0)
    S = sums.astype(T.dtype)
    # Products of two counts would overflow in 32 bit.
    return S / T if estimator == "mean" else (S / T) * ((T - S) / (T - 1))


def squared_radius(n: Array, *, tau: int, delta: Array | float, radius_scale: Array | float = 1.0) -> Array:
    """Computes c(n): after n pulls in all, an arm with T of them has the confidence radius sqrt(c(n) / T).

    Args:
        n: float (), at least 1.
        tau: 1 for means, 2 for variances.
        delta: () in (0, 1).
        radius_scale: () > 0, factor of the radius.

    Returns:
        (ln 4 - ln(tau delta) + 3 ln n) / 2, times the factor's square; float (), of the dtype of n.

    Source: Huang, Ok, Li and Chen (2018), Algorithm 1.
    """
    delta, scale = jnp.asarray(delta, n.dtype), jnp.asarray(radius_scale, n.dtype)
    # The terms are added because the argument of ln(4 n^3 / (tau delta)) overflows.
    return scale**2 / 2 * (math.log(4) - jnp.log(tau * delta) + 3 * log(n))


def box(lo: Array, hi: Array, *, clip: bool) -> Box:
    """Returns a box, clipped to [0, 1] if `clip`."""
    return Box(jnp.maximum(lo, 0), jnp.minimum(hi, 1)) if clip else Box(lo, hi)
