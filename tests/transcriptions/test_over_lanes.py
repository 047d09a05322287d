"""NumPy over many lanes beside the transcription of one run, on the same rewards: every action, stop and answer."""

from types import SimpleNamespace

import numpy as np
import pytest

from experiments.bench.reference import lingape as plain_lingape
from experiments.bench.reference import mab as plain
from experiments.bench.reference.over_lanes import lingape, mab
from experiments.bench.reference.over_lanes.loop import run

LANES, K, LENGTH, DELTA = 3, 4, 400, 0.1
LAWS = {"gaussian": plain.Law("gaussian", 0.4), "bernoulli": plain.Law("bernoulli", 0.5)}


def tapes_of(kind, K=K, length=LENGTH):
    """Draws the n-th reward of every arm of every lane, float (lanes, K, length)."""
    rng, means = np.random.default_rng(1), np.array([0.35, 0.8, 0.5, 0.2, 0.1, 0.4])[:K, None]
    if kind == "bernoulli":
        return (rng.random((LANES, K, length)) < means).astype(float)
    return means + 0.4 * rng.normal(size=(LANES, K, length))


def played(rule, tapes, rounds):
    """Returns the rounds of every lane: tuples (arms, stop, answer)."""
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
        with np.errstate(invalid="ignore", divide="ignore"):  # an answer means nothing until every arm was pulled
            answers = rule.answer(t, state)
        for lane, *step in zip(lanes, arms.T, stops, answers.T, strict=True):
            courses[lane].append(step)

    runs = run(rule, respond, lanes=len(tapes), rounds=rounds, watch=watch)
    for course, made, answer in zip(courses, *runs, strict=True):
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
    courses = played(confident(name, law)[0], tapes, LENGTH)
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
    courses = played(lingape.lingape(arms, **settings), tapes, LENGTH)
    for course, tape in zip(courses, tapes, strict=True):
        samples = [iter(rewards) for rewards in tape]
        pulled, answer, _ = plain_lingape.lingape(arms, lambda arm, t, of=samples: next(of[arm]), **settings)
        assert [arm for arm, *_ in course[:-1]] == pulled
        assert tuple(course[-1][1:]) == (True, answer)
        assert len(pulled) > 10
