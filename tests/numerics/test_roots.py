"""Roots in brackets, small linear systems, and the largest smallest value of several functions."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.numerics.linalg import spd_solved
from jaxbandits.numerics.maximin import maximin
from jaxbandits.numerics.roots import bracketed_root


def test_roots_and_their_derivatives_by_hand():
    def root(c):
        # At 0 the slope is 0, so that the first step must halve the bracket.
        return bracketed_root(lambda x: x**3 - c, jnp.zeros(3), jnp.full(3, 4.0), jnp.zeros(3), steps=40)

    c = jnp.array([1e-3, 1.0, 27.0])
    roots, slopes = jax.jit(lambda c: jax.jvp(root, (c,), (jnp.ones(3),)))(c)
    np.testing.assert_allclose(roots, [0.1, 1.0, 3.0], rtol=1e-12)
    np.testing.assert_allclose(slopes, 1 / (3 * np.array([0.1, 1.0, 3.0]) ** 2), rtol=1e-10)


def test_solutions_equal_those_of_lapack():
    rng = np.random.default_rng(0)
    factors, right = rng.normal(size=(50, 6, 6)), rng.normal(size=(50, 6, 2))
    factors *= 10.0 ** rng.uniform(-4, 4, (50, 6, 1))
    matrices = factors @ factors.swapaxes(1, 2)
    solutions = jax.jit(jax.vmap(spd_solved))(matrices, right)
    np.testing.assert_allclose(solutions, np.linalg.solve(matrices, right), rtol=1e-6)


def test_maximin_of_linear_functions_is_the_value_of_the_game():
    game = jnp.array([[0.0, 2.0, 1.0], [1.0, 0.5, 2.0], [3.0, 1.0, 0.2], [9.0, 9.0, 9.0], [-1.0, -1.0, -1.0]])
    mask = jnp.array([True, True, True, True, False])
    solution = jax.jit(lambda: maximin(lambda w: jnp.zeros(5), lambda x: game, mask, jnp.full(3, 1 / 3)))()
    np.testing.assert_allclose(solution.lower, solution.upper, rtol=1e-10)
    np.testing.assert_allclose(solution.weights @ game[:3].T, np.full(3, solution.lower), rtol=1e-6)
    np.testing.assert_allclose(solution.shares[3:], 0, atol=1e-9)
