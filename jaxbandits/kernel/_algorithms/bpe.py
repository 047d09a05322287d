"""BPE: batched pure exploration, one learner that looks at its rewards a few times only (Li and Scarlett, 2022)."""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kernel._problem.environment import made_for
from jaxbandits.kernel._problem.settings import Settings, checked
from jaxbandits.kernel._shared.traffic import Traffic, no_traffic
from jaxbandits.kernel._shared.ucb import memory
from jaxbandits.numerics.gp import Kernel, Posterior, condition, prior
from jaxbandits.numerics.indexing import first_largest_in_rows


class State(NamedTuple):
    """The active candidates, and what the current batch tells of them."""

    pulls: Array  # int ()
    traffic: Traffic  # 0
    t: Array  # int32 ()  queries observed
    active: Array  # bool (M,)
    answer: Array  # int32 ()  the active candidate with the largest mean after the last batch
    posterior: Posterior  # float (M,), (M,), ()  of the current batch; of all data with `keep_data`
    memory: Array  # float (C, M), or (M, M) if C > M  its covariance, C the most data it may have, see `memory`


def bpe(
    candidates: Array,
    *,
    kernel: Kernel,
    horizon: int,
    beta: Array | float,
    noise_variance: Array | float,
    keep_data: bool = False,
    gram: Array | None = None,
) -> Algorithm:
    """Queries where the variance is largest, batch after batch, and eliminates candidates after each batch.

    Within a batch the queries do not depend on rewards. At its end only the candidates stay whose mean + beta sd
    reaches the largest mean - beta sd of all active ones, and the next batch starts without data.

    Args:
        candidates, kernel, horizon, noise_variance, gram: as in `Settings`.
        beta: width of the elimination, in standard deviations, () >= 0; the paper's square root of beta.
        keep_data: whether a batch starts with the data of those before it, as in the authors' code; the proof does
            not hold for that.

    Returns:
        Algorithm with actions int32 (1,), and answers int32 (): the active candidate with the largest mean after the
        last batch, 0 before the first has ended.

    Raises:
        ValueError: an argument is not as above, or not as `Settings` says.

    **Guarantee**: with beta = B + (R / sqrt(noise_variance)) sqrt(2 log(2 M J / delta)) for J batches and noise that is
    R-sub-Gaussian, regret of order sqrt(T gamma_T) up to logarithms, with probability 1 - delta.
    **Cost**: O(M min(C, M)) a round, C the longest batch.

    Source: Li and Scarlett (2022), Algorithm 1.
    """
    checks.flag("keep_data", keep_data)
    settings = checked(
        Settings(
            candidates=candidates,
            kernel=kernel,
            n_agents=1,
            horizon=horizon,
            beta=beta,
            noise_variance=noise_variance,
            gram=gram,
        ),
        beta_per_round=False,
    )
    beta, dtype, size = settings.beta, settings.candidates.dtype, settings.candidates.shape[0]
    lengths = batch_lengths(horizon)
    capacity = horizon if keep_data else max(lengths)
    covariance = memory(settings, capacity)
    before = prior(kernel, settings.candidates)
    starts = np.repeat(np.cumsum((0, *lengths[:-1])), lengths)
    is_last = np.zeros(horizon, bool)
    is_last[np.cumsum(lengths) - 1] = True
    # Per query: how much of the buffer counts, and whether the batch ends with it.
    live = jnp.asarray(np.arange(horizon) - (0 if keep_data else starts), jnp.int32)
    is_last = jnp.asarray(is_last)

    def init(key: Key) -> State:
        del key
        return State(
            pulls=jnp.zeros((), int),
            traffic=no_traffic(),
            t=jnp.zeros((), jnp.int32),
            active=jnp.ones(size, bool),
            answer=jnp.zeros((), jnp.int32),
            posterior=before,
            memory=covariance.start,
        )

    def decide(key: Key, state: State) -> Decision:
        del key
        query = first_largest_in_rows(jnp.where(state.active, state.posterior.variance, -1))
        return Decision(query[None], state.t >= horizon, state.answer)

    def observe(state: State, action: Array, rewards: Array) -> State:
        queried = action[0] < size
        rows = live.at[state.t].get(mode="clip")
        column = covariance.columns(state.memory, action, rows[None])[0, 0]
        posterior, row = condition(state.posterior, column, action[0], rewards[0], settings.noise_variance)
        stored = covariance.append(state.memory, row[None], jnp.where(queried, rows, capacity))

        ends = queried & is_last.at[state.t].get(mode="clip")
        sd = beta * jnp.sqrt(posterior.variance)
        lowest = jnp.finfo(dtype).min
        bound = jnp.max(jnp.where(state.active, posterior.mean - sd, lowest))
        stays = state.active & (posterior.mean + sd >= bound)
        leader = first_largest_in_rows(jnp.where(state.active, posterior.mean, lowest))
        if not keep_data:
            posterior = Posterior(*(jnp.where(ends, new, old) for new, old in zip(before, posterior, strict=True)))
            if not covariance.is_buffer:
                stored = jnp.where(ends, covariance.start, stored)
        return State(
            pulls=state.pulls + queried.astype(state.pulls.dtype),
            traffic=state.traffic,
            t=state.t + queried.astype(jnp.int32),
            active=jnp.where(ends, stays, state.active),
            answer=jnp.where(ends, leader, state.answer),
            posterior=posterior,
            memory=stored,
        )

    return Algorithm(init, decide, observe, jnp.full(1, size, jnp.int32), **made_for(settings))


def batch_lengths(horizon: int) -> tuple[int, ...]:
    """Queries of each batch: ceil(sqrt(T)), then ceil(sqrt(T times the last length)), the last one cut.

    Args:
        horizon: T.

    Returns:
        Lengths whose sum is T.

    Raises:
        ValueError: `horizon` is no integer of at least 1.

    Source: Li and Scarlett (2022), Section 3.1.
    """
    horizon = checks.whole("horizon", horizon, least=1)
    lengths, last = [], 1
    while (remaining := horizon - sum(lengths)) > 0:
        last = math.isqrt(horizon * last - 1) + 1
        lengths.append(min(last, remaining))
    return tuple(lengths)
