"""Optimal proportions of queries in one stage, by (node, slot) pair, and the characteristic time.

A stage looks for the node whose row of means has the largest minimum. To tell the best row h from another row i, every
slot j of h must be told from the smallest entry of row i, so only these arms are worth a query. With N queries spread
as omega, the evidence against "row i is best" grows as

    N min_j Delta_ji^2 / (2 (var_hj / omega_hj + var_i / omega_i)),    Delta_ji = mean_hj - min_l mean_il,

and the best omega makes the smallest of these as large as possible: 1/T*. Variances may differ. The arm of row i that
is compared is then still the smallest of its row, which need not be the best one to query, and T* is an upper bound.

Source: Jali, Karamchandani and Moharir, Greedy k-center from noisy distance samples: equation (19) and appendix C.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import require
from jaxbandits.numerics.barrier import minimize_reciprocals
from jaxbandits.numerics.mirror_ascent import ascend, mirror_ascent, scale_by_largest


class Weights(NamedTuple):
    """Proportions, and the characteristic time T* that they achieve."""

    omega: Array  # float (n, k-1)   sum 1; 0 for all arms if there is only one candidate
    time: Array  # float ()          about log(1/delta) T* queries are needed


class _Duels(NamedTuple):
    """Comparisons of the best row with all others; slots along the rows."""

    means: Array  # float (n, k-1)
    best: Array  # int ()
    nearest: Array  # int (n,)           slot of each node's smallest mean
    gaps: Array  # float (k-1, n)        at least the gap floor
    mask: Array  # bool (k-1, n)         duels that take place
    best_variance: Array  # float (k-1,)
    other_variance: Array  # float (n,)


def omega_newton(
    means: Array,
    slots: Array,
    candidates: Array,
    *,
    noise_scale: Array | float,
    tolerance: Array | float = 1e-4,
    gap_floor: Array | float = 1e-6,
) -> Weights:
    """Computes optimal proportions by an interior-point method.

    With v = 1/T*, p_j = v / omega_hj and q_i = v / omega_i the problem is exactly the convex program
    T* = min sum_j var_j / p_j + sum_i var_i / q_i subject to p_j + q_i <= Delta_ji^2 / 2.

    Args:
        means: float (n, k-1), the mean of every arm.
        slots: bool (k-1,), the slots that hold a center.
        candidates: bool (n,), the nodes that are no centers.
        noise_scale: float () or (n, k-1), positive, standard deviation of one query.
        tolerance: relative error of T*.
        gap_floor: smaller gaps count as this one, in units of distance.

    Returns:
        Weights.

    Raises:
        ValueError: a shape does not fit, or `noise_scale`, `tolerance` or `gap_floor` is not positive.

    Cost: O(n k^2) per step, about 7 steps; see `minimize_reciprocals`.
    """
    checks.positive("tolerance", tolerance)
    duels = _duels(means, slots, candidates, noise_scale, gap_floor)
    optimum = minimize_reciprocals(
        duels.gaps**2 / 2,
        row_costs=duels.best_variance,
        column_costs=duels.other_variance,
        mask=duels.mask,
        tolerance=tolerance,
    )
    total = jnp.where(optimum.value > 0, optimum.value, 1)
    best = duels.best_variance / optimum.p / total
    others = duels.other_variance / optimum.q / total
    return Weights(_spread(duels, best, others), optimum.value)


def omega_mirror(
    means: Array,
    slots: Array,
    candidates: Array,
    *,
    noise_scale: Array | float,
    steps: int = 1000,
    gap_floor: Array | float = 1e-6,
) -> Weights:
    """Computes nearly optimal proportions by mirror ascent along supergradients (appendix C).

    Args:
        means: float (n, k-1), the mean of every arm.
        slots: bool (k-1,), the slots that hold a center.
        candidates: bool (n,), the nodes that are no centers.
        noise_scale: float () or (n, k-1), positive, standard deviation of one query.
        steps: Python int, at least 1.
        gap_floor: smaller gaps count as this one, in units of distance.

    Returns:
        Weights, with the time that these proportions achieve. After 1000 steps T* is 0.04 % too long on
        the example of appendix C, about 1 % for 50 rivals and 9 slots, up to 4 % for 200 rivals and 5 slots.

    Raises:
        ValueError: as `omega_newton`, or `steps` is below 1.

    Cost: O(n k) per step.
    """
    checks.whole("steps", steps, least=1)
    duels = _duels(means, slots, candidates, noise_scale, gap_floor)
    means, slot_count = duels.means, duels.means.shape[1]
    active = jnp.concatenate([duels.mask.any(1), duels.mask.any(0)])
    variances = jnp.concatenate([duels.best_variance, duels.other_variance])
    log_count = jnp.log(jnp.maximum(active.sum(dtype=means.dtype), 2))

    def spread_of_gap(weights: Array) -> Array:
        """Computes the variance of every gap's estimate from one query, spread in proportion to the weights."""
        arm = variances / jnp.where(weights > 0, weights, 1)
        return arm[:slot_count, None] + arm[None, slot_count:]

    def supergradient(weights: Array) -> Array:
        evidence = jnp.where(duels.mask, duels.gaps**2 / spread_of_gap(weights), jnp.inf)
        pair = jnp.unravel_index(jnp.argmin(evidence), evidence.shape)
        ends = jnp.stack([pair[0], slot_count + pair[1]])
        # The derivatives of 1 / (var_j / w_j + var_i / w_i); the gap is common to both, and only their ratio matters.
        u = weights[ends] / variances[ends]
        return jnp.zeros_like(weights).at[ends].set((u[::-1] / u.sum()) ** 2 / variances[ends])

    # Theorem 5's step, (1/L) sqrt(2 log N / z) with L the widest relative entropy, leaves 1000 steps nearly uniform.
    # Here L is the present supergradient's largest entry, and half of the step is taken.
    def step_size(z: jax.typing.ArrayLike) -> Array:
        return 0.5 * jnp.sqrt(2 * log_count / (jnp.asarray(z, means.dtype) + 1))

    start = jnp.where(active, -log_count, -jnp.inf)
    transformation = optax.chain(scale_by_largest(), mirror_ascent(step_size))
    weights = ascend(supergradient, start, transformation, steps=steps).average
    time = jnp.max(2 * spread_of_gap(weights) / duels.gaps**2, initial=0, where=duels.mask)
    weights = jnp.where(active, weights, 0)
    return Weights(_spread(duels, weights[:slot_count], weights[slot_count:]), time)


