"""Changing, late, batched and corrupted feedback, against what a plain loop over the same rewards does."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandits
from jaxbandits import (
    Algorithm,
    Decision,
    Environment,
    cpe,
    feedback,
    kcenter,
    linear,
    mab,
    memoryless,
    run,
    testing,
    trace,
)
from jaxbandits.numerics import thresholds

KEY, ROUNDS = jax.random.key(3), 60
FIRST, SECOND, THIRD = (mab.gaussian(means) for means in ((1.0, 0.0, 0.5), (0.0, 1.0, 0.5), (3.0, 2.0, 4.0)))
PROBLEM = FIRST.problem
RULES = {
    "ucb1": mab.ucb1(PROBLEM),
    "uniform": mab.uniform(PROBLEM, delta=1e-9),
    "thompson": mab.thompson(PROBLEM),
    "elimination": mab.successive_elimination(PROBLEM, delta=0.1),
}


def taped(algorithm, environment, rounds=ROUNDS, watch=None):
    return jax.device_get(jax.jit(lambda: trace(KEY, algorithm, environment, rounds=rounds, watch=watch))())


def entry(tree, i):
    return jax.tree.map(lambda x: x[i], tree)


# Rewards that change


def test_each_segment_is_answered_by_its_environment():
    """The rule's pulls do not depend on rewards, so its tape is cut together from three."""
    plain = [taped(RULES["uniform"], mab.environment(each)).observations.sums for each in (FIRST, SECOND, THIRD)]
    environment = feedback.changing([mab.environment(each) for each in (FIRST, SECOND, THIRD)], at=[20, 45])
    sums = taped(RULES["uniform"], environment).observations.sums
    np.testing.assert_array_equal(sums, np.concatenate([plain[0][:20], plain[1][20:45], plain[2][45:]]))


def test_environments_share_one_stream():
    """The n-th pull of an arm has the same noise, whichever environment pays it."""
    pair = [mab.environment(each, stream=KEY) for each in (FIRST, SECOND)]
    noise = taped(RULES["uniform"], feedback.changing(pair, at=[31])).observations.sums
    plain = taped(RULES["uniform"], pair[0])
    arms = plain.actions.arms
    shift = np.where(np.arange(ROUNDS)[:, None] >= 31, np.array([-1.0, 1.0, 0.0])[arms], 0)
    np.testing.assert_allclose(noise, plain.observations.sums + shift, atol=1e-12)


def test_moments_of_change_may_be_traced():
    def rewards(moment):
        environment = feedback.changing([mab.environment(FIRST), mab.environment(SECOND)], at=moment[None])
        return trace(KEY, RULES["uniform"], environment, rounds=ROUNDS).observations.sums

    together = jax.jit(jax.vmap(rewards))(jnp.asarray([10, 30]))
    np.testing.assert_array_equal(together[0, :10], together[1, :10])
    np.testing.assert_array_equal(together[0, 30:], together[1, 30:])
    assert (together[0, 10:30:3] != together[1, 10:30:3]).all()


def test_drift_shifts_every_reward_by_the_pulls_before_it():
    def climbing(pulls):
        return mab.environment(mab.gaussian(FIRST.means + pulls.astype(float) / 8))

    drifts = taped(RULES["uniform"], feedback.drifting(climbing)).observations.sums
    plain = taped(RULES["uniform"], mab.environment(FIRST)).observations.sums
    np.testing.assert_allclose(drifts, plain + np.arange(ROUNDS)[:, None] / 8, atol=1e-12)


# Late rewards


def folded(algorithm, actions, observations, number):
    """Returns the state after the first observations, in order."""
    state = algorithm.init(jaxbandits.engine.streams(KEY).init)
    for i in range(number):
        state = algorithm.observe(state, entry(actions, i), entry(observations, i))
    return state


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("delay", [0, 3])
def test_state_of_a_round_holds_the_observations_made_a_delay_earlier(rule, delay):
    algorithm = RULES[rule]
    late_algorithm, environment = feedback.delayed(algorithm, mab.environment(FIRST), delay=delay)
    tape = taped(late_algorithm, environment, watch=lambda state: state)
    r, late = 20, tape.observations
    for i in range(delay, ROUNDS):
        assert late.arrives[i].all()
        jax.tree.map(np.testing.assert_array_equal, entry(late.actions, (i, 0)), entry(tape.actions, i - delay))
    observations = jax.tree.map(lambda x: x[delay:, 0], late.observations)
    expected = folded(algorithm, tape.actions, observations, r - delay)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-12), entry(tape.watched.inner, r), expected)
    assert tape.watched.pulls[r] == r


def test_no_delay_is_the_same_run():
    for rule in ("thompson", "elimination"):
        plain, late = (
            run(KEY, *pair, max_rounds=500, horizon=400)
            for pair in (
                (RULES[rule], mab.environment(FIRST)),
                feedback.delayed(RULES[rule], mab.environment(FIRST), delay=0),
            )
        )
        jax.tree.map(np.testing.assert_array_equal, late.state.inner, plain.state)
        assert late.memory.missing == 0


