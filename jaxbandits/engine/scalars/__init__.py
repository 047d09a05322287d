"""Scalar replacement: every entry of a lane's small arrays becomes a vector of its own over the lanes.

A lane's arrays are small (six arms in five dimensions), and a batch of them is awkward for a GPU. A sum over arms, an
argmax or a row picked by an index is a kernel of its own, whose launch takes microseconds however little it does. With
a vector over lanes for every *entry*, a round is elementwise code, which XLA fuses into one or two kernels. The loop
over rounds is therefore taken out of the traced lane and replayed, operation by operation, on arrays of vectors:

- Elementwise operations act entry by entry.
- Broadcasts, slices and concatenations move entries while tracing, and cost nothing.
- Sums and argmax become chains of two-operand operations, a computed index a chain of selects.
- Short loops of known length are unrolled; others stay loops over vectors.
- Values that all lanes share and that are known while tracing are computed there.
- Keys, random bits, sorts, arrays of more than 100 entries and heavy branches (`plan`) stay under `vmap`. Their results
  are split into entries where needed.

Sums may round differently from sums over arrays; everything else is the same computation.

`rules` has the rules of single operations, `rows` the rows of large arrays, `interpreter` a round, `pieces` the
division into kernels.

The door is this module: `rounds_of`, `qualifies` and `replace_scalars`. Nothing else of the library knows scalars. What
other modules do for the sake of a device is listed here with its gain: on a CPU, measured on two cores in float64, and
on an H200, predicted by `python -m experiments bench gpu` with and without the device's form.

| where | form | gain on a CPU | on an H200 |
| --- | --- | --- | --- |
| `numerics.blocked_argmax` | CPU: blocks; other devices: all entries | DS-UCB 1.5, NS-TS 1.9 | 2.8, 1.9 |
| `numerics.normal.one_by_one` | CPU: a few entries one by one; others: together | T3C, Thompson 1.8 | 1.8, 1.4 |
| `numerics.gp_blocks`, columns | CPU: a loop over live rows; others: one of eight parts | DisKernelUCB 1.3 | 2.9 |
| `kcenter`, one sample | CPU: writes the row of a node; others: one entry | DS-TS 1.25 | DS-UCB 1.3 |
| `kcenter`, several samples | CPU: adds to rows; others: to entries | NS-TS 1.05 to 1.2 | NS-TS 1.35 |
| `Algorithm.masked_plan` | a loop of one turn writes in place | none | DisKernelUCB 1.36 |
| `engine.run.predrawn` | draws random numbers of a chunk at once | EB-TC 2.0, T3C 1.9, L-T3C 1.7 | T3C 1.75 |

In `gp_blocks`, and in ApproxDisKernelUCB's residual, the CPU's form is also the one whose bits depend on no neighbour.
A part has room for the rows of all lanes of the batch, and sums of another length round differently (JAX 0.8). The form
in parts would be 1.2 to 1.4 times as fast for ApproxDisKernelUCB.

In `kcenter`, `arm_table` packs the numbers of an arm so that a device reads them in one launch, `ns_ts` has one
more entry than nodes so that its array stays whole, and `random_bits` computes counters within the round's kernels.
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
    as_entries,
    carry_that_varies,
    constant,
    contains,
    evaluated,
    inner_of,
    is_small,
    read,
    under_vmap,
    whole,
)

# Largest number of scalar operations of a round. More take minutes to compile, and more kernels than arrays do.
OPERATIONS = 12_000
# Largest number of operations of a round on whole arrays, except reading and setting rows. Each is a kernel.
LARGE = 2
IN_A_TURN = {8: 4_000, 4: 16_000, 2: 16_000}  # largest number of scalar operations per turn, by rounds per turn
# Largest number of entries carried by all rounds of a turn: more do not fit the registers.
CARRIED_IN_A_TURN = 240


def rounds_of(jaxpr: Any, chunk: int, carried: Sequence[Any]) -> Any:
    """Returns the equation of the loop over the rounds of a chunk, or None if there is none.

    It carries a counter and every leaf of `carried` that the rounds change, and more than any other loop of this
    length.
    """
    candidates = _loops(jaxpr, chunk, carried)
    return max(candidates, key=lambda equation: len(equation.outvars), default=None)


def _loops(jaxpr: Any, chunk: int, carried: Sequence[Any]) -> list[Any]:
    loops = []
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan" and scan_of(equation).length == chunk:
            # Tests for a subsequence: each `in` consumes the iterator up to its match.
            kinds = iter([(leaf.shape, leaf.dtype) for leaf in carried])
            if all((v.aval.shape, v.aval.dtype) in kinds for v in equation.outvars[1:]):
                loops.append(equation)
                continue
        loops += [loop for inner in inner_of(equation) for loop in _loops(inner, chunk, carried)]
    return loops


def light_operations(loop: Any, *, selects: bool = True) -> int:
    """Estimates the scalar operations of a round, without the branches that work on arrays.

    Args:
        loop: the equation of the loop over rounds.
        selects: see `operations`.
    """
    heavy = sum(operations(each, selects=selects) for each in _heavy_branches(loop))
    return operations(scan_of(loop).body.jaxpr, selects=selects) - heavy


def _heavy_branches(loop: Any) -> list[Jaxpr]:
    branching = [each for each in scan_of(loop).body.jaxpr.eqns if each.primitive.name == "cond" or _is_plan(each)]
    return [branch for each in branching for branch in inner_of(each) if operations(branch) > BRANCH]


def _is_plan(equation: Any) -> bool:
    """True if this is a loop of at most one turn, as a plan may be: its condition is only read from the carry."""
    return equation.primitive.name == "while" and not equation.params["cond_jaxpr"].jaxpr.eqns


def qualifies(loop: Any) -> bool:
    """Checks whether the rounds of a lane, without heavy branches, are small enough for scalar replacement."""
    if loop is None or light_operations(loop) > OPERATIONS:
        return False
    return large_operations(scan_of(loop).body.jaxpr) - sum(map(large_operations, _heavy_branches(loop))) <= LARGE


def unrolled(loop: Any) -> int:
    """Returns the number of rounds per turn of their loop: a power of two that divides the chunk and fits registers.

    With heavy branches it is 1, since each copy of a branch would be compiled.
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
    """Evaluates a traced lane for all lanes, with scalar replacement in its loop over rounds.

    Args:
        closed: the traced lane.
        constants: constants of the lane, or tracers for them.
        arguments: arguments of the lane, each with the axis of the lanes, 0 or None.
        loop: the equation of the loop over rounds, see `rounds_of`.
        lanes: number of lanes.
        unroll: rounds per turn of the loop. If None, as many as registers allow.
        axis_name: name of the axis of lanes in the lane's collectives.

    Returns:
        The outputs, leaves (lanes, ...).
    """
    batch, unroll = Batch(lanes, axis_name), unroll or unrolled(loop)
    inputs = [Whole(*each) for each in arguments]
    values = _outside(closed.jaxpr, constants, inputs, loop=loop, unroll=unroll, batch=batch)
    return [
        whole(value, batch, v.aval, spread=True).array for value, v in zip(values, closed.jaxpr.outvars, strict=True)
    ]


