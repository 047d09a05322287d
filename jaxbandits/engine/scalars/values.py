"""What `scalars` computes with: values of a batch, as entries or as whole arrays, and which of them lanes share."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from jaxbandits.base import Array
from jaxbandits.engine.jaxprs import CALLS, ClosedJaxpr, Jaxpr, Literal, bind, called, scan_of
from jaxbandits.engine.scalars.known import at_once
from jaxbandits.engine.scalars.rules import ELEMENTWISE, LAYOUT, RULES, SCATTERS, Entries, entries

ENTRIES = 100  # of an array that is taken apart; larger ones stay whole


class Whole(NamedTuple):
    """An array that is not taken apart."""

    array: Any
    axis: int | None = None  # of the lanes; None: they share it


class Batch(NamedTuple):
    """The lanes that a program advances."""

    lanes: int
    name: str  # of the axis of lanes, in collectives


class Pack(NamedTuple):
    """How a value travels through a loop or a branch."""

    aval: Any
    varies: bool

    @property
    def is_apart(self) -> bool:
        """Whether it does so as entries."""
        return self.varies and fits(self.aval)


def packed(pack: Pack, value: Any, batch: Batch) -> list[Array]:
    """A value as the arrays that a loop carries."""
    if not pack.is_apart:
        return [whole(value, batch, pack.aval, spread=pack.varies).array]
    return [vector(x, pack.aval.dtype, batch) for x in apart(value, batch).ravel()]


def unpacked(pack: Pack, arrays: Sequence[Array]) -> Any:
    """The value again."""
    return entries(arrays, pack.aval.shape) if pack.is_apart else Whole(arrays[0], 0 if pack.varies else None)


def packed_all(packs: Sequence[Pack], values: Sequence[Any], batch: Batch) -> list[list[Array]]:
    """All values of a loop or a branch."""
    return [packed(pack, value, batch) for pack, value in zip(packs, values, strict=True)]


def vector(x: Any, dtype: Any, batch: Batch) -> Array:
    """An entry as a vector over lanes."""
    x = jnp.asarray(x, dtype)
    return x if x.ndim else lax.broadcast(x, (batch.lanes,))


def read(env: dict[Any, Any], v: Any) -> Any:
    """What a variable or a literal stands for."""
    aval = v.aval
    return Whole(np.asarray(v.val, aval.dtype)) if isinstance(v, Literal) else env[v]


def fits(aval: Any) -> bool:
    """Whether an array of this shape and type is taken apart."""
    return aval.size <= ENTRIES and not jnp.issubdtype(aval.dtype, jax.dtypes.extended)


def is_small(value: Whole) -> bool:
    """Whether one lane's part of it is."""
    if jnp.issubdtype(value.array.dtype, jax.dtypes.extended):
        return False
    shape = value.array.shape
    return math.prod(size for axis, size in enumerate(shape) if axis != value.axis) <= ENTRIES


def is_varying(value: Any) -> bool:
    """Whether lanes may differ in it."""
    if isinstance(value, Whole):
        return value.axis is not None
    return any(getattr(x, "ndim", 0) for x in value.ravel())


def is_known(value: Any) -> bool:
    """Whether the value is known while tracing."""
    return isinstance(value, Whole) and isinstance(value.array, np.ndarray)


def constant(array: Any) -> Whole:
    """A constant of a computation, known while tracing if it is small."""
    is_concrete = not isinstance(array, Tracer) and fits(jax.typeof(array))
    return Whole(np.asarray(array) if is_concrete else array)


def settled(value: Any) -> Any:
    """The value, as an array if all its entries have come to be known."""
    if isinstance(value, Whole) or not value.size or not all(isinstance(x, np.generic) for x in value.ravel()):
        return value
    return Whole(np.array(value.tolist(), value.ravel()[0].dtype).reshape(value.shape))


def apart(value: Any, batch: Batch) -> Entries:
    """A value as entries."""
    if not isinstance(value, Whole):
        return value
    array, axis = value
    if axis is None:
        return entries([array[i] for i in np.ndindex(array.shape)], array.shape)
    shape = array.shape[:axis] + array.shape[axis + 1 :]
    return entries([array[(*i[:axis], slice(None), *i[axis:])] for i in np.ndindex(shape)], shape)


def whole(value: Any, batch: Batch, aval: Any, *, spread: bool = False) -> Whole:
    """A value as an array; `spread`: with lanes at the front, also where they share it."""
    if not isinstance(value, Whole):
        if is_varying(value):
            vectors = [vector(x, aval.dtype, batch) for x in value.ravel()]
            value = Whole(jnp.stack(vectors, -1).reshape(batch.lanes, *aval.shape), 0)
        else:
            scalars = [jnp.asarray(x, aval.dtype) for x in value.ravel()]
            value = Whole(jnp.stack(scalars).reshape(aval.shape) if scalars else jnp.zeros(aval.shape, aval.dtype))
    if not spread:
        return value
    if value.axis is None:
        array = jnp.asarray(value.array)
        return Whole(jnp.broadcast_to(array, (batch.lanes, *array.shape)), 0)
    return Whole(jnp.moveaxis(value.array, value.axis, 0), 0)


# What differs between lanes


