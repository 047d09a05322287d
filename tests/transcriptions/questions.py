"""Rules of mab that answer other questions than the best arm, against NumPy."""

import functools

import jax
import numpy as np
from transcriptions.laid import Laid, replayed
from transcriptions.mab import LAWS as SCALED
from transcriptions.mab import coins, keys, single_pulls, written
from transcriptions.mab import tape_of as scaled_tape

from experiments.bench.reference import good_arms as plain
from experiments.bench.reference import questions as reference
from experiments.bench.reference import tracked
from experiments.bench.reference.mab import Law, by_index, in_phases, sequential_halving_phases
from jaxbandits import mab
from jaxbandits.mab._problem.problems import posterior_draw_and_uniforms
from jaxbandits.numerics import thresholds

DELTA, K, ROUNDS = 0.05, 4, 300
LAWS = {"gaussian": Law("gaussian", 1.0), "bernoulli": Law("bernoulli", 0.5)}
PROBLEMS = {"gaussian": mab.Gaussian(K), "bernoulli": mab.Bernoulli(K)}
MEANS = {"gaussian": (0.5, 0.25, 0.4, -0.1), "bernoulli": (0.65, 0.4, 0.55, 0.3)}
QUESTIONS = {"top": mab.TopM, "above": mab.Above, "good": mab.GoodArm, "all good": mab.AllGood}


@functools.cache
def tape_of(kind):
    return reference.rewards(LAWS[kind], MEANS[kind], ROUNDS)


def posterior(kind):
    """Returns, for every round: (N, m) -> the draw, and the coin."""
    drawn = jax.jit(lambda key, N, m: posterior_draw_and_uniforms(PROBLEMS[kind], key, N, m, 1))

    def numbers(t):
        coin = drawn(keys()[t], np.ones(K), np.full(K, 0.5))[1][0]
        return (lambda N, m: np.asarray(drawn(keys()[t], N.astype(float), m)[0])), float(coin)

    return numbers


def asked(kind, question, rule, factory, *, numbers=lambda t: coins()[t], **settings):
    course = reference.run(LAWS[kind], tape_of(kind), question, rule, delta=DELTA, rounds=ROUNDS, numbers=numbers)

    def build():
        value = QUESTIONS[question[0]](question[1])
        return factory(PROBLEMS[kind], question=value, delta=DELTA, **settings)

    theirs = written(course, tape_of(kind), 1, in_turn=False)
    return Laid(theirs, replayed(build, theirs))


def top_two(kind, question, factory=mab.eb_tc, share="ids"):
    penalty = 0.5 if factory is mab.eb_tci else 0.0
    rule = reference.eb_tc(LAWS[kind], question, share=share, penalty=penalty)
    return asked(kind, question, rule, factory, leader_share=share)


def t3c(kind, share):
    question = ("top", 2)

    def members(given, N, m):
        return reference.largest(given[0](N, m), 2)

    rule = reference.eb_tc(LAWS[kind], question, share=share, members=members)
    return asked(kind, question, rule, mab.t3c, numbers=posterior(kind), leader_share=share)


def tas_above(kind):
    question = ("above", 0.45)
    return asked(kind, question, reference.tas_above(LAWS[kind], question), mab.tas)


def tas(kind, question):
    return asked(kind, question, tracked.tas(LAWS[kind], question), mab.tas)


def uniform(kind, question):
    return asked(kind, question, reference.in_turn(LAWS[kind], question), mab.uniform)


