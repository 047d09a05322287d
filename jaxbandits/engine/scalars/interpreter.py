"""Interpreter of a round for scalar replacement, operation by operation."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits.base import Array
from jaxbandits.engine.jaxprs import CALLS, ClosedJaxpr, Jaxpr, Literal, bind, called, scan_of
from jaxbandits.engine.scalars.known import at_once
from jaxbandits.engine.scalars.pieces import in_pieces
from jaxbandits.engine.scalars.rows import is_read_from_table, row_of_chunk, rows_one_by_one
from jaxbandits.engine.scalars.rules import ELEMENTWISE, FOLDS, LAYOUT, RULES, Entries, entries, pick
from jaxbandits.engine.scalars.values import (
    Batch,
    Pack,
    Whole,
    as_entries,
    carry_that_varies,
    constant,
    evaluated,
    fits,
    folded,
    inner_of,
    is_varying,
    outputs_that_vary,
    packed_all,
    read,
    under_vmap,
    unpacked,
    vector,
)

# Largest number of scalar operations of an inner loop of known length that is unrolled, such as a leap's bisection.
UNROLLED = 5_000
ROWS = ("gather", "dynamic", "scatter")  # prefixes of the operations that read or set rows
# Largest number of scalar operations of a branch that is split. A heavier one works on arrays, as `plan` should.
BRANCH = 1_000


def run_entries(jaxpr: Jaxpr, constants: Sequence[Any], arguments: Sequence[Any], batch: Batch) -> list[Any]:
    """Evaluates a computation, operation by operation."""
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, map(constant, constants), strict=True))
    env |= dict(zip(jaxpr.invars, arguments, strict=True))
    for equation in jaxpr.eqns:
        values = [read(env, v) for v in equation.invars]
        outs = _evaluate(equation, values, batch)
        if outs is None:
            local = {v: value for v, value in zip(equation.invars, values, strict=True) if not isinstance(v, Literal)}
            under_vmap([equation], equation.outvars, local, batch)
            outs = [local[v] for v in equation.outvars]
        env |= dict(zip(equation.outvars, map(folded, outs), strict=True))
    return [read(env, v) for v in jaxpr.outvars]


def _evaluate(equation: Any, values: Sequence[Any], batch: Batch) -> list[Any] | None:
    """Evaluates an equation on entries. Returns None if it must stay under `vmap`."""
    name, params = equation.primitive.name, equation.params
    if name in CALLS:
        closed = called(equation)
        return run_entries(closed.jaxpr, closed.consts, values, batch)
    # A barrier would end a kernel.
    if name == "optimization_barrier":
        return list(values)
    if name == "cond":
        return _cond(equation, values, batch)
    if name == "scan":
        return _scan(equation, values, batch)
    if name == "while":
        return _while(equation, values, batch)
    are_small = all(fits(v.aval) for v in equation.outvars)
    known = evaluated(equation, values)
    if known is not None:
        return known
    if name == "dynamic_slice" and isinstance(values[0], Whole) and are_small:
        row = row_of_chunk(equation, values, batch)
        if row is not None:
            return [row]
    if not any(map(is_varying, values)) or not are_small:
        return None
    if name in ELEMENTWISE or name in LAYOUT:
        # Random numbers stay one array until an entry is needed.
        if all(isinstance(v, Whole) for v in values):
            return None
        parts = [as_entries(v, batch) for v in values]
        if name in LAYOUT:
            return [LAYOUT[name](params, parts, equation.outvars[0].aval)]
        return [_elementwise(equation, parts, batch)]
    if is_read_from_table(equation, values):
        return None
    if name == "gather" and (rows := rows_one_by_one(equation, values, batch)) is not None:
        return [rows]
    if name in RULES and all(fits(v.aval) for v in equation.invars):
        out = RULES[name](equation, [as_entries(v, batch) for v in values])
        return None if out is None else [out]
    return None


def _elementwise(equation: Any, parts: Sequence[Entries], batch: Batch) -> Entries:
    shape = equation.outvars[0].aval.shape
    parts = [np.broadcast_to(part, shape) for part in parts]
    avals = [v.aval for v in equation.invars]
    out = np.empty(shape, object)
    for i in np.ndindex(shape):
        given = [part[i] for part in parts]
        if all(isinstance(x, np.generic) for x in given):
            out[i] = at_once(equation, given)[0][()]
            continue
        if equation.primitive.name == "select_n" and isinstance(given[0], np.generic):
            out[i] = given[1 + int(given[0])]
            continue
        if _never_holds(equation.primitive.name, given):
            out[i] = np.False_
            continue
        xs = [jnp.asarray(x, aval.dtype) for x, aval in zip(given, avals, strict=True)]
        if any(x.ndim for x in xs):
            xs = [x if x.ndim else lax.broadcast(x, (batch.lanes,)) for x in xs]
        out[i] = bind(equation, xs)[0]
    return out


def _never_holds(name: str, given: Sequence[Any]) -> bool:
    """Checks whether a comparison is known to be false, because nothing exceeds an infinite bound."""
    if name not in ("gt", "lt"):
        return False
    low, high = given if name == "lt" else given[::-1]
    return (isinstance(low, np.floating) and low == np.inf) or (isinstance(high, np.floating) and high == -np.inf)


def _cond(equation: Any, values: Sequence[Any], batch: Batch) -> list[Any] | None:
    which, *operands = values
    branches, named = equation.params["branches"], equation.params.get("branches_platforms")
    # The code for other platforms computes the same.
    if named is not None:
        default = [branch for branch, platforms in zip(branches, named, strict=True) if platforms is None]
        return run_entries(default[0].jaxpr, default[0].consts, operands, batch) if default else None
    is_light = sum(operations(branch.jaxpr) for branch in branches) <= BRANCH
    if is_varying(which):
        if not is_light or not all(fits(v.aval) for v in equation.outvars):
            return None
        outs = [run_entries(branch.jaxpr, branch.consts, operands, batch) for branch in branches]
        index = vector(as_entries(which, batch)[()], np.int32, batch)
        chosen = []
        for n, v in enumerate(equation.outvars):
            cases = [[vector(x, v.aval.dtype, batch) for x in as_entries(out[n], batch).ravel()] for out in outs]
            picked = [pick(list(each), index) for each in zip(*cases, strict=True)]
            chosen.append(entries(picked, v.aval.shape))
        return chosen
    varies = outputs_that_vary(equation, [False, *map(is_varying, operands)], batch)
    packs = [Pack(v.aval, each) for v, each in zip(equation.outvars, varies, strict=True)]

    def branch_of(branch: ClosedJaxpr) -> Callable[[], list[list[Array]]]:
        def follow() -> list[list[Array]]:
            if operations(branch.jaxpr) <= BRANCH:
                outs = run_entries(branch.jaxpr, branch.consts, operands, batch)
            else:
                jaxpr = branch.jaxpr
                env = dict(zip(jaxpr.constvars, map(constant, branch.consts), strict=True))
                env |= dict(zip(jaxpr.invars, operands, strict=True))
                under_vmap(jaxpr.eqns, jaxpr.outvars, env, batch)
                outs = [read(env, v) for v in jaxpr.outvars]
            return packed_all(packs, outs, batch)

        return follow

    index = as_entries(which, batch)[()]
    return list(map(unpacked, packs, lax.switch(index, [branch_of(branch) for branch in branches])))


def _scan(equation: Any, values: Sequence[Any], batch: Batch) -> list[Any] | None:
    closed, length, fixed, carried, reverse = scan_of(equation)
    if not any(map(is_varying, values)) or not all(fits(v.aval) for v in equation.outvars):
        return None
    cost = operations(closed.jaxpr)
    if length * cost > UNROLLED:
        is_plain = len(values) == fixed + carried == fixed + len(equation.outvars)
        if not is_plain or cost > UNROLLED:
            return None
        return run_loop(equation, batch, fixed=values[:fixed], start=values[fixed:], unroll=1)
    if not all(fits(v.aval) for v in equation.invars):
        return None
    carry, rows = list(values[fixed : fixed + carried]), [as_entries(v, batch) for v in values[fixed + carried :]]
    turns = []
    for n in reversed(range(length)) if reverse else range(length):
        inputs = [entries([row[n]], ()) if row.ndim == 1 else row[n] for row in rows]
        outs = run_entries(closed.jaxpr, closed.consts, [*values[:fixed], *carry, *inputs], batch)
        carry = outs[:carried]
        turns.append([as_entries(out, batch) for out in outs[carried:]])
    turns = turns[::-1] if reverse else turns
    shapes = [v.aval.shape for v in equation.outvars[carried:]]
    stacked = [entries([x for turn in turns for x in turn[n].ravel()], shape) for n, shape in enumerate(shapes)]
    return [*carry, *stacked]


def _while(equation: Any, values: Sequence[Any], batch: Batch) -> list[Any] | None:
    params = equation.params
    until, body = params["cond_jaxpr"], params["body_jaxpr"]
    light = operations(body.jaxpr) <= UNROLLED and all(fits(v.aval) for v in equation.outvars)
    if not light or not any(map(is_varying, values)):
        return None
    cond_count, constant_count = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    varies = outputs_that_vary(equation, list(map(is_varying, values)), batch)
    packs = [Pack(v.aval, each) for v, each in zip(equation.outvars, varies, strict=True)]

    def holds(carry: list[list[Array]]) -> Array:
        inner = [*values[:cond_count], *map(unpacked, packs, carry)]
        return jnp.asarray(as_entries(run_entries(until.jaxpr, until.consts, inner, batch)[0], batch)[()])

    def turn(carry: list[list[Array]]) -> list[list[Array]]:
        live = holds(carry)
        inner = [*values[cond_count:constant_count], *map(unpacked, packs, carry)]
        outs = run_entries(body.jaxpr, body.consts, inner, batch)
        new = packed_all(packs, outs, batch)
        return jax.tree.map(lambda a, b: jnp.where(live, a, b), new, carry) if live.ndim else new

    begun = packed_all(packs, values[constant_count:], batch)
    return list(map(unpacked, packs, lax.while_loop(lambda carry: jnp.any(holds(carry)), turn, begun)))


def run_loop(equation: Any, batch: Batch, *, fixed: Sequence[Any], start: Sequence[Any], unroll: int) -> list[Any]:
    """Runs a scan over entries. It must have no inputs and outputs per turn."""
    (closed, length, *_), outvars = scan_of(equation), equation.outvars
    varies = carry_that_varies(closed.jaxpr, list(map(is_varying, fixed)), list(map(is_varying, start)), batch)
    packs = [Pack(v.aval, each) for v, each in zip(outvars, varies, strict=True)]

    def turn(carry: list[list[Array]]) -> list[list[Array]]:
        for _ in range(unroll):
            outs = run_entries(closed.jaxpr, closed.consts, [*fixed, *map(unpacked, packs, carry)], batch)
            carry = packed_all(packs, outs, batch)
        return carry

    # The loop has no index of its own and no direction: a counter is part of the carry.
    begun = packed_all(packs, start, batch)
    turns = length // unroll
    ended = lax.scan(lambda carry, _: (in_pieces(turn, carry), None), begun, None, length=turns)[0]
    return list(map(unpacked, packs, ended))


def operations(jaxpr: Any, *, selects: bool = True) -> int:
    """Estimates the scalar operations of a computation. A loop of unknown length counts as one turn.

    Args:
        jaxpr: the computation.
        selects: if True, a computed index costs a select for every entry, as it does with scalar replacement.
    """
    total = 0
    for equation in jaxpr.eqns:
        name, inner = equation.primitive.name, sum(operations(each, selects=selects) for each in inner_of(equation))
        size = max((v.aval.size for v in equation.outvars), default=0)
        if inner:
            total += inner * equation.params.get("length", 1)
        elif name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            total += size * math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
        elif name.startswith(ROWS):
            taken = equation.invars[0].aval
            is_split = selects and fits(taken)
            if name.startswith("scatter"):
                total += size * max(1, equation.invars[1].aval.size) if is_split else equation.invars[2].aval.size
            else:
                total += size * (taken.size if is_split else 1)
        elif name in ELEMENTWISE:
            total += size
        else:
            total += max([size, *(v.aval.size for v in equation.invars)]) if name in (*FOLDS, "argmax", "argmin") else 0
    return total


def large_operations(jaxpr: Any) -> int:
    """Counts the operations of a computation on arrays that stay whole, except reading and setting their rows."""
    total = 0
    for equation in jaxpr.eqns:
        name, inner = equation.primitive.name, sum(map(large_operations, inner_of(equation)))
        is_large = not all(fits(v.aval) for v in (*equation.invars, *equation.outvars))
        is_own = name in ELEMENTWISE or name in FOLDS or (name in RULES and not name.startswith(ROWS))
        total += inner * equation.params.get("length", 1) or (is_large and is_own)
    return total
