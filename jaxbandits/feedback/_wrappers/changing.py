"""Piecewise stationary rewards."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Environment, Key, PyTree
from jaxbandits.engine.run.compatibility import require_same_problem, types_of
from jaxbandits.feedback._wrappers.counted import pulls_of


class Clock(NamedTuple):
    """Memory of an environment that changes with the pulls."""

    pulls: Array  # int ()   pulls made so far
    inner: PyTree  # memory of the environment that answers


def changing(environments: Sequence[Environment], *, at: Any) -> Environment:
    """Answers by one environment after another, which change after given numbers of pulls.

    A round belongs to the environment in force when it begins, so a leap across a change is answered by one of them.
    The environments share one memory: with `stream=`, the n-th pull of an arm is the n-th over all of them.

    Args:
        environments: S environments of one problem, such as S instances with the same arms have. They answer the same
            actions, and have memories of the same form.
        at: int (S - 1,), pulls at which the next environment begins, increasing, at least 1. May be traced.

    Returns:
        Environment. Its noise is a tuple of the noises of all environments; equal ones are drawn once. Cost per round:
        the answers of all environments.

    Raises:
        ValueError: an argument is of the wrong kind or length; `at` does not increase; an environment does not say how
            many pulls an action makes; or the problems or the memories differ.

    Example:
        Two arms that change places after 300 pulls, which are pulled in turn.

        >>> import jax
        >>> import jaxbandits
        >>> from jaxbandits import feedback, mab
        >>> before, after = mab.gaussian((1.0, 0.0)), mab.gaussian((0.0, 1.0))
        >>> environment = feedback.changing([mab.environment(before), mab.environment(after)], at=[300])
        >>> algorithm = mab.uniform(before.problem, delta=1e-99)
        >>> tape = jaxbandits.trace(jax.random.key(0), algorithm, environment, rounds=600)
        >>> is_first, rewards = tape.actions.arms[:, 0] == 0, tape.observations.sums[:, 0]
        >>> print(rewards[:300][is_first[:300]].mean() > 0.7, rewards[300:][is_first[300:]].mean() < 0.3)
        True True
    """
    environments = list(environments) if isinstance(environments, Sequence) else [environments]
    checks.require(len(environments) >= 2, "environments", "hold at least two", len(environments))
    counts = [pulls_of(f"environments[{i}]", each) for i, each in enumerate(environments)]
    moments = checks.array("at", at, (len(environments) - 1,), kind="int", least=1)
    increases = checks.known(moments[1:]) > checks.known(moments[:-1])
    checks.require(increases, "at", "increase", at)
    first = environments[0]
    key = jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32"))
    for i, each in enumerate(environments[1:], 1):
        require_same_problem(f"environments[{i}]", each, first)
        ours, theirs = (types_of(jax.eval_shape(one.init, key)) for one in (each, first))
        checks.require(ours == theirs, f"environments[{i}]", f"have a memory like the first one, {theirs}", ours)

    def init(key: Key) -> Clock:
        return Clock(jnp.zeros((), int), first.init(key))

    def noise(key: Key) -> tuple[PyTree, ...]:
        return tuple(each.noise(key) for each in environments)

    def respond(memory: Clock, action: PyTree, noise: tuple[PyTree, ...]) -> tuple[PyTree, Clock]:
        answers = [each.respond(memory.inner, action, z) for each, z in zip(environments, noise, strict=True)]
        observation, inner = answers[0]
        for moment, later in zip(moments, answers[1:], strict=True):
            is_later = memory.pulls >= moment.astype(memory.pulls.dtype)
            observation, inner = jax.tree.map(
                lambda new, old, is_later=is_later: jnp.where(is_later, new, old), later, (observation, inner)
            )
        return observation, Clock(memory.pulls + counts[0](action).astype(memory.pulls.dtype), inner)

    return first._replace(init=init, noise=noise, respond=respond, **inner_functions(first))


def inner_functions(environment: Environment) -> dict[str, Any]:
    """Returns `available` and `columns` of an environment whose memory is a field `inner`."""
    available, columns = environment.available, environment.columns
    return {
        "available": None if available is None else lambda memory, action: available(memory.inner, action),
        "columns": None if columns is None else lambda memory: columns(memory.inner),
    }
