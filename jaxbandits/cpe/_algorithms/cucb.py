"""CUCB: the best action at upper confidence bounds of the arms (Kveton, Wen, Ashkan and Szepesvari, 2015)."""

from typing import Any

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.cpe._shared.maximum import Playable, best_action
from jaxbandits.cpe._shared.playing import PlayEstimates, algorithm_from_play_rule, checked_playing
from jaxbandits.numerics.elementary import log


def cucb(problem: Playable, *, noise_scale: Array | float = 1.0, cover: Any = None) -> Algorithm:
    """Plays the best action at means + noise_scale sqrt(6 ln t / counts), for small regret.

    It never stops: give a horizon to `run` or `sweep`, and record the regret with `jaxbandits.record`.

    Args:
        problem: as in `pfws`.
        noise_scale: () > 0, in units of reward; 1/2 for rewards in [0, 1].
        cover: as in `pfws`; its plays count like all others.

    Returns:
        Algorithm with actions `Play` and answers int32 (K,), the best action at the means. One play is one pull.

    Raises:
        ValueError: an argument is not as above.

    **Guarantee** (rewards in [0, 1], noise_scale 1/2): regret of order K m log(T) / gap, for actions of at most m of
    the K arms and the smallest gap of an action. **Cost**: two `maximum` per round. **Limit**: 2^31 - 1 plays.

    Source: Kveton, Wen, Ashkan and Szepesvari (2015), Tight regret bounds for stochastic combinatorial semi-bandits,
    CombUCB1: sqrt(1.5 ln t / counts) in [0, 1], which is this one with noise_scale 1/2.

    Example:
        >>> import jax, jaxbandits
        >>> from jaxbandits import cpe
        >>> instance = cpe.instance(cpe.top_k(4, 2), cpe.gaussian([3.0, 2.0, 0.5, 0.0]))
        >>> algorithm = cpe.cucb(instance.problem)
        >>> environment = cpe.environment(instance, algorithm)
        >>> outcome = jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=1000, horizon=1000)
        >>> print(outcome.state.counts[:2] > 900)
        [ True  True]
    """
    playing = checked_playing(problem, noise_scale=noise_scale, cover=cover)

    def rule(key: Key, estimates: PlayEstimates) -> tuple[Array, Array]:
        del key
        bonus = playing.noise_scale * jnp.sqrt(6 * log(estimates.plays) / estimates.counts)
        return best_action(problem, estimates.means + bonus), jnp.zeros((), bool)

    return algorithm_from_play_rule(playing, rule)
