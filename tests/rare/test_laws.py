"""Likelihood ratios averaged over conjugate laws: against quadrature and sums, and of mean 1 under the truth."""

import numpy as np
import pytest
from scipy import special, stats

from jaxbandits.rare._methods import laws, linear
from jaxbandits.rare._methods.laws import Arms, Table
from jaxbandits.rare._methods.linear import Linear, Normals

RANDOM = np.random.default_rng(0)
# One arm of each kind, with a law of its mean.
CASES = {
    "gaussian": (Arms("gaussian", np.array([0.3]), 1.7), 0.8, 0.5),
    "bernoulli": (Arms("bernoulli", np.array([0.3])), 0.6, 7.0),
    "poisson": (Arms("poisson", np.array([2.0])), 3.0, 4.0),
    "exponential": (Arms("exponential", np.array([1.5])), 0.9, 4.0),
}
kinds = pytest.mark.parametrize("kind", CASES)


def log_plain(arms, mean, N, S):
    """Computes the log likelihood ratio of a fixed mean."""
    mu = arms.means[0]
    if arms.kind == "gaussian":
        return ((mean - mu) * (S - N * mu) - N * (mean - mu) ** 2 / 2) / arms.scale**2
    if arms.kind == "bernoulli":
        return special.xlogy(S, mean / mu) + special.xlogy(N - S, (1 - mean) / (1 - mu))
    if arms.kind == "poisson":
        return S * np.log(mean / mu) - N * (mean - mu)
    return -N * np.log(mean / mu) - S * (1 / mean - 1 / mu)


def prior(kind, arms, first, second):
    """Returns the law of the mean (exponential: of its inverse), and the map to the mean."""
    if kind == "gaussian":
        return stats.norm(arms.means[0] + first, second), lambda x: x
    if kind == "bernoulli":
        return stats.beta(first * second, (1 - first) * second), lambda x: x
    if kind == "poisson":
        return stats.gamma(second, scale=first / second), lambda x: x
    return stats.gamma(second, scale=1 / (first * second)), lambda x: 1 / x


def ratio(arms, first, second, N, S):
    table = Table(np.array([first]), np.array([second]))
    return laws.log_ratio(arms, table, np.atleast_1d(N)[:, None], np.atleast_1d(S)[:, None])[:, 0]


def sums_of(arms, N, random):
    mu = arms.means[0]
    draws = {
        "gaussian": lambda: random.normal(N * mu + 1, arms.scale * np.sqrt(N)),
        "bernoulli": lambda: random.binomial(N, mu),
        "poisson": lambda: random.poisson(N * mu),
        "exponential": lambda: random.gamma(N, mu),
    }
    return float(draws[arms.kind]())


@kinds
def test_log_ratio_equals_quadrature_over_the_mean(kind):
    arms, first, second = CASES[kind]
    law, mean = prior(kind, arms, first, second)
    # Gauss and Legendre in the law's own probability, on panels that grow finer towards the ends.
    edges = np.concatenate([10.0 ** np.arange(-14, 0), 1 - 10.0 ** np.arange(-1, -15, -1)])
    nodes, weights = np.polynomial.legendre.leggauss(60)
    u = (edges[:-1, None] + edges[1:, None] + np.diff(edges)[:, None] * nodes) / 2
    means = mean(law.ppf(u))
    for _ in range(20):
        N = int(RANDOM.integers(1, 40))
        S = sums_of(arms, N, RANDOM)
        expected = (np.exp(log_plain(arms, means, N, S)) * weights * np.diff(edges)[:, None] / 2).sum()
        assert ratio(arms, first, second, N, S)[0] == pytest.approx(np.log(expected), abs=1e-7)


@kinds
def test_ratio_has_mean_one_under_the_truth(kind):
    arms, first, second = CASES[kind]
    mu, N = arms.means[0], 7
    if kind in ("bernoulli", "poisson"):
        S = np.arange(0, N + 1 if kind == "bernoulli" else 2000)
        density = stats.binom(N, mu).pmf(S) if kind == "bernoulli" else stats.poisson(N * mu).pmf(S)
        with np.errstate(divide="ignore"):
            mean = np.exp(ratio(arms, first, second, np.full(S.size, N), S) + np.log(density)).sum()
    else:
        # The trapezoid rule; sums of exponential rewards in the scale of their logarithm, for the tail is heavy.
        is_normal = kind == "gaussian"
        v = np.linspace(-80, 120, 20_001) if is_normal else np.linspace(-20, 40, 20_001)
        S = v if is_normal else np.exp(v)
        law = stats.norm(N * mu, arms.scale * np.sqrt(N)) if is_normal else stats.gamma(N, scale=mu)
        log_density = law.logpdf(S) + (0 if is_normal else v)
        mean = np.exp(ratio(arms, first, second, np.full(S.size, N), S) + log_density).sum() * (v[1] - v[0])
    assert mean == pytest.approx(1, abs=1e-9)


