"""Noisy distances, and noise to be recorded."""

import jax
import numpy as np

KEY = jax.random.key(3)


def distances(seed, n, dim=3):
    points = np.random.default_rng(seed).random((n, dim))
    return ((points[:, None] - points) ** 2).sum(-1) / dim


def tape(seed, size, noise="gaussian"):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(size) if noise == "gaussian" else rng.random(size)
