"""NumPy over many lanes beside the transcription of one run, on the same rewards: every action, stop and answer."""

from functools import partial
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from transcriptions.tapes import COCI, DELTA, LANES, LAWS, LENGTH, K, coci_tapes, tapes_of

from experiments.bench.reference import cpe as plain_cpe
from experiments.bench.reference import fullbandit as plain_fullbandit
from experiments.bench.reference import kcenter_ds, kernel_ucb, linear_budget
from experiments.bench.reference import lingape as plain_lingape
from experiments.bench.reference import mab as plain
from experiments.bench.reference.over_lanes import cpe, fullbandit, kcenter, kernel, linear, mab
from experiments.bench.reference.over_lanes.loop import run


def played(rule, tapes, rounds, first=0):
    """Returns the rounds of every lane: tuples (arms, stop, answer); before round `first` an answer means nothing."""
    courses, counts = [[] for _ in tapes], np.zeros(tapes.shape[:2], int)

    def respond(lanes, arms):
        rewards = np.empty(arms.shape)
        for at, arm in np.ndenumerate(arms):
            lane = lanes[at[-1]]
            rewards[at] = tapes[lane, arm, counts[lane, arm]]
            counts[lane, arm] += 1
        return rewards

    def watch(t, lanes, arms, stops, state):
        stops = np.zeros(len(lanes), bool) if stops is None else stops
        answers = rule.answer(t, state) if t >= first else np.full(len(lanes), -1)
        for lane, *step in zip(lanes, arms.T, stops, answers.T, strict=True):
            courses[lane].append(step)

    runs = run(rule, respond, lanes=len(tapes), rounds=rounds, watch=watch)
    for course, made, answer in zip(courses, runs.rounds, runs.answers.T, strict=True):
        assert made == len(course) - course[-1][1]
        assert not course[-1][1] or np.array_equal(answer, course[-1][2])
    return courses


def same(ours, theirs, *, answers=True):
    """Compares rounds up to the stop, whose action does not count."""
    assert len(ours) == len(theirs)
    for (arms, stop, answer), step in zip(ours, theirs, strict=True):
        assert stop == step.stop
        assert stop or tuple(np.atleast_1d(arms)) == step.arms
        assert not answers or answer == step.answer


REGRET = {
    "ucb1": lambda law: (mab.ucb1(law, exploration=1.5), plain.indices(law, T=LENGTH, exploration=1.5)["ucb1"]),
    "kl_ucb": lambda law: (mab.kl_ucb(law, c=3.0), plain.indices(law, T=LENGTH, c=3.0)["kl_ucb"]),
    "imed": lambda law: (mab.imed(law), plain.indices(law, T=LENGTH)["imed"]),
    "moss": lambda law: (mab.moss(law, LENGTH), plain.indices(law, T=LENGTH)["moss"]),
}


@pytest.mark.parametrize("kind", LAWS)
@pytest.mark.parametrize("name", REGRET)
def test_indices(name, kind):
    index, literal = REGRET[name](LAWS[kind])
    tapes = tapes_of(kind)
    for course, tape in zip(played(mab.by_index(index, K), tapes, 200), tapes, strict=True):
        assert [arm for arm, *_ in course] == plain.by_index(tape, literal, 200)


@pytest.mark.parametrize("kind", LAWS)
def test_thompson(kind):
    """Both draw the same numbers; a function of the shapes and one number replaces a beta variable."""
    tapes, law = tapes_of(kind), LAWS[kind]
    normals = np.random.default_rng(2).normal(size=(200, K, LANES))

    def beta(number, a, b):
        return a / (a + b) + number / np.sqrt(a + b)

    numbers = iter(normals[K:])
    drawn = SimpleNamespace(standard_normal=lambda shape: next(numbers), beta=lambda a, b: beta(next(numbers), a, b))
    courses = played(mab.by_index(mab.thompson(law, drawn), K), tapes, 200)
    for lane, (course, tape) in enumerate(zip(courses, tapes, strict=True)):

        def index(t, N, m, lane=lane):
            number = normals[t - 1, :, lane]
            if kind == "gaussian":
                return m + law.noise_scale * number / np.sqrt(N)
            return beta(number, 1 + N * m, 1 + N - N * m)

        assert [arm for arm, *_ in course] == plain.by_index(tape, index, 200)


