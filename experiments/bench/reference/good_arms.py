"""One arm above a level: APGAI, with the threshold of one arm, in plain NumPy.

Rules are functions (t, N, m, coin) -> arm, for `questions.run`. A question is ("good", level).
"""

from math import log

from experiments.bench.reference.mab import Law, bisect, kl


def box(n: int, delta: float) -> float:
    """Returns the threshold for one comparison: delta is divided by their number before."""
    x = 2 * log(1 / delta) + 4 * log(4 + log(n)) + 0.5
    return bisect(lambda y: y - log(y) - x, 1.0, 2 * x) / 2


def apgai(law: Law, question):
    level = question[1]

    def rule(t, N, m, coin):
        evidence = [N[a] * kl(law, m[a], level) for a in range(len(N))]
        if max(m) > level:
            return max((a for a in range(len(N)) if m[a] > level), key=lambda a: (evidence[a], -a))
        return min(range(len(N)), key=lambda a: (evidence[a], a))

    return rule
