"""APGAI: one arm above a level, the arm of which that is clearest (Jourdan, Delahaye-Duriez and Reda, 2026)."""

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, check_problem, measured_problem
from jaxbandits.mab._problem.questions.above import check_mean
from jaxbandits.mab._problem.questions.asked import kind_of
from jaxbandits.mab._problem.questions.good_arm import GoodArm
from jaxbandits.mab._shared.asking import algorithm_from_question, asked
from jaxbandits.mab._shared.frame import Estimates, Proposal, State
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.thresholds import Threshold


def apgai(
    problem: Problem,
    *,
    level: Array | float,
    delta: Array | float,
    threshold: Threshold | None = None,
    every: int = 1,
    start: int | None = None,
) -> Algorithm:
    """Pulls the arm with the largest N kl(mean, level) of those above the level, otherwise the smallest of all.

    N kl(mean, level) is the log likelihood ratio of the arm against a mean at the level. The pulls do not depend on
    delta or on a horizon, so the answer is of use at any time: the arm that is pulled, if its mean lies above the
    level, otherwise K. Ties go to the lowest index. `eb_tc` with `GoodArm(level)` makes the same pulls.

    Args:
        problem: any problem of this family.
        level: () in units of reward, inside the range of the means.
        delta: () in (0, 1), allowed probability of error.
        threshold: one of `numerics.thresholds`. If None, `gk16` for K comparisons, a heuristic. `box(arms=K)` is
            proved for Gaussian arms, `student(comparisons=K)` for unknown variances.
        every: pulls per decision, an int >= 1. With more than 1, a round pulls one arm `every` times after the first
            K pulls, as in `eb_tc`.
        start: pulls of each arm before the rule applies, an int >= 1, with unknown variances >= 2. If None, 1; with
            unknown variances 3 without a threshold and with `gk16`, and 10 with another threshold.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), an arm above the level, or K: there is none.

    Raises:
        ValueError: an argument lies outside the range above, or the threshold needs evidence that the rule lacks.

    **Guarantee**: with a proved threshold, P(the answer is wrong) <= delta (`is_right` of `GoodArm(level)`). Where at
    most one arm is good, mean pulls / log(1 / delta) tend to the smallest possible limit. Where several are, it may
    stay with a worse one. **Cost**: O(K) per round. **Limit**: 2^31 - 1 pulls.

    Source: Jourdan, Delahaye-Duriez and Reda (2026), An anytime algorithm for good arm identification, Algorithm 1.

    Example:
        >>> import jax
        >>> from jaxbandits import mab, run
        >>> from jaxbandits.numerics import thresholds
        >>> instance = mab.gaussian([0.5, -0.2, -0.1])
        >>> algorithm = mab.apgai(instance.problem, level=0.0, delta=0.05, threshold=thresholds.box(arms=3))
        >>> outcome = run(jax.random.key(0), algorithm, mab.environment(instance, algorithm), max_rounds=10**5)
        >>> print(outcome.answer)
        0
    """
    check_problem(problem)
    check_mean("level", level, problem)
    question = GoodArm(level)
    asked(problem, question, 0.0, every=every)
    threshold = thresholds.gk16(comparisons=problem.arms) if threshold is None else threshold

    # DEVIATION: the paper's sqrt(N) |mean - level| orders Gaussian arms alike; other laws have their own divergence.
    def pull_of(key: Key, state: State, estimates: Estimates) -> Proposal:
        del key, state
        measured = measured_problem(problem, estimates.variances)
        return Proposal(kind_of(question).nearest(question, measured, estimates.counts, estimates.means).arm)

    return algorithm_from_question(
        problem, question, pull_of, delta=delta, threshold=threshold, every=every, start=start
    )
