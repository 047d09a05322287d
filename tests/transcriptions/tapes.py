"""Rewards of several lanes, and the problems that NumPy over lanes and scalar code play with them."""

import numpy as np
from transcriptions import cpe as classes

from experiments.bench.reference import mab as plain

LANES, K, LENGTH, DELTA = 3, 4, 400, 0.1
LAWS = {"gaussian": plain.Law("gaussian", 0.4), "bernoulli": plain.Law("bernoulli", 0.5)}


def tapes_of(kind, K=K, length=LENGTH):
    """Draws the n-th reward of every arm of every lane, float (lanes, K, length)."""
    rng, means = np.random.default_rng(1), np.array([0.35, 0.8, 0.5, 0.2, 0.1, 0.4])[:K, None]
    if kind == "bernoulli":
        return (rng.random((LANES, K, length)) < means).astype(float)
    return means + 0.4 * rng.normal(size=(LANES, K, length))


COCI = {
    "best": (classes.BEST[3], (0.9, 0.5, 0.3), {"scale": 0.5}),
    "top": (classes.TOP[1], (0.9, 0.8, 0.3, 0.2, 0.1), {"scale": 0.5}),
    "paths": (classes.ROUTES[1], (0.9, 0.2, 0.5, 0.2, 0.4, 0.6, 0.9), {"scale": 0.5}),
    "opinions": (classes.OPINIONS, (0.3, 0.5, 0.5, 0.15), {"scale": 0.12, "tau": 2}),
}


def coci_tapes(means, settings):
    # Sums of 0/1 samples would tie up to rounding, and the two add in another order.
    noise = np.random.default_rng(5).uniform(-0.1, 0.1, size=(LANES, len(means), 1500))
    if settings.get("tau") == 2:  # uniform samples as wide as this to both sides
        return 0.5 + 10 * noise * np.array(means)[:, None]
    return np.array(means)[:, None] * (1 + noise)
