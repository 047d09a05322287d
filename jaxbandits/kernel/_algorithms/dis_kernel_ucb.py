"""DisKernelUCB: agents that share all their data when one of them has learned enough (Li, Wang, Wang, Wang, 2022)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kernel._problem.environment import made_for
from jaxbandits.kernel._problem.settings import Coins, Settings, checked, round_coins
from jaxbandits.kernel._shared.traffic import Traffic, no_traffic
from jaxbandits.kernel._shared.ucb import beta_at, columns, index, observed, queries
from jaxbandits.numerics.gp import Kernel, Posterior, condition, prior
from jaxbandits.numerics.gp_blocks import COLUMN_ROWS, SHARED, known, unexplained, unexplained_column
from jaxbandits.numerics.indexing import first_largest_in_rows, select
from jaxbandits.numerics.loops import padded


class State(NamedTuple):
    """Queries and observations, and each agent's posterior.

    An agent's covariance is the prior one less R'R of the shared rows and of its own.
    """

    pulls: Array  # int ()
    traffic: Traffic
    t: Array  # int32 ()  rounds observed
    queries: Array  # int32 (N, T)  M in rounds to come
    rewards: Array  # float (N, T)
    synced: Array  # int32 ()  rounds observed when the agents last synchronised
    fresh: Array  # int (N,)  each agent's observations since
    # float (N, M), (N, M), (N,)  given all shared data and the agent's own; log_det counts from `synced`
    posterior: Posterior
    own_rows: Array  # float (N, T, M)  rows of each agent's observations since; T is the horizon in whole turns
    shared: Array  # int32 ()  candidates queried before the last synchronisation
    shared_mean: Array  # float (M,)  mean at the last synchronisation
    shared_rows: Array  # float (C, M)  C is the largest number of queried candidates, in whole blocks


def dis_kernel_ucb(
    candidates: Array,
    *,
    kernel: Kernel,
    n_agents: int,
    horizon: int,
    beta: Array | float,
    noise_variance: Array | float,
    threshold: Array | float = 10.0,
    gram: Array | None = None,
    coins: Coins | None = None,
) -> Algorithm:
    """Queries for each agent by GP-UCB given shared and own data; all data are shared once an agent learned enough.

    After a round but the last, the agents synchronise if for any of them (its observations since the last time) times
    log[det(I + K_now / noise_variance) / det(I + K_then / noise_variance)] exceeds the threshold. Until they have data
    of their own, all of them then query the same candidate.

    Args:
        candidates, kernel, n_agents, horizon, beta, noise_variance, gram: as in `Settings`.
        threshold: D of the trigger, () > 0; infinity: the agents never synchronise.
        coins: replace the algorithm's randomness: agent n's first query is the candidate that queries[n, 0] picks.

    Returns:
        Algorithm with actions int32 (N,), and answers int32 (), the maximiser of the mean at the last synchronisation;
        0 before the first.

    Raises:
        ValueError: an argument is not as above, or not as `Settings` says.

    **Guarantee**: the paper proves regret of order sqrt(N T) gamma_NT, up to logarithms, for agents that act in turn.
    **Cost**: O(N M (D + n)) a round, with D the candidates queried before the last synchronisation and n the rounds
    since; a synchronisation O(D^2 M). It sends n (d + 1) numbers from each agent, and N n (d + 1) to all.

    Source: Li, Wang, Wang and Wang (2022), Algorithm 1, as in Pavlovic, Salgia and Zhao (2024), Section 5. There the
    agents act in turn and may synchronise within a round; here they act at once.
    """
    checks.positive("threshold", threshold, finite=False)
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
    candidates, noise_variance = settings.candidates, settings.noise_variance
    dtype, (size, dimension) = candidates.dtype, candidates.shape
    threshold = jnp.asarray(threshold, dtype)
    before, of = prior(settings.kernel, candidates), columns(settings)
    capacity = min(n_agents * horizon, size)

    def init(key: Key) -> State:
        del key
        return State(
            pulls=jnp.zeros((), int),
            traffic=no_traffic(),
            t=jnp.zeros((), jnp.int32),
            queries=jnp.full((n_agents, horizon), size, jnp.int32),
            rewards=jnp.zeros((n_agents, horizon), dtype),
            synced=jnp.zeros((), jnp.int32),
            fresh=jnp.zeros(n_agents, int),
            posterior=jax.tree.map(lambda x: jnp.broadcast_to(x, (n_agents, *x.shape)), before),
            own_rows=jnp.zeros((n_agents, padded(horizon, COLUMN_ROWS), size), dtype),
            shared=jnp.zeros((), jnp.int32),
            shared_mean=before.mean,
            shared_rows=jnp.zeros((padded(capacity, SHARED), size), dtype),
        )

    def decide(key: Key, state: State) -> Decision:
        indices = index(state.posterior.mean, state.posterior.variance, beta_at(settings.beta, state.t))
        action = queries(indices, round_coins(settings, key, state.t), state.t)
        return Decision(action, state.t >= horizon, first_largest_in_rows(state.shared_mean))

    def observe(state: State, action: Array, rewards: Array) -> State:
        queried = action < size
        is_round = jnp.any(queried)
        t = jnp.where(is_round, state.t, horizon)  # beyond the horizon nothing is written
        age = state.t - state.synced
        shared_columns = unexplained(of(action), state.shared_rows, action, state.shared)

        def learn(posterior, rows, column, query, reward):
            column = unexplained_column(column, rows, query, age)
            posterior, row = condition(posterior, column, query, reward, noise_variance)
            return posterior, rows.at[jnp.where(is_round, age, rows.shape[0])].set(row, mode="drop")

        posterior, own_rows = jax.vmap(learn)(state.posterior, state.own_rows, shared_columns, action, rewards)
        return state._replace(
            pulls=state.pulls + jnp.sum(queried, dtype=state.pulls.dtype),
            t=state.t + is_round.astype(jnp.int32),
            queries=state.queries.at[:, t].set(action, mode="drop"),
            rewards=state.rewards.at[:, t].set(jnp.where(queried, rewards, 0), mode="drop"),
            fresh=state.fresh + queried.astype(state.fresh.dtype),
            posterior=posterior,
            own_rows=own_rows,
        )

    def stale(state: State) -> Array:
        learned = state.fresh.astype(dtype) * state.posterior.log_det
        return jnp.any(learned > threshold) & (state.t < horizon)

    def plan(key: Key, state: State) -> State:
        """Shares all data. w observations of a candidate count as one of their mean, with a w-th of the noise."""
        del key
        due = stale(state)
        counts, sums = observed(state.queries, state.rewards, size)
        live = jnp.sum(counts > 0, dtype=jnp.int32)
        points = jnp.nonzero(counts, size=capacity, fill_value=size)[0]
        number = jnp.maximum(counts.at[points].get(mode="clip"), 1).astype(dtype)
        means, noise = sums.at[points].get(mode="clip") / number, noise_variance / number
        now = known(
            of, before.variance, points, values=means, noise=noise, rows=state.shared_rows, live=live, where=due
        )
        sent = jnp.sum(state.fresh) * (dimension + 1)
        posterior, shape = state.posterior, (n_agents, size)
        planned = state._replace(
            traffic=Traffic(state.traffic.uplink + sent, state.traffic.downlink + sent),
            synced=state.t,
            fresh=jnp.zeros_like(state.fresh),
            posterior=Posterior(
                mean=jnp.broadcast_to(now.mean, shape),
                variance=jnp.broadcast_to(now.variance, shape),
                log_det=jnp.zeros_like(posterior.log_det),
            ),
            shared=live,
            shared_mean=now.mean,
        )
        planned = select(due, planned, state)
        return planned._replace(shared_rows=now.rows)

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
