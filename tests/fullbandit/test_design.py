"""Supports, allocations and the counts that track them, against closed forms, enumeration and the literal rule."""

import math
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from jaxbandits.fullbandit import (
    all_superarms,
    cyclic_support,
    g_allocation,
    make_design,
    random_support,
    tracking_counts,
    xy_allocation,
)
from jaxbandits.fullbandit._problem.design import check_design
from jaxbandits.fullbandit._theory.allocations import difference_directions

PAIRS = [[1, 1, 0], [1, 0, 1], [0, 1, 1]]
FULL_CLASSES = [(3, 2), (5, 2), (6, 3), (7, 5), (10, 4), (10, 5)]


def squared_norms(rows, matrix):
    return np.einsum("mi,ij,mj->m", rows, matrix, rows)


def is_basis(rows):
    n = rows.shape[1]
    return np.linalg.matrix_rank(np.asarray(rows[:n], float)) == n


# Designs


def test_all_pairs_of_three_by_hand():
    design = make_design(PAIRS, 2)
    np.testing.assert_array_equal(design.support, PAIRS)
    np.testing.assert_allclose(design.gram, (np.eye(3) + 1) / 3, rtol=1e-15)
    np.testing.assert_allclose(design.inverse, 3 * np.eye(3) - 0.75, rtol=1e-14)
    np.testing.assert_allclose(squared_norms(np.array(PAIRS), design.inverse), 3, rtol=1e-14)
    assert squared_norms(np.array([[1.0, -1.0, 0.0]]), design.inverse) == pytest.approx(6)
    assert int(design.cycle) == 3
    assert design.spectral == pytest.approx(3)
    assert design.condition == pytest.approx(4)


@pytest.mark.parametrize(("n", "k"), FULL_CLASSES)
def test_uniform_shares_of_all_superarms(n, k):
    rows = all_superarms(n, k)
    design = make_design(rows, k)
    assert len(rows) == math.comb(n, k)
    diagonal, beside = k / n, k * (k - 1) / (n * (n - 1))
    np.testing.assert_allclose(design.gram, beside + (diagonal - beside) * np.eye(n), rtol=1e-12)
    least = k * (n - k) / (n * (n - 1))
    np.testing.assert_allclose(np.linalg.eigvalsh(design.gram), [least] * (n - 1) + [k**2 / n], rtol=1e-12)
    np.testing.assert_allclose(squared_norms(rows.astype(float), design.inverse), n, rtol=1e-12)
    np.testing.assert_allclose(np.diagonal(design.inverse), (1 - 1 / n) / least + 1 / k**2, rtol=1e-12)
    assert squared_norms(difference_directions(n, k), design.inverse).max() == pytest.approx(2 * min(k, n - k) / least)
    assert design.spectral == pytest.approx(1 / least)
    assert design.condition == pytest.approx(k**2 / n / least)


def test_unequal_shares_and_the_basis_in_front():
    """The fourth row is the sum of the first two less the third, and moves to the end."""
    rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 1]])
    shares = np.array([0.1, 0.15, 0.2, 0.25, 0.3])
    design = make_design(rows, 2, weights=shares)
    order = [0, 1, 2, 4, 3]
    np.testing.assert_array_equal(design.support, rows[order])
    np.testing.assert_array_equal(design.weights, shares[order])
    assert int(design.cycle) == 0
    gram = sum(p * np.outer(x, x) for p, x in zip(shares, rows, strict=True))
    np.testing.assert_allclose(design.gram, gram, rtol=1e-14)
    np.testing.assert_allclose(design.gram @ design.inverse, np.eye(4), atol=1e-12)
    assert design.condition == pytest.approx(np.linalg.cond(gram))
    centring = np.eye(4) - 0.25
    assert design.spectral == pytest.approx(np.linalg.norm(centring @ np.linalg.inv(gram) @ centring, 2))


def test_equal_shares_make_a_cycle_however_given():
    assert int(make_design(PAIRS, 2, weights=[1 / 3] * 3).cycle) == 3


def test_dtypes():
    with jax.enable_x64(False):
        design = make_design(random_support(0, 8, 3), 3)
        assert {x.dtype for x in jax.tree.leaves(design)} == {jnp.dtype("float32"), jnp.dtype("int32")}
    assert make_design(PAIRS, 2, dtype=jnp.float32).inverse.dtype == jnp.float32
    assert make_design(PAIRS, 2).cycle.dtype == jnp.int64


