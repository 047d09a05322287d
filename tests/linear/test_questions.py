"""Questions about linear arms: costs against a generic optimiser, characteristic times, limits, and errors."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import jaxbandits
from jaxbandits import linear, mab
from jaxbandits.linear._problem.questions.asked import kind_of
from jaxbandits.linear._problem.questions.top_m import pair_of
from jaxbandits.numerics import thresholds

KEY = jax.random.key(0)
QUESTIONS = [linear.TopM(2), linear.TopM(4), linear.Above(0.2)]
STOP = linear.likelihood_ratio(thresholds.gk16(arms=3), delta=0.1)
ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]])


def drawn(seed, K=5, d=3):
    """Draws arms, counts and an estimate."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(K, d)), rng.integers(1, 30, K).astype(float), rng.normal(size=d)


def half_spaces(question, arms, theta):
    """Lists (y, c) with y.theta' <= c for each form of another answer, from the definition of the question."""
    means = arms @ theta
    if isinstance(question, linear.TopM):
        best = np.argsort(-means)[: question.m]
        return [(arms[i] - arms[j], 0.0) for i in best for j in range(len(arms)) if j not in best]
    signs = np.where(means > question.level, 1.0, -1.0)
    return [(s * x, s * question.level) for s, x in zip(signs, arms, strict=True)]


def costs_of(question, arms, counts, theta):
    """Computes the cost of each alternative by the library's directions."""
    kind = kind_of(question)
    answer = kind.answer(question, arms @ theta)
    y = np.asarray(kind.directions(question, answer, arms))
    gaps = y @ theta - np.asarray(kind.offsets(question, answer, float))
    V = arms.T @ (counts[:, None] * arms)
    return gaps**2 / (2 * np.einsum("pd,de,pe->p", y, np.linalg.inv(V), y)), gaps, y


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_smallest_cost_equals_a_generic_optimum(question, seed):
    arms, counts, theta = drawn(seed)
    costs, gaps, _ = costs_of(question, jnp.asarray(arms), counts, theta)
    assert (gaps > 0).all()

    def value(other):
        return float(np.sum(counts * (arms @ (other - theta)) ** 2) / 2)

    optima = [
        minimize(
            value,
            theta,
            jac=lambda x: arms.T @ (counts * (arms @ (x - theta))),
            method="SLSQP",
            constraints=[{"type": "ineq", "fun": lambda x, y=y, c=c: c - y @ x}],
            options={"ftol": 1e-14, "maxiter": 300},
        ).fun
        for y, c in half_spaces(question, arms, theta)
    ]
    np.testing.assert_allclose(costs.min(), min(optima), rtol=1e-6)
    np.testing.assert_allclose(np.sort(costs), np.sort(optima), rtol=1e-6)
    # No other answer of random parameters is cheaper.
    others = theta + np.random.default_rng(seed).normal(size=(2000, 3))
    kind, answer = kind_of(question), None
    answer = np.asarray(kind.answer(question, jnp.asarray(arms @ theta)))
    differs = [x for x in others if not np.array_equal(kind.answer(question, jnp.asarray(arms @ x)), answer)][:200]
    assert len(differs) > 50
    assert min(value(x) for x in differs) >= costs.min() * (1 - 1e-9)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_pairs_are_those_of_the_directions(m):
    arms, _, theta = drawn(4)
    question, items = linear.TopM(m), jnp.asarray(arms)
    answer = kind_of(question).answer(question, items @ theta)
    y = kind_of(question).directions(question, answer, items)
    assert len(y) == m * (5 - m)
    for p in range(len(y)):
        i, j = pair_of(question, answer, jnp.asarray(p))
        assert answer[i]
        assert not answer[j]
        np.testing.assert_array_equal(y[p], items[i] - items[j])


def slopes_of(question, arms, theta, w):
    """Computes the slopes of the costs in the weights, float (P, K)."""
    costs, gaps, y = costs_of(question, jnp.asarray(arms), w, theta)
    images = np.linalg.solve(arms.T @ (w[:, None] * arms), y.T).T
    return costs, ((gaps / np.sum(images * y, axis=1))[:, None] * (images @ arms.T)) ** 2 / 2


