"""M-UCB: upper bounds that restart when the rewards of an arm change (Cao, Wen, Kveton, Xie, 2019)."""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.environment import Pull, Rewards
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, law_of, scale
from jaxbandits.mab._shared.frame import (
    Choice,
    Estimates,
    Ones,
    Rule,
    State,
    algorithm_from_rule,
    argmax,
    no_rewards,
    one_arm,
    unfused,
)
from jaxbandits.numerics.compensated import Sum
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.indexing import entry, is_entry, select


class Totals(NamedTuple):
    """Statistics of all pulls before the last restart."""

    pulls: Array  # int ()
    counts: Array  # int32 (K,)
    sums: Any  # as in the frame's state


class Monitor(NamedTuple):
    """Memory of the rule: the last restart, and the last rewards of every arm since then."""

    start: Totals
    # float (K, window)   reward m of an arm since the restart is entry (m - 1) mod window
    rewards: Array
    # float (K,)   sum of the newer half of the last `window` rewards, minus the older half; rewards that are missing
    # count 0. Exact for Bernoulli arms, otherwise a cache that `refresh` rebuilds.
    drift: Array


def m_ucb(problem: Problem, *, window: int, threshold: Array | float, gamma: Array | float) -> Algorithm:
    """Pulls the arm with the largest mean + 2 noise_scale sqrt(2 log(t) / N) since the last restart.

    t is the number of the next pull and N an arm's number of pulls, both counted from the last restart. In every
    floor(K / gamma) pulls the first K pull each arm once. The rule restarts when the last `window` rewards of the
    pulled arm since the restart differ: the sums of their newer and of their older half by more than the threshold.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`. The noise_scale of the last two is 1/2.
        window: w, pulls of an arm, an even int in [2, 2^24]. A state keeps as many rewards of every arm.
        threshold: b, () > 0, in units of reward.
        gamma: () in (0, 1], the share of uniform exploration.

    Returns:
        Algorithm with actions `Pull` of one slot and answers int32 (), the arm with the best mean since the restart. It
        never stops: give `run` or `sweep` a `horizon`.

    Raises:
        ValueError: an argument is out of range.

    **Guarantee** (Corollary 1, rewards in [0, 1], with `m_ucb_constants`): regret at T is O(sqrt(M K T log(T))) for M
    segments of constant means, if segments are long enough to detect each change. For Gaussian arms, whose rewards
    have no bound, none is proved. **Cost**: O(K) per round, and O(K window) per chunk of rounds. **Limit**: 2^31 - 1
    pulls.

    Source: Cao, Wen, Kveton and Xie (2019), Nearly optimal adaptive procedure with change detection for
    piecewise-stationary bandit, Algorithms 1 and 2. A reward in [0, 1] is sub-Gaussian with constant 1/2, hence the
    factor 2 noise_scale.
    """
    check_sub_gaussian(problem, "kl_ucb")
    window = checks.whole("window", window, least=2, most=2**24)
    checks.require(window % 2 == 0, "window", "be even", window)
    checks.positive("threshold", threshold)
    checks.real("gamma", gamma, above=0, most=1)
    K, dtype = problem.arms, float_dtype(problem)
    bound = jnp.asarray(threshold, dtype)
    # The cap keeps a tiny gamma within the integers: no run explores a second time.
    cycle = jnp.floor(jnp.minimum(K / jnp.asarray(gamma, dtype), 2.0**30)).astype(jnp.int32)

    def learn(state: State, action: Pull, rewards: Rewards) -> Monitor:
        before: Monitor = state.memory
        arm, is_paid = action.arms[0], rewards.times[0] > 0
        pulled = is_entry(arm, before.drift)
        count = entry(state.counts - before.start.counts, arm)
        # An idle action writes the old entry again: a select over all rewards would cost O(K window) per round.
        slot, middle = (count - 1) % window, (count - 1 - window // 2) % window
        oldest, centre = before.rewards[arm, slot], before.rewards[arm, middle]
        reward = jnp.where(is_paid, rewards.sums[0], oldest)
        # Entries of the time before the restart are not erased; these counts tell them apart.
        moved = jnp.where(count > window // 2, centre, 0)
        gone = jnp.where(count > window, oldest, 0)
        drift = before.drift + jnp.where(pulled, reward - 2 * moved + gone, 0)
        has_changed = is_paid & (count >= window) & (jnp.abs(entry(drift, arm)) > bound)
        start = select(has_changed, Totals(state.pulls, state.counts, state.sums), before.start)
        drift = jnp.where(has_changed, 0, jnp.where(is_paid, drift, before.drift))
        return Monitor(start, before.rewards.at[arm, slot].set(reward), drift)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        start = state.memory.start
        counts, pulls = state.counts - start.counts, state.pulls - start.pulls
        sums, N = _sums_since(state.sums, start.sums, dtype), jnp.maximum(counts, 1).astype(dtype)
        means = sums / N
        bounds = means + 2 * scale(problem) * jnp.sqrt(2 * log((pulls + 1).astype(dtype)) / N)
        turn = (pulls % cycle.astype(pulls.dtype)).astype(jnp.int32)
        # The first K pulls after a restart are of this kind, so no arm without a pull has a bound below.
        arm = jnp.where(turn < K, turn, argmax(unfused(bounds), estimates.lots))
        best = argmax(unfused(jnp.where(counts > 0, means, -jnp.inf)), estimates.lots)
        return Choice(one_arm(arm), jnp.zeros((), bool), best)

    def refresh(state: State) -> State:
        memory: Monitor = state.memory
        counts = (state.counts - memory.start.counts)[:, None]
        age = (counts - 1 - jnp.arange(window, dtype=jnp.int32)[None]) % window
        signs = jnp.where(age < window // 2, 1, -1).astype(dtype)
        drift = jnp.sum(jnp.where(age < counts, signs * memory.rewards, 0), axis=1)
        return state._replace(memory=memory._replace(drift=drift))

    totals = Totals(jnp.zeros((), int), jnp.zeros(K, jnp.int32), no_rewards(problem))
    start = Monitor(totals, jnp.zeros((K, window), dtype), jnp.zeros(K, dtype))
    algorithm = algorithm_from_rule(problem, Rule(choose, start, learn=learn), in_turn=False)
    # Sums of zeros and ones carry no rounding.
    return algorithm if law_of(problem).counts_ones else algorithm._replace(refresh=refresh)


class MUcbConstants(NamedTuple):
    """Constants of `m_ucb` for which its guarantee is proved."""

    window: int  # w, pulls of an arm
    threshold: float  # b, in units of reward
    gamma: float  # share of uniform exploration


def m_ucb_constants(problem: Problem, *, horizon: int, changes: int, smallest_change: float) -> MUcbConstants:
    """Computes the constants of `m_ucb` for a known horizon, number of changes and smallest change of a mean.

    With d = smallest_change / (2 noise_scale), w = (4 / d^2) (sqrt(log(2 K T^2)) + sqrt(log(2 T)))^2, rounded up to an
    even number, b = 2 noise_scale sqrt(w log(2 K T^2) / 2), and gamma = sqrt(changes K (2 b' + 3 sqrt(w)) / (2 T)) with
    b' = b / (2 noise_scale), at most 1.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`. The noise_scale of the last two is 1/2.
        horizon: T, pulls, an int >= 1.
        changes: number of times at which means change, an int >= 1.
        smallest_change: () > 0, a Python number: at every change, the mean of some arm moves by at least this.

    Returns:
        MUcbConstants, for `m_ucb(problem, **m_ucb_constants(problem, ..)._asdict())`. Windows are long: 3162 pulls for
        2 Bernoulli arms, T = 10^5 and a change by .3.

    Raises:
        ValueError: an argument is out of range, or the window is longer than 2^24.

    Source: Cao, Wen, Kveton and Xie (2019), Remark 1.
    """
    check_sub_gaussian(problem, "kl_ucb")
    horizon = checks.whole("horizon", horizon, least=1)
    changes = checks.whole("changes", changes, least=1)
    checks.positive("smallest_change", smallest_change)
    checks.require(checks.is_concrete(smallest_change), "smallest_change", "be concrete", smallest_change)
    K, unit = problem.arms, 2 * scale(problem)
    of_arms, of_time = math.log(2 * K) + 2 * math.log(horizon), math.log(2 * horizon)
    half = 2 * (unit / float(smallest_change) * (math.sqrt(of_arms) + math.sqrt(of_time))) ** 2
    checks.require(half <= 2**23, "smallest_change", "give a window of at most 2^24 pulls", smallest_change)
    window = 2 * math.ceil(half)
    threshold = math.sqrt(window * of_arms / 2)
    gamma = math.sqrt(changes * K * (2 * threshold + 3 * math.sqrt(window)) / (2 * horizon))
    return MUcbConstants(window, unit * threshold, min(gamma, 1.0))


def _sums_since(sums: Any, start: Any, dtype: Any) -> Array:
    """Returns the rewards of every arm since the restart, float (K,)."""
    if isinstance(sums, Ones):
        return (sums.counts - start.counts).astype(dtype)
    if isinstance(sums, Sum):
        return (sums.total - start.total) + (sums.lost - start.lost)
    return sums - start
