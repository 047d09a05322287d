# %% [markdown]
# # Stores
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
