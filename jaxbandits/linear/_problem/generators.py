"""Generators of instances of the linear bandit.

Concrete values are computed on the host, in float64. An angle, a gap or a scale may be traced; arrays that depend on it
are then traced too. So a generator may be called inside a program, such as `build`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear._problem.instances import Instance

MAX_DRAWS = 100_000  # number of draws of a random instance after which its gap counts as out of reach


def soare(
    d: int,
    omega: Array | float = 0.01,
    scale: Array | float = 2.0,
    *,
    noise_scale: Array | float = 1.0,
    dtype: Any = None,
) -> Instance:
    """Builds the instance of Soare, Lazaric and Munos (2014): one arm is almost the best, and the others inform.

    Args:
        d: dimension, at least 2.
        omega: angle between the two good arms in radians, in (0, pi/2), which may be traced; their gap is
            scale (1 - cos omega).
        scale: norm of theta, positive; may be traced. Some authors use 1.
        noise_scale: standard deviation of the noise, in units of reward; may be traced.
        dtype: dtype of the arrays. If None, JAX's default.

    Returns:
        Instance with the K = d + 1 arms e_1..e_d and (cos omega, sin omega, 0..0), and theta = (scale, 0..0).

    Raises:
        ValueError: an argument is out of range.
    """
    d = checks.whole("d", d, least=2)
    checks.real("omega", omega, above=0, below=np.pi / 2)
    checks.positive("scale", scale)
    _check_common(noise_scale, dtype)
    xp, omega = _number(omega)
    basis = np.eye(d)
    near_best = xp.cos(omega) * basis[0] + xp.sin(omega) * basis[1]
    return _instance(xp.vstack([basis, near_best]), _number(scale).value * basis[0], noise_scale, dtype)


def canonical(gap: Array | float, d: int = 5, *, noise_scale: Array | float = 1.0, dtype: Any = None) -> Instance:
    """Builds the classical bandit as a linear one: arms e_1..e_d, theta = (gap, 0..0).

    Args:
        gap: lead of the first arm over all others, positive; may be traced.
        d: number of arms and dimension, at least 2.
        noise_scale: standard deviation of the noise, in units of reward; may be traced.
        dtype: dtype of the arrays. If None, JAX's default.

    Returns:
        Instance with K = d arms.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> import jax
        >>> gaps = jnp.array([0.1, 0.5])
        >>> print(jax.vmap(lambda gap: canonical(gap, 3).theta)(gaps))  # in `build`, a gap for each row of the tasks
        [[0.1 0.  0. ]
         [0.5 0.  0. ]]
    """
    checks.positive("gap", gap)
    d = checks.whole("d", d, least=2)
    _check_common(noise_scale, dtype)
    basis = np.eye(d)
    return _instance(basis, _number(gap).value * basis[0], noise_scale, dtype)


def sphere(
    seed: int, K: int, d: int, min_gap: Array | float, *, noise_scale: Array | float = 1.0, dtype: Any = None
) -> Instance:
    """Draws arms and theta uniformly on the unit sphere, together, until the best arm leads by `min_gap`.

    Args:
        seed: seed of `numpy.random.default_rng`.
        K: number of arms, at least 2.
        d: dimension, at least 2 (the line has only two unit vectors).
        min_gap: smallest lead of the best arm over the second; may be traced.
        noise_scale: standard deviation of the noise, in units of reward; may be traced.
        dtype: dtype of the arrays. If None, JAX's default.

    Returns:
        Instance, the same whether `min_gap` is traced or not. A traced one cannot be refused: if no draw reaches it,
        the instance is NaN, and its run ends as failed.

    Raises:
        ValueError: an argument is out of range, or no draw reaches `min_gap`.

    Cost: draws of K + 1 vectors on the host until one reaches `min_gap`. If `min_gap` is traced, all 100,000 draws are
    made, once, while the program is traced.
    """
    seed, K, d = checks.whole("seed", seed, least=0), checks.whole("K", K, least=2), checks.whole("d", d, least=2)
    checks.not_negative("min_gap", min_gap)
    _check_common(noise_scale, dtype)
    expected = f"be within reach of {MAX_DRAWS} draws"
    records = _sphere_records(np.random.default_rng(seed), K, d)
    if is_concrete(min_gap):
        vectors = next((vectors for lead, vectors in records if lead >= min_gap), None)
        if vectors is None:
            raise ValueError(f"min_gap must {expected}, got {checks.show(min_gap)}")
    else:
        # The first draw that reaches a gap leads by more than all draws before it, so only such draws matter.
        leads, drawn = (np.array(part) for part in zip(*records, strict=True))
        require(min_gap <= leads[-1], "min_gap", expected, min_gap)
        vectors = jnp.asarray(drawn).at[jnp.searchsorted(leads, min_gap)].get(mode="fill", fill_value=jnp.nan)
    return _instance(vectors[:K], vectors[K], noise_scale, dtype)


def yahoo_like(
    seed: int,
    K: int,
    *,
    articles: int = 40,
    users: int = 400,
    log: int = 50_000,
    ridge: float = 0.01,
    min_gap: float = 0.05,
    dtype: Any = None,
) -> Instance:
    """Simulates a stand-in for the Yahoo! front page log R6A, for `environment(instance, noise="sign")`.

    An article and a user each have six features: five memberships from Dirichlet(0.5, .., 0.5) and a constant 1. A
    pair's features are their Kronecker product. A hidden bilinear score, rescaled to [0, 1], gives the click
    probability 0.01 + 0.24 score^2. Ridge regression on a simulated log of uniform pairs, with clicks +1 or -1, gives
    theta, which is the truth from then on (Xu, Honda and Sugiyama, 2018, section 7.2 and appendix A, on R6A).

    Memberships sum to one, so the arms span at most 25 of the 36 dimensions: see `reduce_rank`.

    Args:
        seed: seed of `numpy.random.default_rng`.
        K: number of arms, at least 2.
        articles: number of articles.
        users: number of users.
        log: number of simulated displays.
        ridge: regularisation of the fit.
        min_gap: smallest lead of the best arm over every other.
        dtype: dtype of the arrays. If None, JAX's default.

    Returns:
        Instance with arms (K, 36), all abs(x.theta) < 1 and noise_scale 1.

    Raises:
        ValueError: an argument is out of range, or no draw of the arms reaches `min_gap`.
    """
    seed, K, log = checks.whole("seed", seed, least=0), checks.whole("K", K, least=2), checks.whole("log", log, least=1)
    articles, users = checks.whole("articles", articles, least=1), checks.whole("users", users, least=1)
    checks.positive("ridge", ridge)
    checks.not_negative("min_gap", min_gap)
    for name, value in {"ridge": ridge, "min_gap": min_gap}.items():
        require(is_concrete(value), name, "be concrete: articles are drawn on the host", value)
    checks.float_dtype("dtype", dtype)
    rng = np.random.default_rng(seed)
    article, user = (np.column_stack([rng.dirichlet(np.full(5, 0.5), size=n), np.ones(n)]) for n in (articles, users))
    score = article @ rng.standard_normal((6, 6)) @ user.T
    score = (score - score.min()) / (score.max() - score.min())
    pairs = np.einsum("ai,uj->auij", article, user).reshape(articles * users, 36)

    shown = rng.integers(len(pairs), size=log)
    clicked = rng.random(log) < (0.01 + 0.24 * score**2).ravel()[shown]
    z, label = pairs[shown], np.where(clicked, 1.0, -1.0)
    theta = np.linalg.solve(z.T @ z + ridge * np.eye(36), z.T @ label)
    return _instance(separated_arms(rng, pairs, theta, K, min_gap), theta, 1.0, dtype)


def theorem3_counterexample(
    n: int,
    s: Array | float = 0.01,
    gap: Array | float = 0.1,
    *,
    noise_scale: Array | float = 1.0,
    dtype: Any = None,
) -> Instance:
    """Builds the instance family on which LinGapE's hardness exceeds any multiple of the oracle's hardness.

    Theorem 3 of Xu, Honda and Sugiyama (2018) claims the constant 72; here the ratio grows with n, to 80.8 at n = 16.

    Args:
        n: number of nearly optimal directions, at least 1.
        s: length of the detour along each of them, positive; may be traced.
        gap: gap of the arms that matter, positive; may be traced.
        noise_scale: standard deviation of the noise, in units of reward; may be traced.
        dtype: dtype of the arrays. If None, JAX's default.

    Returns:
        Instance with d = n + 2, theta = (0, -gap, -gap/s, .., -gap/s), and the K = 2n + 2 arms e_0, e_1,
        then e_0 + s e_{1+k} for k = 1..n, then e_{1+k} for k = 1..n.

    Raises:
        ValueError: an argument is out of range.
    """
    n = checks.whole("n", n, least=1)
    checks.positive("s", s)
    checks.positive("gap", gap)
    _check_common(noise_scale, dtype)
    (xp, s), (_, gap) = _number(s), _number(gap)
    basis = np.eye(n + 2)
    arms = xp.vstack([basis[:2], basis[0] + s * basis[2:], basis[2:]])
    # The sum begins with 0, so no entry is -0.
    theta = 0 - gap * basis[1] - gap / s * basis[2:].sum(axis=0)
    return _instance(arms, theta, noise_scale, dtype)


def separated_arms(
    rng: np.random.Generator, features: np.ndarray, theta: np.ndarray, K: int, min_gap: float
) -> np.ndarray:
    """Draws K distinct rows of `features` uniformly, except that the best one leads by `min_gap`.

    These are the arms of a real instance. Rows with abs(x.theta) >= 1 are left out, because no sign has such a mean.
    While some arm equals an earlier one or lies within `min_gap` of the best, the first such arm is redrawn (Xu, Honda
    and Sugiyama, 2018, appendix A).

    Args:
        rng: source of the draws.
        features: float (N, d).
        theta: float (d,).
        K: number of arms, at least 2.
        min_gap: smallest lead of the best arm over every other.

    Returns:
        float (K, d).

    Raises:
        ValueError: an argument is not valid, no row has abs(x.theta) < 1, or no draw reaches `min_gap`.
    """
    checks.instance("rng", rng, np.random.Generator)
    d = checks.array("features", features, ("N", "d")).shape[1]
    checks.array("theta", theta, (d,))
    K = checks.whole("K", K, least=2)
    checks.not_negative("min_gap", min_gap)
    for name, value in {"features": features, "theta": theta, "min_gap": min_gap}.items():
        require(is_concrete(value), name, "be concrete", value)
    features = np.asarray(features)
    values = features @ np.asarray(theta)
    usable = np.flatnonzero(np.abs(values) < 1)
    require(usable.size, "features", "have a row x with abs(x.theta) < 1", features)
    chosen = rng.choice(usable, size=K)
    for _ in range(MAX_DRAWS):
        lead = values[chosen].max() - values[chosen]
        wrong = lead < min_gap
        wrong[lead.argmin()] = False
        _, first = np.unique(features[chosen], axis=0, return_index=True)
        wrong |= ~np.isin(np.arange(K), first)
        if not wrong.any():
            return features[chosen]
        chosen[wrong.argmax()] = rng.choice(usable)
    raise ValueError(f"min_gap must be within reach of {MAX_DRAWS} draws of {K} arms, got {min_gap}")


def _check_common(noise_scale: Array | float, dtype: Any) -> None:
    checks.positive("noise_scale", noise_scale)
    checks.float_dtype("dtype", dtype)


class _Number(NamedTuple):
    """A number, and the module that computes with it."""

    xp: Any  # NumPy, or jax.numpy for a traced number
    value: Any  # float ()


def _number(value: Array | float) -> _Number:
    """Converts a number to double precision on the host, or a traced one to JAX's widest float."""
    return _Number(np, np.float64(value)) if is_concrete(value) else _Number(jnp, jnp.asarray(value, float))


def _sphere_records(rng: np.random.Generator, K: int, d: int) -> Iterator[tuple[float, np.ndarray]]:
    """Yields (lead, arms and theta (K + 1, d)) of each draw in which the best arm leads by more than in all before."""
    largest = -1.0
    for _ in range(MAX_DRAWS):
        vectors = rng.standard_normal((K + 1, d))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        second, best = np.sort(vectors[:K] @ vectors[K])[-2:]
        if best - second > largest:
            largest = best - second
            yield largest, vectors


def _instance(arms: Any, theta: Any, noise_scale: Any, dtype: Any) -> Instance:
    """Builds the instance in a dtype; concrete values stay concrete in a trace."""
    dtype = checks.float_dtype("dtype", dtype)
    return Instance(*(checks.constant(x, dtype) for x in (arms, theta, noise_scale)))
