"""Normal rewards of unknown variance: costs of questions, exact laws of statistics, thresholds by brute force."""

import functools
from math import log

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq, minimize

import jaxbandits
from experiments.bench.reference import variances as reference
from jaxbandits import mab
from jaxbandits.mab._problem.problems import measured_problem
from jaxbandits.mab._problem.questions.asked import kind_of
from jaxbandits.mab._shared.frame import estimates
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.thresholds import Evidence

KEY = jax.random.key(0)
COSTS = ("adaptive", "plug-in")
QUESTIONS = {"top": mab.TopM(2), "above": mab.Above(0.45), "good": mab.GoodArm(0.45)}
FORMS = [(name, cost) for name in QUESTIONS for cost in COSTS]
K = 4


@functools.cache
def nearest(name, cost):
    """Compiles the nearest alternative for lanes of counts, means and variances."""
    kind, question = kind_of(QUESTIONS[name]), QUESTIONS[name]

    def one(N, m, v):
        problem = measured_problem(mab.Gaussian(K, None, cost=cost), v)
        return kind.answer(question, problem, N, m), kind.nearest(question, problem, N, m)

    return jax.jit(jax.vmap(one))


def drawn(lanes=12, seed=0):
    rng = np.random.default_rng(seed)
    N = rng.integers(5, 300, (lanes, K)).astype(float)
    return N, rng.uniform(0.05, 0.95, (lanes, K)), np.exp(rng.normal(-2, 1, (lanes, K)))


def moved(cost, N, m, v, x):
    ratio = (m - x) ** 2 / v
    return N / 2 * (np.log1p(ratio) if cost == "adaptive" else ratio)


def least_of(name, cost, answer, arms):
    """Minimises the cost over means with another answer, by grids: a level moves one arm, a swap two."""
    N, m, v = arms
    at_level = moved(cost, N, m, v, 0.45)
    if name == "above":
        return min(at_level)
    if name == "good":
        return at_level[answer] if answer < K else min(at_level)
    x = np.linspace(0, 1, 100_001)
    pairs = [(i, j) for i in range(K) for j in range(K) if answer[i] and not answer[j]]
    return min(sum(moved(cost, N[a], m[a], v[a], x) for a in pair).min() for pair in pairs)


def is_another(name, answer, x):
    """Returns a mask of the means, (n, K), for which the answer is wrong."""
    if name == "above":
        return ((x > 0.45) != answer).any(axis=1)
    if name == "good":
        return x[:, answer] <= 0.45 if answer < K else (x > 0.45).any(axis=1)
    return x[:, answer].min(axis=1) < x[:, ~answer].max(axis=1)


@pytest.mark.parametrize(("name", "cost"), FORMS)
def test_costs_of_questions_are_the_least_over_means_with_another_answer(name, cost):
    N, m, v = drawn()
    answers, nearby = jax.device_get(nearest(name, cost)(N, m, v))
    rng = np.random.default_rng(1)
    for lane in range(len(N)):
        least = least_of(name, cost, answers[lane], (N[lane], m[lane], v[lane]))
        np.testing.assert_allclose(nearby.cost[lane], least, rtol=1e-5)
        others = rng.uniform(0, 1, (2000, K))
        others = others[is_another(name, answers[lane], others)]
        assert len(others) > 50
        assert moved(cost, N[lane], m[lane], v[lane], others).sum(axis=1).min() >= nearby.cost[lane] * (1 - 1e-12)


