"""Errors and tails by weights against plain runs, where plain runs reach, and at full size.

Estimates are held within 4 standard errors of plain frequencies, false alarm below 1e-4 each.
"""

import jax
import numpy as np
import pytest
from rare.builds import lingape, rejects, rule, wrong_at_once
from scipy import stats

from jaxbandits import Status, cpe, fullbandit, linear, mab, rare, sweep
from jaxbandits.numerics import thresholds

pytestmark = pytest.mark.slow
KEY = jax.random.key(11)
QUIET = {"progress": False}
# These cases need fewer runs than the default, and rounds of one size share a program with the estimate.
SETTINGS = {"key": KEY, "rounds": (1024,) * 4} | QUIET


def plain(build, instance, runs, max_rounds, **more):
    """Columns of plain runs on the instance itself."""
    return sweep(
        lambda task, key: build(instance, key),
        seeds=runs,
        key=jax.random.key(12),
        max_rounds=max_rounds,
        **QUIET,
        **more,
    ).columns


def agree(result, events, runs):
    """True if the estimate and a plain frequency are within 4 standard errors of their difference."""
    rate = events / runs
    return abs(result.estimate - rate) < 4 * np.hypot(result.se, np.sqrt(max(rate, result.estimate) / runs))


@pytest.mark.parametrize(
    ("factory", "means", "delta"),
    [
        pytest.param(mab.t3c, (0.2, 1.0, 0.5), 0.1, marks=pytest.mark.thorough),
        (mab.tas, (0.6, 0.0, 1.0), 0.1),
    ],
)
def test_error_of_a_rule_agrees_with_plain_runs(factory, means, delta):
    instance, build, runs = mab.gaussian(means), rule(factory, delta), 50_000
    result = rare.error_probability(build, instance, max_rounds=500, relative_error=0.04, **SETTINGS)
    columns = plain(build, instance, runs, 500)
    wrong = (columns["status"] == Status.STOPPED) & (columns["answer"] != int(np.argmax(means)))
    assert agree(result, wrong.sum(), runs)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(mab.TopM(2), marks=pytest.mark.thorough),
        mab.GoodArm(0.8),
        pytest.param(mab.AllGood(0.45), marks=pytest.mark.thorough),
    ],
)
def test_error_of_an_answer_to_another_question_agrees_with_plain_runs(question):
    instance, runs = mab.gaussian((1.0, 0.7, 0.2, 0.0)), 50_000
    build = rule(mab.eb_tc, 0.2, question=question, leader_share="ids")
    result = rare.error_probability(build, instance, max_rounds=500, relative_error=0.05, **SETTINGS)
    columns = plain(build, instance, runs, 500)
    right = jax.vmap(lambda answer: mab.is_right(instance, answer, question=question))(columns["answer"])
    assert agree(result, ((columns["status"] == Status.STOPPED) & ~np.asarray(right)).sum(), runs)


@pytest.mark.parametrize("question", [pytest.param(linear.TopM(2), marks=pytest.mark.thorough), linear.Above(0.25)])
def test_error_of_an_answer_to_another_linear_question_agrees_with_plain_runs(question):
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    instance, runs = linear.Instance(arms, np.array([1.0, 0.0]), np.array(1.0)), 50_000
    build = glr(0.2, question)
    result = rare.error_probability(build, instance, max_rounds=500, relative_error=0.05, **SETTINGS)
    columns = plain(build, instance, runs, 500)
    right = jax.vmap(lambda answer: linear.is_right(instance, answer, question=question))(columns["answer"])
    assert agree(result, ((columns["status"] == Status.STOPPED) & ~np.asarray(right)).sum(), runs)


