"""XY-static with a test at every number of pulls, in a simulation: Brownian bridges instead of single rounds."""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import require
from jaxbandits.linear._problem.environment import Bridge, made_for
from jaxbandits.linear._shared.least_squares import inverse_gram
from jaxbandits.linear._shared.radius import Radius
from jaxbandits.linear._shared.static_rule import LeaderComparison, compare_leader, pulls_to_next_test, static_rule
from jaxbandits.numerics.linalg import dot, squared_norms
from jaxbandits.numerics.tracking import tracked_counts


def xy_static_exact(
    arms: Array,
    allocation: Array,
    *,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    ridge: Array | float = 0.0,
    union_power: int = 2,
    radius: Radius = "azuma",
    growth: Array | float = 0.2,
    max_pulls: int = 10**9,
    margin: float = 4.0,
    bridge_noise_scale: Array | float | None = None,
) -> Algorithm:
    """Runs `xy_static` with a test at every number of pulls, for Gaussian rewards, in a simulation only.

    No experiment can answer its actions, because they condition the rewards on their own future. The reward sums at the
    end of a long cell of pulls are drawn first. If the rule might hold somewhere inside, the sums in the middle are
    drawn too, given both ends, and the halves are treated in the same way, the left one first. Otherwise the cell is
    skipped. `pulls` counts the pulls of skipped cells, so at the stop it is the first n at which the rule holds.

    Arguments: as for `xy_static`, with arms in float64. These differ, or are new:

        growth: () in [0, 1). A cell has max(1, growth n) pulls at first. It changes the speed, not the law.
        max_pulls: Python int, at least K. A cell that would exceed it is not begun.
        margin: M >= 3.5. A cell is skipped if the rule holds nowhere inside as long as the rewards of each arm stray
            from the line between their two known ends by at most M sigma sqrt(m), with m the arm's pulls in the cell.
            They stray further with probability at most 2 exp(-2 M^2): 2.6e-14 at M = 4.
        bridge_noise_scale: () > 0, sigma, the environment's standard deviation. If None, `noise_scale`. Give it if
            `noise_scale` is set too low on purpose.

    Returns:
        Algorithm with actions `Bridge` and answers int ().

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: as for `xy_static`. The law is the one of `xy_static(growth=0)`, up to K times the above probability
    per cell. **Cost**: O(K d^2 + d^3 + K^2 d) per round. A run takes 370 rounds on `canonical(0.5)` and 790 on
    `soare(5)`; `xy_static` takes 3600 and 11200 at growth 1e-3, and 8 thousand and 16 million at growth 0.

    Source: as for `xy_static`; the tail of the Brownian bridge's maximum is Doob's (1949).
    """
    rule = static_rule(
        arms,
        allocation,
        delta=delta,
        noise_scale=noise_scale,
        ridge=ridge,
        union_power=union_power,
        radius=radius,
        growth=growth,
        max_pulls=max_pulls,
    )
    arms, (K, _), dtype = rule.arms, rule.arms.shape, rule.arms.dtype
    require(dtype == jnp.float64, "arms", "be float64", dtype)
    checks.real("margin", margin, least=3.5)
    sigma = noise_scale if bridge_noise_scale is None else bridge_noise_scale
    checks.positive("bridge_noise_scale", sigma)
    # Halving a cell again and again leaves at most one end per bit of its length.
    slots = jnp.arange(rule.max_pulls.bit_length() + 1)

    def init(key: Key) -> State:
        del key
        zero, counts = jnp.zeros((), int), jnp.zeros(K, int)
        stack = jnp.zeros((slots.size, K), int)
        return State(
            pulls=zero,
            counts=counts,
            sums=counts.astype(dtype),
            pending=zero,
            end_counts=stack,
            end_sums=stack.astype(dtype),
        )

    def top(state: State) -> tuple[Array, Array]:
        nearest = jnp.maximum(state.pending - 1, 0)
        return state.end_counts[nearest], state.end_sums[nearest]

    def decide(key: Key, state: State) -> Decision:
        del key
        comparison = compare_leader(rule, state.counts, state.sums)
        end_counts, end_sums = top(state)
        ahead, ahead_sums = end_counts - state.counts, end_sums - state.sums
        cell = ahead.sum()
        stray = margin * jnp.asarray(sigma, dtype) * jnp.sqrt(ahead.astype(dtype))
        inverse = inverse_gram(arms, end_counts, rule.ridge)
        passes = cell <= 1
        passes |= _fails_inside(arms, comparison, inverse=inverse, pulls=ahead, sums=ahead_sums, stray=stray)
        # The rule is not tested before every arm has been pulled.
        passes |= state.pulls < K

        is_pending = state.pending > 0
        step = pulls_to_next_test(rule, state.pulls)
        target = state.pulls + jnp.where(is_pending, cell // 2, step)
        counts = tracked_counts(rule.allocation, jnp.maximum(target, K)) - state.counts
        counts = jnp.where(is_pending & passes, ahead, counts)
        action = Bridge(
            counts=jnp.where(is_pending | (step <= rule.max_pulls - state.pulls), counts, 0),
            ahead=jnp.where(is_pending, ahead, 0),
            ahead_sums=jnp.where(is_pending, ahead_sums, 0),
        )
        return Decision(action, comparison.stop, comparison.leader)

    def observe(state: State, action: Bridge, observation: Array) -> State:
        drawn = action.counts.sum()
        passes = (drawn > 0) & (drawn == action.ahead.sum())
        pushes = (drawn > 0) & ~passes
        end_counts, end_sums = top(state)
        pushed = pushes & (slots[:, None] == state.pending)
        return State(
            pulls=state.pulls + jnp.where(passes, drawn, 0),
            counts=jnp.where(passes, end_counts, state.counts),
            sums=jnp.where(passes, end_sums, state.sums),
            pending=state.pending + pushes.astype(int) - passes.astype(int),
            end_counts=jnp.where(pushed, (state.counts + action.counts)[None], state.end_counts),
            end_sums=jnp.where(pushed, (state.sums + observation)[None], state.end_sums),
        )

    zeros = jnp.zeros(K, int)
    return Algorithm(init, decide, observe, Bridge(zeros, zeros, zeros.astype(dtype)), **made_for(arms))


class State(NamedTuple):
    """Sums at the end of the skipped cells, and a stack of the ends drawn beyond them, the nearest on top."""

    pulls: Array  # int ()            the rule fails at every smaller number of pulls
    counts: Array  # int (K,)         pulls of each arm among these
    sums: Array  # float (K,)         sums of their rewards
    pending: Array  # int ()          number of entries of the stack in use
    end_counts: Array  # int (D, K)   counts at the ends
    end_sums: Array  # float (D, K)   sums at the ends


def _fails_inside(
    arms: Array, comparison: LeaderComparison, *, inverse: Array, pulls: Array, sums: Array, stray: Array
) -> Array:
    """Checks whether the rule fails at every n strictly inside a cell, unless the rewards of an arm stray too far.

    Let 0 and 1 mark the ends of the cell, m_k = `pulls` and s_k = `sums` the pulls and reward sums between them, and
    theta_0 the estimate at the left end. After n pulls, c_k of them of arm k inside the cell and with the sums r_k,

        theta_hat(n) = theta_0 + A(n)^-1 sum_k x_k Q_k(n),    Q_k(n) = r_k - c_k x_k.theta_0 = (c_k / m_k) q_k + noise,

    with q_k = s_k - m_k x_k.theta_0 and |noise| <= stray_k. As A(0) <= A(n) <= A(1), for any direction y

        |y'(A(n)^-1 - A(1)^-1) Q| <= ||y||_D sum_k |Q_k| ||x_k||_D,    D = A(0)^-1 - A(1)^-1,

    so y.theta_hat(n) <= y.theta_0 + sum_k (max(0, h_k q_k) + |h_k| stray_k) + ||y||_D sum_k (|q_k| + stray_k) ||x_k||_D
    with h = X A(1)^-1 y. The confidence bound of y is at least its radius at 0 times its norm at 1. The rule fails at n
    if every arm has another that it does not lead by that bound: for the leader at 0 any other arm suffices, for the
    other arms that leader is checked.
    """
    matmul = partial(jnp.matmul, precision="highest")
    surprise = sums - pulls.astype(arms.dtype) * dot(arms, comparison.theta)
    influence = matmul(matmul(comparison.directions, inverse), arms.T)
    shrinkage = comparison.inverse - inverse
    curvature = dot(jnp.abs(surprise) + stray, jnp.sqrt(squared_norms(arms, shrinkage)))
    curvature *= jnp.sqrt(squared_norms(comparison.directions, shrinkage))
    noise = matmul(jnp.abs(influence), stray) + curvature
    drift = influence * surprise[None]
    leads = comparison.gaps + jnp.maximum(drift, 0).sum(1) + noise
    trails = -comparison.gaps + jnp.maximum(-drift, 0).sum(1) + noise
    bounds = comparison.radius * jnp.sqrt(squared_norms(comparison.directions, inverse))
    others = jnp.arange(arms.shape[0]) != comparison.leader
    return jnp.any((leads < bounds) & others) & jnp.all((trails < bounds) | ~others)
