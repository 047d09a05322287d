"""Every test runs in 64 bit, under strict dtype promotion, on two CPU devices."""

import importlib.util
import os
import signal
import sys
from pathlib import Path

os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2").strip()
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "agg")
# Compiled programs, shared by the workers of a run and found again by the next one. A user's own choice holds.
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "compiled")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_dtype_promotion", "strict")

ROOT = Path(__file__).resolve().parent.parent
# Compiled programs hold memory maps, of which a process may have 65,530; these are about 2 GB of programs.
MAPS, MOST_MAPS = Path("/proc/self/maps"), 20_000

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


@pytest.fixture(autouse=True)
def few_memory_maps():
    """Drops compiled programs in time."""
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()


@pytest.fixture
def interruptible():
    """Shells start what runs in the background with Ctrl-C ignored, and its children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
