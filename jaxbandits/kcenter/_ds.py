"""The common core of DS-UCB and DS-TS: query the node of largest upper bound, until it is the next center.

The two differ in the interval, and in the slot of that node that they query.
"""

from functools import partial

import jax
import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kcenter import _stage
from jaxbandits.kcenter._environment import Pull, Sample, no_pull, queried_before
from jaxbandits.kcenter._sampler import Arms, Posterior, Query, Row, Sampler, State
from jaxbandits.kcenter._stage import Stage
from jaxbandits.kcenter._triangle import CenterBounds, is_out_of_reach, join, tighten, unknown
from jaxbandits.numerics import blocks


def dimension_sampler(sampler: Sampler) -> Algorithm:
    """The algorithm that queries the leader's slot of choice.

    A round is offered several samples of its arm, a leap. It takes them one by one, in order, for as long as the
    algorithm that is given one at a time would query the same arm again, and leaves the rest. Whether a sample is taken
    depends on those before it alone, so leaps change nothing in the law of a run, and with the same samples in the
    same order nothing at all.
    """
    return Algorithm(
        init=partial(init, sampler),
        decide=partial(decide, sampler),
        observe=partial(observe, sampler),
        idle=no_pull(sampler.problem),
        before=lambda state, pull: queried_before(state.counts, pull),
    )


def init(sampler: Sampler, key: Key) -> State:
    """A run without a sample."""
    n, _, k, levels = sampler.problem
    dtype, size = sampler.dtype, sampler.pick.size
    largest = jnp.finfo(dtype).max
    for_center, for_posterior = jax.random.split(key)
    counts, zero = jnp.zeros((n, k - 1), jnp.int32), jnp.zeros((), jnp.int32)
    stage = _stage.begin(for_center, sampler.problem, sampler.first_center)
    posterior = Posterior(counts, jax.random.bits(for_posterior, (2,), jnp.uint32), zero) if size > 0 else None
    return State(
        pulls=jnp.zeros((), int),
        stage=stage,
        counts=counts,
        sums=counts if levels is not None else counts.astype(dtype),
        posterior=posterior,
        lower=jnp.zeros((n, k - 1), dtype),
        upper=jnp.full((n, k - 1), largest, dtype),
        least_upper=blocks.build(jnp.full(n, largest, dtype)),
        between=None if sampler.triangle is None else unknown(k, dtype),
        query=Query(
            node=zero,
            slot=jnp.where(_stage.is_center(stage, zero), _stage.no_slot(k), _stage.newest(stage)),
            exact=jnp.zeros((), bool),
            rival=jnp.asarray(largest, dtype),
            leader=zero,
            is_tied=jnp.zeros((), bool),
            coin=uniforms(sampler, posterior, 0, 1)[0, size],
        ),
    )


def decide(sampler: Sampler, key: Key, state: State) -> Decision:
    """The query that `observe` has planned."""
    del key
    stage, query = state.stage, state.query
    is_complete = _stage.is_complete(stage)
    action = Pull(
        node=jnp.where(is_complete, sampler.problem.n, query.node),
        slot=query.slot,
        centers=stage.centers[:-1],
        exact=query.exact & ~is_complete,
        problem=sampler.problem,
    )
    return Decision(action, is_complete, _stage.answer(stage, query.leader))


def observe(sampler: Sampler, state: State, action: Pull, sample: Sample) -> State:
    """Adds the samples that are used, tests whether the stage is over, and plans the next query."""
    n, m, _, _ = sampler.problem
    stage, node = state.stage, action.node
    is_query, is_opening = node < n, stage.cursor < n
    row, used = use_samples(sampler, state, action, sample)
    queries = jnp.where(is_query & action.exact, m, used)
    smallest = jnp.finfo(sampler.dtype).min
    value = jnp.where(_stage.is_center(stage, node), smallest, least_upper_bound(sampler, stage, row))
    posterior = state.posterior
    if posterior is not None:
        successes = posterior.successes.at[node].set(row.successes, mode="drop")
        steps = jnp.maximum(used, is_query.astype(jnp.int32))
        posterior = Posterior(successes, posterior.seed, posterior.step + steps)
    state = state._replace(
        pulls=state.pulls + queries.astype(state.pulls.dtype),
        stage=_stage.step(_stage.spend(stage, queries), (is_query & is_opening).astype(jnp.int32)),
        counts=state.counts.at[node].set(row.counts, mode="drop"),
        sums=state.sums.at[node].set(row.sums, mode="drop"),
        posterior=posterior,
        lower=state.lower.at[node].set(row.lower, mode="drop"),
        upper=state.upper.at[node].set(row.upper, mode="drop"),
        least_upper=blocks.update(state.least_upper, node, value),
    )
    return next_query(sampler, state, is_query)


