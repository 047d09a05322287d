"""Sweeps cut into shards, on executors of every kind: the same bits, and lost workers lose no finished runs."""

import importlib
import json
import multiprocessing
import os
import re
import runpy
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest
from engine.toys import KEY, LIMITS, NOISE, PATHS, counter, counting, same_bits, total
from jax.sharding import Mesh

import jaxbandits
from jaxbandits.engine.cluster import shards, workers
from jaxbandits.engine.store import locked, writing

TINY = {"seeds": 10, "key": KEY, "max_rounds": 1000, "metrics": total, "lanes": 4, "chunk": 16, "progress": False}
LONG = jnp.asarray([9000, 12000])  # rounds of runs that are interrupted


def parts(store):
    return list(Path(store).glob("part-*.parquet"))


def sessions(store):
    """Returns the processes, or calls, that have written to a store."""
    return {json.loads(pq.read_schema(path).metadata[b"jaxbandits"])["session"] for path in parts(store)}


def until(condition):
    """Waits until the condition holds."""
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.02)
    raise TimeoutError("the condition never held")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Makes a store with the whole sweep, run by this process alone."""
    folder = tmp_path_factory.mktemp("stored")
    jaxbandits.sweep(counting, LIMITS, **TINY, store=folder)
    return folder


@pytest.fixture(scope="module")
def plain(stored):
    """Loads the columns that every executor must produce."""
    return jaxbandits.load(stored).columns


@pytest.fixture(scope="module")
def pool():
    with jaxbandits.process_pool(2) as pool:
        yield pool


@pytest.mark.processes
def test_a_process_pool_gives_the_same_bits_whatever_the_shards(tmp_path, plain, pool):
    results = jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=pool, shards=4)
    same_bits(results.columns, plain)
    assert len(sessions(tmp_path)) == 4
    # Only lost runs are run again, on any worker.
    kept, *lost = sorted(parts(tmp_path))
    for path in lost:
        path.unlink()
    results = jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=pool, shards=3)
    same_bits(results.columns, plain)
    assert kept in parts(tmp_path)
    for path in parts(tmp_path)[1:]:
        path.unlink()
    same_bits(jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path).columns, plain)


@pytest.mark.processes
def test_workers_without_a_store_return_runs(plain, pool):
    results = jaxbandits.sweep(counting, LIMITS, **TINY, executor=pool, shards=2)
    same_bits(results.columns, plain)


@pytest.mark.processes
def test_closures_and_settings_travel_to_the_workers(tmp_path, pool):
    fine = jnp.asarray(1 + 2.0**-50)  # rounds to 1 in float32
    large = jnp.asarray(2**40)
    settings = TINY | {
        "seeds": 2,
        "metrics": lambda task, outcome: {
            "fine": outcome.state.total * fine,
            "large": outcome.pulls + large,
            "x64": jnp.asarray(jax.config.jax_enable_x64),
            "strict": jnp.asarray(jax.config.jax_numpy_dtype_promotion == "strict"),
            "precise": jnp.asarray(jax.config.jax_default_matmul_precision == "highest"),
        },
    }
    build = lambda limit, key: (counter(limit), NOISE)  # noqa: E731
    # The settings of this thread differ from those at the start of the process.
    with jax.numpy_dtype_promotion("standard"), jax.default_matmul_precision("highest"):
        columns = jaxbandits.sweep(build, LIMITS, **settings, store=tmp_path, executor=pool, shards=2).columns
        same_bits(columns, jaxbandits.sweep(build, LIMITS, **settings).columns)
    assert columns["fine"].dtype == np.float64
    np.testing.assert_array_equal(columns["large"], columns["pulls"] + 2**40)
    assert columns["x64"].all()
    assert not columns["strict"].any()
    assert columns["precise"].all()


@pytest.mark.processes
def test_error_in_a_worker_is_raised_by_sweep(tmp_path, plain, pool):
    broken = tmp_path / "broken"
    broken.touch()

    def build(limit, key):
        if broken.exists():
            raise LookupError("no such instance")
        return counting(limit, key)

    with pytest.raises(LookupError, match="no such instance"):
        jaxbandits.sweep(build, LIMITS, **TINY, store=tmp_path / "store", executor=pool, shards=2)
    broken.unlink()
    results = jaxbandits.sweep(build, LIMITS, **TINY, store=tmp_path / "store", executor=pool, shards=2)
    same_bits(results.columns, plain)


@pytest.mark.processes
def test_killed_worker_loses_only_its_unfinished_runs(tmp_path, plain, pool):
    store, died = tmp_path / "store", tmp_path / "died"

    def build(limit, key):
        if list(store.glob("part-*")) and not died.exists():  # this module is unknown to the workers
            died.touch()
            os._exit(1)
        return counting(limit, key)

    with jaxbandits.process_pool(1) as mortal, pytest.raises(BrokenProcessPool) as raised:
        jaxbandits.sweep(build, LIMITS, **TINY, store=store, executor=mortal, shards=4)
    kept, advice = raised.value.__notes__
    assert kept == f"Runs that have finished are kept in {store}; the same call goes on from there."
    assert advice.startswith(
        "A worker process ended. If it had an error of its own, that is printed above; without one, the"
    )
    assert len(jaxbandits.load(store).columns["row"]) == 10  # the first of four shards
    results = jaxbandits.sweep(build, LIMITS, **TINY, store=store, executor=pool, shards=4)
    same_bits(results.columns, plain)
    assert len(sessions(store)) == 4


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            lambda: ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")),
            marks=pytest.mark.wide,
            id="processes",
        ),
        pytest.param(lambda: ThreadPoolExecutor(2), id="threads"),
    ],
)
def test_executors_of_the_standard_library_are_accepted(tmp_path, plain, make):
    with make() as executor:
        results = jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=executor, shards=2)
    same_bits(results.columns, plain)


def test_threads_adopt_the_callers_settings(tmp_path):
    settings = TINY | {"metrics": lambda task, outcome: {"product": outcome.pulls * jnp.float32(0.5)}}
    with ThreadPoolExecutor(1) as executor, jax.numpy_dtype_promotion("standard"):
        results = jaxbandits.sweep(counting, LIMITS, **settings, store=tmp_path, executor=executor, shards=1)
    np.testing.assert_array_equal(results.columns["product"], results.columns["pulls"] / 2)


def done(error=None):
    """Makes a finished job with the attributes that sweep reads."""

    def result():
        if error is not None:
            raise error

    return SimpleNamespace(done=lambda: True, result=result, cancel=lambda: None)


def test_jobs_of_other_classes_are_accepted(tmp_path, plain):
    def submit(call, *arguments):
        call(*arguments)
        return done()

    executor = SimpleNamespace(submit=submit)
    results = jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=executor, shards=2)
    same_bits(results.columns, plain)


def test_an_executor_that_forks_is_refused_and_one_that_spawns_is_named(tmp_path):
    context = multiprocessing.get_context("fork")
    message = r"executor must not fork: .* Use jaxbandits.process_pool\(workers\)"
    with ProcessPoolExecutor(1, mp_context=context) as executor, pytest.raises(ValueError, match=message):
        jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=executor)
    with ProcessPoolExecutor(1) as executor:  # the system's own choice: on Linux, up to Python 3.13, a fork
        assert workers.forks(executor) == (multiprocessing.get_all_start_methods()[0] == "fork")
    assert not workers.forks(jaxbandits.process_pool(1))


UNGUARDED = """
import sys
import jax
import jaxbandits
from engine.toys import KEY, LIMITS, counting

