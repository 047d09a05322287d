"""Peace: phases of designs that separate the remaining arms and halve their complexity (Katz-Samuels et al., 2020)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.linear._problem.environment import Allocation, made_for
from jaxbandits.linear._shared.fixed_budget import (
    apart_design,
    best_of,
    checked_budget,
    designs_of,
    epochs_of,
    least_squares_in_span,
    ranks,
    rounded,
)
from jaxbandits.numerics.linalg import dot
from jaxbandits.numerics.ties import draw_words, lots


def peace(arms: Array, *, horizon: Array | int, design_steps: int = 1000) -> Algorithm:
    """Pulls in phases by the XY-optimal design of the remaining arms; each keeps the best, as many as halve its value.

    Let rho(S) be the value of the design for the differences of a set S. There are E = max(1, ceil(log2 rho(all)))
    phases of floor(T / E) pulls; the last makes all pulls that remain. After a phase the remaining arms S are sorted by
    their estimates, least squares from the phase's rewards, and the longest prefix P with rho(P) <= rho(S) / 2 stays.
    Random lots break ties between estimates, and between equal shares where rounding leaves a pull over.

    Args:
        arms: float (K, d), features, spanning R^d; the run has their dtype.
        horizon: T, number of pulls, int () in [E, 2^31).
        design_steps: iterations of the design's solver.

    Returns:
        Algorithm with actions `Allocation`, one per phase, and answers int (), an arm. It stops after its phases, or
        when one arm is left. In a phase of K pulls or more every arm is pulled.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: proved for the original, which is up to logarithms the best possible for a budget. It uses gamma, the
    width of a Gaussian process, instead of rho; public code uses rho, as does this function. **Cost**:
    O(K^2 + K d^2 + d^3) per phase; in `plan` log2(K) + 1 designs (see `xy_allocation`), or for K <= 12 concrete arms as
    many lookups in a table of 2^K designs. On soare(10), T = 1010, 90 % of the answers are right.

    Source: Katz-Samuels, Jain, Karnin and Jamieson (2020), An empirical process approach to the union bound, Algorithm
    2, arXiv 2006.11685.
    """
    arms, design_steps = checked_budget(arms, horizon, design_steps)
    (K, d), dtype = arms.shape, arms.dtype
    designs = designs_of(arms, apart_design, design_steps)
    E, length = epochs_of(arms, horizon, design_steps)
    T = jnp.asarray(horizon, int)

    def init(key: Key) -> State:
        nothing, zero = jnp.zeros(K, int), jnp.zeros((), dtype)
        return State(
            pulls=jnp.zeros((), int),
            counts=nothing,
            phase=jnp.zeros((), int),
            arms_left=jnp.ones(K, bool),
            theta=jnp.zeros(d, dtype),
            value=zero,
            planned=jnp.zeros((), bool),
            due=nothing,
            ties=draw_words(key, K),
        )

    def is_over(state: State) -> Array:
        return (state.phase >= E) | (state.arms_left.sum() <= 1)

    def stale(state: State) -> Array:
        return ~state.planned & ~is_over(state)

    def plan(key: Key, state: State) -> State:
        del key
        rank = ranks(dot(arms, state.theta), state.arms_left, lots(state.ties, state.pulls))
        number = state.arms_left.sum()

        def halve(_: Array, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
            # One arm is few enough, whatever its design; all remaining arms are too many.
            low, high = bracket
            middle = (low + high) // 2
            fits = (designs(state.arms_left & (rank < middle)).value <= state.value / 2) | (middle <= 1)
            return jnp.where(fits, middle, low), jnp.where(fits, high, middle)

        kept = lax.fori_loop(0, K.bit_length(), halve, (jnp.ones_like(number), number))[0]
        arms_left = state.arms_left & ((rank < kept) | (state.phase == 0))
        solved = designs(arms_left)
        n = jnp.where(state.phase == E - 1, T - state.pulls, length)
        # The ranks above use the lots of `state.pulls`; the complement gives other ones.
        due = rounded(solved.allocation, n, lots(state.ties, ~state.pulls), all_arms=True)
        return state._replace(arms_left=arms_left, value=solved.value, planned=jnp.ones((), bool), due=due)

    def decide(key: Key, state: State) -> Decision:
        del key
        due = jnp.where(state.planned & ~is_over(state), state.due, 0)
        best = best_of(jnp.where(state.arms_left, dot(arms, state.theta), -jnp.inf), state.ties, state.pulls)
        return Decision(Allocation(due), is_over(state), best)

    def observe(state: State, action: Allocation, observation: Array) -> State:
        n = action.counts.sum()
        after = State(
            pulls=state.pulls + n,
            counts=state.counts + action.counts,
            phase=state.phase + 1,
            arms_left=state.arms_left,
            # A NaN of an earlier phase stays, so that the run ends as NONFINITE.
            theta=least_squares_in_span(arms, action.counts, observation) + 0 * state.theta,
            value=state.value,
            planned=jnp.zeros((), bool),
            due=state.due,
            ties=state.ties,
        )
        return jax.tree.map(lambda new, old: jnp.where(n > 0, new, old), after, state)

    idle = Allocation(jnp.zeros(K, int))
    return Algorithm(
        init, decide, observe, idle, plan=plan, stale=stale, before=lambda state, _: state.counts, **made_for(arms)
    )


class State(NamedTuple):
    """Result of the last phase, and the plan of the next, which drops arms first."""

    pulls: Array  # int ()
    counts: Array  # int (K,)     pulls of each arm, over all phases
    phase: Array  # int ()        number of phases that have ended
    arms_left: Array  # bool (K,)  remaining arms
    theta: Array  # float (d,)    the last phase's estimate
    value: Array  # float ()      rho of the arms of the last phase
    planned: Array  # bool ()     True if `arms_left`, `value` and `due` are for the coming phase
    due: Array  # int (K,)        pulls of the coming phase
    ties: Array  # uint32 (K,)    random words from which the lots that break ties are drawn
