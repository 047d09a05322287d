"""Observations that arrive later than the next decision."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Environment, Key, PyTree
from jaxbandits.feedback._wrappers.counted import pulls_of, require_any_order
from jaxbandits.numerics.indexing import select


class Geometric(NamedTuple):
    """Delays of 0, 1, .. rounds, each round the last one with the same probability, 1 / (1 + mean)."""

    mean: Array | float  # () >= 0, mean delay in rounds, before the limit
    most: int  # largest delay in rounds, at least 0; an observation that would take longer never arrives


class Delayed(NamedTuple):
    """State of an algorithm whose observations are late."""

    pulls: Array  # int ()   pulls made, whether or not they were observed; of `inner`, those observed
    inner: PyTree  # the algorithm's own state


class Late(NamedTuple):
    """Observations that arrive in one round, the oldest first, each with the action that it belongs to."""

    actions: PyTree  # leaves (m, ...)
    observations: PyTree  # leaves (m, ...)
    arrives: Array  # bool (m,)   False where nothing does


class Journey(NamedTuple):
    """Memory of an environment with delays. An action is kept until its observation arrives."""

    rounds: Array  # int32 ()   rounds with a pull so far
    due: Array  # int32 (size,)   round in which each observation arrives; -1 if it never does
    actions: PyTree  # leaves (size, ...)
    observations: PyTree  # leaves (size, ...)
    missing: Array  # int ()   pulls whose observations have not arrived
    inner: PyTree  # memory of the environment


def delayed(algorithm: Algorithm, environment: Environment, *, delay: int | Geometric) -> tuple[Algorithm, Environment]:
    """Returns the algorithm and the environment with observations that arrive later.

    With a delay of d rounds, the observation of round r is known to the decision of round r + d + 1; 0 is no delay.
    Only rounds with a pull count. The algorithm decides from what has arrived. It repeats itself if it depends on
    nothing else, as a rule does that pulls every arm once at first.

    Rules whose `observe` reads what only the deciding state holds are refused (`Algorithm.needs_order`): `mab.ttucb`,
    which counts its leaders, `exp3` and `exp3_ix`, which divide by a probability, the rules of `linear` and `cpe` that
    carry a learner in their actions, all of `kcenter`, and `kernel`'s rules that synchronise agents.

    `mab.successive_elimination` compares arms only while all have equally many observations. With a constant delay that
    never happens, and a run does not stop.

    Args:
        algorithm: the algorithm.
        environment: its environment.
        delay: number of rounds, at least 0, the same for all; or `Geometric`, independent for every round.

    Returns:
        Algorithm with states `Delayed`, and Environment with observations `Late`. The environment's noise is the one
        without delays. Results have a column `missing`, the pulls whose observations had not arrived at the end, or
        never would. Cost: the memory of as many actions and observations as can be on the way; per round one `observe`
        for a fixed delay, and `most` + 1 for a geometric one.

    Raises:
        ValueError: an argument is of the wrong kind or out of range, the algorithm has `needs_order`, or the
            environment does not say how many pulls an action makes.

    Example:
        >>> import jax
        >>> import jaxbandits
        >>> from jaxbandits import feedback, mab
        >>> instance = mab.gaussian((1.0, 0.0))
        >>> algorithm = mab.eb_tci(instance.problem, delta=0.01)
        >>> pair = feedback.delayed(algorithm, mab.environment(instance, algorithm), delay=20)
        >>> end = jaxbandits.run(jax.random.key(0), *pair, max_rounds=10**4)
        >>> print(end.state.pulls - end.state.inner.pulls, end.memory.missing)
        20 20
    """
    require_any_order(algorithm)
    count = pulls_of("environment", environment)
    law = delay if isinstance(delay, Geometric) else None
    if law is None:
        most = checks.whole("delay", delay, least=0)
    else:
        checks.not_negative("delay.mean", law.mean)
        most = checks.whole("delay.most", law.most, least=0)
    size, idle = most + 1, algorithm.idle
    key = jax.random.key(0, impl="threefry2x32")
    # The answer to the idle action, which stands where nothing arrives.
    silence, _ = environment.respond(environment.init(key), idle, environment.noise(key))

    def init(key: Key) -> Delayed:
        return Delayed(jnp.zeros((), int), algorithm.init(key))

    def decide(key: Key, state: Delayed) -> Decision:
        return algorithm.decide(key, state.inner)

    def observe(state: Delayed, action: PyTree, late: Late) -> Delayed:
        def one(i: Array | int, inner: PyTree) -> PyTree:
            arrived, observation = jax.tree.map(lambda x: x[i], (late.actions, late.observations))
            arrived = select(late.arrives[i], arrived, idle)
            return algorithm.observe(inner, arrived, select(late.arrives[i], observation, silence))

        inner = one(0, state.inner) if late.arrives.size == 1 else lax.fori_loop(0, size, one, state.inner)
        return Delayed(state.pulls + count(action).astype(state.pulls.dtype), inner)

    def empty(key: Key) -> Journey:
        actions, observations = jax.tree.map(
            lambda x: jnp.broadcast_to(jnp.asarray(x), (size, *jnp.shape(x))), (idle, silence)
        )
        return Journey(
            rounds=jnp.zeros((), jnp.int32),
            due=jnp.full(size, -1, jnp.int32),
            actions=actions,
            observations=observations,
            missing=jnp.zeros((), int),
            inner=environment.init(key),
        )

    def noise(key: Key) -> PyTree:
        drawn = environment.noise(key)
        return drawn if law is None else (drawn, _geometric(jax.random.fold_in(key, 0), law))

    def respond(memory: Journey, action: PyTree, noise: PyTree) -> tuple[Late, Journey]:
        drawn, wait = (noise, jnp.int32(most)) if law is None else noise
        observation, inner = environment.respond(memory.inner, action, drawn)
        pulls, t = count(action).astype(memory.missing.dtype), memory.rounds
        moves, slot = pulls > 0, t % size

        def put(kept: Array, new: Array) -> Array:
            return kept.at[slot].set(jnp.where(moves, new, kept[slot]))

        due = put(memory.due, jnp.where(wait <= most, t + wait, -1))
        actions, observations = jax.tree.map(put, (memory.actions, memory.observations), (action, observation))
        # The oldest comes first. With one delay for all, no other can be due.
        order = (slot + 1 + jnp.arange(1 if law is None else size, dtype=jnp.int32)) % size
        arrives = moves & (due[order] == t)
        sent, answers = jax.tree.map(lambda x: x[order], (actions, observations))
        late = Late(sent, answers, arrives)
        arrived = jnp.sum(jnp.where(arrives, jax.vmap(count)(late.actions), 0)).astype(pulls.dtype)
        return late, Journey(
            rounds=t + moves.astype(t.dtype),
            due=due,
            actions=actions,
            observations=observations,
            missing=memory.missing + pulls - arrived,
            inner=inner,
        )

    available, columns = environment.available, environment.columns

    def missing(memory: Journey) -> dict[str, Array]:
        return {"missing": memory.missing, **({} if columns is None else columns(memory.inner))}

    late_algorithm = algorithm._replace(
        init=init, decide=decide, observe=observe, receive=None, **inner_steps(algorithm)
    )
    late_environment = environment._replace(
        init=empty,
        noise=noise,
        respond=respond,
        available=None if available is None else lambda memory, action: available(memory.inner, action),
        columns=missing,
    )
    return late_algorithm, late_environment


def inner_steps(algorithm: Algorithm) -> dict[str, Any]:
    """Returns `refresh`, `plan` and `stale` of an algorithm whose state is a field `inner`."""
    refresh, plan, stale = algorithm.refresh, algorithm.plan, algorithm.stale
    return {
        "refresh": None if refresh is None else lambda state: state._replace(inner=refresh(state.inner)),
        "plan": None if plan is None else lambda key, state: state._replace(inner=plan(key, state.inner)),
        "stale": None if stale is None else lambda state: stale(state.inner),
    }


def _geometric(key: Key, law: Geometric) -> Array:
    """Draws a delay, int32 (), at most `most` + 1, by inversion: P(delay >= n) = (mean / (1 + mean))^n."""
    mean = jnp.asarray(law.mean, float)
    u = 1 - jax.random.uniform(key, (), mean.dtype)  # in (0, 1]
    delay = jnp.floor(jnp.log(u) / jnp.log(mean / (1 + mean)))
    return jnp.minimum(delay, law.most + 1).astype(jnp.int32)
