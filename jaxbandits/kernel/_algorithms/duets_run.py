"""A second engine: whole runs of `duets` in their own loop, over epochs instead of rounds.

It measures regret and messages itself and receives the truth. Its decisions come from the server of `duets`.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Key
from jaxbandits.engine.run.round import noise_of, streams
from jaxbandits.kernel._problem.environment import environment
from jaxbandits.kernel._problem.instances import Instance, check_instance
from jaxbandits.kernel._problem.settings import Coins, Settings, picked, round_coins
from jaxbandits.kernel._shared.duets_server import synchronise
from jaxbandits.kernel._shared.duets_settings import duets_settings, thinning_coins
from jaxbandits.kernel._shared.traffic import Traffic
from jaxbandits.numerics.gp import Kernel


class Run(NamedTuple):
    """A whole run of DUETS."""

    actions: Array  # int32 (T, N)
    regret: Array  # float (T,)      regret of all agents after each round
    traffic: Traffic  # int (T,)     after each round; a synchronisation belongs to the round before it
    traffic_draws: Traffic  # int (T,)
    sizes: Array  # int32 (J,)       active candidates in each epoch
    answer: Array  # int32 ()
    peak: Array  # float ()          NaN if a Cholesky factor failed, so that the run is void
    sigma_max: Array  # float ()


def duets_run(
    key: Key,
    instance: Instance,
    *,
    kernel: Kernel,
    n_agents: int,
    horizon: int,
    beta: Array | float,
    noise_variance: Array | float,
    gram: Array | None = None,
    coins: Coins | None = None,
    **rules: Any,
) -> Run:
    """Makes a whole run of `duets`, epoch by epoch: the same run as `jaxbandits.run` with the same key.

    Nothing that the agents draw within an epoch depends on its rewards, so an epoch is a few array operations, of just
    the size that it needs. `jax.vmap` and `jax.jit` stand outside.

    Args:
        key: the task's key.
        instance: the truth.
        kernel, n_agents, horizon, beta, noise_variance, gram, coins, **rules: as for `duets`.

    Returns:
        Run.

    Raises:
        ValueError: `instance` is no Instance or holds a NaN, or another argument is not as for `duets`.
        TypeError: `duets` has no such argument.
    """
    checks.key("key", key)
    check_instance(instance)
    common = Settings(
        candidates=instance.candidates,
        kernel=kernel,
        n_agents=n_agents,
        horizon=horizon,
        beta=beta,
        noise_variance=noise_variance,
        gram=gram,
        coins=coins,
    )
    settings = duets_settings(common, **rules)
    common = settings.common
    M, dtype = common.candidates.shape[0], common.candidates.dtype
    keys, answers = streams(key), environment(instance, jnp.full(common.n_agents, M, jnp.int32))
    seed = jax.random.bits(keys.init, (), jnp.uint32)
    rounds = jnp.arange(horizon, dtype=jnp.int32)
    noise = jax.vmap(lambda r: noise_of(answers, keys, r))(rounds)
    uniforms = jax.vmap(lambda r: round_coins(common, jax.random.fold_in(keys.decide, r), r))(rounds)

    active, size = jnp.arange(M, dtype=jnp.int32), jnp.full((), M, jnp.int32)
    answer, peak = jnp.zeros((), jnp.int32), jnp.zeros((), dtype)
    sigma_max = jnp.sqrt(jnp.max(settings.variances))
    actions, sizes, sent, first = [], [], [], 0
    for j, length in enumerate(settings.epochs):
        queries = active[picked(uniforms[first : first + length], size)]
        actions.append(queries)
        sizes.append(size)
        if j + 1 < len(settings.epochs):
            rewards, _ = jax.vmap(answers.respond, (None, 0, 0))((), queries, noise[first : first + length])
            result = synchronise(
                settings,
                indices=queries.T,
                rewards=rewards.T,
                thinning=thinning_coins(settings, seed, jnp.int32(j), jnp.int32(first), length),
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
    traffic = traffic_draws = Traffic(jnp.zeros(horizon, int), jnp.zeros(horizon, int))
    for after, numbers in sent:
        traffic, traffic_draws = jax.tree.map(
            lambda total, new, after=after: total.at[after - 1 :].add(new), (traffic, traffic_draws), numbers
        )
    regret = jnp.cumsum(jnp.sum(instance.best - instance.values[actions], axis=1))
    return Run(
        actions=actions,
        regret=regret,
        traffic=traffic,
        traffic_draws=traffic_draws,
        sizes=jnp.stack(sizes),
        answer=answer,
        peak=peak,
        sigma_max=sigma_max,
    )
