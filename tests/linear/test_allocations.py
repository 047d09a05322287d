"""Value of an allocation, against the certified value of the solver and the definition."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import linear


def test_xy_value_is_smallest_for_the_xy_allocation():
    arms = linear.soare(3, 0.3).arms
    design = linear.xy_allocation(arms)
    value = linear.xy_value(arms, design.allocation)
    np.testing.assert_allclose(value, design.value, rtol=1e-9)
    shares = jnp.full(arms.shape[0], 1 / arms.shape[0])
    assert linear.xy_value(arms, shares) > value
    inverse = np.linalg.inv(np.asarray(arms).T @ np.diag(shares) @ np.asarray(arms))
    pairs = np.asarray(linear.pair_directions(arms))
    np.testing.assert_allclose(linear.xy_value(arms, shares), max(y @ inverse @ y for y in pairs), rtol=1e-12)
    np.testing.assert_allclose(
        linear.xy_value(arms, shares, directions=pairs[:1]), pairs[0] @ inverse @ pairs[0], rtol=1e-12
    )


def test_xy_value_refuses_an_allocation_without_full_rank():
    with pytest.raises(ValueError, match="allocation must pull arms of rank 2, got 1"):
        linear.xy_value(jnp.eye(2), jnp.array([1.0, 0.0]))
