"""Many tasks at full device speed."""

from jaxbandits.sweep.lanes import sweep, task_key
from jaxbandits.sweep.results import Results, Stats

__all__ = ["Results", "Stats", "sweep", "task_key"]
