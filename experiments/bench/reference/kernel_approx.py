"""ApproxDisKernelUCB from lists of observations. Every posterior is solved anew, without a root of K_SS."""

from typing import NamedTuple

import numpy as np


class Round(NamedTuple):
    """One round, and the posteriors before the next one."""

    action: np.ndarray  # int (N,)
    inducing: list | None  # chosen at a synchronisation after the round
    proposed: list | None  # inducing points of each agent
    uplink: int
    downlink: int
    mean: np.ndarray  # float (N, M)
    variance: np.ndarray  # float (N, M)
    answer: int


def sparse(gram, noise_variance, jitter, points, data):
    """Computes mean and variance at all candidates given `data`, a list of (candidate, reward), through `points`."""
    prior = np.diag(gram)
    if not points:
        return np.zeros(len(gram)), prior.copy()
    at, square = gram[points], gram[np.ix_(points, points)] + jitter * np.eye(len(points))
    cross = gram[np.ix_(points, [a for a, _ in data])]
    inner = noise_variance * square + cross @ cross.T
    mean = at.T @ np.linalg.solve(inner, cross @ np.array([y for _, y in data]))
    unseen = np.maximum(prior - np.sum(at * np.linalg.solve(square, at), axis=0), 0)
    return mean, unseen + noise_variance * np.sum(at * np.linalg.solve(inner, at), axis=0)


def approx_dis_kernel_ucb(
    gram, dimension, rewards, coins, *, beta, noise_variance, threshold, oversampling, jitter=1e-10
):
    """Returns a list of `Round`; `rewards` (T, N, M) holds the reward of agent n at each candidate in each round."""
    horizon, n_agents, size = rewards.shape
    beta = np.broadcast_to(beta, (horizon,))
    points, shared, shared_variance = [], [], np.diag(gram).copy()
    history, unshared = [[] for _ in range(n_agents)], [[] for _ in range(n_agents)]
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
            unshared[n].append((a, rewards[t, n, a]))
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
                shared, unshared = [pair for mine in history for pair in mine], [[] for _ in range(n_agents)]
                shared_mean, shared_variance = sparse(gram, noise_variance, jitter, points, shared)
        for n in range(n_agents):
            mean[n], variance[n] = sparse(gram, noise_variance, jitter, points, shared + unshared[n])
        answer = int(np.argmax(shared_mean))
        rounds.append(
            Round(
                action=action,
                inducing=chosen,
                proposed=proposed,
                uplink=uplink,
                downlink=downlink,
                mean=mean.copy(),
                variance=variance.copy(),
                answer=answer,
            )
        )
    return rounds
