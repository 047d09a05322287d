"""A sweep spread over devices: the same bits on any number of them, without communication."""

import logging
import os
import resource
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine.toys import KEY, LIMITS, NOISE, counter, counting, same_bits, total
from jax import lax
from jax.sharding import Mesh, PartitionSpec

import jaxbandits
from jaxbandits.base import Status, memoryless
from jaxbandits.engine.run.recording import Curves
from jaxbandits.engine.sweep import layout, program
from jaxbandits.engine.sweep.layout import OpenLayout, Shapes, default_lanes, local_mesh
from jaxbandits.engine.sweep.tasks import make_job

SCRIPT = """
import sys

import jax
import jaxbandits
import numpy as np
from jaxbandits import linear

instance = linear.soare(5)


def build(delta, key):
    return linear.lingape(instance.arms, delta=delta, leap=65536), linear.environment(instance)


def metrics(delta, outcome):
    return {"theta": outcome.state.theta}


results = jaxbandits.sweep(
    build,
    jax.numpy.asarray([0.3, 0.01]),
    seeds=20,
    key=jax.random.key(7),
    max_rounds=100_000,
    metrics=metrics,
    lanes=8,
    progress=False,
)
np.savez(sys.argv[1], devices=results.stats.devices, **results.columns)
"""
COMMUNICATION = ("all-reduce", "all-gather", "all-to-all", "collective", "reduce-scatter", "send", "recv")
TINY = {"seeds": 10, "key": KEY, "max_rounds": 1000, "metrics": total, "lanes": 4, "chunk": 16, "progress": False}


def job(build, **settings):
    settings = {"tasks": LIMITS, "seeds": 5, "key": KEY, "max_rounds": 1000, "metrics": total} | settings
    return make_job(build, settings.pop("tasks"), **settings)


def traced(build):
    sweep = job(build)
    return program.trace(sweep, OpenLayout(lanes=4, chunk=16), tasks=1)


@pytest.mark.slow
@pytest.mark.processes
def test_sweep_on_one_two_and_eight_devices_is_bitwise_equal(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    processes = {}
    for count in (1, 2, 8):
        environment = os.environ | {
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}",
            "JAX_ENABLE_X64": "1",
            "JAX_NUMPY_DTYPE_PROMOTION": "strict",
        }
        command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / f"{count}.npz")]
        processes[count] = subprocess.Popen(command, env=environment)
    columns = {}
    for count, process in processes.items():
        assert process.wait() == 0
        columns[count] = dict(np.load(tmp_path / f"{count}.npz"))
        assert columns[count].pop("devices") == count
    assert columns[1]["theta"].dtype == np.float64
    assert (columns[1]["status"] == Status.STOPPED).all()
    same_bits(columns[1], columns[2])
    same_bits(columns[1], columns[8])


def test_sweep_takes_any_mesh_and_defaults_to_all_devices():
    devices = np.array(jax.devices())
    assert len(devices) == 2
    by_default = jaxbandits.sweep(counting, LIMITS, **TINY)
    assert by_default.stats.devices == 2
    for mesh, size in [
        (Mesh(devices[1:], ("lanes",)), 1),
        (Mesh(devices[::-1], ("x",)), 2),
        (Mesh(devices.reshape(1, 2), ("model", "devices")), 2),
    ]:
        results = jaxbandits.sweep(counting, LIMITS, **TINY, mesh=mesh)
        assert results.stats.devices == size
        same_bits(by_default.columns, results.columns)


def wrapped(monkeypatch, wrap):
    """Replaces every compiled call by `wrap(call)`."""

    def compile_lanes(*arguments, **settings):
        compiled = program.compile_lanes(*arguments, **settings)
        return compiled._replace(call=wrap(compiled.call))

    monkeypatch.setattr(sys.modules["jaxbandits.engine.sweep.driving"], "compile_lanes", compile_lanes)


def test_every_device_holds_its_share_of_the_lanes(monkeypatch):
    devices = []

    def look(tree):
        for leaf in jax.tree.leaves(tree):
            devices.append({part.device: part.index[0] for part in leaf.addressable_shards})

    def looked_at(call):
        def wrapper(*lanes, batch, **settings):
            look(batch)
            returned = call(*lanes, batch=batch, **settings)
            look(returned)
            return returned

        return wrapper

    wrapped(monkeypatch, looked_at)
    jaxbandits.sweep(counting, LIMITS, **TINY)
    first, second = jax.devices()
    assert devices
    assert all(shares == {first: slice(0, 4), second: slice(4, 8)} for shares in devices)


HEAVY = lambda limit, key: (counter(limit, period=3), NOISE)  # noqa: E731


def chatty(limit, key):
    algorithm = counter(limit)
    return algorithm._replace(refresh=lambda state: state._replace(total=lax.psum(state.total, "devices"))), NOISE


