# %% [markdown]
# # Linear bandits with features of your own
#
# Arms are rows of a feature matrix, here read from a CSV file. The reward of an arm is its features times an unknown
# vector theta, plus noise: a pull of one arm tells of all others.

# %%
import tempfile
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)
import numpy as np

import jaxbandits
from jaxbandits import linear
from jaxbandits.numerics import thresholds

file = Path(tempfile.mkdtemp()) / "features.csv"
random = np.random.default_rng(4)
np.savetxt(file, random.normal(size=(12, 4)).round(3), delimiter=",", header="price,size,age,color", comments="")
print(file.read_text()[:120])

# %% [markdown]
# From the file to an instance. Rows far longer than 1 make rewards large: scale them as your problem needs.

# %%
arms = np.genfromtxt(file, delimiter=",", skip_header=1)
arms /= np.linalg.norm(arms, axis=1).max()
theta = np.array([1.0, 0.5, 0.0, -0.5])
instance = linear.Instance(arms, theta, noise_scale=0.5)
print("means:", np.sort(arms @ theta)[::-1].round(2))


# %% [markdown]
# Two rules: LinGapE pulls what separates the two best candidates; the other pulls all arms in turn. Both stop by the
# same likelihood ratio, so that they differ in their samples alone.


# %%
def stop(task):
    return linear.likelihood_ratio(thresholds.gk16(arms=12), delta=task["delta"])


def lingape(task):
    return linear.lingape_glr(instance.arms, stop=stop(task), noise_scale=0.5)


def uniform(task):
    return linear.uniform(instance.arms, stop=stop(task), noise_scale=0.5)


def building(rule):
    def build(task, key):
        algorithm = rule(task)
        return algorithm, linear.environment(instance, algorithm)

    return build


def score(task, outcome):
    return {"wrong": ~linear.is_right(instance, outcome.answer)}


results = jaxbandits.sweep(
    {"LinGapE": building(lingape), "uniform": building(uniform)},
    jaxbandits.grid(delta=[0.1, 0.01, 0.001]),
    seeds=100,
    key=jax.random.key(0),
    max_rounds=100_000,
    metrics=score,
    progress=False,
)
print(results.table(y=("pulls", "wrong"), by=("delta", "rule")))

# %%
axes = results.plot(x="delta", y="pulls", by="rule", kind="box")
axes.set_title("Twelve arms with four features")
