"""Successive rejects: phases of equal pulls, each of which drops the worst arm (Audibert, Bubeck, Munos, 2010)."""

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array
from jaxbandits.mab._problem.problems import Problem, check_problem
from jaxbandits.mab._shared.phases import algorithm_from_schedule, successive_rejects_schedule


def successive_rejects(problem: Problem, *, horizon: Array | int, leap: int = 1) -> Algorithm:
    """Pulls every remaining arm up to n_k times in phase k, and then drops the one with the worst mean.

    n_k = ceil((T - K) / (L (K + 1 - k))) with L = 1/2 + sum_{i=2..K} 1/i, so the K - 1 phases fit the horizon T, and
    rarely spend all of it. Phases with equal n_k are merged; the merged phase drops several arms. Lots break ties of
    means.

    Args:
        problem: any problem of this family.
        horizon: T, pulls, int () > K.
        leap: largest number of pulls per round, an int >= 1. With more than 1 an action has a slot for every arm; with
            T a round is a phase. The distribution of a run is the same. A Bernoulli arm whose sampler misses is pulled
            again.

    Returns:
        Algorithm with actions `Pull` and answers int32 (), the remaining arm with the best mean. It stops after the
        last phase.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (Theorem 2): P(the answer is not the best arm) <= `successive_rejects_bound`. **Cost**: O(K^2) per
    round. **Limit**: a horizon of 2^31 - 1.

    Source: Audibert, Bubeck and Munos (2010), Best arm identification in multi-armed bandits, Figure 3.

    Example:
        The error at three horizons, in one program:

        >>> import jax
        >>> from jaxbandits import grid, mab, sweep
        >>> instance = mab.bernoulli([0.6, 0.5, 0.5, 0.4])
        >>> def build(task, key):
        ...     algorithm = mab.successive_rejects(instance.problem, horizon=task["horizon"], leap=1600)
        ...     return algorithm, mab.environment(instance, algorithm)
        >>> def error(task, outcome):
        ...     return {"error": ~mab.is_right(instance, outcome.answer)}
        >>> settings = {"key": jax.random.key(0), "metrics": error, "progress": False}
        >>> results = sweep(build, grid(horizon=[100, 400, 1600]), seeds=400, horizon="horizon", **settings)
        >>> print(results.summary()["error_mean"].round(2))
        [0.36 0.1  0.  ]
    """
    check_problem(problem)
    checks.integer("horizon", horizon, least=problem.arms + 1, most=2**31 - 1)
    leap = checks.whole("leap", leap, least=1, most=2**31 - 1)
    schedule = successive_rejects_schedule(problem.arms, horizon)
    return algorithm_from_schedule(problem, schedule, leap=leap, all_samples=True)
