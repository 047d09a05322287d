"""Mixtures: their ratio, their draws, and what learning makes of runs."""

import jax
import numpy as np
import pytest

from jaxbandits.rare._methods import laws, linear, mixture, phases
from jaxbandits.rare._methods.laws import Arms, Table
from jaxbandits.rare._methods.learning import Past, Runs, next_mixture
from jaxbandits.rare._methods.linear import Linear
from jaxbandits.rare._methods.mixture import Mixture

ARMS = Arms("gaussian", np.array([1.0, 0.8, 0.5]), 1.0)
KEY = jax.random.key(3)


def broad(arms, best=0):
    strata = mixture.one_best(arms, best)
    shares = np.full(len(strata.weights), 1 / len(strata.weights))
    return Mixture(arms, shares, laws.points(arms, np.zeros((0, arms.means.size))), strata)


ALL = {
    "gaussian": broad(ARMS),
    "bernoulli": broad(Arms("bernoulli", np.array([0.5, 0.4, 0.3]))),
    "poisson": broad(Arms("poisson", np.array([2.0, 1.0, 0.5]))),
    "exponential": broad(Arms("exponential", np.array([2.0, 1.0, 0.5]))),
}


@pytest.mark.parametrize("kind", ALL)
def test_strata_are_laws(kind):
    weights = ALL[kind].strata.weights
    assert (weights > 0).any(axis=1).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1)


@pytest.mark.parametrize("kind", ALL)
def test_ratio_of_a_mixture_is_the_sum_over_every_choice_of_entries(kind):
    each = ALL[kind]
    N, S = np.array([[3.0, 1.0, 0.0], [20.0, 0.0, 5.0]]), np.array([[2.0, 0.0, 0.0], [9.0, 0.0, 4.0]])
    table, weights = each.strata.table, each.strata.weights
    values = np.exp(laws.log_ratio(each.truth, Table(*(x[:, None] for x in table)), N, S))
    expected = np.prod(np.einsum("ank,bak->nbk", values, weights), axis=2) @ each.shares
    np.testing.assert_allclose(each.log_ratio(N, S), np.log(expected), rtol=1e-10)


@pytest.mark.parametrize("kind", ALL)
def test_weights_of_draws_average_to_one(kind):
    """E_q[1 / M] = 1 where draws can reach everything: a mixture with a large share of the truth."""
    each = ALL[kind]
    points = laws.points(each.truth, each.truth.means[None])
    safe = each._replace(components=points, shares=np.append(0.5 * each.shares, 0.5))
    means, random = safe.draw(KEY, 40_000), np.random.default_rng(0)
    N = np.array([4, 2, 3])
    draws = {
        "gaussian": lambda: random.normal(N * means, np.sqrt(N)),
        "bernoulli": lambda: random.binomial(N, means),
        "poisson": lambda: random.poisson(np.minimum(N * means, 1e9)),
        "exponential": lambda: random.gamma(N, means),
    }
    weights = np.exp(-safe.log_ratio(np.broadcast_to(N, means.shape), draws[kind]()))
    # Weights are at most 2; false alarm below 1e-4.
    assert abs(weights.mean() - 1) < 4 * weights.std() / np.sqrt(weights.size)


@pytest.mark.parametrize("kind", ALL)
def test_weights_of_means_that_change_average_to_one(kind):
    """E_q[1 / M] = 1 as above: the first 8 of 12 pulls, and all of 4, have the mean of first pulls."""
    each = mixture.in_phases(ALL[kind], 0)
    truth = np.arange(each.shares.size) == ALL[kind].shares.size
    each = each._replace(shares=(each.shares + truth) / 2)
    rows, random = each.draw(KEY, 40_000), np.random.default_rng(0)
    later, first, number = rows[:, :3], rows[:, 3:6], rows[:, 6].astype(int)
    assert set(number) == set(range(len(phases.LENGTHS) + 1))
    assert (later[number == 0] == first[number == 0]).all()
    draws = {
        "gaussian": lambda N, means: random.normal(N * means, np.sqrt(N)),
        "bernoulli": lambda N, means: random.binomial(N, means),
        "poisson": lambda N, means: random.poisson(np.minimum(N * means, 1e9)),
        "exponential": lambda N, means: random.gamma(np.maximum(N, 1e-9), means) * (N > 0),
    }[kind]
    N = np.array([12, 2, 4])
    counts = np.stack([np.broadcast_to(np.minimum(N, length), later.shape) for length in (12, *phases.LENGTHS)], axis=1)
    # Rewards in blocks of pulls: 1 to 8, and 9 to 12, of which only the first length, 8, is a boundary.
    blocks = [draws(np.minimum(N, 8), first), draws(np.maximum(N - 8, 0), np.where(number[:, None] > 1, first, later))]
    sums = np.stack([blocks[0] + blocks[1], blocks[0], *[blocks[0] + blocks[1]] * 3], axis=1)
    weights = np.exp(-each.log_ratio(counts, sums))
    assert abs(weights.mean() - 1) < 4 * weights.std() / np.sqrt(weights.size)


