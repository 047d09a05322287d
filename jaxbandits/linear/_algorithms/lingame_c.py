"""LinGame-C: a single learner over all pairs of an item and an arm (Degenne, Menard, Shang, Valko, 2020)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import require
from jaxbandits.linear._algorithms.lingame import gains_of, most_of, optimistic_widths
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.linear._shared.fixed_confidence import StartName, checked_settings
from jaxbandits.linear._shared.hedge import Hedge, learned, new_hedge, rate_of, weights_of
from jaxbandits.linear._shared.likelihood_ratio import ItemComparison, State, algorithm_from_rule
from jaxbandits.linear._shared.stop import LikelihoodRatio
from jaxbandits.numerics.indexing import first_largest, sliced


class PairGame(NamedTuple):
    """Memory of LinGame-C."""

    learner: Hedge  # losses (M K,)
    lag: Array  # float (M K,)   pulls of a pair less cumulated weights


def lingame_c(
    arms: Array,
    *,
    stop: LikelihoodRatio,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    start: StartName = "arms",
    optimism: bool = True,
    clip: bool = True,
    max_pairs: int = 4096,
) -> Algorithm:
    """Plays LinGame with a single learner over the pairs of a leading item and an arm, and tracks the pairs.

    Arguments: as for `fixed_weights`, without `allocation` and `question`, and the ones below. The arms must span R^d.

    - `optimism`: if True, gains are raised by the width of the estimates, as in `lingame`. If False, the gains of items
      that do not lead are 0.
    - `clip`: if True, gains are cut at log t.
    - `max_pairs`: int >= 1, the largest M K that is accepted, because a round costs O(M K).

    Returns:
        Algorithm with actions `Step`, and answers int (), an item.

    Raises:
        ValueError: an argument lies outside the range above, a shape does not fit, or M K is above `max_pairs`.

    **Guarantee**: as for `lingame`. **Cost**: O((K + M) d^2 + d^3 + M K) per round, with M K exponentials.

    Source: Degenne, Menard, Shang and Valko (2020), Gamification of pure exploration for linear bandits.
    """
    checks.flag("optimism", optimism)
    checks.flag("clip", clip)
    max_pairs = checks.whole("max_pairs", max_pairs, least=1)
    checked_arms(arms, full_rank=True)
    settings = checked_settings(arms, stop, ridge=ridge, noise_scale=noise_scale, start=start)
    dtype = settings.arms.dtype
    K, M = settings.arms.shape[0], settings.items.shape[0]
    require(max_pairs >= M * K, "max_pairs", f"be at least {M * K}, the pairs of {M} items and {K} arms", max_pairs)

    def rule(key: Key, state: State, comparison: ItemComparison) -> tuple[Array, PairGame]:
        del key
        game = state.memory
        is_leader = jnp.arange(M) == comparison.answer
        pairs = weights_of(game.learner)
        # The leader's row is normalised by a softmax of its own, because all of its weights may have underflowed.
        row = jax.nn.softmax(-rate_of(game.learner) * sliced(game.learner.losses.reshape(M, K), comparison.answer))
        most = most_of(state, clip, dtype)
        widths = optimistic_widths(state) if optimism else jnp.zeros(K, dtype)
        others = widths**2 / 2 if most is None else jnp.minimum(widths**2 / 2, most)
        mask = is_leader[:, None]
        leader_gains = gains_of(settings, comparison, row, widths=widths, most=most)
        gains = jnp.where(mask, leader_gains[None], others[None]).reshape(-1)
        learner = learned(game.learner, pairs, -gains)
        lag = game.lag - pairs
        pair = first_largest(-lag)
        return pair % K, PairGame(learner, lag + (jnp.arange(M * K) == pair).astype(dtype))

    memory = PairGame(new_hedge(M * K, dtype), jnp.zeros(M * K, dtype))
    return algorithm_from_rule(settings, rule, memory=memory)
