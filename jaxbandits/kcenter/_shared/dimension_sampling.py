"""Dimension sampling, the common core of DS-UCB and DS-TS: settings, state and rules.

Both query the node of largest upper bound until it is the next center. They differ in the interval, and in the slot of
that node that they query.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import require
from jaxbandits.kcenter._problem.environment import Pull, Sample, made_for, no_pull
from jaxbandits.kcenter._problem.problem import Dimensions, check_dimensions
from jaxbandits.kcenter._shared import arm_table, stages
from jaxbandits.kcenter._shared.arm_table import ArmTable
from jaxbandits.kcenter._shared.intervals import Bounds, Interval, Scale, arm_bounds, bounds_of, check_interval
from jaxbandits.kcenter._shared.stages import Stage
from jaxbandits.kcenter._shared.triangle import (
    CenterBounds,
    Triangle,
    check_triangle,
    is_out_of_reach,
    join,
    tighten,
    unknown,
)
from jaxbandits.numerics import blocked_argmax
from jaxbandits.numerics.blocked_argmax import Blocks
from jaxbandits.numerics.indexing import select
from jaxbandits.numerics.platforms import by_platform
from jaxbandits.numerics.random_bits import uniform

Ties = Literal["none", "lowest"]


class Arms(NamedTuple):
    """Statistics of one node's arms, among which a slot is chosen."""

    counts: Array  # int32 (k-1,)
    successes: Array | None  # int32 (k-1,); None where `pick` takes no numbers
    lower: Array  # float (k-1,)  the largest finite value where the slot holds no center
    open: Array  # bool (k-1,)    the slot holds a center, to which the distance is not known exactly


class Pick(NamedTuple):
    """Rule that chooses the slot of the leader."""

    slot: Callable[[Array, Arms], Array]  # (uniform numbers on [0, 1) (size,), arms) -> int32 ()
    size: int  # number of uniforms that it takes; if 0, no successes are counted


class Sampler(NamedTuple):
    """Settings of a run."""

    problem: Dimensions
    first_center: Array | int | None
    bounds: Bounds  # (counts, sums) -> (lower, upper)
    pick: Pick
    cap: int
    triangle: Triangle | None
    ties: Ties
    leap: int
    redraw: bool  # True if arms read in an earlier stage are open to `pick`; a round that picks one is lost
    dtype: Any


class Query(NamedTuple):
    """Next query, and the condition for repeating it. Derived from the statistics."""

    node: Array  # int32 ()       n: nothing, until the run ends
    slot: Array  # int32 ()       `no_slot(k)`: nothing, this round
    exact: Array  # bool ()       the arm is at its cap, so it is to be read
    rival: Array  # float ()      the largest upper bound of the other nodes
    leader: Array  # int32 ()     the node of largest upper bound
    tied: Array  # int32 ()       the leader, if its distance is known exactly and equals `rival`; otherwise -1
    coin: Array  # float ()       uniform, rounds the first reward at random


class Draws(NamedTuple):
    """Random stream of a randomised choice of slots. Query s has its own numbers, whatever leap it falls in."""

    seed: Array  # uint32 (2,)  key data
    step: Array  # int32 ()     number s of the next query


class Row(NamedTuple):
    """Arms of one node, or of all nodes (n, k-1)."""

    # int32 (k-1,), queries. An arm above the cap has been read and is known exactly. Its count is then cap + 1, or with
    # `redraw` the cap plus the number of the stage.
    counts: Array
    sums: Array  # (k-1,)  rewards, summed over all m dimensions once the arm is read; int32 or float
    successes: Array | None  # int32 (k-1,)  rewards rounded at random to 0 or 1, summed; None without `Draws`
    # float (k-1,), derived, before the triangle inequality. Stored, as the bounds of `KL` take most of a round's time.
    lower: Array
    upper: Array


