"""LinGapE's leaps: pulls of the same arm that it would make in a row anyway."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.linear._shared.lingape_pair import LinGapEPair, LinGapESettings, pulls_per_share
from jaxbandits.linear._shared.ridge import State
from jaxbandits.numerics.linalg import dot


class Leap(NamedTuple):
    """Leaps of `lingape`: their length and their certificate."""

    most: int = 65536  # largest number of pulls that one round may make, in [2, 2^20]
    margin: float = 7.6  # at least 7: the centred reward sum stays within margin noise_scale sqrt(m) over m pulls
    # () > 0, true sub-Gaussian constant of the environment; if None, the algorithm's. For one set too low on purpose
    noise_scale: Array | float | None = None


def checked_leap(leap: Any, dtype: Any) -> Leap:
    """Returns a number as a `Leap`; raises `ValueError` unless its parts lie in their ranges."""
    is_leap = isinstance(leap, Leap)
    margin, noise_scale = (leap.margin, leap.noise_scale) if is_leap else (Leap().margin, None)
    if is_leap:
        most = checks.whole("leap.most", leap.most, least=2, most=2**20)
    else:
        most = checks.whole("leap", leap, least=1, most=2**20)
    checks.require(most == 1 or dtype == jnp.float64, "arms", "be float64 with leap > 1", dtype)
    checks.real("leap.margin", margin, least=7)
    if noise_scale is not None:
        checks.positive("leap.noise_scale", noise_scale)
    return Leap(most, margin, noise_scale)


def longest_leap(settings: LinGapESettings, state: State, pair: LinGapEPair, arm: Array, leap: int) -> Array:
    """Returns how many pulls of `arm` in a row, up to `leap`, the rule provably makes, int ().

    Write z_l = (S_l - l x_a.theta_hat) / (1 + l x_a'A^-1 x_a) for the reward sum S_l of the first l pulls of arm a.
    After them x_k.theta_hat has moved by g_k z_l with g_k = x_k'A^-1 x_a, and widths and influences have shrunk by
    known amounts. With |z_l| <= stray for all l < m, the conditions below imply that at every state inside the leap

    - arm a still wins the rule, which depends on the counts alone;
    - the pair's bound B stays above epsilon: `floor` is its smallest value in either order of the pair;
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
    widths_to_j = jnp.sqrt(jnp.maximum(dot(arms - arms[j][None], state.images - state.images[j][None]), 0))

    n = state.counts[arm].astype(dtype)
    # |x_a.theta - x_a.theta_hat| is bounded from the data alone: the distance to the arm's own mean, plus a bound on
    # the error of that mean. The latter holds at all n at once (mixture martingale, failure below 1e-13).
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
        due = pulls_per_share(state.counts, share)

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
