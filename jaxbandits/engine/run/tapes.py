"""Tapes: records of every round of a run, to be inspected, replayed, and compared with another program.

`trace` records the tape of a run, `replay` feeds the observations of a tape to an algorithm, and `first_difference`
compares two tapes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Environment, Key, PyTree
from jaxbandits.engine.run.compatibility import action_check, require_fit, require_pair
from jaxbandits.engine.run.loop import DEFAULT_CHUNK
from jaxbandits.engine.run.round import Streams, decision_of, noise_of, planned, play, streams

Respond = Callable[[Array, PyTree, PyTree], tuple[PyTree, PyTree]]  # (round, memory, action) -> (observation, memory)
Watch = Callable[[PyTree], PyTree]  # (state) -> arrays that a tape records


class Tape(NamedTuple):
    """Record of a run, round by round; entry r of every array belongs to round r, from 0."""

    actions: PyTree  # leaves (rounds, ...)          idle if the algorithm stops, or its action has no answer
    observations: PyTree  # leaves (rounds, ...)
    stops: Array  # bool (rounds,)                   the stopping rule holds before the round
    answers: PyTree  # leaves (rounds, ...)          the recommendation before the round
    watched: PyTree = ()  # leaves (rounds, ...)     result of `watch` for the state that decided


class Difference(NamedTuple):
    """First difference between two tapes."""

    round: int  # round number, counted from 0
    field: str  # name such as actions.arm; rounds if one of the tapes ends there
    first: Any  # entry of the first tape
    other: Any  # entry of the other tape


def trace(
    key: Key,
    algorithm: Algorithm,
    environment: Environment,
    *,
    rounds: int,
    chunk: int = DEFAULT_CHUNK,
    watch: Watch | None = None,
) -> Tape:
    """Runs one task and records every round: the same rounds as `jaxbandits.run` with the same key.

    Args:
        key: the task's key.
        algorithm: the algorithm that decides.
        environment: the environment that answers.
        rounds: number of rounds to record. Rounds after a stop, and rounds whose action does not exist, are idle.
        chunk: rounds between two refreshes of the algorithm's cache, as in `run`.
        watch: (state) -> arrays that the tape records in every round. If None, it records nothing of the state.

    Returns:
        Tape of `rounds` rounds. If a plan is due, the decision and the watched state come after planning.

    Raises:
        ValueError: an argument is of the wrong kind, `rounds` or `chunk` is below 1, or the algorithm and the
            environment are not compatible.

    Cost: the memory of all rounds, and a compilation in every call, unless the call is within `jax.jit`.

    Example:
        >>> from jaxbandits import linear, trace
        >>> instance = linear.canonical(0.5)
        >>> algorithm, environment = linear.lingape(instance.arms, delta=0.1), linear.environment(instance)
        >>> tape = trace(jax.random.key(0), algorithm, environment, rounds=6)
        >>> print(tape.actions.arm, tape.observations.shape, tape.stops)
        [0 1 2 3 4 0] (6,) [False False False False False False]
    """
    checks.key("key", key)
    checks.instance("algorithm", algorithm, Algorithm)
    checks.instance("environment", environment, Environment)
    rounds, chunk = checks.whole("rounds", rounds, least=1), checks.whole("chunk", chunk, least=1)
    _require_watch(watch)
    require_fit(algorithm, environment)
    keys = streams(key)

    def respond(r: Array, memory: PyTree, action: PyTree) -> tuple[PyTree, PyTree]:
        return environment.respond(memory, action, noise_of(environment, keys, r))

    judges: dict[str, Any] = {
        "accepts": action_check(algorithm, environment),
        "available": environment.available,
    }
    memory = environment.init(keys.memory)
    return _follow(algorithm, keys, memory, respond, rounds=rounds, chunk=chunk, watch=watch, **judges)


def replay(
    algorithm: Algorithm,
    tape: Tape,
    *,
    key: Key | None = None,
    chunk: int = DEFAULT_CHUNK,
    watch: Watch | None = None,
) -> Tape:
    """Feeds the observations of a tape to an algorithm, one per round, whatever its actions are.

    Args:
        algorithm: the algorithm that decides.
        tape: tape of a run of the same algorithm, of another one, or of a paper's own code in NumPy arrays. Only its
            observations are used. Observations of rounds in which the algorithm has stopped are skipped.
        key: key of the algorithm's own randomness. An algorithm that uses its key needs the key of the trace to repeat
            it. If None, it is `jax.random.key(0)`. Another program draws the same numbers with the keys of
            `round_keys`.
        chunk: rounds between two refreshes of the algorithm's cache, as in `run`.
        watch: (state) -> arrays that the tape records in every round, to be compared with the other program's
            variables. If None, it records nothing of the state.

    Returns:
        Tape of the algorithm's actions, as long as the other tape. `first_difference` compares the two.

    Raises:
        ValueError: an argument is of the wrong kind, `chunk` is below 1, or the observations lack a common leading
            axis of length at least 1.

    Example:
        Tests an algorithm of your own against the contract, and then against its definition: two arms in turn, and the
        better mean after ten rounds.

        >>> from jaxbandits import Algorithm, Decision, linear, testing, trace
        >>> class State(NamedTuple):
        ...     pulls: Array  # int ()
        ...     sums: Array  # float (2,)    of rewards
        >>> once, never = jnp.ones((), int), jnp.zeros((), int)
        >>> def decide(key, state):
        ...     return Decision(linear.Pull(state.pulls % 2, once), state.pulls >= 10, jnp.argmax(state.sums))
        >>> def observe(state, pull, reward):
        ...     return State(state.pulls + pull.times, state.sums.at[pull.arm].add(reward))
        >>> mine = Algorithm(lambda key: State(never, jnp.zeros(2)), decide, observe, idle=linear.Pull(never, never))
        >>> environment, key = linear.environment(linear.canonical(0.5)), jax.random.key(0)
        >>> testing.check(mine, environment, key=key, rounds=12)
        >>> tape = trace(key, mine, environment, rounds=12)
        >>> turns, running = np.arange(12) % 2, np.arange(12) < 10  # the same in NumPy
        >>> rewards = np.eye(2)[turns] * np.asarray(tape.observations)[:, None]
        >>> best = np.argmax(np.cumsum(rewards, axis=0) - rewards, axis=1)  # before each round
        >>> theirs = Tape(linear.Pull(turns * running, 1 * running), tape.observations, ~running, best)
        >>> print(testing.first_difference(theirs, testing.replay(mine, theirs)))
        None
        >>> hasty = mine._replace(decide=lambda key, state: decide(key, state)._replace(stop=state.pulls >= 8))
        >>> print(testing.first_difference(theirs, testing.replay(hasty, theirs)))
        Difference(round=8, field='stops', first=False, other=True)
    """
    checks.instance("algorithm", algorithm, Algorithm)
    checks.instance("tape", tape, Tape)
    chunk = checks.whole("chunk", chunk, least=1)
    _require_watch(watch)
    require_pair(algorithm)
    if key is not None:
        checks.key("key", key)
    observations = jax.tree.map(jnp.asarray, tape.observations)
    lengths = {x.shape[:1] for x in jax.tree.leaves(observations)}
    if len(lengths) != 1 or not next(iter(lengths), ()) or lengths == {(0,)}:
        shapes = [x.shape for x in jax.tree.leaves(observations)]
        raise ValueError(f"tape must have observations with one common leading axis, the rounds, got shapes {shapes}")
    ((rounds,),) = lengths
    keys = streams(jax.random.key(0, impl="threefry2x32") if key is None else key)

    def respond(r: Array, memory: PyTree, action: PyTree) -> tuple[PyTree, PyTree]:
        return jax.tree.map(lambda x: x[r], observations), memory

    return _follow(algorithm, keys, (), respond, rounds=rounds, chunk=chunk, watch=watch)


def round_keys(key: Key, rounds: int) -> Key:
    """Returns the keys with which an algorithm decides, so that another program can draw the same random numbers.

    Args:
        key: the task's key, as for `trace`, `replay` or `jaxbandits.run`.
        rounds: number of rounds.

    Returns:
        Keys (rounds,), one per round.

    Raises:
        ValueError: `key` is no key, or `rounds` is below 1.

    Example:
        >>> from jaxbandits import mab, testing, trace
        >>> instance, key = mab.gaussian((0.5, 0.0)), jax.random.key(0)
        >>> tape = jax.device_get(trace(key, mab.thompson(instance.problem), mab.environment(instance), rounds=6))
        >>> keys = testing.round_keys(key, 6)
        >>> u = np.asarray(jax.vmap(lambda key: jax.random.uniform(key, (2, 1), float))(keys))
        >>> radius, angle = np.sqrt(-2 * np.log(u[:, 0] + 2.0**-53)), np.pi * (2 * u[:, 1] - 0.25)
        >>> drawn = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)  # normal variables
        >>> counts, sums = np.ones(2), np.array(tape.observations.sums[:2, 0])  # both arms have been pulled once
        >>> for r in range(2, 6):  # Thompson sampling in NumPy
        ...     arm = np.argmax(sums / counts + drawn[r] / np.sqrt(counts))
        ...     assert arm == tape.actions.arms[r, 0]
        ...     counts[arm], sums[arm] = counts[arm] + 1, sums[arm] + tape.observations.sums[r, 0]
    """
    checks.key("key", key)
    rounds = checks.whole("rounds", rounds, least=1)
    return jax.vmap(lambda r: jax.random.fold_in(streams(key).decide, r))(jnp.arange(rounds, dtype=jnp.int32))


def first_difference(
    tape: Tape, other: Tape, *, tolerance: float = 0.0, absolute_tolerance: float = 0.0
) -> Difference | None:
    """Returns the first round in which two tapes differ, and the first field that differs there.

    Args:
        tape: one tape.
        other: the other tape, whose fields have the same structure. Entries that a program lacks (an answer before
            there is one, a variable that it records rarely) may be masked in either tape, `np.ma.masked_array`. Masked
            entries are not compared.
        tolerance: largest difference of two floating-point numbers, relative to the larger one. A NaN is equal to a
            NaN.
        absolute_tolerance: largest difference in their own unit. Two numbers are equal if either tolerance holds.

    Returns:
        Difference, or None if there is none. Within a round fields are compared in the order observations, watched,
        stops, actions, answers.

    Raises:
        ValueError: an argument is of the wrong kind, or a field has another structure in the other tape.

    Example:
        >>> ours = Tape(np.array([0, 1, 2]), np.zeros(3), np.zeros(3, bool), np.array([0, 0, 1]))
        >>> theirs = ours._replace(actions=np.array([0, 1, 1]))
        >>> print(first_difference(ours, theirs))
        Difference(round=2, field='actions', first=2, other=1)
        >>> unknown = theirs._replace(actions=np.ma.masked_array(theirs.actions, mask=[False, False, True]))
        >>> print(first_difference(ours, unknown))
        None
    """
    checks.instance("tape", tape, Tape)
    checks.instance("other", other, Tape)
    checks.not_negative("tolerance", tolerance)
    checks.not_negative("absolute_tolerance", absolute_tolerance)
    differences: list[Difference] = []
    lengths: list[tuple[int, int]] = []
    for field in ("observations", "watched", "stops", "actions", "answers"):
        ours, theirs = getattr(tape, field), getattr(other, field)
        if jax.tree.structure(ours) != jax.tree.structure(theirs):
            raise ValueError(
                f"other must have {field} of the same structure, {jax.tree.structure(ours)}, got "
                f"{jax.tree.structure(theirs)}"
            )
        for (path, x), y in zip(jax.tree.leaves_with_path(ours), jax.tree.leaves(theirs), strict=True):
            x, y = (np.ma.masked_array(z) for z in (x, y))
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            name = f"{field}.{name}" if name else field
            if x.shape[1:] != y.shape[1:]:
                raise ValueError(f"other must have {name} of shape {x.shape[1:]} per round, got {y.shape[1:]}")
            lengths.append((len(x), len(y)))
            rounds = min(lengths[-1])
            is_masked = np.ma.getmaskarray(x)[:rounds] | np.ma.getmaskarray(y)[:rounds]
            x, y = x.data, y.data
            same = is_masked | _is_same(x[:rounds], y[:rounds], relative=tolerance, absolute=absolute_tolerance)
            differ = ~same.reshape(rounds, -1).all(axis=1)
            if differ.any():
                r = int(np.argmax(differ))
                differences.append(Difference(r, name, x[r].tolist(), y[r].tolist()))
    for x, y in lengths:
        if x != y:
            differences.append(Difference(min(x, y), "rounds", x, y))
    return min(differences, key=lambda difference: difference.round, default=None)


def _require_watch(watch: Watch | None) -> None:
    checks.require(watch is None or callable(watch), "watch", "be a function of a state, or None", watch)


def _is_same(x: np.ndarray, y: np.ndarray, *, relative: float, absolute: float) -> np.ndarray:
    """Returns True for every entry that is the same within a tolerance."""
    if not (np.issubdtype(x.dtype, np.inexact) or np.issubdtype(y.dtype, np.inexact)):
        return x == y
    with np.errstate(invalid="ignore"):  # infinity minus infinity is a NaN; `x == y` decides there
        near = np.abs(x - y) <= np.maximum(relative * np.maximum(np.abs(x), np.abs(y)), absolute)
    return (x == y) | near | (np.isnan(x) & np.isnan(y))


def _follow(
    algorithm: Algorithm,
    keys: Streams,
    memory: PyTree,
    respond: Respond,
    *,
    rounds: int,
    chunk: int,
    watch: Watch | None,
    **judges: Any,
) -> Tape:
    """Records the tape of an algorithm whose observations come from `respond`."""

    def one_round(carry: tuple[PyTree, PyTree], r: Array) -> tuple[tuple[PyTree, PyTree], Tape]:
        state, memory = carry
        if algorithm.refresh is not None:
            state = lax.cond(r % chunk == 0, algorithm.refresh, lambda state: state, state)
        state = planned(algorithm, jax.random.fold_in(keys.plan, r), state)
        decision = decision_of(algorithm, keys, r, state)
        played = play(algorithm, state, memory, decision, partial(respond, r), **judges)
        watched = () if watch is None else watch(state)
        entry = Tape(played.action, played.observation, decision.stop, decision.answer, watched)
        return (played.state, played.memory), entry

    _, tape = lax.scan(one_round, (algorithm.init(keys.init), memory), jnp.arange(rounds, dtype=jnp.int32))
    return tape
