"""Results of a sweep, and their summary."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from jaxbandits.checks import show
from jaxbandits.engine.results.plots import draw
from jaxbandits.engine.results.report import Table, tabulate
from jaxbandits.engine.results.selection import chosen_runs
from jaxbandits.engine.results.statistics import full_name, short_names, suggestion
from jaxbandits.engine.results.summaries import Summary, overview, require_pandas, summarise
from jaxbandits.engine.run.recording import is_curve, is_marks

if TYPE_CHECKING:
    import pandas
    import xarray
    from matplotlib.axes import Axes

    from jaxbandits.engine.results.plots.bounds import Bound, NamedBound


WELL_BUSY = 0.75  # share of busy lanes below which `advice` suggests a shorter chunk
# Smallest chunk that `advice` suggests; each chunk costs a refresh and a status check.
SHORTEST_CHUNK = 16
LONG = 10_000  # number of rounds of single pulls above which `advice` suggests a leap
FEW = 1.5  # pulls per round below which a leap is not worth its cost


class Stats(NamedTuple):
    """Counts and times of a sweep."""

    seconds: float  # wall time, without compilation
    compile_seconds: float  # wall time of tracing, checks, lowering and compiling; little if the process did it before
    pulls: int  # oracle queries of all runs together
    rounds: int  # decisions of all runs together
    occupancy: float  # share of lane-rounds that carried a run forward; the others were idle
    lanes: int  # number of lanes of one batch on one device
    devices: int  # number of devices that share a batch
    batches: int  # number of batches that advance side by side
    chunk: int  # rounds between two refreshes; the host visits a batch after one chunk or several
    bytes: int  # memory of all batches on one device: their carry, and the workspace of a call
    finished: int = 0  # number of finished runs
    visits: int = 0  # number of host visits to a batch, between two calls
    host_seconds: float = 0.0  # seconds of all visits: collecting runs, refilling lanes; without progress and store
    xla_seconds: float = 0.0  # part of `compile_seconds` in which XLA compiled; 0 if the process had all programs

    @property
    def advice(self) -> str:
        """Suggestions for a faster sweep, in sentences; "" if there are none. `sweep` logs them.

        Nothing acts on them: the chunk decides bits, and so never depends on how a sweep went.
        """
        # Runs may stop before their first round.
        if not self.finished or not self.rounds:
            return ""
        length, sentences = self.rounds / self.finished, []
        chunk = max(SHORTEST_CHUNK, 2 ** math.ceil(math.log2(length / 4)))
        if self.occupancy < WELL_BUSY and 2 * chunk <= self.chunk:
            sentences.append(
                f"Lanes were {self.occupancy:.0%} busy: runs lasted {length:.0f} rounds, and a lane is refilled only "
                f"after a chunk of {self.chunk}. chunk={chunk} would keep more of them busy."
            )
        if self.pulls == self.rounds and length > LONG:
            sentences.append(
                f"Runs lasted {length:.0f} rounds of one pull each. An algorithm with an argument leap may need far "
                "fewer rounds for the same pulls."
            )
        elif self.rounds < self.pulls < FEW * self.rounds:
            sentences.append(
                f"A round stood for {self.pulls / self.rounds:.2f} pulls. Rounds of single pulls (leap=1) cost less, "
                "and may be faster in all."
            )
        return " ".join(sentences)


def added(stats: Sequence[Stats]) -> Stats:
    """Adds up all processes of a sweep, as if they had run one after the other. Returns zeros if there are none."""
    if not stats:
        return Stats(
            seconds=0.0,
            compile_seconds=0.0,
            pulls=0,
            rounds=0,
            occupancy=0.0,
            lanes=0,
            devices=0,
            batches=0,
            chunk=0,
            bytes=0,
        )
    summed = ("seconds", "compile_seconds", "pulls", "rounds", "finished", "visits", "host_seconds", "xla_seconds")
    sums = {name: sum(getattr(s, name) for s in stats) for name in summed}
    maxima = {name: max(getattr(s, name) for s in stats) for name in ("lanes", "devices", "batches", "chunk", "bytes")}
    capacity = sum(s.rounds / s.occupancy for s in stats if s.occupancy)
    return Stats(**sums, **maxima, occupancy=sums["rounds"] / capacity if capacity else 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """Finished runs of a sweep, one entry per run, ordered by row, then seed.

    `results["pulls"]` is a column, `len(results)` the number of runs, and `print(results)` a short table. A short name
    stands for a longer one if that is unambiguous: `delta` for `task.delta`, `regret` for `curve.regret`.

    Example:
        >>> columns = {"row": [0, 0, 1, 1], "seed": [0, 1, 0, 1], "task.gap": [0.5, 0.5, 0.1, 0.1]}
        >>> columns |= {"status": [1, 1, 1, 2], "pulls": [3, 5, 60, 100]}
        >>> results = Results({name: np.asarray(x) for name, x in columns.items()}, None)
        >>> print(results)
        4 runs: 3 stopped, 1 censored
        gap  runs  censored       pulls
        0.5     2         0  4.0 +- 1.0
        0.1     2         1          60
        >>> print(len(results), results["gap"], results.where(gap=0.1)["pulls"])
        4 [0.5 0.5 0.1 0.1] [ 60 100]
    """

    columns: dict[str, np.ndarray]  # row, seed, task.NAME, status, pulls, rounds, answer, and the metrics: (runs, ...)
    stats: Stats | None  # times, counts, and the sizes that the sweep chose; None if they are not known
    root: tuple[int, ...] | None = None  # numbers of the root key; None if it is not known, or there are several

    def __getitem__(self, name: str) -> np.ndarray:
        full = full_name(name, self.columns)
        if full is None:
            known = short_names(self.columns)
            raise ValueError(
                f"name must be the name of a column, one of {known}, got {show(name)}{suggestion(name, known)}"
            )
        return self.columns[full]

    def __contains__(self, name: object) -> bool:
        return full_name(name, self.columns) is not None

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "Results must not be iterated over: columns or runs could be meant. Use results.columns for the columns, "
            "results.to_pandas().itertuples() for the runs."
        )

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __repr__(self) -> str:
        return overview(self.columns)

    def where(self, **conditions: Any) -> "Results":
        """Selects runs by the values of their columns.

        Args:
            **conditions: value or sequence of values of each scalar column, by its name (short ones as in `summary`).
                Numbers of floating-point type are compared in the type of the column, so 0.1 matches a float32 column.

        Returns:
            Results with the runs that meet all conditions. `stats` still describes the whole sweep.

        Raises:
            ValueError: there is no such column, or no run has one of the values. The message names it.

        Example:
            >>> columns = {"row": np.arange(3), "rule": np.array(["RAGE", "LinGapE", "RAGE"]), "pulls": np.arange(3)}
            >>> columns["task.delta"] = np.array([0.1, 0.1, 0.05], np.float32)
            >>> results = Results(columns, None)
            >>> results.where(rule="RAGE", delta=[0.1, 0.05])["pulls"]
            array([0, 2])
        """
        return self._of_runs(chosen_runs(self.columns, conditions))

    def summary(self, by: str | tuple[str, ...] | None = None, cluster: str | tuple[str, ...] | None = None) -> Summary:
        """Describes the runs of each group.

        Standard errors presume that the runs of a group are independent. They are not if many random instances, each
        a row, have several seeds: runs of one row share the instance. The error of a mean over instances is then given
        by `cluster="row"`, as for rules that are compared by `by="rule"` over a table of random instances.

        Args:
            by: name or names of the scalar columns whose values define the groups. `delta` stands for `task.delta`, or
                for the only other column whose name ends with `.delta`. If None, `row`, and before it `rule` where
                there are several rules, and the labels of `concatenate`d sweeps.
            cluster: name or names of the columns whose values define clusters: runs of different clusters are
                independent, runs of one need not be. If None, every run is independent of the others.

        Returns:
            Mapping of arrays with one entry for every group, which prints as a table. Groups follow the first column of
            `by`, then the next, each with its values in order of appearance:

            - the columns of `by`, values and dtypes unchanged;
            - the values of the table of tasks (`task.NAME`) that are the same in all runs of each group;
            - the counts `runs`, `finished` (stopped, or their horizon reached), `stopped`, `censored` (out of rounds)
              and `failed` (not finite, or an invalid action); with `cluster`, `clusters` of finished runs;
            - for every other real column NAME of shape (runs, ...) its mean `NAME_mean`, the mean's standard error
              `NAME_se`, and quantiles `NAME_q05` .. `NAME_q95`, all float64 (groups, ...). An array is described entry
              by entry, so the bands of a curve stand beside its marks, `curve.pulls` or `curve.rounds` (groups, G).
              Answers that are integers are left out, since a mean of the indices of arms says nothing;
            - for every boolean column NAME also the 95 % confidence interval of its probability, from `NAME_low` to
              `NAME_high`: exact (Clopper and Pearson), or with `cluster` for the effective number of runs (Korn and
              Graubard).

            Statistics are taken over the finished runs alone. They are NaN if there are none (for the standard error,
            fewer than two; with `cluster`, fewer than two clusters) or one of their values is NaN. An infinite value
            makes NaNs or infinities. A mean or a share says nothing about censored and failed runs: quote their counts
            beside it.

        Raises:
            ValueError: `by` or `cluster` names no column, one that does not exist or is not scalar, or `by` names one
                whose name the summary itself uses.

        Example:
            Four random instances with two seeds each. Seeds of one instance hardly differ, so the eight runs say as
            much about the mean over instances as four numbers.

            >>> columns = {"row": np.repeat(np.arange(4), 2), "status": np.ones(8, int)}
            >>> columns["pulls"] = np.array([10, 11, 20, 21, 30, 31, 40, 41])
            >>> results = Results(columns | {"rule": np.repeat("RAGE", 8)}, None)
            >>> print(results.summary(by="rule"))
            rule  runs        pulls
            RAGE     8  25.5 +- 4.2
            >>> print(results.summary(by="rule", cluster="row"))
            rule  runs  clusters        pulls
            RAGE     8         4  25.5 +- 6.5
        """
        return summarise(self.columns, by=by, cluster=cluster)

    def table(
        self,
        y: str | tuple[str, ...] = "pulls",
        by: str | tuple[str, ...] | None = None,
        across: str | None = None,
        cluster: str | tuple[str, ...] | None = None,
    ) -> Table:
        """Returns means as a table that prints, and has `to_markdown()` and `to_latex()`.

        A number is given as mean +- standard error, with two significant digits of the error. A boolean column, such
        as an error, is given as the share of runs with its exact 95 % interval. Both are over the finished runs; a
        cell also says how many runs were censored or failed.

        Args:
            y: name or names of the columns to show: scalar results of the runs.
            by: name or names of the columns whose values define the rows, in order of appearance. If None, the rule,
                if there are several, and the numbers of the table of tasks that vary; otherwise `row`.
            across: name of the column whose values stand side by side, such as `rule`. If None, every group has a row.
                Headings are the values of a column of strings, otherwise texts like "pulls, delta = 0.1".
            cluster: clusters within which runs are not independent, as in `summary`.

        Raises:
            ValueError: an argument names no such column, `y` a curve, or `by` or `across` a column that `y` names.

        Example:
            >>> columns = {"row": np.arange(8) // 2, "rule": np.repeat(["RAGE", "LinGapE"], 4)}
            >>> columns |= {"status": np.ones(8, int), "task.delta": np.tile([0.1, 0.1, 0.01, 0.01], 2)}
            >>> columns |= {"pulls": np.array([500, 540, 700, 750, 300, 320, 410, 400]), "wrong": np.arange(8) == 0}
            >>> results = Results(columns, None)
            >>> print(results.table(across="rule"))
            delta       RAGE       LinGapE
            0.1    520 +- 20     310 +- 10
            0.01   725 +- 25  405.0 +- 5.0
            >>> print(results.table(across="delta"))
            rule     pulls, delta = 0.1  pulls, delta = 0.01
            RAGE              520 +- 20            725 +- 25
            LinGapE           310 +- 10         405.0 +- 5.0
            >>> print(results.table(y="wrong", by="rule").to_markdown())
            | rule | wrong |
            | :-- | --: |
            | RAGE | 0.25 [0.01, 0.81] |
            | LinGapE | 0.00 [0.00, 0.60] |
        """
        return tabulate(self.columns, y=y, by=by, across=across, cluster=cluster)

    def to_latex(
        self,
        y: str | tuple[str, ...] = "pulls",
        by: str | tuple[str, ...] | None = None,
        across: str | None = None,
        cluster: str | tuple[str, ...] | None = None,
    ) -> str:
        """Returns means as a table in LaTeX, with the rules of the package booktabs. Arguments are as in `table`."""
        return self.table(y, by, across=across, cluster=cluster).to_latex()

    def to_pandas(self, columns: Sequence[str] | None = None) -> "pandas.DataFrame":
        """Returns the runs as a data frame, one row for every run, with columns in the order of `columns`.

        Args:
            columns: names of the columns to take. If None, all. `delta` stands for `task.delta` as in `summary`, and
                the frame's column is then called `delta`.

        Returns:
            DataFrame. A scalar column keeps its dtype (`status` holds the integers of `Status`). An array column has
            dtype object and holds one NumPy array for every run. In text (`to_csv`, `to_string`) pandas abridges an
            array of more than 1000 numbers: `curves_to_pandas` has one number per cell, and Parquet keeps arrays.

        Raises:
            ModuleNotFoundError: pandas is not installed.
            ValueError: there is no such column.
        """
        pandas = require_pandas("to_pandas")
        return pandas.DataFrame(
            {
                name: values if values.ndim == 1 else pandas.Series(list(values), dtype=object)
                for name, values in self._chosen(columns).items()
            }
        )

    def curves_to_pandas(self, columns: Sequence[str] | None = None) -> "pandas.DataFrame":
        """Returns the curves as a data frame, one row for every run and mark, with one number per cell.

        Args:
            columns: names of scalar columns and of curves to take, as in `to_pandas`. If None, all.

        Returns:
            DataFrame. The scalar columns are repeated for every mark: `pulls` is the total of the run, `curve.pulls`
            or `curve.rounds` the mark. A curve whose entries are arrays has one column for each of their elements,
            `curve.NAME.0`, `curve.NAME.1`, .. `to_csv` writes such a frame in full.

        Raises:
            ModuleNotFoundError: pandas is not installed.
            ValueError: there are no curves, or `columns` names something else.

        Example:
            >>> columns = {"row": [0, 0], "seed": [0, 1], "pulls": [20, 30], "curve.pulls": [[1, 10], [1, 10]]}
            >>> columns |= {"curve.regret": [[0.5, 2.0], [1.0, 2.5]]}
            >>> results = Results({name: np.asarray(x) for name, x in columns.items()}, None)
            >>> print(results.curves_to_pandas(["seed", "curve.pulls", "regret"]).to_csv(index=False))
            seed,curve.pulls,regret
            0,1,0.5
            0,10,2.0
            1,1,1.0
            1,10,2.5
            <BLANKLINE>
        """
        pandas = require_pandas("curves_to_pandas")
        marks = next((values for name, values in self.columns.items() if is_marks(name)), None)
        if marks is None:
            raise ValueError(f"results must have curves, which `record` makes, got columns {sorted(self.columns)}")
        cells: dict[str, np.ndarray] = {}
        for name, values in self._chosen(columns).items():
            if values.ndim == 1:
                cells[name] = np.repeat(values, marks.shape[1])
            elif is_curve(full_name(name, self.columns)) and values.shape[:2] == marks.shape:
                flat = values.reshape(marks.size, *values.shape[2:])
                for index in np.ndindex(*values.shape[2:]):
                    cells[".".join((name, *map(str, index)))] = flat[:, *index]
            elif columns is not None:
                raise ValueError(f"columns must name scalar columns and curves, got {name!r}")
        return pandas.DataFrame(cells)

    def to_xarray(self, columns: Sequence[str] | None = None) -> "xarray.Dataset":
        """Returns the runs as a data set with the dimensions `row` and `seed`, and `rule` where there are several.

        Args:
            columns: names of the columns to take, as in `to_pandas`.

        Returns:
            Dataset. Every column is a variable (row, seed, ...), of several rules (rule, row, seed, ...); the further
            dimensions of the array column NAME are called NAME_0, NAME_1, .. The labels of `concatenate`d sweeps are a
            dimension too, as rules are. The values of the table of tasks are coordinates along `row`, called `delta`
            for `task.delta` if that is unambiguous. If runs are missing, numbers are float64 and NaN there. The table
            of a `grid` gets dimensions of its own by `dataset.set_index(row=["delta", "gap"]).unstack("row")`.

        Raises:
            ModuleNotFoundError: xarray is not installed.
            ValueError: there is no such column, or a row and seed of a rule occur more than once.

        Example:
            >>> import jaxbandits
            >>> columns = {"row": [0, 0, 1, 1], "seed": [0, 1, 0, 1], "pulls": [3, 5, 60, 80]}
            >>> columns |= {"task.gap": [0.5, 0.5, 0.1, 0.1]}
            >>> results = jaxbandits.Results({name: np.asarray(x) for name, x in columns.items()}, None)
            >>> results.to_xarray().swap_dims(row="gap").pulls.mean("seed").sel(gap=0.1).item()
            70.0
        """
        from jaxbandits.engine.results.datasets import dataset

        return dataset(self._chosen(columns), self.columns)

    def plot(
        self,
        x: str | None = None,
        y: str = "pulls",
        by: str | tuple[str, ...] | None = None,
        *,
        kind: str | None = None,
        band: str | None = "mean",
        bound: "Bound | NamedBound | Sequence[NamedBound] | None" = None,
        log: str | None = None,
        ax: "Axes | None" = None,
    ) -> "Axes":
        """Draws the mean of a column over another one, or of a curve over its marks, with bands of 95 %.

        Lines stand in the order in which their groups appear in the runs. No two look alike: colours, dashes and
        markers tell them apart, also in black and white. Statistics are taken over the finished runs, as in `summary`.
        A triangle marks a group that lacks censored or failed runs. Up to eight distinct values of `x` are the ticks of
        their axis.

        Args:
            x: name of the scalar column to draw over, such as `delta` (see `summary` for short names); None for curves.
                Words are categories in the order in which they appear, without lines between them.
            y: name of the column to draw: real, (runs,), or (runs, marks) for curves.
            by: name or names of the scalar columns whose values each get a line; () for a single line. If None, `rule`
                where there are several rules, and the labels of `concatenate`d sweeps. Unless it is (), there is a
                warning where a line pools runs at one `x` whose tasks differ in a column of at most 20 values, or
                whose rules differ. Of two names, the first has the colours, the second the dashes and markers.
            kind: what is drawn of a scalar column. If None, lines. "box" draws boxes from quartile to quartile, side by
                side, with whiskers from 5 to 95 %, the median as a line and the mean as a marker. "error" draws shares
                of a boolean column that is true where a run is wrong, with exact 95 % intervals (Clopper and Pearson).
                On a logarithmic axis a share of zero is the upper end of its interval with an arrow, and intervals
                leave the axes a factor of ten below the smallest positive share. Over `delta`, delta is drawn as a
                line.
            band: band of lines. "mean" shades 1.96 standard errors to each side of the mean; "quantiles" draws the
                median, and shades from 5 to 95 % of the runs. If None, means without bands.
            bound: lower bound, drawn as a black line: a number; an array with a number for every distinct value of
                `x` in the order in which they appear (marks of curves in increasing order); a mapping of these values
                to numbers; or a function of one of them. ("name", bound) gives its name in the legend, by default
                "lower bound"; a list of such pairs draws several. If None, there is no such line.
            log: logarithmic axes: "", "x", "y" or "xy". If None, the axes whose values are all positive and span a
                factor of ten.
            ax: axes of matplotlib to draw into. If None, the axes of a new figure of pyplot.

        Returns:
            The axes, to be changed at will.

        Raises:
            ModuleNotFoundError: matplotlib is not installed.
            ValueError: an argument names no such column, curves of one line have different marks, or the bound lacks
                a value.

        Example:
            >>> import jax
            >>> from jaxbandits import concatenate, grid, mab, sweep
            >>> def sweep_of(rule):
            ...     def build(task, key):
            ...         instance = mab.gaussian([1.0, 1.0 - task["gap"], 0.0])
            ...         algorithm = rule(instance.problem, delta=task["delta"])
            ...         return algorithm, mab.environment(instance, algorithm)
            ...     table, key = grid(delta=[0.1, 0.01], gap=[1.0]), jax.random.key(0)
            ...     return sweep(build, table, seeds=4, key=key, max_rounds=10**5, progress=False)
            >>> results = concatenate({"TTUCB": sweep_of(mab.ttucb), "LUCB": sweep_of(mab.lucb)}, name="rule")
            >>> axes = results.plot(x="delta", bound=lambda delta: 2 * np.log(1 / delta))
            >>> print(axes.get_xlabel(), axes.get_ylabel(), sep="; ")
            delta; mean pulls until the stop
            >>> print([text.get_text() for text in axes.get_legend().get_texts()])
            ['TTUCB', 'LUCB', 'lower bound']
        """
        return draw(self.columns, x=x, y=y, by=by, kind=kind, band=band, bound=bound, log=log, ax=ax)

    def _of_runs(self, chosen: np.ndarray) -> "Results":
        """Returns some of the runs: a mask or indices."""
        return replace(self, columns={name: values[chosen] for name, values in self.columns.items()})

    def _chosen(self, names: Sequence[str] | None) -> dict[str, np.ndarray]:
        """Returns columns by the names that the caller gave them."""
        if names is None:
            return self.columns
        if isinstance(names, str) or not isinstance(names, Sequence):
            raise ValueError(f"columns must be a sequence of names, got {show(names)}")
        full_names = {name: full_name(name, self.columns) for name in names}
        for name, full in full_names.items():
            if full is None:
                known = short_names(self.columns)
                raise ValueError(f"columns must be names of {known}, got {name!r}{suggestion(name, known)}")
        return {name: self.columns[full] for name, full in full_names.items() if full is not None}


def of_tasks(results: Results, rows: int, seeds: int) -> Results:
    """Restricts results to the first rows and seeds."""
    chosen = (results.columns["row"] < rows) & (results.columns["seed"] < seeds)
    if chosen.all():
        return results
    return results._of_runs(chosen)


def root_numbers(key: dict[str, Any] | None) -> tuple[int, ...] | None:
    """Returns the numbers of a root key from its description in a store; None if it has none."""
    return None if key is None else tuple(int(number) for number in key["data"])
