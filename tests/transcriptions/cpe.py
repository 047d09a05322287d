"""COCI, uniform sampling and CLUCB against NumPy."""

import functools

import numpy as np
from transcriptions.laid import Laid, replayed, unless

from experiments.bench.reference import cpe as reference
from jaxbandits import Tape, cpe

WATER, OSA, PATHS = cpe.water3().problem, cpe.osa4().problem, cpe.paths5().problem
SITES, TREES = cpe.sites5().problem, cpe.trees5().problem
OFFSETS = cpe.enumerated([[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 1]], [0.25, 0, 0.125, 0.5])
BEST = {m: reference.linear(np.eye(m, dtype=int)) for m in (3, 4)}


def counts_of(state):
    return state.statistics.counts


def laid(make, tape, rounds):
    """Pairs the transcription's tape with ours. `tape[i, s]` is sample s of arm i; after the stop nothing changes."""
    assert 30 < len(rounds) < 2000
    rounds = [*rounds, *[rounds[-1]] * 5]
    arms = np.array([len(tape) if step.stop else step.arm for step in rounds], np.int32)
    samples = [0.0 if step.stop else tape[step.arm, step.counts[step.arm]] for step in rounds]
    unknown = [step.answer is None for step in rounds]
    theirs = Tape(
        actions=cpe.Pulls(arms[:, None]),
        observations=np.array(samples)[:, None],
        stops=np.array([step.stop for step in rounds]),
        answers=unless(unknown, [rounds[-1].answer if step.answer is None else step.answer for step in rounds]),
        watched=np.array([step.counts for step in rounds]),
    )
    return Laid(theirs, replayed(make, theirs, watch=counts_of))


def coci(problem, plain, means, scale=1.0, tau=1, clip=True):
    """Runs COCI on Bernoulli samples, or on uniform ones if `means` is None."""
    tape = np.random.default_rng(0).uniform(size=(plain.decisions.shape[1], 900))
    if means is not None:
        tape = (tape < np.array(means)[:, None]).astype(float)
    elif tau == 2:
        tape = 0.5 + (tape - 0.5) * np.array([0.6, 1, 1, 0.3])[:, None]
    else:
        tape = tape * np.array([0.3, 0.3, 0.2])[:, None] + np.array([0.45, 0.7, 0.1])[:, None]
    rounds = reference.coci(plain, tape, delta=0.1, scale=scale, tau=tau, clip=clip)
    make = functools.partial(
        cpe.coci,
        problem,
        delta=0.1,
        estimator="variance" if tau == 2 else "mean",
        observations="unit" if means is None else "binary",
        clip=clip,
        radius_scale=scale,
    )
    return laid(make, tape, rounds)


def uniform(problem, plain, means, scale):
    tape = np.random.default_rng(1).uniform(size=(len(means), 400))
    tape = (tape < np.array(means)[:, None]).astype(float)
    rounds = reference.uniform(plain, tape, delta=0.1, scale=scale)
    assert {step.arm for step in rounds[: len(means)]} == set(range(len(means)))
    return laid(
        functools.partial(cpe.uniform, problem, delta=0.1, observations="binary", radius_scale=scale), tape, rounds
    )


def clucb(problem, plain, means, radius=None):
    tape = np.random.default_rng(2).uniform(size=(len(means), 1200))
    observations = "binary" if plain.decisions.sum(axis=1).max() == 1 else "unit"
    if observations == "binary":
        tape = (tape < np.array(means)[:, None]).astype(float)
    else:
        # Sums of estimates of 0/1 samples tie up to rounding, and CLUCB depends on how ties break.
        tape = np.array(means)[:, None] + 0.1 * (tape - 0.5)
    radius_of = radius and functools.partial(reference.chen_radius, delta=0.1, scale=radius.noise_scale)
    settings = {} if radius is None else {"radius": radius}
    rounds = reference.clucb(plain, tape, delta=0.1, radius_of=radius_of)
    return laid(functools.partial(cpe.clucb, problem, delta=0.1, observations=observations, **settings), tape, rounds)


WATERS = reference.table(WATER.coef, WATER.cost, 6)
OPINIONS = reference.table(OSA.coef, OSA.cost, 3, "at most")
TIES = cpe.top_k(4, 2), reference.table(np.ones((4, 1)), np.zeros((4, 1)), 2)
TOP = cpe.top_k(5, 2), reference.table(np.ones((5, 1)), np.zeros((5, 1)), 2)
DECKS = SITES, reference.table(SITES.coef, SITES.cost, 2)
EDGES = TREES, reference.linear(TREES.rows, bi_monotone=True)
ROUTES = PATHS, reference.linear(PATHS.rows)

CASES = {
    "coci, ties": lambda: coci(*TIES, (1.0, 0.7, 0.4, 0.0), 0.5),
    "coci, water": lambda: coci(WATER, WATERS, None, 0.4),
    "coci, paths": lambda: coci(*ROUTES, (0.8, 0.3, 0.5, 0.3, 0.4, 0.6, 0.8), 0.6),
    "coci, no clip": lambda: coci(cpe.best_arm(3), BEST[3], (0.9, 0.5, 0.3), 0.5, clip=False),
    "coci, variance": lambda: coci(OSA, OPINIONS, None, 0.12, tau=2),
    "coci, binary variance": lambda: coci(OSA, OPINIONS, (0.1, 0.5, 0.5, 0.05), 0.4, tau=2),
    "uniform, top": lambda: uniform(*TOP, (0.9, 0.8, 0.3, 0.2, 0.1), 0.5),
    "uniform, water": lambda: uniform(WATER, WATERS, (0.6, 0.85, 0.15), 0.3),
    "uniform, trees": lambda: uniform(*EDGES, (0.9, 0.8, 0.1, 0.9, 0.1), 0.5),
    "clucb, best": lambda: clucb(cpe.best_arm(4), BEST[4], (0.95, 0.4, 0.3, 0.2)),
    "clucb, best, chen": lambda: clucb(cpe.best_arm(4), BEST[4], (0.95, 0.4, 0.3, 0.2), cpe.Chen()),
    "clucb, sites, chen": lambda: clucb(*DECKS, (0.9, 0.6, 0.3, 0.2, 0.1), cpe.Chen(0.3)),
    "clucb, paths": lambda: clucb(*ROUTES, (0.9, 0.2, 0.5, 0.2, 0.4, 0.6, 0.9)),
    "clucb, offsets": lambda: clucb(OFFSETS, reference.linear(OFFSETS.rows, OFFSETS.offset), (0.9, 0.2, 0.6, 0.15)),
}
