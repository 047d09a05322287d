"""Rules of fullbandit, tested after every pull, against NumPy."""

import functools

import jax
import numpy as np
from transcriptions.laid import KEY, Laid, after, replayed, unless, until_the_end

from experiments.bench.reference import fullbandit as reference
from jaxbandits import Tape, fullbandit
from jaxbandits.engine.run.round import streams
from jaxbandits.fullbandit import Pulls
from jaxbandits.fullbandit._algorithms.sa_foa import LotteryPulls, sampled_rows

ROOTS = np.sqrt([5, 11, 17, 7, 13, 19, 3, 23])  # shares for which no two ratios of count to share ever tie
DESIGN = fullbandit.make_design(fullbandit.random_support(5, 5, 3, size=8), 3, weights=ROOTS / ROOTS.sum())
THETA = np.array([0.8, 0.1, 0.6, 0.2, 0.5])


def rewards(theta, support, pulls, seed):
    """Draws the m-th reward of every super-arm, each of its arms with normal noise, float (s, pulls)."""
    noise = np.random.default_rng(seed).normal(size=(len(support), pulls))
    return (support @ theta)[:, None] + 0.3 * np.sqrt(support.sum(axis=1))[:, None] * noise


def statistics_of(state):
    return state.counts, state.sums


def thetas_of(support, counts, sums):
    """Computes the estimates of all states except the first, before which nothing is pulled."""
    gram = np.einsum("ia,ri,ib->rab", support, counts[1:], support)
    return after(np.linalg.solve(gram, (sums[1:] @ support)[..., None])[..., 0])


def laid(build, design, tape, tests, action=Pulls):
    """Lays the transcription's tape beside ours: every super-arm once in the first round, then a test before a pull."""
    support = np.asarray(design.support, float)
    counts = np.array([test.counts for test in tests])
    sums = np.pad(np.cumsum(tape, axis=1), ((0, 0), (1, 0)))[np.arange(len(tape)), counts]
    pulls = until_the_end(np.diff(counts, axis=0, prepend=0))
    answers = [np.isin(np.arange(support.shape[1]), test.answer) for test in tests]
    theirs = Tape(
        actions=action(pulls),
        observations=until_the_end(np.diff(sums, axis=0, prepend=0)),
        stops=np.array([False, *(test.stop for test in tests)]),
        answers=after(answers),
        watched=(np.pad(counts, ((1, 0), (0, 0))), after([test.theta for test in tests])),
    )
    ours = replayed(build, theirs, watch=statistics_of)
    counts, sums = ours.watched
    return Laid(theirs, ours._replace(watched=(counts, thetas_of(support, counts, sums))), absolute_tolerance=1e-9)


def rule(name, seed, noise_scale, **options):
    support, weights = np.asarray(DESIGN.support), np.asarray(DESIGN.weights)
    tape = rewards(THETA, support.astype(float), 400, seed)
    settings = {"delta": 0.1, "epsilon": 0.4, "noise_scale": noise_scale} | options
    literal = functools.partial(getattr(reference, name), k=3, **settings)
    if name == "spectral":
        counts = np.zeros(len(weights), int)
        levels = []  # smallest ratio of count to share after each pull
        for _ in range(3000):
            counts[reference.next_superarm(weights, counts)] += 1
            levels.append(np.min(counts / weights))
        literal = functools.partial(literal, eigenvalue=lambda t: float(DESIGN.spectral) / levels[t - 1])
    tests = reference.tests_of(support, weights, tape, literal, len(support))
    assert 20 < len(tests) < 2000

    def build():
        return getattr(fullbandit, name)(DESIGN, pace=fullbandit.Pace(growth=None), **settings)

    return laid(build, DESIGN, tape, tests)


# SA-FOA: both receive the rows that each test draws

SIX = np.array([0.9, 0.2, 0.7, -0.5, 0.4, 0.1])
BASE = {"delta": 0.05, "epsilon": 0.3, "noise_scale": 0.05}


@functools.cache
def lottery_design(name):
    if name == "uniform":
        return fullbandit.make_design(fullbandit.random_support(4, 6, 3, size=9), 3)
    allocation = fullbandit.g_allocation(fullbandit.random_support(3, 6, 3, size=14))
    return fullbandit.make_design(allocation.support, 3, weights=allocation.weights)


@functools.cache
def lottery(name, reduction, mode):
    """Makes the `build` that both seeds share."""
    sampling = {"random": fullbandit.Sampling(2, "draw"), "all": None, "hazard": fullbandit.Sampling()}[mode]
    design = lottery_design(name)
    pace = fullbandit.Pace(growth=None)
    return lambda: fullbandit.sa_foa(design, sampling=sampling, reduction=reduction, pace=pace, **BASE)


def sa_foa(name, reduction, seed, mode="random"):
    design, build = lottery_design(name), lottery(name, reduction, mode)
    support, weights = np.asarray(design.support), np.asarray(design.weights)
    s, n = support.shape
    clock = build().init(streams(KEY).init).clock
    draw = jax.jit(lambda t: sampled_rows(clock, t, s=s, size=2 * n))
    tape = rewards(SIX, support.astype(float), 1000, seed)
    rows = (lambda t: np.asarray(draw(t))) if mode == "random" else (lambda t: np.arange(s))
    literal = functools.partial(reference.sa_foa, k=3, support=support, rows=rows, reduction=reduction, **BASE)
    tests = reference.tests_of(support, weights, tape, literal, s)
    assert len(tests) > 10
    open_hazards = unless(np.ones(len(tests) + 1, bool), np.zeros(len(tests) + 1))
    case = laid(build, design, tape, tests, lambda counts: LotteryPulls(counts, open_hazards))
    # "all" stops at the first test that nothing blocks: a lottery stops no later.
    if mode == "all":
        assert replayed(lottery(name, reduction, "hazard"), case.theirs).stops[-1]
    return case


CASES = {
    "saqm": lambda: rule("saqm", 0, 0.05),
    "saqm, exact": lambda: rule("saqm", 0, 0.05, alpha=0.7, reduction="exact"),
    "icb": lambda: rule("icb", 1, 0.1),
    "icb, ellipsoid": lambda: rule("icb", 1, 0.1, radius="ellipsoid"),
    "exhaustive": lambda: rule("exhaustive", 2, 0.25 / 3),
    "spectral": lambda: rule("spectral", 3, 0.25 / 3),
}
for seed in (0, 1):
    CASES |= {
        f"sa_foa, weighted, {seed}": functools.partial(sa_foa, "weighted", "paper", seed),
        f"sa_foa, uniform, {seed}": functools.partial(sa_foa, "uniform", "exact", seed),
        f"sa_foa, all, {seed}": functools.partial(sa_foa, "uniform", "paper", seed, "all"),
    }
