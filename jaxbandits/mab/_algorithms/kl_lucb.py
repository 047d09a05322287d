"""KL-LUCB: LUCB with the intervals of the relative entropy (Kaufmann and Kalyanakrishnan, 2013)."""

from jaxbandits.base import Algorithm, Array
from jaxbandits.mab._algorithms.lucb import algorithm_from_bounds
from jaxbandits.mab._problem.problems import Problem, bound
from jaxbandits.mab._problem.questions.asked import Question
from jaxbandits.mab._shared.asking import asked
from jaxbandits.mab._shared.confidence import level, stop_settings
from jaxbandits.mab._shared.frame import Estimates, State
from jaxbandits.numerics.thresholds import Threshold
from jaxbandits.questions import TopM


def kl_lucb(
    problem: Problem,
    *,
    question: Question | None = None,
    delta: Array | float,
    threshold: Threshold | None = None,
    epsilon: Array | float = 0.0,
    every: int = 1,
) -> Algorithm:
    """Pulls the arm with the best mean and its rival with the best upper bound, until their intervals separate.

    The interval of an arm with N pulls is all q with N kl(mean, q) <= threshold; for Gaussian arms that is `lucb`. An
    action has two slots.

    Arguments, result and errors: see `lucb`; any problem of this family.

    **Guarantee**: with a proved threshold, P(the answer is not epsilon-best) <= delta. The default `gk16` is a
    heuristic. With small probability a run never stops; set `max_rounds`. **Cost**: O(K) per round of two pulls, for
    Bernoulli arms 2 K relative entropies. **Limit**: 2^31 - 1 pulls.

    Source: Kaufmann and Kalyanakrishnan (2013), Information complexity in bandit subset selection.
    """
    question, epsilon = asked(problem, question, epsilon, every=every, among=(TopM,))
    settings = stop_settings(problem, delta, threshold, epsilon, compared=0)

    def one_sided(state: State, estimates: Estimates, is_upper: Array) -> Array:
        return bound(problem, estimates.means, level(settings, state) / estimates.counts, is_upper)

    return algorithm_from_bounds(settings, one_sided, question, every=every)
