"""Rules of mab for arms of unknown variance, against NumPy."""

import functools

import jax.numpy as jnp
from transcriptions.laid import Laid, replayed
from transcriptions.mab import coins, written

from experiments.bench.reference import variances as reference
from jaxbandits import mab
from jaxbandits.numerics import thresholds

DELTA, ROUNDS = 0.05, 300
MEANS, SD = (0.5, 0.25, 0.4, -0.1), (1.0, 0.5, 1.5, 0.7)


@functools.cache
def tape():
    return reference.rewards(MEANS, SD, ROUNDS)


def rewarded(rule, cost, factory, *, start, level=None, threshold=None, limit=None, **settings):
    numbers = iter(coins()[start * len(MEANS) :])
    course = reference.run(
        tape(),
        rule,
        cost=cost,
        start=start,
        delta=DELTA,
        rounds=ROUNDS,
        coins=numbers,
        level=level,
        threshold=limit,
    )

    def build():
        problem = mab.Gaussian(len(MEANS), None, jnp.float64, cost)
        return factory(problem, delta=DELTA, threshold=threshold, start=start, **settings)

    theirs = written(course, tape(), 1, in_turn=False)
    return Laid(theirs, replayed(build, theirs))


def eb_tci(cost, **settings):
    return rewarded(reference.eb_tci(cost), cost, mab.eb_tci, **settings)


def above(cost):
    question = mab.Above(0.2)
    return rewarded(reference.above(cost, 0.2), cost, mab.eb_tc, start=2, level=0.2, question=question)


def with_student():
    """Holds the pairs against the threshold of their own pulls."""
    limit = functools.partial(reference.student, delta=DELTA / 3, cost="adaptive")
    return eb_tci("adaptive", start=10, threshold=thresholds.student(arms=4), limit=limit)


CASES = {
    "eb_tci, adaptive": functools.partial(eb_tci, "adaptive", start=3),
    "eb_tci, plug-in": functools.partial(eb_tci, "plug-in", start=2),
    "eb_tci, student": with_student,
    "above, adaptive": functools.partial(above, "adaptive"),
}
