"""LinGapE: fully adaptive best-arm identification in linear bandits (Xu, Honda, Sugiyama, 2018)."""

from typing import Literal

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import require
from jaxbandits.linear._algorithms.lingape_glr import WidthName, lingape_rule
from jaxbandits.linear._problem.arms import check_ridge, checked_arms
from jaxbandits.linear._problem.environment import Pull, made_for
from jaxbandits.linear._shared.fixed_confidence import EliminateName, StartName, checked_settings
from jaxbandits.linear._shared.likelihood_ratio import algorithm_from_rule
from jaxbandits.linear._shared.lingape_leap import longest_leap
from jaxbandits.linear._shared.lingape_pair import LinGapESettings, State, find_pair, pick
from jaxbandits.linear._shared.radius import radius_at
from jaxbandits.linear._shared.ratios import checked_shares
from jaxbandits.numerics.compensated import add_at, no_loss
from jaxbandits.numerics.linalg import dot, gram, spd_inverse_logdet
from jaxbandits.numerics.thresholds import Threshold

RuleName = Literal["greedy", "ratio"]
NORM_BOUND, LEAP_MARGIN = 2.0, 7.6


def lingape(
    arms: Array,
    *,
    delta: Array | float,
    epsilon: Array | float = 0.0,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    norm_bound: Array | float | None = None,
    union_bound: Array | float | None = None,
    rule: RuleName = "greedy",
    ratios: Array | None = None,
    leap: int = 1,
    leap_margin: float | None = None,
    leap_noise_scale: Array | float | None = None,
    threshold: Threshold | None = None,
    width: WidthName = "threshold",
    items: Array | None = None,
    glr_ridge: float | None = None,
    eliminate: EliminateName | None = None,
    start: StartName = "arms",
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
        norm_bound: () >= 0, upper bound of ||theta||. If None, 2.
        union_bound: () > 0, u in C = noise_scale sqrt(logdet + 2 log(u / delta)) + sqrt(ridge) norm_bound. If None,
            K^2, as in the paper's proofs. 1 gives equation (3) as it is printed. It is valid as well, since the
            ellipsoid covers all directions at once, and needs fewer pulls (d = 5: about 15 %).
        rule: "greedy", the arm that shrinks ||x_i - x_j|| most (equation 9), or "ratio", the arm furthest behind its
            share in the optimal decomposition of x_i - x_j (equation 12).
        ratios: float (K, K, K), shares p_k(i, j), see `ratio_tables(arms).p`. For the rule "ratio" only.
        leap: largest number of pulls that one round may make, a Python int in [1, 2^20]. If above 1, a round repeats
            its pull as often as the rule would anyway (see below); 65536 is usual. float64 only.
        leap_margin: M >= 7 of the leap's certificate. If None, 7.6. For leap > 1 only.
        leap_noise_scale: true sub-Gaussian constant of the environment. If None, `noise_scale`. Give it if
            `noise_scale` is set too low on purpose. For leap > 1 only.
        threshold: None or one of `numerics.thresholds`. If None, the stop is the one above. Otherwise it is by
            likelihood ratios, as for `fixed_weights`: C follows from `width`, `norm_bound` and `union_bound` must be
            None, and `leap` 1. The arguments below are for this stop only.
        width: C in units of noise_scale. "threshold" is sqrt(2 threshold), "log" sqrt(2 log(1 / delta) + 4 log(t + 2)).
        items: float (M, d), features of the items that are compared, as for `fixed_weights`. For the rule "greedy".
        glr_ridge: None or 0, as for `fixed_weights`.
        eliminate: None, "stop" or "both", as for `fixed_weights`.
        start: "arms" or "spanner", as for `fixed_weights`.

    Returns:
        Algorithm with actions `Pull`, whose observation is the sum of the rewards, or `Step` where items are
        eliminated, and answers int (), an arm, or an item.

    Raises:
        ValueError: an argument lies outside the range above, a shape does not fit, or an argument is given that the
            rule or the stop does not read, or that only leaps read.

    **Guarantee** (Theorem 1, either rule): P(gap of the answer > epsilon) <= delta, if ||theta|| <= norm_bound and the
    noise is noise_scale-sub-Gaussian. With a threshold, the guarantee of the threshold. **Cost**: O(K d) per round,
    O(K (d + log leap)) with leaps; O(K d^2 + d^3) per refresh.

    **Leaps.** The same arm is often due hundreds of times in a row. A leap of m pulls is taken only if no state inside
    it would stop, change the pair (i, j) or pull another arm, unless the centred reward sum strays beyond
    M leap_noise_scale sqrt(m). The law of single rounds holds except with probability below 1e-12 per leap (M = 7.6).
    The search for leaps makes a round 4.5 times as long, so they pay for runs of more than some 10^5 pulls. With five
    arms, two cores and leap = 65536, runs of 2e4 pulls had 1.08 pulls per round; runs on soare(5), of 8e5 pulls, were
    15 times as fast.

    **float32** gives mean stopping times on soare(5) that are 3 % low (512 runs), if refreshed at least every 1024
    rounds: the `chunk` of `run` and `sweep`, 256 by default. Without refresh a run there never stops.

    Source: Xu, Honda, Sugiyama (2018), Algorithms 1 and 2, arXiv 1710.05552; likelihood ratios as in Tirinzoni and
    Degenne (2022) and the public code of Wang, Tzeng and Proutiere (2021).
    """
    features = checked_arms(arms)
    K, dtype = features.shape[0], features.dtype
    if norm_bound is not None:
        checks.not_negative("norm_bound", norm_bound)
    if union_bound is not None:
        checks.positive("union_bound", union_bound)
    checks.one_of("rule", rule, RuleName)
    if rule == "ratio" and ratios is None:
        raise ValueError("ratios must be given with rule='ratio' (see linear.ratio_tables(arms).p), got None")
    require(ratios is None or rule == "ratio", "ratios", "be None with rule='greedy'", ratios)
    shares = None if ratios is None else checked_shares(ratios, K, dtype)
    leap = checks.whole("leap", leap, least=1, most=2**20)
    require(leap == 1 or dtype == jnp.float64, "arms", "be float64 with leap > 1", dtype)
    if leap_margin is not None:
        require(leap > 1, "leap_margin", "be None without leaps", leap_margin)
        checks.real("leap_margin", leap_margin, least=7)
    if leap_noise_scale is not None:
        require(leap > 1, "leap_noise_scale", "be None without leaps", leap_noise_scale)
        checks.positive("leap_noise_scale", leap_noise_scale)
    checks.one_of("width", width, WidthName)

    if threshold is not None:
        for name, value in {"norm_bound": norm_bound, "union_bound": union_bound}.items():
            require(value is None, name, "be None with a threshold", value)
        require(leap == 1, "leap", "be 1 with a threshold", leap)
        require(items is None or shares is None, "items", "be None with rule='ratio', whose shares are of arms", items)
        settings = checked_settings(
            arms,
            delta=delta,
            threshold=threshold,
            items=items,
            epsilon=epsilon,
            ridge=ridge,
            glr_ridge=glr_ridge,
            noise_scale=noise_scale,
            eliminate=eliminate,
            start=start,
        )
        return algorithm_from_rule(settings, lingape_rule(settings, width, shares))

    checks.probability("delta", delta)
    checks.not_negative("epsilon", epsilon)
    check_ridge(features, ridge)
    checks.positive("noise_scale", noise_scale)
    threshold_arguments = {"items": items, "glr_ridge": glr_ridge, "eliminate": eliminate}
    for name, value in threshold_arguments.items():
        require(value is None, name, "be None without a threshold", value)
    checks.one_of("start", start, StartName)
    for name, value, default in (("width", width, "threshold"), ("start", start, "arms")):
        require(value == default, name, f"be {default!r} without a threshold", value)
    arms, union_bound = features, K**2 if union_bound is None else union_bound
    norm_bound = NORM_BOUND if norm_bound is None else norm_bound
    leap_margin = LEAP_MARGIN if leap_margin is None else leap_margin
    leap_noise_scale = noise_scale if leap_noise_scale is None else leap_noise_scale

    numbers = (delta, epsilon, ridge, noise_scale, norm_bound, union_bound)
    delta, epsilon, ridge, noise_scale, norm_bound, union_bound = (jnp.asarray(x, dtype) for x in numbers)

    def radius(logdet: Array) -> Array:
        return radius_at(logdet, *(delta, ridge, noise_scale, norm_bound, union_bound))

    settings = LinGapESettings(
        arms=arms,
        epsilon=epsilon,
        radius=radius,
        shares=shares,
        leap_margin=leap_margin,
        leap_noise_scale=leap_noise_scale,
    )

    def init(key: Key) -> State:
        del key
        return State(
            pulls=jnp.zeros((), int),
            counts=jnp.zeros(K, int),
            sums=jnp.zeros(K, dtype),
            images=arms / ridge,
            leverage=dot(arms, arms) / ridge,
            theta=jnp.zeros_like(arms[0]),
            logdet=jnp.zeros((), dtype),
            lost=no_loss((K,), dtype),
        )

    def decide(key: Key, state: State) -> Decision:
        del key
        initial = state.pulls < K
        pair = find_pair(settings, state)
        arm = jnp.where(initial, state.pulls, pick(settings, state, pair))
        times = jnp.ones((), int)
        if leap > 1:
            times = jnp.where(initial, times, longest_leap(settings, state, pair, arm, leap))
        return Decision(Pull(arm, times), (pair.bound <= epsilon) & ~initial, pair.leader)

    def observe(state: State, action: Pull, observation: Array) -> State:
        arm, m = action.arm, action.times.astype(dtype)
        image = state.images[arm]
        gain = m / (1 + m * state.leverage[arm])
        g = dot(arms, image)
        surprise = (observation - m * dot(arms[arm], state.theta)) / (1 + m * state.leverage[arm])
        pulled = jnp.arange(K) == arm
        sums, lost = add_at(state.sums, state.lost, arm, observation)
        return State(
            pulls=state.pulls + action.times,
            counts=state.counts + jnp.where(pulled, action.times, 0),
            sums=sums,
            images=state.images - (gain * g)[:, None] * image[None],
            leverage=state.leverage - gain * g**2,
            theta=state.theta + surprise * image,
            lost=lost,
            logdet=state.logdet + jnp.log1p(m * state.leverage[arm]),
        )

    def refresh(state: State) -> State:
        A = ridge * jnp.eye(arms.shape[1], dtype=dtype) + gram(arms, state.counts.astype(dtype))
        inverse, logdet = spd_inverse_logdet(A / ridge)
        images = jnp.matmul(arms, inverse, precision="highest") / ridge
        return state._replace(
            images=images,
            leverage=dot(images, arms),
            theta=jnp.matmul(state.sums, images, precision="highest"),
            logdet=logdet,
        )

    idle = Pull(jnp.zeros((), int), jnp.zeros((), int))
    return Algorithm(
        init, decide, observe, idle, refresh, before=lambda state, pull: state.counts[pull.arm], **made_for(arms)
    )
