"""A rule of this library beside NumPy over the seeds, and beside scalar code that numba compiles."""

import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandits
from experiments.bench.case import repeating
from experiments.bench.reference.over_lanes.loop import Rule, run
from jaxbandits.base import Algorithm, Environment
from jaxbandits.engine import Stats

SEEDS = 1024  # runs, all side by side
DELTA = 1e-30
FASTER, WITH_BETAS, THAN_NUMBA = 3.0, 2.0, 1.5  # times NumPy over the seeds, the same if betas are drawn; times numba


class Rival(NamedTuple):
    """Each player takes the number of rounds of every run, makes these runs, and returns the pulls of all."""

    family: str
    rule: str
    instance: str
    ours: Callable[[int], int]
    numpy: Callable[[int], int]
    numba: Callable[[int], int] | None = None
    floor: Callable[[int], int] | None = None  # as `ours`, but see `floor`
    target: float = FASTER
    reason: str = ""  # measured, for a target that is missed
    # Rounds of the long runs of each player that make the same pulls, where pulls differ in work; if empty, rounds that
    # take long enough.
    long: Mapping[str, int] = MappingProxyType({})


def sweep(build: Callable[..., Any], rounds: int, *, seeds: int = SEEDS, lanes: int = SEEDS) -> Stats:
    settings = {"seeds": seeds, "lanes": lanes, "max_rounds": rounds, "progress": False}
    return jaxbandits.sweep(build, key=jax.random.key(0), **settings).stats


def swept(build: Callable[..., Any], rounds: int, **settings: int) -> int:
    """Plays by a sweep."""
    return int(sweep(build, rounds, **settings).pulls)


def floor(build: Callable[..., Any], rounds: int, **settings: int) -> int:
    """Plays by an algorithm that repeats its first query: keys, noise, answers and counters are left.

    Returns:
        The rounds of all runs.
    """

    def repeats(task: Any, key: jax.Array) -> tuple[Algorithm, Environment]:
        algorithm, environment = build(task, key)
        return repeating(algorithm), environment

    return int(sweep(repeats, rounds, **settings).rounds)


def ours(build: Callable[..., Any], **settings: int) -> dict[str, Callable[[int], int]]:
    """Returns our player and its floor."""
    return {"ours": partial(swept, build, **settings), "floor": partial(floor, build, **settings)}


def over_lanes(
    rule: Callable[[np.random.Generator], Rule],
    respond: Callable[..., np.ndarray],  # (generator, actions) -> observations
    rounds: int,
    *,
    lanes: int = SEEDS,
    queries: Callable[[Any], int] = np.size,  # (actions) -> their number
) -> int:
    """Plays in NumPy, all runs in one loop."""
    rng, pulls = np.random.default_rng(0), 0

    def answered(_: np.ndarray, actions: Any) -> np.ndarray:
        nonlocal pulls
        pulls += queries(actions)
        return respond(rng, actions)

    run(rule(rng), answered, lanes=lanes, rounds=rounds)
    return int(pulls)


def normal(means: np.ndarray) -> Callable[..., np.ndarray]:
    """Returns the environment of arms with normal rewards of variance 1."""
    return lambda rng, arms: means[arms] + rng.standard_normal(arms.shape)


def bernoulli(means: np.ndarray) -> Callable[..., np.ndarray]:
    """Returns the environment of arms with rewards 0 and 1."""
    return lambda rng, arms: (rng.random(arms.shape) < means[arms]).astype(float)


def one_normal(means: np.ndarray) -> Callable[..., float]:
    """Returns the same for one run, as scalar code."""
    return lambda rng, arm: means[arm] + rng.standard_normal()


def one_bernoulli(means: np.ndarray) -> Callable[..., float]:
    """Returns the same for one run, as scalar code."""
    return lambda rng, arm: 1.0 if rng.random() < means[arm] else 0.0


def rows(made: np.ndarray) -> int:
    return len(made)


def scalar(
    play: Callable[..., Any], draw: Callable[..., Any], *known: Any, count: Callable[..., int] = rows
) -> Callable[[int], int]:
    """Returns the player of scalar code compiled by numba, of which only the first call compiles."""

    @cache
    def compiled() -> Callable[..., int]:
        numba = numba_or_exit()
        warnings.filterwarnings("ignore", category=numba.NumbaExperimentalFeatureWarning)  # functions as arguments
        single, one = numba.njit(play), numba.njit(draw)
        counted = numba.njit(count)

        @numba.njit
        def over_seeds(rng, rounds, known):
            pulls = 0
            for _ in range(SEEDS):
                pulls += counted(single(one, rng, rounds, *known)[0])
            return pulls

        return over_seeds

    return lambda rounds: compiled()(np.random.default_rng(0), rounds, known)


def numba_or_exit() -> Any:
    """Imports numba, which only this bench uses."""
    try:
        import numba
    except ImportError:
        raise SystemExit("--numba requires numba: pip install 'jaxbandits[bench]'") from None
    return numba
