"""Worker processes divide the machine."""

import json
import os
import subprocess
import sys

import pytest

from jaxbandits.engine.cluster.workers import share_out
from jaxbandits.engine.sweep.layout import cores


@pytest.fixture
def machine(monkeypatch):
    """Returns a function that gives this machine other cores and another NPROC."""

    def make(numbers, nproc=None):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(numbers))
        monkeypatch.delenv("NPROC", raising=False)
        if nproc is not None:
            monkeypatch.setenv("NPROC", nproc)

    return make


@pytest.mark.parametrize(
    ("numbers", "nproc", "workers", "expected"),
    [
        (range(4), None, 2, [[0, 2], [1, 3]]),
        (range(5), None, 2, [[0, 2, 4], [1, 3]]),
        (range(3), None, 1, [[0, 1, 2]]),
        (range(2), None, 5, [[0], [1], [0], [1], [0]]),
        ([7, 3, 12, 9], None, 2, [[3, 9], [7, 12]]),  # a process that is restricted to some cores
        (range(8), "4", 2, [[0, 2], [1, 3]]),
        (range(2), "4", 2, [[0], [1]]),
        (range(64), None, 7, [list(range(n, 64, 7)) for n in range(7)]),
    ],
)
def test_cores_are_shared_evenly(machine, numbers, nproc, workers, expected):
    machine(numbers, nproc)
    shares = share_out(workers, ())
    assert [share.cores for share in shares] == expected
    assert [share.environment for share in shares] == [
        {"NPROC": str(len(mine)), "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{0.9 / len(expected):.3f}"} for mine in expected
    ]
    assert {share.platforms for share in shares} == {None}


@pytest.mark.parametrize(("nproc", "expected"), [(None, 6), ("4", 4), ("9", 6), ("0", 6), ("", 6), ("many", 6)])
def test_nproc_limits_the_cores(machine, nproc, expected):
    machine(range(6), nproc)
    assert cores() == expected


def test_without_affinity_only_the_number_of_cores_is_known(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.delenv("NPROC", raising=False)
    assert [(share.cores, share.environment["NPROC"]) for share in share_out(3, ())] == [
        (None, "2"),
        (None, "1"),
        (None, "1"),
    ]


def test_gpus_are_dealt_in_turn_with_their_memory(machine):
    machine(range(10))
    shares = share_out(5, [0, "GPU-a1"])
    environments = [
        (share.environment["CUDA_VISIBLE_DEVICES"], share.environment["XLA_PYTHON_CLIENT_MEM_FRACTION"])
        for share in shares
    ]
    # three workers have the first GPU, two the second, and 90 % of each is given away
    assert environments == [("0", "0.300"), ("GPU-a1", "0.450"), ("0", "0.300"), ("GPU-a1", "0.450"), ("0", "0.300")]
    assert {share.platforms for share in shares} == {"cuda,cpu"}
    assert [share.environment["NPROC"] for share in shares] == ["2"] * 5


SCRIPT = """
import concurrent.futures, json, os, pathlib, signal, sys, time

import jax
import jaxbandits
from jaxbandits.engine.cluster.workers import start_error

{at_import}


def describe(name):
    folder = pathlib.Path(sys.argv[1])
    (folder / name).touch()
    while len(list(folder.iterdir())) < 2:  # so that every worker answers once
        time.sleep(0.02)
    jax.numpy.ones(3).block_until_ready()
    threads = list(pathlib.Path("/proc/self/task").iterdir())
    return {{
        "cores": [sorted(os.sched_getaffinity(int(thread.name))) for thread in threads],
        "nproc": int(os.environ["NPROC"]),
        "xla": sum((thread / "comm").read_text() == "tf_XLAEigen\\n" for thread in threads),
        "interruptible": signal.getsignal(signal.SIGINT) != signal.SIG_IGN,
    }}


def look(_):
    return jax.config.jax_platforms, os.environ["CUDA_VISIBLE_DEVICES"], os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"]


if __name__ == "__main__":
    with jaxbandits.process_pool(2) as pool:
        described = list(pool.map(describe, "ab"))
    with jaxbandits.process_pool(1, gpus=["GPU-a1"]) as pool:
        try:
            looked = pool.submit(look, None).result()
        except concurrent.futures.BrokenExecutor:
            looked = start_error(pool)
    print(json.dumps([described, looked]))
"""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("", id="clean"),
        pytest.param("jax.numpy.ones(3)", id="opens_devices_at_import", marks=pytest.mark.wide),
    ],
)
def pools(request, tmp_path_factory):
    """Runs a CPU pool and a GPU pool; returns the descriptions of their workers and their printed lines."""
    folder = tmp_path_factory.mktemp("workers")
    (folder / "script.py").write_text(SCRIPT.format(at_import=request.param))
    (folder / "here").mkdir()
    process = subprocess.run(
        [sys.executable, str(folder / "script.py"), str(folder / "here")],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"XLA_FLAGS": "", "NPROC": ""},
    )
    return bool(request.param), *json.loads(process.stdout), process.stderr


@pytest.mark.processes
def test_workers_use_their_own_cores(pools):
    late, described, _, _ = pools
    cores = []
    for worker in described:
        mine = worker["cores"][0]
        assert worker["cores"] == [mine] * len(worker["cores"])  # all threads, also those that were there before
        assert worker["nproc"] == len(mine)
        if not late:
            assert worker["xla"] == len(mine)
        assert not worker["interruptible"]
        cores.append(mine)
    assert sorted(cores) == sorted(share.cores for share in share_out(2, ()))


@pytest.mark.processes
def test_workers_use_their_own_gpu_or_report_open_devices(pools):
    late, _, looked, printed = pools
    if late:
        expected = "a worker's script opens JAX's devices while it is imported, before the worker knows its GPU"
        assert expected in printed
        assert looked.startswith(expected)
    else:
        assert looked == ["cuda,cpu", "GPU-a1", "0.900"]
