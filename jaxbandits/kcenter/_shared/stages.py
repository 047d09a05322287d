"""Stages of a run, in all algorithms of the family: each stage finds one center.

A stage with p centers begins with a pass over the nodes in index order, one per round, which queries each candidate's
newest slot, p - 1, once. A node that needs no query, such as a center, is skipped: the round's action names the slot
`no_slot(k)`, which does not exist, and costs nothing. In later rounds the algorithm's own rule chooses the queries,
until the lower bound of one candidate exceeds the upper bounds of all others. That candidate is the next center.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Key
from jaxbandits.kcenter._problem.problem import Problem
from jaxbandits.numerics.linalg import aligned


class Centers(NamedTuple):
    """Answer of an algorithm."""

    indices: Array  # int32 (k,)    centers found, in order, then the best guess at the next one, then -1
    found: Array  # int32 ()        number of centers found
    queries: Array  # uint32 (k-1,) queries by stage, exact reads included


class Stage(NamedTuple):
    """Progress of a run."""

    centers: Array  # int32 (k,)     centers in the order in which they were found; -1 for the others
    found: Array  # int32 ()         number of centers found, at least 1
    cursor: Array  # int32 ()        next node of the stage's first pass; n when the pass is over
    queries: Array  # uint32 (k-1,)  queries by stage


def begin(key: Key, problem: Problem, first_center: Array | int | None) -> Stage:
    """Returns the first stage. If `first_center` is None, it is drawn uniformly."""
    n, k = problem.n, problem.k
    first = jax.random.randint(key, (), 0, n, jnp.int32) if first_center is None else first_center
    return Stage(
        centers=jnp.full(k, -1, jnp.int32).at[0].set(jnp.asarray(first, jnp.int32)),
        found=jnp.ones((), jnp.int32),
        cursor=jnp.zeros((), jnp.int32),
        queries=jnp.zeros(k - 1, jnp.uint32),
    )


def is_complete(stage: Stage) -> Array:
    """Checks whether all k centers are found: the run's stop."""
    return stage.found == stage.centers.size


@partial(jax.jit, inline=True)
def is_center(stage: Stage, node: Array) -> Array:
    """Checks whether nodes (...) are centers."""
    return jnp.any(aligned(stage.centers, node.ndim + 1) == node[..., None], axis=-1)


def slots(stage: Stage) -> Array:
    """Returns the mask of the slots that hold a center, bool (k-1,)."""
    return jnp.arange(stage.queries.size, dtype=jnp.int32) < stage.found


def newest(stage: Stage) -> Array:
    """Returns the slot that the first pass queries."""
    return stage.found - 1


def no_slot(k: int) -> Array:
    """Returns the slot that stands for no query in a round of the first pass."""
    return jnp.asarray(k - 1, jnp.int32)


def spend(stage: Stage, queries: Array) -> Stage:
    """Counts queries towards the present stage."""
    is_present = jnp.arange(stage.queries.size, dtype=jnp.int32) == newest(stage)
    return stage._replace(queries=stage.queries + jnp.where(is_present, queries, 0).astype(jnp.uint32))


def step(stage: Stage, nodes: Array | int) -> Stage:
    """Advances the first pass by a number of nodes."""
    return stage._replace(cursor=stage.cursor + jnp.asarray(nodes, jnp.int32))


def is_decided(lower: Array, runner_up: Array) -> Array:
    """Checks whether the leader, the node of largest upper bound, is the next center: the stop test (8) of a stage.

    As printed, the test is for any node whose lower bound exceeds all other upper bounds. Its own upper bound is then
    the largest, so checking the leader is enough.

    Args:
        lower: (), lower bound of the leader.
        runner_up: (), largest upper bound of the other candidates.

    Returns:
        bool ().
    """
    return lower > runner_up


def advance(stage: Stage, node: Array, decided: Array) -> Stage:
    """Makes the node a center and starts the next stage where `decided` holds; otherwise changes nothing."""
    is_next = jnp.arange(stage.centers.size, dtype=jnp.int32) == stage.found
    return stage._replace(
        centers=jnp.where(decided & is_next, node.astype(jnp.int32), stage.centers),
        found=stage.found + decided.astype(jnp.int32),
        cursor=jnp.where(decided, 0, stage.cursor),
    )


def draw_arms(key: Key, stage: Stage, n: int, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Draws independent uniform arms of the present stage, as nodes and slots, int32 of the given shape."""
    number = jax.random.randint(key, shape, 0, jnp.maximum((n - stage.found) * stage.found, 1), jnp.int32)
    return arm_of(number, stage, n)


@partial(jax.jit, static_argnums=2, inline=True)
def arm_of(number: Array, stage: Stage, n: int) -> tuple[Array, Array]:
    """Returns the arms (...) of the present stage by number, in 0..(n - found) found - 1, by node and then by slot."""
    rank, slot = number // stage.found, number % stage.found
    # The candidate of rank r comes after the centers that have at most r candidates before them.
    centers = jnp.where(stage.centers >= 0, stage.centers, n)
    candidates = centers - jnp.sum(centers[:, None] > centers[None], axis=1, dtype=jnp.int32)
    before = aligned(candidates, rank.ndim + 1) <= rank[..., None]
    return rank + jnp.sum(before, axis=-1, dtype=jnp.int32), slot


def answer(stage: Stage, guess: Array) -> Centers:
    """Returns the centers found, and a guess at the next.

    Args:
        stage: Stage.
        guess: int (), a node. A center (which the first pass has not reached yet) is no guess.

    Returns:
        Centers.
    """
    is_next = jnp.arange(stage.centers.size, dtype=jnp.int32) == stage.found
    indices = jnp.where(is_next & ~is_center(stage, guess), guess.astype(jnp.int32), stage.centers)
    return Centers(indices, stage.found, stage.queries)


def check_first_center(first_center: Array | int | None, n: int) -> None:
    """Raises `ValueError` unless `first_center` is None or a node."""
    if first_center is not None:
        checks.integer("first_center", first_center, least=0, most=n - 1)
