# %% [markdown]
# # Your own algorithm, checked and replayed
#
# An algorithm is three pure functions of a single run and an idle action; the engine runs thousands side by side. Here:
# the arm with the best upper bound and the one with the fewest pulls in turn, until the best arm is clear.

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


def explorer(K, *, delta, confidence=2.0):
    def init(key):
        return State(jnp.zeros((), int), jnp.zeros(K, int), jnp.zeros(K))

    def decide(key, state):
        n = jnp.maximum(state.counts, 1).astype(float)
        mean, width = state.sums / n, jnp.sqrt(confidence * jnp.log(4 * K * n**2 / delta) / n)
        upper = jnp.where(state.counts == 0, jnp.inf, mean + width)
        best = jnp.argmax(mean)
        rival = jnp.max(upper.at[best].set(-jnp.inf))
        stop = (mean[best] - width[best] > rival) & jnp.all(state.counts > 0)
        arm = jnp.where(state.pulls % 2 == 0, jnp.argmax(upper), jnp.argmin(state.counts))
        return jaxbandits.Decision(mab.Pull(arm[None], jnp.ones(1, int)), stop, best)

    def observe(state, pull, rewards):
        counts = state.counts.at[pull.arms].add(pull.times)
        return State(state.pulls + pull.times.sum(), counts, state.sums.at[pull.arms].add(rewards.sums))

    idle = mab.Pull(jnp.zeros(1, int), jnp.zeros(1, int))
    return jaxbandits.Algorithm(init, decide, observe, idle)


# %% [markdown]
# `testing.check` tests every promise that the engine relies on, and says in a sentence which one is broken.

# %%
instance = mab.gaussian([0.5, 0.3, 0.0])
mine = explorer(3, delta=0.1)
environment = mab.environment(instance, mine)
jaxbandits.testing.check(mine, environment, key=jax.random.key(0), rounds=20_000)

# %% [markdown]
# `trace` keeps every round of one run, `testing.replay` feeds its observations to another program, or to another
# version of yours, and `first_difference` says where they part. A rule that uses its key needs the trace's `key=`.

# %%
tape = jaxbandits.trace(jax.random.key(1), mine, environment, rounds=300)
print("first arms:", tape.actions.arms[:8, 0])
tighter = explorer(3, delta=0.1, confidence=1.0)
print(jaxbandits.testing.first_difference(tape, jaxbandits.testing.replay(tighter, tape)))

# %% [markdown]
# Then compare it with a published rule on the same rewards: with `stream=key` the n-th pull of an arm pays the same to
# whoever makes it, so few runs show small differences.


# %%
def building(algorithm):
    return lambda task, key: (algorithm, mab.environment(instance, algorithm, stream=key))


rules = {"mine": building(mine), "LUCB": building(mab.lucb(instance.problem, delta=0.1))}
results = jaxbandits.sweep(rules, seeds=100, key=jax.random.key(2), max_rounds=50_000, progress=False)
print(results)
print(jaxbandits.compare(results.where(rule="mine"), results.where(rule="LUCB"), paired=True))
