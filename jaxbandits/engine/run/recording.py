"""Curves: what is recorded of a run at some of its pulls or rounds, beside the state.

`record` says what. The engine carries `Curves` along with the state; the algorithm never sees them.
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

By = Literal["pulls", "rounds"]
Value = Callable[[PyTree, Decision], Mapping[str, Array]]
Total = Callable[[PyTree, Decision, PyTree], Mapping[str, Array]]

PREFIX = "curve"  # of the columns of a sweep that hold curves


class Record(NamedTuple):
    """What is recorded of a run; `record` makes it."""

    at: Array  # int (G,)    the marks, increasing
    by: By  # what they count
    value: Value | None  # what holds at a mark
    total: Total | None  # what is summed up to it


class Curves(NamedTuple):
    """What a run carries of its curves."""

    entries: dict[str, Array]  # (G, ...)    of the last decision that each mark has seen
    sums: dict[str, Array | Sum]  # (...)    of all rounds so far; compensated where they are floats of 32 bit or less


class Seen(NamedTuple):
    """What the marks may see of a decision; a chunk keeps that of every round, and writes the marks at its end."""

    place: Array  # int ()    pulls or rounds so far
    counts: Array | None  # bool ()    false of a decision that waits for its plan; None where there are no plans
    values: dict[str, Array]  # (...)    of each curve


def record(
    *,
    at: Sequence[int] | Array,
    by: By = "pulls",
    value: Value | None = None,
    total: Total | None = None,
) -> Record:
    """Says what to record of a run over its course: regret, the error of its answer, anything that an observer sees.

    An entry of a curve is that of the last decision, after planning, whose pulls (rounds) are at most the mark. A round
    of many pulls therefore leaves to every mark that it passes the values from before it, and the marks after the end
    of a run repeat its last values.

    The functions may close over the truth: the algorithm sees nothing of them. In a sweep `build` makes the record, and
    returns it after the algorithm and the environment.

    Args:
        at: the marks, int (G,), increasing, each at least 0. They may be traced, for marks that depend on the task.
        by: whether the marks count pulls or rounds.
        value: (state, decision) -> dict of arrays: what holds at a mark.
        total: (state, decision, observation) -> dict of arrays: what a round adds, summed over the rounds before the
            entry's decision. Booleans are counted. The sum is kept in the type of the summand; in 32 bit it carries its
            rounding error along, so that it is off by one rounding.

    Returns:
        Record, for `run`, or for `sweep` as the third thing that `build` returns. The curves, (G, ...) each, are
        `Outcome.curves` by their names, with the marks as `pulls` or `rounds`; in the columns of `Results` the names
        begin with `curve.`, and `Results.summary` describes them entry by entry.

    Raises:
        ValueError: an argument is not as above, or there is neither `value` nor `total`. A function that does not
            return a dict of arrays, or one with a name that is taken, is refused when the run begins.

    Cost: every round evaluates the functions, in every lane, and a chunk keeps their values of all its rounds, from
        which the marks are written at its end. (LinGapE with six arms, four curves, 256 lanes, one core: a round took
        24.5 us without curves, 28.5 with 10 marks, 29.8 with 100, 49 with 1,000.)

    Example:
        UCB1, written in the contract, and its regret over time in a thousand runs:

        >>> from jaxbandits import linear, sweep
        >>> class State(NamedTuple):
        ...     pulls: Array  # int ()
        ...     counts: Array  # int (K,)
        ...     sums: Array  # float (K,)    of rewards
        >>> def ucb1(arms):
        ...     never, once = jnp.zeros((), int), jnp.ones((), int)
        ...     def decide(key, state):
        ...         counts, t = state.counts.astype(float), state.pulls.astype(float)
        ...         index = state.sums / counts + jnp.sqrt(2 * jnp.log(t) / counts)
        ...         arm = jnp.argmax(jnp.where(state.counts == 0, jnp.inf, index))
        ...         return Decision(linear.Pull(arm, once), jnp.zeros((), bool), jnp.argmax(state.counts))
        ...     def observe(state, pull, reward):
        ...         counts = state.counts.at[pull.arm].add(pull.times)
        ...         return State(state.pulls + pull.times, counts, state.sums.at[pull.arm].add(reward))
        ...     init = lambda key: State(never, jnp.zeros(arms, int), jnp.zeros(arms))
        ...     return Algorithm(init, decide, observe, idle=linear.Pull(never, never))
        >>> means = jnp.array([1.0, 0.5])
        >>> environment = linear.environment(linear.Instance(jnp.eye(2), means, jnp.array(1.0)))
        >>> def regret(state, decision, reward):
        ...     return {"regret": means.max() - means[decision.action.arm]}
        >>> def build(task, key):
        ...     return ucb1(2), environment, record(at=(1, 10, 100, 1000), total=regret)
        >>> settings = {"key": jax.random.key(0), "progress": False}
        >>> bands = sweep(build, seeds=1000, horizon=1000, **settings).summary()
        >>> print(bands["finished"], bands["curve.pulls"][0], bands["curve.regret_mean"][0].round())
        [1000] [   1   10  100 1000] [ 0.  2.  7. 17.]
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
    """The curves of a run that has not begun.

    Raises:
        ValueError: a function of the record does not return a dict of arrays, or uses a name that is taken.
    """
    if what is None:
        return Curves({}, {})

    def first() -> tuple[dict[str, Array], dict[str, Array]]:
        key = jax.random.key(0, impl="threefry2x32")
        state = algorithm.init(key)
        decision = algorithm.decide(key, state)
        observation = environment.respond(decision.action, environment.noise(key))
        return _values(what, state, decision), _summands(what, state, decision, observation)

    values, sums = jax.eval_shape(first)
    for name in sums:
        if name in values:
            raise ValueError(f"total must use other names than value, got {name!r} in both")
    entries = {name: jnp.zeros((*what.at.shape, *x.shape), x.dtype) for name, x in (values | sums).items()}
    return Curves(entries, {name: _no_sum(x) for name, x in sums.items()})


