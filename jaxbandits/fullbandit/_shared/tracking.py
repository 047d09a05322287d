"""Frame of the algorithms with a fixed design: statistics, the estimate, and the times at which a rule is tested.

The super-arms are pulled in an order that is fixed before the first reward: a tracked design. The rewards decide only
when to stop. All pulls between two tests of a rule are therefore one action, and this is exact.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Decision, Key, PyTree, static_fields
from jaxbandits.fullbandit._problem.design import Design, check_design, counts_after
from jaxbandits.fullbandit._problem.environment import Pulls, design_fields
from jaxbandits.fullbandit._shared.leap import Growth, safe_leap
from jaxbandits.numerics.compensated import add_to, no_loss
from jaxbandits.numerics.indexing import is_among_largest
from jaxbandits.numerics.linalg import gram, spd_inverse

DesignMatrix = Literal["counts", "limit"]


class State(NamedTuple):
    """Observations so far."""

    pulls: Array  # int ()
    counts: Array  # int (s,)    pulls of every super-arm of the design
    sums: Array  # float (s,)    sums of their rewards
    lost: Array | tuple[()] = ()  # float (s,) in 32 bit: rounding error of `sums`, as in `compensated`


class Estimate(NamedTuple):
    """Least squares from the counts and sums of a design's super-arms."""

    theta: Array  # float (n,)
    inverse: Array  # float (n, n)   A^-1, or the multiple of Lambda^-1 that bounds it from above
    level: Array  # float ()         smallest ratio of count to weight: A >= level Lambda


class Verdict(NamedTuple):
    """Result of a test of a rule."""

    answer: Array  # bool (n,)   the estimated best super-arm
    stop: Array  # bool ()       true if the rule holds
    margin: Array  # float ()    margin by which it holds; below 0 if it fails
    radius: Array  # float ()    C_t


@static_fields("design_matrix")
class Pace(NamedTuple):
    """Times and matrix of the tests of a rule. All pulls between two tests are one round, with their exact law."""

    # () at least s, number of pulls before the first test. If None, s, the size of the support
    first_test: Array | int | None = None
    # pulls between two tests: a `Growth`, or its share as a number. If None, every round is one pull
    growth: Growth | Array | float | None = 1e-3
    # "counts": A is the matrix of the pulls made. "limit": A is t Lambda, so that no test inverts a matrix, and a
    # uniform design is tested after whole cycles, unless growth is None
    design_matrix: DesignMatrix = "counts"


PACE = Pace()


def algorithm_from_test(
    design: Design, test: Callable[[Estimate, Array], tuple[Verdict, Array]], *, reach: Array, pace: Pace
) -> Algorithm:
    """Builds the algorithm that tracks a design and tests a rule after safe leaps.

    Args:
        design: the design to track.
        test: the rule, (estimate, t) -> (Verdict, width), with the width of `safe_leap`.
        reach: see `safe_leap`.
        pace: times and matrix of the tests.

    Returns:
        Algorithm with actions `Pulls` and answers bool (n,). It makes no pulls that an integer could not count: such a
        run idles until its rounds are spent, and is censored.
    """
    s, dtype = design.support.shape[0], design.inverse.dtype
    first = jnp.asarray(s if pace.first_test is None else pace.first_test, int)
    estimate, growth = estimator(design, design_matrix=pace.design_matrix), growth_of(design, pace)
    zeros = jnp.zeros(s, int)

    def init(key: Key) -> State:
        del key
        return State(jnp.zeros((), int), zeros, zeros.astype(dtype), no_loss((s,), dtype))

    def decide(key: Key, state: State) -> Decision:
        del key
        t = jnp.maximum(state.pulls, 1).astype(dtype)
        verdict, width = test(estimate(state.counts, state.sums), t)
        leap = safe_leap(t, margin=verdict.margin, width=width, reach=reach, growth=growth)
        is_tested = state.pulls >= first
        whole_cycles = pace.design_matrix == "limit" and growth is not None
        counts = next_counts(design, state, jnp.where(is_tested, leap, first - state.pulls), whole_cycles=whole_cycles)
        return Decision(Pulls(counts), is_tested & verdict.stop, verdict.answer)

    def observe(state: State, action: Pulls, observation: Array) -> State:
        sums, lost = add_to(state.sums, state.lost, observation)
        return State(state.pulls + action.counts.sum(), state.counts + action.counts, sums, lost)

    return Algorithm(init, decide, observe, Pulls(zeros), **design_fields(design))


