"""Feedback that changes, comes late, comes in batches, or is corrupted, for any family whose rewards are numbers.

Each function takes an environment, or an algorithm with its environment, and returns one of the same kind. They
compose, and run in `run`, `sweep`, `trace` and `testing.check` as every other environment does. Two ideas cover them:
an environment has a memory (`jaxbandits.Environment`), and says by its `pulls` how many pulls an action makes.

| function | feedback |
| --- | --- |
| `changing(environments, at=)` | rewards change their law after given numbers of pulls |
| `drifting(make)` | rewards change with every pull |
| `delayed(algorithm, environment, delay=)` | an observation arrives rounds later, or never |
| `batched(algorithm, size)` | the decisions of a batch see none of its observations |
| `corrupted(environment, budget=, attack=)` | an adversary changes rewards, up to a budget |

Rewards that an organisation has recorded are environments of a family: `mab.recorded` and `linear.recorded`.

A `record` of a run receives the state of the algorithm that it was given: for `delayed` and `batched` it has the
algorithm's own state in a field.
"""

from jaxbandits.feedback._wrappers.batched import Batched, batched
from jaxbandits.feedback._wrappers.changing import changing
from jaxbandits.feedback._wrappers.corrupted import corrupted
from jaxbandits.feedback._wrappers.delayed import Delayed, Geometric, Late, delayed
from jaxbandits.feedback._wrappers.drifting import drifting

__all__ = [
    "Batched",
    "Delayed",
    "Geometric",
    "Late",
    "batched",
    "changing",
    "corrupted",
    "delayed",
    "drifting",
]
