"""Characteristic times and transport costs against bisection, an outside optimiser, and their laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from experiments.bench.reference import mab as reference
from jaxbandits import mab
from jaxbandits.mab._shared.confidence import leader_share_at
from jaxbandits.mab._shared.frame import Estimates
from jaxbandits.mab._shared.transport import transport_costs
from jaxbandits.mab._shared.weights import optimal_weights

MEANS = {  # rows of five means
    "gaussian": np.array([[0.3, 1.0, -0.5, 0.85, 0.8], [0.1, 0.2, 0.19, -3.0, 0.0], [0.5, 0.5, 0.5, 0.5, 1.0]]),
    "bernoulli": np.array([[0.3, 0.21, 0.2, 0.19, 0.18], [0.01, 0.99, 0.9, 0.98, 0.5], [0.0, 1.0, 1 / 3, 2 / 3, 0.0]]),
}
LAWS = {"gaussian": reference.Law("gaussian", 0.8), "bernoulli": reference.Law("bernoulli", 0.5)}
PROBLEMS = {"gaussian": mab.Gaussian(5, 0.8), "bernoulli": mab.Bernoulli(5)}


@pytest.fixture(scope="module", params=["gaussian", "bernoulli"])
def solved(request):
    problem = PROBLEMS[request.param]
    program = jax.jit(jax.vmap(lambda means: mab.characteristic_time(problem, means)))
    return request.param, program, jax.device_get(program(MEANS[request.param]))


def test_characteristic_time_equals_nested_bisection_within_its_bounds(solved):
    kind, _, (value, lower, upper, weights) = solved
    for n, means in enumerate(MEANS[kind]):
        w, T = reference.optimal_weights(LAWS[kind], means)
        np.testing.assert_allclose(weights[n], w, atol=1e-7)
        np.testing.assert_allclose(value[n], T, rtol=1e-8)
    assert (lower <= value).all()
    assert (value <= upper).all()
    np.testing.assert_allclose(lower, upper, rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_information_directed_share_of_gaussian_arms_is_half_at_equal_counts(dtype):
    """It is N_c / (N_l + N_c) whatever the means, without rounding, so that exact ties stay ties."""
    problem = mab.Gaussian(3, 0.3, dtype=dtype)
    counts, rng = np.array([7, 7, 21], dtype), np.random.default_rng(0)

    @jax.jit
    @jax.vmap
    def shares(means):
        estimates = Estimates(jnp.asarray(35), jnp.asarray(counts), means)
        return [leader_share_at(problem, "ids", estimates, jnp.asarray(0), jnp.asarray(arm)) for arm in (1, 2)]

    equal, rare = shares(jnp.asarray(rng.normal(size=(1000, 3)), dtype))
    np.testing.assert_array_equal(equal, 0.5)
    np.testing.assert_array_equal(rare, 0.75)


def test_permuting_the_arms_permutes_the_weights(solved):
    kind, program, (value, *_, weights) = solved
    order = np.array([2, 0, 4, 1, 3])
    again = program(MEANS[kind][:, order])
    np.testing.assert_allclose(again.value, value, rtol=1e-11)
    np.testing.assert_allclose(again.allocation, weights[:, order], rtol=1e-9, atol=1e-12)


def test_scaling_gaussian_means_scales_the_time(solved):
    kind, program, (value, *_, weights) = solved
    if kind == "gaussian":
        again = program(3 * MEANS[kind] - 7)
        np.testing.assert_allclose(again.value, value / 9, rtol=1e-9)
        np.testing.assert_allclose(again.allocation, weights, rtol=1e-8)


def test_characteristic_time_of_ties_is_infinite(solved):
    _, program, _ = solved
    again = program(np.array([[0.5, 0.2, 0.5, 0.1, 0.5], [0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0, 0.0]]))
    assert np.isinf(again.value).all()
    np.testing.assert_array_equal(again.allocation, np.full((3, 5), 0.2))


def test_two_gaussian_arms_and_equal_challengers_by_hand():
    gap, scale = 0.3, 0.8
    two = mab.characteristic_time(mab.Gaussian(2, scale), np.array([0.0, gap]))
    np.testing.assert_allclose(two.value, 8 * scale**2 / gap**2, rtol=1e-12)
    np.testing.assert_allclose(two.allocation, [0.5, 0.5], rtol=1e-12)


@pytest.mark.parametrize(
    ("instance", "time", "weights"),
    [
        (mab.gk1, 989.79, (0.41652, 0.39026, 0.13622, 0.05699)),
        (mab.gk2, 326.64, (0.33589, 0.25150, 0.17663, 0.13242, 0.10357)),
    ],
)
def test_published_times(instance, time, weights):
    result = mab.characteristic_time(*instance())
    np.testing.assert_allclose(result.value, time, rtol=2e-5)
    np.testing.assert_allclose(result.allocation, weights, atol=6e-6)


def test_a_given_share_and_an_epsilon():
    for kind, share, epsilon in (("bernoulli", 0.5, 0.0), ("gaussian", 0.2, 0.1), ("gaussian", None, 0.1)):
        means = MEANS[kind][0]
        result = mab.characteristic_time(PROBLEMS[kind], means, leader_share=share, epsilon=epsilon)
        w, T = reference.optimal_weights(LAWS[kind], means, epsilon=epsilon, share=share)
        np.testing.assert_allclose(result.allocation, w, atol=1e-8)
        np.testing.assert_allclose(result.value, T, rtol=1e-8)
        assert result.lower <= result.value <= result.upper
        np.testing.assert_allclose(result.lower, result.upper, rtol=1e-7)


def test_no_allocation_is_better():
    """An outside optimiser of the max-min finds no better weights."""
    from scipy.optimize import minimize

    means = MEANS["bernoulli"][0]
    time = float(mab.characteristic_time(PROBLEMS["bernoulli"], means).value)

    def rates(w):
        return np.array([reference.cost(LAWS["bernoulli"], w[0], means[0], w[a], means[a]) for a in range(1, 5)])

    constraints = [
        {"type": "eq", "fun": lambda z: z[:5].sum() - 1},
        {"type": "ineq", "fun": lambda z: rates(z[:5]) * 300 - z[5]},
    ]
    start = np.append(np.full(5, 0.2), rates(np.full(5, 0.2)).min() * 300)
    bounds = [(1e-3, 1)] * 5 + [(0, None)]
    options = {"ftol": 1e-14, "maxiter": 500}
    best = minimize(lambda z: -z[5], start, bounds=bounds, constraints=constraints, options=options)
    np.testing.assert_allclose(300 / best.x[5], time, rtol=1e-6)


def test_the_weights_of_tracking_are_near_the_exact_ones():
    program = jax.jit(jax.vmap(lambda means: optimal_weights(PROBLEMS["bernoulli"], means)[0]))
    weights = program(MEANS["bernoulli"])
    for got, means in zip(weights, MEANS["bernoulli"], strict=True):
        np.testing.assert_allclose(got, reference.optimal_weights(LAWS["bernoulli"], means)[0], atol=2e-5)


# Transport costs


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("epsilon", [None, 0.02, 0.3])
def test_transport_costs_equal_a_numerical_minimum(kind, epsilon):
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 200, (40, 5)).astype(float)
    means = rng.random((40, 5))
    if kind == "bernoulli":
        means = np.round(means * counts) / counts  # 0 and 1 among them
    margin = None if epsilon is None else jnp.asarray(epsilon)
    program = jax.jit(jax.vmap(lambda n, m: transport_costs(PROBLEMS[kind], Estimates(0, n, m), jnp.int32(1), margin)))
    costs = np.asarray(program(counts, means))
    assert np.isinf(costs[:, 1]).all()
    epsilon, law = epsilon or 0.0, LAWS[kind]
    for row, (n, m) in enumerate(zip(counts, means, strict=True)):
        for a in (0, 2, 3, 4):
            expected = reference.cost(law, n[1], m[1], n[a], m[a], epsilon=epsilon)
            np.testing.assert_allclose(costs[row, a], expected, rtol=1e-8, atol=1e-9)
    if kind == "gaussian" and epsilon:
        n, m = counts[0], means[0]

        def paid(x):
            return n[1] * reference.kl(law, m[1], x) + n[0] * reference.kl(law, m[0], x + epsilon)

        expected = minimize_scalar(paid, bounds=(-2, 2), method="bounded", options={"xatol": 1e-12}).fun
        np.testing.assert_allclose(costs[0, 0], expected if m[1] - m[0] + epsilon > 0 else 0, atol=1e-9)


def test_hardness_by_hand():
    instance = mab.bernoulli([0.4, 0.5, 0.3])
    np.testing.assert_allclose(mab.hardness(instance), [225, 200])
    np.testing.assert_allclose(mab.hardness(mab.audibert1()).H1, 2000)
    np.testing.assert_allclose(mab.successive_rejects_bound(mab.audibert1(), horizon=2000), 138, rtol=0.01)
    # Two arms, rewards in [0, 1]: 1 exp(-(T - 2) / (1 H2)), H2 = 2 / .1^2.
    np.testing.assert_allclose(
        mab.successive_rejects_bound(mab.bernoulli([0.5, 0.4]), horizon=202), np.exp(-1), rtol=1e-12
    )
    same = mab.gaussian([0.5, 0.4], noise_scale=0.5)
    np.testing.assert_allclose(mab.successive_rejects_bound(same, horizon=202), np.exp(-1), rtol=1e-12)
    np.testing.assert_allclose(mab.lai_robbins(mab.gaussian([1.0, 0.5, 1.0], noise_scale=2.0)), 2 * 4 / 0.5)
