"""Greedy k-center from noisy distances, transcribed from the paper into plain Python, one query at a time.

A reward is reward(v, s, q): node v against center s, after q queries.
"""

import functools
from collections.abc import Callable
from itertools import pairwise
from math import exp, fsum, inf, log, sqrt

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import zeta

Reward = Callable[[int, int, int], float]
Interval = Callable[[float, int], tuple[float, float]]  # (mean, t) -> lower, upper


class Run:
    """All samples of a run, and the centers so far."""

    def __init__(self, reward: Reward, n: int, first_center: int):
        self.reward, self.n = reward, n
        self.samples = [[[]] for _ in range(n)]
        self.centers = [first_center]
        self.log, self.boundaries = [], [0]

    def query(self, v: int, i: int) -> None:
        self.samples[v][i].append(self.reward(v, self.centers[i], len(self.log)))
        self.log.append((v, i))

    def candidates(self) -> list[int]:
        return [v for v in range(self.n) if v not in self.centers]

    def t(self, v: int, i: int) -> int:
        return len(self.samples[v][i])

    def mean(self, v: int, i: int) -> float:
        return fsum(self.samples[v][i]) / self.t(v, i)

    def nearest(self, v: int) -> float:
        return min(self.mean(v, i) for i in range(len(self.centers)) if self.t(v, i))

    def found(self, v: int) -> None:
        self.boundaries.append(len(self.log))
        self.centers.append(v)
        for row in self.samples:
            row.append([])

    def queries(self) -> list[int]:
        return [b - a for a, b in pairwise(self.boundaries)]


# Intervals (14)


def half_log(t: int, *, n: int, delta: float, alpha: float = 1.1, k1: float = 11.11) -> float:
    return log(k1 * t**alpha * n**2 / delta) / t


def gaussian(variance: float, **settings) -> Interval:
    def interval(mean: float, t: int) -> tuple[float, float]:
        half = sqrt(2 * variance * half_log(t, **settings))
        return mean - half, mean + half

    return interval


def bernoulli(**settings) -> Interval:
    @functools.cache
    def interval(mean: float, t: int) -> tuple[float, float]:
        c = half_log(t, **settings)

        def excess(q: float) -> float:
            return kl(mean, q) - c

        lower = exp(-c) if mean == 1 else brentq(excess, 1e-300, mean, xtol=1e-15) if mean > 0 else 0.0
        upper = 1 - exp(-c) if mean == 0 else brentq(excess, mean, 1 - 1e-16, xtol=1e-15) if mean < 1 else 1.0
        return lower, upper

    return interval


def kl(p: float, q: float) -> float:
    return (p * log(p / q) if p > 0 else 0.0) + ((1 - p) * log((1 - p) / (1 - q)) if p < 1 else 0.0)


# NS-TS and random sampling


