"""The characteristic time of plays, a lower bound for every algorithm, with a certificate. On the host, in NumPy."""

from typing import NamedTuple

import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, known, require
from jaxbandits.cpe._problem.problems import arm_count
from jaxbandits.cpe._shared.maximum import Playable, actions_of, check_playable, small_cover

PRECISION = 1e-4  # relative precision of 1 / T*
CALLS = 600  # largest number of calls of the maximiser
STEPS = 60  # largest number of Newton steps between two calls; a handful is typical
FIRST_BARRIER = 0.1  # first size of the barrier, in units of F at the start


class CharacteristicTime(NamedTuple):
    """T*: the expected number of plays is at least T* kl(delta, 1 - delta), for any delta-correct algorithm."""

    value: float  # the time at the allocation, equal to `upper`
    lower: float  # lower bound of T*
    upper: float  # upper bound of T*
    allocation: np.ndarray  # (K,)   shares of plays with each arm; not unique


class Rivals(NamedTuple):
    """The rates f_s = scale_s / sum_{k in s} 1 / omega_k, whose minimum is maximised."""

    scale: np.ndarray  # (S,)   gap^2 / 2
    differs: np.ndarray  # float (S, K)   0 or 1


class Point(NamedTuple):
    """An iterate of the barrier method, with its rates."""

    shares: np.ndarray  # (n,)   shares of the actions, sum 1
    level: float  # z, below all rates
    omega: np.ndarray  # (K,)    shares of plays with each arm
    rates: np.ndarray  # (S,)
    slopes: np.ndarray  # (S, K)   gradients of the rates in omega


def characteristic_time(problem: Playable, means: Array, noise_scale: Array | float = 1.0) -> CharacteristicTime:
    """Computes T* of the best action from plays: 1 / T* = max over omega in conv(actions) of F(omega, means).

    F is the minimum of the rates of `most_confusing`. They are concave and homogeneous of degree 1, hence <gradient,
    omega> = rate. For any weights q of the rates and any omega, the largest action along the q-weighted gradient has a
    value of at least 1 / T*, so one call of the maximiser is a certificate. While its gap is open, that action is
    added, and Newton steps of a barrier method set the shares of all actions.

    Args:
        problem: as in `maximum`.
        means: float (K,), the truth, with one best action; known, not traced.
        noise_scale: () > 0, in units of reward.

    Returns:
        CharacteristicTime in plays. Its interval is narrower than 1e-4 T*, unless 600 calls are not enough.

    Raises:
        ValueError: an argument is not as above.

    **Cost**: 11 calls of the maximiser and .05 s for the 20,736 trees of 8 nodes and 20 edges; 29 calls and .1 s for
    the trees of a complete graph of 8 nodes with two levels of means, where all rivals are equally near.

    Source: ours; the quantity is from Tzeng, Wang, Proutiere and Lu (2023).

    Example:
        >>> import numpy as np
        >>> from jaxbandits import cpe
        >>> print(round(cpe.characteristic_time(cpe.best_arm(2), np.array([0.5, 0.25])).value, 1))
        128.0
    """
    check_playable(problem)
    K = arm_count(problem)
    require(is_concrete(means), "means", "be known, not traced", means)
    checks.array("means", means, (K,))
    checks.positive("noise_scale", noise_scale)
    require(is_concrete(noise_scale), "noise_scale", "be known, not traced", noise_scale)
    truth = np.asarray(known(means), float)
    rivals = _rivals(problem, truth)
    require(rivals.scale > 0, "means", "have one best action", means)

    actions = known(small_cover(problem)).astype(float)
    shares = np.full(len(actions), 1 / len(actions))
    unit = _rates(rivals, shares @ actions)[0].min()
    rivals = rivals._replace(scale=rivals.scale / unit)
    barrier, best, allocation, bound = FIRST_BARRIER, -np.inf, shares @ actions, np.inf
    for _ in range(CALLS):
        point = _centre(rivals, actions, shares, barrier)
        shares = point.shares
        if point.rates.min() > best:
            best, allocation = point.rates.min(), point.omega
        weights = 1 / (point.rates - point.level)
        gradient = weights / weights.sum() @ point.slopes
        action = actions_of(problem).on_host(problem, gradient)
        bound = min(bound, gradient @ action)
        gap = (bound - best) / best
        if gap <= PRECISION:
            break
        kept = shares >= 1e-3 * barrier
        if not np.any(np.all(actions == action, axis=1)):
            actions = np.concatenate([actions[kept], action[None]])
            shares = np.append(shares[kept], shares[kept].sum() / kept.sum())
        shares = shares / shares.sum()
        barrier = min(barrier, max(barrier / 5, 0.3 * gap / (len(rivals.scale) + len(shares))))
    time = float(noise_scale) ** 2 / unit
    return CharacteristicTime(value=time / best, lower=time / bound, upper=time / best, allocation=allocation)


