"""The eight instances: their optima are unique and as stated, and their radii are those stated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import cpe
from jaxbandits.cpe import decision, solve
from jaxbandits.cpe._entries import entry_values

# name: decision at theta, radii, H, H_U / H, root with c = 1/2, Theorem 1; delta = 0.1
EIGHT = {
    "best5": ([1, 0, 0, 0, 0], [0.125, 0.125, 0.15, 0.25, 0.375], 195.56, 1.64, 2681, 22734),
    "top2of6": ([1, 1, 0, 0, 0, 0], [0.2, 0.13, 0.13, 0.165, 0.265, 0.315], 204.39, 1.74, 2819, 23871),
    "water3": ([3, 2, 1], [0.1, 0.1, 0.325], 209.47, 1.43, 2894, 24519),
    "sites5": ([1, 1, 0, 0, 0], [0.2, 0.225, 0.225, 0.2, 0.2], 114.51, 1.09, 1469, 12580),
    "osa4": ([1, 2, 3, 1], [0.177368, 0.07, 0.07, 0.209342], 462.77, 1.76, 6825, 57283),
    "paths5": (
        [1, 0, 1, 0, 1, 0, 1],
        [0.316667, 0.316667, 0.216667, 0.216667, 0.2, 0.2, 0.2],
        *(137.55, 1.27, 1808, 15417),
    ),
    "trees5": ([1, 1, 0, 1, 0], [0.275, 0.125, 0.125, 0.25, 0.175], 189.88, 1.69, 2594, 22007),
    "matching3": (
        [1, 0, 0, 0, 1, 0, 0, 0, 1],
        [0.225, 0.233333, 0.225, 0.225, 0.15, 0.15, 0.233333, 0.15, 0.15],
        *(273.77, 1.46, 3911, 32936),
    ),
}


@pytest.mark.parametrize("name", EIGHT)
def test_what_is_stated_holds(name):
    best, radii, H, ratio, root, bound = EIGHT[name]
    instance = getattr(cpe, name)()
    truth = cpe.means if instance.tau == 1 else cpe.variances
    np.testing.assert_array_equal(truth(instance.arms), instance.theta)
    np.testing.assert_array_equal(decision(instance.problem, solve(instance.problem, instance.theta)), best)

    def measures(theta):
        radii = cpe.consistent_radius(instance.problem, theta)
        H = cpe.hardness(radii)
        settings = {"m": len(best), "tau": instance.tau, "delta": 0.1}
        root = cpe.implicit_time(H, c=0.5, **settings)
        return radii, H, cpe.uniform_hardness(radii) / H, root, cpe.theorem1_bound(H, **settings)

    found = jax.jit(measures)(instance.theta)
    np.testing.assert_allclose(found[0], radii, rtol=0, atol=1e-6)  # all positive: the optimum is unique
    np.testing.assert_allclose(found[1:3], (H, ratio), atol=0.006)
    np.testing.assert_allclose(found[3:], (root, bound), atol=0.6)


def test_osa4_is_about_variances():
    np.testing.assert_allclose(cpe.osa4().theta, [0.21, 0.25, 0.25, 0.0075], rtol=1e-14)


def test_the_entries_of_water3():
    instance = cpe.water3()
    expected = [[-0.7, -1.1, -1.5, -1.9], [-0.7, -1.2, -1.7, -2.2], [-1.35, -2.15, -2.95, -3.75]]
    np.testing.assert_allclose(entry_values(instance.problem, instance.theta), expected, rtol=1e-12)


@pytest.mark.parametrize("name", EIGHT)
def test_all_floats_follow_the_dtype(name):
    instance = getattr(cpe, name)(dtype=jnp.float32)
    leaves = jax.tree.leaves((instance.problem, instance.arms, instance.theta))
    floats = [leaf for leaf in leaves if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)]
    assert len(floats) >= 4
    assert all(leaf.dtype == jnp.float32 for leaf in floats)
    best = decision(instance.problem, solve(instance.problem, instance.theta))
    np.testing.assert_array_equal(best, EIGHT[name][0])