def seen(
    what: Record, curves: Curves, state: PyTree, rounds: Array, decision: Decision, *, counts: Array | None
) -> Seen:
    """What the marks see of a decision, if it counts."""
    place = state.pulls if what.by == "pulls" else rounds
    values = _values(what, state, decision) | {name: _total(x) for name, x in curves.sums.items()}
    return Seen(place, counts, {name: values[name].astype(old.dtype) for name, old in curves.entries.items()})


def marked(what: Record, curves: Curves, chunk: Seen, end: Seen) -> Curves:
    """The curves after a chunk: each mark has the values of the last decision that is not behind it.

    Written once a chunk, and not in every round, because a thousand marks cost more than the rounds.

    Args:
        what: the record.
        curves: before the chunk, with its sums after it.
        chunk: of the decisions of the chunk, leaves (rounds, ...), whose places never fall.
        end: of the decision after them.
    """
    dtype = np.promote_types(what.at.dtype, end.place.dtype)
    marks, places = what.at.astype(dtype), chunk.place.astype(dtype)
    chosen = jnp.searchsorted(places, marks, side="right").astype(jnp.int32) - 1
    if chunk.counts is not None:
        counted = jnp.where(chunk.counts, jnp.arange(len(places), dtype=jnp.int32), -1)
        chosen = jnp.where(chosen < 0, -1, lax.cummax(counted)[chosen])
    sees = marks >= end.place.astype(dtype)
    if end.counts is not None:
        sees &= end.counts

    def entry(name: str, old: Array) -> Array:
        within, after = (x.reshape(-1, *[1] * (old.ndim - 1)) for x in (chosen >= 0, sees))
        return jnp.where(after, end.values[name], jnp.where(within, chunk.values[name][chosen], old))

    return curves._replace(entries={name: entry(name, old) for name, old in curves.entries.items()})


