"""Exploration rates against worked numbers and direct minimisation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.bench.reference.kcenter_ns import mixture_constant as mixture
from jaxbandits.kcenter import exploration_rate


def rate(form, q=1000, stage=2, a=10, b=20, *, n=10, k=4, delta=0.1, dtype=None):
    return exploration_rate(form, n, k, delta=delta, dtype=dtype)(*(jnp.asarray(x) for x in (q, stage, a, b)))


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("loglog", 8.97560),  # log((1 + 6.907755) / .001)
        ("log", 13.81551),  # log(1000 / .001)
        ("gk", 17.21671),  # log(2 (16 - 1) 1000 / .001): stage 2 has 8 x 2 arms
    ],
)
def test_rates_by_hand(form, expected):
    np.testing.assert_allclose(rate(form), expected, atol=1e-5)


def test_gk_rate_of_a_stage_of_one_arm_is_finite():
    assert np.isfinite(rate("gk", q=3, stage=1, n=2, k=2))


def test_gaussian_rate_against_direct_minimisation():
    counts = 2 * np.log(4 + np.log(10)) + 2 * np.log(4 + np.log(20))
    exact = counts + 2 * mixture(np.log(100 / 0.1) / 2)
    assert 0 <= rate("gaussian") - exact < 5e-5


def test_gaussian_rate_has_a_union_bound_over_all_pairs():
    # n = 10: sum_p (9 - p) p is 40 pairs for k = 4, fewer than n^2 = 100, and 9 * 45 - 285 = 120 for k = 10.
    difference = 2 * mixture(np.log(120 / 0.1) / 2) - 2 * mixture(np.log(100 / 0.1) / 2)
    np.testing.assert_allclose(rate("gaussian", k=10) - rate("gaussian", k=4), difference, atol=5e-5)
    assert rate("gaussian", k=5) == rate("gaussian", k=4)


def test_rates_broadcast_over_arms():
    a, b = np.array([[3], [700]]), np.array([1, 20, 300])
    each = [[rate("gaussian", a=x, b=y) for y in b] for x in a[:, 0]]
    np.testing.assert_allclose(rate("gaussian", a=a, b=b), each, rtol=1e-12)
    assert rate("gk", a=a, b=b).shape == ()


@pytest.mark.parametrize("form", ["loglog", "log", "gk", "gaussian"])
def test_rates_in_float32_under_jit(form):
    values = jax.jit(lambda delta: rate(form, delta=delta, dtype="float32"))(jnp.float32(1e-12))
    assert values.dtype == "float32"
    np.testing.assert_allclose(values, rate(form, delta=1e-12), rtol=1e-5)
