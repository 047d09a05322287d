"""LinGapE, transcribed from the paper into plain NumPy: A is inverted anew in every round."""

from collections.abc import Callable

import numpy as np


def lingape(
    arms: np.ndarray,
    reward: Callable[[int, int], float],  # (arm, round) -> reward
    *,
    delta: float,
    epsilon: float = 0.0,
    ridge: float = 1.0,
    noise_scale: float = 1.0,
    norm_bound: float = 2.0,
    union_bound: float | None = None,
    ratios: np.ndarray | None = None,
    max_rounds: int = 10**9,
) -> tuple[list[int], int | None, float]:
    """Returns the pulled arms, the answer (None if the rounds ran out) and the last value of the stopping index B."""
    K, d = arms.shape
    u = K**2 if union_bound is None else union_bound
    A, b, counts = ridge * np.eye(d), np.zeros(d), np.zeros(K, int)
    pulled, B = [], np.inf
    for t in range(max_rounds + 1):
        inverse = np.linalg.inv(A)
        theta = inverse @ b
        i = int(np.argmax(arms @ theta))
        y = arms - arms[i]
        width = np.sqrt(np.maximum(np.einsum("kd,de,ke->k", y, inverse, y), 0))
        C = noise_scale * np.sqrt(np.linalg.slogdet(A / ridge)[1] + 2 * np.log(u / delta)) + norm_bound * np.sqrt(ridge)
        upper = y @ theta + C * width
        upper[i] = -np.inf
        j = int(np.argmax(upper))
        B = upper[j]
        if t >= K and epsilon >= B:
            return pulled, i, B
        if t == max_rounds:
            break
        if t < K:
            arm = t
        elif ratios is None:
            pair = arms[i] - arms[j]
            scores = [pair @ np.linalg.inv(A + np.outer(x, x)) @ pair for x in arms]
            arm = int(np.argmin(scores))
        else:
            share = ratios[i, j]
            behind = np.where(share > 0, counts / np.where(share > 0, share, 1), np.inf)
            arm = int(np.argmin(behind))
        A += np.outer(arms[arm], arms[arm])
        b += reward(arm, t) * arms[arm]
        counts[arm] += 1
        pulled.append(arm)
    return pulled, None, B
