"""Sequential halving that ends with the m best arms."""

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array
from jaxbandits.mab._problem.problems import Problem, check_problem
from jaxbandits.mab._shared.asking import for_question
from jaxbandits.mab._shared.phases import algorithm_from_schedule, halved, sequential_halving_schedule
from jaxbandits.questions import TopM


def sh_top_m(problem: Problem, *, m: int, horizon: Array | int, reuse: bool = False, leap: int = 1) -> Algorithm:
    """Pulls all remaining arms equally in each of P phases, and then keeps the better half, until m arms remain.

    A phase with S arms keeps max(m, ceil(S / 2)) and gives each floor(T / (S P)) pulls before. For m = 1 this is
    `sequential_halving`, except that ties of means go to the lowest index. It never accepts an arm before the end, and
    errs more often than `sar`.

    Args:
        problem: any problem of this family.
        m: number of arms that are sought, an int >= 1, below the number of arms.
        horizon: T, pulls, int () >= K P.
        reuse: whether all samples of an arm count, or only the phase's own. Reuse errs less.
        leap: largest number of pulls per round, as in `successive_rejects`.

    Returns:
        Algorithm with actions `Pull` and answers bool (K,), true for m arms. It stops after the last phase.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee**: none is proved for m > 1. **Cost**: O(K^2) per round. **Limit**: a horizon of 2^31 - 1.

    Source: Karnin, Koren and Somekh (2013), Almost optimal exploration in multi-armed bandits, Algorithm 2, for m = 1;
    the stop at m arms is ours.

    Example:
        >>> import jax
        >>> from jaxbandits import mab, run
        >>> instance = mab.bernoulli([0.2, 0.8, 0.3, 0.7])
        >>> algorithm = mab.sh_top_m(instance.problem, m=2, horizon=400, leap=400)
        >>> outcome = run(jax.random.key(0), algorithm, mab.environment(instance, algorithm), max_rounds=10)
        >>> print(outcome.answer)
        [False  True False  True]
    """
    check_problem(problem)
    K = problem.arms
    m = checks.whole("m", m, least=1, most=K - 1)
    checks.integer("horizon", horizon, least=K * (len(halved(K, m)) - 1), most=2**31 - 1)
    checks.flag("reuse", reuse)
    leap = checks.whole("leap", leap, least=1, most=2**31 - 1)
    schedule = sequential_halving_schedule(K, horizon, m)
    algorithm = algorithm_from_schedule(problem, schedule, leap=leap, all_samples=bool(reuse), places=m)
    return for_question(algorithm, problem, TopM(m))
