"""NS-TandS: tracks the optimal proportions of queries and stops by a likelihood ratio, one stage per center."""

from functools import partial
from typing import Any, Literal

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kcenter._problem.environment import Pull, made_for, no_pull
from jaxbandits.kcenter._problem.problem import Distances
from jaxbandits.kcenter._shared import arm_statistics, stages
from jaxbandits.kcenter._shared import tracking as trackers
from jaxbandits.kcenter._shared.thresholds import Rate
from jaxbandits.kcenter._shared.tracking import Reset, State, Tracker, make_tracker
from jaxbandits.numerics.indexing import first_true

Tracking = Literal["difference", "ratio"]


def ns_tands(
    problem: Distances,
    *,
    delta: Array | float,
    noise_scale: Array | float | None = None,
    first_center: Array | int | None = 0,
    rate: Rate = "loglog",
    tracking: Tracking = "difference",
    reset: Reset = "stage",
    forced_offset: Array | float = 1.0,
    weights_every: Array | int = 100,
    mirror_steps: int | None = None,
    dtype: Any = None,
) -> Algorithm:
    """Tracks the proportions of queries that would be optimal if the means were the distances.

    A node's mean is the smallest over its slots. The node h of largest mean is the next center once
    Z_v = max_i min_j z((h, j), (v, i)) exceeds the exploration rate for every other node v. Here z is the signed
    log-likelihood ratio of the two arms' order. Until then, an arm with fewer than sqrt(T) - forced_offset n k / 2
    pulls is queried, where T counts the tracked queries. If there is none, `tracking` picks the arm furthest behind its
    proportion.

    Args:
        problem: the sizes and the law of the rewards, `instance.problem`.
        delta: () in (0, 1), allowed probability of error.
        noise_scale: () > 0, standard deviation of one reward; required for Gaussian noise. With Bernoulli noise it
            selects the Gaussian z instead of the Bernoulli one; 1/2 is safe, and takes 1.1 to 3 times the queries.
        first_center: () in 0..n-1. If None, it is drawn uniformly.
        rate: as in `exploration_rate`; "gaussian" is proved.
        tracking: "difference" picks the arm of largest omega - t / T, as printed. While forced queries take a few per
            cent, it starves arms of small weight: only large weights are ever in deficit. "ratio", which is not the
            paper's, picks the arm of largest omega / t, and takes 1.5 to 7.7 times fewer queries.
        reset: if "stage", t and T count the queries of the present stage. If "printed", they count the whole run, so
            every arm that matters starts a stage in deficit: 1.2 to 2.9 times the queries with difference tracking.
        forced_offset: () >= 0, in units of n k / 2.
        weights_every: () >= 1, queries between two computations of the weights. Each stage begins with one.
        mirror_steps: steps of `omega_mirror` (appendix C), an int of at least 1, usually 1000. If None, `omega_newton`
            computes the weights.
        dtype: dtype of the run's floats, as of the distances. If None, JAX's default.

    Returns:
        Algorithm with actions `Pull` and answers `Centers`. It is stale while new weights or a check of all nodes are
        due. It never decides between two equal best nodes: such a run ends by its budget of rounds.

    Raises:
        ValueError: an argument lies outside the range above, the noise scale is missing, or the rate is "gaussian" with
            the Bernoulli z.

    **Guarantee**: the greedy centers in their order with probability at least 1 - delta if both rate and noise are
    "gaussian"; the other rates are customary. **Cost**: O(n k + k^2) per round, one solution for the weights every
    `weights_every` queries, and O(n k^2) for the rare checks of all nodes.

    **float32**: sums are compensated, so Z is as exact as the difference of two means can be.

    Source: Jali, Karamchandani and Moharir, Greedy k-center from noisy distance samples, Algorithm 4.
    """
    checks.one_of("tracking", tracking, Tracking)
    tracker = make_tracker(
        problem,
        delta=delta,
        noise_scale=noise_scale,
        first_center=first_center,
        rate=rate,
        forced_offset=forced_offset,
        weights_every=weights_every,
        dtype=dtype,
        reset=reset,
        mirror_steps=mirror_steps,
    )
    # A query of an arm that is behind needs no weights, so new ones can wait.
    return Algorithm(
        init=partial(trackers.init, tracker),
        decide=partial(decide, tracker, tracking),
        observe=partial(observe, tracker),
        idle=no_pull(problem),
        plan=lambda key, state: trackers.plan(tracker, state, trackers.is_behind(tracker, state)),
        stale=lambda state: trackers.stale(tracker, state, trackers.is_behind(tracker, state)),
        **made_for(problem, tracker.dtype),
    )


def decide(tracker: Tracker, tracking: Tracking, key: Key, state: State) -> Decision:
    """Queries the next node of the first pass, or the arm that is furthest behind."""
    del key
    n, k, _ = tracker.problem
    stage = state.stage
    is_opening, is_complete = stage.cursor < n, stages.is_complete(stage)
    passes = stages.is_center(stage, stage.cursor)
    opening_slot = jnp.where(passes, stages.no_slot(k), stages.newest(stage))
    arm = next_arm(tracker, tracking, state)
    node = jnp.where(is_opening, stage.cursor, arm // (k - 1))
    action = Pull(
        node=jnp.where(is_complete, n, node),
        slot=jnp.where(is_opening, opening_slot, arm % (k - 1)),
        centers=stage.centers[:-1],
        exact=jnp.zeros((), bool),
        problem=tracker.problem,
    )
    return Decision(action, is_complete, stages.answer(stage, state.best))


def next_arm(tracker: Tracker, tracking: Tracking, state: State) -> Array:
    """Returns the arm to query, as node (k-1) + slot."""
    pulls, in_all = trackers.tracked(tracker, state)
    if tracking == "ratio":
        lag = state.omega / (pulls.astype(tracker.dtype) + 1e-9)
    else:
        lag = state.omega - pulls.astype(tracker.dtype) / jnp.maximum(in_all, 1)
    lag = jnp.where(trackers.arms(tracker, state.stage), lag, jnp.finfo(tracker.dtype).min).ravel()
    return jnp.where(trackers.is_behind(tracker, state), state.fewest, first_true(lag == jnp.max(lag)))


def observe(tracker: Tracker, state: State, action: Pull, reward: Array) -> State:
    """Adds one reward."""
    n, k, _ = tracker.problem
    is_round = action.node < n
    is_arm = is_round & (jnp.arange(k - 1, dtype=jnp.int32) == action.slot)
    row = arm_statistics.add(arm_statistics.of_nodes(state.samples, action.node), is_arm.astype(jnp.int32), reward)
    samples = arm_statistics.replace(state.samples, action.node, row)
    queries = (is_round & (action.slot < k - 1)).astype(jnp.int32)
    return trackers.add_samples(tracker, state, samples, queries, is_round.astype(jnp.int32))
