"""Binomial draws: their law against the probabilities, on both sides of the two branches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxbandits.numerics.binomial import TERMS, _log_mass, binomial_of

DRAWS = 40_000
CASES = [
    (20, 0.5),
    (19, 0.5),
    (30, 0.4),
    (1000, 0.0099),
    (1000, 0.011),
    (100, 0.3),
    (100, 0.97),
    (10_000, 0.7),
    (3, 0.2),
]


@pytest.fixture(scope="module", params=["float64", "float32"])
def drawn(request):
    """Draws all cases by one program; also returns whether they were accepted."""
    uniform = jax.random.uniform(jax.random.key(0), (8, len(CASES), DRAWS), request.param)
    n, p = np.array(CASES).T[..., None] * np.ones((2, len(CASES), DRAWS))
    return jax.device_get(jax.jit(binomial_of)(uniform, n.astype(np.int32), p.astype(request.param)))


@pytest.mark.parametrize("case", range(len(CASES)), ids=map(str, CASES))
def test_binomial_has_its_law(drawn, case):
    n, p = CASES[case]
    counts, accepted = drawn[0][case], drawn[1][case]
    missed = 1 - accepted.mean()
    assert missed == 0 if n * min(p, 1 - p) < 10 else 0 < missed < 0.01
    counts = counts[accepted]
    law = stats.binom(n, p)
    bins = np.unique(law.ppf(np.linspace(0, 1, 25)[1:-1]))
    upto = np.concatenate([[0], law.cdf(bins), [1]])
    expected = np.diff(upto) * len(counts)
    observed = np.bincount(np.searchsorted(bins, counts), minlength=len(bins) + 1)
    keep = expected > 5
    assert stats.chisquare(observed[keep], expected[keep] * observed[keep].sum() / expected[keep].sum()).pvalue > 1e-4


def test_binomial_at_extreme_parameters_is_exact():
    cases = [(0, 0.3, 0), (5, 0.0, 0), (5, 1.0, 5), (10**6, 0.0, 0), (10**6, 1.0, 10**6), (0, 1.0, 0), (1, 0.5, None)]
    n, p, expected = (np.array(x, float) for x in zip(*cases, strict=True))
    for dtype in ("float32", "float64"):
        for end in (0.0, 1 - np.finfo(dtype).epsneg):
            uniform = np.full((8, len(cases)), end, dtype)
            counts, accepted = jax.jit(binomial_of)(uniform, n.astype(np.int32), p.astype(dtype))
            assert accepted.all()
            np.testing.assert_array_equal(counts[:-1], expected[:-1])
            assert int(counts[-1]) == int(end > 0)


def test_proposals_at_the_edges_are_rejected_and_finite():
    uniform = np.stack([np.zeros((4, 1)), np.zeros((4, 1))]).reshape(8, 1)
    count, accepted = binomial_of(uniform, np.array([100]), np.array([0.5]))
    assert not accepted[0]
    assert 0 <= count[0] <= 100


def test_log_mass_in_float32_keeps_its_digits():
    for n in (1000, 10**6):
        p = 0.3
        k = np.round(n * p + np.linspace(-5, 5, 11) * np.sqrt(n * p * (1 - p)))
        exact = stats.binom(n, p).logpmf(k) - stats.binom(n, p).logpmf(np.floor((n + 1) * p))
        single = [jnp.asarray(x, jnp.float32) for x in (k, n, p)]
        mode = jnp.floor((single[1] + 1) * single[2])
        error = np.asarray(_log_mass(*single) - _log_mass(mode, *single[1:])) - exact
        assert np.abs(error).max() < (2e-5 if n == 1000 else 4e-4)


def test_terms_of_the_inversion_suffice():
    assert stats.binom(10**6, 9.99e-6).sf(TERMS - 1) < 1e-16
