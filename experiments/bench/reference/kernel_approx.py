"""ApproxDisKernelUCB from lists of observations, every posterior solved anew and without a root of K_SS."""

from typing import NamedTuple

import numpy as np


class Round(NamedTuple):
    """What one round did, and the posteriors that the next one starts from."""

    action: np.ndarray  # int (N,)
    inducing: list | None  # chosen at a synchronisation after the round
    proposed: list | None  # the same, one set an agent
    uplink: int
    downlink: int
    mean: np.ndarray  # float (N, M)
    variance: np.ndarray  # float (N, M)
    answer: int


def sparse(gram, noise_variance, jitter, points, data):
    """Mean and variance at all candidates given `data`, a list of (candidate, reward), through `points`."""
    prior = np.diag(gram)
    if not points:
        return np.zeros(len(gram)), prior.copy()
    at, square = gram[points], gram[np.ix_(points, points)] + jitter * np.eye(len(points))
    seen = gram[np.ix_(points, [a for a, _ in data])]
    inner = noise_variance * square + seen @ seen.T
    mean = at.T @ np.linalg.solve(inner, seen @ np.array([y for _, y in data]))
    unseen = np.maximum(prior - np.sum(at * np.linalg.solve(square, at), axis=0), 0)
    return mean, unseen + noise_variance * np.sum(at * np.linalg.solve(inner, at), axis=0)


def approx_dis_kernel_ucb(
    gram, dimension, rewards, coins, *, beta, noise_variance, threshold, oversampling, jitter=1e-10
):
    """Rewards are (T, N, M), what agent n would see at each candidate in each round. Returns a list of `Round`."""
    horizon, n_agents, size = rewards.shape
    beta = np.broadcast_to(beta, (horizon,))
    points, shared, shared_variance = [], [], np.diag(gram).copy()
    history, own = [[] for _ in range(n_agents)], [[] for _ in range(n_agents)]
    shared_mean, spent = np.zeros(size), np.zeros(n_agents)
    mean, variance = np.zeros((n_agents, size)), np.tile(np.diag(gram), (n_agents, 1))
    uplink = downlink = 0
    rounds = []
    for t in range(horizon):
        if points:
            action = np.argmax(mean + beta[t] * np.sqrt(np.maximum(variance, 0)), axis=1)
        else:
            action = np.minimum(np.floor(coins.queries[:, t] * size).astype(int), size - 1)
        for n, a in enumerate(action):
            history[n].append((a, rewards[t, n, a]))
            own[n].append((a, rewards[t, n, a]))
            spent[n] += shared_variance[a] / noise_variance

        chosen = proposed = None
        if np.any(spent > threshold) and t + 1 < horizon:
            spent[:] = 0
            odds = np.minimum(1, oversampling * shared_variance / noise_variance)
            proposed = [
                sorted({a for s, (a, _) in enumerate(mine) if coins.inducing[t, n, s] < odds[a]})
                for n, mine in enumerate(history)
            ]
            chosen = sorted(set().union(*proposed))
            if chosen:
                points, m = chosen, len(chosen)
                uplink += sum(len(mine) * dimension + m**2 + m for mine in proposed)
                downlink += m * dimension + m**2 + m
                shared, own = [pair for mine in history for pair in mine], [[] for _ in range(n_agents)]
                shared_mean, shared_variance = sparse(gram, noise_variance, jitter, points, shared)
        for n in range(n_agents):
            mean[n], variance[n] = sparse(gram, noise_variance, jitter, points, shared + own[n])
        answer = int(np.argmax(shared_mean))
        rounds.append(Round(action, chosen, proposed, uplink, downlink, mean.copy(), variance.copy(), answer))
    return rounds
