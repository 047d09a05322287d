"""Hardness measures and bounds against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import linear

THEOREM2 = {
    "K": 6,
    "d": 5,
    "delta": 0.05,
    "ridge": 1.0,
    "noise_scale": 1.0,
    "norm_bound": 2.0,
    "arm_norm": 1.0,
}


def measures(instance):
    """Returns H_0, H_oracle and H'."""
    arguments, ratios = (instance.arms, instance.theta), linear.ratio_tables(instance.arms)
    return (
        float(linear.hardness_lingape(*arguments, ratios=ratios)),
        float(linear.hardness_oracle(*arguments, ratios=ratios)),
        float(linear.hardness_oracle_sum(*arguments, ratios=ratios)),
    )


@pytest.fixture(name="hardness", scope="module")
def _hardness():
    return measures(linear.soare(5))[0]


def test_gaps_by_hand():
    instance = linear.soare(3, 0.1)
    near = 2 * (1 - np.cos(0.1))
    np.testing.assert_allclose(linear.gaps(instance.arms, instance.theta), [near, 2, 2, near], rtol=1e-12)


def test_gap_of_soare():
    instance = linear.soare(5)
    assert linear.gaps(instance.arms, instance.theta)[5] == pytest.approx(9.999917e-5, rel=1e-7)
    # float32 rounds the features, not the gap: 1 - cos(0.01) keeps a precision of 6e-4.
    single = linear.soare(5, dtype=jnp.float32)
    assert linear.gaps(single.arms, single.theta)[5] == pytest.approx(9.999917e-5, rel=1e-3)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_hardness_of_soare(d):
    omega = 0.01
    H_0, H_oracle, _ = measures(linear.soare(d, omega))
    assert H_oracle == pytest.approx((1 + 1 / np.tan(omega / 2)) ** 2 / 4, rel=1e-9)
    assert H_oracle == pytest.approx(10100.0825, abs=1e-4)
    assert pytest.approx(9 * H_oracle + (4.5 * (d - 1) if d > 2 else 0), rel=1e-9) == H_0


def test_hardness_of_canonical_arms():
    instance = linear.canonical(0.5)
    H_0, H_oracle, H_sum = measures(instance)
    assert pytest.approx(360) == H_0
    assert H_oracle == pytest.approx(16)
    assert H_sum == pytest.approx(64)
    assert linear.hardness_ugape(instance.arms, instance.theta) == pytest.approx(5 * 4 / 0.25**2)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 2.0])
def test_hardness_of_canonical_arms_is_close_to_hardness_without_structure(epsilon):
    instance = linear.canonical(0.3, 7)
    ratios = linear.ratio_tables(instance.arms)
    structured = linear.hardness_lingape(instance.arms, instance.theta, ratios=ratios, epsilon=epsilon)
    plain = linear.hardness_ugape(instance.arms, instance.theta, epsilon=epsilon)
    assert structured <= 9 / 8 * plain * (1 + 1e-12)
    assert structured == pytest.approx(7 * 2 / max(epsilon, (epsilon + 0.3) / 3) ** 2)


@pytest.mark.parametrize(("n", "ratio"), [(2, 17.986), (16, 80.8), pytest.param(24, 116.7, marks=pytest.mark.slow)])
def test_theorem_3_is_refuted(n, ratio):
    s, gap = 0.01, 0.1
    H_0, _, H_sum = measures(linear.theorem3_counterexample(n, s, gap))
    assert pytest.approx(18 * (n + 2 + n * s**2) / gap**2, rel=1e-8) == H_0
    assert H_sum == pytest.approx((4 + 5 * n * s**2) / gap**2, rel=1e-8)
    assert H_0 / H_sum == pytest.approx(ratio, abs=0.05)


def test_hardness_lingape_against_its_sums():
    instance, epsilon = linear.sphere(1, 5, 3, 0.05), 0.1
    p, rho = ratios = linear.ratio_tables(instance.arms)
    gaps = linear.gaps(instance.arms, instance.theta)
    expected = sum(
        max(
            p[i, j, k] * rho[i, j] / max(epsilon, (epsilon + gaps[i]) / 3, (epsilon + gaps[j]) / 3) ** 2
            for i in range(5)
            for j in range(5)
        )
        for k in range(5)
    )
    computed = linear.hardness_lingape(instance.arms, instance.theta, ratios=ratios, epsilon=epsilon)
    assert computed == pytest.approx(float(expected), rel=1e-12)