class Bounds:
    """Intervals of all arms, optionally tightened by the triangle inequality."""

    def __init__(self, run: Run, interval: Interval, triangle: str | None):
        self.run, self.interval, self.triangle = run, interval, triangle
        self.between = {}  # (slot, slot) -> bounds of the distance of two centers, in the metric

    def upper(self, v: int, i: int) -> float:
        return self.interval(self.run.mean(v, i), self.run.t(v, i))[1] if self.run.t(v, i) else inf

    def plain_lower(self, v: int, i: int) -> float:
        return self.interval(self.run.mean(v, i), self.run.t(v, i))[0] if self.run.t(v, i) else 0.0

    def metric(self, value: float) -> float:
        return sqrt(max(value, 0)) if self.triangle == "squared" else value

    def lower(self, v: int, i: int) -> float:
        if self.triangle is None:
            return self.plain_lower(v, i)
        slots = range(len(self.run.centers))
        r = max(
            self.metric(self.plain_lower(v, i)),
            max(self.metric(self.plain_lower(v, j)) - self.between[j, i][1] for j in slots),
            max(self.between[j, i][0] - self.metric(self.upper(v, j)) for j in slots),
        )
        if r <= self.metric(self.plain_lower(v, i)):
            return self.plain_lower(v, i)
        return r**2 if self.triangle == "squared" else r

    def node_upper(self, v: int) -> float:
        return min(self.upper(v, i) for i in range(len(self.run.centers)))

    def node_lower(self, v: int) -> float:
        return min(self.lower(v, i) for i in range(len(self.run.centers)))

    def close_centers(self) -> None:
        """Updates the bounds between the centers at the start of a stage."""
        if self.triangle is None:
            return
        p = len(self.run.centers) - 1
        self.between[p, p] = (0.0, 0.0)
        for i in range(p):
            v = self.run.centers[p]
            bounds = self.metric(self.plain_lower(v, i)), self.metric(self.upper(v, i))
            self.between[p, i] = self.between[i, p] = bounds
        slots = range(p + 1)
        for via in slots:
            for a in slots:
                for b in slots:
                    low, high = self.between[a, b]
                    self.between[a, b] = low, min(high, self.between[a, via][1] + self.between[via, b][1])
        closed = dict(self.between)
        for a in slots:
            for b in slots:
                low = max(closed[a, via][0] - closed[via, b][1] for via in slots)
                low = max(low, max(closed[b, via][0] - closed[via, a][1] for via in slots))
                self.between[a, b] = max(closed[a, b][0], low), closed[a, b][1]

    def hopeless(self, v: int) -> bool:
        """True if the newest center cannot be the nearest to v."""
        p = len(self.run.centers) - 1
        if self.triangle is None or p == 0:
            return False
        nearest = min(self.metric(self.upper(v, j)) for j in range(p))
        return max(self.between[j, p][0] - self.metric(self.upper(v, j)) for j in range(p)) > nearest

    def winner(self) -> int | None:
        """Returns the winner of the stop test (8), or None."""
        nodes = self.run.candidates()
        v = max(nodes, key=lambda v: (self.node_upper(v), -v))
        others = max((self.node_upper(u) for u in nodes if u != v), default=-inf)
        return v if self.node_lower(v) > others else None


def ns_ts(
    reward: Reward,
    interval: Interval,
    *,
    n: int,
    k: int,
    first_center: int = 0,
    pair: bool = True,
    triangle: str | None = None,
    sample: Callable[[int, int, int, list[tuple[int, float]]], list[float] | None] = lambda *_: None,
    max_queries: int = 10**6,
) -> Run:
    """Runs Algorithm 3. `sample(q, half, v, [(t, sum)])` returns Theta of all slots.

    If it returns None, the lower bounds take the place of Theta.
    """
    run = Run(reward, n, first_center)
    bounds = Bounds(run, interval, triangle)
    while len(run.centers) < k:
        bounds.close_centers()
        for v in run.candidates():
            if not bounds.hopeless(v):
                run.query(v, len(run.centers) - 1)
        while (center := bounds.winner()) is None:
            if len(run.log) >= max_queries:
                return run
            nodes = run.candidates()
            v1 = max(nodes, key=lambda v: ((run.nearest if pair else bounds.node_upper)(v), -v))
            v2 = max((v for v in nodes if v != v1), key=lambda v: (bounds.node_upper(v), -v))
            before = len(run.log)
            for half, v in enumerate((v1, v2) if pair else (v1,)):
                slots = range(len(run.centers))
                theta = sample(before, half, v, [(run.t(v, i), fsum(run.samples[v][i])) for i in slots])
                values = [bounds.lower(v, i) for i in slots] if theta is None else theta
                run.query(v, int(np.argmin(values)))
        run.found(center)
    return run


def ns_random(
    reward: Reward,
    interval: Interval,
    draw: Callable[[int, list[int], int], tuple[int, int]],
    *,
    n: int,
    k: int,
    first_center: int = 0,
) -> Run:
    """Runs uniform queries; `draw(q, candidates, centers)` returns the arm of query q."""
    run = Run(reward, n, first_center)
    bounds = Bounds(run, interval, None)
    while len(run.centers) < k:
        for v in run.candidates():
            run.query(v, len(run.centers) - 1)
        while (center := bounds.winner()) is None:
            run.query(*draw(len(run.log), run.candidates(), len(run.centers)))
        run.found(center)
    return run


# NS-TandS