def outputs_that_vary(equation: Any, given: Sequence[bool], batch: Batch) -> list[bool]:
    """Which outputs may differ between lanes, if these inputs do."""
    name, params, count = equation.primitive.name, equation.params, len(equation.outvars)
    if name.startswith("psum") and batch.name in params.get("axes", params.get("axis_name", ())):
        return [False] * count
    if not any(given):
        return [False] * count
    if name in CALLS:
        return results_that_vary(called(equation).jaxpr, given, batch)
    if name == "cond":
        if given[0]:
            return [True] * count
        outs = [results_that_vary(branch.jaxpr, given[1:], batch) for branch in params["branches"]]
        return [any(each) for each in zip(*outs, strict=True)]
    if name == "while":
        ahead, fixed = params["cond_nconsts"], params["body_nconsts"]
        start = list(given[ahead + fixed :])
        body = params["body_jaxpr"].jaxpr
        carry = carry_that_varies(body, given[ahead : ahead + fixed], start, batch)
        until = results_that_vary(params["cond_jaxpr"].jaxpr, [*given[:ahead], *carry], batch)[0]
        return [True] * count if until else carry
    if name == "scan":
        body, _, fixed, carried, _ = scan_of(equation)
        inner, rows = body.jaxpr, list(given[fixed + carried :])
        carry = list(given[fixed : fixed + carried])
        while True:
            outs = results_that_vary(inner, [*given[:fixed], *carry, *rows], batch)
            new = [a or b for a, b in zip(carry, outs, strict=False)]
            if new == carry:
                return carry + outs[carried:]
            carry = new
    return [True] * count


def results_that_vary(jaxpr: Jaxpr, given: Sequence[bool], batch: Batch) -> list[bool]:
    """Which results of a computation may differ between lanes, if these arguments do."""
    varies = dict.fromkeys(jaxpr.constvars, False) | dict(zip(jaxpr.invars, given, strict=True))
    for equation in jaxpr.eqns:
        outs = outputs_that_vary(equation, [not isinstance(v, Literal) and varies[v] for v in equation.invars], batch)
        varies |= dict(zip(equation.outvars, outs, strict=True))
    return [not isinstance(v, Literal) and varies[v] for v in jaxpr.outvars]


def carry_that_varies(body: Jaxpr, fixed: Sequence[bool], carry: list[bool], batch: Batch) -> list[bool]:
    """Which parts of a loop's carry may come to differ between lanes."""
    while True:
        outs = results_that_vary(body, [*fixed, *carry], batch)
        new = [a or b for a, b in zip(carry, outs, strict=True)]
        if new == carry:
            return carry
        carry = new


# What is left alone: as vmap has it


def together(equations: Sequence[Any], needed: Sequence[Any], env: dict[Any, Any], batch: Batch) -> None:
    """Evaluates equations under one `vmap`, and keeps what is needed later."""
    made = dict.fromkeys(v for equation in equations for v in equation.outvars)
    taken = dict.fromkeys(
        v for equation in equations for v in equation.invars if not isinstance(v, Literal) and v not in made
    )
    kept = [v for v in dict.fromkeys(v for v in needed if not isinstance(v, Literal)) if v in made]
    values = [whole(env[v], batch, v.aval) for v in taken]
    varies = {v: value.axis is not None for v, value in zip(taken, values, strict=True)}
    for equation in equations:
        outs = outputs_that_vary(equation, [not isinstance(v, Literal) and varies[v] for v in equation.invars], batch)
        varies |= dict(zip(equation.outvars, outs, strict=True))

    def one_lane(*arrays: Array) -> list[Array]:
        inside = dict(zip(taken, arrays, strict=True))
        for equation in equations:
            given = [v.val if isinstance(v, Literal) else inside[v] for v in equation.invars]
            inside |= dict(zip(equation.outvars, bind(equation, given), strict=True))
        return [inside[v] for v in kept]

    if not kept:
        return
    axes = [0 if varies[v] else None for v in kept]
    in_axes = [value.axis for value in values]
    over = jax.vmap(one_lane, in_axes=in_axes, out_axes=axes, axis_name=batch.name, axis_size=batch.lanes)
    env |= dict(zip(kept, map(Whole, over(*[value.array for value in values]), axes), strict=True))


def evaluated(equation: Any, values: Sequence[Any]) -> list[Any] | None:
    """The outputs of an equation whose inputs are known while tracing; None where they are not, or are not small."""
    if not all(map(is_known, values)) or not all(fits(v.aval) for v in equation.outvars) or not _is_pure(equation):
        return None
    return list(map(Whole, at_once(equation, [v.array for v in values])))


def _is_pure(equation: Any) -> bool:
    name = equation.primitive.name
    if name in CALLS:
        return all(map(_is_pure, (each for inner in inner_of(equation) for each in inner.eqns)))
    return name == "iota" or name in ELEMENTWISE or name in LAYOUT or name in RULES


def inner_of(equation: Any) -> list[Jaxpr]:
    """The computations that an equation calls; of code for several platforms, that which is not for a CPU."""
    if equation.primitive.name in CALLS:
        return [called(equation).jaxpr]
    found = []
    platforms = equation.params.get("branches_platforms")
    if platforms is not None:
        default = [each for each, names in zip(equation.params["branches"], platforms, strict=True) if names is None]
        return [each.jaxpr for each in default or equation.params["branches"]]
    for value in equation.params.values():
        for each in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(each, ClosedJaxpr):
                found.append(each.jaxpr)
    return found if equation.primitive.name not in (*SCATTERS, "reduce") else []


def contains(equation: Any, loop: Any) -> bool:
    """Whether the loop is somewhere within an equation."""
    return any(each is loop or contains(each, loop) for inner in inner_of(equation) for each in inner.eqns)
