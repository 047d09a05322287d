"""How large a likelihood ratio must be before a run trusts it: the exploration rates of NS-TandS."""

import functools
import math
from collections.abc import Callable
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array

Rate = Literal["loglog", "log", "gk", "gaussian"]
GRID = 256  # values of lambda that `mixture_constant` tries


def exploration_rate(
    rate: Rate, n: int, k: int, *, delta: Array | float, dtype: Any = None
) -> Callable[[Array, Array, Array, Array], Array]:
    """The threshold that the likelihood ratio Z of two arms must exceed.

    With delta' = delta / n^2, which pays for every pair of arms of a run as long as sum_p (n-p-1) p <= n^2 (about
    k <= sqrt(2 n)):

    - "loglog": log((1 + log q) / delta'), the practical rate of Garivier and Kaufmann (2016), section 6; not proved.
    - "log": log(q / delta').
    - "gk": log(2 (K - 1) q / delta') with the K = (n-p) p arms of the stage (Garivier and Kaufmann, Theorem 10).
    - "gaussian": 2 log(4 + log a) + 2 log(4 + log b) + 2 G(x / 2) with x = log(1 / delta') and `mixture_constant` G;
      delta' = delta / max(n^2, sum_p (n-p-1) p). Proved for Gaussian rewards of known variance, at all times at once
      (Kaufmann and Koolen, 2021), and for every k.

    Args:
        rate: one of the above.
        n: number of nodes, at least 2.
        k: number of centers, in 2..n.
        delta: () in (0, 1), admitted probability of error.
        dtype: of the result; JAX's own by default.

    Returns:
        (q, found, a, b) -> float, broadcast: q int (), queries of the whole run, at least 1; found int (), centers
        found so far; a and b int, at least 1, pulls of the two arms. The first three rates do not depend on a and b and
        give a scalar; the last depends on nothing else.

    Raises:
        ValueError: `rate` is unknown, or another argument is out of range.
    """
    checks.one_of("rate", rate, Rate)
    checks.whole("n", n, least=2)
    checks.whole("k", k, least=2, most=n)
    checks.probability("delta", delta)
    dtype = checks.float_dtype("dtype", dtype)
    delta = jnp.asarray(delta, dtype)
    pairs = n**2
    if rate == "gaussian":
        pairs = max(pairs, sum((n - p - 1) * p for p in range(1, k)))
    confidence = math.log(pairs) - jnp.log(delta)  # log(1 / delta'); delta' itself may underflow
    constant = 2 * mixture_constant(confidence / 2) if rate == "gaussian" else None

    def threshold(q: Array, found: Array, a: Array, b: Array) -> Array:
        if constant is not None:
            return _log_log(a, dtype) + _log_log(b, dtype) + constant
        log_q = jnp.log(q.astype(dtype))
        if rate == "loglog":
            return jnp.log1p(log_q) + confidence
        if rate == "log":
            return log_q + confidence
        rivals = jnp.maximum((n - found) * found - 1, 1).astype(dtype)
        return jnp.log(2 * rivals) + log_q + confidence

    return threshold


def mixture_constant(y: Array) -> Array:
    """G(y) = min over lam in (1/2, 1) of (2 lam - 2 lam log(4 lam) + log zeta(2 lam) - log(1 - lam) / 2 + y) / lam.

    Args:
        y: float, any shape, at least 0.

    Returns:
        float, of y's shape: the minimum over a grid, which is at most 1e-4 above G up to y = 100; to enlarge it
        costs queries, never the guarantee.

    Source: Kaufmann and Koolen (2021), Mixture martingales revisited with applications to sequential tests and
    confidence intervals, the Gaussian case.
    """
    lam, g = (jnp.asarray(x, y.dtype) for x in _mixture_grid())
    return jnp.min((g + y[..., None]) / lam, axis=-1)


def _log_log(count: Array, dtype: Any) -> Array:
    return 2 * jnp.log(4 + jnp.log(count.astype(dtype)))


@functools.cache
def _mixture_grid() -> tuple[np.ndarray, np.ndarray]:
    from scipy.special import zeta  # loads slowly, and only one rate needs it

    lam = 1 - np.geomspace(0.49, 1e-4, GRID)  # the minimum moves towards 1 as y grows
    return lam, 2 * lam - 2 * lam * np.log(4 * lam) + np.log(zeta(2 * lam)) - np.log1p(-lam) / 2
