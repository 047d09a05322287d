"""LinTTTS: two posterior draws whose best items differ (Shang et al., 2020)."""

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
from jaxbandits.numerics.indexing import sliced


def lin_ttts(
    arms: Array,
    *,
    stop: LikelihoodRatio,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    start: StartName = "arms",
    leader_share: Array | float | None = None,
    draws: int = 128,
) -> Algorithm:
    """Draws from the posterior until two draws have different best items, and pulls what separates these.

    Arguments: as for `fixed_weights`, without `allocation` and `question`, and the ones below.

    - `leader_share`: as for `l_t3c`.
    - `draws`: int in [1, 65536], draws that are made at once for the challenger. If the leader is best in all of them,
      the challenger is as for `l_t3c`.

    Returns:
        Algorithm with actions `Pull`, or `Step` where items are eliminated, and answers int (), an item.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: with a proved threshold, P(the answer is not best) <= delta. **Cost**:
    O((K + M) d + d^3 + draws (M + d) d) per round.

    Source: Shang, de Heide, Menard, Kaufmann and Valko (2020), Fixed-confidence guarantees for Bayesian best-arm
    identification, with a linear posterior.
    """
    check_leader_share(leader_share, stop)
    draws = checks.whole("draws", draws, least=1, most=65536)
    settings = checked_settings(arms, stop, ridge=ridge, noise_scale=noise_scale, start=start)
    d = settings.arms.shape[1]

    def rule(key: Key, state: State, comparison: ItemComparison) -> tuple[Array, tuple[()]]:
        numbers = numbers_of(key, (draws + 1) * d, settings.arms.dtype)
        is_open = open_items(comparison)
        normals = numbers.normals.reshape(-1, d)
        tops = best_items(settings, posterior_draws(settings, state, normals), is_open)
        leader, fresh = tops[0], tops[1:]
        differs = fresh != leader
        # DEVIATION: the paper draws until the best items differ, however long that takes.
        nearest = challenger_of(settings, state, leader, is_open, numbers.tie)
        challenger = jnp.where(jnp.any(differs), sliced(fresh, jnp.argmax(differs)), nearest)
        return pulled_of(
            settings, state, leader=leader, challenger=challenger, leader_share=leader_share, coin=numbers.coin
        ), ()

    return algorithm_from_rule(settings, rule, draws=True)
