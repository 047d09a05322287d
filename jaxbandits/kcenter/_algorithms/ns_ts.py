"""NS-TS: queries the node of best mean and its most promising rival, until their intervals separate."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import is_concrete, known, require
from jaxbandits.kcenter._problem.environment import PairPull, made_for
from jaxbandits.kcenter._problem.problem import Distances, check_noisy, check_reward_scale
from jaxbandits.kcenter._shared import arm_statistics, arm_table, ns_posterior, stages
from jaxbandits.kcenter._shared.arm_statistics import Samples
from jaxbandits.kcenter._shared.arm_table import ArmTable
from jaxbandits.kcenter._shared.intervals import KL, Bounds, bounds_of, check_interval
from jaxbandits.kcenter._shared.ns_posterior import Posterior, PosteriorRule
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
from jaxbandits.numerics.blocked_argmax import Blocks, Leader
from jaxbandits.numerics.indexing import select


def ns_ts(
    problem: Distances,
    *,
    delta: Array | float,
    noise_scale: Array | float | None = None,
    mix: Array | float = 0.9,
    interval: KL = KL(),  # noqa: B008  it cannot be changed
    first_center: Array | int | None = 0,
    posterior: PosteriorRule = "conjugate",
    triangle: Triangle | None = None,
    dtype: Any = None,
) -> Algorithm:
    """Queries two nodes per round: the node of largest mean, and of the others the node of largest upper bound.

    A node's mean and bounds are the smallest over its slots, the centers found so far. A stage ends with the node whose
    lower bound exceeds the upper bounds of all others. Each of the two nodes is queried against the slot of the
    smallest posterior draw with probability `mix`, otherwise against the slot of the smallest lower bound.

    Args:
        problem: the sizes and the law of the rewards, `instance.problem`.
        delta: () in (0, 1), allowed probability of error.
        noise_scale: () > 0, standard deviation of Gaussian rewards; None for Bernoulli ones.
        mix: () in [0, 1], share of the queries that use posterior draws. With 1 a stage may never end: the arms of the
            best node that are not its nearest are hardly ever drawn, and its lower bound stays low. 0 draws nothing.
        interval: `KL`, with its alpha, its k1 and its share of delta.
        first_center: () in 0..n-1. If None, it is drawn uniformly.
        posterior: rule for Gaussian distances. "conjugate" starts from the prior N(0, 1/2) and follows Bayes' rule.
            "printed" is the paper's update (17), which counts each old sample again with every new one, so that the
            precision grows like t^2; no difference has been measured for mix <= 0.9. Bernoulli distances have
            Beta(1 + s, 1 + f).
        triangle: sharpens lower bounds where d is a metric ("metric") or the square of one ("squared"). If None, not.
        dtype: dtype of the run's floats, as of the distances. If None, JAX's default.

    Returns:
        Algorithm with actions `PairPull` and answers `Centers`. It never decides between two equal best nodes: such a
        run ends by its budget of rounds.

    Raises:
        ValueError: an argument lies outside the range above, or the noise scale is missing.

    **Guarantee**: the greedy centers in their order with probability at least 1 - delta. **Cost**: O(k + n/B + B) per
    round with blocks of B = sqrt(n) nodes; O(k^2) more with the triangle inequality. About 2 log(k1 t^alpha n^2 /
    delta) T* queries per stage.

    **float32**: sums are compensated, so means stay exact up to rounding at 10^7 queries of an arm.

    Source: Jali, Karamchandani and Moharir, Greedy k-center from noisy distance samples, Algorithm 3.
    """
    check_noisy(problem)
    checks.probability("delta", delta)
    check_reward_scale(noise_scale, problem.noise)
    checks.real("mix", mix, least=0, most=1)
    check_interval(interval, (KL,))
    stages.check_first_center(first_center, problem.n)
    checks.one_of("posterior", posterior, PosteriorRule)
    is_used = posterior == "conjugate" or problem.noise == "gaussian"
    require(is_used, "posterior", "be 'conjugate' for Bernoulli noise", posterior)
    check_triangle(triangle)
    n, k, _ = problem
    duel = Duel(
        problem=problem,
        first_center=first_center,
        interval=bounds_of(interval, n, delta, noise_scale),
        noise_scale=noise_scale,
        mix=mix,
        draws=not (is_concrete(mix) and np.all(known(mix) == 0)),
        posterior=posterior,
        triangle=triangle,
        dtype=checks.float_dtype("dtype", dtype),
    )
    idle = PairPull(jnp.full(2, n, jnp.int32), jnp.zeros(2, jnp.int32), jnp.zeros(k - 1, jnp.int32), problem)
    return Algorithm(
        init=partial(init, duel),
        decide=partial(decide, duel),
        observe=partial(observe, duel),
        idle=idle,
        **made_for(problem, duel.dtype),
    )


class Duel(NamedTuple):
    """Settings of a run."""

    problem: Distances
    first_center: Array | int | None
    interval: Bounds  # (means, counts) -> (lower, upper)
    noise_scale: Array | float | None
    mix: Array | float
    draws: bool  # True if posterior draws are made at all
    posterior: PosteriorRule
    triangle: Triangle | None
    dtype: Any


class Query(NamedTuple):
    """Next query, and the answer's guess: derived."""

    node: Array  # int32 (2,)  next node of the first pass; or the best node and its rival
    guess: Array  # int32 ()   node of largest upper bound; -1 if it is a center


