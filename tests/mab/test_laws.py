"""Laws that the rules of fixed confidence must obey, and their mean stopping times."""

import functools

import jax
import numpy as np
import pytest
from scipy import stats

import jaxbandits
from jaxbandits import Status, mab
from jaxbandits.mab._algorithms.t3c import uniform_argmin
from jaxbandits.mab._algorithms.tas import projected
from jaxbandits.mab._algorithms.ttts import log_probabilities_of_best

KEY = jax.random.key(0)


def test_probabilities_of_the_best_arm_equal_shares_of_a_million_draws():
    rng = np.random.default_rng(1)
    means = np.array([[1.0, 0.85, 0.8, 0.7], [0.0, 0.5, 0.4, -3.0], [1.0, 1.0, 1.0, 1.0]])
    spreads = np.array([[0.1, 0.05, 0.2, 0.02], [1.0, 0.1, 0.01, 2.0], [0.1, 0.1, 0.1, 3.0]])
    probabilities = np.exp(jax.jit(jax.vmap(log_probabilities_of_best))(means, spreads))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1.2e-3)
    for row in range(3):
        best = np.argmax(means[row] + spreads[row] * rng.normal(size=(10**6, 4)), axis=1)
        shares = np.bincount(best, minlength=4) / 10**6
        np.testing.assert_allclose(probabilities[row], shares, atol=4.5 * 0.5 / 1000)
    # Far in the tail, where only two arms matter: P(a > b) by hand.
    far = jax.jit(log_probabilities_of_best)(np.array([0.0, 1.0]), np.array([0.02, 0.03]))
    np.testing.assert_allclose(far[0], stats.norm.logsf(1 / np.hypot(0.02, 0.03)), atol=2e-3)


def test_ties_are_broken_with_equal_probabilities():
    costs = np.array([np.inf, 0.0, 3.0, 0.0, 0.0])
    picks = jax.jit(jax.vmap(uniform_argmin, (None, 0)))(costs, np.linspace(0, 1 - 1e-9, 7))
    assert np.asarray(picks).tolist() == [1, 1, 1, 3, 3, 4, 4]


EQUAL = {
    **{name: getattr(mab, name) for name in ("ucb1", "kl_ucb", "imed", "bayes_ucb", "moss_anytime", "thompson")},
    "moss": functools.partial(mab.moss, horizon=14),
    "exp3": functools.partial(mab.exp3, gamma=0.3),
    "exp3_ix": functools.partial(mab.exp3_ix, eta=0.3, gamma=0.1),
    "tas-c": functools.partial(mab.tas, delta=0.1, tracking="C"),
    "eb_tci-ids": functools.partial(mab.eb_tci, delta=0.1, leader_share="ids"),
    **{
        name: functools.partial(getattr(mab, name), delta=0.1)
        for name in ("eb_tc", "eb_tci", "ttucb", "t3c", "ttts", "tas", "lucb", "kl_lucb", "ugape", "lil_ucb")
    },
}
MOST_DIFFERENT = ("ucb1", "imed", "eb_tci", "ttucb", "tas", "lucb", "ugape")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in MOST_DIFFERENT else [pytest.mark.wide]) for name in EQUAL]
)
def test_arms_of_equal_means_are_pulled_and_answered_equally_often(name):
    """Bernoulli arms of mean 1/2 after 14 pulls, most of whose statistics tie; 4000 runs, false alarm 1e-5 each."""
    algorithm, K, runs = EQUAL[name](mab.Bernoulli(4)), 4, 4000
    environment = mab.environment(mab.bernoulli((0.5,) * K), algorithm)

    def one(key):
        end = jaxbandits.run(key, algorithm, environment, max_rounds=14, chunk=14)
        return end.state.counts, end.answer

    counts, answers = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(2), runs))
    counts, answers = np.asarray(counts, float), np.asarray(answers)
    off = counts - counts.mean(axis=1, keepdims=True)
    z = off.mean(axis=0) / (off.std(axis=0) / runs**0.5)
    assert np.abs(z).max() < 5, z
    assert stats.chisquare(np.bincount(answers, minlength=K)).pvalue > 1e-5, np.bincount(answers)


@pytest.mark.parametrize(
    "name", ["ttucb", *(pytest.param(n, marks=[pytest.mark.wide]) for n in ("t3c", "eb_tc", "eb_tci"))]
)
def test_the_place_of_the_best_normal_arm_changes_no_law(name):
    """Rewards do not tie, but costs do: all challengers with a mean above the leader's cost 0.

    Pulls of every arm in 400 rounds, 2 x 1000 runs, false alarm 1e-5.
    """
    runs, algorithm = 1000, getattr(mab, name)(mab.Gaussian(4), delta=1e-9)

    def one(key, means):
        return jaxbandits.run(key, algorithm, mab.environment(mab.gaussian(means)), max_rounds=400).state.counts

    means = jax.numpy.array([1.0, 0.85, 0.8, 0.7])
    of_means = jax.jit(jax.vmap(one, (0, None)))
    first = np.asarray(of_means(jax.random.split(jax.random.key(3), runs), means))
    last = np.asarray(of_means(jax.random.split(jax.random.key(4), runs), means[::-1]))[:, ::-1]
    z = (first.mean(0) - last.mean(0)) / np.sqrt((first.var(0) + last.var(0)) / runs)
    assert np.abs(z).max() < 5, z


