"""Errors by weights: against exact values, part by part, and what is refused.

Rounds are small here, so that the folder takes seconds; estimates are held within 4 standard errors, false alarm below
1e-4 each. Seeds are fixed.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rare.builds import rejects, rule, wrong_at_once
from scipy import stats

from jaxbandits import cpe, feedback, fullbandit, kcenter, linear, mab, rare
from jaxbandits.rare._methods import diagnostics, phases

KEY = jax.random.key(0)
SMALL = {"rounds": (1024, 512, 512), "progress": False, "most_runs": 4096}
TWO = mab.gaussian((0.5, 0.0))


@cache
def two_arms(n, gap, noise_scale=1.0, best=0):
    means = np.array([gap, 0.0] if best == 0 else [0.0, gap])
    instance = mab.gaussian(means, noise_scale=noise_scale)
    return rare.error_probability(rejects(2 * n), instance, key=KEY, max_rounds=10**5, chunk=16, **SMALL)


@pytest.mark.parametrize(("n", "gap", "scale", "best"), [(49, 0.5, 1.0, 0), (49, 4.0, 2.0, 1)])
def test_error_of_two_arms_equals_the_exact_value(n, gap, scale, best):
    result = two_arms(n, gap, scale, best)
    pulls = result.events.counts.sum(axis=1)
    assert (pulls == result.events.pulls).all()
    each = result.events.counts[0]
    exact = stats.norm.cdf(-gap / scale / np.sqrt((1 / each).sum()))
    assert abs(result.estimate - exact) < 4 * result.se
    assert result.relative_error < 0.1
    assert result.trust == "ok"


def test_error_of_1e_minus_21_is_within_its_error():
    assert two_arms(49, 4.0, 2.0, 1).estimate < 1e-20


@pytest.mark.wide
def test_a_probability_below_the_range_of_64_bit_is_warned_of():
    """The exact value is about 1e-343."""
    result = error(rejects(98), mab.gaussian((8.0, 0.0)), chunk=16, **SMALL)
    assert result.estimate < 1e-300
    assert result.trust == ("The probability is too small for 64 bit: no run has a weight above 1e-300.",)


def test_result_repeats_bit_for_bit_and_sums_over_its_parts():
    result = two_arms(49, 0.5)
    again = rare.error_probability(rejects(98), TWO, key=KEY, max_rounds=10**5, chunk=16, **SMALL)
    assert (again.estimate, again.se, again.pareto_k) == (result.estimate, result.se, result.pareto_k)
    parts = result.parts()
    assert parts.estimate.sum() == pytest.approx(result.estimate)
    assert parts.answer.tolist() == [1]
    assert "answer" in str(parts)
    everything = result.part(np.ones(result.events.pulls.size, bool))
    assert everything[:2] == pytest.approx((result.estimate, result.se))
    assert result.quantiles(0.5) == result.events.pulls.max() == 96


def test_estimate_is_the_mean_over_both_learnings():
    result = two_arms(49, 0.5)
    weights = np.exp(-result.mixture.log_ratio(result.events.counts, result.events.sums))
    np.testing.assert_allclose(result.events.weights, weights)
    assert result.estimate == pytest.approx(weights.sum() / result.runs)
    assert result.learning_runs == 2 * 2048


def test_mixture_of_a_result_is_used_without_learning():
    result = two_arms(49, 0.5)
    settings = {"key": jax.random.key(1), "max_rounds": 10**5, "chunk": 16}
    again = rare.error_probability(rejects(98), TWO, alternatives=result.mixture, **settings, **SMALL)
    assert again.learning_runs == 0
    assert abs(again.estimate - result.estimate) < 4 * np.hypot(again.se, result.se)


def test_store_resumes_the_same_result(tmp_path):
    settings = {"key": KEY, "max_rounds": 10**5, "chunk": 16, "alternatives": [[0.2, 0.3], [0.0, 0.4]]}
    first = rare.error_probability(rejects(98), TWO, store=tmp_path / "runs", **settings, **SMALL)
    second = rare.error_probability(rejects(98), TWO, store=tmp_path / "runs", **settings, **SMALL)
    assert (first.estimate, first.se) == (second.estimate, second.se)
    assert abs(first.estimate - stats.norm.cdf(-0.5 * np.sqrt(49 / 2))) < 4 * first.se


def ttucb(instance, key, delta):
    return rule(mab.ttucb, delta)(instance, key)


@pytest.mark.parametrize("delta", [1e-4, 1e-5])
def test_stop_after_one_pull_of_each_arm_is_exact_for_every_answer(delta):
    """A lost mode shows here: four single rewards, at an error of 1e-6. Both deltas have one program."""
    means = np.array([0.4, 0.9, 0.6])
    instance = mab.gaussian(means)
    settings = {"max_rounds": 100, "relative_error": 0.05, "given": {"delta": delta}}
    result = rare.error_probability(ttucb, instance, key=KEY, chunk=16, **settings, **SMALL)
    for answer, exact in wrong_at_once(means, delta).items():
        part = result.part((result.events.answers == answer) & (result.events.pulls == 3))
        assert abs(part.estimate - exact) < 4 * part.se, answer
        assert part.se < 0.5 * exact


def test_weights_of_swapped_means_are_warned_of():
    """Each wrong arm exchanged with the best: a plausible choice that loses most of the error."""
    swapped = np.array([[0.9, 0.4, 0.6], [0.4, 0.6, 0.9]])
    instance = mab.gaussian((0.4, 0.9, 0.6))
    settings = {"max_rounds": 100, "alternatives": swapped, "chunk": 16} | SMALL
    result = rare.error_probability(ttucb, instance, key=KEY, given={"delta": 1e-4}, **settings)
    assert result.trust != "ok"
    assert any("heavy tail" in warning or "One run" in warning or "effective" in warning for warning in result.trust)


def test_censored_runs_are_counted_and_are_no_errors():
    # Within 8 rounds almost no run ends.
    settings = {"max_rounds": 8, "alternatives": [[0.5, 0.9]]} | SMALL
    result = rare.error_probability(rule(mab.ttucb, 0.1), TWO, key=KEY, chunk=16, **settings)
    assert 0 < result.censored < result.runs
    assert (result.events.pulls <= 8).all()


@pytest.mark.parametrize(("k", "low", "high"), [(0.3, 0.1, 0.5), (1.0, 0.8, 1.2)])
def test_pareto_k_of_pareto_weights(k, low, high):
    weights = np.random.default_rng(0).uniform(size=20_000) ** -k
    assert low < diagnostics.pareto_k(weights) < high


def test_pareto_k_of_few_values_is_finite():
    """Weights of counts take few values. Here one candidate for the shape is exactly 0."""
    weights = np.repeat([1.0, 2.0, 3.0, 4.0], [396, 16, 47, 1])
    assert -2 < diagnostics.pareto_k(weights) < 0


# Bad input


def error(build=None, instance=TWO, **more):
    settings = {"key": KEY, "max_rounds": 100, "progress": False} | more
    return rare.error_probability(build or rejects(20), instance, **settings)


def refused(match, *arguments, **more):
    with pytest.raises(ValueError, match=match):
        error(*arguments, **more)


def built(make):
    """Makes a build with another environment."""

    def build(instance, key):
        algorithm = mab.successive_rejects(instance.problem, horizon=20)
        return algorithm, make(instance, algorithm)

    return build


def test_rewards_without_a_likelihood_are_refused():
    refused("no likelihood ratio for the rewards", built(lambda i, a: mab.environment(i, a, noise="uniform")))
    refused("no likelihood ratio for shared", built(lambda i, a: mab.environment(i, a, stream=KEY)))
    table = np.zeros((50, 2))
    refused("no likelihood ratio for rewards that depend", built(lambda i, a: mab.recorded(table, a)))
    refused("no likelihood ratio for the rewards", built(lambda i, a: mab.recorded(table, a, order="bootstrap")))
    signs = linear.canonical(0.5)._replace(theta=jnp.array([0.5, 0.2]))

    def build(instance, key):
        algorithm = linear.lingape(instance.arms, delta=0.1)
        return algorithm, linear.environment(instance, algorithm, noise="sign")

    refused("no likelihood ratio for the rewards", build, linear.Instance(jnp.eye(2), signs.theta, jnp.array(1.0)))


def test_laws_without_a_conjugate_form_are_refused():
    refused("no likelihood ratio for", instance=mab.bounded((0.5, 0.4)))
    problem = cpe.top_k(3, 1)

    def separable(instance, key):
        algorithm = cpe.clucb(problem, delta=0.1)
        return algorithm, cpe.environment(instance, algorithm)

    thirds = cpe.discrete(
        np.array([[0.0, 0.5, 1.0]] * 3), np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.3] * 2 + [0.4]])
    )
    refused(r"no likelihood ratio for samples in \[0, 1\]", separable, cpe.instance(problem, thirds))
    tenths = cpe.instance(problem, cpe.bernoulli(np.array([1.0, 0.5, 0.2])))
    refused("instance.arms must lie in", separable, tenths)

    design = fullbandit.make_design(fullbandit.all_superarms(4, 2), 2)

    def sums(instance, key):
        algorithm = fullbandit.icb(design, delta=0.1, epsilon=0.1, noise_scale=instance.noise_scale)
        return algorithm, fullbandit.environment(instance, algorithm, noise="bernoulli")

    theta = np.array([0.8, 0.7, 0.2, 0.1])
    refused("no likelihood ratio for the rewards", sums, fullbandit.Instance(theta, 2, np.float64(0.5)))


def test_changing_rewards_are_refused():
    def change(instance, algorithm):
        return feedback.changing([mab.environment(instance, algorithm)] * 2, at=[5])

    refused("no likelihood ratio for", built(change))


def test_an_instance_of_another_family_is_refused():
    refused("no likelihood ratio for", instance=kcenter)


def test_a_build_that_ignores_its_instance_is_refused():
    refused("build must answer by the rewards of the instance", built(lambda i, a: mab.environment(TWO, a)))


def test_a_tied_best_arm_is_refused_unless_another_question_is_asked():
    tied = mab.gaussian((0.5, 0.5))
    refused("instance must have one best answer", instance=tied)
    result = error(rejects(98), tied, wrong=lambda answer: answer == 1, chunk=16, **SMALL)
    assert abs(result.estimate - 0.5) < 4 * result.se


def above(instance, key):
    algorithm = mab.apt(instance.problem, level=0.3, horizon=40)
    return algorithm, mab.environment(instance, algorithm)


def test_a_rule_is_judged_by_the_question_that_it_answers():
    settings = {"chunk": 16} | SMALL
    declared = error(above, **settings)
    expected = error(above, wrong=lambda answer: tuple(answer) != (True, False), **settings)
    assert declared.estimate == expected.estimate > 0
    assert any(answers.all() for answers in declared.events.answers)


@pytest.mark.wide
def test_late_runs_are_weighed_by_first_and_later_pulls():
    """A rule that never stops so early has the exact value 1, and the mixture gives errors their exact value, too."""
    instance = mab.gaussian((1.0, 0.0))
    result = rare.tail_probability(rejects(40), instance, pulls=20, key=KEY, chunk=16, **SMALL)
    events, lengths = result.events, np.array(phases.LENGTHS)[:, None]
    assert (events.pulls == 20).all()
    np.testing.assert_array_equal(events.first_counts, np.minimum(events.counts[:, None], lengths))
    np.testing.assert_allclose(events.first_sums[:, -1], events.sums)
    counts = np.concatenate([events.counts[:, None], events.first_counts], axis=1)
    sums = np.concatenate([events.sums[:, None], events.first_sums], axis=1)
    np.testing.assert_allclose(events.weights, np.exp(-result.mixture.log_ratio(counts, sums)))
    assert abs(result.estimate - 1) < 4 * result.se
    settings = {"key": jax.random.key(1), "max_rounds": 10**5, "chunk": 16, "alternatives": result.mixture}
    errors = rare.error_probability(rejects(20), instance, **settings, **SMALL)
    each = errors.events.counts[0]
    assert abs(errors.estimate - stats.norm.cdf(-1 / np.sqrt((1 / each).sum()))) < 4 * errors.se


@pytest.mark.wide
def test_the_tail_of_a_linear_rule_on_items_that_all_tie():
    """No direction leads to another answer, and five pulls are too few to stop."""

    def build(instance, key):
        algorithm = linear.lingape(instance.arms, delta=0.1)
        return algorithm, linear.environment(instance, algorithm)

    instance = linear.Instance(jnp.eye(2), jnp.array([0.5, 0.5]), jnp.array(1.0))
    result = rare.tail_probability(build, instance, pulls=5, key=KEY, chunk=16, **SMALL)
    assert result.estimate == pytest.approx(1, abs=0.2)


def test_answers_that_are_no_arms_need_a_judge_where_no_question_is_declared():
    def build(instance, key):
        algorithm, environment = above(instance, key)
        return algorithm._replace(problem=None), environment

    refused("wrong must be given for answers that are no arms", build, chunk=16, **SMALL)


def test_means_at_an_end_of_the_support_are_refused():
    refused("instance.means must lie in", instance=mab.bernoulli((1.0, 0.5)))
    coins = mab.bernoulli((0.6, 0.5))
    refused("alternatives must lie in", instance=coins, alternatives=[[0.5, 1.0]])
    refused("alternatives must lie in", instance=coins, alternatives=[[-0.1, 0.5]])
    refused("alternatives must", instance=coins, alternatives=[0.5, 0.6])


def test_settings_that_do_not_fit_are_refused_by_name():
    refused("learnings must", learnings=0)
    refused("max_rounds must", max_rounds=None)
    refused("rounds must", rounds=())
    refused(r"rounds\[1\] must", rounds=(5, 0))
    refused("seeds must not be given", seeds=3)
    refused("relative_error must be positive", relative_error=0.0)
    refused("given must be numbers or arrays by the names", given=[0.1])
    refused(r"given\['delta'\] must be a number or an array", given={"delta": "small"})
    refused("alternatives must be mixtures for this instance", alternatives=other_mixture())
    with pytest.raises(TypeError, match="max_rounds"):
        rare.error_probability(rejects(20), TWO, key=KEY)


def other_mixture():
    from jaxbandits.rare._methods import laws

    arms = laws.Arms("gaussian", np.array([9.0, 8.0]))
    return rare.Mixture(arms, np.ones(1), laws.points(arms, arms.means[None]))


def test_several_rows_and_traced_instances_are_refused():
    refused("instance.means must", instance=mab.Instance(mab.Gaussian(2), jnp.ones((3, 2))))
    with pytest.raises(ValueError, match="instance must be known before tracing"):
        jax.jit(lambda means: error(instance=mab.gaussian(means)))(jnp.array([0.5, 0.0]))


def test_a_first_round_without_an_error_is_no_estimate_of_zero():
    with pytest.raises(ValueError, match="alternatives must be given"):
        error(rejects(98), wrong=lambda answer: False, chunk=16, **SMALL)
