"""Shared parts of the experiments on synthetic instances: G-optimal designs, task tables, rules on one path."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.fullbandit.common import DELTA, EPSILON
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Outcome, fullbandit
from jaxbandits.base import Algorithm, Array, Decision, Environment, Key, PyTree
from jaxbandits.fullbandit import Design, Pulls

ARMS, SIZE = 10, 5  # arms and super-arm size of the paper's synthetic data
UNUSED = 1e-4  # share of a row that a G-optimal design drops, so that all designs of a table have one shape
SUPPORTS = 10**6  # offset that keeps the seed of the r-th support apart from the seed of the r-th instance


Task = dict[str, Any]  # a row of a table: its `gap`, the super-arms to pull (`design`), and the truth (`instance`)


def g_design(seed: int, rows: int) -> Design:
    """Computes G-optimal shares on random super-arms; dropped super-arms keep a share of 1e-4."""
    support = fullbandit.random_support(SUPPORTS + seed, ARMS, SIZE, size=rows)
    optimal = fullbandit.g_allocation(support)
    kept, index = np.nonzero((support[:, None, :] == optimal.support).all(2))
    shares = np.full(rows, UNUSED)
    shares[kept] = np.maximum(optimal.weights[index], UNUSED)
    return fullbandit.make_design(support, SIZE, weights=shares / shares.sum())


def uniform_design(seed: int, rows: int) -> Design:
    return fullbandit.make_design(fullbandit.random_support(SUPPORTS + seed, ARMS, SIZE, size=rows), SIZE)


def tasks(gaps: Sequence[float], realizations: int, design: Callable[[int], Design]) -> Task:
    """Builds the rows, gap by gap; the r-th instances of all gaps share the r-th design."""
    seeds = range(realizations)
    instances = [fullbandit.synthetic(r, ARMS, SIZE, gap, shuffle=True) for gap in gaps for r in seeds]
    designs = [design(r) for r in seeds] * len(gaps)
    return jaxbandits.rows(gap=np.repeat(gaps, realizations), design=designs, instance=instances)


def rule_runs(
    heading: str, rule: Callable[..., Algorithm], table: Task, options: Settings, **settings: Any
) -> dict[str, np.ndarray]:
    """Runs a rule once on every row of a table; columns `best` and `good` judge its answer."""

    def judge(task: Task, outcome: Outcome) -> dict[str, Array]:
        right = partial(fullbandit.is_right, task["instance"], outcome.answer)
        return {"best": right(), "good": right(EPSILON)}

    rule = partial(rule, delta=DELTA, epsilon=EPSILON, **settings)
    return path_runs(heading, rule, table, options=options, max_rounds=100_000, metrics=judge, chunk=32)


def path_runs(
    heading: str, rule: Callable[[Design], Algorithm], table: Task, **simulated: Any
) -> dict[str, np.ndarray]:
    """Runs an algorithm that tracks a design on every row of a table; `simulated` goes to `simulate`."""

    def build(task: Task, key: Key) -> tuple[Algorithm, Environment]:
        return rule(task["design"]), fullbandit.environment(task["instance"], task["design"])

    columns = simulate(heading, build, table, seeds=1, **simulated).columns
    return columns | {"gap": columns["task.gap"]}


# Several rules on one path of rewards


class State(NamedTuple):
    """State of `follow`."""

    pulls: Array  # int ()
    counts: Array  # int (s,)
    sums: Array  # float (s,)
    index: Array  # int ()      of the next time
    notes: PyTree  # notes of the run so far


def follow(
    design: Design,
    times: Sequence[int],
    *,
    begin: Callable[[Key], PyTree],
    note: Callable[..., PyTree],
    done: Callable[[PyTree], Any] = lambda notes: False,
) -> Algorithm:
    """Tracks a design, takes notes at given times, and ends after the last of them or once the notes are complete.

    `note` takes the notes, the pulls t so far, the estimate, the index of the time, and the pulls until the next time.
    Rules that are tested on one path can be compared run by run; the algorithms themselves each choose their times.
    """
    estimate = fullbandit.estimator(design)
    ends = jnp.asarray([*times, 2 * times[-1]], int)  # the last block is never pulled
    idle = Pulls(jnp.zeros(design.support.shape[0], int))

    def init(key: Key) -> State:
        start = jnp.zeros((), int)
        return State(start, idle.counts, idle.counts.astype(design.inverse.dtype), start, begin(key))

    def decide(key: Key, state: State) -> Decision:
        del key
        counts = fullbandit.tracking_counts(design, ends[state.index]) - state.counts
        stop = (state.index == len(times)) | done(state.notes)
        return Decision(Pulls(counts), stop, fullbandit.top_set(estimate(state.counts, state.sums).theta, design.k))

    def observe(state: State, action: Pulls, observation: Array) -> State:
        counts, sums = state.counts + action.counts, state.sums + observation
        t, block = ends[state.index], ends[state.index + 1] - ends[state.index]
        evidence = t.astype(sums.dtype), estimate(counts, sums), state.index, block.astype(sums.dtype)
        after = State(counts.sum(), counts, sums, state.index + 1, note(state.notes, *evidence))
        pulled = action.counts.sum() > 0
        return jax.tree.map(lambda new, old: jnp.where(pulled, new, old), after, state)

    return Algorithm(init, decide, observe, idle)
