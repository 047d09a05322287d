"""RAGE: phases of a fixed design for the remaining items, each twice as precise as the last (Fiez et al., 2019)."""

from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import require
from jaxbandits.linear._problem.arms import checked_arms, spanning
from jaxbandits.linear._problem.environment import Allocation, made_for
from jaxbandits.linear._shared.allocations import pair_directions
from jaxbandits.numerics.design import design, frank_wolfe
from jaxbandits.numerics.indexing import select
from jaxbandits.numerics.linalg import dot, gram, spd_inverse
from jaxbandits.numerics.tracking import round_allocation

AgainstName = Literal["all", "leader"]


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


def rage(
    arms: Array,
    *,
    delta: Array | float,
    items: Array | None = None,
    epsilon: Array | float = 0.0,
    noise_scale: Array | float = 1.0,
    rounding: Array | float = 0.1,
    reuse: bool = False,
    against: AgainstName = "all",
    max_pulls: int = 10**9,
    design_steps: int = 1000,
) -> Algorithm:
    """Halves its error from phase to phase, with the best design for the remaining items.

    Phase t = 1, 2, .. pulls by the allocation over all arms that minimises the largest width of two remaining items. It
    makes as many pulls as bring every such width to 2^-t with probability 1 - delta / t^2. An item is then
    eliminated if another leads it by more than their width, so none with a gap above 2^(1 - t) remains. The run stops
    when one item is left.

    Args:
        arms: float (K, d), features of the arms, spanning R^d; the run has their dtype.
        delta: () in (0, 1), allowed probability of error.
        items: float (M, d), features of the items that are compared; the answer is one of them. If None, the arms.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward. The run also stops after the first
            phase t with 2^(1 - t) <= epsilon (2^(2 - t) against "leader").
        noise_scale: () > 0, sub-Gaussian constant of the noise, in units of reward.
        rounding: () in (0, 1), the share of pulls that a phase adds to make up for rounding the allocation to whole
            pulls. A phase makes at least (1 + 1 / rounding) times as many pulls as the allocation has arms.
        reuse: if False, a phase's test uses the phase's rewards alone. If True, it uses the rewards of all phases, by
            least squares with ridge 1, and the first phase pulls every arm once (against "leader", arms that span
            R^d). That saves pulls, and is heuristic.
        against: "all" or "leader". "all" is as above. "leader" is for thousands of items, which have too many pairs.
            The design, by steps of Frank and Wolfe, is for the leads of the last phase's leader, item 0 at first, over
            the others. A phase tests its own leader alone. Two others are then apart by twice the width, so phase t
            ends with gaps of at most 2^(2 - t).
        max_pulls: Python int, at least K. A phase that would exceed it is not begun. The run then idles until its
            rounds are spent, and is censored.
        design_steps: iterations of the design's solver, a Python int, at least 1.

    Returns:
        Algorithm with actions `Allocation`, one per phase, and answers int (), an item: item 0 before the first phase
        has ended. It is stale after every phase. In its state, `counts` (K,) and `sums` (K,) are exact, and `phase` ()
        is the number of phases that have ended.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: P(the answer is not epsilon-best) <= delta, for noise_scale-sub-Gaussian noise and reuse=False.
    **Cost**: O(K d^2 + M^2 d + d^3) per phase, and in `plan` O((K + M^2) d^2 + d^3) for each of `design_steps` steps,
    which suits hundreds of items. Against the leader they are O(K d^2 + M d + d^3) and O((K + M) d), which suits
    thousands. A gap g takes about log2(1 / g) + 2 phases. float64 is advised.

    Source: Fiez, Jain, Jamieson and Ratliff (2019), Sequential experimental design for transductive linear bandits,
    with the constants of its published code; `reuse` is the variant of Tirinzoni and Degenne (2022).
    """
    arms = checked_arms(arms, full_rank=True)
    (K, d), dtype = arms.shape, arms.dtype
    items = arms if items is None else checked_arms(items, name="items")
    require(items.shape[1] == d, "items", f"have {d} columns, as the arms", items.shape)
    items = items.astype(dtype)
    M = items.shape[0]
    checks.probability("delta", delta)
    checks.not_negative("epsilon", epsilon)
    checks.positive("noise_scale", noise_scale)
    checks.probability("rounding", rounding)
    reuse = checks.flag("reuse", reuse)
    checks.one_of("against", against, AgainstName)
    max_pulls = checks.whole("max_pulls", max_pulls, least=K, most=int(jnp.iinfo(jnp.result_type(int)).max) - 1)
    design_steps = checks.whole("design_steps", design_steps, least=1)
    delta, epsilon, noise_scale, rounding = (jnp.asarray(x, dtype) for x in (delta, epsilon, noise_scale, rounding))
    by_pairs = against == "all"
    spanner = jnp.ones(K, bool) if by_pairs else spanning(arms)
    least = spanner.astype(int)
    first, second = np.triu_indices(M, 1) if by_pairs else (None, None)
    pairs = pair_directions(items) if by_pairs else None

    def squared_scale(phase: Array) -> Array:
        """Computes the factor from a squared norm in A^-1 to a squared width."""
        log_phase = jnp.log(jnp.maximum(phase, 1).astype(dtype))
        return 2 * noise_scale**2 * (jnp.log(2 * jnp.asarray(M, dtype) ** 2) - jnp.log(delta) + 2 * log_phase)

    def leader_of(state: State) -> Array:
        return jnp.argmax(jnp.where(state.items_left, dot(items, state.theta), -jnp.inf))

    def compared(state: State) -> tuple[Array, Array]:
        """Returns the differences whose widths a phase shrinks, and a mask: True if both items remain."""
        if pairs is not None:
            return pairs, state.items_left[first] & state.items_left[second]
        leader = leader_of(state)
        return items - items[leader][None], state.items_left & (jnp.arange(M) != leader)

    def designed(directions: Array, weights: Array) -> tuple[Array, Array]:
        """Computes the allocation of the smallest widths, and the largest squared norm under it."""
        if by_pairs:
            solved = design(arms, directions, weights=weights, steps=design_steps)
            return solved.allocation, solved.value
        # Each arm with a share costs a pull at least; of thousands of arms this solver uses few.
        allocation = frank_wolfe(arms, directions, weights, steps=design_steps, start=spanner)
        images = jnp.matmul(directions, spd_inverse(gram(arms, allocation)), precision="highest")
        return allocation, jnp.max(weights * dot(images, directions))

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

    def stops(state: State) -> Array:
        precision = jnp.exp2((1 if by_pairs else 2) - state.phase.astype(dtype))
        return (jnp.sum(state.items_left) <= 1) | ((state.phase > 0) & (precision <= epsilon))

    def stale(state: State) -> Array:
        return ~state.planned & ~stops(state)

    def plan(key: Key, state: State) -> State:
        del key
        directions, rivals = compared(state)
        allocation, value = designed(directions, rivals.astype(dtype))
        support = jnp.sum(allocation > 0).astype(dtype)
        phase = state.phase + 1
        # In floats, because the pulls grow fourfold per phase and may exceed any integer.
        precise = squared_scale(phase) * jnp.exp2(2 * phase.astype(dtype)) * value * (1 + rounding)
        n = jnp.ceil(jnp.maximum(precise, support * (1 + rounding) / rounding))
        room = max_pulls - state.pulls
        due = round_allocation(allocation, jnp.minimum(n, room.astype(dtype)).astype(int))
        # DEVIATION: a phase that stands alone also pulls arms that span R^d once, so that its A is regular.
        due = jnp.where(state.phase == 0, due + least, due) if reuse else jnp.maximum(due, least)
        fits = (n <= room.astype(dtype)) & (jnp.sum(due) <= room)
        return state._replace(planned=jnp.ones((), bool), due=jnp.where(fits, due, 0))

    def decide(key: Key, state: State) -> Decision:
        del key
        return Decision(Allocation(jnp.where(state.planned, state.due, 0)), stops(state), leader_of(state))

    def observe(state: State, action: Allocation, observation: Array) -> State:
        counts, sums, phase = state.counts + action.counts, state.sums + observation, state.phase + 1
        if reuse:
            inverse = spd_inverse(gram(arms, counts.astype(dtype)) + jnp.eye(d, dtype=dtype))
        else:
            inverse = spd_inverse(gram(arms, jnp.maximum(action.counts, least).astype(dtype)))
        rewards = sums if reuse else observation
        theta = jnp.matmul(inverse, jnp.matmul(rewards, arms, precision="highest"), precision="highest")
        leader = jnp.argmax(jnp.where(state.items_left, dot(items, theta), -jnp.inf))
        winners = jnp.arange(M) if by_pairs else leader[None]
        images = jnp.matmul(items, inverse, precision="highest")
        apart = items[winners][:, None] - items[None]  # [i, j] = z_i - z_j, of the winners i
        squared_widths = squared_scale(phase) * jnp.maximum(dot(apart, images[winners][:, None] - images[None]), 0)
        beats = (jnp.sqrt(squared_widths) <= dot(apart, theta)) & (winners[:, None] != jnp.arange(M)[None])
        beats &= state.items_left[winners][:, None]
        items_left = state.items_left & ~jnp.any(beats, axis=0)
        items_left = jnp.where(jnp.any(items_left), items_left, jnp.arange(M) == leader)
        after = State(
            pulls=state.pulls + jnp.sum(action.counts),
            counts=counts,
            sums=sums,
            phase=phase,
            items_left=items_left,
            # A NaN of an earlier phase stays, so that the run ends as NONFINITE.
            theta=theta + 0 * state.theta,
            planned=jnp.zeros((), bool),
            due=jnp.zeros(K, int),
        )
        moves = jnp.any(action.counts > 0)
        return select(moves, after, state)

    idle = Allocation(jnp.zeros(K, int))
    return Algorithm(
        init,
        decide,
        observe,
        idle,
        plan=plan,
        stale=stale,
        before=lambda state, _: state.counts,
        **made_for(arms, items),
    )
