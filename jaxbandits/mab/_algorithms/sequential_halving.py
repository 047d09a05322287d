"""Sequential halving: phases of equal pulls, each of which drops the worse half (Karnin, Koren, Somekh, 2013)."""

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array
from jaxbandits.mab._problem.problems import Problem, check_problem
from jaxbandits.mab._shared.phases import algorithm_from_schedule, halved, sequential_halving_schedule


def sequential_halving(problem: Problem, *, horizon: Array | int, reuse: bool = False, leap: int = 1) -> Algorithm:
    """Pulls all remaining arms equally in each of ceil(log2 K) phases, and then keeps the better half.

    A phase with S arms gives each floor(T / (S ceil(log2 K))) pulls and keeps ceil(S / 2). Lots break ties of means.

    Args:
        problem: any problem of this family.
        horizon: T, pulls, int () >= K ceil(log2 K).
        reuse: whether all samples of an arm count, or only the phase's own, as in the paper. Reuse errs less.
        leap: largest number of pulls per round, as in `successive_rejects`.

    Returns:
        Algorithm with actions `Pull` and answers int32 (), the remaining arm with the best mean. It stops after the
        last phase.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (Theorem 4.1, reuse=False, rewards in [0, 1]): P(the answer is not the best arm) <= 3 log2(K)
    exp(-T / (8 H2 log2 K)). **Cost**: O(K^2) per round. **Limit**: a horizon of 2^31 - 1.

    Source: Karnin, Koren and Somekh (2013), Almost optimal exploration in multi-armed bandits, Algorithm 2.
    """
    check_problem(problem)
    K = problem.arms
    checks.integer("horizon", horizon, least=K * (len(halved(K)) - 1), most=2**31 - 1)
    checks.flag("reuse", reuse)
    leap = checks.whole("leap", leap, least=1, most=2**31 - 1)
    return algorithm_from_schedule(problem, sequential_halving_schedule(K, horizon), leap=leap, all_samples=bool(reuse))