@pytest.mark.parametrize("question", QUESTIONS)
def test_characteristic_time_equals_cutting_planes(question):
    arms, _, theta = drawn(7)
    time = linear.characteristic_time(arms, theta, question=question)
    assert time.lower <= time.value <= time.upper * (1 + 1e-12)
    assert time.upper / time.lower - 1 <= 1e-5
    rows, w, best, most = [], np.full(5, 0.2), 0.0, np.inf
    for _ in range(400):
        costs, slopes = slopes_of(question, arms, theta, w)
        best, rows = max(best, costs.min()), [*rows, *slopes]
        table = np.array(rows)
        scale = table.max()
        solution = linprog(
            [0.0] * 5 + [-1.0],
            A_ub=np.hstack([-table / scale, np.ones((len(table), 1))]),
            b_ub=np.zeros(len(table)),
            A_eq=[[1.0] * 5 + [0.0]],
            b_eq=[1.0],
        )
        most = -solution.fun * scale
        if most / best - 1 < 1e-4:
            break
        w = 0.5 * w + 0.5 * np.maximum(solution.x[:5], 1e-9)
        w /= w.sum()
    assert 1 / most <= time.upper * (1 + 1e-6)
    assert time.lower <= 1 / best * (1 + 1e-6)
    assert most / best - 1 < 0.02


@pytest.mark.parametrize(
    ("ours", "theirs"), [(linear.TopM(2), mab.TopM(2)), (linear.Above(0.3), mab.Above(0.3))], ids=["top", "above"]
)
def test_unit_vectors_give_the_time_of_independent_arms(ours, theirs):
    means = np.array([0.9, 0.5, 0.1, -0.2])
    time = linear.characteristic_time(np.eye(4), means, noise_scale=0.7, question=ours)
    expected = mab.characteristic_time(mab.Gaussian(4, 0.7), means, question=theirs)
    np.testing.assert_allclose(time.value, expected.value, rtol=1e-5)
    np.testing.assert_allclose(time.allocation, expected.allocation, atol=2e-3)
    bound = linear.lower_bound(np.eye(4), means, noise_scale=0.7, delta=0.1, question=ours)
    np.testing.assert_allclose(bound.T_star, time.lower)


def test_limits_of_the_characteristic_time():
    arms, _, theta = drawn(7)
    one = linear.characteristic_time(arms, theta, question=linear.TopM(1))
    np.testing.assert_allclose(one.value, linear.characteristic_time(arms, theta).value, rtol=1e-6)
    turned = linear.characteristic_time(arms, -theta, question=linear.TopM(3))
    np.testing.assert_allclose(
        turned.value, linear.characteristic_time(arms, theta, question=linear.TopM(2)).value, rtol=1e-5
    )


@functools.cache
def course(factory, question, **_):
    """Traces 60 rounds of a rule: its arms, and its answers."""
    options = {"shared_learner": True} if factory is linear.lingame else {}
    x = linear.Instance(jnp.asarray(ARMS), jnp.asarray([1.0, 0.0]), jnp.asarray(0.5))
    algorithm = factory(x.arms, stop=STOP, noise_scale=0.5, question=question, **options)
    tape = jaxbandits.trace(KEY, algorithm, linear.environment(x, algorithm), rounds=60)
    return np.asarray(tape.actions.arm), np.asarray(tape.stops), np.asarray(tape.answers)


@pytest.mark.parametrize(
    "factory", [linear.lingape_glr, linear.fws, linear.lingame, linear.lazy_tas], ids=lambda factory: factory.__name__
)
def test_the_best_arm_as_a_set_is_found_by_the_same_pulls(factory):
    arms, stops, answers = course(factory, None)
    as_set = course(factory, linear.TopM(1))
    assert stops.any()
    np.testing.assert_array_equal(as_set[0], arms)
    np.testing.assert_array_equal(as_set[1], stops)
    np.testing.assert_array_equal(as_set[2].argmax(axis=1), answers)
    assert (as_set[2].sum(axis=1) == 1).all()