@pytest.mark.thorough
@pytest.mark.parametrize("factory", [mab.ttucb, mab.eb_tci, mab.lucb])
def test_early_errors_agree_with_many_plain_runs(factory):
    build, runs = rule(factory, 0.1), 400_000
    result = rare.error_probability(build, mab.gauss4(), max_rounds=64, relative_error=0.03, **SETTINGS)
    columns = plain(build, mab.gauss4(), runs, 64)
    assert agree(result, ((columns["status"] == Status.STOPPED) & (columns["answer"] != 0)).sum(), runs)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("instance", "factory", "delta"),
    [
        (mab.bernoulli((0.7, 0.4, 0.5)), mab.kl_lucb, 0.3),
        (mab.poisson((2.0, 1.0, 0.7)), mab.ttucb, 0.3),
        (mab.exponential((2.0, 1.0, 0.7)), mab.ttucb, 0.3),
    ],
)
def test_error_of_other_laws_agrees_with_plain_runs(instance, factory, delta):
    build, runs = rule(factory, delta), 50_000
    result = rare.error_probability(build, instance, max_rounds=500, relative_error=0.05, **SETTINGS)
    columns = plain(build, instance, runs, 500)
    assert agree(result, ((columns["status"] == Status.STOPPED) & (columns["answer"] != 0)).sum(), runs)


def test_stops_after_one_pull_of_each_arm_are_exact_for_every_answer():
    delta = 1e-6
    build, means = rule(mab.ttucb, delta), np.array([1.0, 0.85, 0.8, 0.7])
    result = rare.error_probability(build, mab.gauss4(), max_rounds=200, **SETTINGS)
    for answer, exact in wrong_at_once(means, delta).items():
        part = result.part((result.events.answers == answer) & (result.events.pulls == 4))
        assert abs(part.estimate - exact) < 4 * part.se, answer


@pytest.mark.thorough
@pytest.mark.parametrize(("gap", "n"), [(0.5, 399), (0.25, 1599), (1.0, 99)])
def test_error_of_two_arms_equals_the_exact_value(gap, n):
    result = rare.error_probability(rejects(2 * n), mab.gaussian((gap, 0.0)), max_rounds=10**5, **SETTINGS)
    exact = stats.norm.cdf(-gap / np.sqrt((1 / result.events.counts[0]).sum()))
    assert abs(result.estimate - exact) < 4 * result.se


@pytest.mark.thorough
def test_permuted_arms_permute_the_parts():
    means, order = np.array([1.0, 0.7, 0.5]), [2, 0, 1]
    settings = SETTINGS | {"max_rounds": 2000, "relative_error": 0.05}
    first = rare.error_probability(rule(mab.ttucb, 0.05), mab.gaussian(means), **settings)
    second = rare.error_probability(rule(mab.ttucb, 0.05), mab.gaussian(means[order]), **settings)
    for answer in (1, 2):
        a = first.part(first.events.answers == answer)
        b = second.part(second.events.answers == order.index(answer))
        assert abs(a.estimate - b.estimate) < 4 * np.hypot(a.se, b.se)


@pytest.mark.thorough
def test_tail_agrees_with_plain_runs_and_with_splitting():
    instance, build, runs = mab.gaussian((1.0, 0.6, 0.5)), rule(mab.ttucb, 0.1), 100_000
    result = rare.tail_probability(build, instance, pulls=600, relative_error=0.04, **SETTINGS)
    columns = plain(build, instance, runs, None, horizon=600)
    assert agree(result, (columns["status"] != Status.STOPPED).sum(), runs)
    late = rare.splitting(build, instance, times=(200, 400, 600), key=KEY)
    assert abs(late.estimate - result.estimate) < 4 * np.hypot(late.se[-1], result.se)


def test_tail_of_starved_arms_that_recover_agrees_with_plain_runs():
    """Late runs of Track-and-Stop often have the right answer: the best arm was starved first, and recovered."""
    instance, build, runs = mab.gaussian((0.0, 1.0, 0.6)), rule(mab.tas, 0.1), 100_000
    result = rare.tail_probability(build, instance, pulls=500, relative_error=0.05, **SETTINGS)
    columns = plain(build, instance, runs, None, horizon=500)
    is_late = columns["status"] != Status.STOPPED
    assert agree(result, is_late.sum(), runs)
    for answer in (0, 1, 2):
        part = result.part(result.events.answers == answer)
        assert agree(part, (is_late & (columns["answer"] == answer)).sum(), runs)


@pytest.mark.thorough
def test_tail_of_a_rule_that_pulls_in_batches_agrees_with_plain_runs():
    """A batch may begin among an arm's first pulls and end after them: all of it belongs to the first.

    A run may stop at the end of the batch in which it makes its 500th pull: it has lasted longer.
    """
    instance, runs = mab.gaussian((0.0, 1.0, 0.6)), 100_000
    build = rule(mab.tas, 0.1, every=25)
    result = rare.tail_probability(build, instance, pulls=500, relative_error=0.05, **SETTINGS)
    columns = plain(build, instance, runs, None, horizon=500)
    assert agree(result, (columns["pulls"] > 500).sum(), runs)


