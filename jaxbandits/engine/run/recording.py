"""Curves: quantities recorded at some pulls or rounds of a run.

`record` defines them. The engine carries `Curves` beside the state; the algorithm has no access to them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Environment, PyTree
from jaxbandits.numerics import compensated
from jaxbandits.numerics.compensated import Sum
from jaxbandits.numerics.indexing import select

By = Literal["pulls", "rounds"]
Value = Callable[[PyTree, Decision], Mapping[str, Array]]
Total = Callable[[PyTree, Decision, PyTree], Mapping[str, Array]]

COLUMN = {"metrics": "wrong", "value": "regret"}  # name of an array that a function may return, for a message
PREFIX = "curve"  # prefix of the columns of a sweep that hold curves


class Record(NamedTuple):
    """Definition of the curves of a run; made by `record`."""

    at: Array  # int (G,)    the marks, increasing
    by: By  # unit of the marks
    value: Value | None  # function of the values at a mark
    total: Total | None  # function of the terms summed up to a mark


class Curves(NamedTuple):
    """The curves of a run so far."""

    entries: dict[str, Array]  # (G, ...)    values of the last decision at or before each mark
    sums: dict[str, Array | Sum]  # (...)    sums over all rounds so far; compensated for floats of 32 bit or less


class Snapshot(NamedTuple):
    """Values of the curves at a decision; a chunk keeps one per round, and fills the marks at its end."""

    position: Array  # int ()    pulls or rounds so far
    counts: Array | None  # bool ()    False if the decision waits for its plan; None if the algorithm has no plans
    values: dict[str, Array]  # (...)    value of each curve


def record(
    *,
    at: Sequence[int] | Array,
    by: By = "pulls",
    value: Value | None = None,
    total: Total | None = None,
) -> Record:
    """Defines curves to be recorded during a run: regret, the error of its answer, anything that an observer can see.

    An entry of a curve belongs to the last decision, after planning, whose pulls (rounds) are at most the mark. A round
    that skips several marks records the values from before the round at each of them. Marks after the end of a run
    repeat its last values.

    The functions may close over the truth, since the algorithm has no access to them. In a sweep `build` makes the
    record, and returns it after the algorithm and the environment.

    Args:
        at: the marks, int (G,), increasing, each at least 0. They may be traced, for marks that depend on the task.
        by: unit of the marks, "pulls" or "rounds".
        value: (state, decision) -> dict of arrays: the values at a mark.
        total: (state, decision, observation) -> dict of arrays: terms of a round, summed over the rounds before the
            entry's decision. Booleans are counted. The sum has the type of the term. In 32 bit it also carries its
            rounding error, so that it is off by one rounding.

    Returns:
        Record, for `run`, or for `sweep` as the third result of `build`. The curves, (G, ...) each, are
        `Outcome.curves` by their names, with the marks as `pulls` or `rounds`. In the columns of `Results` the names
        begin with `curve.`, and `Results.summary` describes them entry by entry.

    Raises:
        ValueError: an argument is invalid, or there is neither `value` nor `total`. When the run begins, a function is
            refused if it does not return a dict of arrays, or uses a name that is taken.

    Cost: every round evaluates the functions in every lane. A chunk keeps their values of all its rounds, and fills the
        marks at its end. (LinGapE with six arms, four curves, 256 lanes, one core: a round took 24.5 us without curves,
        28.5 with 10 marks, 29.8 with 100, 49 with 1,000.)

    Example:
        Regret of UCB1 over time, in a thousand runs. `experiments/tutorials/03_regret_curves.py` draws such curves.

        >>> from jaxbandits import mab, sweep
        >>> instance = mab.gaussian([1.0, 0.5])
        >>> algorithm = mab.ucb1(instance.problem)
        >>> environment = mab.environment(instance, algorithm)
        >>> def regret(state, decision, rewards):
        ...     return {"regret": instance.means.max() - instance.means[decision.action.arms[0]]}
        >>> def build(task, key):
        ...     return algorithm, environment, record(at=(1, 10, 100, 1000), total=regret)
        >>> settings = {"key": jax.random.key(0), "progress": False}
        >>> bands = sweep(build, seeds=1000, horizon=1000, **settings).summary()
        >>> print(bands["finished"], bands["curve.pulls"][0], bands["curve.regret_mean"][0].round())
        [1000] [   1   10  100 1000] [ 0.  2. 13. 49.]
        >>> bands["curve.regret_q95"].shape  # rows, marks
        (1, 4)
    """
    largest = int(jnp.iinfo(jnp.result_type(int)).max)
    marks = checks.array("at", at, ("G",), kind="int", least=0, most=largest)
    checks.require(_increases(checks.known(marks)), "at", "increase", at)
    checks.one_of("by", by, By)
    if value is not None:
        checks.function("value", value, "(state, decision)")
    if total is not None:
        checks.function("total", total, "(state, decision, observation)")
    if value is None and total is None:
        raise ValueError("value must be a function of (state, decision) where there is no total, got None")
    return Record(marks.astype(int), by, value, total)


def start_curves(what: Record | None, algorithm: Algorithm, environment: Environment) -> Curves:
    """Returns the curves of a run that has not begun.

    Raises:
        ValueError: a function of the record does not return a dict of arrays, or uses a name that is taken.
    """
    if what is None:
        return Curves({}, {})

    def first() -> tuple[dict[str, Array], dict[str, Array]]:
        key = jax.random.key(0, impl="threefry2x32")
        state = algorithm.init(key)
        decision = algorithm.decide(key, state)
        observation, _ = environment.respond(environment.init(key), decision.action, environment.noise(key))
        return _values(what, state, decision), _summands(what, state, decision, observation)

    values, sums = jax.eval_shape(first)
    for name in sums:
        if name in values:
            raise ValueError(f"total must use other names than value, got {name!r} in both")
    entries = {name: jnp.zeros((*what.at.shape, *x.shape), x.dtype) for name, x in (values | sums).items()}
    return Curves(entries, {name: _no_sum(x) for name, x in sums.items()})


def snapshot_of(
    what: Record, curves: Curves, state: PyTree, rounds: Array, decision: Decision, *, counts: Array | None
) -> Snapshot:
    """Returns the values of the curves at a decision."""
    position = state.pulls if what.by == "pulls" else rounds
    values = _values(what, state, decision) | {name: _total(x) for name, x in curves.sums.items()}
    return Snapshot(position, counts, {name: values[name].astype(old.dtype) for name, old in curves.entries.items()})


def fill_marks(what: Record, curves: Curves, chunk: Snapshot, end: Snapshot) -> Curves:
    """Fills the marks after a chunk: each gets the values of the last decision at or before it.

    This is done once per chunk, not in every round, because a thousand marks cost more than the rounds.

    Args:
        what: the record.
        curves: curves with the entries before the chunk and the sums after it.
        chunk: snapshots of the decisions of the chunk, leaves (rounds, ...), whose positions never fall.
        end: snapshot of the decision after them.
    """
    dtype = np.promote_types(what.at.dtype, end.position.dtype)
    marks, positions = what.at.astype(dtype), chunk.position.astype(dtype)
    chosen = jnp.searchsorted(positions, marks, side="right").astype(jnp.int32) - 1
    if chunk.counts is not None:
        counted = jnp.where(chunk.counts, jnp.arange(len(positions), dtype=jnp.int32), -1)
        chosen = jnp.where(chosen < 0, -1, lax.cummax(counted)[chosen])
    is_reached = marks >= end.position.astype(dtype)
    if end.counts is not None:
        is_reached &= end.counts

    def entry(name: str, old: Array) -> Array:
        within, after = (x.reshape(-1, *[1] * (old.ndim - 1)) for x in (chosen >= 0, is_reached))
        return jnp.where(after, end.values[name], jnp.where(within, chunk.values[name][chosen], old))

    return curves._replace(entries={name: entry(name, old) for name, old in curves.entries.items()})


def sum_round(
    what: Record, curves: Curves, state: PyTree, decision: Decision, observation: PyTree, *, where: Array
) -> Curves:
    """Adds the terms of a round to the sums; returns the curves unchanged unless `where` holds."""
    new = _summands(what, state, decision, observation)
    sums = {name: _added(old, new[name].astype(_total(old).dtype)) for name, old in curves.sums.items()}
    return curves._replace(sums=select(where, sums, curves.sums))


def _no_sum(like: Any) -> Array | Sum:
    """Returns an empty sum of terms of this shape and dtype."""
    is_short = jnp.issubdtype(like.dtype, jnp.inexact) and jnp.finfo(like.dtype).bits <= 32
    return compensated.zeros(like.shape, like.dtype) if is_short else jnp.zeros(like.shape, like.dtype)


def _total(s: Array | Sum) -> Array:
    """Returns a sum as a plain array."""
    return s.total if isinstance(s, Sum) else s


def _added(s: Array | Sum, x: Array) -> Array | Sum:
    """Adds one term to a sum."""
    if not isinstance(s, Sum):
        return s + x
    # The error of an infinite sum is not a number, and must not spoil it.
    plain, after = s.total + x, compensated.add(s, x)
    return jax.tree.map(lambda new, other: jnp.where(jnp.isfinite(plain), new, other), after, Sum(plain, s.lost))


def curves_of(what: Record | None, curves: Curves) -> dict[str, Array]:
    """Returns the marks of a run and its curves (G, ...) by their names."""
    return {} if what is None else {what.by: what.at} | curves.entries


def curve_columns(curves: Mapping[str, Array]) -> dict[str, Array]:
    """Returns the curves of a run as columns of a sweep."""
    return {f"{PREFIX}.{name}": values for name, values in curves.items()}


def is_marks(column: str) -> bool:
    """True if a column of a sweep holds the marks of its curves."""
    return column in {f"{PREFIX}.{by}" for by in get_args(By)}


def is_curve(column: str | None) -> bool:
    """True if a column of a sweep holds curves, or their marks."""
    return column is not None and column.startswith(f"{PREFIX}.")


def require_arrays(name: str, returned: Any) -> None:
    """Raises `ValueError` unless a function of the caller returned a dict of numbers and arrays of numbers.

    Anything else would fail once the runs have ended, with an error that does not name it.
    """
    if not isinstance(returned, Mapping):
        line = f'Write {{"{COLUMN.get(name, "name")}": ..}}'
        raise ValueError(f"{name} must return a dict of arrays, got {checks.show(returned)}. {line}")
    for key, value in returned.items():
        if not isinstance(key, str):
            raise ValueError(f"{name} must return arrays by names, which are strings, got the name {checks.show(key)}")
        if not is_numeric(value):
            advice = f'. Write {{"{key}": jax.numpy.asarray(..)}}' if isinstance(value, (list, tuple)) else ""
            raise ValueError(f"{name} must return a dict of arrays, got {checks.show(value)} as {key!r}{advice}")


def is_numeric(value: Any) -> bool:
    """True if this is a number or an array of numbers, booleans included; False for PRNG keys and text."""
    if isinstance(value, (jax.Array, np.ndarray, np.generic)):
        return any(jnp.issubdtype(value.dtype, kind) for kind in (np.bool_, np.number))
    return isinstance(value, (bool, int, float, complex))


def _values(what: Record, state: PyTree, decision: Decision) -> dict[str, Array]:
    """Returns the values of `value` at a decision."""
    return {} if what.value is None else _checked("value", what.value(state, decision))


def _summands(what: Record, state: PyTree, decision: Decision, observation: PyTree) -> dict[str, Array]:
    """Returns the terms of `total` in a round."""
    if what.total is None:
        return {}
    totals = _checked("total", what.total(state, decision, observation))
    return {name: x.astype(int) if x.dtype == bool else x for name, x in totals.items()}


def _checked(name: str, returned: Any) -> dict[str, Array]:
    """Returns the result of a record's function as arrays."""
    require_arrays(name, returned)
    for key in returned:
        if key in get_args(By):
            raise ValueError(f"{name} must return arrays by names other than pulls and rounds, got {key!r}")
    return {key: jnp.asarray(array) for key, array in returned.items()}


def _increases(marks: Any) -> Any:
    """Returns True if each mark is larger than the one before it: bool ()."""
    return (marks[1:] > marks[:-1]).all()
