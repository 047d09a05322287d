"""Random sampling for noisy distances: the baseline that queries candidates and centers uniformly."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kcenter._problem.environment import Counts, Pull, made_for, no_counts, no_pull
from jaxbandits.kcenter._problem.problem import Distances, check_noisy, check_reward_scale
from jaxbandits.kcenter._shared import arm_statistics, stages
from jaxbandits.kcenter._shared.arm_statistics import Samples
from jaxbandits.kcenter._shared.intervals import KL, Bounds, bounds_of, check_interval
from jaxbandits.kcenter._shared.stages import Stage
from jaxbandits.numerics import blocked_argmax
from jaxbandits.numerics.blocked_argmax import Blocks
from jaxbandits.numerics.linalg import aligned


def ns_random(
    problem: Distances,
    *,
    delta: Array | float,
    noise_scale: Array | float | None = None,
    interval: KL = KL(),  # noqa: B008  it cannot be changed
    test_every: int = 1,
    first_center: Array | int | None = 0,
    dtype: Any = None,
) -> Algorithm:
    """Queries a uniformly drawn candidate against a uniformly drawn center, and stops stages as `ns_ts` does.

    Other arguments and errors: see `ns_ts`.

    Its own arguments:
        problem: the sizes and the law of the rewards, `instance.problem`.
        delta: () in (0, 1), allowed probability of error.
        test_every: queries per round, an int of at least 1. No query depends on a reward, so the law of the queries is
            the same for any number. The end of a stage is tested only after each round, at most test_every - 1 queries
            late. With 1, actions are `Pull`. With more, they are `Counts`, and the first pass of a stage is one round.

    Returns:
        Algorithm with actions `Pull` or `Counts` and answers `Centers`.

    **Guarantee**: as `ns_ts`. **Cost**: O(k^2 + n/B + B) per round with blocks of B = sqrt(n) nodes; with several
    queries per round, O(n k + k test_every).

    Source: Jali, Karamchandani and Moharir, Greedy k-center from noisy distance samples, section VIII.
    """
    check_noisy(problem)
    checks.probability("delta", delta)
    check_reward_scale(noise_scale, problem.noise)
    check_interval(interval, (KL,))
    stages.check_first_center(first_center, problem.n)
    count = checks.whole("test_every", test_every, least=1)
    dtype = checks.float_dtype("dtype", dtype)
    bounds = bounds_of(interval, problem.n, delta, noise_scale)
    sampler = RandomDistanceSampler(problem, first_center, bounds, count, dtype)
    begin = partial(init, sampler)
    if count == 1:
        return Algorithm(
            init=begin,
            decide=partial(decide_one, sampler),
            observe=partial(observe_one, sampler),
            idle=no_pull(problem),
            **made_for(problem, dtype),
        )
    return Algorithm(
        init=begin,
        decide=partial(decide_many, sampler),
        observe=partial(observe_many, sampler),
        idle=no_counts(problem),
        **made_for(problem, dtype),
    )


class RandomDistanceSampler(NamedTuple):
    """Settings of a run."""

    problem: Distances
    first_center: Array | int | None
    interval: Bounds  # (means, counts) -> (lower, upper)
    per_round: int  # queries per round
    dtype: Any


class State(NamedTuple):
    """Statistics of every arm, one row per node, and the largest upper bounds of the nodes."""

    pulls: Array  # int ()
    stage: Stage
    samples: Samples  # (n, k-1)  exact
    upper: Blocks  # n values     smallest upper bound of every candidate


def init(sampler: RandomDistanceSampler, key: Key) -> State:
    """Returns the state before the first reward."""
    return State(
        pulls=jnp.zeros((), int),
        stage=stages.begin(key, sampler.problem, sampler.first_center),
        samples=arm_statistics.empty(sampler.problem, sampler.dtype),
        upper=blocked_argmax.build(jnp.full(sampler.problem.n, jnp.finfo(sampler.dtype).max, sampler.dtype)),
    )


def decide_one(sampler: RandomDistanceSampler, key: Key, state: State) -> Decision:
    """Queries the next node of the first pass, or a random arm."""
    n, k, _ = sampler.problem
    stage = state.stage
    node, slot = stages.draw_arms(key, stage, n, ())
    is_opening, is_complete = stage.cursor < n, stages.is_complete(stage)
    passes = stages.is_center(stage, stage.cursor)
    action = Pull(
        node=jnp.where(is_complete, n, jnp.where(is_opening, stage.cursor, node)),
        slot=jnp.where(is_opening, jnp.where(passes, stages.no_slot(k), stages.newest(stage)), slot),
        centers=stage.centers[:-1],
        exact=jnp.zeros((), bool),
        problem=sampler.problem,
    )
    return Decision(action, is_complete, stages.answer(stage, blocked_argmax.leader(state.upper).index))


def decide_many(sampler: RandomDistanceSampler, key: Key, state: State) -> Decision:
    """Queries all nodes of the first pass, or random arms."""
    n, k, _ = sampler.problem
    stage, is_complete = state.stage, stages.is_complete(state.stage)
    node, slot = stages.draw_arms(key, stage, n, (sampler.per_round,))
    pulls = jnp.zeros((n, k - 1), jnp.int32).at[node, slot].add(1)
    is_newest = jnp.arange(k - 1, dtype=jnp.int32) == stages.newest(stage)
    opening = ~stages.is_center(stage, jnp.arange(n, dtype=jnp.int32))[:, None] & is_newest[None]
    pulls = jnp.where(stage.cursor < n, opening.astype(jnp.int32), pulls)
    action = Counts(jnp.where(is_complete, 0, pulls), stage.centers[:-1], sampler.problem)
    return Decision(action, is_complete, stages.answer(stage, blocked_argmax.leader(state.upper).index))


def observe_one(sampler: RandomDistanceSampler, state: State, action: Pull, reward: Array) -> State:
    """Adds one reward."""
    n, k, _ = sampler.problem
    stage, node = state.stage, action.node
    is_arm = (node < n) & (jnp.arange(k - 1, dtype=jnp.int32) == action.slot)
    arms = arm_statistics.add(arm_statistics.of_nodes(state.samples, node), is_arm.astype(jnp.int32), reward)
    _, upper = least_bounds(sampler, arms, stages.slots(stage))
    upper = jnp.where(stages.is_center(stage, node), jnp.finfo(sampler.dtype).min, upper)
    samples = arm_statistics.replace(state.samples, node, arms)
    state = state._replace(samples=samples, upper=blocked_argmax.update(state.upper, node, upper))
    return end_round(sampler, state, jnp.any(is_arm).astype(jnp.int32), jnp.where(node < n, 1, 0))


def observe_many(sampler: RandomDistanceSampler, state: State, action: Counts, sums: Array) -> State:
    """Adds the rewards of a round."""
    n, stage = sampler.problem.n, state.stage
    queries = action.pulls.sum(dtype=jnp.int32)
    samples = arm_statistics.add(state.samples, action.pulls, sums)
    _, upper = least_bounds(sampler, samples, stages.slots(stage))
    nodes = jnp.arange(n, dtype=jnp.int32)
    upper = blocked_argmax.build(jnp.where(stages.is_center(stage, nodes), jnp.finfo(sampler.dtype).min, upper))
    # The idle action must leave the initial bounds, where even the center counts as unknown.
    upper = jax.tree.map(lambda new, old: jnp.where(queries > 0, new, old), upper, state.upper)
    return end_round(sampler, state._replace(samples=samples, upper=upper), queries, jnp.where(queries > 0, n, 0))


def end_round(sampler: RandomDistanceSampler, state: State, queries: Array, passed: Array) -> State:
    """Counts the queries, and makes the leader a center where the stop test of the stage holds.

    Args:
        sampler: RandomDistanceSampler.
        state: the state with the rewards of the round.
        queries: int32 (), number of queries.
        passed: int32 (), nodes of the first pass that the round covers, read only there; 0 after the idle action.

    Returns:
        State.
    """
    n, is_round, stage = sampler.problem.n, passed > 0, state.stage
    stage = stages.step(stages.spend(stage, queries), jnp.where(stage.cursor < n, passed, 0))
    lead = blocked_argmax.leader(state.upper)
    lower, _ = least_bounds(sampler, arm_statistics.of_nodes(state.samples, lead.index), stages.slots(stage))
    decided = is_round & (stage.cursor == n) & stages.is_decided(lower, lead.runner_up)
    return state._replace(
        pulls=state.pulls + queries.astype(state.pulls.dtype),
        stage=stages.advance(stage, lead.index, decided),
    )


def least_bounds(sampler: RandomDistanceSampler, arms: Samples, slots: Array) -> tuple[Array, Array]:
    """Returns the smallest lower and the smallest upper bound of nodes (...) from their arms (..., k-1)."""
    lower, upper = sampler.interval(arm_statistics.mean(arms, sampler.dtype), jnp.maximum(arms.counts, 1))
    is_known, largest = aligned(slots, arms.counts.ndim) & (arms.counts > 0), jnp.finfo(sampler.dtype).max
    return jnp.min(jnp.where(is_known, lower, largest), axis=-1), jnp.min(jnp.where(is_known, upper, largest), axis=-1)