class Least(NamedTuple):
    """Smallest upper bound, mean and lower bound of every candidate's arms: derived."""

    upper: Blocks  # n values
    mean: Blocks  # n values
    # float (n + 1,). The last entry belongs to no node: of 100 entries, `engine.scalars` would make 100 vectors.
    lower: Array


class State(NamedTuple):
    """Statistics of every arm, one row per node, and values derived from them."""

    pulls: Array  # int ()
    stage: Stage
    arms: ArmTable  # Samples (n, k-1), exact
    least: Least
    query: Query
    posterior: Posterior | None  # None unless the posterior is "printed"
    between: CenterBounds | None  # None without the triangle inequality

    @property
    def samples(self) -> Samples:
        """Returns the samples of every arm (n, k-1)."""
        return self.arms.tree


def init(duel: Duel, key: Key) -> State:
    """Returns the state before the first reward."""
    n, k, noise = duel.problem
    stage = stages.begin(key, duel.problem, duel.first_center)
    largest = jnp.full(n + 1, jnp.finfo(duel.dtype).max, duel.dtype)
    least = Least(blocked_argmax.build(largest[:n]), blocked_argmax.build(largest[:n]), largest)
    is_printed = duel.draws and duel.posterior == "printed" and noise == "gaussian"
    return State(
        pulls=jnp.zeros((), int),
        stage=stage,
        arms=arm_table.pack(arm_statistics.empty(duel.problem, duel.dtype)),
        least=least,
        query=next_query(duel, stage, blocked_argmax.leaders(least.upper, least.mean)),
        posterior=ns_posterior.prior((n, k - 1), duel.dtype) if is_printed else None,
        between=None if duel.triangle is None else unknown(k, duel.dtype),
    )


def decide(duel: Duel, key: Key, state: State) -> Decision:
    """Queries the next node of the first pass, or the best node and its rival."""
    n, k, _ = duel.problem
    stage, query = state.stage, state.query
    is_complete = stages.is_complete(stage)
    opening_slot = jnp.where(passes(duel, state), stages.no_slot(k), stages.newest(stage))
    action = PairPull(
        node=jnp.where(is_complete, n, query.node),
        slot=jnp.where(stage.cursor < n, opening_slot, pick(duel, key, state, query.node)),
        centers=stage.centers[:-1],
        problem=duel.problem,
    )
    return Decision(action, is_complete, stages.answer(stage, query.guess))


def observe(duel: Duel, state: State, action: PairPull, rewards: Array) -> State:
    """Adds two rewards, and makes the leader a center where the stop test of the stage holds."""
    n, k, _ = duel.problem
    dtype, stage, node = duel.dtype, state.stage, action.node
    is_node, slots = node < n, stages.slots(stage)
    is_opening = is_node[0] & (stage.cursor < n)
    is_arm = is_node[:, None] & (jnp.arange(k - 1, dtype=jnp.int32)[None] == action.slot[:, None])
    is_query = jnp.any(is_arm, axis=1)
    table, arms = arm_statistics.add_to_arms(state.arms, node, action.slot, is_query.astype(jnp.int32), rewards)
    lower = jax.vmap(partial(lower_bounds, duel), (None, 0))(state, arms)
    mean, (_, upper) = arm_statistics.mean(arms, dtype), arm_bounds(duel, arms)
    is_known = slots[None] & (arms.counts > 0)
    upper, mean = (jnp.where(is_known, x, jnp.finfo(dtype).max) for x in (upper, mean))
    is_center = stages.is_center(stage, node)
    values = [jnp.where(is_center, jnp.finfo(dtype).min, jnp.min(x, axis=1)) for x in (upper, mean, lower)]
    least = Least(
        upper=blocked_argmax.update(state.least.upper, node, values[0]),
        mean=blocked_argmax.update(state.least.mean, node, values[1]),
        lower=state.least.lower.at[jnp.where(is_node, node, n + 1)].set(values[2], mode="drop"),
    )
    queries = is_query.sum(dtype=jnp.int32)
    stage = stages.step(stages.spend(stage, queries), is_opening.astype(jnp.int32))
    lead = blocked_argmax.leaders(least.upper, least.mean)
    leader = lead[0].index
    lowest = least.lower[leader]
    is_decided = is_node[0] & (stage.cursor == n) & stages.is_decided(lowest, lead[0].runner_up)
    posterior = state.posterior
    if posterior is not None:
        # The first pass does not change the posterior: Algorithm 3 updates it in line 15, not in line 7.
        is_used = is_arm & ~is_opening
        posterior = ns_posterior.printed(
            posterior, node, is_used=is_used, counts=arms.counts, mean=mean, noise_scale=duel.noise_scale
        )
    between = state.between
    if between is not None and duel.triangle is not None:
        leader_lower, leader_upper = arm_bounds(duel, arm_table.rows(table, leader).tree)
        joined = join(between, stage.found, lower=leader_lower, upper=leader_upper, kind=duel.triangle)
        between = select(is_decided, joined, between)
    stage = stages.advance(stage, leader, is_decided)
    return State(
        pulls=state.pulls + queries.astype(state.pulls.dtype),
        stage=stage,
        arms=table,
        least=least,
        query=next_query(duel, stage, lead),
        posterior=posterior,
        between=between,
    )


