# %% [markdown]
# # Fixed budgets
#
# A rule with a fixed budget spends a given number of pulls and then answers. What counts is how often it is wrong. The
# budget is a column of the table, so one compiled program per rule serves all budgets.

# %%
import jax

jax.config.update("jax_enable_x64", True)
import jaxbandits
from jaxbandits import mab

instance = mab.audibert1()  # twenty Bernoulli arms: one pays .5, all others .4
print(instance.means)


def building(rule):
    def build(task, key):
        algorithm = rule(instance.problem, horizon=task["horizon"])
        return algorithm, mab.environment(instance, algorithm)

    return build


def score(task, outcome):
    return {"wrong": ~mab.is_right(instance, outcome.answer)}


# %%
rules = {"successive rejects": mab.successive_rejects, "sequential halving": mab.sequential_halving}
results = jaxbandits.sweep(
    {name: building(rule) for name, rule in rules.items()},
    jaxbandits.grid(horizon=[500, 1_000, 2_000, 4_000]),
    seeds=400,
    key=jax.random.key(0),
    horizon="horizon",  # the name of the column
    metrics=score,
    progress=False,
)
print(results.table(y="wrong", by="horizon", across="rule"))

# %%
axes = results.plot(x="horizon", y="wrong", by="rule", kind="error")
axes.set_title("Twenty arms, one better by 0.1: 400 runs each")

# %% [markdown]
# How hard an instance is: H2 = max over ranks i of i / gap_i^2. Successive rejects errs with probability at most about
# exp(-n / (log(K) H2)); the bound is loose at small budgets.

# %%
hardness = mab.hardness(instance)
print("H1, H2:", float(hardness.H1), float(hardness.H2))
for n in (500, 4_000):
    print(n, float(mab.successive_rejects_bound(instance, horizon=n)))
