"""LinGapE, the fixed designs, and the rules that stop by likelihood ratios against NumPy."""

import functools

import jax
import numpy as np
from drivers.stops import by_ratios
from transcriptions.laid import KEY, Laid, after, only_last, replayed, unless, until_the_end

from experiments.bench.reference import (
    fixed_designs,
    linear_glr,
    linear_peps,
    linear_questions,
    linear_rage,
    lingape,
)
from jaxbandits import Tape, linear
from jaxbandits.linear import Allocation, Pull
from jaxbandits.linear._algorithms.peps import numbers_of as numbers_of_draws
from jaxbandits.linear._shared.top_two import numbers_of
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.design import design, frank_wolfe
from jaxbandits.testing import round_keys

# LinGapE


def lingape_of(arms, ratios, numbers):
    return linear.lingape(arms, ratios=ratios, **numbers)


def gaps(rule, seed):
    arms = np.random.default_rng(seed).normal(size=(6, 3))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    ratios = np.asarray(linear.ratio_tables(arms).p) if rule == "ratio" else None
    noise = np.random.default_rng(seed).normal(size=(6, 6000))
    tape = noise * 0.5 + (arms @ np.array([1.0, 0.3, -0.2]))[:, None]
    counts, observed = np.zeros(6, int), []

    def reward(arm, _):
        observed.append(tape[arm, counts[arm]])
        counts[arm] += 1
        return observed[-1]

    settings = {"delta": 0.1, "epsilon": 0.05, "ridge": 0.7, "noise_scale": 0.5, "norm_bound": 1.2}
    pulled, answer, _ = lingape.lingape(arms, reward, ratios=ratios, max_rounds=5000, **settings)
    assert answer is not None
    # All tapes are padded to one length, so that one program serves them.
    rounds, pulls = 5001, len(pulled)
    theirs = Tape(
        actions=Pull(np.pad(pulled, (0, rounds - pulls)), (np.arange(rounds) < pulls).astype(int)),
        observations=np.pad(observed, (0, rounds - pulls)),
        stops=np.arange(rounds) >= pulls,
        answers=unless(np.arange(rounds) < pulls, np.full(rounds, answer)),
    )
    return Laid(theirs, replayed(lingape_of, theirs, arms, ratios, settings))


# XY-static


def pulls_of(state):
    return state.pulls


def static(instance, allocate, **options):
    arms, options = np.asarray(instance.arms), {"delta": 0.1, "noise_scale": 0.3, "growth": 0.0} | options
    allocation = allocate(instance.arms).allocation
    tape = (arms @ np.asarray(instance.theta))[:, None] + np.random.default_rng(0).normal(size=(len(arms), 4000))
    tests = fixed_designs.xy_static(arms, np.asarray(allocation), tape, **options)
    assert len(tests) > 15
    counts = np.array([test.counts for test in tests])
    sums = np.pad(np.cumsum(tape, axis=1), ((0, 0), (1, 0)))[np.arange(len(arms)), counts]
    theirs = Tape(
        actions=Allocation(until_the_end(np.diff(counts, axis=0, prepend=0))),
        observations=until_the_end(np.diff(sums, axis=0, prepend=0)),
        stops=np.array([False, *(test.stop for test in tests)]),
        answers=after([test.answer for test in tests]),
        watched=np.array([0, *(test.n for test in tests)]),
    )
    return Laid(theirs, replayed(lambda: linear.xy_static(arms, allocation, **options), theirs, watch=pulls_of))


# XY-adaptive

STEPS = 300


def phase_of(state):
    return state.squared_width, state.members, state.pulls


@functools.cache
def adaptive_of(keep_eliminated, radius, union_power):
    def build(arms, alpha, first_width):
        return linear.xy_adaptive(
            arms,
            delta=0.1,
            noise_scale=0.3,
            alpha=alpha,
            first_width=first_width,
            keep_eliminated=keep_eliminated,
            radius=radius,
            union_power=union_power,
            design_steps=STEPS,
        )

    return build


