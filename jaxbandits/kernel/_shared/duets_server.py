"""The server of DUETS: which draws become inducing points, what it broadcasts, and which candidates stay.

All of it is mathematics of one epoch, on arrays of a fixed size of which the first entries count.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.kernel._shared.duets_messages import agent_message, aggregated
from jaxbandits.kernel._shared.duets_settings import Covariance, DuetsSettings
from jaxbandits.kernel._shared.traffic import Traffic
from jaxbandits.numerics.cholesky import Factor, cholesky, leading, solve_lower, solve_upper
from jaxbandits.numerics.gp import data_factor
from jaxbandits.numerics.loops import for_blocks, padded

ROWS = 16  # rows of the covariance tabulated at a time
HEAD = 64  # slots that bound the variances of all candidates
GUESSES = 16  # candidates that may have the largest variance
SURVIVORS = 64  # candidates not ruled out that are computed at a time
# Candidates at a time: the data of the largest epochs then fit into a core's own cache.
COLUMNS = 256


class Pool(NamedTuple):
    """Draws of all agents in an epoch, repeats merged."""

    slots: Array  # int32 (n,)    distinct candidates, ascending, M beyond the first `live`
    counts: Array  # int32 (n,)   draws of each, 0 beyond
    live: Array  # int32 ()
    gram: Array  # float (n, n)   their covariance


class Selection(NamedTuple):
    """The server's first broadcast, and what only it knows of it."""

    inducing: Array  # int32 (n,) slots of the inducing points S, ascending, n beyond the first `size`
    size: Array  # int32 ()       |S|
    draws: Array  # int32 ()      draws that chose them
    sigma_max: Array  # float ()


class Synchronised(NamedTuple):
    """Result of one synchronisation."""

    active: Array  # int32 (M,)
    size: Array  # int32 ()
    answer: Array  # int32 ()     of the largest mean; -1 if nothing was sent
    peak: Array  # float ()       that mean
    sigma_max: Array  # float ()
    traffic: Traffic
    traffic_draws: Traffic


def pool(covariance: Covariance, indices: Array, size: int) -> Pool:
    """Merges the draws of an epoch, which the server knows from the coins.

    Args:
        covariance: of candidates.
        indices: int32 (D,), candidates drawn; M is no draw.
        size: M.

    Returns:
        Pool of n slots, min(D, M) or a few more.
    """
    counts = jnp.zeros(size, jnp.int32).at[indices].add(1, mode="drop")
    slots = _nonzero(counts > 0, padded(min(indices.shape[0], size), ROWS), size)
    counts = counts.at[slots].get(mode="fill", fill_value=0)
    return Pool(slots, counts, jnp.sum(counts > 0, dtype=jnp.int32), covariance(slots, slots))


