"""Thresholds against worked numbers, direct minimisation and eigenvalues."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import betaln, xlogy, zeta
from scipy.stats import gamma

from jaxbandits.numerics import thresholds
from jaxbandits.numerics.thresholds import Evidence, mixture_constant

LINEAR = {"norm_bound": 2.0, "ridge": 1.0, "noise_scale": 1.0}
COUNTS = np.array([400, 350, 150, 100])
BY_HAND = {
    "gk16, first": (thresholds.gk16(arms=4), Evidence(1), 0.1, 2.302585),
    "gk16": (thresholds.gk16(arms=4), Evidence(1000), 0.1, 4.370429),
    "gk_union": (thresholds.gk_union(arms=4), Evidence(1000), 0.1, 11.002100),
    "log_t": (thresholds.log_t(arms=4), Evidence(99), 0.01, 9.210340),
    "log_t, 1000": (thresholds.log_t(), Evidence(1000), 0.1, 9.211340),
    "kl_lucb": (thresholds.kl_lucb(arms=4), Evidence(1000), 0.1, 20.142806),
    "kk_pair": (thresholds.kk_pair(arms=4), Evidence(1000, np.array([400, 250])), 0.1, 15.63468),
    "kk_all": (thresholds.kk_all(arms=4), Evidence(1000, COUNTS), 0.1, 26.06766),
    "kt, one arm": (thresholds.kt(comparisons=4), Evidence(9, np.array([7]), law="Bernoulli"), 0.1, 5.35498157),
    "kt, all arms": (thresholds.kt(comparisons=1), Evidence(1000, COUNTS, law="Bounded"), 0.1, 15.8077754),
    "kt": (thresholds.kt(comparisons=3), Evidence(20, np.array([5, 15])), 0.1, np.log(3) + 5.84762351),
    "box, t": (thresholds.box(comparisons=1), Evidence(5), 0.1, 7.34507472),
    "box": (thresholds.box(arms=3, reads="counts"), Evidence(150, np.array([50])), 0.1, 9.2466697),
    "box_sharp, t": (thresholds.box_sharp(arms=3), Evidence(500), 0.001, 14.5650012),
    "box_sharp": (thresholds.box_sharp(comparisons=1, reads="counts"), Evidence(20, np.array([5])), 0.1, 7.31836476),
    "poisson_mixture": (
        thresholds.poisson_mixture(comparisons=3),
        Evidence(14, np.array([10, 4]), sums=np.array([12.0, 0.0]), law="Poisson"),
        0.1,
        np.log(30) + 1.9995670225 + 0.804718956217,
    ),
    "exponential_mixture": (
        thresholds.exponential_mixture(arms=2),
        Evidence(20, np.array([10, 10]), sums=np.array([7.5, 7.5]), law="Exponential"),
        0.1,
        np.log(10) + 2 * 1.97925516475,
    ),
    "ellipsoid": (thresholds.ellipsoid(**LINEAR), Evidence(1000, log_det=20.0), 0.1, 24.223305),
    "ellipsoid_trace": (
        thresholds.ellipsoid_trace(dimension=6, arm_norm=1.0, **LINEAR),
        Evidence(1000),
        0.1,
        31.557512,
    ),
    "jp": (
        thresholds.jp(dimension=6, ridge=0.1, least=1.0),
        Evidence(1000, log_det=20.0, least_eigenvalue=2.0),
        0.1,
        13.532844,
    ),
    "jp_heuristic": (thresholds.jp_heuristic(dimension=6), Evidence(1000), 0.1, 14.245163),
}


def value(threshold, evidence, delta, dtype=np.float64):
    given = {name: x if x is None or name == "law" else np.asarray(x) for name, x in evidence._asdict().items()}
    given = {
        name: x.astype(dtype) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x for name, x in given.items()
    }
    return threshold(dtype(delta), Evidence(**given))


@pytest.mark.parametrize("name", BY_HAND)
def test_by_hand(name):
    threshold, evidence, delta, expected = BY_HAND[name]
    assert threshold.__name__ == name.partition(",")[0]
    result = value(threshold, evidence, delta)
    np.testing.assert_allclose(result, expected, atol=1.5e-5 if "kk" in name else 1e-6)
    single = value(threshold, evidence, delta, np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, result, rtol=1e-5)
    traced = jax.jit(lambda delta: value(lambda _, evidence: threshold(delta, evidence), evidence, 0.5))(delta)
    np.testing.assert_allclose(traced, result, rtol=1e-12)
    assert threshold(delta, evidence) == result


@pytest.mark.parametrize("name", BY_HAND)
def test_threshold_rises_with_the_evidence_and_falls_with_delta(name):
    threshold, evidence, delta, _ = BY_HAND[name]
    more = Evidence(*(2 * field if isinstance(field, (int, float, np.ndarray)) else field for field in evidence))
    assert value(threshold, more, delta) > value(threshold, evidence, delta)
    assert value(threshold, evidence, delta / 2) > value(threshold, evidence, delta)


def test_mixture_constant_is_the_minimum():
    def exact(x):
        def at(lam):
            return (2 * lam - 2 * lam * np.log(4 * lam) + np.log(zeta(2 * lam)) - np.log(1 - lam) / 2 + x) / lam

        return minimize_scalar(at, bounds=(0.51, 1 - 1e-6), method="bounded", options={"xatol": 1e-10}).fun

    x = np.concatenate([np.linspace(0, 10, 41), np.linspace(12, 200, 48)])
    excess = np.asarray(mixture_constant(x)) - [exact(each) for each in x]
    assert excess.min() >= 0
    assert excess.max() <= 1.2e-5
    np.testing.assert_allclose(mixture_constant(np.array([1.7, 10.0])), [3.262, 11.955], atol=6e-4)


def test_jp_is_never_below_its_value_at_the_exact_ridge():
    rng, least, excess = np.random.default_rng(0), 0.5, 0.1
    for ridge in (0.001, excess * least, 1.0):
        threshold = thresholds.jp(dimension=4, ridge=ridge, least=least, excess=excess)
        for scale in (2.0, 100.0):
            x = rng.normal(size=(20, 4)) * scale**0.5
            values = np.linalg.eigvalsh(x.T @ x)
            evidence = Evidence(20, log_det=np.log1p(values / ridge).sum(), least_eigenvalue=values[0])
            exact = 1.1 * (np.log1p(values / (excess * least)).sum() / 2 - np.log(0.1))
            excess_over = float(value(threshold, evidence, 0.1)) - exact
            assert excess_over >= -1e-9
            if ridge == excess * least:
                assert excess_over < 1e-9
    assert value(threshold, Evidence(5, log_det=1.0, least_eigenvalue=0.4), 0.1) == np.inf


def test_comparisons_are_a_union_bound_without_underflow():
    evidence = Evidence(1000, np.array([400, 250]))
    for kind in (thresholds.gk16, thresholds.log_t, thresholds.kk_pair):
        divided = value(kind(arms=2, comparisons=1), evidence, 0.1 / 7)
        np.testing.assert_allclose(value(kind(arms=4, comparisons=7), evidence, 0.1), divided, rtol=1e-12)
        traced = jax.jit(lambda n, kind=kind: kind(comparisons=n)(jnp.float64(0.1), evidence))(7)
        np.testing.assert_allclose(traced, divided, rtol=1e-12)
        assert np.isfinite(value(kind(comparisons=1e8), evidence, 1e-30, np.float32))


def test_refuses():
    with pytest.raises(ValueError, match=r"evidence\.counts must be the pulls of the two arms"):
        thresholds.kk_pair(arms=4)(0.1, Evidence(10))
    with pytest.raises(ValueError, match=r"shape \(2,\), for kk_pair"):
        thresholds.kk_pair(arms=4)(0.1, Evidence(10, np.ones(3, int)))
    with pytest.raises(ValueError, match=r"shape \(4,\), for kk_all"):
        thresholds.kk_all(arms=4)(0.1, Evidence(10, np.ones(2, int)))
    with pytest.raises(ValueError, match=r"evidence\.least_eigenvalue must be given to jp"):
        thresholds.jp(dimension=2, ridge=1.0, least=1.0)(0.1, Evidence(10, log_det=np.float64(1.0)))
    with pytest.raises(ValueError, match="arms must be an integer"):
        thresholds.kk_pair()
    with pytest.raises(ValueError, match=r"evidence\.law must be Poisson for poisson_mixture, got 'Exponential'"):
        thresholds.poisson_mixture(arms=2)(0.1, Evidence(10, np.ones(2, int), sums=np.ones(2), law="Exponential"))
    with pytest.raises(ValueError, match=r"evidence\.law must be Bernoulli or Bounded for kt, got 'Gaussian'"):
        thresholds.kt(arms=2)(0.1, Evidence(10, np.ones(2, int), law="Gaussian"))
    with pytest.raises(ValueError, match=r"evidence\.law must be Bernoulli or Bounded for kt, got None"):
        thresholds.kt(arms=3)(0.1, Evidence(10, np.ones(3, int)))
    with pytest.raises(ValueError, match=r"the arms that are compared, an array of shape \(n,\), for kt, got None"):
        thresholds.kt(arms=3)(0.1, Evidence(10, law="Bernoulli"))
    with pytest.raises(ValueError, match=r"the pulls of the one arm, an array of shape \(1,\), for box_sharp"):
        thresholds.box_sharp(arms=2, reads="counts")(0.1, Evidence(10, np.ones(2, int)))
    with pytest.raises(ValueError, match=r"evidence\.sums must be given to exponential_mixture"):
        thresholds.exponential_mixture(arms=2)(0.1, Evidence(10, np.ones(2, int), law="Exponential"))


@pytest.mark.parametrize("kind", ["poisson", "exponential"])
def test_a_mixture_adds_the_excess_of_every_arm(kind):
    made, law = getattr(thresholds, f"{kind}_mixture")(comparisons=1), kind.capitalize()
    counts, sums = np.array([3, 40, 500]), np.array([2.0, 55.0, 610.0])
    each = [value(made, Evidence(543, counts[a : a + 1], sums=sums[a : a + 1], law=law), 0.1) for a in range(3)]
    together = value(made, Evidence(543, counts, sums=sums, law=law), 0.1)
    np.testing.assert_allclose(together + 2 * np.log(10), np.sum(each), rtol=1e-12)


# Shares of 2,000 runs in which the statistic of one arm exceeds the threshold within 20,000 pulls, of another program.
ONE_ARM = {
    "kt": (thresholds.kt(comparisons=1), "Bernoulli", 0.3, 0.068),
    "poisson": (thresholds.poisson_mixture(comparisons=1), "Poisson", 1.0, 0.10),
    "exponential": (thresholds.exponential_mixture(comparisons=1), "Exponential", 1.0, 0.036),
}


@pytest.mark.parametrize("name", ONE_ARM)
def test_one_arm_exceeds_its_threshold_with_a_probability_below_delta(name):
    """500 runs; four standard errors of the difference, and of delta."""
    made, law, mean, expected = ONE_ARM[name]
    rng, runs, length, delta = np.random.default_rng(3), 500, 20_000, 0.1
    n, exceeded = np.arange(1, length + 1), 0
    limit = jax.jit(jax.vmap(lambda N, S: made(jnp.float64(delta), Evidence(N[0], N, sums=S, law=law))))
    for _ in range(runs):
        if law == "Bernoulli":
            S = np.cumsum(rng.random(length) < mean).astype(float)
            cost = xlogy(S, S / n / mean) + xlogy(n - S, (1 - S / n) / (1 - mean))
        elif law == "Poisson":
            S = np.cumsum(rng.poisson(mean, length)).astype(float)
            cost = xlogy(S, S / n / mean) - S + n * mean
        else:
            S = np.cumsum(rng.exponential(mean, length))
            cost = S / mean - n - n * np.log(S / n / mean)
        exceeded += (cost > np.asarray(limit(n[:, None], S[:, None]))).any()
    share = exceeded / runs
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) * (1 / runs + 1 / 2000))
    assert share < delta + 4 * np.sqrt(delta * (1 - delta) / runs)


def test_kt_bounds_the_likelihood_over_its_mean_also_for_sums_that_are_not_whole():
    made = thresholds.kt(comparisons=1)
    for n in (1, 2, 7, 50, 3000):
        sums = np.linspace(0, n, 201)
        p = sums / n
        largest = xlogy(sums, p) + xlogy(n - sums, 1 - p)
        mean = betaln(sums + 0.5, n - sums + 0.5) - betaln(0.5, 0.5)
        excess = (value(made, Evidence(2 * n, np.array([n, n])), 0.1) - np.log(10)) / 2
        assert (largest - mean).max() <= excess + 1e-9
        assert (largest - mean).max() > excess - 0.25


@pytest.mark.parametrize("kind", ["poisson", "exponential"])
def test_the_excess_of_a_mixture_is_that_of_quadrature(kind):
    """For few and for many rewards; the difference of large terms is replaced by a series there."""
    made = getattr(thresholds, f"{kind}_mixture")(scale=2.5, comparisons=1)
    for N, S in ((3, 2.0), (10, 40.0), (40, 9.0), (2000, 5100.0), (10**6, 2.3e6)):
        mode = S / N if kind == "poisson" else N / S

        def ratio(m, N=N, S=S, mode=mode):
            events, time = (S, N) if kind == "poisson" else (N, S)
            prior = gamma(0.5, scale=2.5 if kind == "poisson" else 1 / 2.5).pdf(m)
            return np.exp(events * np.log(m / mode) - time * (m - mode)) * prior

        spread = mode / np.sqrt(S if kind == "poisson" else N)
        low, high = max(mode - 30 * spread, 0), mode + 60 * spread
        area = quad(ratio, low, mode, epsabs=0, limit=500)[0] + quad(ratio, mode, high, epsabs=0, limit=500)[0]
        evidence = Evidence(2 * N, np.array([N, N]), sums=np.array([S, S]), law=kind.capitalize())
        excess = (value(made, evidence, 0.1) - np.log(10)) / 2
        np.testing.assert_allclose(excess, -np.log(area), atol=1e-8)


def test_box_is_a_root_for_many_pulls_and_small_delta():
    for n, delta, comparisons in ((1, 0.5, 1), (10, 1e-30, 7), (2 * 10**9, 0.01, 1e6)):
        at, ratio = Evidence(n), np.log(comparisons / delta)
        kinds = {
            thresholds.box: 2 * ratio + 4 * np.log(4 + np.log(n)) + 0.5,
            thresholds.box_sharp: 1 + 2 * (ratio + np.log(zeta(2))) + 4 * np.log(1 + np.log(n) / 4) + 4,
        }
        for kind, x in kinds.items():
            y = 2 * float(value(kind(comparisons=comparisons), at, delta))
            assert y > 1
            np.testing.assert_allclose(y - np.log(y), x, rtol=1e-12)
        over = [float(value(kind(comparisons=comparisons), at, delta)) for kind in kinds]
        assert 0 < over[0] - over[1] < 0.03


def test_box_is_rarely_exceeded_by_one_arm():
    """Up to 2 10^4 pulls, the statistic exceeds gk16 in more than delta of the runs, and the box in hardly any."""
    rng, runs, delta, length = np.random.default_rng(2), 1000, 0.1, 20_000
    n = np.arange(1, length + 1)
    limit = np.asarray(value(thresholds.box(comparisons=1), Evidence(n), delta))
    gk16 = np.log1p(np.log(n)) - np.log(delta)
    exceeded = np.zeros(2)
    for _ in range(runs):
        statistic = np.cumsum(rng.normal(size=length)) ** 2 / (2 * n)
        exceeded += [(statistic > limit).any(), (statistic > gk16).any()]
    assert exceeded[0] <= 0.02 * runs
    assert exceeded[1] > 0.12 * runs


@pytest.mark.slow
def test_two_equal_arms():
    """Up to t = 10^5, the statistic exceeds kk_pair in a share of at most delta of the runs, and gk16 in more."""
    rng, runs, delta = np.random.default_rng(1), 1000, 0.1
    walk, n = np.zeros(runs), 0
    passed = {"gk16": np.zeros(runs, bool), "kk_pair": np.zeros(runs, bool)}
    for _ in range(50):
        steps = rng.normal(size=(runs, 1000)) * 2**0.5
        paths = walk[:, None] + np.cumsum(steps, axis=1)
        counts = n + np.arange(1, 1001)
        statistic = paths**2 / (4 * counts)
        gk16 = np.log1p(np.log(2 * counts)) - np.log(delta)
        kk = 2 * float(mixture_constant(np.float64(-np.log(delta) / 2))) + 4 * np.log(4 + np.log(counts))
        passed["gk16"] |= (statistic > gk16).any(axis=1)
        passed["kk_pair"] |= (statistic > kk).any(axis=1)
        walk, n = paths[:, -1], n + 1000
    assert passed["kk_pair"].mean() <= delta
    assert 0.1 < passed["gk16"].mean() < 0.19