@pytest.mark.parametrize(
    ("support", "k", "change", "message"),
    [
        (PAIRS, 3, {}, r"k must be an integer in \[2, 2\], got 3"),
        (PAIRS[:2], 2, {}, r"support must have shape \(s, n\) with s >= n, got \(2, 3\)"),
        ([[2, 0, 0], *PAIRS[1:]], 2, {}, "support must have entries 0 and 1"),
        ([[1, 1, 1], *PAIRS[1:]], 2, {}, r"support must have equally many ones in every row, got \[3 2 2\]"),
        (cyclic_support(5, 3), 2, {}, "k must be the ones in a row of support, got 2"),
        ([*PAIRS, PAIRS[0]], 2, {}, "support must have no two equal rows"),
        (cyclic_support(4, 2), 2, {}, "support must span all arms, got rank 3 of 4"),
        (PAIRS, 2, {"weights": [0.5, 0.5, 0.0]}, r"weights must be positive, got \[0.5 0.5 0. \]"),
        (PAIRS, 2, {"weights": [0.5, 0.3, 0.2 + 2e-9]}, "weights must sum to 1, got 1.000000002"),
    ],
)
def test_make_design_refuses(support, k, change, message):
    with pytest.raises(ValueError, match=message):
        make_design(support, k, **change)


def test_float32_is_refused_at_a_large_condition():
    rows, shares = all_superarms(4, 2), [0.3, 0.3, 0.3997, 0.0001, 0.0001, 0.0001]
    assert make_design(rows, 2, weights=shares).condition > 1e3
    with pytest.raises(ValueError, match="design must be float64 where its condition exceeds 1000, got"):
        make_design(rows, 2, weights=shares, dtype=jnp.float32)


def test_check_design():
    design = make_design(PAIRS, 2)
    check_design(design)
    jax.jit(check_design)(design)
    with pytest.raises(ValueError, match="design.k must be the size 3 of its super-arms, got 2"):
        check_design(make_design(cyclic_support(5, 3), 3)._replace(k=2))
    with pytest.raises(ValueError, match=r"design must have a floating-point dtype, got dtype\('int64'\)"):
        check_design(design._replace(support=jnp.array(PAIRS)))


# Supports


def test_all_superarms_in_lexicographic_order():
    rows = all_superarms(4, 2)
    assert [np.flatnonzero(row).tolist() for row in rows] == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    with pytest.raises(ValueError, match="n and k must give at most 5000000 super-arms, got 10400600"):
        all_superarms(26, 13)


def test_cyclic_support():
    assert [np.flatnonzero(row).tolist() for row in cyclic_support(4, 3)] == [
        [0, 1, 2],
        [1, 2, 3],
        [0, 2, 3],
        [0, 1, 3],
    ]


@pytest.mark.parametrize("n", [5, 6, 8, 9])
def test_cyclic_support_spans_without_a_common_factor(n):
    for k in range(2, n):
        assert is_basis(cyclic_support(n, k)) == (math.gcd(n, k) == 1)


@pytest.mark.parametrize(
    ("n", "k", "size", "expected"), [(10, 5, None, 20), (7, 3, 7, 7), (6, 2, 15, 15), (4, 2, None, 6)]
)
def test_random_support(n, k, size, expected):
    rows = random_support(3, n, k, size=size)
    assert rows.shape == (expected, n)
    assert np.all(rows.sum(1) == k)
    assert len(np.unique(rows, axis=0)) == expected
    assert is_basis(rows)
    np.testing.assert_array_equal(rows, random_support(3, n, k, size=size))
    if expected < math.comb(n, k):
        assert np.any(rows != random_support(4, n, k, size=size))


def test_random_support_is_uniform():
    """Every set of 2 out of 5 is in 6 of its 10 rows; 400 draws, 4.9 standard deviations."""
    pair_counts = np.zeros((5, 5))
    for seed in range(400):
        rows = random_support(seed, 5, 2, size=6).astype(int)
        pair_counts += rows.T @ rows
    share = pair_counts[np.triu_indices(5, 1)] / 400
    # A draw is kept if it spans R^5. By symmetry all sets remain equally likely.
    np.testing.assert_allclose(share, 0.6, atol=0.12)


def test_default_support_is_well_conditioned():
    conditions = [float(make_design(random_support(seed, 60, 10), 10).condition) for seed in range(3)]
    assert min(conditions) > 40
    assert max(conditions) < 200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 5}, r"size must be an integer in \[6, 20\], got 5"),
        ({"size": 21}, r"size must be an integer in \[6, 20\], got 21"),
        ({"n": 60, "k": 2, "size": 60}, "size must be so large that one of 1000 draws has rank 60, got 60"),
    ],
)
def test_random_support_refuses(change, message, monkeypatch):
    monkeypatch.setattr("jaxbandits.fullbandit._problem.design.MAX_DRAWS", 10)
    with pytest.raises(ValueError, match=message.replace("1000", "10")):
        random_support(**({"seed": 0, "n": 6, "k": 3} | change))