class State(NamedTuple):
    """Statistics of every arm, one row per node, and values derived from them."""

    pulls: Array  # int ()
    stage: Stage
    arms: ArmTable  # Row (n, k-1)
    draws: Draws | None
    least_upper: Blocks  # n values  smallest upper bound of every candidate
    between: CenterBounds | None  # None without the triangle inequality
    query: Query

    @property
    def counts(self) -> Array:
        """Returns the queries of every arm, int32 (n, k-1); see `Row`."""
        return self.arms.tree.counts

    @property
    def sums(self) -> Array:
        """Returns the reward sums of every arm, (n, k-1); see `Row`."""
        return self.arms.tree.sums

    @property
    def lower(self) -> Array:
        """Returns the lower bounds of every arm, float (n, k-1); see `Row`."""
        return self.arms.tree.lower

    @property
    def upper(self) -> Array:
        """Returns the upper bounds of every arm, float (n, k-1); see `Row`."""
        return self.arms.tree.upper


def make_sampler(
    problem: Dimensions,
    pick: Callable[[int], Pick],
    *,
    delta: Array | float,
    interval: Interval,
    first_center: Array | int | None,
    scale: Scale,
    cap: int | None,
    triangle: Triangle | None,
    ties: Ties,
    leap: int,
    dtype: Any,
    redraw: bool = False,
) -> Sampler:
    """Returns the sampler of these checked settings, as in `ds_ucb` and `ds_ts`. `pick` takes the cap."""
    cap, dtype = check_sampling(
        problem, delta=delta, interval=interval, first_center=first_center, scale=scale, cap=cap, dtype=dtype
    )
    check_triangle(triangle)
    require(not (triangle == "squared" and scale == "root"), "triangle", "be 'metric' with scale='root'", triangle)
    checks.one_of("ties", ties, Ties)
    leap, redraw = checks.whole("leap", leap, least=1), checks.flag("redraw", redraw)
    bounds = arm_bounds(bounds_of(interval, problem.n, delta), problem, cap=cap, scale=scale, dtype=dtype)
    return Sampler(
        problem=problem,
        first_center=first_center,
        bounds=bounds,
        pick=pick(cap),
        cap=cap,
        triangle=triangle,
        ties=ties,
        leap=leap,
        redraw=redraw,
        dtype=dtype,
    )


def check_sampling(
    problem: Dimensions,
    *,
    delta: Array | float,
    interval: Interval,
    first_center: Array | int | None,
    scale: Scale,
    cap: int | None,
    dtype: Any,
) -> tuple[int, Any]:
    """Checks the arguments that all samplers share, and returns the cap and the dtype of a run."""
    check_dimensions(problem)
    checks.probability("delta", delta)
    check_interval(interval)
    stages.check_first_center(first_center, problem.n)
    checks.one_of("scale", scale, Scale)
    return problem.m if cap is None else checks.whole("cap", cap, least=1), checks.float_dtype("dtype", dtype)


def algorithm_from_sampler(sampler: Sampler) -> Algorithm:
    """Returns the algorithm that queries the slot that `sampler.pick` chooses of the leader.

    A round receives several samples of its arm, a leap. It takes them in order, as long as the algorithm with one
    sample per round would query the same arm again, and discards the others. Whether a sample is taken depends only on
    the samples before it, so leaps do not change the law of a run. With the same samples in the same order, they change
    nothing at all.
    """
    return Algorithm(
        init=partial(init, sampler),
        decide=partial(decide, sampler),
        observe=partial(observe, sampler),
        idle=no_pull(sampler.problem),
        **made_for(sampler.problem, sampler.dtype, leap=sampler.leap),
    )


