"""Rules of their own for other questions than the best arm: published pulls, error rates, bad input."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits
from experiments.bench.reference import good_arms
from experiments.bench.reference import questions as reference
from experiments.bench.reference.mab import Law, by_index
from jaxbandits import mab
from jaxbandits.mab._problem.problems import divergence
from jaxbandits.mab._shared.accepts import leaving
from jaxbandits.mab._shared.good_arm_tracking import costs_of_best, lowered

G, B = (Law("gaussian", 1.0), (0.5, 0.25, 0.4, -0.1)), (Law("bernoulli", 0.5), (0.65, 0.4, 0.55, 0.3))


@pytest.mark.parametrize(
    ("arms", "index", "pulls"),
    [
        (G, reference.apt(0.2, 0.05), "012333222222222202333333113333300333333333333333333333333333"),
        (B, reference.apt(0.45, 0.05), "012310000000002223330002333111101333333333333333333333333333"),
        (G, reference.lsa(G[0], 0.2, 1.35), "012332012321233230032223321200233333003333333333333333333333"),
        (B, reference.lsa(B[0], 0.45, 1.35), "012310022330023011100023310300012333333333333333333333031333"),
    ],
)
def test_the_numpy_programs_of_thresholds_reproduce_published_pulls(arms, index, pulls):
    assert "".join(map(str, by_index(reference.rewards(*arms, 60), index, 60))) == pulls


@pytest.mark.parametrize(("arms", "order", "accepted"), [(G, [0, 1, 3], [0, 2]), (B, [1, 2, 3], [0, 2])])
def test_the_numpy_program_of_sar_reproduces_published_phases(arms, order, accepted):
    pulls, members, gone = reference.sar(reference.rewards(*arms, 60), 2, 60)
    assert [pulls.count(a) for a in gone] == [9, 12, 18]
    assert (gone, sorted(members)) == (order, accepted)


@pytest.mark.parametrize("number", [1, 2, 5])
def test_arms_that_leave_at_once_leave_as_one_after_the_other(number):
    """Means of few values, so that most of them tie, against the loop of the NumPy program."""
    K, m = 7, 3
    program = jax.jit(jax.vmap(lambda means, places, number: leaving_of(means, places, number)))
    rng = np.random.default_rng(0)
    means = rng.integers(0, 4, (300, K)) / 4
    ours, accepted = jax.device_get(program(means, np.full(300, m, np.int32), np.full(300, number, np.int32)))
    for lane, row in enumerate(means):
        order, places, first, last = sorted(range(K), key=lambda a: (-row[a], a)), m, [], []
        for _ in range(number):
            inside, outside = order[:places], order[places:]
            if inside and outside:
                worst, best = row[inside[-1]], row[outside[0]]
                gap = [row[a] - best for a in inside] + [worst - row[a] for a in outside]
                i = max(range(len(order)), key=lambda i: (gap[i], i))
            else:
                i = 0 if inside else len(order) - 1
            (first if i < places else last).append(order[i])
            places -= i < places
            order.pop(i)
        assert set(np.flatnonzero(ours[lane])) == {*first, *last}
        assert set(np.flatnonzero(accepted[lane])) == set(first)


def leaving_of(means, places, number):
    """Lets a number of all arms leave, by the ranks of their means."""
    arms = np.arange(means.shape[0])
    better = (means[None] > means[:, None]) | ((means[None] == means[:, None]) & (arms[None] < arms[:, None]))
    return leaving(means, np.ones(means.shape[0], bool), better.sum(axis=1, dtype=jnp.int32), places, number)


@pytest.mark.parametrize(
    ("arms", "level", "rule", "pulls", "stop"),
    [
        (G, 0.2, "hdoc", "012302030002332000100203220120003230013320000000002002333300", 662),
        (G, 0.2, "lucb_g", "012302030023320100023001220023032001330022000000203003333001", 788),
        (B, 0.45, "hdoc", "012302300222233322221233302232230021100000000000000000000000", 212),
    ],
)
def test_the_numpy_program_of_good_arms_reproduces_published_pulls(arms, level, rule, pulls, stop):
    course, good, _ = reference.good_arms(arms[0], reference.rewards(*arms, 600), rule, level, 0.05)
    assert ("".join(map(str, course[:60])), len(course), good) == (pulls, stop, [0])


STICKY = partial(good_arms.tas, sticky=True)
SIX = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


@pytest.mark.parametrize(
    ("arms", "level", "rule", "pulls", "stop", "answer"),
    [
        (G, 0.2, good_arms.apgai, "012300000000000000000200000000000000000000000000000000000000", 356, 0),
        (B, 0.45, good_arms.apgai, "012302300022222222222222222222223333333333333333333323332222", 331, 2),
        (G, 0.2, good_arms.tas, "012301230012300120300120300102032010302000103020001030200010", 461, 0),
        (B, 0.45, good_arms.tas, "012302310320120231220231220232122303213232010200300102003001", 179, 0),
        (G, 0.2, STICKY, "012301230012300120300120300102030010203000120300010020300010", 460, 0),
        (B, 0.45, STICKY, "012301230012300123001203001020300102030010203000102030000102", 164, 0),
    ],
)
def test_the_numpy_programs_of_one_good_arm_reproduce_published_pulls(arms, level, rule, pulls, stop, answer):
    law, question = arms[0], ("good", level)
    settings = {"delta": 0.05, "rounds": 600, "comparisons": 4, "limit": good_arms.box}
    course = reference.run(law, reference.rewards(*arms, 600), question, rule(law, question), **settings)
    assert "".join(str(each.arms[0]) for each in course[:60]) == pulls
    assert (len(course) - 1, course[-1].answer) == (stop, answer)


def test_chords_prove_the_intervals_of_st2():
    """The guarantee's sum over both sides and all octaves, for one of K = 4 delta arms, and its chord on one octave."""
    b, a_part = np.sqrt(2) - 1, 2 - np.sqrt(2)  # chord of sqrt(n) from n = 1 to 2: a + b n
    n = np.linspace(1, 2, 101)
    assert (np.sqrt(n) >= a_part + b * n - 1e-15).all()
    power = 2 * 4 * a_part * b  # exp(-2 a b), if the curve is 2 sqrt(n log(x))
    j = np.arange(1, 10**6)
    beyond = j[-1] ** (1 - power) / (power - 1)
    assert 2 * (np.sum((0.25 / j) ** power) + 0.25**power * beyond) <= 0.25


