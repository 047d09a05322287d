"""The rules of fixed confidence against their transcriptions, arm by arm on a tape."""

import jax
import numpy as np
import pytest
from mab.tapes import KEYS, LENGTH, PROBLEMS, assert_same_course, drive, tape_of

from experiments.bench.reference import mab as reference
from jaxbandits import mab
from jaxbandits.mab._problems import posterior_draw_and_uniforms, posterior_draws

DELTA = 0.05
KINDS = pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])


def coins(n=LENGTH):
    return np.asarray(jax.vmap(lambda key: jax.random.uniform(key, ()))(KEYS[:n]))


def course(kind, rule, *, epsilon=0.0, stopping=None, numbers=None, rounds=LENGTH, answer=None):
    law = PROBLEMS[kind][1]
    stopping = stopping or reference.likelihood_test(law, DELTA, epsilon)
    tape = tape_of(kind)
    return reference.run(law, tape, rule, stopping=stopping, numbers=numbers, rounds=rounds, answer=answer)


def check(kind, algorithm, expected, rounds=LENGTH, stops=True):
    assert expected[-1].stop is stops
    assert_same_course(drive(algorithm, tape_of(kind), rounds), expected)


@KINDS
def test_uniform(kind):
    problem, _ = PROBLEMS[kind]
    check(kind, mab.uniform(problem, delta=DELTA), course(kind, lambda t, N, m, _: (t % 4,)))


@KINDS
@pytest.mark.parametrize(("improved", "share", "epsilon"), [(False, 0.4, 0.1), (True, "ids", 0.0)])
def test_eb_tc_and_eb_tci(kind, improved, share, epsilon):
    problem, law = PROBLEMS[kind]
    factory = mab.eb_tci if improved else mab.eb_tc
    rule = reference.eb_tc(law, share=share, epsilon=epsilon, improved=improved)
    algorithm = factory(problem, delta=DELTA, leader_share=share, epsilon=epsilon)
    check(kind, algorithm, course(kind, rule, epsilon=epsilon, numbers=coins()))


def randomness(kind):
    """Of every round: (N, m) -> a posterior draw, the coin, a further number, (N, m) -> 16 draws."""
    problem, _ = PROBLEMS[kind]
    first, second, third = (jax.vmap(lambda key: jax.random.split(key, 3))(KEYS)[:, n] for n in range(3))
    coin, last = (np.asarray(jax.vmap(lambda key: jax.random.uniform(key, ()))(keys)) for keys in (second, third))
    one = jax.jit(lambda key, N, m: posterior_draws(problem, key, N, m))
    many = jax.jit(lambda key, N, m: posterior_draws(problem, key, N, m, 16))

    def given(n):
        return (
            lambda N, m: np.asarray(one(first[n], N.astype(float), m)),
            coin[n],
            last[n],
            lambda N, m: np.asarray(many(third[n], N.astype(float), m)),
        )

    return [given(n) for n in range(LENGTH)]


@KINDS
@pytest.mark.parametrize("share", [0.4, "ids"])
def test_t3c(kind, share):
    problem, law = PROBLEMS[kind]
    count = 2 if share == "ids" else 1
    drawn = jax.jit(lambda key, N, m: posterior_draw_and_uniforms(problem, key, N, m, count))
    uniforms = np.asarray(jax.vmap(lambda key: drawn(key, np.ones(4), np.full(4, 0.5))[1])(KEYS[:300]))
    coins_and_picks = np.column_stack([uniforms[:, 0], uniforms[:, -1]])
    numbers = [
        (lambda N, m, key=key: np.asarray(drawn(key, N.astype(float), m)[0]), *pair)
        for key, pair in zip(KEYS[:300], coins_and_picks, strict=True)
    ]
    expected = course(kind, reference.t3c(law, share=share), numbers=numbers, rounds=300)
    check(kind, mab.t3c(problem, delta=DELTA, leader_share=share), expected, 300, stops=expected[-1].stop)