def summed(
    what: Record, curves: Curves, state: PyTree, decision: Decision, observation: PyTree, *, where: Array
) -> Curves:
    """The curves after a round, of which `total` is added to the sums; unchanged unless `where` holds."""
    new = _summands(what, state, decision, observation)
    sums = {name: _added(old, new[name].astype(_total(old).dtype)) for name, old in curves.sums.items()}
    return curves._replace(sums=jax.tree.map(lambda new, old: jnp.where(where, new, old), sums, curves.sums))


def _no_sum(like: Any) -> Array | Sum:
    """Returns an empty sum of what has this shape and dtype."""
    is_short = jnp.issubdtype(like.dtype, jnp.inexact) and jnp.finfo(like.dtype).bits <= 32
    return compensated.zeros(like.shape, like.dtype) if is_short else jnp.zeros(like.shape, like.dtype)


def _total(s: Array | Sum) -> Array:
    """Returns a sum as a plain array."""
    return s.total if isinstance(s, Sum) else s


def _added(s: Array | Sum, x: Array) -> Array | Sum:
    """Adds one term."""
    if not isinstance(s, Sum):
        return s + x
    # The error of an infinite sum is not a number, and must not spoil it.
    plain, after = s.total + x, compensated.add(s, x)
    return jax.tree.map(lambda new, other: jnp.where(jnp.isfinite(plain), new, other), after, Sum(plain, s.lost))


def curves_of(what: Record | None, curves: Curves) -> dict[str, Array]:
    """What a run hands on: its marks, and its curves (G, ...) by their names."""
    return {} if what is None else {what.by: what.at} | curves.entries


def curve_columns(curves: Mapping[str, Array]) -> dict[str, Array]:
    """The curves of a run as columns of a sweep."""
    return {f"{PREFIX}.{name}": values for name, values in curves.items()}


def is_marks(column: str) -> bool:
    """Whether a column of a sweep holds the marks of its curves."""
    return column in {f"{PREFIX}.{by}" for by in get_args(By)}


def is_curve(column: str | None) -> bool:
    """Whether a column of a sweep holds curves, or their marks."""
    return column is not None and column.startswith(f"{PREFIX}.")


def require_arrays(name: str, returned: Any) -> None:
    """Raises `ValueError` unless what a function of the caller's returned is a dict of numbers and arrays of numbers.

    Anything else would fail once the runs have ended, in an error that does not name it.
    """
    if not isinstance(returned, Mapping):
        raise ValueError(f"{name} must return a dict of arrays, got {checks.show(returned)}")
    for key, value in returned.items():
        if not isinstance(key, str):
            raise ValueError(f"{name} must return arrays by names, which are strings, got the name {checks.show(key)}")
        if not is_numeric(value):
            raise ValueError(f"{name} must return a dict of arrays, got {checks.show(value)} as {key!r}")


def is_numeric(value: Any) -> bool:
    """Whether this is a number or an array of numbers, booleans included; PRNG keys and text are none."""
    if isinstance(value, (jax.Array, np.ndarray, np.generic)):
        return any(jnp.issubdtype(value.dtype, kind) for kind in (np.bool_, np.number))
    return isinstance(value, (bool, int, float, complex))


def _values(what: Record, state: PyTree, decision: Decision) -> dict[str, Array]:
    """What `value` makes of a decision."""
    return {} if what.value is None else _checked("value", what.value(state, decision))


def _summands(what: Record, state: PyTree, decision: Decision, observation: PyTree) -> dict[str, Array]:
    """What `total` makes of a round."""
    if what.total is None:
        return {}
    totals = _checked("total", what.total(state, decision, observation))
    return {name: x.astype(int) if x.dtype == bool else x for name, x in totals.items()}


def _checked(name: str, returned: Any) -> dict[str, Array]:
    """What a function of a record returned, as arrays."""
    require_arrays(name, returned)
    for key in returned:
        if key in get_args(By):
            raise ValueError(f"{name} must return arrays by names other than pulls and rounds, got {key!r}")
    return {key: jnp.asarray(array) for key, array in returned.items()}


def _increases(marks: Any) -> Any:
    """Whether each mark lies behind the one before it: bool ()."""
    return (marks[1:] > marks[:-1]).all()