def test_projections_by_hand():
    program = jax.jit(projected)
    np.testing.assert_allclose(program(np.array([0.7, 0.3, 0.0]), 0.1), [0.7 - 0.075, 0.3 - 0.025, 0.1])
    np.testing.assert_allclose(program(np.array([0.5, 0.3, 0.2]), 0.1), [0.5, 0.3, 0.2])


def stopped(instance, algorithm, *, seeds, max_rounds=10**6):
    """Returns the pulls and the answers of all runs."""
    results = jaxbandits.sweep(
        lambda task, key: (algorithm, mab.environment(instance, algorithm)),
        seeds=seeds,
        key=KEY,
        max_rounds=max_rounds,
        progress=False,
    )
    assert (results.columns["status"] == Status.STOPPED).all()
    return results.columns["pulls"], results.columns["answer"]


def test_a_wrong_noise_scale_raises_the_error_count():
    instance = mab.gauss4()
    _, answers = stopped(instance, mab.eb_tci(mab.Gaussian(4, 1 / 3), delta=0.1), seeds=100)
    assert (answers != 0).sum() > 10  # admitted: 10


@pytest.mark.parametrize("leap", [7, 10**6])
def test_batched_elimination_that_leaps_makes_the_same_run(leap):
    """On the same rewards of every arm, which normal sums within a leap share."""
    instance = mab.gauss4()
    ends = []
    for algorithm in (
        mab.batched_elimination(instance.problem, delta=0.1, first=3),
        mab.batched_elimination(instance.problem, delta=0.1, first=3, leap=leap),
    ):
        environment = mab.environment(instance, algorithm, stream=jax.random.key(5))
        ends.append(jaxbandits.run(KEY, algorithm, environment, max_rounds=10**6))
    single, leaps = ends
    assert single.status == leaps.status == Status.STOPPED
    assert single.answer == leaps.answer
    np.testing.assert_array_equal(single.state.counts, leaps.state.counts)
    # A round of the longer leap is a batch, whose arms are pulled 3, 6, 12, .. times in all.
    batches = int(single.state.memory.over) + 1
    assert int(single.state.counts.max()) == 3 * 2 ** (batches - 1)
    assert leaps.rounds == batches if leap == 10**6 else leaps.rounds > batches


# Mean pulls and their standard errors, from an independent float64 program; delta = .1, gk16.
EXAMPLES = {
    "uniform": (mab.gk1, mab.uniform, 6749, 279),
    "tas": (mab.gk1, mab.tas, 3969, 116),
    "tas-c": (mab.gk1, functools.partial(mab.tas, tracking="C"), 4753, 167),
    "t3c": (mab.gk1, mab.t3c, 3950, 86),
    "t3c-ids": (mab.gk2, functools.partial(mab.t3c, leader_share="ids"), 1300, 25),
    "ttucb": (mab.gk1, mab.ttucb, 4116, 82),
    "ttucb-ids": (mab.gk2, functools.partial(mab.ttucb, leader_share="ids"), 1391, 25),
    "eb_tci": (mab.gk1, mab.eb_tci, 4273, 77),
    "eb_tci-ids": (mab.gk2, functools.partial(mab.eb_tci, leader_share="ids"), 1448, 25),
    "kl_lucb": (mab.gk1, mab.kl_lucb, 8308, 136),
    "lucb": (mab.gk1, mab.lucb, 8484, 243),
    "ugape": (mab.gk1, mab.ugape, 8412, 287),
    "lil_ucb": (mab.gk1, mab.lil_ucb, 6120, 210),
    "successive_elimination": (mab.gk1, mab.successive_elimination, 53421, 662),
    "ttts": (mab.gauss4, mab.ttts, 1909, 55),
    "ttts-ones": (mab.gk2, mab.ttts, 1413, 34),
    "eb_tc-epsilon": (mab.gauss4, functools.partial(mab.eb_tc, epsilon=0.1), 724, 21),
    "lucb-epsilon": (mab.gauss4, functools.partial(mab.lucb, epsilon=0.1), 1378, 28),
    "ugape-epsilon": (mab.gauss4, functools.partial(mab.ugape, epsilon=0.1), 1365, 29),
}


# A minute or two each; other examples have the same rule or the same share.
LONGEST = ("ttts", "ttts-ones", "t3c-ids", "ttucb-ids", "tas-c")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] if name in LONGEST else []) for name in EXAMPLES]
)
def test_mean_stopping_times(name):
    make, factory, mean, error = EXAMPLES[name]
    # TTTS makes many draws per round, so it gets fewer runs.
    instance, seeds = make(), 200 if "ttts" in name else 400
    pulls, answers = stopped(instance, factory(instance.problem, delta=0.1), seeds=seeds)
    deviation = pulls.std() / seeds**0.5
    print(f"{name}: {pulls.mean():.0f} +- {deviation:.0f} (expected {mean} +- {error}), {(answers != 0).sum()} errors")
    assert abs(pulls.mean() - mean) < 4 * np.hypot(deviation, error)
    admitted = 0.1 if "epsilon" in name else 0.0
    wrong = instance.means[0] - instance.means[answers] > admitted
    assert stats.binom.sf(int(wrong.sum()) - 1, seeds, 0.1) > 1e-6