class Numbers(NamedTuple):
    pulls: jax.Array
    order: jax.Array  # int32 (ROUNDS,)   round in which each number was observed; -1: it was not
    clock: jax.Array  # int32 ()   observations so far


def numbering(rounds):
    """Sends the number of its round, and notes the order in which the numbers come back."""
    never = jnp.full(rounds, -1, jnp.int32)

    def observe(state, action, echo):
        comes = (action > 0).astype(jnp.int32)
        order = jnp.where((jnp.arange(rounds, dtype=jnp.int32) == echo - 1) & (comes > 0), state.clock, state.order)
        return Numbers(state.pulls + comes.astype(int), order, state.clock + comes)

    zero = jnp.zeros((), jnp.int32)
    return Algorithm(
        lambda key: Numbers(jnp.zeros((), int), never, zero),
        lambda key, state: Decision(zero + 1, jnp.zeros((), bool), zero),
        observe,
        zero,
    )


def echo(memory, action, noise):
    number = memory + action
    return number * action, number


ECHO = Environment(lambda key: jnp.zeros((), jnp.int32), lambda key: (), echo, pulls=lambda action: action)


def test_geometric_delays_have_their_law_and_order():
    """Delays of 3000 observations, by a chi-square test; false alarm 1e-6."""
    rounds, law = 3000, feedback.Geometric(mean=2.0, most=6)
    algorithm, environment = feedback.delayed(numbering(rounds), ECHO, delay=law)
    tape = taped(algorithm, environment, rounds=rounds)
    late = tape.observations
    arrived = [late.observations[r][late.arrives[r]] - 1 for r in range(rounds)]
    assert all((np.diff(numbers) > 0).all() for numbers in arrived)  # the oldest first
    numbers = np.concatenate(arrived)
    assert len(np.unique(numbers)) == len(numbers)
    delays = np.repeat(np.arange(rounds), [len(each) for each in arrived]) - numbers
    chances = 1 / 3 * (2 / 3) ** np.arange(7)
    sent = np.arange(rounds - 6)
    counted = np.bincount(delays[numbers < rounds - 6], minlength=7)
    lost = len(sent) - counted.sum()
    expected = len(sent) * np.append(chances, 1 - chances.sum())
    assert stats.chisquare(np.append(counted, lost), expected).pvalue > 1e-6
    end = jax.jit(lambda: run(KEY, algorithm, environment, max_rounds=rounds))()
    assert end.memory.missing == rounds - len(numbers) == end.state.pulls - end.state.inner.pulls


def test_results_count_what_never_arrived():
    def build(task, key):
        return feedback.delayed(RULES["ucb1"], mab.environment(FIRST), delay=feedback.Geometric(task["mean"], 9))

    results = jaxbandits.sweep(
        build, {"mean": np.array([0.0, 5.0])}, seeds=4, key=KEY, horizon=200, progress=False, lanes=4, chunk=16
    )
    missing = results.columns["missing"].reshape(2, 4)
    assert (missing[0] == 0).all()
    # A share (5/6)^10 = .16 of the observations never arrives; at the end a few more are on the way.
    assert (missing[1] > 10).all()
    assert (missing[1] < 80).all()
    assert (results.columns["pulls"] == 200).all()


# Batches


@pytest.mark.parametrize("rule", ["ucb1", "thompson"])
def test_decisions_of_a_batch_see_the_batches_before(rule):
    algorithm, size, r = RULES[rule], 7, 24
    tape = taped(feedback.batched(algorithm, size), mab.environment(FIRST), watch=lambda state: state)
    shown = folded(algorithm, tape.actions, tape.observations, r // size * size)
    latest = folded(algorithm, tape.actions, tape.observations, r)
    for ours, theirs in ((tape.watched.shown, shown), (tape.watched.latest, latest)):
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-12), entry(ours, r), theirs)
    arms = tape.actions.arms[: 8 * size].reshape(8, size)
    assert (np.ptp(arms, axis=1) == 0).all() == (rule == "ucb1")


def test_batches_of_one_are_the_same_run():
    plain, single = (
        run(KEY, each, mab.environment(FIRST), max_rounds=500)
        for each in (RULES["elimination"], feedback.batched(RULES["elimination"], 1))
    )
    assert (single.pulls, single.answer) == (plain.pulls, plain.answer)
    jax.tree.map(np.testing.assert_array_equal, single.state.shown, plain.state)


# Corruption


def lowered(pull, rewards):
    return rewards._replace(sums=rewards.sums - jnp.where(pull.arms == 0, 1.5, 0.0))


