"""Recorded rewards of arms with features, and noise that is neither normal nor a sign."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import Status, linear, run, testing, trace
from jaxbandits.linear import Allocation, Bridge, Pull

KEY = jax.random.key(2)
ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
TABLE = np.random.default_rng(0).normal(ARMS @ [1.0, 0.2], 0.5, size=(300, 3))
ZERO, ONE = jnp.zeros((), int), jnp.ones((), int)
NO_PULL, NO_PULLS = Pull(ZERO, ZERO), Allocation(jnp.zeros(3, int))


def test_rules_are_paid_from_the_columns_in_turn():
    """A run's rewards are the first ones of each arm, whatever the rule and the form of its pulls."""
    rules = [
        linear.lingape(ARMS, delta=0.05, noise_scale=0.5),
        linear.lingape(ARMS, delta=0.05, noise_scale=0.5, leap=64),
        linear.xy_static(ARMS, np.full(3, 1 / 3), delta=0.05, noise_scale=0.5),
    ]
    for algorithm in rules:
        environment = linear.recorded(TABLE, ARMS, algorithm)
        end = run(KEY, algorithm, environment, max_rounds=1000)
        assert (end.status, end.answer) == (Status.STOPPED, 0)
        np.testing.assert_array_equal(end.memory, end.state.counts)
        testing.check(algorithm, environment, key=KEY, rounds=1000)
        tape = trace(KEY, algorithm, environment, rounds=1000)
        total = jnp.sum(tape.observations)
        np.testing.assert_allclose(total, sum(TABLE[:n, k].sum() for k, n in enumerate(np.asarray(end.memory))))


def test_running_out_ends_a_run():
    few = linear.recorded(TABLE[:4], ARMS)
    end = run(KEY, linear.lingape(ARMS, delta=1e-9, noise_scale=0.5), few, max_rounds=1000)
    assert end.status == Status.EXHAUSTED
    assert end.memory.max() == 4
    allocations = linear.xy_static(ARMS, np.full(3, 1 / 3), delta=1e-9, noise_scale=0.5)
    assert (
        run(KEY, allocations, linear.recorded(TABLE[:4], ARMS, allocations), max_rounds=99).status == Status.EXHAUSTED
    )


def test_bootstrap_draws_from_the_column():
    environment = linear.recorded([[1.0, 2.0], [5.0], [7.0, 8.0, 9.0]], ARMS, order="bootstrap")

    @jax.jit
    @jax.vmap
    def rewards(key, arm):
        return environment.respond((), Pull(arm, ONE), environment.noise(key))[0]

    drawn = rewards(jax.random.split(KEY, 900), jnp.arange(900) % 3)
    for arm, column in enumerate(([1, 2], [5], [7, 8, 9])):
        values, counts = np.unique(drawn[arm::3], return_counts=True)
        np.testing.assert_array_equal(values, column)
        assert counts.min() > 300 / len(column) * 0.7


@pytest.mark.parametrize("stream", [None, KEY])
@pytest.mark.parametrize("noise", ["uniform", "rademacher", lambda key: jax.random.logistic(key) / 4])
def test_noise_by_name_has_unit_scale(noise, stream):
    instance = linear.Instance(jnp.asarray(ARMS), jnp.asarray([1.0, 0.2]), jnp.asarray(0.5))
    environment = linear.environment(instance, noise=noise, stream=stream)

    def one(key, n):
        memory = () if stream is None else jnp.full(3, n)
        return environment.respond(memory, Pull(2 * ONE, ONE), environment.noise(key))[0]

    z = (jax.jit(jax.vmap(one))(jax.random.split(KEY, 6000), jnp.arange(6000)) - 0.72) / 0.5
    scale = np.pi / np.sqrt(3) / 4 if callable(noise) else 1.0
    assert abs(z.mean()) < 5 * scale / np.sqrt(6000)
    np.testing.assert_allclose(z.std(), scale, rtol=0.06)
    assert noise != "rademacher" or set(np.unique(np.round(z, 9))) == {-1.0, 1.0}


LEAPING = linear.lingape(ARMS, delta=0.1, leap=8)
INSTANCE = linear.Instance(jnp.asarray(ARMS), jnp.asarray([1.0, 0.2]), jnp.asarray(0.5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear.recorded(TABLE[:, :2], ARMS), "rewards must have a column for each of 3 arms, got 2"),
        (lambda: linear.recorded(TABLE, ARMS, order="last"), "order must be one of 'in turn', 'bootstrap'"),
        (lambda: linear.recorded(TABLE, ARMS, NO_PULLS, order="bootstrap"), "order must be 'in turn' for allocations"),
        (lambda: linear.recorded(TABLE, ARMS, LEAPING, order="bootstrap"), "order must be 'in turn' for allocations"),
        (
            lambda: linear.recorded(TABLE, ARMS, Bridge(ZERO, ZERO, ZERO)),
            "algorithm must have actions Pull, Step or Allocation",
        ),
        (lambda: linear.environment(INSTANCE, LEAPING, noise="uniform"), "noise must be 'gaussian' or 'sign' for"),
        (
            lambda: linear.environment(INSTANCE, NO_PULLS, noise="uniform"),
            "algorithm must have actions Pull or Step with noise='uniform'",
        ),
        (
            lambda: linear.environment(INSTANCE, noise="cauchy"),
            "noise must be one of 'gaussian', 'sign', 'uniform', 'rademacher', got 'cauchy'",
        ),
    ],
)
def test_bad_arguments_are_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
