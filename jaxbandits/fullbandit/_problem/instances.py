"""Instances of top-k identification from sums, and the value of an answer.

n arms have unknown means theta. A super-arm is a set of exactly k of them. A pull of it pays the sum of one reward of
each, and only this sum is observed. The goal is the super-arm with the largest mean.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array, static_fields
from jaxbandits.checks import is_concrete
from jaxbandits.fullbandit._problem.design import check_size

TOLERANCE = 1e-9  # largest difference between values of super-arms that count as equal


@static_fields("k")
class Instance(NamedTuple):
    """Truth, which no factory receives. Instances of one shape may be stacked."""

    theta: Array  # float (n,)   means of the arms
    k: int  # arms in a super-arm; static
    noise_scale: Array | float = 1.0  # float ()   standard deviation of an arm's Gaussian noise, in units of reward
    correct: Array | None = None  # bool (Q, n)   answers to be replayed, from `from_answers`; otherwise None


# The value of an answer


def loss(instance: Instance, answer: Array) -> Array:
    """Computes the difference between the values of the best super-arm and of the answer.

    If arms tie there are several best super-arms, so an answer is judged by its value, never by its members.

    Args:
        instance: the truth.
        answer: bool (n,), k of them true.

    Returns:
        theta(M*) - theta(answer), float ().

    Raises:
        ValueError: the instance is not valid, or the answer is no set of its arms.
    """
    theta = check_instance(instance)
    answer = checks.array("answer", answer, theta.shape, kind="bool")
    return _loss(theta, answer, instance.k)


@partial(jax.jit, static_argnums=2, inline=True)
def _loss(theta: Array, answer: Array, k: int) -> Array:
    return jnp.sort(theta, descending=True)[:k].sum() - jnp.where(answer, theta, 0).sum()


def is_right(instance: Instance, answer: Array, epsilon: Array | float = 0.0) -> Array:
    """True if the answer is a super-arm with the value of the best one, up to epsilon.

    Args:
        instance: the truth. Whole numbers as means, such as `crowdsourcing_counts`, are compared exactly.
        answer: bool (n,).
        epsilon: () >= 0, allowed loss, in units of theta.

    Returns:
        bool (). Means are compared up to 1e-9, in 32 bit up to the rounding of k terms. A set of another size than k
        is never right.

    Raises:
        ValueError: as `loss`, or `epsilon` is negative.
    """
    checks.not_negative("epsilon", epsilon)
    lost = loss(instance, answer)
    tolerance = max(TOLERANCE, 2 * instance.k * float(jnp.finfo(lost.dtype).eps))
    return (jnp.sum(jnp.asarray(answer)) == instance.k) & (lost <= jnp.asarray(epsilon, lost.dtype) + tolerance)


def check_instance(instance: Instance) -> Array:
    """Returns the means; raises `ValueError` unless the instance is valid."""
    checks.instance("instance", instance, Instance)
    theta = checks.array("instance.theta", instance.theta, ("n",))
    checks.whole("instance.k", instance.k, least=2, most=theta.size - 1)
    checks.not_negative("instance.noise_scale", instance.noise_scale)
    return theta


# Instances


def synthetic(seed: int, n: int, k: int, gap: Array | float, *, shuffle: bool = False, dtype: Any = None) -> Instance:
    """Draws random means whose k-th and (k+1)-th largest differ by `gap`.

    The k best means are uniform on [0, 1], the next one lies `gap` below the smallest of them, and all others are
    uniform between -1 and that one.

    Args:
        seed: seed of `numpy.random.default_rng`, at least 0.
        n: number of arms.
        k: arms in a super-arm, in 2..n-1.
        gap: () in [0, 1]; may be traced.
        shuffle: whether the arms are put in a random order. Otherwise the first k are the best, and a rule that breaks
            ties by the index has an advantage.
        dtype: dtype of theta. If None, JAX's default float.

    Returns:
        Instance.

    Raises:
        ValueError: an argument is out of range.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama (2020), section 5.1.
    """
    checks.whole("seed", seed, least=0)
    check_size(n, k)
    checks.real("gap", gap, least=0, most=1)
    checks.flag("shuffle", shuffle)
    dtype = checks.float_dtype("dtype", dtype)
    rng = np.random.default_rng(seed)
    best = rng.uniform(0, 1, k)
    xp, gap = (np, gap) if is_concrete(gap) else (jnp, jnp.asarray(gap, float))
    next_best = best.min() - gap
    others = (next_best + 1) * rng.random(n - k - 1) - 1
    theta = xp.concatenate([best, xp.stack([next_best]), others])
    return instance_of(theta[rng.permutation(n)] if shuffle else theta, k, dtype)


def instance_of(theta: Any, k: int, dtype: Any) -> Instance:
    """Builds an instance from means, with noise of scale 1; concrete means stay concrete under a trace."""
    return Instance(checks.constant(theta, dtype), k, checks.constant(1, dtype))
