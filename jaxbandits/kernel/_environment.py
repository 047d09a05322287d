"""Who answers the agents."""

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Environment, Key
from jaxbandits.kernel._instances import Instance, check_instance
from jaxbandits.numbering import Numbered, key_of, opened


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
    dtype = instance.values.dtype

    def respond(action: Array, noise: Array) -> Array:
        return instance.values.at[action].get(mode="clip") + instance.noise_scale * noise

    if stream is None:
        return Environment(lambda key: jax.random.normal(key, (n_agents,), dtype), respond)
    checks.key("stream", stream)

    def respond_stream(action: Numbered, noise: tuple[()]) -> Array:
        del noise
        queries, t = opened(action)
        normal = jax.vmap(lambda agent: jax.random.normal(key_of(stream, agent, t), (), dtype))
        return respond(queries, normal(jnp.arange(n_agents)))

    return Environment(lambda key: (), respond_stream, stream)