def adaptive(seed, keep_eliminated, alpha=0.2, first_width=1.0, radius="azuma", union_power=2):
    instance = linear.sphere(seed, 5, 3, 0.25)
    arms, theta = np.asarray(instance.arms), np.asarray(instance.theta)

    def solve(differences):
        # The same pairs in the same order, without the masked ones.
        return np.asarray(design(arms, np.array(differences), steps=STEPS).allocation)

    def rewards(phase, counts):
        # The noise exceeds the algorithm's noise_scale, so that arms come and go.
        noise = np.random.default_rng([seed, phase]).normal(size=5)
        return counts * (arms @ theta) + 1.5 * np.sqrt(counts) * noise

    options = {"delta": 0.1, "noise_scale": 0.3, "alpha": alpha, "first_width": first_width}
    options |= {"keep_eliminated": keep_eliminated, "radius": radius, "union_power": union_power}
    phases = fixed_designs.xy_adaptive(arms, solve, rewards, max_phases=4, **options)
    rounds, ends = len(phases) + 1, sum(phases[-1].members) == 1
    assert rounds >= 3
    counts = until_the_end([phase.counts for phase in phases])
    sums = until_the_end([rewards(n, np.array(phase.counts)) for n, phase in enumerate(phases)])
    widths, members = (after([phase[field] for phase in phases]) for field in (1, 2))
    theirs = Tape(
        actions=Allocation(counts if ends else unless(np.arange(rounds) == rounds - 1, counts)),
        observations=sums,
        stops=np.arange(rounds) == (rounds - 1 if ends else rounds),
        answers=only_last(np.argmax(phases[-1].members), rounds) if ends else unless(np.ones(rounds), np.zeros(rounds)),
        watched=(widths, members, np.append(0, np.cumsum([sum(phase.counts) for phase in phases]))),
    )
    build = adaptive_of(keep_eliminated, radius, union_power)
    ours = replayed(build, theirs, arms, alpha, first_width, watch=phase_of)
    if not ends:
        assert phases[-1].members[int(ours.answers[-1])]
    return Laid(theirs, ours, tolerance=1e-9)


# RAGE


def items_of(state):
    return state.theta, state.items_left, state.counts.sum()


@functools.cache
def rage_of(reuse, has_items, against):
    del has_items  # a part of the cache key, because items change the shapes

    def build(arms, items, numbers):
        rage = linear.rage_leader if against == "leader" else linear.rage
        return rage(arms, items=items, reuse=reuse, design_steps=STEPS, **numbers)

    return build


def phased(seed, reuse=False, items=False, against="all", **numbers):
    instance = linear.sphere(seed, 6, 3, 0.1)
    arms, theta = np.asarray(instance.arms), np.asarray(instance.theta)
    compared = np.random.default_rng(seed).normal(size=(4, 3)) if items else arms

    def solve(differences):
        if against == "leader":
            y, start = np.array(differences), linear_rage.spanning(arms).astype(bool)
            shares = np.asarray(frank_wolfe(arms, y, np.ones(len(y)), steps=STEPS, start=start))
            return shares, np.max(np.sum(y * np.linalg.solve(arms.T @ (shares[:, None] * arms), y.T).T, axis=1))
        solved = design(arms, np.array(differences), steps=STEPS)
        return np.asarray(solved.allocation), float(solved.value)

    def rewards(phase, counts):
        # The noise exceeds the algorithm's noise_scale, so that some items are eliminated wrongly.
        noise = np.random.default_rng([seed, phase]).normal(size=6)
        return counts * (arms @ theta) + np.sqrt(counts) * noise

    numbers = {"delta": 0.1, "epsilon": 0.0, "noise_scale": 0.5, "rounding": 0.1} | numbers
    phases = linear_rage.rage(arms, compared, solve, rewards, reuse=reuse, against=against, **numbers)
    assert phases[-1].stop
    assert len(phases) >= 2
    rounds = len(phases) + 1
    theirs = Tape(
        actions=Allocation(until_the_end([phase.counts for phase in phases])),
        observations=until_the_end([rewards(n, np.array(phase.counts)) for n, phase in enumerate(phases)]),
        stops=np.array([False, *(phase.stop for phase in phases)]),
        answers=after([phase.answer for phase in phases]),
        watched=(
            after([phase.theta for phase in phases]),
            after([phase.active for phase in phases]),
            np.cumsum([0, *(sum(phase.counts) for phase in phases)]),
        ),
    )
    assert rounds == len(theirs.stops)
    ours = replayed(rage_of(reuse, items, against), theirs, arms, compared if items else None, numbers, watch=items_of)
    return Laid(theirs, ours, tolerance=1e-9)


