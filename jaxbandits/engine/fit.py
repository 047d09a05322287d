"""Whether an algorithm and an environment belong together, and whether two states are the same."""

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Environment, PyTree


def require_pair(algorithm: Algorithm) -> None:
    """Raises `ValueError` unless `plan` and `stale` come together or not at all."""
    for present, absent in (("plan", "stale"), ("stale", "plan")):
        if getattr(algorithm, present) is not None and getattr(algorithm, absent) is None:
            raise ValueError(f"algorithm must have both plan and stale, or neither, got {present} without {absent}")


def require_fit(algorithm: Algorithm, environment: Environment) -> None:
    """Raises `ValueError` unless the two belong together.

    The environment must take the algorithm's actions; the algorithm must take its observations, and keep the structure,
    shapes and types of its state. Nothing is computed: only shapes are compared.
    """
    require_pair(algorithm)
    key = jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32"))
    state = jax.eval_shape(algorithm.init, key)
    noise = jax.eval_shape(environment.noise, key)
    if not hasattr(state, "pulls"):
        raise ValueError(f"algorithm must have states with a field pulls, got {type(state).__name__}")
    given = f"the algorithm's idle action is {_described(algorithm.idle)}"
    try:
        observation = jax.eval_shape(environment.respond, algorithm.idle, noise)
    except Exception as error:
        raise ValueError(
            f"environment does not answer this algorithm: {given}, and respond(idle, noise) raised "
            f"{type(error).__name__}: {_first_line(error)}. Make the environment for this kind of action, and of the "
            "same sizes"
        ) from error
    try:
        after = jax.eval_shape(algorithm.observe, state, algorithm.idle, observation)
    except Exception as error:
        raise ValueError(
            f"algorithm does not take this environment's observations: {given}, the environment answers it by "
            f"{_described(observation)}, and observe(state, idle, observation) raised {type(error).__name__}: "
            f"{_first_line(error)}. Make the environment for this kind of action, and of the same sizes"
        ) from error
    if _described(after) != _described(state):
        raise ValueError(
            f"algorithm does not keep its state with this environment: {given}, the environment answers it by "
            f"{_described(observation)}, and observe(state, idle, observation) makes {_described(after)} of "
            f"{_described(state)}"
        )


def same_bits(a: Array, b: Array) -> Array:
    """Whether two arrays of one shape and dtype are the same, bit for bit: bool ()."""
    if jnp.issubdtype(a.dtype, jnp.complexfloating):
        return same_bits(a.real, b.real) & same_bits(a.imag, b.imag)
    if jnp.issubdtype(a.dtype, jnp.floating):
        unsigned = jnp.dtype(f"uint{8 * a.dtype.itemsize}")
        a, b = (lax.bitcast_convert_type(x, unsigned) for x in (a, b))
    return jnp.all(a == b)


def _described(tree: PyTree) -> str:
    """A pytree with the types and shapes of its arrays in place of the arrays."""
    shown = jax.tree.map(lambda leaf: _Shown(f"{jnp.result_type(leaf)}{list(jnp.shape(leaf))}"), tree)
    return str(shown)


class _Shown(str):
    """A string that is shown without quotes."""

    __repr__ = str.__str__


def _first_line(error: Exception) -> str:
    """The message of an error without the details that JAX appends."""
    return str(error).partition("\n")[0]
