"""ApproxDisKernelUCB: agents that learn alone, and share a sparse posterior when one of them has seen enough.

Source: Li, Wang, Wang and Wang (2022), Communication Efficient Distributed Learning for Kernelized Contextual Bandits.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import known, require, require_not_negative, require_positive
from jaxbandits.kernel import ucb
from jaxbandits.kernel.problem import Draws, Traffic, check_run, check_size, chosen, round_coins
from jaxbandits.numerics.cholesky import cholesky, solve_lower
from jaxbandits.numerics.gp import Kernel, Posterior, condition, default_jitter, explained, prior_variance, sparse_from


class State(NamedTuple):
    """What was asked and seen, the posterior last shared, and how each agent has added to it since.

    An agent's covariance of x and x' is w'(I - R'R) w', with w and w' the columns of `whitened` and R its own rows.
    """

    pulls: Array  # int ()
    traffic: Traffic
    t: Array  # int32 ()          rounds observed
    asked: Array  # int32 (N, T)  M in rounds to come
    rewards: Array  # float (N, T)
    inducing: Array  # int32 ()   inducing points; none before the first synchronisation
    shared_mean: Array  # float (M,)
    shared_variance: Array  # float (M,)
    whitened: Array  # float (m, M)    features of the candidates, such that the shared covariance is W'W + a diagonal
    since: Array  # int32 ()      own rows from this round on count
    own: Array  # float (N, T, m) what each agent's own observation of each round explains, as coefficients of W
    mean: Array  # float (N, M)
    variance: Array  # float (N, M)
    spent: Array  # float (N,)    shared variance over the ridge, summed over the queries since a synchronisation
    seed: Array  # uint32 ()       of the choice of inducing points


def approx_dis_kernel_ucb(
    candidates: Array,
    *,
    kernel: Kernel,
    n_agents: int,
    horizon: int,
    beta: Array | float,
    ridge: Array | float,
    threshold: Array | float = 20.0,
    oversampling: Array | float = 1.0,
    max_inducing: int = 256,
    jitter: Array | float | None = None,
    gram: Array | None = None,
    draws: Draws | None = None,
) -> Algorithm:
    """Each agent asks where its mean + beta sd is largest; all it knows passes through a few inducing points.

    Until the first synchronisation agents ask at random. The agents synchronise after a round in which the variances
    last shared, over the ridge, of one agent's queries since then sum to more than `threshold`. Every query so far then
    becomes an inducing point with probability min(1, oversampling variance / ridge), by the variance last shared; all
    agents send their data through the features of these points, and go on from a common posterior. If no point is
    chosen, nothing is sent and the posteriors stay.

    Args:
        candidates: float (M, d).
        kernel: of a single pair.
        n_agents: N.
        horizon: T, rounds.
        beta: () or (T,), one a round, >= 0.
        ridge: variance of the noise, () > 0.
        threshold: () > 0; inf: agents never synchronise, and ask at random for ever.
        oversampling: q, () > 0.
        max_inducing: the most inducing points. A run that draws more ends as `Status.NONFINITE`.
        jitter: added to the diagonal of the inducing points' covariance, () >= 0; None: `default_jitter`.
        gram: float (M, M), the kernel of all pairs of candidates, from which columns are then taken; or None.
        draws: replaces the algorithm's own randomness: `coins`, and `rls`, whose entry [r, i, s] decides on agent i's
            query of round s at a synchronisation after round r, both from 0.

    Returns:
        Algorithm. An action is int32 (N,); the answer is the candidate of the largest mean last shared, int32 ().
        It stops after T rounds.

    Raises:
        ValueError: an argument is out of range.

    Cost: a round O(N m (T + M)), with m the smaller of `max_inducing` and M; a synchronisation
    O(m^2 (m + min(NT, M) + M)). A synchronisation with S inducing points, of which S_i are agent i's, costs agent i
    S_i d + S^2 + S numbers, and a broadcast of S d + S^2 + S.

    Source: Li, Wang, Wang and Wang (2022), Algorithm 2; Pavlovic, Salgia and Zhao (2024), Section 5 and equations (5)
    and (6).
    """
    candidates = check_run(
        candidates,
        kernel=kernel,
        n_agents=n_agents,
        horizon=horizon,
        beta=beta,
        ridge=ridge,
        draws=draws,
        gram=gram,
    )
    dtype, (size, dimension) = candidates.dtype, candidates.shape
    require(known(threshold) > 0, "threshold", "be positive", threshold)
    require_positive("oversampling", oversampling)
    check_size("max_inducing", max_inducing)
    jitter = default_jitter(dtype) if jitter is None else jitter
    require_not_negative("jitter", jitter)

    beta, ridge, threshold, oversampling, jitter = (
        jnp.asarray(x, dtype) for x in (beta, ridge, threshold, oversampling, jitter)
    )
    column = ucb.columns(kernel, candidates, gram)
    slots = min(max_inducing, size)
    agents = jnp.arange(n_agents, dtype=jnp.int32)
    rounds = jnp.arange(horizon, dtype=jnp.int32)
    before = prior_variance(kernel, candidates)

    def init(key: Key) -> State:
        return State(
            pulls=jnp.zeros((), int),
            traffic=Traffic(jnp.zeros((), int), jnp.zeros((), int)),
            t=jnp.zeros((), jnp.int32),
            asked=jnp.full((n_agents, horizon), size, jnp.int32),
            rewards=jnp.zeros((n_agents, horizon), dtype),
            inducing=jnp.zeros((), jnp.int32),
            shared_mean=jnp.zeros(size, dtype),
            shared_variance=before,
            whitened=jnp.zeros((slots, size), dtype),
            since=jnp.zeros((), jnp.int32),
            own=jnp.zeros((n_agents, horizon, slots), dtype),
            mean=jnp.zeros((n_agents, size), dtype),
            variance=jnp.tile(before, (n_agents, 1)),
            spent=jnp.zeros(n_agents, dtype),
            seed=jax.random.bits(key, (), jnp.uint32),
        )

    def decide(key: Key, state: State) -> Decision:
        coins = round_coins(key, draws, state.t, n_agents, dtype)
        # Li et al. divide the deviation by the root of the ridge; here it has the scale of the kernel, as everywhere.
        index = ucb.index(state.mean, state.variance, ucb.beta_at(beta, state.t))
        action = jnp.where(state.inducing == 0, chosen(coins, size), ucb.best(index))
        return Decision(action, state.t >= horizon, ucb.best(state.shared_mean))

    def observe(state: State, action: Array, rewards: Array) -> State:
        is_asked = action < size
        t = jnp.where(jnp.any(is_asked), state.t, horizon)  # beyond the horizon nothing is written
        is_own = (rounds >= state.since) & (rounds < state.t)

        # The inducing points stay as they are between synchronisations, so an agent's posterior moves within the span
        # of their features: what an observation explains is m numbers, not M.
        asked = state.whitened.at[:, action].get(mode="clip").T
        seen = jnp.einsum("ntm,nm->nt", state.own, asked, precision="highest")
        left = asked - jax.vmap(explained)(state.own, jnp.where(is_own, seen, 0))
        covariance = jnp.matmul(left, state.whitened, precision="highest")
        log_dets = jnp.zeros(n_agents, dtype)
        posterior, _ = jax.vmap(condition, in_axes=(0, 0, 0, 0, None))(
            Posterior(state.mean, state.variance, log_dets), covariance, action, rewards, ridge
        )
        explains = left / jnp.sqrt(ridge + jnp.maximum(jnp.sum(left * asked, axis=1), 0))[:, None]
        shared = state.shared_variance.at[action].get(mode="clip") / ridge
        return state._replace(
            pulls=state.pulls + jnp.sum(is_asked.astype(int)),
            t=state.t + jnp.any(is_asked).astype(jnp.int32),
            asked=state.asked.at[:, t].set(action, mode="drop"),
            rewards=state.rewards.at[:, t].set(jnp.where(is_asked, rewards, 0), mode="drop"),
            own=state.own.at[:, t].set(jnp.where(is_asked[:, None], explains, 0), mode="drop"),
            mean=posterior.mean,
            variance=posterior.variance,
            spent=state.spent + jnp.where(is_asked, shared, 0),
        )

    def stale(state: State) -> Array:
        return jnp.any(state.spent > threshold) & (state.t < horizon)

    def uniforms(state: State) -> Array:
        """Float (N, T), of a synchronisation after the last round observed."""
        if draws is not None:
            return jnp.asarray(draws.rls, dtype)[jnp.maximum(state.t, 1) - 1]
        return jax.random.uniform(jax.random.fold_in(jax.random.key(state.seed), state.t), (n_agents, horizon), dtype)

    def choose(state: State) -> Array:
        """The candidates that each agent proposes as inducing points, bool (N, M)."""
        odds = oversampling * state.shared_variance.at[state.asked].get(mode="clip") / ridge
        is_chosen = uniforms(state) < jnp.minimum(odds, 1)
        return jnp.zeros((n_agents, size), bool).at[agents[:, None], state.asked].max(is_chosen, mode="drop")

    def data(z: Array, state: State) -> tuple[Array, Array, Array]:
        """Features (m, n) of the points observed, how often each was, and the sum of its rewards, (n,)."""
        if n_agents * horizon <= size:
            return z.at[:, state.asked.ravel()].get(mode="clip"), (state.asked < size).ravel(), state.rewards.ravel()
        counts = jnp.zeros(size, int).at[state.asked].add(1, mode="drop")
        return z, counts, jnp.zeros(size, dtype).at[state.asked].add(state.rewards, mode="drop")

    def synchronise(key: Key, state: State) -> State:
        del key
        proposed = choose(state)
        is_inducing = jnp.any(proposed, axis=0)
        m = jnp.sum(is_inducing)
        live = jnp.minimum(m, slots)
        places = jnp.nonzero(is_inducing, size=slots, fill_value=size)[0]

        rows = column(places)
        square = rows.at[:, places].get(mode="clip") + jitter * jnp.eye(slots, dtype=dtype)
        z = solve_lower(cholesky(square, live), rows)
        points, counts, sums = data(z, state)
        sparse = sparse_from(points, sums, z, before, ridge=ridge, counts=counts, live=live)
        # A set of inducing points that is cut short would be another algorithm: the run is given up.
        mean, variance = jnp.where(m > slots, jnp.nan, sparse.mean), sparse.variance
        matrices = m**2 + m  # Z Z' and Z y
        synchronised = state._replace(
            traffic=Traffic(
                uplink=state.traffic.uplink + jnp.sum(proposed) * dimension + n_agents * matrices,
                downlink=state.traffic.downlink + m * dimension + matrices,
            ),
            inducing=m.astype(jnp.int32),
            shared_mean=mean,
            shared_variance=variance,
            whitened=sparse.whitened,
            since=state.t,
            mean=jnp.tile(mean, (n_agents, 1)),
            variance=jnp.tile(variance, (n_agents, 1)),
        )
        return _where(m > 0, synchronised, state)._replace(spent=jnp.zeros_like(state.spent))

    idle = jnp.full(n_agents, size, jnp.int32)
    return Algorithm(init, decide, observe, idle, plan=synchronise, stale=stale)


def _where(condition: Array, new: State, old: State) -> State:
    return jax.tree.map(lambda new, old: jnp.where(condition, new, old), new, old)
