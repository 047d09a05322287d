"""The candidates of a box: by hand, at every corner, and every form against the others."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.cpe import best_of_concave

from experiments.bench.reference import cpe as reference
from jaxbandits import cpe
from jaxbandits.cpe import OpinionSampling, candidates, solve, stops, two_call
from jaxbandits.cpe._problem.kinds import enumerated
from jaxbandits.cpe._problem.kinds.enumerated import disagreement, reachable
from jaxbandits.cpe._problem.kinds.oracle import called_at_corners
from jaxbandits.cpe._shared.candidates import lasting_arms

RNG = np.random.default_rng


def arms(mask):
    return set(np.flatnonzero(np.asarray(mask)).tolist())


def box(theta, h):
    theta = jnp.asarray(theta)
    return jnp.clip(theta - h, 0, 1), jnp.clip(theta + h, 0, 1)


def around(instance, widths, *, two_calls=False):
    """Returns the candidates of boxes with given half-widths around the truth."""
    problem, theta = instance.problem, instance.theta

    def judge(h):
        lo, hi = box(theta, h)
        if two_calls:
            return two_call(lambda theta: solve(problem, theta), lo, hi)
        return candidates(problem, lo, hi, solve(problem, theta))

    masks = jax.jit(jax.vmap(judge))(jnp.asarray(widths))
    return {h: arms(mask) for h, mask in zip(widths, masks, strict=True)}


def boxes(rng, number, m, *, grid=False, spread=1.0):
    """Draws boxes within [0, 1]^m and a point of each, optionally on a grid of eighths, where entries tie."""
    point, *widths = rng.uniform(size=(3, number, m))
    lo, hi = point - spread * widths[0], point + spread * widths[1]
    sides = np.clip([lo, point, hi], 0, 1)
    return tuple(jnp.asarray(np.round(8 * side) / 8 if grid else side) for side in sides)


def both_kinds(seed, number, m, **settings):
    """Draws boxes, half of them with continuous corners, half on the grid."""
    parts = [boxes(RNG([seed, grid]), number // 2, m, grid=bool(grid), **settings) for grid in (0, 1)]
    return tuple(jnp.concatenate(pair) for pair in zip(*parts, strict=True))


# Boxes worked out by hand


def test_best_arm_by_hand():
    lo, hi = jnp.asarray([0.5, 0.3, 0.1]), jnp.asarray([0.8, 0.6, 0.4])
    assert arms(jax.jit(candidates)(cpe.best_arm(3), lo, hi, jnp.asarray([1, 0, 0]))) == {0, 1}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("water3", {0.05: set(), 0.12: {0, 1}, 0.33: {0, 1, 2}}),
        ("osa4", {0.06: set(), 0.08: {1, 2}, 0.18: {0, 1, 2}, 0.21: {0, 1, 2, 3}}),
        ("trees5", {0.12: set(), 0.13: {1, 2}, 0.2: {1, 2, 4}, 0.26: {1, 2, 3, 4}}),
        ("paths5", {0.19: set(), 0.21: {4, 5, 6}, 0.25: {2, 3, 4, 5, 6}, 0.32: {0, 1, 2, 3, 4, 5, 6}}),
        ("matching3", {0.14: set(), 0.16: {4, 5, 7, 8}}),
    ],
)
def test_boxes_around_the_truth_by_hand(name, expected):
    assert around(getattr(cpe, name)(), tuple(expected)) == expected


def test_levels_of_opinion_sampling_by_hand():
    problem = cpe.osa4().problem
    ranges = jax.jit(lambda lo, hi: called_at_corners(lambda theta: solve(problem, theta), lo, hi))
    lowest, highest = ranges(jnp.asarray([0.15, 0.2, 0.2, 0]), jnp.asarray([0.25, 0.25, 0.25, 0.02]))
    assert lowest.tolist() == highest.tolist() == [0, 1, 2, 0]
    lo, hi = jnp.zeros(4), jnp.asarray([0.25, 0.3, 0.3, 0.02])
    lowest, highest = ranges(lo, hi)
    assert lowest.tolist() == [0, 0, 0, 0]
    assert highest.tolist() == [3, 3, 3, 3]
    assert jax.jit(candidates)(problem, lo, hi, jnp.zeros(4, jnp.int32)).all()


def test_a_lower_bound_of_zero_does_not_keep_an_arm_open():
    # Under the published rounding rule arm 0 would never stop being a candidate.
    lo, hi = jnp.asarray([0.2, 0.0, 0.0]), jnp.asarray([0.25, 0.01, 0.01])
    for problem in (cpe.opinion_sampling([2, 1, 1], 4), OpinionSampling(jnp.asarray([2.0, 1.0, 1.0]), 4)):
        judge = jax.jit(lambda lo, hi, problem=problem: candidates(problem, lo, hi, solve(problem, hi)))
        assert not judge(lo, hi).any()


def test_two_call_misses_arms_of_classes_that_are_not_bi_monotone():
    two_paths = cpe.st_paths([(0, 1), (1, 3), (0, 2), (2, 3)], 0, 3)
    two_paths = cpe.instance(two_paths, cpe.bernoulli([0.7, 0.7, 0.5, 0.5]))
    for instance, h, by_two_calls, true in (
        (cpe.matching3(), 0.16, set(), {4, 5, 7, 8}),
        (cpe.paths5(), 0.21, {5}, {4, 5, 6}),
        (two_paths, 0.15, set(), {0, 1, 2, 3}),
    ):
        assert around(instance, (h,), two_calls=True) == {h: by_two_calls}
        assert around(instance, (h,)) == {h: true}


def test_two_call_misses_arms_with_concave_costs():
    # ERRATUM of the paper's Lemma 3: with decreasing marginal costs the optimum is not bi-monotone.
    assert best_of_concave(jnp.asarray([0.5, 0.4, 0.5])).tolist() == [0, 0, 10]
    assert best_of_concave(jnp.asarray([0.5, 0.6, 0.5])).tolist() == [5, 5, 0]
    theta = jnp.asarray([0.7, 0.7, 0.4])
    assert best_of_concave(theta).tolist() == [5, 5, 0]
    # All three arms are open from .150005 on. By two calls the first two are open from .249995 on.
    expected = {0.15: set(), 0.1501: {2}, 0.2499: {2}, 0.2501: {0, 1, 2}}
    masks = jax.jit(jax.vmap(lambda h: two_call(best_of_concave, *box(theta, h))))(jnp.asarray(tuple(expected)))
    assert [arms(mask) for mask in masks] == list(expected.values())
    lo, hi = box(theta, 0.1501)
    assert best_of_concave(jnp.asarray([lo[0], lo[1], hi[2]])).tolist() == [0, 0, 10]


# At every corner of the box a plain enumeration finds the best decision


def random_tables(rng, number, m, W):
    """Yields the arguments of tables whose entries tie on the grid, some with short rows."""
    for _ in range(number):
        cost = np.sort(rng.integers(0, 8, (m, W)) / 8, axis=1)
        cost[rng.integers(m), W - 1] = np.inf
        coef = np.where(np.isfinite(cost), 1.0, 0.0)
        kind = str(rng.choice(["exactly", "at most", "at least"]))
        yield coef, cost, int(rng.integers(1, m * W - 1)), kind


@jax.jit
def table_forms(table, lo, point, hi):
    def forms(lo, point, hi):
        levels = solve(table, point)
        return (
            candidates(table, lo, hi, levels),
            two_call(lambda theta: solve(table, theta), lo, hi),
            ~stops(table, lo, hi, levels),
            lasting_arms(table, lo, hi, levels),
        )

    return jax.vmap(forms)(lo, point, hi)


def varies_over_corners(problem, sets):
    """True if level i is not the same at all corners, bool (boxes, m)."""
    lo, _, hi = (np.asarray(side) for side in sets)
    choices = np.array(list(product((False, True), repeat=lo.shape[1])))
    levels = [
        [reference.phi(problem, corner) for corner in np.where(choices, *ends)] for ends in zip(hi, lo, strict=True)
    ]
    return np.ptp(levels, axis=1) > 0


def test_every_form_for_tables_is_right_at_every_corner():
    for number, arguments in enumerate(random_tables(RNG(1), 12, 3, 3)):
        coef, cost, quota, kind = arguments
        sets = both_kinds(number, 60, 3)
        forms = table_forms(cpe.table(coef, cost, quota, kind=kind), *sets)
        by_threshold, called, still_open, lasting = (np.asarray(form) for form in forms)
        expected = varies_over_corners(reference.table(*arguments), sets)
        np.testing.assert_array_equal(by_threshold, expected)
        np.testing.assert_array_equal(called, expected)
        np.testing.assert_array_equal(still_open, np.any(expected, axis=1))
        np.testing.assert_array_equal(lasting, expected)


CLASSES = {
    "paths": (cpe.paths5().problem, 12),
    "matchings": (cpe.matching3().problem, 6),
    "trees": (cpe.trees5().problem, 24),
    "offsets": (cpe.enumerated([[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1]], [0.25, 0, 0.125, 1]), 24),
}


@pytest.mark.parametrize("name", CLASSES)
def test_enumerated_classes_are_right_at_every_corner(name):
    problem, number = CLASSES[name]
    plain = reference.linear(problem.rows, problem.offset)
    np.testing.assert_array_equal(plain.decisions, problem.rows)
    sets = both_kinds(5, number, problem.rows.shape[1], spread=0.3)

    @jax.jit
    @jax.vmap
    def forms(lo, point, hi):
        levels = solve(problem, point)
        return candidates(problem, lo, hi, levels), stops(problem, lo, hi, levels)

    masks, stopped = (np.asarray(form) for form in forms(*sets))
    expected = varies_over_corners(plain, sets)
    np.testing.assert_array_equal(masks, expected)
    np.testing.assert_array_equal(stopped, ~expected.any(axis=1))
    assert 0 < expected.mean() < 1


# One form against another


def test_large_classes_are_compared_by_a_matrix_product(monkeypatch):
    problem = cpe.matching3().problem
    lo, _, hi = boxes(RNG(2), 200, 9)

    def judge(lo, hi):
        return disagreement(problem, reachable(problem, lo, hi))

    pairs = jax.jit(jax.vmap(judge))(lo, hi)
    monkeypatch.setattr(enumerated, "MAX_PAIRS", 0)
    multiplied = jax.jit(jax.vmap(lambda lo, hi: judge(lo, hi)))(lo, hi)
    np.testing.assert_array_equal(pairs, multiplied)


def test_few_known_decisions_are_compared_arm_by_arm_as_traced_ones_are():
    lo, at, hi = boxes(RNG(3), 200, 7)
    problem = cpe.paths5().problem._replace(offset=jnp.asarray([0.1, 0.0, 0.2, 0.0, 0.1]))
    assert problem.rows.shape[0] ** 2 * problem.rows.shape[1] <= enumerated.FEW_TERMS

    def judge(problem, lo, at, hi):
        return candidates(problem, lo, hi, solve(problem, at))

    known = jax.jit(jax.vmap(partial(judge, problem)))(lo, at, hi)
    traced = jax.jit(jax.vmap(judge, in_axes=(None, 0, 0, 0)))(problem, lo, at, hi)
    np.testing.assert_array_equal(known, traced)
    assert 0 < np.mean(known) < 1


def test_a_bridge_is_never_a_candidate():
    edges = [(0, 1), (1, 2), (1, 2)]
    lo, hi = jnp.zeros(3), jnp.ones(3)
    for problem in (cpe.st_paths(edges, 0, 2), cpe.graphic(3, edges), cpe.spanning_trees(3, edges)):
        judge = jax.jit(lambda lo, hi, problem=problem: candidates(problem, lo, hi, solve(problem, hi)))
        assert arms(judge(lo, hi)) == {1, 2}
