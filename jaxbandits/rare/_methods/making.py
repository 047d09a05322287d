"""Runs of an estimate: sweeps of drawn instances, and the event in their ends."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Key, Status
from jaxbandits.checks import require
from jaxbandits.engine.sweep.tasks import Build
from jaxbandits.engine.sweeping import sweep
from jaxbandits.rare._methods.learning import Runs
from jaxbandits.rare._methods.models import Model, observed, observed_in_phases
from jaxbandits.rare._methods.settings import Settings

FAILED = (Status.NONFINITE, Status.INVALID_ACTION, Status.EXHAUSTED)
SWEEPS = 2_000_000  # keeps the keys of sweeps apart from the keys of draws


class Plan(NamedTuple):
    """Everything that the runs of an estimate depend on."""

    model: Model
    build: Build
    key: Key  # root key
    max_rounds: int | None  # budget of rounds; None for tails
    horizon: int | None  # pulls after which a run has not stopped, for tails
    wrong: Callable[[Any], bool]
    settings: Settings


class Numbers(NamedTuple):
    """Numbers of answers, in the order in which they came."""

    known: dict[tuple[int, ...], int]  # number of each answer


def make_runs(plan: Plan, parameters: np.ndarray, *, name: str, number: int, collected: Numbers) -> Runs:
    """Makes one run for each row of parameters.

    Args:
        plan: the plan.
        parameters: float64 (n, P), a draw of the parameters for each run; (n, 2 P + 1) if means change.
        name: name of the folder of the runs.
        number: number of the sweep, on which its key depends.
        collected: numbers of the answers so far, to which new ones are added.
    """
    model, given = plan.model, plan.settings.given
    P = model.parameters.size
    is_phased = parameters.shape[1] > P
    rows = {name: np.broadcast_to(value, (len(parameters), *value.shape)) for name, value in given.items()}

    def build(task: Any, key: Key) -> Any:
        row, more = task
        algorithm, environment, *_ = plan.build(model.instance_of(row[:P]), key, **more)
        if not is_phased:
            return algorithm, observed(model, environment)
        _, first, *_ = plan.build(model.instance_of(row[P : 2 * P]), key, **more)
        return algorithm, observed_in_phases(model, environment, first, row[2 * P].astype(int))

    def metrics(task: Any, outcome: Any) -> dict[str, Any]:
        del task
        tally = outcome.memory
        return {"counts": tally.counts, "sums": tally.sums.total, "lost": tally.sums.lost}

    folder = None if plan.settings.store is None else Path(plan.settings.store) / name
    results = sweep(
        build,
        (jnp.asarray(parameters, model.dtype), rows),
        seeds=1,
        key=jax.random.fold_in(jax.random.fold_in(plan.key, SWEEPS), number),
        max_rounds=plan.max_rounds,
        horizon=plan.horizon,
        metrics=metrics,
        store=folder,
        **plan.settings.options,
    )
    columns = {name: np.asarray(results.columns[name]) for name in ("status", "pulls", "rounds", "counts", "lost")}
    columns["sums"] = np.asarray(results.columns["sums"], np.float64) + np.asarray(columns.pop("lost"), np.float64)
    columns["answer"] = np.asarray(results.columns["answer"])
    return _ends(plan, columns, collected)


def _ends(plan: Plan, columns: dict[str, np.ndarray], collected: Numbers) -> Runs:
    """Returns the runs, with the event and its cells."""
    status, pulls, answers = columns["status"], columns["pulls"].astype(np.int64), columns["answer"]
    failed = np.isin(status, FAILED)
    if failed.any():
        kind = Status(int(status[failed][0])).name
        raise RuntimeError(f"{failed.sum()} of {failed.size} runs failed ({kind}): no estimate is made of the others")
    counts, sums = columns["counts"].astype(np.float64), columns["sums"]
    flat = answers.reshape(len(answers), -1)
    distinct, inverse = np.unique(flat, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    numbers = np.array(
        [collected.known.setdefault(tuple(row), len(collected.known)) for row in distinct.tolist()], np.int64
    )[inverse]
    has_ended = (status == Status.STOPPED) | (status == Status.HORIZON)
    if plan.horizon is None:
        shown = [row if answers.ndim > 1 else int(row[0]) for row in distinct]
        # Answers of censored runs may be none at all.
        is_wrong = np.array([_is_wrong(plan, answer) for answer in shown], bool)[inverse]
        is_in, scale = has_ended & is_wrong, pulls
    else:
        is_in = ~((status == Status.STOPPED) & (pulls <= plan.horizon))
        scale = counts.reshape(len(counts), -1)[:, plan.model.focus]
    octave = np.where(scale > 0, np.floor(np.log2(np.maximum(scale, 1))), -1).astype(np.int64)
    return Runs(
        counts=counts,
        sums=sums,
        pulls=pulls,
        rounds=columns["rounds"].astype(np.int64),
        answers=answers,
        is_in=is_in,
        cells=np.stack([numbers, octave], axis=1),
        is_censored=status == Status.MAX_ROUNDS,
    )


def _is_wrong(plan: Plan, answer: Any) -> bool:
    verdict = plan.wrong(answer)
    require(np.shape(verdict) == (), "wrong", "return one truth value for an answer", verdict)
    return bool(verdict)
