"""Checks that an algorithm and an environment are compatible, and compares states bit by bit."""

import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxbandits import checks
from jaxbandits.base import NO_RESPONSE, Algorithm, Array, Environment, PyTree, response_missing

LIBRARY = Path(__file__).resolve().parents[2]
LINE = "environment(instance, algorithm)"
FOR_THESE_ACTIONS = f"Make the environment for these actions: write {LINE}"
ROUNDINGS = 64  # rounding errors by which two arrays of a problem may differ if they were computed in different ways


def require_pair(algorithm: Algorithm) -> None:
    """Raises `ValueError` unless `plan` and `stale` come together or not at all."""
    for present, absent in (("plan", "stale"), ("stale", "plan")):
        if getattr(algorithm, present) is not None and getattr(algorithm, absent) is None:
            raise ValueError(f"algorithm must have both plan and stale, or neither, got {present} without {absent}")


def require_fit(algorithm: Algorithm, environment: Environment) -> None:
    """Raises `ValueError` unless the two are compatible.

    Their problems must agree. The environment must take the algorithm's actions, and keep the structure, shapes and
    types of its memory. The algorithm must take the environment's observations, and keep its state likewise. Nothing is
    computed except comparisons of known arrays.
    """
    require_pair(algorithm)
    require_response(environment)
    require_one_problem(algorithm, environment)
    key = jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32"))
    state = jax.eval_shape(algorithm.init, key)
    noise = jax.eval_shape(environment.noise, key)
    if not hasattr(state, "pulls"):
        raise ValueError(f"algorithm must have states with a field pulls, got {type(state).__name__}")
    given = f"the algorithm's idle action is {types_of(algorithm.idle)}"
    memory = jax.eval_shape(environment.init, key)
    try:
        answer = jax.eval_shape(environment.respond, memory, algorithm.idle, noise)
    except Exception as error:
        _own_up_to_rank_promotion(error, environment.respond, memory, algorithm.idle, noise)
        raise ValueError(
            f"environment does not answer this algorithm: {given}, and respond(memory, idle, noise) raised "
            f"{type(error).__name__}: {first_line(error)}{_unless_said(error)}"
        ) from error
    if type(answer) is not tuple or len(answer) != 2:
        raise ValueError(
            f"environment must answer by (observation, memory), got {types_of(answer)} from respond(memory, idle, "
            "noise). If it remembers nothing, make it by jaxbandits.memoryless(noise, respond)"
        )
    observation, remembered = answer
    if types_of(remembered) != types_of(memory):
        raise ValueError(
            "environment must keep its memory as init(key) makes it, got "
            f"{types_of(remembered)} from respond(memory, idle, noise), where init makes {types_of(memory)}"
        )
    try:
        after = jax.eval_shape(algorithm.observe, state, algorithm.idle, observation)
    except Exception as error:
        _own_up_to_rank_promotion(error, algorithm.observe, state, algorithm.idle, observation)
        _require_observation(error, algorithm.idle, observation)
        raise ValueError(
            f"algorithm does not take this environment's observations: {given}, the environment answers it by "
            f"{types_of(observation)}, and observe(state, idle, observation) raised {type(error).__name__}: "
            f"{first_line(error)}. {_advice(observation)}"
        ) from error
    if types_of(after) != types_of(state):
        raise ValueError(
            f"algorithm does not keep its state with this environment: {given}, the environment answers it by "
            f"{types_of(observation)}, and observe(state, idle, observation) makes {types_of(after)} of "
            f"{types_of(state)}"
        )


def require_response(environment: Environment) -> None:
    """Raises `ValueError` unless an environment has three functions, of which `respond` takes a memory."""
    if environment.respond is response_missing:
        raise ValueError(NO_RESPONSE)
    try:
        parameters = inspect.signature(environment.respond).parameters.values()
    except (TypeError, ValueError):  # a function without a signature
        return
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = [p for p in positional if p.default is p.empty]
    has_rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(required) > 3 or (len(positional) < 3 and not has_rest):
        names = ", ".join(p.name for p in positional)
        raise ValueError(
            f"environment must have respond(memory, action, noise) -> (observation, memory), got respond({names}). If "
            "it remembers nothing, make it by jaxbandits.memoryless(noise, respond)"
        )


def _advice(observation: PyTree) -> str:
    """Returns the advice for an observation that an algorithm does not take."""
    inner = jax.tree.leaves(observation, is_leaf=lambda x: x is None or isinstance(x, list))
    if any(isinstance(x, list) for x in inner):
        return "Answer with an array instead of a list: jnp.asarray(reward)"
    if any(x is None for x in inner):
        return "Answer with an array instead of None"
    if any(jnp.issubdtype(jnp.result_type(x), jnp.bool_) for x in inner):
        return "Answer with a number instead of a boolean: reward.astype(float)"
    return FOR_THESE_ACTIONS


def _unless_said(error: Exception) -> str:
    """Returns the advice to make the environment for the algorithm, unless the error gives it already."""
    return "" if LINE in first_line(error) else f". {FOR_THESE_ACTIONS}"


def _require_observation(error: Exception, action: PyTree, observation: PyTree) -> None:
    """Raises `ValueError` if the observation of an action must be a struct, and is none.

    Such a struct is the class `Rewards` beside the class of the action.
    """
    expected = getattr(sys.modules.get(type(action).__module__), "Rewards", None)
    if isinstance(expected, type) and not isinstance(observation, expected):
        line = f"{checks.called(expected)}({', '.join(getattr(expected, '_fields', ()))})"
        raise ValueError(
            f"respond must return {line}, got {types_of(observation)} for the algorithm's idle action "
            f"{types_of(action)}. Write {line}"
        ) from error


