"""GP-UCB: one learner with all the queries (Srinivas, Krause, Kakade, Seeger, 2010)."""

import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import require
from jaxbandits.kernel.n_kernel_ucb import State, Width, loners
from jaxbandits.kernel.problem import Draws, check_run
from jaxbandits.kernel.ucb import beta_at
from jaxbandits.numerics.gp import Kernel


def gp_ucb(
    candidates: Array,
    *,
    kernel: Kernel,
    horizon: int,
    beta: Array | float,
    ridge: Array | float,
    confidence: Width | None = None,
    draws: Draws | None = None,
    gram: Array | None = None,
) -> Algorithm:
    """One learner asks the candidate with the largest mean + beta sd, one candidate a round.

    With N T queries it is the limit of N agents that communicate for free and ask one after another.

    Args:
        candidates: float (M, d); the run has their dtype.
        kernel: of a single pair of points.
        horizon: T, queries.
        beta: width of the index, in standard deviations, >= 0: () or, one a query, (T,).
        ridge: variance of the noise, () > 0.
        confidence: (t, log_det) -> beta () replaces `beta`; t, int (), is the number of the query to come, from 1, and
            log_det () is log det(I + K / ridge) of the queries before it. See `anytime_width`.
        draws: replaces the algorithm's randomness, of one agent: the first query is the candidate that coins[0, 0]
            picks.
        gram: float (M, M), the kernel of all pairs, or None: columns are taken from it instead of computed.

    Returns:
        Algorithm with actions int32 (1,), and answers int32 (), the maximiser of the mean.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee**: regret of order gamma_T sqrt(T) with the width of `anytime_width`. **Cost**: O(M min(T, M)) a round.

    Source: Srinivas, Krause, Kakade and Seeger (2010), Algorithm 1.
    """
    candidates = check_run(
        candidates, kernel=kernel, n_agents=1, horizon=horizon, beta=beta, ridge=ridge, draws=draws, gram=gram
    )
    require(confidence is None or callable(confidence), "confidence", "be a function of t and log_det", confidence)
    dtype = candidates.dtype
    beta = jnp.asarray(beta, dtype)

    def width(t: Array, log_det: Array) -> Array:
        return beta_at(beta, t) if confidence is None else jnp.asarray(confidence(t + 1, log_det), dtype)

    loner = loners(
        candidates, kernel=kernel, n_agents=1, horizon=horizon, width=width, ridge=ridge, draws=draws, gram=gram
    )

    def decide(key: Key, state: State) -> Decision:
        decision = loner.decide(key, state)
        return decision._replace(answer=decision.answer[0])

    return loner._replace(decide=decide)
