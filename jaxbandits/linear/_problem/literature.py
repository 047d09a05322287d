"""Instances of the literature on likelihood-ratio stopping and transductive bandits, made on the host in float64."""

import math
from importlib import resources
from typing import Any

import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import constant, require
from jaxbandits.linear._problem.instances import Instance

SPREAD = 0.1  # range of the angles in `many_arms`, in radians
MAX_DRAWS = 100_000  # number of draws of an instance after which K counts as out of reach


def random_tirinzoni(
    seed: int, K: int = 50, d: int = 20, *, noise_scale: Array | float = 1.0, dtype: Any = None
) -> Instance:
    """Draws unit vectors: a few with means of 1, 0.9 and 0.8, and random ones whose means are at most 0.5.

    Args:
        seed: seed of `numpy.random.default_rng`.
        K: number of arms, at least ceil(d / 2).
        d: dimension, at least 4.
        noise_scale: standard deviation of the noise, in units of reward.
        dtype: dtype of the arrays. If None, JAX's default.

    Returns:
        Instance. Its first m = ceil(d / 2) arms are e_1..e_m, the others u / ||u|| with u uniform on [-1, 1]^d. theta
        is 1, then 0.9 up to entry m / 2, then 0.8 up to entry m, then uniform on [-1, 0).

    Raises:
        ValueError: an argument is out of range, or the arms cannot be drawn.

    Source: Tirinzoni and Degenne (2022), On elimination strategies for bandit fixed-confidence identification, whose
    code draws theta so; its comment says [-.5, .5].
    """
    seed, d = checks.whole("seed", seed, least=0), checks.whole("d", d, least=4)
    m = math.ceil(d / 2)
    K = checks.whole("K", K, least=m)
    checks.positive("noise_scale", noise_scale)
    rng = np.random.default_rng(seed)
    best = np.where(np.arange(m) < m // 2, 0.9, 0.8)
    best[0] = 1.0
    theta = np.concatenate([best, rng.random(d - m) - 1])
    rows = list(np.eye(d)[:m])
    for _ in range(MAX_DRAWS):
        if len(rows) == K:
            return _instance(np.array(rows), theta, noise_scale, dtype)
        u = rng.uniform(-1, 1, d)
        u /= np.linalg.norm(u)
        if u @ theta <= 0.5:
            rows.append(u)
    raise ValueError(f"K must be within reach of {MAX_DRAWS} draws, got {K}")


def random_tirinzoni_published(*, noise_scale: Array | float = 1.0, dtype: Any = None) -> Instance:
    """Loads the instance of the published table of Tirinzoni and Degenne (2022), K = 50 arms in d = 20 dimensions.

    Args:
        noise_scale: standard deviation of the noise, in units of reward.
        dtype: dtype of the arrays. If None, JAX's default.

    Returns:
        Instance, drawn by Julia's MersenneTwister(123) and stored with the library. T* = 2103.877.

    Raises:
        ValueError: an argument is out of range.
    """
    checks.positive("noise_scale", noise_scale)
    with resources.files("jaxbandits.linear").joinpath("random_tirinzoni.npz").open("rb") as file:
        stored = np.load(file)
        return _instance(stored["arms"], stored["theta"], noise_scale, dtype)


def sphere_pair(
    seed: int, K: int, d: int, alpha: float = 0.01, *, noise_scale: Array | float = 1.0, dtype: Any = None
) -> Instance:
    """Draws uniform unit vectors, of which the closest two compete: theta = x_a + alpha (x_b - x_a).

    Args:
        seed: seed of `numpy.random.default_rng`.
        K: number of arms, at least 2.
        d: dimension, at least 2.
        alpha: fraction of the way from x_a to x_b at which theta lies, in (0, 1/2); concrete.
        noise_scale: standard deviation of the noise, in units of reward.
        dtype: dtype of the arrays. If None, JAX's default.

    Returns:
        Instance, whose T* hardly depends on d.

    Raises:
        ValueError: an argument is out of range.

    Source: Tao, Blanco and Zhou (2018), Best arm identification in linear bandits with linear dimension dependency.
    """
    seed, K, d = checks.whole("seed", seed, least=0), checks.whole("K", K, least=2), checks.whole("d", d, least=2)
    checks.real("alpha", alpha, above=0, below=0.5)
    require(checks.is_concrete(alpha), "alpha", "be concrete", alpha)
    checks.positive("noise_scale", noise_scale)
    arms = np.random.default_rng(seed).standard_normal((K, d))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    likeness = arms @ arms.T - 4 * np.eye(K)
    a, b = np.unravel_index(likeness.argmax(), likeness.shape)
    return _instance(arms, arms[a] + float(alpha) * (arms[b] - arms[a]), noise_scale, dtype)


def many_arms(seed: int, n: int, *, noise_scale: Array | float = 1.0, dtype: Any = None) -> Instance:
    """Builds two arms in the plane that matter, and n - 2 nearly equal ones between them.

    Args:
        seed: seed of `numpy.random.default_rng`.
        n: number of arms, at least 3. 10^4 is usual; use start="spanner" then, and no tables of all pairs.
        noise_scale: standard deviation of the noise, in units of reward.
        dtype: dtype of the arrays. If None, JAX's default.

    Returns:
        Instance with arms (cos u, sin u) of angles u uniform on [.78, .88), then (1, 0), then (-.707, .707);
        theta = (1, 0).

    Raises:
        ValueError: an argument is out of range.

    Source: Fiez, Jain, Jamieson and Ratliff (2019), Sequential experimental design for transductive linear bandits.
    """
    seed, n = checks.whole("seed", seed, least=0), checks.whole("n", n, least=3)
    checks.positive("noise_scale", noise_scale)
    angles = 0.78 + SPREAD * np.random.default_rng(seed).random(n - 2)
    arms = np.vstack([np.column_stack([np.cos(angles), np.sin(angles)]), [[1.0, 0.0], [-0.707, 0.707]]])
    return _instance(arms, np.array([1.0, 0.0]), noise_scale, dtype)


def transductive(d: int, omega: float = 0.1, *, noise_scale: Array | float = 1.0, dtype: Any = None) -> Instance:
    """Builds arms e_1..e_2d and, as separate items, e_1..e_d and cos(omega) e_i + sin(omega) e_(d+i).

    Args:
        d: half of the dimension, at least 2.
        omega: angle in radians, in (0, pi/2); concrete.
        noise_scale: standard deviation of the noise, in units of reward.
        dtype: dtype of the arrays. If None, JAX's default.

    Returns:
        Instance with 2 d arms, 2 d items, and theta = e_1; item 0 is the best, and item d the next.

    Raises:
        ValueError: an argument is out of range.

    Source: Fiez, Jain, Jamieson and Ratliff (2019), Sequential experimental design for transductive linear bandits.
    """
    d = checks.whole("d", d, least=2)
    checks.real("omega", omega, above=0, below=np.pi / 2)
    require(checks.is_concrete(omega), "omega", "be concrete", omega)
    checks.positive("noise_scale", noise_scale)
    basis = np.eye(2 * d)
    items = np.vstack([basis[:d], np.cos(omega) * basis[:d] + np.sin(omega) * basis[d:]])
    return _instance(basis, basis[0], noise_scale, dtype, items)


def _instance(arms: Any, theta: Any, noise_scale: Any, dtype: Any, items: Any = None) -> Instance:
    dtype = checks.float_dtype("dtype", dtype)
    arms, theta, noise_scale = (constant(x, dtype) for x in (arms, theta, noise_scale))
    return Instance(arms, theta, noise_scale, None if items is None else constant(items, dtype))
