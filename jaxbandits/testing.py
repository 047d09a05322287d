"""Tests of an algorithm against the contract.

`check` drives an algorithm through some rounds and tests every promise of `jaxbandits.base`. All algorithms of this
library pass. An algorithm of your own that passes runs in sweeps, under `jit` and `vmap`, as they do.

`replay` feeds the observations of a tape (from `jaxbandits.trace`, or from a paper's own code) to an algorithm.
`first_difference` returns the round and the field in which two tapes first differ. `round_keys` gives another program
the same random numbers.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Environment, Key, PyTree
from jaxbandits.engine.run.compatibility import require_fit, require_pair, same_bits
from jaxbandits.engine.run.loop import run
from jaxbandits.engine.run.round import decision_of, noise_of, planned, play, streams
from jaxbandits.engine.run.tapes import Difference, Tape, first_difference, replay, round_keys
from jaxbandits.numerics.indexing import select

__all__ = ["Difference", "Tape", "check", "first_difference", "replay", "round_keys"]

LANES = 3  # lanes of the batch that is compared with single runs
NEVER = np.iinfo(np.int32).max  # round number of a violation that has not happened
ROUNDING = {"float64": 1e-8, "float32": 1e-2}  # tolerance of a cache against its rebuild, relative to its largest entry


class Violations(NamedTuple):
    """First round in which each promise was broken, `NEVER` where it held; int32, one entry per leaf or ()."""

    started: Array  # (leaves of the state,)  `init` made a NaN or an infinity
    planned: Array  # (leaves,)               `plan` made a NaN or an infinity
    observed: Array  # (leaves,)              `observe` made a NaN or an infinity
    renewed: Array  # (leaves,)               `refresh` made a NaN or an infinity
    idle: Array  # (leaves,)                  an idle action changed it
    refreshed: Array  # (leaves,)             a refresh changed it by more than rounding
    unmasked: Array  # (leaves,)                planning changed it though no plan was due, against `masked_plan`
    remembered: Array  # ()                   the environment's memory changed with an idle action
    response: Array  # ()                     the environment answered with a NaN or an infinity
    action: Array  # ()                       the action does not exist in the environment
    answer: Array  # ()                       the answer holds a NaN or an infinity
    answer_exists: Array  # ()                the answer does not exist in the environment
    stop_by_key: Array  # ()                  two keys gave two stops
    stop_unplanned: Array  # ()               it stops although a plan is due
    stale_again: Array  # ()                  a plan is due just after planning
    planned_pulls: Array  # ()                planning changed the number of pulls
    pulls_fell: Array  # ()                   a round lowered the number of pulls


class Walked(NamedTuple):
    """A run with the violations that it showed."""

    violations: Violations
    pulls: Array  # pulls spent
    stops: Array  # bool ()   the last state stops
    shown: tuple[PyTree, PyTree]  # action and answer of the first round in which one of them was at fault
    end: PyTree  # last state, with keys as their data


def check(algorithm: Algorithm, environment: Environment, *, key: Key, rounds: int = 200, stops: bool = True) -> None:
    """Tests whether an algorithm keeps the promises of the contract.

    - The first field of a state is `pulls`, an integer (); `stop` is a boolean ().
    - Every part keeps the structure, shapes and types of a state, also whether a type is weak, so that each part is
      compiled once. An action has the structure, shapes and types of `idle`, and the environment takes both.
    - Observing `idle` changes no bit and spends no pull. Answering it changes no bit of the environment's memory.
    - `stop` is a function of the state: it does not depend on the key. A state that stops is not stale.
    - `refresh` changes the state by no more than rounding. Planning spends no pull, and a state just planned is not
      stale. With `masked_plan`, planning changes no bit of a state that is not stale.
    - Pulls are counted: they never fall, and some are spent.
    - The state stays finite. Equal keys give equal runs.
    - Actions and answers exist, if the environment can tell (every one of this library can). An answer holds no NaN.
    - A batch under `jax.vmap`, whose lanes wait for each other's plans, gives the runs of a loop. This is tested in
      64 bit. In 32 bit the last bits of a sum, and sometimes a stopping time with them, depend on a batch's width.

    Args:
        algorithm: the algorithm to be tested.
        environment: the environment that answers it.
        key: key of the runs.
        rounds: number of rounds, or fewer if the run stops earlier. Choose enough for the run to stop and to plan. If
            the run does not stop within them, `check` warns.
        stops: False for a rule that never stops by itself, such as one for regret: there is no warning.

    Raises:
        AssertionError: a promise is broken. One sentence names the part and, if possible, the round and the field.
        ValueError: `rounds` is not a positive integer, `key` is no key of threefry2x32, or `stops` is no bool.

    Cost: three programs are compiled, one in 32 bit; every round reads the whole state.

    Example:
        >>> from jaxbandits import linear, testing
        >>> instance = linear.canonical(0.5)
        >>> algorithm, environment = linear.lingape(instance.arms, delta=0.1), linear.environment(instance)
        >>> testing.check(algorithm, environment, key=jax.random.key(0), rounds=5000)
        >>> broken = algorithm._replace(observe=lambda state, action, reward: state._replace(pulls=state.pulls + 1))
        >>> testing.check(broken, environment, key=jax.random.key(0))
        Traceback (most recent call last):
        AssertionError: observe(state, idle, ..) changed pulls in round 0: an idle action must change nothing
    """
    checks.instance("algorithm", algorithm, Algorithm)
    checks.instance("environment", environment, Environment)
    checks.key("key", key)
    checks.whole("rounds", rounds, least=1)
    checks.flag("stops", stops)
    _check_shapes(algorithm, environment, key)
    state = jax.eval_shape(algorithm.init, key)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in jax.tree.leaves_with_path(state)]
    walk = _walk(algorithm, environment, key, rounds)
    walked, again = jax.device_get((walk(), walk()))
    _check_violations(walked, names, environment)
    same = all(map(_is_equal, jax.tree.leaves(walked), jax.tree.leaves(again)))
    _assert(same, "two runs with the same key ended differently: every part must be a pure function of its arguments")
    if all(x.dtype.itemsize == 8 for x in jax.tree.leaves(state) if jnp.issubdtype(x.dtype, jnp.floating)):
        _check_batch(algorithm, environment, key, rounds)
    if stops and not walked.stops:
        sentence = f"the run did not stop within {rounds} rounds, so its stop was not checked"
        checks.warn(f"{sentence}. Give more rounds, or stops=False for a rule that never stops by itself", stacklevel=2)


def _check_shapes(algorithm: Algorithm, environment: Environment, key: Key) -> None:
    """Checks structures, shapes and types, without computing anything."""
    try:
        require_pair(algorithm)
        require_fit(algorithm, environment)
    except ValueError as error:
        raise AssertionError(str(error)) from error
    state = jax.eval_shape(algorithm.init, key)
    first = getattr(type(state), "_fields", ("",))[0]
    _assert(first == "pulls", f"init(key) must make a NamedTuple whose first field is pulls, got {first or state!r}")
    is_count = state.pulls.shape == () and jnp.issubdtype(state.pulls.dtype, jnp.integer)
    _assert(is_count, f"init(key) must make pulls an integer of shape (), got {_shown(state.pulls)}")

    decision = jax.eval_shape(algorithm.decide, key, state)
    _assert(isinstance(decision, Decision), f"decide(key, state) must return a Decision, got {decision!r}")
    is_bool = decision.stop.shape == () and decision.stop.dtype == bool
    _assert(is_bool, f"decide(key, state) must give a stop of type bool and shape (), got {_shown(decision.stop)}")
    _assert(jax.tree.leaves(decision.answer), f"decide(key, state) must give an answer, got {decision.answer!r}")
    idle = jax.eval_shape(lambda: jax.tree.map(jnp.asarray, algorithm.idle))
    _assert_same_kind("decide(key, state) gives actions", decision.action, idle, "idle is", weak=False)

    if environment.accepts is not None:
        is_accepted = environment.accepts(algorithm.idle)
        _assert(is_accepted, f"idle must be an action that the environment accepts, got {_named(algorithm.idle)}")

    noise = jax.eval_shape(environment.noise, key)
    memory = jax.eval_shape(environment.init, key)
    observation, remembered = jax.eval_shape(environment.respond, memory, decision.action, noise)
    _assert_same_kind("respond(memory, action, noise) makes memories", remembered, memory, "init(key) makes")
    parts: dict[str, Any] = {"observe(state, action, observation)": (algorithm.observe, decision.action, observation)}
    for name, (part, *arguments) in parts.items():
        _assert_same_kind(f"{name} makes states", jax.eval_shape(part, state, *arguments), state, "init(key) makes")
    if algorithm.refresh is not None:
        refreshed = jax.eval_shape(algorithm.refresh, state)
        _assert_same_kind("refresh(state) makes states", refreshed, state, "init(key) makes")
    if algorithm.plan is not None and algorithm.stale is not None:
        planned, due = jax.eval_shape(algorithm.plan, key, state), jax.eval_shape(algorithm.stale, state)
        _assert_same_kind("plan(key, state) makes states", planned, state, "init(key) makes")
        is_bool = due.shape == () and due.dtype == bool
        _assert(is_bool, f"stale(state) must be of type bool and shape (), got {_shown(due)}")


def _walk(algorithm: Algorithm, environment: Environment, key: Key, rounds: int) -> Callable[[], Walked]:
    """Returns a compiled run that tests every promise in every round."""
    keys = streams(key)
    judges = environment.admits is not None and _can_judge(algorithm, environment, key)

    def one_round(r: Array, carry: tuple[PyTree, PyTree, Violations, tuple[PyTree, PyTree]]) -> Any:
        state, memory, violations, shown = carry
        broken_now: dict[str, Array] = {"started": _leaves(lambda x, _: ~_is_finite(x), state, state) & (r == 0)}
        if algorithm.plan is not None and algorithm.stale is not None:
            stale, key = algorithm.stale, jax.random.fold_in(keys.plan, r)
            due, before = stale(state), state
            broken_now["stop_unplanned"] = due & decision_of(algorithm, keys, r, state).stop
            state = planned(algorithm, key, state)
            broken_now["planned_pulls"] = state.pulls != before.pulls
            broken_now["planned"] = _spoilt(state, before)
            broken_now["stale_again"] = due & stale(state)
            if algorithm.masked_plan:
                again = algorithm.plan(key, state)
                broken_now["unmasked"] = ~stale(state) & _leaves(lambda x, y: ~same_bits(x, y), again, state)
        decision = decision_of(algorithm, keys, r, state)
        other_key = jax.random.fold_in(jax.random.fold_in(keys.decide, r), 1)
        broken_now["stop_by_key"] = algorithm.decide(other_key, state).stop != decision.stop
        if environment.accepts is not None:
            broken_now["action"] = ~decision.stop & ~environment.accepts(decision.action)
        broken_now["answer"] = ~_all_finite(decision.answer)
        if judges and environment.admits is not None:
            broken_now["answer_exists"] = ~environment.admits(decision.answer)
        if algorithm.refresh is not None:
            renewed = algorithm.refresh(state)
            broken_now["renewed"] = _spoilt(renewed, state)
            broken_now["refreshed"] = _leaves(lambda x, y: ~_is_close(x, y), renewed, state)
        noise = noise_of(environment, keys, r)
        observation, idled = environment.respond(memory, algorithm.idle, noise)
        still = algorithm.observe(state, algorithm.idle, observation)
        broken_now["idle"] = _leaves(lambda x, y: ~same_bits(x, y), still, state)
        broken_now["remembered"] = jnp.any(_leaves(lambda x, y: ~same_bits(x, y), idled, memory))

        respond = lambda memory, action: environment.respond(memory, action, noise)  # noqa: E731
        played = play(algorithm, state, memory, decision, respond, available=environment.available)
        after = played.state
        broken_now["response"] = ~_all_finite(played.observation)
        broken_now["observed"] = _spoilt(after, state)
        broken_now["pulls_fell"] = after.pulls < state.pulls
        rounds_now = {name: jnp.where(is_broken, r, NEVER) for name, is_broken in broken_now.items()}
        earliest = {name: jnp.minimum(getattr(violations, name), at) for name, at in rounds_now.items()}
        violations = violations._replace(**earliest)
        shown_for = [violations.action, violations.answer, violations.answer_exists]
        is_first = functools.reduce(jnp.minimum, shown_for) == r
        now = _raw_leaves((decision.action, decision.answer))
        shown = select(is_first, now, shown)
        return after, played.memory, violations, shown

    @jax.jit
    def walk() -> Walked:
        state = algorithm.init(keys.init)
        never = jnp.full((), NEVER, jnp.int32)
        of_leaves = jnp.full(len(jax.tree.leaves(state)), NEVER, jnp.int32)
        violations = Violations(*[of_leaves] * 7, *[never] * (len(Violations._fields) - 7))
        first = algorithm.decide(keys.decide, state)
        start = state, environment.init(keys.memory), violations, _raw_leaves((first.action, first.answer))
        # The loop has a fixed length, so that a broken stopping rule cannot make it endless.
        end, _, violations, shown = lax.fori_loop(jnp.int32(0), jnp.int32(rounds), one_round, start)
        stops = algorithm.decide(keys.decide, end).stop
        return Walked(violations, end.pulls - state.pulls, stops, shown, _raw_leaves(end))

    return walk


def _can_judge(algorithm: Algorithm, environment: Environment, key: Key) -> bool:
    """True if the environment can judge answers of this form; an algorithm may give others than the family's."""

    def judged(key: Key) -> Array:
        assert environment.admits is not None
        return environment.admits(algorithm.decide(key, algorithm.init(key)).answer)

    try:
        verdict = jax.eval_shape(judged, key)
    except Exception:
        return False
    return getattr(verdict, "shape", None) == () and verdict.dtype == bool


