"""The contract: what an algorithm, an environment and the result of a run are.

Everything here describes a single lane. No function has a batch axis; `jax.vmap` stands outside.
"""

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import jax

# The aliases below stay out of the reference, where `Array` would be all methods of JAX's arrays.
__all__ = ["Algorithm", "Decision", "Environment", "Outcome", "Status", "memoryless", "static_fields"]

PyTree = Any
Array = jax.Array
Key = jax.Array
T = TypeVar("T")

NO_RESPONSE = (
    "environment must have three functions, init(key) -> memory, noise(key) -> noise and "
    "respond(memory, action, noise) -> (observation, memory), got two. If it remembers nothing, make it by "
    "jaxbandits.memoryless(noise, respond)"
)


def static_fields(*names: str) -> Callable[[type[T]], type[T]]:
    """Makes fields of a NamedTuple static for JAX: sizes, graphs, functions, anything that is no array.

    Static fields belong to a struct's structure, not to its leaves, so the struct passes through `jit`, `vmap` and
    stacking unchanged. Their values must be hashable.

    Args:
        *names: names of the fields.

    Returns:
        A decorator of the class.

    Example:
        >>> @static_fields("k")
        ... class Problem(NamedTuple):
        ...     means: Array
        ...     k: int
        >>> jax.tree.map(jax.numpy.shape, Problem(jax.numpy.zeros(3), k=2))
        Problem(means=(3,), k=2)
    """

    def register(struct: Any) -> Any:
        leaves = [name for name in struct._fields if name not in names]

        def flatten(value: Any) -> tuple[list[Any], tuple[Any, ...]]:
            return [getattr(value, name) for name in leaves], tuple(getattr(value, name) for name in names)

        def flatten_with_keys(value: Any) -> tuple[list[tuple[Any, Any]], tuple[Any, ...]]:
            children, static = flatten(value)
            return list(zip(map(jax.tree_util.GetAttrKey, leaves), children, strict=True)), static

        def unflatten(static: tuple[Any, ...], children: Iterable[Any]) -> Any:
            return struct(**dict(zip(leaves, children, strict=True)), **dict(zip(names, static, strict=True)))

        jax.tree_util.register_pytree_with_keys(struct, flatten_with_keys, unflatten, flatten)
        return struct

    return register


class Decision(NamedTuple):
    """An algorithm's decision before a round."""

    action: PyTree  # the next query
    stop: Array  # bool ()     the stopping rule holds
    answer: PyTree  # the recommendation if the run ended now


class Algorithm(NamedTuple):
    """A sequential algorithm as pure functions of one lane's state.

    A state is a NamedTuple whose first field is `pulls`, an integer (): the oracle queries spent so far, counted by
    `observe`. Its exact statistics (integer counts, reward sums) are the truth; everything else in it is a cache. In a
    healthy run all floating-point entries are finite. The engine ends a run whose state holds a NaN or an infinity as
    `Status.NONFINITE`.

    `stop` is a function of the state alone, so that a lane that has stopped stays stopped.

    `refresh` is cheap and runs in every lane at the start of a chunk. `plan` is heavy and rare: a new phase, a
    synchronisation, new weights. It requires `stale`, which returns True when a plan is due. A stale state gets the
    idle action until it is planned, possibly some rounds later. The run must not depend on the length of this wait.
    Planning spends no pull. A state that has just been planned is not stale, nor is one that stops.

    If a state is not due for planning, the engine discards `plan`'s result by a select over the whole state. This is
    slow for large states. With `masked_plan`, an algorithm promises that its `plan` itself leaves such states as they
    are.

    With `needs_order`, `observe` reads what only the state that made the decision holds, such as the probability of
    the pulled arm. An observation must reach this state before it decides again. `jaxbandits.feedback.delayed` and
    `batched` refuse such an algorithm.

    `problem` returns the sizes, arrays and structs of arrays that an algorithm was made for, by name. The environment's
    entries of the same names must agree: sizes and shapes always, values where both are known before a program runs.
    If they agree, the engine trusts that every action exists (see `Environment`). Test an algorithm of your own with
    `jaxbandits.testing.check`, or leave `problem` out.

    An algorithm is made of functions, which `jax.jit` takes as no argument. A jitted function closes over it:
    `jax.jit(lambda key: run(key, algorithm, environment, max_rounds=1000))`.
    """

    init: Callable[[Key], PyTree]  # (key) -> state
    decide: Callable[[Key, PyTree], Decision]  # (key, state) -> Decision
    observe: Callable[[PyTree, PyTree, PyTree], PyTree]  # (state, action, observation) -> state
    idle: PyTree  # an action that pulls nothing: observing it leaves every bit of the state unchanged
    refresh: Callable[[PyTree], PyTree] | None = None  # (state) -> state  rebuilds the cache from the statistics
    plan: Callable[[Key, PyTree], PyTree] | None = None  # (key, state) -> state  heavy, rare work, when it is due
    stale: Callable[[PyTree], Array] | None = None  # (state) -> bool ()  `plan` is due
    masked_plan: bool = False  # `plan` leaves every bit of a state that is not stale unchanged
    needs_order: bool = False  # `observe` must follow its own decision at once
    problem: Callable[[], Mapping[str, Any]] | None = None  # () -> the problem it was made for; None if undeclared
    # (action, observation) -> observation as arrays; raises `ValueError` if it cannot be the action's (see `tell`)
    receive: Callable[[PyTree, PyTree], PyTree] | None = None


