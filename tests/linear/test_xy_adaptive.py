"""XY-adaptive against hand-made phases, and its published stopping times."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.base import Status, memoryless
from jaxbandits.engine.run.loop import ask, run
from jaxbandits.linear import Allocation, canonical, environment, soare, sphere, xy_adaptive

KEY = jax.random.key(0)
STEPS = 300


def many(instance, runs, *, max_rounds=32, **options):
    algorithm = xy_adaptive(instance.arms, delta=0.05, **options)
    rewards = environment(instance, Allocation(jnp.zeros(len(instance.arms), int)))

    def one(key):
        return run(key, algorithm, rewards, max_rounds=max_rounds, chunk=8, axis_name="lanes")

    return jax.jit(jax.vmap(one, axis_name="lanes"))(jax.random.split(jax.random.key(1), runs))


def test_a_phase_takes_the_fewest_pulls_by_hand():
    # m pulls of each canonical arm leave 2/m on every pair, so 0.1 of the first width 1/31 takes m = 620.
    algorithm = xy_adaptive(np.eye(5), delta=0.05)
    state = algorithm.plan(KEY, algorithm.init(KEY))
    assert np.all(np.abs(np.asarray(state.due) - 620) <= 1)
    assert state.next_squared_width <= 1 / 310 * (1 + 1e-12)


def after_a_phase(keep_eliminated, members, means):
    """Returns the algorithm, and its state after a phase on canonical arms that observes exactly these means."""
    algorithm = xy_adaptive(np.eye(3), delta=0.05, keep_eliminated=keep_eliminated)
    state = algorithm.init(KEY)._replace(members=jnp.array(members), squared_width=jnp.array(1e-3))
    state, (action, *_) = ask(algorithm, KEY, state)
    return algorithm, algorithm.observe(state, action, action.counts.astype(float) * jnp.array(means))


def test_a_beaten_arm_comes_back_as_published():
    # Arm 0 beats arm 1, the other member; arm 2 has a single pull, so no arm beats it.
    algorithm, state = after_a_phase(False, [True, True, False], [10.0, 0.0, 0.0])
    assert state.members.tolist() == [True, False, True]
    assert algorithm.stale(state)


def test_a_beaten_arm_stays_out_with_keep_eliminated():
    algorithm, state = after_a_phase(True, [True, True, False], [10.0, 0.0, 0.0])
    assert state.members.tolist() == [True, False, False]
    decision = algorithm.decide(KEY, state)
    assert (bool(decision.stop), int(decision.answer), bool(algorithm.stale(state))) == (True, 0, False)


def test_the_leading_member_stays_if_an_outsider_beats_them_all():
    algorithm, state = after_a_phase(True, [True, True, False], [1.0, 2.0, 500.0])
    assert state.members.tolist() == [False, True, False]
    assert algorithm.decide(KEY, state).answer == 1
    _, published = after_a_phase(False, [True, True, False], [1.0, 2.0, 500.0])
    assert published.members.tolist() == [False, False, True]


def test_a_planned_phase_is_not_planned_again():
    algorithm = xy_adaptive(sphere(0, 5, 3, 0.25).arms, delta=0.05, design_steps=STEPS)
    start = algorithm.init(KEY)
    assert algorithm.stale(start)
    np.testing.assert_array_equal(algorithm.decide(KEY, start).action.counts, 0)
    state = algorithm.plan(KEY, start)
    assert not algorithm.stale(state)
    for once, twice in zip(state, ask(algorithm, KEY, state)[0], strict=True):
        np.testing.assert_array_equal(twice, once)
    for before, after in zip(state, algorithm.observe(state, algorithm.idle, jnp.zeros(5)), strict=True):
        np.testing.assert_array_equal(after, before)


def test_stopping_time_on_soare():
    # The published setting; the phases grow tenfold, so the stopping time hardly varies.
    outcome = many(soare(2), 20)
    assert np.all(outcome.status == Status.STOPPED)
    assert np.all(outcome.answer == 0)
    assert np.all(outcome.rounds == 5)
    np.testing.assert_allclose(outcome.pulls, 4.07e7, rtol=0.02)


@pytest.mark.thorough
@pytest.mark.slow
def test_published_elimination_may_never_end_and_keeping_it_always_does():
    published = many(canonical(0.5), 50, first_width=1.0)
    censored = np.asarray(published.status == Status.MAX_ROUNDS)
    assert 1 <= censored.sum() <= 10
    # They are censored because the next phase, of ten times as many pulls, would exceed 10^9.
    assert np.all(published.pulls[censored] > 10**7)
    assert np.all(published.pulls <= 10**9)
    assert np.all(published.rounds[censored] == 32)
    kept = many(canonical(0.5), 50, first_width=1.0, keep_eliminated=True)
    assert np.all(kept.status == Status.STOPPED)
    assert np.all(kept.answer == 0)


@pytest.mark.parametrize(("max_pulls", "counts"), [(5, 0), (3000, 0), (4000, 620)])
def test_a_phase_beyond_the_budget_is_not_begun(max_pulls, counts):
    algorithm = xy_adaptive(np.eye(5), delta=0.05, max_pulls=max_pulls)
    state = algorithm.plan(KEY, algorithm.init(KEY))
    decision = algorithm.decide(KEY, state)
    assert not decision.stop
    assert not algorithm.stale(state)
    np.testing.assert_allclose(decision.action.counts, counts, atol=1 if counts else 0)


def test_a_budget_of_fewer_pulls_than_arms_is_refused():
    with pytest.raises(ValueError, match=r"max_pulls must be an integer in \[5, \d+\], got 4"):
        xy_adaptive(np.eye(5), delta=0.05, max_pulls=4)


def test_a_nan_in_one_phase_ends_the_run():
    """A NaN in the first phase ends the run, though the second would be sound by itself."""
    instance = canonical(0.5)
    algorithm = xy_adaptive(instance.arms, delta=0.05)
    rewards = environment(instance, Allocation(jnp.zeros(len(instance.arms), int)))
    first_phase = algorithm.plan(KEY, algorithm.init(KEY)).due.sum()

    def respond(action, noise):
        return jnp.where(action.counts.sum() <= first_phase, jnp.nan, rewards.respond((), action, noise)[0])

    broken = memoryless(rewards.noise, respond)
    end = run(KEY, algorithm, broken, max_rounds=50)
    assert end.status == Status.NONFINITE
