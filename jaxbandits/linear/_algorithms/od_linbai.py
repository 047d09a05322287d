"""OD-LinBAI: phases of G-optimal designs that halve the arms (Yang, Tan, 2022)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import is_concrete
from jaxbandits.linear._shared.fixed_budget import (
    best_of,
    checked_budget,
    designs_of,
    least_squares_in_span,
    ranks,
    rounded,
    spanned_design,
)
from jaxbandits.linear._shared.phases import Phases, algorithm_from_phases, lasting
from jaxbandits.numerics.linalg import dot
from jaxbandits.numerics.ties import draw_words, lots


def od_linbai(arms: Array, *, horizon: Array | int, design_steps: int = 1000) -> Algorithm:
    """Pulls in R = ceil(log2 d) phases by the G-optimal design of the remaining arms; phase r leaves ceil(d / 2^r).

    A phase with design w pulls arm k ceil(m w_k) times, with
    m = (T - min(K, d (d + 1) / 2) - sum_{r < R} ceil(d / 2^r)) / R. It estimates theta by least squares from its own
    rewards. The remaining arms may span only a subspace; design and estimate are then taken within it. Random lots
    break ties between estimates.

    Args:
        arms: float (K, d), features, spanning R^d; the run has their dtype.
        horizon: T, number of pulls, int () in [1, 2^31). If m <= 0, nothing is pulled and the answer is drawn
            uniformly; a concrete horizon then gives a warning.
        design_steps: iterations of the design's solver.

    Returns:
        Algorithm with actions `Allocation`, one per phase, and answers int (), an arm. It stops after its phases, which
        make at most T pulls.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee** (Theorem 2): P(the answer is not the best arm) <= (4 K / d + 3 log2 d) exp(-m / (32 H)), with H = max
    over 2 <= i <= d of i / gap_i^2. **Cost**: O(K^2 + K d^2 + d^3) per phase; in `plan` O(K d^2 + d^3) for each
    step of the design, or for K <= 12 concrete arms one lookup in a table of 2^K designs. **Limit**: the last phase
    compares two arms by pulling these two. Two arms that differ little in a direction that others measure well, as in
    `soare`, are hardly separated: 53 to 56 % of the answers are right on soare(10) for T = 1010 to 5010.

    Source: Yang and Tan (2022), Minimax optimal fixed-budget best arm identification in linear bandits, Algorithm 1.
    """
    arms, design_steps = checked_budget(arms, horizon, design_steps)
    (K, d), dtype = arms.shape, arms.dtype
    R = max((d - 1).bit_length(), 1)
    # Numbers of arms that remain after r >= 1 phases. Phase 1 begins with all arms, so entry 0 is not read.
    sizes = [-(-d // 2**r) for r in range(R + 1)]
    # Largest number of pulls that rounding up may add to a phase.
    limits = [min(K, d * (d + 1) // 2), *sizes[1:R]]
    if is_concrete(horizon) and int(horizon) <= sum(limits):
        checks.warn(f"horizon {int(horizon)} is too short for a phase: the answer is drawn uniformly", stacklevel=2)
    T = jnp.asarray(horizon, int)
    m = (T - sum(limits)).astype(dtype) / R
    designs = designs_of(arms, spanned_design, design_steps)

    def init(key: Key) -> State:
        nothing = jnp.zeros(K, int)
        return State(
            pulls=jnp.zeros((), int),
            counts=nothing,
            phase=jnp.where(m > 0, 0, R).astype(jnp.int32),
            members=jnp.ones(K, bool),
            theta=jnp.zeros(d, dtype),
            guess=jax.random.randint(key, (), 0, K, dtype=jnp.int32).astype(int),
            planned=jnp.zeros((), bool),
            due=nothing,
            ties=draw_words(jax.random.fold_in(key, 1), K),  # another stream than the guess
        )

    def is_over(state: State) -> Array:
        return state.phase >= R

    def plan(key: Key, state: State) -> State:
        del key
        shares = designs(state.members).allocation
        most = jnp.floor(m).astype(int) + _of(limits, state.phase)
        # If m w differs from a whole number by rounding alone, it counts as that number.
        due = jnp.ceil(shares * jnp.maximum(m, 0) * (1 - 1e-6)).astype(int)
        # More arms may have a share than an extreme point of the optimal designs has.
        due = jnp.where(due.sum() <= most, due, rounded(shares, most, lots(state.ties, ~state.pulls)))
        return state._replace(due=due)

    def answer(state: State) -> Array:
        best = best_of(jnp.where(state.members, dot(arms, state.theta), -jnp.inf), state.ties, state.pulls)
        return jnp.where(m > 0, best, state.guess)

    def learn(state: State, counts: Array, sums: Array) -> State:
        theta = least_squares_in_span(arms, counts, sums)
        rank = ranks(dot(arms, theta), state.members, lots(state.ties, state.pulls + counts.sum()))
        return state._replace(
            phase=state.phase + 1,
            members=state.members & (rank < _of(sizes[1:], state.phase)),
            theta=lasting(theta, state.theta),
        )

    phases = Phases(init, due=lambda key, state: state.due, is_over=is_over, answer=answer, learn=learn, plan=plan)
    return algorithm_from_phases(arms, phases)


class State(NamedTuple):
    """Result of the last phase, and the plan of the next."""

    pulls: Array  # int ()
    counts: Array  # int (K,)     pulls of each arm, over all phases
    phase: Array  # int32 ()      number of phases that have ended
    members: Array  # bool (K,)   the arms that may still be the best
    theta: Array  # float (d,)    the last phase's estimate
    guess: Array  # int ()        the answer if the budget is too short
    planned: Array  # bool ()     True if `due` is for the remaining arms
    due: Array  # int (K,)        pulls of the next phase
    ties: Array  # uint32 (K,)    random words from which the lots that break ties are drawn


def _of(values: list[int], phase: Array) -> Array:
    """Returns values[phase], int (), the last one beyond their end."""
    return jnp.asarray(values)[jnp.minimum(phase, len(values) - 1)]
