"""DUETS: uniform sampling with shared randomness, and elimination (Pavlovic, Salgia, Zhao, 2024)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kernel._problem.environment import made_for
from jaxbandits.kernel._problem.settings import Coins, Settings, picked, round_coins
from jaxbandits.kernel._shared.duets_server import synchronise
from jaxbandits.kernel._shared.duets_settings import P0, Elimination, Probability, duets_settings, thinning_coins
from jaxbandits.kernel._shared.traffic import Traffic, no_traffic
from jaxbandits.numerics.gp import Kernel


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


def duets(
    candidates: Array,
    *,
    kernel: Kernel,
    n_agents: int,
    horizon: int,
    beta: Array | float,
    noise_variance: Array | float,
    epochs: int | tuple[int, ...] | None = None,
    inducing_rate: Array | float | Probability = P0,
    elimination: Elimination = "uniform",
    jitter: Array | float | None = None,
    gram: Array | None = None,
    coins: Coins | None = None,
) -> Algorithm:
    """Agents that share their coins draw uniformly from the active candidates; after each epoch the server trims these.

    The server can reproduce every draw, so it knows where the agents were before they send anything. It takes some of
    the draws for inducing points, more of them where the largest posterior standard deviation sigma_max is large, and
    broadcasts them; each agent sends its rewards projected on them; the server broadcasts the sum, solved. Everybody
    then knows the same sparse posterior mean, and drops the candidates whose mean lies more than 2 beta sigma_max
    below the best one. Nothing is remembered from earlier epochs, and nothing is sent after the last.

    Args:
        candidates, kernel, n_agents, horizon, noise_variance, gram: as in `Settings`.
        beta: width of the confidence intervals in standard deviations, () >= 0.
        epochs: rounds of the first epoch, in [1, T], from which the others follow by `epoch_lengths`; or a tuple of the
            rounds of each epoch, summing to T. If None, the first has 2 rounds, or T if that is less.
        inducing_rate: p0, () > 0: a draw becomes an inducing point with probability min(1, p0 sigma_max^2). Or a
            function (sigma_max^2, number of draws) -> probability, clipped to [0, 1], such as `log_rate`.
        elimination: "uniform": by sigma_max, as above. "point": a candidate stays if its mean + beta sd reaches the
            largest mean - beta sd, with the sparse posterior's own standard deviations; this costs m^2 numbers more,
            for m inducing points.
        jitter: added to the diagonal of the inducing points' covariance, () >= 0; None: `default_jitter`.
        coins: replace the algorithm's randomness: `queries` and `thinning`.

    Returns:
        Algorithm with actions int32 (N,), a candidate for each agent, and answers int32 (): the maximiser of the last
        mean, and before the first synchronisation candidate 0.

    Raises:
        ValueError: an argument is not as above, or not as `Settings` says.

    **Guarantee** (Theorem 4.1, if p0 and beta are as large as the theorem asks): regret
    O~(sqrt(N T gamma_NT)) and communication O~(gamma_NT), gamma being the information gain. **Cost**: O(N) a round;
    O(n^2 (n + size of the active set)) a synchronisation, n = min(N rounds of the epoch, M). **float32** needs
    a jitter of 1e-6, which by itself changes the queries of 9 of 80 runs of the paper's Figure 1 (5 of 20 on Branin, 4
    of 20 on Hartmann). On a CPU one lane a batch is fastest (`sweep(lanes=1)`): a synchronisation works on some
    megabytes, which then stay in the cache.

    Source: Pavlovic, Salgia and Zhao (2024), Order-Optimal Regret in Distributed Kernel Bandits using Uniform Sampling
    with Shared Randomness, Algorithms 1 and 2.
    """
    settings = duets_settings(
        Settings(
            candidates=candidates,
            kernel=kernel,
            n_agents=n_agents,
            horizon=horizon,
            beta=beta,
            noise_variance=noise_variance,
            gram=gram,
            coins=coins,
        ),
        epochs=epochs,
        inducing_rate=inducing_rate,
        elimination=elimination,
        jitter=jitter,
    )
    common, lengths = settings.common, settings.epochs
    M, dtype = common.candidates.shape[0], common.candidates.dtype
    last = len(lengths) - 1
    ends = jnp.asarray([sum(lengths[: j + 1]) for j in range(last + 1)], jnp.int32)
    rounds = jnp.asarray(lengths, jnp.int32)
    capacity = max(lengths[:-1], default=1)
    columns = jnp.arange(capacity, dtype=jnp.int32)

    def init(key: Key) -> State:
        return State(
            pulls=jnp.zeros((), int),
            traffic=no_traffic(),
            traffic_draws=no_traffic(),
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
        action = state.active[picked(round_coins(common, key, state.t), state.size)]
        return Decision(action, state.t >= horizon, state.answer)

    def observe(state: State, action: Array, rewards: Array) -> State:
        queried = action < M
        # The draws of the last epoch are sent nowhere.
        is_kept = jnp.any(queried) & (state.epoch < last)
        column = jnp.where(is_kept, state.t - (ends[state.epoch] - rounds[state.epoch]), capacity)
        return state._replace(
            pulls=state.pulls + jnp.sum(queried),
            t=state.t + jnp.any(queried).astype(jnp.int32),
            indices=state.indices.at[:, column].set(action, mode="drop"),
            rewards=state.rewards.at[:, column].set(jnp.where(queried, rewards, 0), mode="drop"),
        )

    def stale(state: State) -> Array:
        return (state.epoch < last) & (state.t == ends[state.epoch])

    def plan(key: Key, state: State) -> State:
        del key
        # Sizes are 0 in a lane that is not due, so that no other lane waits for the candidates that it would look at.
        due = stale(state)
        first = ends[state.epoch] - rounds[state.epoch]
        result = synchronise(
            settings,
            indices=jnp.where((due & (columns < rounds[state.epoch]))[None], state.indices, M),
            rewards=state.rewards,
            thinning=thinning_coins(settings, state.seed, state.epoch, first, capacity),
            active=state.active,
            size=jnp.where(due, state.size, 0),
            n_draws=(n_agents * rounds[state.epoch]).astype(dtype),
        )
        sent = result.answer >= 0
        return state._replace(
            traffic=jax.tree.map(jnp.add, state.traffic, result.traffic),
            traffic_draws=jax.tree.map(jnp.add, state.traffic_draws, result.traffic_draws),
            epoch=state.epoch + 1,
            active=result.active,
            size=result.size,
            answer=jnp.where(sent, result.answer, state.answer),
            peak=jnp.where(sent, result.peak, state.peak),
            sigma_max=result.sigma_max,
        )

    idle = jnp.full((n_agents,), M, jnp.int32)
    if last == 0:
        return Algorithm(init, decide, observe, idle, needs_order=True, **made_for(common))
    return Algorithm(init, decide, observe, idle, plan=plan, stale=stale, needs_order=True, **made_for(common))
