"""The contract: what an algorithm, an environment and the result of a run are.

Everything here describes a single lane. No function has a batch axis; `jax.vmap` stands outside.
"""

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import jax

# The aliases below stay out of the reference, where `Array` would be all methods of JAX's arrays.
__all__ = ["Algorithm", "Decision", "Environment", "Outcome", "Status", "static_fields"]

PyTree = Any
Array = jax.Array
Key = jax.Array
T = TypeVar("T")


def static_fields(*names: str) -> Callable[[type[T]], type[T]]:
    """Makes fields of a NamedTuple static for JAX: sizes, graphs, functions, anything that is no array.

    They are part of a struct's structure, not of its leaves, so that the struct goes through `jit`, `vmap` and
    stacking as it is. Their values must be hashable.

    Args:
        *names: of the fields.

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
    """What an algorithm makes of its state before a round."""

    action: PyTree  # what to query next
    stop: Array  # bool ()     the stopping rule holds
    answer: PyTree  # the recommendation if the run ended now


class Algorithm(NamedTuple):
    """A sequential algorithm as pure functions of one lane's state.

    A state is a NamedTuple whose first field is `pulls`, an integer (): the oracle queries spent so far, kept by
    `observe`. Its exact statistics (integer counts, reward sums) are the truth; everything else in it is a cache. All
    its floating-point entries are finite as long as the run is healthy: the engine ends a run whose state holds a NaN
    or an infinity as `Status.NONFINITE`.

    `stop` is a function of the state alone, so that a lane that has stopped stays stopped.

    `refresh` is cheap, and is called for every lane at a chunk's start. `plan` is heavy and rare: a new phase, a
    synchronisation, new weights. It comes with `stale`, which says that it is due, or not at all. A state that is stale
    gets the idle action until it is planned, which may be some rounds later: what the run does must not depend on how
    long it waits. Planning spends no pull; a state that has just been planned is not stale, nor is one that stops.

    The engine keeps what `plan` makes of a state that is not due from entering it, by a select over the whole state.
    An algorithm whose state is large says with `spares` that its `plan` does so itself, where the work is done.

    `before` says how often what an action pulls was pulled before, in the form that the family's environments with a
    stream want: for one arm an integer (), for each of K arms (K,). See `jaxbandits.numbered`.

    `problem` returns what an algorithm was made for, by name: sizes, arrays, structs of arrays. The environment's
    entries of the same names must agree: sizes and shapes always, values where both are known before a program runs.
    Where they do, the algorithm is trusted to ask for what exists (`Environment`): hold yours to it by
    `jaxbandits.testing.check`, or leave `problem` out.
    """

    init: Callable[[Key], PyTree]  # (key) -> state
    decide: Callable[[Key, PyTree], Decision]  # (key, state) -> Decision
    observe: Callable[[PyTree, PyTree, PyTree], PyTree]  # (state, action, observation) -> state
    idle: PyTree  # an action that does nothing: observing it leaves every bit of the state as it was, at no query
    refresh: Callable[[PyTree], PyTree] | None = None  # (state) -> state  rebuilds the cache from the statistics
    plan: Callable[[Key, PyTree], PyTree] | None = None  # (key, state) -> state  heavy, rare work, where it is due
    stale: Callable[[PyTree], Array] | None = None  # (state) -> bool ()  `plan` is due
    before: Callable[[PyTree, PyTree], PyTree] | None = None  # (state, action) -> int  pulls of its arms before it
    spares: bool = False  # `plan` leaves every bit of a state that is not stale as it was
    problem: Callable[[], Mapping[str, Any]] | None = None  # () -> what it was made for; None: it does not say
    # (action, observation) -> observation  as arrays; raises `ValueError` unless it can be the action's (`tell`)
    receive: Callable[[PyTree, PyTree], PyTree] | None = None


class Environment(NamedTuple):
    """A source of observations. Its randomness is apart from the response, so that it can be drawn ahead.

    `problem` is compared with the algorithm's. Where the two are to differ, in a study of wrong models, leave it out:
    `environment._replace(problem=None)`.

    JAX clamps an index that is out of range. The engine therefore asks `accepts` in every round, and ends a run whose
    action does not exist as `Status.INVALID_ACTION`; an algorithm whose `problem` agrees with the environment's is
    trusted. `jaxbandits.testing.check` asks always, `admits` too.
    """

    noise: Callable[[Key], PyTree]  # (key) -> noise  the randomness of one round, for any action
    respond: Callable[[PyTree, PyTree], PyTree]  # (action, noise) -> observation
    stream: Key | None = None  # observations are functions of it and of the numbered pulls: shared by who has the same
    problem: Callable[[], Mapping[str, Any]] | None = None  # () -> what it answers for; None: it does not say
    accepts: Callable[[PyTree], Array] | None = None  # (action) -> bool ()  all that the action asks for exists
    admits: Callable[[PyTree], Array] | None = None  # (answer) -> bool ()   all that the answer names exists


class Status(enum.IntEnum):
    """How a run ended."""

    RUNNING = 0  # it has not
    STOPPED = 1  # the stopping rule held: the only status whose pulls are a stopping time
    MAX_ROUNDS = 2  # censored: the budget of rounds ran out first
    NONFINITE = 3  # failed: a NaN or an infinity in the state
    HORIZON = 4  # complete: the run has spent the pulls that it was meant to last
    INVALID_ACTION = 5  # failed: the algorithm asks for what the environment does not have


class Outcome(NamedTuple):
    """The end of one run."""

    status: Array  # int32 ()   a `Status`
    pulls: Array  # int ()      oracle queries spent
    rounds: Array  # int32 ()   decisions carried out
    answer: PyTree  # the recommendation
    state: PyTree  # the algorithm's last state
    curves: Any = None  # dict of arrays (G, ...), what was recorded at G marks; empty if nothing was
