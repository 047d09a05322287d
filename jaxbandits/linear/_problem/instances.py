"""Instances of the linear bandit: K arms with features x_0..x_{K-1} in R^d, an unknown theta, and the noise."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear._problem.arms import checked_arms, reduce_rank, span
from jaxbandits.linear._problem.questions.asked import Question, asked, kind_of
from jaxbandits.numerics.linalg import dot
from jaxbandits.questions import Above, checked_set


class Instance(NamedTuple):
    """One linear bandit, truth included."""

    arms: Array  # float (K, d)
    theta: Array  # float (d,)   the truth; no factory reads it
    noise_scale: Array  # float ()   standard deviation of Gaussian noise, in units of reward
    items: Array | None = None  # float (M, d)   features of the compared items, which answers index; if None, the arms


def is_right(
    instance: Instance, answer: Array | int, epsilon: Array | float = 0.0, *, question: Question | None = None
) -> Array:
    """Checks whether an answer is the best item, or one of several that tie for the best; or an answer to a question.

    Args:
        instance: the truth.
        answer: int (), an item, or an arm if the instance has no items; for `TopM` and `Above` a set, bool (M,).
        epsilon: () >= 0, in units of reward. For the best item, the allowed suboptimality. For `Above`, items less than
            this above the level, or at most this below it, may be in the answer or not. Otherwise 0.
        question: the question. If None, the best item.

    Returns:
        bool ().

    Raises:
        ValueError: the instance is not valid, `answer` is no answer to the question, or `epsilon` is negative.
    """
    arms, theta, _, items = checked_instance(instance)
    items = arms if items is None else items
    band = 0.0
    if isinstance(question, Above):
        band, epsilon = checks.not_negative("epsilon", epsilon), 0.0
    about, epsilon = asked(question, items.shape[0], epsilon)
    if about is not None:
        answer = checked_set(answer, items.shape[0])
        return kind_of(about).is_right(about, items, theta, answer, jnp.asarray(band, arms.dtype))
    checks.integer("answer", answer, least=0, most=items.shape[0] - 1)
    checks.not_negative("epsilon", epsilon)
    # Differences first: the means of two good items agree in their leading digits.
    return jnp.all(dot(items - items[answer][None], theta) <= jnp.asarray(epsilon, arms.dtype))


def reduce_instance(instance: Instance) -> Instance:
    """Rewrites an instance in an orthonormal basis of the arms' span, with theta projected on it (see `reduce_rank`).

    Args:
        instance: the instance; its arms must be concrete, because the rank is a shape.

    Returns:
        Instance with arms (K, r), theta (r,), items (M, r) if it has any, and the same mean rewards.

    Raises:
        ValueError: the instance is not valid, its arms are traced, or an item lies outside their span.
    """
    arms, theta, _, items = checked_instance(instance)
    require(is_concrete(instance.arms), "instance.arms", "be concrete", instance.arms)
    basis = span(np.asarray(instance.arms), arms.dtype)
    if basis is None:
        return instance
    if is_concrete(instance.theta):
        reduced = checks.constant(np.asarray(instance.theta, np.float64) @ basis, theta.dtype)
    else:
        reduced = jnp.matmul(theta, jnp.asarray(basis, theta.dtype), precision="highest")
    if items is not None:
        require(is_concrete(instance.items), "instance.items", "be concrete", instance.items)
        compared = np.asarray(instance.items, np.float64)
        distance = np.abs(compared - compared @ basis @ basis.T).max()
        within = distance <= 1e-6 * np.abs(compared).max()
        require(within, "instance.items", "lie in the span of the arms", instance.items)
        items = checks.constant(compared @ basis, items.dtype)
    return instance._replace(arms=reduce_rank(instance.arms), theta=reduced, items=items)


def checked_instance(instance: Instance) -> Instance:
    """Returns the instance as arrays of the dtype of its arms; raises `ValueError` unless it is valid."""
    lines: Any = [((jax.Array, np.ndarray), "Write instance instead of instance.arms")]
    checks.instance("instance", instance, Instance, lines=lines)
    arms = checked_arms(instance.arms, name="instance.arms")
    theta = checks.array("instance.theta", instance.theta, (arms.shape[1],), dtype=arms.dtype)
    checks.positive("instance.noise_scale", instance.noise_scale)
    items = instance.items
    if items is not None:
        items = checked_arms(items, name="instance.items").astype(arms.dtype)
        require(items.shape[1] == arms.shape[1], "instance.items", "have as many columns as the arms", items.shape)
    return Instance(arms, theta, jnp.asarray(instance.noise_scale, arms.dtype), items)
