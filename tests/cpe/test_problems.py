"""The problems: results and errors of their constructors, and whether they are bi-monotone."""

import itertools
import math
from functools import partial
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.cpe import best_of_concave

from jaxbandits import cpe
from jaxbandits.cpe import Enumerated, OpinionSampling, Table, decision, find_bi_monotone_violation, oracle, solve
from jaxbandits.cpe._problem.kinds.enumerated import row_values
from jaxbandits.cpe._problem.kinds.opinions import entries_above
from jaxbandits.cpe._problem.kinds.table import entry_values
from jaxbandits.cpe._problem.problems import KINDS, Problem, arm_count, float_dtype

KEY = jax.random.key(0)
PATHS = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)]
SQUARE = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
CONVEX = [(0.0, 1.3, 3.0, 5.1), (0.0, 1.55)]


def constant_oracle(theta):
    return (theta > 0.5).astype(int)


def test_every_kind_of_problem_has_its_functions():
    assert tuple(KINDS) == get_args(Problem)


# Tables


def test_best_arm_and_top_k():
    problem = cpe.top_k(4, 2)
    np.testing.assert_array_equal(
        entry_values(problem, jnp.asarray([0.1, 0.4, 0.3, 0.2])), [[0.1], [0.4], [0.3], [0.2]]
    )
    assert (problem.quota, problem.floor, problem.ceiling, problem.base, problem.step) == (2, -np.inf, np.inf, 0, 1)
    assert problem.quota.dtype == jnp.int32
    assert jax.tree.all(jax.tree.map(jnp.array_equal, cpe.best_arm(4), cpe.top_k(4, 1)))


def test_sites_subtract_their_costs():
    problem = cpe.sites([0.5, 0.25], 1)
    np.testing.assert_array_equal(entry_values(problem, jnp.asarray([1.0, 0.5])), [[0.5], [0.25]])


def test_water_from_sources_of_different_size():
    problem = cpe.water(CONVEX, 2)
    assert arm_count(problem) == 2
    values = entry_values(problem, jnp.asarray([1.0, 0.5]))
    np.testing.assert_allclose(values, [[-0.3, -0.7, -1.1], [-1.05, -np.inf, -np.inf]], rtol=1e-12)
    np.testing.assert_array_equal(decision(problem, jnp.asarray([2, 0])), [2, 0])
    assert (problem.floor, problem.ceiling) == (-np.inf, np.inf)


def test_water_in_steps():
    # f(y) = 2 y^2 on multiples of 1/2: a step costs 1/2, 3/2, ... and yields theta / 2.
    problem = cpe.water([[0.0, 0.5, 2.0], [0.0, 0.5, 2.0]], 1, step=0.5, tight=False)
    np.testing.assert_allclose(entry_values(problem, jnp.asarray([1.0, 0.5])), [[0.0, -1.0], [-0.25, -1.25]])
    np.testing.assert_array_equal(decision(problem, jnp.asarray([2, 1])), [1.0, 0.5])
    assert (problem.floor, problem.ceiling) == (-np.inf, 0)


def test_water_beyond_the_demand_where_it_pays():
    problem = cpe.water([[0.0, 0.2, 0.6], [0.0, 0.3, 0.9]], 1, tight=False)
    theta = jnp.asarray([(0.1, 0.1), (0.5, 0.1), (0.5, 0.5), (0.1, 0.7)])
    levels = jax.jit(jax.vmap(lambda x: solve(problem, x)))(theta)
    np.testing.assert_array_equal(levels, [(1, 0), (2, 0), (2, 1), (0, 2)])


def test_a_linear_cost_is_convex_in_spite_of_rounding():
    costs = np.outer([1.1, 1.3], np.arange(30) * 0.1)
    assert (np.diff(costs, 2) < 0).any()
    problem = cpe.water(costs, 10, step=0.1)
    assert (np.diff(problem.cost, axis=1) >= 0).all()