def _rivals(problem: Playable, means: np.ndarray) -> Rivals:
    """Returns all swaps of the best action, or all other rows."""
    actions = actions_of(problem)
    signs = actions.rivals(problem, actions.on_host(problem, means))
    return Rivals((signs @ means) ** 2 / 2, np.abs(signs).astype(float))


def _rates(rivals: Rivals, omega: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Computes all rates (S,) and their gradients (S, K)."""
    total = rivals.differs @ (1 / omega)
    return rivals.scale / total, (rivals.scale / total**2)[:, None] * rivals.differs / omega**2


def _at(rivals: Rivals, actions: np.ndarray, shares: np.ndarray, level: float) -> Point:
    omega = shares @ actions
    return Point(shares, level, omega, *_rates(rivals, omega))


def _worth(point: Point, barrier: float) -> float:
    """Computes the objective of the barrier method; -inf if the level is not below all rates."""
    room = point.rates - point.level
    if room.min() <= 0:
        return -np.inf
    return point.level / barrier + np.log(room).sum() + np.log(point.shares).sum()


def _centre(rivals: Rivals, actions: np.ndarray, shares: np.ndarray, barrier: float) -> Point:
    """Maximises level / barrier + sum log(rates - level) + sum log(shares) over level and shares of sum 1."""
    n = len(shares)
    point = _at(rivals, actions, shares, 0.0)
    point = point._replace(level=point.rates.min() - barrier * len(point.rates))
    worth = _worth(point, barrier)
    for _ in range(STEPS):
        weights = 1 / (point.rates - point.level)
        in_omega = weights @ point.slopes
        curved = (weights * (2 / point.rates - weights))[:, None] * point.slopes
        bend = point.slopes.T @ curved - np.diag(2 * in_omega / point.omega)
        slope = np.concatenate([actions @ in_omega + 1 / point.shares, [1 / barrier - weights.sum()]])
        curvature = np.empty((n + 1, n + 1))
        curvature[:n, :n] = np.diag(1 / point.shares**2) - actions @ bend @ actions.T
        curvature[:n, n] = curvature[n, :n] = -actions @ (weights**2 @ point.slopes)
        curvature[n, n] = np.sum(weights**2)
        step = _newton_step(curvature, slope, np.append(np.ones(n), 0))
        rise = slope @ step
        if rise < 1e-6:
            break
        falls = step[:n] < 0
        # The bound keeps shares positive.
        size = min(1.0, 0.99 * np.min(-point.shares[falls] / step[:n][falls], initial=np.inf))
        while size > 1e-10:
            following = _at(rivals, actions, point.shares + size * step[:n], point.level + size * step[n])
            gained = _worth(following, barrier) - worth
            if gained >= 0.01 * size * rise:
                break
            size /= 2
        else:
            # Floating point permits no further rise.
            break
        point, worth = following, worth + gained
    return point


def _newton_step(curvature: np.ndarray, slope: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Computes the step that maximises slope . x - x . curvature x / 2 over kept . x = 0.

    A share near 0 has a curvature of 1 / share^2, so the matrix spans 26 decades and more. It is therefore scaled to a
    unit diagonal. If it is singular even so, the step is 0.
    """
    scale = 1 / np.sqrt(np.diagonal(curvature))
    try:
        rises, normal = np.linalg.solve(
            scale[:, None] * curvature * scale, np.stack([scale * slope, scale * kept], axis=1)
        ).T
    except np.linalg.LinAlgError:
        return np.zeros_like(slope)
    return scale * (rises - normal * ((scale * kept) @ rises / ((scale * kept) @ normal)))
