"""LinGapE's sampling rule under a likelihood-ratio stop."""

from typing import Literal

import jax.numpy as jnp

from jaxbandits.base import Array, Key
from jaxbandits.linear._shared.fixed_confidence import FixedConfidenceSettings
from jaxbandits.linear._shared.likelihood_ratio import ItemComparison, Rule, State, level_of, most_informative, weakest
from jaxbandits.linear._shared.lingape_pair import pulls_per_share

WidthName = Literal["threshold", "log"]


def lingape_rule(settings: FixedConfidenceSettings, width: WidthName, shares: Array | None) -> Rule:
    """Builds the rule that separates the leader from the item of the largest upper bound, gap + C ||y||.

    Args:
        settings: settings of the problem and the test.
        width: "threshold" if C^2 is twice the threshold; "log" if it is 2 (log(1 / delta) + 2 log(t + 2)).
        shares: float (K, K, K), shares of the rule "ratio". If None, the rule is "greedy".

    Returns:
        Rule. Cost: O((K + M) d).

    Source: "threshold" is from the code of Wang, Tzeng and Proutiere (2021), "log" from Tirinzoni and Degenne (2022).
    """

    def rule(key: Key, state: State, comparison: ItemComparison) -> tuple[Array, tuple[()]]:
        del key
        if width == "threshold":
            level = level_of(settings, state)
        else:
            t = state.pulls.astype(settings.delta.dtype)
            level = -jnp.log(settings.delta) + 2 * jnp.log(t + 2)
        challenger = weakest(comparison.gaps - jnp.sqrt(2 * level * comparison.norms), comparison.rivals)
        if shares is not None:
            return jnp.argmin(pulls_per_share(state.counts, shares[comparison.leader, challenger])), ()
        return most_informative(settings, state, comparison.leader, challenger), ()

    return rule
