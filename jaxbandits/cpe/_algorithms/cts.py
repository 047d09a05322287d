"""CTS: the best action at a draw from the posteriors of the arms (Wang and Chen, 2018)."""

from typing import Any

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.cpe._shared.maximum import Playable, best_action
from jaxbandits.cpe._shared.playing import PlayEstimates, algorithm_from_play_rule, checked_playing
from jaxbandits.numerics.normal import normal


def cts(problem: Playable, *, noise_scale: Array | float = 1.0, cover: Any = None) -> Algorithm:
    """Plays the best action at a posterior draw N(mean, noise_scale^2 / count) of every arm (Thompson sampling).

    It never stops: give a horizon to `run` or `sweep`, and record the regret with `jaxbandits.record`.

    Args:
        problem: as in `pfws`.
        noise_scale: () > 0, in units of reward.
        cover: as in `pfws`; its plays count like all others.

    Returns:
        Algorithm with actions `Play` and answers int32 (K,), the best action at the means. One play is one pull.

    Raises:
        ValueError: an argument is not as above.

    **Guarantee**: the paper proves regret of order log(T) for its posteriors, of independent rewards 0 and 1. For the
    Gaussian posteriors here it proves none. **Cost** per round: two `maximum` and K normal numbers. **Limit**: 2^31 - 1
    plays.

    Source: Wang and Chen (2018), Thompson sampling for combinatorial semi-bandits. DEVIATION: their posteriors are for
    rewards 0 and 1; these are Gaussian, after the cover, as in Perrault, Boursier, Perchet and Valko (2020).

    Example:
        >>> import jax
        >>> import jaxbandits
        >>> from jaxbandits import cpe
        >>> instance = cpe.instance(cpe.top_k(4, 2), cpe.gaussian([3.0, 2.0, 0.5, 0.0]))
        >>> algorithm = cpe.cts(instance.problem)
        >>> environment = cpe.environment(instance, algorithm)
        >>> outcome = jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=1000, horizon=1000)
        >>> print(outcome.state.counts[:2] > 950)
        [ True  True]
    """
    playing = checked_playing(problem, noise_scale=noise_scale, cover=cover)

    def rule(key: Key, estimates: PlayEstimates) -> tuple[Array, Array]:
        z = normal(key, estimates.means.shape, playing.dtype)
        draw = estimates.means + playing.noise_scale * z / jnp.sqrt(estimates.counts)
        return best_action(problem, draw), jnp.zeros((), bool)

    return algorithm_from_play_rule(playing, rule)
