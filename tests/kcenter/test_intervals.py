from math import log, sqrt

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.bench.reference import kcenter_ds as reference
from jaxbandits.kcenter import KL, Lemma1, Lil
from jaxbandits.kcenter._shared import intervals

MEANS, COUNTS = np.array([0.0, 0.25, 0.6, 0.99]), np.array([1, 4, 30, 12288], np.int32)


def test_radii_by_hand():
    lower, upper = intervals.lil(jnp.full(4, 0.81), jnp.arange(1, 5, dtype=jnp.int32), delta=1 / 30, radius_scale=0.1)
    np.testing.assert_allclose(upper, [1.39600, 1.25426, 1.18230, 1.13729], atol=5e-6)
    np.testing.assert_allclose(lower + upper, 1.62)
    # NS-TS at variance .01, n = 3, delta = .1, t = 8 and 9.
    share = intervals.shared_delta(0.1, 3, "pairs")
    lower, upper = intervals.kl_gaussian(
        jnp.zeros(2), jnp.array([8, 9], jnp.int32), delta=share, alpha=1.1, k1=intervals.least_k1(1.1), noise_scale=0.1
    )
    np.testing.assert_allclose(upper, [0.15162, 0.14395], atol=5e-6)
    np.testing.assert_allclose(lower, -upper)


@pytest.mark.parametrize("form", ["lil", "lemma1", "kl"])
def test_intervals_against_the_transcription(form):
    share = {"lil": 0.1 / 50}.get(form, 0.1 / 2500)
    transcribed = {"lil": reference.lil, "lemma1": reference.lemma1, "kl": reference.kl_bounds}[form]
    kind = {"lil": Lil, "lemma1": Lemma1, "kl": KL}[form]
    interval = intervals.bounds_of(kind(), 50, 0.1)
    bounds = interval(jnp.asarray(MEANS), jnp.asarray(COUNTS))
    expected = [transcribed(e, int(t), share) for e, t in zip(MEANS, COUNTS, strict=True)]
    np.testing.assert_allclose(np.transpose(bounds), expected, rtol=1e-12, atol=1e-15)
    assert intervals.bounds_of(kind(union="pairs"), 50, 0.1)(MEANS[1], COUNTS[1])[0] <= bounds[0][1]


def test_intervals_of_a_tiny_delta_do_not_overflow():
    """k1 t^alpha n^2 / delta overflows in float32, so that its logarithm must be a sum."""
    level = intervals.kl_level(jnp.int32(10**9), delta=1e-30, alpha=3.0, k1=11.0, dtype=jnp.float32)
    np.testing.assert_allclose(level, (log(11) + 3 * log(1e9) + 30 * log(10)) / 1e9, rtol=1e-5)
    lower, upper = intervals.lil(jnp.float32(0.3), jnp.int32(1), delta=jnp.float32(1e-30), radius_scale=0.1)
    np.testing.assert_allclose(upper - lower, 2 * sqrt(0.1 * 30 * log(10)), rtol=1e-5)


def test_radii_of_a_delta_that_no_quotient_can_hold():
    """A reward's range over delta is no float; the radii are a few units all the same."""
    mean, t, delta = jnp.array(0.5), jnp.array(100), 3e-308
    upper = intervals.lil(mean, t, delta=delta, radius_scale=0.1)[1]
    np.testing.assert_allclose(upper - mean, sqrt(0.1 * (log(1 + log(100)) - log(delta)) / 100), rtol=1e-13)
    upper = intervals.lemma1(mean, t, delta=delta)[1]
    np.testing.assert_allclose(upper - mean, sqrt(4 * (log(125 * log(112)) - log(delta)) / 100), rtol=1e-13)


def test_least_k1_by_hand():
    np.testing.assert_allclose(intervals.least_k1(1.1), 11.11)
    np.testing.assert_allclose(intervals.least_k1(2.0), 2.02)