def z_gaussian(mean_h: float, a: int, mean_v: float, b: int, *, variance: float) -> float:
    rho = (a * mean_h + b * mean_v) / (a + b)
    z = (a * (mean_h - rho) ** 2 + b * (mean_v - rho) ** 2) / (2 * variance)
    return z if mean_h >= mean_v else -z


def z_bernoulli(mean_h: float, a: int, mean_v: float, b: int) -> float:
    rho = (a * mean_h + b * mean_v) / (a + b)
    z = a * kl(mean_h, rho) + b * kl(mean_v, rho) if mean_h != mean_v else 0.0
    return z if mean_h >= mean_v else -z


def mixture_constant(y: float) -> float:
    """Computes G(y) of the proved exploration rate by direct minimisation."""

    def value(lam: float) -> float:
        g = 2 * lam - 2 * lam * log(4 * lam) + log(zeta(2 * lam)) - log(1 - lam) / 2
        return (g + y) / lam

    return minimize_scalar(value, bounds=(0.5 + 1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-12}).fun


def ns_tands(
    reward: Reward,
    z: Callable[[float, int, float, int], float],
    rate: Callable[[int, int, int, int], float],  # (queries, centers, a, b)
    weights: Callable[[np.ndarray, list[int]], np.ndarray],  # (means (n, p), candidates) -> omega (n, p)
    *,
    n: int,
    k: int,
    first_center: int = 0,
    tracking: str = "difference",
    reset: str = "stage",
    forced_offset: float = 1.0,
    every: int = 100,
    max_queries: int = 10**6,
) -> Run:
    """Runs Algorithm 4."""
    run = Run(reward, n, first_center)
    while len(run.centers) < k:
        p, nodes, solved_at, omega = len(run.centers), run.candidates(), None, None
        base = {(v, i): run.t(v, i) if reset == "stage" else 0 for v in nodes for i in range(p)}
        start = len(run.log) if reset == "stage" else 0
        for v in nodes:
            run.query(v, p - 1)
        while True:
            h = max(nodes, key=lambda v: (run.nearest(v), -v))
            margins = [
                max(
                    min(
                        z(run.mean(h, j), run.t(h, j), run.mean(v, i), run.t(v, i))
                        - rate(len(run.log), p, run.t(h, j), run.t(v, i))
                        for j in range(p)
                    )
                    for i in range(p)
                )
                for v in nodes
                if v != h
            ]
            if min(margins, default=inf) > 0:
                break
            if len(run.log) >= max_queries:
                return run
            T = len(run.log) - start
            tracked = {(v, i): run.t(v, i) - base[v, i] for v in nodes for i in range(p)}
            arm = min(tracked, key=lambda arm: (tracked[arm], arm))
            if tracked[arm] >= sqrt(T) - forced_offset * n * k / 2:
                if solved_at is None or len(run.log) - solved_at >= every:
                    means = np.array([[run.mean(v, i) if v in nodes else 0.0 for i in range(p)] for v in range(n)])
                    omega, solved_at = weights(means, nodes), len(run.log)

                def due(arm, T=T, tracked=tracked, omega=omega):
                    if tracking == "ratio":
                        return omega[arm] / (tracked[arm] + 1e-9)
                    return omega[arm] - tracked[arm] / T

                arm = max(tracked, key=lambda arm: (due(arm), -arm[0], -arm[1]))
            run.query(*arm)
        run.found(h)
    return run


def batch_of(omega: np.ndarray, tracked: np.ndarray, T: int, batch: int, level: float) -> np.ndarray:
    """Splits `batch` queries between arms: arms below the level first, then in proportion to the deficits."""
    given = np.zeros(len(omega), int)
    for a in sorted(range(len(omega)), key=lambda a: (tracked[a], a)):
        while tracked[a] + given[a] < level and given.sum() < batch:
            given[a] += 1
    remaining = batch - given.sum()
    if remaining == 0:
        return given
    deficit = np.maximum((T + batch) * omega - tracked - given, 0)
    share = remaining * deficit / deficit.sum()
    fraction = share - np.floor(share)
    given = given + np.floor(share).astype(int)
    for a in sorted(range(len(omega)), key=lambda a: (-fraction[a], a))[: batch - given.sum()]:
        given[a] += 1
    return given
