"""Decisions in batches."""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key, PyTree
from jaxbandits.feedback._wrappers.counted import require_any_order
from jaxbandits.numerics.indexing import select


class Batched(NamedTuple):
    """State of an algorithm that decides in batches."""

    pulls: Array  # int ()
    held: Array  # int32 ()   rounds of the batch that is running
    shown: PyTree  # the algorithm's state before this batch, which decides
    latest: PyTree  # its state after all observations


def batched(algorithm: Algorithm, size: int) -> Algorithm:
    """Returns the algorithm with decisions that see no observation of their own batch.

    A laboratory or a website sends out `size` queries before it reads an answer. The decisions of a batch are made by
    one state, each with a key of its own: a rule without randomness makes one query `size` times. The answer and the
    stop, too, come from the last complete batch.

    Args:
        algorithm: the algorithm.
        size: rounds of a batch, at least 1. With 1 nothing changes.

    Returns:
        Algorithm with states `Batched`. Only rounds with a pull count. Cost per round: two states are carried, and one
        is selected.

    Raises:
        ValueError: `algorithm` is no Algorithm or has `needs_order`, or `size` is no integer of at least 1.

    Example:
        >>> import jax
        >>> import jaxbandits
        >>> from jaxbandits import feedback, mab
        >>> instance = mab.gaussian((1.0, 0.0))
        >>> algorithm = feedback.batched(mab.thompson(instance.problem), 50)
        >>> environment = mab.environment(instance, algorithm)
        >>> print(jaxbandits.run(jax.random.key(0), algorithm, environment, horizon=500).pulls)
        500
    """
    require_any_order(algorithm)
    size = checks.whole("size", size, least=1)
    refresh, plan, stale = algorithm.refresh, algorithm.plan, algorithm.stale

    def init(key: Key) -> Batched:
        start = algorithm.init(key)
        return Batched(jnp.zeros((), int), jnp.zeros((), jnp.int32), start, start)

    def decide(key: Key, state: Batched) -> Decision:
        return algorithm.decide(key, state.shown)

    def observe(state: Batched, action: PyTree, observation: PyTree) -> Batched:
        latest = algorithm.observe(state.latest, action, observation)
        moves = latest.pulls > state.latest.pulls
        held = (state.held + moves.astype(state.held.dtype)) % size
        return Batched(latest.pulls, held, select(moves & (held == 0), latest, state.shown), latest)

    def refreshed(state: Batched) -> Batched:
        assert refresh is not None
        return state._replace(shown=refresh(state.shown), latest=refresh(state.latest))

    def planned(key: Key, state: Batched) -> Batched:
        assert plan is not None
        latest = plan(key, state.latest)
        # Between two batches both are one state, which may need a plan before it decides.
        return state._replace(shown=select(state.held == 0, latest, state.shown), latest=latest)

    return algorithm._replace(
        init=init,
        decide=decide,
        observe=observe,
        refresh=None if refresh is None else refreshed,
        plan=None if plan is None else planned,
        stale=None if stale is None else lambda state: stale(state.latest),
    )
