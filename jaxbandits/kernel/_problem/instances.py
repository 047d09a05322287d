"""Instances of the family: functions on finite sets of candidates, and the kernels that the paper models them by.

The reward of candidate a is f(a) plus Gaussian noise.
"""

import functools
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Key
from jaxbandits.numerics.gp import Kernel, SquaredExponential, check_kernel, cross

Domain = Literal["ball", "sphere"]
CENTERS = 20  # centers of a random function of known norm
# Lengthscales of the paper's squared exponential kernels.
LENGTHSCALES = {"h1": 1.0, "h2": 1.0, "branin": 0.2, "hartmann4": 1.0}

# Picheny, Wagner and Ginsbourger (2013). P[2, 1] is .1451: the often quoted maximum, 3.135474, belongs to .1415.
HARTMANN_C = (1.0, 1.2, 3.0, 3.2)
HARTMANN_A = ((10.0, 3.0, 17.0, 3.5), (0.05, 10.0, 17.0, 0.1), (3.0, 3.5, 1.7, 10.0), (17.0, 8.0, 0.05, 10.0))
HARTMANN_P = (
    (0.1312, 0.1696, 0.5569, 0.0124),
    (0.2329, 0.4135, 0.8307, 0.3736),
    (0.2348, 0.1451, 0.3522, 0.2883),
    (0.4047, 0.8828, 0.8732, 0.5743),
)


class Instance(NamedTuple):
    """The truth: a function's values on the candidates, which no factory receives."""

    candidates: Array  # float (M, d)
    values: Array  # float (M,)
    noise_scale: Array  # float ()  standard deviation of a reward

    @property
    def best(self) -> Array:
        """Returns the largest value, float ()."""
        return jnp.max(self.values)


def h1(
    key: Key,
    *,
    size: int = 1000,
    dimension: int = 10,
    domain: Domain = "ball",
    noise_scale: Array | float = 0.2,
    dtype: Any = None,
) -> Instance:
    """Draws cos(3 u) with u = x'theta, theta uniform on the sphere: its maximum, 1, is the whole slice u = 0.

    Args:
        key: for candidates and theta.
        size: M, candidates.
        dimension: d.
        domain: "ball": candidates are uniform in the unit ball; "sphere": on it.
        noise_scale: standard deviation of a reward, () >= 0.
        dtype: of the run; None: JAX's default float type.

    Returns:
        Instance. Its length scale is 1.

    Raises:
        ValueError: an argument is out of range.

    Source: Pavlovic, Salgia and Zhao (2024), Section 5.
    """
    dtype = _checked_dtype(key, size, dimension, noise_scale, dtype)
    u, candidates = _ridge_function(key, size, dimension, domain, dtype)
    return tabular(candidates, jnp.cos(3 * u), noise_scale=noise_scale)


def h2(
    key: Key,
    *,
    size: int = 1000,
    dimension: int = 10,
    domain: Domain = "ball",
    noise_scale: Array | float = 0.2,
    dtype: Any = None,
) -> Instance:
    """Draws u^3 - 3 u^2 + 3 u + 3 with u = x'theta: increasing in u, with mean 2.75, unknown to the prior.

    Arguments, result, errors and source as for `h1`.
    """
    dtype = _checked_dtype(key, size, dimension, noise_scale, dtype)
    u, candidates = _ridge_function(key, size, dimension, domain, dtype)
    return tabular(candidates, u**3 - 3 * u**2 + 3 * u + 3, noise_scale=noise_scale)


def branin(key: Key, *, size: int = 1000, noise_scale: Array | float = 0.2, dtype: Any = None) -> Instance:
    """Branin's function, standardised and with its sign flipped, on uniform candidates of the unit square.

    Its length scale is 0.2; the maximum on the square is 1.0473938911. Arguments, result and errors as for `h1`.

    Source: Picheny, Wagner and Ginsbourger (2013); Pavlovic, Salgia and Zhao (2024), Section 5.
    """
    dtype = _checked_dtype(key, size, 2, noise_scale, dtype)
    candidates = jax.random.uniform(key, (size, 2), dtype)
    return tabular(candidates, jax.vmap(branin_value)(candidates), noise_scale=noise_scale)


def hartmann4(key: Key, *, size: int = 1000, noise_scale: Array | float = 0.2, dtype: Any = None) -> Instance:
    """Hartmann's function of four variables, standardised and with its sign flipped, on uniform candidates of the cube.

    Its length scale is 1; the maximum on the cube is 3.1344941. Arguments, result, errors and source as for `branin`.
    """
    dtype = _checked_dtype(key, size, 4, noise_scale, dtype)
    candidates = jax.random.uniform(key, (size, 4), dtype)
    return tabular(candidates, jax.vmap(hartmann4_value)(candidates), noise_scale=noise_scale)