# Likelihood ratios

LENGTH, DELTA, DRAWS = 400, 0.05, 8


def gk16(t, counts):
    del counts
    return np.log1p(np.log(t)) - np.log(DELTA)


def kk_all(t, counts):
    del t
    return float(thresholds.kk_all(arms=len(counts))(DELTA, thresholds.Evidence(0, counts)))


@functools.cache
def numbers_of_rounds(n):
    """Draws the numbers of a top-two rule for all rounds: n normals, a uniform for ties, and a coin."""
    return jax.device_get(jax.jit(jax.vmap(lambda key: numbers_of(key, n, float)))(round_keys(KEY, LENGTH)))


@functools.cache
def numbers_of_peps(d, n):
    def of_round(key):
        numbers = numbers_of_draws(key, d, n, float)
        return linear_peps.Numbers(numbers.arm, numbers.items, 1 - numbers.tails, numbers.normals)

    return jax.device_get(jax.jit(jax.vmap(of_round))(round_keys(KEY, LENGTH)))


def ratios(
    factory,
    sampler,
    seed=1,
    *,
    items=False,
    draws=None,
    numbers=None,
    first=None,
    stops=True,
    threshold=gk16,
    question=None,
    **settings,
):
    """Lays out a rule on `sphere(seed)`; its own options are bound to `factory` and `sampler`.

    `question` is the library's question, and its transcription.
    """
    x = linear.sphere(seed, 6, 3, 0.6)
    arms, theta = np.asarray(x.arms), np.asarray(x.theta)
    compared = np.random.default_rng(seed).normal(size=(4, 3)) if items else None
    tape = (arms @ theta)[:, None] + 0.8 * np.random.default_rng(seed).normal(size=(6, LENGTH))
    common = {"ridge": 0.7, "noise_scale": 0.8} | settings
    if draws is not None:
        numbers = numbers_of_rounds(3 * draws)
    if numbers is not None:
        common["numbers"] = lambda t: type(numbers)(*(each[t] for each in numbers))
    asked, theirs = (None, None) if question is None else question
    common["question"] = theirs
    course = linear_glr.run(arms, tape, sampler, threshold, items=compared, first=first, rounds=LENGTH, **common)
    assert stops is None or course[-1].stop is stops
    common.pop("numbers", None)
    common.pop("question")
    if asked is not None:
        factory = functools.partial(factory, question=asked)
    pulled = np.array([each.arm for each in course])
    pulls, counts = len(course) - course[-1].stop, np.zeros(6, int)
    observed = np.zeros(LENGTH)
    for t, arm in enumerate(pulled[:pulls]):
        observed[t] = tape[arm, counts[arm]]
        counts[arm] += 1
    rounds = np.arange(LENGTH)
    start = 6 if first is None else len(first)  # rounds without an answer
    answers = np.array([course[min(max(t, start), len(course) - 1)].answer for t in rounds])
    theirs = Tape(
        actions=Pull(np.pad(pulled[:pulls], (0, LENGTH - pulls)), (rounds < pulls).astype(int)),
        observations=observed,
        stops=rounds >= pulls,
        answers=unless(rounds < start, answers),
    )
    kind = thresholds.gk16(arms=6) if threshold is gk16 else thresholds.kk_all(arms=6)
    if common.pop("without_ridge", False):
        common["glr_ridge"] = 0

    def build():
        return by_ratios(factory)(arms, delta=DELTA, threshold=kind, items=compared, **common)

    ours = replayed(build, theirs)
    return Laid(theirs, ours._replace(actions=Pull(ours.actions.arm, ours.actions.times)))


TOP = {"seed": 32, "question": (linear.TopM(2), linear_questions.top_m(2))}
ABOVE = {"seed": 32, "question": (linear.Above(-0.15), linear_questions.above(-0.15))}
SHARES = np.array([0.3, 0.1, 0.2, 0.2, 0.1, 0.1])


def weighed(arms, **settings):
    return linear.fixed_weights(arms, SHARES, **settings)


