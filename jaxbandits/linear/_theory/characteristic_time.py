"""Smallest number of pulls per unit of information that an instance needs, with a certificate."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear._problem.arms import checked_arms, inverse_squares, leads
from jaxbandits.linear._problem.questions.asked import Question, asked, kind_of
from jaxbandits.numerics.design import FLOOR, design
from jaxbandits.numerics.linalg import dot, gram, spd_inverse
from jaxbandits.questions import Above, TopM


class CharacteristicTime(NamedTuple):
    """Characteristic time T*, with lower <= T* <= upper = value."""

    value: Array  # float ()         value that the allocation attains
    lower: Array  # float ()         certified lower bound
    upper: Array  # float ()         same as value
    allocation: Array  # float (K,)  shares of the pulls; the optimum need not be unique


def characteristic_time(
    arms: Array,
    theta: Array,
    *,
    items: Array | None = None,
    noise_scale: Array | float = 1.0,
    steps: int = 5000,
    question: Question | None = None,
) -> CharacteristicTime:
    """Computes T* of 1/T* = max_w min_j F_j(w), where F_j = (y_j.theta)^2 / (2 noise_scale^2 ||y_j||^2_{A(w)^-1}).

    y_j = z_best - z_j are the leads over the other items, A(w) = sum_k w_k x_k x_k' is the design. No rule that errs
    with probability delta at most stops before T* kl(delta, 1 - delta) pulls on average (`lower_bound`). For `TopM` the
    y_j are the leads of the items inside over those outside, for `Above` the items, with (y_j.theta - level)^2.

    Args:
        arms: float (K, d), spanning R^d.
        theta: float (d,), under which the answer must be unique: no two items tie for the best, or for the last of the
            m best, and no mean is at the level.
        items: float (M, d), features of the compared items. If None, the arms.
        noise_scale: () > 0, standard deviation of the noise.
        steps: iterations of the design's solver, a Python int, at least 1.
        question: `BestArm()`, `TopM(m)` or `Above(level)`, about the items. If None, the best item.

    Returns:
        CharacteristicTime. Traceable. For concrete arguments a linear program on the host tightens `lower`: value /
        lower - 1 is then 1e-7 or less on usual instances, and some 1e-4 otherwise.

    Raises:
        ValueError: an argument is not valid, the arms do not span R^d (see `reduce_rank`), or the answer is not unique.

    Cost: O(d^3 + (K + P) d^2 + K P d) per step, and one linear program of P variables and K rows, with P = M items, for
    `TopM` m (M - m) pairs.

    Example:
        >>> from jaxbandits import linear
        >>> instance = linear.soare(2, 0.1)
        >>> time = linear.characteristic_time(instance.arms, instance.theta)
        >>> print(time.value.round(3), time.value / time.lower < 1 + 1e-6)
        220.15 True

    Source: Jedra and Proutiere (2020); Wang, Tzeng and Proutiere (2021) for the matrix game of the derivatives.
    """
    # F_j is concave and homogeneous of degree 1, so F_j(v) <= sum_k v_k dF_j/dw_k (w) for all w, v. For weights q on
    # the items, max_k sum_j q_j dF_j/dw_k (w) hence bounds 1/T* from above, and the best q solves a matrix game.
    steps = checks.whole("steps", steps, least=1)
    checks.positive("noise_scale", noise_scale)
    features = checked_arms(arms, full_rank=True)
    compared, number = arms if items is None else items, features.shape[0]
    if items is not None:
        shape = checked_arms(items, name="items").shape
        number = shape[0]
        require(shape[1] == features.shape[1], "items", f"have {features.shape[1]} columns, as the arms", shape)
    about, epsilon = asked(question, number)
    is_zero = is_concrete(epsilon) and epsilon == 0
    require(is_zero, "question.epsilon", "be 0", epsilon)
    if about is None:
        _, directions, gaps = leads(compared, theta)
    else:
        directions, gaps = _distances(about, compared, theta)
    dtype = features.dtype
    directions, gaps = directions.astype(dtype), gaps.astype(dtype)
    noise_scale = jnp.asarray(noise_scale, dtype)
    weights = inverse_squares(gaps)
    optimum = design(features, directions, weights=weights, steps=steps)
    # A share of each arm keeps A(w) regular, so that the returned allocation attains the returned value.
    shares = jnp.maximum(optimum.allocation, max(FLOOR, 2 * float(jnp.finfo(dtype).eps)))
    shares /= shares.sum()
    inverse = spd_inverse(gram(features, shares))
    images = jnp.matmul(directions, inverse, precision="highest")
    value = 2 * noise_scale**2 * jnp.max(weights * dot(images, directions))
    lower = 2 * noise_scale**2 * optimum.lower
    if is_concrete(value):
        lower = jnp.maximum(lower, jnp.asarray(_certified(features, directions, gaps, shares, noise_scale), dtype))
    return CharacteristicTime(value, jnp.minimum(lower, value), value, shares)


def _distances(question: TopM | Above, items: Array, theta: Array) -> tuple[Array, Array]:
    """Returns the directions (P, d) of the alternatives, and the distances (P,) of the truth from them.

    Raises:
        ValueError: `items` or `theta` is not valid, or a distance is 0.
    """
    items = checked_arms(items)
    theta = checks.array("theta", theta, (items.shape[1],), dtype=items.dtype)
    kind = kind_of(question)
    answer = kind.answer(question, dot(items, theta))
    directions = kind.directions(question, answer, items)
    distances = dot(directions, theta) - kind.offsets(question, answer, items.dtype)
    exists = kind.exists(question, items)
    require((distances > 0) | ~exists, "theta", f"have a unique answer to {type(question).__name__}", distances)
    return directions, jnp.where(exists, distances, 0)


def _certified(arms: Array, directions: Array, gaps: Array, shares: Array, noise_scale: Array) -> float:
    """Computes a lower bound of T* from the derivatives at `shares`, by a linear program on the host."""
    from scipy.optimize import linprog

    X, Y, gap, w = (np.asarray(x, np.float64) for x in (arms, directions, gaps, shares))
    Y, gap = Y[gap > 0], gap[gap > 0] / float(noise_scale)
    images = np.linalg.solve(X.T @ (w[:, None] * X), Y.T).T
    slopes = ((gap / np.sum(images * Y, axis=1))[:, None] * (images @ X.T)) ** 2 / 2  # (M - 1, K)
    scale = slopes.max()
    M, K = slopes.shape
    # Minimises the largest entry of q' slopes over q in the simplex.
    solution = linprog(
        np.append(np.zeros(M), 1.0),
        A_ub=np.hstack([slopes.T / scale, -np.ones((K, 1))]),
        b_ub=np.zeros(K),
        A_eq=np.append(np.ones(M), 0.0)[None],
        b_eq=[1.0],
        method="highs-ds",
    )
    if solution.x is None:
        return 0.0
    q = np.maximum(solution.x[:M], 0)
    # The objective is evaluated anew, so that the bound holds whatever the solver's tolerance is.
    return float(1 / ((q / q.sum()) @ slopes).max())