def use_samples(sampler: Sampler, state: State, action: Pull, sample: Sample) -> tuple[Row, Array]:
    """The node's row after the samples that are used, and their number; or after the arm has been read."""
    n, _, k, levels = sampler.problem
    stage, slot, leap, size = state.stage, action.slot, sampler.leap, sampler.pick.size
    unit = 1 if levels is None else levels**2
    old = row_of(state, action.node)
    is_arm = jnp.arange(k - 1, dtype=jnp.int32) == slot
    count, total = (jnp.take(x, slot, mode="clip") for x in (old.counts, old.sums))

    # The arm after 1, 2, .. leap samples.
    number = jnp.arange(1, leap + 1, dtype=jnp.int32)
    rewards = sample.rewards.at[:, slot].get(mode="clip")
    counts, sums = count + number, total + jnp.cumsum(rewards, dtype=rewards.dtype)
    # Of every sample but the first, whose arm is chosen already.
    numbers, successes = uniforms(sampler, state.posterior, 1, leap - 1), jnp.zeros_like(number)
    if state.posterior is not None:
        coins = jnp.concatenate([state.query.coin[None], numbers[:, size]])
        rounded = (coins < rewards.astype(sampler.dtype) / unit).astype(jnp.int32)
        successes = jnp.take(old.successes, slot, mode="clip") + jnp.cumsum(rounded, dtype=jnp.int32)
    bounds = sampler.bounds(counts, sums)
    rows = jax.vmap(lambda *arm: with_arm(old, is_arm, Row(*arm)))(counts, sums, successes, *bounds)

    def goes_on(row: Row, numbers: Array) -> Array:
        arms = arms_of(sampler, stage, state.between, row)
        leads = least_upper_bound(sampler, stage, row) > state.query.rival
        decided = _stage.is_decided(jnp.min(arms.lower), state.query.rival)
        is_picked = sampler.pick.slot(numbers[:size], arms) == slot
        return leads & ~decided & (jnp.take(row.counts, slot) < sampler.cap) & is_picked

    before_last = jax.tree.map(lambda x: x[:-1], rows)
    stops = jnp.where(jax.vmap(goes_on)(before_last, numbers), leap, number[:-1])
    used = jnp.min(stops, initial=leap)
    used = jnp.where(stage.cursor < n, 1, used)
    used = jnp.where((action.node < n) & (slot < k - 1) & (count < sampler.cap), used, 0)

    def last(values: Array, before: Array) -> Array:
        return jnp.where(used > 0, values[jnp.maximum(used - 1, 0)], before)

    is_read = (action.node < n) & action.exact
    known = sampler.cap + (stage.found if sampler.redraw else 1)
    count = jnp.where(is_read, known, last(counts, count))
    total = jnp.where(is_read, sample.exact, last(sums, total))
    successes = last(successes, jnp.take(old.successes, slot, mode="clip"))
    return with_arm(old, is_arm, Row(count, total, successes, *sampler.bounds(count, total))), used


