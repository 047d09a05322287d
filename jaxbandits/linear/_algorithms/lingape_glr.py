"""LinGapE's sampling rule with a stop by likelihood ratios (Tirinzoni, Degenne, 2022)."""

from typing import Literal

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import require
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.linear._problem.questions.asked import Question
from jaxbandits.linear._problem.questions.top_m import pair_of
from jaxbandits.linear._shared.fixed_confidence import StartName, checked_settings
from jaxbandits.linear._shared.likelihood_ratio import (
    ItemComparison,
    State,
    algorithm_from_rule,
    image_of,
    level_of,
    most_informative,
    weakest,
)
from jaxbandits.linear._shared.lingape_pair import pulls_per_share
from jaxbandits.linear._shared.ratios import checked_shares
from jaxbandits.linear._shared.stop import LikelihoodRatio
from jaxbandits.questions import Above, TopM

WidthName = Literal["threshold", "log"]


def lingape_glr(
    arms: Array,
    *,
    stop: LikelihoodRatio,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    width: WidthName = "threshold",
    ratios: Array | None = None,
    start: StartName = "arms",
    question: Question | None = None,
) -> Algorithm:
    """Pulls the arm that best separates the leader from the item with the largest upper bound, gap + C ||y||.

    For `TopM` it is m-LinGapE: of all pairs of an item inside and one outside, it separates the pair with the largest
    bound on the lead of the one outside. For `Above` the pair is an item and the level.

    Arguments: as for `fixed_weights`, without `allocation`, and the ones below.

    - `width`: C in units of noise_scale. "threshold" is sqrt(2 threshold), "log" sqrt(2 log(1 / delta) + 4 log(t + 2)).
    - `ratios`: as for `lingape`; the shares are of pairs of arms, so the stop must have no items, and the question
      must not be `Above`.

    Returns:
        Algorithm with actions and answers as for `fixed_weights`.

    Raises:
        ValueError: an argument lies outside the range above, a shape does not fit, or `ratios` are given with items or
            `Above`.

    **Guarantee**: as for the stop. **Cost**: as for `fixed_weights`.

    Source: the rule of Xu, Honda and Sugiyama (2018), Algorithm 1; "threshold" as in the code of Wang, Tzeng and
    Proutiere (2021), "log" as in Tirinzoni and Degenne (2022). For `TopM`, Reda, Kaufmann and Delahaye-Duriez (2021),
    Top-m identification for linear bandits; the stop there is by the bounds. For `Above` ours.
    """
    checks.one_of("width", width, WidthName)
    checks.instance("stop", stop, LikelihoodRatio)
    features = checked_arms(arms)
    K, dtype = features.shape[0], features.dtype
    if ratios is not None:
        require(stop.items is None, "ratios", "be None where the stop has items: their shares are of arms", ratios)
        is_of_pairs = not isinstance(question, Above)
        require(is_of_pairs, "ratios", "be None with the question Above: their shares are of pairs", ratios)
    shares = None if ratios is None else checked_shares(ratios, K, dtype)
    settings = checked_settings(arms, stop, ridge=ridge, noise_scale=noise_scale, start=start, question=question)

    def rule(key: Key, state: State, comparison: ItemComparison) -> tuple[Array, tuple[()]]:
        del key
        if width == "threshold":
            level = level_of(settings, state)
        else:
            t = state.pulls.astype(dtype)
            level = -jnp.log(settings.delta) + 2 * jnp.log(t + 2)
        challenger = weakest(comparison.gaps - jnp.sqrt(2 * level * comparison.norms), comparison.rivals)
        if shares is not None:
            pair = comparison.answer, challenger
            if isinstance(settings.question, TopM):
                pair = pair_of(settings.question, comparison.answer, challenger)
            return jnp.argmin(pulls_per_share(state.counts, shares[pair])), ()
        return most_informative(settings, state, image_of(settings, state, comparison, challenger)), ()

    return algorithm_from_rule(settings, rule)
