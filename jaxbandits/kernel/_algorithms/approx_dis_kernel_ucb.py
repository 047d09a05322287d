"""ApproxDisKernelUCB: agents that learn alone, and share a sparse posterior when one of them has seen enough.

Source: Li, Wang, Wang and Wang (2022), Communication Efficient Distributed Learning for Kernelized Contextual Bandits.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kernel._problem.environment import made_for
from jaxbandits.kernel._problem.settings import Coins, Settings, checked, picked, round_coins
from jaxbandits.kernel._shared import ucb
from jaxbandits.kernel._shared.traffic import Traffic, no_traffic
from jaxbandits.numerics.cholesky import BLOCK, cholesky, solve_lower
from jaxbandits.numerics.gp import Kernel, Posterior, condition, default_jitter, prior_variance
from jaxbandits.numerics.gp_blocks import COLUMN_ROWS, SHARED, explained_by_live, known
from jaxbandits.numerics.indexing import first_largest_in_rows
from jaxbandits.numerics.loops import by_parts, for_blocks, padded
from jaxbandits.numerics.platforms import by_platform

DATA = 32  # candidates queried whose features are read in one turn of a synchronisation


class State(NamedTuple):
    """Queries and observations, the posterior last shared, and each agent's additions to it since.

    An agent's covariance of x and x' is w'(I - R'R) w', where w and w' are columns of `whitened` and R its own rows.
    """

    pulls: Array  # int ()
    traffic: Traffic
    t: Array  # int32 ()          rounds observed
    queries: Array  # int32 (N, T)  M in rounds to come
    rewards: Array  # float (N, T)
    inducing: Array  # int32 ()   inducing points; 0 before the first synchronisation
    shared_mean: Array  # float (M,)
    shared_variance: Array  # float (M,)
    whitened: Array  # float (m, M)    W: the shared covariance is W'W + a diagonal; m is `max_inducing` in whole turns
    synced: Array  # int32 ()     rounds observed at the last synchronisation
    own_rows: Array  # float (N, T, m) what each agent's own observations since explain, as coefficients of W
    mean: Array  # float (N, M)
    variance: Array  # float (N, M)
    trigger: Array  # float (N,)  shared variance / noise variance, summed over the queries since then
    seed: Array  # uint32 ()      seed of the choice of inducing points


class Sparse(NamedTuple):
    """The checked arguments of a synchronisation."""

    settings: Settings
    oversampling: Array  # float ()
    jitter: Array  # float ()
    prior_variance: Array  # float (M,)  k(x, x)
    slots: int  # room for inducing points


def approx_dis_kernel_ucb(
    candidates: Array,
    *,
    kernel: Kernel,
    n_agents: int,
    horizon: int,
    beta: Array | float,
    noise_variance: Array | float,
    threshold: Array | float = 20.0,
    oversampling: Array | float = 1.0,
    max_inducing: int = 256,
    jitter: Array | float | None = None,
    gram: Array | None = None,
    coins: Coins | None = None,
) -> Algorithm:
    """Queries for each agent where its mean + beta sd is largest, with a posterior through a few inducing points.

    Until the first synchronisation agents query at random. The agents synchronise after a round in which the variances
    last shared, over `noise_variance`, of one agent's queries since then sum to more than `threshold`. Every query so
    far then becomes an inducing point with probability min(1, oversampling variance / noise_variance), by the variance
    last shared; all agents send their data through the features of these points, and go on from a common posterior. If
    no point is chosen, nothing is sent and the posteriors stay.

    Args:
        candidates, kernel, n_agents, horizon, beta, noise_variance, gram: as in `Settings`.
        threshold: () > 0; inf: agents never synchronise, and all queries are random.
        oversampling: q, () > 0.
        max_inducing: the most inducing points. A run that draws more ends as `Status.NONFINITE`.
        jitter: added to the diagonal of the inducing points' covariance, () >= 0; None: `default_jitter`.
        coins: replace the algorithm's own randomness: `queries`, and `inducing`, whose entry [r, i, s] decides on agent
            i's query of round s at a synchronisation after round r, both from 0.

    Returns:
        Algorithm. An action is int32 (N,); the answer is the candidate of the largest mean last shared, int32 ().
        It stops after T rounds.

    Raises:
        ValueError: an argument is not as above, or not as `Settings` says.

    **Guarantee**: regret of order sqrt(N T) gamma_NT and communication of order N gamma_NT^3, up to logarithms; see
    `orders`. **Cost**: a round O(N m (T + M)), with m the smaller of `max_inducing` and M; a synchronisation
    O(m^2 (m + min(NT, M) + M)). A synchronisation with S inducing points, of which S_i are agent i's, costs agent i
    S_i d + S^2 + S numbers, and a broadcast of S d + S^2 + S.

    Source: Li, Wang, Wang and Wang (2022), Algorithm 2; Pavlovic, Salgia and Zhao (2024), Section 5 and equations (5)
    and (6).
    """
    checks.positive("threshold", threshold, finite=False)
    checks.positive("oversampling", oversampling)
    checks.whole("max_inducing", max_inducing, least=1)
    if jitter is not None:
        checks.not_negative("jitter", jitter)
    settings = checked(
        Settings(
            candidates=candidates,
            kernel=kernel,
            n_agents=n_agents,
            horizon=horizon,
            beta=beta,
            noise_variance=noise_variance,
            gram=gram,
            coins=coins,
        )
    )
    dtype, size = settings.candidates.dtype, settings.candidates.shape[0]
    jitter = default_jitter(dtype) if jitter is None else jitter

    threshold, oversampling, jitter = (jnp.asarray(x, dtype) for x in (threshold, oversampling, jitter))
    noise_variance, before = settings.noise_variance, prior_variance(kernel, settings.candidates)
    sparse = Sparse(settings, oversampling, jitter, before, slots=min(max_inducing, size))
    room = padded(sparse.slots, SHARED)

    def init(key: Key) -> State:
        return State(
            pulls=jnp.zeros((), int),
            traffic=no_traffic(),
            t=jnp.zeros((), jnp.int32),
            queries=jnp.full((n_agents, horizon), size, jnp.int32),
            rewards=jnp.zeros((n_agents, horizon), dtype),
            inducing=jnp.zeros((), jnp.int32),
            shared_mean=jnp.zeros(size, dtype),
            shared_variance=before,
            whitened=jnp.zeros((room, size), dtype),
            synced=jnp.zeros((), jnp.int32),
            own_rows=jnp.zeros((n_agents, padded(horizon, COLUMN_ROWS), room), dtype),
            mean=jnp.zeros((n_agents, size), dtype),
            variance=jnp.tile(before, (n_agents, 1)),
            trigger=jnp.zeros(n_agents, dtype),
            seed=jax.random.bits(key, (), jnp.uint32),
        )

    def decide(key: Key, state: State) -> Decision:
        # Li et al. divide the deviation by the root of the noise variance; here it has the scale of the kernel, as
        # everywhere.
        index = ucb.index(state.mean, state.variance, ucb.beta_at(settings.beta, state.t))
        random = picked(round_coins(settings, key, state.t), size)
        action = jnp.where(state.inducing == 0, random, first_largest_in_rows(index))
        return Decision(action, state.t >= horizon, first_largest_in_rows(state.shared_mean))

    def observe(state: State, action: Array, rewards: Array) -> State:
        queried = action < size
        t = jnp.where(jnp.any(queried), state.t, horizon)  # beyond the horizon nothing is written
        age = state.t - state.synced

        # The inducing points stay as they are between synchronisations, so an agent's posterior moves within the span
        # of their features: what an observation explains is m numbers, not M.
        features = state.whitened.at[:, action].get(mode="clip").T
        unexplained = jax.vmap(_residual, in_axes=(0, 0, None))(features, state.own_rows, age)
        covariance = explained_by_live(state.whitened, unexplained, state.inducing)
        log_dets = jnp.zeros(n_agents, dtype)
        posterior, _ = jax.vmap(condition, in_axes=(0, 0, 0, 0, None))(
            Posterior(state.mean, state.variance, log_dets), covariance, action, rewards, noise_variance
        )
        variances = jnp.maximum(jnp.sum(unexplained * features, axis=1), 0)
        explains = unexplained / jnp.sqrt(noise_variance + variances)[:, None]
        shared = state.shared_variance.at[action].get(mode="clip") / noise_variance
        return state._replace(
            pulls=state.pulls + jnp.sum(queried.astype(int)),
            t=state.t + jnp.any(queried).astype(jnp.int32),
            queries=state.queries.at[:, t].set(action, mode="drop"),
            rewards=state.rewards.at[:, t].set(jnp.where(queried, rewards, 0), mode="drop"),
            own_rows=state.own_rows.at[:, jnp.where(jnp.any(queried), age, state.own_rows.shape[1])].set(
                jnp.where(queried[:, None], explains, 0), mode="drop"
            ),
            mean=posterior.mean,
            variance=posterior.variance,
            trigger=state.trigger + jnp.where(queried, shared, 0),
        )

    def plan(key: Key, state: State) -> State:
        del key
        return _synchronise(sparse, state, stale(state))

    def stale(state: State) -> Array:
        return jnp.any(state.trigger > threshold) & (state.t < horizon)

    idle = jnp.full(n_agents, size, jnp.int32)
    return Algorithm(
        init,
        decide,
        observe,
        idle,
        plan=plan,
        stale=stale,
        masked_plan=True,
        needs_order=True,
        **made_for(settings),
    )


def _residual(features: Array, rows: Array, live: Array) -> Array:
    """Computes the part of features (m,) that an agent's first `live` own rows (T, m) do not explain."""

    def without(first: Array | int, rows: Array, residual: Array) -> Array:
        numbers = first + jnp.arange(rows.shape[0], dtype=jnp.int32)
        coefficients = jnp.where(numbers < live, jnp.sum(rows * features[None], axis=1), 0)
        return residual - jnp.sum(coefficients[:, None] * rows, axis=0)

    def turn(first: Array, residual: Array) -> Array:
        return without(first, lax.dynamic_slice_in_dim(rows, first, COLUMN_ROWS), residual)

    return by_platform(
        features,
        cpu=lambda features: for_blocks(live, COLUMN_ROWS, turn, features),
        default=lambda features: by_parts(rows.shape[0], live, lambda n: without(0, rows[:n], features)),
    )


