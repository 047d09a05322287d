# %% [markdown]
# # Regret curves
#
# Regret rules never stop: they run until a `horizon` of pulls. `record` keeps curves while they run, at marks of your
# choice: `value` of the state at a mark, `total` of a term of every round up to it. Both may know the truth, since no
# algorithm sees them.

# %%
import jax

jax.config.update("jax_enable_x64", True)
import numpy as np

import jaxbandits
from jaxbandits import mab

instance = mab.bernoulli([0.6, 0.5, 0.45, 0.4, 0.3])
gaps = instance.means.max() - instance.means
horizon = 3_000
marks = np.unique(np.geomspace(10, horizon, 40).astype(int))


def regret(state, decision):
    return {"regret": gaps @ state.counts.astype(gaps.dtype)}


def best(state, decision, rewards):
    return {"best": decision.action.arms[0] == instance.means.argmax()}  # rounds that pull the best arm


def building(rule):
    def build(task, key):
        algorithm = rule(instance.problem)
        record = jaxbandits.record(at=marks, value=regret, total=best)
        return algorithm, mab.environment(instance, algorithm), record

    return build


# %%
rules = {"UCB1": mab.ucb1, "KL-UCB": mab.kl_ucb, "IMED": mab.imed, "Thompson": mab.thompson}
results = jaxbandits.sweep(
    {name: building(rule) for name, rule in rules.items()},
    seeds=100,
    key=jax.random.key(0),
    horizon=horizon,
    progress=False,
)
print(results)

# %% [markdown]
# The regret of a consistent rule grows at least like C log t, with the constant of Lai and Robbins. At small t a curve
# may lie below that line: the bound is asymptotic.

# %%
constant = float(mab.lai_robbins(instance))
axes = results.plot(y="regret", by="rule", bound=lambda pulls: constant * np.log(pulls))
axes.set_title("Five Bernoulli arms, 100 runs each")

# %% [markdown]
# A mean hides that a few runs lose much. Bands of quantiles (5 to 95 %) show it.

# %%
axes = results.where(rule=["UCB1", "Thompson"]).plot(y="regret", by="rule", band="quantiles")
axes.set_title("Regret: medians, with 5 to 95 % of the runs")

# %% [markdown]
# The same as numbers: the last mark of each curve.

# %%
for rule in rules:
    runs = results.where(rule=rule)
    last, share = runs["regret"][:, -1], runs["best"][:, -1] / horizon
    print(f"{rule:10} {last.mean():6.1f} +- {last.std(ddof=1) / len(last) ** 0.5:.1f}, best arm: {share.mean():.0%}")
