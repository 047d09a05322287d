"""XY-static: tracks a fixed allocation until the leader is told apart from every other arm."""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import is_concrete, known, require, require_not_negative, require_positive
from jaxbandits.linear.problem import Allocation, Bridge, check_arms
from jaxbandits.linear.width import Width, check_width, confidence_scale
from jaxbandits.numerics.linalg import dot, gram, spd_inverse, squared_norms
from jaxbandits.numerics.tracking import tracked_counts


class State(NamedTuple):
    """All that has been seen."""

    pulls: Array  # int ()
    counts: Array  # int (K,)
    sums: Array  # float (K,)   sums of rewards


class ExactState(NamedTuple):
    """All that has been passed over, and a stack of what is already drawn beyond it, the nearest on top."""

    pulls: Array  # int ()            the rule has failed at every number of pulls below this one
    counts: Array  # int (K,)         there
    sums: Array  # float (K,)         there
    pending: Array  # int ()          how many entries of the stack are in use
    end_counts: Array  # int (D, K)
    end_sums: Array  # float (D, K)


class Look(NamedTuple):
    """The leader against every arm k."""

    leader: Array  # int ()
    stop: Array  # bool ()
    theta: Array  # float (d,)          the estimate
    directions: Array  # float (K, d)   x_leader - x_k
    gaps: Array  # float (K,)           the leader's estimated leads, at least 0
    scale: Array  # float ()            width of a direction over its norm
    inverse: Array  # float (d, d)      A^-1


def xy_static(
    arms: Array,
    allocation: Array,
    *,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    ridge: Array | float = 0.0,
    union_power: int = 2,
    width: Width = "azuma",
    growth: Array | float = 1e-3,
    max_pulls: int = 10**9,
) -> Algorithm:
    """Tracks an allocation until the leader's estimated lead over every other arm is at least its confidence width.

    Every arm is pulled once, then always the arm furthest behind its share. The rewards decide nothing but when to
    stop, so the pulls between two looks at the rule are one action, exactly.

    Args:
        arms: float (K, d), features; the run has their dtype. They span R^d unless `ridge` is positive.
        allocation: float (K,), shares of the pulls: `xy_allocation(arms).allocation`, or any other whose arms span
            all differences of arms.
        delta: () in (0, 1), admitted probability of error.
        noise_scale: () > 0, sub-Gaussian constant of the noise, in units of reward.
        ridge: () >= 0, regularisation of the estimate. A + ridge I stands for A in the width too, and the bias is
            ignored, as in the paper: the guarantee is for 0.
        union_power: 2 for the guarantee, or 1; see `confidence_scale`.
        width: "azuma" or "subgaussian", see `confidence_scale`.
        growth: () in [0, 1); the rule is looked at after n = K pulls and then every max(1, growth n). Looking seldom
            keeps the guarantee and delays the stop, by 0.06 % at 1e-3 and 2 % at 1e-2 on `canonical(0.5)`. 0 looks at
            every n; `xy_static_exact` does the same in fewer rounds.
        max_pulls: Python int, at least K. A block that would exceed it is not pulled: the run idles until its rounds
            are spent, and is censored.

    Returns:
        Algorithm with actions `Allocation` and answers int ().

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: P(the answer is not the best arm) <= delta, for noise_scale-sub-Gaussian noise. **Cost**:
    O(K d^2 + d^3) a round, about (1 + log(growth n)) / growth rounds.

    **float32** gives the same mean stopping time on `soare(5)` (16 million pulls), to the 1 % that 200 runs can tell,
    at growth 1e-3. At growth 0 its sums would lose single rewards beyond some 10^6 pulls.

    Source: Soare, Lazaric and Munos (2014), XY-static; Xu, Honda and Sugiyama (2018), section 7.
    """
    arms, allocation = jnp.asarray(arms), jnp.asarray(allocation)
    K, dtype = arms.shape[0], arms.dtype
    _check(arms, allocation, delta, noise_scale, ridge, union_power, width, growth, max_pulls)
    allocation = allocation.astype(dtype)
    look = partial(
        _look,
        arms,
        ridge=ridge,
        delta=delta,
        noise_scale=noise_scale,
        union_power=union_power,
        width=width,
    )

    def init(key: Key) -> State:
        del key
        return State(jnp.zeros((), int), jnp.zeros(K, int), jnp.zeros(K, dtype))

    def decide(key: Key, state: State) -> Decision:
        del key
        seen = look(state.counts, state.sums)
        block = _block(K, state.pulls, growth, dtype)
        # DEVIATION: the optimal shares are tracked. The greedy minimax design of the paper breaks on ties: with the
        # lowest index first it pulls arm 0 for ever where the arms are orthogonal.
        # In float32 a count may be off by a few pulls, but no pull is taken back.
        counts = jnp.maximum(tracked_counts(allocation, state.pulls + block) - state.counts, 0)
        counts = jnp.where(block <= max_pulls - state.pulls, counts, 0)
        return Decision(Allocation(counts), seen.stop, seen.leader)

    def observe(state: State, action: Allocation, observation: Array) -> State:
        counts = state.counts + action.counts
        return State(counts.sum(), counts, state.sums + observation)

    return Algorithm(init, decide, observe, Allocation(jnp.zeros(K, int)))


