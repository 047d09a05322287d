"""Random numbers drawn for a chunk at once equal those drawn round by round."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine.toys import KEY, NOISE, counter

import jaxbandits
from jaxbandits import mab
from jaxbandits.base import Decision
from jaxbandits.engine.run import predrawn
from jaxbandits.engine.run.predrawn import split_decision
from jaxbandits.engine.run.round import streams
from jaxbandits.numerics.normal import normal_noise
from jaxbandits.numerics.platforms import compiled_for

STATE = counter(9).init(KEY)


def gambler(numbers=1):
    """Stops and answers at random, so both change with the key."""

    def decide(key, state):
        stop, answer, *more = jax.random.uniform(key, (numbers + 1,))
        action = jnp.ones((), int) + sum((x > state.total).astype(int) for x in more)
        return Decision(action, (stop < 0.1) & (state.pulls > 2), jnp.floor(100 * answer).astype(int) + state.pulls)

    return counter(9)._replace(decide=decide)


def test_split_decision_equals_decide():
    algorithm = gambler()
    ahead = split_decision(algorithm, KEY, STATE)
    halves = ahead.decide(ahead.draw(KEY), STATE)
    assert jax.tree.map(np.asarray, halves) == jax.tree.map(np.asarray, algorithm.decide(KEY, STATE))
    # Draws do not depend on the state: another one receives the same numbers.
    assert ahead.decide(ahead.draw(KEY), STATE._replace(pulls=STATE.pulls + 5)).answer == halves.answer + 5


def test_coin_is_predrawn_as_a_byte():
    algorithm = mab.eb_tci(mab.gk1().problem, delta=0.1)
    (coin,) = jax.eval_shape(split_decision(algorithm, KEY, algorithm.init(KEY)).draw, KEY)
    assert (coin.shape, coin.dtype) == ((), bool)


@pytest.mark.parametrize(
    "algorithm",
    [
        pytest.param(counter(9), id="draws nothing"),
        pytest.param(gambler(5), id="draws much"),
        pytest.param(
            counter(9)._replace(
                decide=lambda key, state: Decision(
                    jnp.ones((), int),
                    state.pulls > 9,
                    jax.random.randint(jax.random.fold_in(key, state.pulls), (), 0, 9),
                )
            ),
            id="folds the state into its key",
        ),
    ],
)
def test_decisions_that_cannot_be_split(algorithm):
    assert split_decision(algorithm, KEY, STATE) is None


@pytest.mark.parametrize("numbers", [1, 5])
def test_predrawn_runs_are_bitwise_equal(monkeypatch, numbers):
    def results():
        def build(task, key):
            return gambler(numbers), NOISE

        swept = jaxbandits.sweep(build, seeds=24, key=KEY, max_rounds=40, lanes=8, chunk=8, progress=False)
        return {name: np.asarray(swept.columns[name]) for name in ("status", "pulls", "rounds", "answer")}

    ahead = results()
    assert len(set(ahead["rounds"])) > 8  # lanes end within their chunks, and at different rounds
    monkeypatch.setattr(predrawn, "split_decision", lambda *_: None)
    jax.clear_caches()
    for name, column in results().items():
        np.testing.assert_array_equal(ahead[name], column, err_msg=name)


@pytest.mark.parametrize("rule", ["lucb", "eb_tci"])
def test_draws_of_a_round_equal_draws_of_its_chunk(monkeypatch, rule):
    def results():
        instance = mab.gaussian((2.0, 1.0, 0.0))
        algorithm = getattr(mab, rule)(instance.problem, delta=0.1)
        build = lambda task, key: (algorithm, mab.environment(instance, algorithm))  # noqa: E731
        swept = jaxbandits.sweep(build, seeds=24, key=KEY, max_rounds=300, lanes=8, chunk=16, progress=False)
        return {name: np.asarray(swept.columns[name]) for name in ("status", "pulls", "rounds", "answer")}

    in_round = results()
    assert len(set(in_round["rounds"])) > 8
    monkeypatch.setattr(predrawn, "SLOW", {"jit", "pjit"})
    jax.clear_caches()
    for name, column in results().items():
        np.testing.assert_array_equal(in_round[name], column, err_msg=name)


def test_draws_of_jax_are_made_for_a_chunk():
    def primitives(noise):
        environment = NOISE._replace(noise=noise)
        algorithm, keys = counter(9), streams(KEY)

        def noise_of(r):
            rounds = r + jnp.arange(8, dtype=jnp.int32)
            return predrawn.predraw(algorithm, environment, keys, rounds, STATE, decisions=False).noise(r, r)

        with compiled_for("cpu"):
            return {equation.primitive.name for equation in jax.make_jaxpr(noise_of)(jnp.int32(0)).eqns}

    # A round reads its draw from an array of the chunk, or makes it.
    assert "dynamic_slice" in primitives(lambda key: jax.random.normal(key, ()))
    assert "dynamic_slice" not in primitives(lambda key: normal_noise(key, (), jnp.float64))


@pytest.mark.parametrize("algorithm", [counter(9), gambler()], ids=["counter", "gambler"])
def test_runs_are_the_same_in_programs_for_any_platform(algorithm):
    def run(platform):
        with compiled_for(platform):
            outcome = jaxbandits.run(KEY, algorithm, NOISE, max_rounds=100, chunk=7)
        return jax.tree.map(np.asarray, outcome)

    assert run("cpu") == run("gpu") == run(None)
