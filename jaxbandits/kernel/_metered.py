"""What an observer who knows the truth measures of a run: regret, and the numbers that the agents send and receive."""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key, PyTree
from jaxbandits.kernel._instances import Instance, check_instance


class Traffic(NamedTuple):
    """Real numbers sent so far. One point of the domain is d numbers."""

    uplink: Array  # int ()    by agents, summed over them
    downlink: Array  # int ()  in broadcasts, each counted once


class Metered(NamedTuple):
    """An algorithm's state, and what has been measured."""

    pulls: Array  # int ()
    inner: PyTree  # the algorithm's state
    round: Array  # int32 ()
    regret: Array  # float ()    of all agents so far
    syncs: Array  # int32 ()     times that something was sent
    curve: Array  # float (G, 3) regret, uplink an agent, downlink, after each round of the grid; 0 before it


def no_traffic() -> Traffic:
    """Nothing sent yet."""
    return Traffic(jnp.zeros((), int), jnp.zeros((), int))


def metered(algorithm: Algorithm, instance: Instance, *, grid: tuple[int, ...]) -> Algorithm:
    """An algorithm of this family that measures itself: it takes the truth, and changes no query.

    Args:
        algorithm: what decides; its state has a field `traffic`.
        instance: the truth.
        grid: rounds after which a row of the curve is written, increasing, each at least 1.

    Returns:
        Algorithm with states `Metered`.

    Raises:
        ValueError: `algorithm` is no Algorithm, `instance` no Instance without a NaN, or `grid` is not as above.

    Example:
        >>> import jax
        >>> from jaxbandits import kernel, run
        >>> instance = kernel.branin(jax.random.key(0), size=100)
        >>> settings = {"kernel": kernel.paper_kernel("branin"), "beta": 0.5, "noise_variance": 0.04}
        >>> algorithm = kernel.duets(instance.candidates, n_agents=4, horizon=20, **settings)
        >>> algorithm = kernel.metered(algorithm, instance, grid=(10, 20))
        >>> outcome = run(jax.random.key(0), algorithm, kernel.environment(instance, n_agents=4), max_rounds=21)
        >>> print(outcome.pulls, outcome.state.round, outcome.state.curve.shape)
        80 20 (2, 3)
    """
    checks.instance("algorithm", algorithm, Algorithm)
    check_instance(instance)
    is_grid = isinstance(grid, (tuple, list)) and len(grid) > 0 and all(type(t) is int and t >= 1 for t in grid)
    checks.require(is_grid and list(grid) == sorted(set(grid)), "grid", "hold increasing integers >= 1", grid)
    rounds, best = jnp.asarray(grid, jnp.int32), instance.best
    dtype, size = instance.values.dtype, instance.values.shape[0]
    n_agents = algorithm.idle.shape[0]

    def with_row(state: Metered) -> Metered:
        traffic = state.inner.traffic
        row = [state.regret, traffic.uplink.astype(dtype) / n_agents, traffic.downlink.astype(dtype)]
        return state._replace(curve=jnp.where((rounds == state.round)[:, None], jnp.stack(row), state.curve))

    def init(key: Key) -> Metered:
        inner = algorithm.init(key)
        start = jnp.zeros((), jnp.int32)
        return Metered(inner.pulls, inner, start, jnp.zeros((), dtype), start, jnp.zeros((len(grid), 3), dtype))

    def decide(key: Key, state: Metered) -> Decision:
        return algorithm.decide(key, state.inner)

    def observe(state: Metered, action: Array, rewards: Array) -> Metered:
        inner = algorithm.observe(state.inner, action, rewards)
        queried = action < size
        regret = jnp.where(queried, best - instance.values.at[action].get(mode="clip"), 0)
        return with_row(
            Metered(
                pulls=inner.pulls,
                inner=inner,
                round=state.round + jnp.any(queried).astype(jnp.int32),
                regret=state.regret + jnp.sum(regret),
                syncs=state.syncs + _has_sent(state.inner, inner),
                curve=state.curve,
            )
        )

    outer = Algorithm(init, decide, observe, algorithm.idle)
    if (refresh := algorithm.refresh) is not None:
        outer = outer._replace(refresh=lambda state: state._replace(inner=refresh(state.inner)))
    if (stale := algorithm.stale) is not None:
        outer = outer._replace(stale=lambda state: stale(state.inner))
    if (plan := algorithm.plan) is not None:

        def outer_plan(key: Key, state: Metered) -> Metered:
            # A synchronisation after a round belongs to that round.
            inner = plan(key, state.inner)
            return with_row(state._replace(inner=inner, syncs=state.syncs + _has_sent(state.inner, inner)))

        outer = outer._replace(plan=outer_plan)
    return outer


def _has_sent(before: PyTree, after: PyTree) -> Array:
    return (after.traffic.downlink != before.traffic.downlink).astype(jnp.int32)


def every_tenth(horizon: int) -> tuple[int, ...]:
    """A grid for `metered`: ten rounds, evenly spaced, of which the last is the horizon (fewer if it is below 10).

    Raises `ValueError` unless `horizon` () is an integer of at least 1.
    """
    horizon = checks.whole("horizon", horizon, least=1)
    return tuple(sorted({max(1, horizon * i // 10) for i in range(1, 11)}))
