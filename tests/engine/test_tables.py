"""Tables of tasks, the columns that they add, and results as tidy tables."""

import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from engine.toys import KEY, NOISE, counter
from matplotlib.figure import Figure

import jaxbandits
from jaxbandits import Results, concatenate, grid, rows
from jaxbandits.engine.results.runs import Stats
from jaxbandits.engine.results.tables import leaves_of, number_columns

STATS = Stats(
    seconds=1.0,
    compile_seconds=0.5,
    pulls=10,
    rounds=10,
    occupancy=0.5,
    lanes=4,
    devices=1,
    batches=1,
    chunk=16,
    bytes=100,
)


def results_of(**columns):
    return Results({name.replace("__", "."): np.asarray(values) for name, values in columns.items()}, STATS)


def build(task, key):
    return counter(task["limit"] + task["more"]["by"]), NOISE


@pytest.fixture(scope="module")
def swept():
    """Sweeps four rows with three seeds; limits 5, 6, 40 and 41, and an unused vector per row."""
    table = grid(limit=[5, 40], more={"by": np.arange(2)})
    table["arms"] = np.ones((4, 2))
    return jaxbandits.sweep(build, table, seeds=3, key=KEY, max_rounds=30, lanes=4, chunk=16, progress=False)


def test_a_grid_has_every_combination_and_the_last_axis_is_the_fastest():
    table = grid(delta=[0.1, 0.01], gap=(1, 2, 3))
    np.testing.assert_array_equal(table["delta"], [0.1, 0.1, 0.1, 0.01, 0.01, 0.01])
    np.testing.assert_array_equal(table["gap"], [1, 2, 3, 1, 2, 3])
    assert table["gap"].dtype == np.int64


def test_the_axis_of_a_grid_may_hold_structs_and_arrays():
    soare = [jaxbandits.linear.canonical(gap) for gap in (0.1, 0.2)]
    table = grid(instance=soare, theta=np.arange(6.0).reshape(3, 2), key=jax.random.split(KEY, 2))
    assert table["instance"].theta.shape == (12, *soare[0].theta.shape)
    np.testing.assert_array_equal(table["instance"].theta[6], soare[1].theta)
    np.testing.assert_array_equal(table["theta"][2], [2, 3])
    np.testing.assert_array_equal(table["theta"][4], [4, 5])
    assert (table["key"][:2] == jax.random.split(KEY, 2)).all()
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *soare)
    jax.tree.map(np.testing.assert_array_equal, grid(instance=stacked), grid(instance=soare))


