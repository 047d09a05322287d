"""`sweep`: one call runs any number of tasks."""

from __future__ import annotations  # `help` shows the names of types, not their definitions

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jax.sharding import Mesh

from jaxbandits import checks
from jaxbandits.base import Key, PyTree
from jaxbandits.engine.cluster.shards import DEFAULT_SHARDS, spread
from jaxbandits.engine.cluster.workers import forks, require_main
from jaxbandits.engine.results.rules import RULE, of_rules
from jaxbandits.engine.results.runs import Results, of_tasks
from jaxbandits.engine.results.tables import leaves_of
from jaxbandits.engine.store import (
    begin_call,
    check_call,
    finished,
    folders_of,
    is_called_off,
    load_one,
    locked,
    make_folder,
    read_manifest,
    refuse_rules,
    seal,
    table_of,
    tidy,
    write_rules,
)
from jaxbandits.engine.sweep.description import describe_call
from jaxbandits.engine.sweep.driving import (
    Prepared,
    checked_lane,
    prepare,
    prepare_for_store,
    read_finished,
    results_of,
    run_in_memory,
    run_in_turn,
    run_into_store,
    warn_of_failures,
)
from jaxbandits.engine.sweep.layout import OpenLayout, completed
from jaxbandits.engine.sweep.preflight import preflight
from jaxbandits.engine.sweep.program import Lane
from jaxbandits.engine.sweep.progress import Bar, progress_bar
from jaxbandits.engine.sweep.tasks import LARGEST, Build, Horizon, Job, Metrics, make_job

# Errors of a store that is read-only, or whose disk is full.
UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)


