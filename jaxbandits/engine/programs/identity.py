"""The identity of a traced program: equal for two traces that compile to the same code.

User code is traced anew in every call, so whatever it reads (closures, defaults, globals, attributes of objects, a
file) has its current value in the trace, as operations and constants. The identity is made of these alone and of no
Python function of the user, so it cannot mistake one program for another whose source looks the same. It costs some
hundredths of lowering to XLA's text, and is exact: equal identities are equal in every operation, type and constant.
"""

import hashlib
import inspect
from collections.abc import Hashable, Sequence
from types import FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import PyTree
from jaxbandits.engine.jaxprs import ClosedJaxpr, Jaxpr, closed, is_variable, needed_equations

# Parameters of equations that no compiled program depends on: rules of differentiation, and the texts of checks.
UNREAD = {
    ("custom_jvp_call", "jvp_jaxpr_fun"),
    ("custom_vjp_call", "fwd_jaxpr_thunk"),
    ("custom_vjp_call", "bwd"),
    ("custom_vjp_call", "out_trees"),
    ("check", "err_tree"),
}
OWNERS = ("jax", "jaxlib", "numpy", "jaxbandits")  # packages whose values compare as values, and whose code is constant
PLAIN = frozenset((bool, int, str, bytes, type(None), type(...)))
SHORT_BYTES = 64  # size up to which an array stands for itself; a larger one is hashed

Identity = tuple[Hashable, ...]


class _UnknownError(Exception):
    """The program has a part whose identity is not known, such as a call back to Python."""


def identity(jaxpr: Jaxpr, constants: Sequence[Any]) -> Identity | None:
    """Returns the identity of a computation.

    Args:
        jaxpr: the computation.
        constants: the values of the arrays that it closes over; `jax.ShapeDtypeStruct` for one that is an input of the
            compiled program, whose value does not matter.

    Returns:
        A tuple that holds no array and no function of the user; None if the program has a part whose identity is not
        known.
    """
    parts: list[Hashable] = []
    try:
        known: dict[int, int] = {}
        _read(tuple(constants), parts, known)
        _read_jaxpr(jaxpr, parts, known)
        name = tuple(parts)
        hash(name)
    except (_UnknownError, TypeError):  # a part cannot be hashed
        return None
    return name


def identity_of_types(tree: PyTree) -> Identity:
    """Returns the structure of a tree of arrays, with their shapes, types and placements, without their values."""
    leaves = jax.tree.leaves(tree)
    placed = [(getattr(x, "sharding", None), getattr(x, "committed", None)) for x in leaves]
    return jax.tree.structure(tree), *map(_type_of, leaves), *placed


def settings() -> Identity:
    """Returns all settings of JAX in this thread, any of which may affect how a program is lowered."""
    return tuple((name, str(value)) for name, value in jax.config.values.items())


def _type_of(array: Any) -> Hashable:
    return array.shape, array.dtype, bool(getattr(array, "weak_type", False))


# `parts` is a code without prefixes: lengths and types come before what they describe, so equal lists have one meaning.
def _read_jaxpr(jaxpr: Jaxpr, parts: list[Hashable], known: dict[int, int]) -> None:
    """Appends the operations of a computation; `known` has the numbers of the computations inside that were read."""
    numbers: dict[Any, int] = {}

    def define(variables: Sequence[Any]) -> None:
        parts.append(len(variables))
        for variable in variables:
            numbers[variable] = len(numbers)
            parts.append(variable.aval)

    def use(variables: Sequence[Any]) -> None:
        parts.append(len(variables))
        for variable in variables:
            if is_variable(variable):
                parts.append(numbers[variable])
            else:
                parts.append(variable.aval)
                _read(variable.val, parts, known)

    define(jaxpr.constvars)
    define(jaxpr.invars)
    equations = needed_equations(jaxpr, _operands)
    parts.append(len(equations))
    for equation in equations:
        parts += equation.primitive, equation.ctx
        use(_operands(equation))
        for name, value in equation.params.items():
            if (equation.primitive.name, name) not in UNREAD:
                parts.append(name)
                if type(value) in PLAIN:  # as `_read` does; most parameters are
                    parts += type(value), value
                else:
                    _read(value, parts, known)
        define(equation.outvars)
    use(jaxpr.outvars)


def _operands(equation: Any) -> list[Any]:
    """Returns what an equation reads. A check reads whether it holds, and for its message a count of the process."""
    if equation.primitive.name != "check":
        return equation.invars
    return [operand for operand in equation.invars if operand.aval.dtype == bool]


def _read(value: Any, parts: list[Hashable], known: dict[int, int]) -> None:
    """Appends a parameter of an equation, a constant or a literal."""
    kind = type(value)
    parts.append(kind)
    if kind in PLAIN:
        parts.append(value)
    elif kind in (float, complex):
        parts.append(repr(value))  # tells 0.0 from -0.0, and a NaN equals itself
    elif isinstance(value, (Jaxpr, ClosedJaxpr)):
        # A computation that is called in several places is one object, which is read once.
        inner = closed(value)
        _read(tuple(inner.consts), parts, known)
        is_new = id(inner.jaxpr) not in known
        parts.append(known.setdefault(id(inner.jaxpr), len(known)))
        if is_new:
            _read_jaxpr(inner.jaxpr, parts, known)
    elif kind is tuple and all(type(part) is int for part in value):
        parts.append(value)
    elif isinstance(value, (tuple, list)):
        parts.append(len(value))
        for part in value:
            _read(part, parts, known)
    elif kind is dict:
        parts.append(len(value))
        for item in value.items():
            _read(item, parts, known)
    elif isinstance(value, jax.ShapeDtypeStruct):
        parts.append(_type_of(value))
    elif isinstance(value, (jax.Array, np.ndarray, np.generic)) or (_is_owned(kind) and hasattr(value, "__array__")):
        parts += _type_of(value), _bytes_of(value)  # some versions of JAX have a class of their own for literals
    elif isinstance(value, (int, float)) and _is_owned(kind):  # a number of Python's that JAX gave a type
        parts += getattr(value, "dtype", None), repr(value)
    elif callable(value) and not isinstance(value, jax.sharding.Mesh):
        function = value if isinstance(value, type) else inspect.unwrap(value)
        is_constant = isinstance(function, type) or (isinstance(function, FunctionType) and not function.__closure__)
        if not (is_constant and _is_owned(function)):
            raise _UnknownError
        parts.append(function)
    elif _is_owned(kind) or isinstance(value, frozenset):
        parts.append(value)
    else:
        raise _UnknownError


def _is_owned(value: Any) -> bool:
    return str(value.__module__).partition(".")[0] in OWNERS


def _bytes_of(array: Any) -> bytes:
    """Returns the bytes of an array, or a hash of them if they are many."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    elif array.dtype == object:
        raise _UnknownError
    data = np.asarray(array).tobytes()
    return data if len(data) <= SHORT_BYTES else hashlib.sha256(data).digest()