# Outside of the rounds, under vmap


def _outside(
    jaxpr: Jaxpr, constants: Sequence[Any], arguments: Sequence[Whole], *, loop: Any, unroll: int, batch: Batch
) -> list[Whole]:
    """Evaluates all equations before the loop under one `vmap`, and all after it under another.

    The equation that contains the loop is replayed, down to the loop itself.
    """
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
    under_vmap(before, later, env, batch)
    values, params = [read(env, v) for v in equation.invars], equation.params
    if equation is loop:
        outs = _rounds(equation, values, unroll, batch)
    elif equation.primitive.name == "while":
        body_count, cond_count = params["body_nconsts"], params["cond_nconsts"]
        cond_constants, start = values[:cond_count], values[cond_count + body_count :]
        fixed = values[cond_count : cond_count + body_count]
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
            shared = [v.array for v in cond_constants]
            return eval_jaxpr(closed.jaxpr, closed.consts, *shared, *carry)[0]

        def turn(carry: list[Array]) -> list[Array]:
            closed, inner = params["body_jaxpr"], [*fixed, *map(Whole, carry, axes)]
            outs = _outside(closed.jaxpr, closed.consts, inner, loop=loop, unroll=unroll, batch=batch)
            return [
                whole(v, batch, o.aval, spread=each).array
                for v, o, each in zip(outs, equation.outvars, varies, strict=True)
            ]

        outs = list(map(Whole, lax.while_loop(goes_on, turn, arrays), axes))
    else:
        closed = called(equation)
        outs = _outside(closed.jaxpr, closed.consts, values, loop=loop, unroll=unroll, batch=batch)
    env |= dict(zip(equation.outvars, outs, strict=True))
    under_vmap(jaxpr.eqns[at + 1 :], list(jaxpr.outvars), env, batch)
    return [read(env, v) for v in jaxpr.outvars]


def _rounds(equation: Any, values: Sequence[Whole], unroll: int, batch: Batch) -> list[Any]:
    """Runs the loop over rounds, with its carry split into entries."""
    _, length, count, _, _ = scan_of(equation)

    def prepared(value: Whole) -> Any:
        if value.axis == 0 and value.array.ndim > 1 and value.array.shape[1] == length:
            # The noise of a chunk, with lanes last: a round reads a row of it.
            return Whole(jnp.moveaxis(value.array, 0, -1), value.array.ndim - 1)
        return as_entries(value, batch) if value.axis is not None and is_small(value) else value

    fixed = list(map(prepared, values[:count]))
    return run_loop(equation, batch, fixed=fixed, start=values[count:], unroll=unroll)