def rkhs(
    key: Key,
    *,
    kernel: Kernel,
    dimension: int,
    norm: Array | float = 1.0,
    size: int = 1000,
    noise_scale: Array | float = 0.2,
    dtype: Any = None,
) -> Instance:
    """Draws sum_i a_i k(., u_i), whose norm in the kernel's space is known, with 20 centers in the unit cube.

    Args:
        key: for the candidates, the centers and the coefficients.
        kernel: function of two points, as in `Settings`.
        dimension: d.
        norm: sqrt(a'Ka), () > 0.
        size: M, candidates, uniform in the unit cube.
        noise_scale: standard deviation of a reward, () >= 0.
        dtype: of the run; None: JAX's default float type.

    Returns:
        Instance.

    Raises:
        ValueError: an argument is out of range.
    """
    dtype = _checked_dtype(key, size, dimension, noise_scale, dtype)
    check_kernel(kernel)
    checks.positive("norm", norm)
    for_candidates, for_centers, for_weights = jax.random.split(key, 3)
    candidates = jax.random.uniform(for_candidates, (size, dimension), dtype)
    centers = jax.random.uniform(for_centers, (CENTERS, dimension), dtype)
    weights = jax.random.normal(for_weights, (CENTERS,), dtype)
    gram = cross(kernel, centers, centers)
    square = jnp.matmul(weights, jnp.matmul(gram, weights, precision="highest"), precision="highest")
    weights *= jnp.asarray(norm, dtype) / jnp.sqrt(square)
    values = jnp.matmul(cross(kernel, candidates, centers), weights, precision="highest")
    return tabular(candidates, values, noise_scale=noise_scale)


def tabular(candidates: Array, values: Array, *, noise_scale: Array | float) -> Instance:
    """Builds an instance from its table of values.

    Args:
        candidates: float (M, d).
        values: float (M,).
        noise_scale: standard deviation of a reward, () >= 0.

    Returns:
        Instance.

    Raises:
        ValueError: an argument has the wrong shape, is out of range, or holds a NaN or an infinity.
    """
    candidates = checks.array("candidates", candidates, ("M", "d"))
    values = checks.array("values", values, (candidates.shape[0],))
    checks.not_negative("noise_scale", noise_scale)
    dtype = candidates.dtype
    return Instance(candidates, jnp.asarray(values, dtype), jnp.asarray(noise_scale, dtype))


def regret(instance: Instance, answer: Array) -> Array:
    """Computes the simple regret of a recommended candidate, the largest value minus its own.

    Args:
        instance: the truth.
        answer: a candidate, int (), or several, as N-KernelUCB's agents recommend them, (N,).

    Returns:
        float, shaped as `answer`.

    Raises:
        ValueError: `instance` is no Instance or holds a NaN, or `answer` holds an integer outside of [0, M - 1].
    """
    check_instance(instance)
    answer = checks.array("answer", answer, ("...",), kind="int", least=0, most=instance.values.shape[0] - 1)
    return instance.best - instance.values.at[answer].get(mode="clip")


def paper_kernel(name: str) -> Kernel:
    """Builds the squared exponential kernel that the paper's experiments use for a function.

    Args:
        name: "h1", "h2", "branin" or "hartmann4".

    Returns:
        (x (d,), y (d,)) -> float ().

    Raises:
        ValueError: `name` is another one.
    """
    checks.one_of("name", name, tuple(LENGTHSCALES))
    return SquaredExponential(LENGTHSCALES[name])


def check_instance(instance: Any) -> None:
    """Raises `ValueError` unless it is an Instance whose parts fit together, without NaN or infinity."""
    checks.instance("instance", instance, Instance)
    checks.array("instance.candidates", instance.candidates, ("M", "d"))
    checks.array("instance.values", instance.values, (instance.candidates.shape[0],))
    checks.not_negative("instance.noise_scale", instance.noise_scale)


@functools.partial(jax.jit, inline=True)
def branin_value(x: Array) -> Array:
    """Branin's function at x (2,) in the unit square, float ()."""
    pi = jnp.pi
    a, b = 15 * x[0] - 5, 15 * x[1]
    square = (b - 5.1 * a**2 / (4 * pi**2) + 5 * a / pi - 6) ** 2
    return -(square + (10 - 10 / (8 * pi)) * jnp.cos(a) - 44.81) / 51.95


@functools.partial(jax.jit, inline=True)
def hartmann4_value(x: Array) -> Array:
    """Hartmann's function at x (4,) in the unit cube, float ()."""
    c, a, p = (jnp.asarray(table, x.dtype) for table in (HARTMANN_C, HARTMANN_A, HARTMANN_P))
    return (jnp.sum(c * jnp.exp(-jnp.sum(a * (x[None] - p) ** 2, axis=1))) - 1.1) / 0.839


def unit_ball(key: Key, size: int, dimension: int, dtype: Any, domain: Domain = "ball") -> Array:
    """Draws uniform points of the unit ball, or of the sphere, float (size, dimension)."""
    for_direction, for_radius = jax.random.split(key)
    normal = jax.random.normal(for_direction, (size, dimension), dtype)
    direction = normal / jnp.sqrt(jnp.sum(normal**2, axis=1, keepdims=True))
    if domain == "sphere":
        return direction
    return direction * jax.random.uniform(for_radius, (size, 1), dtype) ** (1 / dimension)


def _checked_dtype(key: Key, size: int, dimension: int, noise_scale: Array | float, dtype: Any) -> Any:
    """Returns the dtype of an instance to be drawn; raises `ValueError` unless all of its numbers are in range."""
    checks.key("key", key)
    checks.whole("size", size, least=1)
    checks.whole("dimension", dimension, least=1)
    checks.not_negative("noise_scale", noise_scale)
    return checks.float_dtype("dtype", dtype)


def _ridge_function(key: Key, size: int, dimension: int, domain: Domain, dtype: Any) -> tuple[Array, Array]:
    """Draws candidates, float (M, d), and x'theta of each, float (M,)."""
    checks.one_of("domain", domain, Domain)
    for_candidates, for_theta = jax.random.split(key)
    candidates = unit_ball(for_candidates, size, dimension, dtype, domain)
    theta = unit_ball(for_theta, 1, dimension, dtype, "sphere")[0]
    return jnp.matmul(candidates, theta, precision="highest"), candidates
