"""CLUCB on plays: the widest intervals among the arms on which the best action and its strongest rival differ."""

import math
from typing import Any

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.cpe._shared.maximum import Playable, best_action
from jaxbandits.cpe._shared.playing import (
    PlayEstimates,
    algorithm_from_play_rule,
    checked_playing,
    checked_threshold,
    is_sure,
)
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.elementary import log


def semi_clucb(
    problem: Playable,
    *,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    threshold: thresholds.Threshold | None = None,
    cover: Any = None,
) -> Algorithm:
    """Plays the action with the largest radii on the arms in which the best action and its strongest rival differ.

    After the cover, each round lowers the means of the best action by their radii, noise_scale sqrt(2 ln(4 K t^3 /
    delta) / counts), and raises all others by theirs. The rival is the best action at these means.

    Args:
        problem: as in `pfws`.
        delta: () in (0, 1), allowed probability of error.
        noise_scale: () > 0, in units of reward; the radii hold for noise that is sub-Gaussian with it.
        threshold: if None, the run stops when no rival leads at these means. Otherwise it stops when the log likelihood
            ratio exceeds the threshold, as in `pfws`. The plays are the same.
        cover: as in `pfws`.

    Returns:
        Algorithm with actions `Play` and answers int32 (K,), 0 or 1. One play is one pull.

    Raises:
        ValueError: an argument is not as above.

    **Guarantee**: P(the answer is the best action) >= 1 - delta with threshold None, and with `proved_threshold`.
    **Cost**: three `maximum` per round. **Limit**: 2^31 - 1 plays.

    Source: Chen, Lin, King, Lyu and Chen (2014), Combinatorial pure exploration of multi-armed bandits, Algorithm 1
    with its radius for Gaussian arms. DEVIATION: theirs pulls only the disputed arm with the largest radius; here an
    action is played.

    Example:
        >>> import jax, jaxbandits
        >>> from jaxbandits import cpe
        >>> instance = cpe.instance(cpe.top_k(4, 2), cpe.gaussian([3.0, 2.0, 0.5, 0.0]))
        >>> algorithm = cpe.semi_clucb(instance.problem, delta=0.1)
        >>> environment = cpe.environment(instance, algorithm)
        >>> outcome = jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=10**4)
        >>> print(outcome.answer)
        [1 1 0 0]
    """
    playing = checked_playing(problem, noise_scale=noise_scale, cover=cover)
    checks.probability("delta", delta)
    test = None if threshold is None else checked_threshold(problem, delta, threshold)
    K, dtype = playing.cover.shape[1], playing.dtype

    def rule(key: Key, estimates: PlayEstimates) -> tuple[Array, Array]:
        del key
        best = estimates.best.action
        log_term = math.log(4 * K) + 3 * log(estimates.plays) - jnp.log(jnp.asarray(delta, dtype))
        radii = playing.noise_scale * jnp.sqrt(2 * log_term / estimates.counts)
        against = jnp.where(best, estimates.means - radii, estimates.means + radii)
        rival = best_action(problem, against)
        disputed = best != rival
        decision = best_action(problem, jnp.where(disputed, radii, 0))
        if test is not None:
            return decision, is_sure(playing, estimates, delta, test)
        # Sum over the disputed arms only: the arms that both actions hold would add nothing but rounding.
        lead = jnp.sum(jnp.where(disputed, jnp.where(rival, against, -against), 0))
        return decision, lead <= 0

    return algorithm_from_play_rule(playing, rule)
