# %% [markdown]
# # Devices and clusters
#
# A sweep uses all devices of its process; `mesh=` chooses some of them. Each device has its own lanes of every batch;
# devices do not communicate. `results.stats` says what was chosen.

# %%
import jax

jax.config.update("jax_enable_x64", True)  # goes with a call to the workers
import tempfile
from pathlib import Path

import jaxbandits
from jaxbandits import linear


def build(delta, key):
    instance = linear.soare(5)
    algorithm = linear.lingape(instance.arms, delta=delta, leap=65536)
    return algorithm, linear.environment(instance, algorithm)


deltas = [0.1, 0.01, 0.001]

# %% [markdown]
# **Workers.** `executor=` takes any `concurrent.futures.Executor`, and `shards=` cuts the sweep into as many calls.
# Each runs a random share of the tasks into the same store. Functions travel by cloudpickle, so lambdas and notebooks
# work; workers import the script, so the call stands below `__main__`. Results do not depend on the workers.

# %%
if __name__ == "__main__":
    settings = {"seeds": 20, "key": jax.random.key(0), "max_rounds": 100_000, "lanes": 16, "progress": False}
    folder = Path(tempfile.mkdtemp())
    table = jax.numpy.array(deltas)
    with jaxbandits.process_pool(2) as workers:  # processes of this machine, which divide its cores
        results = jaxbandits.sweep(build, table, **settings, store=folder / "pool", executor=workers, shards=2)
    print(results.table(y="pulls"))

# %% [markdown]
# **Dask** on one machine, or on a cluster that it manages. If a worker fails, Dask runs its shard again; with other
# executors, make the call again. `NPROC` is read by XLA: workers on one machine do not compete for its cores.

# %%
if __name__ == "__main__":
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, env={"NPROC": "1"}) as cluster, Client(cluster) as client:
        executor = client.get_executor()
        again = jaxbandits.sweep(build, table, **settings, store=folder / "dask", executor=executor, shards=2)
    print("equal bits:", (again["pulls"] == results["pulls"]).all())

# %% [markdown]
# **SLURM and GPUs.** The store lies on the shared file system; one worker a GPU. Workers that cannot reach the folder
# return their runs, and the caller writes them: then choose 4 to 10 shards per worker, of minutes each.
#
# ```
# cluster = SLURMCluster(cores=1, processes=1, job_cpu=4, memory="32GB", job_extra_directives=["--gres=gpu:1"])
# cluster.scale(jobs=16)
# sweep(build, table, ..., store="/scratch/soare", executor=Client(cluster).get_executor(), shards=64)
#
# executor = submitit.AutoExecutor("/scratch/logs")  # a job for each shard
# executor.update_parameters(gpus_per_node=1, cpus_per_task=4, timeout_min=480)
# sweep(build, table, ..., store="/scratch/soare", executor=executor, shards=16)
#
# with process_pool(8, gpus=range(8)) as workers:  # started with JAX_PLATFORMS=cpu, to leave the GPUs to the workers
#     sweep(build, table, ..., store="runs/soare", executor=workers, shards=16)
# ```
#
# A copy of a process in which JAX has run, made by `os.fork()`, hangs at its first sweep: start new processes.
