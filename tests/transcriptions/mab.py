"""Rules of mab against NumPy, in fixed confidence, fixed budget and regret."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from transcriptions.draws import normals
from transcriptions.laid import KEY, Laid, only_last, replayed, traced, unless

from experiments.bench.reference import mab as reference
from jaxbandits import Environment, Tape, mab
from jaxbandits.engine.run.round import streams
from jaxbandits.mab import Pull, Rewards
from jaxbandits.mab._problem.problems import posterior_draw_and_uniforms, posterior_draws
from jaxbandits.numerics.ties import draw_words
from jaxbandits.testing import round_keys

DELTA, K, LENGTH = 0.05, 4, 1200
LAWS = {"gaussian": reference.Law("gaussian", 0.8), "bernoulli": reference.Law("bernoulli", 0.5)}
# Laws that the rules driven by a likelihood ratio or by its intervals know.
OTHERS = {kind: reference.Law(kind) for kind in ("poisson", "exponential")}
PROBLEMS = {"gaussian": lambda K: mab.Gaussian(K, 0.8), "bernoulli": mab.Bernoulli}
PROBLEMS |= {"poisson": mab.Poisson, "exponential": mab.Exponential}


@functools.cache
def words_of(K):
    """Returns the random bits of a run's lots, as in its first state."""
    return np.asarray(draw_words(streams(KEY).init, K))


def lots_of(kind, K, always=False):
    """Returns the random bits of the lots for arms whose means tie; otherwise None, unless `always`."""
    return words_of(K) if always or kind in ("bernoulli", "poisson") else None


def tape_of(kind, K=K, length=LENGTH):
    """Draws the n-th reward of every arm, float (K, length); arm 1 is clearly the best."""
    rng = np.random.default_rng(0)
    means = np.array([0.35, 0.8, 0.5, 0.2, 0.1, 0.4])[:K]
    if kind == "bernoulli":
        return (rng.random((K, length)) < means[:, None]).astype(float)
    if kind in OTHERS:
        # Few events: a mean may be 0 for some time.
        draw = rng.poisson if kind == "poisson" else rng.exponential
        return draw(means[:, None], (K, length)).astype(float)
    return means[:, None] + 0.8 * rng.normal(size=(K, length))


@functools.cache
def keys():
    return round_keys(KEY, LENGTH)


@functools.cache
def coins():
    return np.asarray(jax.jit(jax.vmap(lambda key: jax.random.uniform(key, ())))(keys()))


# Fixed confidence: a transcription gives the rounds


def written(course, tape, slots, in_turn):
    """Writes the rounds of a run as a tape; if `in_turn`, without answers while every arm is pulled once."""
    rounds, counts = len(course), np.zeros(len(tape), int)
    arms, times = np.zeros((2, rounds, slots), np.int32)
    sums = np.zeros((rounds, slots))
    for n, step in enumerate(course):
        for slot, arm in enumerate(() if step.stop else step.arms):
            arms[n, slot], times[n, slot], sums[n, slot] = arm, 1, tape[arm, counts[arm]]
            counts[arm] += 1
    return Tape(
        actions=Pull(np.ma.masked_array(arms, mask=times == 0), times),
        observations=Rewards(sums, times),
        stops=np.array([step.stop for step in course]),
        answers=unless((np.arange(rounds) < len(tape)) & in_turn, [step.answer for step in course]),
    )


def confident(
    kind, factory, rule, *, stopping=None, numbers=None, rounds=LENGTH, answer=None, stops=True, lots=False, **settings
):
    law, tape, problem = (LAWS | OTHERS)[kind], tape_of(kind), PROBLEMS[kind](K)
    stopping = stopping or reference.likelihood_test(law, DELTA, settings.get("epsilon", 0.0))
    course = reference.run(
        law, tape, rule, stopping=stopping, numbers=numbers, rounds=rounds, answer=answer, words=lots_of(kind, K, lots)
    )
    if kind in OTHERS:
        stops = None  # arms of so few events are hard to tell apart, so that some tapes are too short
    assert stops is None or course[-1].stop is stops

    def build():
        return factory(problem, delta=DELTA, **settings)

    theirs = written(course, tape, build().idle.arms.size, answer is not None)
    return Laid(theirs, replayed(build, theirs))


