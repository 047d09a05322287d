"""A list of actions in turn: the baseline of adaptive sampling."""

from typing import Any

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.cpe._shared.maximum import Playable, check_actions, check_playable
from jaxbandits.cpe._shared.playing import (
    PlayEstimates,
    algorithm_from_play_rule,
    checked_playing,
    checked_threshold,
    is_sure,
)
from jaxbandits.numerics import thresholds


def round_robin(
    problem: Playable,
    rows: Any,
    *,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    threshold: thresholds.Threshold | None = None,
    cover: Any = None,
) -> Algorithm:
    """Plays the actions of a list in turn, after the cover, until the log likelihood ratio is large enough.

    All actions of a class in a fixed random order are uniform sampling. In lexicographic order they are not. Of many
    thousand trees, the first ones all hold the first edges.

    Args:
        problem: as in `pfws`.
        rows: int (n, K), 0 or 1, actions of the problem, not traced. Play number t is rows[t mod n], counted from the
            first play of the cover.
        delta: () in (0, 1), allowed probability of error.
        noise_scale: () > 0, in units of reward.
        threshold: as in `pfws`.
        cover: as in `pfws`.

    Returns:
        Algorithm with actions `Play` and answers int32 (K,), 0 or 1. One play is one pull.

    Raises:
        ValueError: an argument is not as above.

    **Guarantee**: follows from the threshold, as in `pfws`. **Cost** per round: one `maximum` and O(D K) on a matroid
    whose actions have D arms. **Limit**: 2^31 - 1 plays.

    Source: the baseline "uniform" of Tzeng, Wang, Proutiere and Lu (2023); theirs is lexicographic.

    Example:
        >>> import jax, jaxbandits
        >>> from jaxbandits import cpe
        >>> instance = cpe.instance(cpe.top_k(3, 2), cpe.gaussian([3.0, 2.0, 0.0]))
        >>> algorithm = cpe.round_robin(instance.problem, [[1, 1, 0], [1, 0, 1], [0, 1, 1]], delta=0.1)
        >>> environment = cpe.environment(instance, algorithm)
        >>> outcome = jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=10**4)
        >>> print(outcome.answer)
        [1 1 0]
    """
    check_playable(problem)
    test = checked_threshold(problem, delta, threshold)
    actions = check_actions("rows", problem, rows)
    playing = checked_playing(problem, noise_scale=noise_scale, cover=cover)
    listed = checks.constant(actions, jnp.int8)

    def rule(key: Key, estimates: PlayEstimates) -> tuple[Array, Array]:
        del key
        return listed[estimates.state.pulls % listed.shape[0]], is_sure(playing, estimates, delta, test)

    return algorithm_from_play_rule(playing, rule)
