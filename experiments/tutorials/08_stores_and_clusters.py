# %% [markdown]
# # Stores, devices, clusters
#
# A long sweep must survive a kill. With `store=`, finished runs go to a folder of Parquet files, and the same call
# resumes: it repeats no finished run, and its result does not depend on the interruption.

# %%
import tempfile
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)
import jaxbandits
from jaxbandits import linear

store = Path(tempfile.mkdtemp()) / "soare"


def build(delta, key):
    instance = linear.soare(3, 0.5)
    algorithm = linear.lingape(instance.arms, delta=delta)
    return algorithm, linear.environment(instance, algorithm)


settings = {"key": jax.random.key(0), "max_rounds": 100_000, "progress": False}
deltas = jax.numpy.array([0.1, 0.01])
results = jaxbandits.sweep(build, deltas, seeds=50, store=store, **settings)
print(results)

# %% [markdown]
# A store grows: with more seeds, or rows at the end of the table, a sweep runs what is missing. It refuses anything
# else, and says what differs.

# %%
more = jaxbandits.sweep(build, deltas, seeds=80, store=store, **settings)
print(len(more), "runs, of which", more.stats.finished, "were made now")
try:
    jaxbandits.sweep(build, deltas + 0.05, seeds=80, store=store, **settings)
except ValueError as error:
    print(str(error)[:200])

# %% [markdown]
# Other readers take the folder as a glob: `pandas.read_parquet(store)`, in Polars
# `read_parquet(f"{store}/part-*.parquet")`, in DuckDB `from 'STORE/part-*.parquet'`.
# `jaxbandits.load(store)` reads it without the build.

# %%
print(jaxbandits.load(store).where(seed=0)["pulls"], sorted(path.name for path in store.iterdir())[:4])

# %% [markdown]
# A task depends on its row, its seed and the root key alone, so any run can be repeated by itself, and traced.

# %%
key = jaxbandits.task_key(settings["key"], row=1, seed=7)
again = jaxbandits.run(key, *build(deltas[1], key), max_rounds=100_000)
print(int(again.pulls), more.where(row=1, seed=7)["pulls"])

# %% [markdown]
# **Devices.** A sweep uses all devices of its process; `mesh=` chooses some. **Machines.** `executor=` takes any
# `concurrent.futures.Executor` and cuts the sweep into `shards=` calls. Workers import the script, so the call stands
# below `if __name__ == "__main__":`.
#
# ```
# with jaxbandits.process_pool(2) as workers:  # processes that divide this machine's cores
#     sweep(build, deltas, ..., store="runs/soare", executor=workers)
#
# with process_pool(8, gpus=range(8)) as workers:  # started with JAX_PLATFORMS=cpu, to leave the GPUs to the workers
#     sweep(build, deltas, ..., store="runs/soare", executor=workers, shards=16)
#
# cluster = SLURMCluster(cores=1, processes=1, memory="32GB", job_extra_directives=["--gres=gpu:1"])  # dask-jobqueue
# cluster.scale(jobs=16)
# sweep(build, deltas, ..., store="/scratch/soare", executor=Client(cluster).get_executor(), shards=64)
#
# executor = submitit.AutoExecutor("/scratch/logs")  # a job for each shard
# executor.update_parameters(gpus_per_node=1, cpus_per_task=4, timeout_min=480)
# sweep(build, deltas, ..., store="/scratch/soare", executor=executor, shards=16)
# ```
#
# Workers that cannot reach the folder return their runs, and the caller writes them: choose 4 to 10 shards per worker.
