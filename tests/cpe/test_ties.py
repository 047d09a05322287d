"""Exact ties of rational inputs: tables and opinion sampling against enumeration in fractions.

Inputs are as users write them: decimal fractions, dyadic ones, and quotients of counts, each rounded once to a float.
"""

import functools
import itertools
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.cpe import best

from jaxbandits import cpe
from jaxbandits.cpe import OpinionSampling, candidates, greedy_osa, osa_threshold, solve, stops
from jaxbandits.cpe._problem.kinds import table as _table

M, WIDTH = 3, 3
KINDS = {"exactly": (1, -1), "at most": (1, 0), "at least": (0, -1)}
DENOMINATORS = (8, 10, 100, 7, 60)  # eighths, tenths, hundredths, and quotients of counts


def fractions(rng, shape, least, greatest, denominator):
    """Draws fractions in [least, greatest], an object array."""
    numbers = rng.integers(least * denominator, greatest * denominator + 1, shape)
    return np.vectorize(lambda n: Fraction(int(n), denominator), otypes=[object])(numbers)


def random_table(rng):
    """Draws kind, coef, cost and quota of a table in fractions; rows may be short, and then end with costs of None."""
    denominator = int(rng.choice(DENOMINATORS))
    at_zero = -np.sort(fractions(rng, (M, WIDTH), -1, 1, denominator), axis=1)
    at_one = -np.sort(-at_zero - fractions(rng, (M, WIDTH), 0, 1, denominator), axis=1)
    coef, cost = at_one - at_zero, -at_zero
    kind = str(rng.choice(list(KINDS)))
    lengths = rng.integers(1 if rng.random() < 0.3 else WIDTH, WIDTH + 1, M)
    ended = np.arange(WIDTH) >= lengths[:, None]
    coef[ended], cost[ended] = Fraction(0), None
    low, high = KINDS[kind]
    return kind, coef, cost, int(rng.integers(low, lengths.sum() + high + 1))


def made(kind, coef, cost, quota, dtype):
    costs = [[np.inf if c is None else float(c) for c in row] for row in cost]
    return cpe.table(coef.astype(float), costs, quota, kind=kind, dtype=dtype)


def chosen(kind, coef, cost, quota, theta):
    """Finds the leading optimum by the definition of `Table`, in fractions."""
    entries = [
        (-(coef[i, l] * theta[i] - cost[i, l]), -i, l)
        for i, l in itertools.product(range(M), range(WIDTH))
        if cost[i, l] is not None
    ]
    levels = [0] * M
    for rank, (value, i, _) in enumerate(sorted(entries)):
        in_quota = rank < quota and (kind != "at most" or value < 0)
        levels[-i] += in_quota or (kind == "at least" and value < 0)
    return levels


def best_by_enumeration(kind, coef, cost, quota, theta):
    """Finds the lexicographically smallest of the best level vectors, in fractions."""
    fits = {"exactly": quota.__eq__, "at most": quota.__ge__, "at least": quota.__le__}[kind]
    rows = [
        [c * x - k for c, k in zip(*row, strict=True) if k is not None]
        for *row, x in zip(coef, cost, theta, strict=True)
    ]
    sums = [[sum(row[:level], Fraction(0)) for level in range(len(row) + 1)] for row in rows]
    decisions = [y for y in itertools.product(*(range(len(total)) for total in sums)) if fits(sum(y))]
    rewards = [sum(total[level] for total, level in zip(sums, y, strict=True)) for y in decisions]
    return list(decisions[rewards.index(max(rewards))])


@functools.cache
def instances(seed, number):
    rng = np.random.default_rng(seed)
    tables = [random_table(rng) for _ in range(number)]
    thetas = [fractions(rng, M, 0, 1, int(rng.choice(DENOMINATORS))) for _ in range(number)]
    return tables, thetas


def stacked(tables, dtype):
    problems = [made(*table, dtype) for table in tables]
    return jax.tree.map(lambda *parts: np.stack(parts), *problems)


def as_floats(rows, dtype):
    return jnp.asarray(np.array(rows).astype(float), dtype)


@pytest.mark.parametrize(
    ("dtype", "ranked"),
    [
        ("float64", 64),
        ("float64", 0),
        *(pytest.param("float32", ranked, marks=pytest.mark.wide) for ranked in (64, 0)),
    ],
)
def test_ties_of_tables_go_to_the_leading_decision(monkeypatch, dtype, ranked):
    monkeypatch.setattr(_table, "RANKED", ranked)
    tables, thetas = instances(0, 1000)
    solved = jax.jit(jax.vmap(lambda *case: solve(*case)))(stacked(tables, dtype), as_floats(thetas, dtype))
    expected = [chosen(*table, theta) for table, theta in zip(tables, thetas, strict=True)]
    np.testing.assert_array_equal(solved, expected)
    assert solved.dtype == jnp.int32
    some = range(0, 1000, 5)
    assert [expected[i] for i in some] == [best_by_enumeration(*tables[i], thetas[i]) for i in some]


