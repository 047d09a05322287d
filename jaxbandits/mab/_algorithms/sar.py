"""SAR: successive accepts and rejects, the m best arms with a fixed budget (Bubeck, Wang, Viswanathan, 2013)."""

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array
from jaxbandits.mab._problem.problems import Problem, check_problem
from jaxbandits.mab._shared.asking import for_question
from jaxbandits.mab._shared.phases import algorithm_from_schedule, successive_rejects_schedule
from jaxbandits.questions import TopM


def sar(problem: Problem, *, m: int, horizon: Array | int, leap: int = 1) -> Algorithm:
    """Pulls every remaining arm up to n_k times in phase k, and then accepts or rejects the clearest one.

    With the n_k of `successive_rejects`, which it is for m = 1. While l arms are sought, the l best of the remaining
    arms lead the best arm behind them by their gaps, and the others trail the worst of the l by theirs. The arm with
    the largest gap is accepted or rejected. Ties of means go to the lowest index.

    Args:
        problem: any problem of this family.
        m: number of arms that are sought, an int >= 1, below the number of arms.
        horizon: T, pulls, int () > K.
        leap: largest number of pulls per round, as in `successive_rejects`.

    Returns:
        Algorithm with actions `Pull` and answers bool (K,), true for m arms: the accepted ones, and the best of
        the remaining ones. It stops after the last phase.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (the paper's for the m best arms, rewards in [0, 1]): P(`is_right` of `TopM(m)` fails) <= 2 K^2
    exp(-(T - K) / (8 L H)) with L = 1/2 + sum_{i=2..K} 1/i and H = max_i i / gap_i^2, where gap_i is the i-th smallest
    distance of a mean from the other side. **Cost**: O(K^2) per round. **Limit**: a horizon of 2^31 - 1.

    Source: Bubeck, Wang and Viswanathan (2013), Multiple identifications in multi-armed bandits, Figure 1.

    Example:
        >>> import jax
        >>> from jaxbandits import mab, run
        >>> instance = mab.bernoulli([0.2, 0.8, 0.3, 0.7])
        >>> algorithm = mab.sar(instance.problem, m=2, horizon=400, leap=400)
        >>> outcome = run(jax.random.key(0), algorithm, mab.environment(instance, algorithm), max_rounds=10)
        >>> print(outcome.answer)
        [False  True False  True]
    """
    check_problem(problem)
    m = checks.whole("m", m, least=1, most=problem.arms - 1)
    checks.integer("horizon", horizon, least=problem.arms + 1, most=2**31 - 1)
    leap = checks.whole("leap", leap, least=1, most=2**31 - 1)
    schedule = successive_rejects_schedule(problem.arms, horizon)
    algorithm = algorithm_from_schedule(problem, schedule, leap=leap, all_samples=True, places=m, accepts=True)
    return for_question(algorithm, problem, TopM(m))