def test_opinion_sampling_is_a_table_unless_it_is_wide():
    problem = cpe.opinion_sampling([1, 3], 5)
    np.testing.assert_allclose(problem.coef, [[1 / 2, 1 / 6, 1 / 12], [9 / 2, 9 / 6, 9 / 12]])
    assert (problem.quota, problem.floor, problem.ceiling, problem.base) == (3, 0, np.inf, 1)
    np.testing.assert_array_equal(decision(problem, jnp.asarray([0, 3])), [1, 4])
    assert isinstance(cpe.opinion_sampling([1, 3], 34), Table)
    wide = cpe.opinion_sampling([1, 3], 35)
    assert isinstance(wide, OpinionSampling)
    assert wide.budget == 35
    np.testing.assert_array_equal(decision(wide, jnp.asarray([0, 33])), [1, 34])


def test_entries_above_a_value_against_a_list_of_them():
    limit = 40
    rng = np.random.default_rng(0)
    number = np.arange(1, limit + 1)
    for dtype in ("float32", "float64"):
        weights = np.concatenate([rng.random(60), rng.integers(0, 9, 60) / 8]).astype(dtype)
        entries = weights[:, None] / (number * (number + 1)).astype(dtype)
        # Values that equal an entry of the same arm or of another, and 0.
        picked = entries[rng.permutation(120), rng.integers(0, limit, 120)]
        value = np.where(rng.random(120) < 0.5, entries[np.arange(120), rng.integers(0, limit, 120)], picked)
        value[:3] = 0
        above = jax.jit(lambda w, v: entries_above(w, v, limit=limit))(jnp.asarray(weights), jnp.asarray(value))
        assert above.dtype == jnp.int32
        np.testing.assert_array_equal(above, (entries > value[:, None]).sum(axis=1))


# Classes


