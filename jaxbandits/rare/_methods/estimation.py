"""Probabilities of rare events by runs on other instances, weighted by their likelihood ratios."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from jaxbandits import checks
from jaxbandits.base import Key
from jaxbandits.checks import require
from jaxbandits.engine.sweep.tasks import Build
from jaxbandits.rare._methods.making import Plan
from jaxbandits.rare._methods.models import model_of
from jaxbandits.rare._methods.results import RareResult
from jaxbandits.rare._methods.settings import LARGEST, ROUNDS, Settings, checked, require_call
from jaxbandits.rare._methods.weighing import estimated


def error_probability(
    build: Build,
    instance: Any,
    *,
    key: Key,
    max_rounds: int,
    relative_error: float = 0.1,
    most_runs: int = 100_000,
    rounds: Sequence[int] = ROUNDS,
    learnings: int = 2,
    alternatives: Any = None,
    wrong: Callable[[Any], bool] | None = None,
    given: Mapping[str, Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    **sweep_arguments: Any,
) -> RareResult:
    """Estimates the probability of a wrong answer, however small, by runs on instances on which it is likely.

    Means are drawn from a mixture of laws, a run is made on them, and is weighted by the likelihood ratio of its
    rewards. The ratio is a function of the counts and sums at the run's end, whatever the algorithm, and the estimate
    has no bias. The mixture is learnt from rounds of runs that the estimate does not use: one component for each wrong
    answer and octave of the stopping time, beside broad ones. Two learnings are joined, so that a way of being wrong
    that one of them lost is found by the other.

    The mixture serves one algorithm, instance and delta. At another delta errors happen in other ways.

    Rewards are made likely, and the coins of a rule are not. At delta = 1e-9 EB-TCI on four arms mostly errs by one
    reward 7 to 8 standard deviations too high, whose arm then leads and is left alone by all coins until the run stops.
    The more coins, the smaller a reward will do: long streaks, which few runs have, get the largest weights, and
    `trust` warns of a heavy tail.

    Args:
        build: (instance, key) -> (algorithm, environment), as for `sweep`, with an instance as the task. Called with
            other means it must make the same algorithm: a factory that is given the truth must get it from outside,
            not from its argument. The environment is the family's, with default noise, without a stream.
        instance: the truth, an Instance of `mab`, `linear`, `cpe` or `fullbandit`. Rewards are normal, Bernoulli, or
            of another exponential family; `fullbandit` only has normal ones here. The means of Bernoulli arms lie
            strictly between 0 and 1.
        key: root key of all randomness.
        max_rounds: budget of rounds of every run. Errors may come far later than typical stops, and a run that reaches
            the budget counts as no error.
        relative_error: () > 0, the requested standard error over the estimate. If there are warnings when it is
            reached that more runs may cure, the estimate goes on, for up to four times as many runs.
        most_runs: number of runs after which the estimate ends, at least 1, without the runs of the learnings.
        rounds: numbers of runs of the rounds of one learning.
        learnings: number of learnings, at least 1.
        alternatives: if None, the mixture is learnt. A `Mixture` such as `result.mixture`, or a sequence of them, is
            used as it is, without learning. An array (J, K) of means, or (J, d) of theta, is a mixture of these
            instances with equal shares.
        wrong: (answer) -> bool, for another question: an answer that is not epsilon-good, or not among the best. If
            None, an answer is wrong if it does not answer the `question` of a rule of `mab` or `linear`. Without
            one every answer that is not the best one is wrong, and the best must be unique.
        given: numbers or arrays that `build` takes by name as well, as `build(instance, key, delta=...)` takes
            {"delta": 1e-4}. They are traced: calls with other values share the compiled programs.
        store: folder for the finished runs. The same call resumes from it.
        **sweep_arguments: other arguments of `jaxbandits.sweep`: lanes, chunk, scalars, executor, shards, mesh,
            progress.

    Returns:
        RareResult. `trust` is "ok", or a tuple of warnings. `parts()` splits the estimate by answer and octave.

    Raises:
        ValueError: an argument is invalid, the rewards have no likelihood ratio here, or the first round has no wrong
            answer, so that there is nothing to learn from.
        RuntimeError: a run failed with a NaN or an invalid action.

    Cost: O(C K) on the host per run, for C components.

    Example:
        Two arms, 50 pulls of each. The exact value is Phi(-5 / 2), 0.00621.

        >>> import jax
        >>> from jaxbandits import mab, rare
        >>> def build(instance, key):
        ...     algorithm = mab.successive_rejects(instance.problem, horizon=100)
        ...     return algorithm, mab.environment(instance, algorithm)
        >>> instance, settings = mab.gaussian((0.5, 0.0)), {"max_rounds": 200, "rounds": (512, 512), "progress": False}
        >>> result = rare.error_probability(build, instance, key=jax.random.key(0), **settings)
        >>> print(abs(result.estimate - 0.00621) < 4 * result.se)
        True

    Source: Siegmund (1976), Importance sampling in the Monte Carlo study of sequential tests; Veach and Guibas (1995),
    Optimally combining sampling techniques, for the balance heuristic; Cappe, Guillin, Marin and Robert (2004),
    Population Monte Carlo. Cells, broad strata and warnings are ours.
    """
    if wrong is not None:
        checks.function("wrong", wrong, "(answer)")
    max_rounds = checks.whole("max_rounds", max_rounds, least=1, most=LARGEST)
    numbers = {"relative_error": relative_error, "most_runs": most_runs, "rounds": rounds, "learnings": learnings}
    settings = Settings(**numbers, store=store, options=sweep_arguments, given={} if given is None else given)
    event = {"max_rounds": max_rounds, "wrong": wrong}
    return _call(build, instance, key=key, alternatives=alternatives, settings=settings, **event)


def tail_probability(
    build: Build,
    instance: Any,
    *,
    pulls: int,
    key: Key,
    relative_error: float = 0.1,
    most_runs: int = 100_000,
    rounds: Sequence[int] = ROUNDS,
    learnings: int = 2,
    alternatives: Any = None,
    given: Mapping[str, Any] | None = None,
    store: str | os.PathLike[str] | None = None,
    **sweep_arguments: Any,
) -> RareResult:
    """Estimates the probability that a run has not stopped after a number of pulls, however small.

    As `error_probability`, with another event: runs are made on instances on which they are long. Late runs are told
    apart by the octave of the best arm's number of pulls, which is small if the arm was starved.

    An arm that was starved may recover, and the run be late nevertheless: then its first rewards are low, and all
    others as they should be, which no fixed means make likely. For instances of `mab` the mixture has components whose
    means change once: an arm's first 8, 32, 128 or 512 pulls have a mean of their own.

    Args:
        build: as for `error_probability`.
        instance: as for `error_probability`; several arms may tie for the best.
        pulls: number of pulls, at least 1. Every run ends there.
        key: root key of all randomness.
        relative_error: as for `error_probability`.
        most_runs: as for `error_probability`.
        rounds: as for `error_probability`.
        learnings: as for `error_probability`.
        alternatives: as for `error_probability`.
        given: as for `error_probability`.
        store: folder for the finished runs. The same call resumes from it.
        **sweep_arguments: as for `error_probability`.

    Returns:
        RareResult, whose event is T > pulls.

    Raises:
        ValueError: an argument is invalid, the rewards have no likelihood ratio here, or no run of the first round
            lasts that long.
        RuntimeError: a run failed with a NaN or an invalid action.

    Source: as `error_probability`.
    """
    pulls = checks.whole("pulls", pulls, least=1, most=LARGEST)
    numbers = {"relative_error": relative_error, "most_runs": most_runs, "rounds": rounds, "learnings": learnings}
    settings = Settings(**numbers, store=store, options=sweep_arguments, given={} if given is None else given)
    return _call(build, instance, key=key, alternatives=alternatives, settings=settings, horizon=pulls)


def _call(
    build: Build,
    instance: Any,
    *,
    key: Key,
    alternatives: Any,
    settings: Settings,
    max_rounds: int | None = None,
    horizon: int | None = None,
    wrong: Callable[[Any], bool] | None = None,
) -> RareResult:
    """Checks a call, then estimates its event: a wrong answer, or with a horizon no stop until there."""
    settings = checked(settings)
    require_call(build, instance, key=key, alternatives=alternatives)
    model = model_of(partial(build, **settings.given), instance, key)
    if wrong is None and horizon is None:
        expected = "have one best answer; give wrong for another question"
        require(not model.is_tied, "instance", expected, "several that tie for the best")
    plan = Plan(
        model=model,
        build=build,
        key=key,
        max_rounds=max_rounds,
        horizon=horizon,
        wrong=wrong or model.is_wrong,
        settings=settings,
    )
    return estimated(plan, alternatives)
