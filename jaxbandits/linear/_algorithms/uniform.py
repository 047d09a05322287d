"""Every arm in turn."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.linear._shared.fixed_confidence import EliminateName, StartName, checked_settings
from jaxbandits.linear._shared.glr import Comparison, State, algorithm_of
from jaxbandits.numerics.thresholds import Threshold


def uniform(
    arms: Array,
    *,
    delta: Array | float,
    threshold: Threshold,
    items: Array | None = None,
    epsilon: Array | float = 0.0,
    ridge: Array | float = 1.0,
    glr_ridge: float | None = None,
    noise_scale: Array | float = 1.0,
    eliminate: EliminateName | None = None,
    start: StartName = "arms",
) -> Algorithm:
    """Pulls every arm in turn until the likelihood ratios pass the threshold: what any other rule should beat.

    Arguments, result and errors are those of `fixed_weights`, which has an `allocation` besides.

    **Guarantee**: that of the threshold. **Cost**: O((K + M) d) a round.

    Source: the round robin of Wang, Tzeng and Proutiere (2021), Table 1.
    """
    settings = checked_settings(arms, delta, threshold, items, epsilon, ridge, glr_ridge, noise_scale, eliminate, start)
    K = settings.arms.shape[0]

    def rule(key: Key, state: State, seen: Comparison) -> tuple[Array, tuple[()]]:
        del key, seen
        return state.pulls % jnp.asarray(K, state.pulls.dtype), ()

    return algorithm_of(settings, rule)
