"""A run read from outside: what its agents believe of the function."""

from typing import NamedTuple

from jaxbandits.base import Array, PyTree
from jaxbandits.checks import require


class Belief(NamedTuple):
    """Posterior means and variances of f on the candidates."""

    mean: Array  # float (M,), or (N, M) for agents of which each has its own
    variance: Array  # float, as `mean`


def belief(state: PyTree) -> Belief:
    """Reads the posterior of a state; mean +- beta sqrt(variance) is its confidence band.

    Args:
        state: of one lane, of `gp_ucb`, `n_kernel_ucb`, `dis_kernel_ucb`, `approx_dis_kernel_ucb` or `bpe`, such as
            `outcome.state`.

    Returns:
        Belief: of each agent with all that it knows, shared or its own; for `bpe` of the present batch (of all data
        with `keep_data`).

    Raises:
        ValueError: `state` is of another kind. `duets` keeps no posterior between its synchronisations, only the
            candidates that are left: `state.active[:state.size]`.

    Example:
        >>> import jax, jaxbandits
        >>> from jaxbandits import kernel
        >>> instance = kernel.branin(jax.random.key(0), size=50)
        >>> settings = {"kernel": kernel.paper_kernel("branin"), "horizon": 10, "beta": 2.0, "noise_variance": 0.04}
        >>> algorithm = kernel.gp_ucb(instance.candidates, **settings)
        >>> environment = kernel.environment(instance, algorithm)
        >>> outcome = jaxbandits.run(jax.random.key(1), algorithm, environment, max_rounds=11)
        >>> posterior = kernel.belief(outcome.state)
        >>> print(posterior.mean.shape, (posterior.variance <= 1).all())
        (1, 50) True
    """
    if (posterior := getattr(state, "posterior", None)) is not None:
        return Belief(posterior.mean, posterior.variance)
    expected = "be a state of this family that holds a posterior; a state of duets holds its active candidates"
    require(hasattr(state, "mean") and hasattr(state, "variance"), "state", expected, type(state).__name__)
    return Belief(state.mean, state.variance)
