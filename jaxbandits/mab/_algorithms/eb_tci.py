"""EB-TCI: EB-TC with a term that favours rarely pulled arms (Jourdan et al., 2022)."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._shared.confidence import LeaderShare, StopSettings
from jaxbandits.mab._shared.frame import Estimates, argmax, argmin, unfused
from jaxbandits.mab._shared.top_two import Pair, algorithm_from_pair
from jaxbandits.mab._shared.transport import transport_costs
from jaxbandits.numerics.thresholds import Threshold


def eb_tci(
    problem: Problem,
    *,
    delta: Array | float,
    threshold: Threshold | None = None,
    epsilon: Array | float = 0.0,
    leader_share: Array | LeaderShare = 0.5,
) -> Algorithm:
    """Pulls the arm with the best mean, or the challenger with the smallest W + log N, at random.

    W is the transport cost of the challenger and N its pulls. Because of the logarithm no arm starves.

    Arguments, result and errors: see `eb_tc`.

    **Guarantee**: with a proved threshold, P(the answer is not epsilon-best) <= delta. The default `gk16` is a
    heuristic. **Cost**: O(K) per round, and one uniform number. **Limit**: 2^31 - 1 pulls.

    Source: Jourdan, Degenne, Baudry, de Heide and Kaufmann (2022), Top two algorithms revisited.
    """
    return algorithm_from_pair(
        problem, _pair, delta=delta, threshold=threshold, epsilon=epsilon, leader_share=leader_share
    )


def _pair(settings: StopSettings, estimates: Estimates) -> Pair:
    leader = argmax(estimates.means, estimates.lots)
    costs = transport_costs(settings.problem, estimates, leader, settings.epsilon)
    return Pair(leader, argmin(unfused(costs + jnp.log(estimates.counts)), estimates.lots))
