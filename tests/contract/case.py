"""Struct of a case of the conformance suite."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxbandits.base import Algorithm, Environment


class Case(NamedTuple):
    """Maker of an algorithm and its environment, and the hyperparameters that must change something."""

    # (dtype, shown=None, **hyperparameters); `shown` changes what the learner may know, the factory's first argument
    make: Callable[..., tuple[Algorithm, Environment]]
    numbers: dict[str, tuple[Any, Any]]  # hyperparameters that may be tracers -> (value, value that changes the run)
    choices: dict[str, Any] = {}  # noqa: RUF012  other hyperparameters, which change the program and so the run
    dtypes: tuple[str, ...] = ("float64", "float32")
    max_rounds: int = 100_000  # enough to stop
    integers: bool = False  # observations are integers
    is_variant: bool = False  # variant of an algorithm in the table: only in the wide tests
