"""L-T3C: the best item of a posterior draw against the one closest in likelihood (Shang et al.)."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.linear._shared.fixed_confidence import StartName, checked_settings
from jaxbandits.linear._shared.likelihood_ratio import ItemComparison, State, algorithm_from_rule
from jaxbandits.linear._shared.stop import LikelihoodRatio
from jaxbandits.linear._shared.top_two import (
    best_items,
    challenger_of,
    check_leader_share,
    numbers_of,
    open_items,
    posterior_draws,
    pulled_of,
)
from jaxbandits.numerics.linalg import dot


def l_t3c(
    arms: Array,
    *,
    stop: LikelihoodRatio,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    start: StartName = "arms",
    leader_share: Array | float | None = None,
    joint: bool = True,
) -> Algorithm:
    """Draws a leader from the posterior, and pulls what separates it from the challenger of smallest likelihood ratio.

    Arguments: as for `fixed_weights`, without `allocation` and `question`, and the ones below.

    - `leader_share`: None or a probability in (0, 1). If None, pulls the arm that shrinks the width of the two items
      most. Otherwise pulls the leader with this probability, and otherwise the challenger; the items must be the arms.
      **Leave it None** where a third arm separates the two better: on `soare(6, 0.1)` most runs with a share do not
      stop within 4 10^5 pulls, where 904 are enough.
    - `joint`: if True, the leader is the best item of one draw of theta. If False, each item has a draw of its own, as
      in public code.

    Returns:
        Algorithm with actions `Pull`, or `Step` where items are eliminated, and answers int (), an item.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: with a proved threshold, P(the answer is not best) <= delta. **Cost**: O((K + M) d) per round, and
    O(d^3) for a joint draw.

    Source: the public code of Shang et al.; the challenger is from T3C (Shang, de Heide, Menard, Kaufmann and Valko,
    2020, Fixed-confidence guarantees for Bayesian best-arm identification).
    """
    check_leader_share(leader_share, stop)
    checks.flag("joint", joint)
    settings = checked_settings(arms, stop, ridge=ridge, noise_scale=noise_scale, start=start)
    M, d = settings.items.shape

    def rule(key: Key, state: State, comparison: ItemComparison) -> tuple[Array, tuple[()]]:
        numbers = numbers_of(key, d if joint else M, settings.arms.dtype)
        is_open = open_items(comparison)
        if joint:
            leader = best_items(settings, posterior_draws(settings, state, numbers.normals[None]), is_open)[0]
        else:
            spreads = jnp.sqrt(jnp.maximum(dot(settings.items, state.cache.images[-M:]), 0))
            means = dot(settings.items, state.cache.theta) + settings.noise_scale * spreads * numbers.normals
            leader = jnp.argmax(jnp.where(is_open, means, -jnp.inf))
        challenger = challenger_of(settings, state, leader, is_open, numbers.tie)
        return pulled_of(
            settings, state, leader=leader, challenger=challenger, leader_share=leader_share, coin=numbers.coin
        ), ()

    return algorithm_from_rule(settings, rule, draws=joint)
