# %% [markdown]
# # An environment of your own
#
# An environment is three functions. `noise(key)` draws the randomness of a round before the action is known,
# `respond` turns memory, action and noise into an observation, `init(key)` makes the memory. One that remembers nothing
# is `memoryless(noise, respond)`. Observations must have the family's form: here `mab.Rewards`.

# %%
import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp

import jaxbandits
from jaxbandits import mab

means = jnp.array([0.5, 0.2, 0.0])
problem = mab.Gaussian(3)  # the rules assume normal rewards of standard deviation 1

# %% [markdown]
# **Heavy tails.** Student's noise with 3 degrees of freedom, scaled to variance 1. Rules for Gaussian rewards have no
# guarantee here. How often do they err?


# %%
def student(algorithm):
    def noise(key):
        return jax.random.t(key, 3.0, algorithm.idle.arms.shape) / jnp.sqrt(3.0)

    def respond(pull, t):
        return mab.Rewards(pull.times * (means[pull.arms] + t), pull.times)

    return jaxbandits.memoryless(noise, respond)


algorithm = mab.ttucb(problem, delta=0.1)
normal = mab.environment(mab.gaussian(means), algorithm)
results = jaxbandits.sweep(
    {"normal": lambda task, key: (algorithm, normal), "Student": lambda task, key: (algorithm, student(algorithm))},
    seeds=500,
    key=jax.random.key(0),
    max_rounds=50_000,
    metrics=lambda task, outcome: {"wrong": outcome.answer != 0},
    progress=False,
)
print(results.table(y=("pulls", "wrong"), by="rule"))

# %% [markdown]
# **Memory.** An arm that tires: each pull of it lowers its mean, and it recovers while others are pulled. The memory is
# carried beside the algorithm's state. It must not change in a round without a pull: hence the `where`.


# %%
def tiring(algorithm):
    def init(key):
        return jnp.zeros(3)  # tiredness of each arm

    def noise(key):
        return jax.random.normal(key, algorithm.idle.arms.shape)

    def respond(tired, pull, z):
        reward = means[pull.arms] - tired[pull.arms] + z
        pulled = jnp.zeros(3).at[pull.arms].add(pull.times)
        later = jnp.where(pulled.sum() > 0, tired + (pulled - tired) / 8, tired)
        return mab.Rewards(pull.times * reward, pull.times), later

    return jaxbandits.Environment(init, noise, respond)


ttucb = mab.ttucb(problem, delta=0.1)
jaxbandits.testing.check(ttucb, tiring(ttucb), key=jax.random.key(1), rounds=5_000)
ucb1 = mab.ucb1(problem)
outcome = jaxbandits.run(jax.random.key(2), ucb1, tiring(ucb1), max_rounds=2_000)
print("pulls of UCB1:", outcome.state.counts, "tiredness:", outcome.memory.round(2))
