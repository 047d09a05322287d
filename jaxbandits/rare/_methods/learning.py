"""Learning of a mixture from runs: one component for each way that was seen, and shares by likelihood and by cost.

Population Monte Carlo: every round of runs is drawn from the mixture that the rounds before it taught. Nothing here
enters the estimate, which is unbiased for any mixture that is fixed before its runs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from jaxbandits.rare._methods import laws, linear, phases
from jaxbandits.rare._methods.laws import Table
from jaxbandits.rare._methods.linear import Linear, Normals
from jaxbandits.rare._methods.mixture import Mixture, log_mean
from jaxbandits.rare._methods.phases import Phased

FEWEST = 4  # runs in the event that make a cell a component
FEWEST_EQUAL = 5  # runs from which a cell has an equal part of the training weight
EFFECTIVE = 12  # effective number of runs that tempering aims at
STEPS = 60
BROAD_AT_START, BROAD_KEPT, START_KEPT = 0.2, 0.1, 0.1
ROUNDS_OF_A_CHUNK = 100  # rounds that a lane is busy with a run of no length


class Runs(NamedTuple):
    """Ends of runs, in 64 bit on the host."""

    counts: np.ndarray  # float64 (n, K)   pulls of each arm; if means change (n, J + 1, K), see `phases`
    sums: np.ndarray  # as `counts`   sums of their rewards
    pulls: np.ndarray  # int64 (n,)
    rounds: np.ndarray  # int64 (n,)
    answers: np.ndarray  # int64 (n,) or (n, m)
    is_in: np.ndarray  # bool (n,)   the event holds
    cells: np.ndarray  # int64 (n, 2)   answer's number and octave, by which ways are told apart
    is_censored: np.ndarray  # bool (n,)


class Past(NamedTuple):
    """Rounds of one learning so far."""

    mixtures: tuple[Mixture, ...]  # the mixture of each round
    rounds: tuple[Runs, ...]  # the runs of each round


def joined(rounds: tuple[Runs, ...]) -> Runs:
    """Joins the runs of several rounds."""
    return Runs(*(np.concatenate(fields) for fields in zip(*rounds, strict=True)))


def log_past(past: Past, runs: Runs) -> np.ndarray:
    """Computes the log ratio of runs under the mean of the rounds' mixtures, by their numbers of runs: float64 (n,)."""
    sizes = np.array([each.pulls.size for each in past.rounds], np.float64)
    values = np.stack([mixture.log_ratio(runs.counts, runs.sums) for mixture in past.mixtures], axis=1)
    return log_mean(values, sizes / sizes.sum())


def next_mixture(first: Mixture, past: Past) -> Mixture:
    """Learns the mixture of the next round.

    Args:
        first: the broad mixture.
        past: the rounds so far, of which the first used `first`.

    Source: Cappe, Guillin, Marin and Robert (2004), Population Monte Carlo; He and Owen (2014), Optimal mixture weights
    in multiple importance sampling, for the shares by cost. Cells, and the numbers above, are ours.
    """
    runs = joined(past.rounds)
    base = log_past(past, runs)
    inside = np.flatnonzero(runs.is_in)
    if inside.size == 0:
        return first
    log_u = -base[inside]
    cells = cells_of(runs.cells[inside])
    tables = [
        _fit(first, runs.counts[inside[cell]], runs.sums[inside[cell]], _tempered(log_u[cell]))
        for cell in cells
        if cell.size >= FEWEST
    ]
    if not tables:
        return first
    broad = first.shares.size
    mixture = with_components(first, tables)
    values = mixture.log_components(runs.counts, runs.sums)
    number = mixture.shares.size - broad
    start = np.concatenate(
        [BROAD_AT_START * first.shares / first.shares.sum(), np.full(number, (1 - BROAD_AT_START) / number)]
    )
    events = relative(values[inside])
    by_likelihood = _by_likelihood(events, _training(log_u, cells), start, broad)
    costs = _costs(values, base, runs.rounds)
    by_cost = _by_cost(events, log_u, cells=cells, costs=costs, start=by_likelihood)
    return mixture._replace(shares=(by_likelihood + by_cost) / 2)


def cells_of(labels: np.ndarray) -> list[np.ndarray]:
    """Returns the indices of the runs in each cell, in the order of the labels, int64 (n, 2)."""
    _, cell = np.unique(labels, axis=0, return_inverse=True)
    cell = cell.ravel()
    return [np.flatnonzero(cell == number) for number in range(cell.max(initial=-1) + 1)]


