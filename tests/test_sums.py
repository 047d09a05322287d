"""In float32 the sums of rewards, and the totals of a record, keep every term, however large the sum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract.cases import CASES
from engine.toys import KEY
from jax import lax

import jaxbandits
from jaxbandits import mab
from jaxbandits.cpe._problem.environment import Play
from jaxbandits.cpe._shared.playing import PlayState, add_play
from jaxbandits.engine.run.recording import start_curves, sum_round

REWARD, BEFORE, ROUNDS = np.float32(1.3), np.float32(4e6), 1000  # the spacing of float32 at BEFORE is 0.25
RULES = ("lingape", "fixed-weights", "lin-ucb", "xy-static", "icb", "sa-foa", "mab-uniform", "eb-tc")


@pytest.mark.parametrize("name", RULES)
def test_sums_in_float32_lose_no_reward(name):
    algorithm, environment = CASES[name].make(jnp.dtype("float32"))

    @jax.jit
    def after_many(start):
        action = algorithm.decide(KEY, start).action
        observation = environment.respond((), action, environment.noise(KEY))[0]
        rewards = jax.tree.map(
            lambda x: jnp.full_like(x, REWARD) if jnp.issubdtype(x.dtype, jnp.floating) else x, observation
        )

        def observed(rounds):
            return lax.fori_loop(0, rounds, lambda _, state: algorithm.observe(state, action, rewards), start).sums

        return observed(1), observed(ROUNDS)

    start = algorithm.init(KEY)
    sums = jax.tree.leaves(start.sums)[0]
    once, _ = (np.asarray(jax.tree.leaves(s)[0]) for s in after_many(start))
    pulled = once > 0
    assert pulled.any()

    large = jax.tree.unflatten(jax.tree.structure(start.sums), [sums + BEFORE, *jax.tree.leaves(start.sums)[1:]])
    _, many = (np.asarray(jax.tree.leaves(s)[0]) for s in after_many(start._replace(sums=large)))
    np.testing.assert_array_equal(many[pulled], np.float32(np.float64(BEFORE) + ROUNDS * np.float64(REWARD)))
    np.testing.assert_array_equal(many[~pulled], BEFORE)


def test_plays_in_float32_lose_no_reward():
    play = Play(jnp.array([1, 0, 1], jnp.int32))
    start = PlayState(jnp.zeros((), int), jnp.zeros(3, jnp.int32), jnp.full(3, BEFORE), jnp.zeros(3, jnp.float32))
    rewards = jnp.where(play.decision > 0, REWARD, 0)
    state = jax.jit(lambda: lax.fori_loop(0, ROUNDS, lambda _, state: add_play(state, play, rewards), start))()
    right = np.float32(np.float64(BEFORE) + ROUNDS * np.float64(REWARD))
    np.testing.assert_array_equal(state.sums, [right, BEFORE, right])


def test_totals_of_a_record_in_float32_lose_no_term():
    instance = mab.gaussian((0.0, 0.0))
    algorithm, environment = mab.uniform(instance.problem, delta=0.1), mab.environment(instance)
    what = jaxbandits.record(
        at=[1],
        total=lambda state, decision, observation: {"regret": jnp.float32(0.1), "infinite": jnp.float32(jnp.inf)},
    )
    state = algorithm.init(KEY)
    decision = algorithm.decide(KEY, state)
    observation = environment.respond((), decision.action, environment.noise(KEY))[0]
    terms = 2**20

    @jax.jit
    def many():
        def one(i, curves):
            return sum_round(what, curves, state, decision, observation, where=i % 2 == 0)

        return lax.fori_loop(0, 2 * terms, one, start_curves(what, algorithm, environment)).sums

    sums = many()
    assert sums["regret"].total == np.float32(terms * np.float64(np.float32(0.1)))
    assert sums["infinite"].total == np.inf
