"""Rules of a fixed budget for other questions than the best arm: published pulls, error rates, bad input."""

import jax
import numpy as np
import pytest

import jaxbandits
from experiments.bench.reference import questions as reference
from experiments.bench.reference.mab import Law, by_index
from jaxbandits import mab

G, B = (Law("gaussian", 1.0), (0.5, 0.25, 0.4, -0.1)), (Law("bernoulli", 0.5), (0.65, 0.4, 0.55, 0.3))


@pytest.mark.parametrize(
    ("arms", "index", "pulls"),
    [
        (G, reference.apt(0.2, 0.05), "012333222222222202333333113333300333333333333333333333333333"),
        (B, reference.apt(0.45, 0.05), "012310000000002223330002333111101333333333333333333333333333"),
    ],
)
def test_the_numpy_programs_of_thresholds_reproduce_published_pulls(arms, index, pulls):
    assert "".join(map(str, by_index(reference.rewards(*arms, 60), index, 60))) == pulls


TEN = (0.2, 0.25, 0.3, 0.35, 0.45, 0.55, 0.65, 0.7, 0.75, 0.8)


@pytest.mark.slow
def test_error_rates_above_a_level():
    """Share of runs with any wrong arm outside the band of .1 at T = 500, against an independent program.

    2000 runs beside 5000: five standard errors of the difference; false alarm 1e-6.
    """
    instance = mab.bernoulli(TEN)

    def build(task, key):
        algorithm = mab.apt(instance.problem, level=0.5, epsilon=task["epsilon"], horizon=500)
        return algorithm, mab.environment(instance, algorithm)

    def wrong(task, outcome):
        return {"wrong": ~mab.is_right(instance, outcome.answer, question=mab.Above(0.5), epsilon=0.1)}

    settings = {"key": jax.random.key(0), "max_rounds": 501, "metrics": wrong, "progress": False}
    rates = jaxbandits.sweep(build, {"epsilon": np.array([0.0, 0.1])}, seeds=2000, **settings).summary()["wrong_mean"]
    for rate, theirs in zip(rates, (0.11, 0.0014), strict=True):
        assert abs(rate - theirs) < 5 * np.sqrt(theirs * (1 - theirs) * (1 / 2000 + 1 / 5000))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mab.apt(mab.Bernoulli(3), level=1.0, horizon=50), r"level must lie in \(0.0, 1.0\)"),
        (lambda: mab.apt(mab.Poisson(3), level=0.0, horizon=50), r"level must be positive"),
        (lambda: mab.apt(mab.Gaussian(3), level=0.0, horizon=3), r"horizon must be an integer in \[4,"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