def confident(name, law):
    """Returns the rule over lanes, and (rule, stopping, answer) of the transcription."""
    bounds = plain.bounds_of(law, DELTA)
    made = {
        "ttucb": lambda: (plain.ttucb(law, K, share=0.3), plain.likelihood_test(law, DELTA)),
        "lucb": lambda: plain.lucb(bounds),
        "ugape": lambda: plain.ugape(bounds),
    }
    settings = {"share": 0.3} if name == "ttucb" else {}
    return getattr(mab, name)(law, K, delta=DELTA, **settings), (*made[name](), None)[:3]


@pytest.mark.parametrize(
    ("name", "kind"), [("ttucb", "gaussian"), ("ttucb", "bernoulli"), ("lucb", "gaussian"), ("ugape", "gaussian")]
)
def test_fixed_confidence(name, kind):
    tapes, law = tapes_of(kind), LAWS[kind]
    courses = played(confident(name, law)[0], tapes, LENGTH, first=K)
    assert len({len(course) for course in courses}) == LANES
    assert all(course[-1][1] for course in courses)
    for course, tape in zip(courses, tapes, strict=True):
        rule, stopping, answer = confident(name, law)[1]
        same(course[K:], plain.run(law, tape, rule, stopping=stopping, answer=answer, rounds=LENGTH)[K:])


def test_lingape():
    rng = np.random.default_rng(3)
    arms, theta = rng.normal(size=(6, 3)), np.array([1.0, 0.5, 0.0])
    tapes = (arms @ theta)[:, None] + 0.8 * rng.normal(size=(LANES, 6, LENGTH))
    settings = {"delta": DELTA, "ridge": 0.5, "noise_scale": 0.8, "norm_bound": 1.5}
    courses = played(linear.lingape(arms, **settings), tapes, LENGTH)
    for course, tape in zip(courses, tapes, strict=True):
        samples = [iter(rewards) for rewards in tape]
        pulled, answer, _ = plain_lingape.lingape(arms, lambda arm, t, of=samples: next(of[arm]), **settings)
        assert [arm for arm, *_ in course[:-1]] == pulled
        assert tuple(course[-1][1:]) == (True, answer)
        assert len(pulled) > 10


def test_lin_ucb():
    rng = np.random.default_rng(4)
    arms, theta = rng.normal(size=(5, 3)), np.array([1.0, 0.5, 0.0])
    tapes = (arms @ theta)[:, None] + 0.5 * rng.normal(size=(LANES, 5, LENGTH))
    settings = {"delta": DELTA, "ridge": 0.7, "noise_scale": 0.5, "norm_bound": 1.2}
    for course, tape in zip(played(linear.lin_ucb(arms, **settings), tapes, LENGTH), tapes, strict=True):
        index = linear_budget.lin_ucb(arms, **settings)
        theirs = linear_budget.regret(arms, tape, ridge=0.7, index=index, rounds=LENGTH)
        assert [(arm, answer) for arm, _, answer in course] == theirs
        assert len({arm for arm, _ in theirs}) > 2


@pytest.mark.parametrize(("problem", "means", "settings"), COCI.values(), ids=COCI)
def test_coci(problem, means, settings):
    tapes = coci_tapes(means, settings)
    courses = played(cpe.coci(problem, delta=DELTA, **settings), tapes, tapes.shape[2], first=2 * len(means))
    assert all(course[-1][1] for course in courses)
    for course, tape in zip(courses, tapes, strict=True):
        theirs = plain_cpe.coci(problem, tape, delta=DELTA, **settings)
        assert len(course) == len(theirs) > 30
        for (arm, stop, answer), step in zip(course, theirs, strict=True):
            assert stop == step.stop
            assert stop or arm == step.arm
            assert np.all(answer == -1) or tuple(answer) == step.answer


