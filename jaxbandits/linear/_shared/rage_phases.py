"""Frame of RAGE: phases of a fixed design for the remaining items, each twice as precise as the last."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import require
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.linear._shared.least_squares import estimate_of
from jaxbandits.linear._shared.phases import Phases, algorithm_from_phases, lasting
from jaxbandits.numerics.linalg import dot, gram, spd_inverse
from jaxbandits.numerics.tracking import round_allocation


class State(NamedTuple):
    """Result of the phases so far, and the plan of the next."""

    pulls: Array  # int ()
    counts: Array  # int (K,)       exact: pulls of each arm, over all phases
    sums: Array  # float (K,)       exact: sums of their rewards
    phase: Array  # int ()          number of phases that have ended
    items_left: Array  # bool (M,)  the items that may still be the best
    theta: Array  # float (d,)      the last phase's estimate
    planned: Array  # bool ()       True if `due` is for the next phase
    due: Array  # int (K,)          pulls of the next phase; zero if they would exceed `max_pulls`


class RageSettings(NamedTuple):
    """Arguments of `rage` and `rage_leader`."""

    arms: Array  # float (K, d)
    items: Array  # float (M, d)
    delta: Array
    epsilon: Array
    noise_scale: Array
    rounding: Array
    reuse: bool
    max_pulls: int
    design_steps: int


class Contest(NamedTuple):
    """The items that a phase tells apart."""

    least: Array  # int (K,)   pulls that make A regular, for arms that span R^d
    first_gap: int  # all items with a gap above 2^(first_gap - t) are eliminated in phase t
    # (state) -> differences of items (n, d), and a mask: True if both items remain
    compared: Callable[[State], tuple[Array, Array]]
    # (differences (n, d), weights (n,)) -> allocation (K,) of the smallest widths, and its largest squared norm
    designed: Callable[[Array, Array], tuple[Array, Array]]
    # (leader int ()) -> int (w,), the items whose lead over the others is tested
    winners: Callable[[Array], Array]


def checked_rage(
    arms: Array,
    items: Array | None,
    *,
    delta: Array | float,
    epsilon: Array | float,
    noise_scale: Array | float,
    rounding: Array | float,
    reuse: bool,
    max_pulls: int,
    design_steps: int,
) -> RageSettings:
    """Collects the arguments of `rage`; raises `ValueError` unless they are in range."""
    arms = checked_arms(arms, full_rank=True)
    (K, d), dtype = arms.shape, arms.dtype
    items = arms if items is None else checked_arms(items, name="items")
    require(items.shape[1] == d, "items", f"have {d} columns, as the arms", items.shape)
    items = items.astype(dtype)
    checks.probability("delta", delta)
    checks.not_negative("epsilon", epsilon)
    checks.positive("noise_scale", noise_scale)
    checks.probability("rounding", rounding)
    reuse = checks.flag("reuse", reuse)
    max_pulls = checks.whole("max_pulls", max_pulls, least=K, most=int(jnp.iinfo(jnp.result_type(int)).max) - 1)
    design_steps = checks.whole("design_steps", design_steps, least=1)
    delta, epsilon, noise_scale, rounding = (jnp.asarray(x, dtype) for x in (delta, epsilon, noise_scale, rounding))
    return RageSettings(
        arms=arms,
        items=items,
        delta=delta,
        epsilon=epsilon,
        noise_scale=noise_scale,
        rounding=rounding,
        reuse=reuse,
        max_pulls=max_pulls,
        design_steps=design_steps,
    )


def leader_of(settings: RageSettings, state: State) -> Array:
    """Returns the remaining item with the largest estimate, int ()."""
    return _first_of(settings, state.items_left, state.theta)


def algorithm_from_contest(settings: RageSettings, contest: Contest) -> Algorithm:
    """Builds the algorithm of phases that tell the items of a contest apart.

    Args:
        settings: arguments of the rule.
        contest: the items that a phase tells apart.

    Returns:
        Algorithm with actions `Allocation`, one per phase, and answers int (), an item.
    """
    arms, items, least, dtype = settings.arms, settings.items, contest.least, settings.arms.dtype
    (K, d), M = arms.shape, items.shape[0]

    def squared_scale(phase: Array) -> Array:
        """Computes the factor from a squared norm in A^-1 to a squared width."""
        log_phase = jnp.log(jnp.maximum(phase, 1).astype(dtype))
        return (
            2
            * settings.noise_scale**2
            * (jnp.log(2 * jnp.asarray(M, dtype) ** 2) - jnp.log(settings.delta) + 2 * log_phase)
        )

    def init(key: Key) -> State:
        del key
        return State(
            pulls=jnp.zeros((), int),
            counts=jnp.zeros(K, int),
            sums=jnp.zeros(K, dtype),
            phase=jnp.zeros((), int),
            items_left=jnp.ones(M, bool),
            theta=jnp.zeros(d, dtype),
            planned=jnp.zeros((), bool),
            due=jnp.zeros(K, int),
        )

    def is_over(state: State) -> Array:
        precision = jnp.exp2(contest.first_gap - state.phase.astype(dtype))
        return (jnp.sum(state.items_left) <= 1) | ((state.phase > 0) & (precision <= settings.epsilon))

    def plan(key: Key, state: State) -> State:
        del key
        directions, rivals = contest.compared(state)
        allocation, value = contest.designed(directions, rivals.astype(dtype))
        support = jnp.sum(allocation > 0).astype(dtype)
        phase, rounding = state.phase + 1, settings.rounding
        # In floats, because the pulls grow fourfold per phase and may exceed any integer.
        precise = squared_scale(phase) * jnp.exp2(2 * phase.astype(dtype)) * value * (1 + rounding)
        n = jnp.ceil(jnp.maximum(precise, support * (1 + rounding) / rounding))
        room = settings.max_pulls - state.pulls
        due = round_allocation(allocation, jnp.minimum(n, room.astype(dtype)).astype(int))
        # DEVIATION: a phase that stands alone also pulls arms that span R^d once, so that its A is regular.
        due = jnp.where(state.phase == 0, due + least, due) if settings.reuse else jnp.maximum(due, least)
        fits = (n <= room.astype(dtype)) & (jnp.sum(due) <= room)
        return state._replace(due=jnp.where(fits, due, 0))

    def learn(state: State, counts: Array, sums: Array) -> State:
        phase, all_counts, all_sums = state.phase + 1, state.counts + counts, state.sums + sums
        if settings.reuse:
            inverse = spd_inverse(gram(arms, all_counts.astype(dtype)) + jnp.eye(d, dtype=dtype))
        else:
            inverse = spd_inverse(gram(arms, jnp.maximum(counts, least).astype(dtype)))
        theta = estimate_of(inverse, arms, all_sums if settings.reuse else sums)
        leader = _first_of(settings, state.items_left, theta)
        winners = contest.winners(leader)
        images = jnp.matmul(items, inverse, precision="highest")
        apart = items[winners][:, None] - items[None]  # [i, j] = z_i - z_j, of the winners i
        squared_widths = squared_scale(phase) * jnp.maximum(dot(apart, images[winners][:, None] - images[None]), 0)
        beats = (jnp.sqrt(squared_widths) <= dot(apart, theta)) & (winners[:, None] != jnp.arange(M)[None])
        beats &= state.items_left[winners][:, None]
        items_left = state.items_left & ~jnp.any(beats, axis=0)
        items_left = jnp.where(jnp.any(items_left), items_left, jnp.arange(M) == leader)
        return state._replace(
            sums=all_sums, phase=phase, items_left=items_left, theta=lasting(theta, state.theta), due=jnp.zeros(K, int)
        )

    phases = Phases(
        init,
        due=lambda key, state: state.due,
        is_over=is_over,
        answer=lambda state: leader_of(settings, state),
        learn=learn,
        plan=plan,
    )
    return algorithm_from_phases(arms, phases, items=items)


def _first_of(settings: RageSettings, items_left: Array, theta: Array) -> Array:
    return jnp.argmax(jnp.where(items_left, dot(settings.items, theta), -jnp.inf))
