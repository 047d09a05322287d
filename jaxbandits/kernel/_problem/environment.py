"""Who answers the agents."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Environment, Key, memoryless
from jaxbandits.checks import require
from jaxbandits.kernel._problem.instances import Instance, check_instance
from jaxbandits.kernel._problem.settings import Settings
from jaxbandits.streams import key_of


def environment(instance: Instance, *, n_agents: int, stream: Key | None = None) -> Environment:
    """Rewards f(a) with independent Gaussian noise, one for every agent.

    Args:
        instance: the truth.
        n_agents: N, as the algorithm has it; 1 for a single learner.
        stream: None for fresh noise in every round. With a key, the noise of agent i in its round t is a function of
            (stream, i, t) and nothing else, whatever it queries.

    Returns:
        Environment. An action is int32 (N,), the candidate of each agent; the observation is float (N,); the noise is
        standard normal, (N,), or nothing with a stream. Its memory is (), with a stream the number of rounds with a
        query, int32 ().

    Raises:
        ValueError: `instance` is no Instance or holds a NaN, `n_agents` is below 1, or `stream` is no key.
    """
    check_instance(instance)
    n_agents = checks.whole("n_agents", n_agents, least=1)
    dtype, M = instance.values.dtype, instance.values.shape[0]
    said: dict[str, Any] = {"problem": lambda: {"candidates": instance.candidates, "n_agents": n_agents}}
    said["accepts"] = lambda action: jnp.all((action >= 0) & (action <= M))
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
        return memoryless(lambda key: jax.random.normal(key, (n_agents,), dtype), respond)._replace(**said)
    checks.key("stream", stream)

    def respond_stream(t: Array, action: Array, noise: tuple[()]) -> tuple[Array, Array]:
        del noise
        normal = jax.vmap(lambda agent: jax.random.normal(key_of(stream, agent, t), (), dtype))
        is_query = jnp.any(action < M)
        return respond(action, normal(jnp.arange(n_agents))), t + is_query.astype(t.dtype)

    return Environment(lambda key: jnp.zeros((), jnp.int32), lambda key: (), respond_stream, stream, **said)


def made_for(settings: Settings) -> dict[str, Any]:
    """Returns the fields `problem` and `receive` of an algorithm with these settings."""
    candidates, n_agents = settings.candidates, settings.n_agents

    def receive(action: Array, rewards: Any) -> Array:
        del action
        return checks.numbers("observation", rewards, (n_agents,), candidates.dtype)

    return {"problem": lambda: {"candidates": candidates, "n_agents": n_agents}, "receive": receive}
