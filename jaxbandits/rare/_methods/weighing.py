"""The estimate: mixtures are learnt, runs are drawn from them, weighed and judged."""

import time
from typing import Any

import jax
import numpy as np

from jaxbandits import checks
from jaxbandits.checks import require
from jaxbandits.rare._methods import laws, linear
from jaxbandits.rare._methods.diagnostics import (
    Weighed,
    effective_number,
    judge,
    judge_budget,
    mean_over,
    pareto_k,
)
from jaxbandits.rare._methods.learning import Past, Runs, cells_of, joined, next_mixture
from jaxbandits.rare._methods.linear import Linear
from jaxbandits.rare._methods.making import Numbers, Plan, make_runs
from jaxbandits.rare._methods.mixture import Mixture, alike, in_phases, log_mean, together
from jaxbandits.rare._methods.models import Model
from jaxbandits.rare._methods.results import Events, RareResult
from jaxbandits.rare._methods.settings import LARGEST, ROUNDS_AT_MOST, mixtures_of

PATIENCE = 4  # factor of runs by which a precise estimate with warnings goes on
ESTIMATES = 1_000_000  # keeps the keys of the estimate's draws apart from the learnings' keys


def estimated(plan: Plan, alternatives: Any) -> RareResult:
    """Makes the estimate of a plan, by given alternatives, or by mixtures that are learnt if they are None."""
    started = time.perf_counter()
    settings = plan.settings
    given = _alternatives(plan.model, alternatives)
    first = plan.model.first
    if plan.horizon is not None and plan.model.merged is not None:
        first = in_phases(first, plan.model.focus)
    collected = Numbers({})
    if given is None:
        pasts = _learn(plan, first, collected)
        mixtures = tuple(next_mixture(first, past) for past in pasts)
        broad = _broad(first, pasts)
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
        result, is_settled = _result(
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
        if is_last or is_settled or total >= PATIENCE * first_precise:
            return result


def _learn(plan: Plan, first: Mixture, collected: Numbers) -> list[Past]:
    """Runs the rounds of all learnings, side by side in the same sweeps."""
    pasts = [Past((), ()) for _ in range(plan.settings.learnings)]
    for r, size in enumerate(plan.settings.rounds):
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
) -> tuple[RareResult, bool]:
    """Returns the result, and whether more runs would cure no warning."""
    sizes = tuple(end.pulls.size for end in ends)
    all_weights = np.concatenate(weights)
    alone = []
    for number, (end, log) in enumerate(zip(ends, logs, strict=True)):
        each = np.exp(-log[end.is_in, number])
        alone.append(Weighed(*mean_over([each], [end.pulls.size]), pareto_k(each)))
    everything = joined(tuple(ends))
    inside = everything.is_in
    # A row for all pulls, and rows for first pulls if means change.
    counts, sums = (x if x.ndim == 3 else x[:, None] for x in (everything.counts[inside], everything.sums[inside]))
    learning = np.repeat(np.arange(len(ends)), [int(end.is_in.sum()) for end in ends])
    events = Events(
        answers=everything.answers[inside],
        pulls=everything.pulls[inside],
        counts=counts[:, 0].astype(np.int64),
        sums=sums[:, 0],
        weights=all_weights,
        learning=learning,
        cells=everything.cells[inside],
        first_counts=counts[:, 1:].astype(np.int64),
        first_sums=sums[:, 1:],
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
        requested=requested,
    )
    trust = (*warnings, *judge_budget(late)) or "ok"
    return RareResult(**{**result.__dict__, "trust": trust}), not warnings


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
        return alike(several)
    P = model.parameters.size
    means = np.asarray(checks.array("alternatives", alternatives, ("J", P), finite=True), np.float64)
    if isinstance(model.truth, Linear):
        components: Any = linear.points(model.truth, means)
    else:
        laws.require_inside("alternatives", model.truth.kind, means)
        components = laws.points(model.truth, means)
    return (Mixture(model.truth, np.full(len(means), 1 / len(means)), components),)