@pytest.mark.parametrize(("name", "cost"), FORMS)
def test_parts_sum_to_the_cost_and_are_its_slopes(name, cost):
    program, (N, m, v) = nearest(name, cost), drawn()
    _, nearby = jax.device_get(program(N, m, v))
    np.testing.assert_allclose(nearby.parts.sum(axis=1), nearby.cost, rtol=1e-9, atol=1e-12)
    for a in range(K):
        step = np.zeros(K)
        step[a] = 1e-3
        slope = (program(N + step, m, v)[1].cost - program(N - step, m, v)[1].cost) / 2e-3
        np.testing.assert_allclose(nearby.parts[:, a] / N[:, a], slope, rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(program(3 * N, m, v)[1].cost, 3 * nearby.cost, rtol=1e-9, atol=1e-12)
    order = np.array([2, 0, 3, 1])
    _, permuted = jax.device_get(program(N[:, order], m[:, order], v[:, order]))
    np.testing.assert_allclose(permuted.parts, nearby.parts[:, order], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", QUESTIONS)
def test_plug_in_costs_of_equal_variances_are_the_costs_of_known_ones(name):
    N, m, _ = drawn()
    kind, question, problem = kind_of(QUESTIONS[name]), QUESTIONS[name], mab.Gaussian(K, 0.7)
    known = jax.jit(jax.vmap(lambda N, m: kind.nearest(question, problem, N, m)))(N, m)
    plug_in = nearest(name, "plug-in")(N, m, np.full_like(m, 0.49))[1]
    np.testing.assert_allclose(plug_in.cost, known.cost, rtol=1e-12)
    np.testing.assert_allclose(plug_in.parts, known.parts, rtol=1e-9, atol=1e-12)


def test_adaptive_costs_with_three_stationary_points_take_the_lowest():
    rng = np.random.default_rng(3)
    N = rng.integers(5, 100, (400, K)).astype(float)
    m, v = np.tile([1.0, 0.9, 0.0, -0.5], (400, 1)), rng.uniform(0.01, 0.2, (400, K))
    cost, several = np.asarray(nearest("top", "adaptive")(N, m, v)[1].cost), 0
    for lane in range(len(N)):
        pairs = [(i, j) for i in (0, 1) for j in (2, 3)]
        points = [
            reference.stationary(n[i] / (n[i] + n[j]), m[0, i] - m[0, j], w[i], w[j])
            for i, j in pairs
            for n, w in [(N[lane], v[lane])]
        ]
        several += max(map(len, points)) == 3
        least = min(reference.swap("adaptive", N[lane], m[lane], v[lane], pair) for pair in pairs)
        np.testing.assert_allclose(cost[lane], least, rtol=1e-9)
    assert several > 100


def test_adaptive_times_of_random_arms_are_certified():
    rng, problem = np.random.default_rng(0), mab.Gaussian(5, None)
    means, sd = rng.uniform(0.05, 0.95, (500, 5)), rng.uniform(0.2, 2, (500, 5))
    program = jax.vmap(lambda m, sd: mab.characteristic_time(problem, m, sd=sd, question=mab.TopM(2)))
    time = jax.device_get(jax.jit(program)(means, sd))
    np.testing.assert_allclose(time.lower, time.upper, rtol=1e-9)


@pytest.mark.parametrize("cost", COSTS)
def test_characteristic_times_equal_a_search_over_the_simplex_and_have_no_unit(cost):
    means, sd = np.array([0.8, 0.65, 0.3]), np.array([0.3, 0.5, 0.2])
    problem = mab.Gaussian(3, None, cost=cost)
    time_of = jax.jit(lambda m, sd: mab.characteristic_time(problem, m, sd=sd, question=mab.TopM(1)))

    def loss(x):
        w = np.exp(np.append(x, 0.0))
        w /= w.sum()
        return -min(reference.swap(cost, w, means, sd**2, (0, j)) for j in (1, 2))

    best = min(minimize(loss, start, method="Nelder-Mead").fun for start in np.array([[0.0, 0.0], [1.0, 1.0]]))
    time = time_of(means, sd)
    np.testing.assert_allclose(time.value, -1 / best, rtol=1e-4)
    assert time.lower <= time.value <= time.upper <= time.lower * (1 + 1e-6)
    moved = time_of(3 + 7 * means, 7 * sd)
    np.testing.assert_allclose(moved.value, time.value, rtol=1e-6)


@pytest.mark.parametrize("cost", COSTS)
def test_arms_compared_with_a_level_have_units_of_their_own(cost):
    """Distances from the level times a constant of each arm leave all actions, the stop and the answer."""
    level, rng = 0.4, np.random.default_rng(5)
    tape = np.array([0.9, 0.6, 0.1, 0.5])[:, None] + rng.normal(size=(K, 400)) * np.array([[0.4], [0.8], [0.3], [0.2]])
    algorithm = mab.eb_tc(
        mab.Gaussian(K, None, cost=cost), question=mab.Above(level), delta=0.1, threshold=thresholds.gk16(comparisons=K)
    )

    @jax.jit
    def arms_of(rewards):
        def one(state, _):
            decision = algorithm.decide(KEY, state)
            arm = decision.action.arms[0]
            times = jnp.where(decision.stop, 0, decision.action.times)
            paid = jnp.where(decision.stop, 0, rewards[arm, state.counts[arm]])
            state = algorithm.observe(state, mab.Pull(decision.action.arms, times), mab.Rewards(paid[None], times))
            return state, (jnp.where(decision.stop, -1, arm), decision.answer)

        return jax.lax.scan(one, algorithm.init(KEY), None, length=399)[1]

    arms, answers = arms_of(tape)
    # Powers of two change no digit of the differences.
    others, others_answers = arms_of(level + np.array([[4.0], [0.25], [1.0], [32.0]]) * (tape - level))
    np.testing.assert_array_equal(arms, others)
    np.testing.assert_array_equal(answers, others_answers)
    assert {0, 1, 2, 3} < set(np.asarray(arms).tolist())  # -1: it stops


@pytest.mark.wide
def test_merged_batches_have_the_law_of_one_sample():
    """Studentised means and variances after several leaps, at a false-alarm rate of 1e-4. No run has stopped."""
    instance = mab.gaussian((1e3, 1e3 + 0.1), sd=(0.5, 3.0))
    algorithm = mab.uniform(instance.problem, delta=1e-9, every=7, start=3)
    environment = mab.environment(instance, algorithm)

    def statistics(key):
        outcome = jaxbandits.run(key, algorithm, environment, max_rounds=9)
        known = estimates(instance.problem, outcome.state)
        return outcome.state.counts, known.means, known.variances

    counts, means, variances = jax.device_get(jax.jit(jax.vmap(statistics))(jax.random.split(KEY, 8000)))
    for arm in (0, 1):
        n = int(np.median(counts[:, arm]))
        kept = counts[:, arm] == n
        assert kept.mean() > 0.9
        v, mean = variances[kept, arm], means[kept, arm]
        squares = n * v / float(instance.sd[arm]) ** 2
        t = (mean - float(instance.means[arm])) / np.sqrt(v / (n - 1))
        assert stats.kstest(squares, stats.chi2(n - 1).cdf).pvalue > 1e-4
        assert stats.kstest(t, stats.t(n - 1).cdf).pvalue > 1e-4


def excess(x, side):
    """Returns the root y of y - log y = x, above 1 or below it."""
    return brentq(lambda y: y - log(y) - x, *((1, 4 * x + 9) if side > 0 else (1e-300, 1)), xtol=1e-15)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("counts", [(2, 2), (12, 40), (30, 3000), (500, 700)])
@pytest.mark.parametrize("delta", [0.1, 1e-6])
def test_uv_box_by_root_finding(cost, counts, delta):
    eta, l = 1 / log(1 / delta), log(4 * 2 * np.pi**2 / 6 / delta)
    expected = 0.0
    for n in counts:
        A = excess(1 + 2 * l + 4 * log(1 + log(n) / 4) + 4, 1)
        B = n * excess(1 + 2 * (1 + eta) / n * (l + 2 * log(1 + log(n) / log(1 + eta))), -1) - 1
        expected += np.inf if B <= 0 else n / 2 * (log(1 + A / B) if cost == "adaptive" else A / B)
    ours = thresholds.uv_box(comparisons=2)(delta, Evidence(sum(counts), np.array(counts), cost=cost))
    np.testing.assert_allclose(ours, expected, rtol=1e-9)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("counts", [(40, 40), (60, 3000)])
def test_student_is_the_largest_cost_over_all_divisions_of_the_evidence(cost, counts):
    """Two arms whose log G sum to u leave the cost largest if one has it all."""
    c, delta = 2.0, 0.05
    u = excess(1 + log(1 / delta), 1) - 1
    level = u + sum(log((n + c) / c) / 2 for n in counts)

    def cost_of(n, x):
        q = (n + c) / n * (1 - np.exp(-2 * x / n))
        return -n / 2 * np.log1p(-q) if cost == "adaptive" else n / 2 * q / (1 - q)

    share = np.linspace(0, 1, 1001)
    expected = (cost_of(counts[0], share * level) + cost_of(counts[1], (1 - share) * level)).max()
    ours = thresholds.student(comparisons=1, prior=c)(delta, Evidence(sum(counts), np.array(counts), cost=cost))
    np.testing.assert_allclose(ours, expected, rtol=1e-9)


@pytest.mark.parametrize("cost", COSTS)
def test_student_of_one_arm_is_passed_by_a_share_of_delta(cost):
    """False alarm 1e-6. After two pulls gk16 is passed by more."""
    rng, runs, length, delta = np.random.default_rng(0), 1000, 1000, 0.1
    rewards = rng.normal(2.0, 3.0, (runs, length))
    n = np.arange(1, length + 1)
    m = rewards.cumsum(axis=1) / n
    v = ((rewards - 2) ** 2).cumsum(axis=1) / n - (m - 2) ** 2
    statistic = moved(cost, n, m, np.maximum(v, 1e-300), 2.0)[:, 1:]
    threshold = thresholds.student(comparisons=1)
    student = np.asarray(jax.vmap(lambda k: threshold(delta, Evidence(k, k[None], cost=cost)))(n[1:]))
    allowed = stats.binom.ppf(1 - 1e-6, runs, delta)
    assert 0 < (statistic > student).any(axis=1).sum() <= allowed
    gk16 = np.log1p(np.log(n[1:])) - np.log(delta)
    assert (statistic > gk16).any(axis=1).sum() > allowed


@pytest.mark.parametrize("factory", [mab.uniform, mab.tas, mab.eb_tc, mab.eb_tci, mab.t3c])
@pytest.mark.parametrize("start", [1, 0, 2.5])
def test_a_start_that_gives_no_variance_is_refused(factory, start):
    with pytest.raises(ValueError, match=r"start must be .*(at least|integer|whole|int)"):
        factory(mab.Gaussian(3, None), delta=0.1, start=start)


def test_sums_of_several_rewards_need_their_squares():
    algorithm = mab.uniform(mab.Gaussian(2, None), delta=0.1, every=3)
    pull = mab.Pull(np.arange(2, dtype=np.int32), np.full(2, 3, np.int32))
    for refused in (mab.Rewards(np.zeros(2), pull.times), mab.SquaredRewards(np.zeros(2), pull.times, -np.ones(2))):
        with pytest.raises(ValueError, match=r"observation(\.squares)? must (be|hold)"):
            algorithm.receive(pull, refused)
