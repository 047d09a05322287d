"""SAQM against worked numbers, a plain transcription, and enumeration."""

import jax.numpy as jnp
import numpy as np
import pytest
from drivers.fullbandit import KEY
from drivers.rules import verdict_of

from experiments.bench.reference import fullbandit as reference
from jaxbandits.fullbandit import Pace, State, all_superarms, make_design, random_support, saqm, saqm_rule
from jaxbandits.numerics.densest_subgraph import quadratic_maximization, theorem1_ratio

PAIRS = make_design(all_superarms(3, 2), 2)
THETA3 = jnp.array([1.0, 0.5, 0.0])
SETTINGS = {"k": 2, "delta": 0.05, "epsilon": 0.5}
ROOTS = np.sqrt([5, 11, 17, 7, 13, 19, 3, 23])  # shares for which no two ratios of count to share ever tie
DESIGN = make_design(random_support(5, 5, 3, size=8), 3, weights=ROOTS / ROOTS.sum())


def random_case(seed, n=6):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n))
    return jnp.asarray(root @ root.T / 50 + np.eye(n) / 100), jnp.asarray(rng.normal(size=n))


# The rule


def test_the_margin_by_hand():
    # Lambda^-1 = 3 I - 0.75 J, every |chi|^2 = 3; at t = 100, C = 20.244098: 1 - C sqrt(0.03) (1 + 1/0.9).
    verdict = verdict_of(saqm_rule, PAIRS.inverse / 100, THETA3, 100, **SETTINGS)
    np.testing.assert_allclose([verdict.radius, verdict.margin], [20.244098, -6.402359], atol=5e-7)
    assert verdict.answer.tolist() == [True, True, False]
    assert not verdict.stop


@pytest.mark.parametrize(("t", "stop"), [(9363.915, False), (9363.917, True)])
def test_the_stop_by_hand(t, stop):
    # t = 3 (1 + 1/0.9)^2 C^2 with C = 26.46409.
    assert verdict_of(saqm_rule, PAIRS.inverse / t, THETA3, t, **SETTINGS).stop == stop


def test_a_margin_of_zero_stops():
    inverse, theta = jnp.zeros((3, 3)), jnp.array([0.5, 0.5, 0.5])
    verdict = verdict_of(saqm_rule, inverse, theta, 10, k=2, delta=0.1, epsilon=0.0)
    assert verdict.margin == 0
    assert verdict.stop
    assert verdict.answer.tolist() == [True, True, False]  # lowest indices, because all arms tie


def test_alpha_exact_is_the_largest_norm_and_theorem1_the_proven_ratio():
    inverse, theta = random_case(6)
    settings = {"k": 3, "delta": 0.1, "epsilon": 0.2}
    verdict = verdict_of(saqm_rule, inverse, theta, 50, alpha=1.0, **settings)
    peeled = np.sqrt(float(quadratic_maximization(inverse, 3).value))
    largest = max(reference.norm(reference.chi(M, 6), np.asarray(inverse)) for M in reference.combinations(range(6), 3))
    assert largest > peeled + 1e-3
    for alpha, norm in (("exact", largest), ("theorem1", peeled / np.sqrt(float(theorem1_ratio(inverse, 3))))):
        expected = verdict.margin - verdict.radius * (norm - peeled)
        np.testing.assert_allclose(
            verdict_of(saqm_rule, inverse, theta, 50, alpha=alpha, **settings).margin, expected, rtol=1e-9
        )


# The algorithm


@pytest.mark.parametrize("alpha", [0.9, "exact", "theorem1"])
def test_every_alpha_gives_the_same_margin_in_the_limit_as_from_whole_cycles(alpha):
    design = make_design(random_support(1, 6, 3, size=12), 3)
    counts = jnp.full(12, 30)
    state = State(counts.sum(), counts, 30 * design.support @ jnp.array([0.9, 0.1, 0.8, 0.2, 0.7, 0.3]))
    paces = {matrix: Pace(design_matrix=matrix) for matrix in ("counts", "limit")}
    for epsilon, stop in ((0.0, False), (100.0, True)):
        for pace in paces.values():
            algorithm = saqm(design, delta=0.1, epsilon=epsilon, noise_scale=1 / 3, alpha=alpha, pace=pace)
            assert algorithm.decide(KEY, state).stop == stop
    leaps = [
        saqm(design, delta=0.1, epsilon=0.1, alpha=alpha, pace=pace).decide(KEY, state).action.counts.sum()
        for pace in paces.values()
    ]
    # The leap shows the margin; with "limit" it is prolonged to a whole cycle.
    assert leaps[1] == -(-leaps[0] // 12) * 12


def test_alpha_exact_equals_the_ratio_of_the_design():
    design = make_design(random_support(9, 6, 3, size=9), 3)  # a design whose peeling has no ties
    theta = jnp.array([0.9, 0.1, 0.8, 0.2, 0.7, 0.0])
    state = State(jnp.asarray(360), jnp.full(9, 40), 40 * design.support @ theta)
    peeled = float(quadratic_maximization(design.inverse, 3).value)
    largest = max(
        reference.norm(reference.chi(M, 6), np.asarray(design.inverse)) for M in reference.combinations(range(6), 3)
    )
    ratio = np.sqrt(peeled) / largest
    assert ratio < 0.99

    def pulls(alpha):
        return saqm(design, delta=0.1, epsilon=0.1, alpha=alpha).decide(KEY, state).action.counts

    np.testing.assert_array_equal(pulls("exact"), pulls(ratio))
    assert pulls("exact").sum() > pulls(1.0).sum()


def test_too_many_superarms_for_an_exact_ratio_are_refused():
    with pytest.raises(ValueError, match="at most 5000000 super-arms, got 9075135300"):
        saqm(make_design(random_support(0, 36, 18), 18), delta=0.1, epsilon=0.1, alpha="exact")
