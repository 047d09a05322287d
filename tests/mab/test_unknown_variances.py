"""Normal rewards of unknown variance: costs, times, thresholds, statistics and runs."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandits
from experiments.bench.reference import questions
from experiments.bench.reference import variances as reference
from jaxbandits import Status, mab
from jaxbandits.mab._problem.laws.pooled import Sample
from jaxbandits.mab._problem.problems import law_of, measured_problem
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.thresholds import Evidence

KEY = jax.random.key(0)
COSTS = ("adaptive", "plug-in")
MEANS, SD = (1.0, 0.7, 0.5, 0.3), (1.0, 0.5, 1.0, 2.0)


@partial(jax.jit, static_argnums=0)
def pair_costs(cost, N, m, v):
    """Computes the costs of pairs, rows (n, 2), and the first arm's information-directed shares."""
    problem = measured_problem(mab.Gaussian(2, None, cost=cost), v)
    pair = [Sample(N[:, i], m[:, i], v[:, i]) for i in (0, 1)]
    law = law_of(problem)
    return law.transport(problem, *pair, None), law.share(problem, *pair)


def drawn(n=300):
    rng = np.random.default_rng(2)
    N = rng.integers(2, 300, (n, 2)).astype(float)
    m = rng.normal(0, 1, (n, 2))
    return N, m, np.exp(rng.normal(-1, 2, (n, 2)))


def test_costs_by_hand():
    N, m, v = np.array([[10.0, 10], [20, 5]]), np.array([[1.0, 0], [1, 0]]), np.array([[0.04, 0.04], [0.5, 2.0]])
    np.testing.assert_allclose(pair_costs("adaptive", N, m, v)[0], [16.09437912, 0.97938081], rtol=1e-8)
    np.testing.assert_allclose(pair_costs("plug-in", N, m, v)[0], [62.5, 1.17647059], rtol=1e-8)


@pytest.mark.parametrize("cost", COSTS)
def test_costs_against_a_grid_and_the_roots_of_the_cubic(cost):
    N, m, v = drawn()
    ours, shares = pair_costs(cost, N, m, v)
    single, _ = pair_costs(cost, *(x.astype(np.float32) for x in (N, m, v)))
    for n in range(len(N)):
        theirs = reference.swap(cost, N[n], m[n], v[n], (0, 1))
        np.testing.assert_allclose(ours[n], theirs, rtol=1e-9)
        np.testing.assert_allclose(single[n], theirs, rtol=2e-4)
        if theirs > 0:
            x = np.linspace(m[n, 1], m[n, 0], 20_001)[:, None]
            ratio = (m[n] - x) ** 2 / v[n]
            parts = N[n] / 2 * (np.log1p(ratio) if cost == "adaptive" else ratio)
            least = parts.sum(axis=1).argmin()
            assert ours[n] <= parts[least].sum() * (1 + 1e-12)
            np.testing.assert_allclose(ours[n], parts[least].sum(), rtol=1e-4)
            np.testing.assert_allclose(shares[n], parts[least, 0] / parts[least].sum(), atol=2e-2)


def test_the_adaptive_cost_tends_to_the_plug_in_cost_as_variances_grow():
    N, m, v = drawn()
    adaptive, plug_in = (np.asarray(pair_costs(cost, N, m, 1e8 * v)[0]) for cost in COSTS)
    np.testing.assert_allclose(adaptive, plug_in, rtol=1e-3)
    assert (np.asarray(pair_costs("adaptive", N, m, v)[0]) <= np.asarray(pair_costs("plug-in", N, m, v)[0])).all()


@partial(jax.jit, static_argnums=(0, 3))
def time_of(cost, means, sd, question):
    return mab.characteristic_time(mab.Gaussian(len(means), None, cost=cost), means, sd=sd, question=question)


@pytest.mark.parametrize(
    ("cost", "value", "weights"),
    [
        ("adaptive", 81.595464, (0.42785, 0.19799, 0.13677, 0.23739)),
        ("plug-in", 79.042141, (0.43494, 0.19877, 0.13191, 0.23438)),
    ],
)
def test_characteristic_times_of_an_independent_program(cost, value, weights):
    question = None if cost == "adaptive" else mab.TopM(1)
    time = time_of(cost, np.array(MEANS), np.array(SD), question)
    np.testing.assert_allclose([time.value, time.lower, time.upper], value, rtol=1e-7)
    np.testing.assert_allclose(time.allocation, weights, atol=1e-4)


