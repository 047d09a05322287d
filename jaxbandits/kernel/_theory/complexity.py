"""Confidence widths, and the paper's bounds on the regret and the communication of DUETS.

N agents query for T rounds. gamma_n is the information gain of n observations, see `information_gain`.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Array

LEAST_P0 = 32 / 3  # smallest constant for Lemma A.2, instead of the printed 72


class Orders(NamedTuple):
    """Orders of regret and communication, up to constants and logarithms: for lines in a plot."""

    duets_regret: Array  # sqrt(NT gamma)
    duets_communication: Array  # gamma
    approx_regret: Array  # sqrt(NT) gamma, of ApproxDisKernelUCB
    approx_communication: Array  # N gamma^3


def confidence_width(
    norm_bound: Array | float, noise_scale: Array | float, noise_variance: Array | float, delta: Array | float
) -> Array:
    """Computes beta with |f(x) - mean(x)| <= beta sd(x) at one point x: B + R sqrt(2 / noise_variance log(2 / delta)).

    It holds with probability 1 - delta, if no query depends on the noise.

    Args:
        norm_bound: B, of f in the kernel's space, () >= 0.
        noise_scale: R, sub-Gaussian constant of the noise, () >= 0.
        noise_variance: of the posterior, () > 0.
        delta: probability of failure, in (0, 1).

    Returns:
        float ().

    Raises:
        ValueError: an argument is out of range.

    Source: Pavlovic, Salgia and Zhao (2024), Lemma 2.5; Vakili et al. (2021).
    """
    _check_width(norm_bound, noise_scale, noise_variance, delta)
    return norm_bound + noise_scale * jnp.sqrt(2 / noise_variance * jnp.log(2 / delta))


def anytime_width(
    norm_bound: Array | float,
    noise_scale: Array | float,
    noise_variance: Array | float,
    delta: Array | float,
    log_det: Array,
) -> Array:
    """Computes beta for all points and rounds at once, for any queries.

    It is B + R sqrt((log_det + 2 log(1 / delta)) / noise_variance).

    Args:
        norm_bound, noise_scale, noise_variance, delta: as for `confidence_width`.
        log_det: log det(I + K / noise_variance) of the observations so far, twice their information gain, >= 0.

    Returns:
        float, shaped as `log_det`.

    Raises:
        ValueError: an argument is out of range.

    Source: Abbasi-Yadkori (2012), Corollary 3.15; Chowdhury and Gopalan (2017), Theorem 2.
    """
    _check_width(norm_bound, noise_scale, noise_variance, delta)
    log_det = checks.array("log_det", log_det, ("...",), least=0)
    return norm_bound + noise_scale * jnp.sqrt((log_det + 2 * jnp.log(1 / delta)) / noise_variance)


def duets_delta(delta: Array | float, n_agents: int, horizon: int, discretisation: Array | float) -> Array:
    """Computes delta', DUETS' probability of error at one point in one epoch: delta / (2 |U| (log log(NT) + 4)).

    Args:
        delta: probability of error of the whole run, in (0, 1).
        n_agents: N.
        horizon: T; NT >= 2.
        discretisation: |U|, the points on which the width must hold, () >= 1.

    Returns:
        float ().

    Raises:
        ValueError: an argument is out of range.

    Source: Pavlovic, Salgia and Zhao (2024), equation (9), Lemma 4.2, Appendix A.1.
    """
    checks.probability("delta", delta)
    queries = _queries(n_agents, horizon)
    checks.real("discretisation", discretisation, least=1)
    checks.require(queries >= 2, "horizon", "be such that n_agents * horizon >= 2", horizon)
    # (9) has log(log N log T), which is -inf for one agent; elsewhere it is log(log N + log T) = log log(NT).
    return jnp.asarray(delta / (2 * discretisation * (math.log(math.log(queries)) + 4)))


def duets_p0(delta_prime: Array | float, n_agents: int, horizon: int, constant: Array | float = 72.0) -> Array:
    """Computes the factor p0 = constant log(4NT / delta') of the inclusion probability in DUETS' guarantee.

    Args:
        delta_prime: in (0, 1), see `duets_delta`.
        n_agents: N.
        horizon: T.
        constant: () > 0; as printed, 72. The paper's own Lemma A.2 needs no more than `LEAST_P0`.

    Returns:
        float (), far above the 10 of the paper's experiments.

    Raises:
        ValueError: an argument is out of range.

    Source: Pavlovic, Salgia and Zhao (2024), Algorithm 1; with delta and without T in Lemma 4.5.
    """
    checks.probability("delta_prime", delta_prime)
    queries = _queries(n_agents, horizon)
    return checks.positive("constant", constant) * jnp.log(4 * queries / delta_prime)


def inducing_set_bound(
    p0: Array | float, gamma: Array | float, delta_prime: Array | float, spread: Array | float
) -> Array:
    """Bounds the inducing points of an epoch of DUETS, with probability 1 - delta': (3 + log(1/delta')) p0 C gamma.

    Args:
        p0: factor of the inclusion probability, () > 0.
        gamma: gamma_NT, () >= 0.
        delta_prime: in (0, 1).
        spread: C with max variance <= C gamma_n / n after n uniform draws, () > 0.

    Returns:
        float ().

    Raises:
        ValueError: an argument is out of range.

    Source: Pavlovic, Salgia and Zhao (2024), Lemma 4.5.
    """
    checks.positive("p0", p0)
    checks.not_negative("gamma", gamma)
    checks.probability("delta_prime", delta_prime)
    checks.positive("spread", spread)
    # The lemma omits p0, and the last line of its proof omits C.
    return (3 + jnp.log(1 / delta_prime)) * p0 * spread * gamma


def epoch_bound(n_agents: int, horizon: int) -> float:
    """Bounds the epochs of DUETS, log2 log2 max(N, T) + 4, if the first one has at least T / N rounds.

    A first epoch of 2 rounds with N = 10 and T = 50 is shorter; there are 4 epochs all the same.

    Args:
        n_agents: N.
        horizon: T; one of the two at least 2.

    Returns:
        A float.

    Raises:
        ValueError: an argument is out of range.

    Source: Pavlovic, Salgia and Zhao (2024), Appendix A, whose logarithms are to base 2.
    """
    _queries(n_agents, horizon)
    larger = max(n_agents, horizon)
    checks.require(larger >= 2, "horizon", "be at least 2 with one agent", horizon)
    return math.log2(math.log2(larger)) + 4


def duets_regret_bound(
    *,
    norm_bound: Array | float,
    components: int,
    spread: Array | float,
    beta: Array | float,
    gamma: Array | float,
    n_agents: int,
    horizon: int,
    first_epoch: int,
    epochs: Array | float,
) -> Array:
    """Bounds DUETS' regret: M_f (2 B N T_1 + 8 J sqrt(C) beta sqrt(NT gamma) + 4 B N).

    Args:
        norm_bound: B, () >= 0.
        components: M_f, an integer, the most connected components of a level set of f.
        spread: C with max variance <= C gamma_n / n after n uniform draws, () > 0.
        beta: `confidence_width` at delta', () >= 0.
        gamma: gamma_NT, () >= 0.
        n_agents: N.
        horizon: T.
        first_epoch: T_1.
        epochs: J, () > 0, for instance `epoch_bound`.

    Returns:
        float (), a total over agents and rounds.

    Raises:
        ValueError: an argument is out of range.

    Source: Pavlovic, Salgia and Zhao (2024), Theorem 4.1 and its proof.
    """
    checks.not_negative("norm_bound", norm_bound)
    checks.whole("components", components, least=1)
    checks.positive("spread", spread)
    checks.not_negative("beta", beta)
    checks.not_negative("gamma", gamma)
    queries = _queries(n_agents, horizon)
    checks.whole("first_epoch", first_epoch, least=1, most=horizon)
    checks.positive("epochs", epochs)
    # Lemma 4.2 has the largest variance of epoch j over the active set of epoch j - 1: epoch j - 1 is meant.
    learning = 8 * epochs * jnp.sqrt(spread) * beta * jnp.sqrt(queries * gamma)
    return components * (2 * norm_bound * n_agents * first_epoch + learning + 4 * norm_bound * n_agents)


def orders(gamma: Array | float, *, n_agents: int, horizon: int) -> Orders:
    """Computes the orders of regret and communication of DUETS and ApproxDisKernelUCB.

    Args:
        gamma: gamma_NT, () or more, each >= 0.
        n_agents: N.
        horizon: T.

    Returns:
        Orders, shaped as `gamma`.

    Raises:
        ValueError: an argument is out of range.

    Source: Pavlovic, Salgia and Zhao (2024), Theorem 4.1; Li, Wang, Wang and Wang (2022).
    """
    gamma = jnp.asarray(checks.array("gamma", gamma, ("...",), least=0), jnp.result_type(float))
    queries = _queries(n_agents, horizon)
    # The paper remarks that DUETS' communication is O(log^d(NT)) with a squared exponential kernel: one logarithm
    # less than the known bound of gamma.
    return Orders(jnp.sqrt(queries * gamma), gamma, queries**0.5 * gamma, n_agents * gamma**3)


def _check_width(norm_bound: Any, noise_scale: Any, noise_variance: Any, delta: Any) -> None:
    checks.not_negative("norm_bound", norm_bound)
    checks.not_negative("noise_scale", noise_scale)
    checks.positive("noise_variance", noise_variance)
    checks.probability("delta", delta)


def _queries(n_agents: int, horizon: int) -> int:
    """Returns N T, both checked."""
    return checks.whole("n_agents", n_agents, least=1) * checks.whole("horizon", horizon, least=1)
