"""LinGapE: fully adaptive best-arm identification in linear bandits (Xu, Honda, Sugiyama, 2018)."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import require
from jaxbandits.linear._arms import checked_arms
from jaxbandits.linear._environment import Pull
from jaxbandits.linear._radius import radius_at
from jaxbandits.linear._ratios import checked_shares
from jaxbandits.numerics.linalg import dot, gram, spd_inverse_logdet

RuleName = Literal["greedy", "ratio"]


def lingape(
    arms: Array,
    *,
    delta: Array | float,
    epsilon: Array | float = 0.0,
    ridge: Array | float = 1.0,
    noise_scale: Array | float = 1.0,
    norm_bound: Array | float = 2.0,
    union_bound: Array | float | None = None,
    rule: RuleName = "greedy",
    ratios: Array | None = None,
    leap: int = 1,
    leap_margin: float = 7.6,
    leap_noise_scale: Array | float | None = None,
) -> Algorithm:
    """LinGapE pulls the arm that best separates the leader from its strongest challenger, until no other may lead.

    After one pull of every arm, each round takes the leader i = argmax_k x_k.theta_hat and the challenger
    j = argmax_k (x_k - x_i).theta_hat + C ||x_k - x_i||_{A^-1}, stops if that maximum is at most epsilon, and otherwise
    pulls the arm that the rule picks for the direction x_i - x_j.

    Args:
        arms: float (K, d), features; the run has their dtype.
        delta: () in (0, 1), admitted probability of error.
        epsilon: () >= 0, admitted suboptimality of the answer, in units of reward.
        ridge: () > 0, regularisation of the least squares.
        noise_scale: () > 0, sub-Gaussian constant of the noise, in units of reward.
        norm_bound: () >= 0, upper bound of ||theta||.
        union_bound: () > 0, u in C = noise_scale sqrt(logdet + 2 log(u / delta)) + sqrt(ridge) norm_bound; K^2 by
            default, as in the paper's proofs. 1 gives equation (3) as it is printed; it is valid as well, since the
            ellipsoid covers all directions at once, and needs fewer pulls (d = 5: about 15 %).
        rule: "greedy", the arm that shrinks ||x_i - x_j|| most (equation 9), or "ratio", the arm furthest behind its
            share in the optimal decomposition of x_i - x_j (equation 12).
        ratios: float (K, K, K), shares p_k(i, j); for the rule "ratio", see `ratio_tables(arms).p`; others ignore it.
        leap: the most pulls that one round may stand for, a Python int in [1, 2^20]. With more than 1 a round pulls its
            arm as often in a row as the rule would anyway (see below), say up to 65536. float64 only.
        leap_margin: M >= 7 of the leap's certificate.
        leap_noise_scale: true sub-Gaussian constant of the environment; `noise_scale` by default. Give it where
            `noise_scale` is set too low on purpose.

    Returns:
        Algorithm with actions `Pull`, whose observation is the sum of the rewards, and answers int ().

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee** (Theorem 1, either rule): P(gap of the answer > epsilon) <= delta, if ||theta|| <= norm_bound and the
    noise is noise_scale-sub-Gaussian. **Cost**: O(K d) a round, with leaps O(K (d + log leap)); O(K d^2 + d^3) a
    refresh.

    **Leaps.** The same arm is often due hundreds of times in a row. A leap of m pulls is taken only if, unless the
    centred reward sum strays beyond M leap_noise_scale sqrt(m), no state inside it would stop, change the pair (i, j)
    or pull another arm; it gives the law of single rounds but for a probability below 1e-12 a leap (M = 7.6). Looking
    for them makes a round 4.5 times as long, so they pay for runs of more than some 10^5 pulls: with five arms, two
    cores and leap = 65536, runs of 2e4 pulls had 1.08 pulls a round, those of soare(5), 8e5, were 15 times as fast.

    **float32** gives mean stopping times on soare(5) that are 3 % low (512 runs), if refreshed at least every 1024
    rounds: the `chunk` of `run` and `sweep`, 256 by default. Without refresh it never stops there.

    Source: Xu, Honda, Sugiyama (2018), Algorithms 1 and 2, arXiv 1710.05552.
    """
    arms = checked_arms(arms)
    K, dtype = arms.shape[0], arms.dtype
    checks.probability("delta", delta)
    checks.not_negative("epsilon", epsilon)
    checks.positive("ridge", ridge)
    checks.positive("noise_scale", noise_scale)
    checks.not_negative("norm_bound", norm_bound)
    union_bound = K**2 if union_bound is None else union_bound
    checks.positive("union_bound", union_bound)
    checks.one_of("rule", rule, RuleName)
    if rule == "ratio" and ratios is None:
        raise ValueError("ratios must be given with rule='ratio' (see linear.ratio_tables(arms).p), got None")
    shares = None if ratios is None else checked_shares(ratios, K, dtype)
    leap = checks.whole("leap", leap, least=1, most=2**20)
    require(leap == 1 or dtype == jnp.float64, "arms", "be float64 with leap > 1", dtype)
    checks.real("leap_margin", leap_margin, least=7)
    leap_noise_scale = noise_scale if leap_noise_scale is None else leap_noise_scale
    checks.positive("leap_noise_scale", leap_noise_scale)

    numbers = (delta, epsilon, ridge, noise_scale, norm_bound, union_bound)
    delta, epsilon, ridge, noise_scale, norm_bound, union_bound = (jnp.asarray(x, dtype) for x in numbers)

    def radius(logdet: Array) -> Array:
        return radius_at(logdet, delta, ridge, noise_scale, norm_bound, union_bound)

    settings = Settings(arms, epsilon, radius, shares if rule == "ratio" else None, leap_margin, leap_noise_scale)

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
        )

    def decide(key: Key, state: State) -> Decision:
        del key
        initial = state.pulls < K
        pair = _compare(settings, state)
        arm = jnp.where(initial, state.pulls, _pick(settings, state, pair))
        times = jnp.ones((), int)
        if leap > 1:
            times = jnp.where(initial, times, _longest_leap(settings, state, pair, arm, leap))
        return Decision(Pull(arm, times), (pair.bound <= epsilon) & ~initial, pair.leader)

    def observe(state: State, action: Pull, observation: Array) -> State:
        arm, m = action.arm, action.times.astype(dtype)
        image = state.images[arm]
        gain = m / (1 + m * state.leverage[arm])
        g = dot(arms, image)
        surprise = (observation - m * dot(arms[arm], state.theta)) / (1 + m * state.leverage[arm])
        pulled = jnp.arange(K) == arm
        return State(
            pulls=state.pulls + action.times,
            counts=state.counts + jnp.where(pulled, action.times, 0),
            sums=state.sums + jnp.where(pulled, observation, 0),
            images=state.images - (gain * g)[:, None] * image,
            leverage=state.leverage - gain * g**2,
            theta=state.theta + surprise * image,
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
    return Algorithm(init, decide, observe, idle, refresh, before=lambda state, pull: state.counts[pull.arm])


class Settings(NamedTuple):
    """What the rule depends on."""

    arms: Array  # float (K, d)
    epsilon: Array  # float ()
    radius: Callable[[Array], Array]  # (log det(A / ridge)) -> C, the confidence radius of theta in the norm of A
    shares: Array | None  # float (K, K, K)   of the rule "ratio"
    leap_margin: float
    leap_noise_scale: Array | float


class State(NamedTuple):
    """Statistics and cache, with A = ridge I + sum_k counts_k x_k x_k'."""

    pulls: Array  # int ()
    counts: Array  # int (K,)        exact
    sums: Array  # float (K,)        exact: sums of rewards
    images: Array  # float (K, d)    A^-1 x_k, one row an arm
    leverage: Array  # float (K,)    x_k' A^-1 x_k
    theta: Array  # float (d,)       ridge estimate A^-1 sum_k sums_k x_k
    logdet: Array  # float ()        log det(A / ridge)


