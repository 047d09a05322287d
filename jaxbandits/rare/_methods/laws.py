"""Likelihood ratios of one arm's rewards, averaged over conjugate laws of its mean.

A component draws the mean of an arm from a conjugate law. The ratio of the rewards' density under the component to
their density under the true mean depends on the arm's number of pulls N and sum of rewards S alone:

| kind | mean of the arm | `first`, `second` | point |
| --- | --- | --- | --- |
| gaussian | mu + o + tau Z, Z standard normal | o, tau | tau = 0 |
| bernoulli | Beta(p c, (1 - p) c) | p, c | c = inf |
| poisson | Gamma of mean m and shape a | m, a | a = inf |
| exponential | 1 / Gamma of mean 1 / m and shape a | m, a | a = inf |

A point is a fixed mean. All functions run on the host in 64 bit, and their arguments broadcast.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from jaxbandits.checks import require

Kind = Literal["gaussian", "bernoulli", "poisson", "exponential"]
SCALES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)
SMALLEST_SPREAD = 0.3  # smallest variance of a component, relative to the variance of the arm's empirical mean
CONCENTRATIONS = (1.0, 1e6)
SHAPES = (0.5, 1e6)


class Arms(NamedTuple):
    """The law of the rewards of K independent arms."""

    kind: Kind  # family of the rewards
    means: np.ndarray  # float64 (K,)   the truth
    scale: float = 1.0  # standard deviation of a Gaussian reward, in units of reward


class Table(NamedTuple):
    """Parameters of conjugate laws, as in the table of this module."""

    first: np.ndarray  # float64 (..., K)
    second: np.ndarray  # float64 (..., K)


def log_ratio(arms: Arms, table: Table, counts: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Computes the log of the likelihood ratio of every arm's rewards, averaged over a law of its mean.

    Args:
        arms: the truth.
        table: float64 (..., K), laws of the means.
        counts: float64 (..., K), pulls of each arm.
        sums: float64 (..., K), sums of rewards, in units of reward.

    Returns:
        float64 (..., K), 0 where an arm was not pulled.

    Source: Robbins (1970), Statistical methods related to the law of the iterated logarithm, for mixtures; the
    marginals are textbook formulas, checked by quadrature.
    """
    N, S = np.asarray(counts, np.float64), np.asarray(sums, np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = _LOG_RATIOS[arms.kind](arms, table.first, table.second, N, S)
    return np.where(N == 0, 0.0, value)


def _gaussian(arms: Arms, o: np.ndarray, tau: np.ndarray, N: np.ndarray, S: np.ndarray) -> np.ndarray:
    # One fraction instead of the difference of two squares, which would cancel for many pulls.
    variance = arms.scale**2
    D, spread = S - N * arms.means, tau**2 / variance
    growth = 1 + N * spread
    return -np.log(growth) / 2 + (D**2 * spread + 2 * D * o - N * o**2) / (2 * variance * growth)


def _bernoulli(arms: Arms, p: np.ndarray, c: np.ndarray, N: np.ndarray, S: np.ndarray) -> np.ndarray:
    from scipy.special import betaln, xlog1py, xlogy

    mu, F = arms.means, N - S
    base = xlogy(S, mu) + xlog1py(F, -mu)
    finite = np.where(np.isinf(c), 1.0, c)
    ones, zeros = p * finite, (1 - p) * finite
    # Laws at an end of [0, 1] are points, which never use the Beta law.
    drawn = betaln(ones + S, zeros + F) - betaln(ones, zeros)
    return np.where(np.isinf(c), xlogy(S, p) + xlog1py(F, -p), drawn) - base


def _poisson(arms: Arms, m: np.ndarray, a: np.ndarray, N: np.ndarray, S: np.ndarray) -> np.ndarray:
    from scipy.special import gammaln

    mu = arms.means
    finite = np.where(np.isinf(a), 1.0, a)
    rate = finite / m
    drawn = -finite * np.log1p(N / rate) - S * np.log(rate + N) + gammaln(finite + S) - gammaln(finite)
    return np.where(np.isinf(a), S * np.log(m / mu) - N * (m - mu), drawn - S * np.log(mu) + N * mu)


def _exponential(arms: Arms, m: np.ndarray, a: np.ndarray, N: np.ndarray, S: np.ndarray) -> np.ndarray:
    from scipy.special import gammaln

    mu = arms.means
    finite = np.where(np.isinf(a), 1.0, a)
    rate = finite * m
    drawn = -finite * np.log1p(S / rate) - N * np.log(rate + S) + gammaln(finite + N) - gammaln(finite)
    point = -N * np.log(m / mu) - S * (1 / m - 1 / mu)
    return np.where(np.isinf(a), point, drawn + N * np.log(mu) + S / mu)


_LOG_RATIOS: dict[str, Any] = {
    "gaussian": _gaussian,
    "bernoulli": _bernoulli,
    "poisson": _poisson,
    "exponential": _exponential,
}


def draw(arms: Arms, table: Table, random: np.random.Generator) -> np.ndarray:
    """Draws means from their laws.

    Args:
        arms: the truth.
        table: float64 (n, K), a law for each mean.
        random: the generator.

    Returns:
        float64 (n, K).
    """
    first, second = np.broadcast_arrays(table.first, table.second)
    if arms.kind == "gaussian":
        return arms.means + first + second * random.standard_normal(first.shape)
    is_point = np.isinf(second)
    spread = np.where(is_point, 1.0, second)
    if arms.kind == "bernoulli":
        inside = np.where(is_point, 0.5, first)
        drawn = random.beta(inside * spread, (1 - inside) * spread)
    else:
        drawn = random.gamma(spread) / spread
        # A Gamma variable of small shape may be rounded to 0, which is no mean.
        drawn = np.maximum(drawn, 1e-300)
        drawn = first * drawn if arms.kind == "poisson" else first / drawn
    return np.where(is_point, first, drawn)


def points(arms: Arms, means: np.ndarray) -> Table:
    """Returns the laws of fixed means, float64 (..., K)."""
    if arms.kind == "gaussian":
        return Table(means - arms.means, np.zeros_like(means))
    return Table(means, np.full_like(means, np.inf))


def dictionary(arms: Arms) -> tuple[Table, np.ndarray]:
    """Returns laws of an arm's mean from narrow to wide, below and above the truth.

    Returns:
        Table (A, K), whose first entry is the truth itself, and the signed scales of the others, float64 (A - 1,).
    """
    scales = np.array(SCALES if arms.kind == "gaussian" else SCALES[:-1])
    signed = np.concatenate([-scales, scales])
    g = np.abs(signed)[:, None]
    if arms.kind == "gaussian":
        moved = Table(arms.scale * signed[:, None] + 0 * arms.means, arms.scale * g / 2 + 0 * arms.means)
    elif arms.kind == "bernoulli":
        logit = np.log(arms.means) - np.log1p(-arms.means)
        p = 1 / (1 + np.exp(-(logit + signed[:, None])))
        moved = Table(p, 1 / (p * (1 - p) * (g / 2) ** 2))
    else:
        moved = Table(arms.means * np.exp(signed[:, None]), 4 / g**2 + 0 * arms.means)
    spike = points(arms, arms.means[None])
    return Table(*(np.concatenate(pair) for pair in zip(spike, moved, strict=True))), signed


def fit(arms: Arms, counts: np.ndarray, sums: np.ndarray, weights: np.ndarray) -> Table:
    """Computes the law of the means that explains weighted runs, by moments.

    Args:
        arms: the truth.
        counts: float64 (n, K), pulls.
        sums: float64 (n, K), sums of rewards.
        weights: float64 (n,), summing to 1.

    Returns:
        Table (K,). An arm that these runs never pulled keeps its true mean.
    """
    pulls, total = weights @ counts, weights @ sums
    safe = np.maximum(pulls, 1e-12)
    prior = 0.25 if arms.kind == "bernoulli" else 0.0
    centre = (total + prior) / (safe + 2 * prior)
    if arms.kind in ("poisson", "exponential"):
        # A sum of 0 in every run would make a point at 0.
        centre = np.maximum(centre, 0.25 / (safe + 1))
    each = sums / np.maximum(counts, 1)
    spread = weights @ (counts * (each - centre) ** 2) / safe
    variance = {
        "gaussian": arms.scale**2 + 0 * centre,
        "bernoulli": centre * (1 - centre),
        "poisson": centre,
        "exponential": centre**2,
    }[arms.kind]
    between = np.maximum(spread - variance / safe, SMALLEST_SPREAD * variance / safe)
    is_pulled = pulls > 1e-9
    if arms.kind == "gaussian":
        return Table(np.where(is_pulled, centre - arms.means, 0), np.where(is_pulled, np.sqrt(between), 0))
    if arms.kind == "bernoulli":
        second = np.clip(variance / between - 1, *CONCENTRATIONS)
    else:
        second = np.clip(centre**2 / between, *SHAPES)
    return Table(np.where(is_pulled, centre, arms.means), np.where(is_pulled, second, np.inf))


def require_inside(name: str, kind: Kind, means: np.ndarray) -> None:
    """Raises `ValueError` unless rewards of these means can be reweighted to any other means."""
    if kind == "bernoulli":
        inside, expected = (means > 0) & (means < 1), "lie in (0, 1), since rewards that are certain cannot be tilted"
    else:
        inside, expected = (means > 0) | (kind == "gaussian"), "be positive"
    require(inside, name, expected, means)
