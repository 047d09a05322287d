"""Questions about the means: costs against a generic optimiser, characteristic times, answers, and runs."""

import functools

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

import jaxbandits
from experiments.bench.reference import questions as reference
from experiments.bench.reference.mab import Law, kl
from jaxbandits import mab
from jaxbandits.mab._problem.questions.asked import kind_of
from jaxbandits.numerics import thresholds

KEY = jax.random.key(0)
LAWS = {"gaussian": Law("gaussian", 0.7), "bernoulli": Law("bernoulli", 0.5)}
PROBLEMS = {
    "gaussian": lambda K: mab.Gaussian(K, 0.7),
    "bernoulli": mab.Bernoulli,
    "poisson": mab.Poisson,
    "exponential": mab.Exponential,
}
QUESTIONS = {
    "top": (mab.TopM(2), ("top", 2)),
    "above": (mab.Above(0.45), ("above", 0.45)),
    "good": (mab.GoodArm(0.45), ("good", 0.45)),
    "all good": (mab.AllGood(0.2), ("all good", 0.2)),
}
FORMS = [(name, law) for name in QUESTIONS for law in LAWS]


def nearest(question, law, K):
    """Compiles the answer and the nearest alternative for lanes of counts and means."""
    return _nearest(type(question), question, law, K)  # as tuples, questions of two kinds may be equal


@functools.cache
def _nearest(struct, question, law, K):
    del struct
    problem, kind = PROBLEMS[law](K), kind_of(question)

    def one(N, m):
        return kind.answer(question, problem, N, m), kind.nearest(question, problem, N, m)

    return jax.jit(jax.vmap(one))


