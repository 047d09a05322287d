"""Rules as plain scalar code over one run, which numba compiles: only loops, arrays and numbers, and no other function.

`draw(rng, arm)` returns a reward. Each returns all its pulls, and its answer if it has stopped (-1: none).
"""

from math import inf, log, log1p, sqrt

import numpy as np


def ucb1(draw, rng, rounds, K, factor):
    """Pulls the arm with the largest mean + sqrt(factor log(t) / N)."""
    counts, sums, pulled = np.zeros(K), np.zeros(K), np.empty(rounds, np.int64)
    for t in range(rounds):
        arm = t
        if t >= K:
            best, level = -inf, factor * log(t + 1)
            for a in range(K):
                index = sums[a] / counts[a] + sqrt(level / counts[a])
                if index > best:
                    best, arm = index, a
        counts[arm] += 1
        sums[arm] += draw(rng, arm)
        pulled[t] = arm
    return pulled, -1


def lingape(draw, rng, rounds, gram, ridge, delta, noise_scale, norm_bound):
    """Keeps the products x V y of all pairs of arms, V = A^-1, from `gram`, the products x y."""
    K = len(gram)
    products, values, log_det = gram / ridge, np.zeros(K), 0.0
    row, of_best, pulled = np.empty(K), np.empty(K), np.empty(rounds, np.int64)
    for t in range(rounds):
        arm = t
        if t >= K:
            best = 0
            for a in range(1, K):
                if values[a] > values[best]:
                    best = a
            C = noise_scale * sqrt(log_det + 2 * log(K**2 / delta)) + norm_bound * sqrt(ridge)
            rival, B = -1, -inf
            for a in range(K):
                of_best[a] = products[best, a]
                if a != best:
                    square = products[a, a] + products[best, best] - 2 * of_best[a]
                    upper = values[a] - values[best] + C * sqrt(max(square, 0.0))
                    if upper > B:
                        B, rival = upper, a
            if B <= 0:
                return pulled[:t], best
            largest = -inf
            for a in range(K):
                gain = (of_best[a] - products[rival, a]) ** 2 / (1 + products[a, a])
                if gain > largest:
                    largest, arm = gain, a
        for a in range(K):
            row[a] = products[arm, a]
        shrink = 1 / (1 + row[arm])
        step = (draw(rng, arm) - values[arm]) * shrink
        log_det += log1p(row[arm])
        for a in range(K):
            values[a] += row[a] * step
            for b in range(K):
                products[a, b] -= row[a] * row[b] * shrink
        pulled[t] = arm
    return pulled, -1