def response_missing(*_: Any) -> Any:
    """Stands for the response of an environment that was made of two functions."""
    raise ValueError(NO_RESPONSE)


class Environment(NamedTuple):
    """A source of observations, as pure functions of one lane's memory.

    The randomness of a round is separate from the response, so that it can be drawn in advance. The memory is a pytree
    of small arrays, which the engine carries beside the state: how often each arm was pulled, rewards that are still to
    come, a position in a table. It is `()` if nothing is remembered, see `memoryless`. Its structure, shapes and dtypes
    never change, and a response to the idle action leaves every bit of it unchanged. `init` draws from a key of its
    own, so an environment with a memory has the noise of one without.

    The engine compares `problem` with the algorithm's. To let the two differ, as in a study of wrong models, leave it
    out: `environment._replace(problem=None)`.

    JAX clamps an index that is out of range. The engine therefore calls `accepts` in every round, and ends a run whose
    action does not exist as `Status.INVALID_ACTION`. It trusts an algorithm whose `problem` agrees with the
    environment's. `jaxbandits.testing.check` always calls both `accepts` and `admits`.

    An environment may run out of answers, as a table of recorded rewards does: a run whose action is not `available`
    ends as `Status.EXHAUSTED`. It may also report on its memory, in `columns` of the results.

    Example:
        Arms that wear out: each pull of an arm lowers its mean by one per cent.

        >>> import jax.numpy as jnp
        >>> import jaxbandits
        >>> from jaxbandits import mab
        >>> def respond(counts, pull, noise):
        ...     means = jnp.array([0.3, 0.8])[pull.arms] * 0.99 ** counts[pull.arms].astype(float)
        ...     rewards = jnp.where(pull.times > 0, means + noise, 0)
        ...     return mab.Rewards(rewards, pull.times), counts.at[pull.arms].add(pull.times)
        >>> wearing = Environment(
        ...     init=lambda key: jnp.zeros(2, jnp.int32),
        ...     noise=lambda key: jax.random.normal(key, (1,)),
        ...     respond=respond,
        ...     pulls=lambda pull: pull.times.sum(),
        ...     columns=lambda counts: {"most_pulls": counts.max()},
        ... )
        >>> settings = {"seeds": 2, "key": jax.random.key(0), "horizon": 100, "progress": False}
        >>> results = jaxbandits.sweep(lambda task, key: (mab.ucb1(mab.Gaussian(2)), wearing), None, **settings)
        >>> print(results.columns["most_pulls"] > 50)
        [ True  True]
    """

    init: Callable[[Key], PyTree]  # (key) -> memory before the first round
    noise: Callable[[Key], PyTree]  # (key) -> noise  the randomness of one round, for any action
    # (memory, action, noise) -> (observation, memory)
    respond: Callable[[PyTree, PyTree, PyTree], tuple[PyTree, PyTree]] = response_missing
    stream: Key | None = None  # key of common random numbers: environments with the same key share their rewards
    problem: Callable[[], Mapping[str, Any]] | None = None  # () -> the problem it answers for; None if undeclared
    accepts: Callable[[PyTree], Array] | None = None  # (action) -> bool ()  everything in the action exists
    admits: Callable[[PyTree], Array] | None = None  # (answer) -> bool ()   everything in the answer exists
    pulls: Callable[[PyTree], Array] | None = None  # (action) -> int ()   the most pulls that it makes; idle: 0
    available: Callable[[PyTree, PyTree], Array] | None = None  # (memory, action) -> bool ()  there is an answer
    columns: Callable[[PyTree], Mapping[str, Array]] | None = None  # (memory) -> columns of `Results`


