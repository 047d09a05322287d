"""(ST)^2: all arms within epsilon of the best, by the labels that are least sure (Mason et al., 2020)."""

from typing import NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.environment import Pull, Rewards
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, law_of, scale
from jaxbandits.mab._problem.questions.all_good import AllGood
from jaxbandits.mab._shared.asking import for_question
from jaxbandits.mab._shared.batches import algorithm_in_batches
from jaxbandits.mab._shared.frame import (
    Choice,
    Estimates,
    Rule,
    State,
    argmax,
    argmin,
    estimates,
    total_rewards,
    unfused,
)
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.indexing import entry, is_entry

SLOTS = 3


class Bounds(NamedTuple):
    """Tightest bounds of all means so far."""

    # float (K,)   smallest mean + radius after any pull of the arm; the largest float before the first
    upper: Array
    lower: Array  # float (K,)   largest mean - radius; minus the largest float before the first pull


def st2(problem: Problem, *, epsilon: Array | float, delta: Array | float, every: int = 1) -> Algorithm:
    """Pulls the most optimistic arm, with the arms on both sides of the margin that may have the wrong label.

    After its n-th pull an arm has the interval mean -+ 2 noise_scale sqrt(log(K log2(2 n) / delta) / n), with
    noise_scale 1/2 for rewards in [0, 1]. Its bounds are the tightest so far. Good arms have means within epsilon of
    the best mean. A round pulls up to three arms: the arm with the largest upper bound; the good arm with the smallest
    lower bound, unless that exceeds the largest upper bound minus epsilon; and the other arm with the largest upper
    bound, unless that is below the largest lower bound minus epsilon. The first may be one of the others, and is then
    pulled twice. If no label is open, the run stops. Ties go to the lowest index.

    Args:
        problem: `Gaussian`, `Bernoulli` or `Bounded`.
        epsilon: () >= 0, in units of reward, below 1 for rewards in [0, 1].
        delta: () in (0, 1), allowed probability of error.
        every: pulls per decision, an int >= 1. With more than 1, a round is a batch of `every` pulls after the first K,
            divided evenly between the two or three pulls that are due. An arm's bounds move once, at the batch's end.

    Returns:
        Algorithm with actions `Pull` of three slots, in batches of K, and answers bool (K,), the arms within epsilon of
        the best mean.

    Raises:
        ValueError: an argument is out of range, or the arms have no known sub-Gaussian constant.

    **Guarantee**: P(the answer is wrong) <= delta (`is_right` of `AllGood(epsilon)`) if K >= 4 delta, since all
    intervals then hold with that probability: for n from m = 2^j to 2 m, the curve 2 sqrt(n log(x)) with
    x = K (j + 1) / delta lies above its chord, the line a + b n, which a sum of standard sub-Gaussian rewards reaches
    with a probability of at most exp(-2 a b) = x^-1.94; summed over both sides, all octaves and arms this is below
    3.41 K (delta / K)^1.94. **Cost**: O(K) per round of up to three pulls. **Limit**: 2^31 - 1 pulls.

    Source: Mason, Jain, Tripathy and Nowak (2020), Finding all epsilon-good arms in stochastic bandits, (ST)^2, with
    the radius of its authors' program. The proof of its intervals is ours.

    Example:
        >>> import jax
        >>> from jaxbandits import mab, run
        >>> instance = mab.gaussian([1.0, 0.9, 0.0])
        >>> algorithm = mab.st2(instance.problem, epsilon=0.4, delta=0.1)
        >>> outcome = run(jax.random.key(0), algorithm, mab.environment(instance, algorithm), max_rounds=10**5)
        >>> print(outcome.answer)
        [ True  True False]
    """
    check_sub_gaussian(problem, "eb_tc with AllGood")
    checks.real("epsilon", epsilon, least=0, below=law_of(problem).width)
    checks.probability("delta", delta)
    checks.whole("every", every, least=1)
    K, dtype, question = problem.arms, float_dtype(problem), AllGood(epsilon)
    margin, delta = jnp.asarray(epsilon, dtype), jnp.asarray(delta, dtype)

    def radius(count: Array) -> Array:
        # A difference of logarithms, since the quotient by delta may overflow.
        return 2 * scale(problem) * jnp.sqrt((log(K * jnp.log2(2 * count)) - jnp.log(delta)) / count)

    def tightened(bounds: Bounds, pulled: Array, mean: Array, width: Array) -> Bounds:
        upper, lower = bounds
        upper = jnp.where(pulled, jnp.minimum(upper, mean + width), upper)
        return Bounds(upper, jnp.where(pulled, jnp.maximum(lower, mean - width), lower))

    def learn(state: State, action: Pull, rewards: Rewards) -> Bounds:
        bounds = state.memory
        counts, sums = state.counts.astype(dtype), total_rewards(problem, state)
        for i in range(SLOTS):
            arm = action.arms[i]
            # An arm may have a later slot too. Its mean between the two pulls has bounds of its own.
            later = (action.arms[i + 1 :] == arm) & (rewards.times[i + 1 :] > 0)
            count = entry(counts, arm) - jnp.sum(later.astype(dtype))
            total = entry(sums, arm) - jnp.sum(jnp.where(later, rewards.sums[i + 1 :], 0))
            count = jnp.maximum(count, 1)
            mean, width = total / count, radius(count)
            bounds = tightened(bounds, is_entry(arm, counts) & (rewards.times[i] > 0), mean, width)
        return bounds

    def end(state: State, pulled: Array) -> Bounds:
        now = estimates(problem, state)
        return tightened(state.memory, pulled, now.means, radius(now.counts))

    def choose(key: Key, state: State, now: Estimates) -> Choice:
        del key
        upper, lower = unfused(state.memory)
        is_good = now.means >= jnp.max(now.means) - margin
        first = argmax(upper)
        inside, outside = jnp.where(is_good, lower, jnp.inf), jnp.where(is_good, -jnp.inf, upper)
        is_inside_open = jnp.min(inside) <= jnp.max(upper) - margin
        # If all arms are inside, the largest bound outside is -inf, and no arm is due there.
        is_outside_open = jnp.max(outside) >= jnp.max(lower) - margin
        is_open = is_inside_open | is_outside_open
        arms = jnp.stack([first, argmin(inside), argmax(outside)])
        times = jnp.stack([is_open, is_inside_open, is_outside_open]).astype(jnp.int32)

        def shares() -> Array:
            is_of = arms[None] == jnp.arange(K, dtype=jnp.int32)[:, None]
            pulls = jnp.sum(jnp.where(is_of, times[None], 0), axis=1).astype(dtype)
            return pulls / jnp.maximum(jnp.sum(pulls), 1)

        return Choice(Pull(arms, times), ~is_open, is_good, shares)

    widest = jnp.full(K, jnp.finfo(dtype).max, dtype)
    memory = Bounds(widest, -widest)
    rule = Rule(choose, memory, learn=learn, end=end)
    algorithm = algorithm_in_batches(problem, rule, every=every, slots=SLOTS, draws_lots=False)
    return for_question(algorithm, problem, question)