def glr(delta, question=None):
    def build(instance, key):
        stop = linear.likelihood_ratio(thresholds.gk16(arms=3), delta=delta)
        algorithm = linear.lingape_glr(instance.arms, stop=stop, noise_scale=instance.noise_scale, question=question)
        return algorithm, linear.environment(instance, algorithm)

    return build


def test_error_of_a_linear_rule_agrees_with_plain_runs():
    # A gap at which plain runs see errors.
    instance = linear.Instance(np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]]), np.array([1.0, 0.3]), np.array(1.0))
    result = rare.error_probability(glr(0.1), instance, max_rounds=500, relative_error=0.04, **SETTINGS)
    columns = plain(glr(0.1), instance, 50_000, 500)
    wrong = (columns["status"] == Status.STOPPED) & (columns["answer"] != int(np.argmax([1.0, 0.3, 0.98])))
    assert agree(result, wrong.sum(), 50_000)


def over_confident_sums(instance, key):
    """Is told a quarter of the noise, so that plain runs see errors."""
    design = fullbandit.make_design(fullbandit.all_superarms(4, 2), 2)
    algorithm = fullbandit.icb(design, delta=0.1, epsilon=0.1, noise_scale=instance.noise_scale / 4)
    return algorithm, fullbandit.environment(instance, algorithm)


def over_confident_decisions(instance, key):
    """Has intervals of a quarter of the proved width."""
    algorithm = cpe.clucb(instance.problem, delta=0.1, radius=cpe.Chen(0.5 / 4))
    return algorithm, cpe.environment(instance, algorithm)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("build", "instance"),
    [
        (over_confident_sums, fullbandit.Instance(np.array([1.0, 0.8, 0.3, 0.0]), 2, np.float64(1.0))),
        (over_confident_decisions, cpe.instance(cpe.top_k(4, 2), cpe.bernoulli(np.array([0.8, 0.7, 0.5, 0.4])))),
    ],
)
def test_error_of_sets_of_arms_agrees_with_plain_runs(build, instance):
    result = rare.error_probability(build, instance, max_rounds=5000, relative_error=0.05, **SETTINGS)
    columns = plain(build, instance, 20_000, 5000)
    wrong = (columns["answer"].astype(bool) != np.array([True, True, False, False])).any(axis=1)
    assert agree(result, (wrong & (columns["status"] == Status.STOPPED)).sum(), 20_000)


@pytest.mark.thorough
def test_a_linear_rule_that_leaps_has_the_error_of_one_that_does_not():
    instance = linear.soare(2, omega=0.5)
    settings = {"max_rounds": 20_000} | SETTINGS
    each = [rare.error_probability(lingape(0.1, leap), instance, **settings) for leap in (1, 16)]
    assert abs(each[0].estimate - each[1].estimate) < 4 * np.hypot(each[0].se, each[1].se)


@pytest.mark.thorough
def test_intervals_of_a_learnt_mixture_cover():
    """200 repetitions of 512 runs, by one mixture that was learnt once, against a precise estimate."""
    instance, build = mab.gaussian((1.0, 0.5, 0.3)), rule(mab.ttucb, 0.1)
    settings = {"max_rounds": 2000} | QUIET
    truth = rare.error_probability(build, instance, key=KEY, relative_error=0.02, most_runs=50_000, **settings)
    runs = 200 * 512
    many = rare.error_probability(
        build, instance, key=jax.random.key(3), alternatives=truth.mixture, most_runs=runs,
        relative_error=1e-9, rounds=(1024,), **settings,
    )  # fmt: skip
    size = many.runs // 200
    # All runs, of which most have no weight, dealt out by chance.
    weights = np.concatenate([many.events.weights, np.zeros(many.runs - many.events.weights.size)])
    groups = np.random.default_rng(0).permutation(weights)[: 200 * size].reshape(200, size)
    total, se = groups.mean(axis=1), groups.std(axis=1) / np.sqrt(size)
    covered = np.abs(total - truth.estimate) < 1.96 * np.hypot(se, truth.se)
    assert 0.90 <= covered.mean() <= 0.98
