"""Hardness of an instance, and bounds on the pulls until an algorithm stops.

All are functions of the truth, which no algorithm may know.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array

NEWTON_STEPS = 50


def hardness(radii: Array) -> Array:
    """Computes H = sum_i 1 / Lambda_i^2, the hardness for COCI.

    Args:
        radii: float (m,), `consistent_radius`: at least 0, inf where a level never changes.

    Returns:
        float (), inf if there is a tie.

    Raises:
        ValueError: `radii` are not as above.

    Source: Huang, Ok, Li and Chen (2018), Theorem 1.
    """
    # ERRATUM: the proof of Theorem 2 there prints sum 1 / Lambda_i. The square is missing.
    return jnp.sum(1 / _checked_radii(radii) ** 2)


def uniform_hardness(radii: Array) -> Array:
    """Computes H_U = m / min_i Lambda_i^2, the hardness for uniform sampling.

    Args:
        radii: as in `hardness`.

    Returns:
        float (), at least H.

    Raises:
        ValueError: `radii` are not as in `hardness`.

    Source: Huang, Ok, Li and Chen (2018), Theorem 4.
    """
    radii = _checked_radii(radii)
    return radii.shape[0] / jnp.min(radii) ** 2


def theorem1_bound(H: Array | float, m: int, tau: int, delta: Array | float) -> Array:
    """Computes the pulls within which COCI stops with probability 1 - delta; with H_U, uniform sampling (Theorem 4).

    It is 2 m + 12 H ln(24 H) + 4 H ln(4 / (tau delta)). An arm whose level never changes may add tau - 1 pulls to it.

    Args:
        H: float (), `hardness` or `uniform_hardness`, at least 1.
        m: number of arms, a Python int.
        tau: 1 for means, 2 for variances, a Python int.
        delta: float () in (0, 1), error probability.

    Returns:
        float (). Runs stay below 0.18 of it.

    Raises:
        ValueError: an argument is out of range.

    Source: Huang, Ok, Li and Chen (2018), Theorems 1 and 4.
    """
    # ERRATUM: the proof of Theorem 1 takes Lambda_i <= 1 for the first tau pulls. An infinite one adds nothing to H.
    H, delta = _checked(H, delta, m=m, tau=tau)
    return 2 * m + 12 * H * jnp.log(24 * H) + 4 * H * jnp.log(4 / (tau * delta))


def arm_bound(radii: Array, pulls: Array | float, tau: int, delta: Array | float) -> Array:
    """Computes the pulls of each arm that COCI does not exceed in a run of `pulls`, with probability 1 - delta.

    T_i <= 1 + (2 / Lambda_i^2) ln(4 T^3 / (tau delta)).

    Args:
        radii: float (m,), as in `hardness`.
        pulls: (), T, number of pulls of the run, at least 1.
        tau: 1 for means, 2 for variances, a Python int.
        delta: float () in (0, 1), error probability.

    Returns:
        float (m,). Runs stay below 0.42 of it.

    Raises:
        ValueError: an argument is out of range.

    Source: Huang, Ok, Li and Chen (2018), equation (6).
    """
    radii = _checked_radii(radii)
    checks.real("pulls", pulls, least=1)
    checks.whole("tau", tau, least=1, most=2)
    checks.probability("delta", delta)
    pulls, delta = (jnp.asarray(number).astype(radii.dtype) for number in (pulls, delta))
    return 1 + 2 / radii**2 * _log_term(pulls, tau, delta)


def implicit_time(H: Array | float, m: int, tau: int, delta: Array | float, c: Array | float) -> Array:
    """Computes the largest root of T = m + c H ln(4 T^3 / (tau delta)).

    Args:
        H: float (), `hardness` or `uniform_hardness`, at least 1.
        m: number of arms, a Python int.
        tau: 1 for means, 2 for variances, a Python int.
        delta: float () in (0, 1), error probability.
        c: float (), at least 1/2. The proof of Theorem 1 has c = 2. Runs behave as with c = 1/2: without noise arm i
            stops being a candidate when its confidence radius reaches Lambda_i. The mean stopping time of COCI is 0.93
            to 1.03 times the root for c = 1/2.

    Returns:
        float ().

    Raises:
        ValueError: an argument is out of range.
    """
    checks.real("c", c, least=0.5)
    H, delta = _checked(H, delta, m=m, tau=tau)
    start = theorem1_bound(H, m, tau, delta)
    arms, initial, factor = (jnp.asarray(number, H.dtype) for number in (m, tau, c))
    return _implicit_time(H, arms, initial, delta, factor, start=start)


# Without `jit` every call from outside a trace would compile the loop again.
@jax.jit
def _implicit_time(H: Array, m: Array, tau: Array, delta: Array, c: Array, start: Array) -> Array:
    def newton(_: int, time: Array) -> Array:
        excess = time - m - c * H * _log_term(time, tau, delta)
        return time - excess / (1 - 3 * c * H / time)

    # The excess is convex, with its minimum at 3 c H. From the right of it Newton's method descends to the root.
    return lax.fori_loop(0, NEWTON_STEPS, newton, jnp.maximum(start, 6 * c * H))


def clucb_bound(H_gap: Array | float, exchange_width: Array | int, m: int, delta: Array | float) -> Array:
    """Computes the pulls within which CLUCB stops with probability 1 - delta.

    It is 2 m + 499 w^2 H_gap ln(4 m w^2 H_gap / delta).

    Args:
        H_gap: float (), sum_i 1 / Delta_i^2 over `reward_gaps`.
        exchange_width: int (), w, the class's `exchange_width`, at least 1.
        m: number of arms, a Python int.
        delta: float () in (0, 1), error probability.

    Returns:
        float ().

    Raises:
        ValueError: an argument is out of range.

    Source: Chen, Lin, King, Lyu and Chen (2014), Theorem 1, as equation (5) of Huang, Ok, Li and Chen (2018).
    """
    checks.integer("exchange_width", exchange_width, least=1)
    H_gap, delta = _checked(H_gap, delta, m=m, name="H_gap")
    scaled = jnp.asarray(exchange_width).astype(H_gap.dtype) ** 2 * H_gap
    return 2 * m + 499 * scaled * jnp.log(4 * m * scaled / delta)


def lower_bound_rate(H: Array | float, m: int, delta: Array | float) -> Array:
    """Computes H + (H / m) ln(1 / delta), the order of the pulls that every algorithm needs.

    Args:
        H: float (), `hardness`.
        m: number of arms, a Python int.
        delta: float () in (0, 1), error probability.

    Returns:
        float (), up to an unknown constant.

    Raises:
        ValueError: an argument is out of range.

    Source: Huang, Ok, Li and Chen (2018), Theorem 2.
    """
    H, delta = _checked(H, delta, m=m)
    return H + H / m * jnp.log(1 / delta)


def _log_term(time: Array, tau: Array | int, delta: Array) -> Array:
    """Computes ln(4 T^3 / (tau delta)), in a form that does not overflow."""
    return jnp.log(4 / (tau * delta)) + 3 * jnp.log(time)


def _checked_radii(radii: Array) -> Array:
    return checks.array("radii", radii, ("m",), finite=False, least=0)


def _checked(H: Array | float, delta: Array | float, *, m: int, tau: int = 1, name: str = "H") -> tuple[Array, Array]:
    """Returns hardness and delta in one floating dtype, checked."""
    checks.positive(name, H)
    checks.whole("m", m, least=2)
    checks.whole("tau", tau, least=1, most=2)
    checks.probability("delta", delta)
    H = jnp.asarray(H)
    H = H if jnp.issubdtype(H.dtype, jnp.floating) else H.astype(float)
    return H, jnp.asarray(delta).astype(H.dtype)