def _check_violations(walked: Walked, names: list[str], environment: Environment) -> None:
    """Raises `AssertionError` for the promise that was broken first.

    Within a round the cause of a NaN comes before its consequences, in the order of `sentences`.
    """
    violations, pulls, _, (action, answer), _ = walked
    finite = ": a healthy run holds no NaN and no infinity"
    problem = {} if environment.problem is None else environment.problem()
    size = ", ".join(f"{name}={_sized(value)}" for name, value in problem.items())
    of = f": the environment has {size}" if size else ""
    sentences = {
        "started": "init(key) makes {field} not finite" + finite,
        "response": "respond(memory, action, noise) of the environment is not finite in round {round}",
        "planned": "plan(key, state) makes {field} not finite in round {round}" + finite,
        "observed": "observe(state, action, observation) makes {field} not finite in round {round}" + finite,
        "renewed": "refresh(state) makes {field} not finite in round {round}" + finite,
        "action": f"decide(key, state) gives the action {_named(action)} in round {{round}}, which does not exist{of}",
        "answer": "decide(key, state) gives an answer with a NaN or an infinity in round {round}",
        "answer_exists": f"decide(key, state) gives the answer {_named(answer)} in round {{round}}, which does not "
        f"exist{of}",
        "idle": "observe(state, idle, ..) changed {field} in round {round}: an idle action must change nothing",
        "remembered": "respond(memory, idle, ..) of the environment changed its memory in round {round}: an idle "
        "action must change nothing",
        "refreshed": "refresh(state) changed {field} in round {round} by more than rounding: it must rebuild the cache "
        "that observe updates",
        "unmasked": "plan(key, state) changed {field} in round {round}, whose state is not stale: "
        "with masked_plan, plan must leave such a state unchanged",
        "stop_by_key": "decide(key, state) gave two stops for two keys in round {round}: stop must be a function of "
        "the state",
        "stop_unplanned": "stale(state) holds for the state of round {round}, which stops: a state that stops must not "
        "be stale",
        "stale_again": "plan(key, state) left the state of round {round} stale: a state just planned must not be stale",
        "planned_pulls": "plan(key, state) changed pulls in round {round}: planning must spend no pull",
        "pulls_fell": "observe(state, action, observation) lowered pulls in round {round}: it must count all queries",
    }
    at = {name: int(np.min(getattr(violations, name))) for name in sentences}
    first = min(at, key=lambda name: at[name])
    if at[first] < NEVER:
        leaf = int(np.argmin(getattr(violations, first)))
        values = {"{field}": names[leaf], "{round}": str(at[first])}
        sentence = sentences[first]
        for placeholder, value in values.items():
            sentence = sentence.replace(placeholder, value)
        raise AssertionError(sentence)
    _assert(pulls > 0, "observe(state, action, observation) counted no pull in the whole run: it must add the queries")


