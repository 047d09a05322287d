"""EB-TC: the empirical best arm against the challenger that it has beaten least clearly (Jourdan et al., 2022)."""

from jaxbandits.base import Algorithm, Array
from jaxbandits.mab._problem.problems import Problem
from jaxbandits.mab._shared.confidence import LeaderShare, StopSettings
from jaxbandits.mab._shared.frame import Estimates, argmax
from jaxbandits.mab._shared.top_two import Pair, algorithm_from_pair
from jaxbandits.mab._shared.transport import transport
from jaxbandits.numerics.thresholds import Threshold


def eb_tc(
    problem: Problem,
    *,
    delta: Array | float,
    threshold: Threshold | None = None,
    epsilon: Array | float = 0.0,
    leader_share: Array | LeaderShare = 0.5,
) -> Algorithm:
    """Pulls the arm with the best mean, or the challenger with the smallest transport cost, at random.

    It is greedy: with epsilon = 0 an unlucky start may starve the best arm, so that stopping times have heavy tails (26
    of 1000 runs on the means .5, 0, 0, 0, 0 had not stopped after 300,000 pulls). Set `epsilon`, or use `eb_tci`.

    Args:
        problem: any problem of this family.
        delta: () in (0, 1), allowed probability of error.
        threshold: one of `numerics.thresholds`. If None, `gk16`, a heuristic. `kk_pair` is proved for Gaussian arms,
            `gk_union` for Bernoulli arms, `kt` for these and bounded ones, `poisson_mixture` and `exponential_mixture`
            for others.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward; below 1 for Bernoulli arms.
        leader_share: () in (0, 1), probability of pulling the leader. Or "ids", the information-directed share, with
            which the proportions of pulls tend to the optimal ones.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean.

    Raises:
        ValueError: an argument lies outside the range above, or the threshold needs evidence that the rule lacks.

    **Guarantee**: with a proved threshold, P(the answer is not epsilon-best) <= delta. **Cost**: O(K) per
    round, and one uniform number. **Limit**: 2^31 - 1 pulls.

    Source: Jourdan, Degenne, Baudry, de Heide and Kaufmann (2022), Top two algorithms revisited; with epsilon Jourdan,
    Degenne and Kaufmann (2023), An epsilon-best-arm identification algorithm for fixed-confidence and beyond.
    """
    return algorithm_from_pair(
        problem, _pair, delta=delta, threshold=threshold, epsilon=epsilon, leader_share=leader_share
    )


def _pair(settings: StopSettings, estimates: Estimates) -> Pair:
    leader = argmax(estimates.means, estimates.lots)
    return Pair(leader, transport(settings.problem, estimates, leader, settings.epsilon))
