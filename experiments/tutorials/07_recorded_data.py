# %% [markdown]
# # Recorded rewards, late and changing
#
# A log of what visitors did, an answer that comes a day late, a mean that changes: any rule runs on them, because the
# environment remembers.

# %%
import jax

jax.config.update("jax_enable_x64", True)
import numpy as np

import jaxbandits
from jaxbandits import feedback, mab

random = np.random.default_rng(0)
log = {"old page": random.random(4_000) < 0.10, "new page": random.random(4_000) < 0.13}  # made up; yours from Parquet
columns = [visits.astype(float) for visits in log.values()]
print({name: round(float(visits.mean()), 3) for name, visits in log.items()})

# %% [markdown]
# In turn, the i-th pull of an arm pays the i-th reward of its column; a run that asks for more is censored. The
# bootstrap draws with replacement, so that runs differ and can be averaged.


# %%
def building(delay):
    def build(task, key):
        algorithm = mab.eb_tci(mab.Bernoulli(2), delta=0.1)
        environment = mab.recorded(columns, algorithm, order="bootstrap")
        return feedback.delayed(algorithm, environment, delay=delay) if delay else (algorithm, environment)

    return build


results = jaxbandits.sweep(
    {"at once": building(0), "500 visits late": building(500)},
    seeds=60,
    key=jax.random.key(0),
    max_rounds=20_000,
    metrics=lambda task, outcome: {"right": outcome.answer == 1},
    progress=False,
)
print(results.table(y=("pulls", "right"), by="rule"))

# %% [markdown]
# Means that change: after 1,000 pulls the arms swap. A rule for stationary rewards is slow to notice.

# %%
first, second = (mab.bernoulli(means) for means in ([0.7, 0.4], [0.4, 0.7]))
marks = np.arange(20, 2_001, 20)


def changed(rule):
    def build(task, key):
        algorithm = rule(first.problem)
        environment = feedback.changing([mab.environment(each, algorithm) for each in (first, second)], at=[1_000])
        return algorithm, environment, jaxbandits.record(at=marks, value=lambda s, d: {"pulls of arm 1": s.counts[1]})

    return build


rules = {"UCB1": mab.ucb1, "sliding window": lambda problem: mab.sliding_window_ucb(problem, window=200)}
results = jaxbandits.sweep(
    {name: changed(rule) for name, rule in rules.items()},
    seeds=100,
    key=jax.random.key(1),
    horizon=2_000,
    progress=False,
)
axes = results.plot(y="pulls of arm 1", by="rule")
axes.axvline(1_000, color="gray", linestyle=":")