@pytest.mark.parametrize("build", [counting, HEAVY], ids=["light", "heavy"])
def test_program_has_no_collectives(build):
    compiled, _, _ = program._compile(traced(build))
    text = compiled.call.as_text()
    assert "num_partitions=2" in text
    assert [word for word in COMMUNICATION if word in text] == []


def test_large_shared_arrays_are_hashed_inputs_of_the_program():
    """Checks a million numbers that every lane reads: one copy, not in the text, and other numbers make another
    program."""

    def reading(numbers):
        shared = jnp.asarray(numbers)
        noise = memoryless(NOISE.noise, lambda action, noise: action.astype(float) * shared[action * 1000 + 7])
        return lambda limit, key: (counter(limit), noise)

    numbers = np.arange(2.0**20)
    compiled, _, _ = program._compile(traced(reading(numbers)))
    sizes = compiled.call.memory_analysis()
    assert len(compiled.call.as_text()) < 10**5
    assert numbers.nbytes <= sizes.argument_size_in_bytes < 1.1 * numbers.nbytes
    results = jaxbandits.sweep(reading(numbers), LIMITS, **TINY | {"metrics": total})
    np.testing.assert_array_equal(results.columns["total"], 1007.0 * results.columns["pulls"])

    name = program.fingerprint(traced(reading(numbers)))
    assert program.fingerprint(traced(reading(numbers))) == name
    numbers[-1] += 1
    assert program.fingerprint(traced(reading(numbers))) != name


def test_collective_in_a_program_is_detected():
    mesh, spec = local_mesh(), PartitionSpec("devices")
    total = jax.shard_map(lambda x: lax.psum(x, "devices"), mesh=mesh, in_specs=spec, out_specs=PartitionSpec())
    text = jax.jit(total).lower(jnp.arange(2.0)).compile().as_text()
    assert [word for word in COMMUNICATION if word in text] == ["all-reduce"]


def test_algorithm_with_a_collective_is_refused():
    with pytest.raises(NameError, match="unbound axis name: devices"):
        traced(chatty)


def test_devices_plan_independently():
    """Lanes of one device plan, lanes of the other never do. Both end as they would alone."""
    limits = jnp.asarray([50, 2])
    settings = TINY | {"metrics": lambda task, outcome: {"planned": outcome.state.planned}, "seeds": 4}
    results = jaxbandits.sweep(HEAVY, limits, **settings)
    np.testing.assert_array_equal(results.columns["planned"], [16] * 4 + [0] * 4)


def test_lanes_that_cannot_fit_are_refused_before_they_are_compiled(monkeypatch):
    monkeypatch.setattr(program, "_compile", None)

    def hungry(task, key):
        algorithm = counter(5)
        return algorithm._replace(init=lambda key: algorithm.init(key)._replace(total=jnp.zeros(2**20))), NOISE

    # 2^20 lanes with 8 MB each: 8.8e6 MB
    with pytest.raises(MemoryError) as raised:
        jaxbandits.sweep(hungry, seeds=2**24, key=KEY, max_rounds=10, lanes=2**20, chunk=1, progress=False)
    assert "lanes=1048576 with chunk=1 do not fit into the device's memory" in str(raised.value)
    assert "the states of a batch take 8.8e+06 MB (lower lanes)" in str(raised.value)
    assert "the noise of its chunk 8.39 MB (lower lanes or chunk)" in str(raised.value)


def test_lanes_beyond_a_limit_of_memory_are_refused_once_they_are_compiled(monkeypatch):
    """Memory is known once a program is compiled, before its batch has run for minutes."""
    monkeypatch.setattr(layout, "device_memory", lambda mesh: 5000)
    monkeypatch.setattr(program, "device_memory", lambda mesh: 5000)
    with pytest.raises(
        MemoryError, match=r"lanes=64 with chunk=256 do not fit into the device's memory \(.* of 0.005 MB"
    ):
        jaxbandits.sweep(counting, LIMITS, seeds=64, key=KEY, max_rounds=10, lanes=64, chunk=256, progress=False)


