"""How a case of the conformance suite is made."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxbandits.base import Algorithm, Environment


class Case(NamedTuple):
    """How to make an algorithm and its environment, and what must make a difference."""

    make: Callable[..., tuple[Algorithm, Environment]]  # (dtype, **hyperparameters)
    numbers: dict[str, tuple[Any, Any]]  # hyperparameters that may be tracers: a value, and one that changes the run
    choices: dict[str, Any] = {}  # noqa: RUF012  the others, which change the program, and so the run
    dtypes: tuple[str, ...] = ("float64", "float32")
    max_rounds: int = 100_000  # enough to stop
    integers: bool = False  # observations are integers
    is_variant: bool = False  # of an algorithm that is in the table already: looked at with the wide tests
