"""Information-directed sampling: arms are pulled in the proportions in which they speak against an alternative."""

import jax.numpy as jnp

from jaxbandits.base import Array
from jaxbandits.mab._problem.problems import Problem, measured_problem
from jaxbandits.mab._problem.questions.asked import Question, kind_of
from jaxbandits.mab._problem.questions.top_m import cheapest_swap, swaps
from jaxbandits.mab._shared.confidence import leader_share_at
from jaxbandits.mab._shared.frame import Estimates, Proposal
from jaxbandits.mab._shared.top_two import Pair, tossed
from jaxbandits.numerics.elementary import log
from jaxbandits.numerics.indexing import first_true, is_entry, running_sums
from jaxbandits.numerics.kernels import apart
from jaxbandits.questions import TopM


def directed_arm(problem: Problem, question: Question, estimates: Estimates, uniform: Array) -> Proposal:
    """Proposes the first arm at which the sum of the parts of the nearest alternative exceeds a share of its cost.

    Args:
        problem: kind of the rewards.
        question: the question.
        estimates: estimates of all arms.
        uniform: float (), the share, in [0, 1).

    Returns:
        Proposal; where the alternative costs nothing, of the arm whose label it changes.
    """
    problem = measured_problem(problem, estimates.variances)
    nearest = kind_of(question).nearest(question, problem, estimates.counts, estimates.means)
    sums = running_sums(nearest.parts)
    total, is_nearest = sums[-1], is_entry(nearest.arm, nearest.parts)
    arm = first_true(jnp.where(total > 0, sums > uniform * total, is_nearest))

    def shares() -> Array:
        return jnp.where(total > 0, nearest.parts / total, is_nearest.astype(total.dtype))

    return Proposal(arm, shares)


def swapped_arm(
    problem: Problem,
    question: TopM,
    estimates: Estimates,
    *,
    members: Array,
    share: Array | float | str,
    penalty: float,
    uniform: Array,
) -> Proposal:
    """Proposes an arm of a set, or an arm outside it, of the pair that is hardest to tell apart.

    Args:
        problem: kind of the rewards.
        question: the size m of the set.
        estimates: estimates of all arms.
        members: bool (K,), a set of m arms.
        share: probability of the arm inside, () in (0, 1) or "ids".
        penalty: factor of log(N_i N_j / (N_i + N_j)), which is added to the cost of a pair.
        uniform: float (), the coin.

    Returns:
        Proposal.
    """
    measured = measured_problem(problem, estimates.variances)
    every = swaps(measured, question, members, estimates.counts, estimates.means)
    costs = every.costs
    if penalty:
        inside, outside = every.pulls
        # Logarithms of a flat array are vectors: two rows of five take 10 ns instead of 37.
        quotients = apart(lambda i, j: (i * j / (i + j)).reshape(-1), inside, outside)
        costs = costs + penalty * apart(log, quotients).reshape(costs.shape)
    swap = cheapest_swap(every, costs)
    share = leader_share_at(problem, share, estimates, swap.inside, swap.outside)
    return tossed(Pair(swap.inside, swap.outside), share, uniform, problem.arms)
