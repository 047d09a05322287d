"""Sweeps on disk: storing, reading, resuming, and failures."""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import duckdb
import jax
import jax.numpy as jnp
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine.toys import KEY, LIMITS, NOISE, PATHS, counter, counting, same_bits, total

import jaxbandits
from jaxbandits.base import Status
from jaxbandits.engine import store as store_package
from jaxbandits.engine.store import writing
from jaxbandits.engine.sweep import driving

TASKS = LIMITS.astype(jnp.int32)  # 5, 400, 17, 90
SETTINGS = {"seeds": 5, "key": KEY, "max_rounds": 1000, "metrics": total, "lanes": 4, "chunk": 16, "progress": False}
RUNS = 20
HAND_MADE = {"seconds": 1.0, "compile_seconds": 0.5, "pulls": 10, "rounds": 10, "occupancy": 0.5}
HAND_MADE |= {"lanes": 4, "devices": 2, "batches": 1, "chunk": 16, "bytes": 100}


def build(limit, key):
    return counter(limit.astype(int)), NOISE


def sweep(store=None, *, build=build, tasks=TASKS, **changes):
    return jaxbandits.sweep(build, tasks, store=store, **(SETTINGS | changes))


def assert_same(a, b):
    same_bits(a.columns, b.columns)


def parts(folder):
    return {path.name for path in folder.glob("part-*.parquet")}


def about(folder, name):
    return json.loads(pq.read_schema(folder / name).metadata[b"jaxbandits"])


def identity(folder):
    return json.loads((folder / "_manifest.json").read_text()).get("identity")


def rewrite(path, change=lambda table: table):
    """Replaces a part by another one with the right checksum; returns its name."""
    buffer = pa.BufferOutputStream()
    pq.write_table(change(pq.ParquetFile(path).read()), buffer)
    path.unlink()
    data = buffer.getvalue().to_pybytes()
    name = f"part-{hashlib.sha256(data).hexdigest()}.parquet"
    (path.parent / name).write_bytes(data)
    return name


def runs(folder, names):
    return sum(about(folder, name)["runs"] for name in names)


def assert_tidy(folder):
    assert {path.name for path in folder.iterdir()} - parts(folder) <= {
        "_manifest.json",
        "_tasks.parquet",
        ".store.lock",
        ".call",
        ".manifest.lock",
    }


def failing(error, *, after=0):
    """Makes a function that works like `os.fsync` `after` times, and then raises."""
    works, calls = os.fsync, []

    def fsync(number):
        calls.append(number)
        if len(calls) > after:
            raise error
        works(number)

    return fsync


