"""BPE from lists of observations. Every posterior is solved anew."""

import math
from typing import NamedTuple

import numpy as np

from experiments.bench.reference.kernel_ucb import exact


class Query(NamedTuple):
    """One query, and the active candidates and the answer after it."""

    action: int
    active: list
    answer: int


def bpe(gram, rewards, *, beta, noise_variance, keep_data=False):
    """Returns a list of `Query`; `rewards` is (T, M)."""
    horizon, size = rewards.shape
    active, answer, data, queries = list(range(size)), 0, [], []
    length = 1
    while len(queries) < horizon:
        length = math.ceil(math.sqrt(horizon * length))
        if not keep_data:
            data = []
        for _ in range(min(length, horizon - len(queries))):
            variance = exact(gram, noise_variance, data)[1]
            a = max(active, key=lambda x: (variance[x], -x))
            data.append((a, rewards[len(queries), a]))
            queries.append(Query(a, active, answer))
        mean, variance, _ = exact(gram, noise_variance, data)
        sd = beta * np.sqrt(np.maximum(variance, 0))
        bar = max(mean[x] - sd[x] for x in active)
        answer = max(active, key=lambda x: (mean[x], -x))
        active = [x for x in active if mean[x] + sd[x] >= bar]
        queries[-1] = queries[-1]._replace(active=active, answer=answer)
    return queries
