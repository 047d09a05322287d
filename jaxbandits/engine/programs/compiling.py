"""A cache of this process's compiled programs, by their identity.

`jax.jit` caches a program by the Python function that it was traced from. The engine makes new functions in every call,
so its programs are cached by what was traced. The same study under another key, or with other values in its table, is
traced to the same operations, and is neither lowered nor compiled again.
"""

import hashlib
import math
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import jax
from jax.stages import Lowered

from jaxbandits.engine.jaxprs import eval_jaxpr
from jaxbandits.engine.programs.identity import identity, identity_of_types, settings

T = TypeVar("T")

# Vectors as wide as the processor's: by default XLA:CPU makes half as wide ones of AVX-512. Core-ns per round of 1,024
# lanes (Intel Xeon), by default and so: UCB1 32 and 26, Thompson sampling 65 and 46 (Gaussian), 158 and 133
# (Bernoulli). The results are the same, bit by bit.
ON_CPU: dict[str, Any] = {"xla_cpu_prefer_vector_width": 512}
KEPT = 128  # number of kept values, three or four per rule of a sweep; the one unused for longest is dropped

_known: dict[Hashable, Any] = {}  # kept values, in the order of their last use
_lock = threading.RLock()  # code of the user makes some kept values, and may compile a program itself


class Span(NamedTuple):
    """A span of time, on the clock of `time.perf_counter`."""

    began: float  # seconds
    ended: float  # seconds


class Compiled(NamedTuple):
    """A compiled program."""

    call: Any  # the program, for arguments of the shapes and types that it was lowered for
    examined: Any  # result of `examine`
    span: Span | None  # in which XLA compiled it, maybe in another thread; None after the first call with this name


def compiled(
    name: tuple[Hashable, ...],
    lower: Callable[[], Lowered],
    *,
    options: dict[str, Any] | None = None,
    examine: Callable[[Any], Any] = lambda program: None,
) -> Compiled:
    """Lowers and compiles a program, unless this process has compiled the same one before, or begun to.

    Args:
        name: everything that the program depends on beside the settings of JAX, among it the `identity` of what was
            traced. If one part is None, the program is lowered and known by its text.
        lower: returns the lowered program.
        options: options of the compiler.
        examine: called once with the compiled program.
    """
    if any(part is None for part in name):
        lowered = lower()
        name = *_text_of(lowered), *name
        future = remembered(name, lambda: _done(_compile(lowered, options, examine)))
    else:
        future = remembered(name, lambda: _done(_compile(lower(), options, examine)))
    try:
        program = future.result()
    except Exception:
        forget(name)
        raise
    if program.span is not None:
        with _lock:
            forget(name)
            remembered(name, lambda: _done(program._replace(span=None)))
    return program


def begin_compiling(
    name: tuple[Hashable, ...],
    lower: Callable[[], Lowered],
    *,
    options: dict[str, Any] | None,
    examine: Callable[[Any], Any],
) -> None:
    """Lowers a program, and lets XLA compile it in another thread until `compiled` is called with the same arguments.

    XLA compiles without Python's lock. It cannot be stopped: a process ends once it is done.
    """

    def begin() -> Future[Compiled]:
        lowered = lower()
        thread = ThreadPoolExecutor(1, thread_name_prefix="jaxbandits-xla")
        future = thread.submit(_compile, lowered, options, examine)
        thread.shutdown(wait=False)
        return future

    if not any(part is None for part in name):  # otherwise `compiled` would have to lower it once more
        remembered(name, begin)


def _compile(lowered: Lowered, options: dict[str, Any] | None, examine: Callable[[Any], Any]) -> Compiled:
    """Compiles and examines a program, without the options that this version of XLA does not have."""
    began = time.perf_counter()
    try:
        program = lowered.compile(options)
    except jax.errors.JaxRuntimeError as error:
        known = {name: value for name, value in (options or {}).items() if f"option: '{name}'" not in str(error)}
        if known == (options or {}):
            raise
        return _compile(lowered, known, examine)
    span = Span(began, time.perf_counter())
    return Compiled(program, examine(program), span)


def seconds_of(spans: Iterable[Span | None]) -> float:
    """Returns the length of the union of spans."""
    seconds, ended = 0.0, -math.inf
    for span in sorted(span for span in spans if span is not None):
        seconds += max(span.ended - max(span.began, ended), 0.0)
        ended = max(ended, span.ended)
    return seconds


def _done(program: Compiled) -> Future[Compiled]:
    """Returns a future that has its result."""
    future: Future[Compiled] = Future()
    future.set_result(program)
    return future


def call_compiled(function: Callable[[], T]) -> T:
    """Calls a function without arguments as one program, in which the arrays that it closes over are inputs.

    It is traced in every call, and compiled unless this process has the program, maybe for arrays of other values.
    Under `jax.disable_jit` it is no program.
    """
    if jax.config.values["jax_disable_jit"]:
        return function()
    jaxpr, outputs = jax.make_jaxpr(function, return_shape=True)()
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in jaxpr.consts]
    traced = identity(jaxpr.jaxpr, shapes)
    structure = jax.tree.structure(outputs)

    def program(constants: list[Any]) -> list[Any]:
        return eval_jaxpr(jaxpr.jaxpr, constants)

    name = "call", structure, identity_of_types(jaxpr.consts), traced
    options = ON_CPU if jax.default_backend() == "cpu" else None
    known = compiled(name, lambda: jax.jit(program).lower(jaxpr.consts), options=options)
    return jax.tree.unflatten(structure, known.call(jaxpr.consts))


def remembered(name: Hashable, make: Callable[[], T]) -> T:
    """Returns what `make` returned for this name, under the current settings of JAX, when it was last called."""
    name = name, settings()
    with _lock:  # a thread that needs the same program waits for it
        value = _known.pop(name, None)
        if value is None:
            value = make()
            if len(_known) == KEPT:
                del _known[next(iter(_known))]
        _known[name] = value
    return value


def forget(name: Hashable) -> None:
    """Drops what `remembered` keeps for this name under the current settings of JAX."""
    with _lock:
        _known.pop((name, settings()), None)


def _text_of(lowered: Lowered) -> tuple[Hashable, ...]:
    """Returns the text of a program, and what it lacks: unused arguments, and the classes of inputs and outputs."""
    text = hashlib.sha256(lowered.as_text().encode()).digest()
    arguments = lowered.in_tree, *map(str, jax.tree.leaves(lowered.args_info))
    return text, *arguments, jax.tree.structure(lowered.out_info)
