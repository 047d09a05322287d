"""Top-k identification on the crowdsourced quizzes of Table 2: runs and pulls a second, with both samplers of sums.

One design of twice as many random super-arms as workers, delta = 0.05, epsilon = 0.5, sigma = 10. A run takes 10^7 to
10^9 pulls and some tens of tests of its rule; the plain NumPy loop makes one pull and one test at a time, so its runs
a second are its pulls a second over the mean pulls of a run.
"""

import math
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

import jaxbandits
from experiments.bench.case import Case
from experiments.report import STYLES, Report, number
from experiments.settings import Settings
from jaxbandits import fullbandit
from jaxbandits.base import Algorithm, Environment

COMMON = {"delta": 0.05, "epsilon": 0.5}
PACED = COMMON | {"pace": fullbandit.Pace(design_matrix="limit")}
RULES = {
    "SAQM": (partial(fullbandit.saqm, **PACED), 4000),
    "ICB, ellipsoid": (partial(fullbandit.icb, radius="ellipsoid", **PACED), 4000),
    "spectral": (partial(fullbandit.spectral, **PACED), 4000),
    "SA-FOA, eps/2": (partial(fullbandit.sa_foa, design_matrix="limit", **COMMON), 64),
}
QUIZZES = ("it", "science")
HEAD = (
    "quiz",
    "rule",
    "sampler",
    "runs",
    "runs/s",
    "pulls/s",
    "tests a run",
    "x NumPy",
    "occupancy",
    "compile s",
    "MB",
)


def run(options: Settings) -> Report:
    rows, parts = [], []
    for quiz in QUIZZES:
        crowd = fullbandit.crowdsourcing(quiz)
        n = crowd.theta.size
        design = fullbandit.make_design(fullbandit.random_support(0, n, crowd.k, size=2 * n), crowd.k)
        for rule, (factory, runs) in RULES.items():
            plain = numpy_pulls_per_second(rule, design, crowd)
            for sampler in ("normal", "exact"):
                if rule.startswith("SA-FOA") and sampler == "exact":
                    continue  # its tests take the time, whatever the sampler
                seeds = options.seeds or max(
                    16, runs // (8 if sampler == "exact" else 1) // (10 if options.quick else 1)
                )

                def build(task: Any, key: jax.Array, factory=factory, sampler=sampler, crowd=crowd, design=design):
                    return factory(design), fullbandit.environment(crowd, design, noise="bernoulli", sampler=sampler)

                results = jaxbandits.sweep(
                    build,
                    seeds=seeds,
                    key=jax.random.key(0),
                    max_rounds=100_000,
                    lanes=options.lanes,
                    chunk=8,
                    progress=False,
                )
                stats = results.stats
                speed, mean = seeds / stats.seconds, float(results.columns["pulls"].mean())
                label = (quiz, rule, sampler, str(seeds))
                print(*label, f"{speed:.3g} runs/s", file=sys.stderr, sep=", ")
                rows.append(
                    (
                        *label,
                        f"{speed:.3g}",
                        f"{speed * mean:.2e}",
                        f"{results.columns['rounds'].mean():.0f}",
                        f"{speed * mean / plain:.1e}",
                        f"{stats.occupancy:.0%}",
                        f"{stats.compile_seconds:.1f}",
                        f"{stats.bytes / 1e6:.1f}",
                    )
                )
                parts.append(
                    {"quiz": quiz, "rule": rule, "sampler": sampler, "runs_per_second": speed, "numpy": plain / mean}
                    | stats._asdict()
                )

    def draw(figure: Any) -> None:
        for axes, quiz in zip(figure.subplots(1, 2, sharey=True), QUIZZES, strict=True):
            for style, sampler in enumerate(("normal", "exact")):
                chosen = [part for part in parts if (part["quiz"], part["sampler"]) == (quiz, sampler)]
                x = [list(RULES).index(part["rule"]) for part in chosen]
                axes.plot(x, [part["runs_per_second"] for part in chosen], label=sampler, mfc="w", **STYLES[style])
            loop = [part for part in parts if (part["quiz"], part["sampler"]) == (quiz, "normal")]
            axes.plot(range(len(loop)), [part["numpy"] for part in loop], "k_", ms=14, label="NumPy loop")
            axes.set(yscale="log", title=f"{quiz}: n = {fullbandit.crowdsourcing(quiz).theta.size}")
            axes.set_xticks(range(len(RULES)), [rule.replace(", ", ",\n") for rule in RULES], fontsize=8)
        figure.axes[0].set_ylabel("runs a second")
        figure.axes[0].legend()

    return Report(
        "Top-k identification: speed of whole runs at the settings of Table 2",
        lines=[],
        claims=[],
        columns={name: np.array([part[name] for part in parts]) for name in parts[0]},
        draw=draw,
        notes=[
            "NumPy loop, one core, pulls a second: "
            + "; ".join(
                f"{part['quiz']}, {part['rule']}: {number(round(part['numpy'] * part['pulls'] / part_runs(part)))}"
                for part in parts
                if part["sampler"] == "normal"
            )
        ],
        grid=(HEAD, rows),
    )


