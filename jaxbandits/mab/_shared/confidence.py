"""Settings of the rules of fixed confidence, their two stopping tests, and the leader's share."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.mab._problem.laws.pooled import Sample
from jaxbandits.mab._problem.problems import Problem, bounds, check_problem, float_dtype, law_of
from jaxbandits.mab._shared.frame import Estimates, State, argmax
from jaxbandits.mab._shared.transport import transport_costs
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.indexing import entry, is_entry
from jaxbandits.numerics.thresholds import Evidence, Threshold

LeaderShare = float | Literal["ids"]


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
    sums = jax.ShapeDtypeStruct((compared,), dtype) if compared and law_of(problem).has_mixture else None
    pulls = jax.ShapeDtypeStruct((), jnp.int32)
    law = type(problem).__name__
    try:
        made = jax.eval_shape(
            lambda delta, pulls, counts, sums: threshold(delta, Evidence(pulls, counts, sums=sums, law=law)),
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


def has_separated(settings: StopSettings, state: State, estimates: Estimates) -> Array:
    """True if the best mean exceeds every other one by more than the threshold of the two, bool ().

    With epsilon, true if no arm can be better by epsilon.
    """
    best = argmax(estimates.means, estimates.lots)
    costs = transport_costs(settings.problem, estimates, best, settings.epsilon)
    count = entry(state.counts, best)
    law = type(settings.problem).__name__
    # Sums are for the thresholds of laws whose likelihood ratio depends on them.
    rewards = estimates.counts * estimates.means if law_of(settings.problem).has_mixture else None
    of_best = None if rewards is None else entry(rewards, best)

    def threshold(other: Array, reward: Array | None) -> Array:
        sums = None if of_best is None or reward is None else jnp.stack([of_best, reward])
        evidence = Evidence(state.pulls, jnp.stack([count, other]), sums=sums, law=law)
        return settings.threshold(settings.delta, evidence)

    # A threshold that reads no counts gives one number for all arms, and the compiler sees that.
    return jnp.all(costs > jax.vmap(threshold)(state.counts, rewards))


def level(settings: StopSettings, state: State) -> Array:
    """Returns the threshold of intervals, which reads no counts, float ()."""
    return settings.threshold(settings.delta, Evidence(state.pulls))


def intervals(settings: StopSettings, state: State, estimates: Estimates) -> tuple[Array, Array]:
    """Returns upper and lower bounds of all means, float (K,) each."""
    return bounds(settings.problem, estimates.means, level(settings, state) / estimates.counts)


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
    of_leader, of_challenger = (
        Sample(entry(estimates.counts, arm), entry(estimates.means, arm)) for arm in (leader, challenger)
    )
    return law_of(problem).share(problem, of_leader, of_challenger)


def argmax_except(leader: Array, x: Array, lots: Array | tuple[()]) -> Array:
    """Returns the index of the largest entry except the leader's, int32 (); ties as in `argmax` with these lots."""
    return argmax(jnp.where(is_entry(leader, x), -jnp.inf, x), lots)
