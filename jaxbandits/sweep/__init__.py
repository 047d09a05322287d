"""Many tasks at full device speed."""

from jaxbandits.sweep.comparison import compare
from jaxbandits.sweep.job import task_key
from jaxbandits.sweep.results import Results, Stats
from jaxbandits.sweep.store import load
from jaxbandits.sweep.sweep import sweep
from jaxbandits.sweep.workers import process_pool

__all__ = ["Results", "Stats", "compare", "load", "process_pool", "sweep", "task_key"]
