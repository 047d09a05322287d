"""TTTS: the best arms of two posterior draws that differ (Russo, 2016)."""

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr, logsumexp

from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.problems import Problem, law_of, posterior_draws
from jaxbandits.mab._shared.asking import asked
from jaxbandits.mab._shared.batches import algorithm_in_batches
from jaxbandits.mab._shared.confidence import (
    LeaderShare,
    check_leader_share,
    has_separated,
    leader_share_at,
    stop_settings,
)
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, argmax, one_arm
from jaxbandits.mab._shared.top_two import Pair, coin, tossed
from jaxbandits.mab._shared.transport import transport
from jaxbandits.numerics.indexing import entry, is_entry
from jaxbandits.numerics.thresholds import Threshold
from jaxbandits.questions import BestArm

NODES = 32  # nodes of the quadrature
FRESH = 16  # draws for a challenger that is not Gaussian


def ttts(
    problem: Problem,
    *,
    question: BestArm | None = None,
    delta: Array | float,
    threshold: Threshold | None = None,
    epsilon: Array | float = 0.0,
    leader_share: Array | LeaderShare = 0.5,
    every: int = 1,
) -> Algorithm:
    """Pulls the best arm of a posterior draw, or of the first further draw that has another best arm, at random.

    Late in a run the challenger takes very many draws. For Gaussian arms it therefore comes from its distribution:
    P(a is the best arm under the posterior), normalised over all arms except the leader, by quadrature (total variation
    1e-6 on usual states, 1.2e-3 on extreme ones). For other arms 16 further draws are made at once. If all have the
    leader on top, the challenger is the arm with the smallest transport cost, as in `t3c`. This is the only choice of
    the challenger that epsilon changes.

    Arguments, result and errors: see `eb_tc`, except that it answers `BestArm` alone.

    **Guarantee**: with a proved threshold, P(the answer is not epsilon-best) <= delta. The default `gk16` is a
    heuristic. **Cost**: 34 K^2 normal distribution functions per round for Gaussian arms, 102 K uniform numbers for
    Bernoulli arms, 136 K or 153 K for exponential and Poisson ones. **Limit**: 2^31 - 1 pulls.

    Source: Russo (2016), Simple Bayesian algorithms for best-arm identification; the share "ids" You, Qin, Wang and
    Yang (2023), Information-directed selection for top-two algorithms.
    """
    _, epsilon = asked(problem, question, epsilon, every=every, among=())
    settings = stop_settings(problem, delta, threshold, epsilon)
    check_leader_share(leader_share)
    posterior_scale = law_of(problem).posterior_scale

    def challenger_of(key: Key, estimates: Estimates, leader: Array) -> Array:
        counts, means = estimates.counts, estimates.means
        if posterior_scale is not None:
            logs = log_probabilities_of_best(means, posterior_scale(problem, counts))
            logs = jnp.where(is_entry(leader, logs), -jnp.inf, logs)
            cumulated = jnp.cumsum(jnp.exp(logs - jnp.max(logs)))
            target = coin(key, logs.dtype) * cumulated[-1]
            return argmax(cumulated > target)
        # DEVIATION: the paper draws until the best arms differ, however long that takes.
        fresh = posterior_draws(problem, key, counts=counts, means=means, number=FRESH)
        tops = jnp.argmax(fresh, axis=1).astype(jnp.int32)
        differs = tops != leader
        fallback = transport(problem, estimates, leader, settings.epsilon)
        return jnp.where(jnp.any(differs), entry(tops, argmax(differs)), fallback)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        of_draw, of_coin, of_challenger = jax.random.split(key, 3)
        leader = argmax(posterior_draws(problem, of_draw, counts=estimates.counts, means=estimates.means))
        pair = Pair(leader, challenger_of(of_challenger, estimates, leader))
        share = leader_share_at(problem, leader_share, estimates, *pair)
        arm, shares = tossed(pair, share, coin(of_coin, share.dtype), problem.arms)
        action, stop = one_arm(arm), has_separated(settings, state, estimates)
        return Choice(action, stop, argmax(estimates.means, estimates.lots), shares)

    return algorithm_in_batches(problem, Rule(choose), every=every)


def log_probabilities_of_best(means: Array, spreads: Array) -> Array:
    """Computes the log of P(variable a is the largest) of independent normal variables, float (K,).

    The integrand phi((x - m_a) / s_a) prod_c Phi((x - m_c) / s_c) is log-concave. Two Newton steps find its mode. The
    nodes x = mode + h sinh(t) reach 9 standard deviations from there, with steps that grow from the width h of the
    peak.

    Args:
        means: float (K,).
        spreads: float (K,), standard deviations.

    Returns:
        float (K,), computed in logs throughout, so it is right also where a probability underflows. Cost: 34 K^2
        distribution functions.
    """
    m, s = means[:, None], spreads[:, None]
    other_means, other_spreads = means[None], spreads[None]
    others = ~jnp.eye(means.shape[0], dtype=bool)
    best = argmax(means)
    weight, weight_best = s**-2, entry(spreads, best) ** -2
    pooled = (weight * m + weight_best * jnp.max(means)) / (weight + weight_best)

    def slopes(x: Array) -> tuple[Array, Array]:
        """Computes the first and the second derivative of the log integrand at x (K, 1)."""
        y = (x - other_means) / other_spreads
        ratio = jnp.exp(-y * y / 2 - 0.5 * math.log(2 * math.pi) - log_ndtr(y))
        first = jnp.sum(jnp.where(others, ratio / other_spreads, 0), axis=1, keepdims=True)
        second = jnp.sum(jnp.where(others, ratio * (y + ratio) / other_spreads**2, 0), axis=1, keepdims=True)
        return first - (x - m) * weight, -second - weight

    mode = jnp.maximum(m, pooled)
    curvature = -weight
    for _ in range(2):
        slope, curvature = slopes(mode)
        mode = mode - slope / curvature
    width = (-curvature) ** -0.5
    reach = jnp.arcsinh(9 * jnp.maximum(s, width) / width)
    t = reach * jnp.linspace(-1, 1, NODES, dtype=means.dtype)[None]  # (K, NODES)
    x = mode + width * jnp.sinh(t)
    y = (x[:, :, None] - other_means[None]) / other_spreads[None]
    beaten = jnp.sum(jnp.where(others[:, None], log_ndtr(y), 0), axis=2)
    logs = beaten - ((x - m) / s) ** 2 / 2 + jnp.log(jnp.cosh(t))
    step = jnp.log(width * reach / s) + math.log(2 / (NODES - 1)) - 0.5 * math.log(2 * math.pi)
    return logsumexp(logs, axis=1) + step[:, 0]
