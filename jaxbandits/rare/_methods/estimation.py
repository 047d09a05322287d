"""Probabilities of rare events by runs on other instances, weighted by their likelihood ratios."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Key
from jaxbandits.checks import require
from jaxbandits.engine.sweep.tasks import Build
from jaxbandits.rare._methods import laws, linear
from jaxbandits.rare._methods.diagnostics import (
    Weighed,
    effective_number,
    judge,
    mean_over,
    pareto_k,
)
from jaxbandits.rare._methods.learning import Past, Runs, cells_of, joined, next_mixture
from jaxbandits.rare._methods.linear import Linear
from jaxbandits.rare._methods.making import Numbers, Plan, make_runs
from jaxbandits.rare._methods.mixture import Mixture, log_mean, together
from jaxbandits.rare._methods.models import Model, model_of
from jaxbandits.rare._methods.results import Events, RareResult
from jaxbandits.rare._methods.settings import ROUNDS, ROUNDS_AT_MOST, mixtures_of, require_call, settings_of

PATIENCE = 4  # factor of runs by which a precise estimate with warnings goes on
LARGEST = 2**31 - 1
ESTIMATES = 1_000_000  # keeps the keys of the estimate's draws apart from those of the learnings


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
            reached, the estimate goes on, for up to four times as many runs.
        most_runs: number of runs after which the estimate ends, at least 1, without the runs of the learnings.
        rounds: numbers of runs of the rounds of one learning.
        learnings: number of learnings, at least 1.
        alternatives: if None, the mixture is learnt. A `Mixture` such as `result.mixture`, or a sequence of them, is
            used as it is, without learning. An array (J, K) of means, or (J, d) of theta, is a mixture of these
            instances with equal shares.
        wrong: (answer) -> bool, for another question: an answer that is not epsilon-good, or not among the best. If
            None, every answer that is not the best one is wrong, and the best must be unique.
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
    settings = settings_of(
        relative_error=relative_error,
        most_runs=most_runs,
        rounds=rounds,
        learnings=learnings,
        store=store,
        options=sweep_arguments,
    )
    require_call(build, instance, key=key, alternatives=alternatives)
    model = model_of(build, instance, key)
    if wrong is None:
        expected = "have one best answer; give wrong for another question"
        require(not model.is_tied, "instance", expected, "several that tie for the best")
    plan = Plan(
        model=model,
        build=build,
        key=key,
        max_rounds=max_rounds,
        horizon=None,
        wrong=wrong or model.is_wrong,
        settings=settings,
    )
    return _estimate(plan, alternatives)


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
    store: str | os.PathLike[str] | None = None,
    **sweep_arguments: Any,
) -> RareResult:
    """Estimates the probability that a run has not stopped after a number of pulls, however small.

    As `error_probability`, with another event: runs are made on instances on which they are long. Late runs are told
    apart by the octave of the best arm's number of pulls, which is small if the arm was starved.

    Args:
        build: as for `error_probability`.
        instance: as for `error_probability`; several arms may tie for the best.
        pulls: number of pulls, at least 1. Every run ends there.
        key: root key of all randomness.
        relative_error: () > 0, the requested standard error over the estimate. If there are warnings when it is
            reached, the estimate goes on, for up to four times as many runs.
        most_runs: number of runs after which the estimate ends, at least 1, without the runs of the learnings.
        rounds: numbers of runs of the rounds of one learning.
        learnings: number of learnings, at least 1.
        alternatives: as for `error_probability`.
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
    settings = settings_of(
        relative_error=relative_error,
        most_runs=most_runs,
        rounds=rounds,
        learnings=learnings,
        store=store,
        options=sweep_arguments,
    )
    require_call(build, instance, key=key, alternatives=alternatives)
    model = model_of(build, instance, key)
    plan = Plan(
        model=model,
        build=build,
        key=key,
        max_rounds=None,
        horizon=pulls,
        wrong=model.is_wrong,
        settings=settings,
    )
    return _estimate(plan, alternatives)


