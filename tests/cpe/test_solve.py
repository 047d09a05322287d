"""The maximisers against enumeration in exact rationals, ties included."""

import itertools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import cpe
from jaxbandits.cpe import OpinionSampling, Table, greedy_osa, oracle, osa_threshold, solve
from jaxbandits.cpe._problem.kinds import table


def solver(problem):
    return jax.jit(lambda theta: solve(problem, theta))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bisection_equals_ranking_on_a_larger_table(monkeypatch, dtype):
    rng = np.random.default_rng(1)
    problem = cpe.opinion_sampling(rng.integers(1, 5, 9), 40, dtype=dtype)
    assert problem.coef.size > table.RANKED
    theta = jnp.asarray(
        np.where(np.arange(60)[:, None] % 2, rng.random((60, 9)), rng.integers(0, 3, (60, 9)) / 8), dtype
    )
    theta = theta.at[0].set(0)
    bisected = jax.jit(jax.vmap(lambda x: solve(problem, x)))(theta)
    monkeypatch.setattr(table, "RANKED", 10**4)
    ranked = jax.jit(jax.vmap(lambda x: solve(problem, x)))(theta)
    np.testing.assert_array_equal(bisected, ranked)
    np.testing.assert_array_equal(bisected[0], 0)


def test_ties_go_to_the_largest_index():
    np.testing.assert_array_equal(solver(cpe.best_arm(2))(jnp.asarray([0.5, 0.5])), [0, 1])
    np.testing.assert_array_equal(solver(cpe.top_k(4, 2))(jnp.asarray([0.2, 0.7, 0.7, 0.7])), [0, 0, 1, 1])
    # -0.0 and 0.0 are one value, also where floats are compared as integers.
    wide = cpe.top_k(table.RANKED + 1, 1)
    theta = jnp.zeros(table.RANKED + 1).at[-1].set(-0.0)
    np.testing.assert_array_equal(np.flatnonzero(solver(wide)(theta)), [table.RANKED])


def test_an_enumerated_class_takes_the_smallest_of_the_best_rows():
    rng = np.random.default_rng(2)
    rows = np.unique(rng.integers(0, 2, (12, 5)), axis=0)
    offset = rng.integers(0, 5, len(rows)) / 8
    shuffled = rng.permutation(len(rows))
    problem = cpe.enumerated(rows[shuffled], offset[shuffled])
    np.testing.assert_array_equal(problem.rows, rows)  # np.unique sorts lexicographically
    np.testing.assert_array_equal(problem.offset, offset)
    theta = np.where(np.arange(200)[:, None] % 2, rng.random((200, 5)), rng.integers(0, 9, (200, 5)) / 8)
    solved = jax.jit(jax.vmap(lambda x: solve(problem, x)))(jnp.asarray(theta))
    for x, levels in zip(theta, np.asarray(solved), strict=True):
        rewards = [
            sum(Fraction(t) for t, one in zip(x, row, strict=True) if one) - Fraction(o)
            for row, o in zip(rows, offset, strict=True)
        ]
        np.testing.assert_array_equal(levels, rows[rewards.index(max(rewards))])


def test_solve_calls_the_oracle():
    problem = oracle(lambda theta: (theta > 0.5).astype(jnp.int64), 3, bi_monotone=True)
    levels = solve(problem, jnp.asarray([0.2, 0.6, 0.7]))
    assert levels.dtype == jnp.int32
    np.testing.assert_array_equal(levels, [0, 1, 1])


# Opinion sampling


def allocation_by_enumeration(theta, sizes, budget):
    """Finds the lexicographically smallest allocation with the smallest variance."""
    weights = [Fraction(n) ** 2 * Fraction(x) for n, x in zip(sizes, theta, strict=True)]
    best = None
    for y in itertools.product(range(1, budget - len(sizes) + 2), repeat=len(sizes)):
        if sum(y) <= budget:
            variance = sum(w / level for w, level in zip(weights, y, strict=True))
            if best is None or variance < best[0]:
                best = variance, y
    return best[1]


