"""The algorithms by upper confidence bounds from lists of observations, every posterior solved anew."""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import kernel

AGENTS, NOISE_VARIANCE, LENGTHSCALE = 3, 0.04, 0.3
KERNEL = partial(kernel.squared_exponential, lengthscale=LENGTHSCALE)


class Round(NamedTuple):
    """What one round did, and what is known after it."""

    action: np.ndarray  # int (N,)
    mean: np.ndarray  # float (N, M)
    variance: np.ndarray  # float (N, M)
    log_det: np.ndarray  # float (N,)  of all that each agent knows
    synced: bool
    uplink: int  # so far
    downlink: int
    answer: np.ndarray  # int (N,), or () of a server


def exact(gram, noise_variance, data):
    """Mean, variance and log det(I + K / noise_variance) given `data`, a list of (candidate, reward)."""
    if not data:
        return np.zeros(len(gram)), np.diag(gram).copy(), 0.0
    points, rewards = [a for a, _ in data], np.array([y for _, y in data])
    square = gram[np.ix_(points, points)] + noise_variance * np.eye(len(points))
    at = gram[points]
    solved = np.linalg.solve(square, at)
    return rewards @ solved, np.diag(gram) - np.sum(at * solved, axis=0), np.linalg.slogdet(square / noise_variance)[1]


def pick(coin, size):
    return np.minimum(np.floor(coin * size).astype(int), size - 1)


def n_kernel_ucb(gram, rewards, coins, *, beta, noise_variance):
    """Rewards are (T, N, M), what agent n would see at each candidate in each round; beta is () or (T,) or a function
    of the round, from 1, and the log det. Returns a list of `Round`.
    """
    horizon, n_agents, size = rewards.shape
    width = beta if callable(beta) else lambda t, _: np.broadcast_to(beta, (horizon,))[t - 1]
    data = [[] for _ in range(n_agents)]
    known = [exact(gram, noise_variance, mine) for mine in data]
    rounds = []
    for t in range(horizon):
        action = np.array([np.argmax(m + width(t + 1, g) * np.sqrt(np.maximum(v, 0))) for m, v, g in known])
        if t == 0:
            action = pick(coins[:, 0], size)
        for n, a in enumerate(action):
            data[n].append((a, rewards[t, n, a]))
        known = [exact(gram, noise_variance, mine) for mine in data]
        mean, variance, log_det = map(np.array, zip(*known, strict=True))
        rounds.append(Round(action, mean, variance, log_det, False, 0, 0, np.argmax(mean, axis=1)))
    return rounds


def dis_kernel_ucb(gram, dimension, rewards, coins, *, beta, noise_variance, threshold):
    """As `n_kernel_ucb`, with a server."""
    horizon, n_agents, size = rewards.shape
    beta = np.broadcast_to(beta, (horizon,))
    shared, own = [], [[] for _ in range(n_agents)]
    uplink = downlink = answer = 0
    known = [exact(gram, noise_variance, []) for _ in own]
    rounds = []
    for t in range(horizon):
        action = np.array([np.argmax(m + beta[t] * np.sqrt(np.maximum(v, 0))) for m, v, _ in known])
        if t == 0:
            action = pick(coins[:, 0], size)
        for n, a in enumerate(action):
            own[n].append((a, rewards[t, n, a]))
        then = exact(gram, noise_variance, shared)[2]
        spent = [len(mine) * (exact(gram, noise_variance, shared + mine)[2] - then) for mine in own]
        synced = t + 1 < horizon and max(spent) > threshold
        if synced:
            for mine in own:
                uplink += len(mine) * (dimension + 1)
                downlink += len(mine) * (dimension + 1)
                shared = shared + mine
            own = [[] for _ in range(n_agents)]
            answer = int(np.argmax(exact(gram, noise_variance, shared)[0]))
        known = [exact(gram, noise_variance, shared + mine) for mine in own]
        mean, variance, log_det = map(np.array, zip(*known, strict=True))
        rounds.append(Round(action, mean, variance, log_det, synced, uplink, downlink, np.array(answer)))
    return rounds


def instance(seed, size, *, horizon, agents=AGENTS, dimension=2):
    """Candidates, their covariance under `KERNEL`, rewards (T, N, M), and coins."""
    rng = np.random.default_rng(seed)
    candidates = rng.uniform(size=(size, dimension))
    squares = np.sum((candidates[:, None] - candidates) ** 2, axis=-1)
    values = np.cos(5 * candidates[:, 0]) + candidates[:, 1] ** 2
    rewards = values + 0.2 * rng.normal(size=(horizon, agents, size))
    uniforms = rng.uniform(size=(agents, horizon))
    coins = kernel.Coins(uniforms, uniforms, np.zeros((horizon, agents, horizon)))
    return jnp.asarray(candidates), np.exp(-squares / (2 * LENGTHSCALE**2)), rewards, coins