def sweep(
    build: Build | Mapping[str, Build],
    tasks: PyTree = None,
    *,
    seeds: int,
    key: Key,
    max_rounds: int | None = None,
    horizon: Horizon | None = None,
    metrics: Metrics | None = None,
    lanes: int | None = None,
    chunk: int | None = None,
    scalars: bool | None = None,
    store: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    shards: int | None = None,
    mesh: Mesh | None = None,
    progress: bool = True,
) -> Results:
    """Runs every row of a table of tasks `seeds` times, by one rule or by several, and returns all runs.

    A task is a row of the table (an instance, parameters) and a seed. `build` makes the algorithm and the environment
    of a row. They are compiled once, and thousands of runs advance side by side. A run ends when its algorithm stops or
    has spent its `horizon` of pulls; one that reaches `max_rounds` is censored. `Results` has an entry per run;
    `results.table()`, `plot` and `summary` describe them. The repository has whole studies in `experiments/tutorials`:
    a first sweep (01), algorithms of your own (02, with a fixed budget 12), regret curves (03), fixed budgets (04),
    stores (08), devices and clusters (09).

    Example:
        >>> import jax
        >>> from jaxbandits import grid, linear, sweep
        >>> instance = linear.canonical(0.5)  # five arms, of which the best leads by 0.5
        >>> def build(task, key):
        ...     return linear.lingape(instance.arms, delta=task["delta"]), linear.environment(instance)
        >>> settings = {"seeds": 3, "key": jax.random.key(0), "max_rounds": 10**6, "progress": False}
        >>> results = sweep(build, grid(delta=[0.1, 0.01]), **settings)
        >>> print(results.summary()["stopped"], results["answer"])
        [3 3] [0 0 0 0 0 0]

        Two rules on the same table:

        >>> from jaxbandits.numerics import thresholds
        >>> def build_uniform(task, key):
        ...     stop = linear.likelihood_ratio(thresholds.gk16(), delta=task["delta"])
        ...     return linear.uniform(instance.arms, stop=stop), linear.environment(instance)
        >>> rules = {"LinGapE": build, "uniform": build_uniform}
        >>> results = sweep(rules, grid(delta=[0.1, 0.01]), **settings)
        >>> print(*results["rule"][[0, 5, 6, 11]], results.stats.finished)
        LinGapE LinGapE uniform uniform 12

    Args:
        build: (task, key) -> (algorithm, environment) for one row of `tasks`, or (algorithm, environment, record) with
            a `jaxbandits.record` of every run. It is traced once, for a single run, so that numbers of the row are
            traced arrays. `key` is the run's own, for random instances and for the stream of an environment; it depends
            on the root key, row and seed alone. Several rules are a dict {name: build}. They get the same keys:
            instances that `build` draws from `key` are the same for all rules, and so are the rewards of an environment
            with `stream=key` (see `jaxbandits.streams`). Without a stream, rules share random numbers in the same
            rounds but no arm's rewards: their runs are neither paired nor independent.
        tasks: pytree of arrays whose leading axis counts the rows, as from `jaxbandits.grid` and `jaxbandits.rows`. If
            None, there is a single row.
        seeds: repetitions of every row. More seeds leave the earlier runs unchanged.
        key: root key. Task (row, seed) has the stream of `task_key(key, row, seed)`, whichever lane it runs in.
        max_rounds: budget of rounds. A run that reaches it ends as `Status.MAX_ROUNDS`. If None, it is the horizon; a
            run with one pull per round reaches the horizon first.
        horizon: number of pulls after which a run is complete, and ends as `Status.HORIZON`, as in `jaxbandits.run`: an
            int for all runs, an array with one entry per row, or the name of a column of `tasks`.
        metrics: (task, outcome) -> dict of arrays, evaluated on the device for every finished run, of every rule.
        lanes: places of one batch on one device; a run that ends frees its lane for the next one. The default is at
            most 256 on a CPU, more on an accelerator, and smaller for few tasks or large states
            (`jaxbandits.engine.sweep.layout.default_lanes`). Enough batches advance side by side to keep the cores busy
            (two on an accelerator).
        chunk: rounds between two refreshes of an algorithm's cache: 256, or fewer if their noise would take more than
            256 MB, or if the budget of rounds is smaller. Lanes are refilled only at a chunk's end, so runs of less
            than a few chunks leave lanes idle: `Results.stats.advice`, which is logged, says when a shorter chunk or a
            leap would have been faster. A refreshed cache has other rounding errors, so a chunk may change a stopping
            time. Only `linear` has such caches: LinGapE, LinUCB, LinTS, the rules stopped by likelihood ratios,
            `uniform` and `fixed_weights`. All other rules make the same runs with any chunk, except `mab.tas` in 32
            bit, whose plans are compiled for a chunk's start and for its rounds, and may round differently.
        scalars: True if a round works on one vector over lanes per entry of a lane's small arrays
            (`jaxbandits.engine.scalars`). By default it is used where it is faster: on accelerators, for rounds of at
            most 12,000 scalar operations. Results are the same except that sums may round differently.
        store: folder for the finished runs, as Parquet files; `~` stands for the home folder. After a kill or an
            interruption, the same call repeats no finished run. With more seeds, or rows added at the end of the table,
            it runs what is missing; with fewer it returns only these. Several rules have a folder `rule=NAME` each
            beneath the store: a rule that is added later runs alone, and one that is left out is kept. If `lanes`,
            `chunk` or `scalars` is None, the store's value is used. `jaxbandits.engine` says more.
        executor: runs the sweep as `shards` calls on its workers (processes, Dask, MPI, SLURM):
            `jaxbandits.process_pool`, or any other one that does not fork this process. Functions and arrays travel by
            cloudpickle, together with the JAX settings of the caller. Workers write to the folder `store`. A worker
            that cannot reach it, or has no store, returns the runs of its shard, which the caller writes.
        shards: number of calls that an executor's sweep is cut into, at least the number of workers. The default is 8.
            If workers return their runs, a shard is what a lost worker loses, and what Ctrl-C waits for in a pool of
            processes. Then choose 4 to 10 shards per worker, and enough that each takes minutes rather than hours.
        mesh: devices of this process over which every batch is spread. The default is all of them. They do not
            communicate.
        progress: True for a bar with ended runs, pulls per second, occupancy of the lanes, censored and failed runs,
            and the remaining time. All rules share it.

    Returns:
        Results with `columns`, ordered by row and seed: row, seed, the numbers of the table (task.NAME, or task if the
        table is one array), status, pulls, rounds, answer (a structured answer: answer.FIELD), curves (curve.NAME, and
        their marks as curve.pulls or curve.rounds) and the metrics. If the environment has a stream, `stream` holds two
        words that identify it. With several rules, `rule` is the third column, and the rules follow one another in
        the dict's order; other columns are those that all rules have, as in `jaxbandits.concatenate`, and
        `stats` adds them up. Arrays of the table, such as arms, are not repeated for every run. They are
        `tasks[row]`, in a store `_tasks.parquet`; `metrics` may return them to put them beside each run.
        Equal arguments, lanes, chunk and kind of device (on a CPU: of processor) give equal bits, on any number of
        devices and processes and after any interruption. If runs failed (`Status.NONFINITE`,
        `Status.INVALID_ACTION`), a warning is logged that says how many, and why.

    Raises:
        ValueError: an argument is invalid; a row of `tasks` is refused by a check of the algorithm or its instance;
            observing the idle action changes the state; or the store holds another sweep. The message names the fault,
            and the rule if there are several.
        MemoryError: the device is too small for `lanes` or `chunk`.
        OSError: the store cannot be written and lacks runs, or another sweep is writing to it.
        KeyboardInterrupt: on Ctrl-C, after the current call has ended and all finished runs are in the store.
        RuntimeError: the store lacks runs although all shards have ended: there was a stop sign (a file `.stop`), or a
            network file system is late. The same call resumes from there.

    Checks: before the first round of any rule, and before anything is submitted to an executor, a small program checks
        all rows of the table, and that observing the idle action leaves the state unchanged
        (`jaxbandits.engine.sweep.preflight.preflight`). If no run is missing from the store, nothing is run or
        compiled.

    Cost: compiling takes seconds, which dominate a small study. Each rule has one program, compiled while the rules
        before it run. Within a process a program is compiled once: the same `build` with another key, other values in a
        table of as many rows, or another budget compiles nothing. From one process (or shard) to the next,
        `jax.config.update("jax_compilation_cache_dir", FOLDER)`, called first, keeps compiled programs that took at
        least `jax_persistent_cache_min_compile_time_secs` (1 s). `build` is traced in every call, so whatever it reads
        has its current value: a repeated sweep of a rule of `mab` costs .05 to .1 CPU seconds. `Results.stats` tells
        XLA's share of the compile time.
    """
    rules = _rules(build)
    arguments = {"seeds": seeds, "key": key, "max_rounds": max_rounds, "metrics": metrics, "horizon": horizon}
    job = make_job(next(iter(rules.values())), tasks, **arguments)
    jobs = {rule: job._replace(build=each) for rule, each in rules.items()}
    if ONLY not in jobs and RULE in leaves_of(job.tasks):
        raise ValueError(f"tasks must not have the name of the column of rules, got {RULE!r}. Choose another name.")
    for name, count in {"lanes": lanes, "chunk": chunk, "shards": shards}.items():
        if count is not None:
            checks.whole(name, count, least=1, most=LARGEST)
    checks.flag("progress", progress)
    if scalars is not None:
        checks.flag("scalars", scalars)
    if mesh is not None:
        checks.instance("mesh", mesh, Mesh)
    _require_executor(executor, shards=shards, mesh=mesh)
    layout = OpenLayout(lanes, chunk, scalars, mesh)
    workers = None if executor is None else Workers(executor, shards or DEFAULT_SHARDS)
    if store is None:
        results = _sweep_in_memory(jobs, layout, workers, progress=progress)
    else:
        folder = checks.path("store", store).absolute()
        results = _sweep_into_store(jobs, folder, layout, workers, progress=progress)
    joined = of_rules(results) if ONLY not in results else results[ONLY]
    warn_of_failures(joined.columns)
    return joined


