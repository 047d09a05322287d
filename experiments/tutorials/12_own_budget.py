# %% [markdown]
# # A rule of your own with a fixed budget
#
# Sequential halving: in each of log2 K phases all remaining arms are pulled equally often, and the worse half is
# dropped. The budget may be traced, so that one program serves all budgets. A regret rule would never stop.

# %%
from typing import NamedTuple

import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp

import jaxbandits
from jaxbandits import mab


class State(NamedTuple):
    pulls: jax.Array  # int ()      required as the first field of every state
    counts: jax.Array  # int (K,)
    sums: jax.Array  # float (K,)    of rewards
    active: jax.Array  # bool (K,)


def sequential_halving(K, *, horizon):
    phases = K.bit_length() - 1  # K is a power of two, known before tracing
    quotas = jnp.cumsum(horizon // (phases * (K >> jnp.arange(phases))))  # pulls of an active arm, phase by phase

    def init(key):
        return State(jnp.zeros((), int), jnp.zeros(K, int), jnp.zeros(K), jnp.ones(K, bool))

    def decide(key, state):
        arm = jnp.argmin(jnp.where(state.active, state.counts, horizon + 1))
        stop = state.active.sum() == 1
        return jaxbandits.Decision(mab.Pull(arm[None], jnp.ones(1, int)), stop, jnp.argmax(state.active))

    def observe(state, pull, rewards):
        counts = state.counts.at[pull.arms].add(pull.times)
        sums = state.sums.at[pull.arms].add(rewards.sums)
        size = state.active.sum()
        phase = phases - jnp.log2(size.astype(float)).round().astype(int)
        is_over = (jnp.where(state.active, counts, horizon).min() == quotas[phase]) & (size > 1)
        means = jnp.where(state.active, sums / counts.astype(float), -jnp.inf)
        is_better = jnp.argsort(jnp.argsort(-means)) < size // 2
        return State(state.pulls + pull.times.sum(), counts, sums, state.active & (~is_over | is_better))

    idle = mab.Pull(jnp.zeros(1, int), jnp.zeros(1, int))
    return jaxbandits.Algorithm(init, decide, observe, idle)


# %%
instance = mab.gaussian(jnp.linspace(1.0, 0.0, 8))
mine = sequential_halving(8, horizon=200)
jaxbandits.testing.check(mine, mab.environment(instance, mine), key=jax.random.key(0), rounds=300)

# %% [markdown]
# Its errors beside those of the library's version. With `stream=key` the n-th pull of an arm pays both the same, so
# that their answers are the same run by run.


# %%
def build(task, key):
    algorithm = sequential_halving(8, horizon=task["horizon"])
    return algorithm, mab.environment(instance, algorithm, stream=key)


def build_published(task, key):
    algorithm = mab.sequential_halving(instance.problem, horizon=task["horizon"], reuse=True)
    return algorithm, mab.environment(instance, algorithm, stream=key)


rules = {"mine": build, "published": build_published}
tasks, score = jaxbandits.grid(horizon=[50, 200, 800]), lambda task, outcome: {"wrong": outcome.answer != 0}
settings = {"seeds": 400, "key": jax.random.key(1), "horizon": "horizon", "progress": False}
results = jaxbandits.sweep(rules, tasks, metrics=score, **settings)
print(results.table(y="wrong", by="horizon", across="rule"))
mine, published = (results.where(rule=name)["answer"] for name in rules)
print("equal answers:", (mine == published).mean())