def _named(value: PyTree) -> str:
    """Returns the text of an action or an answer."""
    return checks.show(jax.tree.map(np.asarray, value))


def _sized(value: Any) -> str:
    """Returns the text of a part of a problem, such as a size."""
    return checks.show(np.asarray(value)) if isinstance(value, jax.Array) else checks.show(value)


def _check_batch(algorithm: Algorithm, environment: Environment, key: Key, rounds: int) -> None:
    """Compares a batch of lanes, which wait for each other's plans, with single runs."""
    keys = jax.random.split(key, LANES)

    def one(key: Key, max_rounds: Array, axis_name: str | None = None) -> PyTree:
        end = run(key, algorithm, environment, max_rounds=max_rounds, chunk=min(rounds, 64), axis_name=axis_name)
        return end._replace(state=None)

    budget = jnp.asarray(rounds, jnp.int32)
    batched = jax.jit(jax.vmap(lambda key, budget: one(key, budget, "lanes"), (0, None), axis_name="lanes"))
    together, alone = jax.device_get(batched(keys, budget)), jax.jit(one)
    for n in range(LANES):
        single = jax.device_get(alone(keys[n], budget))
        pairs = zip(jax.tree.leaves_with_path(single), jax.tree.leaves(together), strict=True)
        for (path, value), others in pairs:
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            _assert(
                _is_equal(value, others[n]),
                f"a run under vmap ended with {name} = {others[n]}, the same run alone with {value}: a run must not "
                "depend on its neighbours, nor on how long it waits for its plan",
            )


