"""Workers without a shared folder: finished runs come back in portions, with the same bits."""

from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from engine.toys import KEY, LIMITS, counting, total

import jaxbandits
from jaxbandits.engine.cluster import slices

TINY = {"seeds": 10, "key": KEY, "max_rounds": 1000, "metrics": total, "lanes": 4, "chunk": 64, "progress": False}


def same_bits(a, b):
    assert list(a) == list(b)
    for name in a:
        assert (a[name].dtype, a[name].shape) == (b[name].dtype, b[name].shape)
        assert a[name].tobytes() == b[name].tobytes(), name


@pytest.fixture(scope="module")
def plain():
    return jaxbandits.sweep(counting, LIMITS, **TINY)


@pytest.fixture
def at_once(monkeypatch):
    """Makes a slice as short as one call of the program."""
    monkeypatch.setattr(slices, "SLICE_SECONDS", -1.0)


@pytest.fixture
def far(at_once):
    """Makes an executor whose workers reach no store; it counts its submissions, which may fail."""
    with ThreadPoolExecutor(2) as threads:
        calls = []

        def submit(function, call, *arguments):
            calls.append(arguments)
            if executor.failing_from is not None and len(calls) > executor.failing_from:
                failed = Future()
                failed.set_exception(RuntimeError("the node is gone"))
                return failed
            return threads.submit(function, call._replace(folder=call.folder and "/nowhere"), *arguments)

        executor = SimpleNamespace(submit=submit, calls=calls, failing_from=None)
        yield executor


def test_a_sweep_without_a_store_goes_to_workers_and_back(far, plain):
    results = jaxbandits.sweep(counting, LIMITS, **TINY, executor=far, shards=3)
    same_bits(results.columns, plain.columns)
    assert results.stats.pulls == plain.stats.pulls
    assert results.stats.finished == 40
    assert len(far.calls) > 6  # runs of 400 rounds are carried on from call to call
    assert any(remaining.begun for _, _, remaining in far.calls)


def test_a_store_that_only_the_caller_reaches(tmp_path, far, plain):
    results = jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=far, shards=2)
    same_bits(results.columns, plain.columns)
    assert [remaining for _, _, remaining in far.calls[:2]] == [None, None]  # before the workers reported that
    assert len(list(tmp_path.glob("part-*.parquet"))) >= 2
    same_bits(jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path).columns, plain.columns)
    with pytest.raises(ValueError, match="holds another sweep"):
        jaxbandits.sweep(counting, LIMITS + 1, **TINY, store=tmp_path, executor=far)


def test_a_worker_that_dies_costs_what_it_has_not_sent(tmp_path, far, plain):
    far.failing_from = 8
    with pytest.raises(RuntimeError, match="the node is gone") as raised:
        jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=far, shards=2)
    assert raised.value.__notes__ == [
        f"Runs that have finished are kept in {tmp_path}; the same call goes on from there."
    ]
    stored = len(jaxbandits.load(tmp_path).columns["row"])
    assert 0 < stored < 40
    far.failing_from = None
    results = jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=far, shards=3)
    same_bits(results.columns, plain.columns)


def test_without_a_store_a_failure_says_that_nothing_is_kept(far):
    far.failing_from = 3
    with pytest.raises(RuntimeError, match="the node is gone") as raised:
        jaxbandits.sweep(counting, LIMITS, **TINY, executor=far, shards=2)
    assert raised.value.__notes__ == ["Runs that have finished are lost without a store."]


def test_runs_are_dealt_to_smaller_and_larger_batches(far, plain, monkeypatch):
    """As where the next worker has another number of cores: lanes change from call to call."""
    prepared, lanes = slices._prepared, []

    def other_lanes(payload, settings, choices, mesh, unpack):
        lanes.append(2 + len(lanes) % 3)
        return prepared(payload, settings, choices._replace(lanes=lanes[-1]), mesh, unpack)

    monkeypatch.setattr(slices, "_prepared", other_lanes)
    results = jaxbandits.sweep(counting, LIMITS, **TINY | {"lanes": None, "seeds": 3}, executor=far, shards=1)
    few = plain.columns["seed"] < 3
    same_bits(results.columns, {name: values[few] for name, values in plain.columns.items()})
    assert len(set(lanes)) == 3
