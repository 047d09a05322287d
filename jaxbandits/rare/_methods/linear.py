"""Likelihood ratios of linear rewards, averaged over normal laws of theta.

A component draws theta + offset + factor z, with z standard normal. With V = sum_k N_k x_k x_k' / s^2 and
D = sum_k (S_k - N_k x_k.theta) x_k / s^2, the ratio of densities is a Gaussian integral in V and D.
"""

from typing import NamedTuple

import numpy as np

from jaxbandits.rare._methods.laws import SCALES, SMALLEST_SPREAD

MOST_DIRECTIONS = 100  # directions of the first mixture; of more, the ones that are the easiest to mistake


class Linear(NamedTuple):
    """The law of linear rewards with normal noise."""

    features: np.ndarray  # float64 (K, d)   of the points that are pulled
    theta: np.ndarray  # float64 (d,)   the truth
    scale: float  # standard deviation of a reward, in units of reward


class Normals(NamedTuple):
    """Normal laws of theta, N(theta + offset, factor factor')."""

    first: np.ndarray  # float64 (J, d)      offset
    second: np.ndarray  # float64 (J, d, d)   factor


def moments(linear: Linear, counts: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Computes V, float64 (n, d, d), and D, float64 (n, d), from counts and sums, float64 (n, K)."""
    X, variance = linear.features, linear.scale**2
    K, d = X.shape
    squares = (X[:, :, None] * X[:, None, :]).reshape(K, d * d)
    V = (counts @ squares).reshape(-1, d, d) / variance
    return V, (sums - counts * (X @ linear.theta)) @ X / variance


def log_ratio(linear: Linear, normals: Normals, counts: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Computes the log of the averaged likelihood ratio of every run under every component.

    Args:
        linear: the truth.
        normals: J components.
        counts: float64 (n, K), pulls of each point.
        sums: float64 (n, K), sums of rewards, in units of reward.

    Returns:
        float64 (n, J). Cost: O(n J d^3).
    """
    V, D = moments(linear, counts, sums)
    values = []
    for offset, factor in zip(normals.first, normals.second, strict=True):
        at_offset = V @ offset
        value = D @ offset - at_offset @ offset / 2
        # A factor with columns of zeros, a line or a point, needs a smaller system.
        columns = factor[:, np.any(factor != 0, axis=0)]
        if columns.shape[1]:
            A = np.eye(columns.shape[1]) + columns.T @ V @ columns
            e = (D - at_offset) @ columns
            value = value - np.linalg.slogdet(A)[1] / 2 + np.sum(e * np.linalg.solve(A, e[..., None])[..., 0], 1) / 2
        values.append(value)
    return np.stack(values, axis=1)


def draw(linear: Linear, normals: Normals, random: np.random.Generator) -> np.ndarray:
    """Draws theta from one law each: float64 (n, d)."""
    z = random.standard_normal(normals.first.shape)
    return linear.theta + normals.first + np.einsum("nij,nj->ni", normals.second, z)


def points(linear: Linear, thetas: np.ndarray) -> Normals:
    """Returns the laws of fixed parameters, float64 (J, d)."""
    J, d = thetas.shape
    return Normals(thetas - linear.theta, np.zeros((J, d, d)))


def broad(linear: Linear, directions: np.ndarray, margins: np.ndarray | None = None) -> tuple[Normals, np.ndarray]:
    """Builds the first mixture: theta itself, and a line and a ball for each direction and scale.

    Args:
        linear: the truth.
        directions: float64 (M, d), z for which z.theta is small where an answer is wrong, such as x_b - x_j of the best
            answer b and a wrong answer j.
        margins: float64 (M,), by how much z.theta must fall. If None, by all of it.

    Returns:
        Normals of 1 + 14 M components, and their shares.
    """
    d = linear.theta.size
    norms = np.linalg.norm(directions, axis=1)
    margins = directions @ linear.theta if margins is None else margins
    ratios = np.maximum(margins / np.maximum(norms, 1e-300), 0)
    kept = np.argsort(ratios, kind="stable")[:MOST_DIRECTIONS]
    offsets, factors = [np.zeros(d)], [np.zeros((d, d))]
    for j in kept:
        u = directions[j] / norms[j]
        for g in SCALES:
            line = np.zeros((d, d))
            line[:, 0] = u
            for shape in (line, np.eye(d)):
                offsets.append(-(ratios[j] + g * linear.scale) * u)
                factors.append(linear.scale * g / 2 * shape)
    # Without a direction theta itself is all there is.
    shares = np.full(len(offsets), 0.9 / max(len(offsets) - 1, 1))
    shares[0] = 0.1 if len(offsets) > 1 else 1.0
    return Normals(np.stack(offsets), np.stack(factors)), shares


def fit(linear: Linear, counts: np.ndarray, sums: np.ndarray, weights: np.ndarray) -> Normals:
    """Computes the normal law of theta that explains weighted runs, by moments.

    Args:
        linear: the truth.
        counts: float64 (n, K), pulls.
        sums: float64 (n, K), sums of rewards.
        weights: float64 (n,), summing to 1.

    Returns:
        Normals of one component. Directions that these runs never measured keep the truth.
    """
    V, D = moments(linear, counts, sums)
    precision, score = np.tensordot(weights, V, 1), weights @ D
    values, vectors = np.linalg.eigh(precision)
    is_measured = values > 1e-9 * values.max(initial=0)
    root = np.where(is_measured, 1 / np.sqrt(np.where(is_measured, values, 1)), 0)
    whiten = vectors * root
    offset = whiten @ (whiten.T @ score)
    e = (D - V @ offset) @ whiten
    between = (weights[:, None] * e).T @ e - np.diag(is_measured.astype(float))
    spread, axes = np.linalg.eigh(between)
    factor = whiten @ (axes * np.sqrt(np.maximum(spread, SMALLEST_SPREAD)))
    return Normals(offset[None], factor[None])
