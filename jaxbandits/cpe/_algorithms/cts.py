"""CTS: the best action at a draw from the posteriors of the arms (Wang and Chen, 2018)."""

from typing import Any

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.cpe._shared.maximum import Playable, best_action
from jaxbandits.cpe._shared.playing import Seen, checked, play_by
from jaxbandits.numerics.normal import normal


def cts(problem: Playable, *, noise_scale: Array | float = 1.0, cover: Any = None) -> Algorithm:
    """Combinatorial Thompson sampling: plays the best action at a draw of each arm, N(mean, noise_scale^2 / count).

    It never stops: give a horizon to `run` or `sweep`, and let `jaxbandits.record` keep the regret.

    Args:
        problem: as in `pfws`.
        noise_scale: () > 0, in units of reward.
        cover: as in `pfws`; its plays count as all others do.

    Returns:
        Algorithm with actions `Play` and answers int32 (K,), the best action at the means. One play is one pull.

    Raises:
        ValueError: an argument is not as above.

    **Cost**: two `maximum` and K normal numbers a round. **Limit**: 2^31 - 1 plays.

    Source: Wang and Chen (2018), Thompson sampling for combinatorial semi-bandits. DEVIATION: their posteriors are
    those of rewards 0 and 1; these are Gaussian, after the cover, as in Perrault, Boursier, Perchet and Valko (2020).

    Example:
        >>> import jax
        >>> import jaxbandits
        >>> from jaxbandits import cpe
        >>> instance = cpe.instance(cpe.top_k(4, 2), cpe.gaussian([3.0, 2.0, 0.5, 0.0]))
        >>> algorithm, environment = cpe.cts(instance.problem), cpe.environment(instance, cpe.Play)
        >>> outcome = jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=1000, horizon=1000)
        >>> print(outcome.state.counts[:2] > 950)
        [ True  True]
    """
    playing = checked(problem, noise_scale=noise_scale, cover=cover)

    def rule(key: Key, seen: Seen) -> tuple[Array, Array]:
        z = normal(key, seen.means.shape, playing.dtype)
        draw = seen.means + playing.noise_scale * z / jnp.sqrt(seen.counts)
        return best_action(problem, draw), jnp.zeros((), bool)

    return play_by(playing, rule)
