"""Uniform sampling without noise."""

import numpy as np
import pytest
from drivers.cpe import best, follow, hold_variance

from jaxbandits import cpe


@pytest.mark.parametrize(
    ("name", "pulls"),
    [
        ("best5", 4642),
        ("top2of6", 5211),
        ("water3", 4321),
        ("sites5", 1616),
        ("osa4", 12803),
        ("paths5", 2365),
        ("trees5", 4643),
        ("matching3", 5955),
    ],
)
def test_uniform_without_noise_makes_the_known_pulls(name, pulls):
    instance = getattr(cpe, name)()
    estimator = "variance" if instance.tau == 2 else "mean"
    hold = hold_variance(instance.theta) if instance.tau == 2 else lambda state: state
    state, rounds, answer = follow(
        cpe.uniform(instance.problem, delta=0.1, estimator=estimator), instance.theta, hold=hold
    )
    counts = np.asarray(state.statistics.counts)
    assert state.pulls == rounds == pulls
    assert (np.diff(counts) <= 0).all()
    assert counts[0] - counts[-1] <= 1
    assert answer == best(instance.problem, instance.theta).tolist()
