"""A valid call of every public function of the engine."""

import json
import tempfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from checks.calls import Call
from engine.toys import KEY, LIMITS, NOISE, counter, counting, total
from matplotlib import pyplot

import jaxbandits
from jaxbandits import Tape, testing
from jaxbandits.engine import Results, Stats, plan_if_due, streams

STATS = Stats(
    seconds=1.0,
    compile_seconds=1.0,
    pulls=2,
    rounds=2,
    occupancy=1.0,
    lanes=8,
    devices=1,
    batches=1,
    chunk=16,
    bytes=100,
)
COLUMNS = {"row": np.arange(2), "seed": np.zeros(2, int), "status": np.ones(2, int), "pulls": np.array([3, 4])}
RESULTS = Results(COLUMNS, STATS)
COUNTER = counter(5)
FOLDER = tempfile.TemporaryDirectory()  # a store without runs
SIZES = {"rows": 1, "seeds": 1, "lanes": 1, "chunk": 1}
MANIFEST = {"arguments": SIZES, "tasks": {"sha256": ""}, "columns": dict.fromkeys(("row", "seed", "status"), "int64")}
MANIFEST |= {"program": {}, "made_by": {}, "parts": {}}
(Path(FOLDER.name) / "_manifest.json").write_text(json.dumps(MANIFEST))

SWEEP = {
    "build": counting,
    "tasks": LIMITS,
    "seeds": 2,
    "key": KEY,
    "max_rounds": 1000,
    "horizon": 50,
    "metrics": total,
    "lanes": 4,
    "chunk": 16,
    "scalars": False,
    "store": None,
    "executor": None,
    "shards": None,
    "mesh": None,
    "progress": False,
}
RUN = {"key": KEY, "algorithm": COUNTER, "environment": NOISE}
TAPE = Tape(np.ones(4, int), np.ones(4), np.zeros(4, bool), np.arange(4))


def _plotted(*, x, y, by, kind, band, bound, log, ax):
    """Plots, and closes the figure, since pyplot keeps every figure that is open."""
    axes = RESULTS.plot(x, y, by, kind=kind, band=band, bound=bound, log=log, ax=ax)
    pyplot.close(axes.figure)