# Allocations


@pytest.mark.parametrize("method", ["multiplicative", "frank_wolfe"])
@pytest.mark.parametrize("size", [10, 20, 50])
def test_g_allocation_attains_the_dimension(method, size):
    rows = random_support(1, 10, 5, size=size)
    allocation = g_allocation(rows, method=method)
    assert allocation.lower == 10
    assert allocation.value == pytest.approx(10, rel=1e-3)
    assert is_basis(allocation.support)
    assert allocation.weights.sum() == pytest.approx(1, abs=1e-12)
    assert allocation.weights.min() >= 1e-4
    design = make_design(allocation.support, 5, weights=allocation.weights)
    np.testing.assert_array_equal(design.support, allocation.support)
    # The norms of the remaining rows equal the value; the dropped ones are smaller or about equal.
    norms = squared_norms(allocation.support.astype(float), design.inverse)
    np.testing.assert_allclose(norms, 10, rtol=2e-2)
    assert squared_norms(rows.astype(float), design.inverse).max() == pytest.approx(allocation.value, rel=1e-9)


def test_g_allocations_agree_and_beat_random_shares():
    rows = random_support(2, 8, 3, size=30)
    full = [_spread(g_allocation(rows, method=method), rows) for method in ("multiplicative", "frank_wolfe")]
    np.testing.assert_allclose(_log_det(rows, full[0]), _log_det(rows, full[1]), atol=2e-3)
    rng = np.random.default_rng(0)
    for shares in rng.dirichlet(np.ones(30), 50):
        assert _log_det(rows, shares) < _log_det(rows, full[0])


def _spread(allocation, rows):
    shares = np.zeros(len(rows))
    for row, share in zip(allocation.support, allocation.weights, strict=True):
        shares[np.flatnonzero((rows == row).all(1))] = share
    return shares


def _log_det(rows, shares):
    return np.linalg.slogdet(rows.T @ (shares[:, None] * rows))[1]


def test_uniform_shares_of_all_superarms_are_g_optimal_and_frank_wolfe_is_sparse():
    rows = all_superarms(8, 4)
    uniform = g_allocation(rows)
    np.testing.assert_allclose(uniform.weights, 1 / 70, rtol=1e-12)
    assert uniform.value == pytest.approx(8, rel=1e-12)
    sparse = g_allocation(rows, method="frank_wolfe")
    assert len(sparse.weights) < 60
    assert sparse.value == pytest.approx(8, rel=5e-3)


@pytest.mark.parametrize(("n", "k"), [(5, 2), (6, 3)])
def test_xy_allocation_of_all_superarms(n, k):
    allocation = xy_allocation(all_superarms(n, k))
    optimum = 2 * min(k, n - k) * n * (n - 1) / (k * (n - k))
    assert allocation.value == pytest.approx(optimum, rel=1e-9)
    assert allocation.lower == pytest.approx(optimum, rel=1e-9)


def test_xy_allocation_on_a_random_support():
    rows = random_support(5, 7, 3, size=16)
    allocation = xy_allocation(rows)
    assert allocation.lower <= allocation.value <= allocation.lower * (1 + 5e-3)
    directions = difference_directions(7, 3)

    def value(shares):
        return squared_norms(directions, np.linalg.inv(rows.T @ (shares[:, None] * rows))).max()

    assert value(_spread(allocation, rows)) == pytest.approx(allocation.value, rel=1e-9)
    rivals = [
        np.full(16, 1 / 16),
        _spread(g_allocation(rows), rows),
        *np.random.default_rng(1).dirichlet(np.ones(16), 50),
    ]
    assert min(map(value, rivals)) > allocation.lower
    swaps = xy_allocation(rows, directions=difference_directions(7, 3)[:21])
    assert swaps.value < allocation.value


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("arms", [1, 2, 3, 4])
def test_xy_allocation_of_few_directions_equals_an_outside_solver(arms, seed):
    """The optimum leaves out rows that the directions do not need, and its rows do not span all arms."""
    rows, rng = all_superarms(6, 2).astype(float), np.random.default_rng(seed)
    directions = np.eye(6)[:arms] if seed == 0 else rng.integers(-1, 2, (arms, 6)) + np.eye(6)[:arms] / 2
    allocation = xy_allocation(rows, directions=directions)

    def norms(shares):
        return squared_norms(directions, np.linalg.inv(rows.T @ (shares[:, None] * rows)))

    optima = [
        minimize(
            lambda x: x[-1],
            np.append(start, norms(start).max()),
            bounds=[(1e-7, 1)] * 15 + [(0, None)],
            constraints=[
                {"type": "eq", "fun": lambda x: x[:-1].sum() - 1},
                {"type": "ineq", "fun": lambda x: x[-1] - norms(x[:-1])},
            ],
            method="SLSQP",
            options={"maxiter": 300},
        ).x[:-1]
        for start in (np.full(15, 1 / 15), *rng.dirichlet(np.ones(15), 3))
    ]
    best = min(norms(x / x.sum()).max() for x in optima)
    assert allocation.lower <= best * (1 + 1e-9)
    assert allocation.value == pytest.approx(best, rel=2e-3)
    assert allocation.value == pytest.approx(norms(_spread(allocation, rows)).max(), rel=1e-9)
    make_design(allocation.support, 2, weights=allocation.weights)