def xy_static_exact(
    arms: Array,
    allocation: Array,
    *,
    delta: Array | float,
    noise_scale: Array | float = 1.0,
    ridge: Array | float = 0.0,
    union_power: int = 2,
    width: Width = "azuma",
    growth: Array | float = 0.2,
    max_pulls: int = 10**9,
    margin: float = 4.0,
    bridge_noise_scale: Array | float | None = None,
) -> Algorithm:
    """`xy_static` with a look at every number of pulls, for Gaussian rewards, without a round for each.

    The reward sums at the end of a long cell of pulls are drawn first. If the rule might hold somewhere inside, the
    sums in the middle are drawn too, given both ends, and the halves are treated in the same way, the left one first;
    otherwise the cell is passed over. `pulls` counts what has been passed over, so at the stop it is the first n at
    which the rule holds.

    Args:
        arms: float64 (K, d), as in `xy_static`.
        allocation: as in `xy_static`.
        delta: as in `xy_static`.
        noise_scale: as in `xy_static`.
        ridge: as in `xy_static`.
        union_power: as in `xy_static`.
        width: as in `xy_static`.
        growth: () in [0, 1); a cell has max(1, growth n) pulls at first. It changes the speed, not the law.
        max_pulls: as in `xy_static`; a cell that would exceed it is not begun.
        margin: M >= 3.5. A cell is passed over if the rule holds nowhere inside unless, for some arm, the path of the
            rewards strays from the line between its two known ends by more than M sigma sqrt(m), with m the arm's
            pulls in the cell. It does with probability at most 2 exp(-2 M^2): 2.6e-14 at M = 4.
        bridge_noise_scale: () > 0, sigma, the environment's standard deviation; `noise_scale` by default. Give it
            where `noise_scale` is set too low on purpose.

    Returns:
        Algorithm with actions `Bridge`, to be asked of `gaussian(bandit, action=Bridge)`, and answers int ().

    Raises:
        ValueError: an argument lies outside the range above, or a shape does not fit.

    **Guarantee**: as `xy_static`; the law is that of `xy_static(growth=0)` up to K times the above probability a cell.
    **Cost**: O(K d^2 + d^3 + K^2 d) a round; 370 rounds a run on `canonical(0.5)` and 790 on `soare(5)`, where
    `xy_static` takes 3600 and 11200 at growth 1e-3, and 8 thousand and 16 million at growth 0.

    Source: as `xy_static`; the tail of the Brownian bridge's maximum is Doob's (1949).
    """
    arms, allocation = jnp.asarray(arms), jnp.asarray(allocation)
    K, dtype = arms.shape[0], arms.dtype
    _check(arms, allocation, delta, noise_scale, ridge, union_power, width, growth, max_pulls)
    require(dtype == jnp.float64, "arms", "be float64", dtype)
    require(margin >= 3.5, "margin", "be at least 3.5", margin)
    sigma = noise_scale if bridge_noise_scale is None else bridge_noise_scale
    require_positive("bridge_noise_scale", sigma)
    allocation = allocation.astype(dtype)
    look = partial(
        _look,
        arms,
        ridge=ridge,
        delta=delta,
        noise_scale=noise_scale,
        union_power=union_power,
        width=width,
    )
    slots = jnp.arange(max_pulls.bit_length() + 1)  # halving a cell over and over leaves at most one end a bit

    def init(key: Key) -> ExactState:
        del key
        none, counts = jnp.zeros((), int), jnp.zeros(K, int)
        stack = jnp.zeros((slots.size, K), int)
        return ExactState(none, counts, counts.astype(dtype), none, stack, stack.astype(dtype))

    def top(state: ExactState) -> tuple[Array, Array]:
        nearest = jnp.maximum(state.pending - 1, 0)
        return state.end_counts[nearest], state.end_sums[nearest]

    def decide(key: Key, state: ExactState) -> Decision:
        del key
        seen = look(state.counts, state.sums)
        end_counts, end_sums = top(state)
        ahead, ahead_sums = end_counts - state.counts, end_sums - state.sums
        cell = ahead.sum()
        stray = margin * jnp.asarray(sigma, dtype) * jnp.sqrt(ahead.astype(dtype))
        inverse = _inverse(arms, end_counts, ridge)
        passes = (cell <= 1) | _fails_inside(arms, seen, inverse, ahead, ahead_sums, stray)
        # The rule is not looked at before every arm has been pulled.
        passes |= state.pulls < K

        is_pending = state.pending > 0
        block = _block(K, state.pulls, growth, dtype)
        target = state.pulls + jnp.where(is_pending, cell // 2, block)
        counts = tracked_counts(allocation, jnp.maximum(target, K)) - state.counts
        counts = jnp.where(is_pending & passes, ahead, counts)
        action = Bridge(
            counts=jnp.where(is_pending | (block <= max_pulls - state.pulls), counts, 0),
            ahead=jnp.where(is_pending, ahead, 0),
            ahead_sums=jnp.where(is_pending, ahead_sums, 0),
        )
        return Decision(action, seen.stop, seen.leader)

    def observe(state: ExactState, action: Bridge, observation: Array) -> ExactState:
        asked = action.counts.sum()
        passes = (asked > 0) & (asked == action.ahead.sum())
        draws = (asked > 0) & ~passes
        end_counts, end_sums = top(state)
        pushed = draws & (slots[:, None] == state.pending)
        return ExactState(
            pulls=state.pulls + jnp.where(passes, asked, 0),
            counts=jnp.where(passes, end_counts, state.counts),
            sums=jnp.where(passes, end_sums, state.sums),
            pending=state.pending + draws.astype(int) - passes.astype(int),
            end_counts=jnp.where(pushed, state.counts + action.counts, state.end_counts),
            end_sums=jnp.where(pushed, state.sums + observation, state.end_sums),
        )

    none = jnp.zeros(K, int)
    return Algorithm(init, decide, observe, Bridge(none, none, none.astype(dtype)))


def least_squares(arms: Array, counts: Array, sums: Array, ridge: Array | float) -> tuple[Array, Array]:
    """The estimate of theta, and the inverse of A = ridge I + sum_k counts_k x_k x_k'.

    An arm that has not been pulled counts as pulled once: with nothing seen the estimate is 0, and regular.

    Args:
        arms: float (K, d).
        counts: int (K,), pulls.
        sums: float (K,), sums of rewards.
        ridge: () >= 0.

    Returns:
        float (d,) and float (d, d). Cost: O(K d^2 + d^3).
    """
    inverse = _inverse(arms, counts, ridge)
    return jnp.matmul(inverse, jnp.matmul(sums, arms, precision="highest"), precision="highest"), inverse


def _inverse(arms: Array, counts: Array, ridge: Array | float) -> Array:
    A = gram(arms, jnp.maximum(counts, 1).astype(arms.dtype))
    return spd_inverse(A + jnp.asarray(ridge, arms.dtype) * jnp.eye(arms.shape[1], dtype=arms.dtype))


def _look(arms: Array, counts: Array, sums: Array, *, ridge: Array | float, **confidence) -> Look:
    K, dtype = arms.shape[0], arms.dtype
    n = counts.sum()
    theta, inverse = least_squares(arms, counts, sums, ridge)
    leader = jnp.argmax(dot(arms, theta))
    # Differences first: near ties, x_i.theta - x_k.theta loses all its digits.
    directions = arms[leader] - arms
    gaps = dot(directions, theta)
    scale = confidence_scale(jnp.maximum(n, 1).astype(dtype), arms=K, **confidence)
    widths = scale * jnp.sqrt(squared_norms(directions, inverse))
    return Look(leader, (n >= K) & jnp.all(widths <= gaps), theta, directions, gaps, scale, inverse)


def _block(K: int, n: Array, growth: Array | float, dtype) -> Array:
    """The pulls from one look, at n, to the next."""
    step = jnp.floor(jnp.asarray(growth, dtype) * n.astype(dtype)).astype(int)
    return jnp.where(n < K, K, jnp.maximum(step, 1))


def _fails_inside(arms: Array, seen: Look, inverse: Array, pulls: Array, sums: Array, stray: Array) -> Array:
    """Whether the rule fails at every n strictly inside a cell, unless the rewards of an arm stray too far.

    Let 0 and 1 mark the ends of the cell, m_k = `pulls` and s_k = `sums` what lies between, and theta_0 the estimate
    at its left end. After n pulls, c_k of them of arm k inside the cell and with the sums r_k,

        theta_hat(n) = theta_0 + A(n)^-1 sum_k x_k Q_k(n),    Q_k(n) = r_k - c_k x_k.theta_0 = (c_k / m_k) q_k + noise,

    with q_k = s_k - m_k x_k.theta_0 and |noise| <= stray_k. As A(0) <= A(n) <= A(1), for any direction y

        |y'(A(n)^-1 - A(1)^-1) Q| <= ||y||_D sum_k |Q_k| ||x_k||_D,    D = A(0)^-1 - A(1)^-1,

    so y.theta_hat(n) <= y.theta_0 + sum_k (max(0, h_k q_k) + |h_k| stray_k) + ||y||_D sum_k (|q_k| + stray_k) ||x_k||_D
    with h = X A(1)^-1 y. The width of y only grows from its scale at 0 and its norm at 1. The rule fails at n if every
    arm has another that it does not lead by the width: for the leader at 0 any one will do, for the others that leader.
    """
    matmul = partial(jnp.matmul, precision="highest")
    surprise = sums - pulls.astype(arms.dtype) * dot(arms, seen.theta)
    influence = matmul(matmul(seen.directions, inverse), arms.T)
    shrinkage = seen.inverse - inverse
    curvature = dot(jnp.abs(surprise) + stray, jnp.sqrt(squared_norms(arms, shrinkage)))
    curvature *= jnp.sqrt(squared_norms(seen.directions, shrinkage))
    noise = matmul(jnp.abs(influence), stray) + curvature
    drift = influence * surprise
    leads = seen.gaps + jnp.maximum(drift, 0).sum(1) + noise
    trails = -seen.gaps + jnp.maximum(-drift, 0).sum(1) + noise
    widths = seen.scale * jnp.sqrt(squared_norms(seen.directions, inverse))
    others = jnp.arange(arms.shape[0]) != seen.leader
    return jnp.any((leads < widths) & others) & jnp.all((trails < widths) | ~others)


def _check(arms, allocation, delta, noise_scale, ridge, union_power, width, growth, max_pulls) -> None:
    require_not_negative("ridge", ridge)
    check_arms(arms, full_rank=is_concrete(ridge) and float(ridge) == 0)
    K = arms.shape[0]
    require(allocation.shape == (K,), "allocation", f"have shape ({K},)", allocation.shape)
    if is_concrete(arms, allocation):
        features, shares = np.asarray(arms), np.asarray(allocation)
        require(shares >= 0, "allocation", "be at least 0", allocation)
        require(abs(shares.sum() - 1) < 1e-6, "allocation", "sum to 1", allocation)
        pulled = features[shares > 0]
        rank, needed = map(np.linalg.matrix_rank, (pulled, np.vstack([pulled, features - features[0]])))
        require(rank == needed, "allocation", "have a support that spans all differences of arms", allocation)
    check_width(delta=delta, arms=K, noise_scale=noise_scale, union_power=union_power, width=width)
    require((known(growth) >= 0) & (known(growth) < 1), "growth", "lie in [0, 1)", growth)
    largest = jnp.iinfo(jnp.result_type(int)).max
    require(K <= max_pulls <= largest, "max_pulls", f"lie in [{K}, {largest}]", max_pulls)
