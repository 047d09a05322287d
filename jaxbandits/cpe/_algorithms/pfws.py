"""P-FWS: Frank-Wolfe steps along smoothed subgradients of the rate at which errors vanish (Tzeng et al., 2023)."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.cpe._problem.problems import arm_count
from jaxbandits.cpe._shared.maximum import Best, Playable, best_action, best_of, check_playable, closest, gaps_of
from jaxbandits.cpe._shared.playing import (
    PlayEstimates,
    algorithm_from_play_rule,
    checked_playing,
    checked_threshold,
    is_sure,
)
from jaxbandits.numerics import thresholds


def pfws(
    problem: Playable,
    *,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    threshold: thresholds.Threshold | None = None,
    cover: Any = None,
    draws: int = 12,
    independent: bool = False,
) -> Algorithm:
    """Finds the best action from plays of actions: climbs F(omega, means) over the shares omega of plays with each arm.

    F is the rate of the action that is hardest to tell from the best one (`most_confusing`). It is not smooth where
    several tie. After the cover, a round averages the gradient of F over a few points near the present shares, and
    plays the action that is largest along it. The plays are the iterate. The cover is played again, M rounds in a row,
    whenever the number of covers that would fit into the plays so far is a square.

    Args:
        problem: as in `maximum`: a connected `Graphic`, `top_k`, `best_arm`, or an `Enumerated` class; rewards are
            sums of the means of arms with Gaussian, or sub-Gaussian, noise.
        delta: () in (0, 1), allowed probability of error.
        noise_scale: () > 0, in units of reward.
        threshold: threshold of the log likelihood ratio, one of `jaxbandits.numerics.thresholds` or
            `proved_threshold(problem)`. If None, `gk16`, a heuristic: no proof bounds its error by delta.
        cover: int (M, K), actions that hold every arm; `small_cover(problem)` by default.
        draws: n >= 1, number of points that the gradient is averaged over: min(n, ceil(t^(1/4))) at play t.
        independent: if True, the points are independent, as in the paper, at n (K + 1) random numbers per round. If
            False, they are one vector, shifted along the arms and mirrored. Each is uniform in the ball, so the
            expected gradient is the same.

    Returns:
        Algorithm with actions `Play`, states `PlayState` and answers int32 (K,), 0 or 1. One play is one pull.

    Raises:
        ValueError: an argument is not as above.

    **Guarantee**: with `proved_threshold` P(the answer is the best action) >= 1 - delta, for any noise_scale not below
    the arms' own. The sampling is asymptotically optimal (with draws unbounded). **Cost** per round: two `maximum`;
    O((1 + n) D K) on a matroid whose actions have D arms, O((1 + n) N K) on a listed class; K + 1 random numbers.
    **Limit**: 2^31 - 1 plays. **float32**: differences of means of 5 are off by 1e-6, the ratio by a relative 1e-5.

    Source: Tzeng, Wang, Proutiere and Lu (2023), Closing the computational-statistical gap in best arm identification
    for combinatorial semi-bandits. Its inner game is replaced by the exact minimum. Deviations: forced plays come in
    blocks of the cover (the public code's condition never holds); points are uniform in the ball; the gradient is taken
    at the point itself; the number of points is bounded.

    Example:
        >>> import jaxbandits
        >>> from jaxbandits import cpe
        >>> algorithm = cpe.pfws(cpe.top_k(5, 2), delta=0.1)
        >>> state, decision = jaxbandits.ask(algorithm, jax.random.key(1), algorithm.init(jax.random.key(0)))
        >>> print(decision.action.decision)
        [1 1 0 0 0]
    """
    playing = checked_playing(problem, noise_scale=noise_scale, cover=cover)
    threshold = checked_threshold(problem, delta, threshold)
    n = checks.whole("draws", draws, least=1)
    checks.flag("independent", independent)
    M, K = playing.cover.shape

    def rule(key: Key, estimates: PlayEstimates) -> tuple[Array, Array]:
        t = estimates.plays
        # If no play is forced, the cover and all blocks so far have sampled every arm: counts > sqrt(t / M), hence
        # omega > 4 eta. So a point is at least 3/4 of omega, and clipping is not needed.
        eta = 0.25 / jnp.sqrt(t * M)
        points = eta * (_independent(key, n, K, t.dtype) if independent else _shifted(key, n, K, t.dtype))
        live = jnp.arange(n, dtype=t.dtype) < jnp.ceil(jnp.sqrt(jnp.sqrt(t)))
        omega = estimates.counts / t
        gradient = _gradient(problem, estimates.best, means=estimates.means, omega=omega, z=points, live=live)
        block = estimates.state.pulls // M
        root = jnp.round(jnp.sqrt(block.astype(t.dtype))).astype(block.dtype)
        forced = playing.cover[estimates.state.pulls % M] > 0
        decision = jnp.where(root * root == block, forced, best_action(problem, gradient))
        return decision, is_sure(playing, estimates, delta, threshold)

    return algorithm_from_play_rule(playing, rule)


def direction(problem: Playable, means: Array, omega: Array, z: Array, live: Array) -> Array:
    """Computes the sum of the gradients of F(., means) at points around the shares of plays.

    Args:
        problem: as in `pfws`.
        means: float (K,).
        omega: float (K,), the shares.
        z: float (n, K), offsets of the points from the shares, such that all of omega + z is positive.
        live: bool (n,), True for the points that count.

    Returns:
        float (K,): sum over the points w of (slope / w)^2 / 2 on the arms in which the best action and its most
        confusing rival at w differ, with slope their gap / sum of 1 / w. It is the gradient by the envelope theorem.

    Raises:
        ValueError: an argument is not as above.

    Source: Tzeng, Wang, Proutiere and Lu (2023); exact where they play a game.
    """
    check_playable(problem)
    K = arm_count(problem)
    means = checks.array("means", means, (K,))
    omega = checks.array("omega", omega, (K,), least=0).astype(means.dtype)
    z = checks.array("z", z, ("n", K)).astype(means.dtype)
    live = checks.array("live", live, z.shape[:1], kind="bool")
    return _gradient(problem, best_of(problem, means), means=means, omega=omega, z=z, live=live)


def _gradient(problem: Playable, best: Best, *, means: Array, omega: Array, z: Array, live: Array) -> Array:
    gaps = gaps_of(problem, best, means)

    def at(point: Array) -> Array:
        inverse = 1 / point
        rival = closest(problem, best, gaps, inverse)
        return jnp.where(rival.differs, (rival.slope * inverse) ** 2 / 2, 0)

    return jnp.sum(jnp.where(live[:, None], jax.vmap(at)(omega[None] + z), 0), axis=0)


# Points that are uniform in the unit ball


def _ball(key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
    direction, radius = jax.random.split(key)
    normals = jax.random.normal(direction, shape, dtype)
    # DEVIATION: the public code's radius is uniform, which crowds the centre.
    length = jax.random.uniform(radius, shape[:-1], dtype) ** (1 / shape[-1])
    return normals * (length / jnp.sqrt(jnp.sum(normals**2, axis=-1)))[..., None]


def _independent(key: Key, n: int, K: int, dtype: Any) -> Array:
    """Draws independent points, float (n, K)."""
    return _ball(key, (n, K), dtype)


def _shifted(key: Key, n: int, K: int, dtype: Any) -> Array:
    """Draws one point and its variants, float (n, K): every second is mirrored, and each pair is shifted by one arm."""
    # DEVIATION: only the joint law differs; each point is uniform in the ball.
    point = _ball(key, (K,), dtype)
    twice = jnp.concatenate([point] * (2 + n // (2 * K)))
    return jnp.stack([(-1) ** l * twice[l // 2 : l // 2 + K] for l in range(n)])
