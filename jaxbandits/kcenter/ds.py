"""The common core of DS-UCB and DS-TS: ask the node of largest upper bound, until it is the next center.

The two differ in the interval, and in the slot of that node that they ask.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import require
from jaxbandits.kcenter import stage as stages
from jaxbandits.kcenter.intervals import Interval
from jaxbandits.kcenter.problem import Pull, Sample
from jaxbandits.kcenter.stage import Stage
from jaxbandits.kcenter.triangle import Spans, Triangle, check_triangle, is_out_of_reach, join, tighten, unknown
from jaxbandits.numerics import blocks
from jaxbandits.numerics.blocks import Blocks

Scale = Literal["mean", "root"]
Ties = Literal["none", "lowest"]


class Plan(NamedTuple):
    """What to ask next, and what it takes to ask the same again. Derived from the statistics."""

    node: Array  # int32 ()       n: nothing, for good
    slot: Array  # int32 ()       `stage.passing(k)`: nothing, this round
    exact: Array  # bool ()       the arm is at its cap, so it is to be read
    rival: Array  # float ()      the largest upper bound of the other nodes
    leader: Array  # int32 ()     the node of largest upper bound
    is_tied: Array  # bool ()     the leader's distance is known exactly, and equals the others' largest upper bound
    coin: Array  # float ()       uniform, rounds the first reward at random


class Chance(NamedTuple):
    """What a randomised choice of slots needs. Query s has draws of its own, in whichever burst it comes."""

    successes: Array  # int32 (n, k-1)  of the rewards, rounded at random to 0 or 1
    seed: Array  # uint32 (2,)          key data
    step: Array  # int32 ()             s


class State(NamedTuple):
    """Statistics of every arm, one row a node, and what is derived from them."""

    pulls: Array  # int ()
    stage: Stage
    # int32 (n, k-1), queries. Above the cap the arm has been read, and is known exactly: cap + 1, with `redraw` the cap
    # and the number of the stage.
    counts: Array
    sums: Array  # (n, k-1)          of rewards, over all m dimensions once the arm is read; int32 or float
    chance: Chance | None
    # float (n, k-1), derived; those of "kl" take longer to compute than all else in a round.
    lower: Array
    upper: Array
    order: Blocks  # n values        the least upper bound of every candidate
    spans: Spans | None  # bounds between centers, with the triangle inequality
    plan: Plan


class Row(NamedTuple):
    """The arms of one node."""

    counts: Array  # int32 (k-1,)
    sums: Array  # (k-1,)
    successes: Array  # int32 (k-1,)  0 without `Chance`
    lower: Array  # float (k-1,)  before the triangle inequality
    upper: Array  # float (k-1,)


class Arms(NamedTuple):
    """What a slot of one node is chosen from."""

    counts: Array  # int32 (k-1,)
    successes: Array  # int32 (k-1,)
    lower: Array  # float (k-1,)  the largest finite value where the slot holds no center
    open: Array  # bool (k-1,)    the slot holds a center, to which the distance is not known exactly


Pick = Callable[[Array, Arms], Array]  # (draws float (width,), uniform on [0, 1), arms) -> slot, int32 ()


def lowest(draws: Array, arms: Arms) -> Array:
    """The slot of the least lower bound."""
    del draws
    return jnp.argmin(arms.lower).astype(jnp.int32)


def dimension_sampler(
    n: int,
    m: int,
    k: int,
    *,
    interval: Interval,
    pick: Pick,
    width: int,
    first_center: Array | int | None,
    cap: int | None,
    scale: Scale,
    triangle: Triangle | None,
    ties: Ties,
    levels: int | None,
    burst: int,
    exact_distance: Callable[[Array, Array], Array] | None,
    dtype: Any,
    redraw: bool = False,
) -> Algorithm:
    """The algorithm that asks the leader's slot of choice.

    A round is offered several samples of its arm, a burst. It takes them one by one, in order, for as long as the
    algorithm that is given one at a time would ask the same arm again, and leaves the rest. Whether a sample is taken
    depends on those before it alone, so bursts change nothing in the law of a run, and with the same samples in the
    same order nothing at all.

    Args:
        n: as in `ds_ucb`.
        m: as in `ds_ucb`.
        k: as in `ds_ucb`.
        interval: on the scale of `scale`.
        pick: the slot of the leader to ask next.
        width: draws that a `pick` takes; with 0 no successes are counted.
        first_center: as in `ds_ucb`.
        cap: as in `ds_ucb`.
        scale: as in `ds_ucb`.
        triangle: as in `ds_ucb`.
        ties: as in `ds_ucb`.
        levels: as in `ds_ucb`.
        burst: as in `ds_ucb`.
        exact_distance: as in `ds_ucb`.
        dtype: as in `ds_ucb`.
        redraw: whether arms read in an earlier stage are open to `pick`; a round that picks one is lost.

    Returns:
        Algorithm.

    Raises:
        ValueError: an argument is out of range or unknown.
    """
    dtype = check_sampling(n, m, k, levels=levels, scale=scale, dtype=dtype)
    cap = m if cap is None else cap
    require(cap >= 1, "cap", "be at least 1", cap)
    require(burst >= 1, "burst", "be at least 1", burst)
    require(ties in get_args(Ties), "ties", f"be one of {get_args(Ties)}", ties)
    check_triangle(triangle)
    require(not (triangle == "squared" and scale == "root"), "triangle", "be 'metric' with scale='root'", triangle)
    bounds = arm_bounds(interval, m=m, cap=cap, scale=scale, levels=levels, dtype=dtype)
    unit = 1 if levels is None else levels**2
    least, most = jnp.finfo(dtype).min, jnp.finfo(dtype).max
    null, zero, no = jnp.asarray(n, jnp.int32), jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    idle = stages.no_pull(n, k)
    places = jnp.arange(k - 1, dtype=jnp.int32)
    kind: Triangle = triangle or "squared"  # where spans are None, nothing reads it

    def init(key: Key) -> State:
        for_center, for_chance = jax.random.split(key)
        none = jnp.zeros((n, k - 1), jnp.int32)
        stage = stages.begin(for_center, n, k, first_center)
        slot = jnp.where(stages.is_center(stage, zero), stages.passing(k), stages.newest(stage))
        chance = Chance(none, jax.random.bits(for_chance, (2,), jnp.uint32), zero) if width > 0 else None
        return State(
            pulls=jnp.zeros((), int),
            stage=stage,
            counts=none,
            sums=none if levels is not None else none.astype(dtype),
            chance=chance,
            lower=jnp.zeros((n, k - 1), dtype),
            upper=jnp.full((n, k - 1), most, dtype),
            order=blocks.build(jnp.full(n, most, dtype)),
            spans=None if triangle is None else unknown(k, dtype),
            plan=Plan(zero, slot, no, jnp.asarray(most, dtype), zero, no, query_draws(chance, 0, 1)[0, width]),
        )

    def decide(key: Key, state: State) -> Decision:
        del key
        stage, plan = state.stage, state.plan
        done = stages.is_complete(stage)
        waits = done if exact_distance is None else done | plan.exact
        action = idle._replace(
            node=jnp.where(waits, null, plan.node),
            slot=plan.slot,
            centers=stage.centers[:-1],
            exact=plan.exact & ~waits,
        )
        return Decision(action, done, stages.answer(stage, plan.leader))

    def observe(state: State, action: Pull, sample: Sample) -> State:
        stage, node = state.stage, action.node
        is_asked, is_opening = node < n, stage.cursor < n
        row, used = take(state, action, sample)
        queries = jnp.where(is_asked & action.exact, m, used)
        value = jnp.where(stages.is_center(stage, node), least, least_upper(stage, row))
        chance = state.chance
        if chance is not None:
            successes = chance.successes.at[node].set(row.successes, mode="drop")
            chance = Chance(successes, chance.seed, chance.step + jnp.maximum(used, is_asked.astype(jnp.int32)))
        state = state._replace(
            pulls=state.pulls + queries.astype(state.pulls.dtype),
            stage=stages.step(stages.spend(stage, queries), (is_asked & is_opening).astype(jnp.int32)),
            counts=state.counts.at[node].set(row.counts, mode="drop"),
            sums=state.sums.at[node].set(row.sums, mode="drop"),
            chance=chance,
            lower=state.lower.at[node].set(row.lower, mode="drop"),
            upper=state.upper.at[node].set(row.upper, mode="drop"),
            order=blocks.update(state.order, node, value),
        )
        return look(state, is_asked)

    def take(state: State, action: Pull, sample: Sample) -> tuple[Row, Array]:
        """The node's row after the samples that are used, and their number; or after the arm has been read."""
        stage, slot = state.stage, action.slot
        old = read(state, action.node)
        here = places == slot
        count, total = (jnp.take(x, slot, mode="clip") for x in (old.counts, old.sums))

        # The arm after 1, 2, .. burst samples.
        number = jnp.arange(1, burst + 1, dtype=jnp.int32)
        rewards = sample.rewards.at[:, slot].get(mode="clip")
        counts, sums = count + number, total + jnp.cumsum(rewards, dtype=rewards.dtype)
        # Of every sample but the first, whose arm is chosen already.
        draws, successes = query_draws(state.chance, 1, burst - 1), jnp.zeros_like(number)
        if state.chance is not None:
            coins = jnp.concatenate([state.plan.coin[None], draws[:, width]])
            rounded = (coins < rewards.astype(dtype) / unit).astype(jnp.int32)
            successes = jnp.take(old.successes, slot, mode="clip") + jnp.cumsum(rounded, dtype=jnp.int32)
        rows = jax.vmap(lambda *arm: put(old, here, Row(*arm)))(counts, sums, successes, *bounds(counts, sums))

        def goes_on(row: Row, draws: Array) -> Array:
            arms = arms_of(stage, state.spans, row)
            leads = least_upper(stage, row) > state.plan.rival
            decided = stages.is_decided(jnp.min(arms.lower), state.plan.rival)
            return leads & ~decided & (jnp.take(row.counts, slot) < cap) & (pick(draws[:width], arms) == slot)

        between = jax.tree.map(lambda x: x[:-1], rows)
        stops = jnp.where(jax.vmap(goes_on)(between, draws), burst, number[:-1])
        used = jnp.min(stops, initial=burst)
        used = jnp.where(stage.cursor < n, 1, used)
        used = jnp.where((action.node < n) & (slot < k - 1) & (count < cap), used, 0)

        def last(values: Array, before: Array) -> Array:
            return jnp.where(used > 0, values[jnp.maximum(used - 1, 0)], before)

        is_read = (action.node < n) & action.exact
        count = jnp.where(is_read, cap + (stage.found if redraw else 1), last(counts, count))
        total = jnp.where(is_read, sample.exact, last(sums, total))
        successes = last(successes, jnp.take(old.successes, slot, mode="clip"))
        return put(old, here, Row(count, total, successes, *bounds(count, total))), used

    def look(state: State, is_asked: Array) -> State:
        """Tests whether the stage is over, and plans the next round."""
        stage, plan = state.stage, state.plan
        lead = blocks.leader(state.order)
        # The leader, or if that is known exactly, the best of the others.
        node = jnp.where(plan.is_tied & (lead.index == plan.leader), lead.challenger, lead.index)
        row = read(state, node)
        arms = arms_of(stage, state.spans, row)
        draws = query_draws(state.chance, 0, 1)[0]
        slot = pick(draws[:width], arms)
        # If the least lower bound is exact, so is the least upper bound: there is nothing left to learn of the node.
        is_known = jnp.take(row.counts, jnp.argmin(arms.lower)) > cap

        decided = ~plan.is_tied & stages.is_decided(jnp.min(arms.lower), lead.runner_up)
        if ties == "lowest":
            decided |= plan.is_tied & is_known
        decided &= is_asked & (stage.cursor == n)
        spans = state.spans
        if spans is not None:
            center = read(state, lead.index)
            joined = join(spans, stage.found, center.lower, center.upper, kind)
            spans = jax.tree.map(lambda new, old: jnp.where(decided, new, old), joined, spans)
        stage = stages.advance(stage, lead.index, decided)

        is_opening = stage.cursor < n
        passes = stages.is_center(stage, stage.cursor)
        if spans is not None:
            first = read(state, stage.cursor)
            passes |= is_out_of_reach(spans, stages.newest(stage), first.lower, first.upper, stages.slots(stage), kind)
        asks = ~is_opening & ~is_known
        # DEVIATION: a leader that is known but not decided on ties with the runner-up. As printed it is selected for
        # ever; but bounds also tie by rounding (with float32 in one of ten runs or so), and then the runner-up has
        # still something to tell. If it has not, two distances are equal, and (8), which is strict, can never hold.
        is_stuck = ~is_opening & is_known & plan.is_tied
        coming = Plan(
            node=jnp.where(is_opening, stage.cursor, jnp.where(is_stuck, null, node)),
            slot=jnp.where(asks, slot, jnp.where(is_opening & ~passes, stages.newest(stage), stages.passing(k))),
            exact=asks & (jnp.take(row.counts, slot) == cap),
            rival=jnp.where(node == lead.index, lead.runner_up, lead.value),
            leader=lead.index,
            is_tied=~is_opening & is_known & ~plan.is_tied,
            coin=draws[width],
        )
        coming = jax.tree.map(lambda new, old: jnp.where(is_asked, new, old), coming, plan)
        return state._replace(stage=stage, spans=spans, plan=coming)

    def query_draws(chance: Chance | None, first: int, count: int) -> Array:
        """The draws of some of the coming queries (count, width + 1), the last ones to round their rewards."""
        if chance is None:
            return jnp.zeros((count, 1), dtype)
        seed = jax.random.wrap_key_data(chance.seed, impl="threefry2x32")
        steps = chance.step + jnp.arange(first, first + count, dtype=jnp.int32)
        return jax.vmap(lambda s: jax.random.uniform(jax.random.fold_in(seed, s), (width + 1,), dtype))(steps)

    def read(state: State, node: Array) -> Row:
        chance, tables = state.chance, (state.counts, state.sums, state.lower, state.upper)
        counts, sums, lower, upper = (table.at[node].get(mode="clip") for table in tables)
        successes = jnp.zeros_like(counts) if chance is None else chance.successes.at[node].get(mode="clip")
        return Row(counts, sums, successes, lower, upper)

    def arms_of(stage: Stage, spans: Spans | None, row: Row) -> Arms:
        slots = stages.slots(stage)
        lower = row.lower
        if spans is not None:
            lower = tighten(spans, lower, row.upper, slots, kind)
        closed = row.counts > (cap + stages.newest(stage) if redraw else cap)
        return Arms(row.counts, row.successes, jnp.where(slots, lower, most), slots & ~closed)

    def least_upper(stage: Stage, row: Row) -> Array:
        return jnp.min(jnp.where(stages.slots(stage), row.upper, most))

    if exact_distance is None:
        return Algorithm(init, decide, observe, idle)

    def stale(state: State) -> Array:
        return state.plan.exact

    def settle(key: Key, state: State) -> State:
        del key
        plan, centers = state.plan, state.stage.centers[:-1]
        node = jnp.where(plan.exact, plan.node, null)
        action = Pull(node, plan.slot, centers, plan.exact)
        exact = exact_distance(node, centers.at[plan.slot].get(mode="clip"))
        nothing = jnp.zeros((burst, k - 1), state.sums.dtype)
        return observe(state, action, Sample(nothing, jnp.asarray(exact, state.sums.dtype)))

    return Algorithm(init, decide, observe, idle, plan=settle, stale=stale)


