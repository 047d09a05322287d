"""A store that grows: more seeds and rows run the missing tasks, fewer return the requested ones."""

import json
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest
from engine.toys import KEY, counting, same_bits, total

import jaxbandits
from jaxbandits.engine.sweep import driving

LIMITS = jnp.asarray([5, 40, 17, 30, 8])
SETTINGS = {"key": KEY, "max_rounds": 1000, "metrics": total, "lanes": 4, "chunk": 16, "progress": False}
ROWS, SEEDS = 5, 6


def sweep(store, rows=ROWS, seeds=SEEDS, **changes):
    return jaxbandits.sweep(counting, LIMITS[:rows], seeds=seeds, store=store, **SETTINGS | changes)


def stored(folder):
    """Runs in the parts of a store."""
    return sum(pq.read_metadata(path).num_rows for path in folder.glob("part-*.parquet"))


def manifest(folder):
    return json.loads((folder / "_manifest.json").read_text())


@pytest.fixture(scope="module")
def whole():
    """Sweeps all rows and seeds in one call, without a store."""
    return jaxbandits.sweep(counting, LIMITS, seeds=SEEDS, **SETTINGS).columns


def assert_are(columns, whole, rows, seeds):
    """Asserts that columns are the runs of the first rows and seeds, bit for bit."""
    chosen = (whole["row"] < rows) & (whole["seed"] < seeds)
    same_bits(columns, {name: values[chosen] for name, values in whole.items()})


def test_more_seeds_and_rows_run_the_missing_tasks(tmp_path, whole):
    for rows, seeds, have in ((2, 2, 4), (2, 4, 8), (5, 3, 17), (5, 6, 30)):
        assert_are(sweep(tmp_path, rows, seeds, lanes=None, chunk=None if have > 4 else 16).columns, whole, rows, seeds)
        assert stored(tmp_path) == have  # third call: rows 2 to 4 for three seeds; two rows have four seeds
        held = manifest(tmp_path)["arguments"]
        assert (held["rows"], held["seeds"]) == (rows, max(seeds, 4) if have > 4 else seeds)
    assert_are(jaxbandits.load(tmp_path).columns, whole, 5, 6)
    np.testing.assert_array_equal(jaxbandits.load(tmp_path).columns["task"], np.repeat(LIMITS, 6))


def test_fewer_seeds_and_rows_leave_the_store_unchanged(tmp_path, whole, monkeypatch):
    sweep(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name[0] != "."}
    monkeypatch.setattr(driving, "compile_lanes", None)
    for rows, seeds in ((5, 2), (3, 6), (1, 1)):
        assert_are(sweep(tmp_path, rows, seeds).columns, whole, rows, seeds)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name[0] != "."} == before


def test_workers_grow_a_store_too(tmp_path, whole):
    sweep(tmp_path, rows=3, seeds=3)
    with ThreadPoolExecutor(2) as executor:
        assert_are(sweep(tmp_path, executor=executor, shards=3).columns, whole, ROWS, SEEDS)
    assert stored(tmp_path) == ROWS * SEEDS


def test_a_lost_table_of_tasks_is_written_anew(tmp_path, whole, caplog):
    table = tmp_path / "_tasks.parquet"
    sweep(tmp_path)
    good = table.read_bytes()
    for damage in (table.unlink, lambda: table.write_bytes(good[:-50]), lambda: table.write_bytes(b"PAR1")):
        damage()
        caplog.clear()
        assert "task" not in jaxbandits.load(tmp_path).columns
        assert "_tasks.parquet is missing or damaged. Call the same sweep again to rewrite it." in caplog.text
        with pytest.raises(ValueError, match="arguments.rows: 5 in the store, 3 now"):  # it cannot compare them
            sweep(tmp_path, rows=3)
        assert_are(sweep(tmp_path).columns, whole, ROWS, SEEDS)
        assert table.read_bytes() == good


def test_table_ahead_of_its_manifest_is_cut_to_the_manifest(tmp_path, whole):
    """Simulates a process killed between writing the table and the manifest."""
    sweep(tmp_path, rows=3)
    old = (tmp_path / "_manifest.json").read_bytes()
    sweep(tmp_path, rows=5)
    (tmp_path / "_manifest.json").write_bytes(old)
    for path in tmp_path.glob("part-*.parquet"):
        if (pq.read_table(path)["row"].to_numpy() > 2).any():
            path.unlink()
    assert_are(jaxbandits.load(tmp_path).columns, whole, 3, SEEDS)
    assert_are(sweep(tmp_path).columns, whole, ROWS, SEEDS)


def test_task_tables_of_all_kinds_are_compared(tmp_path):
    """Keys, numbers that Parquet has no name for, and arrays without entries."""

    def table(rows):
        return {
            "key": jax.random.split(KEY, 4)[:rows],
            "half": jnp.arange(4, dtype=jnp.bfloat16)[:rows],
            "pairs": jnp.arange(8).reshape(4, 2).astype(complex)[:rows],
            "none": jnp.zeros((rows, 0, 3)),
            "flag": jnp.asarray([True, False, True, False])[:rows],
        }

    def build(task, key):
        return counting(jnp.where(task["flag"], 5, 9), key)

    def run(rows, **changes):
        settings = SETTINGS | {"metrics": None}
        return jaxbandits.sweep(build, table(rows) | changes, seeds=1, store=tmp_path, **settings).columns

    np.testing.assert_array_equal(run(3)["task.half"], [0, 1, 2])
    np.testing.assert_array_equal(run(4)["pulls"], [5, 9, 5, 9])
    columns = run(2)
    assert [name for name in columns if name.startswith("task")] == ["task.flag", "task.half"]
    assert columns["task.half"].dtype == np.float32
    for name, other in (
        ("key", jax.random.split(jax.random.key(9), 4)[:2]),
        ("half", jnp.ones(2, jnp.bfloat16)),
        ("pairs", jnp.zeros((2, 2), complex)),
    ):
        with pytest.raises(ValueError, match="tasks.sha256"):
            run(2, **{name: other})
