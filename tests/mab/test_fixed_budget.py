"""The rules of a fixed budget: schedules by hand, and leaps of the same law."""

from fractions import Fraction
from functools import partial

import jax
import numpy as np
import pytest
from scipy import stats

import jaxbandits
from jaxbandits import Status, mab
from jaxbandits.mab._shared.phases import fraction_above, sequential_halving_schedule, successive_rejects_schedule


def phases(schedule):
    """Returns the (pulls, kept) of each phase."""
    return list(zip(schedule.targets.tolist(), schedule.sizes.tolist(), strict=True))[: int(schedule.phases)]


def test_schedules_by_hand():
    # L = 4/3, n_1 = ceil(9/4) = 3, n_2 = ceil(27/8) = 4.
    assert phases(successive_rejects_schedule(3, 12)) == [(3, 2), (4, 1)]
    # 2, 4 and 8 further pulls per arm in a phase.
    assert phases(sequential_halving_schedule(8, 48)) == [(2, 4), (6, 2), (14, 1)]
    # The ratio is the whole number 3: L = 25/12 - 1/2 = 19/12 at K = 4, (T - 4) / (19/12 * 4) = 3 at T = 23.
    assert phases(successive_rejects_schedule(4, 23))[0] == (3, 3)
    # Phases of equal length are merged.
    assert phases(successive_rejects_schedule(4, 5)) == [(1, 1)]


@pytest.mark.parametrize("K", [2, 3, 5, 8, 20])
def test_schedules_fit_the_horizon(K):
    for horizon in range(K + 1, 40 * K, 7):
        before, size, spent = 0, K, 0
        for pulls, kept in phases(successive_rejects_schedule(K, horizon)):
            assert pulls > before
            spent += size * (pulls - before)
            before, size = pulls, kept
        assert size == 1
        assert spent <= horizon
        if horizon >= K * (K - 1).bit_length():
            halving = phases(sequential_halving_schedule(K, horizon))
            assert halving[-1][1] == 1
            assert len(halving) == (K - 1).bit_length()


@pytest.mark.parametrize("K", [2, 3, 5, 8, 25, 60])
def test_successive_rejects_schedule_traced_horizon_equals_rational_arithmetic(K):
    """Numerators and denominators of L exceed 64 bit at K = 60, and T reaches the end of int32."""
    rng = np.random.default_rng(K)
    horizons = [*range(K + 1, K + 60), *rng.integers(K + 1, 2**31, 40).tolist(), *range(2**31 - 20, 2**31)]
    traced = jax.jit(jax.vmap(partial(successive_rejects_schedule, K)))(np.array(horizons, np.int32))
    for i, horizon in enumerate(horizons):
        known = successive_rejects_schedule(K, horizon)
        schedule = jax.tree.map(lambda values, i=i: values[i], traced)
        assert phases(schedule) == phases(known)
        assert set(schedule.sizes[schedule.phases :].tolist()) == {1}


@pytest.mark.parametrize("largest", [5, 12, 100])
def test_fraction_above_equals_search_over_denominators(largest):
    for ratio in (Fraction(n, 997) for n in range(1, 997, 13)):
        expected = min(Fraction(-(-ratio * d // 1), d) for d in range(1, largest + 1))
        assert fraction_above(ratio, largest) == expected


@pytest.mark.wide
def test_a_horizon_may_be_traced():
    """One program for two horizons makes the same runs as programs for known horizons."""
    instance = mab.bernoulli((0.6, 0.5, 0.5, 0.5))
    rules = {
        "rejects": mab.successive_rejects,
        "rejects, leap": partial(mab.successive_rejects, leap=64),
        "halving": partial(mab.sequential_halving, leap=64),
        "halving, reuse": partial(mab.sequential_halving, reuse=True),
        "continuous": mab.continuous_rejects,
        "UCB-E": partial(mab.ucb_e, hardness=400.0),
    }
    for name, rule in rules.items():

        def one(horizon, rule=rule):
            algorithm = rule(instance.problem, horizon=horizon)
            environment = mab.environment(instance, algorithm)
            end = jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=200, chunk=64)
            return end.pulls, end.state.counts

        pulls, counts = jax.jit(jax.vmap(one))(np.array([24, 64], np.int32))
        # The phases of successive rejects spend less: at T = 24 one has 4, one 5 and two 7 pulls of an arm.
        assert pulls.tolist() == ([23, 61] if "rejects" in name else [24, 64]), name
        known = jax.jit(partial(one, 64))()
        assert counts[1].tolist() == known[1].tolist(), name


def test_leaps_have_the_law_of_single_pulls():
    """Error rates on an instance on which they are large, by 2000 runs each."""
    instance, rates = mab.bernoulli((0.6, 0.5, 0.5, 0.5)), {}
    for leap in (1, 100):
        algorithm = mab.successive_rejects(instance.problem, horizon=100, leap=leap)
        environment = mab.environment(instance, algorithm)

        def one(key, algorithm=algorithm, environment=environment):
            end = jaxbandits.run(key, algorithm, environment, max_rounds=120, chunk=8)
            return end.status, end.pulls, end.answer

        status, pulls, answers = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(leap), 2000))
        assert (np.asarray(status) == Status.STOPPED).all()
        assert len(set(np.asarray(pulls).tolist())) == 1
        rates[leap] = int((np.asarray(answers) != 0).sum())
    assert stats.fisher_exact([[rates[1], 2000 - rates[1]], [rates[100], 2000 - rates[100]]]).pvalue > 1e-3
    assert 400 < rates[1] < 1200


