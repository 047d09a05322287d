"""P1-RAGE: pulls drawn half from the G-optimal design, half from designs for the arms that look close (2024)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.linear._shared.fixed_budget import (
    apart_design,
    at_once,
    best_of,
    checked_budget,
    designs_of,
    epochs_of,
    g_optimal,
    importance,
    multinomial,
)
from jaxbandits.linear._shared.phases import Phases, algorithm_from_phases
from jaxbandits.numerics.linalg import dot
from jaxbandits.numerics.ties import draw_words

SETS = 15  # number of nested sets of arms: all, then gaps of at most 1/2, 1/4, .., 2^-14


def p1_rage(arms: Array, *, horizon: Array | int, design_steps: int = 1000) -> Algorithm:
    """Draws pulls from (w_G + mean of w_i) / 2, where w_i separates the arms whose gaps look like 2^-i or less.

    w_G is the G-optimal design, w_i the XY-optimal design of S_i. S_0 has all arms, and S_i the arms whose estimated
    gaps are at most 2^-i, for i < 15 while it has at least two. The estimate of theta is the mean of A(w)^-1 x r over
    all pulls, w being the design at the time of the pull. The first pull is drawn from w_G. The design is renewed after
    it, and then every floor(T / E) pulls, with E = max(1, ceil(log2 rho)) and rho the value of the XY-optimal design of
    all arms. Random lots break ties between estimates.

    Args:
        arms: float (K, d), features, spanning R^d; the run has their dtype.
        horizon: T, number of pulls, int () in [E, 2^31).
        design_steps: iterations of the solver of the designs.

    Returns:
        Algorithm with actions `Allocation`, one for all pulls under a design, and answers int (), an arm. It stops
        after T pulls. The 2^-i are in units of reward, so rescaled rewards change the pulls.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: as for `g_bai`, also if theta changes with time. If it does not, the complexity of the gaps, up to
    logarithms, as published for a design that is renewed after every pull. **Cost**: O(K d + d^3) and K - 1 binomial
    draws per round; in `plan` 15 designs (see `xy_allocation`), or for K <= 12 concrete arms as many lookups in a table
    of 2^K designs. On soare(10), T = 1010, 95 % of the answers are right.

    Source: Xiong, Camilleri, Fazel, Jain and Jamieson (2024), A/B testing and best-arm identification for linear
    bandits with robustness to non-stationarity, Algorithms 2 and 3, in batches as in their public code.
    """
    arms, design_steps = checked_budget(arms, horizon, design_steps)
    (K, d), dtype = arms.shape, arms.dtype
    designs = designs_of(arms, apart_design, design_steps)
    _, length = epochs_of(arms, horizon, design_steps)
    first = jnp.asarray(at_once(g_optimal, arms, design_steps)[0])
    T = jnp.asarray(horizon, int)

    def init(key: Key) -> State:
        return State(
            pulls=jnp.zeros((), int),
            counts=jnp.zeros(K, int),
            estimates=jnp.zeros(d, dtype),
            shares=first,
            planned=jnp.ones((), bool),
            ties=draw_words(key, K),
        )

    def plan(key: Key, state: State) -> State:
        del key
        means = dot(arms, state.estimates / jnp.maximum(state.pulls, 1).astype(dtype))
        widest = jnp.asarray([np.inf, *0.5 ** np.arange(1, SETS)], dtype)
        sets = (means.max() - means)[None] <= widest[:, None]
        counts = (sets.sum(axis=1) > 1).astype(dtype)
        allocations = jax.vmap(designs)(sets).allocation
        mean = jnp.matmul(counts, allocations, precision="highest") / counts.sum()
        return state._replace(shares=(first + mean) / 2)

    def due(key: Key, state: State) -> Array:
        n = jnp.where(state.pulls == 0, 1, jnp.minimum(length, T - state.pulls))
        counts, is_drawn = multinomial(key, n, state.shares)
        return jnp.where(is_drawn, counts, 0)

    def learn(state: State, counts: Array, sums: Array) -> State:
        del counts
        images = importance(arms, state.shares)
        return state._replace(estimates=state.estimates + jnp.matmul(sums, images, precision="highest"))

    phases = Phases(
        init,
        due=due,
        is_over=lambda state: state.pulls >= T,
        answer=lambda state: best_of(dot(arms, state.estimates), state.ties, state.pulls),
        learn=learn,
        plan=plan,
    )
    return algorithm_from_phases(arms, phases)


class State(NamedTuple):
    """The estimates so far, and the design of the coming pulls."""

    pulls: Array  # int ()
    counts: Array  # int (K,)       pulls of each arm
    estimates: Array  # float (d,)  sum of A(w)^-1 x r over all pulls, w the design at its time
    shares: Array  # float (K,)     the current design
    planned: Array  # bool ()       True if `shares` is the design of the coming pulls
    ties: Array  # uint32 (K,)      random words from which the lots that break ties are drawn