def test_allocation_of_tiny_shares_spans_all_arms():
    """After one step among 12,870 rows every share is too small to be kept."""
    allocation = g_allocation(all_superarms(16, 8), max_steps=1)
    assert np.linalg.matrix_rank(allocation.support) == 16
    assert allocation.value >= 16


def test_xy_allocation_is_float64_in_any_mode():
    rows = random_support(5, 7, 3)
    allocation = xy_allocation(rows, steps=50)
    with jax.enable_x64(False):
        same = xy_allocation(rows, steps=50)
        make_design(same.support, 3, weights=same.weights)
    np.testing.assert_array_equal(same.weights, allocation.weights)
    assert same.lower == allocation.lower


@pytest.mark.parametrize(("n", "k"), [(4, 2), (5, 3), (6, 3), (6, 2)])
def test_directions_are_all_differences_up_to_sign(n, k):
    rows = all_superarms(n, k).astype(int)
    differences = {tuple(a - b) for a in rows for b in rows if tuple(a - b) > (0,) * n}
    directions = difference_directions(n, k)
    assert len(directions) == len(differences)
    assert {tuple(y) for y in directions.astype(int)} == differences
    assert np.all(directions[: n * (n - 1) // 2] @ np.ones(n) == 0)
    assert np.all(np.abs(directions[: n * (n - 1) // 2]).sum(1) == 2)


def test_too_many_directions_become_single_swaps():
    assert difference_directions(30, 10).shape == (435, 30)
    assert difference_directions(13, 6).shape[0] > 50_000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(g_allocation, cyclic_support(4, 2)), "support must span all arms, got rank 3 of 4"),
        (partial(xy_allocation, [[1, 1, 0], [1, 0, 0], [0, 1, 1]]), "support must have equally many ones in every row"),
    ],
)
def test_allocations_refuse(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Counts


def literal(shares, last):
    """Computes the counts after t = 0, ..., last pulls of argmin T/p, in exact arithmetic."""
    shares = [Fraction(p) for p in shares]
    history = [[0] * len(shares)]
    for _ in range(last):
        counts = list(history[-1])
        counts[min(range(len(shares)), key=lambda i: counts[i] / shares[i])] += 1
        history.append(counts)
    return np.array(history)


def test_tracking_by_hand():
    design = make_design(PAIRS, 2, weights=[0.5, 0.3, 0.2])
    counts = np.array([tracking_counts(design, t) for t in range(11)])
    assert np.argmax(np.diff(counts, axis=0), axis=1).tolist() == [0, 1, 2, 0, 1, 0, 2, 0, 1, 0]
    assert counts[8].tolist() == [4, 2, 2]
    assert counts[10].tolist() == [5, 3, 2]


@pytest.mark.parametrize("seed", [None, 0, 1, 2], ids=["equal", 0, 1, 2])
def test_tracking_equals_the_literal_rule(seed):
    rows = random_support(seed or 0, 6, 3, size=12)
    shares = np.full(12, 1 / 12) if seed is None else np.random.default_rng(seed).dirichlet(np.ones(12))
    design = make_design(rows, 3, weights=shares)
    t = jnp.arange(301)
    counts = jax.jit(jax.vmap(tracking_counts, (None, 0)))(design, t)
    np.testing.assert_array_equal(counts, literal(np.asarray(design.weights), 300))


def test_tracking_without_64_bit():
    with jax.enable_x64(False):
        design = make_design(random_support(0, 8, 3), 3)
        counts = tracking_counts(design, 2**31 - 1)
        assert counts.dtype == jnp.int32
    assert int(np.asarray(counts, np.int64).sum()) == 2**31 - 1
    assert int(counts.max() - counts.min()) == 1
