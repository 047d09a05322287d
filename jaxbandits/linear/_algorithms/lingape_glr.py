"""LinGapE's sampling rule under a likelihood-ratio stop."""

from typing import Literal

import jax.numpy as jnp

from jaxbandits.base import Array, Key
from jaxbandits.linear._shared.fixed_confidence import Settings
from jaxbandits.linear._shared.glr import Comparison, Rule, State, level_of, telling, weakest
from jaxbandits.linear._shared.lingape_pair import pulls_per_share

WidthName = Literal["threshold", "log"]


def lingape_rule(settings: Settings, width: WidthName, shares: Array | None) -> Rule:
    """Pulls what separates the leader from the item of the largest upper bound, gap + C ||y||.

    Args:
        settings: of the problem and the test.
        width: what C^2 is: "threshold", twice the threshold; "log", 2 (log(1 / delta) + 2 log(t + 2)).
        shares: float (K, K, K) of the rule "ratio"; None for "greedy".

    Returns:
        Rule. Cost: O((K + M) d).

    Source: "threshold" is that of the code of Wang, Tzeng and Proutiere (2021), "log" that of Tirinzoni and Degenne
    (2022).
    """

    def rule(key: Key, state: State, seen: Comparison) -> tuple[Array, tuple[()]]:
        del key
        if width == "threshold":
            level = level_of(settings, state)
        else:
            t = state.pulls.astype(settings.delta.dtype)
            level = -jnp.log(settings.delta) + 2 * jnp.log(t + 2)
        challenger = weakest(seen.gaps - jnp.sqrt(2 * level * seen.norms), seen.rivals)
        if shares is not None:
            return jnp.argmin(pulls_per_share(state.counts, shares[seen.leader, challenger])), ()
        return telling(settings, state, seen.leader, challenger), ()

    return rule
