"""Kernels as values: parameters in a struct, known or traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits
from jaxbandits import kernel

X, Y = np.array([0.1, 0.5]), np.array([0.4, 0.9])  # 0.5 apart
KERNELS = [kernel.SquaredExponential(0.3), *(kernel.Matern(0.3, nu=nu) for nu in (0.5, 1.5, 2.5))]


@pytest.mark.parametrize("rule", KERNELS)
def test_kernel_variance_scales_every_value(rule):
    for y in (X, Y):
        np.testing.assert_allclose(rule._replace(variance=4.0)(X, y), 4 * rule(X, y), rtol=1e-15)


@pytest.mark.parametrize("rule", KERNELS)
def test_kernel_is_a_pytree_of_its_parameters(rule):
    leaves, structure = jax.tree.flatten(rule)
    assert leaves == [0.3, 1.0]
    assert jax.tree.unflatten(structure, leaves) == rule
    assert hash(rule) == hash(rule._replace(variance=1.0))
    inside = jax.jit(lambda rule: rule(X, Y))(rule)
    np.testing.assert_allclose(inside, rule(X, Y), rtol=1e-15)


@pytest.mark.parametrize("make", [kernel.SquaredExponential, lambda scale: kernel.Matern(scale, nu=1.5)])
def test_sweep_over_lengthscales_equals_sweeps_with_known_ones(make):
    instance = kernel.branin(jax.random.key(1), size=20)

    def build(task, key, lengthscale=None):
        chosen = make(task["lengthscale"] if lengthscale is None else lengthscale)
        settings = {"kernel": chosen, "beta": 0.5, "noise_variance": 0.04, "horizon": 12}
        algorithm = kernel.gp_ucb(instance.candidates, **settings)
        return algorithm, kernel.environment(instance, algorithm)

    def sweep(lengthscale=None):
        def built(task, key):
            return build(task, key, lengthscale)

        tasks = jaxbandits.grid(lengthscale=[0.05, 0.4])
        columns = {"mean": lambda task, outcome: {"belief": outcome.state.posterior.mean}}
        return jaxbandits.sweep(
            built, tasks, seeds=5, key=jax.random.key(0), horizon=12, metrics=columns["mean"], progress=False
        ).columns

    traced = sweep()
    assert not np.array_equal(*(traced["belief"][traced["row"] == row] for row in (0, 1)))
    for row, lengthscale in enumerate((0.05, 0.4)):
        known, rows = sweep(lengthscale), traced["row"] == row
        np.testing.assert_array_equal(known["answer"][rows], traced["answer"][rows])
        np.testing.assert_allclose(known["belief"][rows], traced["belief"][rows], rtol=1e-9, atol=1e-12)


def test_kernel_class_without_parameters_is_refused_with_the_line_to_write():
    with pytest.raises(ValueError, match=r"got the class Matern\. Write Matern\(lengthscale=0\.2, nu=2\.5\)"):
        kernel.gp_ucb(jnp.zeros((2, 1)), kernel=kernel.Matern, horizon=3, beta=1.0, noise_variance=0.1)
