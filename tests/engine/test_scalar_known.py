"""Values known while tracing: NumPy computes them where it agrees with XLA, otherwise XLA does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxbandits.engine.jaxprs import Literal
from jaxbandits.engine.scalars.known import at_once

FLOATS = np.array([0.0, -0.0, 1.5, -2.25, 1e308, -np.inf, np.inf, np.nan, 3.0])
INTEGERS = np.array([0, 1, -1, 7, np.iinfo(np.int64).max, np.iinfo(np.int64).min, 5, -8, 3])
MASK = np.arange(9) % 2 == 0
EXACT = {
    "iota": lambda x, i, m: lax.iota(jnp.int32, 5),
    "sums": lambda x, i, m: (x + x[::-1]) * x - x / x[::-1],
    "integers": lambda x, i, m: jnp.maximum(i + i[::-1], -i) * jnp.abs(i) - jnp.minimum(i, 3),
    "comparisons": lambda x, i, m: (x <= 1.5) | (x != x) & ~(i > 2) ^ (i == 5) | (x > 0) & (x >= 3) & (i < 4),
    "selections": lambda x, i, m: jnp.where(m, x, lax.select(jnp.isfinite(x), jnp.sqrt(jnp.floor(x)), -x)),
    "conversions": lambda x, i, m: i.astype(float) + m.astype(float) + x.astype(jnp.float32).astype(float),
    "layout": lambda x, i, m: jnp.stack([x, x[::-1]])[:, 1:8:3].T.reshape(2, 3)[None] + jnp.zeros((4, 1, 1)),
}
ASKED = {
    "argmax": lambda x, i, m: jnp.argmax(jnp.tile(i, 41)),  # a length that no other test has
    "to integers": lambda x, i, m: x.astype(jnp.int32),
    "products": lambda x, i, m: jnp.log1p(jnp.abs(x)) @ jnp.outer(i, i).astype(float),
}


def by_hand(f, arguments):
    """Computes an output equation by equation."""
    closed = jax.make_jaxpr(f)(*arguments)
    env = dict(zip(closed.jaxpr.invars, arguments, strict=True)) | dict(
        zip(closed.jaxpr.constvars, map(np.asarray, closed.consts), strict=True)
    )
    for equation in closed.jaxpr.eqns:
        given = [v.val if isinstance(v, Literal) else env[v] for v in equation.invars]
        env |= dict(zip(equation.outvars, at_once(equation, given), strict=True))
    return env[closed.jaxpr.outvars[0]]


@pytest.mark.parametrize("name", [*EXACT, *ASKED])
def test_known_values_are_those_that_a_program_computes(name):
    f = (EXACT | ASKED)[name]
    with jax.disable_jit(name in EXACT):  # so that no equation is a call
        outputs = []
        jax.make_jaxpr(lambda x: outputs.append(by_hand(f, (FLOATS, INTEGERS, MASK))) or x)(0.0)  # while tracing
    expected = np.asarray(jax.jit(f)(FLOATS, INTEGERS, MASK))
    assert isinstance(outputs[0], np.ndarray)
    assert outputs[0].dtype == expected.dtype
    np.testing.assert_array_equal(outputs[0], expected)
