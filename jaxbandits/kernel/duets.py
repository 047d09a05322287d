"""DUETS: uniform sampling with shared randomness, and elimination (Pavlovic, Salgia, Zhao, 2024)."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import require, require_not_negative, require_positive
from jaxbandits.engine.running import streams
from jaxbandits.kernel.problem import Draws, Problem, Traffic, check_run, chosen, environment, round_coins
from jaxbandits.numerics.cholesky import Factor, cholesky, solve_lower, solve_upper
from jaxbandits.numerics.gp import (
    Kernel,
    cross,
    data_factor,
    default_jitter,
    feature_gram,
    prior_variance,
    solve_spd,
    whitening,
)
from jaxbandits.numerics.trips import common, for_blocks, padded

Covariance = Callable[[Array, Array], Array]  # (candidates int (n,), candidates int (m,)) -> float (n, m)
Probability = Callable[[Array, Array], Array]  # (sigma_max^2 (), draws of the epoch float ()) -> probability ()
FIRST_EPOCH = 2
P0 = 10.0
ELIMINATIONS = ("uniform", "point")
ROWS = 16  # of the covariance, tabulated at a time
TRIANGLE = 64  # rows of a triangle in one product: what lies above the diagonal, and beyond the live rows, is left out
COLUMNS = 256  # candidates at a time: what the largest epochs need of them then lies in a core's own cache


class State(NamedTuple):
    """The active candidates, and what the agents drew of them in this epoch."""

    pulls: Array  # int ()
    traffic: Traffic  # a candidate that was chosen twice is sent once
    traffic_draws: Traffic  # it is sent twice
    t: Array  # int32 ()            rounds observed
    epoch: Array  # int32 ()        from 0
    active: Array  # int32 (M,)     ascending, M beyond the first `size`
    size: Array  # int32 ()
    indices: Array  # int32 (N, C)  candidates drawn in this epoch; beyond its rounds so far, of earlier ones
    rewards: Array  # float (N, C)
    answer: Array  # int32 ()       maximises the last mean
    peak: Array  # float ()         its mean
    sigma_max: Array  # float ()    largest standard deviation at the last synchronisation
    seed: Array  # uint32 ()        of the thinning


class Settings(NamedTuple):
    """The checked arguments."""

    candidates: Array  # float (M, d)
    covariance: Covariance
    variances: Array  # float (M,)  k(x, x)
    n_agents: int
    epochs: tuple[int, ...]
    beta: Array  # float ()
    ridge: Array  # float ()
    probability: Probability
    pointwise: bool
    jitter: Array  # float ()
    draws: Draws | None


class Pool(NamedTuple):
    """What all agents together drew in an epoch, repeats merged."""

    slots: Array  # int32 (n,)    distinct candidates, ascending, M beyond the first `live`
    counts: Array  # int32 (n,)   draws of each, 0 beyond
    live: Array  # int32 ()
    gram: Array  # float (n, n)   their covariance


class Selection(NamedTuple):
    """The server's first broadcast, and what only it knows of it."""

    places: Array  # int32 (n,)   slots of the inducing points S, ascending, n beyond the first `size`
    size: Array  # int32 ()       |S|
    draws: Array  # int32 ()      draws that chose them
    sigma_max: Array  # float ()


class Synchronised(NamedTuple):
    """What one synchronisation makes of the active candidates."""

    active: Array  # int32 (M,)
    size: Array  # int32 ()
    answer: Array  # int32 ()     of the largest mean; -1 if nothing was sent
    peak: Array  # float ()       that mean
    sigma_max: Array  # float ()
    traffic: Traffic
    traffic_draws: Traffic


class Run(NamedTuple):
    """One run of `duets_run`."""

    actions: Array  # int32 (T, N)
    regret: Array  # float (T,)      of all agents, after each round
    traffic: Traffic  # int (T,)     after each round; a synchronisation belongs to the round before it
    traffic_draws: Traffic  # int (T,)
    sizes: Array  # int32 (J,)       active candidates in each epoch
    answer: Array  # int32 ()
    peak: Array  # float ()          NaN: a factor failed, and the run is worth nothing
    sigma_max: Array  # float ()


