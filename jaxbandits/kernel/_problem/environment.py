"""The environment that answers the agents' queries."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Environment, Key, memoryless
from jaxbandits.checks import require
from jaxbandits.kernel._problem.instances import Instance, check_instance
from jaxbandits.kernel._problem.settings import Settings
from jaxbandits.numerics.normal import normal_noise
from jaxbandits.queries import form_of
from jaxbandits.streams import key_of


def environment(
    instance: Instance, algorithm: Algorithm | Array | None = None, *, stream: Key | None = None
) -> Environment:
    """Answers queries with f(a) and independent Gaussian noise, one reward for each agent.

    Args:
        instance: the truth.
        algorithm: the algorithm that will query, whose actions say the number N of agents. If None, there is one. An
            action, int (N,), stands for an algorithm of your own.
        stream: a key. If None, noise is fresh in every round. With a key, the noise of agent i in its round t is a
            function of (stream, i, t) alone, whatever it queries.

    Returns:
        Environment. An action is int32 (N,), the candidate of each agent; the observation is float (N,); the noise is
        standard normal, (N,), or nothing with a stream. Its memory is (), with a stream the number of rounds with a
        query, int32 ().

    Raises:
        ValueError: `instance` is no Instance or holds a NaN, the algorithm makes other actions, or `stream` is no key.
    """
    check_instance(instance)
    idle, _ = form_of(algorithm, jnp.zeros(1, jnp.int32))
    n_agents = checks.array("algorithm", idle, ("N",), kind="int").size
    dtype, M = instance.values.dtype, instance.values.shape[0]
    said: dict[str, Any] = {"problem": lambda: {"candidates": instance.candidates, "n_agents": n_agents}}
    said["accepts"] = lambda action: jnp.all((action >= 0) & (action <= M))
    said["pulls"] = lambda action: jnp.sum(action < M)
    said["admits"] = lambda answer: (answer >= 0) & (answer < M)

    def respond(action: Array, noise: Array) -> Array:
        queries = jnp.shape(action)
        expected = f"have shape {(n_agents,)}, as the environment was made"
        require(
            queries == (n_agents,), "action", expected, queries, advice="Write kernel.environment(instance, algorithm)"
        )
        checks.domain(action, said["accepts"], f"name candidates of 0..{M - 1}, or {M} for no query")
        return instance.values.at[action].get(mode="clip") + instance.noise_scale * noise

    if stream is None:
        return memoryless(lambda key: normal_noise(key, (n_agents,), dtype), respond)._replace(**said)
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
