"""Computations without what nothing reads: the same values, of fewer equations."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

from jaxbandits.engine.jaxprs import eval_jaxpr, primitives_of, without_dead_code


@jax.jit
def shifted(x):
    jnp.tan(x)
    return x + 1


def lane(x):
    """Computes a number in loops, branches and calls, each with an equation (a sine, say) that nothing reads."""

    def turn(i, carry):
        total, _ = carry
        jnp.sin(total)
        return jax.lax.cond(total > 3, lambda y: (y, jnp.cos(y)), lambda y: (shifted(y), y), total)

    jnp.arctan(x)
    total, _ = jax.lax.fori_loop(0, x.astype(int), turn, (x, x))  # a `while`
    total, _ = jax.lax.fori_loop(0, 2, turn, (total, x))  # a `scan`
    return total + shifted(jnp.sinh(x))


def test_values_are_the_same_without_dead_code():
    traced = jax.make_jaxpr(lane)(2.0)
    pruned = without_dead_code(traced)
    dropped = primitives_of(traced) - primitives_of(pruned)
    assert dropped == {"sin", "tan", "atan"}
    for x in (0.0, 2.0, 5.0):
        for one in (eval_jaxpr, jax.jit(eval_jaxpr, static_argnums=0)):
            np.testing.assert_array_equal(one(pruned.jaxpr, pruned.consts, x), [lane(jnp.asarray(x))])


def test_function_that_is_called_twice_stays_one():
    calls = without_dead_code(jax.make_jaxpr(lambda x: shifted(shifted(x)))(1.0)).eqns
    assert len({id(call.params["jaxpr"]) for call in calls}) == 1
    assert len(calls) == 2


def test_checks_stay():
    def checked(x):
        checkify.check(x > 0, "{x} must be positive", x=jnp.exp(x))
        return x

    pruned = without_dead_code(jax.make_jaxpr(checked)(1.0))
    assert {"check", "exp"} <= primitives_of(pruned)
    error, _ = checkify.checkify(lambda x: eval_jaxpr(pruned.jaxpr, pruned.consts, x))(-1.0)
    assert "must be positive" in error.get()