def duets(
    candidates: Array,
    *,
    kernel: Kernel,
    n_agents: int,
    horizon: int,
    beta: Array | float,
    ridge: Array | float,
    first_epoch: int | None = None,
    epochs: tuple[int, ...] | None = None,
    p0: Array | float | None = None,
    inducing_probability: Probability | None = None,
    elimination: str = "uniform",
    jitter: Array | float | None = None,
    draws: Draws | None = None,
    gram: Array | None = None,
) -> Algorithm:
    """Agents that share their coins draw uniformly from the active candidates; after each epoch the server trims these.

    The server can reproduce every draw, so it knows where the agents were before they send anything. It takes some of
    the draws for inducing points, more of them where the largest posterior standard deviation sigma_max is large, and
    broadcasts them; each agent sends its rewards projected on them; the server broadcasts the sum, solved. Everybody
    then knows the same sparse posterior mean, and drops the candidates whose mean lies more than 2 beta sigma_max
    below the best one. Nothing is remembered from earlier epochs, and nothing is sent after the last.

    Args:
        candidates: float (M, d); the run has their dtype.
        kernel: of a single pair.
        n_agents: N.
        horizon: T.
        beta: width of the confidence intervals in standard deviations, () >= 0.
        ridge: variance of the noise, () > 0.
        first_epoch: rounds of the first epoch, in [1, T], 2 by default; see `epoch_lengths`.
        epochs: rounds of each epoch, instead, summing to T.
        p0: () > 0, a draw becomes an inducing point with probability min(1, p0 sigma_max^2); 10 by default.
        inducing_probability: (sigma_max^2, number of draws) -> probability, instead; see `log_rate`. Clipped to [0, 1].
        elimination: "uniform": by sigma_max, as above. "point": a candidate stays if its mean + beta sd reaches the
            largest mean - beta sd, with the sparse posterior's own standard deviations; this costs m^2 numbers more,
            for m inducing points.
        jitter: added to the diagonal of the inducing points' covariance, () >= 0; None: `default_jitter`.
        draws: replaces the coins and the thinning.
        gram: float (M, M), the kernel of all pairs of candidates; None: it is computed where it is needed.

    Returns:
        Algorithm with actions int32 (N,), a candidate for each agent, and answers int32 (): the maximiser of the last
        mean, and before the first synchronisation candidate 0.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee** (Theorem 4.1, if p0 and beta are as large as the theorem asks): regret
    O~(sqrt(N T gamma_NT)) and communication O~(gamma_NT), gamma being the information gain. **Cost**: O(N) a round;
    O(n^2 (n + size of the active set)) a synchronisation, n = min(N rounds of the epoch, M). **float32** needs
    a jitter of 1e-6, which by itself changes the queries of 9 of 80 runs of the paper's Figure 1 (5 of 20 on Branin, 4
    of 20 on Hartmann). On a CPU one lane a batch is fastest (`sweep(lanes=1)`): a synchronisation works on some
    megabytes, which then stay in the cache.

    Source: Pavlovic, Salgia and Zhao (2024), Order-Optimal Regret in Distributed Kernel Bandits using Uniform Sampling
    with Shared Randomness, Algorithms 1 and 2.
    """
    settings = _settings(
        candidates,
        kernel=kernel,
        n_agents=n_agents,
        horizon=horizon,
        beta=beta,
        ridge=ridge,
        first_epoch=first_epoch,
        epochs=epochs,
        p0=p0,
        inducing_probability=inducing_probability,
        elimination=elimination,
        jitter=jitter,
        draws=draws,
        gram=gram,
    )
    M, dtype = settings.candidates.shape[0], settings.candidates.dtype
    lengths = settings.epochs
    last = len(lengths) - 1
    ends = jnp.asarray([sum(lengths[: j + 1]) for j in range(last + 1)], jnp.int32)
    rounds = jnp.asarray(lengths, jnp.int32)
    capacity = max(lengths[:-1], default=1)
    columns = jnp.arange(capacity, dtype=jnp.int32)

    def init(key: Key) -> State:
        nothing = Traffic(jnp.zeros((), int), jnp.zeros((), int))
        return State(
            pulls=jnp.zeros((), int),
            traffic=nothing,
            traffic_draws=nothing,
            t=jnp.zeros((), jnp.int32),
            epoch=jnp.zeros((), jnp.int32),
            active=jnp.arange(M, dtype=jnp.int32),
            size=jnp.full((), M, jnp.int32),
            indices=jnp.full((n_agents, capacity), M, jnp.int32),
            rewards=jnp.zeros((n_agents, capacity), dtype),
            answer=jnp.zeros((), jnp.int32),
            peak=jnp.zeros((), dtype),
            sigma_max=jnp.sqrt(jnp.max(settings.variances)),
            seed=jax.random.bits(key, (), jnp.uint32),
        )

    def decide(key: Key, state: State) -> Decision:
        coins = round_coins(key, draws, state.t, n_agents, dtype)
        action = state.active[chosen(coins, state.size)]
        return Decision(action, state.t >= horizon, state.answer)

    def observe(state: State, action: Array, rewards: Array) -> State:
        asked = action < M
        # The draws of the last epoch are sent nowhere.
        kept = jnp.any(asked) & (state.epoch < last)
        column = jnp.where(kept, state.t - (ends[state.epoch] - rounds[state.epoch]), capacity)
        return state._replace(
            pulls=state.pulls + jnp.sum(asked),
            t=state.t + jnp.any(asked).astype(jnp.int32),
            indices=state.indices.at[:, column].set(action, mode="drop"),
            rewards=state.rewards.at[:, column].set(jnp.where(asked, rewards, 0), mode="drop"),
        )

    def stale(state: State) -> Array:
        return (state.epoch < last) & (state.t == ends[state.epoch])

    def synchronise(key: Key, state: State) -> State:
        del key
        due = stale(state)
        counted = due & (columns < rounds[state.epoch])
        result = _synchronise(
            settings,
            indices=jnp.where(counted, state.indices, M),
            rewards=state.rewards,
            thinning=_thinning(settings, state.seed, state.epoch, ends[state.epoch] - rounds[state.epoch], capacity),
            active=state.active,
            # A lane that is not due makes no other wait for the candidates that it would look at.
            size=jnp.where(due, state.size, 0),
            n_draws=(n_agents * rounds[state.epoch]).astype(dtype),
        )
        sent = result.answer >= 0

        def if_due(new: Array, old: Array) -> Array:
            return jnp.where(due, new, old)

        return state._replace(
            traffic=jax.tree.map(jnp.add, state.traffic, result.traffic),
            traffic_draws=jax.tree.map(jnp.add, state.traffic_draws, result.traffic_draws),
            epoch=state.epoch + due.astype(jnp.int32),
            active=if_due(result.active, state.active),
            size=if_due(result.size, state.size),
            answer=jnp.where(sent, result.answer, state.answer),
            peak=jnp.where(sent, result.peak, state.peak),
            sigma_max=if_due(result.sigma_max, state.sigma_max),
        )

    idle = jnp.full((n_agents,), M, jnp.int32)
    if last == 0:
        return Algorithm(init, decide, observe, idle)
    return Algorithm(init, decide, observe, idle, plan=synchronise, stale=stale)