@pytest.fixture(scope="module")
def plain():
    """Sweeps without a store."""
    return sweep()


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Sweeps into a store, with a part for every chunk in which a run finished."""
    folder = tmp_path_factory.mktemp("stored")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "LAST_PAUSE", 0.0)
        sweep(folder)
    assert len(parts(folder)) >= 4
    return folder


@pytest.fixture
def copied(stored, tmp_path):
    """Copies the store, to be damaged, to a path that looks like a partitioned data set."""
    return Path(shutil.copytree(stored, tmp_path / "seed=3" / "epsilon=0.1"))


@pytest.fixture
def every_chunk(monkeypatch):
    monkeypatch.setattr(writing, "LAST_PAUSE", 0.0)


@pytest.fixture
def nothing_runs(monkeypatch):
    def compile_lanes(*args, **kwargs):
        raise AssertionError("nothing was to be compiled")

    monkeypatch.setattr(driving, "compile_lanes", compile_lanes)


def all_kinds(task, outcome):
    x = outcome.state.total
    return {
        "vector": x * jnp.arange(3.0),
        "matrix": x + jnp.arange(6.0).reshape(2, 3),
        "flag": x > 0,
        "flags": x > jnp.arange(-2.0, 2.0),
        "bytes": jnp.arange(3, dtype=jnp.uint8),
        "short": jnp.full((), -7, jnp.int16),
        "count": outcome.rounds,
        "half": x.astype(jnp.float16),
        "single": x.astype(jnp.float32) * jnp.arange(2, dtype=jnp.float32),
        "strange": jnp.stack([jnp.nan * x, jnp.asarray(jnp.inf), jnp.asarray(-jnp.inf), jnp.asarray(-0.0)]),
        "none": jnp.zeros(0, jnp.int32),
        "nones": jnp.zeros((2, 0, 3), jnp.float32),
    }


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """Sweeps with columns of all kinds into a store of several parts."""
    folder = tmp_path_factory.mktemp("kinds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "LAST_PAUSE", 0.0)
        return folder, sweep(folder, metrics=all_kinds)


def test_sweep_with_a_store_is_bitwise_equal(plain, stored):
    np.testing.assert_array_equal(plain.columns["pulls"], np.repeat([5, 400, 17, 90], 5))
    assert_same(jaxbandits.load(stored), plain)
    assert_tidy(stored)


def test_columns_of_all_kinds_survive(kinds):
    folder, from_sweep = kinds
    in_memory = sweep(metrics=all_kinds)
    assert in_memory.columns["nones"].shape == (RUNS, 2, 0, 3)
    assert np.signbit(in_memory.columns["strange"][:, 3]).all()
    assert_same(from_sweep, in_memory)
    assert_same(jaxbandits.load(str(folder)), in_memory)


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (lambda x: x.astype(complex), "complex128"),
        (lambda x: x.astype(jnp.bfloat16), "bfloat16"),
    ],
)
def test_a_dtype_that_parquet_lacks_is_refused_before_anything_runs(tmp_path, value, dtype):
    with pytest.raises(ValueError, match=f"answers and metrics must be booleans, .* got {dtype} for 'z'"):
        sweep(tmp_path, metrics=lambda task, outcome: {"z": value(outcome.state.total)})
    with pytest.raises(ValueError, match="store must be a folder that a sweep has written"):
        jaxbandits.load(tmp_path)


def test_pandas_duckdb_and_polars_read_the_folder_as_one_table(kinds):
    folder, results = kinds
    assert len(parts(folder)) > 1
    pulls = results.columns["pulls"].sum()
    assert pulls == 5 * (5 + 400 + 17 + 90)

    frame = pandas.read_parquet(folder).sort_values(["row", "seed"])
    assert len(frame) == RUNS
    np.testing.assert_array_equal(frame["pulls"], results.columns["pulls"])
    np.testing.assert_array_equal(np.stack(frame["vector"].to_list()), results.columns["vector"])

    query = f"""
        SELECT count(*), sum(pulls), sum(matrix[2][3]), sum((pulls = task)::int)
        FROM '{folder}/part-*.parquet' JOIN '{folder}/_tasks.parquet' USING (row)
    """
    count, total_pulls, corner, right = duckdb.connect().execute(query).fetchone()
    assert (count, total_pulls, right) == (RUNS, pulls, RUNS)
    assert corner == pytest.approx(results.columns["matrix"][:, 1, 2].sum())

    table = polars.read_parquet(f"{folder}/part-*.parquet").sort("row", "seed")
    assert table.height == RUNS
    np.testing.assert_array_equal(table["count"], results.columns["rounds"])
    np.testing.assert_array_equal(table["single"].to_numpy(), results.columns["single"])


def test_arrays_are_lists_of_fixed_size(kinds):
    folder, _ = kinds
    schema = pq.read_schema(folder / min(parts(folder)))
    assert schema.field("vector").type == pa.list_(pa.float64(), 3)
    assert schema.field("matrix").type == pa.list_(pa.list_(pa.float64(), 3), 2)
    assert schema.field("flags").type == pa.list_(pa.bool_(), 4)


def test_store_resumes_the_missing_runs(copied, plain, every_chunk):
    before = sorted(parts(copied), key=lambda name: about(copied, name)["seconds"])
    dropped, kept = before[:-1:2], {*before[1::2], before[-1]}  # the last part tells how the first sweep fared
    again = runs(copied, dropped)
    pulls = sum(int(pq.read_table(copied / name, partitioning=None)["pulls"].to_numpy().sum()) for name in dropped)
    assert 0 < again < RUNS
    for name in dropped:
        (copied / name).unlink()
    with pytest.raises(AssertionError):
        assert_same(jaxbandits.load(copied), plain)

    resumed = sweep(copied, lanes=None, chunk=None)  # the store's own are used

    assert_same(resumed, plain)
    assert kept <= parts(copied)
    assert runs(copied, parts(copied) - kept) == again
    assert (resumed.stats.lanes, resumed.stats.chunk) == (4, 16)
    assert resumed.stats.pulls == plain.columns["pulls"].sum() + pulls
    assert_tidy(copied)


@pytest.mark.usefixtures("nothing_runs")
def test_a_complete_store_is_read_and_not_compiled_again(copied, plain):
    assert_same(sweep(copied), plain)


def test_manifest_describes_the_sweep(stored):
    manifest = json.loads((stored / "_manifest.json").read_text())
    assert manifest["arguments"] == {
        "rows": 4,
        "seeds": 5,
        "max_rounds": 1000,
        "key": {"impl": "threefry2x32", "data": [0, 3]},
        "lanes": 4,
        "chunk": 16,
        "scalars": False,
    }
    assert manifest["tasks"]["table"] == {"": {"dtype": "int32", "shape": [4], "values": [5, 400, 17, 90]}}
    assert manifest["columns"] == {
        "row": "int64",
        "seed": "int64",
        "answer": "int64",
        "pulls": "int64",
        "rounds": "int32",
        "status": "int32",
        "total": "float64",
    }
    assert manifest["functions"]["metrics"] == "engine.toys.total"
    assert manifest["made_by"]["jax"] == jax.__version__
    assert manifest["made_by"]["x64"] is True
    assert manifest["parts"] == {
        path.name: {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in stored.glob("part-*.parquet")
    }


def test_the_manifest_is_replaced_as_a_whole(copied, monkeypatch):
    before = (copied / "_manifest.json").read_bytes()
    (copied / min(parts(copied))).unlink()
    monkeypatch.setattr(os, "fsync", failing(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OSError, match="No space left on device: the store cannot be written"):
        store_package.seal(copied)
    assert (copied / "_manifest.json").read_bytes() == before
    assert_tidy(copied)


def test_load_warns_of_missing_parts(copied, caplog):
    gone = max(parts(copied))
    (copied / gone).unlink()
    jaxbandits.load(copied)
    assert f"1 parts are missing, such as {gone}" in caplog.text


CLOSED_OVER = np.arange(1000.0)


def with_array(values):
    def build(limit, key):
        noise = lambda key: NOISE.noise(key) + jnp.asarray(values)[limit]  # noqa: E731
        return counter(limit.astype(int)), NOISE._replace(noise=noise)

    return build


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_rounds": 999}, "arguments.max_rounds: 1000 in the store, 999 now"),
        ({"key": jax.random.key(4)}, "arguments.key.data[1]: 3 in the store, 4 now"),
        ({"key": jax.random.PRNGKey(3)}, 'arguments.key.impl: "threefry2x32" in the store, "raw" now'),
        ({"lanes": 8}, "arguments.lanes: 4 in the store, 8 now"),
        ({"chunk": 17}, "arguments.chunk: 16 in the store, 17 now"),
        ({"tasks": TASKS.at[1].set(401)}, "tasks.table.values[1]: 400 in the store, 401 now"),
        ({"tasks": TASKS[:3].at[1].set(401)}, "tasks.table.values[1]: 400 in the store, 401 now"),
        ({"tasks": jnp.append(TASKS, 3).at[1].set(401)}, "tasks.table.values[1]: 400 in the store, 401 now"),
        ({"tasks": TASKS[1:], "seeds": 6}, "tasks.table.values[0]: 5 in the store, 400 now"),
        ({"tasks": TASKS[:, None]}, "tasks.table.shape: [4] in the store, [4, 1] now"),
        ({"tasks": LIMITS}, 'tasks.table.dtype: "int32" in the store, "int64" now'),
        ({"tasks": {"limit": TASKS}}, 'tasks.table.limit: null in the store, {"dtype": "int32",'),
        ({"metrics": None}, "(program: build and metrics, with all the values that they close over)"),
        (
            {"metrics": lambda task, outcome: {"twice": 2 * outcome.state.total}},
            'columns.twice: null in the store, "float64" now',
        ),
        ({"build": lambda limit, key: (counter(limit.astype(int) + 1), NOISE)}, "(program: build and metrics,"),
    ],
)
def test_another_sweep_is_refused_with_the_difference(stored, changes, message):
    before = (stored / "_manifest.json").read_bytes()
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        sweep(stored, **changes)
    assert f"store {str(stored)!r} holds another sweep:" in str(refused.value)
    assert (stored / "_manifest.json").read_bytes() == before


def test_a_value_that_build_closes_over_is_part_of_the_program(tmp_path):
    first = sweep(tmp_path, build=with_array(CLOSED_OVER))
    assert_same(sweep(tmp_path, build=with_array(CLOSED_OVER.copy())), first)
    with pytest.raises(ValueError, match="program: build and metrics"):
        sweep(tmp_path, build=with_array(np.where(CLOSED_OVER == 999, 998, CLOSED_OVER)))


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(
    ("setting", "difference"),
    [
        (jax.threefry_partitionable(False), "settings.threefry_partitionable: true in the store, false now"),
        (jax.default_matmul_precision("float32"), 'default_matmul_precision: null in the store, "float32" now'),
    ],
    ids=["threefry", "precision"],
)
def test_store_of_another_setting_names_it_and_not_build(stored, setting, difference):
    def with_product(task, outcome):
        return {"total": jnp.full((2, 2), outcome.state.total) @ jnp.ones((2, 2))}

    with setting, pytest.raises(ValueError, match=difference) as refused:
        sweep(stored, metrics=with_product)
    assert "(program: it may differ by these settings alone)" in str(refused.value)
    assert "build and metrics" not in str(refused.value)


def test_setting_that_changes_no_program_is_no_difference(copied, plain):
    with jax.default_matmul_precision("float32"):  # there is no matrix product
        assert_same(sweep(copied), plain)


def test_store_of_another_program_that_does_not_name_its_settings_blames_the_program(copied):
    written_before(copied)
    with jax.threefry_partitionable(False), pytest.raises(ValueError, match="program: build and metrics"):
        sweep(copied)


@pytest.mark.usefixtures("nothing_runs")
def test_other_versions_and_settings_are_refused(stored, monkeypatch):
    with jax.enable_x64(False), pytest.raises(ValueError, match="made_by.x64: true in the store, false now"):
        sweep(stored)
    for module in (jax, jaxbandits):
        name, version = module.__name__, module.__version__
        with monkeypatch.context() as patch:
            patch.setattr(module, "__version__", "77.0")
            with pytest.raises(ValueError, match=f'made_by.{name}: "{version}" in the store, "77.0" now'):
                sweep(stored)


def test_tasks_that_are_not_finite_are_equal_to_themselves(tmp_path, monkeypatch):
    settings = {"build": lambda task, key: (counter(5), NOISE), "tasks": jnp.asarray([jnp.nan, 1.0, -jnp.inf])}
    first = sweep(tmp_path, **settings)
    assert_same(sweep(tmp_path, **settings), first)
    with pytest.raises(ValueError, match="tasks.sha256"):
        sweep(tmp_path, build=settings["build"], tasks=settings["tasks"].at[0].set(2))


def cut_short(folder):
    path = folder / min(parts(folder))
    path.write_bytes(path.read_bytes()[:-100])
    return path.name


def flip_a_bit(folder):
    path = folder / min(parts(folder))
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    return path.name


def add_a_stranger(folder):
    pandas.DataFrame({"row": [0], "seed": [0]}).to_parquet(folder / "part-0.parquet")
    return "part-0.parquet"


@pytest.mark.parametrize("damage", [cut_short, flip_a_bit, add_a_stranger])
def test_damaged_parts_are_set_aside_and_run_again(copied, plain, caplog, damage):
    before = parts(copied)
    counts = {name: runs(copied, [name]) for name in before}
    damaged = damage(copied)
    data = (copied / damaged).read_bytes()
    with pytest.raises(ValueError, match=f"store has a part that is damaged, {damaged}. Call the same sweep again"):
        jaxbandits.load(copied)
    assert (copied / damaged).exists()

    assert_same(sweep(copied), plain)

    assert f"set {damaged} aside, which is damaged; its tasks are run again" in caplog.text
    assert (copied / f".{damaged}.damaged").read_bytes() == data
    assert damaged not in parts(copied)
    assert len(pandas.concat(map(pandas.read_parquet, copied.glob("part-*.parquet")))) == RUNS
    assert runs(copied, parts(copied) - before) == counts.get(damaged, 0)


@pytest.mark.usefixtures("nothing_runs")
def test_leftovers_of_a_killed_writer_are_removed(copied, plain):
    (copied / ".jaxbandits-0123").write_bytes(b"PAR1")
    (copied / ".notes.tmp").write_text("mine")
    assert_same(jaxbandits.load(copied), plain)
    assert_same(sweep(copied), plain)
    assert not (copied / ".jaxbandits-0123").exists()
    assert (copied / ".notes.tmp").read_text() == "mine"


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(
    "text", ['{"arguments": {"rows": 4,', "[]", '{"arguments": {}}', "\xff", "", "null", "3", "[" * 100_000]
)
def test_unreadable_manifest_is_named(copied, text):
    (copied / "_manifest.json").write_bytes(text.encode("latin1"))
    before = parts(copied)
    for call in (jaxbandits.load, sweep):
        with pytest.raises(ValueError, match="store has a manifest that cannot be read, '.*_manifest.json'"):
            call(copied)
    assert parts(copied) == before


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(
    ("where", "value"),
    [
        *(
            (name, value)
            for name in ("arguments", "tasks", "columns", "program", "made_by", "parts")
            for value in ([], None)
        ),
        *(
            (f"arguments.{name}", value)
            for name in ("rows", "seeds", "lanes", "chunk")
            for value in (None, 0, "4", 1.5)
        ),
        ("tasks.sha256", None),
        ("columns", {}),
        ("columns.pulls", 64),
        ("columns.pulls", "int64[a]"),
        ("columns.pulls", "text"),
        ("columns.row", None),
        ("identity", 3),
    ],
)
def test_manifest_of_another_shape_is_refused_by_its_place(copied, where, value):
    manifest = json.loads((copied / "_manifest.json").read_text())
    *outer, name = where.split(".")
    (manifest[outer[0]] if outer else manifest)[name] = value
    (copied / "_manifest.json").write_text(json.dumps(manifest))
    before = parts(copied)
    for call in (jaxbandits.load, sweep):
        with pytest.raises(ValueError, match="store has a manifest that cannot be read, '.*_manifest.json'"):
            call(copied)
    assert parts(copied) == before


@pytest.mark.usefixtures("nothing_runs")
def test_manifest_that_is_a_folder_is_refused(copied):
    (copied / "_manifest.json").unlink()
    (copied / "_manifest.json").mkdir()
    for call in (jaxbandits.load, sweep):
        with pytest.raises(ValueError, match="store has a manifest that cannot be read, '.*_manifest.json'"):
            call(copied)


def with_about(change):
    """Changes the metadata of a part."""

    def rewritten(table):
        metadata = json.loads(table.schema.metadata[b"jaxbandits"])
        return table.replace_schema_metadata({b"jaxbandits": json.dumps(change(metadata))})

    return rewritten


def with_first(name, value):
    """Replaces the first value of a column."""

    def rewritten(table):
        n = table.schema.get_field_index(name)
        values = [value, *table[name].to_pylist()[1:]]
        return table.set_column(n, name, pa.array(values, table.schema.field(name).type))

    return rewritten


def without(name):
    return lambda about: {key: value for key, value in about.items() if key != name}


UNFIT = {
    "row -1": (with_first("row", -1), "has a run of row -1, of 0 to 3"),
    "row 7 of 4": (with_first("row", 7), "has a run of row 7, of 0 to 3"),
    "row 2^40": (with_first("row", 2**40), f"has a run of row {2**40}, of 0 to 3"),
    "seed -1": (with_first("seed", -1), "has a run of seed -1, of 0 to 4"),
    "seed 5 of 5": (with_first("seed", 5), "has a run of seed 5, of 0 to 4"),
    "no seed": (with_first("seed", None), "has a column 'seed' with missing values"),
    "no total": (with_first("total", None), "has a column 'total' with missing values"),
    "no column": (lambda table: table.drop_columns(["total"]), "has no column 'total'"),
    "another type": (
        lambda table: table.set_column(
            table.schema.get_field_index("total"), "total", table["total"].cast(pa.float32())
        ),
        "has a column 'total' of type float, not double",
    ),
    "no metadata": (lambda table: table.replace_schema_metadata(None), "has no metadata that can be read"),
    "metadata of another": (
        lambda table: table.replace_schema_metadata({b"jaxbandits": b"{"}),
        "has no metadata that can be read",
    ),
    "deep metadata": (
        lambda table: table.replace_schema_metadata({b"jaxbandits": b"[" * 100_000}),
        "has no metadata that can be read",
    ),
    "a list": (with_about(lambda about: [3]), "has no metadata that can be read"),
    "no session": (with_about(without("session")), "has no metadata that can be read"),
    "no seconds": (with_about(without("seconds")), "has no metadata that can be read"),
    "seconds in words": (with_about(lambda about: about | {"seconds": "3"}), "has no metadata that can be read"),
    "another identity": (with_about(lambda about: about | {"identity": "f" * 32}), "is of another store"),
    "no identity": (with_about(without("identity")), "is of another store"),
}


@pytest.mark.parametrize(("change", "reason"), UNFIT.values(), ids=UNFIT)
def test_part_with_a_right_checksum_that_does_not_fit_is_set_aside(copied, plain, caplog, change, reason):
    first = min(parts(copied), key=lambda name: about(copied, name)["seconds"])
    name = rewrite(copied / first, change)
    with pytest.raises(
        ValueError, match=re.escape(f"store has a part that {reason}, {name}. Call the same sweep again")
    ):
        jaxbandits.load(copied)

    assert_same(sweep(copied), plain)

    assert f"set {name} aside, which {reason}; its tasks are run again" in caplog.text
    assert len(list(copied.glob(f".{name}.*"))) == 1
    assert_same(jaxbandits.load(copied), plain)


def test_part_that_is_no_parquet_file_is_set_aside(copied, plain, caplog):
    data = b"PAR1 and no more"
    name = f"part-{hashlib.sha256(data).hexdigest()}.parquet"
    (copied / name).write_bytes(data)
    with pytest.raises(ValueError, match=f"store has a part that cannot be read .*, {name}"):
        jaxbandits.load(copied)
    assert_same(sweep(copied), plain)
    assert f"set {name} aside, which cannot be read" in caplog.text


def test_folder_that_is_named_like_a_part_is_set_aside(copied, plain, caplog):
    for _ in range(2):  # folders set aside before stay
        (copied / "part-1.parquet").mkdir()
        (copied / "part-1.parquet" / "notes").write_text("mine")
        with pytest.raises(ValueError, match="store has a part that is a folder, part-1.parquet"):
            jaxbandits.load(copied)
        assert_same(sweep(copied), plain)
    assert "set part-1.parquet aside, which is a folder" in caplog.text
    assert [(copied / f".part-1.parquet.damaged{n}" / "notes").read_text() for n in ("", "-2")] == ["mine"] * 2


@pytest.mark.parametrize(
    "changes", [{"key": jax.random.key(9)}, {"tasks": TASKS + 1}, {}], ids=["key", "tasks", "same"]
)
def test_part_of_another_store_is_set_aside_and_its_runs_are_made_again(
    copied, tmp_path, plain, caplog, every_chunk, changes
):
    """Simulates two stores merged by rsync, with the same columns and other runs."""
    other = tmp_path / "other"
    sweep(other, **changes)
    lost, foreign = min(parts(copied), key=lambda name: about(copied, name)["seconds"]), min(parts(other))
    (copied / lost).unlink()
    shutil.copy(other / foreign, copied)
    with pytest.raises(ValueError, match=f"store has a part that is of another store, {foreign}"):
        jaxbandits.load(copied)
    assert_same(sweep(copied), plain)
    assert f"set {foreign} aside, which is of another store; its tasks are run again" in caplog.text
    assert (copied / f".{foreign}.foreign").read_bytes() == (other / foreign).read_bytes()


def written_before(folder):
    """Turns a store into one of the time before stores had an identity."""
    manifest = json.loads((folder / "_manifest.json").read_text())
    del manifest["identity"], manifest["settings"]
    for name in parts(folder):
        rewrite(folder / name, with_about(without("identity")))
    (folder / "_manifest.json").write_text(json.dumps(manifest))


def test_store_without_an_identity_is_read_goes_on_and_grows(copied, plain, every_chunk):
    written_before(copied)
    assert_same(jaxbandits.load(copied), plain)
    kept = parts(copied) - {min(parts(copied))}
    (copied / min(parts(copied))).unlink()
    assert_same(sweep(copied), plain)
    assert kept <= parts(copied)
    assert_same(sweep(copied, seeds=7), sweep(seeds=7))
    assert identity(copied) is None
    assert all("identity" not in about(copied, name) for name in parts(copied))


def test_part_with_an_identity_is_set_aside_by_a_store_without(copied, tmp_path, plain, every_chunk):
    sweep(tmp_path / "other", key=jax.random.key(9))
    written_before(copied)
    foreign = min(parts(tmp_path / "other"))
    (copied / min(parts(copied))).unlink()
    shutil.copy(tmp_path / "other" / foreign, copied)
    assert_same(sweep(copied), plain)
    assert (copied / f".{foreign}.foreign").exists()


@pytest.mark.usefixtures("every_chunk")
@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "a folder"])
def test_sweep_whose_call_is_taken_away_goes_on(tmp_path, plain, monkeypatch, replaced):
    monkeypatch.setattr(driving, "STOP_CHECK_SECONDS", 0.0)
    write, taken = writing.write_part, []

    def write_part(*args):
        write(*args)
        if not taken:
            (tmp_path / ".call").unlink()
            if replaced:
                (tmp_path / ".call").mkdir()
        taken.append(True)

    monkeypatch.setattr(writing, "write_part", write_part)
    assert_same(sweep(tmp_path), plain)
    assert len(taken) > 1


@pytest.mark.parametrize(
    "tasks", [b"", b"[", "folder", {"": 3}, [], {"": {"dtype": "int32", "numbers": "int32", "shape": "x"}}], ids=repr
)
def test_table_that_cannot_be_read_is_written_anew(copied, plain, tasks):
    path = copied / "_tasks.parquet"
    right = path.read_bytes()
    if tasks == "folder":
        path.unlink()
        path.mkdir()
    elif isinstance(tasks, bytes):
        path.write_bytes(tasks)
    else:
        table = pq.ParquetFile(path).read().replace_schema_metadata({b"jaxbandits": json.dumps(tasks)})
        pq.write_table(table, path)
    without_table = jaxbandits.load(copied)
    assert "task" not in without_table.columns
    if tasks == "folder":
        path.rmdir()
    assert_same(sweep(copied), plain)
    assert path.read_bytes() == right


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("", "store must be a path that is not empty, got ''"),
        ("a\0b", r"store must be a path without NUL characters, got 'a\\x00b'"),
        (b"runs", "store must be a path, got b'runs'"),
        (3, "store must be a path, got 3"),
        ("s3://bucket/runs", "store must be a path of a mounted file system, got 's3://bucket/runs'"),
        ("\ud800", "store must be a path that the file system can encode, got"),
        ("~nobody-of-this-name/runs", "store must be a path below the home folder of a known user, got '~nobody-of-"),
    ],
)
def test_path_that_no_store_can_have_is_refused(tmp_path, monkeypatch, store, message):
    monkeypatch.chdir(tmp_path)
    for call in (jaxbandits.load, sweep):
        with pytest.raises(ValueError, match=message):
            call(store)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("of", [str, Path])
def test_tilde_is_the_home_folder(tmp_path, monkeypatch, plain, of):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert_same(sweep(of("~/runs")), plain)
    assert_same(jaxbandits.load(of("~/runs")), plain)
    assert list((tmp_path / "here").iterdir()) == []
    assert parts(tmp_path / "home" / "runs")


@pytest.mark.parametrize("name", ["seed=4/row=1", "total=a", os.fsdecode(b"caf\xe9"), "a b%20c#d?e"], ids=repr)
def test_store_of_any_name_is_written_and_read(tmp_path, plain, name, monkeypatch):
    """A folder `seed=4` is no partition, and a name need not be UTF-8: PyArrow gets files, never paths."""
    store = tmp_path / name
    assert_same(sweep(store, seeds=3), sweep(seeds=3))

    def refused(*args, **kwargs):
        raise AssertionError("PyArrow was given a path")

    monkeypatch.setattr(pa.fs, "LocalFileSystem", refused)
    monkeypatch.setattr(pq, "ParquetDataset", refused)
    assert_same(sweep(store), plain)
    assert_same(jaxbandits.load(store), plain)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads as Linux lists them")
def test_store_is_loaded_and_written_without_threads_of_pyarrow(stored, tmp_path):
    """Such a thread survives until exit, where its Python objects can end the process with SIGABRT."""
    child = in_a_child(
        """
