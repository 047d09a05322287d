"""TTUCB: an optimistic leader against the challenger with the smallest transport cost (Jourdan and Degenne, 2022)."""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, float_dtype, upper_bound
from jaxbandits.mab._shared.asking import asked
from jaxbandits.mab._shared.batches import algorithm_in_batches
from jaxbandits.mab._shared.confidence import (
    LeaderShare,
    check_leader_share,
    has_separated,
    leader_share_at,
    stop_settings,
)
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, argmax, one_arm
from jaxbandits.mab._shared.top_two import Pair, shares_of
from jaxbandits.mab._shared.transport import transport
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.indexing import entry, is_entry
from jaxbandits.numerics.kernels import apart
from jaxbandits.numerics.thresholds import Threshold
from jaxbandits.questions import BestArm


class Tracking(NamedTuple):
    """Statistics of each arm over the rounds in which it was leader."""

    due: Array  # float (K,)     sum of its shares
    pulled: Array  # int32 (K,)  number of its pulls


def ttucb(
    problem: Problem,
    *,
    question: BestArm | None = None,
    delta: Array | float,
    threshold: Threshold | None = None,
    epsilon: Array | float = 0.0,
    leader_share: Array | LeaderShare = 0.5,
    exponent: Array | float = 1.2,
    slack: Array | float = 1.2,
    every: int = 1,
) -> Algorithm:
    """Pulls the arm with the best upper bound or its challenger, so that the leader's pulls track its share.

    The bound of an arm with N of t pulls is mean + noise_scale sqrt(2 exponent (1 + slack) log(t) / N), for other arms
    the largest q with N kl(mean, q) <= exponent (1 + slack) log(t). The rule is deterministic except for ties. Lots
    break ties of the bounds of Bernoulli and Poisson arms, and of challengers with a mean above the leader's, all of
    which cost 0.

    Args:
        problem: any problem of this family.
        question: `BestArm`, the only question with a published form. If None, the same.
        delta: () in (0, 1), allowed probability of error.
        threshold: one of `numerics.thresholds`. If None, `gk16`, a heuristic. `kk_pair` is proved for Gaussian arms,
            `gk_union` for Bernoulli arms, `kt` for these and bounded ones, `poisson_mixture` and `exponential_mixture`
            for others.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward; below 1 for Bernoulli arms.
        leader_share: () in (0, 1), an arm's share of the pulls in the rounds in which it is leader. Or "ids", the
            information-directed share, with which the proportions of pulls tend to the optimal ones.
        exponent: () > 0, constant of the leader's bound.
        slack: () >= 0, constant of the leader's bound.
        every: pulls per decision, an int >= 1. With more than 1 it works in batches, as `eb_tc` does.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean.

    Raises:
        ValueError: an argument lies outside the range above, or the threshold needs evidence that the rule lacks.

    **Guarantee**: with a proved threshold, P(the answer is not epsilon-best) <= delta. **Cost**: O(K) per
    round. **Limit**: 2^31 - 1 pulls.

    Source: Jourdan and Degenne (2022), Non-asymptotic analysis of a UCB-based top two algorithm, for Gaussian arms.
    """
    _, epsilon = asked(problem, question, epsilon, every=every, among=())
    settings = stop_settings(problem, delta, threshold, epsilon)
    check_leader_share(leader_share)
    checks.positive("exponent", exponent)
    checks.not_negative("slack", slack)
    dtype = float_dtype(problem)
    growth = jnp.asarray(exponent, dtype) * (1 + jnp.asarray(slack, dtype))

    def pair_of(estimates: Estimates) -> tuple[Pair, Array]:
        """Returns the pair, and the leader's share."""
        log_t = apart(log, jnp.maximum(estimates.pulls, 1).astype(dtype))
        # DEVIATION: the paper treats Gaussian arms; the kl bound of other arms is ours.
        bounds = upper_bound(problem, estimates.means, growth * log_t / estimates.counts)
        leader = argmax(bounds, estimates.lots)
        pair = Pair(leader, transport(problem, estimates, leader, settings.epsilon))
        return pair, leader_share_at(problem, leader_share, estimates, *pair)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        pair, share = pair_of(estimates)
        arm = jnp.where(_is_due(state.memory, pair.leader, share), *pair)
        action, stop = one_arm(arm), has_separated(settings, state, estimates)
        best = argmax(estimates.means, estimates.lots)
        return Choice(action, stop, best, lambda: shares_of(pair, share, problem.arms))

    def remember(state: State, estimates: Estimates) -> Tracking:
        (leader, _), share = pair_of(estimates)
        leads, is_due = is_entry(leader, estimates.means), _is_due(state.memory, leader, share)
        return Tracking(
            state.memory.due + jnp.where(leads, share, 0), state.memory.pulled + (leads & is_due).astype(jnp.int32)
        )

    start = Tracking(jnp.zeros(problem.arms, dtype), jnp.zeros(problem.arms, jnp.int32))
    # All arms with a mean above the leader's cost 0, whatever the rewards. Without lots the first of them would always
    # be the challenger.
    # Leaders are counted from the state that observes, which must be the one that pulled.
    rule = Rule(choose, start, remember)
    return algorithm_in_batches(problem, rule, every=every, draws_lots=True)._replace(needs_order=True)


def _is_due(tracking: Tracking, leader: Array, share: Array) -> Array:
    """True if the leader's pulls are at most its share, this round included, bool ()."""
    return entry(tracking.pulled, leader).astype(share.dtype) <= entry(tracking.due, leader) + share
