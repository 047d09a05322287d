"""Settings of an estimate: their defaults, and the checks of a call before anything is compiled."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxbandits import checks
from jaxbandits.checks import require
from jaxbandits.rare._methods.mixture import Mixture
from jaxbandits.rare._methods.models import require_instance

ROUNDS = (4096, 1024, 1024, 1024, 1024)
ROUNDS_AT_MOST = 1000
LARGEST = 2**31 - 1
FIRST_LOOK = 4  # runs of the estimate before its error is looked at, over the runs of the smallest round
RESERVED = {"tasks", "seeds", "metrics", "key", "max_rounds", "horizon", "store"}


class Settings(NamedTuple):
    """Settings of an estimate."""

    relative_error: float  # requested standard error over the estimate
    most_runs: int  # number of runs after which the estimate ends
    rounds: Sequence[int]  # runs of each round of one learning
    learnings: int  # number of learnings
    store: str | os.PathLike[str] | None  # folder of the finished runs
    options: dict[str, Any]  # arguments of `sweep`
    given: Mapping[str, Any]  # further arguments of `build`

    @property
    def batch(self) -> int:
        """Counts the runs of one batch of the estimate, as many as the largest round has: they share a program."""
        return min(self.learnings * max(self.rounds), self.most_runs)

    @property
    def fewest(self) -> int:
        """Counts the runs before the error of the estimate is looked at."""
        return FIRST_LOOK * self.learnings * min(self.rounds)


def checked(settings: Settings) -> Settings:
    """Returns the settings of a call as plain Python values, after a check, before anything is compiled."""
    checks.positive("relative_error", settings.relative_error)
    most_runs = checks.whole("most_runs", settings.most_runs, least=1)
    learnings = checks.whole("learnings", settings.learnings, least=1)
    rounds = settings.rounds
    is_list = isinstance(rounds, (list, tuple, np.ndarray)) and len(rounds) > 0
    require(is_list, "rounds", "be numbers of runs, at least one", rounds)
    require(len(rounds) <= ROUNDS_AT_MOST, "rounds", f"be at most {ROUNDS_AT_MOST} rounds", len(rounds))
    sizes = tuple(checks.whole(f"rounds[{number}]", size, least=1) for number, size in enumerate(rounds))
    for name in sorted(RESERVED & settings.options.keys()):
        got = checks.show(settings.options[name])
        raise ValueError(f"{name} must not be given, since this function chooses it, got {got}")
    return Settings(
        relative_error=float(settings.relative_error),
        most_runs=most_runs,
        rounds=sizes,
        learnings=learnings,
        store=None if settings.store is None else checks.path("store", settings.store),
        options=settings.options,
        given=_given(settings.given),
    )


def _given(given: Any) -> dict[str, np.ndarray]:
    """Returns the further arguments of `build` as arrays."""
    is_named = isinstance(given, Mapping) and all(isinstance(name, str) for name in given)
    require(is_named, "given", "be numbers or arrays by the names of arguments of build", given)
    arrays = {name: np.asarray(value) for name, value in given.items()}
    for name, value in arrays.items():
        require(value.dtype.kind in "biuf", f"given[{name!r}]", "be a number or an array", given[name])
    return arrays


def require_call(build: Any, instance: Any, *, key: Any, alternatives: Any) -> None:
    """Checks what can be checked before `build` is called, which may compile."""
    checks.function("build", build, "(instance, key)")
    checks.key("key", key)
    P = require_instance(instance)
    if alternatives is not None and not mixtures_of(alternatives):
        checks.array("alternatives", alternatives, ("J", P), finite=True)


def mixtures_of(alternatives: Any) -> tuple[Mixture, ...]:
    """Returns the mixtures that were given; () if it is something else."""
    several = (alternatives,) if isinstance(alternatives, Mixture) else alternatives
    is_several = isinstance(several, (tuple, list)) and all(isinstance(each, Mixture) for each in several)
    return tuple(several) if is_several else ()
