"""The linear bandit: its instances, the actions of an algorithm, and the environments that answer them.

K arms with features x_0..x_{K-1} in R^d and an unknown theta; a pull of arm a pays x_a.theta plus noise.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Array, Environment, Key
from jaxbandits.checks import is_concrete, known, require
from jaxbandits.numerics.linalg import dot

RANK_TOLERANCE = 1e-10  # singular values below this fraction of the largest count as zero
MAX_DRAWS = 100_000  # draws of a random instance after which its gap is declared out of reach


class LinearBandit(NamedTuple):
    """One instance, truth included."""

    arms: Array  # float (K, d)
    theta: Array  # float (d,)   the truth: never given to a factory
    noise_scale: Array  # float ()   standard deviation of the Gaussian noise


class Pull(NamedTuple):
    """Pulls one arm `times` times. The observation is the sum of the rewards, float ()."""

    arm: Array  # int ()
    times: Array  # int ()


class Allocation(NamedTuple):
    """Pulls arm k `counts[k]` times. The observation is the sum of the rewards of each arm, float (K,)."""

    counts: Array  # int (K,)


class Bridge(NamedTuple):
    """Looks inside pulls whose total is already known.

    The observation is the sum of the next `counts` pulls of each arm, float (K,), given that the next `ahead`
    pulls of it sum to `ahead_sums`. So a simulation may look at an end point first and refine what lies
    before it only where it matters: given both ends of a block of pulls the middle is drawn from its exact
    conditional law.
    """

    counts: Array  # int (K,)     0 <= counts <= ahead, or any counts >= 0 where ahead is 0
    ahead: Array  # int (K,)      0: nothing is known ahead, the sum is that of fresh pulls
    ahead_sums: Array  # float (K,)   not read where ahead is 0


Action = type[Pull] | type[Allocation] | type[Bridge]


def gaussian(bandit: LinearBandit, action: Action = Pull) -> Environment:
    """Rewards with independent Gaussian noise.

    Any number of pulls costs one normal variable per arm, because m pulls of arm a sum to
    N(m x_a.theta, m noise_scale^2): exact in law for every m.

    Args:
        bandit: the instance; its arms' dtype is that of the observations.
        action: `Pull`, `Allocation` or `Bridge`, the class of the actions that will be asked; it selects the
            code.

    Returns:
        Environment. Its noise is standard normal, () for `Pull` and (K,) otherwise; its observation is that
        of the action's class. Zero pulls of an arm give exactly 0. Cost per round: O(1), or O(K).

    Raises:
        ValueError: arms are not a valid (K, d) array, theta is not a finite (d,) array, noise_scale is not
            positive, or `action` is no class of actions.
    """
    means, scale = _means(bandit)
    dtype = means.dtype

    def respond_pull(pull: Pull, noise: Array) -> Array:
        times = pull.times.astype(dtype)
        return times * means[pull.arm] + scale * jnp.sqrt(times) * noise

    def respond_allocation(allocation: Allocation, noise: Array) -> Array:
        counts = allocation.counts.astype(dtype)
        return counts * means + scale * jnp.sqrt(counts) * noise

    def respond_bridge(bridge: Bridge, noise: Array) -> Array:
        # Both fractions come from integers, so that counts == ahead returns ahead_sums bit for bit.
        counts, ahead = bridge.counts.astype(dtype), jnp.maximum(bridge.ahead, 1).astype(dtype)
        left = (bridge.ahead - bridge.counts).astype(dtype)
        known = bridge.ahead > 0
        mean = jnp.where(known, bridge.ahead_sums * (counts / ahead), counts * means)
        variance = jnp.where(known, counts * (left / ahead), counts)
        return mean + scale * jnp.sqrt(variance) * noise

    responses = {Pull: respond_pull, Allocation: respond_allocation, Bridge: respond_bridge}
    require(action in responses, "action", "be Pull, Allocation or Bridge", action)
    shape = () if action is Pull else means.shape
    return Environment(lambda key: jax.random.normal(key, shape, dtype), responses[action])


def signs(bandit: LinearBandit, action: Action = Pull, *, blocks: bool = False) -> Environment:
    """Rewards +1 and -1: a pull of arm a pays +1 with probability (1 + x_a.theta)/2.

    The noise is 1-sub-Gaussian. m pulls sum to 2 Binomial(m, p) - m, drawn from that very law and not from
    its normal limit. JAX's binomial sampler does so in 64 bit only: in 32 bit, m = 10^7 and p = 0.51 gave a
    variance 6 per cent too low.

    Args:
        bandit: the instance; noise_scale is not used.
        action: `Pull` or `Allocation`, the class of the actions that will be asked; it selects the code.
        blocks: whether a `Pull` may stand for more than one pull. Without blocks a round costs one uniform
            variable, and a `Pull` of more than one gives NaN, which ends the run. An `Allocation` always may.

    Returns:
        Environment. Its noise is a uniform variable (), or the round's key where sums are binomial; its
        observation is that of the action's class. Cost per round: O(1), or K binomial variables of O(1) each.

    Raises:
        ValueError: as `gaussian`; or abs(x.theta) > 1 for some arm, or `action` is neither `Pull` nor
            `Allocation`, or binomial sums are asked for while `jax_enable_x64` is off.
    """
    means, _ = _means(bandit)
    dtype = means.dtype
    require(action in (Pull, Allocation), "action", "be Pull or Allocation", action)
    if is_concrete(bandit):
        largest = float(np.abs(np.asarray(bandit.arms) @ np.asarray(bandit.theta)).max())
        require(largest <= 1, "theta", "give abs(x.theta) <= 1 for every arm x", largest)

    if action is Pull and not blocks:

        def respond_pull(pull: Pull, noise: Array) -> Array:
            mean = means[pull.arm]
            reward = jnp.where(noise < (1 + mean) / 2, 1, -1) * pull.times
            # A traced theta could not be checked above: what has no law must not pass for a reward.
            lawful = (pull.times <= 1) & (jnp.abs(mean) <= 1)
            return jnp.where(lawful, reward.astype(dtype), jnp.nan)

        return Environment(lambda key: jax.random.uniform(key, (), dtype), respond_pull)

    has_64_bit = jnp.result_type(float) == jnp.float64
    require(has_64_bit, "jax_enable_x64", "be on for sums of more than one sign", has_64_bit)

    def sum_of(counts: Array, mean: Array, key: Key) -> Array:
        counts = counts.astype(jnp.float64)
        probability = (1 + mean.astype(jnp.float64)) / 2
        return (2 * jax.random.binomial(key, counts, probability) - counts).astype(dtype)

    def respond_block(block: Pull, noise: Key) -> Array:
        return sum_of(block.times, means[block.arm], noise)

    def respond_allocation(allocation: Allocation, noise: Key) -> Array:
        return sum_of(allocation.counts, means, noise)

    return Environment(lambda key: key, respond_block if action is Pull else respond_allocation)


# Instances


def soare(d: int, omega: float = 0.01, *, noise_scale: float = 1.0, dtype: Any = None) -> LinearBandit:
    """The instance of Soare, Lazaric and Munos (2014): one arm is almost the best one, the others inform.

    Args:
        d: dimension, at least 2.
        omega: angle between the two good arms in radians, in (0, pi/2); their gap is 2 (1 - cos omega).
        noise_scale: standard deviation of the noise.
        dtype: dtype of the arrays; by default JAX's own.

    Returns:
        LinearBandit with the K = d + 1 arms e_1..e_d and (cos omega, sin omega, 0..0), and theta = (2, 0..0).

    Raises:
        ValueError: `d` or `omega` is out of range.
    """
    require(d >= 2, "d", "be at least 2", d)
    require(0 < omega < np.pi / 2, "omega", "lie in (0, pi/2)", omega)
    near_best = np.zeros(d)
    near_best[:2] = np.cos(omega), np.sin(omega)
    return _bandit(np.vstack([np.eye(d), near_best]), 2 * np.eye(d)[0], noise_scale, dtype)


def canonical(gap: float, d: int = 5, *, noise_scale: float = 1.0, dtype: Any = None) -> LinearBandit:
    """The classical bandit as a linear one: arms e_1..e_d, theta = (gap, 0..0).

    Args:
        gap: lead of the first arm over all others, positive.
        d: number of arms and dimension, at least 2.
        noise_scale: standard deviation of the noise.
        dtype: dtype of the arrays; by default JAX's own.

    Returns:
        LinearBandit with K = d arms.

    Raises:
        ValueError: `gap` or `d` is out of range.
    """
    require(gap > 0, "gap", "be positive", gap)
    require(d >= 2, "d", "be at least 2", d)
    return _bandit(np.eye(d), gap * np.eye(d)[0], noise_scale, dtype)


def sphere(seed: int, K: int, d: int, min_gap: float, *, noise_scale: float = 1.0, dtype: Any = None) -> LinearBandit:
    """Arms and theta uniform on the unit sphere, redrawn together until the best arm leads clearly.

    Args:
        seed: of `numpy.random.default_rng`.
        K: number of arms, at least 2.
        d: dimension, at least 2 (on the line there are only two unit vectors).
        min_gap: least lead of the best arm over the second.
        noise_scale: standard deviation of the noise.
        dtype: dtype of the arrays; by default JAX's own.

    Returns:
        LinearBandit.

    Raises:
        ValueError: `K` or `d` is out of range, or no draw reaches `min_gap`.
    """
    require(K >= 2, "K", "be at least 2", K)
    require(d >= 2, "d", "be at least 2", d)
    rng = np.random.default_rng(seed)
    for _ in range(MAX_DRAWS):
        vectors = rng.standard_normal((K + 1, d))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        arms, theta = vectors[:K], vectors[K]
        second, best = np.sort(arms @ theta)[-2:]
        if best - second >= min_gap:
            return _bandit(arms, theta, noise_scale, dtype)
    raise ValueError(f"min_gap must be within reach of {MAX_DRAWS} draws, got {min_gap}")


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
) -> LinearBandit:
    """A synthetic stand-in for the Yahoo! front page log R6A, to be run with `signs`.

    An article and a user each have six features: five memberships from Dirichlet(0.5, .., 0.5) and a constant
    1. A pair's features are their Kronecker product. A hidden bilinear score, rescaled to [0, 1], gives the
    click probability 0.01 + 0.24 score^2, and a simulated log of uniform pairs with clicks +1 or -1 gives
    theta by ridge regression, which is the truth from then on (Xu, Honda and Sugiyama, 2018, section 7.2 and
    appendix A, on R6A).

    Memberships sum to one, so the arms span at most 25 of the 36 dimensions: see `reduce_rank`.

    Args:
        seed: of `numpy.random.default_rng`.
        K: number of arms, at least 2.
        articles: number of articles.
        users: number of users.
        log: number of simulated displays.
        ridge: regularisation of the fit.
        min_gap: least lead of the best arm over every other.
        dtype: dtype of the arrays; by default JAX's own.

    Returns:
        LinearBandit with arms (K, 36), all abs(x.theta) < 1 and noise_scale 1.

    Raises:
        ValueError: `K` is below 2, or no draw of the arms reaches `min_gap`.
    """
    rng = np.random.default_rng(seed)
    article, user = (np.column_stack([rng.dirichlet(np.full(5, 0.5), size=n), np.ones(n)]) for n in (articles, users))
    score = article @ rng.standard_normal((6, 6)) @ user.T
    score = (score - score.min()) / (score.max() - score.min())
    pairs = np.einsum("ai,uj->auij", article, user).reshape(articles * users, 36)

    shown = rng.integers(len(pairs), size=log)
    clicked = rng.random(log) < (0.01 + 0.24 * score**2).ravel()[shown]
    z, label = pairs[shown], np.where(clicked, 1.0, -1.0)
    theta = np.linalg.solve(z.T @ z + ridge * np.eye(36), z.T @ label)
    return _bandit(separated_arms(rng, pairs, theta, K, min_gap), theta, 1.0, dtype)


def theorem3_counterexample(
    n: int, s: float = 0.01, gap: float = 0.1, *, noise_scale: float = 1.0, dtype: Any = None
) -> LinearBandit:
    """The family on which LinGapE's hardness exceeds any constant multiple of the oracle's.

    Theorem 3 of Xu, Honda and Sugiyama (2018) claims the constant 72; here the ratio grows with n, to 80.8 at
    n = 16.

    Args:
        n: number of nearly optimal directions, at least 1.
        s: length of the detour along each of them, positive.
        gap: gap of the arms that matter, positive.
        noise_scale: standard deviation of the noise.
        dtype: dtype of the arrays; by default JAX's own.

    Returns:
        LinearBandit with d = n + 2, theta = (0, -gap, -gap/s, .., -gap/s), and the K = 2n + 2 arms e_0, e_1,
        then e_0 + s e_{1+k} for k = 1..n, then e_{1+k} for k = 1..n.

    Raises:
        ValueError: `n`, `s` or `gap` is out of range.
    """
    require(n >= 1, "n", "be at least 1", n)
    require(s > 0, "s", "be positive", s)
    require(gap > 0, "gap", "be positive", gap)
    basis = np.eye(n + 2)
    arms = np.vstack([basis[:2], basis[0] + s * basis[2:], basis[2:]])
    theta = np.concatenate([[0, -gap], np.full(n, -gap / s)])
    return _bandit(arms, theta, noise_scale, dtype)


def separated_arms(
    rng: np.random.Generator, features: np.ndarray, theta: np.ndarray, K: int, min_gap: float
) -> np.ndarray:
    """K distinct rows of `features`, uniform but for a lead of the best one: the arms of a real instance.

    Rows with abs(x.theta) >= 1 have no mean that a sign can have, and are left out. While some arm equals an
    earlier one or lies within `min_gap` of the best, the first such arm is redrawn (Xu, Honda and Sugiyama,
    2018, appendix A).

    Args:
        rng: source of the draws.
        features: float (N, d).
        theta: float (d,).
        K: number of arms, at least 2.
        min_gap: least lead of the best arm over every other.

    Returns:
        float (K, d).

    Raises:
        ValueError: `K` is below 2, no row has abs(x.theta) < 1, or no draw reaches `min_gap`.
    """
    require(K >= 2, "K", "be at least 2", K)
    values = features @ theta
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


# Rank


def reduce_rank(arms: Array | np.ndarray) -> Array:
    """Coordinates of the arms in an orthonormal basis of their span.

    Gaps, confidence widths, log det(A/ridge) and ridge predictions are the same in these coordinates, in
    which A is regular once every arm has been pulled. Arms that span R^d already are returned as they are.

    Args:
        arms: float (K, d), concrete: the rank is a shape.

    Returns:
        float (K, r), r the rank: singular values below 1e-10 of the largest (or below what the dtype can tell
        from zero) count as zero. Cost: O(K d min(K, d)), on the host.

    Raises:
        ValueError: `arms` is not a valid (K, d) array.
    """
    check_arms(arms)
    basis = _span(arms)
    if basis is None:
        return jnp.asarray(arms)
    return jnp.asarray(np.asarray(arms, np.float64) @ basis, arms.dtype)


def reduce_bandit(bandit: LinearBandit) -> LinearBandit:
    """The same instance in an orthonormal basis of the arms' span, theta projected on it (see `reduce_rank`).

    Args:
        bandit: concrete.

    Returns:
        LinearBandit with arms (K, r), theta (r,) and the same mean rewards.

    Raises:
        ValueError: arms or theta are not valid.
    """
    check_arms(bandit.arms)
    check_theta(bandit.theta, bandit.arms)
    basis = _span(bandit.arms)
    if basis is None:
        return bandit
    theta = jnp.asarray(np.asarray(bandit.theta, np.float64) @ basis, bandit.theta.dtype)
    return bandit._replace(arms=reduce_rank(bandit.arms), theta=theta)


# The best arm


class Leads(NamedTuple):
    """How far the best arm is ahead of each."""

    best: Array  # int ()
    directions: Array  # float (K, d)   x_best - x_k
    gaps: Array  # float (K,)           (x_best - x_k).theta, 0 for the best


def leads(arms: Array, theta: Array) -> Leads:
    """The best arm and its lead over the others.

    Args:
        arms: float (K, d).
        theta: float (d,).

    Returns:
        Leads, the gaps taken from the differences of the features: the means of two good arms agree in their leading
        digits.

    Raises:
        ValueError: `arms` or `theta` are not valid, or two arms tie for the best.
    """
    check_arms(arms)
    check_theta(theta, arms)
    if is_concrete(arms, theta):
        features, truth = np.asarray(arms), np.asarray(theta)
        behind = (features[np.argmax(features @ truth)] - features) @ truth
        require(np.sum(behind <= 0) == 1, "theta", "have a unique best arm", behind)
    arms = jnp.asarray(arms)
    best = jnp.argmax(jnp.matmul(arms, theta, precision="highest"))
    directions = arms[best] - arms
    return Leads(best, directions, jnp.matmul(directions, theta, precision="highest"))


# Checks


def check_arms(arms: Array | np.ndarray, *, full_rank: bool = False) -> None:
    """Raises `ValueError` unless `arms` can be the arms of a linear bandit.

    Args:
        arms: float (K, d) with K >= 2, finite, no two rows equal (nor, therefore, all rows zero).
        full_rank: whether they must span R^d too, as an unregularised estimate needs.
    """
    is_matrix = arms.ndim == 2 and arms.shape[0] >= 2 and arms.shape[1] >= 1
    require(is_matrix, "arms", "have shape (K, d) with K >= 2 and d >= 1", arms.shape)
    require(jnp.issubdtype(arms.dtype, jnp.floating), "arms", "have a floating-point dtype", arms.dtype)
    if not is_concrete(arms):
        return
    values = np.asarray(arms)
    require(np.isfinite(values), "arms", "be finite", values)
    require(np.any(values), "arms", "not be all zero", values)
    require(len(np.unique(values, axis=0)) == len(values), "arms", "have no two equal rows", values)
    if full_rank:
        basis = _span(arms)
        rank = arms.shape[1] if basis is None else basis.shape[1]
        require(basis is None, "arms", f"have rank {arms.shape[1]} (see linear.reduce_rank)", rank)


def check_theta(theta: Array | np.ndarray, arms: Array | np.ndarray) -> None:
    """Raises `ValueError` unless `theta` is a finite vector of the arms' dimension."""
    d = arms.shape[1]
    require(theta.shape == (d,), "theta", f"have shape ({d},)", theta.shape)
    if is_concrete(theta):
        require(np.isfinite(np.asarray(theta)), "theta", "be finite", theta)


