"""Peace: phases of designs that separate the remaining arms and halve their complexity (Katz-Samuels et al., 2020)."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Key
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
from jaxbandits.linear._shared.phases import Phases, algorithm_from_phases, lasting
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
            members=jnp.ones(K, bool),
            theta=jnp.zeros(d, dtype),
            value=zero,
            planned=jnp.zeros((), bool),
            due=nothing,
            ties=draw_words(key, K),
        )

    def is_over(state: State) -> Array:
        return (state.phase >= E) | (state.members.sum() <= 1)

    def plan(key: Key, state: State) -> State:
        del key
        rank = ranks(dot(arms, state.theta), state.members, lots(state.ties, state.pulls))
        number = state.members.sum()

        def halve(_: Array, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
            # One arm is few enough, whatever its design; all remaining arms are too many.
            low, high = bracket
            middle = (low + high) // 2
            fits = (designs(state.members & (rank < middle)).value <= state.value / 2) | (middle <= 1)
            return jnp.where(fits, middle, low), jnp.where(fits, high, middle)

        kept = lax.fori_loop(0, K.bit_length(), halve, (jnp.ones_like(number), number))[0]
        members = state.members & ((rank < kept) | (state.phase == 0))
        solved = designs(members)
        n = jnp.where(state.phase == E - 1, T - state.pulls, length)
        # The ranks above use the lots of `state.pulls`; the complement gives other ones.
        due = rounded(solved.allocation, n, lots(state.ties, ~state.pulls), all_arms=True)
        return state._replace(members=members, value=solved.value, due=due)

    def due(key: Key, state: State) -> Array:
        del key
        return jnp.where(is_over(state), 0, state.due)  # the plan may have left a single arm

    def answer(state: State) -> Array:
        return best_of(jnp.where(state.members, dot(arms, state.theta), -jnp.inf), state.ties, state.pulls)

    def learn(state: State, counts: Array, sums: Array) -> State:
        theta = least_squares_in_span(arms, counts, sums)
        return state._replace(phase=state.phase + 1, theta=lasting(theta, state.theta))

    phases = Phases(init, due=due, is_over=is_over, answer=answer, learn=learn, plan=plan)
    return algorithm_from_phases(arms, phases)


class State(NamedTuple):
    """Result of the last phase, and the plan of the next, which drops arms first."""

    pulls: Array  # int ()
    counts: Array  # int (K,)     pulls of each arm, over all phases
    phase: Array  # int ()        number of phases that have ended
    members: Array  # bool (K,)   the arms that may still be the best
    theta: Array  # float (d,)    the last phase's estimate
    value: Array  # float ()      rho of the arms of the last phase
    planned: Array  # bool ()     True if `members`, `value` and `due` are for the coming phase
    due: Array  # int (K,)        pulls of the coming phase
    ties: Array  # uint32 (K,)    random words from which the lots that break ties are drawn