class Comparison(NamedTuple):
    """The leader, its strongest challenger, and how far apart they are."""

    leader: Array  # int ()
    challenger: Array  # int ()
    radius: Array  # float ()     C: confidence radius of theta in the norm of A
    gaps: Array  # float (K,)     (x_k - x_leader).theta, at most 0
    widths: Array  # float (K,)   ||x_k - x_leader|| in A^-1
    bound: Array  # float ()      B: upper confidence bound of the challenger's lead over the leader


def _compare(settings: Settings, state: State) -> Comparison:
    # Differences first: near ties, x_k.theta - x_i.theta and the Gram form of the widths lose all their digits.
    arms = settings.arms
    leader = jnp.argmax(dot(arms, state.theta))
    directions = arms - arms[leader]
    gaps = dot(directions, state.theta)
    widths = jnp.sqrt(jnp.maximum(dot(directions, state.images - state.images[leader]), 0))
    C = settings.radius(state.logdet)
    upper = jnp.where(jnp.arange(arms.shape[0]) == leader, -jnp.inf, gaps + C * widths)
    challenger = jnp.argmax(upper)
    return Comparison(leader, challenger, C, gaps, widths, upper[challenger])


def _pick(settings: Settings, state: State, pair: Comparison) -> Array:
    """The arm that the rule pulls for a pair, int ()."""
    if settings.shares is not None:
        return jnp.argmin(_pulls_per_share(state.counts, settings.shares[pair.leader, pair.challenger]))
    # y'(A + x x')^-1 y = y'A^-1 y - (x'A^-1 y)^2 / (1 + x'A^-1 x)
    influence = dot(settings.arms, state.images[pair.leader] - state.images[pair.challenger])
    return jnp.argmax(influence**2 / (1 + state.leverage))