def _estimate(plan: Plan, alternatives: Any) -> RareResult:
    started = time.perf_counter()
    settings = plan.settings
    given = _alternatives(plan.model, alternatives)
    collected = Numbers({})
    if given is None:
        pasts = _learn(plan, collected)
        mixtures = tuple(next_mixture(plan.model.first, past) for past in pasts)
        broad = _broad(plan.model.first, pasts)
        learning_runs = sum(runs.pulls.size for past in pasts for runs in past.rounds)
    else:
        mixtures, broad, learning_runs = given, Weighed(0.0, 0.0, float("nan")), 0

    L = len(mixtures)
    each = -(-settings.batch // L)
    runs: list[list[Runs]] = [[] for _ in mixtures]
    logs: list[list[np.ndarray]] = [[] for _ in mixtures]
    total, batch = 0, 0
    first_precise = 0
    while True:
        keys = [jax.random.fold_in(jax.random.fold_in(plan.key, ESTIMATES + number), batch) for number in range(L)]
        drawn = [mixture.draw(key, each) for mixture, key in zip(mixtures, keys, strict=True)]
        where = {"name": f"estimate-{batch:03d}", "number": ROUNDS_AT_MOST + batch, "collected": collected}
        ends = make_runs(plan, np.concatenate(drawn), **where)
        for number in range(L):
            part = Runs(*(field[number * each : (number + 1) * each] for field in ends))
            runs[number].append(part)
            logs[number].append(np.stack([m.log_ratio(part.counts, part.sums) for m in mixtures], axis=1))
        total, batch = total + L * each, batch + 1
        ends_of = [joined(tuple(parts)) for parts in runs]
        logs_of = [np.concatenate(parts) for parts in logs]
        estimate, se, weights = _joint(ends_of, logs_of)
        # Weights are skewed: a lucky start looks precise and is too low, most of all in rare parts. So the first look
        # is late, and a precise estimate with warnings gets more runs, at most `PATIENCE` times as many.
        is_precise = total >= settings.fewest and estimate > 0 and se <= settings.relative_error * estimate
        is_last = total + L * each > settings.most_runs
        if not (is_precise or is_last):
            continue
        first_precise = first_precise or total
        result = _result(
            plan,
            mixtures,
            ends_of,
            logs_of,
            weights=weights,
            summary=(estimate, se),
            broad=broad,
            learning_runs=learning_runs,
            requested=settings.relative_error,
            seconds=time.perf_counter() - started,
        )
        if is_last or result.trust == "ok" or total >= PATIENCE * first_precise:
            return result


def _learn(plan: Plan, collected: Numbers) -> list[Past]:
    """Runs the rounds of all learnings, side by side in the same sweeps."""
    pasts = [Past((), ()) for _ in range(plan.settings.learnings)]
    for r, size in enumerate(plan.settings.rounds):
        first = plan.model.first
        mixtures = [first if not past.rounds else next_mixture(first, past) for past in pasts]
        keys = [jax.random.fold_in(jax.random.fold_in(plan.key, number), r) for number in range(len(pasts))]
        drawn = [mixture.draw(key, size) for mixture, key in zip(mixtures, keys, strict=True)]
        ends = make_runs(plan, np.concatenate(drawn), name=f"round-{r:03d}", number=r, collected=collected)
        for number, mixture in enumerate(mixtures):
            part = Runs(*(field[number * size : (number + 1) * size] for field in ends))
            past = pasts[number]
            pasts[number] = Past((*past.mixtures, mixture), (*past.rounds, part))
        if r == 0 and not ends.is_in.any():
            event = "is wrong" if plan.horizon is None else f"lasts more than {plan.horizon} pulls"
            raise ValueError(
                f"alternatives must be given, since none of the {ends.pulls.size} runs of the first round {event}. "
                "Give means under which it happens, or a larger max_rounds"
            )
    return pasts


def _broad(first: Mixture, pasts: list[Past]) -> Weighed:
    """Returns the estimate of the first rounds by the broad mixture."""
    weights = []
    for past in pasts:
        runs = past.rounds[0]
        inside = runs.is_in
        weights.append(np.exp(-first.log_ratio(runs.counts[inside], runs.sums[inside])))
    sizes = [past.rounds[0].pulls.size for past in pasts]
    return Weighed(*mean_over(weights, sizes), pareto_k(np.concatenate(weights)))


def _joint(ends: list[Runs], logs: list[np.ndarray]) -> tuple[float, float, list[np.ndarray]]:
    """Returns estimate, standard error, and the weights of the runs in the event of each mixture's runs."""
    L = len(ends)
    weights = [np.exp(-log_mean(log[end.is_in], np.full(L, 1 / L))) for end, log in zip(ends, logs, strict=True)]
    estimate, se = mean_over(weights, [end.pulls.size for end in ends])
    return estimate, se, weights


def _result(
    plan: Plan,
    mixtures: tuple[Mixture, ...],
    ends: list[Runs],
    logs: list[np.ndarray],
    *,
    weights: list[np.ndarray],
    summary: tuple[float, float],
    broad: Weighed,
    learning_runs: int,
    requested: float,
    seconds: float,
) -> RareResult:
    sizes = tuple(end.pulls.size for end in ends)
    all_weights = np.concatenate(weights)
    alone = []
    for number, (end, log) in enumerate(zip(ends, logs, strict=True)):
        each = np.exp(-log[end.is_in, number])
        alone.append(Weighed(*mean_over([each], [end.pulls.size]), pareto_k(each)))
    everything = joined(tuple(ends))
    inside = everything.is_in
    learning = np.repeat(np.arange(len(ends)), [int(end.is_in.sum()) for end in ends])
    events = Events(
        answers=everything.answers[inside],
        pulls=everything.pulls[inside],
        counts=everything.counts[inside].astype(np.int64),
        sums=everything.sums[inside],
        weights=all_weights,
        learning=learning,
        cells=everything.cells[inside],
    )
    estimate = Weighed(*summary, pareto_k(all_weights))
    is_late = everything.rounds[inside] > (plan.max_rounds or LARGEST) / 2
    late = float(all_weights[is_late].sum() / all_weights.sum()) if all_weights.sum() > 0 else 0.0
    result = RareResult(
        estimate=estimate.estimate,
        se=estimate.se,
        runs=sum(sizes),
        learning_runs=learning_runs,
        effective=effective_number(all_weights),
        share=float(all_weights.max() / all_weights.sum()) if all_weights.sum() > 0 else 1.0,
        pareto_k=estimate.pareto_k,
        alone=tuple(alone),
        broad=broad,
        mixture=together(mixtures),
        censored=int(everything.is_censored.sum()),
        seconds=seconds,
        trust="ok",
        events=events,
        sizes=sizes,
    )
    cells = []
    for cell in cells_of(events.cells):
        is_here = np.isin(np.arange(all_weights.size), cell)
        name = f"(answer {events.answers[cell[0]]}, octave of {2 ** max(int(events.cells[cell[0], 1]), 0)})"
        cells.append((name, cell.size, result.part(is_here)))
    warnings = judge(
        weights=all_weights,
        runs=result.runs,
        estimate=estimate,
        alone=result.alone,
        broad=broad,
        cells=cells,
        late=late,
        requested=requested,
    )
    return result if not warnings else RareResult(**{**result.__dict__, "trust": warnings})


def _alternatives(model: Model, alternatives: Any) -> tuple[Mixture, ...] | None:
    """Returns the mixtures that are given; None if they are to be learnt."""
    if alternatives is None:
        return None
    if several := mixtures_of(alternatives):
        for each in several:
            is_same = type(each.truth) is type(model.truth) and all(
                np.array_equal(a, b) for a, b in zip(each.truth, model.truth, strict=True)
            )
            require(is_same, "alternatives", "be mixtures for this instance", each.truth)
        return several
    P = model.parameters.size
    means = np.asarray(checks.array("alternatives", alternatives, ("J", P), finite=True), np.float64)
    if isinstance(model.truth, Linear):
        components: Any = linear.points(model.truth, means)
    else:
        laws.require_inside("alternatives", model.truth.kind, means)
        components = laws.points(model.truth, means)
    return (Mixture(model.truth, np.full(len(means), 1 / len(means)), components),)