def test_mixtures_with_and_without_changes_are_joined():
    plain, changing = ALL["gaussian"], mixture.in_phases(ALL["gaussian"], 0)
    two = mixture.together(mixture.alike((plain, changing)))
    N, S = np.array([[3.0, 1.0, 0.0]]), np.array([[2.0, 0.0, 0.0]])
    counts, sums = (np.repeat(x[:, None], len(phases.LENGTHS) + 1, axis=1) for x in (N, S))
    mean = (np.exp(plain.log_ratio(N, S)) + np.exp(changing.log_ratio(counts, sums))) / 2
    np.testing.assert_allclose(two.log_ratio(counts, sums), np.log(mean))
    with pytest.raises(ValueError, match=r"counts must have shape \(n, 5, 3\), got \(1, 3\)"):
        changing.log_ratio(N, S)


def test_draws_take_every_component_by_its_share():
    table = Table(np.array([[0.0, 0, 0], [10, 0, 0], [20, 0, 0]]), np.zeros((3, 3)))
    each = Mixture(ARMS, np.array([0.5, 0.3, 0.2]), table)
    values, counts = np.unique(each.draw(KEY, 1001)[:, 0].round(), return_counts=True)
    assert values.tolist() == [1, 11, 21]
    assert (abs(counts - 1001 * each.shares) <= 1).all()


def test_draws_depend_on_the_key_alone():
    each = ALL["gaussian"]
    np.testing.assert_array_equal(each.draw(KEY, 50), each.draw(KEY, 50))
    assert not np.array_equal(each.draw(KEY, 50), each.draw(jax.random.key(4), 50))


def test_permuted_arms_have_the_same_ratio():
    order = [2, 0, 1]
    permuted = broad(ARMS._replace(means=ARMS.means[order]), best=1)
    N, S = np.array([[3.0, 1.0, 7.0]]), np.array([[2.0, 0.0, 4.0]])
    np.testing.assert_allclose(permuted.log_ratio(N[:, order], S[:, order]), ALL["gaussian"].log_ratio(N, S))


@pytest.mark.parametrize(("counts", "sums"), [(np.zeros((2, 2)), np.zeros((2, 2))), (np.zeros(3), np.zeros(3))])
def test_ratio_of_other_shapes_is_refused(counts, sums):
    with pytest.raises(ValueError, match="counts must have shape"):
        ALL["gaussian"].log_ratio(counts, sums)


def runs_of(means, n, random, is_in):
    N = np.full((n, 3), 25.0)
    S = random.normal(N * means, np.sqrt(N))
    ones = np.zeros(n, np.int64)
    return Runs(
        counts=N,
        sums=S,
        pulls=ones + 75,
        rounds=ones + 75,
        answers=ones,
        is_in=is_in(S / N),
        cells=np.stack([ones, ones + 6], 1),
        is_censored=ones > 0,
    )


def test_learning_finds_the_cheapest_way_to_an_event():
    """Mean of arm 1 above arm 0's: both move to their weighted mean, .9, and arm 2 stays."""
    first = ALL["gaussian"]._replace()
    random, past = np.random.default_rng(5), Past((), ())
    for size in (2000, 500, 500):
        each = first if not past.rounds else next_mixture(first, past)
        means = each.draw(jax.random.key(size), size)
        past = Past((*past.mixtures, each), (*past.rounds, runs_of(means, size, random, lambda m: m[:, 1] > m[:, 0])))
    learnt = next_mixture(first, past)
    assert learnt.shares.sum() == pytest.approx(1)
    assert learnt.components.first.shape == (1, 3)
    np.testing.assert_allclose(ARMS.means + learnt.components.first[0], [0.84, 0.96, 0.5], atol=0.15)
    # Phi(-.2 sqrt(25 / 2)); the estimate by the learnt mixture, with its own error.
    runs = runs_of(learnt.draw(KEY, 4000), 4000, random, lambda m: m[:, 1] > m[:, 0])
    weights = np.where(runs.is_in, np.exp(-learnt.log_ratio(runs.counts, runs.sums)), 0)
    assert abs(weights.mean() - 0.23975) < 4 * weights.std() / np.sqrt(4000)


def test_learning_without_an_event_keeps_the_broad_mixture():
    first = ALL["gaussian"]
    runs = runs_of(np.tile(ARMS.means, (100, 1)), 100, np.random.default_rng(0), lambda m: m[:, 0] > 1e9)
    assert next_mixture(first, Past((first,), (runs,))) is first


def test_linear_mixture_holds_theta_and_every_direction():
    truth = Linear(np.eye(2), np.array([1.0, 0.5]), 1.0)
    normals, shares = linear.broad(truth, np.array([[1.0, -1.0]]))
    assert shares.sum() == pytest.approx(1)
    assert normals.first.shape == (15, 2)
    each = Mixture(truth, shares, normals)
    assert each.draw(KEY, 100).shape == (100, 2)
    assert each.log_ratio(np.zeros((1, 2)), np.zeros((1, 2))) == pytest.approx(0)
