"""Laws of rewards: divergences, intervals, costs and weights against brute force, sums of pulls, and refusals."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq, minimize_scalar

import jaxbandits
from jaxbandits import Status, mab
from jaxbandits.mab._problem.laws.pooled import Sample
from jaxbandits.mab._problem.problems import bound, divergence, law_of, posterior_draws
from jaxbandits.mab._shared.weights import optimal_weights
from jaxbandits.numerics.thresholds import exponential_mixture, kt, poisson_mixture

KEY = jax.random.key(0)
LAWS = {"gaussian": mab.Gaussian(3, 0.7), "bernoulli": mab.Bernoulli(3)}
LAWS |= {"poisson": mab.Poisson(3), "exponential": mab.Exponential(3)}
POSITIVE = ("poisson", "exponential")
# Worked numbers: N = 10, 30 of means m: the cost without a margin, then (m, margin, cost).
COSTS = {
    "gaussian": ((1.0, 0.0), 3.75, (1.0, 0.8), 0.3, 0.9375),
    "bernoulli": ((0.7, 0.4), 1.37687334, (0.7, 0.6), 0.2, 1.40316550),
    "poisson": ((3.0, 2.0), 1.56348003, (3.0, 2.5), 1.0, 3.48983648),
    "exponential": ((3.0, 2.0), 0.65667035, (3.0, 2.5), 1.0, 1.36352201),
}


def kl(kind, p, q):
    """Computes the divergence as it is defined."""
    if kind == "gaussian":
        return (p - q) ** 2 / (2 * 0.7**2)
    if kind == "bernoulli":
        return stats.entropy([p, 1 - p], [q, 1 - q])
    if kind == "poisson":
        return q if p == 0 else p * np.log(p / q) - p + q
    return p / q - 1 - np.log(p / q)


def test_divergences_keep_their_digits_near_equal_means():
    for kind in POSITIVE:
        program = jax.jit(lambda p, q, kind=kind: divergence(LAWS[kind], p, q))
        for p, q in ((3.0, 2.0), (0.2, 70.0), (5.0, 0.01)):
            np.testing.assert_allclose(program(p, q), kl(kind, p, q), rtol=1e-13)
        d = 1e-7  # the definition has no digit left; the series has three terms
        expected = d**2 / 2 - d**3 / 3 if kind == "exponential" else d**2 / 2 - d**3 / 6
        factor = 3.0 if kind == "poisson" else 1.0
        q = 3.0 * (1 + d)
        exact = (q - 3.0) / 3.0
        np.testing.assert_allclose(program(3.0, q) / factor, expected * (exact / d) ** 2, rtol=2e-7)
    assert float(divergence(LAWS["poisson"], jnp.float64(0), jnp.float64(0.4))) == 0.4


@pytest.mark.parametrize("kind", POSITIVE)
def test_intervals_against_bisection(kind):
    program = jax.jit(lambda m, c, is_upper: bound(LAWS[kind], m, c, is_upper))
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-6)):
        for m in (0.5, 1.0, 300.0):
            for c in (1e-6, 1e-3, 0.1, 3.0, 30.0):
                scale = m if kind == "poisson" else 1.0  # both are exp(z) - 1 - z = h
                h = dtype(c * scale) if kind == "exponential" else dtype(c)
                upper, lower = (float(program(dtype(m), h, side)) for side in (True, False))
                for z, sign in ((np.log(upper / m), 1), (np.log(lower / m), -1)):
                    height = float(h) / (m if kind == "poisson" else 1)
                    side = sign if kind == "poisson" else -sign

                    def excess(z, height=height):
                        near = z * z / 2 * (1 + z / 3 + z * z / 12 + z**3 / 60)
                        return (near if abs(z) < 1e-3 else np.expm1(z) - z) - height

                    root = brentq(excess, 0, side * (height + 2 * np.sqrt(height) + 1), xtol=1e-16, rtol=1e-14)
                    root = root if kind == "poisson" else -root
                    np.testing.assert_allclose(z, root, rtol=tolerance * 1e3, atol=tolerance)
    worked = {
        "poisson": [
            (0.5, 0.2, 0.17495212052, 1.08937621793),
            (5.0, 1e-4, 4.9684438549, 5.03168947838),
            (0, 0.3, 0, 0.3),
        ],
        "exponential": [(0.5, 0.2, 0.28212726651, 1.01370647985), (5.0, 1e-4, 4.92995091554, 5.07138248595)],
    }
    for m, c, lower, upper in worked[kind]:
        np.testing.assert_allclose(program(m, c, False), lower, rtol=1e-10)
        np.testing.assert_allclose(program(m, c, True), upper, rtol=1e-10)


@pytest.mark.parametrize("kind", LAWS)
def test_costs_against_a_search(kind):
    problem = mab.Gaussian(2, 1.0) if kind == "gaussian" else LAWS[kind]
    law = law_of(problem)
    program = jax.jit(
        lambda n, m, n_a, m_a, epsilon: (
            law.transport(problem, Sample(n, m), Sample(n_a, m_a), None),
            law.transport(problem, Sample(n, m), Sample(n_a, m_a), epsilon),
        )
    )
    pair, plain, shifted, margin, with_margin = COSTS[kind]
    given = (10.0, pair[0], 30.0, jnp.array([pair[1]]), margin)
    np.testing.assert_allclose(program(*given)[0], [plain], rtol=1e-8)
    given = (10.0, shifted[0], 30.0, jnp.array([shifted[1]]), margin)
    np.testing.assert_allclose(program(*given)[1], [with_margin], rtol=1e-8)
    if kind == "gaussian":
        return
    rng = np.random.default_rng(3)
    for _ in range(150):
        n_l, n_a = rng.integers(1, 1000, 2).astype(float)
        m_l, m_a = rng.uniform(0.01, 0.99, 2) if kind == "bernoulli" else np.exp(rng.normal(0, 1.5, 2))
        epsilon = rng.uniform(0, 0.9) if kind == "bernoulli" else np.exp(rng.normal(-1, 1))
        low, high = max(0, m_a - epsilon), min(m_l, 1 - epsilon) if kind == "bernoulli" else m_l

        def cost(x, n_l=n_l, m_l=m_l, n_a=n_a, m_a=m_a, epsilon=epsilon):
            return n_l * kl(kind, m_l, x) + n_a * kl(kind, m_a, x + epsilon)

        cheapest = 0.0
        if low < high:
            pieces = np.linspace(low, high, 9)
            cheapest = min(
                minimize_scalar(cost, bounds=pair, method="bounded", options={"xatol": 1e-12}).fun
                for pair in itertools.pairwise(pieces)
            )
        ours = program(n_l, m_l, n_a, np.array([m_a]), epsilon)[1][0]
        np.testing.assert_allclose(ours, cheapest, rtol=1e-6, atol=1e-7)


def test_characteristic_times():
    """Worked numbers, and one of two exponential arms, which depends on the ratio of means alone."""
    for kind, value, weights in (
        ("poisson", 21.055561, [0.45675, 0.48567, 0.05758]),
        ("exponential", 51.214569, [0.44477, 0.50755, 0.04769]),
    ):
        time = mab.characteristic_time(LAWS[kind], jnp.array([3.0, 2.0, 1.0]))
        np.testing.assert_allclose([time.value, time.lower, time.upper], value, rtol=1e-7)
        np.testing.assert_allclose(time.allocation, weights, atol=1e-5)
    scaled = mab.characteristic_time(LAWS["exponential"], jnp.array([24.0, 16.0, 8.0]))
    np.testing.assert_allclose(scaled.value, 51.214569, rtol=1e-7)


def test_weights_of_means_that_are_0():
    """A Poisson arm without events, whose divergence from every other mean is infinite."""
    program = jax.jit(lambda means: optimal_weights(LAWS["poisson"], means)[0])
    for dtype in (np.float64, np.float32):
        np.testing.assert_allclose(program(np.zeros(3, dtype)), 1 / 3, rtol=1e-6)
        # sum over both of (1 + x) log(1 + x) - x = 1
        x = brentq(lambda x: 2 * ((1 + x) * np.log1p(x) - x) - 1, 0.1, 10)
        np.testing.assert_allclose(program(np.array([0, 7, 0], dtype)), np.array([x, 1, x]) / (1 + 2 * x), rtol=1e-4)
        mixed = np.asarray(program(np.array([2, 1, 0], dtype)))
        np.testing.assert_allclose(mixed, [0.4519, 0.5054, 0.0427], atol=1e-4)


def leaping(instance, leap):
    return mab.environment(instance, mab.successive_rejects(instance.problem, horizon=200, leap=leap))


def draws(environment, arms, times, n=40_000):
    action = mab.Pull(np.array(arms, np.int32), np.array(times, np.int32))
    keys = jax.random.split(KEY, n)
    return jax.device_get(
        jax.jit(jax.vmap(lambda key: environment.respond((), action, environment.noise(key))[0]))(keys)
    )


def test_sums_of_exponential_rewards_have_their_law():
    """Kolmogorov, at a false-alarm rate of 1e-4."""
    instance = mab.exponential([2.0, 0.5, 3.0])
    sums, times = draws(leaping(instance, 60), [0, 1, 2], [1, 60, 0])
    assert ((times[:, 2] == 0) & (sums[:, 2] == 0)).all()
    for arm, n in ((0, 1), (1, 60)):
        kept = sums[times[:, arm] > 0, arm]
        assert len(kept) > 39_990
        assert stats.kstest(kept, stats.gamma(n, scale=[2.0, 0.5][arm]).cdf).pvalue > 1e-4
    sums, times = draws(mab.environment(instance), [2], [1])
    assert (times == 1).all()
    assert (sums > 0).all()
    assert stats.kstest(sums[:, 0], stats.expon(scale=3.0).cdf).pvalue > 1e-4


@pytest.mark.thorough
@pytest.mark.wide
@pytest.mark.parametrize("kind", POSITIVE)
@pytest.mark.parametrize("rule", [mab.successive_rejects, mab.sequential_halving])
def test_leaps_change_no_law_of_the_answer(kind, rule):
    """Answers of 3000 runs pull by pull and of 3000 in leaps, by a chi-square test at a false-alarm rate of 1e-4."""
    instance = getattr(mab, kind)([2.0, 1.7, 1.4, 1.0])
    tables = []
    for leap in (1, 60):
        algorithm = rule(instance.problem, horizon=60, leap=leap)
        environment = mab.environment(instance, algorithm)
        results = jaxbandits.sweep(
            lambda task, key, pair=(algorithm, environment): pair,
            seeds=3000,
            key=jax.random.key(leap),
            max_rounds=100,
            progress=False,
        )
        assert len(np.unique(results["pulls"])) == 1
        tables.append(np.bincount(np.asarray(results["answer"]), minlength=4))
    assert tables[0][0] < 2700  # errors are frequent enough to tell
    kept = np.array(tables)[:, np.sum(tables, axis=0) > 0]
    assert stats.chi2_contingency(kept).pvalue > 1e-4


def test_sums_of_poisson_rewards_have_their_mean_and_variance():
    """The law itself is held against the probabilities in tests/numerics; here the arms and times go to their slots."""
    instance = mab.poisson([2.0, 0.5, 30.0])
    for leap, times in ((60, [60, 7, 0]), (1, [1])):
        environment = leaping(instance, leap) if leap > 1 else mab.environment(instance)
        sums, made = draws(environment, [0, 1, 2] if leap > 1 else [2], times)
        for slot, n in enumerate(times):
            mean = n * ([2.0, 0.5, 30.0][slot] if leap > 1 else 30.0)
            kept = sums[made[:, slot] > 0, slot] if n else sums[:, slot]
            assert len(kept) > 39_000
            assert abs(kept.mean() - mean) <= 5 * np.sqrt(mean / len(kept))
            np.testing.assert_allclose(kept.var(), mean, rtol=0.04)


@pytest.mark.parametrize("kind", POSITIVE)
def test_the_nth_pull_of_an_arm_pays_the_same(kind):
    instance = getattr(mab, kind)([2.0, 40.0])
    environment = mab.environment(instance, stream=KEY)
    counts = jnp.array([3, 1], jnp.int32)
    pull = mab.Pull(np.array([1], np.int32), np.array([1], np.int32))
    first, after = environment.respond(counts, pull, ())
    again, _ = environment.respond(jnp.array([9, 1], jnp.int32), pull, ())
    assert first.sums == again.sums > 0
    assert first.times == 1
    np.testing.assert_array_equal(after, [3, 2])
    with pytest.raises(ValueError, match="stream must be None for leaps"):
        mab.environment(instance, mab.successive_rejects(instance.problem, horizon=50, leap=9), stream=KEY)


def test_bounded_rewards_are_uniform_around_their_mean_and_cannot_leap():
    instance = mab.bounded([0.3, 0.9])
    for arm, law in enumerate((stats.uniform(0, 0.6), stats.uniform(0.8, 0.2))):
        sums, times = draws(mab.environment(instance), [arm], [1])
        assert (times == 1).all()
        assert stats.kstest(sums[:, 0], law.cdf).pvalue > 1e-4
    with pytest.raises(ValueError, match="algorithm must not leap with Bounded arms, got 9"):
        leaping(instance, 9)


def test_bounded_arms_are_told_apart_by_the_divergence_of_bernoulli_arms():
    """Rewards 0 and 1 of bounded arms make the run of Bernoulli arms, with the same lots."""
    ones = mab.bernoulli([0.2, 0.7, 0.5])
    rules = [mab.kl_lucb(problem, delta=0.1) for problem in (ones.problem, mab.Bounded(3))]
    outcomes = [jaxbandits.run(KEY, rule, mab.environment(ones, rule), max_rounds=10**4) for rule in rules]
    assert outcomes[0].rounds == outcomes[1].rounds > 20
    instance = mab.bounded([0.2, 0.7, 0.5])
    algorithm = mab.eb_tci(instance.problem, delta=0.1, threshold=kt(arms=3))
    outcome = jaxbandits.run(KEY, algorithm, mab.environment(instance, algorithm), max_rounds=10**4)
    assert outcome.status == Status.STOPPED
    assert mab.is_right(instance, outcome.answer)


@pytest.mark.parametrize(
    ("instance", "question", "threshold"),
    [
        (mab.bernoulli([0.2, 0.8, 0.5]), mab.GoodArm(0.4), kt(comparisons=3)),
        (mab.poisson([3.0, 1.0, 0.3]), mab.Above(2.0), poisson_mixture(comparisons=3)),
        pytest.param(
            mab.exponential([3.0, 1.0, 0.3]), mab.Above(2.0), exponential_mixture(comparisons=3), marks=pytest.mark.wide
        ),
        pytest.param(mab.bounded([0.2, 0.8, 0.7]), mab.AllGood(0.3), kt(comparisons=1), marks=pytest.mark.wide),
    ],
)
def test_other_questions_have_proved_thresholds(instance, question, threshold):
    """One arm against a level, or all arms at once."""
    algorithm = mab.eb_tc(instance.problem, question=question, delta=0.1, threshold=threshold, leader_share="ids")
    outcome = jaxbandits.run(KEY, algorithm, mab.environment(instance, algorithm), max_rounds=10**5)
    assert outcome.status == Status.STOPPED
    assert mab.is_right(instance, outcome.answer, question=question)


def test_posterior_draws_have_their_law():
    for kind, laws in {
        "bounded": [stats.beta(2.5, 3.5), stats.beta(3.25, 8.75)],
        "poisson": [stats.gamma(0.5, scale=1 / 4), stats.gamma(12.5, scale=1 / 10)],
        "exponential": [stats.invgamma(4, scale=8.0), stats.invgamma(10, scale=3.0)],
    }.items():
        problem = (mab.Bounded if kind == "bounded" else type(LAWS[kind]))(2)
        counts = np.array([4.0, 10.0])
        sums = np.array({"bounded": [1.5, 2.25], "poisson": [0.0, 12.0], "exponential": [8.0, 3.0]}[kind])
        drawn = jax.jit(partial(posterior_draws, problem, number=20_000))(KEY, counts, sums / counts)
        for arm, law in enumerate(laws):
            assert stats.kstest(np.asarray(drawn[:, arm]), law.cdf).pvalue > 1e-4


def test_rewards_outside_the_law_end_the_run():
    for instance, reward in (
        (mab.poisson([2.0, 1.0]), 0.5),
        (mab.bounded([0.2, 0.1]), 1.5),
        (mab.exponential([2.0, 1.0]), -1.0),
    ):
        algorithm = mab.eb_tci(instance.problem, delta=0.1)
        environment = jaxbandits.Environment(
            lambda key: (),
            lambda key: (),
            lambda memory, pull, noise, x=reward: (mab.Rewards(x * pull.times.astype(float), pull.times), memory),
        )
        assert jaxbandits.run(KEY, algorithm, environment, max_rounds=50).status == Status.NONFINITE


def test_rules_that_need_a_sub_gaussian_constant_refuse():
    problem = mab.Poisson(3)
    for factory, settings in (
        (mab.lucb, {"delta": 0.1}),
        (mab.successive_elimination, {"delta": 0.1}),
        (mab.batched_elimination, {"delta": 0.1}),
        (mab.lil_ucb, {"delta": 0.1}),
        (mab.hdoc, {"level": 0.5, "delta": 0.1}),
        (mab.lsa, {"level": 0.5, "horizon": 50}),
        (mab.continuous_rejects, {"horizon": 50}),
        (mab.ucb1, {}),
        (mab.moss, {"horizon": 50}),
        (mab.moss_anytime, {}),
        (mab.discounted_ucb, {"discount": 0.9}),
        (mab.sliding_window_ucb, {"window": 9}),
        (mab.m_ucb, {"window": 4, "threshold": 1.0, "gamma": 0.1}),
    ):
        with pytest.raises(ValueError, match=r"problem must have a sub-Gaussian constant \([\w ]+ needs? none\)"):
            factory(problem, **settings)
    with pytest.raises(ValueError, match="problem must be Gaussian, Bernoulli or Bounded"):
        mab.bayes_ucb(problem)
    with pytest.raises(ValueError, match="problem must be Bernoulli"):
        mab.exp3(problem, gamma=0.1)
    with pytest.raises(ValueError, match="epsilon must be 0 for optimal weights of Poisson arms"):
        mab.tas(problem, delta=0.1, epsilon=0.2)