def cases() -> list[Case]:
    """Whole runs on the quiz "it", with the normal sampler."""
    crowd = fullbandit.crowdsourcing("it")
    n = crowd.theta.size
    design = fullbandit.make_design(fullbandit.random_support(0, n, crowd.k, size=2 * n), crowd.k)

    def case(rule: str, factory: Any) -> Case:
        def build(task: None, key: jax.Array) -> tuple[Algorithm, Environment]:
            return factory(design), fullbandit.environment(crowd, design, noise="bernoulli", sampler="normal")

        plain = partial(numpy_pulls_per_second, rule, design, crowd)
        lanes, runs = (8, 2) if rule.startswith("SA-FOA") else (64, 16)
        return Case("fullbandit", rule, f"it, n = {n}", build, plain, 100_000, lanes, runs, chunk=8)

    return [case(rule, factory) for rule, (factory, _) in RULES.items()]


def part_runs(part: dict[str, Any]) -> float:
    """Runs of a measurement."""
    return part["runs_per_second"] * part["seconds"]


def numpy_pulls_per_second(
    rule: str, design: fullbandit.Design, crowd: fullbandit.Instance, seconds: float = 1.0
) -> float:
    """Speed of the plain loop: a pull, the inverse, the estimate, and one test of the rule."""
    support, theta = np.asarray(design.support), np.asarray(crowd.theta)
    s, n = support.shape
    k, rng = crowd.k, np.random.default_rng(0)
    A, b = support.T @ support, support.T @ rng.binomial(1, 0.5, s).astype(float)
    test = PLAIN[rule]
    pulls, started = s, time.perf_counter()
    while time.perf_counter() - started < seconds:
        row = support[pulls % s]
        A += np.outer(row, row)
        b += rng.binomial(1, theta[row > 0]).sum() * row
        pulls += 1
        inverse = np.linalg.inv(A)
        radius = (
            2
            * math.sqrt(2)
            * 10.0
            * math.sqrt(math.log(6 / math.pi**2 / 0.05) + 2 * math.log(pulls) + math.log(math.comb(n, k)))
        )
        test(inverse, inverse @ b, radius, k, support)
    return (pulls - s) / (time.perf_counter() - started)


def plain_saqm(inverse: np.ndarray, theta: np.ndarray, radius: float, k: int, support: np.ndarray) -> bool:
    order = np.argsort(-theta, kind="stable")
    best, rival = chi(order[:k], len(theta)), plain_peel(inverse, k)
    width = math.sqrt(best @ inverse @ best) + math.sqrt(rival @ inverse @ rival) / 0.9
    return bool(theta[order[k - 1]] - theta[order[k]] + 0.5 >= radius * width)


def plain_icb(inverse: np.ndarray, theta: np.ndarray, radius: float, k: int, support: np.ndarray) -> bool:
    order, widths = np.argsort(-theta, kind="stable"), radius * np.sqrt(np.diag(inverse))
    inside = np.sort((theta - widths)[order[:k]])
    outside = -np.sort(-(theta + widths)[order[k:]])[:k]
    gains = outside - inside[: len(outside)]
    return bool(gains[0] + np.maximum(gains[1:], 0).sum() < 0.5)


def plain_spectral(inverse: np.ndarray, theta: np.ndarray, radius: float, k: int, support: np.ndarray) -> bool:
    centring = np.eye(len(theta)) - 1 / len(theta)
    largest = np.linalg.eigvalsh(centring @ inverse @ centring)[-1]
    ranked = -np.sort(-theta)
    swaps = min(k, len(theta) - k)
    loss = np.cumsum(ranked[:k][::-1][:swaps] - ranked[k : k + swaps])
    return bool(np.max(radius * np.sqrt(2 * np.arange(1, swaps + 1) * largest) - loss) < 0.5)


def plain_sa_foa(inverse: np.ndarray, theta: np.ndarray, radius: float, k: int, support: np.ndarray) -> bool:
    best = chi(np.argsort(-theta, kind="stable")[:k], len(theta))
    leads = []
    for row in support[np.random.default_rng(0).integers(len(support), size=len(theta))]:
        if np.array_equal(row, best):
            continue
        difference = row - best
        g = radius / (2 * math.sqrt(difference @ inverse @ difference))
        rival = plain_peel(g * inverse + np.diag(theta - 2 * g * inverse @ best), k) - best
        leads.append(rival @ theta + radius * math.sqrt(max(rival @ inverse @ rival, 0)))
    return max(leads, default=0) <= 0.25


def plain_peel(W: np.ndarray, k: int) -> np.ndarray:
    weights = W + np.diag(W)[:, None] + np.diag(W)
    np.fill_diagonal(weights, 0)
    degrees = weights.sum(1)
    for _ in range(len(W) - k):
        i = int(np.argmin(degrees))
        degrees = degrees - weights[i]
        degrees[i] = np.inf
    return (degrees < np.inf).astype(float)


def chi(arms: np.ndarray, n: int) -> np.ndarray:
    vector = np.zeros(n)
    vector[arms] = 1
    return vector


PLAIN: dict[str, Callable[..., bool]] = {
    "SAQM": plain_saqm,
    "ICB, ellipsoid": plain_icb,
    "spectral": plain_spectral,
    "SA-FOA, eps/2": plain_sa_foa,
}
