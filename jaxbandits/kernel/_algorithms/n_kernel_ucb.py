"""N-KernelUCB: agents that learn alone, each by GP-UCB (Srinivas, Krause, Kakade, Seeger, 2010)."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kernel._problem.environment import made_for
from jaxbandits.kernel._problem.settings import Coins, Settings, checked, round_coins
from jaxbandits.kernel._shared.traffic import Traffic, no_traffic
from jaxbandits.kernel._shared.ucb import beta_at, index, memory, queries
from jaxbandits.numerics.gp import Kernel, Posterior, condition, prior
from jaxbandits.numerics.indexing import first_largest_in_rows

BetaRule = Callable[[Array, Array], Array]  # (t int (), log_det ()) -> beta ()


class State(NamedTuple):
    """Posterior of each agent."""

    pulls: Array  # int ()
    traffic: Traffic  # 0
    t: Array  # int32 ()  rounds observed
    posterior: Posterior  # float (N, M), (N, M), (N,)
    memory: Array  # float (N, T, M), or (N, M, M) if T > M  the covariances, see `memory`


def n_kernel_ucb(
    candidates: Array,
    *,
    kernel: Kernel,
    n_agents: int,
    horizon: int,
    beta: Array | float,
    noise_variance: Array | float,
    gram: Array | None = None,
    coins: Coins | None = None,
) -> Algorithm:
    """Queries for each agent the candidate with the largest mean + beta sd given its own rewards alone.

    Args:
        candidates, kernel, n_agents, horizon, beta, noise_variance, gram: as in `Settings`.
        coins: replace the algorithm's randomness: agent n's first query is the candidate that queries[n, 0] picks.

    Returns:
        Algorithm with actions and answers int32 (N,): each agent's query, and the maximiser of its mean.

    Raises:
        ValueError: an argument is not as `Settings` says.

    **Guarantee**: the regret of one agent alone, N times. **Cost**: O(N M min(T, M)) a round, nothing is sent.

    Source: the baseline of Pavlovic, Salgia and Zhao (2024), Section 5.
    """
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
    return algorithm_from_beta(settings, lambda t, log_det: beta_at(settings.beta, t))


def algorithm_from_beta(settings: Settings, confidence: BetaRule) -> Algorithm:
    """Builds `n_kernel_ucb` from checked settings, with a beta from the rounds observed and the agent's log det."""
    n_agents, horizon, size = settings.n_agents, settings.horizon, settings.candidates.shape[0]
    covariance = memory(settings, horizon)
    before = prior(settings.kernel, settings.candidates)

    def init(key: Key) -> State:
        del key
        posterior, stored = jax.tree.map(
            lambda x: jnp.broadcast_to(x, (n_agents, *x.shape)), (before, covariance.start)
        )
        return State(jnp.zeros((), int), no_traffic(), jnp.zeros((), jnp.int32), posterior, stored)

    def decide(key: Key, state: State) -> Decision:
        indices = jax.vmap(lambda p: index(p.mean, p.variance, confidence(state.t, p.log_det)))(state.posterior)
        action = queries(indices, round_coins(settings, key, state.t), state.t)
        return Decision(action, state.t >= horizon, first_largest_in_rows(state.posterior.mean))

    def observe(state: State, action: Array, rewards: Array) -> State:
        queried = action < size
        is_round = jnp.any(queried)
        row_number = jnp.where(is_round, state.t, horizon)

        def learn(posterior: Posterior, stored: Array, query: Array, reward: Array) -> tuple[Posterior, Array]:
            column = covariance.columns(stored, query[None], state.t[None])[0, 0]
            posterior, row = condition(posterior, column, query, reward, settings.noise_variance)
            return posterior, covariance.append(stored, row[None], row_number)

        posterior, stored = jax.vmap(learn)(state.posterior, state.memory, action, rewards)
        return State(
            pulls=state.pulls + jnp.sum(queried, dtype=state.pulls.dtype),
            traffic=state.traffic,
            t=state.t + is_round.astype(jnp.int32),
            posterior=posterior,
            memory=stored,
        )

    return Algorithm(
        init,
        decide,
        observe,
        jnp.full(n_agents, size, jnp.int32),
        **made_for(settings),
    )
