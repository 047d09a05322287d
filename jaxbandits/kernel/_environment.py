"""Who answers the agents."""

import jax

from jaxbandits import checks
from jaxbandits.base import Array, Environment
from jaxbandits.kernel._instances import Instance, check_instance


def environment(instance: Instance, *, n_agents: int) -> Environment:
    """Rewards f(a) with independent Gaussian noise, one for every agent.

    Args:
        instance: the truth.
        n_agents: N, as the algorithm has it; 1 for a single learner.

    Returns:
        Environment. An action is int32 (N,), the candidate of each agent; the observation is float (N,); the noise is
        standard normal, (N,).

    Raises:
        ValueError: `instance` is no Instance or holds a NaN, or `n_agents` is below 1.
    """
    check_instance(instance)
    n_agents = checks.whole("n_agents", n_agents, least=1)

    def respond(action: Array, noise: Array) -> Array:
        return instance.values.at[action].get(mode="clip") + instance.noise_scale * noise

    return Environment(lambda key: jax.random.normal(key, (n_agents,), instance.values.dtype), respond)
