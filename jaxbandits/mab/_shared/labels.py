"""Good arms by intervals: each pull may label the pulled arm, and labelled arms are pulled no more."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Key
from jaxbandits.mab._problem.environment import Pull, Rewards
from jaxbandits.mab._problem.problems import Problem, check_sub_gaussian, float_dtype, scale
from jaxbandits.mab._problem.questions.above import check_mean
from jaxbandits.mab._problem.questions.good_arm import GoodArm
from jaxbandits.mab._shared.asking import for_question
from jaxbandits.mab._shared.batches import algorithm_in_batches
from jaxbandits.mab._shared.frame import (
    Choice,
    Estimates,
    Rule,
    State,
    argmax,
    estimates,
    one_arm,
)
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.indexing import is_entry
from jaxbandits.questions import Above

# (estimates, radii, level) -> float (K,); the unlabelled arm with the largest entry is pulled
Index = Callable[[Estimates, Array, Array], Array]


class Labels(NamedTuple):
    """Labels of all arms."""

    is_open: Array  # bool (K,)   arms without a label
    good_at: Array  # int (K,)   pulls of the run at which the arm was found to be good; 0 for other arms


def algorithm_from_labels(
    problem: Problem, index: Index, *, level: Array | float, delta: Array | float, all_arms: Any, every: int
) -> Algorithm:
    """Builds the algorithm that labels arms by the intervals mean +- noise_scale sqrt(2 log(4 K N^2 / delta) / N).

    Every arm is pulled once, in turn, then the unlabelled arm with the largest index. Ties go to the lowest index. A
    pull labels its arm: bad if its interval lies below the level, good if it lies at the level or above.

    Args:
        problem: kind of the rewards, with a sub-Gaussian constant.
        index: indices of all arms.
        level: () in units of reward, inside the range of the means.
        delta: () in (0, 1).
        all_arms: bool, whether it goes on after the first good arm.
        every: pulls per decision, all of one arm, which is looked at after the last of them.

    Returns:
        Algorithm with actions `Pull` of one slot. Answers are int32 (), an arm, or K if no arm is good; with `all_arms`
        bool (K,), the good arms.

    Raises:
        ValueError: an argument is out of range.
    """
    check_sub_gaussian(problem, "eb_tc with GoodArm")
    check_mean("level", level, problem)
    checks.probability("delta", delta)
    checks.flag("all_arms", all_arms)
    checks.whole("every", every, least=1)
    K, dtype, sigma = problem.arms, float_dtype(problem), scale(problem)
    level, constant = jnp.asarray(level, dtype), jnp.log(4 * K / jnp.asarray(delta, dtype))

    def radii(counts: Array) -> Array:
        return sigma * jnp.sqrt(2 * (constant + 2 * log(counts)) / counts)

    def look(state: State, among: Callable[[Array], Array]) -> Labels:
        labels, now = state.memory, estimates(problem, state)
        looked = among(labels.is_open)
        radius = radii(now.counts)
        is_bad = looked & (now.means + radius < level)
        is_good = looked & ~is_bad & (now.means - radius >= level)
        return Labels(labels.is_open & ~is_bad & ~is_good, jnp.where(is_good, state.pulls, labels.good_at))

    def learn(state: State, action: Pull, rewards: Rewards) -> Labels:
        return look(state, lambda arms: arms & is_entry(action.arms[0], arms) & (rewards.times[0] > 0))

    def end(state: State, pulled: Array) -> Labels:
        return look(state, lambda arms: arms & pulled)

    def choose(key: Key, state: State, estimates: Estimates) -> Choice:
        del key
        labels = state.memory
        best = argmax(jnp.where(labels.is_open, index(estimates, radii(estimates.counts), level), -jnp.inf))
        arm = jnp.where(state.pulls < K, state.pulls.astype(jnp.int32), best)
        is_good = labels.good_at > 0
        none_is_open = ~jnp.any(labels.is_open)
        if all_arms:
            return Choice(one_arm(arm), none_is_open, is_good)
        answer = jnp.where(jnp.any(is_good), argmax(is_good), K).astype(jnp.int32)
        return Choice(one_arm(arm), jnp.any(is_good) | none_is_open, answer)

    start = Labels(jnp.ones(K, bool), jnp.zeros(K, int))
    rule = Rule(choose, start, learn=learn, end=end)
    algorithm = algorithm_in_batches(problem, rule, every=every, in_turn=False, draws_lots=False)
    return for_question(algorithm, problem, Above(level) if all_arms else GoodArm(level))