def _means(bandit: LinearBandit) -> tuple[Array, Array]:
    arms = jnp.asarray(bandit.arms)
    theta = jnp.asarray(bandit.theta, arms.dtype)
    scale = jnp.asarray(bandit.noise_scale, arms.dtype)
    check_arms(arms)
    check_theta(theta, arms)
    require(scale.shape == (), "noise_scale", "be a scalar", scale)
    require(known(bandit.noise_scale) > 0, "noise_scale", "be positive", bandit.noise_scale)
    return dot(arms, theta), scale


def _bandit(arms: np.ndarray, theta: np.ndarray, noise_scale: float, dtype: Any) -> LinearBandit:
    require(noise_scale > 0, "noise_scale", "be positive", noise_scale)
    return LinearBandit(*(jnp.asarray(np.asarray(x, np.float64), dtype) for x in (arms, theta, noise_scale)))


def _span(arms: Array | np.ndarray) -> np.ndarray | None:
    """An orthonormal basis (d, r) of the arms' span, or None if they span R^d."""
    tolerance = max(RANK_TOLERANCE, max(arms.shape) * float(jnp.finfo(arms.dtype).eps))
    _, values, directions = np.linalg.svd(np.asarray(arms, np.float64), full_matrices=False)
    rank = int(np.sum(values > tolerance * values[0]))
    return None if rank == arms.shape[1] else directions[:rank].T
