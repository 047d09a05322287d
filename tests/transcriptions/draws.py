"""Random numbers of the rules, made by NumPy of the uniform numbers of their rounds."""

import jax
import numpy as np


def normals(keys, n):
    """Returns n normal variables for each key, float64 (rounds, n): points at random distances in random directions."""
    half = (n + 1) // 2
    u = np.asarray(jax.jit(jax.vmap(lambda key: jax.random.uniform(key, (2, half), float)))(keys))
    radius, angle = np.sqrt(-2 * np.log(u[:, 0] + 2.0**-53)), np.pi * (2 * u[:, 1] - 0.25)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)[:, :n]