with jaxbandits.process_pool(1) as pool:
    jaxbandits.sweep(
        counting, LIMITS, seeds=1, key=KEY, max_rounds=9, store=sys.argv[1], executor=pool, shards=1, progress=False
    )
"""


@pytest.mark.wide
def test_script_without_a_main_guard_is_named(tmp_path):
    (tmp_path / "script.py").write_text(UNGUARDED)
    printed = subprocess.run(
        [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "store")],
        env=os.environ | {"PYTHONPATH": PATHS, "JAX_ENABLE_X64": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    ).stderr
    assert "a worker reached this line while it imported the script" in printed
    assert "A worker process ended. If it had an error of its own, that is printed above" in printed


def test_worker_that_cannot_start_gives_its_error(tmp_path, monkeypatch):
    def share_out(count, gpus):
        return [workers.Share([10**6], {}, None)] * count  # a core that no machine has

    monkeypatch.setattr(workers, "share_out", share_out)
    with jaxbandits.process_pool(1) as pool, pytest.raises(BrokenProcessPool) as raised:
        jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=pool, shards=1)
    assert raised.value.__notes__[1] == "A worker could not start: [Errno 22] Invalid argument"


def test_worker_that_dask_gives_up_is_explained(tmp_path, plain):
    """Without a cluster: an error with dask's name."""
    error = type("KilledWorker", (Exception,), {})("Attempted to run task on 4 different workers")
    dying = SimpleNamespace(submit=lambda call, *arguments: done(error))
    with pytest.raises(Exception, match="Attempted to run task") as raised:
        jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=dying, shards=2)
    assert "the same call goes on from there" in raised.value.__notes__[0]
    assert raised.value.__notes__[1].startswith("Dask gives up a call whose worker has failed four times")
    same_bits(jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path).columns, plain)


