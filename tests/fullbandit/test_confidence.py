"""Confidence radii."""

import math

import jax
import jax.numpy as jnp
import pytest

from jaxbandits.fullbandit import ellipsoid_radius, lemma1_radius


@pytest.mark.parametrize(
    ("t", "n", "k", "delta", "ellipsoid", "lemma1"),
    [
        (10**6, 9, 4, 0.1, 66.2332246, 31.8160365),
        (100, 3, 2, 0.05, 20.2440981, 10.1220491),
    ],
)
def test_radii_by_hand(t, n, k, delta, ellipsoid, lemma1):
    assert ellipsoid_radius(t, n, k, delta) == pytest.approx(ellipsoid, abs=1e-7)
    assert lemma1_radius(t, n, k, delta) == pytest.approx(lemma1, abs=1e-7)


def test_radii_equal_the_printed_formulas():
    t, n, k, delta, noise_scale = 12345, 20, 7, 0.02, 0.5
    log = math.log(6 * t**2 / (math.pi**2 * delta))
    ellipsoid = 2 * math.sqrt(2) * 3.5 * math.sqrt(log + math.log(math.comb(n, k)))
    assert ellipsoid_radius(t, n, k, delta, noise_scale) == pytest.approx(ellipsoid, rel=1e-14)
    assert lemma1_radius(t, n, k, delta, noise_scale) == pytest.approx(
        3.5 * math.sqrt(2 * (log + math.log(n))), rel=1e-14
    )


def test_the_ellipsoid_is_twice_as_wide_at_equal_logarithms():
    wide = ellipsoid_radius(1000, 10, 4, 0.1, log_sets=2.0)
    assert wide == pytest.approx(2 * float(lemma1_radius(1000, 10, 4, 0.1, log_sets=2.0)), rel=1e-15)
    assert wide != pytest.approx(float(ellipsoid_radius(1000, 10, 4, 0.1)))
    assert lemma1_radius(1000, 10, 4, 0.1, log_sets=2.0) != pytest.approx(float(lemma1_radius(1000, 10, 4, 0.1)))


def test_radius_for_more_superarms_than_an_integer_counts():
    """C(400, 200) is about 1e119."""
    radius = ellipsoid_radius(10**8, 400, 200, 0.05, 1 / 200)
    log = math.log(6 / math.pi**2) + 2 * math.log(1e8) + math.log(math.comb(400, 200)) - math.log(0.05)
    assert radius == pytest.approx(2 * math.sqrt(2 * log), rel=1e-13)


def test_radius_at_pulls_whose_square_overflows():
    with jax.enable_x64(False):
        radius = lemma1_radius(jnp.asarray(2 * 10**9), 111, 10, 0.05)
        assert radius.dtype == jnp.float32
    assert radius == pytest.approx(float(lemma1_radius(2e9, 111, 10, 0.05)), rel=1e-6)
