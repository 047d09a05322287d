"""Settings of the rules of fixed confidence, their two stopping tests, and the leader's share."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.mab._problem.problems import (
    Bounded,
    Gaussian,
    Problem,
    bounds,
    check_problem,
    float_dtype,
    has_unknown_variances,
    law_of,
    measured_problem,
    sample_of,
)
from jaxbandits.mab._problem.questions.pairs import at_arm
from jaxbandits.mab._shared.frame import Estimates, State, argmax
from jaxbandits.mab._shared.transport import transport_costs
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.indexing import entry, is_entry
from jaxbandits.numerics.thresholds import Evidence, Threshold

LeaderShare = float | Literal["ids"]
IntervalName = Literal["bernstein"]


class StopSettings(NamedTuple):
    """Settings of a stopping test."""

    problem: Problem
    delta: Array  # float ()
    threshold: Threshold
    # float (); None if it is 0 and known before the run, so that the program leaves it out
    epsilon: Array | None


def stop_settings(
    problem: Problem,
    delta: Array | float,
    threshold: Threshold | None,
    epsilon: Array | float = 0.0,
    *,
    compared: int = 2,
) -> StopSettings:
    """Checks the settings of a stopping test, and converts them to arrays of the problem's dtype.

    Args:
        problem: kind of the rewards.
        delta: () in (0, 1).
        threshold: threshold of the test statistics. If None, `gk16`.
        epsilon: () >= 0, below 1 for Bernoulli arms.
        compared: number of arms whose counts the threshold receives, by default a leader and a challenger; 0 for none.

    Returns:
        StopSettings.

    Raises:
        ValueError: an argument is out of range, or the threshold needs evidence that this test does not provide.
    """
    check_problem(problem)
    checks.probability("delta", delta)
    checks.real("epsilon", epsilon, least=0, below=law_of(problem).width)
    threshold = thresholds.gk16(arms=problem.arms) if threshold is None else threshold
    checks.function("threshold", threshold, "delta and evidence")
    dtype = float_dtype(problem)
    is_zero = is_concrete(epsilon) and float(np.asarray(epsilon)) == 0
    settings = StopSettings(
        problem, jnp.asarray(delta, dtype), threshold, None if is_zero else jnp.asarray(epsilon, dtype)
    )
    # Only shapes are evaluated: nothing is compiled before all arguments are checked.
    counts = jax.ShapeDtypeStruct((compared,), jnp.int32) if compared else None
    sums = jax.ShapeDtypeStruct((compared,), dtype) if compared else None
    pulls = jax.ShapeDtypeStruct((), jnp.int32)
    try:
        made = jax.eval_shape(
            lambda delta, *evidence: threshold(delta, evidence_of(problem, *evidence)),
            settings.delta,
            pulls,
            counts,
            sums,
        )
    except ValueError as error:
        raise ValueError(f"threshold must accept this rule's evidence, got {error}") from error
    fits = isinstance(made, jax.ShapeDtypeStruct) and (made.shape, made.dtype) == ((), dtype)
    require(fits, "threshold", f"give a float () of dtype {dtype.name}", made)
    return settings


def evidence_of(problem: Problem, pulls: Array, counts: Array | None, sums: Array | None) -> Evidence:
    """Returns what a threshold may read of the arms that a likelihood ratio compares.

    Sums are for the thresholds of laws whose likelihood ratio depends on them.
    """
    sums = sums if law_of(problem).has_mixture else None
    cost = problem.cost if isinstance(problem, Gaussian) and has_unknown_variances(problem) else None
    return Evidence(pulls, counts, sums=sums, law=type(problem).__name__, cost=cost)


def has_separated(settings: StopSettings, state: State, estimates: Estimates) -> Array:
    """True if the best mean exceeds every other one by more than the threshold of the two, bool ().

    With epsilon, true if no arm can be better by epsilon.
    """
    best = argmax(estimates.means, estimates.lots)
    costs = transport_costs(settings.problem, estimates, best, settings.epsilon)
    count = entry(state.counts, best)
    rewards = estimates.counts * estimates.means if law_of(settings.problem).has_mixture else None
    of_best = None if rewards is None else entry(rewards, best)

    def threshold(other: Array, reward: Array | None) -> Array:
        sums = None if of_best is None or reward is None else jnp.stack([of_best, reward])
        evidence = evidence_of(settings.problem, state.pulls, jnp.stack([count, other]), sums)
        return settings.threshold(settings.delta, evidence)

    # A threshold that reads no counts gives one number for all arms, and the compiler sees that.
    return jnp.all(costs > jax.vmap(threshold)(state.counts, rewards))


def level(settings: StopSettings, state: State) -> Array:
    """Returns the threshold of intervals, which reads no counts, float ()."""
    return settings.threshold(settings.delta, Evidence(state.pulls))


def intervals(settings: StopSettings, state: State, estimates: Estimates) -> tuple[Array, Array]:
    """Returns upper and lower bounds of all means, float (K,) each."""
    return bounds(settings.problem, estimates.means, level(settings, state) / estimates.counts)


def bernstein_intervals(settings: StopSettings, state: State, estimates: Estimates) -> tuple[Array, Array]:
    """Returns upper and lower bounds of all means of rewards in [0, 1] by their empirical variances, float (K,) each.

    With e the threshold and V the unbiased variance they are mean +- (sqrt(2 V e / N) + 7 e / (3 (N - 1))), and [0, 1]
    before the second pull.

    Source: Maurer and Pontil (2009), Empirical Bernstein bounds and sample-variance penalization, theorem 4.
    """
    assert not isinstance(estimates.variances, tuple), "check_intervals"
    e = level(settings, state)
    others = jnp.maximum(estimates.counts - 1, 1)
    # The variance is divided by N, so that V / N is variance / (N - 1).
    radius = jnp.sqrt(2 * e * estimates.variances / others) + 7 * e / (3 * others)
    radius = jnp.where(estimates.counts > 1, radius, 1)
    return jnp.minimum(estimates.means + radius, 1), jnp.maximum(estimates.means - radius, 0)


def check_intervals(problem: Problem, name: Any) -> dict[str, Any]:
    """Returns the settings of a frame with these intervals; raises `ValueError` unless the rewards can have them.

    Args:
        problem: kind of the rewards.
        name: "bernstein", or None for the rule's own intervals.
    """
    if name is None:
        return {}
    checks.one_of("intervals", name, IntervalName)
    require(isinstance(problem, Bounded), "problem", 'be Bounded for intervals="bernstein"', problem)
    return {"start": 2, "keeps_squares": True}


def first_pulls(problem: Problem, start: int | None, threshold: Threshold | None) -> int:
    """Returns the number of pulls of each arm before a rule of fixed confidence applies.

    Args:
        problem: kind of the rewards.
        start: the number. If None, 1; with unknown variances 3 with `gk16` and 10 with another threshold.
        threshold: the rule's threshold; None is `gk16`.

    Raises:
        ValueError: it is below 1, or below 2 with unknown variances.
    """
    check_problem(problem)
    is_unknown = has_unknown_variances(problem)
    if start is None:
        is_heuristic = threshold is None or getattr(threshold, "__name__", "") == "gk16"
        return (3 if is_heuristic else 10) if is_unknown else 1
    start = checks.whole("start", start, least=1)
    require(start >= 2 or not is_unknown, "start", "be at least 2, since a variance needs two pulls", start)
    return start


def check_leader_share(leader_share: Any) -> None:
    """Raises `ValueError` unless the share is a number in (0, 1) or "ids"."""
    if isinstance(leader_share, str):
        checks.one_of("leader_share", leader_share, ("ids",))
    else:
        checks.probability("leader_share", leader_share)


def leader_share_at(
    problem: Problem, leader_share: Any, estimates: Estimates, leader: Array, challenger: Array
) -> Array:
    """Returns the probability of pulling the leader instead of its challenger, float ().

    "ids" is the information-directed share, `laws.pooled.directed_share`.
    """
    dtype = estimates.means.dtype
    if not isinstance(leader_share, str):
        return jnp.asarray(leader_share, dtype)
    problem = measured_problem(problem, estimates.variances)
    sample = sample_of(problem, estimates.counts, estimates.means)
    return law_of(problem).share(problem, *(at_arm(sample, arm) for arm in (leader, challenger)))


def argmax_except(leader: Array, x: Array, lots: Array | tuple[()]) -> Array:
    """Returns the index of the largest entry except the leader's, int32 (); ties as in `argmax` with these lots."""
    return argmax(jnp.where(is_entry(leader, x), -jnp.inf, x), lots)
