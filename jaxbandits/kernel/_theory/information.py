"""Information that noisy observations give under a kernel.

gamma_n is the largest information of n observations about f, (1/2) log det(I + K / noise_variance), in nats.
"""

import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.kernel._problem.settings import check_noise_variance
from jaxbandits.numerics import gp
from jaxbandits.numerics.cholesky import cholesky


def information_gain(gram: Array, noise_variance: Array | float) -> Array:
    """Computes the information gain of observations at n points: (1/2) log det(I + K / noise_variance).

    Args:
        gram: K, float (n, n), with one row for every observation, repeats included.
        noise_variance: () > 0.

    Returns:
        float (), in nats. Cost: O(n^3).

    Raises:
        ValueError: `gram` is not square or not finite, or `noise_variance` is not positive.

    Source: Srinivas, Krause, Kakade and Seeger (2010); Pavlovic, Salgia and Zhao (2024), Section 2.
    """
    gram = checks.array("gram", gram, ("n", "n"))
    return gp.information_gain(gram, checks.positive("noise_variance", noise_variance))


def greedy_information_gain(candidates: Array, kernel: gp.Kernel, noise_variance: Array | float, n: int) -> Array:
    """Computes the information gain of 1, 2, .., n observations, each where the variance is largest.

    Args:
        candidates: float (M, d).
        kernel: function of two points, as in `Settings`.
        noise_variance: () > 0, not too small, as in `Settings`.
        n: observations; a candidate may be observed again.

    Returns:
        float (n,), in nats: increasing, by less and less, and at least 1 - 1/e of gamma_1, .., gamma_n.
        Cost: O(n^2 M), and memory for n M numbers.

    Raises:
        ValueError: an argument is out of range.

    Source: Krause, Singh and Guestrin (2008); Srinivas, Krause, Kakade and Seeger (2010), Section 5.
    """
    candidates = checks.array("candidates", candidates, ("M", "d"))
    gp.check_kernel(kernel)
    n = checks.whole("n", n, least=1)
    check_noise_variance(candidates, kernel, noise_variance)
    noise_variance = jnp.asarray(noise_variance, candidates.dtype)
    reward = jnp.zeros((), candidates.dtype)

    def observe(carry: tuple[gp.Posterior, Array], i: Array) -> tuple[tuple[gp.Posterior, Array], Array]:
        posterior, rows = carry
        a = jnp.argmax(posterior.variance)
        column = gp.cross(kernel, candidates, candidates[a][None])[:, 0] - gp.explained(rows, rows[:, a])
        posterior, row = gp.condition(posterior, column, a, reward, noise_variance)
        return (posterior, rows.at[i].set(row)), posterior.log_det / 2

    rows = jnp.zeros((n, candidates.shape[0]), candidates.dtype)
    _, gains = lax.scan(observe, (gp.prior(kernel, candidates), rows), jnp.arange(n))
    return gains


def effective_dimension(gram: Array, noise_variance: Array | float) -> Array:
    """Computes tr(K (K + noise_variance I)^-1), at most twice the information gain.

    Other arguments and errors: see `information_gain`.

    Returns:
        float (). Cost: O(n^3).

    Source: Calandriello, Carratino, Lazaric, Valko and Rosasco (2019).
    """
    gram = checks.array("gram", gram, ("n", "n"))
    noise_variance = jnp.asarray(checks.positive("noise_variance", noise_variance), gram.dtype)
    factor = cholesky(gram + noise_variance * jnp.eye(gram.shape[0], dtype=gram.dtype))
    return jnp.trace(gp.solve_spd(factor, gram))


def information_gain_order(n: Array | float, *, dimension: int, nu: float | None = None) -> Array:
    """Computes the order of gamma_n: log^(d+1) n, or for Matern kernels n^(d / (2 nu + d)), up to logarithms.

    Args:
        n: observations, () or more, each at least 1.
        dimension: d.
        nu: smoothness of a Matern kernel, () > 0; None: the squared exponential.

    Returns:
        float, shaped as `n`.

    Raises:
        ValueError: an argument is out of range.

    Source: Vakili, Khezeli and Picheny (2021).
    """
    n = jnp.asarray(checks.array("n", n, ("...",), least=1), jnp.result_type(float))
    dimension = checks.whole("dimension", dimension, least=1)
    if nu is None:
        return jnp.log(n) ** (dimension + 1)
    return n ** (dimension / (2 * checks.positive("nu", nu) + dimension))
