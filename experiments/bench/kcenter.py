"""Greedy k-center on crops of photographs (m = 12288, k = 10): queries a second, and what a round costs as n grows.

Dimension sampling of images in memory, in leaps of 16 (DS-TS: one by one); noisy sampling of their distances with
noise scale 0.1; delta = 0.1. DS-UCB: whole runs, half of whose queries, where n is small, are reads of whole arms (m
queries each), so "one by one" counts the others. The other rules are cut after a number of rounds. The naive greedy
reads all distances it needs.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.bench.case import Case
from experiments.report import STYLES, Report, number
from experiments.settings import Settings
from jaxbandits import kcenter
from jaxbandits.base import Algorithm, Environment
from jaxbandits.engine.shards import local_mesh
from jaxbandits.engine.sizing import side_by_side

K = 10
LEVELS = 255
LEAP, THOMPSON_LEAP = 16, 1  # DS-TS takes posterior draws for every sample that a round may use
DELTA = 0.1
NOISE_SCALE = 0.1
SIZES = (100, 1000, 10_000)
SMALL = (15, 50)  # nodes, for NS-TandS, whose rounds cost O(n k^2)
SMALL_K = 5
CUT = 2**11  # rounds of a run that is cut
HEAD = (
    "rule",
    "n",
    "lanes",
    "queries/s",
    "one by one/s",
    "rounds/s",
    "us a round",
    "x NumPy",
    "kB a lane",
    "compile s",
)


class Subject(NamedTuple):
    """What is measured."""

    rule: str
    n: int
    build: Callable[[Any, jax.Array], tuple[Algorithm, Environment]]
    loop: Callable[[], float]  # queries a second of the plain loop
    rounds: int  # of a run, at most
    lanes: int  # of a batch


def run(options: Settings) -> Report:
    sizes = SIZES[:2] if options.quick else SIZES
    points = kcenter.image_crops(max(sizes), 7, augment=True)
    sums = kcenter.pairwise_sums(points)
    rows, parts = [], []
    for subject in subjects(points, sums, sizes):
        lanes = options.lanes or subject.lanes
        results = jaxbandits.sweep(
            subject.build,
            seeds=side_by_side(local_mesh()) * lanes,
            key=jax.random.key(0),
            max_rounds=subject.rounds,
            lanes=lanes,
            metrics=partial(read_arms, m=points.shape[1]),
            progress=False,
        )
        stats, loop = results.stats, subject.loop()
        single = stats.pulls - points.shape[1] * int(results.columns["reads"].sum())
        measured = {
            "rule": subject.rule,
            "n": subject.n,
            "queries_per_second": stats.pulls / stats.seconds,
            "singles_per_second": single / stats.seconds,
            "round_microseconds": 1e6 * stats.seconds / stats.rounds,
            "loop": loop,
            "lane_bytes": stats.bytes / (stats.batches * stats.lanes),
        }
        parts.append(measured | stats._asdict())
        print(subject.rule, subject.n, f"{measured['queries_per_second']:.2e} queries/s", file=sys.stderr)
        rows.append(
            (
                subject.rule,
                number(subject.n),
                str(lanes),
                f"{measured['queries_per_second']:.2e}",
                f"{measured['singles_per_second']:.2e}",
                f"{stats.rounds / stats.seconds:.2e}",
                f"{measured['round_microseconds']:.2f}",
                number(round(measured["singles_per_second"] / loop)),
                f"{measured['lane_bytes'] / 1e3:.0f}",
                f"{stats.compile_seconds:.1f}",
            )
        )
    naive = {n: naive_seconds(points[:n]) for n in sizes}
    return Report(
        "Greedy k-center: speed of the whole engine",
        lines=[],
        claims=[],
        columns={name: np.array([part[name] for part in parts]) for name in parts[0]},
        draw=partial(draw, parts=parts),
        notes=[
            "us a round: wall time of all batches over the rounds of all lanes.",
            "Plain NumPy loop, one core, queries a second: "
            + "; ".join(f"{part['rule']}, n = {number(part['n'])}: {number(round(part['loop']))}" for part in parts),
            "Naive greedy, all distances that it needs: "
            + "; ".join(
                f"n = {number(n)}: {seconds:.2g} s for {kcenter.naive_queries(n, points.shape[1], K)[1]:.2e} queries"
                for n, seconds in naive.items()
            ),
        ],
        grid=(HEAD, rows),
    )


def cases() -> list[Case]:
    """100 crops of photographs; NS-TandS on 15 of them."""
    points = kcenter.image_crops(100, 7, augment=True)
    chosen = [s for s in subjects(points, kcenter.pairwise_sums(points), (100,)) if s.n in (100, SMALL[0])]
    return [Case("kcenter", s.rule, f"crops, n = {s.n}", s.build, s.loop, s.rounds, s.lanes) for s in chosen]


def subjects(points: np.ndarray, sums: np.ndarray, sizes: tuple[int, ...]) -> list[Subject]:
    shared, table = jnp.asarray(points), jnp.asarray(sums)
    distances = jnp.asarray(kcenter.normalised_distances(sums[:1000, :1000], m=points.shape[1], levels=LEVELS))
    m = points.shape[1]
    found = []
    for n in sizes:
        nodes = jnp.arange(n, dtype=jnp.int32)

        def sampled(
            task: None,
            key: jax.Array,
            *,
            rule: Callable[..., Algorithm],
            leap: int,
            n: int = n,
            nodes: jax.Array = nodes,
        ) -> tuple[Algorithm, Environment]:
            instance = kcenter.DimensionInstance(kcenter.Dimensions(n, m, K, LEVELS), shared, table, nodes)
            return rule(instance.problem, delta=DELTA, leap=leap), kcenter.environment(instance, leap=leap)

        lanes = 64 if n <= 1000 else 8
        loop = partial(plain_sampling, points[:n])
        plain, thompson = (
            partial(sampled, rule=rule, leap=leap)
            for rule, leap in ((kcenter.ds_ucb, LEAP), (kcenter.ds_ts, THOMPSON_LEAP))
        )
        found.append(Subject("DS-UCB", n, plain, loop, 2**30, lanes))
        found.append(Subject("DS-TS", n, thompson, loop, CUT, lanes))
    for n in sizes[:2]:

        def noisy(task: None, key: jax.Array, n: int = n) -> tuple[Algorithm, Environment]:
            instance = kcenter.distance_instance(distances[:n, :n], k=K, noise_scale=NOISE_SCALE)
            algorithm = kcenter.ns_ts(instance.problem, delta=DELTA, noise_scale=NOISE_SCALE)
            return algorithm, kcenter.environment(instance)

        loop = partial(plain_noisy, np.asarray(distances[:n, :n]))
        found.append(Subject("NS-TS", n, noisy, loop, 8 * CUT, 64))
    for n in SMALL:
        for tracking in ("difference", "ratio"):

            def tracked(task: None, key: jax.Array, n: int = n, tracking: Any = tracking):
                instance = kcenter.distance_instance(distances[:n, :n], k=SMALL_K, noise_scale=NOISE_SCALE)
                algorithm = kcenter.ns_tands(instance.problem, delta=DELTA, noise_scale=NOISE_SCALE, tracking=tracking)
                return algorithm, kcenter.environment(instance, action=kcenter.Pull)

            loop = partial(plain_tracking, np.asarray(distances[:n, :n]), tracking)
            found.append(Subject(f"NS-TandS, {tracking}", n, tracked, loop, CUT, 64))
    return found


def read_arms(task: None, outcome: jaxbandits.Outcome, *, m: int) -> dict[str, jax.Array]:
    """How many arms were read as a whole; the rules for noisy distances read none."""
    counts = getattr(outcome.state, "counts", None)
    return {"reads": jnp.zeros((), int) if counts is None else jnp.sum(counts > m)}


def draw(figure: Any, *, parts: list[dict[str, Any]]) -> None:
    figure.set_size_inches(8.5, 4)
    left, right = figure.subplots(1, 2)
    rules = list(dict.fromkeys(part["rule"] for part in parts))
    for style, rule in zip(STYLES, rules, strict=True):
        chosen = [part for part in parts if part["rule"] == rule]
        n = [part["n"] for part in chosen]
        left.plot(n, [part["singles_per_second"] for part in chosen], label=rule, mfc="w", **style)
        left.plot(n, [part["loop"] for part in chosen], color=style["color"], lw=1, ls=style["linestyle"])
        right.plot(n, [part["round_microseconds"] for part in chosen], mfc="w", **style)
    left.set(xscale="log", yscale="log", xlabel="nodes", ylabel="queries a second (thin: NumPy loop)")
    right.set(xscale="log", yscale="log", xlabel="nodes", ylabel="microseconds a round")
    figure.legend(loc="outside lower center", ncols=3, fontsize=9)


# Plain loops with running sums, one query at a time; they go on in the first stage for a second.


def plain_sampling(points: np.ndarray, seconds: float = 1.0) -> float:
    """DS-UCB and, but for a posterior draw, DS-TS."""
    rng, n, m = np.random.default_rng(0), *points.shape
    share, C = 0.1 / n, 0.1
    t, total = np.ones(n), (points[:, 0].astype(float) - points[0, 0]) ** 2 / LEVELS**2
    upper = np.full(n, np.inf)
    upper[0] = -np.inf
    queries, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        for _ in range(100):
            v, j = int(np.argmax(upper)), int(rng.integers(m))
            total[v] += (float(points[v, j]) - float(points[0, j])) ** 2 / LEVELS**2
            t[v] += 1
            upper[v] = total[v] / t[v] + np.sqrt(C * np.log1p((1 + np.log(t[v])) / share) / t[v])
            others = np.partition(upper, -2)[-2]
            lower = 2 * total[v] / t[v] - upper[v]
            queries += 1
            if lower > others:
                t[v] = 1  # so that the loop goes on
    return queries / (time.perf_counter() - started)


def plain_noisy(distances: np.ndarray, seconds: float = 1.0) -> float:
    """NS-TS."""
    rng, n = np.random.default_rng(0), len(distances)
    t, total = np.ones(n), distances[:, 0] + 0.1 * rng.normal(size=n)
    total[0] = -np.inf
    queries, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        for _ in range(50):
            mean = total / t
            width = NOISE_SCALE * np.sqrt(2 * (np.log(11.11) + 1.1 * np.log(t) + np.log(n**2 / 0.1)) / t)
            first = int(np.argmax(mean))
            upper = mean + width
            upper[first] = -np.inf
            for v in (first, int(np.argmax(upper))):
                total[v] += distances[v, 0] + 0.1 * rng.normal()
                t[v] += 1
                queries += 1
    return queries / (time.perf_counter() - started)


def plain_tracking(distances: np.ndarray, tracking: str, seconds: float = 1.0) -> float:
    """NS-TandS in its first stage, with a mirror ascent of 1000 steps every 100 queries."""
    rng, n = np.random.default_rng(0), len(distances)
    t, total = np.ones(n), distances[:, 0] + 0.1 * rng.normal(size=n)
    omega = np.full(n, 1 / n)
    queries, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        mean = total / t
        mean[0] = -np.inf
        h = int(np.argmax(mean))
        if queries % 100 == 0:
            omega = plain_weights(mean, h)
        with np.errstate(invalid="ignore"):
            z = (mean[h] - mean) ** 2 / (2 * NOISE_SCALE**2) * t[h] * t / (t[h] + t)
        np.min(np.delete(z, [0, h]))
        v = int(np.argmax(omega / t if tracking == "ratio" else omega - t / t.sum()))
        total[v] += distances[v, 0] + 0.1 * rng.normal()
        t[v] += 1
        queries += 1
    return queries / (time.perf_counter() - started)


def plain_weights(mean: np.ndarray, h: int, steps: int = 1000) -> np.ndarray:
    n = len(mean)
    weight, total = np.full(n, 1 / n), np.zeros(n)
    weight[0] = 0
    for step in range(steps):
        with np.errstate(invalid="ignore", divide="ignore"):
            z = (mean[h] - mean) ** 2 * weight[h] * weight / (weight[h] + weight)
        z[[0, h]] = np.inf
        i = int(np.argmin(z))
        g = (weight[[i, h]] / (weight[h] + weight[i])) ** 2
        weight[[h, i]] *= np.exp(0.5 * np.sqrt(2 * np.log(n) / (step + 1)) * g / g.max())
        weight /= weight.sum()
        total += weight * (step >= steps // 2)
    return total / total.sum()


def naive_seconds(points: np.ndarray) -> float:
    """Time of the exact solution."""
    started = time.perf_counter()
    kcenter.naive_greedy(points, k=K, levels=LEVELS)
    return time.perf_counter() - started