def test_sites_and_water_of_decimal_costs_tie():
    # 0.8 - 1.3 and 0.6 - 1.1 differ in floats.
    assert 0.8 - 1.3 != 0.6 - 1.1
    for theta, expected in (([0.8, 0.6], [0, 1]), ([0.6, 0.8], [0, 1]), ([0.81, 0.6], [1, 0])):
        costs = [1.3, 1.1] if theta[0] >= 0.8 else [1.1, 1.3]
        assert best(cpe.sites(costs, 1), np.array(theta)).tolist() == expected
    # Slopes 1.1, 1.3, 1.5 of both: steps of equal worth at equal theta, and the second of one ties with the first of
    # the other where theta differ by 0.2. Floats have 2.4 - 1.1 > 1.3 > 3.9 - 2.4 - 0.2.
    water = cpe.water([[0, 1.1, 2.4, 3.9]] * 2, 2)
    for theta, expected in (([0.3, 0.1], [1, 1]), ([0.5, 0.1], [2, 0]), ([0.1, 0.3], [0, 2]), ([0.7, 0.7], [1, 1])):
        assert best(water, np.array(theta)).tolist() == expected


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.wide)])
def test_candidates_of_rational_boxes_are_exact(dtype):
    tables, points = instances(1, 500)
    rng = np.random.default_rng(2)
    lows = [point - point * Fraction(int(rng.integers(0, 5)), 10) for point in points]
    highs = [point + (1 - point) * Fraction(int(rng.integers(0, 5)), 10) for point in points]

    @jax.jit
    @jax.vmap
    def judge(problem, lo, point, hi):
        levels = solve(problem, point)
        return candidates(problem, lo, hi, levels), stops(problem, lo, hi, levels)

    masks, stopped = judge(stacked(tables, dtype), *(as_floats(side, dtype) for side in (lows, points, highs)))
    expected = []
    for table, lo, hi in zip(tables, lows, highs, strict=True):
        diagonal = np.eye(M, dtype=bool)
        ends = [[chosen(*table, np.where(diagonal[i], *pair))[i] for pair in ((hi, lo), (lo, hi))] for i in range(M)]
        expected.append([high != low for high, low in ends])
    np.testing.assert_array_equal(masks, expected)
    np.testing.assert_array_equal(stopped, ~np.any(expected, axis=1))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_ties_of_opinion_sampling(dtype):
    rng, budget = np.random.default_rng(3), 9
    sizes = rng.integers(1, 7, (500, M))
    thetas = [fractions(rng, M, 0, 1, int(rng.choice(DENOMINATORS))) for _ in sizes]
    level = [(l + 1) * (l + 2) for l in range(budget - M)]
    expected = []
    for n, theta in zip(sizes.tolist(), thetas, strict=True):
        gains = [(-Fraction(n[i] ** 2) * theta[i] / level[l], -i) for i in range(M) for l in range(len(level))]
        taken = [-i for gain, i in sorted(gains)[: len(level)] if gain < 0]
        expected.append([1 + taken.count(i) for i in range(M)])
    arrays = as_floats(thetas, dtype), jnp.asarray(sizes, dtype)
    forms = (
        lambda theta, n: greedy_osa(theta, n, budget).allocation,
        partial(osa_threshold, budget=budget),
        lambda theta, n: 1 + solve(OpinionSampling(n, budget), theta),
        lambda theta, n: 1 + solve(cpe.opinion_sampling(n, budget), theta),
    )
    for form in forms:
        np.testing.assert_array_equal(jax.jit(jax.vmap(form))(*arrays), expected)

    @jax.jit
    @jax.vmap
    def candidates_of_both_forms(hi, n, lo):
        problems = OpinionSampling(n, budget), cpe.opinion_sampling(n, budget)
        return [candidates(problem, lo, hi, solve(problem, hi)) for problem in problems]

    lows = [theta * Fraction(int(rng.integers(5, 11)), 10) for theta in thetas]
    listed, in_table = candidates_of_both_forms(*arrays, as_floats(lows, dtype))
    np.testing.assert_array_equal(listed, in_table)
    assert 0.1 < np.mean(listed) < 0.9
