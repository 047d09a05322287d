"""Rules that decide for many pulls at once: published pulls, whole batches, mean stopping times, bad input."""

from functools import partial

import jax
import numpy as np
import pytest

import jaxbandits
from experiments.bench.reference import batches as reference
from experiments.bench.reference import questions
from experiments.bench.reference.mab import Law, gk16
from jaxbandits import mab
from jaxbandits.mab._shared.batches import shared_out

LAW, MEANS = Law("gaussian", 1.0), (0.5, 0.25, 0.4, -0.1)


def shares(t, N, m):
    return questions.shares_of_pair(LAW, N, m, questions.largest(m, 2), share="ids", penalty=0.5)


@pytest.mark.parametrize(
    ("question", "allot", "pulls", "stop", "answer"),
    [
        (
            ("top", 2),
            reference.by_shares(shares),
            "012323232323232323232323111113111111111113110000020000000000",
            *(1584, [True, False, True, False]),
        ),
        (
            ("above", 0.2),
            reference.by_pull(questions.tas_above(LAW, ("above", 0.2))),
            "012333333301233330123333220122222222201222222222220122222222",
            *(4444, [True, True, True, False]),
        ),
    ],
)
def test_the_numpy_programs_of_batches_reproduce_published_pulls(question, allot, pulls, stop, answer):
    def test(t, N, m):
        is_over = questions.nearest(LAW, question, N, m).cost > gk16(t, 0.05)
        return is_over, questions.answer_of(LAW, question, N, m)

    made, _, given = reference.run(questions.rewards(LAW, MEANS, 4000), test, allot, every=20, batches=1000)
    arms = [arm for batch in made for arm in batch]
    assert ("".join(map(str, arms))[:60], len(arms), given) == (pulls, stop, answer)


def test_shared_pulls_leave_no_debt():
    """Shares of several arms, batch after batch: the sum of what is owed stays 0, and nobody is owed two pulls."""
    rng = np.random.default_rng(0)
    allot = jax.jit(partial(shared_out, pulls=37))
    owed, total, promised = np.zeros(5), np.zeros(5, int), np.zeros(5)
    for _ in range(50):
        weights = rng.exponential(size=5) * (rng.random(5) < 0.6)
        weights = weights / weights.sum() if weights.any() else np.eye(5)[0]
        times, owed = jax.device_get(allot(weights, owed=owed))
        total, promised = total + times, promised + 37 * weights
        assert times.sum() == 37
        assert not np.any(times[weights == 0])
        np.testing.assert_allclose([owed.sum(), np.abs(owed - promised + total).max()], 0, atol=1e-10)
    assert np.abs(owed).max() < 2


POISSON = mab.poisson((3.0, 2.0, 1.0))
ST2 = partial(mab.st2, epsilon=0.3)
WHOLE = {  # an instance, a rule, pulls per batch
    "eb_tc, bernoulli": (mab.bernoulli((0.9, 0.7, 0.5)), mab.eb_tc, 500),
    "tas, bounded": (mab.bounded((0.9, 0.5, 0.1)), mab.tas, 7),
}
WHOLE_WIDE = {
    "t3c, poisson": (POISSON, partial(mab.t3c, leader_share="ids"), 20),
    "ttts, gaussian": (mab.gaussian((0.9, 0.5, 0.1)), mab.ttts, 30),
    "ttucb, exponential": (mab.exponential((3.0, 2.0, 1.0)), mab.ttucb, 9),
    "lucb, gaussian": (mab.gaussian((0.9, 0.5, 0.1)), mab.lucb, 9),
    "ugape, poisson": (POISSON, mab.ugape, 40),
    "uniform, bounded": (mab.bounded((0.9, 0.5, 0.1)), mab.uniform, 10),
    "st2, gaussian": (mab.gaussian((0.9, 0.8, 0.1)), ST2, 30),
    "lucb_g, bernoulli": (mab.bernoulli((0.9, 0.5, 0.1)), partial(mab.lucb_g, level=0.3, all_arms=True), 50),
}


@pytest.mark.parametrize("name", [*WHOLE, *(pytest.param(name, marks=[pytest.mark.wide]) for name in WHOLE_WIDE)])
def test_runs_in_batches_end_with_whole_batches(name):
    """Also where samplers miss and where a round makes one pull of an arm at most; what is owed sums to 0."""
    instance, factory, every = (WHOLE | WHOLE_WIDE)[name]
    algorithm = factory(instance.problem, delta=0.1, every=every)
    environment = mab.environment(instance, algorithm)

    def one(key):
        end = jaxbandits.run(key, algorithm, environment, max_rounds=10**5)
        return end.status, end.pulls, end.state.counts, end.state.memory

    status, pulls, counts, memory = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), 40))
    assert np.all(status == jaxbandits.Status.STOPPED)
    assert not np.any((np.asarray(pulls) - 3) % every)
    assert np.all(pulls == np.sum(counts, axis=1))
    assert not np.any(memory.due)
    np.testing.assert_allclose(np.sum(memory.owed, axis=1), 0, atol=1e-9)


SIX = (0.9, 0.75, 0.4, 0.3, 0.2, 0.1)
# Mean pulls with every = 10 and 100, and their standard errors, from an independent float64 program; delta = .1, gk16.
PULLS = {
    "uniform": (partial(mab.uniform, question=mab.TopM(2)), (878.8, 15.8), (983.2, 16.2)),
    "eb_tci": (partial(mab.eb_tci, question=mab.TopM(2), leader_share="ids"), (466.6, 7.4), (730.5, 7.0)),
    "lucb": (partial(mab.lucb, question=mab.TopM(2)), (837.3, 10.1), (1047.5, 9.8)),
    "tas": (partial(mab.tas, question=mab.Above(0.5)), (1420.9, 21.0), (1784.5, 22.3)),
}


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("rule", PULLS)
@pytest.mark.parametrize("every", [10, 100])
def test_mean_stopping_times_of_batches(rule, every):
    """1000 runs, four standard errors of the difference: false alarm 6e-5 each."""
    factory, ten, hundred = PULLS[rule]
    mean, error = ten if every == 10 else hundred
    instance = mab.gaussian(SIX)
    algorithm = factory(instance.problem, delta=0.1, every=every)
    environment = mab.environment(instance, algorithm)
    settings = {"seeds": 1000, "key": jax.random.key(0), "max_rounds": 10**5, "progress": False}
    results = jaxbandits.sweep(lambda task, key: (algorithm, environment), **settings)
    pulls = results["pulls"]
    assert not np.any((pulls - 6) % every)
    assert abs(np.mean(pulls) - mean) < 4 * np.hypot(error, np.std(pulls) / 1000**0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mab.eb_tci(mab.Gaussian(3), delta=0.1, every=0), "every must be an integer of at least 1, got 0"),
        (lambda: mab.hdoc(mab.Bernoulli(3), level=0.5, delta=0.1, every=-2), "every must be an integer"),
        (lambda: mab.tas(mab.Gaussian(3), delta=0.1, every=2, replan_every=2), "replan_every must be 1 with every > 1"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_rules_of_fixed_budget_have_no_batches():
    with pytest.raises(TypeError, match="every"):
        mab.apt(mab.Gaussian(3), level=0.5, horizon=50, every=2)
