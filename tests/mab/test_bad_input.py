"""Values that the family refuses; wrong types and shapes are in tests/checks."""

import jax
import numpy as np
import pytest

from jaxbandits import mab
from jaxbandits.numerics import thresholds

NORMAL, ONES = mab.Gaussian(4), mab.Bernoulli(4)
INSTANCE = mab.bernoulli((0.6, 0.5, 0.4, 0.3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mab.ttucb(NORMAL, delta=0), r"delta must lie in \(0, 1\), got 0"),
        (lambda: mab.successive_elimination(NORMAL, delta=1.0), r"delta must lie in \(0, 1\), got 1"),
        (lambda: mab.ucb1(mab.Gaussian(1)), r"problem\.arms must be .* at least 2"),
        (lambda: mab.bernoulli([0.5]), "means must have at least 2 entries"),
        (lambda: mab.tas(NORMAL, delta=0.1, tracking="E"), "tracking must be one of 'D', 'C', got 'E'"),
        (lambda: mab.tas(NORMAL, delta=0.1, replan_every=0), "replan_every must be .* at least 1"),
        (lambda: mab.tas(ONES, delta=0.1, epsilon=0.1), "epsilon must be 0 for optimal weights of Bernoulli arms"),
        (lambda: mab.t3c(NORMAL, delta=0.1, leader_share=1.0), r"leader_share must lie in \(0, 1\)"),
        (lambda: mab.eb_tci(NORMAL, delta=0.1, leader_share="idz"), "leader_share must be one of 'ids', got 'idz'"),
        (lambda: mab.eb_tc(NORMAL, delta=0.1, epsilon=-0.1), "epsilon must be .* 0"),
        (lambda: mab.lucb(ONES, delta=0.1, epsilon=1.0), "epsilon must .* 1"),
        (
            lambda: mab.gaussian((0.0, 1.0), noise_scale=0),
            "noise_scale must be",
        ),
        (lambda: mab.ucb1(mab.Gaussian(2, -1.0)), r"problem\.noise_scale must be"),
        (lambda: mab.bernoulli((0.5, 1.1)), "means must"),
        (lambda: mab.characteristic_time(ONES, np.array([0.5, 0.4, 0.3, -0.1])), "means must"),
        (lambda: mab.successive_rejects(NORMAL, horizon=4), r"horizon must be an integer in \[5,"),
        (lambda: mab.sequential_halving(NORMAL, horizon=7), r"horizon must be an integer in \[8,"),
        (lambda: mab.continuous_rejects(NORMAL, horizon=3), r"horizon must be an integer in \[4,"),
        (lambda: mab.ucb_e(NORMAL, horizon=3, hardness=1.0), r"horizon must be an integer in \[4,"),
        (lambda: mab.ucb_e(NORMAL, horizon=9, hardness=0.0), "hardness must be"),
        (lambda: mab.environment(INSTANCE, leap=9, stream=jax.random.key(0)), "stream must be None for leaps of Bern"),
        (
            lambda: mab.lucb(NORMAL, delta=0.1, threshold=thresholds.kk_pair(arms=4)),
            "threshold must accept this rule's evidence",
        ),
    ],
)
def test_bad_value_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_characteristic_time_of_a_tie_is_infinite():
    time = mab.characteristic_time(ONES, np.array([0.5, 0.5, 0.4, 0.3]))
    assert np.isinf(time.value)
    np.testing.assert_array_equal(time.allocation, np.full(4, 0.25))
