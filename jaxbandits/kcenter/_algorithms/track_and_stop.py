"""Track-and-Stop: NS-TandS in batches that fill all arms up to their proportions."""

from functools import partial
from typing import Any

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kcenter._problem.environment import Counts, made_for, no_counts
from jaxbandits.kcenter._problem.problem import Distances
from jaxbandits.kcenter._shared import samples as _samples
from jaxbandits.kcenter._shared import stage as _stage
from jaxbandits.kcenter._shared import tracking
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
    """The best of its class, beyond the paper: `ns_tands` with ratio tracking, many queries a round.

    Arms that have fallen behind sqrt(T) - forced_offset n k / 2 pulls come first, then all are filled up towards their
    proportions of T + test_every, by largest remainders. The first queries of a stage are one round. The arguments that
    are not listed and the errors are those of `ns_tands`.

    Its own arguments:
        problem: the sizes and the law of the rewards, `instance.problem`.
        delta: () in (0, 1), admitted probability of error.
        test_every: queries of a round, an int of at least 1. The stop test comes after each round, so at most
            test_every - 1 queries late.

    Returns:
        Algorithm with actions `Counts` and answers `Centers`. It is stale as `ns_tands` is.

    **Guarantee**: that of `ns_tands`. **Cost**: O(n k log(n k) + k^2) a round, that is, every `test_every` queries, and
    a solution for the weights every `weights_every`. It takes 1.0 to 1.4 times sum_p T*_p rate(q) queries.

    Source: Jali, Karamchandani and Moharir, Algorithm 4, tracked by ratios (ours).
    """
    test_every = checks.whole("test_every", test_every, least=1)
    tracker = make_tracker(problem, delta, noise_scale, first_center, rate, forced_offset, weights_every, dtype)
    # A batch has room for arms that are behind and for the others, so it needs weights.
    return Algorithm(
        init=partial(tracking.init, tracker),
        decide=partial(decide, tracker, test_every),
        observe=partial(observe, tracker),
        idle=no_counts(problem),
        plan=lambda key, state: tracking.plan(tracker, state, jnp.zeros((), bool)),
        stale=lambda state: tracking.stale(tracker, state, jnp.zeros((), bool)),
        before=lambda state, _: state.samples.counts,
        **made_for(problem, tracker.dtype),
    )


def decide(tracker: Tracker, test_every: int, key: Key, state: State) -> Decision:
    """The first queries of a stage, or a batch."""
    del key
    n, k, _ = tracker.problem
    stage, arms = state.stage, tracking.arms(tracker, state.stage)
    pulls, in_all = tracking.tracked(tracker, state)
    floor = tracking.floor(tracker, in_all)
    batch = batch_pulls(state.omega, pulls, in_all, batch=test_every, floor=floor, arms=arms)
    is_newest = jnp.arange(k - 1, dtype=jnp.int32) == _stage.newest(stage)
    batch = jnp.where(stage.cursor < n, (arms & is_newest[None]).astype(jnp.int32), batch)
    is_complete = _stage.is_complete(stage)
    action = Counts(jnp.where(is_complete, 0, batch), stage.centers[:-1], tracker.problem)
    return Decision(action, is_complete, _stage.answer(stage, state.best))


def observe(tracker: Tracker, state: State, action: Counts, sums: Array) -> State:
    """Adds the rewards of a batch."""
    queries = action.pulls.sum(dtype=jnp.int32)
    samples = _samples.add(state.samples, action.pulls, sums)
    return tracking.add_samples(tracker, state, samples, queries, jnp.where(queries > 0, tracker.problem.n, 0))


def batch_pulls(omega: Array, pulls: Array, in_all: Array, *, batch: int, floor: Array, arms: Array) -> Array:
    """How a batch of queries is spread.

    First the arms below the floor are brought up to it, the one of fewest pulls first. The rest is spread in
    proportion to what the arms lack of omega (in_all + batch), and rounded by largest remainders.

    Args:
        omega: float (n, k-1), proportions, 0 outside `arms`.
        pulls: int32 (n, k-1), what they have had.
        in_all: float (), their sum.
        batch: queries to spread, a Python int.
        floor: float ().
        arms: bool (n, k-1).

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

    left = batch - forced.sum(dtype=jnp.int32)
    deficit = jnp.maximum(omega * (in_all + batch) - (pulls + forced).astype(dtype), 0)
    share = left.astype(dtype) * (deficit / jnp.maximum(deficit.sum(), jnp.finfo(dtype).tiny))
    whole = jnp.floor(share)
    spread = forced + whole.astype(jnp.int32)
    order = jnp.argsort(whole - share, stable=True)
    return spread.at[order].add((number < batch - spread.sum(dtype=jnp.int32)).astype(jnp.int32)).reshape(shape)
