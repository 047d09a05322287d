"""Compensated sums keep float32 sums exact through XLA's optimiser."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxbandits.numerics import compensated

TERMS = 10**6


@jax.jit
def _both(terms):
    def body(carry, x):
        s, plain = carry
        return (compensated.add(s, x), plain + x), None

    start = compensated.zeros((), terms.dtype), jnp.zeros((), terms.dtype)
    return lax.scan(body, start, terms)[0]


def test_a_million_terms_in_float32():
    terms = (0.8 + np.random.default_rng(0).normal(size=TERMS)).astype(np.float32)
    exact = terms.astype(np.float64).sum()
    s, plain = _both(jnp.array(terms))
    assert s.total.dtype == s.lost.dtype == jnp.float32
    assert np.float64(s.total) + np.float64(s.lost) == pytest.approx(exact, rel=1e-9)
    assert compensated.value(s) == pytest.approx(exact, rel=6e-8)  # half a spacing of float32
    assert abs(float(plain) / exact - 1) > 1e-5


@pytest.mark.parametrize("value", [1.3, -1.3, 0.1])
def test_equal_terms_in_float32_are_off_by_one_rounding(value):
    """The rounding errors of equal terms do not cancel, and outgrow a spacing of `lost`."""
    terms, x = 3_200_000, np.float32(value)

    @jax.jit
    def summed(x):
        def body(_, carry):
            s, total, lost = carry
            return compensated.add(s, x), *compensated.add_to(total, lost, x)

        start = compensated.zeros((), x.dtype), jnp.zeros((), x.dtype), compensated.no_loss((), x.dtype)
        return lax.fori_loop(0, terms, body, start)

    s, total, lost = summed(jnp.asarray(x))
    exact = terms * np.float64(x)
    assert np.float64(s.total) + np.float64(s.lost) == pytest.approx(exact, rel=1e-9)
    assert compensated.value(s) == total == np.float32(exact)
    assert abs(lost) <= np.spacing(np.abs(total)) / 2


def test_sums_in_float64_are_plain():
    total, lost = compensated.add_to(jnp.asarray(1.0), compensated.no_loss((), jnp.dtype("float64")), jnp.asarray(0.1))
    assert lost == ()
    assert total == 1.1


def test_terms_larger_than_the_sum():
    """Kahan's own correction loses the small terms here."""
    s = compensated.zeros((), jnp.float32)
    for x in (1.0, 1e20, 1.0, -1e20):
        s = jax.jit(compensated.add)(s, jnp.float32(x))
    assert compensated.value(s) == 2


def test_sums_of_products_and_of_lanes():
    """A product may be fused into the addition that follows it."""
    x = np.random.default_rng(1).normal(size=(20_000, 3)).astype(np.float32)

    @jax.jit
    @jax.vmap
    def squares(column):
        start = compensated.zeros((), column.dtype)
        return lax.fori_loop(0, column.size, lambda i, s: compensated.add(s, column[i] * column[i]), start)

    s = squares(jnp.array(x.T))
    assert s.total.shape == (3,)
    exact = (x.astype(np.float64) ** 2).sum(0)
    np.testing.assert_allclose(np.float64(s.total) + np.float64(s.lost), exact, rtol=3e-8)


def test_a_zero_term_changes_no_bit():
    s = compensated.Sum(jnp.array([0.1, -3e7, 0.0], jnp.float32), jnp.array([1e-9, 0.3, 0.0], jnp.float32))
    after = compensated.add(s, jnp.zeros(3, jnp.float32))
    for old, new in zip(s, after, strict=True):
        assert np.asarray(old).tobytes() == np.asarray(new).tobytes()
