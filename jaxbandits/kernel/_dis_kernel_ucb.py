"""DisKernelUCB: agents that share all their data when one of them has learned enough (Li, Wang, Wang, Wang, 2022)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kernel._settings import Coins, Settings, checked, round_coins
from jaxbandits.kernel._traffic import Traffic, no_traffic
from jaxbandits.kernel._ucb import best, beta_at, explained_by_first, index, memory, queries
from jaxbandits.numerics.gp import Kernel, Posterior, condition, explained, prior


class State(NamedTuple):
    """What each agent knows, and what all of them together would know.

    The pooled buffer holds its rows in the order of the rounds, and a posterior does not depend on that order: the
    shared one, of the last synchronisation, is what the first rows give.
    """

    pulls: Array  # int ()
    traffic: Traffic
    t: Array  # int32 ()  rounds observed
    synced: Array  # int32 ()  rounds observed when the agents last synchronised
    fresh: Array  # int (N,)  each agent's observations since
    own: Posterior  # float (N, M), (N, M), (N,)  of all shared data and the agent's own; log_det counts from `synced`
    pooled: Posterior  # float (M,), (M,), ()  of the data of all agents
    shared_mean: Array  # float (M,)  of the last synchronisation
    own_rows: Array  # float (N, T, M)  of each agent's observations since; the row of a round stands `synced` earlier
    pooled_memory: Array  # float (N T, M), or (M, M) if N T > M  the covariance, see `memory`
    shared_memory: Array | None  # float (M, M)  that of the last synchronisation; None: it is in the buffer


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
    """Every agent queries by GP-UCB given the shared data and its own; all data are shared when one has learned enough.

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

    **Cost**: O(N M (min(N T, M) + T)) a round. A synchronisation of n observations an agent sends n (d + 1) numbers
    from each agent, and N n (d + 1) to all.

    Source: Li, Wang, Wang and Wang (2022), Algorithm 1, as in Pavlovic, Salgia and Zhao (2024), Section 5. There the
    agents act in turn and may synchronise within a round; here they act at once.
    """
    checks.positive("threshold", threshold, finite=False)
    settings = checked(Settings(candidates, kernel, n_agents, horizon, beta, noise_variance, gram, coins))
    candidates, noise_variance = settings.candidates, settings.noise_variance
    dtype, (size, dimension) = candidates.dtype, candidates.shape
    threshold = jnp.asarray(threshold, dtype)
    covariance = memory(settings, n_agents * horizon)
    rounds = jnp.arange(horizon, dtype=jnp.int32)

    def init(key: Key) -> State:
        del key
        before = prior(settings.kernel, candidates)
        return State(
            pulls=jnp.zeros((), int),
            traffic=no_traffic(),
            t=jnp.zeros((), jnp.int32),
            synced=jnp.zeros((), jnp.int32),
            fresh=jnp.zeros(n_agents, int),
            own=jax.tree.map(lambda x: jnp.broadcast_to(x, (n_agents, *x.shape)), before),
            pooled=before,
            shared_mean=before.mean,
            own_rows=jnp.zeros((n_agents, horizon, size), dtype),
            pooled_memory=covariance.start,
            shared_memory=None if covariance.is_buffer else covariance.start,
        )

    def decide(key: Key, state: State) -> Decision:
        indices = index(state.own.mean, state.own.variance, beta_at(settings.beta, state.t))
        action = queries(indices, round_coins(settings, key, state.t), state.t)
        return Decision(action, state.t >= horizon, best(state.shared_mean))

    def shared_and_pooled_columns(state: State, action: Array) -> tuple[Array, Array]:
        """The covariance with each query of a round (N, M), at the last synchronisation and now."""
        live = jnp.stack([state.synced, state.t]) * n_agents
        if state.shared_memory is None:
            shared, pooled = covariance.columns(state.pooled_memory, action, live)
        else:
            (shared,) = covariance.columns(state.shared_memory, action, live[:1])
            (pooled,) = covariance.columns(state.pooled_memory, action, live[1:])
        return shared, pooled

    def observe(state: State, action: Array, rewards: Array) -> State:
        queried = action < size
        is_round = jnp.any(queried)
        age = state.t - state.synced
        shared_columns, pooled_columns = shared_and_pooled_columns(state, action)

        def learn(own, rows, column, query, reward):
            coefficients = jnp.where(rounds < age, rows.at[:, query].get(mode="clip"), 0)
            own, row = condition(
                own, column - explained_by_first(rows, coefficients, age), query, reward, noise_variance
            )
            return own, rows.at[jnp.where(is_round, age, horizon)].set(row, mode="drop")

        own, own_rows = jax.vmap(learn)(state.own, state.own_rows, shared_columns, action, rewards)

        def pool(n: Array, carry: tuple[Posterior, Array]) -> tuple[Posterior, Array]:
            pooled, rows = carry
            column = pooled_columns[n] - explained(rows, rows.at[:, action[n]].get(mode="clip"))
            pooled, row = condition(pooled, column, action[n], rewards[n], noise_variance)
            return pooled, rows.at[n].set(row)

        pooled, rows = lax.fori_loop(0, n_agents, pool, (state.pooled, jnp.zeros((n_agents, size), dtype)))
        first = jnp.where(is_round, state.t, horizon) * n_agents
        pooled_memory = covariance.append(state.pooled_memory, rows, first)

        t = state.t + is_round.astype(jnp.int32)
        fresh = state.fresh + queried.astype(state.fresh.dtype)
        learned = fresh.astype(dtype) * own.log_det
        due = is_round & (t < horizon) & jnp.any(learned > threshold)
        sent = jnp.where(due, jnp.sum(fresh) * (dimension + 1), 0)
        shared_memory = state.shared_memory
        return State(
            pulls=state.pulls + jnp.sum(queried, dtype=state.pulls.dtype),
            traffic=Traffic(state.traffic.uplink + sent, state.traffic.downlink + sent),
            t=t,
            synced=jnp.where(due, t, state.synced),
            fresh=jnp.where(due, 0, fresh),
            own=Posterior(
                mean=jnp.where(due, pooled.mean, own.mean),
                variance=jnp.where(due, pooled.variance, own.variance),
                log_det=jnp.where(due, 0, own.log_det),
            ),
            pooled=pooled,
            shared_mean=jnp.where(due, pooled.mean, state.shared_mean),
            own_rows=own_rows,
            pooled_memory=pooled_memory,
            shared_memory=None if shared_memory is None else jnp.where(due, pooled_memory, shared_memory),
        )

    return Algorithm(init, decide, observe, jnp.full(n_agents, size, jnp.int32), before=lambda state, _: state.t)
