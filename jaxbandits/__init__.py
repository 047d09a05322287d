"""Pure-exploration and kernel bandits as pure JAX functions, simulated in batches of thousands.

Every family has the same look; the lines below differ from those of another family in names alone:

>>> import jax
>>> import jaxbandits
>>> from jaxbandits import linear
>>> key = jax.random.key(0)
>>> instance = linear.soare(5)  # the truth: an Instance
>>> algorithm = linear.lingape(instance.arms, delta=0.05, noise_scale=instance.noise_scale)  # what a learner may know
>>> environment = linear.environment(instance)  # answers it
>>> outcome = jaxbandits.run(key, algorithm, environment, max_rounds=10**6)
>>> print(linear.is_right(instance, outcome.answer))
True

`run` is one run, as a pure function for `jit` and `vmap`; `sweep` makes thousands of them, over seeds, instances and
parameters. `testing.check` holds an algorithm of your own to what both rely on.

The words, one meaning each:

| word | meaning |
| --- | --- |
| task, row, seed | a task is one run to be made: a row of the task table (instance, parameters) and a seed |
| run | a task's whole course, from its first round to its end; `Results` has one entry for each |
| round | one `decide`, `respond`, `observe` |
| pull, query | one use of the oracle (arms: pull; distances: query); a round may stand for many |
| leap | many pulls in one round, with the law of one by one unchanged; `leap=n` the most (1: none) |
| horizon | the pulls that a run is meant to last: reaching it is its end (`kernel`: rounds, of `n_agents` pulls each) |
| curve, mark | what was recorded over a run; a number of pulls or rounds at which it has an entry |
| budget | `max_rounds`: what the engine allows; a run that reaches it is censored |
| lane, batch | a lane is a place in which one run after another advances; a batch is the lanes of one compiled call |
| chunk | the rounds between two looks of the host |
| shard | a part of the task table that one worker runs |
| store | the folder of finished runs |
| problem, instance | what the learner may know; that with the truth |
| stream | a key that rewards are functions of: an arm's n-th pull pays the same to all who share it (`numbered`) |
| noise_scale | sub-Gaussian constant or standard deviation of the noise, in units of reward |
| ridge | regulariser of least squares |
| noise_variance | a Gaussian process' own noise variance |
"""

from jaxbandits import base, cpe, engine, fullbandit, kcenter, kernel, linear, mab, numerics, testing
from jaxbandits.base import Algorithm, Decision, Environment, Outcome, Status
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
from jaxbandits.streams import Numbered, numbered

__all__ = [
    "Algorithm",
    "Decision",
    "Environment",
    "Numbered",
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
    "fullbandit",
    "grid",
    "kcenter",
    "kernel",
    "linear",
    "load",
    "mab",
    "numbered",
    "numerics",
    "process_pool",
    "record",
    "rows",
    "run",
    "sweep",
    "task_key",
    "tell",
    "testing",
    "trace",
]
__version__ = "0.1.0"
