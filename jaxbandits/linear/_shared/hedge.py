"""AdaHedge: exponential weights whose rate follows from the losses (de Rooij, van Erven, Grunwald, Koolen, 2014)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Array

FIRST_GAP = 0.01  # mixability gap before the first loss, so that the first rate is finite


class Hedge(NamedTuple):
    """State of the learner."""

    losses: Array  # float (n,)   cumulated losses less the smallest
    gap: Array  # float ()        cumulated mixability gaps, beginning at 0.01


def new_hedge(n: int, dtype: jnp.dtype) -> Hedge:
    """Returns the learner of n experts before the first loss."""
    return Hedge(jnp.zeros(n, dtype), jnp.full((), FIRST_GAP, dtype))


def weights_of(hedge: Hedge) -> Array:
    """Computes the weights of the next round, float (n,), sum 1."""
    return jax.nn.softmax(-rate_of(hedge) * hedge.losses)


def rate_of(hedge: Hedge) -> Array:
    """Computes the learning rate, log(n) over the gaps."""
    return jnp.log(jnp.asarray(hedge.losses.size, hedge.gap.dtype)) / hedge.gap


def learned(hedge: Hedge, weights: Array, loss: Array) -> Hedge:
    """Updates the learner by a loss (n,), given the weights that were played."""
    rate, least = rate_of(hedge), jnp.min(loss)
    mix = least - jnp.log(jnp.sum(weights * jnp.exp(-rate * (loss - least)))) / rate
    losses = hedge.losses + loss
    gap = hedge.gap + jnp.maximum(0, jnp.sum(weights * loss) - mix)
    return Hedge(losses - jnp.min(losses), gap)
