"""Checks a sweep before its first round, in one small program of its own.

Within a traced program nothing can raise. A bad parameter in the table of tasks would end its runs as censored, and an
algorithm that breaks the contract would return wrong results as STOPPED. This program detects both, at a fraction of
the time that compiling the sweep takes.
"""

import functools
import logging
import operator
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import checkify

from jaxbandits import checks
from jaxbandits.base import Array, Key, PyTree
from jaxbandits.engine.jaxprs import eval_jaxpr
from jaxbandits.engine.logs import say
from jaxbandits.engine.programs.compiling import Span, compiled, remembered
from jaxbandits.engine.programs.identity import Identity, identity, identity_of_types
from jaxbandits.engine.run.compatibility import require_fit, same_bits
from jaxbandits.engine.run.gradients import refuse_traced
from jaxbandits.engine.run.recording import start_curves
from jaxbandits.engine.run.round import decision_of, noise_of, play, streams
from jaxbandits.engine.sweep.program import Lane
from jaxbandits.engine.sweep.tasks import Job, build_row, fold_task
from jaxbandits.numerics.platforms import compiled_for

# The program runs once, so compiling dominates: of TTUCB on Bernoulli arms .2 s by XLA's older code generator, which
# JAX 0.12 no longer has, and .9 by the newer one.
COMPILER_OPTIONS: dict[str, Any] = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
# Rows of the table that are checked at a time, so that memory does not grow with the table.
ROWS = 4096

log = logging.getLogger(__name__)


def preflight(job: Job, lane: Lane | None = None) -> Span | None:
    """Checks the parameters of all rows, and the promises of `idle` on the values of the first row.

    Every row goes through the checks of traced values in `build` and `init` (`jaxbandits.checks`). They run with the
    key of the row's first seed; random instances are not checked for the other seeds.

    The promises are that the idle action changes no bit of the state when it is observed, and no bit of the
    environment's memory when it is answered. They are tested on the initial state and on the state after one round. For
    an algorithm that plans before its first round, they are tested on the initial state alone.

    Args:
        job: the sweep.
        lane: its lane, if it has been traced. The test of a lane that this process knows is not traced again.

    Returns:
        The time in which XLA compiled the test; None if the process had it.

    Raises:
        ValueError: a parameter is refused (the message names its row); the algorithm and the environment are not
            compatible; or observing `idle` changes the state, or answering it the memory.
    """
    started, platform = time.perf_counter(), jax.default_backend()
    with compiled_for(platform):
        start = _lifted(functools.partial(_start, job), job)
    with checks.without_traced(), compiled_for(platform):
        # Equal operations of two lanes, and equal arrays, are equal in their tests. Large arrays are not in the name.
        name = None if lane is None or lane.data else lane.name
        trace_probe = functools.partial(_lifted, functools.partial(_probe, job), job)
        table = identity_of_types((job.tasks, job.key))
        probe = trace_probe() if name is None else remembered(("probe", table, *name), trace_probe)

    def program(constants: list[Array], start_constants: list[Array], tasks: PyTree, key: Key) -> Any:
        changed = probe.call(constants, tasks, key, jnp.int32(0))
        check = functools.partial(start.call, start_constants, tasks, key)
        return changed, _is_refused(check, job.rows) if start.has_checks else jnp.zeros(0, bool)

    arguments = probe.constants, start.constants if start.has_checks else [], job.tasks, job.key
    name = "preflight", job.rows, ROWS, identity_of_types(arguments), probe.identity, start.identity
    known = compiled(name, lambda: jax.jit(program).lower(*arguments), options=COMPILER_OPTIONS)
    changed, refused = jax.device_get(known.call(*arguments))
    say(log, logging.INFO, "checked %d rows in %.1f s", job.rows, time.perf_counter() - started)
    if refused.any():
        row = int(np.argmax(refused))
        error, _ = jax.jit(_checked(functools.partial(start.call, start.constants, job.tasks, job.key)))(jnp.int32(row))
        sentence = (error.get() or "").removesuffix(" (`check` failed)")
        raise ValueError(f"row {row} of tasks: {sentence}" if jax.tree.leaves(job.tasks) else sentence)
    state, memory = ([name for name, is_changed in part.items() if is_changed] for part in changed)
    if state:
        raise ValueError(
            f"algorithm breaks its promise: observe(state, idle, ..) changed {', '.join(state)}: an idle action must "
            "change nothing"
        )
    if memory:
        raise ValueError(
            f"environment breaks its promise: respond(memory, idle, ..) changed {', '.join(memory)}: an idle action "
            "must change nothing"
        )
    return known.span


