"""Tapes of rewards, and algorithms that are driven through them as one compiled program."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from experiments.bench.reference.mab import Law
from jaxbandits import mab
from jaxbandits.mab import Pull, Rewards

NORMAL, ONES = Law("gaussian", 0.8), Law("bernoulli", 0.5)
PROBLEMS = {"gaussian": (mab.Gaussian(4, 0.8), NORMAL), "bernoulli": (mab.Bernoulli(4), ONES)}
LENGTH = 1200
KEYS = jax.random.split(jax.random.key(5), LENGTH)


def tape_of(kind, seed=0, K=4, length=LENGTH):
    """The n-th reward of every arm, float (K, length), with a clear best arm: number 1."""
    rng = np.random.default_rng(seed)
    means = np.array([0.35, 0.8, 0.5, 0.2, 0.1, 0.4])[:K]
    if kind == "bernoulli":
        return (rng.random((K, length)) < means[:, None]).astype(float)
    return means[:, None] + 0.8 * rng.normal(size=(K, length))


def drive(algorithm, tape, rounds, keys=KEYS):
    """(arms (rounds, slots), times, stops, answers), until it stops; slots that idle have arm -1."""

    def one(tape, state, key):
        decision = algorithm.decide(key, state)
        action = jax.tree.map(lambda a, b: jnp.where(decision.stop, b, a), decision.action, algorithm.idle)
        start = state.counts[action.arms]
        ahead = jnp.arange(tape.shape[1], dtype=jnp.int32)
        taken = (ahead >= start[:, None]) & (ahead < (start + action.times)[:, None])
        sums = jnp.sum(jnp.where(taken, tape[action.arms], 0), axis=1)
        return algorithm.observe(state, action, Rewards(sums, action.times)), decision

    @jax.jit
    def course(tape, keys):
        return lax.scan(lambda state, key: one(tape, state, key), algorithm.init(keys[0]), keys)[1]

    decisions = course(tape, keys[:rounds])
    decisions = jax.device_get(decisions)
    action, stop = decisions.action, decisions.stop
    last = int(np.argmax(stop)) + 1 if stop.any() else rounds
    arms = np.where(action.times > 0, action.arms, -1)
    return arms[:last], action.times[:last], stop[:last], decisions.answer[:last].copy()


def assert_same_course(driven, course):
    """Arm by arm, with the same stops and answers."""
    arms, _, stops, answers = driven
    assert len(arms) == len(course)
    for n, round_ in enumerate(course):
        if not round_.stop:
            assert tuple(arm for arm in arms[n].tolist() if arm >= 0) == round_.arms, n
        assert (bool(stops[n]), int(answers[n])) == (round_.stop, round_.answer), n


def pull(arms, times=None):
    arms = np.asarray(arms, np.int32)
    return Pull(arms, np.ones_like(arms) if times is None else np.asarray(times, np.int32))