def tabulate(covariance: Covariance, slots: Array, live: Array, active: Array, size: Array) -> Array:
    """Tabulates the covariance of the drawn candidates with the active ones, in blocks of the latter.

    Args:
        covariance: of candidates.
        slots: int32 (n,), n a multiple of `ROWS`.
        live: int32 (), slots that count.
        active: int32 (M,).
        size: int32 (), active candidates.

    Returns:
        float (M / COLUMNS, n, COLUMNS), rounded up. What lies beyond the live slots or the active candidates is finite.
    """
    n, M = slots.shape[0], active.shape[0]
    width = min(COLUMNS, padded(M, ROWS))
    active = jnp.pad(active, (0, padded(M, width) - M), constant_values=M)
    dtype = jax.eval_shape(covariance, slots[:1], slots[:1]).dtype

    def block(first: Array, table: Array) -> Array:
        columns = lax.dynamic_slice_in_dim(active, first, width)

        def rows(top: Array, table: Array) -> Array:
            values = covariance(lax.dynamic_slice_in_dim(slots, top, ROWS), columns)
            return lax.dynamic_update_slice(table, values[None], (first // width, top, jnp.int32(0)))

        return for_blocks(live, ROWS, rows, table)

    return for_blocks(size, width, block, jnp.zeros((active.shape[0] // width, n, width), dtype))


def server_select(
    drawn: Pool,
    table: Array,
    variances: Array,
    size: Array,
    indices: Array,
    thinning: Array,
    *,
    probability: Callable[[Array], Array],
    noise_variance: Array,
) -> Selection:
    """Selects inducing points among the draws by the largest variance, before the agents send.

    Args:
        drawn: n slots.
        table: of `tabulate`.
        variances: float (M,), k(x, x) of the active candidates.
        size: int32 (), active candidates.
        indices: int32 (D,), the draws; M is no draw.
        thinning: float (D,), a uniform variable for each.
        probability: sigma_max^2 () -> probability () that a draw becomes an inducing point.
        noise_variance: float ().

    Returns:
        Selection; its largest variance is for the exact posterior, given the draws of this epoch alone.
    """
    M = variances.shape[0]
    weights = jnp.sqrt(drawn.counts.astype(table.dtype))
    factor = data_factor(drawn.gram, weights, noise_variance=noise_variance, live=drawn.live)
    scale = weights / jnp.sqrt(noise_variance)
    sigma_max_sq = largest_variance(factor, scale, table, variances, size)
    is_chosen = (indices < M) & (thinning < jnp.clip(probability(sigma_max_sq), 0, 1))
    is_inducing = jnp.zeros(M, bool).at[jnp.where(is_chosen, indices, M)].set(True, mode="drop")
    at_slots = is_inducing.at[drawn.slots].get(mode="fill", fill_value=False)
    n = drawn.slots.shape[0]
    return Selection(
        inducing=_nonzero(at_slots, n, n),
        size=jnp.sum(at_slots, dtype=jnp.int32),
        draws=jnp.sum(is_chosen, dtype=jnp.int32),
        sigma_max=jnp.sqrt(sigma_max_sq),
    )


def largest_variance(factor: Factor, scale: Array, table: Array, variances: Array, size: Array) -> Array:
    """Computes the largest variance of an active candidate, k(x, x) - |L^-1 diag(scale) k(slots, x)|^2.

    The first `HEAD` slots bound all variances from above. A few candidates of large bounds nearly always
    include the largest variance, and few others have a larger bound: only these are computed to the end.

    Args:
        factor: L, of the n slots, see `data_factor`.
        scale: float (n,), roots of the draws of each slot and of 1 / noise_variance.
        table: of `tabulate`.
        variances: float (M,), k(x, x) of the active candidates.
        size: int32 (), active candidates.

    Returns:
        float (), at least 0. Cost: O(HEAD^2 size), and O(n^2) for each candidate that is computed to the end.
    """
    M, head = variances.shape[0], min(HEAD, factor.lower.shape[0])
    width = table.shape[2]
    whitener = solve_lower(leading(factor, head), jnp.diag(scale[:head]))

    def bound(covariance: Array, variance: Array) -> Array:
        product = jnp.matmul(whitener, covariance[:head], precision="highest")
        # Sums along columns are slow; a product with ones is not.
        return variance - jnp.matmul(jnp.ones_like(product[:, 0]), product**2, precision="highest")

    def exact(candidates: Array) -> Array:
        covariance = table[candidates // width, :, candidates % width].T
        whitened = solve_lower(factor, scale[:, None] * covariance)
        return variances.at[candidates].get(mode="clip") - jnp.sum(whitened**2, axis=0)

    lowest = jnp.finfo(variances.dtype).min
    places = jnp.arange(M, dtype=jnp.int32)
    bounds = jnp.where(places < size, _by_blocks(bound, table, variances, size), lowest)
    groups = jnp.pad(bounds, (0, padded(M, GUESSES) - M), constant_values=lowest).reshape(GUESSES, -1)
    guesses = jnp.argmax(groups, axis=1).astype(jnp.int32)
    guesses = jnp.minimum(guesses + groups.shape[1] * jnp.arange(GUESSES, dtype=jnp.int32), jnp.maximum(size - 1, 0))
    largest = jnp.max(exact(guesses))
    exceeds = bounds > largest
    candidates = _nonzero(exceeds, padded(M, SURVIVORS), 0)
    count = jnp.where(factor.live > head, jnp.sum(exceeds, dtype=jnp.int32), 0)

    def block(top: Array, top_variance: Array) -> Array:
        is_left = top + jnp.arange(SURVIVORS, dtype=jnp.int32) < count
        found_here = exact(lax.dynamic_slice_in_dim(candidates, top, SURVIVORS))
        return jnp.maximum(top_variance, jnp.max(jnp.where(is_left, found_here, lowest)))

    return jnp.where(size > 0, jnp.maximum(for_blocks(count, SURVIVORS, block, largest), 0), 0)


def trim(mean: Array, width: Array, is_active: Array) -> Array:
    """Keeps the candidates whose upper confidence bound reaches the largest lower bound.

    Args:
        mean: float (M,).
        width: half the confidence interval, float () for all, or (M,).
        is_active: bool (M,).

    Returns:
        bool (M,).
    """
    lowest = jnp.finfo(mean.dtype).min
    return is_active & (mean + width >= jnp.max(jnp.where(is_active, mean - width, lowest)))


def synchronise(
    settings: DuetsSettings,
    *,
    indices: Array,
    rewards: Array,
    thinning: Array,
    active: Array,
    size: Array,
    n_draws: Array,
) -> Synchronised:
    """Synchronises between two epochs; indices, rewards and thinning are (N, rounds), and index M is no draw."""
    (M, d), dtype = settings.common.candidates.shape, settings.common.candidates.dtype
    covariance, noise_variance = settings.covariance, settings.common.noise_variance
    indices, thinning = indices.ravel(), thinning.ravel()
    drawn = pool(covariance, indices, M)
    table = tabulate(covariance, drawn.slots, drawn.live, active, size)
    variances = settings.variances.at[active].get(mode="clip")
    selection = server_select(
        drawn,
        table,
        variances,
        size,
        indices=indices,
        thinning=thinning,
        probability=lambda sigma_max_sq: settings.probability(sigma_max_sq, n_draws),
        noise_variance=noise_variance,
    )
    m, n = selection.size, drawn.slots.shape[0]

    from_inducing = drawn.gram.at[selection.inducing].get(mode="clip")
    of_inducing = from_inducing.at[:, selection.inducing].get(mode="clip")
    inducing = cholesky(of_inducing + settings.jitter * jnp.eye(n, dtype=dtype), m)
    z = solve_lower(inducing, from_inducing)
    sums = jnp.zeros(M, dtype).at[indices].add(rewards.ravel(), mode="drop")
    # The messages of all agents sum to the message of their pooled draws.
    total = agent_message(z, sums.at[drawn.slots].get(mode="fill", fill_value=0))
    # Algorithm 2, line 10, prints the draws of agent n: all agents are meant, as in equation (8).
    vbar, features = aggregated(z, drawn.counts, total, noise_variance=noise_variance, live=m)

    # z(x)' vbar = k_S(x)' L'^-1 vbar: one product with the table instead of the features of all active candidates.
    weights = jnp.zeros(n, dtype).at[selection.inducing].set(solve_upper(inducing, vbar), mode="drop")
    mean = _by_blocks(lambda block, _: jnp.matmul(weights, block, precision="highest"), table, variances, size)
    if settings.is_pointwise:

        def sparse_variance(covariance: Array, variance: Array) -> Array:
            z = solve_lower(inducing, covariance.at[selection.inducing].get(mode="clip"))
            residual = jnp.maximum(variance - jnp.sum(z**2, axis=0), 0)
            return residual + noise_variance * jnp.sum(solve_lower(features, z) ** 2, axis=0)

        width = settings.common.beta * jnp.sqrt(_by_blocks(sparse_variance, table, variances, size))
    else:
        width = settings.common.beta * selection.sigma_max

    is_active = jnp.arange(M, dtype=jnp.int32) < size
    sent = m > 0
    stays = jnp.where(sent, trim(mean, width, is_active), is_active)
    mean = jnp.where(is_active, mean, jnp.finfo(dtype).min)
    best = lax.argmax(mean, 0, jnp.int32)

    def traffic(points: Array) -> Traffic:
        points = points.astype(int)
        # The width of "uniform" is one number; "point" needs Z Z'.
        numbers = points**2 if settings.is_pointwise else sent.astype(int)
        return Traffic(settings.common.n_agents * points, points * (d + 1) + numbers)

    return Synchronised(
        active=active.at[_nonzero(stays, M, M)].get(mode="fill", fill_value=M),
        size=jnp.sum(stays, dtype=jnp.int32),
        answer=jnp.where(sent, active[best], -1),
        peak=mean[best],
        sigma_max=selection.sigma_max,
        traffic=traffic(m),
        traffic_draws=traffic(selection.draws),
    )


def _by_blocks(function: Callable[[Array, Array], Array], table: Array, variances: Array, size: Array) -> Array:
    """Applies `function` to each block of the table and its prior variances; 0 after the active ones; float (M,)."""
    blocks, _, width = table.shape
    M = variances.shape[0]
    priors = jnp.pad(variances, (0, blocks * width - M)).reshape(blocks, width)

    def block(first: Array, values: Array) -> Array:
        i = first // width
        return lax.dynamic_update_index_in_dim(values, function(table[i], priors[i]), i, axis=0)

    return for_blocks(size, width, block, jnp.zeros_like(priors)).ravel()[:M]


def _nonzero(mask: Array, size: int, fill: int) -> Array:
    """Returns the indices of the true entries, ascending, followed by `fill`; int32 (size,)."""
    return jnp.nonzero(mask, size=size, fill_value=fill)[0].astype(jnp.int32)