def test_corruption_stays_within_its_budget():
    plain = taped(RULES["uniform"], mab.environment(FIRST)).observations.sums
    for budget, total in ((0.0, 0.0), (7.0, 6.0), (np.inf, 30.0)):
        environment = feedback.corrupted(mab.environment(FIRST), budget=budget, attack=lowered)
        change = plain - taped(RULES["uniform"], environment).observations.sums
        spent = run(KEY, RULES["uniform"], environment, max_rounds=ROUNDS).memory.spent
        np.testing.assert_allclose(np.abs(change).sum(), spent, atol=1e-9)
        assert spent == total
        np.testing.assert_allclose(np.unique(change.round(9)), [0.0, 1.5] if budget else [0.0])


def test_corruption_leaves_idle_rounds_alone():
    environment = feedback.corrupted(
        mab.environment(FIRST), budget=9.0, attack=lambda pull, rewards: rewards._replace(sums=rewards.sums + 1)
    )
    testing.check(RULES["elimination"], environment, key=KEY, rounds=5000)


# Together


@pytest.mark.parametrize("rule", ["elimination", "thompson"])
def test_wrappers_compose_and_keep_the_contract(rule):
    environment = feedback.changing([mab.environment(FIRST), mab.environment(SECOND)], at=[50])
    environment = feedback.corrupted(environment, budget=5.0, attack=lowered)
    pair = feedback.delayed(feedback.batched(RULES[rule], 4), environment, delay=feedback.Geometric(1.0, 3))
    with pytest.warns(UserWarning, match="did not stop") if rule == "thompson" else np.errstate():
        testing.check(*pair, key=KEY, rounds=1500 if rule == "elimination" else 60)


SILENT = memoryless(lambda key: (), lambda action, noise: action)
HERE, THERE = mab.environment(FIRST), mab.environment(SECOND)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: feedback.changing([HERE], at=[]), "environments must hold at least two, got 1"),
        (lambda: feedback.changing([HERE, THERE, HERE], at=[30, 30]), "at must increase"),
        (lambda: feedback.changing([HERE, THERE], at=[0]), "at must be at least 1, got"),
        (
            lambda: feedback.changing([HERE, mab.environment(mab.gk1())], at=[5]),
            r"environments\[1\] must have the same arms as the first environment, got 4 in this one and 3 in the first",
        ),
        (
            lambda: feedback.changing([HERE, mab.environment(SECOND, stream=KEY)], at=[5]),
            r"environments\[1\] must have a memory like the first one",
        ),
        (lambda: feedback.changing([HERE, SILENT], at=[5]), r"environments\[1\] must say how many pulls"),
        (lambda: feedback.drifting(lambda pulls: SILENT), "make must say how many pulls an action makes"),
        (lambda: feedback.delayed(RULES["ucb1"], HERE, delay=-1), "delay must be an integer of at least 0, got -1"),
        (
            lambda: feedback.delayed(RULES["ucb1"], HERE, delay=feedback.Geometric(-1.0, 3)),
            r"delay\.mean must be at least 0, got -1\.0",
        ),
        (
            lambda: feedback.delayed(mab.ttucb(PROBLEM, delta=0.1), HERE, delay=1),
            "algorithm must take observations that come after other decisions",
        ),
        (
            lambda: feedback.batched(mab.exp3(mab.Bernoulli(3), gamma=0.1), 4),
            "algorithm must take observations that come after other decisions",
        ),
        (lambda: feedback.batched(RULES["ucb1"], 0), "size must be an integer of at least 1, got 0"),
        (
            lambda: feedback.corrupted(HERE, budget=np.nan, attack=lowered),
            "budget must be at least 0, got nan",
        ),
        (
            lambda: run(
                KEY, RULES["ucb1"], feedback.corrupted(HERE, budget=1, attack=lambda a, r: r.sums), max_rounds=3
            ),
            "attack must return an observation like Rewards",
        ),
    ],
)
def test_bad_arguments_are_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_rules_that_learn_from_the_deciding_state_are_marked():
    """Their observe reads more than the action: a leader, a probability, a learner or a query that it has planned."""
    arms = np.eye(3)
    stop = linear.likelihood_ratio(thresholds.gk16(arms=3), delta=0.1)
    points = kcenter.dimension_instance(kcenter.contrast_rows(5, 40, seed=0), k=3).problem
    marked = [
        mab.ttucb(PROBLEM, delta=0.1),
        mab.exp3_ix(mab.Bernoulli(3), eta=0.1, gamma=0.05),
        linear.lingame(arms, stop=stop),
        kcenter.ds_ucb(points, delta=0.1),
        cpe.combgame(cpe.best5().problem, delta=0.1),
    ]
    free = [*RULES.values(), linear.lingape(arms, delta=0.1), linear.lingape_glr(arms, stop=stop)]
    assert all(algorithm.needs_order for algorithm in marked)
    assert not any(algorithm.needs_order for algorithm in free)