def _pulls_per_share(counts: Array, share: Array) -> Array:
    """How far each arm is along its share (K,); the one with the least is due next, an arm without a share never."""
    return jnp.where(share > 0, counts.astype(share.dtype) / jnp.where(share > 0, share, 1), jnp.inf)


def _longest_leap(settings: Settings, state: State, pair: Comparison, arm: Array, leap: int) -> Array:
    """The most pulls of `arm` in a row, up to `leap`, through which the rule provably keeps pulling it, int ().

    Write z_l = (S_l - l x_a.theta_hat) / (1 + l x_a'A^-1 x_a) for the reward sum S_l of the first l pulls of arm a.
    After them x_k.theta_hat has moved by g_k z_l with g_k = x_k'A^-1 x_a, and widths and influences have shrunk by
    known amounts. With |z_l| <= stray for all l < m, the conditions below imply that at every state inside the leap

    - arm a still wins the rule, which depends on the counts alone;
    - the pair's bound B stays above epsilon: `floor` is its least value in either order of the pair;
    - no third arm takes the lead or becomes the challenger.

    Each condition gets harder as m grows, so the largest m is found by bisection over its binary digits.
    """
    arms, noise_scale = settings.arms, settings.leap_noise_scale
    dtype = arms.dtype
    i, j, C = pair.leader, pair.challenger, pair.radius
    indices = jnp.arange(arms.shape[0])
    third = (indices != i) & (indices != j)
    g = dot(arms, state.images[arm])
    g_i, g_j, lev = g[i], g[j], state.leverage[arm]
    gap_j, width_j = pair.gaps[j], pair.widths[j]
    widths_to_j = jnp.sqrt(jnp.maximum(dot(arms - arms[j], state.images - state.images[j]), 0))

    n = state.counts[arm].astype(dtype)
    # |x_a.theta - x_a.theta_hat| from the data alone: the distance to the arm's own mean, plus a bound on the error of
    # that mean that holds at all n at once (mixture martingale, failure below 1e-13).
    drift = (
        jnp.abs(state.sums[arm] / n - dot(arms[arm], state.theta))
        + noise_scale * jnp.sqrt((n + 1) * (jnp.log(n + 1) + 60)) / n
    )

    if settings.shares is None:
        influence = dot(arms, state.images[i] - state.images[j])
        influence_a = influence[arm]

        def keeps_arm(m: Array) -> Array:
            c = (m - 1) / (1 + (m - 1) * lev)
            lowest = influence_a**2 / ((1 + (m - 1) * lev) * (1 + m * lev))
            # The influence of another arm is affine in c, hence largest at an end.
            highest = jnp.maximum(influence**2, (influence - c * g * influence_a) ** 2)
            score = highest / (1 + jnp.maximum(state.leverage - c * g**2, 0))
            return jnp.all((score < lowest) | (indices == arm))
    else:
        share = settings.shares[i, j]
        due = _pulls_per_share(state.counts, share)

        def keeps_arm(m: Array) -> Array:
            return jnp.all((due > (n + m - 1) / share[arm]) | (indices == arm))

    def allowed(m: Array) -> Array:
        stray = (m - 1) * drift + settings.leap_margin * noise_scale * jnp.sqrt(m)
        c = m / (1 + m * lev)
        width_j_end = jnp.sqrt(jnp.maximum(width_j**2 - c * (g_j - g_i) ** 2, 0))
        floor = gap_j - jnp.abs(g_j - g_i) * stray + C * width_j_end
        C_end = settings.radius(state.logdet + jnp.log1p(m * lev))
        behind_i = pair.gaps + jnp.abs(g - g_i) * stray
        behind_j = pair.gaps - gap_j + jnp.abs(g - g_j) * stray
        may_swap = -gap_j <= jnp.abs(g_j - g_i) * stray
        harmless = (behind_i < 0) & (behind_i + C_end * pair.widths < floor)
        harmless &= ~may_swap | (behind_j + C_end * widths_to_j < floor)
        return keeps_arm(m) & (floor > settings.epsilon) & jnp.all(harmless | ~third)

    def try_digit(step: Array, m: Array) -> Array:
        longer = m + (1 << (leap.bit_length() - 1 - step)).astype(m.dtype)
        return jnp.where((longer <= leap) & allowed(longer.astype(dtype)), longer, m)

    m = lax.fori_loop(0, leap.bit_length(), try_digit, jnp.zeros((), int))
    return jnp.maximum(m, 1)