def next_query(sampler: Sampler, state: State, is_query: Array) -> State:
    """Tests whether the stage is over, and plans the next round; nothing changes after the idle action."""
    n, _, k, _ = sampler.problem
    stage, query, size = state.stage, state.query, sampler.pick.size
    lead = blocks.leader(state.least_upper)
    # The leader, or if that is known exactly, the best of the others.
    node = jnp.where(query.is_tied & (lead.index == query.leader), lead.challenger, lead.index)
    row = row_of(state, node)
    arms = arms_of(sampler, stage, state.between, row)
    numbers = uniforms(sampler, state.posterior, 0, 1)[0]
    slot = sampler.pick.slot(numbers[:size], arms)
    # If the least lower bound is exact, so is the least upper bound: nothing more can be learned about the node.
    is_known = jnp.take(row.counts, jnp.argmin(arms.lower)) > sampler.cap

    decided = ~query.is_tied & _stage.is_decided(jnp.min(arms.lower), lead.runner_up)
    if sampler.ties == "lowest":
        decided |= query.is_tied & is_known
    decided &= is_query & (stage.cursor == n)
    between = state.between
    if between is not None and sampler.triangle is not None:
        center = row_of(state, lead.index)
        joined = join(between, stage.found, center.lower, center.upper, sampler.triangle)
        between = jax.tree.map(lambda new, old: jnp.where(decided, new, old), joined, between)
    stage = _stage.advance(stage, lead.index, decided)

    is_opening = stage.cursor < n
    passes = _stage.is_center(stage, stage.cursor)
    if between is not None and sampler.triangle is not None:
        first, slots, newest = row_of(state, stage.cursor), _stage.slots(stage), _stage.newest(stage)
        passes |= is_out_of_reach(between, newest, first.lower, first.upper, slots, sampler.triangle)
    is_useful = ~is_opening & ~is_known
    # DEVIATION: a leader that is known but not decided on ties with the runner-up. As printed it is selected until the
    # run ends; but bounds also tie by rounding (with float32 in one of ten runs or so), and then queries of the
    # runner-up still help. If they do not, two distances are equal, and (8), which is strict, can never hold.
    is_stuck = ~is_opening & is_known & query.is_tied
    opening_slot = jnp.where(is_opening & ~passes, _stage.newest(stage), _stage.no_slot(k))
    planned = Query(
        node=jnp.where(is_opening, stage.cursor, jnp.where(is_stuck, n, node)),
        slot=jnp.where(is_useful, slot, opening_slot),
        exact=is_useful & (jnp.take(row.counts, slot) == sampler.cap),
        rival=jnp.where(node == lead.index, lead.runner_up, lead.value),
        leader=lead.index,
        is_tied=~is_opening & is_known & ~query.is_tied,
        coin=numbers[size],
    )
    planned = jax.tree.map(lambda new, old: jnp.where(is_query, new, old), planned, query)
    return state._replace(stage=stage, between=between, query=planned)


def lowest(numbers: Array, arms: Arms) -> Array:
    """The slot of the least lower bound."""
    del numbers
    return jnp.argmin(arms.lower).astype(jnp.int32)


def uniforms(sampler: Sampler, posterior: Posterior | None, first: int, count: int) -> Array:
    """The random numbers of some of the next queries (count, size + 1), the last ones to round their rewards."""
    if posterior is None:
        return jnp.zeros((count, 1), sampler.dtype)
    seed, shape = jax.random.wrap_key_data(posterior.seed, impl="threefry2x32"), (sampler.pick.size + 1,)
    steps = posterior.step + jnp.arange(first, first + count, dtype=jnp.int32)
    return jax.vmap(lambda s: jax.random.uniform(jax.random.fold_in(seed, s), shape, sampler.dtype))(steps)


def row_of(state: State, node: Array) -> Row:
    """The arms of a node; those of node n have no meaning."""
    posterior, tables = state.posterior, (state.counts, state.sums, state.lower, state.upper)
    counts, sums, lower, upper = (table.at[node].get(mode="clip") for table in tables)
    successes = jnp.zeros_like(counts) if posterior is None else posterior.successes.at[node].get(mode="clip")
    return Row(counts, sums, successes, lower, upper)


def with_arm(row: Row, is_arm: Array, arm: Row) -> Row:
    """The row with an arm's values where `is_arm` holds."""
    return jax.tree.map(lambda new, old: jnp.where(is_arm, new, old), arm, row)


def arms_of(sampler: Sampler, stage: Stage, between: CenterBounds | None, row: Row) -> Arms:
    """What the slot of a node is chosen from."""
    slots, lower = _stage.slots(stage), row.lower
    if between is not None and sampler.triangle is not None:
        lower = tighten(between, lower, row.upper, slots, sampler.triangle)
    is_closed = row.counts > (sampler.cap + _stage.newest(stage) if sampler.redraw else sampler.cap)
    return Arms(row.counts, row.successes, jnp.where(slots, lower, jnp.finfo(sampler.dtype).max), slots & ~is_closed)


def least_upper_bound(sampler: Sampler, stage: Stage, row: Row) -> Array:
    """Of a node's distance from its nearest center."""
    return jnp.min(jnp.where(_stage.slots(stage), row.upper, jnp.finfo(sampler.dtype).max))
