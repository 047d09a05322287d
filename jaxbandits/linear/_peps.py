"""PEPS: a learner of shares against draws of theta under which another item is best (Li, Jamieson, Jain, 2024)."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import is_concrete
from jaxbandits.linear._allocations import g_allocation
from jaxbandits.linear._factor import backward, factored, gram_of
from jaxbandits.linear._fixed_confidence import EliminateName, Settings, StartName, checked_settings
from jaxbandits.linear._glr import Comparison, State, algorithm_of
from jaxbandits.linear._hedge import Hedge, learned, new_hedge, weights_of
from jaxbandits.numerics.linalg import dot
from jaxbandits.numerics.thresholds import Evidence, Threshold

NEWTON_STEPS = 4  # an error of 1e-13 at most, wherever `above` is truncated


def peps(
    arms: Array,
    *,
    delta: Array | float,
    threshold: Threshold | None,
    items: Array | None = None,
    epsilon: Array | float = 0.0,
    ridge: Array | float = 1.0,
    glr_ridge: float | None = None,
    noise_scale: Array | float = 1.0,
    eliminate: EliminateName | None = None,
    start: StartName = "arms",
    draws: int = 20,
    mix: Array | float = 0.0,
) -> Algorithm:
    """Pulls by the shares of AdaHedge, which gains where posterior draws with another best item lie far from the mean.

    Arguments, but for those below, are those of `fixed_weights`, without the allocation.

    - `threshold`: None as well: the run never stops, and ends at the horizon of `jaxbandits.sweep`. So the rule was
      published, to be judged by how often the answer at time t is right; the stop by likelihood ratios is added.
    - `draws`: of theta in a round, an int in [1, 65536].
    - `mix`: () in [0, 1], the share of pulls by the `g_allocation`; unless 0 the arms must span R^d.

    Returns:
        Algorithm with actions `Step`, and answers int (), an item.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: that of the threshold; with a proved one P(the answer is not best) <= delta. **Cost**:
    O(K d^2 + d^3 + (M + K) d draws) a round.

    The published code draws from the posterior until another item is best, which takes about e^Z draws for a
    likelihood ratio Z. Here a draw is made in one of the half-spaces in which a rival beats the leader, and is weighed
    by one over the number of them that it lies in: the same law, up to the normalisation of the weights.

    Source: Li, Jamieson and Jain (2024), Optimal exploration is no harder than Thompson sampling, arXiv 2310.06069, and
    its code, which does not mix.
    """
    draws = checks.whole("draws", draws, least=1, most=65536)
    checks.real("mix", mix, least=0, most=1)
    settings = checked_settings(
        arms,
        delta,
        _never if threshold is None else threshold,
        items,
        epsilon,
        ridge,
        glr_ridge,
        noise_scale,
        eliminate,
        start,
    )
    dtype = settings.arms.dtype
    K = settings.arms.shape[0]
    is_mixed = not (is_concrete(mix) and float(np.asarray(mix)) == 0)
    mixed_in = g_allocation(arms).allocation if is_mixed else None
    mix = jnp.asarray(mix, dtype)

    def rule(key: Key, state: State, seen: Comparison) -> tuple[Array, Hedge]:
        of_arm, of_draws = jax.random.split(key)
        weights = weights_of(state.own)
        errors, shares = alternatives(settings, state, seen, of_draws, draws)
        gains = jnp.sum(shares[:, None] * dot(settings.arms, errors[:, None]) ** 2, axis=0)
        played = weights if mixed_in is None else (1 - mix) * weights + mix * mixed_in
        arm = drawn(played, jax.random.uniform(of_arm, (), dtype))
        return arm, learned(state.own, weights, -gains)

    return algorithm_of(settings, rule, own=new_hedge(K, dtype))


class Alternatives(NamedTuple):
    """Draws from the posterior under which the leading item is not best, in units of the noise."""

    errors: Array  # float (n, d)   theta less its estimate
    shares: Array  # float (n,)     their weights, of sum 1


def alternatives(settings: Settings, state: State, seen: Comparison, key: Key, n: int) -> Alternatives:
    """What the leader is to be told apart from. Cost: O(K d^2 + d^3 + n M d)."""
    arms, dtype = settings.arms, settings.arms.dtype
    d, M = arms.shape[1], settings.items.shape[0]
    of_item, of_tail, of_rest = jax.random.split(key, 3)
    # Without a rival the run stops; any item will do.
    rivals = seen.rivals | ~jnp.any(seen.rivals)
    norms = jnp.maximum(seen.norms, jnp.finfo(dtype).tiny)
    spreads = jnp.sqrt(norms)
    leads = seen.gaps / spreads

    # A half-space by its probability, and how deep in it; logs, because a probability may underflow.
    logs = jnp.where(rivals, log_ndtr(-leads), -jnp.inf)
    j = drawn(jnp.exp(logs - jnp.max(logs)), jax.random.uniform(of_item, (n,), dtype))
    chosen = j[:, None] == jnp.arange(M)

    def of_chosen(values: Array) -> Array:
        return jnp.sum(jnp.where(chosen, values, 0), axis=1)

    uniform = 1 - jax.random.uniform(of_tail, (n,), dtype)  # in (0, 1]
    depths = of_chosen(spreads) * above(of_chosen(leads), uniform)

    # A draw of the posterior, moved along A^-1 y_j to where y_j.e = -depth.
    A = gram_of(arms, state.counts.astype(dtype)) + settings.ridge * jnp.eye(d, dtype=dtype)
    errors = backward(factored(A), list(jax.random.normal(of_rest, (d, n), dtype)))
    images = state.cache.images[-M:]
    leader = jnp.arange(M) == seen.leader
    from_leader = jnp.sum(jnp.where(leader[:, None], images, 0), axis=0) - images  # A^-1 y_j, float (M, d)
    y, moves = (jnp.sum(jnp.where(chosen[:, :, None], rows, 0), axis=1) for rows in (seen.directions, from_leader))
    errors = errors - ((depths + dot(y, errors)) / of_chosen(norms))[:, None] * moves

    inside = (dot(seen.directions, errors[:, None]) + seen.gaps <= 0) & rivals
    shares = 1 / jnp.sum(inside | chosen, axis=1).astype(dtype)  # its own: rounding may put a draw beside it
    return Alternatives(errors, shares / jnp.sum(shares))


def above(least: Array, uniform: Array) -> Array:
    """Standard normal variables given that they exceed `least` >= 0, from uniform ones in (0, 1].

    Newton's method on the log of the tail, which is concave, from beyond the root: it falls to it without overshooting.
    """
    log_u = jnp.log(uniform)
    target = log_ndtr(-least) + log_u
    x = jnp.sqrt(least**2 - 2 * log_u)
    for _ in range(NEWTON_STEPS):
        log_tail = log_ndtr(-x)
        x = x + (log_tail - target) * jnp.exp(log_tail + x**2 / 2 + 0.5 * math.log(2 * math.pi))
    return jnp.maximum(x, least)


def drawn(weights: Array, uniform: Array) -> Array:
    """The places (...) at which uniform variables (...) in [0, 1) fall in the cumulated weights (n,)."""
    upto = jnp.cumsum(weights)
    # A zero weight is never met: the first place at which the sum exceeds what was drawn has one.
    return jnp.argmax(upto > (uniform * upto[-1])[..., None], axis=-1)


def _never(delta: Array | float, evidence: Evidence) -> Array:
    del evidence
    return jnp.full_like(delta, jnp.inf)