def test_executor_without_workers_warns(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(shards, "START_SECONDS", 0.01)
    asked = []

    def is_done():
        asked.append(None)
        return len(asked) > 3

    idle = SimpleNamespace(submit=lambda *arguments: SimpleNamespace(done=is_done, result=lambda: None))
    with pytest.raises(RuntimeError, match="0 of 40 runs are in"):
        jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=idle, shards=1)
    assert "no worker has begun in 0 s: check that the executor has live workers" in caplog.text


def refusing(*arguments, **settings):
    raise AssertionError("nothing was to be done")


@pytest.mark.processes
def test_failed_sweep_waits_for_running_shards_and_voids_late_ones(tmp_path, monkeypatch):
    """One shard fails while another runs, and a third is started only after the call has ended."""
    monkeypatch.setattr(writing, "FIRST_PAUSE", 0.01)
    calls = []

    def submit(call, *arguments):
        calls.append((call, arguments))
        if len(calls) == 1:
            thread = threading.Thread(target=call, args=arguments)
            thread.start()
            calls.append(thread)
            until(lambda: len(parts(tmp_path)) > 1)
            return Future()  # it can be cancelled, whatever the thread does
        return done(RuntimeError("the node is gone"))

    settings = TINY | {"seeds": 5000, "max_rounds": 10**6}
    with pytest.raises(RuntimeError, match="the node is gone"):
        jaxbandits.sweep(counting, LONG, **settings, store=tmp_path, executor=SimpleNamespace(submit=submit), shards=3)
    (_, thread, _, (late, arguments)) = calls
    assert not thread.is_alive()
    stored = len(jaxbandits.load(tmp_path).columns["row"])
    assert 0 < stored < 10_000
    monkeypatch.setattr(sys.modules["jaxbandits.engine.cluster.shards"], "run_into_store", refusing)
    late(*arguments)


@pytest.mark.slow
@pytest.mark.processes
def test_dask_runs_the_shards_of_a_killed_worker_again(tmp_path):
    from distributed import Client, LocalCluster

    settings = TINY | {"seeds": 400, "max_rounds": 10**6}
    expected = jaxbandits.sweep(counting, LONG, **settings).columns
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):

        def lower_pause():
            importlib.import_module("jaxbandits.engine.store.writing").FIRST_PAUSE = 0.01
            return os.getpid()

        pids = client.run(lower_pause)
        killed = []

        def kill():
            until(lambda: len(sessions(tmp_path)) == 2)  # both shards have begun to write
            killed.append(pids[next(worker for worker, calls in client.processing().items() if calls)])
            os.kill(killed[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        results = jaxbandits.sweep(counting, LONG, **settings, store=tmp_path, executor=client.get_executor(), shards=2)
        killer.join()
        assert killed[0] not in client.run(os.getpid).values()
    assert len(sessions(tmp_path)) == 3  # a second worker has continued from the killed one's runs
    same_bits(results.columns, expected)


SCRIPT = """
import sys
from types import SimpleNamespace

import jax
import jaxbandits
from engine.toys import KEY, counting, total
from jaxbandits.engine.store import writing

writing.FIRST_PAUSE = 0.01  # in the workers, too, which import this script

arguments = {
    "tasks": jax.numpy.asarray([9000, 12000]),
    "seeds": 600,
    "key": KEY,
    "max_rounds": 10**6,
    "metrics": total,
    "lanes": 4,
    "chunk": 16,
    "progress": False,
}

if __name__ == "__main__":
    with jaxbandits.process_pool(2) as pool:

        def submit(function, call, *others):
            return pool.submit(function, call._replace(folder=sys.argv[2] or call.folder), *others)

        executor = SimpleNamespace(submit=submit)
        jaxbandits.sweep(counting, **arguments, store=sys.argv[1], executor=executor, shards=6)
"""


def started(script, store, seen_by_workers=""):
    """Starts the script in its own session, and waits until two of its shards have stored runs."""
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(script), str(store), seen_by_workers],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ
        | {
            "PYTHONPATH": PATHS,
            "JAX_ENABLE_X64": "1",
            "JAX_NUMPY_DTYPE_PROMOTION": "strict",
        },
    )
    until(lambda: len(sessions(store)) >= 2 or process.poll() is not None)
    assert process.poll() is None, process.communicate()[1]
    return process


def can_be_locked(store):
    try:
        with locked(store, "store"):
            return True
    except BlockingIOError:
        return False


@pytest.mark.wide
@pytest.mark.processes
@pytest.mark.parametrize("seen_by_workers", [pytest.param("", id="store"), pytest.param("/nowhere", id="memory")])
def test_workers_end_with_a_process_that_is_killed(tmp_path, seen_by_workers):
    store = tmp_path / "store"
    process = started(tmp_path / "script.py", store, seen_by_workers)
    process.kill()
    process.communicate(timeout=60)  # until the workers have closed their end, too
    until(lambda: can_be_locked(store))  # no worker is left that writes
    stored = len(jaxbandits.load(store).columns["row"])
    assert 0 < stored < 1200
    if seen_by_workers:  # every shard that was returned is stored, whole
        assert stored % 200 == 0


