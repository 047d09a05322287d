"""The settings that the family's algorithms share, and coins."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from jaxbandits import kernel
from jaxbandits.kernel._problem.settings import checked, picked, round_coins

KEY = jax.random.key(0)
SE = kernel.SquaredExponential(0.2)
COINS = kernel.Coins(jnp.zeros((2, 3)), jnp.zeros((2, 3)), jnp.zeros((3, 2, 3)))
GOOD = kernel.Settings(jnp.zeros((4, 2)), SE, n_agents=2, horizon=3, beta=1.0, noise_variance=0.1)


def check(beta_per_round=True, **change):
    return checked(GOOD._replace(**change), beta_per_round=beta_per_round)


def test_coins():
    active = jnp.asarray([3, 7, 9])
    np.testing.assert_array_equal(active[picked(jnp.asarray([0.0, 0.5, 0.999999]), 3)], [3, 7, 9])
    assert picked(jnp.float32(1 - 2**-24), 10**6) == 10**6 - 1  # rounds up to the size
    for size in (3, 7, 1000):
        drawn = picked(jax.random.uniform(KEY, (200 * size,)), size)
        assert chisquare(np.bincount(drawn, minlength=size)).pvalue > 1e-6


def test_round_coins():
    settings = GOOD._replace(coins=COINS._replace(queries=jnp.asarray([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])))
    np.testing.assert_array_equal(round_coins(settings, KEY, jnp.int32(1)), [0.2, 0.5])
    settings = GOOD._replace(candidates=jnp.zeros((4, 2), jnp.float32), n_agents=5)
    coins = round_coins(settings, KEY, jnp.int32(1))
    assert (coins.shape, coins.dtype) == ((5,), jnp.float32)
    assert len(set(coins.tolist())) == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta": jnp.ones(2)}, "beta must be an array of real numbers of shape (3,), got [1. 1.]"),
        ({"beta": [0.1]}, "beta must be an array of real numbers of shape (3,), got [0.1]"),
        ({"beta": jnp.ones(3), "beta_per_round": False}, "beta must be at least 0, got [1. 1. 1.]"),
        ({"gram": np.eye(3)}, "gram must be an array of real numbers of shape (4, 4), got"),
        (
            {"coins": COINS._replace(queries=jnp.zeros((3, 2)))},
            "coins.queries must be an array of real numbers of shape",
        ),
        ({"coins": COINS._replace(inducing=jnp.ones((3, 2, 3)))}, "coins.inducing must lie in [0, 1), got"),
        ({"coins": COINS._replace(thinning=COINS.thinning - 1)}, "coins.thinning must lie in [0, 1), got"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        check(**change)
    assert message in str(caught.value)


def test_settings_take_the_dtype_of_the_candidates():
    settings = check(candidates=jnp.zeros((4, 2), jnp.float32), coins=COINS, gram=np.eye(4), beta=[1, 2, 3])
    leaves = jax.tree.leaves(settings._replace(kernel=None, n_agents=None, horizon=None))
    assert {leaf.dtype for leaf in leaves} == {jnp.dtype("float32")}
    assert check(candidates=np.zeros((4, 2), int)).candidates.dtype == jnp.float64


def test_shapes_are_checked_under_a_trace():
    @jax.jit
    def traced(beta, noise_variance):
        check(beta=beta, noise_variance=noise_variance)

    traced(jnp.asarray(-1.0), jnp.asarray(-1.0))  # values are not known
    with pytest.raises(ValueError, match=r"beta must be an array of real numbers of shape \(3,\)"):
        traced(jnp.ones(2), jnp.asarray(1.0))


@pytest.mark.parametrize("gram", [None, np.eye(4)])
def test_noise_variance_below_rounding_is_refused(gram):
    candidates = jnp.zeros((4, 2), jnp.float32)
    with pytest.raises(ValueError, match="noise_variance must be at least 0.00012, .* prior variance in float32"):
        check(candidates=candidates, noise_variance=1e-4, gram=gram)
    with pytest.raises(ValueError, match="noise_variance must be at least 2.2e-13, .* prior variance in float64"):
        check(noise_variance=1e-13, gram=gram)
    with pytest.raises(ValueError, match="noise_variance must be at least 0.00012, "):
        kernel.greedy_information_gain(candidates, SE, 1e-4, 2)
    check(candidates=candidates, noise_variance=2e-4, gram=gram)
    check(noise_variance=1e-4, gram=gram)