def duets_run(key: Key, problem: Problem, *, n_agents: int, horizon: int, **settings: Any) -> Run:
    """A whole run of `duets`, epoch by epoch: the same run as that of `jaxbandits.run` with the same key.

    Nothing that the agents draw within an epoch depends on its rewards, so an epoch is a few array operations, of just
    the size that it needs. `jax.vmap` and `jax.jit` stand outside.

    Args:
        key: the task's key.
        problem: the instance, truth included.
        n_agents: N.
        horizon: T.
        **settings: all other arguments of `duets`.

    Returns:
        Run.

    Raises:
        ValueError: an argument does not fit.
    """
    checked = _settings(problem.candidates, n_agents=n_agents, horizon=horizon, **settings)
    M, dtype = problem.candidates.shape[0], problem.candidates.dtype
    keys, respond = streams(key), environment(problem, n_agents)
    seed = jax.random.bits(keys.init, (), jnp.uint32)
    rounds = jnp.arange(horizon, dtype=jnp.int32)
    noise = jax.vmap(lambda r: respond.noise(jax.random.fold_in(keys.noise, r)))(rounds)
    coins = jax.vmap(lambda r: round_coins(jax.random.fold_in(keys.decide, r), checked.draws, r, n_agents, dtype))(
        rounds
    )

    active, size = jnp.arange(M, dtype=jnp.int32), jnp.full((), M, jnp.int32)
    answer, peak = jnp.zeros((), jnp.int32), jnp.zeros((), dtype)
    sigma_max = jnp.sqrt(jnp.max(checked.variances))
    actions, sizes, sent, first = [], [], [], 0
    for j, length in enumerate(checked.epochs):
        queries = active[chosen(coins[first : first + length], size)]
        actions.append(queries)
        sizes.append(size)
        if j + 1 < len(checked.epochs):
            rewards = jax.vmap(respond.respond)(queries, noise[first : first + length])
            result = _synchronise(
                checked,
                indices=queries.T,
                rewards=rewards.T,
                thinning=_thinning(checked, seed, jnp.int32(j), jnp.int32(first), length),
                active=active,
                size=size,
                n_draws=jnp.asarray(n_agents * length, dtype),
            )
            active, size, sigma_max = result.active, result.size, result.sigma_max
            answer = jnp.where(result.answer >= 0, result.answer, answer)
            peak = jnp.where(result.answer >= 0, result.peak, peak)
            sent.append((first + length, (result.traffic, result.traffic_draws)))
        first += length

    actions = jnp.concatenate(actions)
    nothing = Traffic(jnp.zeros(horizon, int), jnp.zeros(horizon, int))
    traffic, traffic_draws = nothing, nothing
    for after, numbers in sent:
        traffic, traffic_draws = jax.tree.map(
            lambda total, new, after=after: total.at[after - 1 :].add(new), (traffic, traffic_draws), numbers
        )
    regret = jnp.cumsum(jnp.sum(problem.best - problem.values[actions], axis=1))
    return Run(actions, regret, traffic, traffic_draws, jnp.stack(sizes), answer, peak, sigma_max)


