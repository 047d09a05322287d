"""FWS: Frank-Wolfe steps on the lower bound at the estimates (Wang, Tzeng, Proutiere, 2021)."""

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.linear._problem.questions.asked import Question
from jaxbandits.linear._shared.factor import backward, gram_of, influence, norms_of
from jaxbandits.linear._shared.fixed_confidence import checked_settings
from jaxbandits.linear._shared.likelihood_ratio import ItemComparison, State, algorithm_from_rule, weakest
from jaxbandits.linear._shared.stop import LikelihoodRatio
from jaxbandits.numerics.indexing import is_first_largest, sliced
from jaxbandits.numerics.linalg import dot

TIE = 2.3e-16  # largest lead, in units of the noise, that counts as a tie


def fws(
    arms: Array,
    *,
    stop: LikelihoodRatio,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    question: Question | None = None,
    steps: int = 0,
) -> Algorithm:
    """Takes a Frank-Wolfe step towards the arms that raise the smallest likelihood ratio most, and tracks the shares.

    The target is a sum of steps. Each goes to a corner of the simplex or, if several challengers are close, to the
    solution of a matrix game. It is uniform while floor(n / K) is a square, or if two items tie for the lead. For
    another question the challengers are its alternatives, and such a tie is an alternative that costs nothing.

    Arguments: as for `fixed_weights`, without `allocation` and `start`, and the one below. The arms must span R^d. Each
    is pulled once at the start, because the rule divides by the counts.

    - `steps`: int in [0, 65536]. If 0, the step considers the challenger with the smallest ratio alone. Otherwise it
      solves the game of all challengers within n^-0.9 / K of that ratio after n pulls, by `steps` rounds of exponential
      weights. The error is the range of the payoffs times sqrt(log P / (2 steps)). On `soare(6, 0.1)` more than one is
      that close in 0.6 % of the rounds.

    Returns:
        Algorithm with actions `Step`, and answers as for `fixed_weights`. `state.memory` is the target (K,).

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: with a proved threshold, P(the answer is wrong) <= delta, and mean pulls / log(1 / delta) tend to
    the smallest possible limit, the `characteristic_time`. **Cost**: O((K + P) d^2 + d^3) per round, and O(P K) for
    each round of a game, with P = M items, for `TopM` m (M - m) pairs.

    Source: Wang, Tzeng and Proutiere (2021), Fast pure exploration via Frank-Wolfe. Its public code updates the inverse
    of the design with the wrong factor, which is what the published figures show.
    """
    steps = checks.whole("steps", steps, least=0, most=65536)
    checked_arms(arms, full_rank=True)
    settings = checked_settings(arms, stop, ridge=ridge, noise_scale=noise_scale, start="arms", question=question)
    features, dtype = settings.arms, settings.arms.dtype
    K = features.shape[0]

    def rule(key: Key, state: State, comparison: ItemComparison) -> tuple[Array, Array]:
        del key
        target = state.memory
        t = state.pulls.astype(dtype)
        # The ratios scale with the design, so the target's ratios over t are the shares' ratios.
        norms = norms_of(gram_of(features, target), comparison.directions)
        squares = jnp.where(norms.squares > 0, norms.squares, 1)
        ratios = jnp.where(comparison.rivals, comparison.gaps**2 / (2 * squares), jnp.inf) / t
        if steps == 0:
            # The arm maximises |x_k'V^-1 y|, because the factor in front of it is the same for all arms.
            closest = sliced(comparison.directions, weakest(ratios, comparison.rivals))
            step = is_first_largest(influence(norms.factor, features, closest) ** 2).astype(dtype)
        else:
            images = backward(norms.factor, norms.entries)  # (M, d)
            slopes = ((comparison.gaps / squares)[:, None] * dot(images[:, None], features)) ** 2 / 2
            near = comparison.rivals & (ratios < jnp.min(ratios) + (t + 1) ** -0.9 / K)
            step = best_response(slopes - jnp.where(comparison.rivals, ratios, 0)[:, None], near, steps)
        row = (state.pulls + 1) // K
        root = jnp.round(jnp.sqrt(row.astype(dtype))).astype(row.dtype)
        is_tied = jnp.min(jnp.where(comparison.rivals, comparison.gaps, jnp.inf)) <= TIE
        step = jnp.where((root * root == row) | is_tied, 1 / K, step)
        later = target + step
        # During the start the result is not used; the maximum only prevents a division by zero.
        counts = jnp.maximum(state.counts, 1).astype(dtype)
        return jnp.argmax(later / counts), later

    return algorithm_from_rule(settings, rule, memory=jnp.ones(K, dtype))


def best_response(payoffs: Array, rows: Array, steps: int) -> Array:
    """Computes the column player's strategy in a matrix game, argmax_z min over the rows of payoffs z.

    Exponential weights on the rows play against best responses of the columns; the mean response is the strategy.

    Args:
        payoffs: float (M, K).
        rows: bool (M,), the rows of the game, at least one.
        steps: rounds, at least 1.

    Returns:
        float (K,), sum 1. Its value is within range sqrt(log M / (2 steps)) of the best. Cost: O(M K steps).

    Source: Freund and Schapire (1999), Adaptive game playing using multiplicative weights.
    """
    dtype = payoffs.dtype
    payoffs = jnp.where(rows[:, None], payoffs, 0)
    highest = jnp.max(jnp.where(rows[:, None], payoffs, -jnp.inf))
    lowest = jnp.min(jnp.where(rows[:, None], payoffs, jnp.inf))
    spread = highest - lowest
    rate = jnp.sqrt(8 * jnp.log(jnp.sum(rows).astype(dtype)) / steps) / jnp.where(spread > 0, spread, 1)

    def turn(_: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        scores, total = carry
        q = jax.nn.softmax(jnp.where(rows, -rate * scores, -jnp.inf))
        column = is_first_largest(jnp.sum(q[:, None] * payoffs, axis=0)).astype(dtype)
        return scores + jnp.sum(payoffs * column[None], axis=1), total + column

    start = jnp.zeros(payoffs.shape[0], dtype), jnp.zeros(payoffs.shape[1], dtype)
    return lax.fori_loop(0, steps, turn, start)[1] / steps