def test_times_of_two_arms_and_of_one_arm_by_hand():
    for gap in (0.5, 1.9, 3.0, 10.0):
        time = time_of("adaptive", np.array([gap, 0.0]), np.ones(2), None)
        # Beyond two standard deviations the midpoint is the worst of all points.
        x = np.linspace(0, gap / 2, 100_001)
        rate = (np.log1p(x**2) + np.log1p((gap - x) ** 2)).min() / 4
        np.testing.assert_allclose(time.value, 1 / rate, rtol=1e-7)
        assert time.lower <= time.value <= time.upper <= time.lower * (1 + 1e-9)
    above = time_of("adaptive", np.array(MEANS), np.array(SD), mab.Above(0.6))
    rates = np.log1p((np.array(MEANS) - 0.6) ** 2 / np.array(SD) ** 2) / 2
    np.testing.assert_allclose(above.value, (1 / rates).sum(), rtol=1e-12)
    good = time_of("adaptive", np.array([1.0, 0.9, 0.0]), np.array([2.0, 0.5, 0.1]), mab.GoodArm(0.5))
    np.testing.assert_allclose(good.value, 2 / np.log1p(0.4**2 / 0.5**2), rtol=1e-12)
    np.testing.assert_array_equal(good.allocation, [0, 1, 0])  # not the best arm, whose variance is large
    slope = jax.grad(lambda m: time_of("adaptive", m, np.ones(2), mab.GoodArm(0.5)).value)
    assert np.isfinite(slope(np.array([0.0, 0.1]))).all()  # no arm is good
    scaled = [time_of("plug-in", np.array(MEANS) * c, np.full(4, c), None).value for c in (1.0, 4.0)]
    known = mab.characteristic_time(mab.Gaussian(4), jnp.array(MEANS)).value
    np.testing.assert_allclose(scaled, known, rtol=1e-9)


@pytest.mark.parametrize(
    ("kind", "delta", "n", "values"),
    [
        ("student", 0.1, 5, (np.inf, np.inf)),
        ("student", 0.1, 50, (9.73649665, 11.904581)),
        ("student", 0.001, 500, (17.0416966, 17.6359615)),
        ("uv_box", 0.1, 5, (np.inf, np.inf)),
        ("uv_box", 0.1, 50, (46.7833146, 70.3613332)),
        ("uv_box", 0.001, 500, (44.8684582, 46.4731639)),
    ],
)
def test_thresholds_of_an_independent_program(kind, delta, n, values):
    threshold = getattr(thresholds, kind)(comparisons=1 if n == 5 else 3)
    for cost, value in zip(COSTS, values, strict=True):
        for dtype, tolerance in ((np.float64, 5e-9), (np.float32, 1e-5)):
            ours = threshold(dtype(delta), Evidence(3 * n, np.array([n, 2 * n]), cost=cost))
            assert ours.dtype == dtype
            np.testing.assert_allclose(ours, value, rtol=tolerance)
        if kind == "student":
            theirs = reference.student(np.array([n, 2 * n]), delta / (1 if n == 5 else 3), cost)
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_student_tends_to_its_gaussian_limit():
    """The mixture of a normal law over the mean adds log(n + 1) for two arms."""
    for n, excess in ((100, 0.0928), (1000, 0.0109), (10**5, 1.5e-4)):
        value = float(thresholds.student(comparisons=1)(0.1, Evidence(2 * n, np.array([n, n]), cost="adaptive")))
        u = value - np.log(n + 1) - excess
        # u - log(1 + u) = log 10
        np.testing.assert_allclose(u - np.log1p(u), np.log(10.0), atol=2e-4)


