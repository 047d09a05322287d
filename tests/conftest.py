"""Every test runs in 64 bit, under strict dtype promotion, on two CPU devices.

The workers of a run share compiled programs, which the next run finds again, and each keeps to its own cores. The end
of a run says how many programs were compiled, and for how long.
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
# Compiled programs, shared by the workers of a run and found again by the next one. A user's own choice holds.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "compiled")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
# Where in the source an operation comes from is noted while it is traced: a tenth of the time that takes.
os.environ.setdefault("JAX_INCLUDE_FULL_TRACEBACKS_IN_LOCATIONS", "0")
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")

import jax
import pytest
from drivers.flags import known_flags

# Most of the time goes to compiling. Without optimisation XLA compiles in a third of the time, and most of the programs
# run for milliseconds. A level in XLA_FLAGS holds: what is slow is run as users run it (see .ci/run).
FLAGS = os.environ.get("XLA_FLAGS", "").split()
if not any(flag.startswith("--xla_backend_optimization_level") for flag in FLAGS):
    # Some of these are not known to every XLA. The workers of a run find them in the environment, tried.
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
    """All cores, and those of this worker: XLA makes as many threads as a process has cores when it starts."""
    if not hasattr(os, "sched_getaffinity"):
        return set(), set()
    every = sorted(os.sched_getaffinity(0))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    own = set(every[number::workers]) or set(every)  # more workers than cores: they share them all
    return set(every), own


ALL_CORES, OWN_CORES = _own_cores()
if OWN_CORES:
    os.sched_setaffinity(0, OWN_CORES)

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")

# JAX sets up a context of MLIR for every program that it lowers: 4 of the 20 ms that a small one takes. One serves them
# all. This is not of JAX's public interface; where it is no more, programs take as long as elsewhere.
with contextlib.suppress(ImportError, AttributeError):
    from jax._src.interpreters import mlir

    mlir.make_ir_context = functools.cache(mlir.make_ir_context)

ROOT = Path(__file__).resolve().parent.parent
# Compiled programs hold memory maps, of which a process may have 65,530. 20,000 are about 2 GB of programs.
# Counting them takes milliseconds, so it is done after every hundred programs, of some ten maps each.
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
    """The tests of a file run in one process, which compiles what they share once."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(ROOT))))


def pytest_collection_finish():
    """What has been imported and collected stays to the end: the collector of garbage need not look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_unconfigure():
    """At the end it does, or libraries complain of what they find left over."""
    gc.unfreeze()


class Compilations:
    """Counts, by file: tests, their seconds of processor, programs compiled, the seconds of that, and programs found
    compiled. Of other processes, that tests start, it knows nothing.
    """

    HEAD = ("tests", "core s", "compiled", "seconds", "found")

    def __init__(self):
        self.place, self.table = "collecting", defaultdict(lambda: [0, 0.0, 0, 0.0, 0])
        self.new = 0  # programs since memory maps were counted
        jax.monitoring.register_event_duration_secs_listener(self.compiled)
        jax.monitoring.register_event_listener(self.found)

    def compiled(self, event, seconds, **_):
        if event == "/jax/core/compile/backend_compile_duration":  # also of a program that the cache has
            self.table[self.place][2] += 1
            self.table[self.place][3] += seconds
            self.new += 1

    def found(self, event, **_):
        if event == "/jax/compilation_cache/cache_hits":
            self.table[self.place][2] -= 1
            self.table[self.place][4] += 1

    def add(self, table):
        for place, row in table.items():
            self.table[place] = [x + y for x, y in zip(self.table[place], row, strict=True)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item, nextitem):
        self.place, start = str(item.path.relative_to(ROOT)), time.process_time()
        row = self.table[self.place]
        try:
            return (yield)
        finally:
            row[0], row[1] = row[0] + 1, row[1] + time.process_time() - start
            self.place = "between"
            self.drop_programs(MANY_MAPS if nextitem is None or nextitem.path != item.path else MOST_MAPS)

    def drop_programs(self, most):
        """What a file has compiled goes with it, once there is much of it; and in time, if there is too much."""
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
        """Folder by folder; with -v file by file."""
        lines = defaultdict(lambda: [0, 0.0, 0, 0.0, 0])
        for place, row in sorted(self.table.items()):
            name = place if config.get_verbosity() > 0 else str(Path(place).parent).replace(".", "collecting")
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
    """A test that starts processes gives them all cores: from before the fixtures that start them."""
    several = item.get_closest_marker("processes") is not None and OWN_CORES != ALL_CORES
    if several:
        os.sched_setaffinity(0, ALL_CORES)
    try:
        return (yield)
    finally:
        if several:
            os.sched_setaffinity(0, OWN_CORES)


@pytest.fixture
def interruptible():
    """Shells start what runs in the background with Ctrl-C ignored, and its children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