def with_components(first: Mixture, tables: Sequence[Table | Normals | Phased]) -> Mixture:
    """Returns the broad mixture with further components (C, K), whose shares are 0 so far."""
    components = jax.tree.map(lambda *fields: np.concatenate(fields), first.components, *tables)
    number = sum(len(jax.tree.leaves(each)[0]) for each in tables)
    return first._replace(components=components, shares=np.concatenate([first.shares, np.zeros(number)]))


def _fit(first: Mixture, counts: np.ndarray, sums: np.ndarray, weights: np.ndarray) -> Table | Normals | Phased:
    """Returns the component that explains weighted runs; if means may change, one more for each length."""
    if isinstance(first.truth, Linear):
        return linear.fit(first.truth, counts, sums, weights)
    if first.is_phased:
        return phases.fit(first.truth, counts, sums, weights)
    return Table(*(field[None] for field in laws.fit(first.truth, counts, sums, weights)))


def _normalised(log_weights: np.ndarray) -> np.ndarray:
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def _tempered(log_u: np.ndarray) -> np.ndarray:
    """Returns the weights u^k, normalised, with the largest k <= 1 that leaves enough effective runs."""
    goal = min(EFFECTIVE, log_u.size / 2)

    def effective(power: float) -> float:
        return float(1 / (_normalised(power * log_u) ** 2).sum())

    if effective(1.0) >= goal:
        return _normalised(log_u)
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if effective(middle) >= goal else (low, middle)
    return _normalised(low * log_u)


def _clipped(log_weights: np.ndarray, cells: list[np.ndarray]) -> np.ndarray:
    """Returns weights relative to the largest, each at most its cell's sum over the root of the cell's runs."""
    weights = np.exp(log_weights - log_weights.max())
    for cell in cells:
        weights[cell] = np.minimum(weights[cell], weights[cell].sum() / np.sqrt(cell.size))
    return weights


def _training(log_u: np.ndarray, cells: list[np.ndarray]) -> np.ndarray:
    """Returns the weights of the runs for the likelihood: half by the estimate, half equal over cells."""
    total = np.exp(log_u - log_u.max())
    equal = sum(cell.size >= FEWEST_EQUAL for cell in cells)
    weights = np.zeros_like(total)
    for cell in cells:
        # Weights of a rare cell may all round to 0 beside the largest of all.
        clipped = _clipped(log_u[cell], [np.arange(cell.size)])
        share = total[cell].sum() / total.sum()
        part = share if not equal else share / 2 + (cell.size >= FEWEST_EQUAL) / (2 * equal)
        weights[cell] = part * clipped / clipped.sum()
    return weights / weights.sum()


class Relative(NamedTuple):
    """Likelihood ratios of runs under every component, relative to the largest of each run."""

    top: np.ndarray  # float64 (n,)   log of the largest ratio
    ratios: np.ndarray  # float64 (n, C)   at most 1

    def under(self, shares: np.ndarray) -> np.ndarray:
        """Computes the ratio of every run under the mixture of these shares, over its largest, float64 (n,)."""
        return self.ratios @ shares


def relative(values: np.ndarray) -> Relative:
    """Returns log ratios (n, C) as ratios. With them a step of the shares takes no exponential."""
    top = values.max(axis=1)
    return Relative(top, np.exp(values - top[:, None]))


def _by_likelihood(runs: Relative, weights: np.ndarray, start: np.ndarray, broad: int) -> np.ndarray:
    shares = start
    for _ in range(STEPS):
        step = shares * ((weights / runs.under(shares)) @ runs.ratios)
        shares = (1 - START_KEPT) * step / step.sum() + START_KEPT * start
    total = shares[:broad].sum()
    if total >= BROAD_KEPT:
        return shares
    return np.concatenate(
        [shares[:broad] * (BROAD_KEPT / total), shares[broad:] * ((1 - BROAD_KEPT) / shares[broad:].sum())]
    )


def _costs(values: np.ndarray, base: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    """Computes the mean number of rounds of each component's runs, and of a chunk: float64 (C,)."""
    ratios = np.exp(np.minimum(values - base[:, None], 700))
    totals = ratios.sum(axis=0)
    means = (rounds @ ratios) / np.maximum(totals, 1e-300)
    return np.where(totals > 1e-6, means, rounds.mean()) + ROUNDS_OF_A_CHUNK


def _by_cost(
    runs: Relative, log_u: np.ndarray, *, cells: list[np.ndarray], costs: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Minimises the second moment times the cost."""
    shares = start
    for _ in range(STEPS):
        under = runs.under(shares)
        weights = _clipped(log_u - np.log(under) - runs.top, cells)
        step = shares * np.sqrt((weights / under) @ runs.ratios / costs)
        shares = (1 - START_KEPT) * step / step.sum() + START_KEPT * start
    return shares
