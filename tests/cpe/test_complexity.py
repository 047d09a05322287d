"""Radii against linear programs and closed forms; gaps, exchange widths and bounds by hand."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.cpe import best_of_concave
from scipy.optimize import linprog

from experiments.bench.reference import cpe as reference
from jaxbandits import cpe

DISJOINT = [(0, 1), (1, 3), (0, 2), (2, 3)]  # two paths without a common edge


def radius_of(problem):
    return jax.jit(lambda theta: cpe.consistent_radius(problem, theta))


def radius_by_programs(decisions, slopes, offset, theta):
    """Computes the smallest distance at which some decision with another y_i leads, by one linear program per decision.

    Decision y pays slopes_y.theta - offset_y.
    """
    m = len(theta)
    best = np.argmax(slopes @ theta - offset)
    radii = np.full(m, np.inf)
    sides = np.vstack([np.eye(m), -np.eye(m)])
    for y, (slope, cost) in enumerate(zip(slopes, offset, strict=True)):
        # Variables theta', h: y leads, and |theta' - theta| <= h.
        leads = np.column_stack([slopes - slope, np.zeros(len(slopes))])
        near = np.column_stack([sides, -np.ones(2 * m)])
        program = linprog(
            np.eye(m + 1)[m],
            np.vstack([leads, near]),
            np.concatenate([offset - cost, sides @ theta]),
            bounds=[(0, 1)] * (m + 1),
        )
        if program.status == 0:
            differs = decisions[y] != decisions[best]
            radii[differs] = np.minimum(radii[differs], program.fun)
    return radii


def listed(problem):
    return np.asarray(problem.rows), np.asarray(problem.rows), np.asarray(problem.offset)


# Radii


@pytest.mark.parametrize("name", ["paths5", "trees5", "matching3"])
def test_radii_of_classes_against_linear_programs(name):
    problem = getattr(cpe, name)().problem
    radius = radius_of(problem)
    rng = np.random.default_rng(0)
    for theta in rng.random((3, problem.rows.shape[1])):
        np.testing.assert_allclose(radius(jnp.asarray(theta)), radius_by_programs(*listed(problem), theta), atol=1e-7)


def test_radii_with_offsets_against_linear_programs():
    rng = np.random.default_rng(1)
    problem = cpe.enumerated(np.unique(rng.integers(0, 2, (9, 4)), axis=0), rng.random(9) * 0.5)
    radius = radius_of(problem)
    for theta in rng.random((4, 4)):
        np.testing.assert_allclose(radius(jnp.asarray(theta)), radius_by_programs(*listed(problem), theta), atol=1e-7)


@pytest.mark.parametrize("tight", [True, False])
def test_radii_of_water_planning_against_linear_programs(tight):
    rng = np.random.default_rng(2)
    steps = np.sort(rng.random((3, 3)), axis=1) + (1 if tight else 0.2)
    costs = np.column_stack([np.zeros(3), np.cumsum(steps, axis=1)])
    radius = radius_of(cpe.water(costs, 4, tight=tight))
    decisions = np.array([y for y in itertools.product(range(4), repeat=3) if sum(y) >= 4])
    offset = costs[np.arange(3), decisions].sum(axis=1)
    for theta in rng.random((3, 3)):
        expected = radius_by_programs(decisions, decisions.astype(float), offset, theta)
        np.testing.assert_allclose(radius(jnp.asarray(theta)), expected, atol=1e-7)


def test_radii_of_opinion_sampling_against_linear_programs():
    rng = np.random.default_rng(3)
    sizes = np.array([1, 3, 4])
    radius = radius_of(cpe.opinion_sampling(sizes, 7))
    decisions = np.array([y for y in itertools.product(range(1, 6), repeat=3) if sum(y) <= 7])
    for theta in rng.random((3, 3)) / 4:
        expected = radius_by_programs(decisions, -(sizes**2) / decisions, np.zeros(len(decisions)), theta)
        np.testing.assert_allclose(radius(jnp.asarray(theta)), expected, atol=1e-7)


def test_radii_of_top_k_by_hand():
    np.testing.assert_allclose(cpe.radius_top_k(jnp.asarray([0.1, 0.9, 0.6, 0.5]), 2), [0.25, 0.2, 0.05, 0.05])


def test_the_radii_of_water3_by_hand():
    # -1.5 - h = -1.7 + h is where source 1 takes its third unit instead of source 0.
    instance = cpe.water3()
    np.testing.assert_allclose(radius_of(instance.problem)(instance.theta)[:2], 0.1, rtol=1e-12)


def test_the_radius_of_osa4_by_hand():
    instance = cpe.osa4()
    expected = (2 / 3 - 0.375) / (16 / 6 + 9 / 6)
    np.testing.assert_allclose(radius_of(instance.problem)(instance.theta)[1], expected, rtol=1e-12)


def test_the_radius_of_a_bridge_is_infinite():
    problem = cpe.st_paths([(0, 1), (1, 2), (1, 2)], 0, 2)
    radii = radius_of(problem)(jnp.asarray([0.5, 0.7, 0.3]))
    np.testing.assert_allclose(radii, [np.inf, 0.2, 0.2])
    np.testing.assert_allclose(cpe.hardness(radii), 50)
    np.testing.assert_allclose(cpe.uniform_hardness(radii), 75)


def test_a_tie_has_radius_zero():
    np.testing.assert_allclose(radius_of(cpe.best_arm(3))(jnp.asarray([0.5, 0.5, 0.2])), [0, 0, 0.15], atol=1e-15)


# The two-call test on problems that are not bi-monotone


def false_promise(problem: cpe.Enumerated):
    return cpe.oracle(lambda theta: cpe.solve(problem, theta), problem.rows.shape[1], bi_monotone=True)


def test_two_call_overestimates_the_radii_of_disjoint_paths():
    problem, theta = cpe.st_paths(DISJOINT, 0, 3), jnp.asarray([0.7, 0.7, 0.5, 0.5])
    np.testing.assert_allclose(radius_of(problem)(theta), 0.1)  # a quarter of the gap 0.4
    np.testing.assert_allclose(radius_of(false_promise(problem))(theta), 0.2)  # half of it


def test_two_call_overestimates_the_radii_of_concave_water_planning():
    (steps, offset), theta = reference.concave_costs(), np.array([0.7, 0.7, 0.4])
    exact = radius_by_programs(steps, steps.astype(float), offset, theta)
    np.testing.assert_allclose(exact, 0.150005, atol=1e-6)
    by_two_calls = radius_of(cpe.oracle(best_of_concave, 3, bi_monotone=True))(jnp.asarray(theta))
    np.testing.assert_allclose(by_two_calls, [0.249995, 0.249995, 0.150005], atol=1e-6)


# Gaps and exchange widths


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (cpe.st_paths([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)], 0, 4), 5),
        (cpe.st_paths(DISJOINT, 0, 3), 4),
        (cpe.perfect_matchings(3), 6),
        (cpe.spanning_trees(4, list(itertools.combinations(range(4), 2))), 2),
        (cpe.enumerated([row for row in itertools.product((0, 1), repeat=5) if sum(row) == 2]), 2),
    ],
)
def test_exchange_widths(problem, expected):
    assert cpe.exchange_width(problem.rows) == expected


def test_gaps_by_hand():
    for problem, theta, expected in (
        (cpe.top_k(4, 2), [0.1, 0.9, 0.6, 0.5], [0.5, 0.4, 0.1, 0.1]),
        (cpe.sites([0.0, 0.5, 0.25], 1), [0.5, 0.5, 0.5], [0.25, 0.5, 0.25]),
        (cpe.st_paths([(0, 1), (1, 2), (1, 2)], 0, 2), [0.5, 0.7, 0.3], [np.inf, 0.4, 0.4]),
    ):
        np.testing.assert_allclose(jax.jit(partial(cpe.reward_gaps, problem))(np.array(theta)), expected)


# Bounds


def test_bounds_by_hand():
    settings = {"m": 4, "tau": 1, "delta": 0.1}
    np.testing.assert_allclose(cpe.theorem1_bound(100, **settings), 10823.42, atol=0.005)
    np.testing.assert_allclose(cpe.implicit_time(100, c=2, **settings), 5957.19, atol=0.005)
    np.testing.assert_allclose(cpe.implicit_time(100, c=0.5, **settings), 1259.18, atol=0.005)
    bound = cpe.arm_bound(jnp.asarray([0.1, np.inf]), 1000, 2, 0.1)
    np.testing.assert_allclose(bound, [1 + 200 * np.log(2e10), 1])
    np.testing.assert_allclose(cpe.clucb_bound(25, 2, 4, 0.1), 8 + 49900 * np.log(16000))
    np.testing.assert_allclose(cpe.lower_bound_rate(100, 4, 0.1), 100 + 25 * np.log(10))


def test_implicit_times_are_roots():
    H, deltas = np.array([1.0, 3.0, 40.0, 1e4, 1e8]), (0.5, 1e-6)

    @jax.jit
    @partial(jax.vmap, in_axes=(0, None))
    def times(H, delta):
        settings = {"m": 8, "tau": 2, "delta": delta}
        return [cpe.implicit_time(H, c=c, **settings) for c in (0.5, 2)]

    for delta in deltas:
        for c, time in zip((0.5, 2), times(H, delta), strict=True):
            np.testing.assert_allclose(8 + c * H * np.log(4 * time**3 / (2 * delta)), time, rtol=1e-10)
            assert (time > 3 * c * H).all()  # the larger of the two roots


def test_hardness_by_hand():
    radii = np.array([0.5, 0.25])
    np.testing.assert_allclose([cpe.hardness(radii), cpe.uniform_hardness(radii)], [20, 32])


# Bad input


def _not_promised():
    return cpe.consistent_radius(cpe.oracle(lambda x: (x > 0.5).astype(int), 2, bi_monotone=False), jnp.ones(2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (_not_promised, "problem must be bi-monotone"),
        (lambda: cpe.reward_gaps(cpe.water3().problem, jnp.ones(3)), "a table with rows of one entry, got 4"),
        (
            lambda: cpe.reward_gaps(cpe.water([[0, 0.5], [0, 0.6]], 1, tight=False), jnp.ones(2)),
            "problem must take exactly a known number of entries",
        ),
        (lambda: cpe.reward_gaps(cpe.graphic(2, [(0, 1), (0, 1)]), jnp.ones(2)), "got 'Graphic'"),
        (lambda: cpe.exchange_width(np.zeros((61, 2))), "rows must be at most 60, got 61"),
        (lambda: cpe.exchange_width([[0, 2]]), "rows must hold zeros and ones only"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match="must") as error:
        call()
    assert message in str(error.value)