def coci(draw, rng, rounds, decisions, slopes, constants, is_monotone, tau, delta, scale):
    """Plays COCI by enumeration. Decision n pays slopes[n] theta + constants[n]; the answer is such a number."""
    N, m = decisions.shape
    counts, sums, squares = np.zeros(m), np.zeros(m), np.zeros(m)
    lo, gap, at_low, at_high = np.empty(m), np.empty(m), np.empty(N), np.empty(N)
    lowest, highest, is_open = np.empty(m), np.empty(m), np.empty(m, np.bool_)
    pulled = np.empty(rounds, np.int64)
    for t in range(rounds):
        arm = t % m
        if t >= m * tau:
            level = log(4 / (tau * delta)) + 3 * log(t)
            for i in range(m):
                mean = sums[i] / counts[i]
                middle = mean if tau == 1 else (squares[i] - counts[i] * mean**2) / (counts[i] - 1)
                width = scale * sqrt(level / (2 * counts[i]))
                lo[i] = max(middle - width, 0.0)
                gap[i] = min(middle + width, 1.0) - lo[i]
                lowest[i], highest[i] = inf, -inf
            for n in range(N):
                at_low[n] = at_high[n] = constants[n]
                for i in range(m):
                    at_low[n] += slopes[n, i] * lo[i]
                    at_high[n] += slopes[n, i] * (lo[i] + gap[i])
            if is_monotone:  # an arm is open if its level differs at its two corners
                for i in range(m):
                    first, second, best, other = 0, 0, -inf, -inf
                    for n in range(N):
                        raised = at_low[n] + slopes[n, i] * gap[i]
                        if raised > best:
                            best, first = raised, n
                        lowered = at_high[n] - slopes[n, i] * gap[i]
                        if lowered > other:
                            other, second = lowered, n
                    is_open[i] = decisions[first, i] != decisions[second, i]
            else:  # an arm is open if it is in some leading decisions, each at its own corner, and not in all
                for y in range(N):
                    first, best = 0, -inf
                    for n in range(N):
                        value = at_low[n]
                        for i in range(m):
                            if decisions[y, i] > 0:
                                value += slopes[n, i] * gap[i]
                        if value > best:
                            best, first = value, n
                    if first == y:
                        for i in range(m):
                            lowest[i] = min(lowest[i], decisions[y, i])
                            highest[i] = max(highest[i], decisions[y, i])
                for i in range(m):
                    is_open[i] = highest[i] > lowest[i]
            arm, fewest = -1, inf
            for i in range(m):
                if is_open[i] and counts[i] < fewest:
                    fewest, arm = counts[i], i
            if arm < 0:
                answer, best = 0, -inf
                for n in range(N):
                    value = constants[n]
                    for i in range(m):
                        mean = sums[i] / counts[i]
                        middle = mean if tau == 1 else (squares[i] - counts[i] * mean**2) / (counts[i] - 1)
                        value += slopes[n, i] * middle
                    if value > best:
                        best, answer = value, n
                return pulled[:t], answer
        reward = draw(rng, arm)
        counts[arm] += 1
        sums[arm] += reward
        squares[arm] += reward * reward
        pulled[t] = arm
    return pulled, -1


def ds_ucb(draw, rng, rounds, points, k, levels, delta, radius_scale):
    """Plays DS-UCB from node 0. `draw(rng, queries)` returns a dimension; the pulls are (node, slot, queries)."""
    n, m = points.shape
    counts, totals = np.zeros((n, k - 1), np.int64), np.zeros((n, k - 1))
    lower, upper, best = np.zeros((n, k - 1)), np.full((n, k - 1), inf), np.full(n, inf)
    centers, made, spent = np.zeros(k, np.int64), np.empty((rounds, 3), np.int64), 0
    best[0], stage, fresh = -inf, 1, 1
    for t in range(rounds):
        while fresh == n:
            node, first, second = -1, -inf, -inf
            for v in range(n):
                if best[v] > first:
                    node, second, first = v, first, best[v]
                elif best[v] > second:
                    second = best[v]
            slot = 0
            for i in range(1, stage):
                if lower[node, i] < lower[node, slot]:
                    slot = i
            if lower[node, slot] <= second:
                break
            centers[stage], best[node] = node, -inf
            stage += 1
            if stage == k:
                return made[:t], centers
            fresh = 0
            while best[fresh] == -inf:
                fresh += 1
        if fresh < n:
            node, slot = fresh, stage - 1
            fresh += 1
            while fresh < n and best[fresh] == -inf:
                fresh += 1
        center, is_exact = centers[slot], counts[node, slot] >= m
        if is_exact:
            square = 0.0
            for j in range(m):
                square += (points[node, j] - points[center, j]) ** 2
            low = high = square / m / levels**2
        else:
            j = draw(rng, spent)
            totals[node, slot] += (points[node, j] - points[center, j]) ** 2 / levels**2
            count = counts[node, slot] + 1
            radius = sqrt(radius_scale * log1p((1 + log(count)) / delta) / count)
            low, high = totals[node, slot] / count - radius, totals[node, slot] / count + radius
        counts[node, slot] += 1
        lower[node, slot], upper[node, slot] = low, high
        best[node] = upper[node, 0]
        for i in range(1, stage):
            best[node] = min(best[node], upper[node, i])
        made[t, 0], made[t, 1], made[t, 2] = node, slot, m if is_exact else 1
        spent += made[t, 2]
    return made, centers
