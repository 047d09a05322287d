"""Laws of means that change once: an arm's first pulls have a mean of their own.

A run may be late because the first rewards of the best arm were low: the arm was starved, and recovered in the end. No
fixed means make such runs likely, for the arm's last rewards are as they should be. Here an arm's first n pulls have
one mean, and its later pulls another. The likelihood ratio of a run is then a function of the counts and sums of both.

Counts and sums have shape (n, J + 1, K): of all pulls, and of the first pulls for each of the J lengths.
"""

from typing import NamedTuple

import numpy as np

from jaxbandits.rare._methods import laws
from jaxbandits.rare._methods.laws import Arms, Table

LENGTHS = (8, 32, 128, 512)  # numbers of first pulls


class Phased(NamedTuple):
    """Laws of the means of K arms, of their first pulls and of their later ones, for C components."""

    numbers: np.ndarray  # int64 (C,)   0: all pulls have the mean `later`; j: the first LENGTHS[j - 1] have `first`
    first: Table  # float64 (C, K)
    later: Table  # float64 (C, K)


def constant(table: Table) -> Phased:
    """Returns the laws of means that do not change, (C, K)."""
    return Phased(np.zeros(len(table.first), np.int64), table, table)


def broad(arms: Arms, best: int) -> Phased:
    """Returns broad laws: the truth, and for every length and scale a best arm whose first rewards are low."""
    dictionary, signed = laws.dictionary(arms)
    truth = laws.points(arms, arms.means)
    rows = [constant(Table(truth.first[None], truth.second[None]))]
    for number in range(1, len(LENGTHS) + 1):
        for entry in 1 + np.flatnonzero(signed < 0):
            low = Table(*(field.copy() for field in truth))
            for field, all_laws in zip(low, dictionary, strict=True):
                field[best] = all_laws[entry, best]
            rows.append(Phased(np.array([number]), *(Table(*(x[None] for x in each)) for each in (low, truth))))
    return joined(rows)


def joined(several: list[Phased]) -> Phased:
    """Joins the components of several."""
    numbers, *tables = zip(*several, strict=True)
    return Phased(np.concatenate(numbers), *(Table(*map(np.concatenate, zip(*each, strict=True))) for each in tables))


def log_ratio(arms: Arms, phased: Phased, counts: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Computes the log likelihood ratio of every run under every component, float64 (n, C)."""
    values = np.zeros((len(counts), phased.numbers.size))
    for number in np.unique(phased.numbers):
        chosen = np.flatnonzero(phased.numbers == number)
        total = (counts[:, 0], sums[:, 0])
        early = (counts[:, number], sums[:, number]) if number else tuple(np.zeros_like(x) for x in total)
        late = tuple(all_of - part for all_of, part in zip(total, early, strict=True))
        for k in range(arms.means.size):
            arm = arms._replace(means=arms.means[k])
            for table, (N, S) in ((phased.first, early), (phased.later, late)):
                law = Table(table.first[chosen, k], table.second[chosen, k])
                values[:, chosen] += laws.log_ratio(arm, law, N[:, k, None], S[:, k, None])
    return values


def draw(arms: Arms, phased: Phased, random: np.random.Generator) -> np.ndarray:
    """Draws a row of `parameters` for each component."""
    first, later = (laws.draw(arms, each, random) for each in (phased.first, phased.later))
    return parameters(later, first, phased.numbers)


def parameters(later: np.ndarray, first: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Returns draws as rows, float64 (n, 2K + 1): means of later pulls, of first pulls, and the number of a length."""
    return np.concatenate([later, np.where(numbers[:, None] > 0, first, later), numbers[:, None]], axis=1)


def fit(arms: Arms, counts: np.ndarray, sums: np.ndarray, weights: np.ndarray) -> Phased:
    """Returns the laws that explain weighted runs, without a change and for each length, (J + 1, K)."""
    plain = laws.fit(arms, counts[:, 0], sums[:, 0], weights)
    rows = [constant(Table(*(field[None] for field in plain)))]
    for number in range(1, counts.shape[1]):
        N, S = counts[:, number], sums[:, number]
        tables = (laws.fit(arms, N, S, weights), laws.fit(arms, counts[:, 0] - N, sums[:, 0] - S, weights))
        rows.append(Phased(np.array([number]), *(Table(*(field[None] for field in each)) for each in tables)))
    return joined(rows)