def test_saqm():
    support = np.array([s for s in product((0, 1), repeat=5) if sum(s) == 3])[1:]
    weights = np.sqrt([5, 11, 17, 7, 13, 19, 3, 23, 2])  # no two ratios of count to share tie
    theta, settings = np.array([0.8, 0.1, 0.6, 0.2, 0.5]), {"delta": 0.1, "epsilon": 0.4, "noise_scale": 0.05}
    noise = np.random.default_rng(6).normal(size=(LANES, len(support), 400))
    tapes = (support @ theta)[:, None] + 0.5 * noise
    rule = fullbandit.saqm(support, weights / weights.sum(), 3, **settings)
    for course, tape in zip(played(rule, tapes, 2000, first=len(support)), tapes, strict=True):
        literal = partial(plain_fullbandit.saqm, k=3, **settings)
        tests = plain_fullbandit.tests_of(support, weights / weights.sum(), tape, literal, len(support))
        assert len(tests) == len(course) - len(support) > 20
        arms = [arm for arm, *_ in course]
        for (_, stop, answer), test in zip(course[len(support) :], tests, strict=True):
            assert tuple(np.bincount(arms[: test.t], minlength=len(support))) == test.counts
            assert (stop, tuple(np.flatnonzero(answer))) == (test.stop, test.answer)


def test_gp_ucb():
    horizon, size, beta = 30, 40, np.linspace(2.0, 0.5, 30)
    _, gram, rewards, _ = kernel_ucb.instance(1, size, horizon=horizon, agents=LANES)
    coins = np.random.default_rng(7).random((LANES, horizon))
    tapes = rewards.transpose(1, 2, 0)  # (lanes, candidates, rounds)
    first = kernel_ucb.pick(coins[:, 0], size)
    rule = kernel.gp_ucb(gram, first, horizon=horizon, beta=beta, noise_variance=0.04)
    queries = []

    def respond(lanes, actions):
        queries.append(actions)
        return tapes[lanes, actions, len(queries) - 1]

    answers = []
    run(rule, respond, lanes=LANES, rounds=horizon, watch=lambda t, *step: answers.append(rule.answer(t, step[-1])))
    # Three agents without communication are three lanes.
    theirs = kernel_ucb.n_kernel_ucb(gram, rewards, coins, beta=beta, noise_variance=0.04)
    assert np.array_equal(queries, [step.action for step in theirs])
    assert np.array_equal(answers[1:], [step.answer for step in theirs[:-1]])
    assert len({tuple(step.action) for step in theirs}) > 5


def test_ds_ucb():
    rng, (n, m, k), levels = np.random.default_rng(0), (8, 30, 4), 16
    points = rng.integers(0, levels + 1, (n, m)).astype(float)
    tapes = rng.integers(0, m, (LANES, 20_000))
    queried, spent = [[] for _ in tapes], np.zeros(LANES, int)

    def respond(lanes, query):
        rewards = np.zeros(len(lanes))
        for at, (lane, node, slot, center, cost) in enumerate(zip(lanes, *query, strict=True)):
            if cost:
                squares = (points[node] - points[center]) ** 2 / levels**2
                rewards[at] = squares.mean() if cost == m else squares[tapes[lane, spent[lane]]]
                queried[lane].append((node, slot, cost))
                spent[lane] += cost
        return rewards

    def interval(mean, count):
        return np.vectorize(partial(kcenter_ds.lil, delta=DELTA / n), otypes="dd")(mean, count)

    runs = run(kcenter.ds_ucb(n, m, k, interval=interval), respond, lanes=LANES, rounds=5000)
    for lane, (tape, answer) in enumerate(zip(tapes, runs.answers.T, strict=True)):
        theirs = kcenter_ds.sample(points, k, tape, interval=partial(kcenter_ds.lil, delta=DELTA / n), levels=levels)
        assert queried[lane] == theirs.queried
        assert list(answer) == theirs.centers
        assert any(cost == m for _, _, cost in queried[lane])
