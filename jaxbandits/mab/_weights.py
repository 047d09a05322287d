"""The optimal proportions of pulls: a root of one equation in one unknown, with a number of steps that is fixed.

With x_a = w_a / w_b for the best arm b, G_a(x) = kl(mu_b, m) + x kl(mu_a, m) and m = (mu_b + x mu_a) / (1 + x), all
G_a(x_a) are equal, y say, and sum_a kl(mu_b, m_a) / kl(mu_a, m_a) = 1 (Garivier and Kaufmann, 2016, Theorem 5). The
unknown is u = x_c of the closest challenger c: then y = G_c(u) is explicit, and the pole y -> min G is never met. In y
itself 12 steps are still off by .1.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Array
from jaxbandits.mab._core import argmax, at, is_arm
from jaxbandits.mab._problems import Gaussian, Problem, divergence, scale

TIE = 1e-14  # a divergence of the two best means below it counts as none
TRACKED = (4, 3)  # steps outside and inside: weights right to 2e-7 for Bernoulli arms
EXACT = (6, 6)


class Balance(NamedTuple):
    """The arms against the best one, at given ratios x of the weights."""

    ratios: Array  # float (K,)    x, 0 at the best arm
    value: Array  # float ()       y, common to all challengers
    below: Array  # float (K,)     kl(mu_b, m_a), 0 at the best arm
    above: Array  # float (K,)     kl(mu_a, m_a), 1 at the best arm
    middle: Array  # float (K,)    m_a


def optimal_weights(
    problem: Problem,
    means: Array,
    *,
    epsilon: Array | None = None,
    leader_share: Array | None = None,
    steps: tuple[int, int] = TRACKED,
) -> tuple[Array, Balance, Array]:
    """The proportions of pulls that separate the best arm soonest.

    Args:
        problem: the kind of the rewards.
        means: float (K,).
        epsilon: float () >= 0, of Gaussian arms; None for 0.
        leader_share: float () in (0, 1), the best arm's share where it is given; None for the optimal one.
        steps: of Newton's method, outside and inside.

    Returns:
        float (K,), the weights, uniform at a tie of the best mean; the balance that they come from; bool (), whether it
        is a tie.

    Cost: O(K) a step. Error of the weights with 5 steps outside: Gaussian 2e-14 (1 inside), Bernoulli 1e-11 (4 inside).
    """
    best = argmax(means)
    mu_b = jnp.max(means) + (0 if epsilon is None else epsilon)
    is_best = is_arm(best, means)
    closest = argmax(jnp.where(is_best, -jnp.inf, means))
    # The place of the best arm is taken by the closest challenger: a harmless number, masked in the end.
    mu_c = at(means, closest)
    mu = jnp.where(is_best, mu_c, means)
    far = _kl(problem, mu_b, mu)  # g_a, the limit of G_a
    is_tie = at(far, closest) < TIE
    outer, inner = steps
    inner = 1 if isinstance(problem, Gaussian) else inner
    K = means.shape[0]
    odds = None if leader_share is None else (1 - leader_share) / leader_share

    def balance(u: Array) -> Balance:
        middle = _middle(mu_b, mu, u)
        value = at(_kl(problem, mu_b, middle) + u * _kl(problem, mu, middle), closest)
        left = far - value
        x = value / left * far / _kl(problem, mu, mu_b)
        for _ in range(inner):
            middle = _middle(mu_b, mu, x)
            above = _kl(problem, mu, middle)
            reached = _kl(problem, mu_b, middle) + x * above
            x = jnp.maximum(x - (far - reached) * (reached - value) / (left * above), 0)
        x = jnp.where(mu == mu_c, u, x)  # exact, and equal for equal means, so that ties stay ties
        middle = _middle(mu_b, mu, x)
        below, above = _kl(problem, mu_b, middle), _kl(problem, mu, middle)
        return Balance(
            *(jnp.where(is_best, 0, x), value, jnp.where(is_best, 0, below), jnp.where(is_best, 1, above), middle)
        )

    def residual(u: Array) -> tuple[Array, Array]:
        """What must be 0, and its derivative."""
        at_u = balance(u)
        of_closest = at(at_u.above, closest)  # dy / du
        if odds is not None:
            slope = of_closest * jnp.sum(jnp.where(is_best, 0, 1 / at_u.above))
            return jnp.sum(at_u.ratios) - odds, slope
        root = jnp.sqrt(jnp.sum(at_u.below / at_u.above))
        variance = scale(problem) ** 2 if isinstance(problem, Gaussian) else at_u.middle * (1 - at_u.middle)
        moved = (at_u.middle - mu_b) * at_u.above - (at_u.middle - mu) * at_u.below
        rates = (mu - mu_b) / (1 + at_u.ratios) ** 2 * moved / (variance * at_u.above**2)
        return root - 1, of_closest / (2 * root) * jnp.sum(jnp.where(is_best, 0, rates / at_u.above))

    def step(_: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        u, lo, hi = carry
        f, slope = residual(u)
        lo, hi = jnp.where(f < 0, u, lo), jnp.where(f < 0, hi, u)
        new = u - f / slope
        # The bracket is closed, or an iterate that has converged would be thrown away.
        middle = jnp.where(jnp.isinf(hi), 2 * u, (lo + hi) / 2)
        return jnp.where((new >= lo) & (new <= hi), new, middle), lo, hi

    start = jnp.asarray((K - 1) ** -0.5, means.dtype) if odds is None else odds / (K - 1)
    first = (start, jnp.zeros((), means.dtype), jnp.asarray(jnp.inf, means.dtype))
    solution = balance(lax.fori_loop(0, outer, step, first)[0])
    total = 1 + jnp.sum(solution.ratios)
    weights = jnp.where(is_best, 1, solution.ratios) / total
    return jnp.where(is_tie, 1 / K, weights), solution, is_tie


def _kl(problem: Problem, p: Array, q: Array) -> Array:
    """The divergence, finite also where q is 0 or 1."""
    if isinstance(problem, Gaussian):
        return divergence(problem, p, q)
    edge = jnp.finfo(p.dtype).eps
    return divergence(problem, p, jnp.clip(q, edge, 1 - edge))


def _middle(mu_b: Array, mu: Array, x: Array) -> Array:
    return (mu_b + x * mu) / (1 + x)