def _probe(job: Job, tasks: PyTree, key: Key, row: Array) -> tuple[dict[str, Array], dict[str, Array]]:
    """Returns True for every part of the state and of the memory that the idle action changes: bool () each."""
    keys = streams(fold_task(key, row, 0))
    algorithm, environment, record = build_row(job, jax.tree.map(lambda x: x[row], tasks), keys.build)
    start_curves(record, algorithm, environment)

    # Three rounds: idle, a round as in the engine, idle. In a loop, each function is compiled once.
    def one_round(r: Array, carry: tuple[PyTree, PyTree]) -> tuple[PyTree, PyTree]:
        (state, memory), changed = carry
        ready = None if algorithm.stale is None else ~algorithm.stale(state)
        # The stop is replaced, so XLA removes its computation.
        decision = decision_of(algorithm, keys, r, state)._replace(stop=r != 1)

        def respond(memory: PyTree, action: PyTree) -> tuple[PyTree, PyTree]:
            return environment.respond(memory, action, noise_of(environment, keys, r))

        played = play(algorithm, state, memory, decision, respond, ready=ready)
        old, new = (state, memory), (played.state, played.memory)
        differs = jax.tree.map(lambda x, y, was: was | (~played.active & ~same_bits(x, y)), new, old, changed)
        return new, differs

    start = algorithm.init(keys.init), environment.init(keys.memory)
    unchanged = jax.tree.map(lambda leaf: jnp.zeros((), bool), start)
    _, (of_state, of_memory) = lax.fori_loop(0, 3, one_round, (start, unchanged))
    return named_leaves(of_state), named_leaves(of_memory, whole="the memory")


def named_leaves(tree: PyTree, whole: str = "") -> dict[str, Any]:
    """Returns the leaves of a tree by their names; `whole` is the name of a tree that is one leaf."""
    leaves = jax.tree.leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator=".") or whole: leaf for path, leaf in leaves}


def _start(job: Job, tasks: PyTree, key: Key, row: Array) -> None:
    """Builds and initialises one row, to run the checks inside."""
    keys = streams(fold_task(key, row, 0))
    algorithm, environment, _ = build_row(job, jax.tree.map(lambda x: x[row], tasks), keys.build)
    require_fit(algorithm, environment)
    algorithm.init(keys.init)


class _Lifted(NamedTuple):
    """A traced function of (tasks, key, row)."""

    call: Callable  # (constants, tasks, key, row) -> the function's result
    constants: list[Array]  # arrays that the function closes over, inputs so that XLA need not fold and keep them
    has_checks: bool
    identity: Identity | None  # without the values of the constants


def _lifted(function: Callable, job: Job) -> _Lifted:
    """Traces a function of (tasks, key, row)."""
    row = jax.ShapeDtypeStruct((), np.int32)
    closed, outputs = jax.make_jaxpr(function, return_shape=True)(job.tasks, job.key, row)
    refuse_traced(closed.consts)
    # Copies, because an array of NumPy may be the user's own, who may change it while this is kept.
    jaxpr, constants = closed.jaxpr, [x if isinstance(x, Array) else jnp.array(x) for x in closed.consts]
    structure = jax.tree.structure(outputs)

    def call(constants: list[Array], *arguments: PyTree) -> PyTree:
        leaves = eval_jaxpr(jaxpr, constants, *jax.tree.leaves(arguments))
        return jax.tree.unflatten(structure, leaves)

    traced = identity(jaxpr, [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in constants])
    return _Lifted(call, constants, bool(jaxpr.effects), traced and (structure, *traced))


def _checked(check: Callable[[Array], None]) -> Callable[[Array], tuple[checkify.Error, None]]:
    """Returns the function with the error of its checks as a first result."""
    return checkify.checkify(check, errors=checkify.user_checks)


def _is_refused(check: Callable[[Array], None], rows: int) -> Array:
    """Returns True for every row in which a check fails: bool (rows,).

    The codes of errors are counted within the process. They are left out, so that the program has the same text in
    every process, and JAX finds it in its cache of compiled programs.
    """

    def one_row(row: Array) -> Array:
        (is_violated, *_), _ = _checked(check)(row)[0].tree_flatten()
        return functools.reduce(operator.or_, is_violated.values(), jnp.zeros((), bool))

    numbers = jnp.arange(rows, dtype=jnp.int32)
    return jax.vmap(one_row)(numbers) if rows <= ROWS else lax.map(one_row, numbers, batch_size=ROWS)
