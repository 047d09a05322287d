"""EB-TC: the empirical best arm against the challenger that it has beaten least clearly (Jourdan et al., 2022)."""

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, float_dtype
from jaxbandits.mab._problem.questions.all_good import AllGood
from jaxbandits.mab._problem.questions.asked import Question
from jaxbandits.mab._shared.asking import algorithm_from_question, asked
from jaxbandits.mab._shared.confidence import LeaderShare, StopSettings, check_leader_share
from jaxbandits.mab._shared.directed import directed_arm, swapped_arm
from jaxbandits.mab._shared.frame import Estimates, Proposal, State, argmax
from jaxbandits.mab._shared.top_two import Pair, algorithm_from_pair, coin
from jaxbandits.mab._shared.transport import transport
from jaxbandits.numerics.thresholds import Threshold
from jaxbandits.questions import TopM, largest


def eb_tc(
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
    """Pulls the arm with the best mean, or the challenger with the smallest transport cost, at random.

    For another question it pulls an arm of the nearest alternative: for `TopM` the arm inside or the arm outside of the
    pair that is hardest to tell apart, for `Above` and `GoodArm` the one arm that is nearest to the level, for
    `AllGood` each arm with the probability of its share of the cost. Ties then go to the lowest index.

    It is greedy: with epsilon = 0 an unlucky start may starve the best arm, so that stopping times have heavy tails (26
    of 1000 runs on the means .5, 0, 0, 0, 0 had not stopped after 300,000 pulls). Set `epsilon`, or use `eb_tci`.

    Args:
        problem: any problem of this family.
        question: one of `BestArm`, `TopM`, `Above`, `GoodArm` and `AllGood`. If None, the best arm.
        delta: () in (0, 1), allowed probability of error.
        threshold: one of `numerics.thresholds`. If None, `gk16`, a heuristic. `kk_pair` is proved for Gaussian arms,
            `gk_union` for Bernoulli arms, `kt` for these and bounded ones, `poisson_mixture` and `exponential_mixture`
            for others, `student` with unknown variances. With `TopM(m)` `kk_pair`, `kt`, the mixtures and `student`
            need `comparisons` m (K - m); with `Above` and `GoodArm` `box` (Gaussian arms), `kt`, the mixtures and
            `student` need K. With `AllGood` `kk_all` is proved for Gaussian arms, and with `comparisons` 1 `kt` and the
            mixtures for others.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward; below 1 for Bernoulli arms. 0 with a
            question.
        leader_share: () in (0, 1), probability of pulling the leader, or the arm inside. Or "ids", the
            information-directed share, with which the proportions of pulls tend to the optimal ones; the only choice
            for `AllGood`. One arm, as for `Above`, needs no share.
        every: pulls per decision, an int >= 1. With more than 1, a round is a batch of `every` pulls after the first K.
            The rule looks at the rewards when a batch ends, and divides the next one by shares, without coins: each
            pull goes to the arm that is owed most. The guarantee stays, and a run needs more pulls.
        start: pulls of each arm before the rule applies, an int >= 1, with unknown variances >= 2. If None, 1; with
            unknown variances 3 with `gk16` and 10 with another threshold.

    Returns:
        Algorithm with actions `Pull` of one slot, in batches of K slots, and the answers of the question; for the best
        arm int32 (), the arm with the best mean.

    Raises:
        ValueError: an argument lies outside the range above, or the threshold needs evidence that the rule lacks.

    **Guarantee**: with a proved threshold, P(the answer is wrong) <= delta. **Cost**: O(K) per round, for
    `TopM` and `AllGood` O(K^2), and one uniform number. **Limit**: 2^31 - 1 pulls.

    Source: Jourdan, Degenne, Baudry, de Heide and Kaufmann (2022), Top two algorithms revisited; with epsilon Jourdan,
    Degenne and Kaufmann (2023), An epsilon-best-arm identification algorithm for fixed-confidence and beyond; with
    `TopM` and "ids" You, Qin, Wang and Yang (2023), Information-directed selection for top-two algorithms.
    """
    question, epsilon = asked(problem, question, epsilon, every=every)
    check_leader_share(leader_share)
    if question is not None:
        dtype = float_dtype(problem)
        if isinstance(question, AllGood):
            checks.one_of("leader_share", leader_share, ("ids",))

        def pull_of(key: Key, state: State, estimates: Estimates) -> Proposal:
            del state
            if not isinstance(question, TopM):
                return directed_arm(problem, question, estimates, coin(key, dtype))
            members = largest(question.m, estimates.means)
            return swapped_arm(
                problem, question, estimates, members=members, share=leader_share, penalty=0, uniform=coin(key, dtype)
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
    return Pair(leader, transport(settings.problem, estimates, leader, settings.epsilon))
