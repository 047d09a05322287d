"""Random points, as NumPy arrays (n, m) on the host, for `dimension_instance`."""

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete

BINARY_LEVELS = 1  # levels of `binary_rows`


def clusters(n: int, m: int, n_clusters: int, spread: Array | float, seed: int) -> np.ndarray | Array:
    """Draws points in boxes around uniform centers.

    Args:
        n: number of points, at least 2; point a belongs to cluster a mod n_clusters.
        m: dimension.
        n_clusters: number of clusters.
        spread: half the width of a cluster, at least 0; may be traced.
        seed: seed of `numpy.random.default_rng`.

    Returns:
        float64 (n, m), in [0, 1]; a JAX array if `spread` is traced.

    Raises:
        ValueError: an argument is out of range.
    """
    _check(n, m, seed)
    checks.whole("n_clusters", n_clusters, least=1)
    checks.not_negative("spread", spread)
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0.1, 0.9, (n_clusters, m))
    xp, spread = (np, spread) if is_concrete(spread) else (jnp, jnp.asarray(spread, float))
    away = 2 * spread * rng.random((n, m)) - spread
    return xp.clip(centers[np.arange(n) % n_clusters] + away, 0, 1)


def contrast_rows(n: int, m: int, seed: int) -> np.ndarray:
    """Draws points around the middle of the cube, each at its own scale, so that distances differ much.

    Args:
        n: number of points, at least 2.
        m: dimension.
        seed: seed of `numpy.random.default_rng`.

    Returns:
        float64 (n, m), in [0, 1].

    Raises:
        ValueError: an argument is out of range.
    """
    _check(n, m, seed)
    rng = np.random.default_rng(seed)
    scale = rng.uniform(0.05, 1, (n, 1))
    return 0.5 + scale * (rng.random((n, m)) - 0.5)


def binary_rows(n: int, m: int, seed: int) -> np.ndarray:
    """Draws corners of the cube, each with its own share of ones: the class of the paper's Theorem 1.

    Args:
        n: number of points, at least 2.
        m: dimension.
        seed: seed of `numpy.random.default_rng`.

    Returns:
        uint8 (n, m), of 1 level.

    Raises:
        ValueError: an argument is out of range.
    """
    _check(n, m, seed)
    rng = np.random.default_rng(seed)
    share = rng.uniform(0.05, 0.95, (n, 1))
    return (rng.random((n, m)) < share).astype(np.uint8)


def _check(n: int, m: int, seed: int) -> None:
    checks.whole("n", n, least=2)
    checks.whole("m", m, least=1)
    checks.whole("seed", seed, least=0)
