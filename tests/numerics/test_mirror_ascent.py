"""Mirror ascent against closed forms and games with known solutions."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxbandits.numerics.mirror_ascent import ascend, mirror_ascent, scale_by_largest


def test_one_step_by_hand():
    """Weights 1/2, 1/4, 1/4 times 4, 2, 1 are 2, 1/2, 1/4, of sum 11/4."""
    transformation = mirror_ascent(0.5)
    log_weights = jnp.log(jnp.array([0.5, 0.25, 0.25]))
    gradient = 2 * jnp.log(jnp.array([4.0, 2.0, 1.0]))
    updates, _ = transformation.update(gradient, transformation.init(log_weights), log_weights)
    weights = jnp.exp(optax.apply_updates(log_weights, updates))
    np.testing.assert_allclose(weights, np.array([8, 2, 1]) / 11, rtol=1e-14)


def test_a_linear_objective_has_a_closed_form():
    """After steps eta_z along one gradient the weights are softmax(gradient * sum of eta_z)."""
    gradient = jnp.array([0.3, -0.2, 1.0, 0.0])
    transformation = mirror_ascent(lambda count: 1 / (1 + jnp.asarray(count, float)))
    last = ascend(lambda _: gradient, jnp.full(4, -jnp.log(4.0)), transformation, steps=6).log_weights
    np.testing.assert_allclose(jnp.exp(last), jax.nn.softmax(2.45 * gradient), rtol=1e-13)


def test_average_is_taken_over_the_last_half():
    gradient = jnp.array([1.0, 0.0])
    ascent = ascend(lambda _: gradient, jnp.full(2, -jnp.log(2.0)), mirror_ascent(1.0), steps=5)
    iterates = [jax.nn.softmax(z * gradient) for z in (3.0, 4.0, 5.0)]  # after steps 2, 3 and 4, counted from 0
    np.testing.assert_allclose(ascent.average, np.mean(iterates, 0), rtol=1e-14)


def test_solves_a_matrix_game():
    """Rock, paper, scissors, where the win of rock over scissors counts 2: optimal play is 1/4, 1/2, 1/4."""
    payoff = jnp.array([[0.0, -1.0, 2.0], [1.0, 0.0, -1.0], [-2.0, 1.0, 0.0]])  # row player's, both mix the same
    steps = 4000

    def supergradient(weights):
        return payoff[:, jnp.argmin(weights @ payoff)]

    step_size = np.sqrt(2 * np.log(3) / steps) / 2
    average = ascend(supergradient, jnp.full(3, -jnp.log(3.0)), mirror_ascent(step_size), steps=steps).average
    np.testing.assert_allclose(average, [0.25, 0.5, 0.25], atol=0.02)
    assert np.min(average @ payoff) > -2 * np.sqrt(2 * np.log(3) / (steps / 2)) * 2


def test_a_small_weight_grows_again():
    """The additive form w + (new - w) would have lost it forever."""
    log_weights, transformation = jnp.array([0.0, -800.0]), mirror_ascent(1.0)
    ascent = ascend(lambda _: jnp.array([0.0, 1.0]), log_weights, transformation, steps=900)
    assert jnp.exp(ascent.log_weights[1]) == pytest.approx(1, rel=1e-12)


def test_outside_the_support_nothing_grows():
    log_weights = jnp.array([-jnp.log(2.0), -jnp.inf, -jnp.log(2.0)])
    ascent = ascend(lambda _: jnp.array([0.0, 5.0, 1.0]), log_weights, mirror_ascent(0.1), steps=7)
    assert ascent.average[1] == 0
    assert ascent.average.sum() == pytest.approx(1, rel=1e-14)
    assert np.all(np.isfinite(ascent.average))


def test_mirror_ascent_keeps_the_contract_of_optax():
    """Any pytree of any float type, one simplex along every last axis, usable in a chain under jit."""
    params = {"one": jnp.full((2, 3), -jnp.log(3.0)), "two": jnp.full(4, -np.log(4), jnp.float32)}
    gradients = {"one": jnp.arange(6.0).reshape(2, 3), "two": jnp.arange(4, dtype=jnp.float32)}
    transformation = optax.chain(scale_by_largest(), mirror_ascent(optax.constant_schedule(0.3)))
    state = transformation.init(params)
    updates, new_state = jax.jit(transformation.update)(gradients, state, params)
    assert isinstance(transformation, optax.GradientTransformation)
    assert jax.tree.structure(new_state) == jax.tree.structure(state)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), updates) == jax.tree.map(lambda x: (x.shape, x.dtype), params)
    moved = optax.apply_updates(params, updates)
    np.testing.assert_allclose(jnp.exp(moved["one"]).sum(-1), 1, rtol=1e-14)
    np.testing.assert_allclose(moved["one"][1], jax.nn.log_softmax(0.3 * jnp.array([3.0, 4.0, 5.0]) / 5), rtol=1e-13)
    np.testing.assert_allclose(moved["two"], jax.nn.log_softmax(0.3 * jnp.arange(4.0) / 3), rtol=1e-6)


def test_scale_by_largest():
    transformation = scale_by_largest()
    gradients = jnp.array([[1.0, -4.0], [0.0, 0.0]])
    scaled, _ = transformation.update(gradients, transformation.init(gradients))
    np.testing.assert_array_equal(scaled, [[0.25, -1.0], [0.0, 0.0]])


def test_an_update_without_log_weights_is_refused():
    start, transformation = jnp.full(2, -jnp.log(2.0)), mirror_ascent(1.0)
    with pytest.raises(ValueError, match="params must be the log-weights, got None"):
        transformation.update(start, transformation.init(start))
