"""The engine: runs one algorithm against its environment, or thousands of such runs as one compiled program.

`run` carries one task from its first round to its last, and `trace` writes down what happens in each; `ask` is for a
loop of your own. `sweep` runs a whole table of tasks, with many seeds for each row:

    rows x seeds -> queue -> lanes x devices -> Results, or Parquet files in a store

A task waits in the queue until a lane of a batch is free. A compiled call advances all lanes of the batch by some
chunks of rounds; the host then takes out the runs that have ended, refills their lanes, and from time to time writes a
part to the store. With an executor, shards of the queue are driven by several processes, each as above.

`record` says what is to be recorded over the course of a run; `trace` keeps every round of one. `grid` and `rows` spell
tables of tasks; `concatenate` joins the results of several sweeps, and `compare` holds two of them against each other.
`load` reads a store, `process_pool` makes an executor of this machine's cores or GPUs, and `task_key` gives the key
with which `run` repeats a single task of a sweep.
"""

from jaxbandits.engine.comparison import compare
from jaxbandits.engine.joining import concatenate
from jaxbandits.engine.recording import Record, record
from jaxbandits.engine.results import Results, Stats
from jaxbandits.engine.running import ask, run
from jaxbandits.engine.store import load
from jaxbandits.engine.sweeping import sweep
from jaxbandits.engine.tables import grid, rows
from jaxbandits.engine.tapes import Tape, trace
from jaxbandits.engine.tasks import task_key
from jaxbandits.engine.workers import process_pool

__all__ = [
    "Record",
    "Results",
    "Stats",
    "Tape",
    "ask",
    "compare",
    "concatenate",
    "grid",
    "load",
    "process_pool",
    "record",
    "rows",
    "run",
    "sweep",
    "task_key",
    "trace",
]
