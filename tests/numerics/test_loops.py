"""Loops with one trip count for all lanes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.numerics.loops import blocks_below, common, for_blocks, padded


def test_padded():
    assert [padded(n, 16) for n in (0, 1, 15, 16, 17, 32)] == [0, 16, 16, 16, 32, 32]


def test_common_is_the_largest_of_all_lanes():
    assert jax.jit(common)(jnp.int32(3)) == 3
    np.testing.assert_array_equal(jax.vmap(common)(jnp.asarray([3, 7, 1])), [7, 7, 7])
    nested = jax.jit(jax.vmap(jax.vmap(common)))(jnp.asarray([[3, 7], [9, 1]]))
    np.testing.assert_array_equal(nested, np.full((2, 2), 9))
    unbatched = jax.vmap(lambda x, n: x + common(n), in_axes=(0, None))(jnp.asarray([1, 2]), jnp.asarray(5))
    np.testing.assert_array_equal(unbatched, [6, 7])


@pytest.mark.parametrize(("live", "blocks"), [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2)])
def test_blocks_below(live, blocks):
    assert blocks_below(jnp.asarray(live), 4) == blocks


def total(values, live):
    """Returns the sum of the first `live` entries, in blocks of 4, and the number of turns."""
    is_live = jnp.arange(values.size) < live

    def body(first, carry):
        block = jax.lax.dynamic_slice_in_dim(jnp.where(is_live, values, 0), first, 4)
        return carry[0] + jnp.sum(block), carry[1] + 1

    return for_blocks(live, 4, body, (jnp.zeros(()), jnp.zeros((), int)))


def test_for_blocks():
    values, live = jnp.arange(12.0), jnp.asarray([0, 3, 4, 9])
    for n in live:
        result, turns = jax.jit(total)(values, n)
        assert float(result) == np.arange(n).sum()
        assert turns == -(-int(n) // 4)
    result, turns = jax.jit(jax.vmap(total, in_axes=(None, 0)))(values, live)
    np.testing.assert_array_equal(result, [np.arange(n).sum() for n in live])
    np.testing.assert_array_equal(turns, [3, 3, 3, 3])


def test_lanes_share_a_loop():
    # If the condition of a loop has a lane axis, its body selects between the old and the new carry of every lane.
    def apart(live):
        return jax.lax.fori_loop(0, live, lambda i, x: x + i, 0)

    def axes_of_condition(function):
        equations = jax.make_jaxpr(jax.vmap(function))(jnp.asarray([0, 9])).eqns
        (loop,) = [equation for equation in equations if equation.primitive.name == "while"]
        return loop.params["cond_jaxpr"].out_avals[0].shape

    assert axes_of_condition(apart) == (2,)
    assert axes_of_condition(lambda live: total(jnp.arange(12.0), live)) == ()
