"""Round robin over all arms."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.linear._problem.questions.asked import Question
from jaxbandits.linear._shared.fixed_confidence import StartName, checked_settings
from jaxbandits.linear._shared.likelihood_ratio import ItemComparison, State, algorithm_from_rule
from jaxbandits.linear._shared.stop import LikelihoodRatio


def uniform(
    arms: Array,
    *,
    stop: LikelihoodRatio,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    start: StartName = "arms",
    question: Question | None = None,
) -> Algorithm:
    """Pulls every arm in turn until the likelihood ratios pass the threshold; the baseline of the other rules.

    Arguments, result and errors: as for `fixed_weights`, without `allocation`.

    **Guarantee**: as for `fixed_weights`. **Cost**: O((K + M) d) per round.

    Source: the round robin of Wang, Tzeng and Proutiere (2021), Table 1.
    """
    settings = checked_settings(arms, stop, ridge=ridge, noise_scale=noise_scale, start=start, question=question)
    K = settings.arms.shape[0]

    def rule(key: Key, state: State, comparison: ItemComparison) -> tuple[Array, tuple[()]]:
        del key, comparison
        return state.pulls % jnp.asarray(K, state.pulls.dtype), ()

    return algorithm_from_rule(settings, rule)
