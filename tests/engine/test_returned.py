"""Workers that reach no store run their shards in memory and return the runs, with the same bits."""

from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from engine.toys import KEY, LIMITS, counting, same_bits, total

import jaxbandits
from jaxbandits.engine.cluster import shards

TINY = {"seeds": 10, "key": KEY, "max_rounds": 1000, "metrics": total, "lanes": 4, "chunk": 64, "progress": False}


def parts(store):
    return sorted(store.glob("part-*.parquet"))


@pytest.fixture(scope="module")
def plain():
    return jaxbandits.sweep(counting, LIMITS, **TINY)


@pytest.fixture
def far():
    """Makes an executor whose workers reach no store, and of whose calls some fail or never end."""
    with ThreadPoolExecutor(2) as threads:

        def submit(function, call, shard, missing):
            executor.missing.append(int(missing.sum()))
            future = Future()
            if shard.number in executor.failing:
                future.set_exception(RuntimeError("the node is gone"))
            elif shard.number not in executor.endless:
                call = call._replace(folder=call.folder and "/nowhere")
                if executor.lanes:
                    layout = call.layout._replace(lanes=executor.lanes[shard.number])
                    call = call._replace(layout=layout)
                future = threads.submit(function, call, shard, missing)
                executor.running.append(future)
            return future

        executor = SimpleNamespace(submit=submit, failing=(), endless=(), lanes=(), missing=[], running=[])
        yield executor


def test_sweep_without_a_store_on_workers_has_the_same_bits(far, plain):
    results = jaxbandits.sweep(counting, LIMITS, **TINY, executor=far, shards=3)
    same_bits(results.columns, plain.columns)
    assert results.stats.pulls == plain.stats.pulls
    assert results.stats.finished == 40
    assert far.missing == [14, 13, 13]


def test_more_shards_than_tasks_are_accepted(far):
    settings = TINY | {"seeds": 1}
    results = jaxbandits.sweep(counting, LIMITS, **settings, executor=far, shards=6)
    same_bits(results.columns, jaxbandits.sweep(counting, LIMITS, **settings).columns)


def test_returned_runs_are_written_by_the_caller(tmp_path, far, plain):
    results = jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=far, shards=4)
    same_bits(results.columns, plain.columns)
    assert len(parts(tmp_path)) == 4
    assert results.stats.finished == 40
    same_bits(jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path).columns, plain.columns)
    with pytest.raises(ValueError, match="holds another sweep"):
        jaxbandits.sweep(counting, LIMITS + 1, **TINY, store=tmp_path, executor=far)


@pytest.mark.parametrize("failing", [[0], [2], [0, 3]])
def test_worker_that_fails_loses_only_its_shard(tmp_path, far, plain, failing):
    far.failing = failing
    with pytest.raises(RuntimeError, match="the node is gone") as raised:
        jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=far, shards=4)
    assert raised.value.__notes__ == [
        f"Runs that have finished are kept in {tmp_path}; the same call goes on from there."
    ]
    lost = 10 * len(failing)
    assert len(jaxbandits.load(tmp_path).columns["row"]) == 40 - lost
    kept = parts(tmp_path)
    far.failing, far.missing = (), []
    results = jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=far, shards=3)
    assert sum(far.missing) == lost
    assert set(kept) < set(parts(tmp_path))
    same_bits(results.columns, plain.columns)


def test_without_a_store_a_failure_says_that_nothing_is_kept(far):
    far.failing = [1]
    with pytest.raises(RuntimeError, match="the node is gone") as raised:
        jaxbandits.sweep(counting, LIMITS, **TINY, executor=far, shards=2)
    assert raised.value.__notes__ == ["Runs that have finished are lost without a store."]


def interrupt_after(far, monkeypatch, module, name):
    """Presses Ctrl-C when `module.name` is called first, once the workers have returned all that they run."""
    function = getattr(module, name)

    def interrupted(*arguments):
        monkeypatch.setattr(module, name, function)
        for future in far.running:
            future.result()
        raise KeyboardInterrupt

    monkeypatch.setattr(module, name, interrupted)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        pytest.param(shards.time, "sleep", id="before_the_caller_knows_that_they_are_returned"),
        pytest.param(shards, "write_part", id="while_the_caller_writes_the_first"),
    ],
)
def test_control_c_loses_no_returned_shard(tmp_path, far, plain, monkeypatch, module, name):
    far.endless = [1, 2]
    interrupt_after(far, monkeypatch, module, name)
    with pytest.raises(KeyboardInterrupt, match="20 of 40 runs are finished and stored in"):
        jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=far, shards=4)
    far.endless, far.missing = (), []
    results = jaxbandits.sweep(counting, LIMITS, **TINY, store=tmp_path, executor=far, shards=4)
    assert sum(far.missing) == 20
    same_bits(results.columns, plain.columns)


def test_open_arguments_are_taken_from_the_store(tmp_path, far, plain):
    jaxbandits.sweep(counting, LIMITS, **TINY | {"seeds": 2}, store=tmp_path)
    settings = TINY | {"lanes": None, "chunk": None}
    results = jaxbandits.sweep(counting, LIMITS, **settings, store=tmp_path, executor=far, shards=2)
    same_bits(results.columns, plain.columns)
    assert (results.stats.lanes, results.stats.chunk) == (4, 64)


def test_workers_may_choose_different_lanes_where_the_call_leaves_them_open(tmp_path, far, plain):
    far.lanes = [2, 3, 4]
    settings = TINY | {"lanes": None}
    results = jaxbandits.sweep(counting, LIMITS, **settings, store=tmp_path, executor=far, shards=3)
    same_bits(results.columns, plain.columns)