def init(sampler: Sampler, key: Key) -> State:
    """Returns the state before the first sample."""
    n, _, k, levels = sampler.problem
    dtype, size = sampler.dtype, sampler.pick.size
    largest = jnp.asarray(jnp.finfo(dtype).max, dtype)
    for_center, for_draws = jax.random.split(key)
    counts, zero = jnp.zeros((n, k - 1), jnp.int32), jnp.zeros((), jnp.int32)
    stage = stages.begin(for_center, sampler.problem, sampler.first_center)
    draws = Draws(jax.random.bits(for_draws, (2,), jnp.uint32), zero) if size > 0 else None
    arms = Row(
        counts=counts,
        sums=counts if levels is not None else counts.astype(dtype),
        successes=counts if size > 0 else None,
        lower=jnp.zeros((n, k - 1), dtype),
        upper=jnp.full((n, k - 1), largest),
    )
    return State(
        pulls=jnp.zeros((), int),
        stage=stage,
        arms=arm_table.pack(arms),
        draws=draws,
        least_upper=blocked_argmax.build(jnp.full(n, largest, dtype)),
        between=None if sampler.triangle is None else unknown(k, dtype),
        query=Query(
            node=zero,
            slot=jnp.where(stages.is_center(stage, zero), stages.no_slot(k), stages.newest(stage)),
            exact=jnp.zeros((), bool),
            rival=largest,
            leader=zero,
            tied=jnp.full((), -1, jnp.int32),
            coin=uniforms(sampler, draws, 0, 1)[0, size],
        ),
    )


def decide(sampler: Sampler, key: Key, state: State) -> Decision:
    """Returns the query that `observe` has planned."""
    del key
    stage, query = state.stage, state.query
    is_complete = stages.is_complete(stage)
    action = Pull(
        node=jnp.where(is_complete, sampler.problem.n, query.node),
        slot=query.slot,
        centers=stage.centers[:-1],
        exact=query.exact & ~is_complete,
        problem=sampler.problem,
    )
    return Decision(action, is_complete, stages.answer(stage, query.leader))


def observe(sampler: Sampler, state: State, action: Pull, sample: Sample) -> State:
    """Adds the samples that are used, checks whether the stage is over, and plans the next query."""
    n, m, _, _ = sampler.problem
    stage, node, slot = state.stage, action.node, action.slot
    is_query, is_opening = node < n, stage.cursor < n
    arm, row, used = use_samples(sampler, state, action, sample)
    queries = jnp.where(is_query & action.exact, m, used)
    smallest = jnp.finfo(sampler.dtype).min
    value = jnp.where(stages.is_center(stage, node), smallest, least_upper_bound(sampler, stage, row))

    # On a CPU, writing the whole row is as fast as one entry, and no entry has to be read.
    table = by_platform(
        state.arms,
        cpu=lambda table: arm_table.replace(table, node, row),
        default=lambda table: arm_table.replace_arms(table, node, slot, arm),
    )
    draws = state.draws
    if draws is not None:
        draws = Draws(draws.seed, draws.step + jnp.maximum(used, is_query.astype(jnp.int32)))
    state = state._replace(
        pulls=state.pulls + queries.astype(state.pulls.dtype),
        stage=stages.step(stages.spend(stage, queries), (is_query & is_opening).astype(jnp.int32)),
        arms=table,
        draws=draws,
        least_upper=blocked_argmax.update(state.least_upper, node, value),
    )
    return next_query(sampler, state, is_query)


def use_samples(sampler: Sampler, state: State, action: Pull, sample: Sample) -> tuple[Row, Row, Array]:
    """Returns the arm () after its used samples or its exact read, its node's row, and the number of used samples."""
    n, _, k, levels = sampler.problem
    stage, slot, leap, size = state.stage, action.slot, sampler.leap, sampler.pick.size
    unit = 1 if levels is None else levels**2
    # Without the barrier XLA would read the row after setting entries, and copy whole tables for that on a CPU.
    row = lax.optimization_barrier(arm_table.rows(state.arms, action.node)).tree
    is_arm = jnp.arange(k - 1, dtype=jnp.int32) == slot
    old = jax.tree.map(lambda x: jnp.take(x, slot, mode="clip"), row)

    # The arm after 1, 2, .. leap samples.
    number, rewards = jnp.arange(1, leap + 1, dtype=jnp.int32), sample.rewards
    require(rewards.shape == (leap,), "sample.rewards", f"have shape {(leap,)}", rewards.shape)
    counts, sums = old.counts + number, old.sums + jnp.cumsum(rewards, dtype=rewards.dtype)
    # The first sample needs no number for its slot: its arm is already chosen.
    numbers, successes = uniforms(sampler, state.draws, 1, leap - 1), None
    if state.draws is not None:
        coins = jnp.concatenate([state.query.coin[None], numbers[:, size]])
        rounded = (coins < rewards.astype(sampler.dtype) / unit).astype(jnp.int32)
        successes = old.successes + jnp.cumsum(rounded, dtype=jnp.int32)
    arms = Row(counts, sums, successes, *sampler.bounds(counts, sums))

    before_last = jax.tree.map(lambda x: x[:-1], arms)
    is_next = stays_on_arm(sampler, state, row=row, slot=slot, arms=before_last, numbers=numbers[:, :size])
    used = jnp.min(jnp.where(is_next, leap, number[:-1]), initial=leap)
    used = jnp.where(stage.cursor < n, 1, used)
    used = jnp.where((action.node < n) & (slot < k - 1) & (old.counts < sampler.cap), used, 0)

    def last(values: Array, before: Array) -> Array:
        return jnp.where(used > 0, values[jnp.maximum(used - 1, 0)], before)

    is_read = (action.node < n) & action.exact
    known = sampler.cap + (stage.found if sampler.redraw else 1)
    count = jnp.where(is_read, known, last(counts, old.counts))
    total = jnp.where(is_read, sample.exact, last(sums, old.sums))
    success = None if successes is None else last(successes, old.successes)
    arm = Row(count, total, success, *sampler.bounds(count, total))
    return arm, with_arm(row, is_arm, arm), used