def test_rows_are_zipped_and_numbers_are_shared():
    table = rows(delta=[0.1, 0.2], gap=range(2), scale=2.5)
    np.testing.assert_array_equal(table["delta"], [0.1, 0.2])
    np.testing.assert_array_equal(table["gap"], [0, 1])
    np.testing.assert_array_equal(table["scale"], [2.5, 2.5])
    assert rows(delta=0.1)["delta"].shape == (1,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: grid(), "axes must have at least one name, got none"),
        (lambda: rows(), "columns must have at least one name, got none"),
        (lambda: grid(rule=["greedy", "tracking"]), "rule must be a sequence of numbers, .* got"),
        (lambda: grid(gap=[[1, 2], [3]]), r"gap must have vectors of one length, got lengths \[2, 1\]"),
        (lambda: rows(delta=[0.1], gap=[1, 2]), "delta and gap must be of one length, got: delta has 1, gap has 2"),
        (
            lambda: grid(a={"x": np.ones(2), "y": np.ones(3)}),
            r"a must be a pytree of arrays with one common leading axis, got lengths \[2, 3\]",
        ),
    ],
)
def test_grid_and_rows_name_bad_columns(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_values_of_the_table_are_columns_of_the_results(swept):
    columns = swept.columns
    assert list(columns)[:4] == ["row", "seed", "task.limit", "task.more.by"]
    np.testing.assert_array_equal(columns["task.limit"], np.repeat([5, 5, 40, 40], 3))
    np.testing.assert_array_equal(columns["task.more.by"], np.repeat([0, 1, 0, 1], 3))
    assert "task.arms" not in columns  # it would cost an array a run


def test_a_table_that_is_one_array_and_numbers_that_numpy_lacks():
    assert list(number_columns(leaves_of(jnp.arange(3)))) == ["task"]
    columns = number_columns(leaves_of({"half": jnp.ones(2, jnp.bfloat16), "key": jax.random.split(KEY, 2)}))
    assert {name: str(values.dtype) for name, values in columns.items()} == {"task.half": "float32"}
    assert number_columns(leaves_of(None)) == {}


def test_metric_named_like_a_task_value_is_refused():
    with pytest.raises(ValueError, match="metrics must not return the name of a column .* got 'task.limit'"):
        jaxbandits.sweep(
            build,
            grid(limit=[5], more={"by": np.arange(2)}),
            seeds=1,
            key=KEY,
            max_rounds=30,
            metrics=lambda task, outcome: {"task.limit": outcome.pulls},
            progress=False,
        )


def test_summary_takes_short_names_and_keeps_common_values(swept):
    summary = swept.summary()
    np.testing.assert_array_equal(summary["task.limit"], [5, 5, 40, 40])
    assert not any(name.startswith("task.limit_") for name in summary)
    by_limit = swept.summary(by="limit")
    np.testing.assert_array_equal(by_limit["limit"], [5, 40])
    np.testing.assert_array_equal(by_limit["pulls_mean"], [5.5, np.nan])  # the longer ones are cut at 30 rounds
    np.testing.assert_array_equal(by_limit["censored"], [0, 6])
    assert "task.more.by" not in by_limit  # it varies
    np.testing.assert_array_equal(swept.summary(by=("limit", "by"))["by"], [0, 1, 0, 1])


def test_a_short_name_must_be_unambiguous():
    results = results_of(row=[0, 0], status=[1, 1], task__a__gap=[1, 2], task__b__gap=[3, 3], x=[1.0, 2.0])
    with pytest.raises(ValueError, match="by must name scalar columns, .* got 'gap'"):
        results.summary(by="gap")
    np.testing.assert_array_equal(results.summary(by="a.gap")["a.gap"], [1, 2])
    # A column of that very name comes first, and a value of the table before a part of the answer.
    results = results_of(row=[0, 0], status=[1, 1], task__gap=[1, 2], gap=[7, 7], task__arm=[4, 4], answer__arm=[0, 1])
    np.testing.assert_array_equal(results.summary(by="gap")["gap"], [7])
    np.testing.assert_array_equal(results.summary(by="arm")["arm"], [4])


def test_sweeps_are_compared_by_the_values_of_their_tables():
    a = results_of(row=[0, 1], status=[1, 1], task__gap=[1, 2], task__other=[1, 2], x=[1.0, 2.0])
    b = results_of(row=[0, 1], status=[1, 1], task__gap=[2, 1], task__other=[1, 2], x=[5.0, 7.0])
    compared = jaxbandits.compare(a, b, by="gap")
    np.testing.assert_array_equal(compared["gap"], [1, 2])
    np.testing.assert_array_equal(compared["x_difference"], [-6, -3])
    assert not any(name.startswith("task") for name in compared)


def test_to_pandas_chooses_columns(swept):
    frame = swept.to_pandas(["limit", "pulls", "seed"])
    assert list(frame.columns) == ["limit", "pulls", "seed"]
    assert frame.groupby("limit")["pulls"].max().to_dict() == {5: 6, 40: 30}
    assert "task.limit" in swept.to_pandas().columns
    with pytest.raises(ValueError, match="columns must be"):
        swept.to_pandas(["nothing"])


def test_to_xarray_has_rows_seeds_and_the_values_of_the_table(swept):
    dataset = swept.to_xarray()
    assert dict(dataset.sizes) == {"row": 4, "seed": 3}
    np.testing.assert_array_equal(dataset.limit, [5, 5, 40, 40])
    np.testing.assert_array_equal(dataset.by, [0, 1, 0, 1])
    assert set(dataset.coords) == {"row", "seed", "limit", "by"}
    assert dataset.pulls.dtype == swept.columns["pulls"].dtype
    np.testing.assert_array_equal(dataset.pulls, swept.columns["pulls"].reshape(4, 3))
    product = dataset.set_index(row=["limit", "by"]).unstack("row")
    assert product.pulls.sel(limit=5, by=1, seed=2) == 6


def test_to_xarray_of_missing_runs_and_arrays():
    results = results_of(
        row=[3, 3, 5],
        seed=[0, 2, 2],
        task__gap=[0.5, 0.5, 0.1],
        task__pulls=[1, 1, 2],
        task__answer__x=[1, 1, 3],
        pulls=[10, 11, 12],
        v=np.arange(6.0).reshape(3, 2),
        flag=[True, False, True],
        half=np.ones(3, ml_dtypes.bfloat16),
    )
    dataset = results.to_xarray()
    assert dict(dataset.sizes) == {"row": 2, "seed": 2, "v_0": 2}
    np.testing.assert_array_equal(dataset.pulls, [[10, 11], [np.nan, 12]])
    np.testing.assert_array_equal(dataset.v.sel(row=3, seed=2), [2, 3])
    assert np.isnan(dataset.v.sel(row=5, seed=0)).all()
    np.testing.assert_array_equal(dataset.gap, [0.5, 0.1])
    np.testing.assert_array_equal(dataset["task.pulls"], [1, 2])  # `pulls` is another one
    np.testing.assert_array_equal(dataset.x, [1, 3])
    with pytest.raises(ValueError, match="results must have every row and seed once"):
        results_of(row=[0, 0], seed=[1, 1], pulls=[1, 2]).to_xarray()


def test_to_xarray_of_joined_sweeps_has_a_dimension_for_their_labels():
    rules = results_of(row=[0, 1, 0], seed=[4, 4, 4], rule=["b", "b", "a"], task__gap=[1, 2, 1], pulls=[5, 6, 7])
    dataset = rules.to_xarray()
    assert dict(dataset.sizes) == {"rule": 2, "row": 2, "seed": 1}
    np.testing.assert_array_equal(dataset.rule, ["b", "a"])
    np.testing.assert_array_equal(dataset.gap, [1, 2])
    np.testing.assert_array_equal(dataset.pulls[..., 0], [[5, 6], [7, np.nan]])
    assert rules.where(rule="a").to_xarray().rule == "a"
    joined = jaxbandits.concatenate({10: rules, 20: rules.where(rule="b")}, name="size").to_xarray(["pulls"])
    assert dict(joined.sizes) == {"size": 2, "rule": 2, "row": 2, "seed": 1}
    assert joined.pulls.sel(size=20, rule="b", row=1).item() == 6


def test_summary_keeps_labels_apart_and_leaves_answers_out():
    part = results_of(row=[0, 1], status=[1, 1], task__gap=[1, 2], answer=[3, 5], answer__x=[0.5, 0.7], pulls=[4, 6])
    part = Results(part.columns | {"seed": np.zeros(2, int)}, None)
    joined = jaxbandits.concatenate({"b": part, "a": part}, name="algorithm")
    summary = joined.summary()
    assert summary["algorithm"].tolist() == ["b", "b", "a", "a"]
    np.testing.assert_array_equal(summary["row"], [0, 1, 0, 1])
    assert repr(summary).splitlines()[0].split() == ["algorithm", "row", "runs", "answer.x", "pulls"]
    assert "answer_mean" not in summary
    assert "algorithm" in jaxbandits.compare(joined, joined)
    legend = joined.plot("gap", ax=Figure().subplots()).get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["b", "a"]
    # A summary also names rules that have no row in common.
    assert results_of(row=[0, 1], status=[1, 1], rule=["b", "a"]).summary()["rule"].tolist() == ["b", "a"]
    with pytest.raises(ValueError, match="y must name scalar columns of numbers .* got 'answer'"):
        joined.table("answer")
    with pytest.raises(ValueError, match="by must name scalar columns, .* got 'row'"):
        results_of(status=[1], rule=["a"]).summary()
    # A label that is named like a count has its full name.
    assert "task.runs" in jaxbandits.concatenate([part, part], name="runs").summary()
    assert "task.runs" in repr(jaxbandits.concatenate([part, part], name="runs"))


def test_a_missing_xarray_is_named(swept, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ModuleNotFoundError, match="to_xarray needs xarray: pip install xarray"):
        swept.to_xarray()


def test_results_of_several_sweeps_are_one_table():
    a = results_of(row=[0, 1], seed=[0, 0], task__gap=[1, 2], pulls=[5, 6], answer=[0, 1], mine=[1, 1])
    b = results_of(row=[0], seed=[0], task__gap=[3], task__ridge=[0.5], pulls=[7], answer=[[0, 1]])
    joined = concatenate({"greedy": a, "tracking": b}, name="rule")
    assert list(joined.columns) == ["row", "seed", "task.rule", "task.gap", "pulls", "task.ridge"]
    assert joined.columns["task.rule"].tolist() == ["greedy", "greedy", "tracking"]
    np.testing.assert_array_equal(joined.columns["task.gap"], [1, 2, 3])
    np.testing.assert_array_equal(joined.columns["task.ridge"], [np.nan, np.nan, 0.5])
    np.testing.assert_array_equal(joined.columns["row"], [0, 1, 0])
    assert joined.stats.pulls == 20
    np.testing.assert_array_equal(concatenate([a, a]).columns["task.sweep"], [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("sweeps", "name", "message"),
    [
        ([], "sweep", "sweeps must have at least one entry, got none"),
        ([3], "sweep", "sweeps must be of type Results, got 3"),
        ({(1, 2): results_of(row=[0])}, "sweep", r"sweeps must have strings or numbers for labels, got \(1, 2\)"),
        ([results_of(row=[0], task__gap=[1])], "gap", "name must not be the name of a column .* got 'gap'"),
    ],
)
def test_concatenate_names_bad_arguments(sweeps, name, message):
    with pytest.raises(ValueError, match=message):
        concatenate(sweeps, name=name)
