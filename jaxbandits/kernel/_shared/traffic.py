"""Measurements of a run as functions for `jaxbandits.record`: regret, and the traffic of the agents."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array, Decision, PyTree
from jaxbandits.kernel._problem.instances import Instance, check_instance


class Traffic(NamedTuple):
    """Real numbers sent so far. One point of the domain is d numbers."""

    uplink: Array  # int ()    by agents, summed over them
    downlink: Array  # int ()  in broadcasts, each counted once


def no_traffic() -> Traffic:
    """Returns a traffic of 0."""
    return Traffic(jnp.zeros((), int), jnp.zeros((), int))


def messages(state: PyTree, decision: Decision) -> dict[str, Array]:
    """Returns the traffic so far of any run of this family: a `value` of `jaxbandits.record`.

    A synchronisation after a round belongs to that round.

    Args:
        state: of the algorithm; it has a field `traffic`.
        decision: not used.

    Returns:
        `uplink` and `downlink`, int () each, as in `Traffic`.

    Raises:
        ValueError: the state has no field `traffic`.

    Example:
        >>> import jax
        >>> from jaxbandits import kernel, record, run
        >>> instance = kernel.branin(jax.random.key(0), size=100)
        >>> settings = {"kernel": kernel.paper_kernel("branin"), "beta": 0.5, "noise_variance": 0.04}
        >>> algorithm = kernel.duets(instance.candidates, n_agents=4, horizon=20, **settings)
        >>> curves = record(at=(10, 20), by="rounds", value=kernel.messages, total=kernel.round_regret(instance))
        >>> environment = kernel.environment(instance, algorithm)
        >>> outcome = run(jax.random.key(0), algorithm, environment, max_rounds=21, record=curves)
        >>> print(outcome.pulls, sorted(outcome.curves), outcome.curves["regret"].shape)
        80 ['downlink', 'regret', 'rounds', 'uplink'] (2,)
    """
    del decision
    if not hasattr(state, "traffic"):
        raise ValueError(f"state must be a state of an algorithm of this family, got {checks.show(state)}")
    return state.traffic._asdict()


def round_regret(instance: Instance) -> Callable[[PyTree, Decision, Array], dict[str, Array]]:
    """Builds the regret of one round, summed over the agents: a `total` of `jaxbandits.record`.

    Args:
        instance: the truth.

    Returns:
        (state, decision, rewards) -> dict with `regret`, float (), by how much the values of the candidates that are
        queried lie below the largest. See the example of `messages`.

    Raises:
        ValueError: `instance` is no Instance or holds a NaN.
    """
    check_instance(instance)

    def regret(state: PyTree, decision: Decision, rewards: Array) -> dict[str, Array]:
        del state, rewards
        return {"regret": jnp.sum(instance.best - instance.values.at[decision.action].get(mode="clip"))}

    return regret


def every_tenth(horizon: int) -> tuple[int, ...]:
    """Marks for a curve over rounds: ten, evenly spaced, of which the last is the horizon (fewer if it is below 10).

    Raises `ValueError` unless `horizon` () is an integer of at least 1.
    """
    horizon = checks.whole("horizon", horizon, least=1)
    return tuple(sorted({max(1, horizon * i // 10) for i in range(1, 11)}))
