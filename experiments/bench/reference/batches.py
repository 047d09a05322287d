"""Rules that decide for many pulls at once, in plain NumPy: a batch is allotted without a look at its rewards.

An allotment is a function (t, N, m, n) -> the arms of the next n pulls, at the counts N and means m of all t pulls.
"""

import numpy as np


def by_shares(shares_of):
    """Allots without coins: arms are owed their shares of a pull, `shares_of(t, N, m)`, and the most owed is pulled."""
    owed = {}

    def allot(t, N, m, n):
        shares, arms = dict(sorted(shares_of(t, N, m).items())), []
        for _ in range(n):
            for a, share in shares.items():
                owed[a] = owed.get(a, 0.0) + share
            arms.append(max(shares, key=lambda a: owed[a]))
            owed[arms[-1]] -= 1
        return arms

    return allot


def by_pull(rule):
    """Allots by a rule (t, N, m, coin) -> arm, with t and N as they will be."""

    def allot(t, N, m, n):
        N, arms = N.copy(), []
        for i in range(n):
            arms.append(int(rule(t + i, N, m, None)))
            N[arms[-1]] += 1
        return arms

    return allot


def run(tape, test, allot, *, every: int, batches: int):
    """Runs every arm once, then batches until the test (t, N, m) -> stop, answer; returns the batches, stop, answer."""
    K = len(tape)
    made, N = [list(range(K))], np.ones(K, int)
    while True:
        m = np.array([tape[a][: N[a]].mean() for a in range(K)])
        stop, answer = test(int(N.sum()), N, m)
        if stop or len(made) == batches:
            return made, stop, answer
        made.append(allot(int(N.sum()), N, m, every))
        N = N + np.bincount(made[-1], minlength=K)
