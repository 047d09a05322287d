"""LinGapE: fully adaptive best-arm identification in linear bandits (Xu, Honda, Sugiyama, 2018)."""

from functools import partial

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.linear._problem.arms import check_ridge, checked_arms
from jaxbandits.linear._problem.environment import Pull, made_for
from jaxbandits.linear._shared import ridge as ridge_regression
from jaxbandits.linear._shared.lingape_leap import Leap, checked_leap, longest_leap
from jaxbandits.linear._shared.lingape_pair import LinGapESettings, find_pair, pick
from jaxbandits.linear._shared.radius import radius_at
from jaxbandits.linear._shared.ratios import checked_shares
from jaxbandits.linear._shared.ridge import State


def lingape(
    arms: Array,
    *,
    delta: Array | float,
    epsilon: Array | float = 0.0,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    norm_bound: Array | float = 2.0,
    union_bound: Array | float | None = None,
    ratios: Array | None = None,
    leap: int | Leap = 1,
) -> Algorithm:
    """Pulls the arm that best separates the leader from its strongest challenger, until no other arm may be better.

    After one pull of every arm, each round takes the leader i = argmax_k x_k.theta_hat and the challenger
    j = argmax_k (x_k - x_i).theta_hat + C ||x_k - x_i||_{A^-1}. The run stops if that maximum is at most epsilon.
    Otherwise the rule picks the arm to pull for the direction x_i - x_j.

    Args:
        arms: float (K, d), features; the run has their dtype.
        delta: () in (0, 1), allowed probability of error.
        epsilon: () >= 0, allowed suboptimality of the answer, in units of reward.
        ridge: () > 0, regularisation of least squares, at least 1.2e-4 (float32) or 2.2e-13 (float64) times the
            largest |x|^2. With a smaller one the rank-one updates lose their digits.
        noise_scale: () > 0, sub-Gaussian constant of the noise, in units of reward.
        norm_bound: () >= 0, upper bound of ||theta||.
        union_bound: () > 0, u in C = noise_scale sqrt(logdet + 2 log(u / delta)) + sqrt(ridge) norm_bound. If None,
            K^2, as in the paper's proofs. 1 gives equation (3) as it is printed. It is valid as well, since the
            ellipsoid covers all directions at once, and needs fewer pulls (d = 5: about 15 %).
        ratios: None or float (K, K, K), shares p_k(i, j), see `ratio_tables(arms).p`. If None, the rule pulls the arm
            that shrinks ||x_i - x_j|| most (greedy, equation 9). Otherwise it pulls the arm furthest behind its share
            in the optimal decomposition of x_i - x_j (equation 12).
        leap: largest number of pulls that one round may make, a Python int in [1, 2^20], or a `Leap`. If above 1, a
            round repeats its pull as often as the rule would anyway (see below); 65536 is usual. float64 only.

    Returns:
        Algorithm with actions `Pull`, whose observation is the sum of the rewards, and answers int (), an arm.

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee** (Theorem 1, either rule): P(gap of the answer > epsilon) <= delta, if ||theta|| <= norm_bound and the
    noise is noise_scale-sub-Gaussian. **Cost**: O(K d) per round,
    O(K (d + log leap)) with leaps; O(K d^2 + d^3) per refresh.

    **Leaps.** The same arm is often due hundreds of times in a row. A leap of m pulls is taken only if no state inside
    it would stop, change the pair (i, j) or pull another arm, unless the centred reward sum strays beyond
    margin noise_scale sqrt(m) of the `Leap`. The law of single rounds holds except with probability below 1e-12 per
    leap (margin 7.6).
    The search for leaps makes a round 4.5 times as long, so they pay for runs of more than some 10^5 pulls. With five
    arms, two cores and leap = 65536, runs of 2e4 pulls had 1.08 pulls per round; runs on soare(5), of 8e5 pulls, were
    15 times as fast.

    **float32** gives mean stopping times on soare(5) that are 3 % low (512 runs), if refreshed at least every 1024
    rounds: the `chunk` of `run` and `sweep`, 256 by default. Without refresh a run there never stops.

    Source: Xu, Honda, Sugiyama (2018), Algorithms 1 and 2, arXiv 1710.05552. `lingape_glr` has the rule with another
    stop.
    """
    arms = checked_arms(arms)
    K, dtype = arms.shape[0], arms.dtype
    checks.probability("delta", delta)
    checks.not_negative("epsilon", epsilon)
    check_ridge(arms, ridge)
    checks.positive("noise_scale", noise_scale)
    checks.not_negative("norm_bound", norm_bound)
    if union_bound is not None:
        checks.positive("union_bound", union_bound)
    shares = None if ratios is None else checked_shares(ratios, K, dtype)
    leap = checked_leap(leap, dtype)
    union_bound = K**2 if union_bound is None else union_bound
    leap_noise_scale = noise_scale if leap.noise_scale is None else leap.noise_scale

    numbers = (delta, epsilon, ridge, noise_scale, norm_bound, union_bound)
    delta, epsilon, ridge, noise_scale, norm_bound, union_bound = (jnp.asarray(x, dtype) for x in numbers)

    def radius(logdet: Array) -> Array:
        return radius_at(logdet, *(delta, ridge, noise_scale, norm_bound, union_bound))

    settings = LinGapESettings(
        arms=arms,
        epsilon=epsilon,
        radius=radius,
        shares=shares,
        leap_margin=leap.margin,
        leap_noise_scale=leap_noise_scale,
    )

    def init(key: Key) -> State:
        del key
        return ridge_regression.start(arms, ridge)

    def decide(key: Key, state: State) -> Decision:
        del key
        initial = state.pulls < K
        pair = find_pair(settings, state)
        arm = jnp.where(initial, state.pulls, pick(settings, state, pair))
        times = jnp.ones((), int)
        if leap.most > 1:
            times = jnp.where(initial, times, longest_leap(settings, state, pair, arm, leap.most))
        return Decision(Pull(arm, times), (pair.bound <= epsilon) & ~initial, pair.leader)

    idle = Pull(jnp.zeros((), int), jnp.zeros((), int))
    return Algorithm(
        init,
        decide,
        partial(ridge_regression.observe, arms),
        idle,
        partial(ridge_regression.refresh, arms, ridge),
        **made_for(arms, leap=leap.most),
    )
