"""Drives an algorithm with recorded samples, not with an environment."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

KEY = jax.random.key(0)


class Trace(NamedTuple):
    """What every round looked like before its pulls; after the stop nothing changes."""

    stop: np.ndarray  # bool (rounds,)
    arms: np.ndarray  # int32 (rounds, leap)
    pulls: np.ndarray  # int32 (rounds,)
    counts: np.ndarray  # int32 (rounds, m)
    answer: np.ndarray  # int32 (rounds, m)


def step(algorithm, tape, state):
    """The next state, and the decision that led to it; tape[i, s] is sample s of arm i."""
    decision = algorithm.decide(KEY, state)
    action = jax.tree.map(lambda a, idle: jnp.where(decision.stop, idle, a), decision.action, algorithm.idle)
    m = tape.shape[0]
    before = algorithm.before(state, action)
    samples = jnp.where(action.arms < m, tape[jnp.minimum(action.arms, m - 1), before], 0)
    return algorithm.observe(state, action, samples), decision._replace(action=action)


def record(algorithm, tape, rounds):
    def one(state, _):
        following, decision = step(algorithm, jnp.asarray(tape), state)
        seen = decision.stop, decision.action.arms, state.pulls, state.statistics.counts, decision.answer
        return following, Trace(*seen)

    _, trace = jax.jit(lambda state: lax.scan(one, state, None, rounds))(algorithm.init(KEY))
    return jax.tree.map(np.asarray, trace)


def follow(algorithm, theta, *, max_rounds=20_000, hold=lambda state: state):
    """The last state, rounds and answer of a run whose samples are always theta."""

    def more(carry):
        return ~carry[2] & (carry[1] < max_rounds)

    def advance(carry):
        state, rounds, _, _ = carry
        following, decision = step(algorithm, jnp.asarray(theta)[:, None], state)
        return hold(following), rounds + 1 - decision.stop.astype(int), decision.stop, decision.answer

    def run():
        state = algorithm.init(KEY)
        return lax.while_loop(more, advance, (state, 0, jnp.zeros((), bool), jnp.zeros_like(state.statistics.counts)))

    state, rounds, _, answer = jax.jit(run)()
    return state, int(rounds), answer.tolist()


def hold_variance(theta):
    """Sums of squares whose variance is theta, whatever the samples were."""

    def hold(state):
        statistics = state.statistics
        second = statistics.sums.second._replace(total=theta * (statistics.counts - 1).astype(theta.dtype))
        first = statistics.sums.first._replace(total=jnp.zeros_like(theta))
        return state._replace(statistics=statistics._replace(sums=statistics.sums._replace(first=first, second=second)))

    return hold


def assert_same(trace, rounds):
    """Compares a trace with a transcription: counts, arm, stop, and the answer once every arm has an estimate."""
    assert trace.stop.argmax() == len(rounds) - 1
    assert rounds[-1].stop
    for t, expected in enumerate(rounds):
        assert tuple(trace.counts[t].tolist()) == expected.counts
        assert bool(trace.stop[t]) == expected.stop
        if not expected.stop:
            assert trace.arms[t, 0] == expected.arm
        if expected.answer is not None:
            assert tuple(trace.answer[t].tolist()) == expected.answer
    # What has stopped stays as it is.
    assert (trace.counts[len(rounds) :] == trace.counts[-1]).all()
