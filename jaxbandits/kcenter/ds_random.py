"""Random sampling of dimensions: the baseline that asks candidates and centers uniformly."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Decision, Environment, Key
from jaxbandits.checks import require
from jaxbandits.kcenter import stage as stages
from jaxbandits.kcenter.ds import Scale, arm_bounds, check_sampling
from jaxbandits.kcenter.intervals import Form, Union, sampled_interval
from jaxbandits.kcenter.problem import Pull, Sample
from jaxbandits.kcenter.stage import Stage
from jaxbandits.numerics import blocks
from jaxbandits.numerics.blocks import Blocks


class State(NamedTuple):
    """Statistics of every arm, one row a node, and the largest upper bounds of the nodes."""

    pulls: Array  # int ()
    stage: Stage
    counts: Array  # int32 (n, k-1)  queries; above the cap the arm has been read, and is known exactly
    sums: Array  # (n, k-1)          of rewards, over all m dimensions once the arm is read; int32 or float
    upper: Blocks  # n values        the least upper bound of every candidate


def ds_random(
    n: int,
    m: int,
    k: int,
    *,
    interval: Form = "lil",
    block: int = 1,
    first_center: Array | int | None = 0,
    delta: Array | float = 0.1,
    radius_scale: Array | float = 0.1,
    scale: Scale = "mean",
    union: Union | None = None,
    alpha: Array | float = 1.1,
    k1: Array | float | None = None,
    cap: int | None = None,
    levels: int | None = None,
    dtype: Any = None,
) -> Algorithm:
    """Asks a uniformly drawn candidate about a uniformly drawn center, and stops stages as `ds_ucb` does.

    A draw of an arm that is known exactly asks nothing, and costs nothing.

    Args:
        n: as in `ds_ucb`.
        m: as in `ds_ucb`.
        k: as in `ds_ucb`.
        interval: as in `ds_ucb`.
        block: draws of a round, at least 1. No draw depends on a reward, so any block gives the same law, but that a
            stage is tested for its end only after each, at most block - 1 draws late. With more than one, the leaves
            of actions and observations have a leading axis (block,), as those of `in_blocks(environment, block)`.
        first_center: as in `ds_ucb`.
        delta: as in `ds_ucb`.
        radius_scale: as in `ds_ucb`.
        scale: as in `ds_ucb`.
        union: as in `ds_ucb`.
        alpha: as in `ds_ucb`.
        k1: as in `ds_ucb`.
        cap: as in `ds_ucb`.
        levels: as in `ds_ucb`.
        dtype: as in `ds_ucb`.

    Returns:
        Algorithm with actions `Pull`, observed as `Sample`, and answers `Centers`. Equal distances end as MAX_ROUNDS.

    Raises:
        ValueError: as `ds_ucb`, or block is below 1.

    **Guarantee** and **queries**: as `ds_ucb`. **Cost**: O(k^2 + n/B + B) a round with blocks of B = sqrt(n) nodes;
    O(n + block (k + log block)) for several draws.

    Source: Jali, Karamchandani and Moharir, Greedy k-center from noisy distance samples, section VIII.
    """
    stages.check_run(n, k, first_center, delta)
    dtype = check_sampling(n, m, k, levels=levels, scale=scale, dtype=dtype)
    require(block >= 1, "block", "be at least 1", block)
    cap = m if cap is None else cap
    require(cap >= 1, "cap", "be at least 1", cap)
    form = sampled_interval(interval, n, delta=delta, union=union, radius_scale=radius_scale, alpha=alpha, k1=k1)
    bounds = arm_bounds(form, m=m, cap=cap, scale=scale, levels=levels, dtype=dtype)
    least, most = jnp.finfo(dtype).min, jnp.finfo(dtype).max
    idle = stages.no_pull(n, k)
    if block > 1:
        idle = jax.tree.map(lambda x: jnp.broadcast_to(x, (block, *x.shape)), idle)
    draws = jnp.arange(block, dtype=jnp.int32)

    def init(key: Key) -> State:
        none = jnp.zeros((n, k - 1), jnp.int32)
        return State(
            pulls=jnp.zeros((), int),
            stage=stages.begin(key, n, k, first_center),
            counts=none,
            sums=none if levels is not None else none.astype(dtype),
            upper=blocks.build(jnp.full(n, most, dtype)),
        )

    def decide(key: Key, state: State) -> Decision:
        stage = state.stage
        done, is_opening = stages.is_complete(stage), stage.cursor < n
        node, slot, rank = draw(key, stage)
        # As if the draws came one by one: those of the same arm find it further on.
        count = state.counts.at[node, slot].get(mode="clip") + rank
        first = stage.cursor + draws
        first_slot = jnp.where(stages.is_center(stage, first), stages.passing(k), stages.newest(stage))
        node = jnp.where(is_opening, first, jnp.where(count <= cap, node, n))
        action = Pull(
            node=jnp.where(done, n, jnp.minimum(node, n)),
            slot=jnp.where(is_opening, first_slot, slot),
            centers=jnp.broadcast_to(stage.centers[:-1], (block, k - 1)),
            exact=~done & ~is_opening & (count == cap),
        )
        if block == 1:
            action = jax.tree.map(lambda x: x[0], action)
        return Decision(action, done, stages.answer(stage, blocks.leader(state.upper).index))

    def draw(key: Key, stage: Stage) -> tuple[Array, Array, Array]:
        """Uniform arms (block,), in order, and how many of each come before, as nodes, slots and ranks."""
        node, slot = stages.draw_arms(key, stage, n, (block,))
        number = jnp.sort(node * (k - 1) + slot)
        is_first = jnp.concatenate([jnp.ones(1, bool), number[1:] != number[:-1]])
        rank = draws - lax.cummax(jnp.where(is_first, draws, 0))
        return number // (k - 1), number % (k - 1), rank

    def observe(state: State, action: Pull, sample: Sample) -> State:
        if block == 1:
            action, sample = jax.tree.map(lambda x: x[None], (action, sample))
        stage, node, slot = state.stage, action.node, action.slot
        is_opening, is_asked = stage.cursor < n, jnp.any(node < n)
        asks, reads = (node < n) & (slot < k - 1), (node < n) & action.exact
        rewards = jnp.take_along_axis(sample.rewards[:, 0], jnp.minimum(slot, k - 2)[:, None], axis=1)[:, 0]
        counts = state.counts.at[node, slot].add(1, mode="drop")
        sums = state.sums.at[node, slot].add(jnp.where(reads, 0, rewards), mode="drop")
        sums = sums.at[jnp.where(reads, node, n), slot].set(sample.exact, mode="drop")
        queries = jnp.sum(jnp.where(reads, m, jnp.where(asks, 1, 0)), dtype=jnp.int32)

        def least_bounds(nodes: Array) -> tuple[Array, Array]:
            lower, upper = bounds(counts.at[nodes].get(mode="clip"), sums.at[nodes].get(mode="clip"))
            slots = stages.slots(stage)
            lowers, uppers = jnp.where(slots, lower, most), jnp.where(slots, upper, most)
            return jnp.min(lowers, axis=-1), jnp.min(uppers, axis=-1)

        value = jnp.where(stages.is_center(stage, node), least, least_bounds(node)[1])
        upper = blocks.update(state.upper, node, value)
        moves = jnp.where(is_opening & is_asked, jnp.minimum(block, n - stage.cursor), 0)
        stage = stages.step(stages.spend(stage, queries), moves)
        lead = blocks.leader(upper)
        decided = stages.is_decided(least_bounds(lead.index)[0], lead.runner_up) & is_asked & (stage.cursor == n)
        return State(
            pulls=state.pulls + queries.astype(state.pulls.dtype),
            stage=stages.advance(stage, lead.index, decided),
            counts=counts,
            sums=sums,
            upper=upper,
        )

    return Algorithm(init, decide, observe, idle)


def in_blocks(environment: Environment, block: int) -> Environment:
    """Answers blocks of actions, each with noise of its own.

    Args:
        environment: for single actions.
        block: actions of a round, a Python int.

    Returns:
        Environment whose actions, noise and observations have a leading axis (block,); for 1, the one that was given.
    """
    if block == 1:
        return environment
    return Environment(
        lambda key: jax.vmap(environment.noise)(jax.random.split(key, block)), jax.vmap(environment.respond)
    )
