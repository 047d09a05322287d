"""DUETS as printed, in plain NumPy: explicit lists of draws, and direct solves."""

import math

import numpy as np


def squared_exponential(lengthscale):
    def kernel(xs, ys):
        return np.exp(-((xs[:, None, :] - ys[None, :, :]) ** 2).sum(2) / (2 * lengthscale**2))

    return kernel


def epochs(horizon, first):
    lengths = [first]
    while sum(lengths) < horizon:
        lengths.append(math.floor(math.sqrt(horizon * lengths[-1]) + 1e-9))
    lengths[-1] -= sum(lengths) - horizon
    return lengths


def exact_variance(kernel, points, at, noise_variance):
    k, noisy = kernel(points, at), kernel(points, points) + noise_variance * np.eye(len(points))
    return np.diag(kernel(at, at)) - (k * np.linalg.solve(noisy, k)).sum(0)


def duets(
    candidates,
    reward,
    coins,
    thinning,
    *,
    kernel,
    beta,
    noise_variance,
    lengths,
    p0=10.0,
    probability=None,
    elimination="uniform",
    jitter=1e-10,
):
    """Returns (queries (T, N), one dict per synchronisation, the answer), given `reward(agent, round, candidate)`."""
    n_agents, d = len(coins), candidates.shape[1]
    active, answer, t = list(range(len(candidates))), 0, 0
    queries, records = [], []
    up = down = up_draws = down_draws = 0
    for epoch, length in enumerate(lengths):
        drawn = []  # (agent, candidate, reward, thinning variable)
        for _ in range(length):
            row = []
            for n in range(n_agents):
                a = active[min(math.floor(coins[n, t] * len(active)), len(active) - 1)]
                row.append(a)
                drawn.append((n, a, reward(n, t, a), thinning[n, t]))
            queries.append(row)
            t += 1
        if epoch == len(lengths) - 1:
            break
        at = candidates[active]
        sigma_sq = exact_variance(kernel, candidates[[a for _, a, _, _ in drawn]], at, noise_variance).max()
        p = p0 * sigma_sq if probability is None else probability(sigma_sq, len(drawn))
        chosen = [a for _, a, _, u in drawn if u < min(max(p, 0), 1)]
        inducing = sorted(set(chosen))
        if inducing:
            points = candidates[inducing]
            lower = np.linalg.cholesky(kernel(points, points) + jitter * np.eye(len(points)))

            def z(indices, points=points, lower=lower):
                return np.linalg.solve(lower, kernel(points, candidates[indices]))

            # Message by message: v of each agent from its own draws, A from all draws with repeats.
            messages = [
                z([a for m, a, _, _ in drawn if m == n]) @ np.array([y for m, _, y, _ in drawn if m == n])
                for n in range(n_agents)
            ]
            features = z([a for _, a, _, _ in drawn])
            A = noise_variance * np.eye(len(points)) + features @ features.T
            near = z(active)
            broadcast = np.linalg.solve(A, sum(messages))
            mean = near.T @ broadcast
            if elimination == "uniform":
                keep = mean >= mean.max() - 2 * beta * np.sqrt(sigma_sq)
            else:
                prior = np.diag(kernel(at, at))
                sd = np.sqrt(
                    np.maximum(prior - (near**2).sum(0), 0) + noise_variance * (near * np.linalg.solve(A, near)).sum(0)
                )
                keep = mean + beta * sd >= (mean - beta * sd).max()
            answer = active[int(mean.argmax())]
            active = [a for a, stays in zip(active, keep, strict=True) if stays]
            m, repeated = len(inducing), len(chosen)
            extra = (m**2, repeated**2) if elimination == "point" else (1, 1)
            up, down = up + n_agents * m, down + m * (d + 1) + extra[0]
            up_draws, down_draws = up_draws + n_agents * repeated, down_draws + repeated * (d + 1) + extra[1]
        records.append(
            {
                "drawn": drawn,
                "inducing": inducing,
                "messages": messages if inducing else [],
                "broadcast": broadcast if inducing else None,
                "sigma_sq": sigma_sq,
                "active": list(active),
                "answer": answer,
                "sent": (up, down, up_draws, down_draws),
            }
        )
    return np.array(queries), records, answer