@functools.cache
def randomness(kind):
    """Returns, for every round: (N, m) -> a posterior draw, the coin, a further number, (N, m) -> 16 draws."""
    first, second, third = jax.vmap(lambda key: jax.random.split(key, 3), out_axes=1)(keys())
    coin, last = (np.asarray(jax.vmap(lambda key: jax.random.uniform(key, ()))(keys)) for keys in (second, third))
    one = jax.jit(lambda key, N, m: posterior_draws(PROBLEMS[kind](K), key, N, m))
    many = jax.jit(lambda key, N, m: posterior_draws(PROBLEMS[kind](K), key, N, m, 16))

    def given(n):
        return (
            lambda N, m: np.asarray(one(first[n], N.astype(float), m)),
            coin[n],
            last[n],
            lambda N, m: np.asarray(many(third[n], N.astype(float), m)),
        )

    return [given(n) for n in range(300)]


def t3c(kind, share):
    count, of_rounds = 2 if share == "ids" else 1, keys()[:300]
    drawn = jax.jit(lambda key, N, m: posterior_draw_and_uniforms(PROBLEMS[kind](K), key, N, m, count))
    uniforms = np.asarray(jax.vmap(lambda key: drawn(key, np.ones(K), np.full(K, 0.5))[1])(of_rounds))
    numbers = [
        (lambda N, m, key=key: np.asarray(drawn(key, N.astype(float), m)[0]), first, last)
        for key, first, last in zip(of_rounds, uniforms[:, 0], uniforms[:, -1], strict=True)
    ]
    rule = reference.t3c((LAWS | OTHERS)[kind], share=share)
    return confident(kind, mab.t3c, rule, numbers=numbers, rounds=300, stops=None, leader_share=share)


def ttts(kind):
    third = 2 if kind == "gaussian" else 3
    numbers = [(draw, coin, further[third - 2]) for draw, coin, *further in randomness(kind)]
    rule = reference.ttts((LAWS | OTHERS)[kind], share=0.4)
    return confident(kind, mab.ttts, rule, numbers=numbers, rounds=300, stops=None, leader_share=0.4)


def by_bounds(kind, factory, transcribed, hoeffding=False):
    rule, stopping, *answer = transcribed(reference.bounds_of((LAWS | OTHERS)[kind], DELTA, hoeffding), epsilon=0.05)
    return confident(kind, factory, rule, stopping=stopping, answer=next(iter(answer), None), epsilon=0.05)


def successive_elimination(kind):
    rule, stopping, answer = reference.successive_elimination(LAWS[kind].noise_scale, K, delta=DELTA)
    stops = kind == "bernoulli"  # False for Gaussian arms, whose tape is too short
    return confident(kind, mab.successive_elimination, rule, stopping=stopping, answer=answer, stops=stops)


def lil_ucb(kind):
    rule, stopping, answer = reference.lil_ucb(LAWS[kind].noise_scale, K, e=0.01, b=0.5, ratio=3.5, d=DELTA)
    numbers = {"lil_epsilon": 0.01, "lil_beta": 0.5, "lil_lambda": 3.5}
    return confident(kind, mab.lil_ucb, rule, stopping=stopping, answer=answer, **numbers)


def top_two(kind, factory, share, epsilon):
    rule = reference.eb_tc((LAWS | OTHERS)[kind], share=share, epsilon=epsilon, improved=factory is mab.eb_tci)
    return confident(kind, factory, rule, numbers=coins(), leader_share=share, epsilon=epsilon)


def ttucb(kind, share):
    return confident(
        kind, mab.ttucb, reference.ttucb((LAWS | OTHERS)[kind], K, share=share), lots=True, leader_share=share
    )


def tas(kind, tracking):
    rule = reference.tas((LAWS | OTHERS)[kind], K, tracking=tracking)
    # Few rounds, because nested bisection is slow.
    return confident(kind, mab.tas, rule, rounds=60, stops=None, tracking=tracking)


CONFIDENT = {
    "uniform": lambda kind: confident(kind, mab.uniform, lambda t, *statistics: (t % K,)),
    "eb_tc": functools.partial(top_two, factory=mab.eb_tc, share=0.4, epsilon=0.1),
    "eb_tci": functools.partial(top_two, factory=mab.eb_tci, share="ids", epsilon=0.0),
    "t3c": functools.partial(t3c, share=0.4),
    "t3c-ids": functools.partial(t3c, share="ids"),
    "ttts": ttts,
    "ttucb": functools.partial(ttucb, share=0.3),
    "ttucb-ids": functools.partial(ttucb, share="ids"),
    "tas-D": functools.partial(tas, tracking="D"),
    "tas-C": functools.partial(tas, tracking="C"),
    "lucb": functools.partial(by_bounds, factory=mab.lucb, transcribed=reference.lucb, hoeffding=True),
    "kl_lucb": functools.partial(by_bounds, factory=mab.kl_lucb, transcribed=reference.lucb),
    "ugape": functools.partial(by_bounds, factory=mab.ugape, transcribed=reference.ugape),
    "successive_elimination": successive_elimination,
    "lil_ucb": lil_ucb,
}


