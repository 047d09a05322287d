"""LinGame: a learner of shares against the best response of the alternatives (Degenne, Menard, Shang, Valko, 2020)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import require
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.linear._problem.questions.asked import Question
from jaxbandits.linear._shared.factor import gram_of, influence, norms_of
from jaxbandits.linear._shared.fixed_confidence import (
    FixedConfidenceSettings,
    StartName,
    checked_settings,
)
from jaxbandits.linear._shared.hedge import FIRST_GAP, Hedge, learned, new_hedge, weights_of
from jaxbandits.linear._shared.likelihood_ratio import ItemComparison, State, algorithm_from_rule, weakest
from jaxbandits.linear._shared.stop import LikelihoodRatio
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.indexing import first_largest, sliced

# Smallest share in the design of a round. DEVIATION: the published rule has none. Early on its learner puts all weight
# on one arm, and the design is singular.
FLOOR = 1e-9


class Game(NamedTuple):
    """Memory of LinGame."""

    learners: Hedge  # one per item, with losses (M, K) and gaps (M,), or one for all
    lag: Array  # float (K,)   pulls less cumulated weights since the end of the start; at most 1


def lingame(
    arms: Array,
    *,
    stop: LikelihoodRatio,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    start: StartName = "arms",
    question: Question | None = None,
    shared_learner: bool = False,
    optimism: bool = True,
    clip: bool = True,
) -> Algorithm:
    """Plays the game of the lower bound: AdaHedge proposes shares, the closest alternative answers, pulls track them.

    Arguments: as for `fixed_weights`, without `allocation`, and the ones below. The arms must span R^d.

    - `shared_learner`: if True, one learner for all leading items instead of one for each. `TopM` and `Above` require
      it, because they have too many answers for one each.
    - `optimism`: if True, gains are raised by the width of the estimates, sqrt(2 log t) ||x_k||. It takes 1.8 times the
      pulls on the instance of Tirinzoni and Degenne, who leave it out.
    - `clip`: if True, gains are cut at log t.

    Returns:
        Algorithm with actions `Step`, and answers as for `fixed_weights`.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: with a proved threshold, P(the answer is wrong) <= delta, and mean pulls / log(1 / delta) tend to
    the smallest possible limit, the `characteristic_time`. **Cost**: O((K + P) d^2 + d^3) per round, with P = M items,
    for `TopM` m (M - m) pairs, and O(M K) memory without a shared learner. Early on the design of a round has shares of
    1e-9, so float64 is advised.

    Source: Degenne, Menard, Shang and Valko (2020), Gamification of pure exploration for linear bandits; options other
    than the defaults are from Tirinzoni and Degenne (2022).
    """
    for name, value in {"shared_learner": shared_learner, "optimism": optimism, "clip": clip}.items():
        checks.flag(name, value)
    checked_arms(arms, full_rank=True)
    settings = checked_settings(arms, stop, ridge=ridge, noise_scale=noise_scale, start=start, question=question)
    require(
        shared_learner or settings.question is None,
        "shared_learner",
        "be True with a question other than the best arm",
        shared_learner,
    )
    dtype = settings.arms.dtype
    K, M = settings.arms.shape[0], settings.items.shape[0]

    def rule(key: Key, state: State, comparison: ItemComparison) -> tuple[Array, Game]:
        del key
        game = state.memory
        # A shared learner is nobody's own, and the answer to another question is no item.
        is_leader = jnp.zeros(M, bool) if shared_learner else jnp.arange(M) == comparison.answer
        learner = game.learners
        if not shared_learner:
            learner = jax.tree.map(lambda x: sliced(x, comparison.answer), learner)
        weights = weights_of(learner)
        widths = optimistic_widths(state) if optimism else None
        gains = gains_of(settings, comparison, weights, widths=widths, most=most_of(state, clip, dtype))
        learners = learned(learner, weights, -gains)
        if not shared_learner:
            learners = jax.tree.map(
                lambda new, old: jnp.where(is_leader.reshape((M,) + (1,) * new.ndim), new[None], old),
                learners,
                game.learners,
            )
        lag = game.lag - weights
        arm = first_largest(-lag)
        return arm, Game(learners, lag + (jnp.arange(K) == arm).astype(dtype))

    one = new_hedge(K, dtype)
    learners = one if shared_learner else Hedge(jnp.zeros((M, K), dtype), jnp.full(M, FIRST_GAP, dtype))
    return algorithm_from_rule(settings, rule, memory=Game(learners, jnp.zeros(K, dtype)))


def optimistic_widths(state: State) -> Array:
    """Returns sqrt(2 log max(t, 2)) ||x_k|| in A^-1, float (K,)."""
    leverage = state.cache.leverage
    t = jnp.maximum(state.pulls, 2).astype(leverage.dtype)
    return jnp.sqrt(2 * log(t) * jnp.maximum(leverage, 0))


def most_of(state: State, clip: bool, dtype: jnp.dtype) -> Array | None:
    """Returns the bound of the gains, log t, float (), or None if they are not cut."""
    return log(jnp.maximum(state.pulls, 1).astype(dtype)) if clip else None


def gains_of(
    settings: FixedConfidenceSettings,
    comparison: ItemComparison,
    weights: Array,
    *,
    widths: Array | None,
    most: Array | None,
) -> Array:
    """Computes each arm's gain against the alternative that is closest under `weights`, float (K,)."""
    norms = norms_of(gram_of(settings.arms, jnp.maximum(weights, FLOOR)), comparison.directions)
    squares = jnp.where(norms.squares > 0, norms.squares, 1)
    chosen = weakest(comparison.gaps**2 / squares, comparison.rivals)
    shift = jnp.abs(influence(norms.factor, settings.arms, sliced(comparison.directions, chosen)))
    shift = shift * sliced(comparison.gaps / squares, chosen)
    gains = (shift if widths is None else shift + widths) ** 2 / 2
    return gains if most is None else jnp.minimum(gains, most)