def _leaves(compare: Any, new: PyTree, old: PyTree) -> Array:
    """Applies `compare` to every pair of leaves: bool (leaves,)."""
    pairs = zip(jax.tree.leaves(new), jax.tree.leaves(old), strict=True)
    return jnp.asarray([compare(x, y) for x, y in pairs], bool)


def _is_close(x: Array, y: Array) -> Array:
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return same_bits(x, y)
    tolerance = ROUNDING.get(str(x.dtype), 5e-2) * jnp.max(jnp.abs(y), initial=0)
    return jnp.all((jnp.abs(x - y) <= tolerance) | (x == y))


def _spoilt(new: PyTree, old: PyTree) -> Array:
    """Returns True for every leaf that was finite and now holds a NaN or an infinity: bool (leaves,)."""
    return _leaves(lambda x, y: ~_is_finite(x) & _is_finite(y), new, old)


def _all_finite(tree: PyTree) -> Array:
    return jnp.all(jnp.stack([jnp.ones((), bool), *map(_is_finite, map(jnp.asarray, jax.tree.leaves(tree)))]))


def _raw_leaves(tree: PyTree) -> PyTree:
    """Returns the tree with the data of keys instead of the keys."""
    return jax.tree.map(lambda x: _raw(jnp.asarray(x)), tree)