def _own_up_to_rank_promotion(error: Exception, function: Callable[..., PyTree], *arguments: PyTree) -> None:
    """Raises `ValueError` if this library, not the arguments, promotes ranks where that is forbidden.

    Other errors pass: an error of the user's own code, and one that also occurs without the setting.
    """
    if getattr(jax.config, "jax_numpy_rank_promotion", None) != "raise" or "rank_promotion" not in str(error):
        return
    others = [Path(module.__file__ or "").resolve().parent for module in (jax, np)]
    frames = [(Path(frame.filename).resolve(), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    outside_jax = [(file, line) for file, line in frames if not any(file.is_relative_to(folder) for folder in others)]
    if not outside_jax or not outside_jax[-1][0].is_relative_to(LIBRARY):
        return
    file, line = outside_jax[-1]
    try:
        with jax.numpy_rank_promotion("allow"):
            jax.eval_shape(function, *arguments)
    except Exception:
        return
    raise ValueError(
        "jax_numpy_rank_promotion must be 'allow' or 'warn' here, got 'raise'. jaxbandits promotes ranks in "
        f"{file.name}, line {line}, which is its own fault, not the algorithm's or the environment's. "
        "Run them within jax.numpy_rank_promotion('allow')"
    ) from error


def require_one_problem(algorithm: Algorithm, environment: Environment) -> None:
    """Raises `ValueError` if the algorithm was made for one problem and the environment answers for another."""
    if algorithm.problem is None or environment.problem is None:
        return
    ours, theirs = algorithm.problem(), environment.problem()
    for name in ours:
        if name in theirs and (differ := _difference(ours[name], theirs[name])):
            raise ValueError(
                f"algorithm and environment must have the same {name}, got {differ}. Make both from one instance, "
                "and write environment(instance, algorithm). To let them differ, use environment._replace(problem=None)"
            )


def require_same_problem(name: str, environment: Environment, other: Environment) -> None:
    """Raises `ValueError` if an environment, an argument `name`, answers for another problem than `other`."""
    if environment.problem is None or other.problem is None:
        return
    ours, theirs = environment.problem(), other.problem()
    for part in ours:
        if part in theirs and (differ := _difference(ours[part], theirs[part], "this one", "the first")):
            raise ValueError(f"{name} must have the same {part} as the first environment, got {differ}")


def action_check(algorithm: Algorithm, environment: Environment) -> Callable[[PyTree], Array] | None:
    """Returns the function that checks in every round whether an action exists; None if no check is needed or possible.

    The actions of an algorithm that was made for the environment's problem exist, which `testing.check` tests. Checking
    them in every round would cost the cheapest rules a twentieth of their speed.
    """
    ours, theirs = algorithm.problem, environment.problem
    # A leap says nothing of which actions exist.
    is_trusted = ours is not None and theirs is not None and (ours().keys() & theirs().keys()) - {"leap"}
    return None if is_trusted else environment.accepts


def _difference(ours: PyTree, theirs: PyTree, one: str = "the algorithm", other: str = "the environment") -> str | None:
    """Returns the first known difference between two parts of a problem, in words; None if there is none.

    Structs of two types count as equal: they are two forms of a problem, which only its sizes can tell apart.
    """
    if jax.tree.structure(ours) != jax.tree.structure(theirs):
        if type(ours) is not type(theirs):
            return None
        return f"{checks.show(ours)} in {one} and {checks.show(theirs)} in {other}"
    for (path, x), y in zip(jax.tree.leaves_with_path(ours), jax.tree.leaves(theirs), strict=True):
        field = jax.tree_util.keystr(path, simple=True, separator=".")
        of_field = f" of {field}" if field else ""
        if np.shape(x) != np.shape(y):
            return f"shape {np.shape(x)}{of_field} in {one} and {np.shape(y)} in {other}"
        if checks.is_concrete(x, y) and not _agree(np.asarray(x), np.asarray(y)):
            if np.size(x) == 1:
                return f"{checks.show(x)}{of_field} in {one} and {checks.show(y)} in {other}"
            return f"arrays of shape {np.shape(x)}{of_field} with other values in {one} than in {other}"
    return None


def _agree(x: np.ndarray, y: np.ndarray) -> bool:
    """True if two arrays of one shape are equal except for rounding."""
    if not (x.dtype.kind == "f" and y.dtype.kind == "f"):
        return np.array_equal(x, y)
    tolerance = ROUNDINGS * max(float(jnp.finfo(x.dtype).eps), float(jnp.finfo(y.dtype).eps))
    scale = np.max(np.abs(x), initial=0, where=np.isfinite(x))
    return np.allclose(x, y, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def same_bits(a: Array, b: Array) -> Array:
    """Returns True if two arrays of one shape and dtype are the same bit for bit: bool ()."""
    if jnp.issubdtype(a.dtype, jnp.complexfloating):
        return same_bits(a.real, b.real) & same_bits(a.imag, b.imag)
    if jnp.issubdtype(a.dtype, jnp.floating):
        unsigned = jnp.dtype(f"uint{8 * a.dtype.itemsize}")
        a, b = (lax.bitcast_convert_type(x, unsigned) for x in (a, b))
    return jnp.all(a == b)


def types_of(tree: PyTree) -> str:
    """Returns the text of a pytree, with types and shapes instead of arrays."""
    shown = jax.tree.map(lambda leaf: _Shown(f"{jnp.result_type(leaf)}{list(jnp.shape(leaf))}"), tree)
    return str(shown)


class _Shown(str):
    """A string that is shown without quotes."""

    __repr__ = str.__str__


def first_line(error: Exception) -> str:
    """Returns the message of an error without the details that JAX appends."""
    return str(error).partition("\n")[0]