BOTH = jax.jit(lambda x, n, budget: (greedy_osa(x, n, budget), osa_threshold(x, n, budget)), static_argnums=2)


@pytest.mark.parametrize(
    ("theta", "sizes", "budget", "base", "steps", "allocation"),
    [
        ([0.21, 0.04, 0.09], [10, 30, 20], 50, [13, 17, 17], 2, [14, 18, 18]),
        ([0.25, 0.25, 0.25], [1, 1, 1], 5, [1, 1, 1], 1, [1, 2, 2]),
        # Lemma 8 with m = 3 and c = 10: the floor of the continuous optimum (30, 1.5, 1.5) would be no safe base.
        ([1, 1, 1], [20, 1, 1], 33, [29, 1, 1], 1, [29, 2, 2]),
        # Algorithm 2 as printed starts from (4, 1, 1), which exceeds the budget.
        ([0.25, 0, 0], [2, 1, 1], 4, [2, 1, 1], 0, [2, 1, 1]),
        ([0, 0, 0], [2, 1, 1], 9, [1, 1, 1], 0, [1, 1, 1]),
    ],
)
def test_allocations_by_hand(theta, sizes, budget, base, steps, allocation):
    greedy, threshold = BOTH(jnp.asarray(theta, float), jnp.asarray(sizes), budget)
    np.testing.assert_array_equal(greedy.base, base)
    np.testing.assert_array_equal(greedy.allocation, allocation)
    assert greedy.steps == steps
    np.testing.assert_array_equal(threshold, allocation)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_allocations_against_enumeration(dtype):
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 5, (120, 3))
    theta = rng.integers(0, 9, (120, 3)) / 8  # zeros and ties are common
    expected = [allocation_by_enumeration(*case, 8) for case in zip(theta, sizes, strict=True)]
    for f in (lambda x, n: greedy_osa(x, n, 8).allocation, lambda x, n: osa_threshold(x, n, 8)):
        np.testing.assert_array_equal(jax.jit(jax.vmap(f))(jnp.asarray(theta, dtype), jnp.asarray(sizes)), expected)


@pytest.mark.parametrize(("m", "budget"), [(4, 36), (20, 52), (200, 10**6)])
def test_all_forms_agree_without_ties(m, budget):
    rng = np.random.default_rng(m)
    sizes = rng.integers(1, 30, m)
    theta = rng.random(m) * (rng.random(m) < 0.8)
    greedy, threshold = BOTH(jnp.asarray(theta), jnp.asarray(sizes), budget)
    y = np.asarray(greedy.allocation)
    np.testing.assert_array_equal(y, threshold)
    assert y.sum() == budget
    # No unit can be moved to better use: the smallest gain taken exceeds the largest gain not taken.
    weights = sizes**2 * theta
    assert (weights / (y * (y - 1.0).clip(1e-9)))[y > 1].min() > (weights / (y * (y + 1.0))).max()
    assert (y[theta == 0] == 1).all()
    problem = cpe.opinion_sampling(sizes, budget)
    assert isinstance(problem, Table if budget - m <= 32 else OpinionSampling)
    np.testing.assert_array_equal(solver(problem)(jnp.asarray(theta)), y - 1)


def test_allocations_in_32_bit_use_exactly_a_large_budget():
    rng = np.random.default_rng(5)
    greedy, threshold = BOTH(jnp.asarray(rng.random(50), jnp.float32), jnp.asarray(rng.integers(1, 30, 50)), 10**5)
    assert greedy.allocation.sum() == threshold.sum() == 10**5
    assert jnp.abs(greedy.allocation - threshold).max() <= 1


def test_allocations_of_nan_end():
    greedy, threshold = BOTH(jnp.asarray([0.2, jnp.nan, 0.1]), jnp.asarray([2, 1, 1]), 9)
    assert greedy.allocation.shape == threshold.shape == (3,)


@pytest.mark.parametrize("form", [greedy_osa, osa_threshold])
def test_a_budget_below_one_interview_per_group_is_refused(form):
    with pytest.raises(ValueError, match="budget must be an integer of at least 3, got 2"):
        form(jnp.ones(3), jnp.ones(3), 2)
