"""Reads JAX's traced programs, whose form differs between versions of JAX.

Every name that is not part of JAX's documented interface is imported here and nowhere else in the library, together
with the parameters of equations that versions spell differently. To support a new version of JAX, change this file.
`pyproject.toml` names the versions with which the tests have passed.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jax.core import eval_context, eval_jaxpr
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

try:
    from jax.extend.core import get_opaque_trace_state
except ImportError:  # before JAX 0.10
    from jax.core import get_opaque_trace_state

__all__ = [
    "CALLS",
    "ClosedJaxpr",
    "Jaxpr",
    "Literal",
    "Scan",
    "bind",
    "called",
    "closed",
    "eval_context",
    "eval_jaxpr",
    "get_opaque_trace_state",
    "is_variable",
    "needed_equations",
    "primitives_of",
    "scan_of",
    "without_dead_code",
]

# Equations that only call a computation. `closed_call` became `eval_jaxpr` in JAX 0.11; `jit` was `pjit` before 0.7.
CALLS = frozenset(
    ("jit", "pjit", "closed_call", "core_call", "eval_jaxpr", "custom_jvp_call", "custom_vjp_call", "remat2")
)


class Scan(NamedTuple):
    """The parts of a `scan`, whose inputs are constants, then the carry, then rows of arrays."""

    body: ClosedJaxpr
    length: int
    constants: int  # number of inputs that every iteration reads
    carried: int  # number of inputs that every iteration replaces
    reverse: bool


def scan_of(equation: Any) -> Scan:
    """Returns the parts of an equation whose primitive is `scan`."""
    params = equation.params
    if "num_consts" in params:
        constants, carried = params["num_consts"], params["num_carry"]
    else:  # since JAX 0.11 a tree of (constants, carry, rows)
        constants, carried, _ = map(len, params["ft_in"].unpack())
    return Scan(params["jaxpr"], params["length"], constants, carried, params["reverse"])


def called(equation: Any) -> ClosedJaxpr:
    """Returns the computation of an equation that is one of `CALLS`."""
    params = equation.params
    return closed(next(params[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr") if name in params))


def closed(jaxpr: Any) -> ClosedJaxpr:
    """Returns a computation with its constants; `remat2` has none before JAX 0.11, where the two classes are one."""
    return jaxpr if hasattr(jaxpr, "consts") else ClosedJaxpr(jaxpr, ())


def primitives_of(jaxpr: Jaxpr | ClosedJaxpr) -> set[str]:
    """Returns the names of all primitives of a computation and of those that it calls."""
    names = set()
    for equation in jaxpr.eqns:
        names.add(equation.primitive.name)
        for value in equation.params.values():
            for each in _computations(value):
                names |= primitives_of(each)
    return names


def without_dead_code(computation: ClosedJaxpr) -> ClosedJaxpr:
    """Returns a computation, and all that it calls, without the equations whose results nothing reads.

    XLA drops them too, but first `vmap` batches each of them, in a loop two or three times.
    """
    known: dict[int, Any] = {}  # a function that is called in several places stays one, which JAX batches once

    def pruned(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(map(pruned, value))
        if not isinstance(value, (Jaxpr, ClosedJaxpr)):
            return value
        if id(value) not in known:
            is_pair = not isinstance(value, Jaxpr)  # Jaxpr and constants, before JAX 0.11
            known[id(value)] = value.replace(jaxpr=pruned(value.jaxpr)) if is_pair else of_jaxpr(value)
        return known[id(value)]

    def of_jaxpr(jaxpr: Any) -> Any:
        equations = []
        for equation in needed_equations(jaxpr):
            inner = {name: pruned(value) for name, value in equation.params.items() if _computations(value)}
            equations.append(equation.replace(params=equation.params | inner) if inner else equation)
        return jaxpr.replace(eqns=equations)

    return pruned(computation)


def needed_equations(jaxpr: Any, operands: Callable[[Any], list[Any]] = lambda equation: equation.invars) -> list[Any]:
    """Returns the equations whose results something reads, or that have an effect.

    Args:
        jaxpr: the computation.
        operands: what an equation reads.
    """
    read, needed = set(filter(is_variable, jaxpr.outvars)), []
    for equation in reversed(jaxpr.eqns):
        if equation.effects or not read.isdisjoint(equation.outvars):
            needed.append(equation)
            read.update(filter(is_variable, operands(equation)))
    return needed[::-1]


def is_variable(operand: Any) -> bool:
    """True if an operand of an equation is a variable, and no constant in its place."""
    return not isinstance(operand, Literal)


def _computations(value: Any) -> list[Any]:
    """Returns the computations that a parameter of an equation is, or holds."""
    several = value if isinstance(value, (tuple, list)) else (value,)
    return [each for each in several if isinstance(each, (Jaxpr, ClosedJaxpr))]


def bind(equation: Any, values: Sequence[Any]) -> list[Any]:
    """Returns the outputs of an equation for other inputs."""
    bound = equation.primitive.get_bind_params(equation.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # before JAX 0.10 a pair
    with equation.ctx.manager:
        out = equation.primitive.bind(*functions, *values, **params)
    return list(out) if equation.primitive.multiple_results else [out]
