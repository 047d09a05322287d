"""Scalar replacement: every entry of a lane's small arrays becomes a vector over the lanes of its own.

A lane's arrays are small (six arms in five dimensions), and a batch of them is awkward for a GPU: a sum over arms, an
argmax or a row that an index picks is a kernel of its own, which is launched for microseconds however little it does.
With a vector over lanes for every *entry*, a round is elementwise code, which XLA fuses into a kernel or two. So the
loop over rounds is taken out of the traced lane and replayed, operation by operation, on arrays of vectors. Elementwise
operations act entry by entry; broadcasts, slices and concatenations move entries about while tracing, and cost nothing;
sums and argmax become chains of two-operand operations, an index that is computed a chain of selects; short loops of
known length are unrolled, others stay loops over vectors. What all lanes share and is known while tracing is computed
there. Keys, random bits, sorts, arrays of more than 100 entries and heavy branches (`plan`) are left alone: `vmap`
makes of each what it always does, and its results are taken apart where entries need them. Sums may round otherwise
than those of arrays; all else is the same computation.

The rules of single operations are in `scalar_rules`, rows of large arrays in `scalar_rows`, a round in `scalar_run`,
what goes into one kernel in `scalar_pieces`.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.engine.jaxprs import ClosedJaxpr, Jaxpr, Literal, called, eval_jaxpr, scan_of
from jaxbandits.engine.scalars.interpreter import (
    BRANCH,
    large_operations,
    operations,
    run_loop,
)
from jaxbandits.engine.scalars.values import (
    Batch,
    Whole,
    apart,
    carry_that_varies,
    constant,
    contains,
    evaluated,
    inner_of,
    is_small,
    read,
    together,
    whole,
)

OPERATIONS = 12_000  # scalar operations of a round; more take minutes to compile, and more kernels than arrays do
LARGE = 2  # operations of a round on arrays that are left alone, apart from rows that are read or set; each is a kernel
IN_A_TURN = {8: 4_000, 4: 16_000, 2: 16_000}  # scalar operations of so many rounds in one turn of their loop
CARRIED_IN_A_TURN = 240  # entries that they carry, all rounds together: more of them leave the registers


def rounds_of(jaxpr: Any, chunk: int, carried: Sequence[Any]) -> Any:
    """The equation of the loop over the rounds of a chunk; None if there is none.

    It carries a counter and all of `carried` that the rounds change, and more than any other loop of that length.
    """
    found = _loops(jaxpr, chunk, carried)
    return max(found, key=lambda equation: len(equation.outvars), default=None)


def _loops(jaxpr: Any, chunk: int, carried: Sequence[Any]) -> list[Any]:
    found = []
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan" and scan_of(equation).length == chunk:
            left = iter([(leaf.shape, leaf.dtype) for leaf in carried])
            if all((v.aval.shape, v.aval.dtype) in left for v in equation.outvars[1:]):
                found.append(equation)
                continue
        found += [loop for inner in inner_of(equation) for loop in _loops(inner, chunk, carried)]
    return found


def light_operations(loop: Any, *, selects: bool = True) -> int:
    """Scalar operations of a round, about, without the branches that are left to arrays; `selects`: by scalars."""
    heavy = sum(operations(each, selects=selects) for each in _heavy_branches(loop))
    return operations(scan_of(loop).body.jaxpr, selects=selects) - heavy


def _heavy_branches(loop: Any) -> list[Jaxpr]:
    branching = [each for each in scan_of(loop).body.jaxpr.eqns if each.primitive.name == "cond" or _is_plan(each)]
    return [branch for each in branching for branch in inner_of(each) if operations(branch) > BRANCH]


def _is_plan(equation: Any) -> bool:
    """Whether it is a loop of at most one turn, as a plan is that spares states: whether it goes on is only read."""
    return equation.primitive.name == "while" and not equation.params["cond_jaxpr"].jaxpr.eqns


def qualifies(loop: Any) -> bool:
    """Whether a lane's rounds are few enough operations to be taken apart, without heavy branches."""
    if loop is None or light_operations(loop) > OPERATIONS:
        return False
    return large_operations(scan_of(loop).body.jaxpr) - sum(map(large_operations, _heavy_branches(loop))) <= LARGE


def unrolled(loop: Any) -> int:
    """Rounds in one turn of their loop: a power of two that divides the chunk, as far as registers allow.

    One where there are heavy branches, each copy of which would be compiled.
    """
    if _heavy_branches(loop):
        return 1
    body, chunk, constants, count, _ = scan_of(loop)
    carried = body.in_avals[constants:][:count]
    cost, entries = light_operations(loop), sum(each.size for each in carried)

    def fits(n: int) -> bool:
        return n * cost <= IN_A_TURN[n] and n * entries <= CARRIED_IN_A_TURN

    return next((n for n in IN_A_TURN if fits(n) and chunk % n == 0), 1)


