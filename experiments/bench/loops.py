"""Plain NumPy loops over one run on one core, with moderate care for speed, in queries per second.

The loops of `experiments.bench.reference` are transcriptions of the algorithms. The loops here run for a second.
"""

import itertools
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.bench.reference import cpe as plain_cpe
from experiments.bench.reference import fixed_designs, kernel_approx, kernel_duets, kernel_ucb
from experiments.bench.reference.lingape import lingape as transcription
from jaxbandits import cpe, fullbandit, kernel, linear
from jaxbandits.kernel import branin, epoch_lengths
from jaxbandits.numerics.design import design


def per_second(play: Callable[[], int], seconds: float = 1.0) -> float:
    """Measures queries per second by repeating `play`, which returns its number of queries."""
    queries, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        queries += play()
    return queries / (time.perf_counter() - started)


# Linear bandits


def lingape(instance: linear.Instance) -> float:
    """Measures the transcription, which inverts A in every round and tries every arm by another inversion."""
    arms, means = np.asarray(instance.arms), np.asarray(instance.arms @ instance.theta)
    rng, rounds = np.random.default_rng(0), 200

    def play() -> int:
        transcription(arms, lambda arm, _: means[arm] + rng.normal(), delta=0.05, max_rounds=rounds)
        return rounds

    return per_second(play)


def xy_static() -> float:
    """Measures XY-static with a test at every pull, on five canonical arms, where it stops soon."""
    arms, means, rng = np.eye(5), np.eye(5)[0], np.random.default_rng(0)

    def play() -> int:
        tape = means[:, None] + rng.normal(size=(5, 2000))
        return fixed_designs.xy_static(arms, np.full(5, 0.2), tape, delta=0.05)[-1].n

    return per_second(play)


def xy_adaptive() -> float:
    """Measures XY-adaptive on the same arms. The library computes its designs."""
    arms, means, rng = np.eye(5), np.eye(5)[0], np.random.default_rng(0)
    settings = {"alpha": 0.1, "first_width": 1 / 31, "keep_eliminated": False, "max_phases": 8}

    def solve(differences: list[np.ndarray]) -> np.ndarray:
        return np.asarray(design(jnp.asarray(arms), jnp.asarray(differences)).allocation)

    def rewards(phase: int, counts: np.ndarray) -> np.ndarray:
        return means * counts + np.sqrt(counts) * rng.normal(size=5)

    def play() -> int:
        phases = fixed_designs.xy_adaptive(arms, solve, rewards, delta=0.05, **settings)
        return sum(sum(phase.counts) for phase in phases)

    return per_second(play)


# Combinatorial pure exploration


def coci(instance: cpe.Instance) -> float:
    """Measures the transcription of COCI, which lists all decisions and makes one pull at a time."""
    theta, rng = np.asarray(cpe.means(instance.arms)), np.random.default_rng(0)
    loop = decisions_of(instance)

    def play() -> int:
        tape = (rng.random((len(theta), 200)) < theta[:, None]).astype(float)
        return len(plain_cpe.coci(loop, tape, delta=0.1, tau=instance.tau, rounds=200))

    return per_second(play)


def decisions_of(instance: cpe.Instance) -> plain_cpe.Class:
    """Lists all decisions."""
    problem = instance.problem
    if isinstance(problem, cpe.Enumerated):
        return plain_cpe.linear(np.asarray(problem.rows))
    kind = "at most" if instance.tau == 2 else "exactly"
    return plain_cpe.table(np.asarray(problem.coef), np.asarray(problem.cost), int(problem.quota), kind)


def plays(instance: cpe.Instance) -> float:
    """Measures a plain loop that plays trees: Kruskal's best tree at the means, its closest swap, one more draw."""
    ends, theta = np.asarray(instance.problem.ends), np.asarray(instance.theta)
    K, nodes, rng = len(theta), instance.problem.nodes, np.random.default_rng(0)
    counts, sums = np.ones(K), rng.normal(theta)

    def tree(weights: np.ndarray) -> np.ndarray:
        chosen, names = np.zeros(K, bool), np.arange(nodes)
        for edge in np.argsort(-weights, kind="stable"):
            one, other = names[ends[edge]]
            chosen[edge] = one != other
            names[names == other] = one
        return chosen

    def play() -> int:
        means = sums / counts
        best, least, gradient = tree(means), np.inf, np.zeros(K)
        for out in np.flatnonzero(best):
            names = np.arange(nodes)
            for edge in np.flatnonzero(best):
                if edge != out:
                    names[names == names[ends[edge, 1]]] = names[ends[edge, 0]]
            for into in np.flatnonzero((names[ends[:, 0]] != names[ends[:, 1]]) & ~best):
                slope = (means[out] - means[into]) / (1 / counts[out] + 1 / counts[into])
                value = slope * (means[out] - means[into])
                if value < least:
                    least, gradient = value, np.zeros(K)
                    gradient[[out, into]] = (slope / counts[[out, into]]) ** 2
        played = tree(gradient + 1e-9 * rng.normal(size=K))
        sums[played] += rng.normal(theta)[played]
        counts[played] += 1
        return 1

    return per_second(play)


# Top-k identification