def _synchronise(sparse: Sparse, state: State, due: Array) -> State:
    """Updates the state, where it is due, with the posterior of all data through newly chosen inducing points."""
    settings, slots = sparse.settings, sparse.slots
    noise_variance, n_agents, (size, dimension) = settings.noise_variance, settings.n_agents, settings.candidates.shape
    proposed = _proposed(sparse, state)
    is_inducing = jnp.any(proposed, axis=0)
    m = jnp.sum(is_inducing)
    live = jnp.where(due, jnp.minimum(m, slots), 0).astype(jnp.int32)
    points = jnp.nonzero(is_inducing, size=slots, fill_value=size)[0]

    nothing, jitter = jnp.zeros(slots, settings.candidates.dtype), jnp.full(slots, sparse.jitter)
    zeros, of = jnp.zeros_like(state.whitened), ucb.columns(settings)
    posterior = known(
        of, sparse.prior_variance, points, values=nothing, noise=jitter, rows=zeros, live=live, is_noisy=False
    )
    mean, variance, whitened = _posterior(noise_variance, posterior.rows, posterior.variance, state, live)
    # A truncated set of inducing points would be another algorithm, so the run ends as NONFINITE.
    mean = jnp.where(m > slots, jnp.nan, mean)
    matrices = m**2 + m  # Z Z' and Z y
    synchronised = state._replace(
        traffic=Traffic(
            uplink=state.traffic.uplink + jnp.sum(proposed) * dimension + n_agents * matrices,
            downlink=state.traffic.downlink + m * dimension + matrices,
        ),
        inducing=m.astype(jnp.int32),
        shared_mean=mean,
        shared_variance=variance,
        whitened=whitened,
        synced=state.t,
        mean=jnp.tile(mean, (n_agents, 1)),
        variance=jnp.tile(variance, (n_agents, 1)),
    )
    state = jax.tree.map(lambda new, old: jnp.where(due & (m > 0), new, old), synchronised, state)
    return state._replace(trigger=jnp.where(due, 0, state.trigger))


