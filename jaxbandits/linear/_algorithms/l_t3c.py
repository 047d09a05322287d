"""L-T3C: the best item of a posterior draw against the one closest in likelihood (Shang et al.)."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.linear._shared.fixed_confidence import EliminateName, StartName, checked_settings
from jaxbandits.linear._shared.glr import Comparison, State, algorithm_of
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
from jaxbandits.numerics.thresholds import Threshold


def l_t3c(
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
    leader_share: Array | float | None = None,
    joint: bool = True,
) -> Algorithm:
    """Draws a leader from the posterior, takes the challenger of the least likelihood ratio, and tells the two apart.

    Arguments, but for those below, are those of `fixed_weights`, without the allocation.

    - `leader_share`: None for the arm that shrinks the width of the two most; or the probability, in (0, 1), with which
      the leader is pulled, and else the challenger, for items that are the arms. **Do not use the coin** where telling
      two arms apart needs a third: on `soare(6, 0.1)` most runs do not stop within 4 10^5 pulls, where 904 would do.
    - `joint`: whether the leader is that of one draw of theta, or each item has a draw of its own, as in public code.

    Returns:
        Algorithm with actions `Pull`, or `Step` where items are eliminated, and answers int (), an item.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: that of the threshold; with a proved one P(the answer is not best) <= delta. **Cost**: O((K + M) d) a
    round, and for the joint draw O(d^3) besides.

    Source: the public code of Shang et al.; the challenger is that of T3C (Shang, de Heide, Menard, Kaufmann and Valko,
    2020, Fixed-confidence guarantees for Bayesian best-arm identification).
    """
    check_leader_share(leader_share, items)
    checks.flag("joint", joint)
    settings = checked_settings(arms, delta, threshold, items, epsilon, ridge, glr_ridge, noise_scale, eliminate, start)
    M, d = settings.items.shape

    def rule(key: Key, state: State, seen: Comparison) -> tuple[Array, tuple[()]]:
        numbers = numbers_of(key, d if joint else M, settings.arms.dtype)
        is_open = open_items(seen)
        if joint:
            leader = best_items(settings, posterior_draws(settings, state, numbers.normals[None]), is_open)[0]
        else:
            spreads = jnp.sqrt(jnp.maximum(dot(settings.items, state.cache.images[-M:]), 0))
            means = dot(settings.items, state.cache.theta) + settings.noise_scale * spreads * numbers.normals
            leader = jnp.argmax(jnp.where(is_open, means, -jnp.inf))
        challenger = challenger_of(settings, state, leader, is_open, numbers.tie)
        return pulled_of(settings, state, leader, challenger, leader_share, numbers.coin), ()

    return algorithm_of(settings, rule, draws=joint)