def drawn(lanes=12, K=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(5, 300, (lanes, K)).astype(float), rng.uniform(0.05, 0.95, (lanes, K))


def constraints(name, number, answer, m):
    """Returns sets of rows (g, h), g . lambda >= h, one for each form of means with another answer."""
    K, unit = len(m), np.eye(len(m))
    if name == "top":
        return [[(unit[j] - unit[i], 0.0)] for i in range(K) for j in range(K) if answer[i] and not answer[j]]
    if name == "above":
        return [[(-unit[a], -number) if answer[a] else (unit[a], number)] for a in range(K)]
    if name == "good":
        return [[(unit[a], number)] for a in range(K)] if answer == K else [[(-unit[answer], -number)]]
    falls = [[(unit[b] - unit[a], number)] for a in range(K) for b in range(K) if answer[a] and a != b]
    rises = [[(unit[a] - unit[b], -number) for b in range(K) if b != a] for a in range(K) if not answer[a]]
    return falls + rises


def optimised(law, N, m, rows):
    """Minimises the cost under linear constraints by a generic method."""
    low, high = (-5.0, 5.0) if law.kind == "gaussian" else (1e-9, 1 - 1e-9)

    def value(x):
        return sum(n * kl(law, p, q) for n, p, q in zip(N, m, x, strict=True)) / N.sum()

    limits = [{"type": "ineq", "fun": lambda x, g=g, h=h: g @ x - h} for g, h in rows]
    nearby = minimize(
        value,
        m,
        method="SLSQP",
        bounds=[(low, high)] * len(m),
        constraints=limits,
        options={"ftol": 1e-13, "maxiter": 300},
    )
    return nearby.fun * N.sum()


@pytest.mark.parametrize(("name", "law"), FORMS)
def test_nearest_alternative_equals_a_generic_optimum(name, law):
    question, (_, number) = QUESTIONS[name]
    N, m = drawn()
    answers, nearby = jax.device_get(nearest(question, law, 4)(N, m))
    for lane in range(len(N)):
        mine = reference.nearest(LAWS[law], QUESTIONS[name][1], N[lane], m[lane])
        np.testing.assert_allclose(nearby.cost[lane], mine.cost, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(nearby.parts[lane], mine.parts, rtol=1e-6, atol=1e-9)
        assert np.array_equal(answers[lane], reference.answer_of(LAWS[law], QUESTIONS[name][1], N[lane], m[lane]))
        if lane < 4:
            sets = constraints(name, number, answers[lane], m[lane])
            least = min(optimised(LAWS[law], N[lane], m[lane], rows) for rows in sets)
            np.testing.assert_allclose(nearby.cost[lane], least, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "law"), FORMS)
def test_parts_sum_to_the_cost_and_are_its_slopes(name, law):
    question = QUESTIONS[name][0]
    program = nearest(question, law, 4)
    N, m = drawn()
    _, nearby = jax.device_get(program(N, m))
    np.testing.assert_allclose(nearby.parts.sum(axis=1), nearby.cost, rtol=1e-9, atol=1e-12)
    for a in range(4):
        step = np.zeros(4)
        step[a] = 1e-3
        slope = (program(N + step, m)[1].cost - program(N - step, m)[1].cost) / 2e-3
        np.testing.assert_allclose(nearby.parts[:, a] / N[:, a], slope, rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(program(3 * N, m)[1].cost, 3 * nearby.cost, rtol=1e-9, atol=1e-12)
    order = np.array([2, 0, 3, 1])
    _, moved = jax.device_get(program(N[:, order], m[:, order]))
    np.testing.assert_allclose(moved.parts, nearby.parts[:, order], rtol=1e-9, atol=1e-12)


EVENTS, TIMES_OF_EVENTS = (236, 295, 106, 278), (260, 53, 61, 133, 104, 218)
WAITED = (2.572, 2.075, 3.322, 1.963, 5.112, 1.232)
# Counts and means, then a question with its least cost, by an independent program
COSTS = [
    ("gaussian", (39, 146, 45), (1.36, 1.225, -0.51), mab.TopM(2), 36.530116071),
    ("gaussian", (39, 146, 45), (1.36, 1.225, -0.51), mab.AllGood(0.103), 0.01575853),
    ("bernoulli", (44, 153, 133), (0.921, 0.615, 0.377), mab.TopM(2), 8.138542369),
    ("bernoulli", (44, 153, 133), (0.921, 0.615, 0.377), mab.Above(0.568), 0.695821725),
    ("bernoulli", (44, 153, 133), (0.921, 0.615, 0.377), mab.GoodArm(0.568), 13.681167527),
    ("bernoulli", (44, 153, 133), (0.921, 0.615, 0.377), mab.AllGood(0.078), 5.416640666),
    ("poisson", EVENTS, (4.461, 2.216, 1.165, 3.346), mab.TopM(2), 33.15467978),
    ("poisson", EVENTS, (4.461, 2.216, 1.165, 3.346), mab.Above(2.26), 0.127182055),
    ("poisson", EVENTS, (4.461, 2.216, 1.165, 3.346), mab.AllGood(0.652), 3.500184251),
    ("exponential", TIMES_OF_EVENTS, WAITED, mab.TopM(3), 0.96755578),
    ("exponential", TIMES_OF_EVENTS, WAITED, mab.GoodArm(3.128), 14.879717357),
    ("exponential", TIMES_OF_EVENTS, WAITED, mab.AllGood(0.573), 1.659562642),
]


@pytest.mark.parametrize(("law", "counts", "means", "question", "cost"), COSTS)
def test_costs_by_an_independent_program(law, counts, means, question, cost):
    nearby = nearest(question, law, len(counts))(np.array([counts], float), np.array([means]))[1]
    # The numbers are for unit variance.
    scale = 0.7**2 if law == "gaussian" else 1.0
    np.testing.assert_allclose(nearby.cost[0] * scale, cost, rtol=1e-7)


TIMES = [
    (mab.gaussian, (0.9, 0.75, 0.4, 0.3, 0.2, 0.1), mab.TopM(2), 103.76981),
    (mab.bernoulli, (0.5, 0.4, 0.3, 0.2, 0.1), mab.TopM(2), 211.67595),
    (mab.gaussian, (1.0, 0.9, 0.6, 0.3), mab.AllGood(0.3), 870.02312),
    (mab.bernoulli, (0.7, 0.6, 0.45, 0.2), mab.Above(0.5), 266.67079),
    (mab.bernoulli, (0.7, 0.6, 0.45, 0.2), mab.GoodArm(0.5), 12.153197),
    (mab.bernoulli, (0.7, 0.6, 0.45, 0.2), mab.GoodArm(0.75), 181.10186),
    (mab.gaussian, (1.0, 0.85, 0.8, 0.7), mab.BestArm(0.1), 176.7152665),
    (mab.poisson, (3.0, 2.0, 1.0), mab.TopM(1), 21.055561),
    (mab.exponential, (3.0, 2.0, 1.0), mab.TopM(1), 51.214569),
]


def time_program(problem, question):
    return _time_program(type(question), type(problem), problem, question)


@functools.cache
def _time_program(kind, law, problem, question):
    del kind, law
    return jax.jit(lambda means: mab.characteristic_time(problem, means, question=question))


@pytest.mark.parametrize(("make", "means", "question", "value"), TIMES)
def test_characteristic_times_of_an_independent_program(make, means, question, value):
    instance = make(means)
    time = time_program(instance.problem, question)(instance.means)
    np.testing.assert_allclose(time.value, value, rtol=1e-7)
    assert time.lower <= time.value <= time.upper <= time.lower * (1 + 1e-9)
    np.testing.assert_allclose(time.allocation.sum(), 1)


@pytest.mark.parametrize("law", PROBLEMS)
@pytest.mark.parametrize("question", [mab.TopM(2), mab.AllGood(0.2)])
def test_characteristic_times_of_random_means_are_certified(law, question):
    means = np.random.default_rng(0).uniform(0.05, 0.95, (200, 5))
    problem = PROBLEMS[law](5)
    program = jax.jit(jax.vmap(lambda means: mab.characteristic_time(problem, means, question=question)))
    time = jax.device_get(program(means))
    np.testing.assert_allclose(time.lower, time.upper, rtol=1e-9)


@pytest.mark.parametrize(("name", "law"), [("top", "bernoulli"), ("all good", "gaussian")])
def test_characteristic_times_equal_a_search_over_the_simplex(name, law):
    question, named = QUESTIONS[name]
    means = np.array([0.8, 0.65, 0.3])

    def loss(x):
        w = np.exp(np.append(x, 0.0))
        return -reference.nearest(LAWS[law], named, w / w.sum(), means).cost

    best = min(minimize(loss, start, method="Nelder-Mead").fun for start in np.array([[0.0, 0.0], [1.0, -1.0]]))
    time = time_program(PROBLEMS[law](3), question)(means)
    np.testing.assert_allclose(time.value, -1 / best, rtol=1e-3)
    assert time.lower <= -1 / best * (1 + 1e-9)


def test_times_scale_with_the_unit_and_mirror():
    means = np.array([0.9, 0.75, 0.4, 0.3, 0.2, 0.1])
    two, four = (time_program(mab.Gaussian(6), mab.TopM(m)) for m in (2, 4))
    time = two(means)
    np.testing.assert_allclose(two(3 * means).value, time.value / 9, rtol=1e-9)
    np.testing.assert_allclose(four(-means).value, time.value, rtol=1e-9)
    np.testing.assert_allclose(four(-means).allocation, time.allocation, atol=1e-6)
    tied = two(np.array([0.9, 0.4, 0.4, 0.3, 0.2, 0.1]))
    assert np.isinf(tied.value)
    np.testing.assert_allclose(tied.allocation, 1 / 6)


@pytest.mark.parametrize("law", LAWS)
def test_questions_agree_in_their_common_cases(law):
    N, m = drawn()
    m = np.sort(m, axis=1)[:, ::-1].copy()
    first = nearest(mab.BestArm(), law, 4)(N, m)[1]
    for question in (mab.TopM(1), mab.AllGood(0.0)):
        other = nearest(question, law, 4)(N, m)[1]
        np.testing.assert_allclose(other.cost, first.cost, rtol=1e-8)
        np.testing.assert_allclose(other.parts, first.parts, rtol=1e-5, atol=1e-9)
    low = 0.4 * m
    good, above = (nearest(question, law, 4)(N, low)[1] for question in QUESTION_PAIR)
    np.testing.assert_allclose(good.cost, above.cost)


QUESTION_PAIR = (QUESTIONS["good"][0], QUESTIONS["above"][0])


def test_the_one_best_arm_is_pulled_as_the_best_arm():
    instance = mab.gauss4()
    runs = []
    for question in (None, mab.TopM(1)):
        algorithm = mab.eb_tc(instance.problem, question=question, delta=0.1)
        environment = mab.environment(instance, algorithm)
        runs.append(jaxbandits.run(KEY, algorithm, environment, max_rounds=200, chunk=200))
    np.testing.assert_array_equal(runs[0].state.counts, runs[1].state.counts)
    assert bool(runs[1].answer[runs[0].answer])


def test_answers_are_judged_by_their_question():
    instance = mab.gaussian((0.5, 0.3, 0.3, -0.2))
    right = functools.partial(mab.is_right, instance)
    top = mab.TopM(2)
    assert right(np.array([True, False, True, False]), question=top)
    assert not right(np.array([True, False, False, True]), question=top)
    assert not right(np.array([True, True, True, False]), question=top)
    assert right(np.array([True, True, True, False]), question=mab.Above(0.0))
    assert not right(np.array([True, True, False, False]), question=mab.Above(0.0))
    assert right(np.array([True, True, False, False]), question=mab.Above(0.2), epsilon=0.15)
    assert right(1, question=mab.GoodArm(0.2))
    assert not right(4, question=mab.GoodArm(0.2))
    assert right(4, question=mab.GoodArm(0.6))
    assert right(np.array([True, True, True, False]), question=mab.AllGood(0.25))
    assert not right(np.array([True, False, False, False]), question=mab.AllGood(0.25))
    assert right(1, question=mab.BestArm(0.25))


REFUSED = {
    r"question.m must be an integer in \[1, 3\], got 4": lambda p: mab.eb_tc(p, question=mab.TopM(4), delta=0.1),
    r"question.level must lie in \(0.0, 1.0\)": lambda p: mab.uniform(
        mab.Bernoulli(4), question=mab.Above(1.0), delta=0.1
    ),
    "question.epsilon must be at least 0": lambda p: mab.eb_tc(p, question=mab.AllGood(-0.1), delta=0.1),
    "epsilon must be 0 with a question": lambda p: mab.uniform(p, question=mab.TopM(2), epsilon=0.1, delta=0.1),
    "question must be None or BestArm for this rule, got 'TopM'": lambda p: mab.ttucb(
        p, question=mab.TopM(2), delta=0.1
    ),
    "question must be None or BestArm or TopM for this rule": lambda p: mab.t3c(p, question=mab.Above(0.0), delta=0.1),
    "leader_share must be one of 'ids'": lambda p: mab.eb_tc(p, question=mab.AllGood(0.1), delta=0.1),
    "threshold must accept this rule's evidence": lambda p: mab.eb_tc(
        p, question=mab.Above(0.0), delta=0.1, threshold=thresholds.kk_pair(arms=4)
    ),
    "answer must": lambda p: mab.is_right(mab.gauss4(), 1, question=mab.TopM(2)),
    "leader_share must be None with a question": lambda p: mab.characteristic_time(
        p, np.arange(4.0), question=mab.TopM(2), leader_share=0.5
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_questions_that_do_not_fit_are_refused_by_name(message):
    with pytest.raises(ValueError, match=message):
        REFUSED[message](mab.Gaussian(4))


def test_rises_of_exponential_arms_with_two_minima_take_the_smaller_one():
    """Compared with a grid; the rise of the first arm has two minima in the first two cases."""
    rng = np.random.default_rng(0)
    N, m = rng.integers(1, 300, (100, 3)).astype(float), rng.uniform(0.05, 5, (100, 3))
    N[:2] = (273, 189, 177), (72, 251, 57)
    m[:2] = (0.039, 0.1106, 3.8016), (0.0214, 0.1143, 3.5874)
    nearby = jax.device_get(nearest(mab.AllGood(0.5), "exponential", 3)(N, m)[1])

    def divergence(x, y):
        return x / y - 1 - np.log(x / y)

    for n, mean, cost in zip(N, m, nearby.cost, strict=True):
        good, least = mean >= mean.max() - 0.5, np.inf
        for a in range(3):
            for b in range(3):
                if good[a] and a != b:
                    x = np.linspace(max(mean[b] - 0.5, 1e-9), mean[a], 2001)
                    least = min(least, np.min(n[a] * divergence(mean[a], x) + n[b] * divergence(mean[b], x + 0.5)))
            if not good[a]:
                x = np.linspace(mean[a], mean.max() - 0.5, 2001)
                down = sum(n[b] * divergence(mean[b], np.minimum(x + 0.5, mean[b])) for b in range(3) if b != a)
                least = min(least, np.min(n[a] * divergence(mean[a], x) + down))
        assert least * (1 - 1e-2) <= cost <= least * (1 + 1e-9)


# First pulls on the tape of `reference`, its stop and its answer: law, question, delta, and the settings of the rule.
G, B = (Law("gaussian", 1.0), (0.5, 0.25, 0.4, -0.1)), (Law("bernoulli", 0.5), (0.65, 0.4, 0.55, 0.3))
ON_TAPE = [
    (G, ("top", 2), {}, "012332323323322022333323323223322322232322333233222233332223", 1374),
    (G, ("top", 2), {"penalty": 0.5}, "012332320233112322333322223333212222232332333203022233332223", 1372),
    (G, ("top", 2), {"share": 0.5}, "012332323323332320233322323223322322232332333233222223332223", 1563),
    (B, ("top", 2), {}, "012330300030033033303300003000033000232220332033000033310203", 573),
    (B, ("top", 2), {"penalty": 0.5}, "012330302200023012300003330300033003230330333033200033111023", 564),
]


BY_BOUNDS = [
    (G, reference.lucb, "012323230132232103032123232323323132233223232303032323032323", 3636),
    (G, reference.ugape, "012323203123231200323123232323213232323232320032320323232323", 2001),
    (B, reference.lucb, "012303032302212030303020303030010121030303032303032301032323", 648),
    (B, reference.ugape, "012302032301230230303203030311103030302303030302310302303022", 625),
]


@pytest.mark.parametrize(("arms", "rule", "pulls", "stop"), BY_BOUNDS)
def test_the_numpy_programs_with_bounds_reproduce_published_pulls(arms, rule, pulls, stop):
    law, means = arms
    tape = reference.rewards(law, means, 2000)
    course = reference.by_bounds(tape, rule(law, 2, 0.05), 5000)
    made = "".join(str(arm) for step in course[:-1] for arm in step.arms)
    assert (made[:60], len(made), course[-1].answer) == (pulls, stop, [True, False, True, False])


@pytest.mark.parametrize(("arms", "question", "settings", "pulls", "stop"), ON_TAPE)
def test_the_numpy_program_reproduces_published_pulls(arms, question, settings, pulls, stop):
    (law, means), numbers = arms, reference.coins(2000)
    tape = reference.rewards(law, means, 1000)
    rule = reference.eb_tc(law, question, **settings)
    course = reference.run(law, tape, question, rule, delta=0.05, rounds=2000, numbers=lambda t: numbers[t - 4])
    assert "".join(str(step.arms[0]) for step in course[:60]) == pulls
    assert (len(course) - 1, course[-1].answer) == (stop, [True, False, True, False])


# Mean pulls and their standard errors, from an independent float64 program; delta = .1, gk16.
SIX, FIVE = (0.9, 0.75, 0.4, 0.3, 0.2, 0.1), (0.6, 0.3, 0.2, -0.25, -0.5)
TWO_GOOD, PROVED = (0.6, 0.3, -0.1, -0.3), {"threshold": thresholds.box(arms=4)}


def st2(problem, *, question, delta):
    return mab.st2(problem, epsilon=question.epsilon, delta=delta)


PULLS = {
    "top, uniform": (SIX, mab.uniform, mab.TopM(2), {}, 859.1, 15.7),
    "top, eb_tci": (SIX, mab.eb_tci, mab.TopM(2), {"leader_share": "ids"}, 430.8, 8.2),
    "top, t3c": (SIX, mab.t3c, mab.TopM(2), {"leader_share": "ids"}, 403.9, 7.8),
    "top, tas": (SIX, mab.tas, mab.TopM(2), {}, 449.3, 7.9),
    "above, uniform": (FIVE, mab.uniform, mab.Above(0.0), {}, 1298.4, 21.6),
    "above, eb_tc": (FIVE, mab.eb_tc, mab.Above(0.0), {}, 461.7, 6.3),
    "above, tas": (FIVE, mab.tas, mab.Above(0.0), {}, 494.7, 6.6),
    "good, tas": (TWO_GOOD, mab.tas, mab.GoodArm(0.0), {}, 59.2, 1.2),
    "good, tas, box": (TWO_GOOD, mab.tas, mab.GoodArm(0.0), PROVED, 102.7, 1.6),
    "good, sticky": (TWO_GOOD, mab.tas, mab.GoodArm(0.0), {"sticky": True}, 52.4, 0.9),
    "good, sticky, box": (TWO_GOOD, mab.tas, mab.GoodArm(0.0), PROVED | {"sticky": True}, 89.3, 1.1),
    "all good, st2": ((1.0, 0.9, 0.6, 0.3), st2, mab.AllGood(0.2), {}, 20974, 291),
    "all good, eb_tc": ((1.0, 0.9, 0.6, 0.3), mab.eb_tc, mab.AllGood(0.2), {"leader_share": "ids"}, 3642, 102),
}


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("name", PULLS)
def test_mean_stopping_times_of_questions(name):
    means, factory, question, settings, mean, error = PULLS[name]
    instance, seeds = mab.gaussian(means), 400
    algorithm = factory(instance.problem, question=question, delta=0.1, **settings)
    environment = mab.environment(instance, algorithm)

    def wrong(task, outcome):
        return {"wrong": ~mab.is_right(instance, outcome.answer, question=question)}

    results = jaxbandits.sweep(
        lambda task, key: (algorithm, environment),
        seeds=seeds,
        key=KEY,
        max_rounds=10**6,
        metrics=wrong,
        progress=False,
    )
    pulls, errors = results.columns["pulls"], int(results.columns["wrong"].sum())
    deviation = pulls.std() / seeds**0.5
    print(f"{name}: {pulls.mean():.0f} +- {deviation:.0f} (expected {mean} +- {error}), {errors} errors")
    assert abs(pulls.mean() - mean) < 4 * np.hypot(deviation, error)
    assert stats.binom.sf(errors - 1, seeds, 0.1) > 1e-6
