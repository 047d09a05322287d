"""How a case of the conformance suite is made."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxbandits.base import Algorithm, Environment


class Case(NamedTuple):
    """How to make an algorithm and its environment, and what must make a difference."""

    make: Callable[..., tuple[Algorithm, Environment]]  # (dtype, **hyperparameters)
    changes: dict[str, Any]  # one other value of every hyperparameter that must change the run
    traced: tuple[str, ...] = ("delta",)  # hyperparameters that may be tracers
    dtypes: tuple[str, ...] = ("float64", "float32")
    max_rounds: int = 100_000  # enough to stop
    integers: bool = False  # observations are integers
