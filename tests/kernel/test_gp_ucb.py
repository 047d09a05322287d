"""GP-UCB against the transcription of N-KernelUCB with one agent."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.kernel_ucb import KERNEL, RIDGE, follow, instance
from reference.kernel_ucb import n_kernel_ucb as transcription

from jaxbandits.kernel.gp_ucb import gp_ucb

HORIZON = 30


def make(candidates, draws, **changes):
    return gp_ucb(
        candidates, draws=draws, **({"kernel": KERNEL, "horizon": HORIZON, "beta": 1.0, "ridge": RIDGE} | changes)
    )


@pytest.mark.parametrize("size", [60, 20])
@pytest.mark.parametrize("beta", [np.linspace(2.0, 0.5, HORIZON), lambda t, log_det: 0.3 + 0.05 * t + 0.02 * log_det])
def test_is_the_transcription_step_by_step(size, beta):
    candidates, gram, rewards, draws = instance(1, size, horizon=HORIZON, agents=1)
    expected = transcription(gram, rewards, draws.coins, beta=beta, ridge=RIDGE)
    if callable(beta):
        algorithm = make(candidates, draws, confidence=lambda t, log_det: 0.3 + 0.05 * t.astype(float) + 0.02 * log_det)
    else:
        algorithm = make(candidates, draws, beta=beta)
    steps = follow(algorithm, rewards)
    assert len({int(step.action[0]) for step in steps}) > 5
    for t, (step, plain) in enumerate(zip(steps, expected, strict=True)):
        assert step.action.tolist() == plain.action.tolist()
        assert step.answer.shape == ()
        assert step.answer == plain.answer[0]
        assert step.state.pulls == t + 1
        np.testing.assert_allclose(step.state.posterior.variance, plain.variance, atol=1e-10)
        np.testing.assert_allclose(step.state.posterior.log_det, plain.log_det, rtol=1e-10)


def test_both_memories_ask_the_same():
    # Candidates far away double the table but are never worth asking: the buffer then holds all of the horizon.
    candidates, gram, rewards, draws = instance(2, 20, horizon=HORIZON, agents=1)
    far = jnp.concatenate([candidates, 100 + jnp.arange(40.0).reshape(20, 2) * 10])
    both = [
        make(candidates, draws._replace(coins=draws.coins * 0 + 0.55)),
        make(far, draws._replace(coins=draws.coins * 0 + 0.275)),
    ]
    more = np.concatenate([rewards, rewards], axis=2)
    kept, runs = [a.init(jax.random.key(0)).kept.shape[1] for a in both], []
    assert kept == [len(gram), HORIZON]
    for algorithm, tape in zip(both, (rewards, more), strict=True):
        state, actions = algorithm.init(jax.random.key(0)), []
        observe, decide = jax.jit(algorithm.observe), jax.jit(algorithm.decide)
        for t in range(HORIZON):
            # The first run asks; the second hears the same.
            action = decide(jax.random.key(0), state).action if not runs else runs[0][0][t]
            actions.append(action)
            state = observe(state, action, tape[t, [0], np.asarray(action)])
        runs.append((actions, state))
    for name in ("mean", "variance"):
        covariance, buffer = (getattr(state.posterior, name)[0] for _, state in runs)
        np.testing.assert_allclose(covariance, buffer[:20], atol=1e-9)
    np.testing.assert_allclose(runs[0][1].posterior.log_det, runs[1][1].posterior.log_det, rtol=1e-9)


def test_the_width_sees_the_query_to_come_and_the_information_so_far():
    candidates, gram, rewards, draws = instance(3, 40, horizon=HORIZON, agents=1)
    steps = follow(make(candidates, draws), rewards)
    points = [int(step.action[0]) for step in steps]
    square = gram[np.ix_(points, points)]
    np.testing.assert_allclose(
        steps[-1].state.posterior.log_det[0], np.linalg.slogdet(np.eye(HORIZON) + square / RIDGE)[1]
    )
    # A width that is 0 until the 10th query and huge from then on: from there the run asks where it knows least.
    switched = make(candidates, draws, confidence=lambda t, _: jnp.where(t >= 10, 1e6, 0.0))
    before = None
    for t, step in enumerate(follow(switched, rewards)):
        if t > 0:
            wanted = before.variance if t + 1 >= 10 else before.mean
            assert step.action[0] == np.argmax(np.asarray(wanted[0]))
        before = step.state.posterior


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"confidence": 2.0}, "confidence must be a function of t and log_det, got 2.0"),
        ({"beta": np.ones((1, HORIZON))}, r"beta must have shape \(\) or \(30,\), got \(1, 30\)"),
        ({"horizon": 0}, "horizon must be an int >= 1, got 0"),
    ],
)
def test_bad_input(changes, message):
    candidates, *_ = instance(0, 40, horizon=HORIZON)
    with pytest.raises(ValueError, match=message):
        make(candidates, None, **changes)