def _raw(x: Array) -> Array:
    return jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x


def _is_equal(x: Array, y: Array) -> bool:
    return np.array_equal(x, y, equal_nan=np.asarray(x).dtype.kind == "f")


def _is_finite(x: Array) -> Array:
    return jnp.all(jnp.isfinite(x)) if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.ones((), bool)


def _assert(holds: Any, sentence: str) -> None:
    if not bool(holds):
        raise AssertionError(sentence)


def _assert_same_kind(what: str, new: PyTree, old: PyTree, of_old: str, *, weak: bool = True) -> None:
    """Raises `AssertionError` unless both have one structure, and their leaves the same shapes and types."""
    if jax.tree.structure(new) != jax.tree.structure(old):
        raise AssertionError(f"{what} of structure {jax.tree.structure(new)}, {of_old} {jax.tree.structure(old)}")
    for (path, x), y in zip(jax.tree.leaves_with_path(new), jax.tree.leaves(old), strict=True):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        where = f" with {name}" if name else ""
        _assert((x.shape, x.dtype) == (y.shape, y.dtype), f"{what}{where} {_shown(x)}, {of_old} {_shown(y)}")
        _assert(
            not weak or x.weak_type == y.weak_type,
            f"{what}{where} {_shown(x)}, {of_old} {_shown(y)}: a weak type, as of a Python number, makes a second "
            "compilation. Give it a dtype",
        )


def _shown(x: Any) -> str:
    weak = " of weak type" if getattr(x, "weak_type", False) else ""
    return f"{x.dtype}{list(x.shape)}{weak}"
