"""GP-UCB: its memories and its width."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers import kernel as driver

from experiments.bench.reference.kernel_ucb import KERNEL, NOISE_VARIANCE, instance
from jaxbandits import kernel

HORIZON = 30


def make(candidates, coins, **changes):
    return kernel.gp_ucb(
        candidates,
        coins=coins,
        **({"kernel": KERNEL, "horizon": HORIZON, "beta": 1.0, "noise_variance": NOISE_VARIANCE} | changes),
    )


# A width that is 0 until the 10th query and huge afterwards.
SWITCHED = partial(kernel.gp_ucb, confidence=lambda t, _: jnp.where(t >= 10, 1e6, 0.0))


def test_both_memories_make_the_same_queries():
    # Far candidates double the table but are never queried, so the buffer holds the whole horizon.
    candidates, gram, rewards, coins = instance(2, 20, horizon=HORIZON, agents=1)
    far = jnp.concatenate([candidates, 100 + jnp.arange(40.0).reshape(20, 2) * 10])
    both = [
        make(candidates, coins._replace(queries=coins.queries * 0 + 0.55)),
        make(far, coins._replace(queries=coins.queries * 0 + 0.275)),
    ]
    more = np.concatenate([rewards, rewards], axis=2)
    rows, runs = [a.init(jax.random.key(0)).memory.shape[1] for a in both], []
    assert rows == [len(gram), HORIZON]
    for algorithm, tape in zip(both, (rewards, more), strict=True):
        state, actions = algorithm.init(jax.random.key(0)), []
        observe, decide = jax.jit(algorithm.observe), jax.jit(algorithm.decide)
        for t in range(HORIZON):
            # The first run queries; the second observes the same.
            action = decide(jax.random.key(0), state).action if not runs else runs[0][0][t]
            actions.append(action)
            state = observe(state, action, tape[t, [0], np.asarray(action)])
        runs.append((actions, state))
    for name in ("mean", "variance"):
        covariance, buffer = (getattr(state.posterior, name)[0] for _, state in runs)
        np.testing.assert_allclose(covariance, buffer[:20], atol=1e-9)
    np.testing.assert_allclose(runs[0][1].posterior.log_det, runs[1][1].posterior.log_det, rtol=1e-9)


def test_confidence_receives_the_next_query_and_the_information_so_far():
    candidates, gram, rewards, coins = instance(3, 60, horizon=HORIZON, agents=1)
    steps = driver.follow(kernel.gp_ucb, candidates, rewards, coins, beta=np.ones(HORIZON))
    points = [int(step.action[0]) for step in steps]
    square = gram[np.ix_(points, points)]
    np.testing.assert_allclose(
        steps[-1].state.posterior.log_det[0], np.linalg.slogdet(np.eye(HORIZON) + square / NOISE_VARIANCE)[1]
    )
    # The run queries where the variance is largest from the 10th query on.
    before = None
    for t, step in enumerate(driver.follow(SWITCHED, candidates, rewards, coins, beta=None)):
        if t > 0:
            criterion = before.variance if t + 1 >= 10 else before.mean
            assert step.action[0] == np.argmax(np.asarray(criterion[0]))
        before = step.state.posterior


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"confidence": 2.0}, "confidence must be a function of t and log_det, got 2.0"),
        ({"beta": np.ones((1, HORIZON))}, r"beta must be an array of real numbers of shape \(30,\), got"),
        ({"horizon": 0}, "horizon must be an integer of at least 1, got 0"),
    ],
)
def test_bad_input(changes, message):
    candidates, *_ = instance(0, 40, horizon=HORIZON)
    with pytest.raises(ValueError, match=message):
        make(candidates, None, **changes)
