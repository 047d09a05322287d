"""Instances by hand and by their statistics, and their environment."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import chisquare

from jaxbandits import kernel
from jaxbandits.kernel._problem.instances import HARTMANN_A, HARTMANN_C, HARTMANN_P, branin_value, hartmann4_value
from jaxbandits.numerics.gp import cross

KEY = jax.random.key(0)
SE = kernel.SquaredExponential(0.2)
branin_at, hartmann_at = jax.jit(jax.vmap(branin_value)), jax.jit(jax.vmap(hartmann4_value))


def test_branin_by_hand():
    pi = np.pi
    top = [[(pi + 5) / 15, 2.275 / 15], [(5 - pi) / 15, 12.275 / 15], [(3 * pi + 5) / 15, 2.475 / 15]]
    values = branin_at(jnp.asarray([[0.5, 0.5], [0.0, 0.0], *top]))
    np.testing.assert_allclose(values, [0.5905685387, -4.8762097404] + 3 * [1.0473938911], atol=1e-9)


def test_hartmann_by_hand():
    top = [0.187395, 0.194152, 0.557918, 0.264780]
    values = hartmann_at(jnp.asarray([4 * [0.5], 4 * [0.0], top, [0.1873, 0.1906, 0.5566, 0.2647]]))
    np.testing.assert_allclose(values, [1.0833433453, -0.3132914559, 3.1344941, 3.1343], atol=2e-4)
    np.testing.assert_allclose(values[:2], [1.0833433453, -0.3132914559], atol=1e-9)
    np.testing.assert_allclose(values[2], 3.1344941, atol=1e-7)
    # The often quoted point is not the maximum, and no point near the maximum is higher.
    assert values[3] < values[2]
    near = jnp.asarray(top) + 1e-3 * jax.random.normal(KEY, (2000, 4))
    assert jnp.max(hartmann_at(near)) <= values[2] + 1e-9


def test_functions_are_standardised():
    # The rounded constants of the paper give mean 0 and standard deviation 1 up to some hundredths.
    branin = branin_at(jax.random.uniform(KEY, (200_000, 2)))
    assert abs(jnp.mean(branin)) < 0.02
    assert jnp.std(branin) == pytest.approx(0.984, abs=0.01)
    hartmann = hartmann_at(jax.random.uniform(KEY, (200_000, 4)))
    assert abs(jnp.mean(hartmann)) < 0.06
    assert jnp.std(hartmann) == pytest.approx(1, abs=0.06)
    # The integral of exp(-a (x - p)^2) over the unit interval, for each of the four terms.
    a, p = np.array(HARTMANN_A), np.array(HARTMANN_P)
    root = np.sqrt(a)
    integrals = np.sqrt(np.pi) / (2 * root) * (erf(root * (1 - p)) + erf(root * p))
    mean = (np.sum(np.array(HARTMANN_C) * integrals.prod(axis=1)) - 1.1) / 0.839
    assert jnp.mean(hartmann) == pytest.approx(mean, abs=5 / np.sqrt(200_000))


def made(make, key=KEY, **options):
    """Makes an instance in one compiled call; operation by operation takes seconds."""
    return jax.jit(functools.partial(make, **options))(key)


def test_ridge_functions_vary_in_one_direction():
    # h2 = (u - 1)^3 + 4; theta is found from the table, as the values are invertible in u.
    bandit = made(kernel.h2, size=500, dimension=3)
    u = 1 + np.cbrt(np.asarray(bandit.values) - 4)
    theta, *_ = np.linalg.lstsq(np.asarray(bandit.candidates), u, rcond=None)
    assert np.linalg.norm(theta) == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(np.asarray(bandit.candidates) @ theta, u, atol=1e-9)
    other = made(kernel.h1, size=500, dimension=3)
    np.testing.assert_array_equal(other.candidates, bandit.candidates)
    np.testing.assert_allclose(other.values, np.cos(3 * u), atol=1e-9)
    assert other.best == other.values.max()
    assert other.noise_scale == 0.2


def test_uniform_in_the_ball():
    d, n = 10, 20_000
    points = np.asarray(made(kernel.h1, size=n, dimension=d).candidates)
    square = np.sum(points**2, axis=1)
    sd = np.sqrt(d / (d + 4) - (d / (d + 2)) ** 2)  # E |x|^4 = d / (d + 4)
    assert abs(square.mean() - d / (d + 2)) < 5 * sd / np.sqrt(n)
    assert square.max() < 1
    assert chisquare(np.histogram(square ** (d / 2), bins=20, range=(0, 1))[0]).pvalue > 1e-6  # |x|^d is uniform
    assert np.all(abs(points.mean(0)) < 5 / np.sqrt(n * (d + 2)))
    sphere = made(kernel.h1, size=100, dimension=d, domain="sphere").candidates
    np.testing.assert_allclose(jnp.sum(sphere**2, axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("norm", [1.0, 3.0])
def test_norm_of_a_random_function(norm):
    # If the points are enough to determine the function, the smallest norm that fits its values is close to its own;
    # with fewer points it is smaller.
    bandit = made(kernel.rkhs, kernel=SE, dimension=1, norm=norm, size=200)
    values = np.asarray(bandit.values)

    def least_norm(n):
        gram = np.asarray(cross(SE, bandit.candidates[:n], bandit.candidates[:n])) + 1e-12 * np.eye(n)
        return np.sqrt(values[:n] @ np.linalg.solve(gram, values[:n]))

    assert least_norm(200) == pytest.approx(norm, rel=1e-3)
    assert least_norm(3) <= norm * (1 + 1e-9)


def test_tabular_refuses_values_of_other_candidates():
    with pytest.raises(ValueError, match=r"values must be an array of real numbers of shape \(4,\)"):
        kernel.tabular(jnp.zeros((4, 2)), jnp.zeros(3), noise_scale=1.0)


def test_random_instances():
    for make in (kernel.branin, kernel.hartmann4, functools.partial(kernel.rkhs, kernel=SE, dimension=2)):
        compiled = jax.jit(functools.partial(make, size=30))
        bandit, other = compiled(KEY), compiled(jax.random.key(1))
        assert np.any(bandit.candidates != other.candidates)
        assert jnp.all((bandit.candidates >= 0) & (bandit.candidates < 1))
        assert bandit.best == jnp.max(bandit.values)
        assert bandit.noise_scale == 0.2
        single = made(make, size=30, dtype=jnp.float32, noise_scale=0.5)
        assert {leaf.dtype for leaf in single} == {jnp.dtype("float32")}
        assert single.noise_scale == 0.5
    bandit = made(kernel.branin)
    assert bandit.candidates.shape == (1000, 2)
    np.testing.assert_allclose(bandit.values, branin_at(bandit.candidates))


def test_kernels_of_the_paper():
    x, y = jnp.zeros(2), jnp.ones(2)
    assert kernel.paper_kernel("h1")(x, y) == pytest.approx(np.exp(-1))
    assert kernel.paper_kernel("branin")(x, y) == pytest.approx(np.exp(-25))


def test_environment():
    instance = kernel.tabular(jnp.zeros((3, 1)), jnp.asarray([1.0, 2.0, 4.0]), noise_scale=0.5)
    environment = kernel.environment(instance, jnp.full(2, 3))
    rewards = environment.respond((), jnp.asarray([2, 0], jnp.int32), jnp.asarray([1.0, -2.0]))[0]
    np.testing.assert_array_equal(rewards, [4.5, 0.0])
    idle = environment.respond((), jnp.full(2, 3, jnp.int32), jnp.zeros(2))[0]
    assert jnp.all(jnp.isfinite(idle))
    noise = jax.vmap(environment.noise)(jax.random.split(KEY, 5000))
    assert noise.shape == (5000, 2)
    assert abs(noise.mean()) < 0.05
    np.testing.assert_allclose(jnp.cov(noise.T), np.eye(2), atol=0.1)


def test_regret():
    instance = kernel.tabular(jnp.zeros((3, 1)), jnp.asarray([1.0, 2.0, 4.0]), noise_scale=0.5)
    assert kernel.regret(instance, jnp.int32(2)) == 0
    assert jax.jit(kernel.regret)(instance, jnp.int32(0)) == 3
    np.testing.assert_array_equal(kernel.regret(instance, jnp.asarray([1, 2])), [2, 0])
    with pytest.raises(ValueError, match="answer must lie in"):
        kernel.regret(instance, jnp.int32(3))
