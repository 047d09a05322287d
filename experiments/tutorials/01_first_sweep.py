# %% [markdown]
# # A first sweep
#
# The question: how many pulls do three rules need to find the best of four arms, and how does that change with the
# error probability `delta` that they promise? Two hundred runs of each setting, as a table and a figure.

# %%
import jax

jax.config.update("jax_enable_x64", True)  # a run has the precision of its arrays
import jaxbandits
from jaxbandits import mab

instance = mab.gaussian([0.6, 0.3, 0.2, 0.0])  # the truth, which no rule sees; rewards have standard deviation 1
print(instance)


# %% [markdown]
# A `build` makes an algorithm and its environment from one row of the table of tasks. It is traced once and compiled
# for all rows and seeds, so `delta` is an array here. The rule receives `instance.problem`: the number of arms and the
# noise, never the means.


# %%
def building(rule):
    def build(task, key):
        algorithm = rule(instance.problem, delta=task["delta"])
        return algorithm, mab.environment(instance, algorithm)

    return build


def score(task, outcome):  # on the device, for every finished run
    return {"wrong": ~mab.is_right(instance, outcome.answer)}


rules = {"TTUCB": mab.ttucb, "Track-and-Stop": mab.tas, "LUCB": mab.lucb}
results = jaxbandits.sweep(
    {name: building(rule) for name, rule in rules.items()},
    jaxbandits.grid(delta=[0.1, 0.01, 0.001]),
    seeds=200,
    key=jax.random.key(0),
    max_rounds=100_000,
    metrics=score,
    progress=False,
)
print(results)

# %% [markdown]
# `max_rounds` is a budget: a run that reaches it is *censored*, and counted apart. Means are over finished runs.

# %%
print(results.table(y="pulls", by="delta", across="rule"))

# %% [markdown]
# Two hundred runs cannot show an error probability of 0.001. The intervals say so: they are exact (Clopper and
# Pearson), and reach up to two percent even where no run was wrong. The default threshold of these rules, `gk16`, is a
# heuristic.

# %%
print(results.table(y="wrong", by="delta", across="rule"))

# %% [markdown]
# No rule can need fewer pulls than T* kl(delta, 1 - delta) on average, where T* is the characteristic time.

# %%
import numpy as np

time = float(mab.characteristic_time(instance.problem, instance.means).value)
axes = results.plot(
    x="delta", y="pulls", by="rule", bound=lambda delta: time * (1 - 2 * delta) * np.log((1 - delta) / delta)
)
axes.set_title("Four Gaussian arms, 200 runs each")

# %% [markdown]
# Everything is a column, one entry per run: `results["pulls"]`, or `results.to_pandas()` for a tidy frame.

# %%
print(results.where(rule="TTUCB", delta=0.1)["pulls"][:10], results.stats.pulls)
