"""Random sampling of dimensions: the baseline that queries candidates and centers uniformly."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kcenter._problem.environment import Pull, Sample, made_for, no_pull
from jaxbandits.kcenter._problem.problem import Dimensions
from jaxbandits.kcenter._shared import stages
from jaxbandits.kcenter._shared.dimension_sampling import check_sampling
from jaxbandits.kcenter._shared.intervals import Bounds, Interval, Lil, Scale, arm_bounds, bounds_of
from jaxbandits.kcenter._shared.stages import Stage
from jaxbandits.numerics import blocked_argmax
from jaxbandits.numerics.blocked_argmax import Blocks
from jaxbandits.numerics.linalg import aligned


def ds_random(
    problem: Dimensions,
    *,
    delta: Array | float,
    interval: Interval = Lil(),  # noqa: B008  it cannot be changed
    test_every: int = 1,
    first_center: Array | int | None = 0,
    scale: Scale = "mean",
    cap: int | None = None,
    dtype: Any = None,
) -> Algorithm:
    """Queries a uniformly drawn candidate against a uniformly drawn center, and stops stages as `ds_ucb` does.

    A draw of an arm that is known exactly queries nothing and costs nothing. Other arguments and errors: see `ds_ucb`.

    Its own arguments:
        problem: the sizes, `instance.problem`.
        delta: () in (0, 1), allowed probability of error.
        test_every: draws per round, at least 1. No draw depends on a reward, so the law of the draws is the same for
            any number. The end of a stage is tested only after each round, at most test_every - 1 draws late. With more
            than one, the leaves of actions and observations have a leading axis (test_every,).

    Returns:
        Algorithm with actions `Pull`, observed as `Sample`, and answers `Centers`. Equal distances end as MAX_ROUNDS.

    **Guarantee** and **queries**: as `ds_ucb`. **Cost**: O(k^2 + n/B + B) per round with blocks of B = sqrt(n) nodes;
    O(n + t (k + log t)) for t draws.

    Source: Jali, Karamchandani and Moharir, Greedy k-center from noisy distance samples, section VIII.
    """
    cap, dtype = check_sampling(
        problem, delta=delta, interval=interval, first_center=first_center, scale=scale, cap=cap, dtype=dtype
    )
    count = checks.whole("test_every", test_every, least=1)
    bounds = arm_bounds(bounds_of(interval, problem.n, delta), problem, cap=cap, scale=scale, dtype=dtype)
    sampler = RandomDimensionSampler(
        problem=problem, first_center=first_center, bounds=bounds, cap=cap, per_round=count, dtype=dtype
    )
    idle = no_pull(problem)
    if count > 1:
        idle = jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), idle)
    return Algorithm(
        init=partial(init, sampler),
        decide=partial(decide, sampler),
        observe=partial(observe, sampler),
        idle=idle,
        **made_for(problem, dtype, leap=1),
    )


class RandomDimensionSampler(NamedTuple):
    """Settings of a run."""

    problem: Dimensions
    first_center: Array | int | None
    bounds: Bounds  # (counts, sums) -> (lower, upper)
    cap: int
    per_round: int  # draws per round
    dtype: Any


class State(NamedTuple):
    """Statistics of every arm, one row per node, and the largest upper bounds of the nodes."""

    pulls: Array  # int ()
    stage: Stage
    counts: Array  # int32 (n, k-1)  queries; above the cap, the arm has been read and is known exactly
    sums: Array  # (n, k-1)  rewards, summed over all m dimensions once the arm is read; int32 or float
    upper: Blocks  # n values  smallest upper bound of every candidate


def init(sampler: RandomDimensionSampler, key: Key) -> State:
    """Returns the state before the first sample."""
    n, _, k, levels = sampler.problem
    counts = jnp.zeros((n, k - 1), jnp.int32)
    return State(
        pulls=jnp.zeros((), int),
        stage=stages.begin(key, sampler.problem, sampler.first_center),
        counts=counts,
        sums=counts if levels is not None else counts.astype(sampler.dtype),
        upper=blocked_argmax.build(jnp.full(n, jnp.finfo(sampler.dtype).max, sampler.dtype)),
    )


def decide(sampler: RandomDimensionSampler, key: Key, state: State) -> Decision:
    """Queries the next nodes of the first pass, or random arms."""
    n, _, k, _ = sampler.problem
    stage, count, cap = state.stage, sampler.per_round, sampler.cap
    is_complete, is_opening = stages.is_complete(stage), stage.cursor < n
    node, slot, rank = draw_in_order(key, stage, n, k, count)
    # Draws count as if made one by one: a draw of an arm drawn before in this round has one more query behind it.
    queries = state.counts.at[node, slot].get(mode="clip") + rank
    first = stage.cursor + jnp.arange(count, dtype=jnp.int32)
    first_slot = jnp.where(stages.is_center(stage, first), stages.no_slot(k), stages.newest(stage))
    node = jnp.where(is_opening, first, jnp.where(queries <= cap, node, n))
    action = Pull(
        node=jnp.where(is_complete, n, jnp.minimum(node, n)),
        slot=jnp.where(is_opening, first_slot, slot),
        centers=jnp.broadcast_to(stage.centers[:-1], (count, k - 1)),
        exact=~is_complete & ~is_opening & (queries == cap),
        problem=sampler.problem,
    )
    if count == 1:
        action = jax.tree.map(lambda x: x[0], action)
    return Decision(action, is_complete, stages.answer(stage, blocked_argmax.leader(state.upper).index))


def draw_in_order(key: Key, stage: Stage, n: int, k: int, count: int) -> tuple[Array, Array, Array]:
    """Draws uniform arms (count,), sorted; returns nodes, slots and ranks among the draws of the same arm."""
    node, slot = stages.draw_arms(key, stage, n, (count,))
    number = jnp.sort(node * (k - 1) + slot)
    is_first = jnp.concatenate([jnp.ones(1, bool), number[1:] != number[:-1]])
    index = jnp.arange(count, dtype=jnp.int32)
    return number // (k - 1), number % (k - 1), index - lax.cummax(jnp.where(is_first, index, 0))


def observe(sampler: RandomDimensionSampler, state: State, action: Pull, sample: Sample) -> State:
    """Adds the rewards of a round, and checks whether the stage is over."""
    n, m, k, _ = sampler.problem
    if sampler.per_round == 1:
        action, sample = jax.tree.map(lambda x: x[None], (action, sample))
    stage, node, slot = state.stage, action.node, action.slot
    is_opening, is_round = stage.cursor < n, jnp.any(node < n)
    is_query, is_read = (node < n) & (slot < k - 1), (node < n) & action.exact
    rewards = sample.rewards[:, 0]
    counts = state.counts.at[node, slot].add(1, mode="drop")
    sums = state.sums.at[node, slot].add(jnp.where(is_read, 0, rewards), mode="drop")
    sums = sums.at[jnp.where(is_read, node, n), slot].set(sample.exact, mode="drop")
    queries = jnp.sum(jnp.where(is_read, m, jnp.where(is_query, 1, 0)), dtype=jnp.int32)

    _, least_upper = least_bounds(sampler, stage, counts, sums, node)
    value = jnp.where(stages.is_center(stage, node), jnp.finfo(sampler.dtype).min, least_upper)
    upper = blocked_argmax.update(state.upper, node, value)
    moves = jnp.where(is_opening & is_round, jnp.minimum(sampler.per_round, n - stage.cursor), 0)
    stage = stages.step(stages.spend(stage, queries), moves)
    lead = blocked_argmax.leader(upper)
    least_lower, _ = least_bounds(sampler, stage, counts, sums, lead.index)
    decided = stages.is_decided(least_lower, lead.runner_up) & is_round & (stage.cursor == n)
    return State(
        pulls=state.pulls + queries.astype(state.pulls.dtype),
        stage=stages.advance(stage, lead.index, decided),
        counts=counts,
        sums=sums,
        upper=upper,
    )


def least_bounds(
    sampler: RandomDimensionSampler, stage: Stage, counts: Array, sums: Array, nodes: Array
) -> tuple[Array, Array]:
    """Returns the smallest lower and the smallest upper bound of nodes (...), over their slots."""
    lower, upper = sampler.bounds(counts.at[nodes].get(mode="clip"), sums.at[nodes].get(mode="clip"))
    slots, largest = aligned(stages.slots(stage), lower.ndim), jnp.finfo(sampler.dtype).max
    return jnp.min(jnp.where(slots, lower, largest), axis=-1), jnp.min(jnp.where(slots, upper, largest), axis=-1)
