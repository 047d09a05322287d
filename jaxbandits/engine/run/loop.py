"""One task from its first round to its last; `jax.vmap` makes a batch of it.

`advance` is the engine's only loop over rounds: `run` repeats it until the task ends, `jaxbandits.sweep` calls it for
thousands of lanes and refills the lanes whose runs have ended. `ask` and `tell` are for a loop of your own.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Environment, Key, Outcome, PyTree, Status
from jaxbandits.engine.programs.compiling import call_compiled
from jaxbandits.engine.run.compatibility import action_check, first_line, require_fit, require_pair, types_of
from jaxbandits.engine.run.gradients import is_under_a_transformation, refusing_gradient
from jaxbandits.engine.run.predrawn import predraw
from jaxbandits.engine.run.recording import (
    Curves,
    Record,
    Snapshot,
    curves_of,
    fill_marks,
    snapshot_of,
    start_curves,
    sum_round,
)
from jaxbandits.engine.run.round import Streams, decision_of, planned, play, streams
from jaxbandits.numerics.indexing import select
from jaxbandits.numerics.random_bits import folded

Carry = tuple[PyTree, PyTree, Array, Curves]  # (state, memory, rounds so far, curves), carried from round to round

DEFAULT_CHUNK = 256  # rounds between two refreshes
# Advice for a call without a budget.
BUDGET = "Write max_rounds=n, the most rounds of a run, or horizon=n, the pulls after which every run ends"


def advance(
    algorithm: Algorithm,
    environment: Environment,
    keys: Streams,
    state: PyTree,
    memory: PyTree,
    *,
    rounds: Array,
    max_rounds: Array | int,
    chunk: int,
    horizon: Array | int | None = None,
    record: Record | None = None,
    curves: Curves | None = None,
    axis_name: str | None = None,
) -> tuple[Outcome, Curves]:
    """Carries one lane through at most `chunk` further rounds.

    The lane is refreshed first, so rounding errors of a cache live for at most one chunk. A lane that has stopped, or
    has spent its budget or its horizon, gets the idle action, which costs a round of time but changes nothing. So does
    a lane whose action does not exist.

    Planning costs a batch the work of all its lanes, however many are due. Within the chunk, it therefore runs once
    half of the running lanes wait for it. At a chunk's start it runs for every lane that is due, so that none starves.
    A waiting lane idles, which spends none of its rounds and changes nothing in its run. A lane that has spent its
    budget or horizon is planned a last time if that is due, so that its stop and answer use all its observations.

    Args:
        algorithm: the algorithm that decides.
        environment: the environment that answers.
        keys: the task's `streams`.
        state: the algorithm's state.
        memory: the environment's memory.
        rounds: int32 (), rounds carried out so far. Round r draws its noise from `fold_in(keys.noise, r)`, so the
            stream of a task does not depend on how its rounds are cut into chunks.
        max_rounds: the budget of rounds. A budget below `rounds`, such as -1, leaves every bit of the state unchanged.
        chunk: rounds of this call, a Python int; the trip count is fixed.
        horizon: number of pulls; the run ends before the first round whose state has at least as many.
        record: definition of the curves.
        curves: curves recorded so far, `start_curves` at first.
        axis_name: name of the enclosing `vmap` axis, if any. With it, an algorithm's `plan` stays a real branch of the
            batch. Without it, `vmap` plans in every lane and every round.

    Returns:
        Outcome whose status is RUNNING if rounds remain or a plan is due, and the curves so far.
    """
    require_pair(algorithm)
    recorded = Curves({}, {}) if curves is None else curves
    accepts, available = action_check(algorithm, environment), environment.available
    has_plan = algorithm.plan is not None
    if algorithm.refresh is not None:
        state = select(rounds < max_rounds, algorithm.refresh(state), state)
    if has_plan and axis_name is not None:
        is_live = rounds <= max_rounds
        state, _ = _plan_where_due(algorithm, keys, state, rounds, is_live=is_live, axis_name=axis_name, patient=False)
    first = rounds
    numbers = first + jnp.arange(chunk, dtype=rounds.dtype)
    # A lane that waits for its plan, and a record of lanes that have ended, need the draws of round `rounds` itself.
    ahead = predraw(algorithm, environment, keys, numbers, state, decisions=not has_plan and record is None)

    def one_round(carry: Carry, r: Array) -> tuple[Carry, Snapshot | None]:
        (state, memory, rounds, curves), note = carry, None
        ready, is_planned = rounds < max_rounds, True
        if has_plan:
            is_live = rounds <= max_rounds
            state, waits = _plan_where_due(algorithm, keys, state, rounds, is_live=is_live, axis_name=axis_name)
            is_planned = ~waits
            ready &= is_planned
        if horizon is not None:
            ready &= ~_has_spent(state, horizon)
        if ahead.decide is None:
            decision = decision_of(algorithm, keys, rounds, state)
        else:
            decision = ahead.decide(r, rounds, state)
            # A lane that has ended stays so, whatever the draws of later rounds.
            ready &= rounds == first + r
        if record is not None:
            counts = (rounds <= max_rounds) & is_planned if has_plan else None
            note = snapshot_of(record, curves, state, rounds, decision, counts=counts)

        # A lane that never waits is active for a prefix of the chunk, so its round number is `first` + r.
        noise = ahead.noise(jnp.minimum(rounds - first, chunk - 1) if has_plan else r, rounds)

        def respond(memory: PyTree, action: PyTree) -> tuple[PyTree, PyTree]:
            return environment.respond(memory, action, noise)

        # A lane whose action does not exist idles, and decides the same in the next round.
        played = play(algorithm, state, memory, decision, respond, ready=ready, accepts=accepts, available=available)
        if record is not None:
            curves = sum_round(record, curves, state, decision, played.observation, where=played.active)
        return (played.state, played.memory, rounds + played.active.astype(rounds.dtype), curves), note

    carry, notes = (state, memory, rounds, recorded), None
    if record is None:
        carry = lax.fori_loop(0, chunk, lambda r, carry: one_round(carry, r)[0], carry)
    else:
        carry, notes = lax.scan(one_round, carry, jnp.arange(chunk, dtype=jnp.int32))
    state, memory, rounds, recorded = carry
    decision = decision_of(algorithm, keys, rounds, state)
    is_planned = ~algorithm.stale(state) if algorithm.stale is not None else jnp.ones((), bool)
    if record is not None and notes is not None:
        counts = (rounds <= max_rounds) & is_planned if has_plan else None
        end = snapshot_of(record, recorded, state, rounds, decision, counts=counts)
        recorded = fill_marks(record, recorded, notes, end)
    endings = {
        Status.NONFINITE: ~_is_finite(state),
        Status.STOPPED: decision.stop & is_planned,
        Status.HORIZON: None if horizon is None else _has_spent(state, horizon) & is_planned,
        Status.MAX_ROUNDS: (rounds >= max_rounds) & is_planned,
        Status.INVALID_ACTION: None if accepts is None else ~accepts(decision.action) & is_planned,
        Status.EXHAUSTED: None if available is None else ~available(memory, decision.action) & is_planned,
    }
    endings = {status: holds for status, holds in endings.items() if holds is not None}
    status = jnp.select(list(endings.values()), [jnp.int32(s) for s in endings], jnp.int32(Status.RUNNING))
    outcome = Outcome(
        status=status,
        pulls=state.pulls,
        rounds=rounds,
        answer=decision.answer,
        state=state,
        memory=memory,
        curves=curves_of(record, recorded),
    )
    return outcome, recorded


def run(
    key: Key,
    algorithm: Algorithm,
    environment: Environment,
    *,
    max_rounds: Array | int | None = None,
    horizon: Array | int | None = None,
    record: Record | None = None,
    chunk: int = DEFAULT_CHUNK,
    axis_name: str | None = None,
) -> Outcome:
    """Runs one task to its end.

    Under `jax.vmap` every lane waits for the slowest one; `jaxbandits.sweep` does not, and gives the same results. A
    process compiles the program of a run once: further keys, and arrays of other values, cost the tracing alone.

    Args:
        key: the task's key; equal keys give equal runs.
        algorithm: the algorithm that decides.
        environment: the environment that answers.
        max_rounds: the budget of rounds, at least 1. A run that reaches it ends as `Status.MAX_ROUNDS`. If None, it is
            the horizon; a run with one pull per round reaches the horizon first.
        horizon: number of pulls, at least 1. The run ends as `Status.HORIZON` before the first round whose state has at
            least as many. If it stops by itself in that round, it is STOPPED. For `kernel`'s algorithms, give
            `n_agents` times their own `horizon`, which counts rounds.
        record: curves to be recorded during the run, see `jaxbandits.record`.
        chunk: rounds between two refreshes of the algorithm's cache.
        axis_name: name of the enclosing `vmap` axis, for algorithms that plan (see `advance`).

    Returns:
        Outcome, whose status is never RUNNING.

    Raises:
        ValueError: an argument is of the wrong kind, `max_rounds`, `horizon` or `chunk` is below 1, or the algorithm
            and the environment are not compatible.

    Example:
        >>> from jaxbandits import Status, linear, run
        >>> instance = linear.canonical(0.5)
        >>> algorithm = linear.lingape(instance.arms, delta=0.1)
        >>> environment = linear.environment(instance)
        >>> outcome = run(jax.random.key(0), algorithm, environment, max_rounds=10**6)
        >>> print(Status(int(outcome.status)).name, outcome.answer)
        STOPPED 0
    """
    checks.key("key", key)
    checks.instance("algorithm", algorithm, Algorithm)
    checks.instance("environment", environment, Environment)
    if horizon is not None:
        checks.integer("horizon", horizon, least=1, most=int(jnp.iinfo(jnp.result_type(int)).max))
    if max_rounds is None and horizon is not None:
        max_rounds = jnp.minimum(jnp.asarray(horizon), jnp.iinfo(jnp.int32).max).astype(jnp.int32)
    if max_rounds is None:
        raise ValueError(f"max_rounds must be an integer of at least 1, got None. {BUDGET}")
    budget = checks.integer("max_rounds", max_rounds, least=1)
    if record is not None:
        checks.instance("record", record, Record)
    chunk = checks.whole("chunk", chunk, least=1)
    if axis_name is not None:
        checks.instance("axis_name", axis_name, str)
    require_fit(algorithm, environment)
    keys = streams(key)

    def more(carry: tuple[Array, Array, PyTree, PyTree, Curves]) -> tuple[Array, Array, PyTree, PyTree, Curves]:
        _, rounds, state, memory, curves = carry
        outcome, curves = advance(
            algorithm,
            environment,
            keys,
            state,
            memory,
            rounds=rounds,
            max_rounds=budget,
            horizon=horizon,
            record=record,
            curves=curves,
            chunk=chunk,
            axis_name=axis_name,
        )
        return outcome.status, outcome.rounds, outcome.state, outcome.memory, curves

    def whole() -> Outcome:
        state, memory = algorithm.init(keys.init), environment.init(keys.memory)
        curves = start_curves(record, algorithm, environment)
        start = jnp.int32(Status.RUNNING), jnp.zeros((), jnp.int32), state, memory, curves
        status, rounds, state, memory, curves = lax.while_loop(lambda carry: carry[0] == Status.RUNNING, more, start)
        return outcome_of(algorithm, keys, status, rounds, state, memory=memory, curves=curves_of(record, curves))

    return refusing_gradient(whole) if is_under_a_transformation() else call_compiled(whole)


def outcome_of(
    algorithm: Algorithm, keys: Streams, status: Array, rounds: Array, state: PyTree, *, memory: PyTree, curves: PyTree
) -> Outcome:
    """Returns the outcome of a run in this state, with the answer that it now gives."""
    answer = decision_of(algorithm, keys, rounds, state).answer
    return Outcome(
        status=status,
        pulls=state.pulls,
        rounds=rounds,
        answer=answer,
        state=state,
        memory=memory,
        curves=curves,
    )


def ask(algorithm: Algorithm, key: Key, state: PyTree) -> tuple[PyTree, Decision]:
    """Returns the next decision in a loop of your own: plans if that is due, then decides.

    Args:
        algorithm: the algorithm that decides.
        key: key of this round; planning draws from a key that is folded from it.
        state: the algorithm's state.

    Returns:
        The state, planned if that was due, and the Decision. Observe its action with this state.

    Raises:
        ValueError: an argument is of the wrong kind; the state holds a NaN or an infinity, which `tell` would have
            refused; or the algorithm has only one of `plan` and `stale`.

    Example:
        >>> from jaxbandits import linear
        >>> algorithm = linear.lingape(jnp.eye(2), delta=0.1)
        >>> state = algorithm.init(jax.random.key(0))
        >>> state, decision = ask(algorithm, jax.random.key(1), state)
        >>> state = tell(algorithm, state, decision.action, 1.7)
        >>> print(state.pulls)
        1
    """
    checks.instance("algorithm", algorithm, Algorithm)
    checks.key("key", key)
    if not hasattr(state, "pulls"):
        raise ValueError(f"state must be a state of the algorithm, with a field pulls, got {checks.show(state)}")
    for path, leaf in jax.tree.leaves_with_path(state) if checks.is_concrete(state) else ():
        if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact) and not np.all(np.isfinite(leaf)):
            field = jax.tree_util.keystr(path, simple=True, separator=".")
            raise ValueError(
                f"state must be finite, got {checks.show(leaf)} in {field}. Use jaxbandits.tell, which refuses "
                "observations that are not"
            )
    state = plan_if_due(algorithm, key, state)
    return state, algorithm.decide(key, state)


def plan_if_due(algorithm: Algorithm, key: Key, state: PyTree) -> PyTree:
    """Plans if that is due, without deciding: the first half of `ask`.

    Args:
        algorithm: the algorithm that plans.
        key: key of this round; planning draws from a key that is folded from it, as in `ask`.
        state: the algorithm's state.

    Returns:
        The state, planned if that was due, otherwise unchanged.

    Raises:
        ValueError: an argument is of the wrong kind, or the algorithm has only one of `plan` and `stale`.
    """
    checks.instance("algorithm", algorithm, Algorithm)
    checks.key("key", key)
    if not hasattr(state, "pulls"):
        raise ValueError(f"state must be a state of the algorithm, with a field pulls, got {checks.show(state)}")
    require_pair(algorithm)
    return planned(algorithm, jax.random.fold_in(key, 1), state)


def tell(algorithm: Algorithm, state: PyTree, action: PyTree, observation: PyTree) -> PyTree:
    """Checks an observation, and returns the state after it, in a loop of your own.

    `Algorithm.observe` takes arrays and checks nothing, since a compiled program cannot raise. An infinite reward would
    stop a run at once, and after a NaN it would never stop.

    Args:
        algorithm: the algorithm that decided.
        state: the state that decided, as `ask` returned it.
        action: action of the decision.
        observation: the answer to the action, in the form that the family's environment returns. Python numbers, lists
            and booleans become arrays of the state's precision.

    Returns:
        The state after the observation. In a program the values are not checked, unless it runs under `checkify`.

    Raises:
        ValueError: an argument is of the wrong kind; the action does not have the form of the algorithm's actions; or
            the observation has another form, is not finite, or cannot be an answer to the action, such as a reward of
            .5 for a Bernoulli arm. The field `receive` of an algorithm decides which answers are possible. Without it,
            `tell` takes every finite observation that keeps the form of the state.

    Example:
        >>> from jaxbandits import mab
        >>> algorithm = mab.ttucb(mab.Bernoulli(2), delta=0.1)
        >>> state, decision = ask(algorithm, jax.random.key(1), algorithm.init(jax.random.key(0)))
        >>> tell(algorithm, state, decision.action, mab.Rewards(sums=[0.5], times=[1]))
        Traceback (most recent call last):
        ValueError: observation.sums must count the ones among the rewards, each of which is 0 or 1, got [0.5]
        >>> print(tell(algorithm, state, decision.action, mab.Rewards(sums=[True], times=[1])).counts)
        [1 0]
    """
    checks.instance("algorithm", algorithm, Algorithm)
    if not hasattr(state, "pulls"):
        raise ValueError(f"state must be a state of the algorithm, with a field pulls, got {checks.show(state)}")
    if not _is_alike(action, algorithm.idle):
        raise ValueError(f"action must be like the algorithm's idle one, {algorithm.idle}, got {checks.show(action)}")
    if algorithm.receive is not None:
        return algorithm.observe(state, action, algorithm.receive(action, observation))
    floats = [x.dtype for x in jax.tree.leaves(state) if jnp.issubdtype(x.dtype, jnp.floating)]
    dtype = floats[0] if floats else jnp.result_type(float)
    is_list = lambda x: isinstance(x, list)  # noqa: E731
    observation = jax.tree.map(lambda x: _measured(x, dtype), observation, is_leaf=is_list)
    try:
        after = jax.eval_shape(algorithm.observe, state, action, observation)
    except Exception as error:
        raise ValueError(
            f"observation must be what observe(state, action, observation) takes, got {types_of(observation)}, with "
            f"which it raised {type(error).__name__}: {first_line(error)}"
        ) from error
    if types_of(after) != types_of(state):
        raise ValueError(
            f"observation must leave the state as {types_of(state)}, got {types_of(observation)}, with which observe "
            f"makes {types_of(after)}"
        )
    return algorithm.observe(state, action, observation)


def _is_alike(action: PyTree, idle: PyTree) -> bool:
    """True if two actions have one structure, and their arrays the same shapes and types."""
    try:
        return types_of(action) == types_of(idle) and jax.tree.structure(action) == jax.tree.structure(idle)
    except TypeError:  # a leaf is no array
        return False


def _measured(value: Any, dtype: Any) -> Array:
    """Converts a leaf of an observation to an array, of this dtype unless it has its own.

    Raises:
        ValueError: it is not finite.
    """
    if isinstance(value, (bool, int, float, list)):
        return checks.numbers("observation", value, np.shape(value), dtype)
    is_array = isinstance(value, (jax.Array, np.ndarray, np.generic))
    checks.require(is_array, "observation", "hold numbers, lists and arrays", value)
    if jnp.issubdtype(value.dtype, jnp.floating):
        return checks.array("observation", np.asarray(value) if checks.is_concrete(value) else value, np.shape(value))
    return jnp.asarray(value)


def _plan_where_due(
    algorithm: Algorithm,
    keys: Streams,
    state: PyTree,
    rounds: Array,
    *,
    is_live: Array,
    axis_name: str | None,
    patient: bool = True,
) -> tuple[PyTree, Array]:
    """Plans in the lanes where that is due; if `patient`, only once half of the live lanes wait.

    Returns:
        The state; bool (), True if the lane still waits for its plan.
    """
    compute_plan, stale = algorithm.plan, algorithm.stale
    assert compute_plan is not None  # ensured by `require_pair`
    assert stale is not None
    due = stale(state) & is_live
    if axis_name is None:
        now = due
    else:
        waiting, live = lax.psum((due.astype(jnp.int32), is_live.astype(jnp.int32)), axis_name)
        now = (waiting > 0) & (2 * waiting >= live) if patient else waiting > 0

    key = folded(keys.plan, rounds)
    if not algorithm.masked_plan:
        planned = lax.cond(now, lambda state: select(due, compute_plan(key, state), state), lambda state: state, state)
        return planned, due & ~now

    # A loop of at most one iteration writes in place. In a conditional, XLA for a GPU copies in both branches every
    # part of the state that may change: 36 % of the memory traffic of a round of DisKernelUCB that plans nothing. The
    # barrier keeps the computation inside the loop.
    def turn(carry: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        _, state = lax.optimization_barrier(carry)
        return jnp.zeros((), bool), compute_plan(key, state)

    with jax.named_scope("plan"):
        return lax.while_loop(lambda carry: carry[0], turn, (now, state))[1], due & ~now


def _has_spent(state: PyTree, horizon: Array | int) -> Array:
    """Returns True if a run has spent its horizon of pulls: bool ()."""
    dtype = np.promote_types(state.pulls.dtype, jnp.result_type(horizon))
    return state.pulls.astype(dtype) >= jnp.asarray(horizon, dtype)


def _is_finite(state: PyTree) -> Array:
    """Returns True if all floating-point entries are finite: bool ()."""
    finite = jnp.ones((), bool)
    for leaf in jax.tree.leaves(state):
        if jnp.issubdtype(leaf.dtype, jnp.inexact):
            finite &= jnp.all(jnp.isfinite(leaf))
    return finite
