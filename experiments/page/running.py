"""Runs of experiments, several side by side: a pool of processes, one experiment per process."""

import contextlib
import hashlib
import io
import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from tqdm import tqdm

from experiments.__main__ import main, parser_of
from experiments.settings import Settings, settings_of, stamp
from jaxbandits.engine.cluster.workers import Share, end_with_parent, occupy
from jaxbandits.engine.sweep.layout import cores

MOST_JOBS = 8  # some hold a gigabyte
# Modules that a server imports once for all processes: JAX, Arrow and Matplotlib cost more than a second each time.
IMPORTED = ["experiments.page.running", "experiments.figures", "matplotlib.backends.backend_agg", "pyarrow.parquet"]
# Experiments of several minutes at full size: they start first, so that none of them runs alone at the end.
LONG = (
    *("kcenter_table3", "kernel_scaling", "kcenter_table4", "kcenter_table7", "kernel_large"),
    *("kernel_information_gain", "kcenter_triangle", "fullbandit_table2"),
)


def run_all(names: Sequence[str], options: Namespace, ended: Callable[[dict[str, str]], Any]) -> dict[str, str]:
    """Runs the experiments that have not ended with this program and these options.

    Every experiment has a process of its own: compiled programs hold memory maps, of which a process may have 65,530,
    and all experiments together need more. A KeyboardInterrupt is raised again once the experiments under way have
    written their finished runs.

    Args:
        names: of the experiments.
        options: of the report.
        ended: called with the failures so far whenever an experiment has ended.

    Returns:
        The last lines of output of every experiment that failed, by its name.
    """
    missing = in_order([name for name in names if options.rerun or not is_up_to_date(name, options)])
    jobs = min(options.jobs or default_jobs(options), len(missing))
    failures: dict[str, str] = {}
    with tqdm(total=len(names), initial=len(names) - len(missing), unit="experiment") as bar:
        while missing:
            with pool(jobs) as workers:
                tasks = {name: (command(name, options), log_of(name, options)) for name in missing}
                futures = {workers.submit(work, *task): name for name, task in tasks.items()}
                try:
                    for future in as_completed(futures):
                        name, failure = futures[future], future.result()
                        missing.remove(name)
                        failures |= {name: failure} if failure else {}
                        bar.update()
                        bar.set_postfix_str(f"ended: {name}")
                        ended(failures)
                except BrokenProcessPool:  # a process was killed; one job at a time finds it
                    if jobs == 1:
                        failures[missing[0]] = f"its process was killed; full log: {log_of(missing.pop(0), options)}"
                    jobs = 1
                except KeyboardInterrupt:
                    workers.shutdown(wait=False, cancel_futures=True)
                    for process in multiprocessing.active_children():
                        process.terminate()
                    raise
    return failures


def pool(jobs: int) -> ProcessPoolExecutor:
    """Creates a pool of processes that share out the cores, each for one experiment."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    environment = {"NPROC": str(max(1, cores() // jobs)), "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{0.9 / jobs:.3f}"}
    share = Share(None, environment, None)
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=settle, initargs=(share,), max_tasks_per_child=1)


def settle(share: Share) -> None:
    """Sets up a new process. It ignores Ctrl-C; the process that started it ends it by SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    occupy(share)


def work(arguments: Sequence[str], log: Path) -> str:
    """Runs one experiment in a process of its own. Returns its last lines of output if it failed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with log.open("w") as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
    try:
        status = main(list(arguments))
    except SystemExit as refused:  # argparse has printed the reason
        status = refused.code
    except BaseException:
        traceback.print_exc()
        status = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(ValueError):
            stream.flush()
    return "" if status == 0 else "\n".join([*log.read_text().splitlines()[-20:], f"full log: {log}"])


def in_order(names: Sequence[str]) -> list[str]:
    """Sorts names: the longest first, then families in turn, so that neighbours seldom compile the same programs."""
    families: dict[str, list[str]] = {}
    for name in names:
        if name not in LONG:
            families.setdefault(name.partition("_")[0], []).append(name)
    turns = itertools.chain.from_iterable(itertools.zip_longest(*families.values()))
    return [name for name in LONG if name in names] + [name for name in turns if name is not None]


def command(name: str, options: Namespace) -> list[str]:
    """Builds the arguments of `python -m experiments`."""
    words = [name, "--out", str(options.out), "--store", str(options.store), *["--quick"] * options.quick]
    for flag, value in (("--seeds", options.seeds), ("--lanes", options.lanes)):
        words += [flag, str(value)] if value else []
    words += ["--workers", str(options.workers)] if options.workers > 1 else []
    return words + (data_flags(name, options) or [])


def data_flags(name: str, options: Namespace) -> list[str] | None:
    """Returns the flags for the experiment's --data, if it has one; None if it needs a folder and none is given."""
    takes = next((action for action in parser_of(name)._actions if action.dest == "data"), None)
    folder = options.quizzes if name.startswith("fullbandit") else options.data
    if takes is None or folder is None:
        return None if takes is not None and takes.required else []
    return ["--data", str(folder)]


def default_jobs(options: Namespace) -> int:
    """Returns one job per core on a CPU, where compiling takes most of the time on one core; one on an accelerator."""
    if options.workers > 1:
        return 1
    # In this process JAX would take the GPU's memory.
    probe = [sys.executable, "-c", "import jax; print(jax.default_backend())"]
    backend = subprocess.run(probe, capture_output=True, text=True, check=True).stdout.split()[-1]
    return min(cores(), MOST_JOBS) if backend == "cpu" else 1


def is_up_to_date(name: str, options: Namespace) -> bool:
    """True if the experiment has ended with this program and these options, in a report or by itself."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            settings = settings_of(parser_of(name).parse_args(command(name, options)))
    except SystemExit:  # missing data, for instance: its own process reports it
        return False
    return (record_of(options.out, name) or {}).get("stamp") == stamp(name, settings)


def own_store(options: Namespace) -> Path:
    """Returns the default folder of finished runs: one for each set of options that a store would refuse to mix."""
    extra = {"quizzes": options.quizzes, "lanes": options.lanes}
    text = stamp("report", Settings(options.quick, options.seeds, data=options.data, extra=extra))
    return options.out / "runs" / hashlib.sha256(text.encode()).hexdigest()[:12]


def log_of(name: str, options: Namespace) -> Path:
    return options.out / f"{name}.log"


def record_of(folder: Path, name: str) -> dict[str, Any] | None:
    """Reads the record that an experiment wrote at its last run; None if there is none."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None
