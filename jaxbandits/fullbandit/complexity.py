"""How hard an instance is: gaps, hardness measures, bounds on stopping times, and stopping times without noise.

All of it is about the truth, and none of it is for an algorithm to see.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

from jaxbandits.base import Array
from jaxbandits.checks import known, require, require_not_negative, require_positive
from jaxbandits.fullbandit.confidence import ellipsoid_radius, lemma1_radius
from jaxbandits.fullbandit.design import Design, all_superarms, check_design, xy_allocation
from jaxbandits.fullbandit.exhaustive import exhaustive_rule, largest_squared_norm, superarm_table
from jaxbandits.fullbandit.icb import Width, icb_rule
from jaxbandits.fullbandit.sa_foa import Mode, lottery_hazard, surrogates
from jaxbandits.fullbandit.saqm import saqm_rule
from jaxbandits.fullbandit.spectral import spectral_rule
from jaxbandits.fullbandit.state import Look, check_run
from jaxbandits.numerics.densest_subgraph import Reduction, largest_eigenvalue, quadratic_maximization

Method = Literal["enumerate", "greedy", "spectral"]
Rule = Literal["saqm", "icb", "exhaustive", "spectral", "sa_foa"]

LARGEST_TIME = 1e30  # no number of pulls is beyond; a float32 can hold it
HALVINGS = 60  # of an interval of logarithms of length 69: down to the last digit of a float64
SURVIVING = 1e-9  # a probability too small to matter
ORACLE_ARMS = 12  # of an instance whose super-arms are all told apart


def gap(theta: Array, k: int) -> Array:
    """The lead of the worst arm of the best super-arm over the best arm outside, 0 where they tie.

    Args:
        theta: float (n,), means of the arms.
        k: size of a super-arm, a Python int in 1..n-1.

    Returns:
        float (), at least 0: also the lead of the best super-arm over the second best.

    Raises:
        ValueError: `theta` is no vector or `k` is out of range.

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama, Polynomial-time algorithms for multiple-arm identification with
    full-bandit feedback: Delta_min, where "arg min" is printed for the minimum.
    """
    require(jnp.ndim(theta) == 1, "theta", "have shape (n,)", jnp.shape(theta))
    n = jnp.shape(theta)[0]
    require(1 <= k <= n - 1, "k", f"lie in 1..{n - 1}", k)
    ranked, _ = lax.top_k(jnp.asarray(theta), k + 1)
    return ranked[k - 1] - ranked[k]


def rho(design: Design, k: int, *, method: Method = "enumerate") -> Array:
    """The largest |chi_M|^2 in Lambda^-1 over all super-arms M, in the design or not.

    Args:
        design: `make_design(support, k)`.
        k: size of a super-arm, a Python int.
        method: "enumerate" tries all super-arms; "greedy" is a lower bound by peeling, in O(n^2); "spectral" is the
            upper bound k lambda_max(Lambda^-1).

    Returns:
        float (), at least n if every super-arm is in the design.

    Raises:
        ValueError: `method` is unknown, `k` does not fit, or there are more than 5e6 super-arms to try.

    Source: Kuroki et al., Theorem 3.
    """
    check_design(design, k)
    require(method in get_args(Method), "method", f"be one of {get_args(Method)}", method)
    if method == "enumerate":
        return largest_squared_norm(design.inverse, superarm_table(design.support.shape[1], k))
    if method == "greedy":
        return quadratic_maximization(design.inverse, k, reduction="exact").value
    return k * largest_eigenvalue(design.inverse)


def rho_independent(design: Design, k: int) -> Array:
    """The largest squared width of a difference of two super-arms if every arm has a width of its own.

    Args:
        design: `make_design(support, k)`.
        k: size of a super-arm, a Python int.

    Returns:
        float (): the square of the sum of the 2 min(k, n-k) largest roots of diagonal entries of Lambda^-1.

    Raises:
        ValueError: `k` does not fit the design.

    Source: Kuroki et al., rho' of Lemma 3.
    """
    check_design(design, k)
    n = design.support.shape[1]
    widest, _ = lax.top_k(jnp.sqrt(jnp.diagonal(design.inverse)), 2 * min(k, n - k))
    return widest.sum() ** 2


def hardness(rho: Array | float, gap: Array | float, epsilon: Array | float) -> Array:
    """H = rho / (gap + epsilon)^2, which stopping times follow up to logarithms.

    Args:
        rho: float (), of `rho`, or of `rho_independent` for `icb`.
        gap: float (), of `gap`.
        epsilon: float (), admitted loss, at least 0.

    Returns:
        float (), infinite where gap and epsilon are both 0.

    Source: Kuroki et al., Theorem 3 and Lemma 3.
    """
    require_not_negative("epsilon", epsilon)
    rho = jnp.asarray(rho)
    return rho / (jnp.asarray(gap, rho.dtype) + jnp.asarray(epsilon, rho.dtype)) ** 2


def saqm_bound(
    hardness: Array | float,
    n: int,
    k: int,
    *,
    delta: Array | float,
    sigma: Array | float | None = None,
    alpha: Array | float = 0.9,
) -> Array:
    """What SAQM's pulls exceed with probability at most delta: the largest t <= (3 + 1/alpha)^2 C_t^2 H.

    Args:
        hardness: float (), H = `hardness(rho(design, k), ...)`.
        n: number of arms, a Python int.
        k: size of a super-arm, a Python int.
        delta: () in (0, 1).
        sigma: () > 0; k by default.
        alpha: () in (0, 1], the ratio of the norms that `saqm` is given.

    Returns:
        float (), at least 1, not rounded.

    Raises:
        ValueError: an argument is out of range.

    Source: Kuroki et al., the proof of Theorem 3.
    """
    # ERRATUM: the closed form of Corollary 1 bounds log sqrt(t) where log t stands, and is too small for that.
    require((known(alpha) > 0) & (known(alpha) <= 1), "alpha", "lie in (0, 1]", alpha)
    hardness = jnp.asarray(hardness)
    scale = (3 + 1 / jnp.asarray(alpha, hardness.dtype)) ** 2 * hardness
    return _largest_time(lambda t: scale * ellipsoid_radius(t, n, k, delta, sigma) ** 2, scale.dtype)


def icb_bound(
    hardness: Array | float,
    n: int,
    k: int,
    *,
    delta: Array | float,
    sigma: Array | float | None = None,
    width: Width = "lemma1",
) -> Array:
    """What ICB's pulls exceed with probability at most delta: the largest t <= 4 C_t^2 H'.

    Args:
        hardness: float (), H' = `hardness(rho_independent(design, k), ...)`.
        n: number of arms, a Python int.
        k: size of a super-arm, a Python int.
        delta: () in (0, 1).
        sigma: () > 0; k by default.
        width: "lemma1" or "ellipsoid", as `icb` is given it.

    Returns:
        float (), at least 1, not rounded.

    Raises:
        ValueError: an argument is out of range.

    Source: Kuroki et al., the proof of Lemma 3.
    """
    require(width in get_args(Width), "width", f"be one of {get_args(Width)}", width)
    radius = lemma1_radius if width == "lemma1" else ellipsoid_radius
    hardness = jnp.asarray(hardness)
    return _largest_time(lambda t: 4 * hardness * radius(t, n, k, delta, sigma) ** 2, hardness.dtype)


def mean_field_time(
    rule: Rule,
    design: Design,
    theta: Array,
    k: int,
    *,
    delta: Array | float,
    epsilon: Array | float,
    sigma: Array | float | None = None,
    **options: Any,
) -> Array:
    """When a rule stops if the estimate is the truth and the counts follow the shares exactly.

    It is the least t at which the rule holds for theta_hat = theta and A_t = t Lambda, as a real number. The mean of
    SAQM's stopping time is within 0.3 % of it where one pair of arms decides, up to 5 % above where several nearly tie.
    For "sa_foa" it is the mean over the lotteries.

    Args:
        rule: "saqm", "icb", "exhaustive", "spectral" or "sa_foa".
        design: `make_design(support, k)`.
        theta: float (n,), the true means.
        k: size of a super-arm, a Python int.
        delta: () in (0, 1).
        epsilon: () >= 0, admitted loss; positive for "sa_foa".
        sigma: () > 0; k by default.
        **options: of the factory of that name: `alpha` and `reduction` for "saqm", `width` and `feasible` for "icb",
            `superarms` for "exhaustive", `draws`, `threshold`, `mode`, `reduction` and `first_test` for "sa_foa".

    Returns:
        float (), at least 1; infinite where the rule never holds.

    Raises:
        ValueError: an argument is out of range or `rule` is unknown.

    Cost: 60 tests of the rule, which is monotone in t. That of "sa_foa" is not: it is looked at every 0.2 % of t.

    Source: ours, from the stopping rules of Kuroki, Xu, Miyauchi, Honda and Sugiyama (2020).
    """
    require(rule in get_args(Rule), "rule", f"be one of {get_args(Rule)}", rule)
    check_run(design, k, delta=delta, epsilon=epsilon, sigma=sigma)
    n, dtype = design.support.shape[1], design.inverse.dtype
    require(jnp.shape(theta) == (n,), "theta", f"have shape ({n},)", jnp.shape(theta))
    theta = jnp.asarray(theta, dtype)
    if rule == "sa_foa":
        return _sa_foa_time(design, theta, k, delta=delta, epsilon=epsilon, sigma=sigma, **options)
    look: Callable[..., Look] = {
        "saqm": saqm_rule,
        "icb": icb_rule,
        "exhaustive": exhaustive_rule,
        "spectral": spectral_rule,
    }[rule]
    certain = design.spectral if rule == "spectral" else design.inverse

    def holds(log_t: Array) -> Array:
        t = jnp.exp(log_t)
        return look(certain / t, theta, t, k=k, delta=delta, epsilon=epsilon, sigma=sigma, **options).stop

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        fails, stops = ends
        middle = (fails + stops) / 2
        is_over = holds(middle)
        return jnp.where(is_over, fails, middle), jnp.where(is_over, middle, stops)

    end = jnp.log(jnp.asarray(LARGEST_TIME, dtype))
    _, stops = lax.fori_loop(0, HALVINGS, halve, (jnp.zeros((), dtype), end))
    return jnp.where(stops < end, jnp.exp(stops), jnp.inf)


def oracle_time(
    theta: ArrayLike,
    k: int,
    *,
    variance: float | None = None,
    support: ArrayLike | None = None,
    steps: int = 1000,
) -> float:
    """The best constant before log(1/delta) that any design could have, for Gaussian noise and up to a factor 2.

    It is the minimum over the shares p of the maximum over M of v |chi_M* - chi_M|^2 / (theta(M*) - theta(M))^2,
    norms in Lambda(p)^-1 and v the variance of a pull.

    Args:
        theta: float (n,), the true means, n <= 12, concrete.
        k: size of a super-arm, in 2..n-1.
        variance: v, positive; k by default, for arms of variance 1.
        support: 0/1 (s, n), what may be pulled; all super-arms by default.
        steps: iterations of the solver.

    Returns:
        What the shares found attain, some 0.5 % above the minimum; infinite where the best super-arm is not unique.

    Raises:
        ValueError: an argument is out of range.

    Cost: O(K s n) a step, with K = C(n, k).

    Source: the characteristic time of Soare, Lazaric and Munos (2014), over super-arms.
    """
    values = np.asarray(theta, np.float64)
    require(
        values.ndim == 1 and values.size <= ORACLE_ARMS, "theta", f"have shape (n,), n <= {ORACLE_ARMS}", values.shape
    )
    v = float(k if variance is None else variance)
    require(v > 0, "variance", "be positive", variance)
    rows = all_superarms(values.size, k)
    best = np.argmax(rows @ values)
    changes = rows[best].astype(np.float64) - np.delete(rows, best, axis=0)
    # From the differences: sums over super-arms that tie differ in their last digits.
    leads = changes @ values
    if leads.min() <= 0:
        return float("inf")
    scaled = np.sqrt(v) * changes / leads[:, None]
    return xy_allocation(rows if support is None else support, k=k, directions=scaled, steps=steps).value


def _sa_foa_time(
    design: Design,
    theta: Array,
    k: int,
    *,
    delta: Array | float,
    epsilon: Array | float,
    sigma: Array | float | None,
    draws: int = 1,
    threshold: Array | float = 0.5,
    mode: Mode = "random",
    reduction: Reduction = "paper",
    first_test: Array | int | None = None,
) -> Array:
    require_positive("epsilon", epsilon)
    (s, n), dtype = design.support.shape, theta.dtype
    require(draws >= 1, "draws", "be at least 1", draws)
    require(known(threshold) > 0, "threshold", "be positive", threshold)
    require(mode in get_args(Mode), "mode", f"be one of {get_args(Mode)}", mode)
    require(reduction in get_args(Reduction), "reduction", f"be one of {get_args(Reduction)}", reduction)
    require(first_test is None or known(first_test) >= s, "first_test", f"be at least {s}, one pull each", first_test)
    bar = jnp.asarray(threshold, dtype) * jnp.asarray(epsilon, dtype)

    def advance(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        t, survival, mean = carry
        rivals = surrogates(
            design.inverse / t, theta, t, support=design.support, k=k, delta=delta, sigma=sigma, reduction=reduction
        )
        blocking = jnp.sum(rivals.leads > bar)
        if mode == "all":
            blocking = jnp.where(blocking > 0, s, 0)
        hazard = lottery_hazard(blocking, s=s, samples=draws * n, dtype=dtype)
        step = jnp.ceil(0.002 * t)
        # Of the tests at t, t + 1, ..., t + step - 1, how many fail before the first that does not.
        failing = jnp.where(hazard > 0, -jnp.expm1(-hazard * step) / jnp.expm1(hazard), step)
        return t + step, survival * jnp.exp(-hazard * step), mean + survival * failing

    def may_go_on(carry: tuple[Array, Array, Array]) -> Array:
        t, survival, _ = carry
        return (survival > SURVIVING) & (t < LARGEST_TIME)

    first = jnp.asarray(s if first_test is None else first_test, dtype)
    t, _, mean = lax.while_loop(may_go_on, advance, (first, jnp.ones((), dtype), first))
    return jnp.where(t < LARGEST_TIME, mean, jnp.inf)


def _largest_time(bound: Callable[[Array], Array], dtype: Any) -> Array:
    """The largest t >= 1 with t <= bound(t), where bound grows as log t: iterated from above, 1 if there is none."""
    start = jnp.asarray(LARGEST_TIME, dtype)
    return lax.fori_loop(0, 200, lambda _, t: jnp.maximum(bound(t), 1), start)
