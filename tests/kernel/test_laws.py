"""Laws of every algorithm of the family on any instance, by property-based tests."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxbandits import kernel, record, run

AGENTS, HORIZON, SIZE, DIMENSION, NOISE_VARIANCE, NOISE = 3, 12, 40, 3, 0.04, 0.2
RULES = {
    "duets": kernel.duets,
    "dis": kernel.dis_kernel_ucb,
    "approx": functools.partial(kernel.approx_dis_kernel_ucb, max_inducing=36),
    "alone": kernel.n_kernel_ucb,
}
# DUETS and the inducing points compile slowly; the transcriptions check them round by round.
every_rule = pytest.mark.parametrize(
    "rule", [pytest.param(rule, marks=[pytest.mark.wide] if rule in ("duets", "approx") else []) for rule in RULES]
)
quickly = settings(max_examples=6, deadline=None, derandomize=True)


@functools.cache
def compiled(rule):
    """Compiles the curves of a run, (T, 3), as a function of the key, the instance and the scale of its rewards."""

    @jax.jit
    def curve(key, candidates, values, scale):
        instance = kernel.tabular(candidates, scale * values, noise_scale=NOISE * scale)
        settings = {"p0": 10.0 / scale**2} if rule == "duets" else {}
        algorithm = RULES[rule](
            instance.candidates,
            kernel=lambda x, y: scale**2 * kernel.squared_exponential(x, y, lengthscale=0.5),
            n_agents=AGENTS,
            horizon=HORIZON,
            beta=1.0,
            noise_variance=NOISE_VARIANCE * scale**2,
            **settings,
        )
        measures = {"value": kernel.messages, "total": kernel.round_regret(instance)}
        curves = record(at=range(1, HORIZON + 1), by="rounds", **measures)
        environment = kernel.environment(instance, n_agents=AGENTS)
        recorded = run(key, algorithm, environment, max_rounds=HORIZON + 1, record=curves).curves
        return jnp.stack([recorded[name].astype(float) for name in ("regret", "uplink", "downlink")], axis=-1)

    return curve


def drawn(seed):
    rng = np.random.default_rng(seed)
    candidates = rng.uniform(-1, 1, (SIZE, DIMENSION))
    values = np.sin(3 * candidates[:, 0]) + candidates[:, 1] ** 2 - candidates[:, 2]
    return jnp.asarray(candidates), jnp.asarray(values)


@every_rule
@quickly
@given(seed=st.integers(0, 2**32 - 1))
def test_rotated_candidates_give_the_same_run(rule, seed):
    candidates, values = drawn(seed)
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(DIMENSION, DIMENSION)))
    key, one = jax.random.key(seed), jnp.ones(())
    curves = [compiled(rule)(key, x, values, one) for x in (candidates, candidates @ rotation)]
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-9)


@every_rule
@quickly
@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(0.2, 5.0))
def test_scaled_rewards_scale_the_regret(rule, seed, scale):
    candidates, values = drawn(seed)
    key = jax.random.key(seed)
    one = compiled(rule)(key, candidates, values, jnp.ones(()))
    scaled = compiled(rule)(key, candidates, values, jnp.asarray(scale))
    np.testing.assert_allclose(scaled[:, 0], scale * one[:, 0], rtol=1e-9)
    np.testing.assert_array_equal(scaled[:, 1:], one[:, 1:])  # the messages


@every_rule
@quickly
@given(seed=st.integers(0, 2**32 - 1))
def test_regret_and_messages_only_grow(rule, seed):
    candidates, values = drawn(seed)
    curve = np.asarray(compiled(rule)(jax.random.key(seed), candidates, values, jnp.ones(())))
    assert np.all(np.diff(curve, axis=0, prepend=0) >= -1e-12)
    worst = AGENTS * (float(values.max()) - float(values.min()))
    assert np.all(np.diff(curve[:, 0], prepend=0) <= worst + 1e-12)
    assert np.all((curve[:, 1:] == 0) | (rule != "alone"))
