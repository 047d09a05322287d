"""The rules that play whole actions against NumPy, which lists the actions: trees as swaps and as rows, sets, paths."""

import functools

import numpy as np
from transcriptions.draws import normals
from transcriptions.laid import KEY, Laid, replayed

from experiments.bench.reference import semi_bandits as reference
from jaxbandits import Tape, cpe
from jaxbandits.numerics import thresholds
from jaxbandits.testing import round_keys

DELTA, SCALE, LENGTH = 0.1, 0.7, 300
TREES = cpe.trees5().problem.rows
PROBLEMS = {
    "trees": (cpe.graphic(4, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]), TREES, (2.0, 1.0, 0.5, 1.5, 0.0)),
    "sets": (cpe.top_k(4, 2), np.array([row for row in np.ndindex(2, 2, 2, 2) if sum(row) == 2]), (0.0, 2.0, 1.2, 0.5)),
    "paths": (cpe.paths5().problem, cpe.paths5().problem.rows, (1.6, 0.5, 1.0, 0.6, 0.9, 1.2, 1.5)),
}


def laid(name, factory, rule, *, stop=None, stops=True, numbers=None, rounds=LENGTH, **settings):
    """Pairs a course of the transcription with the algorithm's on the same observations."""
    problem, rows, means = PROBLEMS[name]
    rows, means = np.asarray(rows), np.array(means)
    tape = means[:, None] + SCALE * np.random.default_rng(3).normal(size=(len(means), LENGTH))
    more = {} if stop is None else {"stop": stop}
    course = reference.plays(
        rows, tape, rule, cover=reference.small_cover(rows), numbers=numbers, rounds=rounds, **more
    )
    assert course[-1].stop is stops
    assert len(course) > 12
    counts, stopped = np.array([step.counts for step in course]), np.array([step.stop for step in course])
    played = np.where(stopped[:, None], 0, [step.decision for step in course])
    observations = np.where(played > 0, np.take_along_axis(tape, counts.T, axis=1).T, 0)
    theirs = Tape(
        cpe.Play(played),
        observations,
        stopped,
        np.array([step.answer for step in course]),
        counts,
    )
    make = functools.partial(factory, problem, noise_scale=SCALE, **settings)
    return Laid(theirs, replayed(make, theirs, watch=counts_of))


def counts_of(state):
    return state.counts


def semi_clucb(name, *, test):
    rows = np.asarray(PROBLEMS[name][1])
    rule, stop = reference.semi_clucb(rows, DELTA, SCALE)
    if not test:
        return laid(name, cpe.semi_clucb, rule, stop=stop, delta=DELTA)
    stop = reference.likely(rows, DELTA, SCALE)
    return laid(name, cpe.semi_clucb, rule, stop=stop, delta=DELTA, threshold=thresholds.gk16(arms=rows.shape[1]))


def round_robin(name):
    rows = np.asarray(PROBLEMS[name][1])
    listed = rows[np.random.default_rng(1).permutation(len(rows))]
    stop = reference.likely(rows, DELTA, SCALE)
    return laid(name, cpe.round_robin, reference.round_robin(listed), stop=stop, rows=listed, delta=DELTA)


def cucb(name):
    rule = reference.cucb(np.asarray(PROBLEMS[name][1]), SCALE)
    return laid(name, cpe.cucb, rule, stops=False, rounds=60)


def cts(name):
    rows = np.asarray(PROBLEMS[name][1])
    z = normals(round_keys(KEY, 60), rows.shape[1])
    return laid(name, cpe.cts, reference.cts(rows, SCALE), stops=False, numbers=z, rounds=60)


CASES = {
    "semi_clucb, trees": lambda: semi_clucb("trees", test=False),
    "semi_clucb, paths, ratio": lambda: semi_clucb("paths", test=True),
    "round_robin, sets": lambda: round_robin("sets"),
    "cucb, trees": lambda: cucb("trees"),
    "cts, sets": lambda: cts("sets"),
}