def next_query(duel: Duel, stage: Stage, lead: Sequence[Leader]) -> Query:
    """Returns the next node of the first pass; or the best node and, of the others, the one of largest upper bound."""
    n, no_node = duel.problem.n, jnp.asarray(duel.problem.n, jnp.int32)
    leader, best = lead[0].index, lead[1].index
    rival = jnp.where(leader == best, lead[0].challenger, leader)
    is_opening = stage.cursor < n
    node = jnp.where(is_opening, jnp.stack([stage.cursor, no_node]), jnp.stack([best, rival]))
    return Query(node, jnp.where(stages.is_center(stage, leader), -1, leader))


def passes(duel: Duel, state: State) -> Array:
    """Checks whether the first pass skips its present node: a center, or a node out of the newest slot's reach."""
    node = state.stage.cursor
    if state.between is None or duel.triangle is None:
        return stages.is_center(state.stage, node)
    lower, upper = arm_bounds(duel, arm_table.rows(state.arms, node).tree)
    slots, newest = stages.slots(state.stage), stages.newest(state.stage)
    out_of_reach = is_out_of_reach(state.between, newest, lower=lower, upper=upper, slots=slots, kind=duel.triangle)
    return stages.is_center(state.stage, node) | out_of_reach


def pick(duel: Duel, key: Key, state: State, nodes: Array) -> Array:
    """Picks the slots to query of two nodes (2,)."""
    arms = arm_table.rows(state.arms, nodes).tree
    by_bound = jnp.argmin(jax.vmap(partial(lower_bounds, duel), (None, 0))(state, arms), axis=1)
    if not duel.draws:
        return by_bound.astype(jnp.int32)
    if duel.problem.noise == "bernoulli":
        drawn, coins = ns_posterior.of_bernoulli(key, arms, duel.dtype)
    else:
        law = ns_posterior.law(state.posterior, nodes, arms, duel.noise_scale, duel.dtype)
        drawn, coins = ns_posterior.of_gaussian(key, *law)
    # An arm without a sample is out of reach by the triangle inequality: it is not the nearest.
    usable = stages.slots(state.stage)[None] & (arms.counts > 0)
    by_draw = jnp.argmin(jnp.where(usable, drawn, jnp.finfo(duel.dtype).max), axis=1)
    return jnp.where(coins < jnp.asarray(duel.mix, duel.dtype), by_draw, by_bound).astype(jnp.int32)


def arm_bounds(duel: Duel, arms: Samples) -> tuple[Array, Array]:
    """Returns the bounds of arms (..., k-1): 0 and the largest finite value for an arm without a sample."""
    lower, upper = duel.interval(arm_statistics.mean(arms, duel.dtype), jnp.maximum(arms.counts, 1))
    largest = jnp.finfo(duel.dtype).max
    return jnp.where(arms.counts > 0, lower, 0), jnp.where(arms.counts > 0, upper, largest)


def lower_bounds(duel: Duel, state: State, arms: Samples) -> Array:
    """Returns the lower bounds of one node (k-1,), sharpened by the triangle inequality; largest without a center."""
    slots = stages.slots(state.stage)
    lower, upper = arm_bounds(duel, arms)
    if state.between is not None and duel.triangle is not None:
        lower = tighten(state.between, lower=lower, upper=upper, slots=slots, kind=duel.triangle)
    return jnp.where(slots, lower, jnp.finfo(duel.dtype).max)