@KINDS
def test_ttts(kind):
    problem, law = PROBLEMS[kind]
    third = 2 if kind == "gaussian" else 3
    numbers = [(draw, coin, rest[third - 2]) for draw, coin, *rest in randomness(kind)]
    expected = course(kind, reference.ttts(law, share=0.4), numbers=numbers, rounds=300)
    check(kind, mab.ttts(problem, delta=DELTA, leader_share=0.4), expected, 300, stops=expected[-1].stop)


@KINDS
@pytest.mark.parametrize("share", [0.3, "ids"])
def test_ttucb(kind, share):
    problem, law = PROBLEMS[kind]
    expected = course(kind, reference.ttucb(law, 4, share=share))
    check(kind, mab.ttucb(problem, delta=DELTA, leader_share=share), expected)


@KINDS
@pytest.mark.parametrize("tracking", ["D", "C"])
def test_tas(kind, tracking):
    problem, law = PROBLEMS[kind]
    rounds = 60  # the nested bisection is slow
    expected = course(kind, reference.tas(law, 4, tracking=tracking), rounds=rounds)
    check(kind, mab.tas(problem, delta=DELTA, tracking=tracking), expected, rounds, stops=expected[-1].stop)


@KINDS
@pytest.mark.parametrize("name", ["lucb", "kl_lucb"])
def test_lucb_and_kl_lucb(kind, name):
    problem, law = PROBLEMS[kind]
    bounds = reference.bounds_of(law, DELTA, hoeffding=name == "lucb")
    rule, stopping = reference.lucb(bounds, epsilon=0.05)
    expected = course(kind, rule, stopping=stopping)
    check(kind, getattr(mab, name)(problem, delta=DELTA, epsilon=0.05), expected)


@KINDS
def test_ugape(kind):
    problem, law = PROBLEMS[kind]
    rule, stopping, answer = reference.ugape(reference.bounds_of(law, DELTA), epsilon=0.05)
    expected = course(kind, rule, stopping=stopping, answer=answer)
    arms, *rest, answers = drive(mab.ugape(problem, delta=DELTA, epsilon=0.05), tape_of(kind), LENGTH)
    answers[:4] = [round_.answer for round_ in expected[:4]]  # no answer is defined before every arm was pulled
    assert_same_course((arms, *rest, answers), expected)


@KINDS
def test_successive_elimination(kind):
    problem, law = PROBLEMS[kind]
    rule, stopping, answer = reference.successive_elimination(law.noise_scale, 4, delta=DELTA)
    check(
        kind,
        mab.successive_elimination(problem, delta=DELTA),
        course(kind, rule, stopping=stopping, answer=answer),
        stops=kind == "bernoulli",  # the normal tape is too short
    )


@KINDS
def test_lil_ucb(kind):
    problem, law = PROBLEMS[kind]
    rule, stopping, answer = reference.lil_ucb(law.noise_scale, 4, e=0.01, b=0.5, ratio=3.5, d=DELTA)
    expected = course(kind, rule, stopping=stopping, answer=answer)
    numbers = {"lil_epsilon": 0.01, "lil_beta": 0.5, "lil_lambda": 3.5}
    arms, *rest, answers = drive(mab.lil_ucb(problem, delta=DELTA, **numbers), tape_of(kind), LENGTH)
    answers[:4] = [round_.answer for round_ in expected[:4]]
    assert_same_course((arms, *rest, answers), expected)


def test_lil_ucb_constants_by_hand():
    constants = mab.lil_ucb_constants(0.1)
    np.testing.assert_allclose(constants, [0.01, 1, 9, 2.8155e-8], rtol=1e-4)
    c = 2.01 / 0.01 * np.log(1.01) ** -1.01
    np.testing.assert_allclose(4 * np.sqrt(c * constants.lil_delta) + 4 * c * constants.lil_delta, 0.1)
