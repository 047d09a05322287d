"""Pure-exploration and kernel bandits as pure JAX functions, simulated in batches of thousands."""

from jaxbandits import cpe, fullbandit, kcenter, kernel, linear
from jaxbandits.base import Algorithm, Decision, Environment, Outcome, Status
from jaxbandits.engine import Results, ask, compare, load, process_pool, run, sweep, task_key

__all__ = [
    "Algorithm",
    "Decision",
    "Environment",
    "Outcome",
    "Results",
    "Status",
    "ask",
    "compare",
    "cpe",
    "fullbandit",
    "kcenter",
    "kernel",
    "linear",
    "load",
    "process_pool",
    "run",
    "sweep",
    "task_key",
]
__version__ = "0.1.0"
