"""Functions in kernels of their own: the same values in every form, and a call in the compiled program of a CPU."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.numerics.kernels import added, apart

ROWS = np.random.default_rng(0).normal(size=(6, 4))


def double_the_positive(x):
    return 2 * jnp.where(x > 0, x, 0), jnp.sum(x)


def lane(x):
    doubled, total = apart(double_the_positive, x)
    return jnp.exp(doubled) + total


def test_values_and_derivatives_are_the_functions_own():
    expected = np.exp(2 * np.maximum(ROWS, 0)) + ROWS.sum(axis=1, keepdims=True)
    each = np.stack([lane(jnp.asarray(row)) for row in ROWS])
    for values in (each, jax.vmap(lane)(ROWS), jax.jit(jax.vmap(lane))(ROWS)):
        np.testing.assert_allclose(values, expected, rtol=1e-14)
    slopes = jax.jit(jax.grad(lambda x: lane(x)[0]))(ROWS[0])
    of_exp = 2 * (ROWS[0, 0] > 0) * np.exp(2 * ROWS[0, 0])
    np.testing.assert_allclose(slopes, 1 + of_exp * (np.arange(4) == 0), rtol=1e-14)


def test_only_a_cpu_computes_them_apart():
    traced = jax.jit(jax.vmap(lane)).trace(jax.ShapeDtypeStruct(ROWS.shape, float))
    on_cpu, on_gpu = (traced.lower(lowering_platforms=(platform,)) for platform in ("cpu", "cuda"))
    assert 'inlineable = "false"' in on_cpu.as_text()
    assert "inlineable" not in on_gpu.as_text()
    calls = [line for line in on_cpu.compile().as_text().splitlines() if " call(" in line]
    assert len(calls) == 1  # `jnp.where` is part of it


def test_added_is_the_sum():
    totals, numbers = np.array([0, 5, 2**31 - 2]), np.array([0, 3, 1], np.int32)
    assert jax.vmap(added)(totals, numbers).tolist() == [0, 8, 2**31 - 1]
    assert added(jnp.int64(2**40), jnp.int32(7)) == 2**40 + 7