import os, pathlib, sys
import numpy as np, pyarrow.parquet
import jaxbandits
from jaxbandits.engine import store

def threads():
    names = [path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm")]
    return len([name for name in names if not name.startswith("jemalloc")])  # not the allocator's

folder, other = map(pathlib.Path, sys.argv[1:])
before = threads()
results = jaxbandits.load(folder)
columns = {name: values for name, values in results.columns.items() if name != "task"}
store.write_part(other, columns, {"session": "a"}, None)
print(len(columns["row"]), threads() - before)
""",
        stored,
        tmp_path,
    )
    assert child.stdout.split() == [str(RUNS), "0"], child.stderr


def test_files_that_pyarrow_reads_itself_hold_nothing_of_python(stored, monkeypatch):
    opened, sources = pq.ParquetFile, []
    monkeypatch.setattr(pq, "ParquetFile", lambda source: sources.append(source) or opened(source))
    assert store_package.finished(stored, 4, 5).all()
    assert len(store_package.new_parts(stored, set())) == len(parts(stored))
    assert len(sources) == 2 * len(parts(stored))
    assert {type(source) for source in sources} == {pa.OSFile}


UNWRITABLE = [
    PermissionError(errno.EACCES, "Permission denied"),
    OSError(errno.EROFS, "Read-only file system"),
    OSError(errno.ENOSPC, "No space left on device"),
]


@pytest.fixture(params=UNWRITABLE, ids=["permission", "read-only", "full"])
def unwritable(request, monkeypatch):
    """Makes every attempt to write a file fail; file modes would not stop root."""

    def refuse(*args, **kwargs):
        raise request.param

    monkeypatch.setattr(Path, "write_bytes", refuse)
    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr(os, "rename", refuse)
    return request.param


@pytest.mark.usefixtures("nothing_runs")
def test_finished_store_that_may_not_be_written_is_only_read(copied, plain, unwritable):
    before = {path: path.stat().st_mtime_ns for path in copied.iterdir()}
    assert_same(sweep(copied), plain)
    assert_same(sweep(copied, lanes=None, chunk=None), plain)
    fewer = sweep(copied, seeds=2)
    np.testing.assert_array_equal(fewer.columns["seed"], [0, 1] * 4)
    for changes, difference in (({"key": jax.random.key(4)}, "arguments.key"), ({"metrics": None}, "program: build")):
        with pytest.raises(ValueError, match=difference):
            sweep(copied, **changes)
    assert {path: path.stat().st_mtime_ns for path in copied.iterdir()} == before


@pytest.mark.usefixtures("nothing_runs")
def test_store_that_lacks_runs_and_may_not_be_written_is_an_error(copied, unwritable):
    for change in ({"seeds": 6}, {"tasks": jnp.append(TASKS, 3)}):
        with pytest.raises(OSError, match="the store cannot be written") as refused:
            sweep(copied, **change)
        assert refused.value.errno == unwritable.errno
    (copied / min(parts(copied))).unlink()
    with pytest.raises(OSError, match="the store cannot be written"):
        sweep(copied)


@pytest.mark.usefixtures("nothing_runs")
def test_second_sweep_of_a_process_is_refused(copied):
    expected = "another sweep, of this process or another one, is writing to this store"
    with store_package.locked(copied, "store"), pytest.raises(BlockingIOError, match=expected):
        sweep(copied)


@pytest.mark.usefixtures("nothing_runs")
def test_a_folder_of_other_parquet_files_is_left_alone(tmp_path):
    name = add_a_stranger(tmp_path)
    with pytest.raises(ValueError, match=f"store must be a new folder or .* has no _manifest.json and holds {name}"):
        sweep(tmp_path)
    assert parts(tmp_path) == {name}


@pytest.mark.usefixtures("nothing_runs")
def test_a_second_writer_is_refused_until_the_first_process_ends(copied, plain):
    code = (
        "import fcntl; file = open('.store.lock'); fcntl.flock(file, fcntl.LOCK_EX); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=copied, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(
            BlockingIOError, match="another sweep, of this process or another one, is writing to this"
        ) as refused:
            sweep(copied)
        assert refused.value.filename == str(copied)
        assert_same(jaxbandits.load(copied), plain)  # reading needs no lock
        other.kill()
    assert_same(sweep(copied), plain)


def test_locks_shared_and_not(tmp_path):
    with store_package.locked(tmp_path, "store") as let_others_write:
        with pytest.raises(BlockingIOError), store_package.locked(tmp_path, "store", shared=True):
            pass
        let_others_write()
        with store_package.locked(tmp_path, "store", shared=True), store_package.locked(tmp_path, "shard-0"):
            pass
        with pytest.raises(BlockingIOError), store_package.locked(tmp_path, "store"):
            pass
    with store_package.locked(tmp_path, "store"):
        pass


def test_a_lock_file_is_open_for_both_kinds_of_lock(tmp_path, monkeypatch):
    """Over NFS, a shared lock needs a readable file and an exclusive lock a writable one."""
    modes = []
    monkeypatch.setattr(fcntl, "flock", lambda file, kind: modes.append((file.readable(), file.writable())))
    with store_package.locked(tmp_path, "store", shared=True):
        assert modes == [(True, True)]


@pytest.mark.usefixtures("nothing_runs")
def test_a_file_system_without_locks_is_warned_of(copied, plain, monkeypatch, caplog):
    def flock(file, kind):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    assert_same(sweep(copied), plain)
    assert "is on a file system without locks. Make sure that no two sweeps write to it." in caplog.text
    with store_package.locked(copied, "store") as let_others_write:
        let_others_write()


def test_lock_failure_is_an_error(tmp_path, monkeypatch):
    def flock(file, kind):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match="Input/output error"), store_package.locked(tmp_path, "store"):
        pass


def in_a_child(script, *args):
    """Runs a script with the settings of the tests, the toys at hand; its arguments are in `sys.argv`."""
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, args)],
        env=os.environ
        | {
            "PYTHONPATH": PATHS,
            "JAX_ENABLE_X64": "1",
            "JAX_NUMPY_DTYPE_PROMOTION": "strict",
            "JAX_ENABLE_COMPILATION_CACHE": "0",  # into which a child that may not write would put half a program
        },
        capture_output=True,
        text=True,
    )


# `sweep` as it is above, but of the toys' own functions, which another process knows, too.
CHILD = """
import os, resource, signal, sys, time
import jaxbandits
from engine.toys import KEY, LIMITS, counting, total
from jaxbandits.engine.store import writing
writing.LAST_PAUSE = 0.0

def sweep(seeds):
    settings = {"key": KEY, "max_rounds": 1000, "metrics": total, "lanes": 4, "chunk": 16, "progress": False}
    return jaxbandits.sweep(counting, LIMITS, seeds=seeds, store=sys.argv[1], **settings)

"""


def plain_of_toys(seeds):
    return jaxbandits.sweep(counting, LIMITS, **(SETTINGS | {"seeds": seeds}))


def test_a_file_that_may_not_grow_is_a_clear_error_and_the_same_call_goes_on(tmp_path):
    """The manifest takes some 1000 bytes and a part 3000: a limit of 2000 stops the first part."""
    child = in_a_child(
        CHILD
        + """
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, most))
try:
    sweep(5)
