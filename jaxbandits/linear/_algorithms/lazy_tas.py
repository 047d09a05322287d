"""Lazy Track-and-Stop: optimal shares at the estimates, renewed at powers of two (Jedra, Proutiere, 2020)."""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import require
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.linear._problem.questions.asked import Question
from jaxbandits.linear._shared.factor import is_positive_definite
from jaxbandits.linear._shared.fixed_confidence import (
    StartName,
    checked_settings,
    first_spanner,
    least_eigenvalue,
)
from jaxbandits.linear._shared.likelihood_ratio import ItemComparison, State, algorithm_from_rule, look
from jaxbandits.linear._shared.stop import LikelihoodRatio
from jaxbandits.numerics.design import frank_wolfe
from jaxbandits.numerics.indexing import sliced


class Plan(NamedTuple):
    """Memory of the rule."""

    weights: Array  # float (K,)   the shares since the last plan
    lag: Array  # float (K,)       pulls less cumulated shares; the shares count from the end of the start
    design: Array  # float (d, d)  A = ridge I + sum_k counts_k x_k x_k'
    turn: Array  # int ()          index into the spanner of the next forced pull
    next_update: Array  # int ()   number of pulls at which the shares are renewed


def lazy_tas(
    arms: Array,
    *,
    stop: LikelihoodRatio,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    start: StartName = "arms",
    question: Question | None = None,
    laziness: int = 2,
    design_steps: int = 1000,
    support: bool = False,
    spanner: Any = None,
) -> Algorithm:
    """Tracks the shares that are optimal at the estimates, and pulls arms of a spanner where the design is too weak.

    A pull is forced while the smallest eigenvalue of A is below c0 sqrt(t). Here c0 is the smallest eigenvalue of the
    spanner's Gram matrix over sqrt(d). The shares are uniform at first, and renewed (a `plan`) once t has reached a
    power of `laziness`.

    Arguments: as for `fixed_weights`, without `allocation`, and the ones below. The arms must be concrete and span R^d.
    With start="spanner" the start pulls the spanner of this rule.

    - `laziness`: int >= 2; the shares are renewed at its powers.
    - `design_steps`: int >= 1, steps of `numerics.design.frank_wolfe` for the shares.
    - `support`: if True, only arms that have had a share are pulled, and the shares begin with the spanner's instead of
      uniform ones, of which n arms would keep n / (n + design_steps). Pays where the arms are many.
    - `spanner`: int (d,), d arms that span R^d. If None, the first that do. One with nearly parallel arms forces hardly
      any pull, and makes the threshold `jp` far larger.

    Returns:
        Algorithm with actions `Step`, and answers as for `fixed_weights`.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: with a proved threshold, P(the answer is wrong) <= delta, and mean pulls / log(1 / delta) tend to
    the smallest possible limit, the `characteristic_time`, almost surely up to the errors of the shares. **Cost**:
    O((K + P) d + d^3) per round, O(design_steps (K + P) d) per plan, with P = M items, for `TopM` m (M - m) pairs.

    Source: Jedra and Proutiere (2020), Optimal best-arm identification in linear bandits. DEVIATION: their shares begin
    uniform over all arms with `support` as well.
    """
    laziness = checks.whole("laziness", laziness, least=2)
    design_steps = checks.whole("design_steps", design_steps, least=1)
    checks.flag("support", support)
    d = checked_arms(arms).shape[1]
    order = first_spanner(arms)
    if spanner is not None:
        order = _checked_spanner(spanner, arms)
    c0 = least_eigenvalue(arms, order) / math.sqrt(d)
    settings = checked_settings(
        arms, stop, ridge=ridge, noise_scale=noise_scale, start=start, spanner=order, question=question
    )
    features, dtype = settings.arms, settings.arms.dtype
    K, first = features.shape[0], len(settings.start)
    begun = jnp.asarray(np.isin(np.arange(K), order)) if support else None
    next_update = 1
    while next_update < first:
        next_update *= laziness

    def rule(key: Key, state: State, comparison: ItemComparison) -> tuple[Array, Plan]:
        del key, comparison
        memory = state.memory
        lag = memory.lag - memory.weights
        root = jnp.sqrt(state.pulls.astype(dtype))
        is_forced = ~is_positive_definite(memory.design - c0 * root * jnp.eye(d, dtype=dtype))
        forced = jnp.asarray(order)[memory.turn]
        behind = -lag
        if support:
            behind = jnp.where(state.counts.astype(dtype) > lag, behind, -jnp.inf)
        arm = jnp.where(is_forced, forced, jnp.argmax(behind))
        x = sliced(features, arm)
        later = memory._replace(
            lag=lag + (jnp.arange(K) == arm).astype(dtype),
            design=memory.design + x[:, None] * x[None],
            turn=jnp.where(is_forced, (memory.turn + 1) % jnp.asarray(d, memory.turn.dtype), memory.turn),
        )
        return arm, later

    def plan(key: Key, state: State) -> State:
        del key
        comparison = look(settings, state)[0]
        # The weights are relative to the closest challenger's. One that ties with the leader gets all the weight.
        gaps = comparison.gaps + jnp.finfo(dtype).eps * jnp.max(comparison.gaps) + jnp.finfo(dtype).tiny
        closest = jnp.min(jnp.where(comparison.rivals, gaps, jnp.inf))
        closest = jnp.where(jnp.any(comparison.rivals), closest, 0)
        weights = jnp.where(comparison.rivals, (closest / gaps) ** 2, 0)
        shares = frank_wolfe(features, comparison.directions, weights, steps=design_steps, start=begun)
        memory = state.memory
        return state._replace(memory=memory._replace(weights=shares, next_update=memory.next_update * laziness))

    def stale(state: State) -> Array:
        is_due = (state.pulls >= first) & (state.pulls >= state.memory.next_update)
        return is_due & ~look(settings, state)[1].stop

    at_start = jnp.asarray(np.bincount(settings.start, minlength=K), dtype)
    initial = Plan(
        weights=jnp.full(K, 1 / K, dtype) if begun is None else begun.astype(dtype) / d,
        lag=at_start,
        design=settings.ridge * jnp.eye(d, dtype=dtype)
        + jnp.sum(at_start[:, None, None] * features[:, :, None] * features[:, None, :], axis=0),
        turn=jnp.zeros((), int),
        next_update=jnp.full((), next_update, int),
    )
    return algorithm_from_rule(settings, rule, initial)._replace(plan=plan, stale=stale)


def _checked_spanner(spanner: Any, arms: Array) -> np.ndarray:
    features = np.asarray(arms, np.float64)
    K, d = features.shape
    require(checks.is_concrete(spanner), "spanner", "be concrete", spanner)
    checks.array("spanner", spanner, (d,), kind="int", least=0, most=K - 1)
    chosen = np.asarray(spanner)
    rank = np.linalg.matrix_rank(features[chosen])
    require(rank == d, "spanner", f"name {d} arms that span R^{d}", spanner)
    return chosen