def stays_on_arm(sampler: Sampler, state: State, *, row: Row, slot: Array, arms: Row, numbers: Array) -> Array:
    """Checks whether the same arm would be queried again after one sample, two, ..

    Args:
        sampler: Sampler.
        state: the state before the samples.
        row: the arms of the node.
        slot: int32 (), the slot of the arm.
        arms: Row (leap - 1,), the arm after one sample, two, ..
        numbers: float (leap - 1, size), uniforms of the queries that would follow.

    Returns:
        bool (leap - 1,).
    """
    stage, rival = state.stage, state.query.rival
    is_arm = jnp.arange(row.counts.size, dtype=jnp.int32) == slot
    if sampler.triangle is None and sampler.pick.size == 0:
        # The other arms of the node do not change: their smallest bounds are enough.
        largest = jnp.finfo(sampler.dtype).max
        others = row._replace(lower=jnp.where(is_arm, largest, row.lower), upper=jnp.where(is_arm, largest, row.upper))
        lower = arms_of(sampler, stage, None, others).lower
        other, least = jnp.argmin(lower).astype(jnp.int32), jnp.min(lower)
        leads = jnp.minimum(arms.upper, least_upper_bound(sampler, stage, others)) > rival
        decided = stages.is_decided(jnp.minimum(arms.lower, least), rival)
        is_picked = (arms.lower < least) | ((arms.lower == least) & (slot < other))
        return leads & ~decided & (arms.counts < sampler.cap) & is_picked

    def stays(arm: Row, numbers: Array) -> Array:
        after = with_arm(row, is_arm, arm)
        choice = arms_of(sampler, stage, state.between, after)
        leads = least_upper_bound(sampler, stage, after) > rival
        decided = stages.is_decided(jnp.min(choice.lower), rival)
        is_picked = sampler.pick.slot(numbers, choice) == slot
        return leads & ~decided & (arm.counts < sampler.cap) & is_picked

    return jax.vmap(stays)(arms, numbers)


