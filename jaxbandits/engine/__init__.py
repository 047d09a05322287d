"""Many tasks at full device speed."""

from jaxbandits.engine.comparison import compare
from jaxbandits.engine.results import Results, Stats
from jaxbandits.engine.store import load
from jaxbandits.engine.sweeping import sweep
from jaxbandits.engine.tasks import task_key
from jaxbandits.engine.workers import process_pool

__all__ = ["Results", "Stats", "compare", "load", "process_pool", "sweep", "task_key"]