def epoch_lengths(horizon: int, first_epoch: int = FIRST_EPOCH) -> tuple[int, ...]:
    """Rounds of each epoch: T_1, then T_{j+1} = floor(sqrt(T T_j)), the last one cut so that they sum to T.

    Args:
        horizon: T.
        first_epoch: T_1, in [1, T].

    Returns:
        Tuple of ints: (2, 10, 22, 16) for T = 50.

    Source: Pavlovic, Salgia and Zhao (2024), Algorithm 1, whose line 9 would ask T + 1 rounds.
    """
    lengths, left = [], horizon
    length = first_epoch
    while left > 0:
        lengths.append(min(length, left))
        left -= lengths[-1]
        length = math.isqrt(horizon * length)
    return tuple(lengths)


def log_rate(c: Array | float) -> Probability:
    """An `inducing_probability`: c log(n) / n for n draws, whatever sigma_max."""

    def probability(sigma_max_sq: Array, n_draws: Array) -> Array:
        return jnp.asarray(c, sigma_max_sq.dtype) * jnp.log(n_draws) / n_draws

    return probability


def _proportional(p0: Array) -> Probability:
    """The paper's `inducing_probability`: p0 sigma_max^2."""
    return lambda sigma_max_sq, n_draws: p0 * sigma_max_sq


def pool(covariance: Covariance, indices: Array, size: int) -> Pool:
    """Merges the draws of an epoch, which the server knows from the coins.

    Args:
        covariance: of candidates.
        indices: int32 (D,), candidates drawn; M where nothing was.
        size: M.

    Returns:
        Pool of n slots, min(D, M) or a few more.
    """
    counts = jnp.zeros(size, jnp.int32).at[indices].add(1, mode="drop")
    slots = _nonzero(counts > 0, padded(min(indices.shape[0], size), ROWS), size)
    counts = counts.at[slots].get(mode="fill", fill_value=0)
    return Pool(slots, counts, jnp.sum(counts > 0, dtype=jnp.int32), covariance(slots, slots))