def test_the_numpy_program_of_st2_reproduces_published_pulls():
    course = good_arms.st2(G[0], reference.rewards(*G, 4000), 0.4, 0.1, rounds=5000)
    arms = "".join(str(arm) for each in course[:-1] for arm in each.arms)
    assert (arms[:60], len(arms)) == ("012302300100232300120232300200312100300322302303103103202302", 11775)
    assert (course[-1].stop, course[-1].answer) == (True, [True, True, True, False])


def tas_good(problem, level=0.5, **settings):
    return mab.tas(problem, question=mab.GoodArm(level), delta=0.1, **settings)


@pytest.mark.parametrize("problem", [mab.Gaussian(5), mab.Bernoulli(5), mab.Poisson(5), mab.Exponential(5)])
def test_costs_of_the_best_arm_are_the_smallest_on_a_grid(problem):
    """Costs of an arm that rises to x, with all means above x brought down to it, for x at least the level."""
    rng, level = np.random.default_rng(0), 0.45
    counts, means = rng.integers(1, 40, (20, 5)).astype(float), rng.uniform(0.05, 0.95, (20, 5))
    ours = jax.vmap(lambda N, m: costs_of_best(problem, mab.GoodArm(level), N, m))(counts, means)
    for N, m, costs in zip(counts, means, ours, strict=True):
        x = np.concatenate([np.linspace(level, 0.97, 4001), np.maximum(m, level)])[:, None]
        to = divergence(problem, jnp.asarray(m)[None], jnp.asarray(x))
        rises, falls = N * np.where(m < x, to, 0), N * np.where(m > x, to, 0)
        theirs = np.min(rises + falls.sum(axis=1, keepdims=True) + np.where(m > x, np.inf, 0), axis=0)
        assert np.all(costs <= theirs + 1e-12)
        np.testing.assert_allclose(costs, theirs, atol=1e-4)