except OSError as error:
    print(error)
print(*(name for name in os.listdir(sys.argv[1]) if "part" in name or "jaxbandits" in name))
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
sweep(5)
""",
        tmp_path,
    )
    assert child.returncode == 0, child.stderr
    message, left_behind = child.stdout.splitlines()
    assert message.startswith(f"[Errno {errno.EFBIG}] File too large: the store cannot be written; runs that were")
    assert message.endswith(f"the same call goes on from there once there is room and permission: {str(tmp_path)!r}")
    assert left_behind == ""
    assert_same(jaxbandits.load(tmp_path), plain_of_toys(seeds=5))
    assert_tidy(tmp_path)


@pytest.mark.usefixtures("nothing_runs")
@pytest.mark.parametrize(("name", "error"), [("file", FileExistsError), ("file/store", NotADirectoryError)])
def test_store_that_cannot_be_a_folder_is_refused_at_once(tmp_path, name, error):
    (tmp_path / "file").write_text("")
    with pytest.raises(error, match="the store cannot be written"):
        sweep(tmp_path / name)


@pytest.mark.usefixtures("nothing_runs")
def test_a_store_needs_pyarrow_and_says_so_at_once(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match="store= keeps runs in Parquet files with pyarrow: pip install"):
        sweep(tmp_path)


@pytest.mark.usefixtures("every_chunk")
def test_full_disk_loses_no_stored_run(tmp_path, plain, monkeypatch):
    # two syncs a file: the call, the table, the manifest, two parts, and then the disk is full
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(OSError(errno.ENOSPC, "No space left on device"), after=10))
        with pytest.raises(OSError, match="No space left on device: the store cannot be written; runs that") as full:
            sweep(tmp_path)
    assert full.value.errno == errno.ENOSPC
    assert_tidy(tmp_path)
    kept = parts(tmp_path)
    assert len(kept) == 2
    assert runs(tmp_path, kept) < RUNS

    assert_same(sweep(tmp_path), plain)
    assert kept <= parts(tmp_path)


@pytest.mark.processes
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_after_the_chunk_and_the_same_call_goes_on(tmp_path):
    child = in_a_child(
        CHILD
        + """