def tabulate(covariance: Covariance, slots: Array, live: Array, active: Array, size: Array) -> Array:
    """The covariance of the drawn candidates with the active ones, a block of these after another.

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
    near: Array,
    variances: Array,
    size: Array,
    indices: Array,
    thinning: Array,
    *,
    probability: Callable[[Array], Array],
    ridge: Array,
) -> Selection:
    """The server's part before the agents send: how much is unknown, and which draws become inducing points.

    Args:
        drawn: n slots.
        near: the table of `tabulate`.
        variances: float (M,), k(x, x) of the active candidates.
        size: int32 (), active candidates.
        indices: int32 (D,), the draws; M where nothing was drawn.
        thinning: float (D,), a uniform variable for each.
        probability: sigma_max^2 () -> chance of each draw.
        ridge: variance of the noise, ().

    Returns:
        Selection; its largest variance is that of the exact posterior, given the draws of this epoch alone.
    """
    M = variances.shape[0]
    weights = jnp.sqrt(drawn.counts.astype(near.dtype))
    factor = data_factor(drawn.gram, weights, ridge=ridge, live=drawn.live)

    whitener = whitening(factor, weights, ridge=ridge)

    def remaining(covariance: Array, variance: Array) -> Array:
        return jnp.maximum(variance - _square_norms(whitener, covariance, drawn.live), 0)

    variances = _by_blocks(remaining, near, variances, size)
    sigma_max_sq = jnp.max(jnp.where(jnp.arange(M, dtype=jnp.int32) < size, variances, 0))
    is_chosen = (indices < M) & (thinning < jnp.clip(probability(sigma_max_sq), 0, 1))
    taken = jnp.zeros(M, bool).at[jnp.where(is_chosen, indices, M)].set(True, mode="drop")
    at_slots = taken.at[drawn.slots].get(mode="fill", fill_value=False)
    n = drawn.slots.shape[0]
    return Selection(
        places=_nonzero(at_slots, n, n),
        size=jnp.sum(at_slots, dtype=jnp.int32),
        draws=jnp.sum(is_chosen, dtype=jnp.int32),
        sigma_max=jnp.sqrt(sigma_max_sq),
    )


def agent_project(z: Array, rewards: Array) -> Array:
    """What an agent sends, sum_i z(x_i) y_i, from features z (m, n) of its draws and their rewards (n,); float (m,).

    It is linear: the messages of all agents sum to that of their pooled draws, with the sum of rewards at each.
    """
    return jnp.matmul(z, rewards, precision="highest")


def server_aggregate(factor: Factor, total: Array) -> Array:
    """The server's second broadcast: (ridge I + Z Z')^-1 sum_n v_n, from the factor of the former; float (m,)."""
    return solve_spd(factor, total)


def trim(mean: Array, width: Array, is_active: Array) -> Array:
    """Which candidates stay: those whose upper confidence bound reaches the largest lower one.

    Args:
        mean: float (M,).
        width: half the confidence interval, float () for all, or (M,).
        is_active: bool (M,).

    Returns:
        bool (M,).
    """
    lowest = jnp.finfo(mean.dtype).min
    return is_active & (mean + width >= jnp.max(jnp.where(is_active, mean - width, lowest)))


def _synchronise(
    settings: Settings,
    *,
    indices: Array,
    rewards: Array,
    thinning: Array,
    active: Array,
    size: Array,
    n_draws: Array,
) -> Synchronised:
    """Everything between two epochs; indices, rewards and thinning are (N, rounds), M where nothing was drawn."""
    M, d = settings.candidates.shape
    dtype, covariance, ridge = settings.candidates.dtype, settings.covariance, settings.ridge
    indices, thinning = indices.ravel(), thinning.ravel()
    drawn = pool(covariance, indices, M)
    near = tabulate(covariance, drawn.slots, drawn.live, active, size)
    variances = settings.variances.at[active].get(mode="clip")
    selection = server_select(
        drawn,
        near,
        variances,
        size,
        indices,
        thinning,
        probability=lambda sigma_max_sq: settings.probability(sigma_max_sq, n_draws),
        ridge=ridge,
    )
    m, n = selection.size, drawn.slots.shape[0]

    from_inducing = drawn.gram.at[selection.places].get(mode="clip")
    of_inducing = from_inducing.at[:, selection.places].get(mode="clip")
    inducing = cholesky(of_inducing + settings.jitter * jnp.eye(n, dtype=dtype), m)
    z = solve_lower(inducing, from_inducing)
    sums = jnp.zeros(M, dtype).at[indices].add(rewards.ravel(), mode="drop")
    total = agent_project(z, sums.at[drawn.slots].get(mode="fill", fill_value=0))
    # Algorithm 2, line 10, prints the draws of agent n: it is those of all agents, as in equation (8).
    features = feature_gram(z, drawn.counts, ridge=ridge, live=m)
    vbar = server_aggregate(features, total)

    # z(x)' vbar = k_S(x)' L'^-1 vbar: one product with the table instead of the features of all active candidates.
    weights = jnp.zeros(n, dtype).at[selection.places].set(solve_upper(inducing, vbar), mode="drop")
    mean = _by_blocks(lambda block, _: jnp.matmul(weights, block, precision="highest"), near, variances, size)
    if settings.pointwise:

        def sparse_variance(covariance: Array, variance: Array) -> Array:
            z = solve_lower(inducing, covariance.at[selection.places].get(mode="clip"))
            residual = jnp.maximum(variance - jnp.sum(z**2, axis=0), 0)
            return residual + ridge * jnp.sum(solve_lower(features, z) ** 2, axis=0)

        width = settings.beta * jnp.sqrt(_by_blocks(sparse_variance, near, variances, size))
    else:
        width = settings.beta * selection.sigma_max

    is_active = jnp.arange(M, dtype=jnp.int32) < size
    sent = m > 0
    kept = jnp.where(sent, trim(mean, width, is_active), is_active)
    mean = jnp.where(is_active, mean, jnp.finfo(dtype).min)
    best = lax.argmax(mean, 0, jnp.int32)

    def traffic(points: Array) -> Traffic:
        points = points.astype(int)
        # The width of "uniform" is one number; that of "point" asks for Z Z'.
        width = points**2 if settings.pointwise else sent.astype(int)
        return Traffic(settings.n_agents * points, points * (d + 1) + width)

    return Synchronised(
        active=active.at[_nonzero(kept, M, M)].get(mode="fill", fill_value=M),
        size=jnp.sum(kept, dtype=jnp.int32),
        answer=jnp.where(sent, active[best], -1),
        peak=mean[best],
        sigma_max=selection.sigma_max,
        traffic=traffic(m),
        traffic_draws=traffic(selection.draws),
    )


def _by_blocks(function: Callable[[Array, Array], Array], near: Array, variances: Array, size: Array) -> Array:
    """`function` of each block of the table and the prior variances there; 0 after the active ones; float (M,)."""
    blocks, _, width = near.shape
    M = variances.shape[0]
    priors = jnp.pad(variances, (0, blocks * width - M)).reshape(blocks, width)

    def block(first: Array, values: Array) -> Array:
        i = first // width
        return lax.dynamic_update_index_in_dim(values, function(near[i], priors[i]), i, axis=0)

    return for_blocks(size, width, block, jnp.zeros_like(priors)).ravel()[:M]


def _square_norms(triangle: Array, table: Array, live: Array) -> Array:
    """|H k|^2 of the columns k of a block of the table (n, COLUMNS), for a lower triangular H (n, n)."""
    nothing, n = jnp.zeros_like(table[0]), triangle.shape[0]
    total = nothing
    for top in range(0, n, TRIANGLE):
        end = min(top + TRIANGLE, n)

        def square(top: int = top, end: int = end) -> Array:
            product = jnp.matmul(triangle[top:end, :end], table[:end], precision="highest")
            # Sums along columns are slow; a product with ones is not.
            return jnp.matmul(jnp.ones_like(product[:, 0]), product**2, precision="highest")

        total += lax.cond(common(live) > top, square, lambda: nothing)
    return total


def _nonzero(mask: Array, size: int, fill: int) -> Array:
    """The places of the true entries, ascending, and then `fill`; int32 (size,)."""
    return jnp.nonzero(mask, size=size, fill_value=fill)[0].astype(jnp.int32)


def _thinning(settings: Settings, seed: Array, epoch: Array, first: Array, rounds: int) -> Array:
    """Uniform variables of the draws of an epoch that begins after `first` rounds, float (N, rounds)."""
    dtype, n_agents = settings.candidates.dtype, settings.n_agents
    if settings.draws is not None:
        horizon = sum(settings.epochs)
        table = jnp.pad(jnp.asarray(settings.draws.thinning, dtype), ((0, 0), (0, horizon)))
        return lax.dynamic_slice_in_dim(table, first, rounds, axis=1)
    # As many for every epoch, so that a draw's does not depend on how the epochs are padded.
    most = max(settings.epochs[:-1])
    return jax.random.uniform(jax.random.fold_in(jax.random.key(seed), epoch), (n_agents, most), dtype)[:, :rounds]


def _settings(
    candidates: Array,
    *,
    kernel: Kernel,
    n_agents: int,
    horizon: int,
    beta: Array | float,
    ridge: Array | float,
    first_epoch: int | None = None,
    epochs: tuple[int, ...] | None = None,
    p0: Array | float | None = None,
    inducing_probability: Probability | None = None,
    elimination: str = "uniform",
    jitter: Array | float | None = None,
    draws: Draws | None = None,
    gram: Array | None = None,
) -> Settings:
    """Checks the arguments of `duets`."""
    candidates = check_run(
        candidates,
        kernel=kernel,
        n_agents=n_agents,
        horizon=horizon,
        beta=beta,
        ridge=ridge,
        draws=draws,
        schedule=False,
        gram=gram,
    )
    dtype = candidates.dtype
    require(epochs is None or first_epoch is None, "epochs", "be None where first_epoch is given", epochs)
    if epochs is None:
        first_epoch = min(FIRST_EPOCH, horizon) if first_epoch is None else first_epoch
        is_int = isinstance(first_epoch, int) and not isinstance(first_epoch, bool)
        require(is_int and 1 <= first_epoch <= horizon, "first_epoch", f"be an int in [1, {horizon}]", first_epoch)
        epochs = epoch_lengths(horizon, first_epoch)
    are_ints = all(isinstance(length, int) and not isinstance(length, bool) and length >= 1 for length in epochs)
    require(are_ints and sum(epochs) == horizon, "epochs", f"hold ints >= 1 summing to {horizon}", epochs)
    require(elimination in ELIMINATIONS, "elimination", f"be one of {ELIMINATIONS}", elimination)
    if inducing_probability is None:
        p0 = P0 if p0 is None else p0
        require_positive("p0", p0)
        inducing_probability = _proportional(jnp.asarray(p0, dtype))
    else:
        require(p0 is None, "p0", "be None where inducing_probability is given", p0)
        require(callable(inducing_probability), "inducing_probability", "be a function", inducing_probability)
    jitter = default_jitter(dtype) if jitter is None else jitter
    require_not_negative("jitter", jitter)

    def covariance(rows: Array, columns: Array) -> Array:
        if gram is not None:
            return jnp.asarray(gram, dtype).at[rows[:, None], columns].get(mode="clip")
        xs, ys = (candidates.at[index].get(mode="clip") for index in (rows, columns))
        return cross(kernel, xs, ys)

    return Settings(
        candidates=candidates,
        covariance=covariance,
        variances=prior_variance(kernel, candidates),
        n_agents=n_agents,
        epochs=tuple(epochs),
        beta=jnp.asarray(beta, dtype),
        ridge=jnp.asarray(ridge, dtype),
        probability=inducing_probability,
        pointwise=elimination == "point",
        jitter=jnp.asarray(jitter, dtype),
        draws=draws,
    )