def memoryless(noise: Callable[[Key], PyTree], respond: Callable[[PyTree, PyTree], PyTree]) -> Environment:
    """Returns the environment of a response that remembers nothing: a function of the action and the round's noise.

    Args:
        noise: (key) -> noise, the randomness of one round, for any action.
        respond: (action, noise) -> observation.

    Returns:
        Environment, whose memory is ().

    Raises:
        ValueError: an argument is no function.

    Example:
        A coin for each of two arms.

        >>> import jaxbandits
        >>> from jaxbandits import mab
        >>> problem, means = mab.Bernoulli(2), jax.numpy.array([0.3, 0.8])
        >>> def respond(pull, u):
        ...     is_one = (u < means[pull.arms]) & (pull.times > 0)
        ...     return mab.Rewards(is_one.astype(float), pull.times)
        >>> coins = memoryless(lambda key: jax.random.uniform(key, (1,)), respond)
        >>> outcome = jaxbandits.run(jax.random.key(0), mab.ttucb(problem, delta=0.1), coins, max_rounds=10**4)
        >>> print(outcome.answer)
        1

        Rewards with heavy tails, Student's t with three degrees of freedom:

        >>> def respond(pull, noise):
        ...     return mab.Rewards(jax.numpy.where(pull.times > 0, means[pull.arms] + noise, 0), pull.times)
        >>> heavy = memoryless(lambda key: jax.random.t(key, 3.0, (1,)), respond)
        >>> algorithm = mab.ttucb(mab.Gaussian(2, noise_scale=3**0.5), delta=0.1)
        >>> print(jaxbandits.run(jax.random.key(0), algorithm, heavy, max_rounds=10**4).answer)
        1

        A bootstrapped log: every pull draws one of the rewards that were recorded of its arm.

        >>> log = jax.numpy.array([[0.1, 0.4, 0.2, 0.5], [0.9, 0.7, 0.4, 1.0]])
        >>> def respond(pull, u):
        ...     rewards = log[pull.arms, (4 * u).astype(int)]
        ...     return mab.Rewards(jax.numpy.where(pull.times > 0, rewards, 0), pull.times)
        >>> logged = memoryless(lambda key: jax.random.uniform(key, (1,)), respond)
        >>> algorithm = mab.ttucb(mab.Gaussian(2, noise_scale=0.3), delta=0.1)
        >>> print(jaxbandits.run(jax.random.key(0), algorithm, logged, max_rounds=10**4).answer)
        1

        An idle pull has `times` 0. Its sum of rewards is 0.
    """
    for name, function in (("noise", noise), ("respond", respond)):
        if not callable(function):
            raise ValueError(f"{name} must be a function, got {type(function).__name__}")
    return Environment(lambda key: (), noise, lambda memory, action, noise: (respond(action, noise), memory))


class Status(enum.IntEnum):
    """The reason why a run ended."""

    RUNNING = 0  # not ended yet
    STOPPED = 1  # the stopping rule held: the only status whose pulls are a stopping time
    MAX_ROUNDS = 2  # censored: the budget of rounds ran out first
    NONFINITE = 3  # failed: a NaN or an infinity in the state
    HORIZON = 4  # complete: the run has spent its horizon of pulls
    INVALID_ACTION = 5  # failed: the action does not exist in the environment
    EXHAUSTED = 6  # censored: the environment has no further answer, see `Environment.available`


class Outcome(NamedTuple):
    """The end of one run."""

    status: Array  # int32 ()   a `Status`
    pulls: Array  # int ()      oracle queries spent
    rounds: Array  # int32 ()   decisions carried out
    answer: PyTree  # the recommendation
    state: PyTree  # the algorithm's last state
    memory: PyTree = ()  # the environment's last memory
    curves: Any = None  # dict of arrays (G, ...), recorded at G marks; empty if nothing was recorded