def replace_scalars(
    closed: ClosedJaxpr,
    constants: Sequence[Any],
    arguments: Sequence[tuple[Any, int | None]],
    *,
    loop: Any,
    lanes: int,
    unroll: int | None = None,
    axis_name: str,
) -> list[Array]:
    """Evaluates a traced lane for all lanes, its loop over rounds by scalars.

    Args:
        closed: the lane, traced.
        constants: its constants, or what stands for them.
        arguments: each with the axis of its lanes, 0 or None.
        loop: the equation of the loop over rounds, see `rounds_of`.
        lanes: how many.
        unroll: rounds in a turn of the loop; by default as many as registers allow.
        axis_name: that its collectives name.

    Returns:
        The outputs, leaves (lanes, ...).
    """
    batch, unroll = Batch(lanes, axis_name), unroll or unrolled(loop)
    values = _outside(closed.jaxpr, constants, [Whole(*each) for each in arguments], loop, unroll, batch)
    return [
        whole(value, batch, v.aval, spread=True).array for value, v in zip(values, closed.jaxpr.outvars, strict=True)
    ]


# Outside of the rounds: as vmap has it


def _outside(
    jaxpr: Jaxpr, constants: Sequence[Any], arguments: Sequence[Whole], loop: Any, unroll: int, batch: Batch
) -> list[Whole]:
    """What is before the loop and what is after it, each in one piece; the way to the loop is replayed."""
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, map(constant, constants), strict=True))
    env |= dict(zip(jaxpr.invars, arguments, strict=True))
    at = next(n for n, equation in enumerate(jaxpr.eqns) if equation is loop or contains(equation, loop))
    equation = jaxpr.eqns[at]
    later = [v for each in jaxpr.eqns[at:] for v in each.invars] + list(jaxpr.outvars)
    before = []
    for each in jaxpr.eqns[:at]:
        known = evaluated(each, [read(env, v) if isinstance(v, Literal) else env.get(v) for v in each.invars])
        if known is None:
            before.append(each)
        else:
            env |= dict(zip(each.outvars, known, strict=True))
    together(before, later, env, batch)
    values, params = [read(env, v) for v in equation.invars], equation.params
    if equation is loop:
        outs = _rounds(equation, values, unroll, batch)
    elif equation.primitive.name == "while":
        carried, given = params["body_nconsts"], params["cond_nconsts"]
        ahead, fixed, start = values[:given], values[given : given + carried], values[given + carried :]
        varies = carry_that_varies(
            params["body_jaxpr"].jaxpr, [v.axis is not None for v in fixed], [v.axis is not None for v in start], batch
        )
        axes = [0 if each else None for each in varies]
        arrays = [
            whole(v, batch, o.aval, spread=each).array
            for v, o, each in zip(start, equation.outvars, varies, strict=True)
        ]

        def goes_on(carry: list[Array]) -> Array:
            closed = params["cond_jaxpr"]
            shared = [v.array for v in ahead]
            return eval_jaxpr(closed.jaxpr, closed.consts, *shared, *carry)[0]

        def turn(carry: list[Array]) -> list[Array]:
            closed, inner = params["body_jaxpr"], [*fixed, *map(Whole, carry, axes)]
            outs = _outside(closed.jaxpr, closed.consts, inner, loop, unroll, batch)
            return [
                whole(v, batch, o.aval, spread=each).array
                for v, o, each in zip(outs, equation.outvars, varies, strict=True)
            ]

        outs = list(map(Whole, lax.while_loop(goes_on, turn, arrays), axes))
    else:
        closed = called(equation)
        outs = _outside(closed.jaxpr, closed.consts, values, loop, unroll, batch)
    env |= dict(zip(equation.outvars, outs, strict=True))
    together(jaxpr.eqns[at + 1 :], list(jaxpr.outvars), env, batch)
    return [read(env, v) for v in jaxpr.outvars]


def _rounds(equation: Any, values: Sequence[Whole], unroll: int, batch: Batch) -> list[Any]:
    """The loop over rounds, whose carry is taken apart."""
    _, length, count, _, _ = scan_of(equation)

    def prepared(value: Whole) -> Any:
        if value.axis == 0 and value.array.ndim > 1 and value.array.shape[1] == length:
            # The noise of a chunk, with lanes last: a round reads a row of it.
            return Whole(jnp.moveaxis(value.array, 0, -1), value.array.ndim - 1)
        return apart(value, batch) if value.axis is not None and is_small(value) else value

    fixed = list(map(prepared, values[:count]))
    return run_loop(equation, fixed, values[count:], unroll, batch)
