"""What a decision draws, drawn ahead: the random numbers of all rounds of a chunk at once.

`decide(key, state)` gets a key that the engine folds from the number of the round. What it computes of that key alone,
its random numbers above all, does not depend on the run, so that it can be computed for a whole chunk, like the noise
of the environment. One by one, a round's few numbers for a few hundred lanes are kernels of their own, which take
several times as long. Of more numbers only the key is made ahead: they stay in the cache from where they are made to
where they are read. The operations are the same, and so are their results, bit by bit.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from jaxbandits.base import Algorithm, Array, Decision, Key, PyTree
from jaxbandits.engine.jaxprs import Literal, bind

# Of a lane and round: a coin or two, and draws for a few arms, for which making the key takes longer than slicing it.
# Core-ns a round with nothing, the key, or all drawn ahead, 256 lanes: EB-TCI, which draws one number, 112, -, 87;
# T3C, seven, 212, 166, 280; L-T3C, seven, 476, 419, 497. 64 lanes: NS-TS with 100 arms 2880 and 3160.
DRAWN_BYTES, KEY_BYTES = 16, 128


class Ahead(NamedTuple):
    """A decision in two halves."""

    draw: Callable[[Key], list[Array]]  # what it makes of its key alone, or the key
    decide: Callable[[Sequence[Array], PyTree], Decision]  # the rest


def drawn_ahead(algorithm: Algorithm, key: Key, state: PyTree) -> Ahead | None:
    """Takes a decision apart into what depends on the key alone and what depends on the state.

    It looks into no function that is compiled by itself: a `decide` under `jax.jit` draws as it always did.

    Args:
        algorithm: whose decision.
        key: like those of the rounds.
        state: like those to be decided.

    Returns:
        The halves, for which decide(draw(key), state) is `algorithm.decide(key, state)`. Where more than `DRAWN_BYTES`
        are drawn, only the key is made ahead. None where nothing is drawn, or more than `KEY_BYTES`, or where the key
        itself meets the state.
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
    size = sum(v.aval.size * v.aval.dtype.itemsize for v in kept)
    if of_key in kept or not 0 < size <= KEY_BYTES:
        return None
    if size > DRAWN_BYTES:
        return Ahead(lambda key: [key], lambda drawn, state: algorithm.decide(drawn[0], state))

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