ONLY = ""  # name of the rule of a sweep of one, which no rule of several can have


class Workers(NamedTuple):
    """The workers of a sweep."""

    executor: Executor
    shards: int  # number of calls that a rule is cut into


class Opened(NamedTuple):
    """A store of one rule that this call writes to."""

    folder: Path
    call: str  # name of the call
    let_others_write: Callable[[], None]  # shares the lock with workers
    lane: Lane | None = None  # its lane, once it has been traced and checked


def _rules(build: Build | Mapping[str, Build]) -> dict[str, Build]:
    """Checks the rules of a sweep, and returns them by their names; the only one of a sweep of one is `ONLY`."""
    if not isinstance(build, Mapping):
        return {ONLY: build}
    if not build:
        raise ValueError("build must have at least one rule, got an empty dict")
    for name, each in build.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"build must have names that are not empty for its rules, got {checks.show(name)}")
        checks.function(f"build[{name!r}]", each, "(task, key)")
    return dict(build)


@contextlib.contextmanager
def _named(rule: str) -> Iterator[None]:
    """Names the rule in an error, unless there is only one."""
    try:
        yield
    except Exception as error:
        if rule == ONLY:
            raise
        if type(error) is ValueError:
            raise ValueError(f"rule {rule!r}: {error}") from error
        error.add_note(f"The error is in rule {rule!r}.")
        raise


