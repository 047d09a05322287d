"""The messages of one synchronisation of DUETS after the inducing points are known: from an agent, and the answer."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.numerics.cholesky import Factor
from jaxbandits.numerics.gp import feature_gram, solve_spd


def agent_message(features: Array, rewards: Array) -> Array:
    """Computes the message of an agent of DUETS to the server: v = sum_i z(x_i) y_i, its rewards at inducing points.

    The features of a candidate x are z(x) = L^-1 k_S(x). Here k_S(x) holds the kernel of x with each inducing point,
    and L is the Cholesky factor of their own covariance, K_SS + jitter I. The message is linear: the sum of the
    messages of all agents is the message of their pooled draws.

    Args:
        features: float (m, n), z(x_i) in column i, for m inducing points and n draws of this agent in this epoch.
        rewards: float (n,), y_i, in units of f. They become numbers of the features' dtype.

    Returns:
        float (m,): the m numbers that the agent sends.

    Raises:
        ValueError: an argument is not an array of real numbers of this shape.

    Cost: O(m n).

    Source: Pavlovic, Salgia and Zhao (2024), Algorithm 1, line 14, with z(x) from the symmetric root of K_SS. The
    posterior mean is the same with any root.

    Example:
        >>> import numpy as np
        >>> from jaxbandits import kernel
        >>> features = np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])  # of three draws, by two inducing points
        >>> message = kernel.agent_message(features, np.array([2.0, 1.0, -1.0]))
        >>> print(message.tolist())
        [2.5, -0.5]
        >>> print(kernel.server_message(features, message, noise_variance=0.75).round(4).tolist())
        [1.3016, -0.4127]
    """
    features = checks.array("features", features, ("m", "n"), nan=True)
    rewards = checks.array("rewards", rewards, features.shape[1:], dtype=features.dtype, nan=True)
    return jnp.matmul(features, rewards, precision="highest")


def server_message(
    features: Array, total: Array, *, noise_variance: Array | float, counts: Array | None = None
) -> Array:
    """Computes what the server of DUETS broadcasts: vbar = (noise_variance I + Z Z')^-1 sum_n v_n.

    Everybody then knows the posterior mean z(x)' vbar of every candidate x. The server also broadcasts the largest
    standard deviation of an active candidate.

    Args:
        features: Z, float (m, n), the features of the draws of all agents in this epoch; see `agent_message`. The
            server can compute them, because it knows the agents' coins.
        total: float (m,), the sum of the agents' messages.
        noise_variance: of the Gaussian process, () > 0, in squared units of f.
        counts: int (n,) >= 0, draws that each column stands for. If None, each stands for one.

    Returns:
        float (m,). It is NaN where a Cholesky factor fails.

    Raises:
        ValueError: an argument is not an array of real numbers of this shape, or is out of range.

    Cost: O(m^2 n + m^3).

    Source: Pavlovic, Salgia and Zhao (2024), equation (8), and Algorithm 2, line 10, which prints the draws of agent n
    for the draws of all agents.

    Example: see `agent_message`.
    """
    features = checks.array("features", features, ("m", "n"), nan=True)
    m, n = features.shape
    total = checks.array("total", total, (m,), dtype=features.dtype, nan=True)
    checks.positive("noise_variance", noise_variance)
    if counts is None:
        counts = jnp.ones(n, features.dtype)
    else:
        counts = checks.array("counts", counts, (n,), kind="int", least=0)
    return aggregated(features, counts, total, noise_variance=noise_variance, live=jnp.asarray(m, jnp.int32))[0]


def aggregated(
    features: Array, counts: Array, total: Array, *, noise_variance: Array | float, live: Array
) -> tuple[Array, Factor]:
    """Computes `server_message` and the factor of its matrix, for the `live` leading inducing points."""
    factor = feature_gram(features, counts, noise_variance=noise_variance, live=live)
    return solve_spd(factor, total), factor
