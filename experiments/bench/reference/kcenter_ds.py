"""Dimension sampling, transcribed line by line into plain Python: one query at a time, every maximum searched anew.

Query number q of a run draws dimension tape[q]; a run counts m queries for an exact read.
"""

from functools import cache
from math import inf, log, log1p, sqrt
from typing import NamedTuple

import numpy as np


class Run(NamedTuple):
    queried: list[tuple[int, int, int]]  # node, slot, queries
    centers: list[int]
    counts: np.ndarray  # (n, k-1)
    queries: list[int]  # queries per stage
    tied: bool  # True if two equal distances ended the run


# Intervals


def lil(e, t, delta, radius_scale=0.1):
    a = sqrt(radius_scale * log1p((1 + log(t)) / delta) / t)
    return e - a, e + a


def lemma1(e, t, delta):
    a = sqrt(2 * 2 * log(125 * log(1.12 * t) / delta) / t)
    return e - a, e + a


def kl_bounds(e, t, delta, alpha=1.1, k1=None):
    k1 = 1.01 * (1 + 1 / (alpha - 1)) if k1 is None else k1
    c = (log(k1) + alpha * log(t) - log(delta)) / t
    return bisect(e, c, 0.0), bisect(e, c, 1.0)


def divergence(p, q):
    return sum(a * (log(a) - log(b)) if a > 0 else 0.0 for a, b in ((p, q), (1 - p, 1 - q)))


def bisect(p, c, far):
    """Returns the q between p and `far` at which the relative entropy is c."""
    near = p
    while True:
        q = (near + far) / 2
        if q in (near, far):
            return q
        if divergence(p, q) <= c:
            near = q
        else:
            far = q


# The algorithms


def lowest(lower, **_):
    return min(lower, key=lambda i: (lower[i], i))


def sample(
    points,
    k,
    tape,
    *,
    interval,
    first_center=0,
    pick=lowest,
    cap=None,
    scale="mean",
    levels=1,
    ties="none",
    coin=None,
    redraw=False,
    max_steps=10**6,
):
    """Runs DS-UCB with `pick=lowest`, otherwise DS-TS: pick(lower, step, successes, counts, open) -> slot or None."""
    points = np.asarray(points, float)
    n, m = points.shape
    cap = m if cap is None else cap
    interval = cache(interval)
    t, s = np.zeros((n, k - 1), int), np.zeros((n, k - 1), int)
    total = np.zeros((n, k - 1))
    exact: dict[tuple[int, int], int] = {}  # arms that were read -> stage of the read
    centers, queried, queries, step = [first_center], [], [], 0

    def bounds(v, i):
        if t[v, i] == 0:
            return 0.0, inf
        if (v, i) in exact:
            d = np.square(points[v] - points[centers[i]]).sum() / m / levels**2
            return (sqrt(d),) * 2 if scale == "root" else (d,) * 2
        e = total[v, i] / t[v, i] / levels**2
        return interval(sqrt(e) if scale == "root" else e, int(t[v, i]))

    def draw(v, i):
        q = sum(cost for _, _, cost in queried)
        reward = (points[v, tape[q]] - points[centers[i], tape[q]]) ** 2
        t[v, i] += 1
        total[v, i] += reward
        if coin is not None:
            s[v, i] += coin(step) < reward / levels**2
        queried.append((v, i, 1))

    while len(centers) < k:
        p, start = len(centers), len(queried)
        for v in range(n):  # line 6 of the paper's algorithms
            if v not in centers:
                draw(v, p - 1)
            step += 1  # a center also takes a round
        while True:
            candidates = [v for v in range(n) if v not in centers]
            lower = {v: {i: bounds(v, i)[0] for i in range(p)} for v in candidates}
            L = {v: min(lower[v].values()) for v in candidates}
            U = {v: min(bounds(v, i)[1] for i in range(p)) for v in candidates}
            by_upper = sorted(candidates, key=lambda v: (-U[v], v))
            # (8) as printed: any node whose lower bound exceeds all other upper bounds.
            winners = [v for v in candidates if all(L[v] > U[w] for w in candidates if w != v)]
            known = {v: (v, lowest(lower[v])) in exact for v in candidates}
            v = by_upper[0]
            if winners:
                center = winners[0]
                break
            if known[v]:
                step += 1  # the round in which the leader is passed over
                if known[by_upper[1]]:
                    if ties == "lowest":
                        center = v
                        break
                    queries.append(sum(cost for _, _, cost in queried[start:]))
                    return Run(queried, centers, t, queries, True)
                v = by_upper[1]
            removed = [i for i in range(p) if (v, i) in exact and (not redraw or exact[v, i] == p)]
            i = pick(lower[v], step=step, successes=s[v], counts=t[v], open=[i for i in range(p) if i not in removed])
            if i is not None and (v, i) not in exact:
                if t[v, i] < cap:
                    draw(v, i)
                else:
                    queried.append((v, i, m))
                    exact[v, i] = p
                    t[v, i] += 1
            step += 1
            if step > max_steps:
                raise RuntimeError("no end")
        centers.append(center)
        queries.append(sum(cost for _, _, cost in queried[start:]))
    return Run(queried, centers, t, queries, False)


def random_sampling(points, k, tape, arms, *, interval, levels=1, first_center=0):
    """Runs uniform sampling of (node, slot) from `arms(step, centers)`, with the stop test after each draw."""
    points = np.asarray(points, float)
    n, m = points.shape
    t, total, exact = np.zeros((n, k - 1), int), np.zeros((n, k - 1)), set()
    centers, cost, queries = [first_center], 0, []

    def bounds(v, i):
        if (v, i) in exact:
            return (np.square(points[v] - points[centers[i]]).sum() / m / levels**2,) * 2
        return interval(total[v, i] / t[v, i] / levels**2, int(t[v, i]))

    def draw(v, i):
        nonlocal cost
        if (v, i) in exact:
            return
        if t[v, i] == m:
            exact.add((v, i))
            cost += m
        else:
            total[v, i] += (points[v, tape[cost]] - points[centers[i], tape[cost]]) ** 2
            cost += 1
        t[v, i] += 1

    step = 0
    while len(centers) < k:
        p, before = len(centers), cost
        candidates = [v for v in range(n) if v not in centers]
        for v in range(n):
            if v not in centers:
                draw(v, p - 1)
            step += 1
        while True:
            L = {v: min(bounds(v, i)[0] for i in range(p)) for v in candidates}
            U = {v: min(bounds(v, i)[1] for i in range(p)) for v in candidates}
            winners = [v for v in candidates if all(L[v] > U[w] for w in candidates if w != v)]
            if winners:
                break
            draw(*arms(step, centers))
            step += 1
        centers.append(winners[0])
        queries.append(cost - before)
    return Run([], centers, t, queries, False)
