"""T3C: the best arm of a posterior draw against the challenger that costs least (Shang et al., 2020)."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, measured_problem, posterior_draw_and_uniforms
from jaxbandits.mab._problem.questions.asked import Question
from jaxbandits.mab._shared.asking import algorithm_from_question, asked
from jaxbandits.mab._shared.batches import algorithm_in_batches
from jaxbandits.mab._shared.confidence import (
    LeaderShare,
    check_leader_share,
    first_pulls,
    has_separated,
    leader_share_at,
    stop_settings,
)
from jaxbandits.mab._shared.directed import swapped_arm
from jaxbandits.mab._shared.frame import Choice, Estimates, Proposal, Rule, State, argmax, one_arm, unfused
from jaxbandits.mab._shared.top_two import Pair, tossed
from jaxbandits.mab._shared.transport import transport_costs
from jaxbandits.numerics.indexing import smallest
from jaxbandits.numerics.kernels import apart
from jaxbandits.numerics.thresholds import Threshold
from jaxbandits.questions import TopM, largest


def t3c(
    problem: Problem,
    *,
    question: Question | None = None,
    delta: Array | float,
    threshold: Threshold | None = None,
    epsilon: Array | float = 0.0,
    leader_share: Array | LeaderShare = 0.5,
    every: int = 1,
    start: int | None = None,
) -> Algorithm:
    """Pulls the best arm of a posterior draw, or the challenger with the smallest transport cost, at random.

    A leader that is not the best at the estimates may have several challengers of cost 0. One of them is then taken
    uniformly at random. For `TopM` it pulls one of the m best arms of the draw, or of the others, and the lowest arms
    come first among pairs of cost 0. It answers no other question.

    Arguments, result and errors: see `eb_tc`.

    **Guarantee**: with a proved threshold, P(the answer is wrong) <= delta. The default `gk16` is a heuristic.
    **Cost**: O(K) per round, for `TopM` O(K^2), with K normal numbers for Gaussian arms and 6 K uniform ones for
    Bernoulli arms, and one or two more. **Limit**: 2^31 - 1 pulls.

    Source: Shang, de Heide, Kaufmann, Menard and Valko (2020), Fixed-confidence guarantees for Bayesian best-arm
    identification; the share "ids" You, Qin, Wang and Yang (2023), Information-directed selection for top-two
    algorithms.
    """
    question, epsilon = asked(problem, question, epsilon, every=every, among=(TopM,))
    check_leader_share(leader_share)
    if isinstance(question, TopM):
        m = question.m

        def pull_of(key: Key, state: State, estimates: Estimates) -> Proposal:
            del state
            measured = measured_problem(problem, estimates.variances)
            draw, uniforms = posterior_draw_and_uniforms(
                measured, key, counts=estimates.counts, means=estimates.means, number=1
            )
            members = largest(m, unfused(draw))
            return swapped_arm(
                problem, question, estimates, members=members, share=leader_share, penalty=0, uniform=uniforms[0]
            )

        return algorithm_from_question(
            problem, question, pull_of, delta=delta, threshold=threshold, every=every, start=start
        )
    settings = stop_settings(problem, delta, threshold, epsilon)
    start = first_pulls(problem, start, threshold)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        is_directed = isinstance(leader_share, str)
        measured = measured_problem(problem, estimates.variances)
        draw, uniforms = posterior_draw_and_uniforms(
            measured, key, counts=estimates.counts, means=estimates.means, number=2 if is_directed else 1
        )
        leader = argmax(unfused(draw))
        costs = transport_costs(problem, estimates, leader, settings.epsilon)
        u = uniforms[0]
        if is_directed:
            pair = Pair(leader, uniform_argmin(costs, uniforms[1]))
            share = leader_share_at(problem, leader_share, estimates, *pair)
        else:
            share = jnp.asarray(leader_share, costs.dtype)
            # Given that the challenger is pulled, u is uniform on (share, 1): rescaled, it serves as a second number.
            pair = Pair(leader, uniform_argmin(costs, jnp.maximum(u - share, 0) / (1 - share)))
        arm, shares = tossed(pair, share, u, problem.arms)
        action, stop = one_arm(arm), has_separated(settings, state, estimates)
        return Choice(action, stop, argmax(estimates.means, estimates.lots), shares)

    return algorithm_in_batches(problem, Rule(choose), every=every, start=start)


def uniform_argmin(costs: Array, uniform: Array) -> Array:
    """Returns the index of the smallest entry; among several, one uniformly at random.

    Args:
        costs: float (K,).
        uniform: float (), in [0, 1). Of the n tied indices in order, entry floor(n uniform) is taken.

    Returns:
        int32 ().
    """
    return apart(_uniform_argmin, costs, uniform)


def _uniform_argmin(costs: Array, uniform: Array) -> Array:
    tied = costs == smallest(costs)
    number = jnp.sum(tied, dtype=jnp.int32)
    pick = jnp.minimum((number.astype(costs.dtype) * uniform).astype(jnp.int32), number - 1)
    return argmax(tied & (jnp.cumsum(tied, dtype=jnp.int32) == pick + 1))