def next_query(sampler: Sampler, state: State, is_query: Array) -> State:
    """Checks whether the stage is over, and plans the next round. After the idle action, nothing changes."""
    n, _, k, _ = sampler.problem
    stage, query, size = state.stage, state.query, sampler.pick.size
    lead = blocked_argmax.leader(state.least_upper)
    # The leader, or the best of the others if the leader is known exactly.
    node = jnp.where(lead.index == query.tied, lead.challenger, lead.index)
    was_tied = query.tied >= 0
    row = arm_table.rows(state.arms, node).tree
    arms = arms_of(sampler, stage, state.between, row)
    numbers = uniforms(sampler, state.draws, 0, 1)[0]
    slot = sampler.pick.slot(numbers[:size], arms)
    # If the smallest lower bound is exact, so is the smallest upper bound: nothing is left to learn about the node.
    is_known = jnp.take(row.counts, jnp.argmin(arms.lower)) > sampler.cap

    decided = ~was_tied & stages.is_decided(jnp.min(arms.lower), lead.runner_up)
    if sampler.ties == "lowest":
        decided |= was_tied & is_known
    decided &= is_query & (stage.cursor == n)
    between = state.between
    if between is not None and sampler.triangle is not None:
        center = arm_table.rows(state.arms, lead.index).tree
        joined = join(between, stage.found, lower=center.lower, upper=center.upper, kind=sampler.triangle)
        between = select(decided, joined, between)
    stage = stages.advance(stage, lead.index, decided)

    is_opening = stage.cursor < n
    passes = stages.is_center(stage, stage.cursor)
    if between is not None and sampler.triangle is not None:
        first, slots, newest = arm_table.rows(state.arms, stage.cursor).tree, stages.slots(stage), stages.newest(stage)
        passes |= is_out_of_reach(
            between, newest, lower=first.lower, upper=first.upper, slots=slots, kind=sampler.triangle
        )
    is_useful = ~is_opening & ~is_known
    # DEVIATION: a leader that is known but not decided ties with the runner-up. As printed, it is selected until the
    # run ends. But bounds also tie by rounding (with float32 in about one of ten runs), and then queries of the
    # runner-up still help. If they do not, two distances are equal, and (8), which is strict, can never hold.
    is_stuck = ~is_opening & is_known & was_tied
    opening_slot = jnp.where(is_opening & ~passes, stages.newest(stage), stages.no_slot(k))
    planned = Query(
        node=jnp.where(is_opening, stage.cursor, jnp.where(is_stuck, n, node)),
        slot=jnp.where(is_useful, slot, opening_slot),
        exact=is_useful & (jnp.take(row.counts, slot) == sampler.cap),
        rival=jnp.where(node == lead.index, lead.runner_up, lead.value),
        leader=lead.index,
        tied=jnp.where(~is_opening & is_known & ~was_tied, lead.index, -1),
        coin=numbers[size],
    )
    planned = select(is_query, planned, query)
    return state._replace(stage=stage, between=between, query=planned)


def lowest(numbers: Array, arms: Arms) -> Array:
    """Returns the slot of the smallest lower bound."""
    del numbers
    return jnp.argmin(arms.lower).astype(jnp.int32)


def uniforms(sampler: Sampler, draws: Draws | None, first: int, count: int) -> Array:
    """Draws the uniforms of `count` of the next queries (count, size + 1); the last column rounds their rewards."""
    if draws is None:
        return jnp.zeros((count, 1), sampler.dtype)
    seed, shape = jax.random.wrap_key_data(draws.seed, impl="threefry2x32"), (sampler.pick.size + 1,)
    steps = draws.step + jnp.arange(first, first + count, dtype=jnp.int32)
    return jax.vmap(lambda s: uniform(jax.random.fold_in(seed, s), shape, sampler.dtype))(steps)


def with_arm(row: Row, is_arm: Array, arm: Row) -> Row:
    """Returns the row with an arm's values where `is_arm` holds."""
    return select(is_arm, arm, row)


def arms_of(sampler: Sampler, stage: Stage, between: CenterBounds | None, row: Row) -> Arms:
    """Returns the statistics from which the slot of a node is chosen."""
    slots, lower = stages.slots(stage), row.lower
    if between is not None and sampler.triangle is not None:
        lower = tighten(between, lower=lower, upper=row.upper, slots=slots, kind=sampler.triangle)
    is_closed = row.counts > (sampler.cap + stages.newest(stage) if sampler.redraw else sampler.cap)
    return Arms(row.counts, row.successes, jnp.where(slots, lower, jnp.finfo(sampler.dtype).max), slots & ~is_closed)


def least_upper_bound(sampler: Sampler, stage: Stage, row: Row) -> Array:
    """Returns the upper bound of a node's distance to its nearest center."""
    return jnp.min(jnp.where(stages.slots(stage), row.upper, jnp.finfo(sampler.dtype).max))