# Fixed budget and regret: the algorithm, which may leap, observes the same rewards of every arm


def recorded(factory, **settings):
    """Builds an algorithm and the environment that plays a tape (K, length)."""

    def build(tape):
        sums = jnp.pad(jnp.cumsum(tape, axis=1), ((0, 0), (1, 0)))

        def respond(counts, action, noise):
            del noise
            arms, times = action
            start = counts[arms]
            return Rewards(sums[arms, start + times] - sums[arms, start], times), counts.at[arms].add(times)

        counts = jnp.zeros(len(tape), jnp.int32)
        return factory(**settings), Environment(lambda key: counts, lambda key: (), respond)

    return build


def single_pulls(factory, kind, tape, arms, *, answer=None, rounds=None, **settings):
    """Lays the transcription's `arms` beside our pulls, one per row."""
    problem = PROBLEMS[kind](len(tape))
    build = recorded(factory, problem=problem, **settings)
    course = traced(build, len(arms) + (answer is not None) if rounds is None else rounds, tape)
    pulled, times = course.actions
    ours = np.repeat(pulled.ravel(), times.ravel())
    blank = np.zeros(len(ours), bool)
    theirs = Tape(np.array(arms), np.zeros(len(arms)), np.zeros(len(arms), bool), only_last(-1, len(arms)))
    if answer is not None:
        theirs = theirs._replace(answers=only_last(answer, len(arms)), stops=only_last(True, len(arms)))
    else:
        theirs = theirs._replace(answers=unless(np.ones(len(arms), bool), np.zeros(len(arms), int)))
    stops, last = blank | course.stops[-1], course.answers[-1]
    answers = np.broadcast_to(last, (len(ours), *last.shape))
    return Laid(theirs, Tape(ours, np.zeros(len(ours)), stops, answers))


T = 150
BUDGET = {  # factory, settings, and the rounds of a run if they are fewer than its pulls
    "rejects": (mab.successive_rejects, {}, None),
    "rejects-leap": (mab.successive_rejects, {"leap": 7}, None),
    "halving": (mab.sequential_halving, {}, None),
    "halving-reuse": (mab.sequential_halving, {"reuse": True}, None),
    "halving-leap": (mab.sequential_halving, {"leap": T}, 4),  # one round per phase, and the last decision
    "continuous-c": (mab.continuous_rejects, {}, None),
    "continuous-a": (mab.continuous_rejects, {"conservative": False}, None),
}


def budget(kind, name):
    factory, settings, rounds = BUDGET[name]
    tape = tape_of(kind, 6, T)
    if name.startswith("continuous"):
        conservative, scale = name == "continuous-c", LAWS[kind].noise_scale
        words = lots_of(kind, 6, always=True)
        *arms, answer = reference.continuous_rejects(tape, T, conservative=conservative, noise_scale=scale, words=words)
    else:
        is_rejects = name.startswith("rejects")
        phases = (reference.successive_rejects_phases if is_rejects else reference.sequential_halving_phases)(6, T)
        every = is_rejects or name == "halving-reuse"
        *arms, answer = reference.in_phases(tape, phases, all_samples=every, words=lots_of(kind, 6))
    arms = [arm for (arm,) in arms]
    return single_pulls(factory, kind, tape, arms, answer=answer[0], rounds=rounds, horizon=T, **settings)


def batched_elimination(kind, leap):
    tape, settings = tape_of(kind, 4, 4000), {"delta": DELTA, "first": 5, "growth": 3}
    batches, answer = reference.batched_elimination(tape, LAWS[kind].noise_scale, **settings)
    assert len(batches) > 3
    arms = [arm for batch in batches for arm in batch]
    rounds = None if leap == 1 else len(batches) + 1
    return single_pulls(mab.batched_elimination, kind, tape, arms, answer=answer, rounds=rounds, leap=leap, **settings)


def ucb_e(kind):
    tape = tape_of(kind, 6, T)
    index = reference.indices(LAWS[kind], T=T, exploration=1.5, hardness=40.0)["ucb_e"]
    arms = reference.by_index(tape, index, T, words=lots_of(kind, 6))
    return single_pulls(mab.ucb_e, kind, tape, arms, horizon=T, hardness=40.0, exploration=1.5)


PULLS = 250
REGRET = {
    "ucb1": (mab.ucb1, {"exploration": 1.5}),
    "kl_ucb": (mab.kl_ucb, {"c": 3.0}),
    "imed": (mab.imed, {}),
    "moss": (mab.moss, {"horizon": PULLS}),
    "moss_anytime": (mab.moss_anytime, {"alpha": 2.0}),
}


