"""Who answers the agents."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Environment, Key
from jaxbandits.checks import require
from jaxbandits.kernel._problem.instances import Instance, check_instance
from jaxbandits.kernel._problem.settings import Settings
from jaxbandits.streams import Numbered, key_of, opened, plain


def environment(instance: Instance, *, n_agents: int, stream: Key | None = None) -> Environment:
    """Rewards f(a) with independent Gaussian noise, one for every agent.

    Args:
        instance: the truth.
        n_agents: N, as the algorithm has it; 1 for a single learner.
        stream: None for fresh noise in every round. With a key, the noise of agent i in its round t is a function of
            (stream, i, t) and nothing else, whatever it queries. Actions must be `numbered`.

    Returns:
        Environment. An action is int32 (N,), the candidate of each agent; the observation is float (N,); the noise is
        standard normal, (N,), or nothing with a stream.

    Raises:
        ValueError: `instance` is no Instance or holds a NaN, `n_agents` is below 1, or `stream` is no key.
    """
    check_instance(instance)
    n_agents = checks.whole("n_agents", n_agents, least=1)
    dtype, M = instance.values.dtype, instance.values.shape[0]
    said: dict[str, Any] = {"problem": lambda: {"candidates": instance.candidates, "n_agents": n_agents}}
    said["accepts"] = lambda action: jnp.all((plain(action) >= 0) & (plain(action) <= M))
    said["admits"] = lambda answer: (answer >= 0) & (answer < M)

    def respond(action: Array, noise: Array) -> Array:
        queries = jnp.shape(action)
        require(
            queries == (n_agents,),
            "n_agents",
            f"match the algorithm's actions, of shape {queries}",
            n_agents,
        )
        checks.domain(action, said["accepts"], f"name candidates of 0..{M - 1}, or {M} for no query")
        return instance.values.at[action].get(mode="clip") + instance.noise_scale * noise

    if stream is None:
        return Environment(lambda key: jax.random.normal(key, (n_agents,), dtype), respond, **said)
    checks.key("stream", stream)

    def respond_stream(action: Numbered, noise: tuple[()]) -> Array:
        del noise
        queries, t = opened(action)
        normal = jax.vmap(lambda agent: jax.random.normal(key_of(stream, agent, t), (), dtype))
        return respond(queries, normal(jnp.arange(n_agents)))

    return Environment(lambda key: (), respond_stream, stream, **said)


def made_for(settings: Settings) -> dict[str, Any]:
    """Returns the fields `problem` and `receive` of an algorithm with these settings."""
    candidates, n_agents = settings.candidates, settings.n_agents

    def receive(action: Array, rewards: Any) -> Array:
        del action
        return checks.numbers("observation", rewards, (n_agents,), candidates.dtype)

    return {"problem": lambda: {"candidates": candidates, "n_agents": n_agents}, "receive": receive}
