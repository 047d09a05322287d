"""Exploration rates of NS-TandS: thresholds that a likelihood ratio must exceed.

They are `numerics.thresholds` for the number of comparisons of a run.
"""

from collections.abc import Callable
from typing import Any, Literal

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.thresholds import Evidence

Rate = Literal["loglog", "log", "gk", "gaussian"]


def exploration_rate(
    rate: Rate, n: int, k: int, *, delta: Array | float, dtype: Any = None
) -> Callable[[Array, Array, Array, Array], Array]:
    """Returns the threshold that the likelihood ratio Z of two arms must exceed.

    With delta' = delta / n^2, which covers every pair of arms of a run as long as sum_p (n-p-1) p <= n^2 (about
    k <= sqrt(2 n)):

    - "loglog": log((1 + log q) / delta'), the practical rate of Garivier and Kaufmann (2016), section 6; not proved.
    - "log": log(q / delta').
    - "gk": log(2 (K - 1) q / delta') with the K = (n-p) p arms of the stage (Garivier and Kaufmann, Theorem 10).
    - "gaussian": 2 log(4 + log a) + 2 log(4 + log b) + 2 C(x / 2) with x = log(1 / delta'), the C of
      `numerics.thresholds.mixture_constant` and delta' = delta / max(n^2, sum_p (n-p-1) p). Proved for Gaussian rewards
      of known variance, at all times at once (Kaufmann and Koolen, 2021), and for every k.

    Args:
        rate: one of the above.
        n: number of nodes, at least 2.
        k: number of centers, in 2..n.
        delta: () in (0, 1), allowed probability of error.
        dtype: dtype of the result. If None, JAX's default.

    Returns:
        (q, n_centers, a, b) -> float, broadcast: q int (), queries of the whole run, at least 1; n_centers int (),
        centers found so far; a and b int, at least 1, pulls of the two arms. The first three rates do not depend on a
        and b, and give a scalar. The last depends only on a and b.

    Raises:
        ValueError: `rate` is unknown, or another argument is out of range.
    """
    checks.one_of("rate", rate, Rate)
    checks.whole("n", n, least=2)
    checks.whole("k", k, least=2, most=n)
    checks.probability("delta", delta)
    dtype = checks.float_dtype("dtype", dtype)
    delta, pairs = jnp.asarray(delta, dtype), n**2
    if rate == "loglog":
        loglog = thresholds.gk16(comparisons=pairs)
        return lambda q, n_centers, a, b: loglog(delta, Evidence(q))
    if rate == "log":
        # The rate "gk" of two arms at 2 delta is log(2 (2 - 1) q / (2 delta')).
        log = thresholds.gk_union(arms=2, comparisons=pairs)
        return lambda q, n_centers, a, b: log(2 * delta, Evidence(q))
    if rate == "gk":
        gk = thresholds.gk_union(arms=2, comparisons=pairs)
        # The number of arms of a stage may be traced, so it divides delta.
        return lambda q, n_centers, a, b: gk(
            delta / jnp.maximum((n - n_centers) * n_centers - 1, 1).astype(dtype), Evidence(q)
        )
    kk_pair = thresholds.kk_pair(comparisons=max(pairs, sum((n - p - 1) * p for p in range(1, k))))

    def gaussian(q: Array, n_centers: Array, a: Array, b: Array) -> Array:
        return jnp.vectorize(lambda a, b: kk_pair(delta, Evidence(q, jnp.stack([a, b]))))(a, b)

    return gaussian
