"""Runs experiments, several side by side, each in a process of its own."""

import hashlib
import importlib
import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tqdm import tqdm

import jaxbandits
from experiments.report import whole
from jaxbandits.engine.sizing import cores
from jaxbandits.engine.workers import Share, end_with_parent, occupy, share_out

EXPERIMENTS = Path(__file__).parent.parent
MOST_JOBS = 8  # some hold a gigabyte
# What a server imports once for all processes: JAX, Arrow and Matplotlib would cost each of them more than a second.
IMPORTED = ("experiments.__main__", "experiments.report", "matplotlib.backends.backend_agg", "pyarrow.parquet")
# The longest at full size, of minutes each: they start first, so that none of them runs alone at the end.
LONG = (
    *("kcenter_table3", "kernel_scaling", "kcenter_table4", "kcenter_table7", "kernel_large"),
    *("kernel_information_gain", "kcenter_triangle", "fullbandit_table2"),
)


def run_all(names: Sequence[str], options: Namespace, ended: Callable[[dict[str, str]], Any]) -> dict[str, str]:
    """Runs what has not ended with this program and these options.

    Args:
        names: the experiments.
        options: of the command line.
        ended: called whenever an experiment has ended, with the failures so far.

    Returns:
        Name to last words of the experiments that failed.

    Raises:
        KeyboardInterrupt: as it came, after the experiments under way have written what is finished.
    """
    stamp = stamp_of(options)
    missing = [name for name in names if options.rerun or (record_of(options.out, name) or {}).get("stamp") != stamp]
    if not missing:
        return {}
    missing = in_order(missing)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([*IMPORTED, *(f"experiments.{name}" for name in missing)])
    jobs = min(options.jobs or default_jobs(options), len(missing))
    shares: SimpleQueue[Share] = SimpleQueue()
    for share in share_out(jobs, ()):
        shares.put(share)
    under_way = UnderWay()
    failures: dict[str, str] = {}
    bar = tqdm(total=len(names), initial=len(names) - len(missing), unit="experiment")

    def one(name: str) -> str:
        share = shares.get()
        try:
            return run_one(
                processes, name, options, share, under_way, lambda: bar.set_postfix_str(", ".join(under_way.names()))
            )
        finally:
            shares.put(share)

    with bar, ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(one, name): name for name in missing}
        try:
            for future in as_completed(futures):
                name, failure = futures[future], future.result()
                if failure:
                    failures[name] = failure
                else:
                    path = options.out / f"{name}.json"
                    text = json.dumps(json.loads(path.read_text()) | {"stamp": stamp}, indent=1)
                    whole(path, lambda path, text=text: path.write_text(text))
                bar.update()
                ended(failures)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            under_way.end()
            raise
    return failures


def in_order(names: Sequence[str]) -> list[str]:
    """The longest first, then one of each family in turn: those side by side seldom compile the same programs."""
    families: dict[str, list[str]] = {}
    for name in names:
        if name not in LONG:
            families.setdefault(name.partition("_")[0], []).append(name)
    turns = itertools.chain.from_iterable(itertools.zip_longest(*families.values()))
    return [name for name in LONG if name in names] + [name for name in turns if name is not None]


class UnderWay:
    """The processes of the experiments that run, by name; none starts after all were told to end."""

    def __init__(self) -> None:
        self._lock, self._ended = threading.Lock(), False
        self._processes: dict[str, Any] = {}

    def start(self, name: str, process: Any) -> bool:
        """Whether it was started."""
        with self._lock:
            if not self._ended:
                process.start()
                self._processes[name] = process
            return not self._ended

    def forget(self, name: str) -> None:
        """It has ended."""
        with self._lock:
            del self._processes[name]

    def names(self) -> list[str]:
        """In the order in which they started."""
        with self._lock:
            return list(self._processes)

    def end(self) -> None:
        """Tells all to end."""
        with self._lock:
            self._ended = True
            for process in self._processes.values():
                process.terminate()


def run_one(
    processes: Any,
    name: str,
    options: Namespace,
    share: Share,
    under_way: UnderWay,
    changed: Callable[[], Any],
) -> str:
    """Runs an experiment in a process of its own, which ends when this one does; its last words if it failed.

    Compiled programs hold memory maps, of which a process may have 65,530: all experiments together need more. The
    server of `processes` has opened no device of JAX's, which a process could not inherit.
    """
    log = options.out / f"{name}.log"
    process = processes.Process(target=work, args=(command(name, options), share, log))
    started = time.perf_counter()
    if not under_way.start(name, process):
        return "interrupted"
    changed()
    process.join()
    under_way.forget(name)
    changed()
    if process.exitcode == 0:
        return ""
    words = "\n".join(log.read_text().splitlines()[-20:]) if log.exists() else ""
    return f"{words}\nexit status {process.exitcode} after {time.perf_counter() - started:.0f} s; all of it: {log}"


def work(arguments: Sequence[str], share: Share, log: Path) -> None:
    """The process of one experiment. It leaves Ctrl-C to the one that started it, which has it end by SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    end_with_parent()
    with log.open("w") as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
    occupy(share)
    sys.exit(importlib.import_module("experiments.__main__").main(list(arguments)))


def command(name: str, options: Namespace) -> list[str]:
    """Arguments of `python -m experiments`."""
    words = [name, "--out", str(options.out), *["--quick"] * options.quick]
    for flag, value in (("--seeds", options.seeds), ("--lanes", options.lanes), ("--store", options.store)):
        words += [flag, str(value)] if value else []
    words += ["--workers", str(options.workers)] if options.workers > 1 else []
    return words + (data_flags(name, options) or [])


def data_flags(name: str, options: Namespace) -> list[str] | None:
    """The experiment's --data, if it has one and a folder is given; None if it cannot do without."""
    parser = ArgumentParser(add_help=False)
    getattr(importlib.import_module(f"experiments.{name}"), "add_arguments", lambda parser: None)(parser)
    takes = next((action for action in parser._actions if action.dest == "data"), None)
    folder = options.quizzes if name.startswith("fullbandit") else options.data
    if takes is None or folder is None:
        return None if takes is not None and takes.required else []
    return ["--data", str(folder)]


def default_jobs(options: Namespace) -> int:
    """One a core on a CPU, where most of the time goes into compiling, on one core; one by one on an accelerator."""
    if options.workers > 1:
        return 1
    probe = [sys.executable, "-c", "import jax; print(jax.default_backend())"]  # here it would take the GPU's memory
    backend = subprocess.run(probe, capture_output=True, text=True, check=True).stdout.split()[-1]
    return min(cores(), MOST_JOBS) if backend == "cpu" else 1


def stamp_of(options: Namespace) -> str:
    """What ran: versions, a hash of the sources, and the options that change results."""
    import jax

    digest = hashlib.sha256()
    for folder in (Path(jaxbandits.__file__).parent, EXPERIMENTS):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    chosen = {name: getattr(options, name) for name in ("quick", "seeds", "data", "quizzes")}
    return (
        f"jaxbandits {jaxbandits.__version__}, jax {jax.__version__}, sources {digest.hexdigest()[:16]}, "
        + ", ".join(f"{name}={value}" for name, value in chosen.items())
    )


def own_store(options: Namespace) -> Path:
    """Where finished runs lie if the user names no place: apart for what a store would refuse to mix."""
    told = f"{stamp_of(options)}, lanes={options.lanes}"
    return options.out / "runs" / hashlib.sha256(told.encode()).hexdigest()[:12]


def record_of(folder: Path, name: str) -> dict[str, Any] | None:
    """What an experiment wrote of its last run."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None
