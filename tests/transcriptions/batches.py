"""Rules of mab that decide for many pulls at once, against NumPy. A round is a batch, in which only counts matter."""

import functools

import numpy as np
from transcriptions.mab import LAWS, single_pulls
from transcriptions.questions import DELTA, MEANS, QUESTIONS, K

from experiments.bench.reference import batches as reference
from experiments.bench.reference import good_arms, questions
from experiments.bench.reference import mab as plain
from jaxbandits import mab
from jaxbandits.numerics import thresholds

LENGTH = 3000


@functools.cache
def rewards(kind):
    return questions.rewards(LAWS[kind], MEANS[kind], LENGTH)


def laid(kind, factory, test, allot, *, every, batches=400, **settings):
    made, stop, answer = reference.run(rewards(kind), test, allot, every=every, batches=batches)
    arms = [arm for batch in made for arm in sorted(batch)]
    settings |= {"delta": DELTA, "every": every, "answer": np.asarray(answer) if stop else None}
    return single_pulls(factory, kind, rewards(kind), arms, rounds=len(made) + stop, **settings)


def asked(kind, question, factory, allot, **settings):
    law = LAWS[kind]

    def test(t, N, m):
        stop = questions.nearest(law, question, N, m).cost > plain.gk16(t, DELTA)
        return stop, questions.answer_of(law, question, N, m)

    return laid(kind, factory, test, allot, question=QUESTIONS[question[0]](question[1]), **settings)


def eb_tci(kind):
    def shares(t, N, m):
        return questions.shares_of_pair(LAWS[kind], N, m, questions.largest(m, 2), share="ids", penalty=0.5)

    return asked(kind, ("top", 2), mab.eb_tci, reference.by_shares(shares), every=20, leader_share="ids")


def st2(kind):
    law, epsilon = LAWS[kind], 0.4 if kind == "gaussian" else 0.2
    upper, lower, before = np.full(K, np.inf), np.full(K, -np.inf), np.zeros(K, int)

    def look(N, m):
        """Returns the good arms, and the arms that are due."""
        radius = 2 * law.noise_scale * np.sqrt(np.log(K * np.log2(2 * N) / DELTA) / N)
        upper[:] = np.where(before < N, np.minimum(upper, m + radius), upper)
        lower[:] = np.where(before < N, np.maximum(lower, m - radius), lower)
        before[:] = N
        good = m >= max(m) - epsilon
        first = int(np.argmax(upper))
        lowest, highest = (
            int(np.argmin(np.where(good, lower, np.inf))),
            int(np.argmax(np.where(good, -np.inf, upper))),
        )
        due = [lowest] if lower[lowest] <= upper[first] - epsilon else []
        due += [highest] if not good.all() and upper[highest] >= max(lower) - epsilon else []
        return good, [first, *due] if due else []

    def test(t, N, m):
        good, arms = look(N, m)
        return not arms, good

    def shares(t, N, m):
        arms = look(N, m)[1]
        return {a: arms.count(a) / len(arms) for a in arms}

    return laid(kind, mab.st2, test, reference.by_shares(shares), every=25, epsilon=epsilon)


def all_good(kind):
    question = ("all good", 0.4)

    def shares(t, N, m):
        move = questions.nearest(LAWS[kind], question, N, m)
        return {a: part / move.cost for a, part in enumerate(move.parts) if part > 0} or {move.arms[0]: 1.0}

    return asked(kind, question, mab.eb_tc, reference.by_shares(shares), every=9, leader_share="ids")


def tas_above(kind):
    question = ("above", 0.45 if kind == "bernoulli" else 0.2)
    return asked(kind, question, mab.tas, reference.by_pull(questions.tas_above(LAWS[kind], question)), every=20)


def tas_good(kind):
    question = ("good", 0.45 if kind == "bernoulli" else 0.2)
    allot = reference.by_pull(good_arms.tas(LAWS[kind], question))
    return asked(kind, question, mab.tas, allot, every=20, threshold=thresholds.gk16(comparisons=1))


def tas_c(kind):
    tracked = plain.tas(LAWS[kind], K, tracking="C")
    allot = reference.by_pull(lambda t, N, m, coin: tracked(t, N, m, -np.arange(K), None)[0])
    # Few batches, because nested bisection is slow.
    return laid(kind, mab.tas, lambda *_: (False, 0), allot, every=10, batches=6, tracking="C")


def uniform(kind):
    return asked(kind, ("good", 0.1), mab.uniform, reference.by_pull(lambda t, N, m, coin: t % K), every=7)


def lucb(kind):
    decide = questions.lucb(LAWS[kind], 2, DELTA)

    def shares(t, N, m):
        return dict.fromkeys(decide(t, N, m)[0], 0.5)

    allot = reference.by_shares(shares)
    return laid(kind, mab.kl_lucb, lambda *now: decide(*now)[1:], allot, every=11, question=mab.TopM(2))


def hdoc(kind, size):
    level = 0.2 if kind == "gaussian" else 0.47
    arms, good, _ = questions.good_arms(LAWS[kind], rewards(kind), "hdoc", level, DELTA, size=size)
    settings = {"level": level, "delta": DELTA, "every": size, "answer": good[0], "rounds": 2 + (len(arms) - K) // size}
    return single_pulls(mab.hdoc, kind, rewards(kind), arms, **settings)


CASES = {
    "eb_tci, gaussian": functools.partial(eb_tci, "gaussian"),
    "eb_tc-all_good, gaussian": functools.partial(all_good, "gaussian"),
    "tas-above, bernoulli": functools.partial(tas_above, "bernoulli"),
    "tas-good, gaussian": functools.partial(tas_good, "gaussian"),
    "tas-C, gaussian": functools.partial(tas_c, "gaussian"),
    "uniform, gaussian": functools.partial(uniform, "gaussian"),
    "kl_lucb, gaussian": functools.partial(lucb, "gaussian"),
    "hdoc, bernoulli": functools.partial(hdoc, "bernoulli", 25),
    "st2, gaussian": functools.partial(st2, "gaussian"),
}
