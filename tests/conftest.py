"""Every test runs in 64 bit, under strict dtype promotion, on two CPU devices.

The workers of a run share a cache of compiled programs, which the next run reuses. Each worker keeps to its own cores.
The end of a run reports how many programs were compiled, and for how long.
"""

import contextlib
import functools
import gc
import importlib.util
import os
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "agg")
# A cache of compiled programs for the workers of this run and for the next run. A user's own choice holds.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "compiled")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# Noting the source of every operation takes a tenth of the time of tracing.
os.environ.setdefault("JAX_INCLUDE_FULL_TRACEBACKS_IN_LOCATIONS", "0")
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")

import jax
import pytest
from drivers.flags import known_flags

# Most of the time goes to compiling. Without optimisation XLA compiles in a third of the time, and most of the programs
# run for milliseconds. A level set in XLA_FLAGS holds: slow tests run as users run the library (see .ci/run).
FLAGS = os.environ.get("XLA_FLAGS", "").split()
if not any(flag.startswith("--xla_backend_optimization_level") for flag in FLAGS):
    # Not every XLA knows all of these. The workers of a run inherit the flags that were tried here.
    FLAGS += known_flags(
        [
            "--xla_backend_optimization_level=0",
            "--xla_llvm_disable_expensive_passes=true",
            "--xla_cpu_use_fusion_emitters=false",
            "--xla_cpu_parallel_codegen_split_count=1",
        ]
    )
os.environ["XLA_FLAGS"] = " ".join([*FLAGS, "--xla_force_host_platform_device_count=2"])


def _own_cores() -> tuple[set[int], set[int]]:
    """Returns all cores and the cores of this worker. XLA makes a thread per core that the process has at its start."""
    if not hasattr(os, "sched_getaffinity"):
        return set(), set()
    every = sorted(os.sched_getaffinity(0))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    mine = set(every[number::workers]) or set(every)  # if there are more workers than cores, all share them
    return set(every), mine


ALL_CORES, OWN_CORES = _own_cores()
if OWN_CORES:
    os.sched_setaffinity(0, OWN_CORES)

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")

# JAX sets up an MLIR context for every program that it lowers, 4 of the 20 ms of a small one. One context serves them
# all. This is not JAX's public interface; without it, programs only take longer.
with contextlib.suppress(ImportError, AttributeError):
    from jax._src.interpreters import mlir

    mlir.make_ir_context = functools.cache(mlir.make_ir_context)

ROOT = Path(__file__).resolve().parent.parent
# Compiled programs hold memory maps, and a process may have 65,530. 20,000 maps are about 2 GB of programs.
# Counting them takes milliseconds, so they are counted after every hundred programs, of some ten maps each.
MAPS, MOST_MAPS, MANY_MAPS = Path("/proc/self/maps"), 20_000, 6_000
PROGRAMS_BETWEEN = 100

# The tests import the installed `jaxbandits`. `experiments` is not installed, so it is loaded by its path, without
# putting the checkout (and its own copy of jaxbandits) on sys.path.


def _load(name: str) -> None:
    folder = ROOT / name
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


_load("experiments")


def pytest_collection_modifyitems(items):
    """Groups the tests of a file in one process, which compiles their shared programs once."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(ROOT))))


def pytest_collection_finish():
    """Freezes everything imported and collected, which lives to the end, so that the garbage collector skips it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_unconfigure():
    """Unfreezes at the end, as libraries complain of objects left over."""
    gc.unfreeze()


class Compilations:
    """Counts by file: tests, their processor seconds, programs compiled, compile seconds, and programs in the cache.

    Processes that tests start are not counted.
    """

    HEAD = ("tests", "core s", "compiled", "seconds", "cached")

    def __init__(self):
        self.file, self.table = "collecting", defaultdict(lambda: [0, 0.0, 0, 0.0, 0])
        self.new = 0  # programs since the last count of memory maps
        jax.monitoring.register_event_duration_secs_listener(self.compiled)
        jax.monitoring.register_event_listener(self.cached)

    def compiled(self, event, seconds, **_):
        if event == "/jax/core/compile/backend_compile_duration":  # also recorded for a program in the cache
            self.table[self.file][2] += 1
            self.table[self.file][3] += seconds
            self.new += 1

    def cached(self, event, **_):
        if event == "/jax/compilation_cache/cache_hits":
            self.table[self.file][2] -= 1
            self.table[self.file][4] += 1

    def add(self, table):
        for file, row in table.items():
            self.table[file] = [x + y for x, y in zip(self.table[file], row, strict=True)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        self.file, start = str(item.path.relative_to(ROOT)), time.process_time()
        row = self.table[self.file]
        try:
            return (yield)
        finally:
            row[0], row[1] = row[0] + 1, row[1] + time.process_time() - start
            self.file = "between"
            self.drop_programs(MANY_MAPS if nextitem is None or nextitem.path != item.path else MOST_MAPS)

    def drop_programs(self, most):
        """Drops compiled programs if there are more than `most` memory maps: fewer after a file than within."""
        if self.new >= PROGRAMS_BETWEEN and MAPS.exists():
            self.new = 0
            if MAPS.read_bytes().count(b"\n") > most:
                jax.clear_caches()

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["compilations"] = dict(self.table)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.add(getattr(node, "workeroutput", {}).get("compilations", {}))

    def pytest_terminal_summary(self, terminalreporter, config):
        """Prints the counts by folder; with -v, by file."""
        lines = defaultdict(lambda: [0, 0.0, 0, 0.0, 0])
        for file, row in sorted(self.table.items()):
            name = file if config.get_verbosity() > 0 else str(Path(file).parent).replace(".", "collecting")
            lines[name] = [x + y for x, y in zip(lines[name], row, strict=True)]
            lines["all"] = [x + y for x, y in zip(lines["all"], row, strict=True)]
        terminalreporter.write_sep("=", "programs compiled")
        terminalreporter.write_line("".join(f"{name:>10}" for name in self.HEAD))
        for name, row in sorted(lines.items(), key=lambda line: line[1][1]):
            cells = (f"{x:>10.1f}" if isinstance(x, float) else f"{x:>10}" for x in row)
            terminalreporter.write_line("".join(cells) + f"  {name}")


def pytest_configure(config):
    config.pluginmanager.register(Compilations(), "compilations")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Gives all cores to a test that starts processes, before its fixtures start them."""
    has_processes = item.get_closest_marker("processes") is not None and OWN_CORES != ALL_CORES
    if has_processes:
        os.sched_setaffinity(0, ALL_CORES)
    try:
        return (yield)
    finally:
        if has_processes:
            os.sched_setaffinity(0, OWN_CORES)


@pytest.fixture
def interruptible():
    """Restores Ctrl-C, which shells ignore for background jobs and their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
