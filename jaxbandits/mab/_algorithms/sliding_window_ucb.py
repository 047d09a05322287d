"""Sliding-window UCB: upper bounds from the last pulls alone (Garivier, Moulines, 2011)."""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.environment import Pull, Rewards
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, law_of, scale
from jaxbandits.mab._shared.frame import Choice, Estimates, Rule, State, algorithm_from_rule, argmax, one_arm, unfused
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.indexing import is_entry, sliced


class Window(NamedTuple):
    """Last pulls, in a ring: pull t = 1, 2, .. is entry (t - 1) mod window."""

    arms: Array  # int32 (window,)   -1 for an entry that is still empty
    rewards: Array  # float (window,)
    counts: Array  # int32 (K,)   pulls of every arm in the window
    sums: Array  # float (K,)   their rewards; exact for Bernoulli arms, otherwise a cache that `refresh` rebuilds


def sliding_window_ucb(problem: Problem, *, window: int, exploration: Array | float = 0.6) -> Algorithm:
    """Pulls the arm with the largest mean + 2 noise_scale sqrt(exploration log(min(t, window)) / N) of the last pulls.

    The mean and the number N of an arm's pulls are over the last `window` pulls, t is the number of all pulls so far.
    An arm without a pull in the window is pulled next.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`. The noise_scale of the last two is 1/2.
        window: tau, pulls, an int in [K, 2^24]. A state keeps the arms and rewards of as many pulls.
        exploration: xi, () > 0. The proof requires more than 1/2.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean in the window. It
        never stops: give `run` or `sweep` a `horizon`.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (Theorem 2, rewards in [0, B] with B = 2 noise_scale): with tau = 2 B sqrt(T log(T) / C) for C changes
    of the means in T pulls, the expected number of pulls of an arm while it is not best is O(sqrt(C T log(T))). For
    Gaussian arms, whose rewards have no bound, none is proved. **Cost**: O(K) per round, and O(K window) per chunk
    of rounds. **Limit**: 2^31 - 1 pulls.

    Source: Garivier and Moulines (2011), On upper-confidence bound policies for switching bandit problems, SW-UCB. The
    paper's radius is B sqrt(xi log(min(t, tau)) / N); a reward in [0, B] is sub-Gaussian with constant B / 2.
    """
    check_sub_gaussian(problem, "kl_ucb")
    # Counts of a window must be exact in a 32-bit float.
    window = checks.whole("window", window, least=problem.arms, most=2**24)
    checks.positive("exploration", exploration)
    K, dtype = problem.arms, float_dtype(problem)
    xi = jnp.asarray(exploration, dtype)

    def learn(state: State, action: Pull, rewards: Rewards) -> Window:
        before: Window = state.memory
        slot = ((state.pulls - 1) % window).astype(jnp.int32)
        old_arm, old_reward = sliced(before.arms, slot), sliced(before.rewards, slot)
        is_paid = rewards.times[0] > 0
        # An idle action writes the old entry again: a select over the whole window would cost O(window) per round.
        arm = jnp.where(is_paid, action.arms[0], old_arm)
        reward = jnp.where(is_paid, rewards.sums[0], old_reward)
        enters, leaves = is_entry(arm, before.counts), is_entry(old_arm, before.counts)
        counts = before.counts + enters.astype(jnp.int32) - leaves.astype(jnp.int32)
        sums = before.sums - jnp.where(leaves, old_reward, 0) + jnp.where(enters, reward, 0)
        return Window(
            before.arms.at[slot].set(arm),
            before.rewards.at[slot].set(reward),
            counts,
            jnp.where(is_paid, sums, before.sums),
        )

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        memory: Window = state.memory
        is_open = memory.counts > 0
        counts = jnp.maximum(memory.counts, 1).astype(dtype)
        means = memory.sums / counts
        level = xi * log(jnp.clip(state.pulls, 1, window).astype(dtype))
        bounds = jnp.where(is_open, means + 2 * scale(problem) * jnp.sqrt(level / counts), jnp.inf)
        best = argmax(unfused(jnp.where(is_open, means, -jnp.inf)), estimates.lots)
        return Choice(one_arm(argmax(unfused(bounds), estimates.lots)), jnp.zeros((), bool), best)

    def refresh(state: State) -> State:
        memory: Window = state.memory
        is_arm = memory.arms[None] == jnp.arange(K, dtype=jnp.int32)[:, None]
        sums = jnp.sum(jnp.where(is_arm, memory.rewards[None], 0), axis=1)
        return state._replace(memory=memory._replace(sums=sums))

    empty = Window(
        jnp.full(window, -1, jnp.int32), jnp.zeros(window, dtype), jnp.zeros(K, jnp.int32), jnp.zeros(K, dtype)
    )
    algorithm = algorithm_from_rule(problem, Rule(choose, empty, learn=learn))
    # Sums of zeros and ones carry no rounding.
    return algorithm if law_of(problem).counts_ones else algorithm._replace(refresh=refresh)
