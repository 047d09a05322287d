"""Calls of the library's rules with any inverse, which need not belong to a design."""

import functools

import jax.numpy as jnp

from jaxbandits import fullbandit


@functools.cache
def a_design(n, k):
    return fullbandit.make_design(fullbandit.random_support(0, n, k), k)


def verdict_of(rule, inverse, theta, t, *, k, **settings):
    """Returns a rule's verdict. Given a number as `inverse`, spectral takes it as the bound on the eigenvalues."""
    design, theta = a_design(theta.size, k), jnp.asarray(theta)
    if jnp.ndim(inverse) == 0:
        design = design._replace(spectral=jnp.asarray(inverse, float))
        inverse = design.inverse
    return rule(design, fullbandit.Estimate(theta, jnp.asarray(inverse), jnp.ones(())), t, **settings)
