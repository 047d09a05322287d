"""Entropic mirror ascent on the simplex (exponentiated gradients), as an Optax transformation."""

from collections.abc import Callable
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array


class Ascent(NamedTuple):
    """Result of an ascent."""

    average: Array  # float (n,)        mean of the weights over the last half of the steps
    log_weights: Array  # float (n,)    the last iterate


def mirror_ascent(step_size: optax.ScalarOrSchedule) -> optax.GradientTransformation:
    """Multiplies every weight by exp(step_size * gradient) and normalises.

    The parameters are the LOGARITHMS of the weights, so that a small weight can still grow again. The gradients of the
    objective, which is maximised, are taken with respect to the weights. After `optax.apply_updates` the weights of
    every leaf have the sum 1.

    Args:
        step_size: float (), or a schedule (count int32 ()) -> float () whose first count is 0.

    Returns:
        GradientTransformation for pytrees of log-weights (..., n), one simplex along each last axis. An entry of -inf
        with a finite gradient stays outside the support.

    **Guarantee**: with n weights, gradients in [-G, G], uniform weights at the start and the step size
    sqrt(2 log(n) / steps) / G, the mean of the iterates is within G sqrt(2 log(n) / steps) of the maximum of a concave
    objective.

    Raises:
        ValueError: `step_size` is neither positive nor a function.

    Source: Beck and Teboulle (2003), Mirror descent and nonlinear projected subgradient methods, section 5.
    """
    if not callable(step_size):
        checks.positive("step_size", step_size)
    schedule = step_size if callable(step_size) else optax.constant_schedule(step_size)

    def normalize(steps: optax.Updates, log_weights: optax.Params | None) -> optax.Updates:
        checks.require(log_weights is not None, "params", "be the log-weights", log_weights)
        return jax.tree.map(
            lambda step, w: step - jax.nn.logsumexp(w + step, axis=-1, keepdims=True), steps, log_weights
        )

    return optax.chain(optax.scale_by_schedule(schedule), optax.stateless(normalize))


def scale_by_largest() -> optax.GradientTransformation:
    """Divides every leaf of the gradients by its largest absolute entry along the last axis; zero stays zero."""

    def scale(gradient: Array) -> Array:
        largest = jnp.max(jnp.abs(gradient), axis=-1, keepdims=True)
        return gradient / jnp.where(largest > 0, largest, 1)

    return optax.stateless(lambda gradients, _: jax.tree.map(scale, gradients))


def ascend(
    supergradient: Callable[[Array], Array],
    log_weights: Array,
    transformation: optax.GradientTransformation,
    *,
    steps: int,
) -> Ascent:
    """Follows a transformation of log-weights for a fixed number of steps.

    Args:
        supergradient: (weights (n,)) -> (n,), a supergradient of the objective.
        log_weights: float (n,), the start; -inf outside the support.
        transformation: a transformation such as `mirror_ascent`.
        steps: Python int, at least 1.

    Returns:
        Ascent.

    Raises:
        ValueError: an argument is of the wrong kind, or `steps` is below 1.
    """
    checks.function("supergradient", supergradient, "the weights")
    log_weights = checks.array("log_weights", log_weights, ("n",), finite=False, below=float("inf"))
    checks.instance("transformation", transformation, optax.GradientTransformation)
    steps = checks.whole("steps", steps, least=1)

    def one_step(z: Array, carry: tuple[Array, optax.OptState, Array]) -> tuple[Array, optax.OptState, Array]:
        log_weights, state, total = carry
        updates, state = transformation.update(supergradient(jnp.exp(log_weights)), state, log_weights)
        log_weights = cast(Array, optax.apply_updates(log_weights, updates))
        return log_weights, state, total + jnp.where(z >= steps // 2, jnp.exp(log_weights), 0)

    start = log_weights, transformation.init(log_weights), jnp.zeros_like(log_weights)
    last, _, total = lax.fori_loop(0, steps, one_step, start)
    return Ascent(total / (steps - steps // 2), last)