def test_an_epsilon_of_the_question_is_one_of_the_stop():
    x = linear.Instance(jnp.asarray(ARMS), jnp.asarray([1.0, 0.0]), jnp.asarray(0.5))
    stop = linear.likelihood_ratio(thresholds.gk16(arms=3), delta=0.1, epsilon=0.15)
    rules = linear.uniform(ARMS, stop=stop), linear.uniform(ARMS, stop=STOP, question=linear.BestArm(0.15))
    runs = [jaxbandits.run(KEY, rule, linear.environment(x, rule), max_rounds=10**4) for rule in rules]
    assert runs[0].pulls == runs[1].pulls
    assert (
        runs[0].pulls
        < jaxbandits.run(KEY, linear.uniform(ARMS, stop=STOP), linear.environment(x), max_rounds=10**4).pulls
    )


def test_an_item_without_features_has_no_alternative():
    items = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    x = linear.Instance(jnp.asarray(ARMS), jnp.asarray([1.0, -1.0]), jnp.asarray(0.5), jnp.asarray(items))
    stop = linear.likelihood_ratio(thresholds.gk16(arms=3), delta=0.1, items=items)
    algorithm = linear.lingape_glr(ARMS, stop=stop, noise_scale=0.5, question=linear.Above(-0.5))
    outcome = jaxbandits.run(KEY, algorithm, linear.environment(x, algorithm), max_rounds=10**4)
    assert outcome.status == jaxbandits.Status.STOPPED
    np.testing.assert_array_equal(outcome.answer, [True, True, False])


def test_right_answers():
    x = linear.Instance(jnp.asarray(ARMS), jnp.asarray([1.0, 0.0]), jnp.asarray(0.5))  # means 1, 0, .8
    right = functools.partial(linear.is_right, x)
    sets = {answer: np.array(answer) == 1 for answer in ((1, 0, 1), (1, 1, 0), (1, 0, 0), (1, 1, 1))}
    assert [bool(right(s, question=linear.TopM(2))) for s in sets.values()] == [True, False, False, False]
    assert [bool(right(s, question=linear.Above(0.5))) for s in sets.values()] == [True, False, False, False]
    assert [bool(right(s, 0.4, question=linear.Above(0.5))) for s in sets.values()] == [True, False, True, False]
    assert bool(right(2, question=linear.BestArm(0.25)))
    assert not bool(right(2, question=linear.BestArm(0.1)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear.uniform(ARMS, stop=STOP, question=linear.TopM(3)), r"question\.m must .* got 3"),
        (lambda: linear.uniform(ARMS, stop=STOP, question=linear.Above(np.inf)), r"question\.level must .* got inf"),
        (lambda: linear.fws(ARMS, stop=STOP, question=mab.GoodArm(0.3)), "question must .*GoodArm"),
        (lambda: linear.lingame(ARMS, stop=STOP, question=linear.TopM(2)), "shared_learner must be True"),
        (
            lambda: linear.lingape_glr(ARMS, stop=STOP, question=linear.Above(0.3), ratios=linear.ratio_tables(ARMS).p),
            "ratios must be None with the question Above",
        ),
        (
            lambda: linear.uniform(ARMS, stop=STOP._replace(epsilon=0.1), question=linear.TopM(2)),
            r"stop\.epsilon must be 0 with a question",
        ),
        (
            lambda: linear.uniform(ARMS, stop=STOP._replace(eliminate="stop"), question=linear.TopM(2)),
            r"stop\.eliminate must be None with the question TopM",
        ),
        (
            lambda: linear.characteristic_time(ARMS, [1.0, 0.0], question=linear.BestArm(0.1)),
            r"question\.epsilon must be 0",
        ),
        (
            lambda: linear.characteristic_time(ARMS, [1.0, 0.0], question=linear.Above(1.0)),
            "theta must have a unique answer to Above",
        ),
        (
            lambda: linear.characteristic_time(ARMS, [1.0, 1.0], question=linear.TopM(2)),
            "theta must have a unique answer to TopM",
        ),
        (
            lambda: linear.is_right(
                linear.Instance(ARMS, np.array([1.0, 0.0]), 0.5), np.array([True, False]), question=linear.TopM(1)
            ),
            "answer must",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
