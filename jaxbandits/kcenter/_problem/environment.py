"""Environments that answer the queries of an instance, and the actions that queries are.

A stage of greedy finds one center. Its arms are the pairs (node, slot) of a node and an index in the list of centers.
The last center never gets arms, so there are k - 1 slots.

Source: Jali, Karamchandani and Moharir, "Greedy k-Center from Noisy Distance Samples".
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Environment, Key, memoryless, static_fields
from jaxbandits.checks import known, require
from jaxbandits.kcenter._problem.problem import (
    DimensionInstance,
    Dimensions,
    DistanceInstance,
    Distances,
    Problem,
    check_instance,
)
from jaxbandits.kcenter._problem.tables import sum_dtype
from jaxbandits.numerics.brownian import increment
from jaxbandits.numerics.normal import normal_noise
from jaxbandits.numerics.random_bits import uniform_noise
from jaxbandits.queries import form_of
from jaxbandits.streams import key_of


@static_fields("problem")
class Pull(NamedTuple):
    """Query of one node against one slot. Without a node or a slot, the answer has no meaning.

    The observation is a `Sample` if dimensions are sampled, and a single reward () if distances are noisy.
    """

    node: Array  # int32 ()     n: nothing is queried
    slot: Array  # int32 ()     k - 1: nothing is queried
    centers: Array  # int32 (k-1,)  centers found so far; entries past them are not read
    exact: Array  # bool ()     True to read the whole arm, for m queries
    problem: Problem  # static     environments refuse actions of another problem


@static_fields("problem")
class PairPull(NamedTuple):
    """Queries of two nodes, each against its slot. The observation is two rewards (2,)."""

    node: Array  # int32 (2,)   n: nothing is queried
    slot: Array  # int32 (2,)   k - 1: nothing is queried
    centers: Array  # int32 (k-1,)
    problem: Distances  # static


@static_fields("problem")
class Counts(NamedTuple):
    """Queries of node v against slot i, `pulls[v, i]` times. The observation is the sums of the rewards (n, k-1)."""

    pulls: Array  # int32 (n, k-1)
    centers: Array  # int32 (k-1,)
    problem: Distances  # static


class Sample(NamedTuple):
    """Observation of sampled dimensions, in units of 1/levels^2 for integer points."""

    rewards: Array  # (leap,)  one dimension each, against the queried slot; int32, or the dtype of the points
    exact: Array  # ()         sum over all dimensions


def environment(
    instance: DimensionInstance | DistanceInstance,
    algorithm: Algorithm | Pull | PairPull | Counts | None = None,
    *,
    stream: Key | None = None,
) -> Environment:
    """Returns the environment that answers the queries of an instance.

    For points, a query draws a dimension j uniformly, with replacement, and pays (x_vj - x_sj)^2. For noisy distances,
    a query of (v, s) pays a normal variable of mean d(v, s), or 1 with probability d(v, s). Several queries of an arm
    in one round are answered by one variable with the law of their sum: for m queries N(m d, m noise_scale^2) or
    Binomial(m, d), and 0 without a query.

    Args:
        instance: the truth.
        algorithm: the algorithm that will query. Its actions are `Pull` for points, and `Pull`, `PairPull` or `Counts`
            for noisy distances. Its problem says how many dimensions a query draws, `leap`. If `ds_random` makes
            several draws per round, noise, actions and observations have a leading axis (test_every,). If None, an
            action is one `Pull` and draws one dimension; an action stands for an algorithm of your own.
        stream: if None, every round has fresh noise. With a key, the n-th query of a pair of nodes has the same answer
            for every algorithm, whichever of the two is the center: the same dimension, the same uniform variable, or
            the same step of a Gaussian walk (`numerics.brownian`), so that sums agree as well. Binomial sums (`Counts`
            of Bernoulli rewards) cannot be drawn in this way, nor leaps, of whose samples a run may use only the first.

    Returns:
        Environment. Its noise is the dimensions, int32 (leap,); or standard normal or uniform variables, of the shape
        of the observation, except for `Counts`, where it is the round's key. With a stream, it is (). Its memory is (),
        with a stream the number of queries of each arm, int32 (n, k-1). Gaussian rewards have the dtype of the
        distances, Bernoulli rewards are int32. Cost per round: O(leap) gathers; for noisy distances O(1), or O(n k) for
        `Counts`; with a stream, 64 normal variables for every arm of Gaussian rewards.

    Raises:
        ValueError: the instance is not valid; the algorithm makes actions that this kind of instance does not answer;
            `stream` is no key, or is given for binomial sums or leaps; or binomial sums are requested while
            `jax_enable_x64` is off, as JAX draws them wrongly in 32 bit for large counts. The environment refuses
            actions of another problem.

    Source: Jali, Karamchandani and Moharir, sections IV (whose equation (4) squares the reward twice) and VII.
    """
    check_instance(instance)
    if stream is not None:
        checks.key("stream", stream)
    idle, declared = form_of(algorithm, no_pull(instance.problem))
    checks.instance("algorithm", idle, Pull if isinstance(instance, DimensionInstance) else (Pull, PairPull, Counts))
    leap = 1
    if isinstance(instance, DimensionInstance):
        leap = declared.get("leap", 1)
        problem, environment = {"problem": instance.problem, "leap": leap}, _sampled(instance, idle, leap, stream)
    else:
        problem, environment = {"problem": instance.problem}, _observed(instance, idle, stream)
    return environment._replace(
        problem=lambda: problem,
        accepts=partial(_accepts, instance.problem),
        admits=partial(_admits, instance.problem),
        pulls=partial(_queries, instance.problem, leap),
    )


def made_for(problem: Problem, dtype: Any, *, leap: int | None = None) -> dict[str, Any]:
    """Returns an `Algorithm`'s fields for a problem.

    Args:
        problem: the problem.
        dtype: dtype of the rewards if they are not integers.
        leap: dimensions drawn per query; None for noisy distances.
    """
    declared = {"problem": problem} | ({} if leap is None else {"leap": leap})
    # These algorithms plan their next query while they observe.
    return {"problem": lambda: declared, "receive": partial(_receive, problem, dtype), "needs_order": True}


def _receive(problem: Problem, dtype: Any, action: Any, observation: Any) -> Any:
    """Returns the observation as arrays; raises `ValueError` unless it can answer the action."""
    if isinstance(problem, Dimensions):
        checks.instance("observation", observation, Sample, advice="Write kcenter.Sample(rewards, exact)")
        largest = (problem.levels or 1) ** 2
        kind = "float" if problem.levels is None else "int"
        reward_dtype = dtype if problem.levels is None else jnp.int32
        shape = jnp.shape(action.node)
        draws = np.shape(observation.rewards)[-1:] or (1,)
        rewards = checks.array(
            "observation.rewards",
            observation.rewards,
            (*shape, *draws),
            kind=kind,
            dtype=reward_dtype,
            least=0,
            most=largest,
        )
        limit = problem.m * largest
        exact = checks.numbers("observation.exact", observation.exact, shape, reward_dtype, least=0, most=limit)
        return Sample(rewards, exact)
    if problem.noise == "gaussian":
        shape = action.pulls.shape if hasattr(action, "pulls") else action.node.shape
        return checks.numbers("observation", observation, shape, dtype)
    most = known(action.pulls) if hasattr(action, "pulls") else 1
    shape = action.pulls.shape if hasattr(action, "pulls") else action.node.shape
    rewards = checks.numbers("observation", observation, shape, jnp.int32, least=0)
    is_count = (known(observation) == known(rewards)) & (known(rewards) <= most)
    require(is_count, "observation", "count the ones among the rewards, each of which is 0 or 1", observation)
    return rewards


def _accepts(problem: Problem, action: Any) -> Array:
    """True if all queried nodes and slots exist; n and k - 1 stand for none."""
    if hasattr(action, "pulls"):
        return jnp.all(action.pulls >= 0)
    node, slot = action.node, action.slot
    exists = (node >= 0) & (node < problem.n) & (slot >= 0) & (slot < problem.k)
    return jnp.all(exists | (node == problem.n))


def _queries(problem: Problem, leap: int, action: Any) -> Array:
    """Counts the queries of an action, int (): all that a leap may make, and all dimensions of an exact read."""
    if hasattr(action, "pulls"):
        return jnp.sum(action.pulls)
    is_query = (action.node < problem.n) & (action.slot < problem.k - 1)
    each = jnp.where(action.exact, problem.m, leap) if isinstance(problem, Dimensions) else 1
    return jnp.sum(jnp.where(is_query, each, 0))


def _admits(problem: Problem, answer: Any) -> Array:
    """True if all centers are nodes, or -1, which stands for not found yet."""
    centers = getattr(answer, "indices", answer)
    return jnp.all((centers >= -1) & (centers < problem.n))


def _sampled(instance: DimensionInstance, idle: Pull, leap: int, stream: Key | None) -> Environment:
    """Answers queries of sampled dimensions, of the form of `idle`; raises `ValueError` for a stream of leaps."""
    draws = jnp.shape(idle.node)
    require(len(draws) <= 1, "algorithm.node", "have shape () or (test_every,)", draws)
    if stream is None:
        environment = _dimensions(instance, leap)
        return _several(environment, *draws) if draws else environment
    require(leap == 1, "stream", "be None for leaps, of whose samples a run may use only the first", stream)
    return _dimensions_from(stream, instance, draws)


def _observed(instance: DistanceInstance, idle: Pull | PairPull | Counts, stream: Key | None) -> Environment:
    """Answers queries of noisy distances, of the form of `idle`; raises `ValueError` for a stream of binomial sums."""
    kind = type(idle)
    if not isinstance(idle, Counts):
        shape = (2,) if kind is PairPull else ()
        require(jnp.shape(idle.node) == shape, "algorithm.node", f"have shape {shape}", jnp.shape(idle.node))
    if stream is None:
        return _noisy(instance, kind)
    can_share = kind is not Counts or instance.problem.noise == "gaussian"
    require(can_share, "stream", "be None for binomial sums, which cannot be shared", stream)
    return _noisy_from(stream, instance, kind)


def _earlier(counts: Array, action: Pull | PairPull) -> Array:
    """Counts the earlier queries of each arm of an action, in past rounds and earlier in this one: int32, by node."""
    before = counts.at[action.node, action.slot].get(mode="clip")
    if jnp.ndim(action.node) == 0:
        return before
    is_same = (action.node[None] == action.node[:, None]) & (action.slot[None] == action.slot[:, None])
    return before + jnp.sum(jnp.tril(is_same, -1), axis=1, dtype=jnp.int32)


def no_pull(problem: Problem) -> Pull:
    """Returns the `Pull` that does nothing."""
    node, slot = jnp.asarray(problem.n, jnp.int32), jnp.zeros((), jnp.int32)
    return Pull(node, slot, jnp.zeros(problem.k - 1, jnp.int32), jnp.zeros((), bool), problem)


def no_counts(problem: Distances) -> Counts:
    """Returns the `Counts` that do nothing."""
    return Counts(jnp.zeros((problem.n, problem.k - 1), jnp.int32), jnp.zeros(problem.k - 1, jnp.int32), problem)


Kind = type[Pull] | type[PairPull] | type[Counts]


def _counting(stream: Key, problem: Problem, respond: Callable[[Any, Array], Any], kind: Kind) -> Environment:
    """Returns the environment of (action, earlier queries of its arms) -> observation, which counts the queries."""

    def respond_stream(counts: Array, action: Any, noise: tuple[()]) -> tuple[Any, Array]:
        del noise
        if kind is Counts:
            return respond(action, counts), counts + action.pulls
        after = counts.at[action.node, action.slot].add(1, mode="drop")
        return respond(action, _earlier(counts, action)), after

    start = lambda key: jnp.zeros((problem.n, problem.k - 1), jnp.int32)  # noqa: E731
    return Environment(start, lambda key: (), respond_stream, stream)


def _sampling(instance: DimensionInstance) -> Callable[[Pull, Array], Sample]:
    """Returns the answer to a query, given the dimensions that it draws."""
    points, exact, point_of = jnp.asarray(instance.points), jnp.asarray(instance.exact), _point_of(instance.rows)
    dtype = sum_dtype(points.dtype)

    def respond(pull: Pull, dimensions: Array) -> Sample:
        node, center = point_of(pull.node), point_of(pull.centers.at[pull.slot].get(mode="clip"))
        of_node, of_center = (points.at[x, dimensions].get(mode="clip").astype(dtype) for x in (node, center))
        return Sample(jnp.square(of_node - of_center), exact.at[node, center].get(mode="clip"))

    return respond


def _dimensions(instance: DimensionInstance, leap: int) -> Environment:
    problem, sample = instance.problem, _sampling(instance)

    def respond(pull: Pull, dimensions: Array) -> Sample:
        _check_action(pull, Pull, problem, ())
        return sample(pull, dimensions)

    return memoryless(lambda key: jax.random.randint(key, (leap,), 0, problem.m, jnp.int32), respond)


def _dimensions_from(stream: Key, instance: DimensionInstance, shape: tuple[int, ...]) -> Environment:
    """Answers queries of this shape, with dimensions that depend on the pair of nodes and the number of the query."""
    problem, sample = instance.problem, _sampling(instance)

    def respond_one(pull: Pull, before: Array) -> Sample:
        pair_key = _pair_key(stream, pull.node, pull.centers.at[pull.slot].get(mode="clip"))
        return sample(pull, jax.random.randint(key_of(pair_key, before), (1,), 0, problem.m, jnp.int32))

    def respond(pull: Pull, before: Array) -> Sample:
        _check_action(pull, Pull, problem, shape)
        return jax.vmap(respond_one)(pull, before) if shape else respond_one(pull, before)

    return _counting(stream, problem, respond, Pull)


def _pair_key(stream: Key, node: Array, center: Array) -> Key:
    """Returns the key of two nodes, the same in either order."""
    return key_of(stream, jnp.minimum(node, center), jnp.maximum(node, center))


def _several(environment: Environment, count: int) -> Environment:
    """Answers several actions per round, each with its own noise."""

    def respond(actions: Any, noise: Any) -> Any:
        _check_form(actions, Pull, (count,))
        return jax.vmap(lambda action, noise: environment.respond((), action, noise)[0])(actions, noise)

    def noise(key: Key) -> Any:
        return jax.vmap(environment.noise)(jax.random.split(key, count))

    return memoryless(noise, respond)


def _means(instance: DistanceInstance, kind: Any) -> Callable[[Any], tuple[Array, Array, Array]]:
    """Returns a function from an action to its nodes, their centers, and the mean rewards, all of one shape."""
    distances, point_of, problem = jnp.asarray(instance.distances), _point_of(instance.rows), instance.problem

    def queries_of(action: Any) -> tuple[Array, Array, Array]:
        if kind is Counts:
            _check_action(action, Counts, problem)
            nodes, centers = jnp.arange(problem.n, dtype=jnp.int32)[:, None], action.centers
        else:
            _check_action(action, kind, problem, (2,) if kind is PairPull else ())
            nodes, centers = action.node, action.centers.at[action.slot].get(mode="clip")
        return nodes, centers, distances.at[point_of(nodes), point_of(centers)].get(mode="clip")

    return queries_of


def _noisy_from(stream: Key, instance: DistanceInstance, kind: Any) -> Environment:
    """Answers noisy distances, with noise that depends on the pair of nodes and the number of the query."""
    problem, queries_of, dtype = instance.problem, _means(instance, kind), jnp.asarray(instance.distances).dtype

    def rewards(node: Array, center: Array, mean: Array, before: Array, times: Array) -> Array:
        key = _pair_key(stream, node, center)
        if problem.noise == "bernoulli":
            return (jax.random.uniform(key_of(key, before), (), dtype) < mean).astype(jnp.int32)
        scale = jnp.asarray(instance.noise_scale).astype(dtype)
        return times.astype(dtype) * mean + scale * increment(key, before, times, dtype)

    def respond(action: Any, before: Array) -> Array:
        times = action.pulls if kind is Counts else jnp.ones_like(before)
        return jnp.vectorize(rewards)(*jnp.broadcast_arrays(*queries_of(action), before, times))

    return _counting(stream, problem, respond, kind)


def _noisy(instance: DistanceInstance, kind: Any) -> Environment:
    problem, queries_of, dtype = instance.problem, _means(instance, kind), jnp.asarray(instance.distances).dtype
    shape = (2,) if kind is PairPull else ()

    def means_of(action: Any) -> Array:
        return queries_of(action)[2]

    if problem.noise == "bernoulli" and kind is Counts:
        has_64_bit = jnp.result_type(float) == jnp.float64
        require(has_64_bit, "jax_enable_x64", "be on for binomial sums", has_64_bit)

        def binomial_sums(counts: Counts, key: Key) -> Array:
            probability = means_of(counts).astype(jnp.float64)
            return jax.random.binomial(key, counts.pulls.astype(jnp.float64), probability).astype(jnp.int32)

        return memoryless(lambda key: key, binomial_sums)

    if problem.noise == "bernoulli":
        return memoryless(
            lambda key: uniform_noise(key, shape, dtype),
            lambda action, uniform: (uniform < means_of(action)).astype(jnp.int32),
        )

    scale = jnp.asarray(instance.noise_scale).astype(dtype)
    if kind is Counts:

        def normal_sums(counts: Counts, key: Key) -> Array:
            pulls = counts.pulls.astype(dtype)
            return pulls * means_of(counts) + jnp.sqrt(pulls) * scale * jax.random.normal(key, pulls.shape, dtype)

        return memoryless(lambda key: key, normal_sums)

    return memoryless(
        lambda key: normal_noise(key, shape, dtype), lambda action, normal: means_of(action) + scale * normal
    )


def _point_of(rows: Array | None) -> Callable[[Array], Array]:
    """Returns the map from nodes of an instance to points of the shared arrays."""
    if rows is None:
        return lambda nodes: nodes
    table = jnp.asarray(rows, jnp.int32)
    return lambda nodes: table.at[nodes].get(mode="clip")


def _check_action(action: Any, kind: type, problem: Problem, shape: tuple[int, ...] | None = None) -> None:
    """Raises `ValueError` unless `action` has this form and is for this problem; both are known before tracing."""
    _check_form(action, kind, shape)
    require(action.problem == problem, "action.problem", f"be {problem}, the environment's", action.problem)
    expected = (
        f"query nodes of 0..{problem.n - 1} against slots of 0..{problem.k - 2}, or none ({problem.n}, {problem.k - 1})"
    )
    checks.domain(action, partial(_accepts, problem), expected)


def _check_form(action: Any, kind: type, shape: tuple[int, ...] | None) -> None:
    """Raises `ValueError` unless `action` is of this kind, and its nodes have this shape, if it has one."""
    made, advice = "as the environment was made", "Write kcenter.environment(instance, algorithm)"
    require(isinstance(action, kind), "action", f"be of type {kind.__name__}, {made}", action, advice=advice)
    if shape is not None:
        given = jnp.shape(action.node)
        require(given == shape, "action.node", f"have shape {shape}, {made}", given, advice=advice)
