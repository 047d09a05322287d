"""Stopping times without noise: the rules at an estimate that is the truth."""

from typing import Any, Literal

import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import require
from jaxbandits.fullbandit._algorithms.exhaustive import exhaustive_rule
from jaxbandits.fullbandit._algorithms.icb import icb_rule
from jaxbandits.fullbandit._algorithms.sa_foa import Mode, check_sampling, lottery_hazard
from jaxbandits.fullbandit._algorithms.saqm import saqm_rule
from jaxbandits.fullbandit._algorithms.spectral import spectral_rule
from jaxbandits.fullbandit._problem.design import Design
from jaxbandits.fullbandit._problem.instances import Instance, check_instance
from jaxbandits.fullbandit._shared.surrogates import find_surrogates
from jaxbandits.fullbandit._shared.tracking import Estimate, check_rule
from jaxbandits.fullbandit._theory.complexity import LARGEST_TIME
from jaxbandits.numerics.densest_subgraph import Reduction

Rule = Literal["saqm", "icb", "exhaustive", "spectral", "sa_foa"]

RULES = {"saqm": saqm_rule, "icb": icb_rule, "exhaustive": exhaustive_rule, "spectral": spectral_rule}
OPTIONS = {
    "saqm": ("alpha", "reduction"),
    "icb": ("radius", "feasible"),
    "exhaustive": ("superarms",),
    "spectral": (),
    "sa_foa": ("samples", "threshold", "mode", "reduction", "first_test"),
}
# Halvings of an interval of logarithms of length 69: down to the last digit of a float64.
HALVINGS = 60
SURVIVING = 1e-9  # probability of running on below which the rest of a mean is ignored
STEP = 0.002  # share of t between two evaluations of SA-FOA's surrogates


def mean_field_time(
    rule: Rule,
    design: Design,
    instance: Instance,
    *,
    delta: Array | float,
    epsilon: Array | float,
    noise_scale: Array | float = 1.0,
    **options: Any,
) -> Array:
    """Computes the stopping time of a rule if the estimate is the truth and the counts follow the shares exactly.

    It is the smallest t at which the rule holds for theta_hat = theta and A_t = t Lambda, as a real number. The mean of
    SAQM's stopping time is within 0.3 % of it if one pair of arms decides, and up to 5 % above if several nearly tie.
    For "sa_foa" it is the mean over the lotteries.

    Args:
        rule: "saqm", "icb", "exhaustive", "spectral" or "sa_foa".
        design: the tracked design.
        instance: the truth; its own noise_scale has no influence.
        delta: () in (0, 1).
        epsilon: () >= 0, allowed loss; positive for "sa_foa".
        noise_scale: () > 0, the learner's, as in `icb`.
        **options: arguments of the factory of that name: `alpha` and `reduction` for "saqm", `radius` and `feasible`
            for "icb", `superarms` for "exhaustive"; `samples`, `threshold`, `mode`, `reduction` and `first_test` for
            "sa_foa".

    Returns:
        float (), at least 1; infinite if the rule never holds.

    Raises:
        ValueError: an argument is out of range, or `rule` or an option is unknown.

    Cost: 60 tests of the rule, which is monotone in t. "sa_foa" is not: its rivals are computed at every 0.2 % of t.

    Source: ours, from the stopping rules of Kuroki, Xu, Miyauchi, Honda and Sugiyama (2020).
    """
    checks.one_of("rule", rule, Rule)
    check_rule(design, delta=delta, epsilon=epsilon, noise_scale=noise_scale)
    n, dtype = design.support.shape[1], design.inverse.dtype
    theta = check_instance(instance)
    checks.one_size(**{"instance.theta": (theta.size, theta), "design": (n, design)})
    checks.one_size(**{"instance.k": (instance.k, instance.k), "design.k": (design.k, design.k)})
    unknown = [name for name in options if name not in OPTIONS[rule]]
    require(not unknown, "options", f"be among {OPTIONS[rule]} for {rule}", unknown)
    theta = theta.astype(dtype)
    settings = {"delta": delta, "epsilon": epsilon, "noise_scale": noise_scale}
    if rule == "sa_foa":
        return _sa_foa_time(design, theta, **settings, **options)

    def holds(log_t: Array) -> Array:
        t = jnp.exp(log_t)
        return RULES[rule](design, Estimate(theta, design.inverse / t, t), t, **settings, **options).stop

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        fails, stops = ends
        middle = (fails + stops) / 2
        is_over = holds(middle)
        return jnp.where(is_over, fails, middle), jnp.where(is_over, middle, stops)

    end = jnp.log(jnp.asarray(LARGEST_TIME, dtype))
    _, stops = lax.fori_loop(0, HALVINGS, halve, (jnp.zeros((), dtype), end))
    return jnp.where(stops < end, jnp.exp(stops), jnp.inf)


def _sa_foa_time(
    design: Design,
    theta: Array,
    *,
    delta: Array | float,
    epsilon: Array | float,
    noise_scale: Array | float,
    samples: int = 1,
    threshold: Array | float = 0.5,
    mode: Mode = "random",
    reduction: Reduction = "paper",
    first_test: Array | int | None = None,
) -> Array:
    check_sampling(epsilon=epsilon, samples=samples, threshold=threshold, mode=mode, reduction=reduction)
    (s, n), dtype = design.support.shape, theta.dtype
    if first_test is not None:
        checks.integer("first_test", first_test, least=s)
    bar = jnp.asarray(threshold, dtype) * jnp.asarray(epsilon, dtype)

    def advance(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        t, survival, mean = carry
        estimate = Estimate(theta, design.inverse / t, t)
        rivals = find_surrogates(design, estimate, t, delta=delta, noise_scale=noise_scale, reduction=reduction)
        blocking = jnp.sum(rivals.leads > bar)
        if mode == "all":
            blocking = jnp.where(blocking > 0, s, 0)
        hazard = lottery_hazard(blocking, s=s, size=samples * n, dtype=dtype)
        step = jnp.ceil(STEP * t)
        # Mean number of the tests at t, t + 1, ..., t + step - 1 that fail before the first that does not.
        failing = jnp.where(hazard > 0, -jnp.expm1(-hazard * step) / jnp.expm1(hazard), step)
        return t + step, survival * jnp.exp(-hazard * step), mean + survival * failing

    def may_go_on(carry: tuple[Array, Array, Array]) -> Array:
        t, survival, _ = carry
        return (survival > SURVIVING) & (t < LARGEST_TIME)

    first = jnp.asarray(s if first_test is None else first_test, dtype)
    t, _, mean = lax.while_loop(may_go_on, advance, (first, jnp.ones((), dtype), first))
    return jnp.where(t < LARGEST_TIME, mean, jnp.inf)
