"""Who answers the queries of an instance, and what queries look like.

A stage of greedy finds one center. Its arms are the pairs (node, slot): a node, and a slot of the list of centers. The
last center never gets arms, so there are k - 1 slots.

Source: Jali, Karamchandani and Moharir, "Greedy k-Center from Noisy Distance Samples".
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Environment, Key, static_fields
from jaxbandits.checks import require
from jaxbandits.kcenter._problem import (
    DimensionInstance,
    DistanceInstance,
    Distances,
    Problem,
    check_instance,
)
from jaxbandits.kcenter._tables import sum_dtype


@static_fields("problem")
class Pull(NamedTuple):
    """Queries one node against one slot. The answer for a node or a slot that does not exist has no meaning.

    The observation is a `Sample` where dimensions are sampled, and a single reward () where distances are noisy.
    """

    node: Array  # int32 ()     n: nothing is queried
    slot: Array  # int32 ()
    centers: Array  # int32 (k-1,)  the centers found so far; entries past them are not read
    exact: Array  # bool ()     reads the whole arm, at the cost of m queries
    problem: Problem  # static     an environment refuses the actions of another problem


@static_fields("problem")
class PairPull(NamedTuple):
    """Queries two nodes, each against its slot. The observation is two rewards (2,)."""

    node: Array  # int32 (2,)   n: nothing is queried
    slot: Array  # int32 (2,)
    centers: Array  # int32 (k-1,)
    problem: Distances  # static


@static_fields("problem")
class Counts(NamedTuple):
    """Queries node v against slot i `pulls[v, i]` times. The observation is the sums of the rewards (n, k-1)."""

    pulls: Array  # int32 (n, k-1)
    centers: Array  # int32 (k-1,)
    problem: Distances  # static


class Sample(NamedTuple):
    """The observation of sampled dimensions, in units of 1/levels^2 for integer points."""

    rewards: Array  # (leap, k-1)   one dimension a row, against every slot; int32, or the dtype of the points
    exact: Array  # ()              the sum over all dimensions for the slot that is queried


def environment(
    instance: DimensionInstance | DistanceInstance,
    *,
    leap: int = 1,
    test_every: int = 1,
    action: type[Pull] | type[PairPull] | type[Counts] | None = None,
) -> Environment:
    """Answers the queries of an instance.

    Of points, a query draws a dimension j uniformly, with replacement, and pays (x_vj - x_sj)^2. Of noisy distances, a
    query of (v, s) pays a normal variable of mean d(v, s), or 1 with probability d(v, s); m queries of an arm are
    answered by one variable with the law of their sum, N(m d, m noise_scale^2) or Binomial(m, d), and no query by 0.

    Args:
        instance: the truth.
        leap: dimensions drawn each round, at least 1: the algorithm's `leap`. 1 for noisy distances.
        test_every: draws of a round of `ds_random`, at least 1: its `test_every`. With more than 1, noise, actions and
            observations have a leading axis (test_every,). 1 for all else.
        action: class of the algorithm's actions, where distances are noisy: `Pull`, `PairPull` or `Counts`; None:
            `PairPull`, that of `ns_ts`. Points are answered to `Pull` alone.

    Returns:
        Environment. Its noise is the dimensions, int32 (leap,); or standard normal or uniform, of the shape of the
        observation, but for `Counts` the round's key. It observes Gaussian rewards in the dtype of the distances,
        Bernoulli ones as int32. Cost per round: O(leap k) gathers; for noisy distances O(1), or O(n k) for `Counts`.

    Raises:
        ValueError: the instance is not valid; an argument is out of range, or means nothing for this kind of instance;
            or binomial sums are wanted while `jax_enable_x64` is off: JAX draws them wrongly in 32 bit for large
            counts. The environment refuses actions of another problem.

    Source: Jali, Karamchandani and Moharir, sections IV (whose equation (4) squares the reward twice) and VII.
    """
    check_instance(instance)
    leap = checks.whole("leap", leap, least=1)
    test_every = checks.whole("test_every", test_every, least=1)
    if isinstance(instance, DimensionInstance):
        require(action is None or action is Pull, "action", "be Pull where dimensions are sampled", action)
        return _several(_dimensions(instance, leap), test_every)
    require(leap == 1, "leap", "be 1 where distances are noisy", leap)
    require(test_every == 1, "test_every", "be 1 where distances are noisy", test_every)
    known = any(action is kind for kind in (None, Pull, PairPull, Counts))
    require(known, "action", "be Pull, PairPull or Counts", action)
    return _noisy(instance, PairPull if action is None else action)


def no_pull(problem: Problem) -> Pull:
    """The `Pull` that does nothing."""
    node, slot = jnp.asarray(problem.n, jnp.int32), jnp.zeros((), jnp.int32)
    return Pull(node, slot, jnp.zeros(problem.k - 1, jnp.int32), jnp.zeros((), bool), problem)


def no_counts(problem: Distances) -> Counts:
    """The `Counts` that do nothing."""
    return Counts(jnp.zeros((problem.n, problem.k - 1), jnp.int32), jnp.zeros(problem.k - 1, jnp.int32), problem)


def _dimensions(instance: DimensionInstance, leap: int) -> Environment:
    points, exact, point_of = jnp.asarray(instance.points), jnp.asarray(instance.exact), _point_of(instance.rows)
    problem, dtype = instance.problem, sum_dtype(points.dtype)

    def respond(pull: Pull, dimensions: Array) -> Sample:
        _check_action(pull, Pull, problem, ())
        node, centers = point_of(pull.node), point_of(pull.centers)
        of_node = points.at[node, dimensions].get(mode="clip").astype(dtype)
        of_centers = points.at[centers, dimensions[:, None]].get(mode="clip").astype(dtype)
        total = exact.at[node, centers.at[pull.slot].get(mode="clip")].get(mode="clip")
        return Sample(jnp.square(of_node[:, None] - of_centers), total)

    return Environment(lambda key: jax.random.randint(key, (leap,), 0, problem.m, jnp.int32), respond)


def _several(environment: Environment, count: int) -> Environment:
    """Answers several actions a round, each with noise of its own; for 1, the environment that was given."""
    if count == 1:
        return environment

    def respond(actions: Any, noise: Any) -> Any:
        require(jnp.shape(actions.node) == (count,), "action.node", f"have shape {(count,)}", jnp.shape(actions.node))
        return jax.vmap(environment.respond)(actions, noise)

    return Environment(lambda key: jax.vmap(environment.noise)(jax.random.split(key, count)), respond)


def _noisy(instance: DistanceInstance, kind: Any) -> Environment:
    distances, point_of, problem = jnp.asarray(instance.distances), _point_of(instance.rows), instance.problem
    dtype, shape = distances.dtype, (2,) if kind is PairPull else ()

    def means(nodes: Array, centers: Array) -> Array:
        return distances.at[point_of(nodes), point_of(centers)].get(mode="clip")

    def means_of(action: Any) -> Array:
        if kind is Counts:
            _check_action(action, Counts, problem)
            return means(jnp.arange(problem.n, dtype=jnp.int32)[:, None], action.centers)
        _check_action(action, kind, problem, shape)
        return means(action.node, action.centers.at[action.slot].get(mode="clip"))

    if problem.noise == "bernoulli" and kind is Counts:
        has_64_bit = jnp.result_type(float) == jnp.float64
        require(has_64_bit, "jax_enable_x64", "be on for binomial sums", has_64_bit)

        def binomial_sums(counts: Counts, key: Key) -> Array:
            probability = means_of(counts).astype(jnp.float64)
            return jax.random.binomial(key, counts.pulls.astype(jnp.float64), probability).astype(jnp.int32)

        return Environment(lambda key: key, binomial_sums)

    if problem.noise == "bernoulli":
        return Environment(
            lambda key: jax.random.uniform(key, shape, dtype),
            lambda action, uniform: (uniform < means_of(action)).astype(jnp.int32),
        )

    scale = jnp.asarray(instance.noise_scale).astype(dtype)
    if kind is Counts:

        def normal_sums(counts: Counts, key: Key) -> Array:
            pulls = counts.pulls.astype(dtype)
            return pulls * means_of(counts) + jnp.sqrt(pulls) * scale * jax.random.normal(key, pulls.shape, dtype)

        return Environment(lambda key: key, normal_sums)

    return Environment(
        lambda key: jax.random.normal(key, shape, dtype), lambda action, normal: means_of(action) + scale * normal
    )


def _point_of(rows: Array | None) -> Callable[[Array], Array]:
    """From the nodes of an instance to the points of the shared arrays."""
    if rows is None:
        return lambda nodes: nodes
    table = jnp.asarray(rows, jnp.int32)
    return lambda nodes: table.at[nodes].get(mode="clip")


def _check_action(action: Any, kind: type, problem: Problem, shape: tuple[int, ...] | None = None) -> None:
    """Raises `ValueError` unless it is an action of this kind, for this problem; all of it is known before tracing."""
    checks.instance("action", action, kind)
    require(action.problem == problem, "action.problem", f"be {problem}, the environment's", action.problem)
    if shape is not None:
        require(jnp.shape(action.node) == shape, "action.node", f"have shape {shape}", jnp.shape(action.node))