def drawn_best(items, stats, n):
    """Returns the best item of one posterior draw, in units of the noise."""
    return int(np.argmax(items @ (stats.theta + stats.root.T @ stats.number.normals[3 * n : 3 * n + 3])))


def nearest(stats, items, leader, costs):
    del items, leader
    tied = np.flatnonzero(costs == costs.min())
    return int(tied[int(stats.number.tie * len(tied))])


def first_other(stats, items, leader, costs):
    tops = [drawn_best(items, stats, n) for n in range(1, DRAWS + 1)]
    return next((top for top in tops if top != leader), nearest(stats, items, leader, costs))


def leader_of(stats, items):
    return drawn_best(items, stats, 0)


def by_ratio(arms, **settings):
    return linear.lingape_glr(arms, ratios=linear.ratio_tables(arms).p, **settings)


def gap_ratio(arms, items):
    return linear_glr.lingape(gk16, DELTA, linear.ratio_tables(arms).p)(arms, items)


def top_ratio(arms, items):
    shares = linear.ratio_tables(arms).p
    return linear_glr.lingape(gk16, DELTA, shares, linear_questions.pairs_of(2))(arms, items)


def peps(**options):
    """Returns the factory of PEPS and its transcription, which receives the same random numbers."""

    def factory(arms, **settings):
        return linear.peps(arms, draws=DRAWS, **options, **settings)

    def sampler(arms, items):
        shares = np.asarray(linear.g_allocation(arms).allocation) if options else None
        return linear_peps.peps(mixed_in=shares, **options)(arms, items)

    return factory, sampler


TIRINZONI = {"shared_learner": True, "optimism": False, "clip": False}
SPANNER = [5, 1, 3]
LAZY = {"laziness": 3, "spanner": SPANNER}
RATIOS = {
    "uniform, items, epsilon": (linear.uniform, linear_glr.uniform, {"items": True, "epsilon": 0.2}),
    "fixed_weights, least squares": (
        weighed,
        linear_glr.fixed_weights(SHARES),
        {"without_ridge": True, "threshold": kk_all, "eliminate": "stop", "seed": 0},
    ),
    "fws": (linear.fws, linear_glr.fws, {}),
    "fws, items": (linear.fws, linear_glr.fws, {"items": True, "seed": 0}),
    "lingame": (linear.lingame, linear_glr.lingame(), {}),
    "lingame, eliminating": (
        functools.partial(linear.lingame, **TIRINZONI),
        linear_glr.lingame(**TIRINZONI),
        {"eliminate": "both"},
    ),
    "lingame_c": (linear.lingame_c, linear_glr.lingame_c(), {}),
    "lazy_tas": (
        functools.partial(linear.lazy_tas, design_steps=50, **LAZY, start="spanner"),
        linear_glr.lazy_tas(laziness=3, steps=50, spanner=SPANNER, initial=3, ridge=0.7),
        {"first": SPANNER},
    ),
    "lazy_tas, support": (
        functools.partial(linear.lazy_tas, design_steps=50, **LAZY, start="spanner", support=True),
        linear_glr.lazy_tas(laziness=3, steps=50, spanner=SPANNER, initial=3, ridge=0.7, support=True),
        {"first": SPANNER},
    ),
    "lingape, threshold": (linear.lingape_glr, linear_glr.lingape(gk16, DELTA), {"items": True, "epsilon": 0.2}),
    "lingape, log": (
        functools.partial(linear.lingape_glr, width="log"),
        linear_glr.lingape(None, DELTA),
        {"eliminate": "both"},
    ),
    "lingape, threshold and ratio": (by_ratio, gap_ratio, {}),
    "uniform, top": (linear.uniform, linear_glr.uniform, TOP),
    "uniform, above, least squares": (
        linear.uniform,
        linear_glr.uniform,
        {"without_ridge": True, "items": True} | ABOVE,
    ),
    "fixed_weights, above": (weighed, linear_glr.fixed_weights(SHARES), ABOVE),
    "lingape, top": (linear.lingape_glr, linear_glr.lingape(gk16, DELTA), TOP),
    "lingape, top, items": (linear.lingape_glr, linear_glr.lingape(gk16, DELTA), TOP | {"items": True, "seed": 0}),
    "lingape, top, ratio": (by_ratio, top_ratio, TOP),
    "lingape, above": (
        functools.partial(linear.lingape_glr, width="log"),
        linear_glr.lingape(None, DELTA),
        ABOVE,
    ),
    "fws, top": (linear.fws, linear_glr.fws, TOP),
    "fws, above": (linear.fws, linear_glr.fws, {"items": True} | ABOVE),
    "lingame, top": (
        functools.partial(linear.lingame, shared_learner=True),
        linear_glr.lingame(shared_learner=True),
        TOP,
    ),
    "lingame, above": (functools.partial(linear.lingame, **TIRINZONI), linear_glr.lingame(**TIRINZONI), ABOVE),
    "lazy_tas, top": (
        functools.partial(linear.lazy_tas, design_steps=50, **LAZY, start="spanner"),
        linear_glr.lazy_tas(laziness=3, steps=50, spanner=SPANNER, initial=3, ridge=0.7),
        {"first": SPANNER} | TOP,
    ),
    "lazy_tas, above": (
        functools.partial(linear.lazy_tas, design_steps=50, **LAZY, start="spanner"),
        linear_glr.lazy_tas(laziness=3, steps=50, spanner=SPANNER, initial=3, ridge=0.7),
        {"first": SPANNER} | ABOVE,
    ),
    "l_t3c": (linear.l_t3c, linear_glr.top_two(leader=leader_of, challenger=nearest), {"draws": 1}),
    "l_t3c, coin": (
        functools.partial(linear.l_t3c, leader_share=0.4),
        linear_glr.top_two(leader=leader_of, challenger=nearest, share=0.4),
        {"draws": 1, "stops": None},
    ),
    "lin_ttts": (
        functools.partial(linear.lin_ttts, draws=DRAWS),
        linear_glr.top_two(leader=leader_of, challenger=first_other),
        {"draws": DRAWS + 1},
    ),
}