def top_k(rule: str, design: fullbandit.Design, crowd: fullbandit.Instance) -> float:
    """Measures the plain loop: a pull, the inverse, the estimate, and one test of the rule."""
    support, theta = np.asarray(design.support), np.asarray(crowd.theta)
    s, n = support.shape
    k, rng, pulls = crowd.k, np.random.default_rng(0), itertools.count(s)
    A, b = support.T @ support, support.T @ rng.binomial(1, 0.5, s).astype(float)

    def play() -> int:
        t = next(pulls)
        row = support[t % s]
        A[:] += np.outer(row, row)
        b[:] += rng.binomial(1, theta[row > 0]).sum() * row
        inverse = np.linalg.inv(A)
        union = math.log(6 / math.pi**2 / 0.05) + 2 * math.log(t + 1) + math.log(math.comb(n, k))
        PLAIN[rule](inverse, inverse @ b, 2 * math.sqrt(2) * 10.0 * math.sqrt(union), k, support)
        return 1

    return per_second(play)


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


# Greedy k-center, with running sums, one query at a time; these stay in the first stage

LEVELS, NOISE_SCALE = 255, 0.1


def sampling(points: np.ndarray) -> float:
    """Measures DS-UCB, and DS-TS except for its posterior draw."""
    rng, n, m = np.random.default_rng(0), *points.shape
    share, C = 0.1 / n, 0.1
    t, total = np.ones(n), (points[:, 0].astype(float) - points[0, 0]) ** 2 / LEVELS**2
    upper = np.full(n, np.inf)
    upper[0] = -np.inf

    def play() -> int:
        v, j = int(np.argmax(upper)), int(rng.integers(m))
        total[v] += (float(points[v, j]) - float(points[0, j])) ** 2 / LEVELS**2
        t[v] += 1
        upper[v] = total[v] / t[v] + np.sqrt(C * np.log1p((1 + np.log(t[v])) / share) / t[v])
        others = np.partition(upper, -2)[-2]
        if 2 * total[v] / t[v] - upper[v] > others:
            t[v] = 1  # keeps the loop in this stage
        return 1

    return per_second(play)


def noisy(distances: np.ndarray) -> float:
    """Measures NS-TS."""
    rng, n = np.random.default_rng(0), len(distances)
    t, total = np.ones(n), distances[:, 0] + NOISE_SCALE * rng.normal(size=n)
    total[0] = -np.inf

    def play() -> int:
        mean = total / t
        first = int(np.argmax(mean))
        upper = mean + NOISE_SCALE * np.sqrt(2 * (np.log(11.11) + 1.1 * np.log(t) + np.log(n**2 / 0.1)) / t)
        upper[first] = -np.inf
        for v in (first, int(np.argmax(upper))):
            total[v] += distances[v, 0] + NOISE_SCALE * rng.normal()
            t[v] += 1
        return 2

    return per_second(play)


def tracking(distances: np.ndarray, how: str) -> float:
    """Measures NS-TandS in its first stage, with a mirror ascent of 1000 steps every 100 queries."""
    rng, n = np.random.default_rng(0), len(distances)
    t, total = np.ones(n), distances[:, 0] + NOISE_SCALE * rng.normal(size=n)
    total[0] = -np.inf

    def play() -> int:
        omega = plain_weights(total / t, int(np.argmax(total / t)))
        for _ in range(100):
            mean = total / t
            h = int(np.argmax(mean))
            with np.errstate(invalid="ignore"):
                z = (mean[h] - mean) ** 2 / (2 * NOISE_SCALE**2) * t[h] * t / (t[h] + t)
            np.min(np.delete(z, [0, h]))
            v = int(np.argmax(omega / t if how == "ratio" else omega - t / t.sum()))
            total[v] += distances[v, 0] + NOISE_SCALE * rng.normal()
            t[v] += 1
        return 100

    return per_second(play)


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


# Distributed kernel bandits

AGENTS, HORIZON, SIZE, NOISE_VARIANCE = 10, 50, 2000, 0.04


def kernel_run(rule: str) -> float:
    """Measures the agent-rounds per second of one run with beta = 1."""
    instance = branin(jax.random.key(1), size=SIZE, dtype="float64")
    candidates, values, rng = np.asarray(instance.candidates), np.asarray(instance.values), np.random.default_rng(0)
    uniforms, thinning = rng.random((2, AGENTS, HORIZON))
    coins = kernel.Coins(uniforms, thinning, rng.random((HORIZON, AGENTS, HORIZON)))
    rewards = values + 0.2 * rng.standard_normal((HORIZON, AGENTS, SIZE))
    pairs = kernel_duets.squared_exponential(0.2)
    gram = pairs(candidates, candidates)
    duets = partial(kernel_duets.duets, kernel=pairs, lengths=epoch_lengths(HORIZON))
    approximate = partial(kernel_approx.approx_dis_kernel_ucb, threshold=20.0, oversampling=1.0)
    loops: dict[str, Callable[..., Any]] = {
        "DUETS": partial(duets, candidates, lambda n, t, a: rewards[t, n, a], uniforms, thinning),
        "DisKernelUCB": partial(kernel_ucb.dis_kernel_ucb, gram, 2, rewards, uniforms, threshold=10.0),
        "ApproxDisKernelUCB": partial(approximate, gram, 2, rewards, coins),
        "N-KernelUCB": partial(kernel_ucb.n_kernel_ucb, gram, rewards, uniforms),
    }
    started = time.perf_counter()
    loops[rule](beta=1.0, noise_variance=NOISE_VARIANCE)
    return AGENTS * HORIZON / (time.perf_counter() - started)