def _prepared(rule: str, compile_it: Callable[[], Prepared]) -> Prepared:
    """Compiles a rule; an error names it."""
    with _named(rule):
        return compile_it()


def _sweep_in_memory(
    jobs: Mapping[str, Job], layout: OpenLayout, workers: Workers | None, *, progress: bool
) -> dict[str, Results]:
    """Runs all rules without a store."""
    rules, lanes = list(jobs), []
    # All rules are checked before the first round of any.
    for rule, job in jobs.items():
        with _named(rule):
            if workers is None:
                lanes.append(checked_lane(job, layout, ahead=not lanes))
            else:
                preflight(job)
    with progress_bar(sum(job.total for job in jobs.values()), show=progress) as bar:

        def run(n: int, prepared: Prepared, is_over: Callable[[], bool]) -> Results:
            bar.begin(rules[n])
            return results_of(prepared.job, *run_in_memory(prepared, bar.report, is_over))

        def run_by_workers(rule: str, job: Job, workers: Workers) -> Results:
            bar.begin(rule)
            parts, stats = spread(job, None, layout, call="", **workers._asdict(), report=bar.report)
            return results_of(job, {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}, stats)

        if workers is not None:
            return {rule: run_by_workers(rule, job, workers) for rule, job in jobs.items()}
        prepare_all = [
            partial(prepare, job, np.arange(job.total), layout, known=lane)
            for job, lane in zip(jobs.values(), lanes, strict=True)
        ]
        named = [partial(_prepared, *pair) for pair in zip(rules, prepare_all, strict=True)]
        return dict(zip(rules, run_in_turn(named, run), strict=True))


