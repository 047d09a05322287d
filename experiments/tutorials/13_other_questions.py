# %% [markdown]
# # Which arms are above a level?
#
# The best arm is one question. Others are values too: all arms above a level, one of them, the m best arms, all arms
# that are nearly the best. A rule that is given `question=` asks it, and `is_right` judges the answer.

# %%
import jax

jax.config.update("jax_enable_x64", True)
import jaxbandits
from jaxbandits import mab

instance = mab.bernoulli([0.25, 0.5, 0.1, 0.6, 0.3])  # five offers, and the share of visitors who accept
question = mab.Above(0.4)
algorithm = mab.eb_tc(instance.problem, question=question, delta=0.05)
outcome = jaxbandits.run(jax.random.key(0), algorithm, mab.environment(instance, algorithm), max_rounds=10**6)
print("above .4:", outcome.answer, "after", int(outcome.pulls), "visitors")
print("right:", mab.is_right(instance, outcome.answer, question=question))

# %% [markdown]
# Each question has a characteristic time T*: for small delta, no rule of error probability delta stops before T* log(1
# / delta) pulls in the mean. So the cost of a question can be known before an experiment.

# %%
questions = {
    "the best": mab.BestArm(),
    "the two best": mab.TopM(2),
    "all above .4": mab.Above(0.4),
    "one above .4": mab.GoodArm(0.4),
    "all within .2 of the best": mab.AllGood(0.2),
}
for name, each in questions.items():
    time = mab.characteristic_time(instance.problem, instance.means, question=each)
    print(f"{name}: T* = {float(time.value):,.0f}, shares of the visitors", time.allocation.round(2))

# %% [markdown]
# One rule answers two of them, a hundred times each. `GoodArm` has the answer K, five here, if no arm is good.


# %%
def asking(each):
    def build(task, key):
        algorithm = mab.eb_tc(instance.problem, question=each, delta=0.05)
        return algorithm, mab.environment(instance, algorithm)

    return build


def scoring(each):
    return lambda task, outcome: {"wrong": ~mab.is_right(instance, outcome.answer, question=each)}


for name in ("all above .4", "one above .4"):
    results = jaxbandits.sweep(
        asking(questions[name]),
        seeds=100,
        key=jax.random.key(1),
        max_rounds=10**6,
        metrics=scoring(questions[name]),
        progress=False,
    )
    print(f"{name}: {results['pulls'].mean():,.0f} visitors in the mean, {results['wrong'].sum()} of 100 wrong")