def posterior(*rule, **settings):
    return ratios(*rule, numbers=numbers_of_peps(3, DRAWS), **settings)


CASES = {
    **{name: functools.partial(ratios, *rule, **settings) for name, (*rule, settings) in RATIOS.items()},
    "peps": functools.partial(posterior, *peps()),
    "peps, items": functools.partial(posterior, *peps(), items=True, seed=0),
    "peps, mixed, eliminating": functools.partial(posterior, *peps(mix=0.4), eliminate="both"),
    **{
        f"lingape, {rule}, {seed}": functools.partial(gaps, rule, seed)
        for rule in ("greedy", "ratio")
        for seed in range(3)
    },
    "rage": functools.partial(phased, 6),
    "rage, rounding": functools.partial(phased, 11, rounding=0.4, delta=0.01),
    "rage, items": functools.partial(phased, 4, items=True),
    "rage, items, epsilon": functools.partial(phased, 8, items=True, epsilon=0.6),
    "rage, reuse": functools.partial(phased, 6, reuse=True),
    "rage, reuse, items": functools.partial(phased, 9, reuse=True, items=True),
    "rage, leader": functools.partial(phased, 6, against="leader"),
    "rage, leader, items, epsilon": functools.partial(phased, 8, items=True, against="leader", epsilon=0.6),
    "rage, leader, reuse": functools.partial(phased, 6, reuse=True, against="leader"),
    "xy_static, canonical": lambda: static(linear.canonical(2.0, 4), linear.xy_allocation),
    "xy_static, growth": lambda: static(linear.sphere(0, 6, 3, 0.5), linear.xy_allocation, growth=0.05),
    "xy_static, ridge": lambda: static(linear.sphere(1, 6, 3, 0.5), linear.g_allocation, ridge=2.0, union_power=1),
    "xy_static, subgaussian": lambda: static(
        linear.sphere(2, 7, 4, 0.3), linear.xy_allocation, radius="subgaussian", growth=1e-2
    ),
}
for keep in (False, True):
    CASES |= {
        f"xy_adaptive, plain, keep {keep}": functools.partial(adaptive, 0, keep),
        f"xy_adaptive, slow, keep {keep}": functools.partial(adaptive, 1, keep, alpha=0.3, first_width=2.0),
        f"xy_adaptive, subgaussian, keep {keep}": functools.partial(
            adaptive, 2, keep, radius="subgaussian", union_power=1
        ),
    }
