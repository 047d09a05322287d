"""Plain NumPy loops of the rules for rewards that change. They update statistics instead of reading a history."""

from collections.abc import Callable
from math import floor, log, sqrt

import numpy as np

Play = Callable[[np.ndarray], int]  # (tape (K, rounds)) -> pulls

XI, DISCOUNT, WINDOW = 0.6, 0.99, 100
SPAN, DRIFT, SHARE = 100, 25.0, 0.1  # window, threshold and uniform exploration of M-UCB
GAMMA, ETA, BIAS = 0.1, 0.05, 0.025


def discounted_ucb(noise_scale: float) -> Play:
    def play(tape: np.ndarray) -> int:
        K, rounds = tape.shape
        N, S = np.zeros(K), np.zeros(K)
        for t in range(rounds):
            a = t if t < K else int(np.argmax(S / N + 4 * noise_scale * np.sqrt(XI * log(N.sum()) / N)))
            N *= DISCOUNT
            S *= DISCOUNT
            N[a] += 1
            S[a] += tape[a, t]
        return rounds

    return play


def sliding_window_ucb(noise_scale: float) -> Play:
    def play(tape: np.ndarray) -> int:
        K, rounds = tape.shape
        N, S, last = np.zeros(K), np.zeros(K), []
        for t in range(rounds):
            if t < K or not N.all():
                a = t if t < K else int(np.argmin(N))
            else:
                a = int(np.argmax(S / N + 2 * noise_scale * np.sqrt(XI * log(min(t, WINDOW)) / N)))
            last.append((a, tape[a, t]))
            N[a] += 1
            S[a] += tape[a, t]
            if t >= WINDOW:
                old, reward = last[t - WINDOW]
                N[old] -= 1
                S[old] -= reward
        return rounds

    return play


def m_ucb(noise_scale: float) -> Play:
    def play(tape: np.ndarray) -> int:
        K, rounds = tape.shape
        start, N, S, Z = 0, np.zeros(K), np.zeros(K), [[] for _ in range(K)]
        for t in range(rounds):
            turn = (t - start) % floor(K / SHARE)
            a = turn if turn < K else int(np.argmax(S / N + 2 * noise_scale * np.sqrt(2 * log(t - start + 1) / N)))
            Z[a].append(tape[a, t])
            N[a] += 1
            S[a] += tape[a, t]
            z = Z[a][-SPAN:]
            if len(z) == SPAN and abs(sum(z[SPAN // 2 :]) - sum(z[: SPAN // 2])) > DRIFT:
                start, N, S, Z = t + 1, np.zeros(K), np.zeros(K), [[] for _ in range(K)]
        return rounds

    return play


def exp3(rng: np.random.Generator) -> Play:
    def play(tape: np.ndarray) -> int:
        K, rounds = tape.shape
        logs = np.zeros(K)
        for t in range(rounds):
            w = np.exp(logs - logs.max())
            p = (1 - GAMMA) * w / w.sum() + GAMMA / K
            a = int(np.searchsorted(np.cumsum(p)[:-1], rng.random(), side="right"))
            logs[a] += GAMMA * tape[a, t] / (K * p[a])
        return rounds

    return play


def exp3_ix(rng: np.random.Generator) -> Play:
    def play(tape: np.ndarray) -> int:
        K, rounds = tape.shape
        logs = np.zeros(K)
        for t in range(rounds):
            w = np.exp(logs - logs.max())
            p = w / w.sum()
            a = int(np.searchsorted(np.cumsum(p)[:-1], rng.random(), side="right"))
            logs[a] -= ETA * (1 - tape[a, t]) / (p[a] + BIAS)
        return rounds

    return play


def batched_elimination(noise_scale: float, delta: float) -> Play:
    """Pulls one arm after the other of every batch, while the tape lasts."""

    def play(tape: np.ndarray) -> int:
        K, rounds = tape.shape
        active, n, r, made, pulls = np.ones(K, bool), 1, 1, np.zeros(K, int), 0
        S = np.zeros(K)
        while active.sum() > 1:
            for a in np.flatnonzero(active):
                while made[a] < n:
                    if pulls == rounds:
                        return pulls
                    S[a] += tape[a, made[a]]
                    made[a] += 1
                    pulls += 1
            radius = noise_scale * sqrt(2 * log(2 * K * r * (r + 1) / delta) / n)
            means = np.where(active, S / made, -np.inf)
            active &= means >= means.max() - 2 * radius
            n, r = 2 * n, r + 1
        return pulls

    return play