CALLS = {
    "sweep": Call(
        jaxbandits.sweep,
        SWEEP,
        # A table may hold any numbers in any shape, None is a table of one row, and a store may have any name.
        fine={
            "tasks": ("none", "complex", "shape", "nan_inside"),
            "max_rounds": ("none",),  # allowed with a horizon
            "horizon": ("none",),
            "metrics": ("none",),
            "lanes": ("none",),
            "chunk": ("none",),
            "scalars": ("none",),
            "store": ("none", "string"),
            "executor": ("none",),
            "shards": ("none",),
            "mesh": ("none",),
        },
    ),
    "run": Call(
        jaxbandits.run,
        RUN | {"max_rounds": 100, "horizon": 50, "record": None, "chunk": 16, "axis_name": None},
        fine={
            "max_rounds": ("none",),
            "horizon": ("none",),
            "record": ("none",),
            "axis_name": ("none", "string"),
        },
    ),
    "ask": Call(
        jaxbandits.ask,
        {"algorithm": COUNTER, "key": KEY, "state": COUNTER.init(KEY)},
    ),
    "plan_if_due": Call(
        plan_if_due,
        {"algorithm": COUNTER, "key": KEY, "state": COUNTER.init(KEY)},
        fine={"state": ("nan_inside",)},
    ),
    "streams": Call(streams, {"key": KEY}),
    "tell": Call(
        jaxbandits.tell,
        {"algorithm": COUNTER, "state": COUNTER.init(KEY), "action": np.ones((), int), "observation": 1.5},
        fine={"state": ("nan_inside",), "action": ("negative",), "observation": ("negative", "flag")},
    ),
    "record": Call(
        jaxbandits.record,
        {"at": (1, 10, 100), "by": "pulls", "value": lambda state, decision: {}, "total": lambda *_: {}},
        fine={"value": ("none",), "total": ("none",)},
    ),
    "trace": Call(jaxbandits.trace, RUN | {"rounds": 5, "chunk": 16, "watch": None}, fine={"watch": ("none",)}),
    "replay": Call(
        testing.replay,
        {"algorithm": COUNTER, "tape": TAPE, "key": None, "chunk": 16, "watch": None},
        fine={"tape": ("nan_inside",), "key": ("none",), "watch": ("none",)},
    ),
    "first_difference": Call(
        testing.first_difference,
        {"tape": TAPE, "other": TAPE, "tolerance": 0.0, "absolute_tolerance": 0.0},
        fine={"tape": ("nan_inside",), "other": ("nan_inside",)},
    ),
    "round_keys": Call(testing.round_keys, {"key": KEY, "rounds": 5}),
    "task_key": Call(jaxbandits.task_key, {"key": KEY, "row": 3, "seed": jnp.asarray(4)}),
    "compare": Call(
        jaxbandits.compare,
        {"a": RESULTS, "b": RESULTS, "by": "row", "paired": False},
        # Several columns may name a group.
        fine={"by": ("none", "list")},
    ),
    "memoryless": Call(jaxbandits.memoryless, {"noise": NOISE.noise, "respond": lambda action, noise: action * noise}),
    "load": Call(jaxbandits.load, {"store": FOLDER.name}),
    "process_pool": Call(jaxbandits.process_pool, {"workers": 2, "gpus": (0, "1")}, fine={"gpus": ("empty",)}),
    "grid": Call(
        jaxbandits.grid,
        {"delta": [0.1, 0.01], "gap": np.arange(2)},
        fine=dict.fromkeys(("delta", "gap"), ("complex", "shape", "nan_inside", "inf_inside")),
    ),
    "rows": Call(
        jaxbandits.rows,
        {"delta": [0.1, 0.01], "gap": np.arange(2)},
        # A single number counts for all rows.
        fine={"delta": ("complex", "nan_inside", "inf_inside", "scalar"), "gap": ("complex", "scalar")},
    ),
    "concatenate": Call(jaxbandits.concatenate, {"sweeps": {"a": RESULTS}, "name": "rule"}, fine={"name": ("string",)}),
    "summary": Call(
        lambda *, by, cluster: RESULTS.summary(by=by, cluster=cluster),
        {"by": "row", "cluster": "seed"},
        fine={"by": ("none", "list"), "cluster": ("none", "list")},
    ),
    "table": Call(
        lambda *, y, by, across, cluster: RESULTS.table(y, by, across=across, cluster=cluster),
        {"y": "pulls", "by": "row", "across": "seed", "cluster": "row"},
        fine={"y": ("list",), "by": ("none", "list"), "across": ("none",), "cluster": ("none", "list")},
    ),
    "where": Call(
        lambda *, seed, pulls: RESULTS.where(seed=seed, pulls=pulls),
        {"seed": 0, "pulls": [3, 4]},
        # A sequence of values.
        fine={"seed": ("list", "array", "zero"), "pulls": ("empty",)},
    ),
    "to_pandas": Call(
        lambda *, columns: RESULTS.to_pandas(columns), {"columns": ("row",)}, fine={"columns": ("none",)}
    ),
    "plot": Call(
        _plotted,
        {"x": "seed", "y": "pulls", "by": "row", "kind": None, "band": "mean", "bound": 1.0, "log": "y", "ax": None},
        # A bound may be any number, or one for each of the two values of x.
        fine={"by": ("list", "none"), "bound": ("none", "list", "array", "negative", "zero")}
        | dict.fromkeys(("ax", "log", "band", "kind"), ("none",)),
    ),
    "to_xarray": Call(
        lambda *, columns: RESULTS.to_xarray(columns), {"columns": ("row",)}, fine={"columns": ("none",)}
    ),
}
