"""Frame of the rules whose round is a phase: an allocation is planned, pulled as a whole, and learned from.

Their states have the fields `pulls` and `counts`, which the frame updates, and `planned` if phases are planned. All
other fields are the rule's own.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Decision, Key, PyTree
from jaxbandits.linear._problem.environment import Allocation, made_for
from jaxbandits.numerics.indexing import select


class Phases(NamedTuple):
    """Functions of a rule."""

    init: Callable[[Key], PyTree]  # (key) -> state
    due: Callable[[Key, PyTree], Array]  # (key, state) -> int (K,), pulls of the present phase once it is planned
    is_over: Callable[[PyTree], Array]  # (state) -> bool (), True if no phase is left
    answer: Callable[[PyTree], Array]  # (state) -> int ()
    # (state, pulls (K,), sums of their rewards (K,)) -> state after the phase, with the frame's fields of before
    learn: Callable[[PyTree, Array, Array], PyTree]
    # (key, state) -> state with the plan of the next phase; None if phases are not planned
    plan: Callable[[Key, PyTree], PyTree] | None = None


def algorithm_from_phases(arms: Array, phases: Phases, *, items: Array | None = None) -> Algorithm:
    """Builds the algorithm of a rule of phases.

    Args:
        arms: float (K, d).
        phases: functions of the rule.
        items: float (M, d), the items that answers index. If None, the arms.

    Returns:
        Algorithm with actions `Allocation`, one per phase, and answers int ().
    """
    is_planned = phases.plan is not None

    def plan(key: Key, state: PyTree) -> PyTree:
        assert phases.plan is not None
        return phases.plan(key, state)._replace(planned=jnp.ones((), bool))

    def stale(state: PyTree) -> Array:
        return ~state.planned & ~phases.is_over(state)

    def decide(key: Key, state: PyTree) -> Decision:
        due = phases.due(key, state)
        counts = jnp.where(state.planned, due, 0) if is_planned else due
        return Decision(Allocation(counts), phases.is_over(state), phases.answer(state))

    def observe(state: PyTree, action: Allocation, observation: Array) -> PyTree:
        n = action.counts.sum()
        after = phases.learn(state, action.counts, observation)
        after = after._replace(pulls=state.pulls + n, counts=state.counts + action.counts)
        if is_planned:
            after = after._replace(planned=jnp.zeros((), bool))
        return select(n > 0, after, state)

    return Algorithm(
        phases.init,
        decide,
        observe,
        Allocation(jnp.zeros(arms.shape[0], int)),
        plan=plan if is_planned else None,
        stale=stale if is_planned else None,
        **made_for(arms, items),
    )


def lasting(new: Array, old: Array) -> Array:
    """Returns `new`, but NaN where `old` is: a NaN of an earlier phase stays, so that the run ends as NONFINITE."""
    return new + 0 * old
