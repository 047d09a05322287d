"""Calls the rules of the library with any inverse, which need not be that of a design."""

import functools

import jax.numpy as jnp

from jaxbandits import fullbandit


@functools.cache
def a_design(n, k):
    return fullbandit.make_design(fullbandit.random_support(0, n, k), k)


def verdict_of(rule, inverse, theta, t, *, k, **settings):
    """What a rule finds. Of a number in place of the matrix, spectral reads that it bounds the eigenvalues."""
    design, theta = a_design(theta.size, k), jnp.asarray(theta)
    if jnp.ndim(inverse) == 0:
        design = design._replace(spectral=jnp.asarray(inverse, float))
        inverse = design.inverse
    return rule(design, fullbandit.Estimate(theta, jnp.asarray(inverse), jnp.ones(())), t, **settings)
