"""A sweep that is killed repeatedly loses no run, duplicates none, and ends with the same results."""

import os
import queue
import runpy
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from engine.toys import same_bits

import jaxbandits

SCRIPT = """
import importlib, logging, sys

import jax
import jax.numpy as jnp
import jaxbandits
from jaxbandits import linear

instance = linear.soare(5)


def build(delta, key):
    return linear.lingape(instance.arms, delta=delta, leap=65536), linear.environment(instance)


def metrics(delta, outcome):
    return {"theta": outcome.state.theta, "counts": outcome.state.counts}


arguments = {
    "build": build,
    "tasks": jnp.asarray([0.3, 0.05, 0.01]),
    "seeds": 80,
    "key": jax.random.key(11),
    "max_rounds": 100_000,
    "metrics": metrics,
    "lanes": 4,
    "chunk": 32,
    "progress": False,
}

if __name__ == "__main__":
    # No pause between two parts, so many kills fall into the writing of one.
    importlib.import_module("jaxbandits.engine.store.writing").FIRST_PAUSE = 0.0
    logging.basicConfig(stream=sys.stdout, format="%(message)s")
    logging.getLogger("jaxbandits").setLevel("DEBUG")
    print("imported", flush=True)
    jaxbandits.sweep(**arguments, store=sys.argv[1])
"""
RUNS = 240

# The child says "imported" before it does anything, "compiled" when it begins to drive and "wrote" for every part. It
# is killed at a random moment after the first such line, at most so many seconds later.
MOMENTS = (("imported", 2.5), ("compiled", 0.2), ("wrote", 0.2))


def start(script, store):
    """Starts the sweep in its own process; returns it with a queue of its printed lines, ended by None."""
    environment = os.environ | {
        "XLA_FLAGS": os.environ["XLA_FLAGS"] + " --xla_force_host_platform_device_count=1",  # this process has two
        "NPROC": "1",  # one batch, so that no machine finishes before the last kill
        "JAX_ENABLE_X64": "1",
        "JAX_NUMPY_DTYPE_PROMOTION": "strict",
        "JAX_COMPILATION_CACHE_DIR": str(script.parent / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    process = subprocess.Popen(
        [sys.executable, str(script), str(store)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    )
    lines = queue.Queue()

    def read():
        with process.stdout as stdout:
            for line in stdout:
                lines.put(line.decode())
        lines.put(None)

    threading.Thread(target=read).start()
    return process, lines


def wait_for(lines, word):
    """Reads lines until one has this word."""
    read = []
    while not read or word not in read[-1]:
        read.append(lines.get(timeout=120))
        assert read[-1] is not None, "".join(read[:-1])


def count(store):
    """Returns the stored runs."""
    return len(jaxbandits.load(store).columns["row"]) if (store / "_manifest.json").exists() else 0


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("kills", [(1, 1, 3), pytest.param((2, 3, 7), marks=pytest.mark.thorough)])
def test_sweep_killed_many_times_equals_an_uninterrupted_one(tmp_path, kills):
    script, store = tmp_path / "script.py", tmp_path / "store"
    script.write_text(SCRIPT)
    random = np.random.default_rng(5)
    stored = [0]
    for moment in random.permutation(np.repeat(range(3), kills)):
        word, most = MOMENTS[moment]
        process, lines = start(script, store)
        wait_for(lines, word)
        time.sleep(random.uniform(0, most))
        process.kill()
        assert process.wait() == -signal.SIGKILL
        stored.append(count(store))
    # No kill came after the end, and most came after new runs had been stored.
    assert stored[-1] < RUNS
    gained = np.diff(stored)
    assert (gained >= 0).all()
    assert (gained > 0).sum() >= kills[-1]

    process, _ = start(script, store)
    assert process.wait() == 0
    settings = runpy.run_path(str(script))["arguments"]
    uninterrupted = jaxbandits.sweep(settings.pop("build"), **settings).columns
    columns = jaxbandits.load(store).columns
    same_bits(columns, uninterrupted)

    import pandas

    table = pandas.read_parquet(store / "_tasks.parquet")  # the task's own value, once a row
    frame = pandas.read_parquet(store).merge(table, on="row").sort_values(["row", "seed"])
    assert len(frame) == RUNS
    for name, values in uninterrupted.items():
        np.testing.assert_array_equal(np.stack(frame[name].to_numpy()), values)