def regret(kind, name):
    factory, settings = REGRET[name]
    index = reference.indices((LAWS | OTHERS)[kind], T=PULLS, exploration=1.5, c=3.0, alpha=2.0)[name]
    arms = reference.by_index(tape_of(kind), index, PULLS, words=lots_of(kind, K))
    return single_pulls(factory, kind, tape_of(kind), arms, **settings)


CHANGING = {
    "discounted_ucb": (
        lambda law, K: reference.discounted_ucb(law, K, gamma=0.95, xi=0.7),
        functools.partial(mab.discounted_ucb, discount=0.95, exploration=0.7),
    ),
    "sliding_window_ucb": (
        lambda law, K: reference.sliding_window_ucb(law, K, tau=30, xi=0.7),
        functools.partial(mab.sliding_window_ucb, window=30, exploration=0.7),
    ),
    "m_ucb": (
        lambda law, K: reference.m_ucb(law, K, w=12, b=3.3, gamma=0.3),
        functools.partial(mab.m_ucb, window=12, threshold=3.3, gamma=0.3),
    ),
    "exp3": (lambda law, K: reference.exp3(K, gamma=0.2), functools.partial(mab.exp3, gamma=0.2)),
    "exp3_ix": (
        lambda law, K: reference.exp3_ix(K, eta=0.1, gamma=0.03),
        functools.partial(mab.exp3_ix, eta=0.1, gamma=0.03),
    ),
}
# Rules for rewards in [0, 1] refuse normal ones.
KINDS = {"exp3": ("bernoulli",), "exp3_ix": ("bernoulli",)}


def changing(kind, name):
    """Compares pulls on a tape whose best arm changes: after 40 pulls of its own, arm 1 pays as arm 3."""
    rule, factory = CHANGING[name]
    tape = tape_of(kind)
    tape[1, 40:] = tape_of(kind)[3, 40:]
    arms = reference.by_history(tape, rule(LAWS[kind], K), PULLS, words=lots_of(kind, K), numbers=coins())
    if name == "m_ucb":
        counts = [arms[:t].count(arm) for t, arm in enumerate(arms)]
        history = [(arm, tape[arm, n]) for arm, n in zip(arms, counts, strict=True)]
        assert reference.since_change(history, K, w=12, b=3.3)[0] > 0
    return single_pulls(factory, kind, tape, arms)


def thompson():
    drawn = normals(keys()[:PULLS], K)
    tape = tape_of("gaussian")
    arms = reference.by_index(tape, lambda t, N, m: m + 0.8 / np.sqrt(N) * drawn[t - 1], PULLS)
    return single_pulls(mab.thompson, "gaussian", tape, arms)


def bayes_ucb():
    tape = tape_of("gaussian")
    arms = reference.by_index(
        tape, lambda t, N, m: m + 0.8 * stats.norm.isf(1 / (t * np.log(PULLS) ** 5)) / np.sqrt(N), PULLS
    )
    return single_pulls(mab.bayes_ucb, "gaussian", tape, arms, factor=mab.LogFactor(PULLS))


SUB_GAUSSIAN = ("lucb", "successive_elimination", "lil_ucb")  # rules that need a sub-Gaussian constant
CASES = {"thompson, gaussian": thompson, "bayes_ucb, gaussian": bayes_ucb}
for kind in LAWS:
    CASES |= {f"{name}, {kind}": functools.partial(case, kind) for name, case in CONFIDENT.items()}
    CASES |= {f"{name}, {kind}": functools.partial(budget, kind, name) for name in BUDGET}
    CASES |= {f"{name}, {kind}": functools.partial(regret, kind, name) for name in REGRET}
    CASES |= {
        f"{name}, {kind}": functools.partial(changing, kind, name) for name in CHANGING if kind in KINDS.get(name, LAWS)
    }
    CASES[f"batched_elimination, {kind}"] = functools.partial(batched_elimination, kind, 1)
    CASES[f"batched_elimination-leap, {kind}"] = functools.partial(batched_elimination, kind, 20_000)
    CASES[f"ucb_e, {kind}"] = functools.partial(ucb_e, kind)
for kind in OTHERS:
    known = {name: case for name, case in CONFIDENT.items() if name not in SUB_GAUSSIAN}
    CASES |= {f"{name}, {kind}": functools.partial(case, kind) for name, case in known.items()}
    CASES |= {f"{name}, {kind}": functools.partial(budget, kind, name) for name in BUDGET if "continuous" not in name}
    CASES |= {f"{name}, {kind}": functools.partial(regret, kind, name) for name in ("kl_ucb", "imed")}