@pytest.mark.parametrize("sd", [(1.0, 1.0), (0.3, 2.0)])
def test_student_is_passed_by_few_runs_of_two_equal_arms(sd):
    """The proof allows a share of .1 and .004 pass; false alarm 1e-9. gk16 is passed by far more after 2 pulls."""
    rng, runs, length = np.random.default_rng(0), 300, 400
    rewards = rng.normal(size=(2, runs, length)) * np.array(sd)[:, None, None]
    n = np.arange(1, length + 1)
    m = rewards.cumsum(axis=2) / n
    v = np.maximum((rewards**2).cumsum(axis=2) / n - m**2, 1e-300)
    high = (m[0] > m[1]).astype(int)[None]
    order = np.concatenate([1 - high, high])  # the arm ahead first
    pulls = np.broadcast_to(n, (2, runs, length)).astype(float)
    columns = [np.take_along_axis(x, order, 0)[:, :, 1:].reshape(2, -1).T for x in (pulls, m, v)]
    statistic = np.asarray(pair_costs("adaptive", *columns)[0]).reshape(runs, length - 1)
    student = np.array([reference.student(np.array([k, k]), 0.1, "adaptive") for k in n[1:]])
    gk16 = np.log1p(np.log(2 * n[1:])) - np.log(0.1)
    assert (statistic > student).any(axis=1).mean() <= 0.1
    assert (statistic > gk16).any(axis=1).mean() > 0.1


@pytest.mark.parametrize(
    ("cost", "pulls", "stop"),
    [
        ("adaptive", "012301230123302203022202000323000030000130000202303330320000", 13910),
        ("plug-in", "012301230123302202023202000323000030000130000202303330330000", 13767),
    ],
)
def test_the_numpy_program_reproduces_published_pulls(cost, pulls, stop):
    tape = reference.rewards((0.5, 0.25, 0.4, -0.1), (1.0, 0.5, 1.5, 0.7), 9000)
    coins = iter(questions.coins(stop))
    # The whole run takes seconds for the adaptive cost.
    rounds = stop + 1 if cost == "plug-in" else 60
    course = reference.run(tape, reference.eb_tci(cost), cost=cost, start=3, delta=0.05, rounds=rounds, coins=coins)
    assert "".join(str(step.arms[0]) for step in course[:60]) == pulls
    if cost == "plug-in":
        assert (len(course) - 1, course[-1].stop, course[-1].answer) == (stop, True, 0)


def test_sums_and_squares_of_leaps_have_their_law():
    """Kolmogorov, at a false-alarm rate of 1e-4; sums and squares are uncorrelated."""
    instance = mab.gaussian((2.0, -1.0, 0.5, 3.0), sd=(0.5, 2.0, 1.0, 3.0))
    algorithm = mab.uniform(instance.problem, delta=0.1, every=60)
    environment = mab.environment(instance, algorithm)
    pulls = np.array([1, 2, 3, 40])
    action = mab.Pull(np.arange(4, dtype=np.int32), pulls.astype(np.int32))
    keys = jax.random.split(KEY, 20_000)
    paid = jax.device_get(
        jax.jit(jax.vmap(lambda key: environment.respond((), action, environment.noise(key))[0]))(keys)
    )
    for arm, n in enumerate(pulls):
        kept = paid.times[:, arm] == n
        assert kept.mean() > 0.999
        mean, sd = float(instance.means[arm]), float(instance.sd[arm])
        z = (paid.sums[kept, arm] - n * mean) / (sd * n**0.5)
        squares = paid.squares[kept, arm] / sd**2
        assert stats.kstest(z, stats.norm.cdf).pvalue > 1e-4
        if n == 1:
            assert (squares == 0).all()
        else:
            assert stats.kstest(squares, stats.chi2(n - 1).cdf).pvalue > 1e-4
            assert abs(np.corrcoef(z, squares)[0, 1]) < 0.03