@pytest.fixture
def limited(monkeypatch, tmp_path):
    """Sets the system's limits: address space in bytes, and files of control groups."""

    def limit(*, space=None, mapped_pages=0, groups="", files=()):
        infinite = resource.RLIM_INFINITY
        monkeypatch.setattr(resource, "getrlimit", lambda which: (infinite if space is None else space, infinite))
        (tmp_path / "statm").write_text(f"{mapped_pages} 1 1 1 0 1 0\n")
        (tmp_path / "groups").write_text(groups)
        for name, text in dict(files).items():
            (tmp_path / "cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "cgroup" / name).write_text(text)
        monkeypatch.setattr(layout, "STATM", tmp_path / "statm")
        monkeypatch.setattr(layout, "GROUPS", tmp_path / "groups")
        monkeypatch.setattr(layout, "GROUP_ROOT", tmp_path / "cgroup")
        return layout.device_memory(Mesh(np.array(jax.local_devices()[:1]), ("devices",)))

    return limit


PHYSICAL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, PHYSICAL),
        ({"space": 10**9}, 10**9),
        ({"space": 10**9, "mapped_pages": 1000}, 10**9 - 1000 * os.sysconf("SC_PAGE_SIZE")),
        ({"space": 10**6, "mapped_pages": 1000}, 0),
        ({"groups": "0::/a/b\n", "files": {"a/b/memory.max": "7000\n"}}, 7000),
        ({"groups": "0::/a/b\n", "files": {"a/b/memory.max": "max\n", "a/memory.max": "8000\n"}}, 8000),
        ({"groups": "0::/host/only\n", "files": {"memory.max": "9000\n"}}, 9000),  # in a container
        ({"groups": "0::/a\n", "files": {"a/memory.max": "max\n"}}, PHYSICAL),
        ({"groups": "4:memory:/j\n1:cpu:/\n", "files": {"memory/j/memory.limit_in_bytes": "6000\n"}}, 6000),
        ({"groups": "4:memory:/j\n", "files": {"memory/memory.limit_in_bytes": str(2**63 - 4096)}}, PHYSICAL),
        ({"groups": "no groups at all"}, PHYSICAL),
    ],
)
def test_device_memory_of_a_cpu_is_the_smallest_limit(limited, settings, expected):
    assert limited(**settings) == expected


def test_device_memory_without_limits_is_the_machines(limited, tmp_path):
    limited(space=10**9)
    (tmp_path / "statm").unlink()
    (tmp_path / "groups").unlink()
    assert layout.device_memory(Mesh(np.array(jax.local_devices()[:1]), ("devices",))) == PHYSICAL


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "RESOURCE_EXHAUSTED: Out of memory allocating 7 bytes.\nMore.",
            MemoryError,
            r"lanes=4 with chunk=16 do not fit into the device's memory "
            r"\(RESOURCE_EXHAUSTED: Out of memory allocating 7 bytes\.\)",
        ),
        ("INTERNAL: broken", jax.errors.JaxRuntimeError, "INTERNAL: broken"),
    ],
)
def test_running_out_of_memory_names_lanes_and_chunk(monkeypatch, text, error, message):
    def failing(call):
        calls = []

        def wrapper(*lanes, **settings):
            calls.append(1)
            if len(calls) == 4:
                raise jax.errors.JaxRuntimeError(text)
            return call(*lanes, **settings)

        return wrapper

    wrapped(monkeypatch, failing)
    with pytest.raises(error, match=message):
        jaxbandits.sweep(counting, LIMITS, **TINY)


def test_program_with_lapack_runs_in_one_batch_on_one_device(caplog):
    def factorising(limit, key):
        algorithm = counter(limit)
        init = lambda key: algorithm.init(key)._replace(total=jnp.ones(()))  # noqa: E731

        def observe(state, action, observation):
            state = algorithm.observe(state, action, observation)
            factor = jnp.linalg.cholesky((1 + state.pulls.astype(float)) * np.eye(3))
            return state._replace(total=factor[2, 2])

        return algorithm._replace(init=init, observe=observe), NOISE

    with caplog.at_level(logging.WARNING, logger="jaxbandits"):
        results = jaxbandits.sweep(factorising, LIMITS, **TINY)
    assert "the algorithm calls LAPACK: its lanes advance in one batch on one device" in caplog.messages
    assert (results.stats.devices, results.stats.batches) == (1, 1)
    np.testing.assert_array_equal(results.columns["pulls"], np.repeat(LIMITS, 10))
    np.testing.assert_allclose(results.columns["total"], np.sqrt(1 + results.columns["pulls"]), rtol=1e-15)


def test_default_lanes_of_an_accelerator():
    """More for more tasks and smaller states, within an eighth of its memory."""
    memory = 8 * 10**9
    device = SimpleNamespace(platform="gpu", memory_stats=lambda: {"bytes_limit": memory})
    mesh: Any = SimpleNamespace(size=1, devices=np.array([device], object))

    def lanes(state_bytes: int, tasks: int) -> int:
        state = jax.ShapeDtypeStruct((state_bytes,), np.uint8)
        return default_lanes(Shapes(state, (), (), Curves({}, {})), mesh, tasks)

    assert lanes(500, 100) == 56  # half of them in each of two batches
    assert lanes(500, 10**5) < lanes(500, 10**6) < lanes(500, 10**7)
    assert 10**5 < lanes(500, 10**6) < 3 * 10**5
    assert lanes(5_000, 10**6) < lanes(500, 10**6) / 3
    assert lanes(10**6, 10**7) == 1000
