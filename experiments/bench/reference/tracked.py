"""Track-and-Stop for questions whose optimal proportions have no closed form, in plain NumPy."""

import numpy as np

from experiments.bench.reference.mab import Law, kl
from experiments.bench.reference.questions import alternatives, direct, variance

STEPS, LEAST, LEVEL, CENTERING, TO_BOUNDARY, LAZY = 8, 1e-3, 1e-4, 0.1, 0.95, 64


def rates(law: Law, question, w, m) -> tuple[np.ndarray, np.ndarray]:
    """Returns the divergences of the arms from each nearest alternative, and the matrices of their derivatives in w.

    The means of an alternative move along a line. If r are the divergences at its nearest point, and r', r'' their
    derivatives along the line, those matrices are -r' r'^T / (w r'').
    """
    moves, K = alternatives(law, question, w, m), len(m)
    r, bends = np.zeros((len(moves), K)), np.zeros((len(moves), K, K))
    for p, move in enumerate(moves):
        slope, bend = np.zeros(K), 0.0
        for a, x in move.targets.items():
            V = variance(law, x)
            r[p, a] = max(kl(law, m[a], x), 0.0)
            if V > 0:  # a mean does not move beyond an end
                slope[a] = (x - m[a]) / V
                bend += w[a] * (1 / V - (0 if law.kind == "gaussian" else (x - m[a]) * (1 - 2 * x) / V**2))
        if bend > 0 and abs(w @ slope) <= LEVEL * (w @ np.abs(slope)):  # otherwise the point is an end of its range
            bends[p] = -np.outer(slope, slope) / bend
    return r, bends


def optimal_shares(law: Law, question, m, steps: int = STEPS) -> tuple[np.ndarray, float, float]:
    """Returns the shares of the arms that make the cheapest alternative dear, its cost, and an upper bound of that.

    Newton steps on the primal-dual path, each by LAPACK on the whole system of the shares w, the value z and the
    multiplier of sum w = 1.
    """
    K = len(m)
    w = np.full(K, 1 / K)
    r, _ = rates(law, question, w, m)
    if (r @ w <= 0).any():
        return w, 0.0, 0.0
    cheapest = np.min(np.where(r > 0, (r @ w)[:, None], np.inf), axis=0)
    w = cheapest.min() / cheapest + LEAST
    w /= w.sum()
    f = rates(law, question, w, m)[0] @ w
    unit = f.min()
    z, nu, s = 0.5, 1.0, f / unit - 0.5
    level = 1 / np.sum(1 / s)
    q, u = level / s, level / w
    best = (w, 0.0, np.inf)
    for _ in range(steps):
        r, bends = (x / unit for x in rates(law, question, w, m))
        f = r @ w
        lower = f.min() / w.sum()
        upper = max((r.T @ (q / q.sum())).max(), lower)
        if upper - lower < best[2] - best[1]:
            best = (w / w.sum(), lower, upper)
        target = CENTERING * (s @ q + w @ u) / (len(f) + K)
        off = f - z - s
        # Rows: the derivative in w, the derivative in z, and the sum of w.
        new_q = target / s - q / s * off
        matrix = np.zeros((K + 2, K + 2))
        matrix[:K, :K] = np.tensordot(q, bends, 1) - r.T @ (q[:, None] / s[:, None] * r) - np.diag(u / w)
        matrix[:K, K], matrix[K, :K], matrix[K, K] = r.T @ (q / s), -r.T @ (q / s), np.sum(q / s)
        matrix[:K, K + 1], matrix[K + 1, :K] = -1, 1
        right = np.concatenate([nu - r.T @ new_q - target / w, [1 - new_q.sum(), 1 - w.sum()]])
        solution = np.linalg.solve(matrix, right)
        dw, dz, dnu = solution[:K], solution[K], solution[K + 1]
        ds = r @ dw - dz + off
        dq, du = new_q - q + q / s * (off - ds), target / w - u - u / w * dw
        primal = longest(max((-dw / w).max(), (-ds / s).max()))
        dual = longest(max((-dq / q).max(), (-du / u).max()))
        w, z, s = w + primal * dw, z + primal * dz, s + primal * ds
        nu, q, u = nu + dual * dnu, q + dual * dq, u + dual * du
    return best[0], best[1] * unit, best[2] * unit


def longest(shrink: float) -> float:
    """Returns the length of a step that keeps positive what shrinks at most at this rate."""
    return TO_BOUNDARY / shrink if shrink > TO_BOUNDARY else 1.0


def tas(law: Law, question):
    """Builds Track-and-Stop with new proportions once a run is longer by a 64th: (t, N, m, coin) -> arm."""
    w, planned = None, -1

    def rule(t, N, m, coin):
        nonlocal w, planned
        if planned < 0 or t - planned >= max(planned // LAZY, 1):
            w, planned = np.round(optimal_shares(law, question, m)[0] * 2**20) / 2**20, t
        return direct(t, N, w)

    return rule
