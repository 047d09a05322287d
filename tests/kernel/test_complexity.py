"""Information gain, confidence widths and the paper's bounds: by hand, by brute force, and by simulation."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

from jaxbandits import kernel
from jaxbandits.kernel._theory.complexity import LEAST_P0
from jaxbandits.numerics import gp

NOISE_VARIANCE = 0.04
KERNEL = gp.SquaredExponential(0.3)
RNG = np.random.default_rng(0)
POINTS = jnp.asarray(RNG.random((40, 2)))
GRAM = gp.cross(KERNEL, POINTS, POINTS)
information_gain = jax.jit(kernel.information_gain)
effective_dimension = jax.jit(kernel.effective_dimension)
greedy = jax.jit(kernel.greedy_information_gain, static_argnames=("kernel", "n"))


def log_det(gram):
    return np.linalg.slogdet(np.eye(len(gram)) + np.asarray(gram) / NOISE_VARIANCE)[1]


def test_information_gain():
    assert information_gain(jnp.ones((10, 10)), NOISE_VARIANCE) == pytest.approx(2.7627264696, abs=1e-9)
    assert information_gain(GRAM, NOISE_VARIANCE) == pytest.approx(log_det(GRAM) / 2, rel=1e-10)


def test_greedy_information_gain():
    gains = np.asarray(greedy(POINTS, KERNEL, NOISE_VARIANCE, 60))
    chosen, gram = [], np.asarray(GRAM)
    for gain in gains:
        cross = gram[:, chosen]
        inverse = np.linalg.inv(gram[np.ix_(chosen, chosen)] + NOISE_VARIANCE * np.eye(len(chosen)))
        variance = np.diag(gram) - np.einsum("ij,jk,ik->i", cross, inverse, cross)
        chosen.append(
            int(np.argmax(variance - 1e-9 * np.arange(40)))
        )  # Ties, all of them in the first place, go to the lowest index.
        assert gain == pytest.approx(log_det(gram[np.ix_(chosen, chosen)]) / 2, rel=1e-6)
    steps = np.diff(gains, prepend=0)
    assert np.all(steps > 0)
    assert np.all(np.diff(steps) <= 1e-12)
    uniform = [log_det(gram[np.ix_(draw, draw)]) / 2 for draw in RNG.integers(40, size=(20, 30))]
    assert gains[29] > max(uniform)


def test_greedy_information_gain_is_near_the_largest():
    few = POINTS[:6]
    gains, gram = greedy(few, KERNEL, NOISE_VARIANCE, 3), np.asarray(GRAM)[:6, :6]
    for n in (1, 2, 3):
        most = max(
            log_det(gram[np.ix_(chosen, chosen)]) / 2 for chosen in itertools.combinations_with_replacement(range(6), n)
        )
        assert (1 - 1 / math.e) * most <= gains[n - 1] <= most + 1e-9


def test_greedy_information_gain_of_the_first_two_by_hand():
    # Points 0 and 1 with l = 1: gain 0.5 log 26, then the gain of both.
    unit = gp.SquaredExponential(1.0)
    gains = kernel.greedy_information_gain(jnp.asarray([[0.0], [1.0]]), unit, NOISE_VARIANCE, 2)
    np.testing.assert_allclose(gains, [0.5 * math.log(26), 3.0502439411], atol=1e-9)


def test_effective_dimension():
    ours = effective_dimension(GRAM, NOISE_VARIANCE)
    eigenvalues = np.linalg.eigvalsh(np.asarray(GRAM))
    assert ours == pytest.approx(np.sum(eigenvalues / (eigenvalues + NOISE_VARIANCE)), rel=1e-9)
    assert ours <= 2 * information_gain(GRAM, NOISE_VARIANCE)
    assert effective_dimension(jnp.ones((5, 5)), 1.0) == pytest.approx(5 / 6)


def test_sum_of_variances_is_at_most_the_information_gain():
    # The law needs k <= 1, for any points.
    state, rows, spent = gp.prior(KERNEL, POINTS), jnp.zeros((30, 40)), 0.0
    step = jax.jit(
        lambda state, rows, a: gp.condition(
            state, GRAM[:, a] - gp.explained(rows, rows[:, a]), a, jnp.zeros(()), NOISE_VARIANCE
        )
    )
    for t, a in enumerate(RNG.integers(40, size=30)):
        spent += float(state.variance[a])
        state, row = step(state, rows, a)
        rows = rows.at[t].set(row)
        assert spent <= state.log_det / math.log(1 + 1 / NOISE_VARIANCE) + 1e-9


def test_widths_by_hand():
    assert kernel.confidence_width(0.0, 0.2, 0.04, 0.1) == pytest.approx(2.4477468307, abs=1e-9)
    assert kernel.confidence_width(3.0, 0.2, 0.04, 0.1) == pytest.approx(5.4477468307, abs=1e-9)
    # log_det = 2 and delta = 1/e: sqrt(4 / 0.04) R = 10 R
    widths = kernel.anytime_width(1.0, 0.2, 0.04, 1 / math.e, jnp.asarray([2.0, 14.0]))
    np.testing.assert_allclose(widths, [3.0, 5.0], rtol=1e-12)


def test_bounds_by_hand():
    assert kernel.duets_p0(0.1, 10, 50) == pytest.approx(713.0511, abs=1e-4)
    assert kernel.duets_p0(0.1, 10, 50, LEAST_P0) == pytest.approx(713.0511 * 32 / 3 / 72, abs=1e-4)
    # log log 500 = 1.8269
    assert kernel.duets_delta(0.1, 10, 50, 1000) == pytest.approx(0.1 / 2000 / 5.826912, rel=1e-5)
    assert np.isfinite(kernel.duets_delta(0.1, 1, 50, 1000))
    assert kernel.inducing_set_bound(10.0, 5.0, math.exp(-2), 3.0) == pytest.approx(750)
    assert kernel.epoch_bound(10, 16) == kernel.epoch_bound(16, 2) == 6
    bound = kernel.duets_regret_bound(
        norm_bound=2.0,
        components=3,
        spread=4.0,
        beta=0.5,
        gamma=2.0,
        n_agents=10,
        horizon=20,
        first_epoch=5,
        epochs=6,
    )
    assert bound == pytest.approx(3 * (2 * 2 * 10 * 5 + 8 * 6 * 2 * 0.5 * 20 + 4 * 2 * 10))


def test_orders():
    orders = kernel.orders(jnp.asarray([1.0, 4.0]), n_agents=5, horizon=20)
    np.testing.assert_allclose(orders.duets_regret, [10, 20])
    np.testing.assert_allclose(orders.duets_communication, [1, 4])
    np.testing.assert_allclose(orders.approx_regret, [10, 40])
    np.testing.assert_allclose(orders.approx_communication, [5, 320])
    assert kernel.information_gain_order(math.e**2, dimension=3) == pytest.approx(16)
    assert kernel.information_gain_order(16.0, dimension=2, nu=1.0) == pytest.approx(4)


@functools.cache
def errors():
    """Computes |f - mean| and sd at a point for 1000 functions of norm 1, seen at 20 points with noise of sd 0.2."""

    @jax.jit
    @jax.vmap
    def one(key):
        build, noise = jax.random.split(key)
        bandit = kernel.rkhs(build, kernel=KERNEL, dimension=2, norm=1.0, size=21)
        sums = bandit.values[1:] + bandit.noise_scale * jax.random.normal(noise, (20,))
        points, at = bandit.candidates[1:], bandit.candidates[:1]
        posterior = gp.posterior(KERNEL, points, sums, at, noise_variance=NOISE_VARIANCE)
        return jnp.abs(bandit.values[0] - posterior.mean[0]), jnp.sqrt(posterior.variance[0])

    return tuple(map(np.asarray, one(jax.random.split(jax.random.key(3), 1000))))


def violations(norm_bound, noise_scale, delta):
    error, sd = errors()
    return int(np.sum(error > float(kernel.confidence_width(norm_bound, noise_scale, NOISE_VARIANCE, delta)) * sd))


def test_confidence_width_holds():
    # If each of 1000 runs failed with probability delta, more than this many would fail with probability below 1e-6.
    for delta in (0.01, 0.1, 0.5):
        assert violations(1.0, 0.2, delta) <= binom.isf(1e-6, 1000, delta)


def test_confidence_width_that_is_too_small_is_violated():
    for delta in (0.1, 0.5):
        assert violations(0.0, 0.02, delta) > binom.isf(1e-6, 1000, delta)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda c: c.information_gain(jnp.ones((2, 3)), 1.0),
            "gram must be an array of real numbers of shape (n, n), got an array of shape (2, 3) and dtype float64",
        ),
        (lambda c: c.duets_delta(0.1, 1, 1, 5), "horizon must be such that n_agents * horizon >= 2, got 1"),
        (lambda c: c.epoch_bound(1, 1), "horizon must be at least 2 with one agent, got 1"),
        (lambda c: c.information_gain_order(0.5, dimension=1), "n must be at least 1, got 0.5"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call(kernel)
    assert str(caught.value) == message
