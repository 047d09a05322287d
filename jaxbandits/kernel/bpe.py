"""BPE: batched pure exploration, one learner that looks at its rewards a few times only (Li and Scarlett, 2022)."""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.kernel.problem import Traffic, check_run, check_size
from jaxbandits.kernel.ucb import best, memory
from jaxbandits.numerics.gp import Kernel, Posterior, condition, prior


class State(NamedTuple):
    """The active candidates, and what the current batch tells of them."""

    pulls: Array  # int ()
    traffic: Traffic  # none
    t: Array  # int32 ()  queries observed
    active: Array  # bool (M,)
    answer: Array  # int32 ()  the active candidate with the largest mean after the last batch
    posterior: Posterior  # float (M,), (M,), ()  of the current batch; of all data with `keep_data`
    kept: Array  # float (C, M), or (M, M) if C > M  its covariance, C the most data it may have, see `memory`


def batch_lengths(horizon: int) -> tuple[int, ...]:
    """Queries of each batch: ceil(sqrt(T)), then ceil(sqrt(T times the last length)), the last one cut.

    Args:
        horizon: T.

    Returns:
        Lengths whose sum is T.

    Raises:
        ValueError: `horizon` is no int >= 1.

    Source: Li and Scarlett (2022), Section 3.1.
    """
    check_size("horizon", horizon)
    lengths, last = [], 1
    while (left := horizon - sum(lengths)) > 0:
        last = math.isqrt(horizon * last - 1) + 1
        lengths.append(min(last, left))
    return tuple(lengths)


def bpe(
    candidates: Array,
    *,
    kernel: Kernel,
    horizon: int,
    beta: Array | float,
    ridge: Array | float,
    keep_data: bool = False,
    gram: Array | None = None,
) -> Algorithm:
    """One learner asks where it knows least, batch after batch, and after each drops what is surely not the best.

    Within a batch the queries do not depend on rewards. At its end only the candidates stay whose mean + beta sd
    reaches the largest mean - beta sd of all active ones, and the next batch starts without data.

    Args:
        candidates: float (M, d); the run has their dtype.
        kernel: of a single pair of points.
        horizon: T, queries.
        beta: width of the elimination, in standard deviations, () >= 0; the paper's square root of beta.
        ridge: variance of the noise, () > 0.
        keep_data: whether a batch starts with the data of those before it, as in the authors' code; the proof does
            not hold for that.
        gram: float (M, M), the kernel of all pairs, or None: columns are taken from it instead of computed.

    Returns:
        Algorithm with actions int32 (1,), and answers int32 (): the active candidate with the largest mean after the
        last batch, 0 before the first has ended.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee**: with beta = B + (R / sqrt(ridge)) sqrt(2 log(2 M J / delta)) for J batches and noise that is
    R-sub-Gaussian, regret of order sqrt(T gamma_T) up to logarithms, with probability 1 - delta.
    **Cost**: O(M min(C, M)) a round, C the longest batch.

    Source: Li and Scarlett (2022), Algorithm 1.
    """
    candidates = check_run(
        candidates,
        kernel=kernel,
        n_agents=1,
        horizon=horizon,
        beta=beta,
        ridge=ridge,
        schedule=False,
        gram=gram,
    )
    dtype, size = candidates.dtype, candidates.shape[0]
    beta, ridge = jnp.asarray(beta, dtype), jnp.asarray(ridge, dtype)
    lengths = batch_lengths(horizon)
    most = horizon if keep_data else max(lengths)
    covariance = memory(kernel, candidates, most, gram)
    nothing_known = prior(kernel, candidates)
    starts = np.repeat(np.cumsum((0, *lengths[:-1])), lengths)
    is_last = np.zeros(horizon, bool)
    is_last[np.cumsum(lengths) - 1] = True
    # Per query: how much of the buffer counts, and whether the batch ends with it.
    live = jnp.asarray(np.arange(horizon) - (0 if keep_data else starts), jnp.int32)
    is_last = jnp.asarray(is_last)

    def init(key: Key) -> State:
        del key
        nothing = jnp.zeros((), int)
        return State(
            pulls=nothing,
            traffic=Traffic(nothing, nothing),
            t=jnp.zeros((), jnp.int32),
            active=jnp.ones(size, bool),
            answer=jnp.zeros((), jnp.int32),
            posterior=nothing_known,
            kept=covariance.start,
        )

    def decide(key: Key, state: State) -> Decision:
        del key
        query = best(jnp.where(state.active, state.posterior.variance, -1))
        return Decision(query[None], state.t >= horizon, state.answer)

    def observe(state: State, action: Array, rewards: Array) -> State:
        asked = action[0] < size
        live_rows = live.at[state.t].get(mode="clip")
        column = covariance.columns(state.kept, action, live_rows[None])[0, 0]
        posterior, row = condition(state.posterior, column, action[0], rewards[0], ridge)
        kept = covariance.append(state.kept, row[None], jnp.where(asked, live_rows, most))

        ends = asked & is_last.at[state.t].get(mode="clip")
        sd = beta * jnp.sqrt(posterior.variance)
        lowest = jnp.finfo(dtype).min
        worst_of_best = jnp.max(jnp.where(state.active, posterior.mean - sd, lowest))
        stays = state.active & (posterior.mean + sd >= worst_of_best)
        leader = best(jnp.where(state.active, posterior.mean, lowest))
        if not keep_data:
            posterior = Posterior(
                *(jnp.where(ends, new, old) for new, old in zip(nothing_known, posterior, strict=True))
            )
            if not covariance.is_buffer:
                kept = jnp.where(ends, covariance.start, kept)
        return State(
            pulls=state.pulls + asked.astype(state.pulls.dtype),
            traffic=state.traffic,
            t=state.t + asked.astype(jnp.int32),
            active=jnp.where(ends, stays, state.active),
            answer=jnp.where(ends, leader, state.answer),
            posterior=posterior,
            kept=kept,
        )

    return Algorithm(init, decide, observe, jnp.full(1, size, jnp.int32))
