"""Tracking: the closed form against the sequential rule, in exact rational arithmetic."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.numerics.tracking import round_allocation, tracked_counts


def proportions(*parts):
    return [Fraction(part, sum(parts)) for part in parts]


def dirichlet(K, seed):
    return [Fraction(share) for share in np.random.default_rng(seed).dirichlet(np.ones(K))]


ALLOCATIONS = {
    "halves": proportions(3, 2, 1),
    "uniform": proportions(*[1] * 40),
    "with zeros": proportions(0, 5, 0, 3, 0),
    "single arm": proportions(0, 1, 0),
    "many ties": proportions(*[3, 1, 2, 5, 4, 5, 1, 0, 5, 5, 3]),
    "one large": proportions(360, *[1] * 40),
    "random": dirichlet(7, 1),
    "random, many": dirichlet(40, 2),
}


def sequential(shares, last):
    """Returns the counts after n = K, ..., last pulls of the rule, pull by pull."""
    counts = [1] * len(shares)
    history = [list(counts)]
    for _ in range(last - len(shares)):
        support = [a for a, share in enumerate(shares) if share > 0]
        counts[min(support, key=lambda a: counts[a] / shares[a])] += 1
        history.append(list(counts))
    return np.array(history)


def largest_remainders(p, n):
    counts = np.floor(n * p).astype(int)
    counts[np.argsort(counts - n * p, kind="stable")[: n - counts.sum()]] += 1
    return counts


def as_array(shares):
    return jnp.array([float(share) for share in shares])


@pytest.mark.parametrize("shares", ALLOCATIONS.values(), ids=ALLOCATIONS.keys())
def test_equals_the_sequential_rule(shares):
    n = jnp.arange(len(shares), 401)
    counts = jax.vmap(tracked_counts, (None, 0))(as_array(shares), n)
    np.testing.assert_array_equal(counts, sequential(shares, 400))


def test_sequence_by_hand():
    p = jnp.array([1 / 2, 1 / 3, 1 / 6])
    counts = np.array([tracked_counts(p, n) for n in range(3, 16)])
    assert np.argmax(np.diff(counts, axis=0), axis=1).tolist() == [0, 1, 0, 0, 1, 2, 0, 1, 0, 0, 1, 2]


@pytest.mark.parametrize("start", [10**4, 10**7, 10**10])
def test_grows_by_one_pull_and_keeps_its_bound(start):
    p = as_array(ALLOCATIONS["random"])
    n = start + np.arange(500)
    counts = np.asarray(jax.jit(jax.vmap(tracked_counts, (None, 0)))(p, n))
    steps = np.diff(counts, axis=0)
    assert steps.min() == 0
    assert np.all(steps.sum(1) == 1)
    np.testing.assert_array_equal(counts.sum(1), n)
    assert np.all(counts >= (n[:, None] - 7) * np.asarray(p))


def test_largest_remainders_lose_pulls():
    """The Alabama paradox is why the rule has another closed form."""
    p = np.array([6, 6, 2]) / 14
    assert largest_remainders(p, 10).tolist() == [4, 4, 2]
    assert largest_remainders(p, 11).tolist() == [5, 5, 1]
    for n in range(3, 200):
        assert np.abs(tracked_counts(jnp.array(p), n) - largest_remainders(p, n)).max() <= 1


def test_many_small_shares_let_the_rule_lag_behind_its_quota():
    p = as_array(ALLOCATIONS["one large"])
    # After 400 pulls count / p is 400 for all 41 arms, and the small ones take 40 of the next 41 pulls.
    assert tracked_counts(p, 400).tolist() == [360, *[1] * 40]
    assert tracked_counts(p, 441).tolist() == [361, *[2] * 40]
    assert largest_remainders(np.asarray(p), 441)[0] == 397


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_integer_type_and_sum(dtype):
    p = jnp.array([0.15, 0.35, 0.5], dtype)
    counts = tracked_counts(p, 10**8 + 7)
    assert counts.dtype == jnp.int64
    assert counts.sum() == 10**8 + 7
    with jax.enable_x64(False):
        counts = tracked_counts(jnp.array([0.15, 0.35, 0.5]), 100_003)
        assert counts.dtype == jnp.int32
    np.testing.assert_array_equal(counts, tracked_counts(jnp.array([0.15, 0.35, 0.5]), 100_003))


def test_tracked_counts_of_a_nan_allocation_terminate():
    assert tracked_counts(jnp.full(3, jnp.nan), 10**9).shape == (3,)


@pytest.mark.parametrize(
    ("p", "n", "counts"),
    [
        ([0.5, 0.3, 0.2], 10, [5, 3, 2]),
        ([0.5, 0.5, 0.0], 9, [5, 4, 0]),
        ([0.25] * 4, 6, [2, 2, 1, 1]),
        ([0.9, 0.05, 0.05], 3, [1, 1, 1]),
    ],
)
def test_rounding_by_hand(p, n, counts):
    assert round_allocation(jnp.array(p), n).tolist() == counts


@pytest.mark.parametrize("n", [4, 7, 12])
def test_rounding_maximises_the_smallest_ratio(n):
    p = np.random.default_rng(0).dirichlet(np.ones(4))
    cells = np.stack(np.meshgrid(*[np.arange(n + 1)] * 4), -1).reshape(-1, 4)
    best = max((counts / p).min() for counts in cells[cells.sum(1) == n])
    counts = round_allocation(jnp.array(p), n)
    assert counts.sum() == n
    assert (np.asarray(counts) / p).min() == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("function", [tracked_counts, round_allocation])
def test_fewer_pulls_than_arms_are_refused(function):
    with pytest.raises(ValueError, match="n must be at least .*, got 1"):
        function(jnp.array([0.5, 0.5]), 1)