@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32])
def test_statistics_equal_numpy_for_means_far_from_zero(dtype):
    """Squares of rewards near 1000 have no digit of the variance left in 32 bit."""
    algorithm = mab.uniform(mab.Gaussian(2, None, dtype), delta=0.1)
    rng = np.random.default_rng(1)
    tape = 1000 + rng.normal(size=(2, 200)) * np.array([[0.5], [2.0]])
    rounded = np.asarray(tape.astype(dtype), float)

    @jax.jit
    def fed(rewards):
        def one(state, reward):
            arm = state.pulls.astype(jnp.int32) % 2
            pull = mab.Pull(arm[None], jnp.ones(1, jnp.int32))
            return algorithm.observe(state, pull, mab.Rewards(reward[None], pull.times)), None

        return jax.lax.scan(one, algorithm.init(KEY), rewards)[0]

    state = fed(jnp.asarray(tape.T.ravel(), dtype))
    known = mab.estimates(mab.Gaussian(2, None, dtype), state)
    np.testing.assert_allclose(known.means, rounded.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(known.variances, rounded.var(axis=1), rtol=1e-9 if dtype == jnp.float64 else 1e-4)


def test_batches_keep_the_guarantee_and_their_size():
    instance = mab.gaussian(MEANS, sd=SD)
    algorithm = mab.eb_tci(instance.problem, delta=0.1, every=20, start=5)
    environment = mab.environment(instance, algorithm)
    outcome = jax.jit(lambda key: jaxbandits.run(key, algorithm, environment, max_rounds=10**4))(KEY)
    assert outcome.status == Status.STOPPED
    assert (outcome.pulls - 20) % 20 == 0
    assert (outcome.state.counts >= 5).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: mab.eb_tci(mab.Gaussian(3, None), delta=0.1, start=1),
            "start must be at least 2, since a variance needs two pulls",
        ),
        (lambda: mab.eb_tc(mab.Gaussian(3, None, least_variance=-1.0), delta=0.1), "least_variance must be at least 0"),
        (lambda: mab.eb_tc(mab.Gaussian(3, None, cost="likely"), delta=0.1), "cost must be one of"),
        (lambda: mab.kl_lucb(mab.Gaussian(3, None), delta=0.1), "problem must have a noise_scale"),
        (lambda: mab.lucb(mab.Gaussian(3, None), delta=0.1), "problem must have a sub-Gaussian constant"),
        (
            lambda: mab.eb_tc(mab.Gaussian(3, None), delta=0.1, question=mab.AllGood(0.1), leader_share="ids"),
            "question must not be AllGood with unknown variances",
        ),
        (
            lambda: mab.eb_tc(mab.Gaussian(3), delta=0.1, threshold=thresholds.student(arms=3)),
            r"evidence\.cost must be adaptive or plug-in for student",
        ),
        (lambda: mab.gaussian((0.0, 1.0), sd=(1.0, 0.0)), "sd must be"),
        (lambda: mab.characteristic_time(mab.Gaussian(2, None), jnp.arange(2.0)), "sd must be given"),
        (lambda: thresholds.student(arms=3, prior=0.0), "prior must be"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


PULLS = {  # mean pulls, standard error, errors of 1000 runs of an independent program
    "gk16, 2": ({"start": 2}, (346.6, 6.2, 10), (269.6, 7.2, 90)),
    "gk16, 3": ({}, (350.2, 6.1, 3), (298.3, 6.7, 33)),
    "gk16, 10": ({"start": 10}, (348.5, 5.7, 1), (325.7, 5.9, 2)),
    "student, 10": ({"threshold": thresholds.student(arms=4)}, (927.0, 9.7, 0), (968.8, 10.1, 0)),
}


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("form", PULLS)
def test_pulls_and_errors(form, cost):
    """Four standard errors of the difference of means; false alarm 6e-5. Errors at a false-alarm rate of 1e-5."""
    settings, *theirs = PULLS[form]
    mean, error, wrong = theirs[COSTS.index(cost)]
    instance = mab.gaussian(MEANS, sd=SD, cost=cost)
    algorithm = mab.eb_tci(instance.problem, delta=0.1, **settings)
    environment = mab.environment(instance, algorithm)

    def metrics(task, outcome):
        return {"wrong": ~mab.is_right(instance, outcome.answer)}

    results = jaxbandits.sweep(
        lambda task, key: (algorithm, environment),
        seeds=1000,
        key=KEY,
        max_rounds=10**6,
        metrics=metrics,
        progress=False,
    )
    pulls = np.asarray(results["pulls"], float)
    assert abs(pulls.mean() - mean) < 4 * np.hypot(pulls.std() / len(pulls) ** 0.5, error)
    ours = int(np.sum(results["wrong"]))
    assert stats.fisher_exact([[ours, 1000 - ours], [wrong, 1000 - wrong]]).pvalue > 1e-5