def test_rows_are_sorted_with_their_offsets():
    problem = cpe.enumerated([[1, 0, 1], [0, 1, 1], [1, 0, 0]], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(problem.rows, [[0, 1, 1], [1, 0, 0], [1, 0, 1]])
    np.testing.assert_array_equal(problem.offset, [2.0, 3.0, 1.0])
    np.testing.assert_array_equal(row_values(problem, jnp.asarray([0.5, 0.25, 0.125])), [-1.625, -2.5, -0.375])
    assert problem.rows.dtype == jnp.int32
    np.testing.assert_array_equal(decision(problem, problem.rows[1]), [1, 0, 0])


def test_paths_by_hand():
    edges = {frozenset(np.flatnonzero(row).tolist()) for row in np.asarray(cpe.st_paths(PATHS, 0, 4).rows)}
    assert edges == {frozenset(path) for path in ((0, 2, 4, 6), (0, 2, 5), (0, 3, 6), (1, 4, 6), (1, 5))}
    # A cycle through 1 and 2 makes no endless path, and edges have a direction.
    cyclic = cpe.st_paths([(0, 1), (1, 2), (2, 1), (2, 3), (1, 3), (3, 0)], 0, 3)
    np.testing.assert_array_equal(cyclic.rows, [[1, 0, 0, 0, 1, 0], [1, 1, 0, 1, 0, 0]])


def test_matchings_by_hand():
    np.testing.assert_array_equal(cpe.perfect_matchings(2).rows, [[0, 1, 1, 0], [1, 0, 0, 1]])
    rows = np.asarray(cpe.perfect_matchings(4).rows).reshape(-1, 4, 4)
    assert len(rows) == math.factorial(4)
    assert (rows.sum(axis=1) == 1).all()
    assert (rows.sum(axis=2) == 1).all()


@pytest.mark.parametrize(
    ("nodes", "edges", "count"),
    [
        (4, list(itertools.combinations(range(4), 2)), 16),  # Cayley: n^(n-2)
        (5, list(itertools.combinations(range(5), 2)), 125),
        (4, SQUARE, 8),
        (2, [(0, 1), (0, 1), (1, 1)], 2),  # parallel edges; a loop is in no tree
    ],
)
def test_spanning_trees_have_the_known_number(nodes, edges, count):
    rows = np.asarray(cpe.spanning_trees(nodes, edges).rows)
    assert rows.shape == (count, len(edges))
    # Kirchhoff: the number of trees is a minor of the Laplacian.
    laplacian = np.zeros((nodes, nodes))
    for a, b in edges:
        laplacian[[a, b], [a, b]] += a != b
        laplacian[[a, b], [b, a]] -= a != b
    np.testing.assert_allclose(np.linalg.det(laplacian[1:, 1:]), count)
    assert (rows.sum(axis=1) == nodes - 1).all()


# Dtypes and traces


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_dtype_of_a_run(dtype):
    problems = [
        cpe.best_arm(3, dtype=dtype),
        cpe.sites([1, 2], 1, dtype=dtype),
        cpe.water(CONVEX, 2, dtype=dtype),
        cpe.opinion_sampling([1, 2], 4, dtype=dtype),
        cpe.opinion_sampling([1, 2], 40, dtype=dtype),
        cpe.enumerated([[0, 1], [1, 0]], dtype=dtype),
    ]
    for problem in problems:
        assert float_dtype(problem) == dtype
        leaves = [leaf for leaf in jax.tree.leaves(problem) if isinstance(leaf, jax.Array)]
        assert {leaf.dtype for leaf in leaves} <= {jnp.dtype(dtype), jnp.dtype("int32")}
        levels = jax.eval_shape(partial(solve, problem), jnp.zeros(arm_count(problem), dtype))
        assert levels.dtype == jnp.int32
        y = jax.eval_shape(partial(decision, problem), levels)
        assert y.dtype == ("int32" if isinstance(problem, Enumerated) else dtype)
    for problem in (cpe.graphic(4, SQUARE), oracle(constant_oracle, 2, bi_monotone=True)):
        assert float_dtype(problem) == jnp.float64  # JAX's default here


def test_a_problem_may_be_made_of_traced_arrays():
    def build(costs, rows, sizes, k, offset):
        return (
            cpe.sites(costs, k),
            cpe.top_k(3, k),
            cpe.water(rows, k),
            cpe.opinion_sampling(sizes, 6),
            cpe.enumerated(np.eye(3, dtype=int), offset),
        )

    arrays = (
        jnp.asarray([0.5, 0.25, 0.0]),
        jnp.asarray([[0.0, 1.25, 3.0], [0.0, 1.5, 3.5]]),
        jnp.asarray([1.0, 2.0, 3.0]),
        jnp.asarray(2),
        jnp.asarray([0.1, 0.2, 0.3]),
    )
    traced, concrete = jax.jit(build)(*arrays), build(*arrays)
    assert jax.tree.structure(traced) == jax.tree.structure(concrete)
    jax.tree.map(np.testing.assert_array_equal, traced, concrete)


def test_known_arguments_are_checked_under_a_trace():
    with pytest.raises(ValueError, match="costs must be convex on the grid for arm 1"):
        jax.jit(lambda x: cpe.water([[0, 2, 5], [0, 3, 4]], 1, tight=False).coef * x)(jnp.ones(()))


# Bi-monotone or not


@pytest.mark.parametrize(
    "problem",
    [
        cpe.top_k(4, 2),
        cpe.water([(0.0, 0.2, 0.6, 1.2), (0.0, 0.3, 0.9), (0.0, 0.1, 0.2)], 2, tight=False),
        cpe.opinion_sampling([1, 3, 2], 7),
        cpe.opinion_sampling([1, 3, 2], 40),
        cpe.spanning_trees(4, SQUARE),
        cpe.graphic(4, SQUARE),
    ],
)
def test_bi_monotone_problems_have_no_violation(problem):
    assert find_bi_monotone_violation(lambda x: solve(problem, x), KEY, arm_count(problem), samples=2000) is None


PATH_PROBLEM = cpe.st_paths(PATHS, 0, 4)
MATCHING_PROBLEM = cpe.perfect_matchings(3)


@pytest.mark.parametrize(
    ("find", "m"),
    [
        (lambda x: solve(PATH_PROBLEM, x), 7),
        (lambda x: solve(MATCHING_PROBLEM, x), 9),
        (best_of_concave, 3),
        (lambda x: 1 - (x > 0.5).astype(int), 3),  # its own level falls
    ],
)
def test_find_bi_monotone_violation_returns_a_violation(find, m):
    lower, upper = find_bi_monotone_violation(find, KEY, m)
    (i,) = np.flatnonzero(lower != upper)
    assert lower[i] < upper[i]
    find = jax.jit(find)
    rise = np.asarray(find(upper)) - find(lower)
    assert rise[i] < 0 or np.delete(rise, i).max() > 0


# Bad input

INF = np.inf


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cpe.sites([1.0], 1), "costs must have shape (m,) with m >= 2, got (1,)"),
        (lambda: cpe.table([[1.0], [1.0]], [[0.0], [-INF]], 1), "cost must be more than -inf"),
        (
            lambda: cpe.table(np.ones((2, 3)), [[0, 1, 2], [0, 2, 1]], 1),
            "coef and cost must give rows that do not increase (arm 1, entries 1 and 2, at theta = 0), got [-2. -1.]",
        ),
        (
            lambda: cpe.table([[1, 1], [0.5, 1]], np.zeros((2, 2)), 1),
            "coef and cost must give rows that do not increase (arm 1, entries 0 and 1, at theta = 1), got [0.5 1. ]",
        ),
        (
            lambda: cpe.table(np.ones((2, 1)), np.zeros((2, 1)), 2),
            "quota must leave a choice among 2 entries, or the only decision is known without a pull, got 2",
        ),
        (
            lambda: cpe.table(np.ones((2, 1)), np.zeros((2, 1)), 2, kind="at least"),
            "the only decision is known without a pull, got 2",
        ),
        (
            lambda: cpe.table(np.ones((2, 1)), np.zeros((2, 1)), 0, kind="at most"),
            "the only decision is known without a pull, got 0",
        ),
        (lambda: cpe.water([[0, 2, 3], [0, 2, 5]], 1), "costs must be convex on the grid for arm 0 (concave"),
        (lambda: cpe.water([[0, 2, 5], [0, 0.5, 2]], 1), "costs must rise by at least 1 per unit of water if tight"),
        (lambda: cpe.water([[0, 2, 5], [0]], 1), "costs[1] must be f(0), f(step), ..., with one step at least"),
        (lambda: cpe.water([[0, 2, 5]], 1), "costs must have at least 2 rows, got"),
        (lambda: cpe.opinion_sampling([1, 0], 5), "sizes must be at least 1"),
        (lambda: cpe.opinion_sampling([1, 1.5], 5), "sizes must be positive integers"),
        (lambda: cpe.opinion_sampling([3], 5), "sizes must have shape (m,) with m >= 2, got (1,)"),
        (lambda: cpe.opinion_sampling([1, 2], 2), "budget must exceed 2, or the only decision is known"),
        (lambda: cpe.enumerated([[0, 2], [1, 0]]), "rows must hold zeros and ones only"),
        (lambda: cpe.enumerated([[0, 1], [0, 1]]), "rows must differ from each other"),
        (lambda: cpe.enumerated([[0], [1]]), "rows must have shape (N, m) with m >= 2, got (2, 1)"),
        (lambda: cpe.enumerated([[0, 1]]), "the only decision is known without a pull, got 1"),
        (
            lambda: cpe.enumerated(np.zeros((5001, 2))),
            "rows must be at most 5000",
        ),
        (lambda: cpe.st_paths([(0, 1), (2, 3)], 0, 3), "edges must connect 0 to 3"),
        (lambda: cpe.st_paths(PATHS, 1, 1), "t must differ from s, got 1"),
        (lambda: cpe.st_paths([(0, 1), (1, 2)], 0, 2), "rows must be at least 2, or the only decision is known"),
        (lambda: cpe.spanning_trees(4, [(0, 1), (2, 3)]), "edges must connect all 4 nodes"),
        (lambda: cpe.spanning_trees(3, [(0, 1), (1, 3)]), "edges must lie in [0, 2]"),
        (lambda: cpe.spanning_trees(7, list(itertools.combinations(range(7), 2))), "rows must be at most 5000"),
        (lambda: cpe.graphic(3, [(0, 1), (1, 2)]), "edges must have a cycle, or the only decision is known"),
        (lambda: oracle(lambda x: x, 2, bi_monotone=True), "solve must return integers of shape (2,)"),
        (lambda: oracle(lambda x: jnp.argmax(x), 2, bi_monotone=True), "solve must return integers of shape (2,)"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match="must") as error:
        call()
    assert message in str(error.value)
