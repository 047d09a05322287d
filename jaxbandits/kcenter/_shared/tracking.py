"""Frame of NS-TandS and its batched form: evidence, the stop test of a stage, and the proportions to be tracked.

Each round, the stop test checks only a few nodes, the witnesses, whose evidence was smallest when all nodes were
last checked. While the evidence of one of them does not exceed the exploration rate, the stage continues. Once it does
for all, the state is stale, and `plan` checks all nodes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array, Key, PyTree
from jaxbandits.checks import require
from jaxbandits.kcenter._problem.problem import Distances, check_noisy
from jaxbandits.kcenter._shared import arm_statistics, stages
from jaxbandits.kcenter._shared.arm_statistics import Samples
from jaxbandits.kcenter._shared.stages import Stage
from jaxbandits.kcenter._shared.thresholds import Rate, exploration_rate
from jaxbandits.kcenter._shared.weights import omega_mirror, omega_newton
from jaxbandits.numerics import loops
from jaxbandits.numerics.indexing import first_true, select
from jaxbandits.numerics.kl import bernoulli_kl
from jaxbandits.numerics.linalg import aligned

Reset = Literal["stage", "printed"]
Evidence = Callable[[Array, Array, Array, Array], Array]  # (mean, count, mean, count) -> Z, signed

UNSOLVED = -1
# A single witness makes lanes wait for each other's checks: at k = 5 ratio tracking runs at .8 of the rate.
WITNESSES = 4


class Tracker(NamedTuple):
    """Settings of a run."""

    problem: Distances
    first_center: Array | int | None
    evidence: Evidence
    threshold: Callable[[Array, Array, Array, Array], Array]  # an `exploration_rate`
    solve: Callable[[Array, Array, Array], Array]  # (means, slots, candidates) -> proportions
    reset: Reset
    forced_offset: Array | float
    weights_every: Array | int
    dtype: Any


class State(NamedTuple):
    """Statistics of every arm, and the proportions that are tracked."""

    pulls: Array  # int ()
    stage: Stage
    samples: Samples  # (n, k-1)    exact
    base: Array  # int32 (n, k-1)   counts at the start of the stage, which the tracking leaves out
    best: Array  # int32 ()         node of largest mean
    witnesses: Array  # int32 (w,)  nodes that had the smallest Z when all were checked last
    is_refuted: Array  # bool ()    no witness keeps the stage from ending any more
    fewest: Array  # int32 ()       arm of fewest tracked pulls, as node (k-1) + slot
    omega: Array  # float (n, k-1)  latest solution for the proportions
    solved: Array  # int ()         `pulls` at that solution; UNSOLVED before the first one of a stage


def make_tracker(
    problem: Distances,
    *,
    delta: Array | float,
    noise_scale: Array | float | None,
    first_center: Array | int | None,
    rate: Rate,
    forced_offset: Array | float,
    weights_every: Array | int,
    dtype: Any,
    reset: Reset = "stage",
    mirror_steps: int | None = None,
) -> Tracker:
    """Returns the tracker of these checked settings, as in `ns_tands`."""
    check_noisy(problem)
    checks.probability("delta", delta)
    require(noise_scale is not None or problem.noise == "bernoulli", "noise_scale", "be given for Gaussian noise", None)
    if noise_scale is not None:
        checks.positive("noise_scale", noise_scale)
    stages.check_first_center(first_center, problem.n)
    checks.one_of("reset", reset, Reset)
    checks.not_negative("forced_offset", forced_offset)
    checks.integer("weights_every", weights_every, least=1)
    if mirror_steps is not None:
        checks.whole("mirror_steps", mirror_steps, least=1)
    dtype = checks.float_dtype("dtype", dtype)
    threshold = exploration_rate(rate, problem.n, problem.k, delta=delta, dtype=dtype)
    require(noise_scale is not None or rate != "gaussian", "rate", "not be 'gaussian' with the Bernoulli Z", rate)
    evidence = bernoulli_evidence if noise_scale is None else partial(gaussian_evidence, noise_scale=noise_scale)
    solve = omega_newton if mirror_steps is None else partial(omega_mirror, steps=mirror_steps)

    def proportions(means: Array, slots: Array, taking_part: Array) -> Array:
        return solve(means, slots, taking_part, noise_scale=1.0).omega

    return Tracker(
        problem=problem,
        first_center=first_center,
        evidence=evidence,
        threshold=threshold,
        solve=proportions,
        reset=reset,
        forced_offset=forced_offset,
        weights_every=weights_every,
        dtype=dtype,
    )


def init(tracker: Tracker, key: Key) -> State:
    """Returns the state before the first reward."""
    n, k, _ = tracker.problem
    zero = jnp.zeros((), jnp.int32)
    return State(
        pulls=jnp.zeros((), int),
        stage=stages.begin(key, tracker.problem, tracker.first_center),
        samples=arm_statistics.empty(tracker.problem, tracker.dtype),
        base=jnp.zeros((n, k - 1), jnp.int32),
        best=zero,
        witnesses=jnp.zeros(min(WITNESSES, n), jnp.int32),
        is_refuted=jnp.zeros((), bool),
        fewest=zero,
        omega=jnp.zeros((n, k - 1), tracker.dtype),
        solved=jnp.full((), UNSOLVED, int),
    )


def candidates(tracker: Tracker, stage: Stage) -> Array:
    """Returns the mask of the nodes that are no centers, bool (n,)."""
    return ~stages.is_center(stage, jnp.arange(tracker.problem.n, dtype=jnp.int32))


def arms(tracker: Tracker, stage: Stage) -> Array:
    """Returns the mask of the arms of the present stage, bool (n, k-1)."""
    return candidates(tracker, stage)[:, None] & stages.slots(stage)[None]


def tracked(tracker: Tracker, state: State) -> tuple[Array, Array]:
    """Returns the pulls that the tracking counts, by arm int32 (n, k-1), and their number float ()."""
    # DEVIATION: Algorithm 4 counts as reset="printed".
    of_stage = state.stage.queries[stages.newest(state.stage)]
    in_all = of_stage if tracker.reset == "stage" else state.pulls
    return state.samples.counts - state.base, in_all.astype(tracker.dtype)


def floor(tracker: Tracker, in_all: Array) -> Array:
    """Returns the number of pulls () below which an arm is queried first."""
    n, k, _ = tracker.problem
    return jnp.sqrt(in_all) - jnp.asarray(tracker.forced_offset, tracker.dtype) * (n * k / 2)


def add_samples(tracker: Tracker, state: State, samples: Samples, queries: Array, passed: Array | int) -> State:
    """Adds the rewards of a round, and checks the witnesses.

    Args:
        tracker: Tracker.
        state: the state before the round.
        samples: the samples with the rewards of the round.
        queries: int32 (), number of queries.
        passed: int32 (), nodes of the first pass that the round covers, read only there; 0 after the idle action.

    Returns:
        State.
    """
    n, dtype = tracker.problem.n, tracker.dtype
    is_round, stage = passed > 0, state.stage
    stage = stages.step(stages.spend(stage, queries), jnp.where(stage.cursor < n, passed, 0))
    pulls = state.pulls + queries.astype(state.pulls.dtype)
    mean, slots, is_candidate = arm_statistics.mean(samples, dtype), stages.slots(stage), candidates(tracker, stage)
    largest = jnp.finfo(dtype).max
    nearest = jnp.min(jnp.where(slots[None] & (samples.counts > 0), mean, largest), axis=1)
    nearest = jnp.where(is_candidate, nearest, -largest)
    best = first_true(nearest == jnp.max(nearest))
    fewest = jnp.where(arms(tracker, stage), samples.counts - state.base, jnp.iinfo(jnp.int32).max).ravel()
    state = state._replace(
        pulls=pulls,
        stage=stage,
        samples=samples,
        best=jnp.where(is_round, best, state.best),
        fewest=jnp.where(is_round, first_true(fewest == jnp.min(fewest)), state.fewest),
    )
    # One node of small Z is enough to continue the stage, so all nodes are checked only once the witnesses are refuted.
    witnesses = state.witnesses
    holds = is_candidate[witnesses] & (witnesses != best)
    margin = margins(tracker, state, mean=mean[witnesses], count=samples.counts[witnesses], best=best, means=mean)
    is_refuted = (stage.cursor == n) & ~jnp.any(holds & (margin <= 0))
    return state._replace(is_refuted=jnp.where(is_round, is_refuted, state.is_refuted))


def is_behind(tracker: Tracker, state: State) -> Array:
    """Checks whether an arm has fallen behind the floor, bool ()."""
    pulls, in_all = tracked(tracker, state)
    return pulls.ravel()[state.fewest].astype(tracker.dtype) < floor(tracker, in_all)


def weights_are_due(tracker: Tracker, state: State, can_wait: Array) -> Array:
    """Checks whether the weights are to be computed, bool (): they are old, and `can_wait`, bool (), is false."""
    weights_every = jnp.asarray(tracker.weights_every, state.pulls.dtype)
    is_old = (state.solved == UNSOLVED) | (state.pulls - state.solved >= weights_every)
    follows = (state.stage.cursor == tracker.problem.n) & ~stages.is_complete(state.stage)
    return follows & is_old & ~can_wait


def stale(tracker: Tracker, state: State, can_wait: Array) -> Array:
    """Checks whether a check of all nodes, or a computation of the weights, is due."""
    return state.is_refuted | weights_are_due(tracker, state, can_wait)


def plan(tracker: Tracker, state: State, can_wait: Array) -> State:
    """Checks all nodes if the witnesses are refuted, which may end the stage, and computes weights that are due.

    The check does not change `can_wait`, unless it ends the stage, and then no weights are due.
    """
    state = end_stage(tracker, state)
    is_due = weights_are_due(tracker, state, can_wait)
    mean = arm_statistics.mean(state.samples, tracker.dtype)
    # In a lane where no weights are due no node takes part, so its solution takes no time.
    taking_part = candidates(tracker, state.stage) & is_due
    omega = where_any(
        is_due, lambda: tracker.solve(mean, stages.slots(state.stage), taking_part), otherwise=state.omega
    )
    return state._replace(omega=omega, solved=jnp.where(is_due, state.pulls, state.solved))


def end_stage(tracker: Tracker, state: State) -> State:
    """Checks all nodes if the witnesses are refuted: finds new ones, or makes the best node the next center."""

    def check_all() -> tuple[Array, Array]:
        mean, best = arm_statistics.mean(state.samples, tracker.dtype), state.best
        is_rival = candidates(tracker, state.stage) & (jnp.arange(tracker.problem.n, dtype=jnp.int32) != best)
        margin = margins(tracker, state, mean=mean, count=state.samples.counts, best=best, means=mean)
        margin = jnp.where(is_rival, margin, jnp.finfo(tracker.dtype).max)
        smallest, witnesses = lax.top_k(-margin, state.witnesses.size)
        return witnesses.astype(jnp.int32), smallest[0] < 0

    witnesses, decided = where_any(state.is_refuted, check_all, otherwise=(state.witnesses, jnp.zeros((), bool)))
    return state._replace(
        stage=stages.advance(state.stage, state.best, decided),
        base=state.base if tracker.reset == "printed" else jnp.where(decided, state.samples.counts, state.base),
        witnesses=witnesses,
        is_refuted=jnp.zeros((), bool),
        solved=jnp.where(decided, UNSOLVED, state.solved),
    )


def margins(tracker: Tracker, state: State, *, mean: Array, count: Array, best: Array, means: Array) -> Array:
    """Computes by how much Z of some nodes against the best one exceeds the exploration rate.

    Args:
        tracker: Tracker.
        state: State.
        mean: float (..., k-1), means of the nodes' arms.
        count: int32 (..., k-1), counts of the nodes' arms.
        best: int32 (), the best node.
        means: float (n, k-1), means of all arms.

    Returns:
        float (...).
    """
    slots, largest = stages.slots(state.stage), jnp.finfo(tracker.dtype).max
    mean_best, count_best = means[best], state.samples.counts[best]
    count = jnp.maximum(count, 1).astype(tracker.dtype)
    margin = jnp.full_like(mean, largest)
    # A loop over the slots of the best node takes a third of the time of a minimum over an axis of k - 1, on a core.
    for j in range(tracker.problem.k - 1):
        mean_j, count_j = mean_best[j], jnp.maximum(count_best[j], 1).astype(tracker.dtype)
        threshold = tracker.threshold(state.pulls, state.stage.found, count_j, count)
        ahead = tracker.evidence(mean_j, count_j, mean, count) - threshold
        margin = jnp.where(slots[j], jnp.minimum(margin, ahead), margin)
    return jnp.max(jnp.where(aligned(slots, margin.ndim), margin, -largest), axis=-1)


def gaussian_evidence(
    mean_a: Array, count_a: Array, mean_b: Array, count_b: Array, *, noise_scale: Array | float
) -> Array:
    """Returns z(a, b) = (mean_a - mean_b)^2 / (2 noise_scale^2 (1 / t_a + 1 / t_b)), signed as the difference."""
    gap = mean_a - mean_b
    # DEVIATION: kl_g is printed for unit variance, with which nothing stops at variance 0.001.
    scale = 2 * jnp.square(jnp.asarray(noise_scale, gap.dtype))
    return gap * jnp.abs(gap) / (scale / count_a + scale / count_b)


def bernoulli_evidence(mean_a: Array, count_a: Array, mean_b: Array, count_b: Array) -> Array:
    """Returns z(a, b) = t_a kl(mean_a, rho) + t_b kl(mean_b, rho), rho the mean of both, signed as the difference."""
    rho = (count_a * mean_a + count_b * mean_b) / (count_a + count_b)
    size = count_a * bernoulli_kl(mean_a, rho) + count_b * bernoulli_kl(mean_b, rho)
    return jnp.sign(mean_a - mean_b) * size


def where_any(condition: Array, compute: Callable[[], PyTree], *, otherwise: PyTree) -> PyTree:
    """Returns `compute()` where the condition holds, otherwise `otherwise`; computes nothing if it holds in no lane."""
    is_needed = loops.common(condition.astype(jnp.int32)) > 0
    computed = lax.cond(is_needed, compute, lambda: otherwise)
    return select(condition, computed, otherwise)
