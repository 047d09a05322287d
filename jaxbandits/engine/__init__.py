"""The engine: runs one algorithm against its environment, or thousands of such runs as one compiled program.

`run` carries one task from its first round to its last, and `trace` records every round. `ask` and `tell` are for a
loop of your own. `sweep` runs a whole table of tasks, with many seeds for each row:

    rows x seeds -> queue -> lanes x devices -> Results, or Parquet files in a store

A task waits in the queue until a lane of a batch is free. A compiled call advances all lanes of the batch by one chunk
of rounds or, if runs are long, by several, for about a quarter of a second at most. The host then takes out the runs
that have ended, refills their lanes, and sometimes writes a part to the store. With an executor, several processes
drive shards of the queue, each in this way.

An environment may remember something from round to round, such as the number of pulls of each arm: its memory is
carried beside the algorithm's state (`jaxbandits.Environment`, `jaxbandits.feedback`).

`record` describes the curves to be recorded during a run; `trace` keeps every round of a run. `grid` and `rows` build
tables of tasks. `concatenate` joins the results of several sweeps, and `compare` compares two of them. `load` reads a
store, `process_pool` makes an executor of this machine's cores or GPUs, and `task_key` returns the key with which `run`
repeats a single task of a sweep.

The packages, each of which imports only the ones before it: `programs` (the cache of compiled programs), `run` (one
task: the loop over rounds, tapes, records), `scalars` (rounds on vectors over lanes, for accelerators), `results`
(columns and their statistics), `store` (finished runs on disk), `sweep` (lanes, their program, the queue), `cluster`
(shards and workers).

**Store and resume.** With `store=`, finished runs go to a folder of Parquet files, at first every second, later every
half a minute. A sweep that was killed, interrupted or ran out of disk resumes when it is called again. Finished runs
are neither repeated nor doubled, and the result is the same as without the interruption. With more seeds, or rows added
at the end, a sweep runs what is missing. It refuses other arguments, and the message names the difference. A part that
is damaged, or was copied in from another store, is set aside, and its tasks are run again. A store that lacks no run is
only read if it cannot be written, because it belongs to somebody else or its disk is full. Other readers take the
folder as a glob: `pandas.read_parquet(store)`, `polars.read_parquet(f"{store}/part-*.parquet")`, or in DuckDB `select
row, avg(pulls) from 'STORE/part-*.parquet' group by row`. There is one row per run; vectors are fixed-size lists.
`_tasks.parquet` holds the table of tasks, `_manifest.json` the arguments, versions, device, precision and a checksum
per part.

**Equal runs.** Task (row, seed) has the key `task_key(key, row, seed)`, whatever the number of seeds, the other rows
and the lanes. At the same `lanes` (`chunk`, `scalars`) results are equal bit for bit, on any number of devices and
processes of one kind. A release may change the random numbers, which the manifest's version tells: since 0.2.0, rules
that draw Beta variables (Thompson sampling, TTTS and T3C on Bernoulli arms, DS-TS, NS-TS) make other runs than in
0.1.0; since 0.3.0, normal rewards are rounded differently in float64, in the last digits; since 0.4.0, rules that draw
Beta variables, or normal samples in float64, make other runs; since 0.4.1, indices of `mab` are rounded differently,
and since 0.4.2 its bounds and divergences, in the last digits. A run that reaches `max_rounds`, or whose environment
runs out of answers, is counted as censored. A run with a NaN, or with an action that does not exist, is counted as
failed. Neither enters a mean. A run with a `horizon` of pulls is complete once it has spent them.

**Devices.** A sweep uses all devices of its process, or the ones of `mesh=`. Each device has its own `lanes` lanes of
every batch; devices do not communicate. On a CPU, as many batches run side by side as there are cores. On an
accelerator a round with small arrays works on `scalars`: each array entry is a vector over lanes.

**Machines.** `executor=` takes any `concurrent.futures.Executor` and cuts the sweep into `shards=` calls. Each is an
ordinary sweep of a random share of the tasks into the same store. If a worker fails, only the runs that it had not
written are lost: Dask runs its shard again; with other executors, make the call again. Workers that cannot reach the
folder, or have no store, run a shard in memory and return its runs, so that a lost worker loses its whole shard: choose
4 to 10 shards per worker, of minutes each. Functions travel by cloudpickle, so lambdas and notebooks work. A copy of a
process in which JAX has run, made by `os.fork()`, hangs at its first sweep: start new processes ("spawn"). The
tutorials (`experiments/tutorials`) have scripts for processes, Dask, SLURM and GPUs.

Within a process a program is lowered and compiled once: a second sweep of the same `build` under another key, or with
other values in a table of as many rows, only traces it (`jaxbandits.engine.programs`).
`jax.config.update("jax_compilation_cache_dir", DIR)` keeps compiled programs from one process to the next, so that
shards of one machine compile only once. Tracing and lowering remain: of the 2.6 CPU seconds of a first sweep of UCB1,
1. `Results.stats` tells both.
`logging.getLogger("jaxbandits")` reports what is compiled, resumed and written.
"""

from jaxbandits.engine.cluster.workers import process_pool
from jaxbandits.engine.results.comparison import compare
from jaxbandits.engine.results.concatenation import concatenate
from jaxbandits.engine.results.runs import Results, Stats
from jaxbandits.engine.results.tables import grid, rows
from jaxbandits.engine.run.loop import ask, plan_if_due, tell
from jaxbandits.engine.run.recording import Record, record
from jaxbandits.engine.run.round import Streams, streams
from jaxbandits.engine.run.tapes import Tape, trace
from jaxbandits.engine.store import load
from jaxbandits.engine.sweep.tasks import task_key

__all__ = [
    "Record",
    "Results",
    "Stats",
    "Streams",
    "Tape",
    "ask",
    "compare",
    "concatenate",
    "grid",
    "load",
    "plan_if_due",
    "process_pool",
    "record",
    "rows",
    "streams",
    "task_key",
    "tell",
    "trace",
]
