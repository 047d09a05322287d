"""Random sampling for noisy distances: the baseline that queries candidates and centers uniformly."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import require
from jaxbandits.kcenter import samples as seen
from jaxbandits.kcenter import stage as stages
from jaxbandits.kcenter.problem import Counts, Pull
from jaxbandits.kcenter.samples import Noise, Samples
from jaxbandits.kcenter.stage import Stage
from jaxbandits.numerics import blocks
from jaxbandits.numerics.blocks import Blocks


class State(NamedTuple):
    """Statistics of every arm, one row a node, and the largest upper bounds of the nodes."""

    pulls: Array  # int ()
    stage: Stage
    samples: Samples  # (n, k-1)  exact
    upper: Blocks  # n values     of each candidate, the least upper bound of its arms


def ns_random(
    n: int,
    k: int,
    *,
    variance: Array | float | None = None,
    noise: Noise = "gaussian",
    first_center: Array | int | None = 0,
    delta: Array | float = 0.1,
    alpha: Array | float = 1.1,
    k1: Array | float | None = None,
    block: int = 1,
    dtype: Any = None,
) -> Algorithm:
    """Queries a uniformly drawn candidate against a uniformly drawn center, and stops stages as `ns_ts` does.

    Args:
        n: as in `ns_ts`.
        k: as in `ns_ts`.
        variance: as in `ns_ts`.
        noise: as in `ns_ts`.
        first_center: as in `ns_ts`.
        delta: as in `ns_ts`.
        alpha: as in `ns_ts`.
        k1: as in `ns_ts`.
        block: queries of a round, a Python int. What is queried depends on no reward, so any block gives the same law,
            but that a stage is tested for its end only after each, at most block - 1 queries late. With 1 the actions
            are `Pull`, with more `Counts`, and then the first queries of a stage are one round.
        dtype: as in `ns_ts`.

    Returns:
        Algorithm with actions `Pull` or `Counts` and answers `Centers`.

    Raises:
        ValueError: as `ns_ts`, or `block` is below 1.

    **Guarantee**: that of `ns_ts`. **Cost**: O(k^2 + n/B + B) a round with blocks of B = sqrt(n) nodes, or, for a block
    of queries, O(n k + block k).

    Source: Jali, Karamchandani and Moharir, Greedy k-center from noisy distance samples, section VIII.
    """
    stages.check_run(n, k, first_center, delta)
    seen.check_noise(noise, variance)
    dtype = seen.check_dtype(dtype)
    require(block >= 1, "block", "be at least 1", block)
    interval = seen.confidence_interval(n, noise=noise, variance=variance, delta=delta, alpha=alpha, k1=k1)
    least, most = jnp.finfo(dtype).min, jnp.finfo(dtype).max
    null = jnp.asarray(n, jnp.int32)
    nodes, places = jnp.arange(n, dtype=jnp.int32), jnp.arange(k - 1, dtype=jnp.int32)
    no_pulls = jnp.zeros((n, k - 1), jnp.int32)
    idle = stages.no_pull(n, k) if block == 1 else Counts(no_pulls, jnp.zeros(k - 1, jnp.int32))

    def init(key: Key) -> State:
        return State(
            pulls=jnp.zeros((), int),
            stage=stages.begin(key, n, k, first_center),
            samples=seen.empty(n, k, noise, dtype),
            upper=blocks.build(jnp.full(n, most, dtype)),
        )

    def bounds(arms: Samples, slots: Array) -> tuple[Array, Array]:
        """The least bounds of nodes (...) from their arms (..., k-1)."""
        lower, upper = interval(seen.mean(arms, dtype), jnp.maximum(arms.counts, 1))
        known = slots & (arms.counts > 0)
        return jnp.min(jnp.where(known, lower, most), axis=-1), jnp.min(jnp.where(known, upper, most), axis=-1)

    def ask_one(key: Key, stage: Stage) -> Pull:
        node, slot = stages.draw_arms(key, stage, n, ())
        is_opening = stage.cursor < n
        opening_slot = jnp.where(stages.is_center(stage, stage.cursor), stages.passing(k), stages.newest(stage))
        return Pull(
            node=jnp.where(stages.is_complete(stage), null, jnp.where(is_opening, stage.cursor, node)),
            slot=jnp.where(is_opening, opening_slot, slot),
            centers=stage.centers[:-1],
            exact=jnp.zeros((), bool),
        )

    def ask_block(key: Key, stage: Stage) -> Counts:
        node, slot = stages.draw_arms(key, stage, n, (block,))
        pulls = no_pulls.at[node, slot].add(1)
        opening = ~stages.is_center(stage, nodes)[:, None] & (places == stages.newest(stage))
        pulls = jnp.where(stage.cursor < n, opening.astype(jnp.int32), pulls)
        return Counts(jnp.where(stages.is_complete(stage), 0, pulls), stage.centers[:-1])

    def decide(key: Key, state: State) -> Decision:
        stage = state.stage
        action = ask_one(key, stage) if block == 1 else ask_block(key, stage)
        guess = blocks.leader(state.upper).index
        return Decision(action, stages.is_complete(stage), stages.answer(stage, guess))

    def observe_one(state: State, action: Pull, reward: Array) -> tuple[State, Array]:
        stage, node = state.stage, action.node
        here = (node < n) & (places == action.slot)
        arms = seen.add(seen.rows(state.samples, node), here.astype(jnp.int32), reward)
        upper = jnp.where(stages.is_center(stage, node), least, bounds(arms, stages.slots(stage))[1])
        samples = seen.put(state.samples, node, arms)
        state = state._replace(samples=samples, upper=blocks.update(state.upper, node, upper))
        return state, jnp.any(here).astype(jnp.int32)

    def observe_block(state: State, action: Counts, sums: Array) -> tuple[State, Array]:
        queries = action.pulls.sum(dtype=jnp.int32)
        samples = seen.add(state.samples, action.pulls, sums)
        _, upper = bounds(samples, stages.slots(state.stage))
        upper = jnp.where(stages.is_center(state.stage, nodes), least, upper)
        # At the very start nothing is known of the center either.
        upper = jax.tree.map(lambda new, old: jnp.where(queries > 0, new, old), blocks.build(upper), state.upper)
        return state._replace(samples=samples, upper=upper), queries

    def observe(state: State, action: Pull | Counts, rewards: Array) -> State:
        if isinstance(action, Pull):
            is_asked, nodes_passed = action.node < n, 1
            state, queries = observe_one(state, action, rewards)
        else:
            is_asked, nodes_passed = jnp.any(action.pulls > 0), n
            state, queries = observe_block(state, action, rewards)
        stage = state.stage
        moves = jnp.where(is_asked & (stage.cursor < n), nodes_passed, 0)
        stage = stages.step(stages.spend(stage, queries), moves)
        lead = blocks.leader(state.upper)
        lower, _ = bounds(seen.rows(state.samples, lead.index), stages.slots(stage))
        decided = is_asked & (stage.cursor == n) & stages.is_decided(lower, lead.runner_up)
        return state._replace(
            pulls=state.pulls + queries.astype(state.pulls.dtype),
            stage=stages.advance(stage, lead.index, decided),
        )

    return Algorithm(init, decide, observe, idle)
