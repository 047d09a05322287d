"""PEPS: a learner of shares against draws of theta under which another item is best (Li, Jamieson, Jain, 2024)."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.checks import is_concrete
from jaxbandits.linear._shared.allocations import g_allocation
from jaxbandits.linear._shared.fixed_confidence import (
    FixedConfidenceSettings,
    StartName,
    checked_settings,
)
from jaxbandits.linear._shared.hedge import Hedge, learned, new_hedge, weights_of
from jaxbandits.linear._shared.likelihood_ratio import ItemComparison, State, algorithm_from_rule
from jaxbandits.linear._shared.stop import LikelihoodRatio
from jaxbandits.numerics.linalg import UNROLL, dot
from jaxbandits.numerics.normal import normals_and_uniforms

# Enough for an error of at most 1e-13, wherever the tail of `truncated_normals` begins.
HALLEY_STEPS = 3
# Coefficients of (1 + x) mills(x) as a polynomial in (x - 4) / (x + 4), interpolated at Chebyshev's nodes. Its error is
# at most 5e-15 for x >= 0.
MILLS = (
    1.1832619145678034,
    -0.24239967052190523,
    0.03509188023483247,
    0.07169048120857925,
    -0.08070800968524772,
    0.04495912892124242,
    -0.012539103486153766,
    -0.0007159493339982051,
    0.0017418474365155229,
    -0.00023671054888178838,
    -0.00022020823218492328,
    5.329688526565605e-05,
    3.413447567660155e-05,
    -8.671079782156998e-06,
    -6.5024931482551705e-06,
    1.1107049631284448e-06,
    1.3229889342614216e-06,
    -8.528916455372487e-08,
    -2.3053127139966587e-07,
    3.9592831529012583e-10,
    2.338199755615768e-08,
)


def peps(
    arms: Array,
    *,
    stop: LikelihoodRatio,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    start: StartName = "arms",
    draws: int = 20,
    mix: Array | float = 0.0,
) -> Algorithm:
    """Pulls by the shares of AdaHedge, which gains where posterior draws with another best item lie far from the mean.

    Arguments: as for `fixed_weights`, without `allocation` and `question`, and the ones below.

    - `stop`: the rule was published with `no_stop`, to be judged by how often the answer at time t is right. A stop by
      likelihood ratios is our addition.
    - `draws`: int in [1, 65536], draws of theta per round.
    - `mix`: () in [0, 1], the share of pulls by the `g_allocation`. Unless it is 0, the arms must span R^d.

    Returns:
        Algorithm with actions `Step`, and answers int (), an item.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: with a proved threshold, P(the answer is not best) <= delta. **Cost**:
    O(K d + (d + M + K) d draws) per round.

    The published code draws from the posterior until another item is best, which takes about e^Z draws for a
    likelihood ratio Z. Here a draw is made in one of the half-spaces in which a rival beats the leader. Its weight is
    one over the number of half-spaces that contain it. The law is the same, up to the normalisation of the weights. The
    variables behind the draws are of single precision.

    Source: Li, Jamieson and Jain (2024), Optimal exploration is no harder than Thompson sampling, arXiv 2310.06069, and
    its code, which does not mix.
    """
    draws = checks.whole("draws", draws, least=1, most=65536)
    checks.real("mix", mix, least=0, most=1)
    settings = checked_settings(arms, stop, ridge=ridge, noise_scale=noise_scale, start=start)
    dtype = settings.arms.dtype
    K = settings.arms.shape[0]
    is_mixed = not (is_concrete(mix) and float(np.asarray(mix)) == 0)
    mixed_in = g_allocation(arms).allocation if is_mixed else None
    mix = jnp.asarray(mix, dtype)

    def rule(key: Key, state: State, comparison: ItemComparison) -> tuple[Array, Hedge]:
        numbers = numbers_of(key, settings.arms.shape[1], draws, dtype)
        weights = weights_of(state.memory)
        errors, shares = alternatives(settings, state, comparison, numbers)
        gains = dot(combined(settings.arms, errors) ** 2, shares)
        played = weights if mixed_in is None else (1 - mix) * weights + mix * mixed_in
        return drawn(played, numbers.arm), learned(state.memory, weights, -gains)

    return algorithm_from_rule(settings, rule, memory=new_hedge(K, dtype), draws=True)


class Numbers(NamedTuple):
    """Random numbers of a round of n draws."""

    normals: Array  # float (d, n)
    items: Array  # float (n,), uniform in [0, 1)
    tails: Array  # float (n,), uniform in (0, 1]
    arm: Array  # float (), uniform in [0, 1)


def numbers_of(key: Key, d: int, n: int, dtype: jnp.dtype) -> Numbers:
    """Draws all numbers of a round at once.

    On a CPU, a call of JAX's generator takes about as long for a few numbers as for many.
    """
    normals, uniforms = normals_and_uniforms(key, d * n, 2 * n + 1, dtype)
    return Numbers(normals.reshape(d, n), uniforms[:n], 1 - uniforms[n : 2 * n], uniforms[-1])


class Alternatives(NamedTuple):
    """Draws from the posterior under which the leading item is not best, in units of the noise."""

    errors: Array  # float (d, n)   theta less its estimate
    shares: Array  # float (n,)     their weights, of sum 1


def alternatives(
    settings: FixedConfidenceSettings, state: State, comparison: ItemComparison, numbers: Numbers
) -> Alternatives:
    """Draws alternatives from which the leader must be separated. Cost: O(d^2 n + n M d).

    The draws are the last axis throughout, so a lane's tables are long rows and a product is elementwise.
    """
    assert not isinstance(state.root, tuple)
    dtype, M = settings.arms.dtype, settings.items.shape[0]
    # Without a rival the run stops, so any item will do.
    rivals = comparison.rivals | ~jnp.any(comparison.rivals)
    norms = jnp.maximum(comparison.norms, jnp.finfo(dtype).tiny)
    spreads = jnp.sqrt(norms)
    leads = jnp.maximum(comparison.gaps / spreads, 0)

    # A half-space is drawn by its probability relative to the nearest one's, because a probability may underflow.
    nearest = jnp.min(jnp.where(rivals, leads, jnp.inf))
    odds = mills(leads) / mills(nearest) * jnp.exp((nearest - leads) * (nearest + leads) / 2)
    chosen = jnp.arange(M)[:, None] == drawn(jnp.where(rivals, odds, 0), numbers.items)[None]  # bool (M, n)

    def of_chosen(values: Array) -> Array:
        return total(jnp.where(chosen, values, 0))

    depths = of_chosen(spreads[:, None]) * truncated_normals(of_chosen(leads[:, None]), numbers.tails)

    # A posterior draw is moved along A^-1 y_j to where y_j.e = -depth.
    errors = combined(state.root.T, numbers.normals)
    far = (depths + of_chosen(combined(comparison.directions, errors))) / of_chosen(norms[:, None])
    images = state.cache.images[-M:]
    leader = jnp.arange(M) == comparison.answer
    from_leader = jnp.sum(jnp.where(leader[:, None], images, 0), axis=0)[None] - images  # A^-1 y_j, float (M, d)
    errors = errors - combined(from_leader.T, chosen.astype(dtype)) * far[None]

    inside = (combined(comparison.directions, errors) + comparison.gaps[:, None] <= 0) & rivals[:, None]
    # The chosen half-space always counts: rounding may put a draw just outside it.
    shares = 1 / total((inside | chosen).astype(dtype))
    return Alternatives(errors, shares / dot(shares, jnp.ones_like(shares)))


def truncated_normals(least: Array, uniform: Array) -> Array:
    """Converts uniform variables in (0, 1] to standard normal ones, given that these exceed `least` >= 0.

    It solves for the log of the tail, log mills(x) - x^2 / 2, by Halley's method from beyond the root.
    """
    log_u = jnp.log(uniform)
    target = jnp.log(mills(least)) + log_u
    x = jnp.sqrt(least**2 - 2 * log_u)
    for _ in range(HALLEY_STEPS):
        ratio = mills(x)
        error = jnp.log(ratio) - target - (x - least) * (x + least) / 2
        x = x + error * ratio / (1 + error * (1 - x * ratio) / 2)
    return jnp.maximum(x, least)


def mills(x: Array) -> Array:
    """Returns the tail of the standard normal law over its density, at x >= 0. Unlike `log_ndtr` it has no branch."""
    t = (x - 4) / (x + 4)
    value = jnp.full_like(t, MILLS[-1])
    for coefficient in MILLS[-2::-1]:
        value = value * t + coefficient
    return value / (1 + x)


def drawn(weights: Array, uniform: Array) -> Array:
    """Returns the indices (...) at which uniform variables (...) in [0, 1) fall in the cumulated weights (n,)."""
    n = weights.shape[0]
    if n > UNROLL:
        cumulated = jnp.cumsum(weights)
    else:
        sums = [weights[0]]
        for k in range(1, n):
            sums.append(sums[-1] + weights[k])
        cumulated = jnp.stack(sums)
    target = cumulated[-1] * uniform
    # A zero weight is never drawn: the sum first exceeds the uniform variable at a positive one.
    return total((cumulated.reshape(n, *[1] * uniform.ndim) <= target[None]).astype(int))


def combined(rows: Array, vectors: Array) -> Array:
    """Multiplies rows (M, d) by vectors (d, n), spelled out for few terms."""
    if rows.shape[1] > UNROLL:
        return jnp.matmul(rows, vectors, precision="highest")
    return sum(
        (rows[:, c, None] * vectors[c, None] for c in range(1, rows.shape[1])),
        start=rows[:, 0, None] * vectors[0, None],
    )


def total(values: Array) -> Array:
    """Sums over the first axis, spelled out for few terms."""
    if values.shape[0] > UNROLL:
        return jnp.sum(values, axis=0)
    return sum((values[m] for m in range(1, values.shape[0])), start=values[0])
