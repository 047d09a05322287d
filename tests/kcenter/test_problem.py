"""Instances under JAX's transformations, and bad input."""

import re

import numpy as np
import pytest

from jaxbandits import kcenter

RNG = np.random.default_rng(3)
PIXELS = RNG.integers(0, 256, (6, 40)).astype(np.uint8)
FLOATS = RNG.random((6, 40))
# A metric table of six points, all distances in (0, 1).
TABLE = np.abs(np.subtract.outer(x := np.array([0.0, 0.07, 0.3, 0.55, 0.8, 0.99]), x))

INSTANCES = {
    "pixels": kcenter.dimension_instance(PIXELS, k=3, levels=255),
    "rows": kcenter.dimension_instance(FLOATS, k=2, rows=[5, 0, 3]),
    "gaussian": kcenter.distance_instance(TABLE, k=3, noise_scale=0.1),
    "bernoulli": kcenter.distance_instance(TABLE, k=3, noise="bernoulli", rows=[5, 0, 3]),
}


# Bad input


def spoiled(table, *entries):
    table = table.copy()
    for index, value in entries:
        table[index] = value
    return table


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        (np.zeros((1, 3)), {}, "points must have n >= 2 rows and m >= 1 columns, got (1, 3)"),
        (np.zeros((3, 0)), {}, "points must have n >= 2 rows and m >= 1 columns, got (3, 0)"),
        (np.zeros((3, 2), bool), {}, "points must be integers or floats, got dtype('bool')"),
        (spoiled(FLOATS, ((0, 0), 1.5)), {}, "points must lie in [0, 1], got ("),
        (spoiled(FLOATS, ((0, 0), -0.5)), {}, "points must lie in [0, 1], got (-0.5, "),
        (FLOATS, {"levels": 255}, "levels must be None for float points, which lie in [0, 1], got 255"),
        (PIXELS, {}, "levels must be given for integer points, got None"),
        (PIXELS, {"levels": 16}, "points must lie in [0, 16], got ("),
        (PIXELS, {"levels": 10_000}, "levels must give m levels^2 < 2^31, as sums are int32, got 4000000000"),
        (PIXELS, {"levels": 255, "rows": [0, 6]}, "rows must lie in [0, 5], got [0 6]"),
        (PIXELS, {"levels": 255, "exact": np.zeros((2, 2), np.int32)}, "exact must have shape (6, 6), got (2, 2)"),
        (
            PIXELS,
            {"levels": 255, "exact": np.zeros((6, 6))},
            "exact must have dtype int32, as pairwise_sums(points)",
        ),
        (
            np.zeros((4097, 1)),
            {},
            "exact must be pairwise_sums(points), made once, for 4097 points, got None",
        ),
    ],
)
def test_bad_points(points, options, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        kcenter.dimension_instance(points, **{"k": 2} | options)


@pytest.mark.parametrize(
    ("distances", "options", "message"),
    [
        (TABLE[:3], {}, "distances must have shape (n, n), got (3, 6)"),
        (np.zeros((1, 1)), {}, "distances must have at least two points, got (1, 1)"),
        (np.zeros((2, 2), int), {}, "distances must be floats, got dtype('int64')"),
        (spoiled(TABLE, ((0, 1), 0.5)), {}, "distances must be symmetric up to 1e-09, got 0.43"),
        (spoiled(TABLE, ((2, 2), 0.5)), {}, "distances must have a zero diagonal, got [0.  0.  0.5 0.  0.  0. ]"),
        (spoiled(TABLE, ((0, 1), -0.5), ((1, 0), -0.5)), {}, "distances must be at least 0, got -0.5"),
        (2 * TABLE, {"noise": "bernoulli"}, "distances must be at most 1, got 1.98"),
        (TABLE, {}, "noise_scale must be given for Gaussian noise, got None"),
        (TABLE, {"noise_scale": 0.1, "noise": "bernoulli"}, "noise_scale must be None for Bernoulli noise, got 0.1"),
        (TABLE, {"noise_scale": 1.0, "rows": [0, -1]}, "rows must lie in [0, 5], got"),
    ],
)
def test_bad_distances(distances, options, message):
    with pytest.raises(ValueError, match="^" + re.escape(message)):
        kcenter.distance_instance(distances, **{"k": 2} | options)


def test_distances_above_one_are_accepted_with_gaussian_noise():
    kcenter.distance_instance(2 * TABLE, k=2, noise_scale=1.0)


@pytest.mark.parametrize("name", ["pixels", "gaussian"])
def test_environment_refuses_an_instance_with_mismatched_parts(name):
    instance = INSTANCES[name]
    for field, message in (
        ("n", "instance.problem.n must be 6, the number of points, got 7"),
        ("k", "instance.problem.k"),
    ):
        problem = instance.problem._replace(**{field: 7})
        with pytest.raises(ValueError, match=message):
            kcenter.environment(instance._replace(problem=problem))
