"""Instances of the linear bandit: K arms with features x_0..x_{K-1} in R^d, an unknown theta, and the noise."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear._arms import checked_arms, reduce_rank, span
from jaxbandits.numerics.linalg import dot


class Instance(NamedTuple):
    """One linear bandit, truth included."""

    arms: Array  # float (K, d)
    theta: Array  # float (d,)   the truth: never given to a factory
    noise_scale: Array  # float ()   standard deviation of Gaussian noise, in units of reward


def is_right(instance: Instance, answer: Array | int) -> Array:
    """Whether an answer is the best arm, or one of several that tie for the best.

    Args:
        instance: the truth.
        answer: int (), an arm.

    Returns:
        bool ().

    Raises:
        ValueError: the instance is not valid, or `answer` is no arm of it.
    """
    arms, theta, _ = checked_instance(instance)
    checks.integer("answer", answer, least=0, most=arms.shape[0] - 1)
    # Differences first: the means of two good arms agree in their leading digits.
    return jnp.all(dot(arms - arms[answer], theta) <= 0)


def reduce_instance(instance: Instance) -> Instance:
    """The same instance in an orthonormal basis of the arms' span, theta projected on it (see `reduce_rank`).

    Args:
        instance: its arms are concrete, because the rank is a shape.

    Returns:
        Instance with arms (K, r), theta (r,) and the same mean rewards.

    Raises:
        ValueError: the instance is not valid, or its arms are traced.
    """
    arms, theta, _ = checked_instance(instance)
    require(is_concrete(instance.arms), "instance.arms", "be concrete", instance.arms)
    basis = span(np.asarray(instance.arms), arms.dtype)
    if basis is None:
        return instance
    if is_concrete(instance.theta):
        reduced = checks.constant(np.asarray(instance.theta, np.float64) @ basis, theta.dtype)
    else:
        reduced = jnp.matmul(theta, jnp.asarray(basis, theta.dtype), precision="highest")
    return instance._replace(arms=reduce_rank(instance.arms), theta=reduced)


def checked_instance(instance: Instance) -> Instance:
    """The instance as arrays of one dtype, that of its arms; raises `ValueError` unless it is valid."""
    checks.instance("instance", instance, Instance)
    arms = checked_arms(instance.arms, name="instance.arms")
    theta = checks.array("instance.theta", instance.theta, (arms.shape[1],), dtype=arms.dtype)
    checks.positive("instance.noise_scale", instance.noise_scale)
    return Instance(arms, theta, jnp.asarray(instance.noise_scale, arms.dtype))
