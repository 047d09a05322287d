"""The kernel algorithms by upper confidence bounds from lists of observations. Every posterior is solved anew."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import kernel

AGENTS, NOISE_VARIANCE, LENGTHSCALE = 3, 0.04, 0.3
KERNEL = kernel.SquaredExponential(LENGTHSCALE)


class Round(NamedTuple):
    """One round, and the posteriors after it."""

    action: np.ndarray  # int (N,)
    mean: np.ndarray  # float (N, M)
    variance: np.ndarray  # float (N, M)
    log_det: np.ndarray  # float (N,)  log det(I + K / noise_variance) of each agent's observations
    synced: bool
    uplink: int  # numbers sent to the server so far
    downlink: int
    answer: np.ndarray  # int (N,); with a server, ()


def exact(gram, noise_variance, data):
    """Computes mean, variance and log det(I + K / noise_variance) given `data`, a list of (candidate, reward)."""
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
    """Returns a list of `Round`; `rewards` (T, N, M) holds the reward of agent n at each candidate in each round.

    `beta` is () or (T,), or a function of the round, from 1, and the log det.
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
        posterior = {"mean": mean, "variance": variance, "log_det": log_det}
        rounds.append(Round(action, **posterior, synced=False, uplink=0, downlink=0, answer=np.argmax(mean, axis=1)))
    return rounds


def dis_kernel_ucb(gram, dimension, rewards, coins, *, beta, noise_variance, threshold):
    """As `n_kernel_ucb`, with a server."""
    horizon, n_agents, size = rewards.shape
    beta = np.broadcast_to(beta, (horizon,))
    shared, unshared = [], [[] for _ in range(n_agents)]
    uplink = downlink = answer = 0
    known = [exact(gram, noise_variance, []) for _ in unshared]
    rounds = []
    for t in range(horizon):
        action = np.array([np.argmax(m + beta[t] * np.sqrt(np.maximum(v, 0))) for m, v, _ in known])
        if t == 0:
            action = pick(coins[:, 0], size)
        for n, a in enumerate(action):
            unshared[n].append((a, rewards[t, n, a]))
        log_det_shared = exact(gram, noise_variance, shared)[2]
        spent = [len(mine) * (exact(gram, noise_variance, shared + mine)[2] - log_det_shared) for mine in unshared]
        synced = t + 1 < horizon and max(spent) > threshold
        if synced:
            for mine in unshared:
                uplink += len(mine) * (dimension + 1)
                downlink += len(mine) * (dimension + 1)
                shared = shared + mine
            unshared = [[] for _ in range(n_agents)]
            answer = int(np.argmax(exact(gram, noise_variance, shared)[0]))
        known = [exact(gram, noise_variance, shared + mine) for mine in unshared]
        mean, variance, log_det = map(np.array, zip(*known, strict=True))
        posterior = {"mean": mean, "variance": variance, "log_det": log_det}
        sent = {"synced": synced, "uplink": uplink, "downlink": downlink}
        rounds.append(Round(action, **posterior, **sent, answer=np.array(answer)))
    return rounds


def instance(seed, size, *, horizon, agents=AGENTS, dimension=2):
    """Draws candidates, their covariance under `KERNEL`, rewards (T, N, M), and coins."""
    rng = np.random.default_rng(seed)
    candidates = rng.uniform(size=(size, dimension))
    squares = np.sum((candidates[:, None] - candidates) ** 2, axis=-1)
    values = np.cos(5 * candidates[:, 0]) + candidates[:, 1] ** 2
    rewards = values + 0.2 * rng.normal(size=(horizon, agents, size))
    uniforms = rng.uniform(size=(agents, horizon))
    coins = kernel.Coins(uniforms, uniforms, np.zeros((horizon, agents, horizon)))
    return jnp.asarray(candidates), np.exp(-squares / (2 * LENGTHSCALE**2)), rewards, coins
