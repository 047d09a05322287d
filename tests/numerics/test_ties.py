"""Lots: every order with the same probability, at any time, independently of other times."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxbandits.numerics import ties


def test_lots_have_every_pair_of_orders_at_two_times_with_the_same_probability():
    """Three entries at two times, 36 pairs of orders; false alarm 1e-5 each."""
    words = jax.vmap(lambda key: ties.draw_words(key, 3))(jax.random.split(jax.random.key(0), 36_000))
    orders = {order: i for i, order in enumerate(itertools.permutations(range(3)))}
    program = jax.jit(jax.vmap(ties.lots, (0, None)))

    def orders_at(time):
        lots = np.asarray(program(words, time))
        assert (lots & 3 == np.arange(3)).all()
        return np.array([orders[tuple(row)] for row in np.argsort(lots, axis=1).tolist()])

    before = orders_at(0)
    for time in (1, 2, 24, 119, 2000, 10**6):
        now = orders_at(time)
        pairs = np.bincount(6 * before + now, minlength=36)
        assert stats.chisquare(pairs).pvalue > 1e-5, time
        before = now


def test_argmax_and_argmin_by_hand():
    lots = jnp.array([8 * 5 + 0, 8 * -3 + 1, 8 * 7 + 2, 8 * 6 + 3, 8 * -9 + 4], jnp.int32)
    assert ties.argmax(jnp.array([1.0, 2.0, 0.0, 2.0, 2.0]), lots) == 3
    assert ties.argmin(jnp.array([1.0, 2.0, 3.0, 2.0, 1.0]), lots) == 0
    assert ties.argmax(jnp.array([0, 4, 0, 0, 4]), lots) == 1
    assert ties.argmax(jnp.array([1.0, jnp.nan, 0.0, 2.0, 2.0]), lots) == 0
    assert ties.argmax(jnp.zeros(5, bool), lots) == 2


def test_lots_of_one_entry_and_of_many():
    assert ties.lots(ties.draw_words(jax.random.key(1), 1), jnp.int32(3)) & 0 == 0
    lots = np.asarray(ties.lots(ties.draw_words(jax.random.key(1), 70_000), jnp.int32(3)))
    assert len(np.unique(lots)) == 70_000
    assert lots.dtype == np.int32
