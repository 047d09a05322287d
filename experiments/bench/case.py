"""What the table of all families measures of an algorithm, and what it is measured against."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxbandits
from jaxbandits import Algorithm, Decision, Environment, ask
from jaxbandits.base import PyTree
from jaxbandits.engine import Stats
from jaxbandits.engine.shards import local_mesh
from jaxbandits.engine.sizing import side_by_side

LEAST_ROUNDS = 512  # of a lane, for a time that can be measured


class Case(NamedTuple):
    """One algorithm on one instance."""

    family: str
    rule: str
    instance: str
    build: Callable[[Any, jax.Array], tuple[Algorithm, Environment]]
    plain: Callable[[], float]  # queries a second of the plain NumPy loop, on one core
    max_rounds: int
    lanes: int  # of a batch
    runs: int = 1  # that a lane goes through
    chunk: int | None = None
    tasks: Any = None
    floor: Callable[[], tuple[float, str]] | None = None  # queries a second that something else allows, and what


class Repeat(NamedTuple):
    """The state of an algorithm that repeats one query."""

    pulls: jax.Array
    action: PyTree
    total: jax.Array  # float ()    of all observations, so that none of them is left out


def repeating(algorithm: Algorithm) -> Algorithm:
    """The algorithm's first query again and again: rounds in which nothing is estimated or decided."""

    def init(key: jax.Array) -> Repeat:
        start, later = jax.random.split(key)
        first = ask(algorithm, later, algorithm.init(start))[1].action
        return Repeat(jnp.zeros((), int), first, jnp.zeros(()))

    def decide(key: jax.Array, state: Repeat) -> Decision:
        return Decision(state.action, jnp.zeros((), bool), jnp.zeros((), int))

    def observe(state: Repeat, action: PyTree, observation: PyTree) -> Repeat:
        # Some environments answer an idle query with what would have been noise; it must not count.
        leaves = zip(jax.tree.leaves(action), jax.tree.leaves(algorithm.idle), strict=True)
        is_idle = jnp.all(jnp.stack([jnp.all(part == idle) for part, idle in leaves]))
        total = sum(jnp.sum(leaf).astype(state.total.dtype) for leaf in jax.tree.leaves(observation))
        return state._replace(total=state.total + jnp.where(is_idle, 0, total))

    return Algorithm(init, decide, observe, algorithm.idle)


def measure(case: Case, *, lanes: int, runs: int) -> Stats:
    """One sweep that gives every lane of every batch that many runs."""
    return _sweep(case, case.build, lanes=lanes, runs=runs, max_rounds=case.max_rounds)


def answers_a_second(case: Case, stats: Stats) -> float:
    """Rounds a second of the same sweep, if its algorithm repeats one query."""

    def build(task: Any, key: jax.Array) -> tuple[Algorithm, Environment]:
        algorithm, environment = case.build(task, key)
        return repeating(algorithm), environment

    rounds = max(LEAST_ROUNDS, round(stats.rounds / (stats.batches * stats.lanes * stats.devices)))
    only = _sweep(case, build, lanes=stats.lanes, runs=1, max_rounds=rounds)
    return only.rounds / only.seconds


def _sweep(case: Case, build: Callable, *, lanes: int, runs: int, max_rounds: int) -> Stats:
    rows = 1 if case.tasks is None else len(jax.tree.leaves(case.tasks)[0])
    mesh = local_mesh()
    seeds = -(-runs * side_by_side(mesh) * mesh.size * lanes // rows)
    return jaxbandits.sweep(
        build,
        case.tasks,
        seeds=seeds,
        key=jax.random.key(0),
        max_rounds=max_rounds,
        lanes=lanes,
        chunk=case.chunk,
        progress=False,
    ).stats
