"""GP-UCB: one learner with all the queries (Srinivas, Krause, Kakade, Seeger, 2010)."""

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kernel._algorithms.n_kernel_ucb import BetaRule, State, algorithm_from_beta
from jaxbandits.kernel._problem.settings import Coins, Settings, checked
from jaxbandits.kernel._shared.ucb import beta_at
from jaxbandits.numerics.gp import Kernel


def gp_ucb(
    candidates: Array,
    *,
    kernel: Kernel,
    horizon: int,
    beta: Array | float | None = None,
    noise_variance: Array | float,
    confidence: BetaRule | None = None,
    gram: Array | None = None,
    coins: Coins | None = None,
) -> Algorithm:
    """Queries the candidate with the largest mean + beta sd, one candidate per round.

    With N T queries it is the limit of N agents that communicate for free and query one after another.

    Args:
        candidates, kernel, horizon, beta, noise_variance, gram: as in `Settings`.
        confidence: (t, log_det) -> beta (), instead of `beta`; one of the two is given. t, int (), is the number of the
            query to come, from 1, and log_det () is log det(I + K / noise_variance) of the queries before it. See
            `anytime_width`.
        coins: replace the algorithm's randomness, of one agent: the first query is the candidate that queries[0, 0]
            picks.

    Returns:
        Algorithm with actions int32 (1,), and answers int32 (), the maximiser of the mean.

    Raises:
        ValueError: an argument is not as `Settings` says, `confidence` is no function, or both of `beta` and
            `confidence` are given, or neither.

    **Guarantee**: regret of order gamma_T sqrt(T) with the width of `anytime_width`. **Cost**: O(M min(T, M)) a round.

    Source: Srinivas, Krause, Kakade and Seeger (2010), Algorithm 1.
    """
    if confidence is not None:
        checks.function("confidence", confidence, "t and log_det")
        checks.require(beta is None, "beta", "be None where confidence is given", beta)
    else:
        checks.require(beta is not None, "beta", "be given where confidence is None", beta)
    # If `confidence` is given, the settings' beta is not read.
    width = beta if confidence is None else 0.0
    settings = checked(
        Settings(
            candidates=candidates,
            kernel=kernel,
            n_agents=1,
            horizon=horizon,
            beta=width,
            noise_variance=noise_variance,
            gram=gram,
            coins=coins,
        )
    )

    def beta_of(t: Array, log_det: Array) -> Array:
        if confidence is None:
            return beta_at(settings.beta, t)
        return jnp.asarray(confidence(t + 1, log_det), settings.candidates.dtype)

    agent = algorithm_from_beta(settings, beta_of)

    def decide(key: Key, state: State) -> Decision:
        decision = agent.decide(key, state)
        return decision._replace(answer=decision.answer[0])

    return agent._replace(decide=decide)