def _proposed(sparse: Sparse, state: State) -> Array:
    """Draws the candidates that each agent proposes as inducing points, bool (N, M)."""
    n_agents, horizon = state.queries.shape
    size, dtype, coins = state.shared_mean.shape[0], state.shared_mean.dtype, sparse.settings.coins
    probability = sparse.oversampling * state.shared_variance.at[state.queries].get(mode="clip")
    probability = jnp.minimum(probability / sparse.settings.noise_variance, 1)
    if coins is None:
        key = jax.random.fold_in(jax.random.key(state.seed, impl="threefry2x32"), state.t)
        is_chosen = jax.random.uniform(key, (n_agents, horizon), dtype) < probability
    else:
        is_chosen = coins.inducing[jnp.maximum(state.t, 1) - 1] < probability
    agents = jnp.arange(n_agents, dtype=jnp.int32)
    return jnp.zeros((n_agents, size), bool).at[agents[:, None], state.queries].max(is_chosen, mode="drop")


def _posterior(
    noise_variance: Array, z: Array, residual: Array, state: State, live: Array
) -> tuple[Array, Array, Array]:
    """Computes mean and variance (M,) of all data through features Z (m, M) that leave `residual` (M,), and W (m, M).

    W = sqrt(noise_variance) L^-1 Z with A = noise_variance I + Z diag(counts) Z' = L L', as in `gp.Sparse`.
    """
    room, size = z.shape
    counts, sums = ucb.observed(state.queries, state.rewards, size)
    queried = jnp.nonzero(counts, size=padded(min(state.queries.size, size), DATA), fill_value=size)[0]
    number = jnp.where(live > 0, jnp.sum(counts > 0, dtype=jnp.int32), 0)

    def add(first: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        gram, projected = carry
        index = lax.dynamic_slice_in_dim(queried, first, DATA)
        columns = z.at[:, index].get(mode="clip")
        count, total = (x.at[index].get(mode="fill", fill_value=0).astype(z.dtype) for x in (counts, sums))
        gram += jnp.matmul(columns * count[None], columns.T, precision="highest")
        return gram, projected + jnp.matmul(columns, total, precision="highest")

    eye = jnp.eye(room, dtype=z.dtype)
    gram, projected = for_blocks(number, DATA, add, (noise_variance * eye, jnp.zeros(room, z.dtype)))
    factor = cholesky(gram, live)
    projected = solve_lower(factor, projected)
    # The eigenvalues of A are at least the noise variance: no digits are lost by the inverse, see `gp.whitening`.
    inverse = solve_lower(factor, eye)

    def whiten(first: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        mean, variance, whitened = carry
        columns = explained_by_live(z, lax.dynamic_slice_in_dim(inverse, first, BLOCK), live)
        mean += jnp.matmul(lax.dynamic_slice_in_dim(projected, first, BLOCK), columns, precision="highest")
        variance += noise_variance * jnp.sum(columns**2, axis=0)
        columns *= jnp.sqrt(noise_variance)
        return mean, variance, lax.dynamic_update_slice_in_dim(whitened, columns, first, axis=0)

    return for_blocks(live, BLOCK, whiten, (jnp.zeros_like(residual), residual, jnp.zeros_like(z)))
