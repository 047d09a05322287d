"""The rules of regret: the law of Thompson sampling, quantiles, and a curve."""

import jax
import numpy as np
from scipy import stats

import jaxbandits
from jaxbandits import Status, mab
from jaxbandits.mab._problem.laws.bernoulli import beta_quantile


def test_thompson_with_beta_draws_has_the_law_of_its_posterior():
    """Two arms after 6 and 5 ones of 10 pulls each: probability that the first is pulled next."""
    algorithm = mab.thompson(mab.Bernoulli(2))
    state = algorithm.init(jax.random.key(0))
    state = state._replace(
        pulls=np.int64(20),
        counts=np.array([10, 10], np.int32),
        sums=state.sums._replace(counts=np.array([6, 5], np.int32)),
    )
    arms = jax.jit(jax.vmap(lambda key: algorithm.decide(key, state).action.arms[0]))(
        jax.random.split(jax.random.key(1), 20_000)
    )
    x = np.linspace(0, 1, 20_001)
    expected = np.trapezoid(stats.beta(7, 5).pdf(x) * stats.beta(6, 6).cdf(x), x)
    assert abs(float(np.mean(np.asarray(arms) == 0)) - expected) < 4 * 0.5 / 20_000**0.5


def test_the_beta_quantile_is_right_to_7_percent_of_its_tail():
    counts = np.array([1, 2, 5, 20, 100, 1000, 10_000], float)
    program = jax.jit(jax.vmap(lambda m, z: beta_quantile(None, counts, m, z), (0, None)))
    shares = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    means = np.round(shares[:, None] * counts) / counts
    for t in (4, 100, 10**6):
        quantiles = np.asarray(program(means, stats.norm.isf(1 / t)))
        ones = means * counts
        tails = stats.beta(1 + ones, 1 + counts - ones).sf(quantiles)
        np.testing.assert_allclose(tails * t, 1, atol=0.075)


def test_a_curve_of_regret():
    """Pseudo-regret at marks, of runs that end at their horizon."""
    instance, marks = mab.bernoulli((0.9, 0.5)), np.array([20, 50, 100])
    gaps = np.array([0.0, 0.4])
    algorithm = mab.imed(instance.problem)
    record = jaxbandits.record(at=marks, value=lambda state, _: {"regret": gaps @ state.counts.astype(float)})
    results = jaxbandits.sweep(
        lambda task, key: (algorithm, mab.environment(instance), record),
        seeds=50,
        key=jax.random.key(0),
        max_rounds=1000,
        horizon=100,
        progress=False,
    )
    assert (results.columns["status"] == Status.HORIZON).all()
    assert (results.columns["pulls"] == 100).all()
    curves = next(value for name, value in results.columns.items() if "regret" in name)
    assert curves.shape == (50, 3)
    assert (np.diff(curves, axis=1) >= 0).all()
    assert curves[:, 2].mean() < 5  # uniform sampling: 20