def _duels(
    means: Array, slots: Array, candidates: Array, noise_scale: Array | float, gap_floor: Array | float
) -> _Duels:
    means = checks.array("means", means, ("n", "k-1"))
    n, slot_count = means.shape
    slots = checks.array("slots", slots, (slot_count,), kind="bool")
    candidates = checks.array("candidates", candidates, (n,), kind="bool")
    check_scales(noise_scale, (n, slot_count))
    checks.positive("gap_floor", gap_floor)

    far = jnp.finfo(means.dtype).max
    listed = jnp.where(slots[None], means, far)
    lowest, nearest = listed.min(1), listed.argmin(1)
    best = jnp.argmax(jnp.where(candidates, lowest, -far))
    others = candidates & (jnp.arange(n) != best)
    variance = jnp.broadcast_to(jnp.square(jnp.asarray(noise_scale, means.dtype)), means.shape)
    return _Duels(
        means=means,
        best=best,
        nearest=nearest,
        # Two nearly equal rows would make their limits, which are squared gaps, vanish against all others.
        gaps=jnp.maximum(means[best][:, None] - lowest[None], gap_floor),
        mask=slots[:, None] & others[None],
        best_variance=variance[best],
        other_variance=jnp.take_along_axis(variance, nearest[:, None], 1)[:, 0],
    )


def check_scales(noise_scale: Any, *shapes: tuple[int, ...]) -> None:
    """Raises `ValueError` unless `noise_scale` is a positive number, or a positive array of one of these shapes."""
    if isinstance(noise_scale, (jax.Array, np.ndarray)) and noise_scale.ndim > 0:
        shape = noise_scale.shape
        require(shape in shapes, "noise_scale", f"have shape {' or '.join(map(str, ((), *shapes)))}", shape)
        checks.array("noise_scale", noise_scale, shape, above=0)
    else:
        checks.positive("noise_scale", noise_scale)


def _spread(duels: _Duels, best: Array, others: Array) -> Array:
    others = jnp.where(duels.mask.any(0), others, 0)
    omega = jnp.where(jnp.arange(best.size)[None] == duels.nearest[:, None], others[:, None], 0)
    return omega.at[duels.best].set(jnp.where(duels.mask.any(1), best, 0))
