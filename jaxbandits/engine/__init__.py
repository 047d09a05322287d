"""The engine: runs one algorithm against its environment, or thousands of such runs as one compiled program.

`run` carries one task from its first round to its last, and `trace` writes down what happens in each; `ask` and `tell`
are for a loop of your own. `sweep` runs a whole table of tasks, with many seeds for each row:

    rows x seeds -> queue -> lanes x devices -> Results, or Parquet files in a store

A task waits in the queue until a lane of a batch is free. A compiled call advances all lanes of the batch by some
chunks of rounds; the host then takes out the runs that have ended, refills their lanes, and from time to time writes a
part to the store. With an executor, shards of the queue are driven by several processes, each as above.

`record` says what is to be recorded over the course of a run; `trace` keeps every round of one. `grid` and `rows` spell
tables of tasks; `concatenate` joins the results of several sweeps, and `compare` holds two of them against each other.
`load` reads a store, `process_pool` makes an executor of this machine's cores or GPUs, and `task_key` gives the key
with which `run` repeats a single task of a sweep.

The rooms, each of which imports only those before it: `run` (one task: the loop over rounds, tapes, records),
`scalars` (rounds on vectors over lanes, for accelerators), `results` (columns and what is made of them), `store`
(finished runs on disk), `sweep` (lanes, programs, the queue), `cluster` (shards and workers).

**Store and resume.** With `store=`, finished runs go to a folder of Parquet files, at first every second, later every
half a minute. A sweep that was killed, interrupted or ran out of disk resumes when it is called again: finished runs
are not run again, nothing is doubled, and the result is that of an uninterrupted sweep. More seeds, or rows added at
the end, run what is missing. Other arguments are refused; the message says what differs. Other readers take the folder
as a glob: `pandas.read_parquet(store)`, `polars.read_parquet(f"{store}/part-*.parquet")`, or in DuckDB `select row,
avg(pulls) from 'STORE/part-*.parquet' group by row`; one row a run, vectors are fixed-size lists. `_tasks.parquet`
holds the table of tasks, `_manifest.json` the arguments, versions, device, precision and a checksum a part.

**Equal runs.** Task (row, seed) has the key `task_key(key, row, seed)`. More seeds, other rows, other lanes: the same
streams. At the same `lanes` (`chunk`, `scalars`) results are equal bit for bit, on any number of devices and processes
of one kind. A run that reaches `max_rounds` is counted as censored, one that meets a NaN, or asks for an action that
does not exist, as failed; neither enters a mean. A run that is meant to last has a `horizon` of pulls instead, and is
complete once it has spent them.

**Devices.** A sweep uses all devices of its process; `mesh=` names others. Each device has its own `lanes` lanes of
every batch, and they do not communicate. On a CPU, as many batches run side by side as there are cores. On an
accelerator a round works on `scalars` where its arrays are small: a vector over lanes for each of their entries.

**Machines.** `executor=` takes any `concurrent.futures.Executor` and cuts the sweep into `shards=` calls, each an
ordinary sweep of a random share of the tasks into the same store. A worker that dies costs what it had not written yet:
Dask runs its shard again, with other executors you make the call again. Workers that do not reach the folder, and those
of a sweep without a store, send finished runs to the caller every half a minute. Functions travel by cloudpickle, so
lambdas and notebooks will do. A copy of a process in which JAX has run, made by `os.fork()`, hangs at its first sweep:
start processes afresh ("spawn"). This script needs `pip install '.[cluster]'`:

```python
import jax
import jaxbandits
from distributed import Client, LocalCluster
from jaxbandits import linear


def build(delta, key):
    instance = linear.soare(5)
    return linear.lingape(instance.arms, delta=delta, leap=65536), linear.environment(instance)


if __name__ == "__main__":  # the workers import this file
    jax.config.update("jax_enable_x64", True)  # goes with the call to the workers
    settings = dict(seeds=20, key=jax.random.key(0), max_rounds=100_000, shards=2, lanes=16)
    deltas = jax.numpy.array([0.1, 0.01, 0.001])

    with jaxbandits.process_pool(2) as workers:  # processes of this machine, which share out its cores
        results = jaxbandits.sweep(build, deltas, **settings, store="runs/processes", executor=workers)
    print(results.summary()["pulls_mean"])

    one_core = {"NPROC": "1"}  # heeded by XLA and by jaxbandits: workers on one machine do not fight for its cores
    with LocalCluster(n_workers=2, threads_per_worker=1, env=one_core) as cluster, Client(cluster) as client:
        results = jaxbandits.sweep(build, deltas, **settings, store="runs/dask", executor=client.get_executor())
    print(results.summary()["pulls_mean"])
```

On SLURM, let dask-jobqueue start the workers, or hand over the executor of submitit; the store lies on the shared file
system. One worker a GPU:

```
cluster = SLURMCluster(cores=1, processes=1, job_cpu=4, memory="32GB", job_extra_directives=["--gres=gpu:1"])
cluster.scale(jobs=16)
results = sweep(build, deltas, ..., store="/scratch/soare", executor=Client(cluster).get_executor(), shards=64)

executor = submitit.AutoExecutor("/scratch/logs")  # each shard is a job of its own
executor.update_parameters(gpus_per_node=1, cpus_per_task=4, timeout_min=480)
results = sweep(build, deltas, ..., store="/scratch/soare", executor=executor, shards=16)

# Eight GPUs of one machine. The process that calls must leave their memory alone: start it with JAX_PLATFORMS=cpu.
with process_pool(8, gpus=range(8)) as workers:
    results = sweep(build, deltas, ..., store="runs/soare", executor=workers, shards=16)
```

Within a process a program is compiled once: a second sweep of the same `build` under another key, or with other values
in a table of as many rows, compiles nothing. `jax.config.update("jax_compilation_cache_dir", DIR)` keeps compiled
programs from one process to the next, and spares shards of one machine all compilations but the first; tracing, the
smaller part, remains. `logging.getLogger("jaxbandits")` reports what is compiled, resumed and written.
"""

from jaxbandits.engine.cluster.workers import process_pool
from jaxbandits.engine.results.comparison import compare
from jaxbandits.engine.results.concatenation import concatenate
from jaxbandits.engine.results.runs import Results, Stats
from jaxbandits.engine.results.tables import grid, rows
from jaxbandits.engine.run.loop import Streams, ask, plan_if_due, streams, tell
from jaxbandits.engine.run.recording import Record, record
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