@kinds
def test_a_point_is_the_plain_likelihood_ratio(kind):
    arms, _, _ = CASES[kind]
    for mean in (0.2, 0.45, 0.9):
        table = laws.points(arms, np.array([mean]))
        for N in (1, 30):
            S = sums_of(arms, N, RANDOM)
            got = laws.log_ratio(arms, table, np.array([N]), np.array([S]))[0]
            assert got == pytest.approx(log_plain(arms, mean, N, S), abs=1e-10)


@kinds
def test_the_truth_as_a_point_has_ratio_one(kind):
    arms, _, _ = CASES[kind]
    table = laws.points(arms, arms.means)
    assert laws.log_ratio(arms, table, np.array([50]), np.array([20.0])) == pytest.approx(0, abs=1e-12)


@kinds
def test_an_arm_without_pulls_has_ratio_one(kind):
    arms, first, second = CASES[kind]
    assert ratio(arms, first, second, 0, 0.0) == 0


@kinds
def test_a_million_pulls_do_not_overflow(kind):
    arms, first, second = CASES[kind]
    N = 10**6
    for S in (N * arms.means[0], N * arms.means[0] * 1.1):
        assert np.isfinite(ratio(arms, first, second, N, S)).all()


def test_bernoulli_without_ones_and_without_zeros_equals_the_sum_formula():
    arms, p, c = CASES["bernoulli"]
    for N in (1, 12):
        a, b = p * c, (1 - p) * c
        zeros = special.betaln(a, b + N) - special.betaln(a, b) - N * np.log(0.7)
        ones = special.betaln(a + N, b) - special.betaln(a, b) - N * np.log(0.3)
        assert ratio(arms, p, c, N, 0.0)[0] == pytest.approx(zeros)
        assert ratio(arms, p, c, N, float(N))[0] == pytest.approx(ones)


@pytest.mark.parametrize(("kind", "mean"), [("poisson", 0.0), ("exponential", -1.0), ("bernoulli", 1.0)])
def test_means_outside_the_support_are_refused(kind, mean):
    with pytest.raises(ValueError, match="alternatives must"):
        laws.require_inside("alternatives", kind, np.array([0.5, mean]))


@kinds
def test_draws_follow_their_law(kind):
    arms, first, second = CASES[kind]
    n = 20_000
    table = Table(np.full((n, 1), first), np.full((n, 1), second))
    drawn = laws.draw(arms, table, np.random.default_rng(1))[:, 0]
    law, mean = prior(kind, arms, first, second)
    # False alarm in 1 of 10,000.
    assert stats.kstest(1 / drawn if kind == "exponential" else mean(drawn), law.cdf).pvalue > 1e-4


LINEAR = Linear(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]), np.array([0.5, -0.2]), 1.3)
FACTOR = np.array([[0.7, 0.0], [0.4, 0.3]])


def test_linear_log_ratio_equals_an_average_over_theta():
    offset = np.array([-0.4, 0.3])
    N, S = np.array([[4.0, 2.0, 3.0]]), np.array([[1.0, -1.5, 2.0]])
    x, w = np.polynomial.hermite_e.hermegauss(60)
    h = offset + np.stack(np.meshgrid(x, x), -1).reshape(-1, 2) @ FACTOR.T
    V, D = linear.moments(LINEAR, N, S)
    plain = h @ D[0] - np.einsum("ni,ij,nj->n", h, V[0], h) / 2
    expected = np.log((np.outer(w, w).ravel() * np.exp(plain)).sum() / w.sum() ** 2)
    got = linear.log_ratio(LINEAR, Normals(offset[None], FACTOR[None]), N, S)
    assert got[0, 0] == pytest.approx(expected, abs=1e-9)


def test_linear_point_is_the_plain_likelihood_ratio():
    theta = np.array([[0.1, 0.4]])
    N, S = np.array([[4.0, 2.0, 3.0]]), np.array([[1.0, -1.5, 2.0]])
    means, shifted = LINEAR.features @ LINEAR.theta, LINEAR.features @ theta[0]
    expected = ((shifted - means) * (S - N * means) - N * (shifted - means) ** 2 / 2).sum() / 1.3**2
    assert linear.log_ratio(LINEAR, linear.points(LINEAR, theta), N, S)[0, 0] == pytest.approx(expected)


def test_linear_ratio_of_unit_features_equals_the_ratio_of_arms():
    arms = Arms("gaussian", np.array([0.5, -0.2]), 1.3)
    table = Table(np.array([0.3, -0.1]), np.array([0.2, 0.6]))
    N, S = np.array([[4.0, 9.0]]), np.array([[1.0, -1.5]])
    units = Linear(np.eye(2), arms.means, 1.3)
    got = linear.log_ratio(units, Normals(table.first[None], np.diag(table.second)[None]), N, S)
    assert got[0, 0] == pytest.approx(laws.log_ratio(arms, table, N, S).sum())
