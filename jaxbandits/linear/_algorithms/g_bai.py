"""G-BAI: pulls drawn from the G-optimal design, and an estimate that weighs them by it (Xiong et al., 2024)."""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.linear._shared.fixed_budget import at_once, best_of, checked_budget, g_optimal, multinomial
from jaxbandits.linear._shared.phases import Phases, algorithm_from_phases
from jaxbandits.numerics.linalg import dot
from jaxbandits.numerics.ties import draw_words


def g_bai(arms: Array, *, horizon: Array | int, design_steps: int = 1000) -> Algorithm:
    """Draws all pulls from the G-optimal design w, and estimates theta by the mean of A(w)^-1 x r.

    The estimate is not least squares. It uses the law of the pulls instead of their counts, which keeps it unbiased
    where the rewards drift. Random lots break ties between estimates.

    Args:
        arms: float (K, d), features, spanning R^d; the run has their dtype.
        horizon: T, number of pulls, int () in [1, 2^31).
        design_steps: iterations of the design's solver.

    Returns:
        Algorithm with actions `Allocation`, one for the whole budget, and answers int (), an arm. In its state,
        `counts` (K,) and `sums` (K,) are exact.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: P(the answer is not the best arm) falls as exp(-c T gap^2 / d), with the gap of the second best. It
    also holds if theta changes with time, for its mean over time. **Cost**: one round of O(K d + K) and K - 1 binomial
    draws; O(d^3 + K^2 d) per step of the design, once. On soare(10), T = 1010, 84 % of the answers are right.

    Source: Xiong, Camilleri, Fazel, Jain and Jamieson (2024), A/B testing and best-arm identification for linear
    bandits with robustness to non-stationarity, Algorithm 1, arXiv 2307.15154.
    """
    arms, design_steps = checked_budget(arms, horizon, design_steps)
    K, dtype = arms.shape[0], arms.dtype
    shares, images = map(jnp.asarray, at_once(g_optimal, arms, design_steps))
    T = jnp.asarray(horizon, int)

    def init(key: Key) -> State:
        return State(jnp.zeros((), int), jnp.zeros(K, int), jnp.zeros(K, dtype), draw_words(key, K))

    def due(key: Key, state: State) -> Array:
        counts, is_drawn = multinomial(key, T - state.pulls, shares)
        return jnp.where(is_drawn, counts, 0)

    def answer(state: State) -> Array:
        theta = jnp.matmul(state.sums, images, precision="highest") / T.astype(dtype)
        return best_of(dot(arms, theta), state.ties, state.pulls)

    def learn(state: State, counts: Array, sums: Array) -> State:
        del counts
        return state._replace(sums=state.sums + sums)

    phases = Phases(init, due=due, is_over=lambda state: state.pulls >= T, answer=answer, learn=learn)
    return algorithm_from_phases(arms, phases)


class State(NamedTuple):
    """The pulls and their rewards."""

    pulls: Array  # int ()
    counts: Array  # int (K,)    pulls of each arm
    sums: Array  # float (K,)    sums of each arm's rewards
    ties: Array  # uint32 (K,)   random words from which the lots that break ties are drawn
