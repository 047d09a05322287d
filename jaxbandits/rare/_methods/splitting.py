"""Probabilities of late stops and wrong answers by splitting: runs that come far are copied, others are dropped."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks, cpe, fullbandit, linear, mab
from jaxbandits.base import Algorithm, Array, Environment, Key, PyTree, Status
from jaxbandits.checks import require
from jaxbandits.engine.run.compatibility import require_fit
from jaxbandits.engine.run.loop import advance
from jaxbandits.engine.run.round import streams
from jaxbandits.engine.sweep.tasks import Build, build_row, make_job

LANES = "lanes"
CHUNK = 64
LARGEST = 2**31 - 1
IS_RIGHT: dict[type, Callable[..., Array]] = {
    mab.Instance: mab.is_right,
    linear.Instance: linear.is_right,
    cpe.Instance: cpe.is_right,
    fullbandit.Instance: fullbandit.is_right,
}


class Splitting(NamedTuple):
    """Probabilities by splitting, one for each time or level."""

    at: np.ndarray  # (m,)   the times, in pulls; or the levels, of which the last, infinity, stands for a wrong stop
    probability: np.ndarray  # float64 (m,)   of T > time; of reaching the level, or of a wrong stop
    se: np.ndarray  # float64 (m,)   standard error, from the replications
    replications: np.ndarray  # float64 (R, m)   the probability in each replication; 0 after all lanes have stopped

    @property
    def estimate(self) -> float:
        """Returns the probability at the last time or level."""
        return float(self.probability[-1])


class Lanes(NamedTuple):
    """Runs of all replications."""

    state: PyTree  # leaves (R N, ...)
    memory: PyTree  # leaves (R N, ...)
    rounds: Array  # int32 (R N,)


def splitting(
    build: Build,
    instance: Any,
    *,
    key: Key,
    times: Sequence[int] | None = None,
    level: Callable[[PyTree], Array] | None = None,
    levels: Sequence[float] | None = None,
    max_rounds: int | None = None,
    wrong: Callable[[Any], bool] | None = None,
    lanes: int = 500,
    replications: int = 16,
) -> Splitting:
    """Estimates the probability of late stops, or of wrong answers, where rewards have no likelihood ratio.

    With `times`, all lanes run to the first time; the ones that have stopped are replaced by copies of lanes drawn at
    random among the others, and so on. The product of the shares that go on has mean P(T > t), without bias. With
    `levels`, a lane runs until its level reaches the next one, and the last stage counts wrong stops.

    Splitting does not find what is decided by a few early rewards. A starved best arm, or a wrong stop after one pull
    of each arm, lies beyond no level and no time, and lanes that lack it never find it: the estimate is then too small,
    with a small standard error. Use `tail_probability` and `error_probability` where rewards have a likelihood.

    Args:
        build: (instance, key) -> (algorithm, environment), for any algorithm and environment without a stream.
        instance: the truth, of any kind that `build` takes.
        key: root key of all randomness.
        times: numbers of pulls, increasing. If None, `level` and `levels` are given.
        level: (state) -> float (), a traceable measure of how close a state is to a wrong stop.
        levels: values of `level`, increasing.
        max_rounds: budget of rounds of a run; required with levels, otherwise None.
        wrong: (answer) -> bool, for levels. If None, an answer that is not the best one of the instance.
        lanes: number N of runs of a replication, at least 2.
        replications: number of independent repetitions, at least 2, from which the standard error comes.

    Returns:
        Splitting.

    Raises:
        ValueError: an argument is invalid, or the environment has a stream, on which copies would share their rewards.
        RuntimeError: a run failed with a NaN or an invalid action, or had no further answers.

    Example:
        >>> import jax
        >>> from jaxbandits import mab, rare
        >>> def build(instance, key):
        ...     algorithm = mab.ttucb(instance.problem, delta=0.1)
        ...     return algorithm, mab.environment(instance, algorithm)
        >>> settings = {"key": jax.random.key(0), "lanes": 50, "replications": 4}
        >>> late = rare.splitting(build, mab.gaussian((1.0, 0.0)), times=(20, 40, 80), **settings)
        >>> print(late.probability.shape, late.estimate < late.probability[0] < 1)
        (3,) True

    Source: Cerou and Guyader (2007), Adaptive multilevel splitting for rare event analysis; Brehier, Gazeau, Goudenege,
    Lelievre and Rousset (2016), Unbiasedness of some generalized adaptive multilevel splitting algorithms.
    """
    checks.function("build", build, "(instance, key)")
    checks.key("key", key)
    N = checks.whole("lanes", lanes, least=2)
    R = checks.whole("replications", replications, least=2)
    if (times is None) == (levels is None):
        raise ValueError("times must be given, or level and levels, but not both")
    if times is not None:
        for name, value in (("level", level), ("max_rounds", max_rounds), ("wrong", wrong)):
            require(value is None, name, "be None with times", value)
        at = _increasing("times", times, kind="int", least=1, most=LARGEST)
        judged = None
    else:
        checks.function("level", level, "(state)")
        max_rounds = checks.whole("max_rounds", max_rounds, least=1, most=LARGEST)
        at = _increasing("levels", levels)
        judged = wrong if wrong is not None else _default(instance)
        checks.function("wrong", judged, "(answer)")

    job = make_job(build, None, seeds=1, key=key, max_rounds=1)
    algorithm, environment, _ = build_row(job, instance, key)
    require(environment.stream is None, "build", "make an environment without stream", "one with a stream")
    require_fit(algorithm, environment)
    stages = [*at.tolist()] if judged is None else [*at.tolist(), np.inf]
    advance_lanes = _program(algorithm, environment, level)
    start = jax.random.split(jax.random.fold_in(key, 0), R * N)
    carried = jax.jit(jax.vmap(partial(_first, algorithm, environment)))(start)

    product, columns, random = np.ones(R), [], np.random.default_rng(np.asarray(_words(key)).tolist())
    for number, stage in enumerate(stages):
        keys = jax.random.split(jax.random.fold_in(key, number + 1), R * N)
        limits = (stage, LARGEST, np.inf) if judged is None else (LARGEST, max_rounds, stage)
        carried, status, pulls, answer, reached = _finish(advance_lanes, keys, carried, limits)
        if judged is None:
            goes_on = ~((status == Status.STOPPED) & (pulls <= stage))
        elif np.isinf(stage):
            goes_on = (status == Status.STOPPED) & _is_wrong(judged, answer)
        else:
            goes_on = reached
        goes_on = goes_on.reshape(R, N)
        product = product * goes_on.mean(axis=1)
        columns.append(product)
        if number + 1 == len(stages) or not product.any():
            continue
        source = np.stack([_copies(row, random, all_drawn=judged is not None) for row in goes_on])
        index = jnp.asarray((source + N * np.arange(R)[:, None]).ravel())
        carried = jax.tree.map(lambda leaf, index=index: leaf[index], carried)
    values = np.stack(columns, axis=1)
    se = values.std(axis=0, ddof=1) / np.sqrt(R)
    return Splitting(np.array(stages), values.mean(axis=0), se, values)


def _copies(goes_on: np.ndarray, random: np.random.Generator, *, all_drawn: bool) -> np.ndarray:
    """Returns the lane that each lane of a replication continues from, int (N,)."""
    alive, lanes = np.flatnonzero(goes_on), np.arange(goes_on.size)
    # A replication without survivors has the estimate 0, whatever its lanes do.
    if alive.size == 0:
        return lanes
    drawn = random.choice(alive, goes_on.size)
    return drawn if all_drawn else np.where(goes_on, lanes, drawn)


def _first(algorithm: Algorithm, environment: Environment, key: Key) -> Lanes:
    keys = streams(key)
    return Lanes(algorithm.init(keys.init), environment.init(keys.memory), jnp.int32(0))


def _program(algorithm: Algorithm, environment: Environment, level: Callable[[PyTree], Array] | None) -> Any:
    """Compiles the advance of all lanes by a chunk of rounds."""

    def one(key: Key, lane: Lanes, horizon: Array, max_rounds: Array, goal: Array) -> Any:
        def decide(key: Key, state: PyTree) -> Any:
            decision = algorithm.decide(key, state)
            if level is None:
                return decision
            return decision._replace(stop=decision.stop | (level(state) >= goal))

        watched = algorithm._replace(decide=decide)
        outcome, _ = advance(
            watched,
            environment,
            streams(key),
            lane.state,
            lane.memory,
            rounds=lane.rounds,
            max_rounds=max_rounds,
            chunk=CHUNK,
            horizon=horizon,
            axis_name=LANES,
        )
        reached = jnp.zeros((), bool) if level is None else level(outcome.state) >= goal
        after = Lanes(outcome.state, outcome.memory, outcome.rounds)
        return after, outcome.status, outcome.pulls, outcome.answer, reached

    @jax.jit
    def several(keys: Key, lanes: Lanes, horizon: Array, max_rounds: Array, goal: Array) -> Any:
        every = jax.vmap(one, (0, 0, None, None, None), axis_name=LANES)

        def is_running(result: Any) -> Array:
            return jnp.any(result[1] == Status.RUNNING)

        first = every(keys, lanes, horizon, max_rounds, goal)
        return lax.while_loop(is_running, lambda r: every(keys, r[0], horizon, max_rounds, goal), first)

    return several


def _finish(program: Any, keys: Key, lanes: Lanes, limits: tuple[Any, Any, Any]) -> Any:
    """Runs all lanes to the end of a stage: (lanes, status, pulls, answer, reached), on the host except the lanes."""
    horizon, max_rounds, goal = limits
    after, *ends = program(keys, lanes, jnp.int32(horizon), jnp.int32(max_rounds), jnp.asarray(goal, float))
    status, pulls, answer, reached = jax.device_get(ends)
    failed = np.isin(status, (Status.NONFINITE, Status.INVALID_ACTION, Status.EXHAUSTED))
    if failed.any():
        kind = Status(int(status[failed][0])).name
        raise RuntimeError(f"{failed.sum()} of {failed.size} runs failed ({kind}): no estimate is made of the others")
    return after, status, pulls, answer, reached


def _is_wrong(wrong: Callable[[Any], bool], answers: np.ndarray) -> np.ndarray:
    distinct, inverse = np.unique(answers.reshape(len(answers), -1), axis=0, return_inverse=True)
    shown = [row if answers.ndim > 1 else int(row[0]) for row in distinct]
    return np.array([bool(wrong(answer)) for answer in shown])[inverse.ravel()]


def _default(instance: Any) -> Callable[[Any], bool]:
    is_right = IS_RIGHT.get(type(instance))
    if is_right is None:
        raise ValueError(f"wrong must be given for an instance of another family, got {checks.show(instance)}")
    return lambda answer: not bool(is_right(instance, jnp.asarray(answer) if np.ndim(answer) else answer))


def _increasing(name: str, values: Any, **bounds: Any) -> np.ndarray:
    values = np.asarray(checks.array(name, values, ("m",), **bounds))
    require(np.diff(values) > 0, name, "be increasing", values)
    return values


def _words(key: Key) -> Array:
    return jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key
