"""EB-TCI: EB-TC with a term that favours rarely pulled arms (Jourdan et al., 2022)."""

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, float_dtype
from jaxbandits.mab._problem.questions.asked import Question
from jaxbandits.mab._shared.asking import algorithm_from_question, asked
from jaxbandits.mab._shared.confidence import LeaderShare, StopSettings, check_leader_share
from jaxbandits.mab._shared.directed import swapped_arm
from jaxbandits.mab._shared.frame import Estimates, Proposal, State, argmax, argmin, unfused
from jaxbandits.mab._shared.top_two import Pair, algorithm_from_pair, coin
from jaxbandits.mab._shared.transport import transport_costs
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.kernels import apart
from jaxbandits.numerics.thresholds import Threshold
from jaxbandits.questions import TopM, largest

PENALTY = 0.5  # factor of the logarithm for `TopM`, as its authors' program has it


def eb_tci(
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
    """Pulls the arm with the best mean, or the challenger with the smallest W + log N, at random.

    W is the transport cost of the challenger and N its pulls. Because of the logarithm no arm starves.
    For `TopM` it pulls one of the arm i inside and the arm j outside with the smallest W + log(N_i N_j / (N_i + N_j)) /
    2. It answers no other question.

    Arguments, result and errors: see `eb_tc`.

    **Guarantee**: with a proved threshold, P(the answer is wrong) <= delta. The default `gk16` is a heuristic.
    **Cost**: O(K) per round, for `TopM` O(K^2), and one uniform number. **Limit**: 2^31 - 1 pulls.

    Source: Jourdan, Degenne, Baudry, de Heide and Kaufmann (2022), Top two algorithms revisited; `TopM` You,
    Qin, Wang and Yang (2023), Information-directed selection for top-two algorithms.
    """
    question, epsilon = asked(problem, question, epsilon, every=every, among=(TopM,))
    check_leader_share(leader_share)
    if isinstance(question, TopM):
        m, dtype = question.m, float_dtype(problem)

        def pull_of(key: Key, state: State, estimates: Estimates) -> Proposal:
            del state
            members, uniform = largest(m, estimates.means), coin(key, dtype)
            return swapped_arm(
                problem, question, estimates, members=members, share=leader_share, penalty=PENALTY, uniform=uniform
            )

        return algorithm_from_question(
            problem, question, pull_of, delta=delta, threshold=threshold, every=every, start=start
        )
    return algorithm_from_pair(
        problem,
        _pair,
        delta=delta,
        threshold=threshold,
        epsilon=epsilon,
        leader_share=leader_share,
        every=every,
        start=start,
    )


def _pair(settings: StopSettings, estimates: Estimates) -> Pair:
    leader = argmax(estimates.means, estimates.lots)
    costs = transport_costs(settings.problem, estimates, leader, settings.epsilon)
    return Pair(leader, argmin(unfused(costs + apart(log, estimates.counts)), estimates.lots))
