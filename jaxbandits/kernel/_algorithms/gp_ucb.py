"""GP-UCB: one learner with all the queries (Srinivas, Krause, Kakade, Seeger, 2010)."""

import jax.numpy as jnp

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
    beta: Array | float | BetaRule,
    noise_variance: Array | float,
    gram: Array | None = None,
    coins: Coins | None = None,
) -> Algorithm:
    """Queries the candidate with the largest mean + beta sd, one candidate per round.

    With N T queries it is the limit of N agents that communicate for free and query one after another.

    Args:
        candidates, kernel, horizon, noise_variance, gram: as in `Settings`.
        beta: as in `Settings`, or a function (t, log_det) -> beta (). t, int (), is the number of the query to come,
            from 1, and log_det () is log det(I + K / noise_variance) of the queries before it. See `anytime_width`.
        coins: replace the algorithm's randomness, of one agent: the first query is the candidate that queries[0, 0]
            picks.

    Returns:
        Algorithm with actions int32 (1,), and answers int32 (), the maximiser of the mean.

    Raises:
        ValueError: an argument is not as above, or not as `Settings` says.

    **Guarantee**: regret of order gamma_T sqrt(T) with the width of `anytime_width`. **Cost**: O(M min(T, M)) a round.

    Source: Srinivas, Krause, Kakade and Seeger (2010), Algorithm 1.
    """
    settings = checked(
        Settings(
            candidates=candidates,
            kernel=kernel,
            n_agents=1,
            horizon=horizon,
            # If beta is a function, the number here is not read.
            beta=0.0 if callable(beta) else beta,
            noise_variance=noise_variance,
            gram=gram,
            coins=coins,
        )
    )

    def beta_of(t: Array, log_det: Array) -> Array:
        if callable(beta):
            return jnp.asarray(beta(t + 1, log_det), settings.candidates.dtype)
        return beta_at(settings.beta, t)

    agent = algorithm_from_beta(settings, beta_of)

    def decide(key: Key, state: State) -> Decision:
        decision = agent.decide(key, state)
        return decision._replace(answer=decision.answer[0])

    return agent._replace(decide=decide)