def test_weights_are_lowered_by_one_amount():
    program = jax.jit(lowered)
    np.testing.assert_allclose(program(np.array([0.7, 0.3, 0.0]), 0.1), [0.65, 0.25, 0.1])
    np.testing.assert_allclose(program(np.array([0.8, 0.11, 0.09, 0.0]), 0.1), [0.7, 0.1, 0.1, 0.1])
    np.testing.assert_allclose(program(np.array([0.5, 0.3, 0.2]), 0.1), [0.5, 0.3, 0.2])
    rng, lanes = np.random.default_rng(0), jax.jit(jax.vmap(lowered))
    weights, least = rng.dirichlet(np.full(6, 0.3), 200), rng.uniform(0.01, 1 / 6, 200)
    theirs = [good_arms.at_least(w, e) for w, e in zip(weights, least, strict=True)]
    np.testing.assert_allclose(lanes(weights, least), theirs, atol=1e-14)


GOOD_ARMS = {  # mean pulls at each good arm, in turn, and at the stop: 1000 runs of an independent program
    "hdoc": (mab.hdoc, (229.5, 699.8, 5361), 9991),
    "lucb_g": (mab.lucb_g, (260.1, 767.3, 5573), 9991),
    "apt_g": (mab.apt_g, (6890, 7988, 9913), 9991),
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", GOOD_ARMS)
def test_pulls_at_each_good_arm(rule):
    """Means .1 to .6 and level .35: within 6 %, four standard errors of the difference where they are largest."""
    factory, at_each, at_stop = GOOD_ARMS[rule]
    instance = mab.bernoulli(SIX)
    algorithm = factory(instance.problem, level=0.35, delta=0.05, all_arms=True)
    environment = mab.environment(instance, algorithm)

    def pulls(task, outcome):
        good_at = jnp.where(outcome.answer, outcome.state.memory.good_at, 10**7)
        return {"good_at": jnp.sort(good_at)[:3], "wrong": ~jnp.all(outcome.answer == (instance.means > 0.35))}

    settings = {"key": jax.random.key(0), "max_rounds": 10**5, "metrics": pulls, "progress": False}
    results = jaxbandits.sweep(lambda task, key: (algorithm, environment), seeds=1000, **settings)
    assert np.mean(results["wrong"]) < 0.01
    np.testing.assert_allclose(np.mean(results["good_at"], axis=0), at_each, rtol=0.06)
    np.testing.assert_allclose(np.mean(results["pulls"]), at_stop, rtol=0.06)


def test_good_arms_are_all_labelled_at_one_pull_of_any_rule():
    """On one table of rewards the label of an arm depends on its own pulls alone."""
    tape = reference.rewards(B[0], B[1], 4000)
    stops = {rule: len(reference.good_arms(B[0], tape, rule, 0.47, 0.05, every=True)[0]) for rule in GOOD_ARMS}
    assert len(set(stops.values())) == 1


def test_sar_of_one_place_is_successive_rejects():
    instance = mab.gaussian([0.5, 0.25, 0.4, -0.1])
    first, other = mab.sar(instance.problem, m=1, horizon=60), mab.successive_rejects(instance.problem, horizon=60)

    @jax.jit
    def both(key):
        environments = [mab.environment(instance, algorithm) for algorithm in (first, other)]
        pairs = zip((first, other), environments, strict=True)
        return [jaxbandits.run(key, *pair, max_rounds=61) for pair in pairs]

    for seed in range(5):
        ours, theirs = both(jax.random.key(seed))
        assert list(np.asarray(ours.state.counts)) == list(np.asarray(theirs.state.counts))
        assert list(np.flatnonzero(ours.answer)) == [int(theirs.answer)]


TEN = (0.2, 0.25, 0.3, 0.35, 0.45, 0.55, 0.65, 0.7, 0.75, 0.8)


ERRORS = {  # share of runs with any wrong arm, at T = 500: 5000 runs of an independent program
    "apt, epsilon 0": (partial(mab.apt, epsilon=0.0), 0.11),
    "apt, epsilon .1": (partial(mab.apt, epsilon=0.1), 0.0014),
    "lsa, alpha 1.35": (mab.lsa, 0.0046),
    "lsa, alpha 20": (partial(mab.lsa, alpha=20.0), 0.0896),
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", ERRORS)
def test_error_rates_above_a_level(rule):
    """A band of .1 and 2000 runs: five standard errors of the difference; false alarm 3e-6."""
    (factory, theirs), instance = ERRORS[rule], mab.bernoulli(TEN)
    algorithm = factory(instance.problem, level=0.5, horizon=500)
    environment = mab.environment(instance, algorithm)

    def wrong(task, outcome):
        return {"wrong": ~mab.is_right(instance, outcome.answer, question=mab.Above(0.5), epsilon=0.1)}

    settings = {"key": jax.random.key(0), "max_rounds": 501, "metrics": wrong, "progress": False}
    results = jaxbandits.sweep(lambda task, key: (algorithm, environment), seeds=2000, **settings)
    rate = np.mean(results["wrong"])
    assert abs(rate - theirs) < 5 * np.sqrt(theirs * (1 - theirs) * (1 / 2000 + 1 / 5000))


OF_THREE = {  # error rates at T = 500 and 2000
    "sar": (mab.sar, (0.44085, 0.03005)),
    "sh_top_m": (mab.sh_top_m, (0.50475, 0.09765)),
    "sh_top_m, reuse": (partial(mab.sh_top_m, reuse=True), (0.4814, 0.0807)),
}


@pytest.mark.thorough
@pytest.mark.wide
@pytest.mark.parametrize(("rule", "leap", "seeds"), [("sar", 1, 1000), *((rule, 2000, 1500) for rule in OF_THREE)])
def test_error_rates_of_the_best_three(rule, leap, seeds):
    """Error rates against an independent program with 20,000 runs.

    Five standard errors of the difference; false alarm 3e-6.
    """
    (factory, published), instance = OF_THREE[rule], mab.bernoulli([0.6, 0.55, 0.5] + [0.4] * 7)

    def build(task, key):
        algorithm = factory(instance.problem, m=3, horizon=task["horizon"], leap=leap)
        return algorithm, mab.environment(instance, algorithm)

    def wrong(task, outcome):
        return {"wrong": ~mab.is_right(instance, outcome.answer, question=mab.TopM(3))}

    settings = {"key": jax.random.key(0), "max_rounds": 2001, "metrics": wrong, "progress": False}
    rates = jaxbandits.sweep(build, {"horizon": np.array([500, 2000])}, seeds=seeds, **settings).summary()["wrong_mean"]
    for rate, theirs in zip(rates, published, strict=True):
        assert abs(rate - theirs) < 5 * np.sqrt(theirs * (1 - theirs) * (1 / seeds + 1 / 20_000))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mab.apt(mab.Bernoulli(3), level=1.0, horizon=50), r"level must lie in \(0.0, 1.0\)"),
        (lambda: mab.apt(mab.Poisson(3), level=0.0, horizon=50), r"level must be positive"),
        (lambda: mab.hdoc(mab.Bernoulli(3), level=0.0, delta=0.1), r"level must lie in \(0.0, 1.0\)"),
        (lambda: mab.sar(mab.Gaussian(3), m=3, horizon=50), r"m must be an integer in \[1, 2\]"),
        (lambda: mab.sh_top_m(mab.Gaussian(5), m=2, horizon=9), r"horizon must be an integer in \[10,"),
        (lambda: mab.apt(mab.Gaussian(3), level=0.0, horizon=3), r"horizon must be an integer in \[4,"),
        (
            lambda: mab.tas(mab.Gaussian(3), delta=0.1, sticky=True),
            "sticky must be False unless the question is GoodArm",
        ),
        (lambda: tas_good(mab.Gaussian(3), tracking="D"), r"tracking must be None or \"C\" for GoodArm"),
        (lambda: tas_good(mab.Gaussian(3, None)), "problem must have a noise_scale, for GoodArm"),
        (lambda: tas_good(mab.Bernoulli(3), level=1.0), r"question.level must lie in \(0.0, 1.0\)"),
        (lambda: mab.st2(mab.Poisson(3), epsilon=0.1, delta=0.1), r"problem must have a sub-Gaussian constant \(eb_tc"),
        (lambda: mab.st2(mab.Gaussian(3, None), epsilon=0.1, delta=0.1), "problem must have a sub-Gaussian constant"),
        (lambda: mab.st2(mab.Bernoulli(3), epsilon=1.0, delta=0.1), r"epsilon must lie in \[0, 1\)"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
