"""What a decision draws, drawn ahead: the random numbers of all rounds of a chunk at once.

`decide(key, state)` gets a key that the engine folds from the number of the round. What it computes of that key alone,
its random numbers above all, does not depend on the run, so that it can be computed for a whole chunk, like the noise
of the environment. One by one, a round's few numbers for a few hundred lanes are kernels of their own, which take
several times as long. The operations are the same, and so are their results, bit by bit.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend.core import Literal

from jaxbandits.base import Algorithm, Array, Decision, Key, PyTree
from jaxbandits.engine.scalar_values import bind

# Of a lane and round: a coin or two. A draw for every arm is quicker made in its round, where it stays in the cache
# (core-ns a round, 256 lanes: EB-TCI, one number, 112 in its round, 87 ahead; T3C, seven, 337 and 403).
DRAWN_BYTES = 16


class Ahead(NamedTuple):
    """A decision in two halves."""

    draw: Callable[[Key], list[Array]]  # what it makes of its key alone
    decide: Callable[[Sequence[Array], PyTree], Decision]  # the rest


def drawn_ahead(algorithm: Algorithm, key: Key, state: PyTree) -> Ahead | None:
    """Takes a decision apart into what depends on the key alone and what depends on the state.

    It looks into no function that is compiled by itself: a `decide` under `jax.jit` draws as it always did.

    Args:
        algorithm: whose decision.
        key: like those of the rounds.
        state: like those to be decided.

    Returns:
        The halves, for which decide(draw(key), state) is `algorithm.decide(key, state)`. None where nothing is drawn,
        or more than `DRAWN_BYTES`, or where the key itself meets the state.
    """
    closed, outputs = jax.make_jaxpr(algorithm.decide, return_shape=True)(key, state)
    jaxpr = closed.jaxpr
    constants = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    of_key, *of_state = jaxpr.invars
    reads_state, reads_key = set(of_state), {of_key}
    early, late = [], []  # what depends on neither is in both, as cheap as a constant
    for equation in jaxpr.eqns:
        inputs = {v for v in equation.invars if not isinstance(v, Literal)}
        if inputs & reads_state or equation.effects:
            reads_state |= set(equation.outvars)
            late.append(equation)
            continue
        early.append(equation)
        if inputs & reads_key:
            reads_key |= set(equation.outvars)
        else:
            late.append(equation)
    needed = dict.fromkeys(v for equation in late for v in equation.invars if not isinstance(v, Literal))
    needed |= dict.fromkeys(v for v in jaxpr.outvars if not isinstance(v, Literal))
    kept = [v for v in needed if v in reads_key]
    if of_key in kept or not 0 < sum(v.aval.size * v.aval.dtype.itemsize for v in kept) <= DRAWN_BYTES:
        return None

    def draw(key: Key) -> list[Array]:
        made = _evaluated(early, constants | {of_key: key})
        return [made[v] for v in kept]

    def decide(drawn: Sequence[Array], state: PyTree) -> Decision:
        given = dict(zip([*kept, *of_state], [*drawn, *jax.tree.leaves(state)], strict=True))
        made = _evaluated(late, constants | given)
        leaves = [v.val if isinstance(v, Literal) else made[v] for v in jaxpr.outvars]
        return jax.tree.unflatten(jax.tree.structure(outputs), leaves)

    return Ahead(draw, decide)


def _evaluated(equations: Sequence[Any], values: dict[Any, Any]) -> dict[Any, Any]:
    """The values of all variables after these equations."""
    values = dict(values)
    for equation in equations:
        given = [v.val if isinstance(v, Literal) else values[v] for v in equation.invars]
        values |= dict(zip(equation.outvars, bind(equation, given), strict=True))
    return values
