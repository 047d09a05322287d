"""Recorded rewards in turn and by bootstrap, and noise that is not normal."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandits
from jaxbandits import Algorithm, Decision, Status, mab, run, testing, trace

KEY = jax.random.key(4)
TABLE = np.array([[1.0, 10.0], [2.0, np.nan], [np.nan, 30.0], [4.0, 40.0]])
COLUMNS = [[1.0, 2.0, 4.0], [10.0, 30.0, 40.0]]
NOTHING = mab.Pull(jnp.zeros(1, jnp.int32), jnp.zeros(1, jnp.int32))


class Count(NamedTuple):
    pulls: jax.Array


def alternate(key, state):
    arm = (state.pulls % 2).astype(jnp.int32)
    return Decision(mab.Pull(arm[None], jnp.ones(1, jnp.int32)), jnp.zeros((), bool), arm)


IN_TURN = Algorithm(
    lambda key: Count(jnp.zeros((), int)),
    alternate,
    lambda state, pull, rewards: Count(state.pulls + pull.times.sum().astype(int)),
    NOTHING,
)


def sums_of(algorithm, environment, rounds):
    tape = jax.device_get(jax.jit(lambda: trace(KEY, algorithm, environment, rounds=rounds))())
    return tape.observations.sums, tape.actions


def test_rewards_are_paid_in_turn_and_missing_ones_skipped():
    for rewards in (TABLE, jnp.asarray(TABLE), COLUMNS):
        sums, actions = sums_of(IN_TURN, mab.recorded(rewards), 8)
        np.testing.assert_array_equal(sums[:, 0], [1, 10, 2, 30, 4, 40, 0, 0])
        assert (actions.times[6:] == 0).all()


def test_a_data_frame_has_a_column_for_each_arm():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"old": TABLE[:, 0], "new": TABLE[:, 1]})
    np.testing.assert_array_equal(sums_of(IN_TURN, mab.recorded(frame), 3)[0][:, 0], [1, 10, 2])


def test_running_out_is_a_status_of_its_own():
    """In `run` and in a sweep, whose summary counts it as censored; nothing wraps around."""
    ragged = [[1.0, 2.0, 3.0, 4.0], [0.0, 0.5]]
    end = run(KEY, IN_TURN, mab.recorded(ragged), max_rounds=50)
    assert (end.status, end.pulls, end.rounds) == (Status.EXHAUSTED, 5, 5)
    np.testing.assert_array_equal(end.memory, [3, 2])
    results = jaxbandits.sweep(
        lambda task, key: (IN_TURN, mab.recorded(ragged)), seeds=5, key=KEY, max_rounds=50, progress=False, lanes=2
    )
    assert (results.columns["status"] == Status.EXHAUSTED).all()
    assert (results.columns["pulls"] == 5).all()
    summary = results.summary()
    assert (summary["censored"], summary["failed"], summary["finished"]) == (5, 0, 0)


def test_a_run_that_stops_in_time_is_not_exhausted():
    rewards = np.stack([np.full(400, 1.0), np.zeros(400)], axis=1)
    algorithm = mab.successive_elimination(mab.Gaussian(2), delta=0.1)
    end = run(KEY, algorithm, mab.recorded(rewards), max_rounds=800)
    assert (end.status, end.answer) == (Status.STOPPED, 0)
    testing.check(algorithm, mab.recorded(rewards), key=KEY, rounds=800)


def test_leaps_pay_the_sum_of_the_next_rewards():
    rewards = np.random.default_rng(0).normal([1.0, 0.0, 0.5], size=(60, 3))
    counts, sums = {}, {}
    for leap in (1, 60):
        algorithm = mab.successive_rejects(mab.Gaussian(3), horizon=60, leap=leap)
        state = run(KEY, algorithm, mab.recorded(rewards, algorithm), max_rounds=90).state
        counts[leap], sums[leap] = state.counts, state.sums
    np.testing.assert_array_equal(counts[1], counts[60])
    np.testing.assert_allclose(sums[1], sums[60], rtol=1e-12)
    np.testing.assert_allclose(sums[60], [rewards[:n, k].sum() for k, n in enumerate(counts[60])])


def test_bootstrap_draws_every_reward_equally_often():
    """Chi-square test over 6000 draws; false alarm 1e-6."""
    sums, _ = sums_of(IN_TURN, mab.recorded(COLUMNS, order="bootstrap"), 12_000)
    for arm in (0, 1):
        values, counts = np.unique(sums[arm::2, 0], return_counts=True)
        np.testing.assert_array_equal(values, COLUMNS[arm])
        assert stats.chisquare(counts).pvalue > 1e-6


def test_rules_for_coins_refuse_other_rewards_at_once():
    end = run(KEY, mab.ttucb(mab.Bernoulli(2), delta=0.1), mab.recorded(COLUMNS), max_rounds=9)
    assert end.status == Status.NONFINITE


@pytest.mark.parametrize("noise", ["uniform", "rademacher", lambda key: jax.random.laplace(key) / 2])
@pytest.mark.parametrize("stream", [None, jax.random.key(9)])
def test_noise_by_name_has_unit_scale(noise, stream):
    instance = mab.gaussian((5.0, -1.0), noise_scale=0.5)
    sums, _ = sums_of(IN_TURN, mab.environment(instance, noise=noise, stream=stream), 8000)
    z = (sums[:, 0] - np.tile([5.0, -1.0], 4000)) / 0.5
    scale = np.sqrt(0.5) if callable(noise) else 1.0
    assert abs(z.mean()) < 5 * scale / np.sqrt(8000)
    np.testing.assert_allclose(z.std(), scale, rtol=0.06)
    if noise == "rademacher":
        np.testing.assert_allclose(np.unique(z.round(9)), [-1, 1])
    if noise == "uniform":
        assert stats.kstest(z, stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)).cdf).pvalue > 1e-6


def test_noise_of_a_stream_belongs_to_the_pull():
    one, other = (
        sums_of(rule, mab.environment(mab.gaussian((1.0, 0.0)), noise="uniform", stream=KEY), 30)
        for rule in (IN_TURN, mab.ucb1(mab.Gaussian(2)))
    )
    for arm in (0, 1):
        first, second = (sums[actions.arms[:, 0] == arm, 0] for sums, actions in (one, other))
        n = min(len(first), len(second))
        assert n >= 3
        np.testing.assert_array_equal(first[:n], second[:n])


LEAPING = mab.successive_rejects(mab.Gaussian(2), horizon=60, leap=9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mab.recorded(np.array([[1.0, np.inf]])), "rewards must be finite, or NaN .* infinity of arm 1"),
        (lambda: mab.recorded([[1.0], []]), "rewards must have a reward of every arm, of arm 1 too"),
        (lambda: mab.recorded([[1.0, 2.0]]), "rewards must have a column for each of at least two arms, got 1"),
        (lambda: mab.recorded([["a"], [1.0]]), "rewards must be a table .* got entries that are no numbers"),
        (lambda: mab.recorded(np.zeros((2, 2, 2))), "rewards must be a table with a column for each arm"),
        (lambda: mab.recorded(TABLE, order="sorted"), "order must be one of 'in turn', 'bootstrap', got 'sorted'"),
        (
            lambda: mab.recorded(TABLE, LEAPING, order="bootstrap"),
            "order must be 'in turn' for an algorithm that leaps",
        ),
        (
            lambda: mab.environment(mab.gk1(), noise="uniform"),
            "noise must be None for leaps, and unless arms are Gaussian",
        ),
        (
            lambda: mab.environment(mab.gaussian((1.0, 0.0)), LEAPING, noise="uniform"),
            "noise must be None for leaps, and unless arms are Gaussian",
        ),
        (
            lambda: mab.environment(mab.gaussian((1.0, 0.0)), noise=lambda key: jnp.zeros(3)),
            r"noise must return a number, float \(\), for a key",
        ),
    ],
)
def test_bad_arguments_are_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
