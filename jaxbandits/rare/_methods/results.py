"""The result of an estimate by weights, and its parts."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxbandits.checks import require
from jaxbandits.rare._methods.diagnostics import Weighed, mean_over, pareto_k
from jaxbandits.rare._methods.learning import cells_of
from jaxbandits.rare._methods.mixture import Mixture

SHOWN = 1e-3  # smallest share of the estimate that the text of the parts shows


class Events(NamedTuple):
    """Runs in which the event happened."""

    answers: np.ndarray  # int64 (n,), or (n, m) for answers that are vectors
    pulls: np.ndarray  # int64 (n,)   the stopping time
    counts: np.ndarray  # int64 (n, K)   pulls of each arm
    sums: np.ndarray  # float64 (n, K)   sums of their rewards, in units of reward
    weights: np.ndarray  # float64 (n,)   the estimate is their sum over the runs of each learning, averaged
    learning: np.ndarray  # int64 (n,)   number of the learning whose mixture drew the run
    cells: np.ndarray  # int64 (n, 2)   number of the answer, and octave of T; for tails of the best arm's pulls
    first_counts: np.ndarray  # int64 (n, 4, K)   pulls of an arm among its first 8, 32, 128, 512; else (n, 0, K)
    first_sums: np.ndarray  # float64 (n, 4, K)   sums of their rewards; (n, 0, K) where means do not change


class Parts(NamedTuple):
    """Parts of an estimate, one for each answer and octave, as arrays (P,).

    Its text is a table of the parts with at least a thousandth of the estimate.
    """

    answer: np.ndarray  # int64 (P,), or (P, m)
    first: np.ndarray  # int64 (P,)   smallest T of the octave; for tails smallest number of pulls of the best arm
    last: np.ndarray  # int64 (P,)   largest one
    estimate: np.ndarray  # float64 (P,)
    se: np.ndarray  # float64 (P,)
    runs: np.ndarray  # int64 (P,)   runs with the event
    pareto_k: np.ndarray  # float64 (P,)   shape of the tail of the weights; NaN for few runs

    def __str__(self) -> str:
        """Returns the parts that matter as a table."""
        lines = [f"{'answer':>8} {'octave':>17} {'estimate':>10} {'se':>9} {'runs':>6} {'k':>6}"]
        is_small = self.estimate < SHOWN * self.estimate.sum()
        for answer, first, last, estimate, se, runs, k in zip(*(field[~is_small] for field in self), strict=True):
            octave = f"{first} to {last}"
            lines.append(f"{answer!s:>8} {octave:>17} {estimate:10.2e} {se:9.1e} {runs:6d} {k:6.2f}")
        if is_small.any():
            lines.append(f"and {is_small.sum()} parts of less than {SHOWN:g} of the estimate")
        return "\n".join(lines)


@dataclass(frozen=True)
class RareResult:
    """Estimate of a small probability, with everything that speaks against it.

    It counts the event within the budget of rounds: a censored run is in no error. The rest is at most the probability
    of reaching the budget, which `tail_probability` estimates.
    """

    estimate: float  # the probability
    se: float  # its standard error
    runs: int  # runs of the estimate, over all learnings
    learning_runs: int  # runs of the learnings, which the estimate does not use
    effective: float  # effective number of runs in the event, (sum w)^2 / sum w^2
    share: float  # largest weight's part of the estimate
    pareto_k: float  # shape of the tail of the weights; NaN for few runs
    alone: tuple[Weighed, ...]  # the estimate of each learning by its own mixture
    broad: Weighed  # the estimate of the first rounds, whose mixtures are broad
    mixture: Mixture  # the mixture of all learnings together
    censored: int  # runs of the estimate that reached the budget
    seconds: float  # wall time, without the time that an earlier call put into the store
    trust: str | tuple[str, ...]  # "ok", or warnings
    events: Events  # runs in the event
    sizes: tuple[int, ...]  # runs of each learning

    @property
    def relative_error(self) -> float:
        """Computes the standard error over the estimate."""
        return self.se / self.estimate if self.estimate > 0 else float("inf")

    @property
    def relative_variance(self) -> float:
        """Computes the relative variance of one run; a relative error of 10 % takes 100 times as many runs."""
        return self.runs * self.relative_error**2

    def parts(self) -> Parts:
        """Splits the estimate by answer and octave of the stopping time; for tails, of the best arm's pulls."""
        events, rows = self.events, []
        for cell in cells_of(events.cells):
            octave = int(events.cells[cell[0], 1])
            ends = (2**octave, 2 ** (octave + 1) - 1) if octave >= 0 else (0, 0)
            estimate, se = self._mean_of(cell)
            k = pareto_k(events.weights[cell])
            rows.append((events.answers[cell[0]], *ends, estimate, se, cell.size, k))
        if not rows:
            return Parts(*(np.zeros(0) for _ in Parts._fields))
        return Parts(*(np.array(column) for column in zip(*rows, strict=True)))

    def part(self, where: np.ndarray) -> Weighed:
        """Returns the part of the estimate of some of its runs, such as `result.events.pulls == 4`.

        Args:
            where: bool (n,), one entry per run of `events`.

        Raises:
            ValueError: `where` is no such array.
        """
        where = np.asarray(where)
        is_mask = where.dtype == bool and where.shape == self.events.weights.shape
        require(is_mask, "where", f"be bool of shape {self.events.weights.shape}", where)
        chosen = np.flatnonzero(where)
        return Weighed(*self._mean_of(chosen), pareto_k(self.events.weights[chosen]))

    def quantiles(self, q: float | np.ndarray | tuple[float, ...] = (0.1, 0.5, 0.9)) -> np.ndarray:
        """Computes quantiles of the number of pulls, given the event.

        Args:
            q: (Q,) or (), in [0, 1].

        Returns:
            int64, of the shape of `q`: the smallest T with at least this part of the estimate at T or before.

        Raises:
            ValueError: `q` leaves [0, 1].
        """
        levels = np.asarray(q, np.float64)
        require((levels >= 0) & (levels <= 1), "q", "lie in [0, 1]", levels)
        order = np.argsort(self.events.pulls, kind="stable")
        upto = np.cumsum(self.events.weights[order])
        index = np.searchsorted(upto, levels * upto[-1], side="left")
        return self.events.pulls[order][np.minimum(index, upto.size - 1)]

    def _mean_of(self, chosen: np.ndarray) -> tuple[float, float]:
        weights, learning = self.events.weights[chosen], self.events.learning[chosen]
        split = [weights[learning == number] for number in range(len(self.sizes))]
        return mean_over(split, list(self.sizes))

    def __str__(self) -> str:
        """Returns the estimate and the warnings."""
        text = f"{self.estimate:.3g} +- {self.se:.2g} ({self.runs} runs)"
        return text if self.trust == "ok" else "\n".join([text, *self.trust])


__all__ = ["Events", "Parts", "RareResult"]
