"""Problems, the number of arms and the kind of their rewards, and the functions that depend on that kind."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array, Key, static_fields
from jaxbandits.checks import require
from jaxbandits.numerics import kl
from jaxbandits.numerics.beta import beta
from jaxbandits.numerics.linalg import aligned
from jaxbandits.numerics.normal import normal, normals_and_uniforms


@static_fields("arms", "noise_scale", "dtype")
class Gaussian(NamedTuple):
    """Normal rewards of known variance. `arms` is the number of arms.

    All fields are static: JAX sees no arrays in it.
    """

    arms: int  # K, at least 2
    noise_scale: float = 1.0  # standard deviation of a reward, in units of reward
    dtype: Any = None  # dtype of the run; if None, JAX's default float


@static_fields("arms", "dtype")
class Bernoulli(NamedTuple):
    """Rewards 0 or 1. `arms` is the number of arms. All fields are static: JAX sees no arrays in it."""

    arms: int  # K, at least 2
    dtype: Any = None  # dtype of the run; if None, JAX's default float


Problem = Gaussian | Bernoulli


def check_problem(problem: Any, name: str = "problem") -> None:
    """Raises `ValueError` unless it is a problem, and its fields are what their comments say."""
    checks.instance(name, problem, (Gaussian, Bernoulli))
    checks.whole(f"{name}.arms", problem.arms, least=2)
    if isinstance(problem, Gaussian):
        check_noise_scale(f"{name}.noise_scale", problem.noise_scale)
    checks.float_dtype(f"{name}.dtype", problem.dtype)


def check_noise_scale(name: str, noise_scale: Any) -> None:
    """Raises `ValueError` unless the noise scale is a positive number that may be static."""
    checks.positive(name, noise_scale)
    is_static = not isinstance(noise_scale, (jax.Array, np.ndarray))
    require(is_static, name, "be a Python number, which is known before tracing", noise_scale)


def checked_means(name: str, problem: Problem, means: Any) -> Array:
    """Returns the means as an array of the problem's dtype; raises `ValueError` unless its arms can have them."""
    shape, dtype = (problem.arms,), float_dtype(problem)
    if isinstance(problem, Gaussian):
        return checks.array(name, means, shape, dtype=dtype)
    return checks.array(name, means, shape, dtype=dtype, least=0, most=1)


def float_dtype(problem: Problem) -> Any:
    """Returns the dtype of a run."""
    return checks.float_dtype("problem.dtype", problem.dtype)


def scale(problem: Problem) -> float:
    """Returns the sub-Gaussian constant of a reward, in units of reward."""
    return float(problem.noise_scale) if isinstance(problem, Gaussian) else 0.5


def divergence(problem: Problem, p: Array, q: Array) -> Array:
    """Computes the relative entropy of a reward of mean p with respect to a reward of mean q.

    Args:
        problem: kind of the rewards.
        p: float (...), means.
        q: float (...), means, of p's dtype.

    Returns:
        float (...).
    """
    if isinstance(problem, Gaussian):
        return (p - q) ** 2 / (2 * scale(problem) ** 2)
    return kl.bernoulli_kl(p, q)


def bounds(problem: Problem, mean: Array, c: Array) -> tuple[Array, Array]:
    """Computes the interval of means q with divergence(mean, q) <= c, as (upper, lower).

    Args:
        problem: kind of the rewards.
        mean: float (...).
        c: float (...), at least 0, of the means' dtype.

    Returns:
        float (...), twice.
    """
    if isinstance(problem, Gaussian):
        radius = scale(problem) * jnp.sqrt(2 * c)
        return mean + radius, mean - radius
    return kl.kl_bounds(mean, c)


def upper_bound(problem: Problem, mean: Array, c: Array) -> Array:
    """Computes the first of `bounds`."""
    if isinstance(problem, Gaussian):
        return mean + scale(problem) * jnp.sqrt(2 * c)
    return kl.kl_upper(mean, c)


def bound(problem: Problem, mean: Array, c: Array, is_upper: Array) -> Array:
    """Computes the first of `bounds` where `is_upper`, otherwise the second, at the cost of one."""
    if isinstance(problem, Gaussian):
        radius = scale(problem) * jnp.sqrt(2 * c)
        return mean + jnp.where(is_upper, radius, -radius)
    return kl.kl_bound(mean, c, is_upper)


def posterior_draws(problem: Problem, key: Key, counts: Array, means: Array, number: int | None = None) -> Array:
    """Draws the means of all arms from their posterior under a flat prior.

    Args:
        problem: kind of the rewards.
        key: the key.
        counts: float (K,), pulls of every arm, at least 1.
        means: float (K,), their empirical means.
        number: number of draws. If None, one draw without an axis of its own.

    Returns:
        float (K,) or (number, K): Normal(mean, noise_scale^2 / count), or Beta(1 + ones, 1 + zeros). A Beta variable
        costs 6 uniforms, a normal one 1.
    """
    shape = counts.shape if number is None else (number, *counts.shape)
    if isinstance(problem, Gaussian):
        mean, spread = (aligned(x, len(shape)) for x in (means, scale(problem) / jnp.sqrt(counts)))
        return mean + spread * normal(key, shape, means.dtype)
    ones = jnp.round(means * counts)
    return beta(key, jnp.broadcast_to(1 + ones, shape), jnp.broadcast_to(1 + counts - ones, shape))


def posterior_draw_and_uniforms(
    problem: Problem, key: Key, counts: Array, means: Array, number: int
) -> tuple[Array, Array]:
    """Draws means as `posterior_draws` does, and independent uniform variables, float (number,), in [0, 1)."""
    if isinstance(problem, Gaussian):
        normals, uniforms = normals_and_uniforms(key, problem.arms, number, means.dtype)
        return means + scale(problem) / jnp.sqrt(counts) * normals, uniforms
    of_draw, of_uniforms = jax.random.split(key)
    return posterior_draws(problem, of_draw, counts, means), jax.random.uniform(of_uniforms, (number,), means.dtype)