def by_bounds(kind, factory, transcribed):
    decide = transcribed(LAWS[kind], 2, DELTA)
    course = reference.by_bounds(tape_of(kind), decide, ROUNDS // 2)

    def build():
        return factory(PROBLEMS[kind], question=mab.TopM(2), delta=DELTA)

    theirs = written(course, tape_of(kind), build().idle.arms.size, in_turn=True)
    return Laid(theirs, replayed(build, theirs))


def by_bernstein(factory, transcribed):
    means = 10 * np.array([[0.8], [0.3], [0.7], [0.2]])
    tape = np.random.default_rng(3).beta(means, 10 - means, (K, 2 * ROUNDS))
    course = reference.by_bounds(tape, transcribed(LAWS["bernoulli"], 2, DELTA, reference.bernstein(tape)), ROUNDS, 2)
    assert course[-1].stop

    def build():
        return factory(mab.Bounded(K), question=mab.TopM(2), delta=DELTA, intervals="bernstein")

    theirs = written(course, tape, build().idle.arms.size, in_turn=True)
    return Laid(theirs, replayed(build, theirs))


def above(rule, kind):
    level, law, tape = 0.2 if kind == "gaussian" else 0.45, SCALED[kind], tape_of(kind)
    settings = {"epsilon": 0.05} if rule == "apt" else {"alpha": 1.35}
    index = reference.apt(level, **settings) if rule == "apt" else reference.lsa(law, level, **settings)
    arms = by_index(tape, index, ROUNDS)
    answer = np.array([tape[a, : arms.count(a)].mean() >= level for a in range(K)])
    factory = mab.apt if rule == "apt" else mab.lsa
    return single_pulls(factory, kind, tape, arms, answer=answer, level=level, horizon=ROUNDS, **settings)


def sh_top_m(kind, leap=1, reuse=False):
    K, m, T = 6, 2, 150
    tape = scaled_tape(kind, K, T)
    *arms, members = in_phases(tape, sequential_halving_phases(K, T, m), all_samples=reuse)
    settings = {"m": m, "horizon": T, "leap": leap, "reuse": reuse}
    answer, rounds = np.isin(np.arange(K), members), None if leap == 1 else 3  # two phases and the last decision
    return single_pulls(mab.sh_top_m, kind, tape, [arm for (arm,) in arms], answer=answer, rounds=rounds, **settings)


def sar(kind, T, leap=1):
    arms, members, _ = reference.sar(tape_of(kind), 2, T)
    answer = np.isin(np.arange(K), members)
    settings = {"m": 2, "horizon": T, "leap": leap}
    return single_pulls(mab.sar, kind, tape_of(kind), arms, answer=answer, rounds=None if leap == 1 else K, **settings)


GOOD = {"hdoc": mab.hdoc, "lucb_g": mab.lucb_g, "apt_g": mab.apt_g}


def good_arms(rule, kind, all_arms):
    law, level = SCALED[kind], 0.2 if kind == "gaussian" else 0.47
    tape = reference.rewards(law, MEANS[kind], 4000)
    arms, good, _ = reference.good_arms(law, tape, rule, level, DELTA, every=all_arms)
    answer = np.isin(np.arange(K), good) if all_arms else good[0]
    settings = {"level": level, "delta": DELTA, "all_arms": all_arms}
    return single_pulls(GOOD[rule], kind, tape, arms, answer=answer, **settings)


def apgai(kind, *, is_proved=False, level=None):
    question = ("good", (0.2 if kind == "gaussian" else 0.45) if level is None else level)
    limit = plain.box if is_proved else reference.gk16
    rule = plain.apgai(LAWS[kind], question)
    settings = {"delta": DELTA, "rounds": ROUNDS, "comparisons": K, "limit": limit}
    course = reference.run(LAWS[kind], tape_of(kind), question, rule, **settings)

    def build():
        threshold = thresholds.box(arms=K) if is_proved else None
        return mab.apgai(PROBLEMS[kind], level=question[1], delta=DELTA, threshold=threshold)

    theirs = written(course, tape_of(kind), 1, in_turn=False)
    return Laid(theirs, replayed(build, theirs))


def tas_good(kind, level, *, sticky=False, is_proved=True):
    question, law = ("good", level), LAWS[kind]
    rule, limit = plain.tas(law, question, sticky=sticky), plain.box if is_proved else reference.gk16
    settings = {"delta": DELTA, "rounds": 600, "comparisons": K, "limit": limit}
    tape = reference.rewards(law, MEANS[kind], 600)
    course = reference.run(law, tape, question, rule, **settings)

    def build():
        threshold = thresholds.box(arms=K) if is_proved else None
        asked = mab.GoodArm(level)
        return mab.tas(PROBLEMS[kind], question=asked, delta=DELTA, threshold=threshold, sticky=sticky)

    theirs = written(course, tape, 1, in_turn=False)
    return Laid(theirs, replayed(build, theirs))


def st2(kind, epsilon, rounds):
    tape = reference.rewards(LAWS[kind], MEANS[kind], 2 * rounds)
    course = plain.st2(LAWS[kind], tape, epsilon, 0.1, rounds=rounds)

    def build():
        return mab.st2(PROBLEMS[kind], epsilon=epsilon, delta=0.1)

    theirs = written(course, tape, 3, in_turn=True)
    return Laid(theirs, replayed(build, theirs))


CASES = {
    "tas-good, gaussian": functools.partial(tas_good, "gaussian", 0.2),
    "tas-good, bernoulli": functools.partial(tas_good, "bernoulli", 0.45),
    "tas-good-none, bernoulli": functools.partial(tas_good, "bernoulli", 0.7, is_proved=False),
    "tas-sticky, gaussian": functools.partial(tas_good, "gaussian", 0.2, sticky=True),
    "tas-sticky, bernoulli": functools.partial(tas_good, "bernoulli", 0.45, sticky=True),
    "tas-sticky-none, gaussian": functools.partial(tas_good, "gaussian", 0.7, sticky=True, is_proved=False),
    "st2, gaussian": functools.partial(st2, "gaussian", 0.4, 5000),
    "st2, bernoulli": functools.partial(st2, "bernoulli", 0.2, 1500),
    "apgai, gaussian": functools.partial(apgai, "gaussian", is_proved=True),
    "apgai, bernoulli": functools.partial(apgai, "bernoulli"),
    "apgai-none, gaussian": functools.partial(apgai, "gaussian", level=0.9),
    "hdoc, gaussian": functools.partial(good_arms, "hdoc", "gaussian", False),
    "hdoc, bernoulli": functools.partial(good_arms, "hdoc", "bernoulli", False),
    "lucb_g, gaussian": functools.partial(good_arms, "lucb_g", "gaussian", False),
    "lucb_g-all, bernoulli": functools.partial(good_arms, "lucb_g", "bernoulli", True),
    "apt_g, bernoulli": functools.partial(good_arms, "apt_g", "bernoulli", False),
    "sh_top_m, gaussian": functools.partial(sh_top_m, "gaussian"),
    "sh_top_m-leap, bernoulli": functools.partial(sh_top_m, "bernoulli", leap=150, reuse=True),
    "sar, gaussian": functools.partial(sar, "gaussian", 60),
    "sar-leap, bernoulli": functools.partial(sar, "bernoulli", 90, leap=90),
    "sar-merged, bernoulli": functools.partial(sar, "bernoulli", 7),
    "apt, gaussian": functools.partial(above, "apt", "gaussian"),
    "apt, bernoulli": functools.partial(above, "apt", "bernoulli"),
    "lsa, gaussian": functools.partial(above, "lsa", "gaussian"),
    "lsa, bernoulli": functools.partial(above, "lsa", "bernoulli"),
    "top-lucb, gaussian": functools.partial(by_bounds, "gaussian", mab.lucb, reference.lucb),
    "top-kl_lucb, bernoulli": functools.partial(by_bounds, "bernoulli", mab.kl_lucb, reference.lucb),
    "top-ugape, gaussian": functools.partial(by_bounds, "gaussian", mab.ugape, reference.ugape),
    "top-lucb, bernstein": functools.partial(by_bernstein, mab.lucb, reference.lucb),
    "top-ugape, bernstein": functools.partial(by_bernstein, mab.ugape, reference.ugape),
    "top-uniform, bernoulli": functools.partial(uniform, "bernoulli", ("top", 2)),
    "top-eb_tc, bernoulli": functools.partial(top_two, "bernoulli", ("top", 2)),
    "top-eb_tci, gaussian": functools.partial(top_two, "gaussian", ("top", 2), mab.eb_tci, 0.4),
    "top-t3c, gaussian": functools.partial(t3c, "gaussian", "ids"),
    "above-eb_tc, gaussian": functools.partial(top_two, "gaussian", ("above", 0.2)),
    "above-tas, bernoulli": functools.partial(tas_above, "bernoulli"),
    "top-tas, gaussian": functools.partial(tas, "gaussian", ("top", 2)),
    "top-tas, bernoulli": functools.partial(tas, "bernoulli", ("top", 1)),
    "all_good-tas, gaussian": functools.partial(tas, "gaussian", ("all good", 0.4)),
    "all_good-tas, bernoulli": functools.partial(tas, "bernoulli", ("all good", 0.2)),
    "good-eb_tc, bernoulli": functools.partial(top_two, "bernoulli", ("good", 0.45)),
    "good-uniform, gaussian": functools.partial(uniform, "gaussian", ("good", 0.6)),
    "all_good-eb_tc, gaussian": functools.partial(top_two, "gaussian", ("all good", 0.4)),
    "all_good-eb_tc, bernoulli": functools.partial(top_two, "bernoulli", ("all good", 0.2)),
}