def _sweep_into_store(
    jobs: Mapping[str, Job], folder: Path, layout: OpenLayout, workers: Workers | None, *, progress: bool
) -> dict[str, Results]:
    """Runs what a store lacks, and returns the runs of this call."""
    with contextlib.ExitStack() as stack:
        names, folders = {}, {ONLY: folder}
        try:
            if ONLY in jobs:
                refuse_rules(folder)
            else:
                names = folders_of(folder, jobs)
                folders = {rule: folder / names[rule] for rule in jobs}
                make_folder(folder)
                stack.enter_context(locked(folder, "store"))
                # Once more under the lock: another call may have added rules.
                names = folders_of(folder, jobs)
                folders = {rule: folder / names[rule] for rule in jobs}
            opened = {rule: _open(stack, folders[rule], job, layout) for rule, job in jobs.items()}
            if ONLY not in jobs:
                write_rules(folder, names)
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            # The first error says more: the store cannot be written.
            with contextlib.suppress(OSError):
                read = {rule: read_finished(job, folders[rule], layout) for rule, job in jobs.items()}
                results = {rule: each for rule, each in read.items() if each is not None}
                if len(results) == len(jobs):
                    return results
            raise

        def stored(rule: str) -> int:
            return int(finished(folders[rule], rows=jobs[rule].rows, seeds=jobs[rule].seeds).sum())

        total = sum(job.total for job in jobs.values())
        before = {rule: stored(rule) for rule in jobs}
        # All rules are checked before the first round of any.
        unfinished = [rule for rule, job in jobs.items() if before[rule] < job.total]
        for rule in unfinished:
            with _named(rule):
                if workers is None:
                    settled = completed(layout, read_manifest(folders[rule]))
                    lane = checked_lane(jobs[rule], settled, ahead=rule == unfinished[0])
                    opened[rule] = opened[rule]._replace(lane=lane)
                else:
                    preflight(jobs[rule])
        done = sum(before.values())
        try:
            with progress_bar(total, done=done, show=progress and done < total) as bar:
                _run_into_stores(jobs, opened, layout, workers, bar)
        except BaseException as error:
            with contextlib.suppress(OSError):  # a full disk may be the cause
                for each in folders.values():
                    seal(each)
            if not isinstance(error, KeyboardInterrupt):
                raise
            raise KeyboardInterrupt(
                f"{sum(map(stored, jobs))} of {total} runs are finished and stored in {folder}; the same call goes on "
                "from there"
            ) from None
        for each in folders.values():
            seal(each)
        if (count := sum(map(stored, jobs))) < total:
            raise RuntimeError(f"{count} of {total} runs are in {folder}: the same call goes on from there")
        return {rule: of_tasks(load_one(folders[rule]), job.rows, job.seeds) for rule, job in jobs.items()}


def _open(stack: contextlib.ExitStack, folder: Path, job: Job, layout: OpenLayout) -> Opened:
    """Locks the store of one rule, and requires that it has the arguments of this call."""
    make_folder(folder)
    let_others_write = stack.enter_context(locked(folder, "store"))
    check_call(folder, describe_call(job, layout), table_of(job.tasks))
    tidy(folder)
    return Opened(folder, begin_call(folder), let_others_write)


def _run_into_stores(
    jobs: Mapping[str, Job], opened: Mapping[str, Opened], layout: OpenLayout, workers: Workers | None, bar: Bar
) -> None:
    """Runs what the stores of all rules lack."""
    if workers is not None:
        for rule, job in jobs.items():
            store = opened[rule]
            bar.begin(rule)
            store.let_others_write()
            spread(job, store.folder, layout, call=store.call, **workers._asdict(), report=bar.report)
        return
    rules = list(jobs)

    def run(n: int, prepared: Prepared, is_over: Callable[[], bool]) -> None:
        store = opened[rules[n]]
        if prepared.program is not None:
            bar.begin(rules[n])
        run_into_store(prepared, store.folder, bar.report, partial(is_called_off, store.folder, store.call), is_over)

    prepare_all = [
        partial(prepare_for_store, job, opened[rule].folder, layout, known=opened[rule].lane)
        for rule, job in jobs.items()
    ]
    run_in_turn([partial(_prepared, *pair) for pair in zip(rules, prepare_all, strict=True)], run)


def _require_executor(executor: Executor | None, *, shards: int | None, mesh: Mesh | None) -> None:
    """Raises `ValueError` unless these arguments are compatible."""
    if executor is None:
        if shards is not None:
            raise ValueError(f"shards must be None without an executor, on which they are calls, got {shards}")
        return
    if not callable(getattr(executor, "submit", None)):
        raise ValueError(f"executor must have a method submit, as in concurrent.futures, got {executor!r}")
    require_main()
    if forks(executor):
        raise ValueError(
            "executor must not fork: the copies of a process in which JAX runs lock up. Use "
            "jaxbandits.process_pool(workers), or make the ProcessPoolExecutor with "
            'mp_context=multiprocessing.get_context("spawn")'
        )
    if mesh is not None:
        raise ValueError(f"mesh must be None with an executor, whose workers use all their devices, got {mesh}")
