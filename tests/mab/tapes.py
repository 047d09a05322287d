"""Pulls, and the laws of rewards that the transcriptions use."""

import numpy as np

from experiments.bench.reference.mab import Law
from jaxbandits.mab import Pull

NORMAL, ONES = Law("gaussian", 0.8), Law("bernoulli", 0.5)


def pull(arms, times=None):
    arms = np.asarray(arms, np.int32)
    return Pull(arms, np.ones_like(arms) if times is None else np.asarray(times, np.int32))
