"""Errors for gradients of runs: a run has none."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.core
import jax.numpy as jnp

from jaxbandits.base import PyTree
from jaxbandits.engine.jaxprs import eval_context, eval_jaxpr, get_opaque_trace_state

T = TypeVar("T")
NO_GRADIENT = (
    "run has no gradient: actions and stops come from comparisons, so a small change of a parameter mostly changes "
    "nothing, and otherwise makes a run jump. Take differences between sweeps at several values of the parameter, "
    "under one key; jax.grad of functions of their results works"
)
ON_THE_HOST = (
    "sweep runs on the host, outside of jax.jit, jax.vmap and jax.grad, and has no gradient: give the values that vary "
    "as tasks; got a traced value"
)


def refusing_gradient(function: Callable[[], T]) -> T:
    """Calls a function without arguments; raises `ValueError` if the values that it closes over are differentiated.

    Otherwise forward mode would return meaningless derivatives, mostly zeros, and reverse mode an error about loops.
    """
    jaxpr, outputs = jax.make_jaxpr(function, return_shape=True)()
    leaves = eval_jaxpr(jaxpr.jaxpr, [_guarded(constant) for constant in jaxpr.consts])
    return jax.tree.unflatten(jax.tree.structure(outputs), leaves)


def refuse_traced(tree: PyTree) -> None:
    """Raises `ValueError` if a sweep is given, or closes over, a value that is being traced."""
    for leaf in jax.tree.leaves(tree):
        if isinstance(leaf, jax.core.Tracer):
            raise ValueError(f"{ON_THE_HOST} of shape {leaf.shape} and dtype {leaf.dtype}")


def is_under_a_transformation() -> bool:
    """True if this is called within `jax.jit`, `jax.vmap`, `jax.grad` or the like."""
    here = get_opaque_trace_state()
    with eval_context():
        return here != get_opaque_trace_state()


def _guarded(constant: Any) -> Any:
    is_traced = isinstance(constant, jax.core.Tracer) and jnp.issubdtype(constant.dtype, jnp.inexact)
    return _without_derivative(constant) if is_traced else constant


@jax.custom_jvp
def _without_derivative(x: Any) -> Any:
    return x


@_without_derivative.defjvp
def _refuse(primals: Any, tangents: Any) -> Any:
    raise ValueError(NO_GRADIENT)
