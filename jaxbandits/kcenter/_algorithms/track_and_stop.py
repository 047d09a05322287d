"""Track-and-Stop: NS-TandS in batches that bring all arms up to their proportions."""

from functools import partial
from typing import Any

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kcenter._problem.environment import Counts, made_for, no_counts
from jaxbandits.kcenter._problem.problem import Distances
from jaxbandits.kcenter._shared import arm_statistics, stages, tracking
from jaxbandits.kcenter._shared.thresholds import Rate
from jaxbandits.kcenter._shared.tracking import State, Tracker, make_tracker


def track_and_stop(
    problem: Distances,
    *,
    delta: Array | float,
    noise_scale: Array | float | None = None,
    first_center: Array | int | None = 0,
    rate: Rate = "loglog",
    forced_offset: Array | float = 1.0,
    weights_every: Array | int = 100,
    test_every: int = 100,
    dtype: Any = None,
) -> Algorithm:
    """Runs `ns_tands` with ratio tracking and many queries per round; beyond the paper, and the best of its class.

    Arms with fewer than sqrt(T) - forced_offset n k / 2 pulls come first. Then all arms are filled up towards their
    proportions of T + test_every, by largest remainders. The first pass of a stage is one round. Other arguments and
    errors: see `ns_tands`.

    Its own arguments:
        problem: the sizes and the law of the rewards, `instance.problem`.
        delta: () in (0, 1), allowed probability of error.
        test_every: queries per round, an int of at least 1. The stop test follows each round, at most
            test_every - 1 queries late.

    Returns:
        Algorithm with actions `Counts` and answers `Centers`. It is stale as `ns_tands` is.

    **Guarantee**: as `ns_tands`. **Cost**: O(n k log(n k) + k^2) per round of `test_every` queries, and one solution
    for the weights every `weights_every` queries. It takes 1.0 to 1.4 times sum_p T*_p rate(q) queries.

    Source: Jali, Karamchandani and Moharir, Algorithm 4, tracked by ratios (ours).
    """
    test_every = checks.whole("test_every", test_every, least=1)
    tracker = make_tracker(
        problem,
        delta=delta,
        noise_scale=noise_scale,
        first_center=first_center,
        rate=rate,
        forced_offset=forced_offset,
        weights_every=weights_every,
        dtype=dtype,
    )
    # A batch has room for arms that are behind and for the others, so its weights cannot wait.
    return Algorithm(
        init=partial(tracking.init, tracker),
        decide=partial(decide, tracker, test_every),
        observe=partial(observe, tracker),
        idle=no_counts(problem),
        plan=lambda key, state: tracking.plan(tracker, state, jnp.zeros((), bool)),
        stale=lambda state: tracking.stale(tracker, state, jnp.zeros((), bool)),
        **made_for(problem, tracker.dtype),
    )


def decide(tracker: Tracker, test_every: int, key: Key, state: State) -> Decision:
    """Queries all nodes of the first pass, or a batch of arms."""
    del key
    n, k, _ = tracker.problem
    stage, arms = state.stage, tracking.arms(tracker, state.stage)
    pulls, in_all = tracking.tracked(tracker, state)
    floor = tracking.floor(tracker, in_all)
    batch = batch_pulls(state.omega, pulls, in_all, batch=test_every, floor=floor, arms=arms)
    is_newest = jnp.arange(k - 1, dtype=jnp.int32) == stages.newest(stage)
    batch = jnp.where(stage.cursor < n, (arms & is_newest[None]).astype(jnp.int32), batch)
    is_complete = stages.is_complete(stage)
    action = Counts(jnp.where(is_complete, 0, batch), stage.centers[:-1], tracker.problem)
    return Decision(action, is_complete, stages.answer(stage, state.best))


def observe(tracker: Tracker, state: State, action: Counts, sums: Array) -> State:
    """Adds the rewards of a batch."""
    queries = action.pulls.sum(dtype=jnp.int32)
    samples = arm_statistics.add(state.samples, action.pulls, sums)
    return tracking.add_samples(tracker, state, samples, queries, jnp.where(queries > 0, tracker.problem.n, 0))


def batch_pulls(omega: Array, pulls: Array, in_all: Array, *, batch: int, floor: Array, arms: Array) -> Array:
    """Spreads a batch of queries over the arms.

    First the arms below the floor are brought up to it, starting with the fewest pulls. The other queries are spread in
    proportion to what the arms lack of omega (in_all + batch), and rounded by largest remainders.

    Args:
        omega: float (n, k-1), proportions, 0 outside `arms`.
        pulls: int32 (n, k-1), pulls so far.
        in_all: float (), sum of the pulls.
        batch: queries to spread, a Python int.
        floor: float (), pulls that every arm is to have first.
        arms: bool (n, k-1), arms of the present stage.

    Returns:
        int32 (n, k-1), at least 0, with sum `batch`; ties go to the lowest node, then slot. Cost: O(n k log(n k)).
    """
    shape, dtype = omega.shape, omega.dtype
    omega, pulls, arms = omega.ravel(), pulls.ravel(), arms.ravel()
    number = jnp.arange(omega.size, dtype=jnp.int32)

    order = jnp.argsort(jnp.where(arms, pulls, jnp.iinfo(jnp.int32).max), stable=True)
    lack = jnp.where(arms, jnp.clip(jnp.ceil(floor).astype(jnp.int32) - pulls, 0, batch), 0)[order]
    before = jnp.cumsum(lack) - lack
    forced = jnp.zeros_like(pulls).at[order].set(jnp.clip(batch - before, 0, lack))

    remaining = batch - forced.sum(dtype=jnp.int32)
    deficit = jnp.maximum(omega * (in_all + batch) - (pulls + forced).astype(dtype), 0)
    share = remaining.astype(dtype) * (deficit / jnp.maximum(deficit.sum(), jnp.finfo(dtype).tiny))
    whole = jnp.floor(share)
    spread = forced + whole.astype(jnp.int32)
    order = jnp.argsort(whole - share, stable=True)
    return spread.at[order].add((number < batch - spread.sum(dtype=jnp.int32)).astype(jnp.int32)).reshape(shape)