def arm_bounds(
    interval: Interval, *, m: int, cap: int, scale: Scale, levels: int | None, dtype: Any
) -> Callable[[Array, Array], tuple[Array, Array]]:
    """Bounds of a distance from an arm's statistics.

    Args:
        interval: from mean and count.
        m: dimensions.
        cap: queries of an arm; with more, it has been read exactly.
        scale: "mean" or "root".
        levels: the largest value of integer points, or None.
        dtype: of the bounds.

    Returns:
        (counts int32 (...), sums (...)) -> (lower, upper), finite. They are equal for an arm that has been read; they
        are 0 and the largest finite value for one that has never been asked.
    """
    unit = 1 if levels is None else levels**2

    def bounds(counts: Array, sums: Array) -> tuple[Array, Array]:
        is_read = counts > cap
        mean = sums.astype(dtype) / jnp.where(is_read, m, jnp.maximum(counts, 1)).astype(dtype) / unit
        if scale == "root":
            mean = jnp.sqrt(mean)
        lower, upper = interval(mean, jnp.clip(counts, 1, cap))
        lower, upper = jnp.where(is_read, mean, lower), jnp.where(is_read, mean, upper)
        return jnp.where(counts > 0, lower, 0), jnp.where(counts > 0, upper, jnp.finfo(dtype).max)

    return bounds


def put(row: Row, here: Array, arm: Row) -> Row:
    """The row with an arm's values where `here` holds."""
    return jax.tree.map(lambda new, old: jnp.where(here, new, old), arm, row)


def check_sampling(n: int, m: int, k: int, *, levels: int | None, scale: Scale, dtype: Any) -> Any:
    """The dtype of a run; raises `ValueError` unless the sizes and the units of dimension sampling are in order."""
    require(m >= 1, "m", "be at least 1", m)
    require(n * m * (k - 1) < 2**31, "n", "give n m (k-1) < 2^31, half the most queries", n * m * (k - 1))
    require(levels is None or levels >= 1, "levels", "be at least 1", levels)
    if levels is not None:
        require(m * levels**2 < 2**31, "levels", "give m levels^2 < 2^31, as sums are int32", m * levels**2)
    require(scale in get_args(Scale), "scale", f"be one of {get_args(Scale)}", scale)
    if dtype is None:
        return jnp.result_type(float)
    require(jnp.issubdtype(dtype, jnp.floating), "dtype", "be a float type", dtype)
    return jnp.dtype(dtype)
