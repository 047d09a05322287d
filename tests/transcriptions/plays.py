"""P-FWS and CombGame against NumPy, which lists every action."""

import functools
from itertools import combinations

import jax
import numpy as np
from transcriptions.laid import KEY, Laid, replayed, unless

from experiments.bench.reference import plays as reference
from jaxbandits import Tape, cpe
from jaxbandits.cpe._algorithms import pfws as points
from jaxbandits.cpe._problem.problems import kind_of
from jaxbandits.testing import round_keys

EDGES = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
MEANS = np.array([1.4, 0.9, 0.2, 0.7, 1.3, 0.5])
TREES = cpe.graphic(4, EDGES), reference.trees(4, EDGES), MEANS
THREE = np.array([np.isin(range(6), chosen).astype(int) for chosen in combinations(range(6), 3)])
TOP = cpe.top_k(6, 3), THREE, MEANS
PATHS = cpe.paths5().problem, np.asarray(cpe.paths5().problem.rows)[::-1], np.asarray(cpe.paths5().theta)
SCALE, DELTA, LENGTH = 0.5, 1e-3, 1500


def laid(make, tape, course):
    """Pairs the transcription's tape with ours. After the stop nothing changes."""
    assert 40 < len(course) < LENGTH, len(course)
    course = [*course, *[course[-1]] * 3]
    actions = np.array([np.zeros_like(step.action) if step.stop else step.action for step in course])
    counts = np.array([step.counts for step in course])
    samples = np.where(actions > 0, tape[np.arange(len(tape)), np.minimum(counts, tape.shape[1] - 1)], 0)
    unknown = [step.answer is None for step in course]
    theirs = Tape(
        actions=actions.astype(np.int32),
        observations=samples,
        stops=np.array([step.stop for step in course]),
        answers=unless(unknown, [course[-1].answer if step.answer is None else step.answer for step in course]),
        watched=counts,
    )
    ours = replayed(make, theirs, watch=counts_of)
    return Laid(theirs, ours._replace(actions=ours.actions.decision))


def counts_of(state):
    return state.counts


def tape_of(means, seed):
    return means[:, None] + SCALE * np.random.default_rng(seed).normal(size=(len(means), LENGTH))


def is_listed(problem):
    return kind_of(problem).actions.rank is None


def pfws(problem, rows, means, seed=0, independent=False, cover=cpe.small_cover):
    K, draws = len(means), 4
    made = points._independent if independent else points._shifted
    drawn = jax.jit(jax.vmap(lambda key: made(key, draws, K, np.dtype("float64"))))(round_keys(KEY, LENGTH))
    tape, cover = tape_of(means, seed), np.asarray(cover(problem))
    maximum = reference.listed if is_listed(problem) else reference.greedy
    course = reference.pfws(
        rows, tape, np.asarray(drawn), delta=DELTA, cover=cover, draws=draws, noise_scale=SCALE, maximum=maximum
    )
    settings = {"delta": DELTA, "noise_scale": SCALE, "cover": cover, "draws": draws, "independent": independent}
    return laid(functools.partial(cpe.pfws, problem, **settings), tape, course)


def combgame(problem, rows, means, seed=0, capacity=64):
    tape, cover = tape_of(means, seed), np.asarray(cpe.small_cover(problem))
    D = rows[0].sum()
    square = np.abs(rows[:, None] - rows).sum(axis=2).max() if is_listed(problem) else 2 * min(D, len(means) - D)
    course = reference.combgame(
        rows,
        tape,
        delta=DELTA,
        cover=cover,
        capacity=capacity,
        diameter=np.sqrt(square),
        noise_scale=SCALE,
        maximum=reference.listed if is_listed(problem) else reference.greedy,
    )
    make = functools.partial(cpe.combgame, problem, delta=DELTA, noise_scale=SCALE, capacity=capacity)
    return laid(make, tape, course)


CASES = {
    "pfws, trees": lambda: pfws(*TREES),
    "pfws, trees, apart": lambda: pfws(*TREES, independent=True, cover=cpe.unit_cover),
    "pfws, top": lambda: pfws(*TOP),
    "pfws, paths": lambda: pfws(*PATHS),
    "combgame, trees": lambda: combgame(*TREES),
    "combgame, top, full": lambda: combgame(*TOP, capacity=5),
    "combgame, paths": lambda: combgame(*PATHS),
}