def estimator(design: Design, *, design_matrix: DesignMatrix = "counts") -> Callable[[Array, Array], Estimate]:
    """Builds the least-squares estimator for runs that track a design.

    "counts" inverts A = sum of count x x' anew at every test, in units of a pull. "limit" replaces the shares of the
    counts by the design's weights, so that nothing is inverted during a run. Its theta is the weighted least squares
    estimate, unbiased for any counts, and level Lambda bounds its precision from below. The two agree if the counts are
    proportional to the weights, as for a uniform design after every whole cycle.

    Args:
        design: the tracked design.
        design_matrix: "counts" or "limit".

    Returns:
        (counts int (s,), sums float (s,)) -> Estimate. A super-arm that has not been pulled counts as pulled once, so
        the estimate before the first pull is 0, with a regular matrix. Cost: O(s n^2 + n^3) for "counts",
        O(s n + n^2) for "limit".

    Raises:
        ValueError: an argument is not as above.
    """
    check_design(design)
    checks.one_of("design_matrix", design_matrix, DesignMatrix)

    def estimate(counts: Array, sums: Array) -> Estimate:
        pulled = jnp.maximum(counts, 1).astype(design.inverse.dtype)
        level = jnp.min(pulled / design.weights)
        if design_matrix == "counts":
            t = pulled.sum()
            inverse = spd_inverse(gram(design.support, pulled / t)) / t
            weighted, unit = sums, inverse
        else:
            # DEVIATION: the sums are rescaled to counts that match the weights. The published Lambda^-1 X' S / t is
            # biased as long as they do not.
            inverse = design.inverse / level
            weighted, unit = sums * (design.weights / pulled), design.inverse
        theta = jnp.matmul(unit, jnp.matmul(weighted, design.support, precision="highest"), precision="highest")
        return Estimate(theta, inverse, level)

    return estimate


def next_counts(design: Design, state: PyTree, leap: Array, *, whole_cycles: bool) -> Array:
    """Computes the pulls of the next round.

    Args:
        design: the tracked design.
        state: a state with `counts` int (s,) and `pulls` int ().
        leap: int (), number of pulls.
        whole_cycles: whether a uniform design continues to the end of a cycle.

    Returns:
        int (s,), at least 0; 0 if an integer could not count the pulls.
    """
    s = design.support.shape[0]
    room = jnp.iinfo(state.pulls.dtype).max - s - state.pulls
    target = state.pulls + jnp.where(leap <= room, leap, 0)
    if whole_cycles:
        cycle = jnp.maximum(design.cycle, 1).astype(target.dtype)
        target = -(-target // cycle) * cycle
    # In float32 a count may be off by a few pulls, but no pull is taken back.
    return jnp.maximum(counts_after(design, target) - state.counts, 0)


def top_set(theta: Array, k: int) -> Array:
    """Marks the k largest entries, the lowest index first among ties.

    Args:
        theta: float (n,).
        k: a Python int in 1..n.

    Returns:
        bool (n,).

    Raises:
        ValueError: an argument is not as above.
    """
    theta = checks.array("theta", theta, ("n",))
    checks.whole("k", k, least=1, most=theta.size)
    return top_k_mask(theta, k)


@partial(jax.jit, static_argnums=1, inline=True)
def top_k_mask(theta: Array, k: int) -> Array:
    """Computes `top_set` without its checks."""
    return is_among_largest(theta, k)


def check_rule(design: Design, *, delta: Array | float, epsilon: Array | float, noise_scale: Array | float) -> None:
    """Raises `ValueError` unless the arguments that all rules share are in range; see `icb`."""
    check_design(design)
    checks.probability("delta", delta)
    checks.not_negative("epsilon", epsilon)
    checks.positive("noise_scale", noise_scale)


def check_estimate(design: Design, estimate: Estimate, t: Array | float) -> None:
    """Raises `ValueError` unless it is an estimate of the design's arms, after t >= 1 pulls."""
    n = design.support.shape[1]
    checks.instance("estimate", estimate, Estimate)
    checks.array("estimate.theta", estimate.theta, (n,))
    checks.array("estimate.inverse", estimate.inverse, (n, n))
    checks.array("estimate.level", estimate.level, (), least=0)
    checks.real("t", t, least=1)


def growth_of(design: Design, pace: Pace) -> Growth | None:
    """Returns the growth of a pace with all its numbers; None if every round is one pull."""
    if pace.growth is None:
        return None
    growth = pace.growth if isinstance(pace.growth, Growth) else Growth(pace.growth)
    return growth._replace(pull_variance=design.k) if growth.pull_variance is None else growth


def check_pace(design: Design, pace: Pace, *, is_above_zero: bool = False) -> None:
    """Raises `ValueError` unless the fields of a pace are in range; `is_above_zero` also refuses a growth of 0."""
    checks.instance("pace", pace, Pace)
    if pace.first_test is not None:
        checks.integer("pace.first_test", pace.first_test, least=design.support.shape[0])
    growth = growth_of(design, pace)
    if growth is not None:
        check_share = checks.positive if is_above_zero else checks.not_negative
        check_share("pace.growth.share" if isinstance(pace.growth, Growth) else "pace.growth", growth.share)
        checks.positive("pace.growth.z", growth.z)
        checks.positive("pace.growth.pull_variance", growth.pull_variance)
    checks.one_of("pace.design_matrix", pace.design_matrix, DesignMatrix)
