"""Pure-exploration and kernel bandits as pure JAX functions, simulated in batches of thousands.

Every family is used in the same way; another family's lines differ only in names:

>>> import jax
>>> import jaxbandits
>>> from jaxbandits import linear
>>> key = jax.random.key(0)
>>> instance = linear.soare(5)  # the truth: an Instance
>>> algorithm = linear.lingape(instance.arms, delta=0.05, noise_scale=instance.noise_scale)  # knows arms and noise
>>> environment = linear.environment(instance, algorithm)  # answers the algorithm's pulls
>>> outcome = jaxbandits.run(key, algorithm, environment, max_rounds=10**6)
>>> print(linear.is_right(instance, outcome.answer))
True

`run` makes one run and is a pure function for `jit` and `vmap`. `sweep` makes thousands of runs, over seeds, instances
and parameters. `testing.check` tests an algorithm of your own against all that both assume. `rare` estimates errors too
rare to be observed.

Each word has one meaning:

| word | meaning |
| --- | --- |
| task, row, seed | a task is one run to be made: a row of the task table (instance, parameters) and a seed |
| run | the course of a task, from its first round to its end; `Results` has one entry per run |
| round | one `decide`, `respond` and `observe` |
| pull, query | one use of the oracle (arms: pull; distances: query); a round may make many |
| leap | many pulls in one round, with the same distribution as one by one; `leap=n` is the limit (1: none) |
| slots | the number of arms that one action may name |
| play | one use of a super-arm that reveals the rewards of all its arms (`cpe`) |
| idle | the action that pulls nothing and leaves the state unchanged |
| plan, stale | rare heavy work on a state, such as a new design; a state is stale when it is due |
| refresh | cheap work on a state at the start of a chunk: rebuilds the cache from the exact statistics |
| horizon | the number of pulls after which a run ends as planned (`kernel`: rounds of `n_agents` pulls each) |
| budget | `max_rounds`: a run that reaches it is censored. In "fixed budget", as in the literature, it is the horizon |
| curve, mark | a quantity recorded over a run; the number of pulls or rounds at which it is recorded |
| tape | actions and observations in the order of the rounds, recorded by `trace` and read by `replay` |
| lane, batch | a lane is a slot of a batch: when its run ends, the next one takes its place |
| chunk | the rounds between two visits of the host |
| scalars | a form of the compiled program in which every entry of a small array is a vector over lanes |
| shard | a part of the task table that one worker runs; a slice is the time that a worker spends on it per call |
| store | the folder of finished runs |
| problem, instance | a problem holds all that a learner may know; an instance adds the truth |
| item | a candidate answer of a linear bandit, if answers may differ from arms |
| stream | a key that determines rewards: the n-th pull of an arm pays the same in all runs that share it |
| memory | what an environment carries from round to round, such as the number of pulls of each arm |
| noise_scale | sub-Gaussian constant or standard deviation of the noise, in units of reward |
| ridge | regulariser of least squares |
| noise_variance | noise variance that a Gaussian process assumes |
"""

from jaxbandits import (
    base,
    cpe,
    engine,
    feedback,
    fields,
    fullbandit,
    kcenter,
    kernel,
    linear,
    mab,
    numerics,
    rare,
    testing,
)
from jaxbandits.base import Algorithm, Decision, Environment, Outcome, Status, memoryless
from jaxbandits.engine import (
    Record,
    Results,
    Tape,
    ask,
    compare,
    concatenate,
    grid,
    load,
    process_pool,
    record,
    rows,
    task_key,
    tell,
    trace,
)
from jaxbandits.engine.run.loop import run
from jaxbandits.engine.sweeping import sweep

__all__ = [
    "Algorithm",
    "Decision",
    "Environment",
    "Outcome",
    "Record",
    "Results",
    "Status",
    "Tape",
    "ask",
    "base",
    "compare",
    "concatenate",
    "cpe",
    "engine",
    "feedback",
    "fullbandit",
    "grid",
    "kcenter",
    "kernel",
    "linear",
    "load",
    "mab",
    "memoryless",
    "numerics",
    "process_pool",
    "rare",
    "record",
    "rows",
    "run",
    "sweep",
    "task_key",
    "tell",
    "testing",
    "trace",
]
__version__ = "0.4.3"

# `help()` shows what each field of a struct is. This reads the sources, in some 13 ms.
fields.document_fields()
