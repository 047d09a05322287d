# %% [markdown]
# # Is delta = 1e-9 kept?
#
# Nobody can wait for an error of probability 1e-9. It can be computed: runs are made on other instances, on which a
# wrong answer is right, and are weighted by their likelihood. The estimate has no bias, whatever the rule.

# %%
import jax

jax.config.update("jax_enable_x64", True)
from jaxbandits import mab, rare

truth = mab.gaussian([1.5, 0.5, 0.0])
delta = 1e-9


def build(instance, key):  # the same algorithm for all means: it must not see them
    algorithm = mab.ttucb(instance.problem, delta=delta)
    return algorithm, mab.environment(instance, algorithm)


settings = {"max_rounds": 20_000, "relative_error": 0.15, "progress": False}
result = rare.error_probability(build, truth, key=jax.random.key(0), **settings)
print(result)
print("delta is kept:", result.estimate + 2 * result.se < delta)

# %% [markdown]
# `trust` is "ok" or says what speaks against the number: heavy weights, learnings that disagree, a budget that cuts.
# The parts say how the rule errs: with which answer, and after how many pulls.

# %%
print(result.trust)
print(result.parts())

# %% [markdown]
# Half of the errors stop at or before the median below. At small delta an error is often a single reward: the best
# arm's first one is so low that it is never pulled again.

# %%
print("pulls at an error, 10, 50, 90 %:", result.quantiles((0.1, 0.5, 0.9)))
best = result.events.counts[:, 0]
once = result.part(best == 1)
print(f"with one pull of the best arm: {once.estimate / result.estimate:.0%} of the errors")

# %% [markdown]
# The same weights give the tail of the stopping time, beside what ten thousand plain runs say of it.

# %%
import jaxbandits

tail = rare.tail_probability(build, truth, pulls=350, key=jax.random.key(1), progress=False)
plain = jaxbandits.sweep(
    lambda task, key: build(truth, key), seeds=10_000, key=jax.random.key(2), horizon=350, progress=False
)
print(tail, "plain:", (plain["status"] != jaxbandits.Status.STOPPED).mean())
