"""What a kernel lets be learnt, confidence widths, and the paper's bounds on regret and communication.

N agents ask for T rounds. gamma_n is the most that n observations can tell of f, (1/2) log det(I + K / ridge), in nats.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.checks import known, require, require_not_negative, require_positive
from jaxbandits.kernel.problem import check_candidates, check_size
from jaxbandits.numerics import gp
from jaxbandits.numerics.cholesky import cholesky

LEAST_P0 = 32 / 3  # what Lemma A.2 needs in place of the 72 that is printed


class Orders(NamedTuple):
    """What regret and communication grow like, up to constants and logarithms: for lines in a plot."""

    duets_regret: Array  # sqrt(NT gamma)
    duets_communication: Array  # gamma
    approx_regret: Array  # sqrt(NT) gamma, of ApproxDisKernelUCB
    approx_communication: Array  # N gamma^3


def information_gain(gram: Array, ridge: Array | float) -> Array:
    """What observations at n points tell of f: (1/2) log det(I + K / ridge).

    Args:
        gram: K, float (n, n), with one row for every observation, repeats included.
        ridge: variance of the noise, () > 0.

    Returns:
        float (), in nats. Cost: O(n^3).

    Raises:
        ValueError: `gram` is not square, or `ridge` is not positive.

    Source: Srinivas, Krause, Kakade and Seeger (2010); Pavlovic, Salgia and Zhao (2024), Section 2.
    """
    return gp.information_gain(_check_gram(gram), _positive("ridge", ridge))


def greedy_information_gain(candidates: Array, kernel: gp.Kernel, ridge: Array | float, n: int) -> Array:
    """The information gain of 1, 2, .., n observations, each where the variance is largest.

    Args:
        candidates: float (M, d).
        kernel: of a single pair.
        ridge: variance of the noise, () > 0.
        n: observations; a candidate may be observed again.

    Returns:
        float (n,), in nats: increasing, by less and less, and at least 1 - 1/e of gamma_1, .., gamma_n.
        Cost: O(n^2 M), and memory for n M numbers.

    Raises:
        ValueError: an argument is out of range.

    Source: Krause, Singh and Guestrin (2008); Srinivas, Krause, Kakade and Seeger (2010), Section 5.
    """
    candidates = check_candidates(candidates)
    require(callable(kernel), "kernel", "be a function of two points", kernel)
    check_size("n", n)
    ridge = jnp.asarray(_positive("ridge", ridge), candidates.dtype)
    nothing = jnp.zeros((), candidates.dtype)

    def observe(carry: tuple[gp.Posterior, Array], i: Array) -> tuple[tuple[gp.Posterior, Array], Array]:
        posterior, rows = carry
        a = jnp.argmax(posterior.variance)
        column = gp.cross(kernel, candidates, candidates[a][None])[:, 0] - gp.explained(rows, rows[:, a])
        posterior, row = gp.condition(posterior, column, a, nothing, ridge)
        return (posterior, rows.at[i].set(row)), posterior.log_det / 2

    rows = jnp.zeros((n, candidates.shape[0]), candidates.dtype)
    _, gains = lax.scan(observe, (gp.prior(kernel, candidates), rows), jnp.arange(n))
    return gains


def effective_dimension(gram: Array, ridge: Array | float) -> Array:
    """tr(K (K + ridge I)^-1), at most twice the information gain.

    Args:
        gram: K, float (n, n).
        ridge: () > 0.

    Returns:
        float (). Cost: O(n^3).

    Raises:
        ValueError: `gram` is not square, or `ridge` is not positive.

    Source: Calandriello, Carratino, Lazaric, Valko and Rosasco (2019).
    """
    gram = _check_gram(gram)
    ridge = jnp.asarray(_positive("ridge", ridge), gram.dtype)
    factor = cholesky(gram + ridge * jnp.eye(gram.shape[0], dtype=gram.dtype))
    return jnp.trace(gp.solve_spd(factor, gram))


def confidence_width(
    norm_bound: Array | float, noise_sd: Array | float, ridge: Array | float, delta: Array | float
) -> Array:
    """The beta with |f(x) - mean(x)| <= beta sd(x) at one point x: B + R sqrt(2 / ridge log(2 / delta)).

    It holds with probability 1 - delta, if no query depends on the noise.

    Args:
        norm_bound: B, of f in the kernel's space, () >= 0.
        noise_sd: R, sub-Gaussian constant of the noise, () >= 0.
        ridge: of the posterior, () > 0.
        delta: probability of failure, in (0, 1).

    Returns:
        float ().

    Raises:
        ValueError: an argument is out of range.

    Source: Pavlovic, Salgia and Zhao (2024), Lemma 2.5; Vakili et al. (2021).
    """
    _check_width(norm_bound, noise_sd, ridge, delta)
    return norm_bound + noise_sd * jnp.sqrt(2 / ridge * jnp.log(2 / delta))


def anytime_width(
    norm_bound: Array | float, noise_sd: Array | float, ridge: Array | float, delta: Array | float, log_det: Array
) -> Array:
    """The beta for all points and rounds at once, whatever the queries: B + R sqrt((log_det + 2 log(1/delta)) / ridge).

    Args:
        norm_bound: B, of f in the kernel's space, () >= 0.
        noise_sd: R, sub-Gaussian constant of the noise, () >= 0.
        ridge: of the posterior, () > 0.
        delta: probability of failure, in (0, 1).
        log_det: log det(I + K / ridge) of the observations so far, twice their information gain.

    Returns:
        float, shaped as `log_det`.

    Raises:
        ValueError: an argument is out of range.

    Source: Abbasi-Yadkori (2012), Corollary 3.15; Chowdhury and Gopalan (2017), Theorem 2.
    """
    _check_width(norm_bound, noise_sd, ridge, delta)
    return norm_bound + noise_sd * jnp.sqrt((log_det + 2 * jnp.log(1 / delta)) / ridge)


def duets_delta(delta: Array | float, n_agents: int, horizon: int, discretisation: Array | float) -> Array:
    """The probability delta' that DUETS grants to one point in one epoch: delta / (2 |U| (log log(NT) + 4)).

    Args:
        delta: of the whole run, in (0, 1).
        n_agents: N.
        horizon: T; NT >= 2.
        discretisation: |U|, the points on which the width must hold, () >= 1.

    Returns:
        float ().

    Raises:
        ValueError: an argument is out of range.

    Source: Pavlovic, Salgia and Zhao (2024), equation (9), Lemma 4.2, Appendix A.1.
    """
    _check_probability("delta", delta)
    require(known(discretisation) >= 1, "discretisation", "be at least 1", discretisation)
    queries = _queries(n_agents, horizon)
    require(queries >= 2, "horizon", "be such that n_agents * horizon >= 2", horizon)
    # (9) has log(log N log T), which is -inf for one agent; elsewhere it is log(log N + log T) = log log(NT).
    return jnp.asarray(delta / (2 * discretisation * (math.log(math.log(queries)) + 4)))


def duets_p0(delta_prime: Array | float, n_agents: int, horizon: int, constant: Array | float = 72.0) -> Array:
    """The factor p0 = constant log(4NT / delta') of the inclusion probability that DUETS' guarantee needs.

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
    _check_probability("delta_prime", delta_prime)
    return _positive("constant", constant) * jnp.log(4 * _queries(n_agents, horizon) / delta_prime)


def inducing_set_bound(
    p0: Array | float, gamma: Array | float, delta_prime: Array | float, spread: Array | float
) -> Array:
    """The most inducing points of an epoch of DUETS, with probability 1 - delta': (3 + log(1/delta')) p0 C gamma.

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
    # The lemma omits p0, and the last line of its proof omits C.
    _check_probability("delta_prime", delta_prime)
    _check_gamma(gamma)
    return (3 + jnp.log(1 / delta_prime)) * _positive("p0", p0) * _positive("spread", spread) * gamma


def epoch_bound(n_agents: int, horizon: int) -> float:
    """The most epochs of DUETS, log2 log2 max(N, T) + 4, if its first one is at least T / N rounds long.

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
    most = max(n_agents, horizon)
    require(most >= 2, "horizon", "be at least 2 with one agent", horizon)
    return math.log2(math.log2(most)) + 4


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
    """The bound on DUETS' regret: M_f (2 B N T_1 + 8 J sqrt(C) beta sqrt(NT gamma) + 4 B N).

    Args:
        norm_bound: B, () >= 0.
        components: M_f, the most connected components of a level set of f.
        spread: C with max variance <= C gamma_n / n after n uniform draws, () > 0.
        beta: `confidence_width` at delta', () >= 0.
        gamma: gamma_NT, () >= 0.
        n_agents: N.
        horizon: T.
        first_epoch: T_1.
        epochs: J, for instance `epoch_bound`.

    Returns:
        float (), a total over agents and rounds.

    Raises:
        ValueError: an argument is out of range.

    Source: Pavlovic, Salgia and Zhao (2024), Theorem 4.1 and its proof.
    """
    # Lemma 4.2 has the largest variance of epoch j over the active set of epoch j - 1: it is that of epoch j - 1.
    require_not_negative("norm_bound", norm_bound)
    check_size("components", components)
    require_not_negative("beta", beta)
    _check_gamma(gamma)
    queries = _queries(n_agents, horizon)
    check_size("first_epoch", first_epoch)
    require(first_epoch <= horizon, "first_epoch", f"be at most the horizon, {horizon}", first_epoch)
    epochs = _positive("epochs", epochs)
    learning = 8 * epochs * jnp.sqrt(_positive("spread", spread)) * beta * jnp.sqrt(queries * gamma)
    return components * (2 * norm_bound * n_agents * first_epoch + learning + 4 * norm_bound * n_agents)


def information_gain_order(n: Array | float, *, dimension: int, nu: float | None = None) -> Array:
    """What gamma_n grows like: log^(d+1) n, or for Matern kernels n^(d / (2 nu + d)), up to logarithms.

    Args:
        n: observations, () or more, each at least 1.
        dimension: d.
        nu: smoothness of a Matern kernel; None: the squared exponential.

    Returns:
        float, shaped as `n`.

    Raises:
        ValueError: an argument is out of range.

    Source: Vakili, Khezeli and Picheny (2021).
    """
    check_size("dimension", dimension)
    require(known(n) >= 1, "n", "be at least 1", n)
    n = jnp.asarray(n, jnp.result_type(float))
    if nu is None:
        return jnp.log(n) ** (dimension + 1)
    return n ** (dimension / (2 * _positive("nu", nu) + dimension))


def orders(gamma: Array | float, *, n_agents: int, horizon: int) -> Orders:
    """What regret and communication of DUETS and ApproxDisKernelUCB grow like.

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
    # The paper remarks that DUETS' communication is O(log^d(NT)) with a squared exponential kernel: one logarithm
    # less than the known bound of gamma.
    _check_gamma(gamma)
    queries = _queries(n_agents, horizon)
    gamma = jnp.asarray(gamma, jnp.result_type(float))
    return Orders(jnp.sqrt(queries * gamma), gamma, queries**0.5 * gamma, n_agents * gamma**3)


def _check_width(
    norm_bound: Array | float, noise_sd: Array | float, ridge: Array | float, delta: Array | float
) -> None:
    require_not_negative("norm_bound", norm_bound)
    require_not_negative("noise_sd", noise_sd)
    _positive("ridge", ridge)
    _check_probability("delta", delta)


def _check_probability(name: str, value: Array | float) -> None:
    require((known(value) > 0) & (known(value) < 1), name, "lie in (0, 1)", value)


def _check_gamma(gamma: Array | float) -> None:
    require_not_negative("gamma", gamma)


def _check_gram(gram: Array) -> Array:
    shape = jnp.shape(gram)
    require(len(shape) == 2 and shape[0] == shape[1] >= 1, "gram", "be a square matrix", shape)
    return jnp.asarray(gram)


def _positive(name: str, value: Array | float) -> Array | float:
    require_positive(name, value)
    return value


def _queries(n_agents: int, horizon: int) -> int:
    check_size("n_agents", n_agents)
    check_size("horizon", horizon)
    return n_agents * horizon