def test_shard_waits_for_the_worker_that_holds_its_lock(tmp_path, plain):
    """Simulates an executor that gives up a worker which is still alive."""
    released = threading.Event()

    def hold():
        with locked(tmp_path, "shard-1"):
            time.sleep(2)
            released.set()

    holder = threading.Thread(target=hold)
    holder.start()
    with ThreadPoolExecutor(1) as executor:
        results = jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=executor, shards=2)
    assert released.is_set()
    holder.join()
    same_bits(results.columns, plain)


def test_shards_of_an_earlier_call_are_void(tmp_path, plain):
    """Simulates a caller that has ended while its jobs are still queued."""
    late = []

    class Queued(ThreadPoolExecutor):
        def submit(self, function, *arguments):
            late.append((function, arguments))
            raise RuntimeError("the caller fails")

    with Queued(1) as executor, pytest.raises(RuntimeError, match="the caller fails"):
        jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=executor, shards=1)
    jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path)
    kept = sorted(parts(tmp_path))
    kept[0].unlink()
    ((function, arguments),) = late
    function(*arguments)
    assert sorted(parts(tmp_path)) == kept[1:]
    same_bits(jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path).columns, plain)


@pytest.mark.processes
@pytest.mark.usefixtures("interruptible")
def test_control_c_ends_all_workers_and_keeps_finished_runs(tmp_path, monkeypatch):
    script, store = tmp_path / "script.py", tmp_path / "store"
    process = started(script, store)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers as well
    _, printed = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    columns = jaxbandits.load(store).columns
    stored = len(columns["row"])
    assert 0 < stored < 1200
    assert f"KeyboardInterrupt: {stored} of 1200 runs are finished and stored in {store}; the same call" in printed
    assert "Process SpawnProcess" not in printed  # no worker has a traceback of its own

    monkeypatch.setattr(writing, "FIRST_PAUSE", writing.FIRST_PAUSE)  # the script changes it
    settings = runpy.run_path(str(script))["arguments"]
    columns = jaxbandits.sweep(counting, **settings, store=store).columns
    assert columns["pulls"].tolist() == [9000] * 600 + [12000] * 600
    few = jaxbandits.sweep(counting, **settings | {"seeds": 20}).columns
    same_bits({name: values[columns["seed"] < 20] for name, values in columns.items()}, few)


NOBODY = SimpleNamespace(submit=refusing)
LOCK = threading.Lock()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shards": 3}, "shards must be None without an executor, on which they are calls, got 3"),
        ({"executor": NOBODY, "store": "s", "shards": 0}, r"shards must be an integer in \[1, 2147483647\], got 0"),
        (
            {"executor": NOBODY, "store": "s", "mesh": Mesh(jax.devices(), "x")},
            "mesh must be None with an executor, whose workers use all their devices",
        ),
        (
            {"executor": NOBODY, "store": "s", "metrics": lambda task, outcome: {"free": not LOCK.locked()}},
            "build and metrics must be picklable by cloudpickle to be sent to an executor's workers, with all that "
            r"they close over, got TypeError: cannot pickle '_thread.lock' object",
        ),
    ],
)
def test_bad_arguments_are_named(tmp_path, monkeypatch, settings, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        jaxbandits.sweep(counting, LIMITS, **TINY | settings)


def test_store_of_another_sweep_is_refused_before_submission(stored):
    with pytest.raises(ValueError, match=r"holds another sweep:\n  arguments.max_rounds: 1000 in the store, 11 now"):
        jaxbandits.sweep(counting, LIMITS, **TINY | {"max_rounds": 11}, store=stored, executor=NOBODY)


def test_workers_refuse_another_build(stored):
    build = lambda limit, key: (counter(limit + 1), NOISE)  # noqa: E731
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="holds another sweep") as raised:
        jaxbandits.sweep(build, LIMITS, **TINY, store=stored, executor=executor, shards=1)
    assert not hasattr(raised.value, "__notes__")


@pytest.mark.wide
def test_progress_bar_resumes_and_completes(tmp_path, capfd):
    def bar():
        with ThreadPoolExecutor(2) as executor:
            settings = TINY | {"progress": True}
            jaxbandits.sweep(counting, LIMITS, **settings, store=tmp_path, executor=executor, shards=2)
        printed = capfd.readouterr().err
        assert "pulls/s" in printed
        return re.findall(r"(\d+)/40", printed)

    shown = bar()
    assert (shown[0], shown[-1]) == ("0", "40")
    parts(tmp_path)[0].unlink()
    remaining = len(jaxbandits.load(tmp_path).columns["row"])
    assert remaining < 40
    shown = bar()
    assert (shown[0], shown[-1]) == (str(remaining), "40")
