"""LinGame: a learner of shares against the best response of the alternatives (Degenne, Menard, Shang, Valko, 2020)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.linear._shared.factor import gram_of, influence, norms_of
from jaxbandits.linear._shared.fixed_confidence import EliminateName, Settings, StartName, checked_settings
from jaxbandits.linear._shared.glr import Comparison, State, algorithm_of, entry, largest, weakest
from jaxbandits.linear._shared.hedge import FIRST_GAP, Hedge, learned, new_hedge, weights_of
from jaxbandits.numerics.thresholds import Threshold

# DEVIATION: early on the learner puts all weight on one arm, and the published design is singular.
FLOOR = 1e-9


class Game(NamedTuple):
    """What LinGame remembers."""

    learners: Hedge  # one an item: losses (M, K) and gaps (M,); or one for all
    lag: Array  # float (K,)   pulls less cumulated weights, since the end of the start: never above 1


def lingame(
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
    shared_learner: bool = False,
    optimism: bool = True,
    clip: bool = True,
) -> Algorithm:
    """Plays the game of the lower bound: AdaHedge proposes shares, the closest alternative answers, pulls track them.

    Arguments, but for those below, are those of `fixed_weights`, without the allocation. The arms must span R^d.

    - `shared_learner`: one learner for all leading items, and not one for each.
    - `optimism`: whether gains are raised by the width of the estimates, sqrt(2 log t) ||x_k||. It takes 1.8 times the
      pulls on the instance of Tirinzoni and Degenne, who leave it out.
    - `clip`: whether gains are cut at log t.

    Returns:
        Algorithm with actions `Step`, and answers int (), an item.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: that of the threshold; with a proved one P(the answer is not best) <= delta, and mean pulls /
    log(1 / delta) tend to the least possible, the `characteristic_time`. **Cost**: O((K + M) d^2 + d^3) a round, and
    O(M K) memory without a shared learner. Early on the design of a round has shares of 1e-9, so float64 is advised.

    Source: Degenne, Menard, Shang and Valko (2020), Gamification of pure exploration for linear bandits; the options
    otherwise than by default Tirinzoni and Degenne (2022).
    """
    for name, value in {"shared_learner": shared_learner, "optimism": optimism, "clip": clip}.items():
        checks.flag(name, value)
    checked_arms(arms, full_rank=True)
    settings = checked_settings(arms, delta, threshold, items, epsilon, ridge, glr_ridge, noise_scale, eliminate, start)
    dtype = settings.arms.dtype
    K, M = settings.arms.shape[0], settings.items.shape[0]

    def rule(key: Key, state: State, seen: Comparison) -> tuple[Array, Game]:
        del key
        game = state.own
        is_leader = jnp.arange(M) == seen.leader
        mine = game.learners
        if not shared_learner:
            mine = jax.tree.map(lambda x: entry(x, seen.leader), mine)
        weights = weights_of(mine)
        widths = optimistic_widths(state) if optimism else None
        gains = gains_of(settings, seen, weights, widths, most_of(state, clip, dtype))
        learners = learned(mine, weights, -gains)
        if not shared_learner:
            learners = jax.tree.map(
                lambda new, old: jnp.where(is_leader.reshape((M,) + (1,) * new.ndim), new[None], old),
                learners,
                game.learners,
            )
        lag = game.lag - weights
        arm = largest(-lag)
        return arm, Game(learners, lag + (jnp.arange(K) == arm).astype(dtype))

    one = new_hedge(K, dtype)
    learners = one if shared_learner else Hedge(jnp.zeros((M, K), dtype), jnp.full(M, FIRST_GAP, dtype))
    return algorithm_of(settings, rule, own=Game(learners, jnp.zeros(K, dtype)))


def optimistic_widths(state: State) -> Array:
    """sqrt(2 log max(t, 2)) ||x_k|| in A^-1, float (K,)."""
    leverage = state.cache.leverage
    t = jnp.maximum(state.pulls, 2).astype(leverage.dtype)
    return jnp.sqrt(2 * jnp.log(t) * jnp.maximum(leverage, 0))


def most_of(state: State, clip: bool, dtype: jnp.dtype) -> Array | None:
    """The largest gain, log t; None: any."""
    return jnp.log(jnp.maximum(state.pulls, 1).astype(dtype)) if clip else None


def gains_of(settings: Settings, seen: Comparison, weights: Array, widths: Array | None, most: Array | None) -> Array:
    """What each arm would tell apart of the leader and the alternative closest under `weights`, float (K,)."""
    norms = norms_of(gram_of(settings.arms, jnp.maximum(weights, FLOOR)), seen.directions)
    squares = jnp.where(norms.squares > 0, norms.squares, 1)
    chosen = weakest(seen.gaps**2 / squares, seen.rivals)
    shift = jnp.abs(influence(norms.factor, settings.arms, entry(seen.directions, chosen)))
    shift = shift * entry(seen.gaps / squares, chosen)
    gains = (shift if widths is None else shift + widths) ** 2 / 2
    return gains if most is None else jnp.minimum(gains, most)
