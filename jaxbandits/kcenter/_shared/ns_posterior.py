"""Posteriors of distances, from which NS-TS draws.

Source: Jali, Karamchandani and Moharir, Greedy k-center from noisy distance samples, Algorithm 3 and its update (17).
"""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Array, Key
from jaxbandits.kcenter._shared import arm_statistics
from jaxbandits.kcenter._shared.arm_statistics import Samples
from jaxbandits.numerics.beta import beta
from jaxbandits.numerics.indexing import select
from jaxbandits.numerics.normal import normals_and_uniforms

PRIOR_PRECISION = 2  # precision of the paper's prior N(0, 1/2) on a distance

PosteriorRule = Literal["conjugate", "printed"]


class Posterior(NamedTuple):
    """Normal posteriors of distances."""

    mean: Array  # float (..., k-1)
    precision: Array  # float (..., k-1)


def prior(shape: tuple[int, ...], dtype: Any) -> Posterior:
    """Returns the posterior of arms without a sample."""
    return Posterior(jnp.zeros(shape, dtype), jnp.full(shape, PRIOR_PRECISION, dtype))


def law(
    kept: Posterior | None, nodes: Array, arms: Samples, noise_scale: Array | float | None, dtype: Any
) -> Posterior:
    """Returns the posterior of two nodes (2, k-1): `kept`, or if it is None, the posterior by Bayes' rule."""
    if kept is not None:
        return arm_statistics.of_nodes(kept, nodes)
    # DEVIATION from (17), which is not the posterior: see `posterior="printed"` of `ns_ts`.
    per_sample = 1 / jnp.square(jnp.asarray(noise_scale, dtype))
    precision = PRIOR_PRECISION + arms.counts.astype(dtype) * per_sample
    return Posterior(arm_statistics.total(arms, dtype) * per_sample / precision, precision)


def printed(
    posterior: Posterior, nodes: Array, *, is_used: Array, counts: Array, mean: Array, noise_scale: Array | float | None
) -> Posterior:
    """Updates by (17) the arms (2, k-1) of two nodes where `is_used` holds, from their counts and means."""
    old, dtype = arm_statistics.of_nodes(posterior, nodes), mean.dtype
    weight = counts.astype(dtype) / jnp.square(jnp.asarray(noise_scale, dtype))
    precision = old.precision + weight
    new = Posterior((old.precision * old.mean + weight * mean) / precision, precision)
    new = select(is_used, new, old)
    return arm_statistics.replace(posterior, nodes, new)


def of_gaussian(key: Key, mean: Array, precision: Array) -> tuple[Array, Array]:
    """Draws distances (2, k-1) from normal posteriors, and for each node a uniform number (2,)."""
    normal, coins = normals_and_uniforms(key, mean.size, 2, mean.dtype)
    return mean + normal.reshape(mean.shape) / jnp.sqrt(precision), coins


def of_bernoulli(key: Key, arms: Samples, dtype: Any) -> tuple[Array, Array]:
    """Draws distances (2, k-1) from Beta(1 + s, 1 + f), and for each node a uniform number (2,)."""
    for_coins, for_draws = jax.random.split(key)
    total, counts = arm_statistics.total(arms, dtype), arms.counts.astype(dtype)
    return beta(for_draws, 1 + total, 1 + (counts - total)), jax.random.uniform(for_coins, (2,), dtype)
