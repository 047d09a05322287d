"""XY-adaptive: phases of a fixed design, each for the arms that the last one has left."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.linear._shared.allocations import pair_directions
from jaxbandits.linear._shared.least_squares import least_squares
from jaxbandits.linear._shared.phases import Phases, algorithm_from_phases, lasting
from jaxbandits.linear._shared.radius import Radius, RadiusSettings, checked_radius_settings, radius_after
from jaxbandits.numerics.design import design
from jaxbandits.numerics.linalg import dot, gram, spd_inverse, squared_norms
from jaxbandits.numerics.tracking import tracked_counts


def xy_adaptive(
    arms: Array,
    *,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    alpha: Array | float = 0.1,
    first_width: Array | float | None = None,
    union_power: int = 2,
    radius: Radius = "azuma",
    keep_eliminated: bool = False,
    max_pulls: int = 10**9,
    design_steps: int = 1000,
) -> Algorithm:
    """Estimates theta anew in phases, each with the best design for the arms that the last one has left.

    A phase tracks the allocation over all arms that minimises the width, the largest ||x_i - x_k|| in A^-1 of two
    members. It ends once the squared width is at most `alpha` times what the phase before reached. Arm i then beats arm
    k if its estimated lead is at least its confidence bound. The next members are the arms that no arm beats. The run
    stops when a single one is left.

    Args:
        arms: float (K, d), features, spanning R^d; the run has their dtype.
        delta: () in (0, 1), allowed probability of error.
        noise_scale: () > 0, sub-Gaussian constant of the noise, in units of reward.
        alpha: () in (0, 1), factor by which a phase shrinks the squared width.
        first_width: () > 0, the squared width that the first phase improves on. If None, 1 / (d (d + 1) + 1), as in the
            original; 1 is also in use. The pulls grow by factors 1 / alpha, so the stopping time depends on this by up
            to such a factor.
        union_power: 2 for the guarantee, or 1; see `confidence_radius`.
        radius: "azuma" or "subgaussian", see `confidence_radius`.
        keep_eliminated: if True, a beaten arm stays eliminated; every run that was tried has stopped. False is the
            published algorithm. Its phases use nothing of the earlier ones, so an arm may come back. The run may then
            alternate without end between sets of members, in phases ten times as long each (up to 6 of 50 runs on
            `canonical(0.5)`).
        max_pulls: Python int, at least K. A phase that would exceed it is not begun. The run then idles until its
            rounds are spent, and is censored.
        design_steps: iterations of the design's solver.

    Returns:
        Algorithm with actions `Allocation`, one per phase, and answers int (). It is stale after every phase.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: P(the answer is not the best arm) <= delta, for noise_scale-sub-Gaussian noise. **Cost**:
    O(K^2 d^2 + d^3) per phase, and in `plan` O(K^2 d^2 + K^3 d + d^3) for each of `design_steps` steps and for each
    bit of max_pulls. There are 5 phases on `soare(5)`, 2 on `canonical(0.5)`.

    **float32** gives the same stopping times on `soare(5)` (10^8 pulls).

    Source: Soare, Lazaric and Munos (2014), XY-adaptive; Xu, Honda and Sugiyama (2018), equation (6).
    """
    arms = checked_arms(arms, full_rank=True)
    (K, d), dtype = arms.shape, arms.dtype
    confidence = checked_radius_settings(
        delta=delta, K=K, noise_scale=noise_scale, union_power=union_power, radius=radius
    )
    checks.probability("alpha", alpha)
    first_width = 1 / (d * (d + 1) + 1) if first_width is None else first_width
    checks.positive("first_width", first_width)
    keep_eliminated = checks.flag("keep_eliminated", keep_eliminated)
    max_pulls = checks.whole("max_pulls", max_pulls, least=K, most=int(jnp.iinfo(jnp.result_type(int)).max) - 1)
    design_steps = checks.whole("design_steps", design_steps, least=1)
    alpha = jnp.asarray(alpha, dtype)
    first, second = np.triu_indices(K, 1)
    pairs = pair_directions(arms)

    def init(key: Key) -> State:
        del key
        return State(
            pulls=jnp.zeros((), int),
            counts=jnp.zeros(K, int),
            members=jnp.ones(K, bool),
            theta=jnp.zeros(d, dtype),
            squared_width=jnp.asarray(first_width, dtype),
            planned=jnp.zeros((), bool),
            due=jnp.zeros(K, int),
            next_squared_width=jnp.asarray(first_width, dtype),
        )

    def is_over(state: State) -> Array:
        return state.members.sum() <= 1

    def plan(key: Key, state: State) -> State:
        del key
        rivals = state.members[first] & state.members[second]
        allocation = design(arms, pairs, weights=rivals.astype(dtype), steps=design_steps).allocation

        def reached(counts: Array) -> Array:
            norms = squared_norms(pairs, spd_inverse(gram(arms, counts.astype(dtype))))
            return jnp.max(jnp.where(rivals, norms, 0))

        def suffices(n: Array) -> Array:
            return reached(tracked_counts(allocation, n)) <= alpha * state.squared_width

        room = max_pulls - state.pulls
        n = _least_pulls(suffices, K, room, steps=max_pulls.bit_length() + 1)
        counts = tracked_counts(allocation, n)
        return state._replace(due=jnp.where(n <= room, counts, 0), next_squared_width=reached(counts))

    def answer(state: State) -> Array:
        return jnp.argmax(jnp.where(state.members, dot(arms, state.theta), -jnp.inf))

    def learn(state: State, counts: Array, sums: Array) -> State:
        theta, members = _unbeaten(arms, confidence, counts, sums)
        if keep_eliminated:
            members &= state.members
            # Eliminated arms may beat all members; the leader then stays.
            leader = jnp.argmax(jnp.where(state.members, dot(arms, theta), -jnp.inf))
            members = jnp.where(members.any(), members, jnp.arange(K) == leader)
        return state._replace(
            members=members, theta=lasting(theta, state.theta), squared_width=state.next_squared_width
        )

    phases = Phases(init, due=lambda key, state: state.due, is_over=is_over, answer=answer, learn=learn, plan=plan)
    return algorithm_from_phases(arms, phases)


class State(NamedTuple):
    """Result of the last phase, and the plan of the next."""

    pulls: Array  # int ()
    counts: Array  # int (K,)        pulls of each arm, over all phases
    members: Array  # bool (K,)      the arms that may still be the best
    theta: Array  # float (d,)       the last phase's estimate
    squared_width: Array  # float ()   largest ||x_i - x_k||^2 in A^-1 of two members, at the last phase's end
    planned: Array  # bool ()        True if the two fields below are for the present members
    due: Array  # int (K,)           pulls of the next phase; zero if they would exceed `max_pulls`
    next_squared_width: Array  # float ()   squared width that the next phase will reach


def _least_pulls(suffices: Callable[[Array], Array], K: int, room: Array, *, steps: int) -> Array:
    """Returns the smallest n in [K, room] that suffices, or a larger number if none does, int ().

    The counts grow with n, arm by arm, so the widths fall, and bisection finds it.
    """

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = jnp.maximum(low + (high - low) // 2, K)
        enough = suffices(middle)
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    bracket = (jnp.full_like(room, K - 1), jnp.maximum(room + 1, K))
    return lax.fori_loop(0, steps, halve, bracket)[1]


def _unbeaten(arms: Array, confidence: RadiusSettings, counts: Array, sums: Array) -> tuple[Array, Array]:
    """Computes a phase's estimate, float (d,), and the arms that no arm beats in it, members or not, bool (K,)."""
    K, d = arms.shape
    differences = arms[:, None] - arms[None]  # [i, k] = x_i - x_k
    theta, inverse = least_squares(arms, counts, sums, 0)
    norms = jnp.sqrt(squared_norms(differences.reshape(K * K, d), inverse)).reshape(K, K)
    radius = radius_after(jnp.maximum(counts.sum(), 1).astype(arms.dtype), confidence)
    beats = (radius * norms <= dot(differences, theta)) & ~jnp.eye(K, dtype=bool)
    return theta, ~beats.any(0)
