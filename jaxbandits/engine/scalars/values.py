"""Values of a batch for scalar replacement: entries or whole arrays, shared by the lanes or varying between them."""

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

# Largest number of entries of an array that is split into entries; larger ones stay whole.
ENTRIES = 100


class Whole(NamedTuple):
    """An array that stays whole."""

    array: Any
    axis: int | None = None  # axis of the lanes; None if they share the array


class Batch(NamedTuple):
    """The lanes that a program advances."""

    lanes: int
    name: str  # name of the axis of lanes, in collectives


class Pack(NamedTuple):
    """The form of a value that a loop or a branch carries."""

    aval: Any
    varies: bool

    @property
    def is_split(self) -> bool:
        """True if the value is carried as entries."""
        return self.varies and fits(self.aval)


def packed(pack: Pack, value: Any, batch: Batch) -> list[Array]:
    """Converts a value to the arrays that a loop carries."""
    if not pack.is_split:
        return [whole(value, batch, pack.aval, spread=pack.varies).array]
    return [vector(x, pack.aval.dtype, batch) for x in as_entries(value, batch).ravel()]


def unpacked(pack: Pack, arrays: Sequence[Array]) -> Any:
    """Converts the arrays that a loop carries back to a value."""
    return entries(arrays, pack.aval.shape) if pack.is_split else Whole(arrays[0], 0 if pack.varies else None)


def packed_all(packs: Sequence[Pack], values: Sequence[Any], batch: Batch) -> list[list[Array]]:
    """Converts all values of a loop or a branch by `packed`."""
    return [packed(pack, value, batch) for pack, value in zip(packs, values, strict=True)]


def vector(x: Any, dtype: Any, batch: Batch) -> Array:
    """Returns an entry as a vector over lanes."""
    x = jnp.asarray(x, dtype)
    return x if x.ndim else lax.broadcast(x, (batch.lanes,))


def read(env: dict[Any, Any], v: Any) -> Any:
    """Returns the value of a variable or a literal."""
    aval = v.aval
    return Whole(np.asarray(v.val, aval.dtype)) if isinstance(v, Literal) else env[v]


def fits(aval: Any) -> bool:
    """Checks whether an array of this shape and type is small enough to be split into entries."""
    return aval.size <= ENTRIES and not jnp.issubdtype(aval.dtype, jax.dtypes.extended)


def is_small(value: Whole) -> bool:
    """Checks whether one lane's part of a value is small enough to be split into entries."""
    if jnp.issubdtype(value.array.dtype, jax.dtypes.extended):
        return False
    shape = value.array.shape
    return math.prod(size for axis, size in enumerate(shape) if axis != value.axis) <= ENTRIES


def is_varying(value: Any) -> bool:
    """Checks whether a value may differ between lanes."""
    if isinstance(value, Whole):
        return value.axis is not None
    return any(getattr(x, "ndim", 0) for x in value.ravel())


def is_known(value: Any) -> bool:
    """Checks whether a value is known while tracing."""
    return isinstance(value, Whole) and isinstance(value.array, np.ndarray)


def constant(array: Any) -> Whole:
    """Wraps a constant of a computation. It is known while tracing if it is small."""
    is_concrete = not isinstance(array, Tracer) and fits(jax.typeof(array))
    return Whole(np.asarray(array) if is_concrete else array)


def folded(value: Any) -> Any:
    """Returns the value, as an array if all its entries are known."""
    if isinstance(value, Whole) or not value.size or not all(isinstance(x, np.generic) for x in value.ravel()):
        return value
    return Whole(np.array(value.tolist(), value.ravel()[0].dtype).reshape(value.shape))


def as_entries(value: Any, batch: Batch) -> Entries:
    """Returns a value as entries."""
    if not isinstance(value, Whole):
        return value
    array, axis = value
    if axis is None:
        return entries([array[i] for i in np.ndindex(array.shape)], array.shape)
    shape = array.shape[:axis] + array.shape[axis + 1 :]
    return entries([array[(*i[:axis], slice(None), *i[axis:])] for i in np.ndindex(shape)], shape)


def whole(value: Any, batch: Batch, aval: Any, *, spread: bool = False) -> Whole:
    """Returns a value as an array. If `spread`, it has lanes at the front, even if they share it."""
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


# Values that differ between lanes


def outputs_that_vary(equation: Any, given: Sequence[bool], batch: Batch) -> list[bool]:
    """Returns True for every output of an equation that may differ between lanes, if the `given` inputs do."""
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
        cond_count, body_count = params["cond_nconsts"], params["body_nconsts"]
        start = list(given[cond_count + body_count :])
        body = params["body_jaxpr"].jaxpr
        carry = carry_that_varies(body, given[cond_count : cond_count + body_count], start, batch)
        until = results_that_vary(params["cond_jaxpr"].jaxpr, [*given[:cond_count], *carry], batch)[0]
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
    """Returns True for every result of a computation that may differ between lanes, if the `given` arguments do."""
    varies = dict.fromkeys(jaxpr.constvars, False) | dict(zip(jaxpr.invars, given, strict=True))
    for equation in jaxpr.eqns:
        outs = outputs_that_vary(equation, [not isinstance(v, Literal) and varies[v] for v in equation.invars], batch)
        varies |= dict(zip(equation.outvars, outs, strict=True))
    return [not isinstance(v, Literal) and varies[v] for v in jaxpr.outvars]


def carry_that_varies(body: Jaxpr, fixed: Sequence[bool], carry: list[bool], batch: Batch) -> list[bool]:
    """Returns True for every part of a loop's carry that may differ between lanes after some turn."""
    while True:
        outs = results_that_vary(body, [*fixed, *carry], batch)
        new = [a or b for a, b in zip(carry, outs, strict=True)]
        if new == carry:
            return carry
        carry = new


# Operations that stay under vmap


def under_vmap(equations: Sequence[Any], needed: Sequence[Any], env: dict[Any, Any], batch: Batch) -> None:
    """Evaluates equations under one `vmap`, and adds the values that are needed later to `env`."""
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
    """Evaluates an equation if its inputs are known while tracing and its outputs are small. Otherwise returns None."""
    if not all(map(is_known, values)) or not all(fits(v.aval) for v in equation.outvars) or not _is_pure(equation):
        return None
    return list(map(Whole, at_once(equation, [v.array for v in values])))


def _is_pure(equation: Any) -> bool:
    name = equation.primitive.name
    if name in CALLS:
        return all(map(_is_pure, (each for inner in inner_of(equation) for each in inner.eqns)))
    return name == "iota" or name in ELEMENTWISE or name in LAYOUT or name in RULES


def inner_of(equation: Any) -> list[Jaxpr]:
    """Returns the computations that an equation calls. Of code for several platforms, the default is chosen."""
    if equation.primitive.name in CALLS:
        return [called(equation).jaxpr]
    computations = []
    platforms = equation.params.get("branches_platforms")
    if platforms is not None:
        default = [each for each, names in zip(equation.params["branches"], platforms, strict=True) if names is None]
        return [each.jaxpr for each in default or equation.params["branches"]]
    for value in equation.params.values():
        for each in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(each, ClosedJaxpr):
                computations.append(each.jaxpr)
    return computations if equation.primitive.name not in (*SCATTERS, "reduce") else []


def contains(equation: Any, loop: Any) -> bool:
    """Checks whether an equation contains the loop, at any depth."""
    return any(each is loop or contains(each, loop) for inner in inner_of(equation) for each in inner.eqns)
