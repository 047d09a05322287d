"""Evidence that thresholds read, and checks of their arguments."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import require


class Evidence(NamedTuple):
    """Statistics of a run. A threshold reads the fields that it needs; the others may be None."""

    pulls: Array | int  # int ()   oracle queries so far, t
    counts: Array | None = None  # int (n,)   pulls of the arms whose means are compared: the 2 of a pair, or all K
    log_det: Array | None = None  # float ()   log det(I + V / ridge), V = sum_k counts_k x_k x_k'
    least_eigenvalue: Array | None = None  # float ()   smallest eigenvalue of V, or a lower bound on it
    sums: Array | None = None  # float (n,)   sums of the rewards of these arms
    law: str | None = None  # law of the rewards: the name of the struct of a problem of `mab`, such as "Poisson"
    cost: str | None = None  # likelihood ratio with unknown variances, "adaptive" or "plug-in"; None with known ones


Threshold = Callable[[Array | float, Evidence], Array]  # (delta, evidence) -> float (), of delta's dtype


def as_float(delta: Array | float) -> Array:
    """Returns delta as an array of a floating-point type."""
    return jnp.asarray(delta, jnp.result_type(delta))


def as_count(count: Array | int, delta: Array) -> Array:
    """Returns a number of pulls as a float of delta's dtype, at least 1."""
    return jnp.maximum(jnp.asarray(count).astype(delta.dtype), 1)


def read(kind: str, field: str, value: Array | None, delta: Array) -> Array:
    """Returns a field of the evidence in the dtype of delta. Raises `ValueError` if it is missing."""
    require(value is not None, f"evidence.{field}", f"be given to {kind}", None)
    return jnp.asarray(value).astype(delta.dtype)


def read_counts(kind: str, evidence: Evidence, n: int, of: str) -> Array:
    """Returns the pulls of n arms. Raises `ValueError` if they are missing or have another shape."""
    expected = f"be the pulls of {of}, an array of shape ({n},), for {kind}"
    require(evidence.counts is not None, "evidence.counts", expected, None)
    counts = jnp.asarray(evidence.counts)
    require(counts.shape == (n,), "evidence.counts", expected, f"an array of shape {counts.shape}")
    return counts


def read_some_counts(kind: str, evidence: Evidence) -> Array:
    """Returns the pulls of any number of arms. Raises `ValueError` if they are missing or no list."""
    expected = f"be the pulls of the arms that are compared, an array of shape (n,), for {kind}"
    require(evidence.counts is not None, "evidence.counts", expected, None)
    counts = jnp.asarray(evidence.counts)
    require(counts.ndim == 1 and counts.size > 0, "evidence.counts", expected, f"an array of shape {counts.shape}")
    return counts


def check_arms(arms: int | None) -> None:
    """Checks a number of arms, unless it is None."""
    if arms is not None:
        checks.whole("arms", arms, least=2)


def log_of(name: str, value: Array | float) -> Callable[[Array], Array | float]:
    """Returns the logarithm of an argument that may be traced, as a function of delta, which determines its dtype."""
    checks.positive(name, value)
    if checks.is_concrete(value):
        logarithm = math.log(float(value))
        return lambda delta: logarithm
    return lambda delta: jnp.log(jnp.asarray(value).astype(delta.dtype))


def log_of_pairs(arms: int | None, comparisons: Array | float | None) -> Callable[[Array], Array | float]:
    """Returns the logarithm of the number of comparisons of a leader with the others, K - 1 if it is None."""
    if arms is not None or comparisons is None:
        arms = checks.whole("arms", arms, least=2)
    return log_of("comparisons", (arms or 2) - 1 if comparisons is None else comparisons)
