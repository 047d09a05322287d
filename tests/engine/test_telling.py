"""`tell` in a user's own loop: it accepts every possible observation, in any form, and refuses all others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract.cases import CASES
from drivers.programs import assert_same
from engine.toys import KEY, NOISE, counter

import jaxbandits
from jaxbandits import cpe, kcenter, kernel, linear, mab
from jaxbandits.engine import plan_if_due

COUNTER = counter(30)
# One algorithm per form of observation.
FORMS = (
    *("lingape", "xy-static-exact", "saqm", "coci", "pfws", "ds-random", "ns-ts", "ns-random", "gp-ucb"),
    *("mab-uniform", "eb-tci", "lucb"),
)


def first(algorithm):
    return jaxbandits.ask(algorithm, KEY, algorithm.init(KEY))


@pytest.mark.parametrize("name", FORMS)
def test_tell_takes_lists_as_arrays(name):
    algorithm, environment = CASES[name].make("float64")

    @jax.jit
    def one_round(key):
        action = algorithm.decide(key, algorithm.init(key)).action
        return action, environment.respond((), action, environment.noise(key))[0]

    action, observation = one_round(KEY)
    received = algorithm.receive(action, jax.tree.map(lambda x: np.asarray(x).tolist(), observation))
    assert_same(received, observation)
    assert jax.tree.map(lambda x: x.dtype, received) == jax.tree.map(lambda x: x.dtype, observation)
    for bad in (np.nan, np.inf):
        spoilt = jax.tree.map(lambda x, bad=bad: np.full(np.shape(x), bad), observation)
        with pytest.raises(ValueError, match="observation"):
            algorithm.receive(action, spoilt)


def rewards(sums, times=(1,)):
    return mab.Rewards(sums, list(times))


GAUSSIAN = mab.thompson(mab.Gaussian(3))
BERNOULLI = mab.thompson(mab.Bernoulli(3))
ARMS = linear.lingape(jnp.eye(3), delta=0.1)
COCI = cpe.coci(cpe.best_arm(3), delta=0.1, observations="binary")
JUDGED = kcenter.ns_ts(kcenter.Distances(4, 2, "bernoulli"), delta=0.1)
AGENT = kernel.gp_ucb(jnp.eye(3), kernel=kernel.paper_kernel("branin"), horizon=5, beta=1.0, noise_variance=0.1)


@pytest.mark.parametrize(
    ("algorithm", "observation", "message"),
    [
        (GAUSSIAN, rewards([np.nan]), "observation.sums must be finite, got"),
        (GAUSSIAN, rewards([np.inf]), "observation.sums must be finite, got"),
        (GAUSSIAN, rewards(1.0), r"observation.sums must be an array of real numbers of shape \(1,\), got 1.0"),
        (GAUSSIAN, rewards(["x"]), r"observation.sums must be an array of real numbers of shape \(1,\), got \['x'\]"),
        (
            GAUSSIAN,
            rewards([1.0], [2]),
            "observation.times must be the times of the action, or 0 where an arm was not pulled",
        ),
        (GAUSSIAN, rewards([1.0], [0]), "observation.sums must be 0 where nothing was pulled"),
        (GAUSSIAN, 1.0, "observation must be of type mab.Rewards, got 1.0"),
        (BERNOULLI, rewards([0.5]), "observation.sums must count the ones among the rewards, each of which is 0 or 1"),
        (BERNOULLI, rewards([2]), "observation.sums must count the ones among the rewards, each of which is 0 or 1"),
        (ARMS, [1.0], r"observation must be a real number, got \[1.0\]"),
        (ARMS, None, "observation must be a real number, got None"),
        (ARMS, np.nan, "observation must be finite, got nan"),
        (COCI, [1.5], r"observation must lie in \[0, 1\], got"),
        (COCI, [0.5], "observation must hold 0 or 1 for every arm with observations='binary'"),
        (JUDGED, [0.5, 1], "observation must count the ones among the rewards, each of which is 0 or 1"),
        (JUDGED, [2, 1], "observation must count the ones among the rewards, each of which is 0 or 1"),
        (AGENT, [1.0, 2.0], r"observation must be an array of real numbers of shape \(1,\), got \[1.0, 2.0\]"),
        (COUNTER, np.nan, "observation must be finite, got nan"),
        (COUNTER, [1.0], r"observation must leave the state as"),
        (COUNTER, "x", "observation must hold numbers, lists and arrays, got 'x'"),
    ],
)
def test_tell_refuses_impossible_observations(algorithm, observation, message):
    state, decision = first(algorithm)
    with pytest.raises(ValueError, match=message):
        jaxbandits.tell(algorithm, state, decision.action, observation)


def test_tell_takes_booleans_and_numbers():
    state, decision = first(BERNOULLI)
    told = jaxbandits.tell(BERNOULLI, state, decision.action, rewards([True]))
    assert_same(told, jaxbandits.tell(BERNOULLI, state, decision.action, rewards(jnp.array([True]), jnp.array([1]))))
    assert told.sums.counts.sum() == 1
    state, decision = first(ARMS)
    assert jaxbandits.tell(ARMS, state, decision.action, 2).sums.sum() == 2
    state, decision = first(COUNTER)
    assert jaxbandits.tell(COUNTER, state, decision.action, True).total == 1


def test_an_action_of_another_algorithm_is_refused():
    state, decision = first(ARMS)
    with pytest.raises(ValueError, match="action must be like the algorithm's idle one, Pull"):
        jaxbandits.tell(ARMS, state, decision.action._replace(arm=jnp.zeros(2, int)), 1.0)


def test_tell_under_jit_observes():
    state, decision = first(ARMS)
    told = jax.jit(lambda reward: jaxbandits.tell(ARMS, state, decision.action, reward))
    assert_same(told(jnp.asarray(1.5)), ARMS.observe(state, decision.action, jnp.asarray(1.5)))
    assert np.isnan(told(jnp.asarray(np.nan)).sums).any()


def test_ask_refuses_a_state_that_is_not_finite():
    state, decision = first(ARMS)
    spoilt = ARMS.observe(state, decision.action, jnp.asarray(np.nan))
    with pytest.raises(ValueError, match=r"state must be finite, got .* Use jaxbandits.tell"):
        jaxbandits.ask(ARMS, KEY, spoilt)


def test_environment_answers_asked_actions():
    algorithm, state = COUNTER, COUNTER.init(KEY)
    for r in range(3):
        key = jax.random.fold_in(KEY, r)
        state, decision = jaxbandits.ask(algorithm, key, state)
        state = jaxbandits.tell(
            algorithm, state, decision.action, NOISE.respond((), decision.action, NOISE.noise(key))[0]
        )
    assert state.pulls == 3


def test_plan_if_due_is_the_first_half_of_ask():
    algorithm = counter(30, period=3)
    state = algorithm.init(KEY)._replace(pulls=jnp.asarray(4))
    planned = plan_if_due(algorithm, KEY, state)
    assert planned.planned == 1
    assert_same(planned, jaxbandits.ask(algorithm, KEY, state)[0])
    assert plan_if_due(COUNTER, KEY, state) is state
