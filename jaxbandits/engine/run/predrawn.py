"""The random numbers that depend on the key of a round alone: the environment's noise, and what decisions draw.

An environment says by its `noise` what depends on the key alone. An algorithm does not: `decide(key, state)` gets a key
that the engine folds from the number of the round. Its results that depend on this key alone are found here.

A GPU draws them for all rounds of a chunk at once. A CPU draws them in their round if it can in few kernels, so that
they are read from the cache: a chunk of 256 rounds is megabytes, and a round reads it in steps of kilobytes. Core-ns
per round of 1,024 lanes (Intel Xeon), from a chunk and in the round: UCB1 26 and 25 (Gaussian), 33 and 28 (Bernoulli),
LUCB 84 and 71, LinGapE 90 and 80. The operations are the same, and so are their results, bit by bit.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from jaxbandits.base import Algorithm, Array, Decision, Environment, Key, PyTree
from jaxbandits.engine.jaxprs import Literal, bind, eval_jaxpr, primitives_of
from jaxbandits.engine.run.round import Streams
from jaxbandits.numerics.kernels import apart
from jaxbandits.numerics.platforms import known_platform
from jaxbandits.numerics.random_bits import folded

# Limit per lane and round: a coin or two. Core-ns per round with and without what is drawn in advance, 256 lanes:
# EB-TCI, which draws one number, 87 and 112; T3C, seven, 280 and 212. The key of a round takes longer to store and to
# read than to make anew (`random_bits.folded`): T3C 109 and 79, Thompson sampling on Gaussian arms 71 and 53.
DRAWN_BYTES = 16
# Draws of JAX's own, whose hash is a loop of some 20 kernels on a CPU: too many for the numbers of a few hundred lanes.
SLOW = {"random_bits", "random_split", "random_fold_in", "random_gamma", "threefry2x32", "rng_bit_generator"}


class Predrawn(NamedTuple):
    """Numbers of the rounds of a chunk."""

    # (n, r) -> noise of round r, the n-th of the chunk
    noise: Callable[[Array, Array], PyTree]
    # (n, r, state) -> Decision of round r, the n-th of the chunk; None if draws are not split off
    decide: Callable[[Array, Array, PyTree], Decision] | None


def predraw(
    algorithm: Algorithm, environment: Environment, keys: Streams, rounds: Array, state: PyTree, *, decisions: bool
) -> Predrawn:
    """Draws the numbers of a chunk.

    Args:
        algorithm: the algorithm that decides.
        environment: the environment that answers.
        keys: the task's keys.
        rounds: int32 (chunk,), numbers of the rounds.
        state: example of a state.
        decisions: if True, the draws of decisions too, where they can be split off.
    """
    noise = _of_rounds(environment.noise, keys.noise, rounds)
    split = split_decision(algorithm, keys.decide, state) if decisions else None
    if split is None:
        return Predrawn(noise, None)
    drawn = _of_rounds(split.draw, keys.decide, rounds)
    return Predrawn(noise, lambda n, r, state: split.decide(drawn(n, r), state))


def _of_rounds(draw: Callable[[Key], PyTree], key: Key, rounds: Array) -> Callable[[Array, Array], PyTree]:
    """Returns (n, r) -> the draw of round r, which a CPU draws then, and others for all rounds now."""
    platform = known_platform()

    def ahead() -> Callable[[Array, Array], PyTree]:
        chunk = jax.vmap(lambda r: draw(folded(key, r)))(rounds)
        return lambda n, _: jax.tree.map(lambda x: x[n], chunk)

    if platform not in (None, "cpu"):
        return ahead()
    # The arrays that `draw` closes over become arguments, so that the program is the same for other ones.
    call = jax.jit(lambda key, r: draw(folded(key, r, is_kept=False)))
    jaxpr, outputs = jax.make_jaxpr(call, return_shape=True)(key, rounds[0])
    if primitives_of(jaxpr.jaxpr) & SLOW:
        return ahead()

    def of_round(constants: list[Any], key: Key, r: Array) -> PyTree:
        leaves = eval_jaxpr(jaxpr.jaxpr, constants, key, r)
        return jax.tree.unflatten(jax.tree.structure(outputs), leaves)

    if platform is not None:
        return lambda _, r: apart(of_round, jaxpr.consts, key, r)
    # XLA drops it on a CPU. Not `of_round`, since JAX keeps the batched forms of what `draw` calls.
    read = ahead()
    return lambda n, r: apart(of_round, jaxpr.consts, key, r, elsewhere=lambda *_: read(n, r))


class SplitDecision(NamedTuple):
    """A decision in two halves."""

    draw: Callable[[Key], list[Array]]  # (key) -> results that depend on the key alone
    decide: Callable[[Sequence[Array], PyTree], Decision]  # (drawn, state) -> Decision


def split_decision(algorithm: Algorithm, key: Key, state: PyTree) -> SplitDecision | None:
    """Splits a decision into a half that depends on the key alone and a half that depends on the state.

    A function that is compiled by itself is not split: a `decide` under `jax.jit` draws in every round.

    Args:
        algorithm: the algorithm that decides.
        key: example of a round's key.
        state: example of a state.

    Returns:
        The halves, for which decide(draw(key), state) is `algorithm.decide(key, state)`. None if nothing is drawn, or
        more than `DRAWN_BYTES`, or if the key itself is used together with the state.
    """
    # A new function, because JAX keeps the trace of one that it knows, with the globals of that time.
    closed, outputs = jax.make_jaxpr(lambda key, state: algorithm.decide(key, state), return_shape=True)(key, state)
    jaxpr = closed.jaxpr
    constants = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    of_key, *of_state = jaxpr.invars
    reads_state, reads_key = set(of_state), {of_key}
    early, late = [], []  # equations that depend on neither are in both, as cheap as constants
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
    if of_key in kept or not 0 < size <= DRAWN_BYTES:
        return None

    def draw(key: Key) -> list[Array]:
        made = _evaluated(early, constants | {of_key: key})
        return [made[v] for v in kept]

    def decide(drawn: Sequence[Array], state: PyTree) -> Decision:
        given = dict(zip([*kept, *of_state], [*drawn, *jax.tree.leaves(state)], strict=True))
        made = _evaluated(late, constants | given)
        leaves = [v.val if isinstance(v, Literal) else made[v] for v in jaxpr.outvars]
        return jax.tree.unflatten(jax.tree.structure(outputs), leaves)

    return SplitDecision(draw, decide)


def _evaluated(equations: Sequence[Any], values: dict[Any, Any]) -> dict[Any, Any]:
    """Returns the values of all variables after these equations."""
    values = dict(values)
    for equation in equations:
        given = [v.val if isinstance(v, Literal) else values[v] for v in equation.invars]
        values |= dict(zip(equation.outvars, bind(equation, given), strict=True))
    return values
