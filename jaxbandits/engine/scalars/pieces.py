"""Division of the loop over rounds into pieces that XLA compiles well: kernels of at most 2,000 operations.

Beyond 2,000 operations of a kernel, XLA's emitter for GPUs puts values into functions and recomputes them at every use:
a round of COCI in blocks, 4,000 operations, became 39,000 instructions with 450 logarithms instead of two. A turn of
the loop over rounds is therefore traced, repeated and unused operations are removed, and barriers cut it where the
fewest values cross.

XLA gives a kernel at most 96 operands and results, so a turn that carries many arrays is cut in two at most: more
pieces would have too many values between them (LinGapE with leaps had 35 kernels per round instead of 4.5). A turn that
carries more arrays than a kernel accepts stays unchanged.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import lax

from jaxbandits.base import PyTree
from jaxbandits.engine.jaxprs import Literal, bind
from jaxbandits.engine.scalars.values import inner_of

MOST = 2_400  # largest number of operations of a kernel; XLA merges some of them
# Number of operations beyond which a turn is cut: slightly beyond 2,000, XLA recomputes nothing.
CUT = 3_500
CARRIED = 40  # number of carried arrays beyond which a turn is cut from MOST operations on
KERNEL = 96  # largest number of operands and results of a kernel
LOOPS = ("while", "scan", "cond")  # operations that end a kernel by themselves


def in_pieces(turn: Callable[[PyTree], PyTree], carry: PyTree) -> PyTree:
    """Evaluates `turn(carry)`, cut into pieces by barriers."""
    carried = len(jax.tree.leaves(carry))
    if carried > KERNEL:
        return turn(carry)
    closed, shapes = jax.make_jaxpr(turn, return_shape=True)(carry)
    jaxpr = closed.jaxpr
    equations, results = _distinct(jaxpr.eqns, jaxpr.outvars)
    cuts = _cuts(equations, MOST if carried > CARRIED else CUT)
    if carried > CARRIED and len(cuts) > 1:
        cuts = {}
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env |= dict(zip(jaxpr.invars, jax.tree.leaves(carry), strict=True))

    def read(v: Any) -> Any:
        return v.val if isinstance(v, Literal) else env[v]

    for at, equation in enumerate(equations):
        if at in cuts:
            env |= dict(zip(cuts[at], lax.optimization_barrier([env[v] for v in cuts[at]]), strict=True))
        env |= dict(zip(equation.outvars, bind(equation, list(map(read, equation.invars))), strict=True))
    return jax.tree.unflatten(jax.tree.structure(shapes), list(map(read, results)))


def _distinct(equations: Sequence[Any], results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Returns the equations that are needed, each once, and the results in their terms."""
    same: dict[Any, Any] = {}
    outputs: dict[Any, Any] = {}
    kept = []
    for equation in equations:
        inputs = [v if isinstance(v, Literal) else same.get(v, v) for v in equation.invars]
        equation = equation.replace(invars=inputs)
        if not inner_of(equation) and not equation.effects:
            named = tuple((str(v.val), str(v.aval)) if isinstance(v, Literal) else v for v in inputs)
            key = equation.primitive, str(sorted(equation.params.items(), key=lambda item: item[0])), named
            if key in outputs:
                same |= dict(zip(equation.outvars, outputs[key], strict=True))
                continue
            outputs[key] = equation.outvars
        kept.append(equation)
    results = [v if isinstance(v, Literal) else same.get(v, v) for v in results]
    needed = {v for v in results if not isinstance(v, Literal)}
    used = []
    for equation in reversed(kept):
        if equation.effects or not needed.isdisjoint(equation.outvars):
            needed |= {v for v in equation.invars if not isinstance(v, Literal)}
            used.append(equation)
    return used[::-1], results


def _cuts(equations: Sequence[Any], most: int) -> dict[int, list[Any]]:
    """Returns the positions of the cuts, and the values that cross there: as few as possible, every `MOST` operations.

    Up to `most` operations between two loops stay one piece.
    """
    last = {v: at for at, equation in enumerate(equations) for v in equation.invars if not isinstance(v, Literal)}
    ends = [at for at, equation in enumerate(equations) if equation.primitive.name in LOOPS] + [len(equations)]
    # A list, newest first: the order must be the same in every process, for the cache of compiled programs.
    live: list[Any] = []
    crossing = []
    for at, equation in enumerate(equations):
        live = [v for v in live if last[v] >= at]
        crossing.append(live)
        # Without variables among its inputs, an equation only spreads a constant over the lanes.
        if any(not isinstance(v, Literal) for v in equation.invars):
            live = [v for v in equation.outvars if v in last and v.aval.shape] + live
    cuts: dict[int, list[Any]] = {}
    begin = 0
    for end in ends:
        while end - begin > (MOST if begin in cuts else most):
            begin = min(range(begin + MOST // 2, begin + MOST + 1), key=lambda at: len(crossing[at]))
            cuts[begin] = crossing[begin]
        begin = end + 1
    return cuts