def test_theorem_2(hardness):
    assert linear.theorem2_bound(hardness, **THEOREM2, printed=True) == pytest.approx(60368588, abs=1)
    assert linear.theorem2_bound(hardness, **THEOREM2) == pytest.approx(5.14e7, rel=1e-3)
    assert linear.theorem2_implicit(hardness, **THEOREM2) == pytest.approx(11604543, abs=1)
    limit = linear.theorem2_ridge_limit(K=6, delta=0.05, noise_scale=1.0, norm_bound=2.0)
    assert limit == pytest.approx(3.28963, abs=1e-5)


@pytest.mark.parametrize("ridge", [0.01, 1.0, 100.0])
def test_theorem_2_implicit_is_the_largest_solution(hardness, ridge):
    arguments = THEOREM2 | {"ridge": ridge}
    t = float(linear.theorem2_implicit(hardness, **arguments))

    def excess(t):
        radius = np.sqrt(2 * np.log(36 / 0.05) + 5 * np.log1p(t / (5 * ridge))) + 2 * np.sqrt(ridge)
        return t - hardness * radius**2 - 6

    assert excess(t * (1 + 1e-9)) > 0 > excess(t * (1 - 1e-9))
    assert np.all(excess(t * np.geomspace(1.001, 1e3, 50)) > 0)


def test_theorem_2_implicit_ends_in_single_precision(hardness):
    """Rounding alone still moves the iteration at its end."""
    with jax.enable_x64(False):
        assert linear.theorem2_implicit(hardness, **THEOREM2) == pytest.approx(11604543, rel=1e-5)


def test_theorem_2_for_a_large_ridge():
    arguments = {"K": 5, "delta": 0.1, "noise_scale": 0.5, "norm_bound": 3.0, "arm_norm": 2.0}
    bound = linear.theorem2_large_ridge_bound(10.0, ridge=41.0, **arguments)
    assert bound == pytest.approx(8 * 10 * 0.25 * np.log(250) + 4 * 10 * 41 * 9 + 10)
    with pytest.raises(ValueError, match="ridge must be above 40.0, got 40.0"):
        linear.theorem2_large_ridge_bound(10.0, ridge=40.0, **arguments)


def test_lower_bound_of_soare():
    instance = linear.soare(5)
    bound = linear.lower_bound(instance.arms, instance.theta, delta=0.05)
    assert bound.T_star == pytest.approx(20201.67, abs=0.01)
    assert bound.pulls == pytest.approx(53534, abs=1)


def test_lower_bound_of_canonical_arms():
    instance = linear.canonical(0.5)
    bound = linear.lower_bound(instance.arms, instance.theta, delta=0.05)
    assert bound.T_star == pytest.approx(72, rel=1e-4)
    assert bound.T_star <= 72 * (1 + 1e-12)
    assert bound.pulls == pytest.approx(190.80, abs=0.01)
    np.testing.assert_allclose(bound.allocation, [1 / 3, *[1 / 6] * 4], rtol=1e-3)
    noisier = linear.lower_bound(instance.arms, instance.theta, delta=0.05, noise_scale=2.0)
    assert noisier.pulls == pytest.approx(4 * float(bound.pulls), rel=1e-9)


def test_lower_bound_needs_no_more_than_any_allocation_of_the_oracle():
    """T* is at least what the single hardest pair requires, 2 H_oracle, and at most twice the sum's share."""
    instance = linear.sphere(2, 6, 3, 0.1)
    _, H_oracle, H_sum = measures(instance)
    T_star = float(linear.lower_bound(instance.arms, instance.theta, delta=0.05, steps=2000).T_star)
    assert 2 * H_oracle * (1 - 1e-3) <= T_star <= 2 * H_sum


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_dtype_and_tracing(dtype):
    instance = linear.canonical(0.5, dtype=dtype)
    ratios = linear.ratio_tables(instance.arms)

    def everything(arms, theta):
        return (
            linear.gaps(arms, theta),
            linear.hardness_lingape(arms, theta, ratios=ratios),
            linear.hardness_oracle(arms, theta, ratios=ratios),
            linear.hardness_oracle_sum(arms, theta, ratios=ratios),
            linear.hardness_ugape(arms, theta),
            linear.lower_bound(arms, theta, delta=0.05, steps=100),
        )

    results = jax.tree.leaves(jax.jit(everything)(instance.arms, instance.theta))
    assert all(leaf.dtype == dtype for leaf in results)
    assert results[1] == pytest.approx(360, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, r: linear.gaps(x, jnp.array([1.0, 1, 0])), "theta must have a unique best arm"),
        (
            lambda x, r: linear.hardness_oracle(x[:2], x[0], ratios=r),
            r"ratios.p must be an array of real numbers of shape \(2, 2, 2\)",
        ),
        (lambda x, r: linear.theorem2_bound(1.0, **(THEOREM2 | {"ridge": 4.0})), r"ridge must lie in \(0, 3.28"),
    ],
)
def test_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.eye(3), linear.ratio_tables(np.eye(3)))