write_part, written = writing.write_part, []

def interrupted(*args):
    write_part(*args)
    written.append(args)
    if len(written) == 3:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)  # in this thread, while the main one receives it

writing.write_part = interrupted
sweep(25)
""",
        tmp_path,
    )
    assert child.returncode == -signal.SIGINT, child.stderr
    stored = int(store_package.finished(tmp_path, 4, 25).sum())
    assert 0 < stored < 100
    assert child.stderr.splitlines()[-1] == (
        f"KeyboardInterrupt: {stored} of 100 runs are finished and stored in {tmp_path}; the same call goes on from "
        "there"
    )
    assert len(jaxbandits.load(tmp_path).columns["row"]) == stored
    before = parts(tmp_path)

    resumed = jaxbandits.sweep(counting, LIMITS, store=tmp_path, **(SETTINGS | {"seeds": 25}))

    assert_same(resumed, plain_of_toys(seeds=25))
    assert runs(tmp_path, parts(tmp_path) - before) == 100 - stored


@pytest.mark.parametrize("name", ["", "missing", "file"])
def test_load_names_a_folder_that_is_no_store(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="store must be a folder that a sweep has written, but .* has no _manifest"):
        jaxbandits.load(tmp_path / name)


def test_a_store_without_runs_has_empty_columns(kinds, tmp_path):
    folder, results = kinds
    for name in ("_manifest.json", "_tasks.parquet"):
        shutil.copy(folder / name, tmp_path)
    empty = jaxbandits.load(tmp_path)
    assert list(empty.columns) == list(results.columns)
    for name, values in empty.columns.items():
        assert values.dtype == results.columns[name].dtype
        assert values.shape == (0, *results.columns[name].shape[1:])
    assert empty.stats.pulls == 0
    assert len(empty.summary()["runs"]) == 0


def test_duplicate_run_is_named(copied, plain):
    again = {name: values[[7, 11]] for name, values in plain.columns.items() if name != "task"}
    writing.write_part(copied, again, {"session": "another"} | HAND_MADE, identity(copied))
    expected = r"store has 2 runs more than once, the first \(row, seed\) = \(1, 2\)"
    with pytest.raises(ValueError, match=expected):
        jaxbandits.load(copied)
    assert_same(sweep(copied), plain)
    assert list(copied.glob(".part-*.doubled"))


def test_stats_add_up_the_processes_that_wrote(stored, plain, tmp_path):
    shutil.copy(stored / "_manifest.json", tmp_path)
    abouts = [
        {"session": "a"} | HAND_MADE,
        {"session": "a"} | HAND_MADE | {"seconds": 3.0, "pulls": 30, "rounds": 20, "occupancy": 0.25, "visits": 3},
        {"session": "b"} | HAND_MADE | {"seconds": 2.0, "pulls": 5, "rounds": 10, "lanes": 8, "visits": 4},
    ]
    for n in np.random.default_rng(0).permutation(3):
        columns = {name: values[[n]] for name, values in plain.columns.items() if name != "task"}
        writing.write_part(tmp_path, columns, abouts[n], identity(tmp_path))
    stats = jaxbandits.load(tmp_path).stats
    # the last part of "a" counts: 20 of 80 lane-rounds; for "b" 10 of 20
    assert stats._asdict() == {
        "seconds": 5.0,
        "compile_seconds": 1.0,
        "pulls": 35,
        "rounds": 30,
        "occupancy": 0.3,
        "lanes": 8,
        "devices": 2,
        "batches": 1,
        "chunk": 16,
        "bytes": 100,
        "finished": 0,
        "visits": 7,
        "host_seconds": 0.0,
        "xla_seconds": 0.0,
    }


def test_part_counts_its_endings(tmp_path):
    status = np.asarray([Status.STOPPED, Status.MAX_ROUNDS, Status.MAX_ROUNDS, Status.NONFINITE, Status.STOPPED])
    writing.write_part(tmp_path, {"row": np.arange(5), "status": status}, {"session": "a"} | HAND_MADE, "b")
    (told,) = store_package.new_parts(tmp_path, set())
    assert told == {"session": "a", "identity": "b", "runs": 5, "censored": 2, "failed": 1} | HAND_MADE


def test_parts_become_less_frequent(tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(writing, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    writer = store_package.Writer(tmp_path, lambda: None, lambda: None, None)

    def due(seconds, waiting=0):
        clock[0] = 100.0 + seconds
        return writer.due(waiting)

    assert [due(0.5), due(1.0), due(1.1)] == [False, False, True]
    writer.write()
    assert [due(2.0), due(2.2)] == [False, True]
    due(990.0)
    writer.write()
    assert [due(999.8), due(1000.1)] == [False, True]  # a hundredth of the time so far
    due(9970.0)
    writer.write()
    assert [due(9999.9), due(10000.1)] == [False, True]
    writer.write()
    assert [due(10000.2, waiting=2**18), due(10000.2, waiting=2**18 + 1)] == [False, True]
