"""`jaxbandits.testing.check` finds every broken promise and names the part at fault."""

import itertools
import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
from engine.toys import KEY, NOISE, counter

from jaxbandits import linear, mab
from jaxbandits.base import Algorithm, Decision, memoryless
from jaxbandits.testing import check

GOOD, PLANS = counter(30), counter(30, period=3)
CALLS = itertools.count()


def forgets_idle(state, action, observation):
    return state._replace(pulls=state.pulls + 1, total=state.total + observation)


def decides_by_key(key, state):
    return GOOD.decide(key, state)._replace(stop=jax.random.uniform(key) < 0.5)


def impure(key, state):
    """Decides by another program whenever it is traced."""
    decision = GOOD.decide(key, state)
    return decision._replace(answer=decision.answer + next(CALLS))


BROKEN = {
    "idle": (GOOD._replace(observe=forgets_idle), r"observe\(state, idle, \.\.\) changed pulls in round 0"),
    "stop": (GOOD._replace(decide=decides_by_key), r"decide\(key, state\) gave two stops for two keys in round \d+"),
    "refresh": (
        GOOD._replace(refresh=lambda state: state._replace(total=0.9 * state.total)),
        r"refresh\(state\) changed total in round 1 by more than rounding",
    ),
    "nan": (
        GOOD._replace(init=lambda key: GOOD.init(key)._replace(total=jnp.full((), jnp.inf, float))),
        r"init\(key\) makes total not finite",
    ),
    "plan pulls": (
        PLANS._replace(plan=lambda key, state: state._replace(pulls=state.pulls + 1, planned=state.planned + 1)),
        r"plan\(key, state\) changed pulls in round 3",
    ),
    "plan twice": (
        PLANS._replace(plan=lambda key, state: state),
        r"plan\(key, state\) left the state of round 3 stale",
    ),
    "stale and stopped": (
        PLANS._replace(stale=lambda state: (state.pulls >= 30) & (state.planned == 0)),
        "stale\\(state\\) holds for the state of round 30, which stops",
    ),
    "plan without a mask": (
        PLANS._replace(masked_plan=True),
        r"plan\(key, state\) changed planned in round 0, whose state is not stale",
    ),
    "plan alone": (PLANS._replace(stale=None), "both plan and stale, or neither"),
    "lost pulls": (
        GOOD._replace(observe=lambda state, action, x: state._replace(pulls=state.pulls - action)),
        r"observe\(state, action, observation\) lowered pulls in round 0",
    ),
    "no pulls": (
        GOOD._replace(observe=lambda state, action, x: state._replace(total=state.total + x)),
        r"observe\(state, action, observation\) counted no pull",
    ),
    "dtype": (
        GOOD._replace(refresh=lambda state: state._replace(total=state.total.astype(jnp.float32))),
        r"refresh\(state\) makes states with total float32\[\], init\(key\) makes float64\[\]",
    ),
    "weak type": (
        GOOD._replace(init=lambda key: GOOD.init(key)._replace(total=jax.lax.full((), 0.0))),
        r"a weak type, as of a Python number, makes a second compilation",
    ),
    "action": (
        GOOD._replace(decide=lambda key, state: Decision(jnp.ones(2, int), state.pulls > 30, state.pulls)),
        r"decide\(key, state\) gives actions int64\[2\], idle is int64\[\]",
    ),
    "stop shape": (
        GOOD._replace(decide=lambda key, state: GOOD.decide(key, state)._replace(stop=jnp.zeros(1, bool))),
        r"stop of type bool and shape \(\), got bool\[1\]",
    ),
    "first field": (
        GOOD._replace(init=lambda key: (jnp.zeros((), int), jnp.zeros(()))),
        "states with a field pulls",
    ),
    "key": (GOOD._replace(decide=impure), "must be a pure function|must not depend on its neighbours"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_promise_is_found_and_named(name):
    algorithm, sentence = BROKEN[name]
    with pytest.raises(AssertionError, match=sentence):
        check(algorithm, NOISE, key=KEY, rounds=40)


@pytest.mark.parametrize("algorithm", [GOOD, PLANS], ids=["light", "plans"])
def test_good_algorithms_pass(algorithm):
    check(algorithm, NOISE, key=KEY, rounds=40)


FIVE = linear.canonical(0.5)
ZERO, ONE = jnp.zeros((), int), jnp.ones((), int)


class Sums(NamedTuple):
    pulls: jax.Array
    sums: jax.Array


def in_turn(
    arm=lambda pulls: pulls % 5, answer=lambda state: jnp.argmax(state.sums), reward=lambda pulls, x: x, **parts
):
    """Builds a rule that pulls five arms in turn, thirty times, with parts that may be wrong."""

    def observe(state, pull, x):
        x = jnp.where(pull.times > 0, reward(state.pulls, x), 0)
        return Sums(state.pulls + pull.times, state.sums.at[pull.arm].add(x))

    def decide(key, state):
        return Decision(linear.Pull(arm(state.pulls), ONE), state.pulls >= 30, answer(state))

    start = Sums(ZERO, jnp.zeros(5))
    return Algorithm(lambda key: start, decide, observe, linear.Pull(ZERO, ZERO), **parts)


def nan_after_7(pulls, x):
    return jnp.where(pulls == 7, jnp.nan, x)


@pytest.mark.parametrize(
    ("algorithm", "sentence"),
    [
        (
            in_turn(arm=lambda pulls: pulls % 5 + 1),
            r"decide\(key, state\) gives the action Pull\(arm=5, times=1\) in round 4",
        ),
        (
            in_turn(arm=lambda pulls: pulls % 5 - 1),
            r"decide\(key, state\) gives the action Pull\(arm=-1, times=1\) in round 0",
        ),
        (
            in_turn(answer=lambda state: state.pulls),
            r"decide\(key, state\) gives the answer 5 in round 5, which does not exist",
        ),
        (in_turn(answer=lambda state: state.pulls - 1), r"decide\(key, state\) gives the answer -1 in round 0"),
        (in_turn(answer=lambda state: None), r"decide\(key, state\) must give an answer, got None"),
        (
            in_turn(answer=lambda state: state.sums / state.pulls.astype(float)),
            r"decide\(key, state\) gives an answer with a NaN or an infinity in round 0",
        ),
        # A NaN is not equal to itself, yet a refresh that changes nothing is not at fault.
        (
            in_turn(reward=nan_after_7, refresh=lambda state: state),
            r"observe\(state, action, observation\) makes sums not finite in round 7",
        ),
        (
            in_turn(refresh=lambda state: state._replace(sums=state.sums / 0)),
            r"refresh\(state\) makes sums not finite in r",
        ),
    ],
)
def test_check_blames_the_part_at_fault(algorithm, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check(algorithm, linear.environment(FIVE), key=KEY, rounds=40)


def test_an_idle_action_that_the_environment_does_not_have_is_named():
    algorithm = in_turn()._replace(idle=linear.Pull(jnp.full((), 5), jnp.full((), -1)))
    with pytest.raises(AssertionError, match="idle must be an action that the environment accepts, got Pull"):
        check(algorithm, linear.environment(FIVE), key=KEY, rounds=40)


def test_an_observation_that_is_not_finite_is_blamed_on_the_environment():
    silent = memoryless(NOISE.noise, lambda action, noise: jnp.where(action > 0, jnp.nan, 0.0))
    with pytest.raises(
        AssertionError, match=r"respond\(memory, action, noise\) of the environment is not finite in round 0"
    ):
        check(GOOD, silent, key=KEY, rounds=40)


def test_a_run_that_does_not_stop_is_a_warning():
    with pytest.warns(UserWarning, match="the run did not stop within 20 rounds, so its stop was not checked"):
        check(GOOD, NOISE, key=KEY, rounds=20)


def test_a_rule_that_never_stops_gives_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(GOOD, NOISE, key=KEY, rounds=20, stops=False)
    with pytest.raises(ValueError, match="stops must be True or False, got 1"):
        check(GOOD, NOISE, key=KEY, rounds=20, stops=1)


def test_sizes_that_do_not_belong_together_are_refused():
    with pytest.raises(
        AssertionError, match="must have the same arms, got 8 in the algorithm and 4 in the environment"
    ):
        check(mab.ucb1(mab.Bernoulli(8)), mab.environment(mab.gk1()), key=KEY)


def test_check_passes_random_planning():
    """Its key is folded from the round, however long a lane waits for it."""
    check(PLANS._replace(plan=shuffling), NOISE, key=KEY, rounds=40)


def shuffling(key, state):
    return state._replace(planned=state.planned + 1, total=jax.random.normal(key))


def test_an_environment_that_does_not_fit_is_named():
    with pytest.raises(AssertionError, match="environment does not answer this algorithm"):
        check(GOOD, memoryless(NOISE.noise, lambda action, noise: action["arm"] * noise), key=KEY)


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="rounds must be an integer of at least 1, got 0"):
        check(GOOD, NOISE, key=KEY, rounds=0)
    with pytest.raises(ValueError, match="algorithm must be of type Algorithm"):
        check(None, NOISE, key=KEY)