PLACES = (0, 3, 7)  # positions of the best arm
FEW = (0.01,) * 7


@pytest.mark.wide
@pytest.mark.parametrize("rule", ["rejects", "halving", "halving, reuse", "continuous, C", "continuous, A", "UCB-E"])
def test_the_error_does_not_depend_on_where_the_best_arm_stands(rule):
    """Means .05 and .01, T = 120, 1500 runs per position; false alarm 1e-5.

    If the first arm won ties, successive rejects would err with probability .23 with the best first, .77 with it last.
    """
    factory, leap = {
        "rejects": (mab.successive_rejects, 120),
        "halving": (mab.sequential_halving, 120),
        "halving, reuse": (partial(mab.sequential_halving, reuse=True), 120),
        "continuous, C": (mab.continuous_rejects, 1),
        "continuous, A": (partial(mab.continuous_rejects, conservative=False), 1),
        "UCB-E": (partial(mab.ucb_e, hardness=5000.0), 1),
    }[rule]
    settings = {"leap": leap} if leap > 1 else {}

    def build(task, key):
        problem = mab.Bernoulli(8)
        algorithm = factory(problem, horizon=120, **settings)
        return algorithm, mab.environment(mab.Instance(problem, task["means"]), algorithm)

    means = np.array([(*FEW[:best], 0.05, *FEW[best:]) for best in PLACES])
    results = jaxbandits.sweep(
        build, {"means": means}, seeds=1500, key=jax.random.key(0), max_rounds=300, chunk=16, progress=False
    )
    assert (results.columns["status"] == Status.STOPPED).all()
    is_wrong = results.columns["answer"] != np.array(PLACES)[results.columns["row"]]
    wrong = np.bincount(results.columns["row"], is_wrong, minlength=3)
    assert 300 < wrong.sum() / 3 < 1300  # ties decide
    assert stats.chi2_contingency([wrong, 1500 - wrong]).pvalue > 1e-5, wrong / 1500


@pytest.mark.slow
def test_published_error_rates():
    """audibert1, T = 2000, ties at random: .186 for successive rejects, .341 for sequential halving.

    The rates are of 40,000 runs of an independent NumPy program. If the first arm is the best and wins ties, they are
    smaller: .158 and .264.
    """
    instance = mab.audibert1()
    cases = {
        0.186: mab.successive_rejects(instance.problem, horizon=2000, leap=2000),
        0.341: mab.sequential_halving(instance.problem, horizon=2000, leap=2000),
    }
    for rate, algorithm in cases.items():
        environment = mab.environment(instance, algorithm)

        def one(key, algorithm=algorithm, environment=environment):
            return jaxbandits.run(key, algorithm, environment, max_rounds=80, chunk=8).answer

        answers = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(3), 8000))
        error = float((np.asarray(answers) != 0).mean())
        assert abs(error - rate) < 4 * (rate * (1 - rate) * (1 / 8000 + 1 / 40_000)) ** 0.5, (rate, error)
