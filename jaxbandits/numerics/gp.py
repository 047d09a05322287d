"""Gaussian-process posteriors of one lane: exact, exact on a grid by rank-one updates, and sparse.

Every posterior is the law of f ~ GP(0, k) after observations f(x_i) + noise of variance `noise_variance`. Variances
have the scale of the kernel; none is divided by the noise variance.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits import checks
from jaxbandits.base import Array, static_fields
from jaxbandits.numerics.cholesky import Factor, cholesky, log_det, solve_lower, solve_upper
from jaxbandits.numerics.loops import for_blocks

Kernel = Callable[[Array, Array], Array]  # (x (d,), y (d,)) -> float (), positive semidefinite
SMOOTHNESS = (0.5, 1.5, 2.5)
ROWS = 64  # rows of Z Z' at a time; blocks beyond the live rows are skipped
JITTER = {"float64": 1e-10, "float32": 1e-6}


class Posterior(NamedTuple):
    """The posterior of f at M points."""

    mean: Array  # float (M,)
    variance: Array  # float (M,)  >= 0
    log_det: Array  # float ()     log det(I + K / noise_variance) of the observations


class Inducing(NamedTuple):
    """Inducing points S and the factor L of K_SS + jitter I, which all parties must share."""

    points: Array  # float (m, d)  inducing points; the first `factor.live` count
    factor: Factor


class Sparse(NamedTuple):
    """A posterior in which f acts through the features z(x) = L^-1 k_S(x) only."""

    mean: Array  # float (M,)
    residual: Array  # float (M,)   max(k(x, x) - z'z, 0), which no observation can reduce
    whitened: Array  # float (m, M) W = sqrt(noise_variance) L_A^-1 Z with A = noise_variance I + Z Z' = L_A L_A'

    @property
    def variance(self) -> Array:
        """Returns the posterior variance, float (M,)."""
        return self.residual + jnp.sum(self.whitened**2, axis=0)


class SquaredExponential(NamedTuple):
    """Squared exponential kernel: variance exp(-|x - y|^2 / (2 lengthscale^2)).

    A kernel is a function of two points (d,), and this struct is one, with parameters that may be traced. A sweep over
    several lengthscales is therefore one program.

    Calling it raises `ValueError` if a point has another shape, or a parameter is not positive.

    Example:
        >>> kernel = SquaredExponential(lengthscale=0.5)
        >>> print(kernel(jnp.zeros(2), jnp.array([0.3, 0.4])).round(4))
        0.6065
    """

    lengthscale: Array | float  # float () > 0, unit of distance
    variance: Array | float = 1.0  # float () > 0, k(x, x), in units of reward squared

    def __call__(self, x: Array, y: Array) -> Array:
        """Computes the kernel of two points x (d,) and y (d,), float ()."""
        check_kernel(self)
        return _scaled(self.variance, _gaussian(_squared_distance(x, y, self.lengthscale)))


@partial(jax.jit, inline=True)
def _gaussian(square: Array) -> Array:
    return jnp.exp(-square / 2)


@static_fields("nu")
class Matern(NamedTuple):
    """Matern kernel of smoothness nu, with r = |x - y| / lengthscale.

    It is variance times exp(-r) for nu = 0.5, (1 + sqrt(3) r) exp(-sqrt(3) r) for 1.5, and
    (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r) for 2.5. The other parameters may be traced, as in `SquaredExponential`.

    Calling it raises `ValueError` if a point has another shape, a parameter is not positive, or `nu` is another number.

    Source: Rasmussen and Williams (2006), equations 4.14 and 4.17.
    """

    lengthscale: Array | float  # float () > 0, unit of distance
    nu: float  # smoothness: 0.5, 1.5 or 2.5, static
    variance: Array | float = 1.0  # float () > 0, k(x, x), in units of reward squared

    def __call__(self, x: Array, y: Array) -> Array:
        """Computes the kernel of two points x (d,) and y (d,), float ()."""
        check_kernel(self)
        r = jnp.sqrt(_squared_distance(x, y, self.lengthscale))
        if self.nu == 0.5:
            return _scaled(self.variance, jnp.exp(-r))
        s = r * (2 * self.nu) ** 0.5
        return _scaled(self.variance, (1 + s if self.nu == 1.5 else 1 + s + s**2 / 3) * jnp.exp(-s))


def check_kernel(kernel: Any) -> None:
    """Raises `ValueError` unless the kernel is a function of two points; parameters of ours must be in range."""
    if isinstance(kernel, type):
        name = kernel.__name__
        example = f"{name}(lengthscale=0.2{', nu=2.5' if kernel is Matern else ''})"
        raise ValueError(f"kernel must be a function of two points, got the class {name}. Write {example}")
    checks.function("kernel", kernel, "two points")
    if isinstance(kernel, (SquaredExponential, Matern)):
        checks.positive("lengthscale", kernel.lengthscale)
        checks.positive("variance", kernel.variance)
    if isinstance(kernel, Matern):
        checks.one_of("nu", kernel.nu, SMOOTHNESS)


def _scaled(variance: Array | float, correlation: Array) -> Array:
    # The default adds no operation, so the program is the same as without a variance.
    if checks.is_concrete(variance) and variance == 1:
        return correlation
    return checks.constant(variance, correlation.dtype) * correlation


def cross(kernel: Kernel, xs: Array, ys: Array) -> Array:
    """Computes k(x, y) for all pairs.

    Args:
        kernel: kernel of a single pair.
        xs: float (n, d).
        ys: float (m, d).

    Returns:
        float (n, m). Cost: n m kernels.
    """
    return jax.vmap(lambda x: jax.vmap(lambda y: kernel(x, y))(ys))(xs)


def prior_variance(kernel: Kernel, xs: Array) -> Array:
    """Computes k(x, x) for every point of `xs` (n, d), float (n,)."""
    return jax.vmap(lambda x: kernel(x, x))(xs)


def default_jitter(dtype: jnp.dtype) -> float:
    """Returns the number to add to the diagonal of K_SS: 1e-10 in float64, 1e-6 in float32.

    It changes a sparse mean by up to 3e-3 (float64) or 1e-2 (float32) if K_SS is nearly singular. In float32 the factor
    of 400 points in the unit square (length scale 0.2) still fails at times; with 200 points it never did.
    """
    return JITTER[jnp.dtype(dtype).name]


def posterior(
    kernel: Kernel,
    points: Array,
    sums: Array,
    at: Array,
    *,
    noise_variance: Array | float,
    counts: Array | None = None,
    live: Array | int | None = None,
) -> Posterior:
    """Computes the exact posterior, by one Cholesky factor.

    w observations at one point are one observation of their mean with noise of variance noise_variance / w. Repeats can
    therefore be merged, and the factor is never larger than the number of distinct points. With s = sqrt(w),
    B = I + diag(s) K diag(s) / noise_variance, whose eigenvalues are at least 1.

    Args:
        kernel: kernel of a single pair.
        points: float (n, d).
        sums: float (n,), sum of the observations at each point.
        at: float (M, d), points at which to evaluate f.
        noise_variance: () > 0.
        counts: int (n,), number of observations at each point, 0 allowed. If None, 1 each.
        live: () number of points at the front that count. If None, all.

    Returns:
        Posterior. NaN if the kernel is not positive semidefinite. Cost: O(n^2 (n + M)).

    **float32**: right to 2e-3 with 2000 observations and a noise variance of .04, as B's condition number is at most
    1 + n / noise_variance. With a noise variance of 1e-4 the mean is off by a hundredth and more: use 64 bit there.

    Source: Rasmussen and Williams (2006), equations 2.25 and 2.26.

    Example:
        >>> kernel, at = SquaredExponential(1.0), jnp.asarray([[0.0], [1.0]])
        >>> known = posterior(kernel, jnp.zeros((1, 1)), jnp.ones(1), at, noise_variance=0.04)
        >>> print(known.mean.round(3), known.variance.round(3))
        [0.962 0.583] [0.038 0.646]
    """
    dtype = points.dtype
    s = jnp.ones(points.shape[0], dtype) if counts is None else jnp.sqrt(counts.astype(dtype))
    noise_variance = jnp.asarray(noise_variance, dtype)
    factor = data_factor(cross(kernel, points, points), s, noise_variance=noise_variance, live=live)
    v = solve_lower(factor, s[:, None] * cross(kernel, points, at)) / jnp.sqrt(noise_variance)
    means = solve_lower(factor, jnp.where(s > 0, sums / jnp.where(s > 0, s, 1), 0)) / jnp.sqrt(noise_variance)
    return Posterior(
        mean=jnp.matmul(means, v, precision="highest"),
        variance=jnp.maximum(prior_variance(kernel, at) - jnp.sum(v**2, axis=0), 0),
        log_det=log_det(factor),
    )


def data_factor(
    gram: Array, weights: Array, *, noise_variance: Array | float, live: Array | int | None = None
) -> Factor:
    """Computes the factor L of B = I + diag(s) K diag(s) / noise_variance.

    Args:
        gram: K, float (n, n), kernel matrix of the distinct points.
        weights: s, float (n,), square roots of the numbers of observations.
        noise_variance: () > 0.
        live: () number of points at the front that count. If None, all.

    Returns:
        Factor. Cost: O(n^3).
    """
    eye = jnp.eye(gram.shape[0], dtype=gram.dtype)
    scale = weights / jnp.sqrt(jnp.asarray(noise_variance, gram.dtype))
    # Without the barrier XLA recomputes the roots of both weights for each of the n^2 entries.
    scale = lax.optimization_barrier(scale)
    return cholesky(eye + scale[:, None] * gram * scale[None], live)


def prior(kernel: Kernel, at: Array) -> Posterior:
    """Computes the posterior without observations at the points `at` (M, d)."""
    variance = prior_variance(kernel, at)
    return Posterior(jnp.zeros_like(variance), variance, jnp.zeros((), variance.dtype))


def condition(
    posterior: Posterior, column: Array, index: Array, reward: Array, noise_variance: Array | float
) -> tuple[Posterior, Array]:
    """Updates the posterior on a grid by one more observation, and returns the row that this observation adds.

    Let c be the posterior covariance of the grid with the observed point, and v the variance there. The row is
    r = c / sqrt(noise_variance + v): the covariance falls by r r', the variance by r^2. The column of any later point a
    is k(., a) - R' R[:, a], with the rows R so far (`explained`). Alternatively it is read from a covariance matrix,
    from which each r r' is subtracted.

    Args:
        posterior: posterior on M points, before the observation.
        column: c, float (M,).
        index: int (), the observed point. If M or more, nothing is observed.
        reward: float ().
        noise_variance: float ().

    Returns:
        Posterior, and the row, float (M,); zeros if nothing is observed. Cost: O(M).
    """
    dtype = column.dtype
    is_observed = index < column.shape[0]
    variance = jnp.maximum(column.at[index].get(mode="clip"), 0)
    scale = jnp.sqrt(jnp.asarray(noise_variance, dtype) + variance)
    row = jnp.where(is_observed, column / scale, 0)
    surprise = (reward - posterior.mean.at[index].get(mode="clip")) / scale
    conditioned = Posterior(
        mean=posterior.mean + row * surprise,
        variance=jnp.maximum(posterior.variance - row**2, 0),
        log_det=posterior.log_det + jnp.where(is_observed, jnp.log1p(variance / jnp.asarray(noise_variance, dtype)), 0),
    )
    return conditioned, row


def explained(rows: Array, coefficients: Array) -> Array:
    """Computes R' R[:, a] from the rows R (n, M) and `coefficients` R[:, a] (n,), float (M,).

    A row that does not count need not be cleared: a coefficient of 0 suffices. Cost: O(n M), and reading the rows from
    memory.
    """
    return jnp.matmul(coefficients, rows, precision="highest")


def inducing(kernel: Kernel, points: Array, *, live: Array | int | None = None, jitter: Array | float) -> Inducing:
    """Factors the covariance of the inducing points.

    Args:
        kernel: kernel of a single pair.
        points: float (m, d), without repeats: two equal points are distinguished by the jitter alone.
        live: () number of points at the front that count. If None, all.
        jitter: () >= 0, added to the diagonal; see `default_jitter`.

    Returns:
        Inducing, with NaN if the factor fails. Cost: O(m^3).
    """
    eye = jnp.eye(points.shape[0], dtype=points.dtype)
    return Inducing(points, cholesky(cross(kernel, points, points) + jnp.asarray(jitter, points.dtype) * eye, live))


def features(kernel: Kernel, inducing: Inducing, at: Array) -> Array:
    """Computes z(x) = L^-1 k_S(x) for the points `at` (M, d), float (m, M). Cost: O(m^2 M)."""
    return solve_lower(inducing.factor, cross(kernel, inducing.points, at))


def feature_gram(z: Array, counts: Array, *, noise_variance: Array | float, live: Array) -> Factor:
    """Computes the factor of A = noise_variance I + Z diag(counts) Z'.

    Args:
        z: float (m, n), features of the data's points.
        counts: (n,), number of observations at each point.
        noise_variance: float () > 0.
        live: int (), number of inducing points that count.

    Returns:
        Factor. Cost: O(m n live).
    """
    weighted, rows = z * counts.astype(z.dtype)[None], min(ROWS, z.shape[0])

    # The last block may begin earlier, and recomputes some rows.
    def block(first: Array, gram: Array) -> Array:
        product = jnp.matmul(lax.dynamic_slice_in_dim(weighted, first, rows), z.T, precision="highest")
        return lax.dynamic_update_slice_in_dim(gram, product, first, axis=0)

    gram = for_blocks(live, rows, block, jnp.zeros((z.shape[0], z.shape[0]), z.dtype))
    return cholesky(gram + jnp.asarray(noise_variance, z.dtype) * jnp.eye(z.shape[0], dtype=z.dtype), live)


def sparse_posterior(
    kernel: Kernel,
    inducing: Inducing,
    points: Array,
    sums: Array,
    at: Array,
    *,
    noise_variance: Array | float,
    counts: Array | None = None,
) -> Sparse:
    """Computes the posterior through the inducing points: mean z'A^-1 Z y, variance k - z'z + noise_variance z'A^-1 z.

    With all data points as inducing points it is exact. The variance is a sum of nonnegative parts; the printed
    k - z' Z Z' A^-1 z loses digits by cancellation.

    Args:
        kernel: kernel of a single pair.
        inducing: Inducing with m points.
        points: float (n, d), the observed points.
        sums: float (n,), sum of the observations at each point.
        at: float (M, d), points at which to evaluate f.
        noise_variance: () > 0.
        counts: int (n,), number of observations at each point. If None, 1 each.

    Returns:
        Sparse. Cost: O(m^2 (m + n + M)).

    Source: Pavlovic, Salgia and Zhao (2024), equations (5) and (6); the left side of (6) is the variance divided by the
    noise variance.
    """
    z, z_at = features(kernel, inducing, points), features(kernel, inducing, at)
    counts = jnp.ones(points.shape[0], points.dtype) if counts is None else counts
    live = inducing.factor.live
    prior = prior_variance(kernel, at)
    return sparse_from(z, sums=sums, z_at=z_at, prior=prior, noise_variance=noise_variance, counts=counts, live=live)


def sparse_from(
    z: Array, sums: Array, z_at: Array, prior: Array, *, noise_variance: Array | float, counts: Array, live: Array
) -> Sparse:
    """Computes the `sparse_posterior` from given features.

    Args:
        z: float (m, n), features of the observed points.
        sums: float (n,), sum of the observations at each point.
        z_at: float (m, M), features of the points at which to evaluate f.
        prior: float (M,), k(x, x) at these points.
        noise_variance: () > 0.
        counts: (n,), number of observations at each point.
        live: int (), number of inducing points that count.

    Returns:
        Sparse. Cost: O(m^2 (m + n + M)).
    """
    factor = feature_gram(z, counts, noise_variance=noise_variance, live=live)
    projected = solve_lower(factor, jnp.matmul(z, sums, precision="highest"))
    whitened = solve_lower(factor, z_at)
    residual = jnp.maximum(prior - jnp.sum(z_at**2, axis=0), 0)
    mean = jnp.matmul(projected, whitened, precision="highest")
    return Sparse(mean, residual, jnp.sqrt(jnp.asarray(noise_variance, z.dtype)) * whitened)


def solve_spd(factor: Factor, right: Array) -> Array:
    """Computes A^-1 B from the factor of A, shaped as B (n, k) or (n,). Cost: O(n^2 k)."""
    return solve_upper(factor, solve_lower(factor, right))


def information_gain(gram: Array, noise_variance: Array | float) -> Array:
    """Computes (1/2) log det(I + K / noise_variance), the information gain of observations at K's points, in nats."""
    eye = jnp.eye(gram.shape[0], dtype=gram.dtype)
    return log_det(cholesky(eye + gram / jnp.asarray(noise_variance, gram.dtype))) / 2


def _squared_distance(x: Array, y: Array, lengthscale: Array | float) -> Array:
    """Computes |x - y|^2 / l^2 from the difference, since |x|^2 + |y|^2 - 2 x'y may be negative."""
    if checks.is_concrete(x, y):
        x, y = (checks.array(name, point, ("d",)) for name, point in (("x", x), ("y", y)))
        checks.one_size(x=(x.size, x), y=(y.size, y))
    return _scaled_distance(x, y, checks.constant(lengthscale, x.dtype))


@partial(jax.jit, inline=True)
def _scaled_distance(x: Array, y: Array, lengthscale: Array) -> Array:
    difference = (x - y) / lengthscale
    # One term after another: XLA does not vectorise a reduction of few terms over all pairs (5 times slower at d = 2).
    return sum((difference[i] ** 2 for i in range(1, difference.shape[0])), start=difference[0] ** 2)
