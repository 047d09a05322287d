"""Poisson draws: their law against the probabilities, on both sides of the two branches."""

import jax
import numpy as np
import pytest
from scipy import stats

from jaxbandits.numerics.poisson import poisson_of

DRAWS = 40_000
MEANS = (0.3, 4.0, 9.99, 10.01, 30.0, 1000.0, 1e5)


@pytest.fixture(scope="module", params=["float64", "float32"])
def drawn(request):
    """Draws all means by one program; also returns whether they were accepted."""
    uniform = jax.random.uniform(jax.random.key(0), (8, len(MEANS), DRAWS), request.param)
    means = np.array(MEANS, request.param)[:, None] * np.ones(DRAWS, request.param)
    return jax.device_get(jax.jit(poisson_of)(uniform, means))


@pytest.mark.parametrize("case", range(len(MEANS)), ids=map(str, MEANS))
def test_poisson_has_its_law(drawn, case):
    """Chi-square with 24 bins of equal probability, at a false-alarm rate of 1e-4."""
    counts, accepted = drawn[0][case], drawn[1][case]
    missed = 1 - accepted.mean()
    assert missed == 0 if MEANS[case] < 10 else 0 < missed < 0.006
    counts = counts[accepted].astype(float)
    law = stats.poisson(MEANS[case])
    bins = np.unique(law.ppf(np.linspace(0, 1, 25)[1:-1]))
    expected = np.diff(np.concatenate([[0], law.cdf(bins), [1]])) * len(counts)
    observed = np.bincount(np.searchsorted(bins, counts), minlength=len(bins) + 1)
    keep = expected > 5
    assert stats.chisquare(observed[keep], expected[keep] * observed[keep].sum() / expected[keep].sum()).pvalue > 1e-4


def test_poisson_at_the_ends_of_the_uniform_numbers():
    for dtype in ("float32", "float64"):
        for end in (0.0, 1 - np.finfo(dtype).epsneg):
            means = np.array([0.0, 1e-30, 5.0, 9.9], dtype)
            counts, accepted = jax.jit(poisson_of)(np.full((8, 4), end, dtype), means)
            assert accepted.all()
            assert counts[0] == counts[1] == 0
            assert end == 0 or (np.asarray(counts[2:]) > 15).all()
            assert (np.asarray(counts) < 49).all()
