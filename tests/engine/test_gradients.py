"""A run has no gradient and refuses every way of taking one."""

import jax
import jax.numpy as jnp
import pytest
from engine.toys import KEY, NOISE, counter

import jaxbandits
from jaxbandits import memoryless, run

WRAPPED = [jax.grad, jax.jacfwd, lambda f: jax.grad(jax.jit(f)), lambda f: jax.jit(jax.grad(f))]


def scaled(scale):
    """Builds an environment with rewards in units of `scale`."""
    return memoryless(NOISE.noise, lambda action, noise: scale * NOISE.respond((), action, noise)[0])


def reward(scale):
    """Returns a total that would be differentiable without the loop."""
    return run(KEY, counter(5), scaled(scale), max_rounds=9).state.total


def pulls(scale):
    """Returns pulls, which depend on the parameter through a comparison alone; forward mode would return 0."""
    learner = counter(5)
    decide = lambda key, state: learner.decide(key, state)._replace(stop=state.total > scale)  # noqa: E731
    return run(KEY, learner._replace(decide=decide), NOISE, max_rounds=9).pulls.astype(float)


@pytest.mark.parametrize("wrap", WRAPPED, ids=["grad", "jacfwd", "grad-jit", "jit-grad"])
@pytest.mark.parametrize("function", [reward, pulls])
def test_run_refuses_a_gradient(wrap, function):
    with pytest.raises(ValueError, match="run has no gradient: actions and stops come from comparisons"):
        wrap(function)(1.5)


def test_values_under_jit_and_vmap_equal_a_plain_run():
    expected = [reward(scale) for scale in (1.5, 2.5)]
    assert jax.jit(reward)(1.5) == expected[0]
    assert jax.vmap(reward)(jnp.asarray([1.5, 2.5])).tolist() == expected
    # Functions of a run's results may be differentiated around it.
    assert jax.grad(lambda x: x * run(KEY, counter(5), NOISE, max_rounds=9).state.total)(2.0) == reward(1.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jaxbandits.sweep(lambda task, key: (counter(5), scaled(x)), seeds=1, key=KEY, max_rounds=9),
        lambda x: jaxbandits.sweep(lambda task, key: (counter(5), NOISE), x[None], seeds=1, key=KEY, max_rounds=9),
    ],
    ids=["closed over", "tasks"],
)
@pytest.mark.parametrize("wrap", [jax.grad, jax.jit])
def test_sweep_refuses_to_be_traced(wrap, function):
    with pytest.raises(ValueError, match="sweep runs on the host, outside of jax.jit, jax.vmap and jax.grad, and has"):
        wrap(function)(1.5)
