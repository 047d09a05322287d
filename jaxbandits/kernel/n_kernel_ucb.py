"""N-KernelUCB: agents that learn alone, each by GP-UCB (Srinivas, Krause, Kakade, Seeger, 2010)."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kernel.problem import Draws, Traffic, check_run, round_coins
from jaxbandits.kernel.ucb import best, beta_at, index, memory, queries
from jaxbandits.numerics.gp import Kernel, Posterior, condition, prior

Width = Callable[[Array, Array], Array]  # (t int (), log_det ()) -> beta (), for the query after t observed rounds


class State(NamedTuple):
    """What each agent knows of f."""

    pulls: Array  # int ()
    traffic: Traffic  # none
    t: Array  # int32 ()  rounds observed
    posterior: Posterior  # float (N, M), (N, M), (N,)
    kept: Array  # float (N, T, M), or (N, M, M) if T > M  the covariances, see `memory`


def n_kernel_ucb(
    candidates: Array,
    *,
    kernel: Kernel,
    n_agents: int,
    horizon: int,
    beta: Array | float,
    ridge: Array | float,
    draws: Draws | None = None,
    gram: Array | None = None,
) -> Algorithm:
    """Every agent asks the candidate with the largest mean + beta sd given its own rewards, and tells nobody.

    Args:
        candidates: float (M, d); the run has their dtype.
        kernel: of a single pair of points.
        n_agents: N.
        horizon: T, rounds.
        beta: width of the index, in standard deviations, >= 0: () or, one a round, (T,).
        ridge: variance of the noise, () > 0.
        draws: replaces the algorithm's randomness: agent n's first query is the candidate that coins[n, 0] picks.
        gram: float (M, M), the kernel of all pairs, or None: columns are taken from it instead of computed.

    Returns:
        Algorithm with actions and answers int32 (N,): each agent's query, and the maximiser of its mean.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee**: the regret of one agent alone, N times. **Cost**: O(N M min(T, M)) a round, nothing is sent.

    Source: the baseline of Pavlovic, Salgia and Zhao (2024), Section 5.
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
    beta = jnp.asarray(beta, candidates.dtype)
    return loners(
        candidates,
        kernel=kernel,
        n_agents=n_agents,
        horizon=horizon,
        width=lambda t, log_det: beta_at(beta, t),
        ridge=ridge,
        draws=draws,
        gram=gram,
    )


def loners(
    candidates: Array,
    *,
    kernel: Kernel,
    n_agents: int,
    horizon: int,
    width: Width,
    ridge: Array | float,
    draws: Draws | None,
    gram: Array | None,
) -> Algorithm:
    """`n_kernel_ucb`, its arguments checked, with a width that may depend on what the agent has seen."""
    dtype, size = candidates.dtype, candidates.shape[0]
    covariance = memory(kernel, candidates, horizon, gram)
    nothing_known = prior(kernel, candidates)

    def init(key: Key) -> State:
        del key
        posterior, kept = jax.tree.map(
            lambda x: jnp.broadcast_to(x, (n_agents, *x.shape)), (nothing_known, covariance.start)
        )
        nothing = jnp.zeros((), int)
        return State(nothing, Traffic(nothing, nothing), jnp.zeros((), jnp.int32), posterior, kept)

    def decide(key: Key, state: State) -> Decision:
        indices = jax.vmap(lambda p: index(p.mean, p.variance, width(state.t, p.log_det)))(state.posterior)
        coins = round_coins(key, draws, state.t, n_agents, dtype)
        return Decision(queries(indices, coins, state.t), state.t >= horizon, best(state.posterior.mean))

    def observe(state: State, action: Array, rewards: Array) -> State:
        asked = action < size
        anyone = jnp.any(asked)
        place = jnp.where(anyone, state.t, horizon)

        def learn(posterior: Posterior, kept: Array, query: Array, reward: Array) -> tuple[Posterior, Array]:
            column = covariance.columns(kept, query[None], state.t[None])[0, 0]
            posterior, row = condition(posterior, column, query, reward, ridge)
            return posterior, covariance.append(kept, row[None], place)

        posterior, kept = jax.vmap(learn)(state.posterior, state.kept, action, rewards)
        return State(
            pulls=state.pulls + jnp.sum(asked, dtype=state.pulls.dtype),
            traffic=state.traffic,
            t=state.t + anyone.astype(jnp.int32),
            posterior=posterior,
            kept=kept,
        )

    idle = jnp.full(n_agents, size, jnp.int32)
    return Algorithm(init, decide, observe, idle)
