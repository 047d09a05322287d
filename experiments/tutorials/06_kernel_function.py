# %% [markdown]
# # Kernel bandits on a function of your own
#
# A function on a grid of candidates, a Gaussian process with a given kernel, and the regret of one learner, or of ten
# agents who may send messages to each other.

# %%
import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import jaxbandits
from jaxbandits import kernel

x = jnp.linspace(0, 1, 60)[:, None]  # candidates (M, d)
values = jnp.sin(8 * x[:, 0]) * x[:, 0] + 0.3 * jnp.cos(25 * x[:, 0])
instance = kernel.Instance(x, values, noise_scale=0.1)
settings = {"kernel": kernel.SquaredExponential(0.1), "noise_variance": 0.01, "beta": 1.0}

# %% [markdown]
# One run of GP-UCB. `kernel.belief` reads the posterior from a state.

# %%
algorithm = kernel.gp_ucb(x, horizon=25, **settings)
outcome = jaxbandits.run(jax.random.key(0), algorithm, kernel.environment(instance, algorithm), max_rounds=26)
posterior = kernel.belief(outcome.state)
mean, sd = np.asarray(posterior.mean[0]), np.sqrt(np.asarray(posterior.variance[0]))
figure, axes = plt.subplots()
axes.plot(x[:, 0], values, "k--", label="function")
axes.plot(x[:, 0], mean, label="posterior mean after 25 queries")
axes.fill_between(x[:, 0], mean - 2 * sd, mean + 2 * sd, alpha=0.2, label="two standard deviations")
axes.set(xlabel="x", ylabel="f(x)")
axes.legend()
print("answer:", float(x[outcome.answer, 0]), "regret:", float(kernel.regret(instance, outcome.answer)))

# %% [markdown]
# Ten agents for 30 rounds: what they lose together, and what they send. `DUETS` shares random numbers instead of data.

# %%
marks = kernel.every_tenth(30)


def building(rule):
    def build(task, key):
        algorithm = rule(x, n_agents=10, horizon=30, **settings)
        curves = jaxbandits.record(at=marks, by="rounds", value=kernel.messages, total=kernel.round_regret(instance))
        return algorithm, kernel.environment(instance, algorithm), curves

    return build


rules = {"DUETS": kernel.duets, "N-KernelUCB": kernel.n_kernel_ucb}
results = jaxbandits.sweep(
    {name: building(rule) for name, rule in rules.items()},
    seeds=20,
    key=jax.random.key(1),
    max_rounds=31,
    progress=False,
)
axes = results.plot(y="regret", by="rule")
axes.set_title("Regret of ten agents")
for rule in rules:
    print(rule, "numbers sent by an agent to the server, mean:", results.where(rule=rule)["uplink"][:, -1].mean())
