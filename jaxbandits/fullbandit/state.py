"""What the algorithms with a fixed design share: their statistics, the estimate, and when a rule is tested.

The super-arms are pulled in an order that is fixed before the first reward: a tracked design. The rewards decide
nothing but when to stop, so all pulls between two tests of a rule are one action, exactly.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Decision, Key, PyTree
from jaxbandits.checks import known, require, require_not_negative
from jaxbandits.fullbandit.confidence import check_confidence
from jaxbandits.fullbandit.design import Design, check_design, tracking_counts
from jaxbandits.fullbandit.problem import Block
from jaxbandits.fullbandit.stride import safe_stride
from jaxbandits.numerics.linalg import gram as gram_matrix
from jaxbandits.numerics.linalg import spd_inverse

Gram = Literal["counts", "limit"]


class State(NamedTuple):
    """All that has been seen."""

    counts: Array  # int (s,)    pulls of every super-arm of the design
    sums: Array  # float (s,)    sums of their rewards
    pulls: Array  # int ()


class Estimate(NamedTuple):
    """Least squares from the counts and sums of a design's super-arms."""

    theta: Array  # float (n,)
    inverse: Array  # float (n, n)   A^-1, or the multiple of Lambda^-1 that bounds it from above
    level: Array  # float ()         the least count over weight: A >= level Lambda


class Look(NamedTuple):
    """A rule and what it found."""

    answer: Array  # bool (n,)   the estimated best super-arm
    stop: Array  # bool ()       the rule holds
    margin: Array  # float ()    by how much; below 0 where it fails
    radius: Array  # float ()    C_t


def track_and_test(
    design: Design,
    k: int,
    look: Callable[[Estimate, Array], tuple[Look, Array]],
    *,
    reach: Array,
    first_test: Array | int | None,
    resolution: Array | float | None,
    stride_z: Array | float,
    stride_variance: Array | float | None,
    gram: Gram,
) -> Algorithm:
    """The algorithm that tracks a design and tests a rule at safe strides.

    Args:
        design: what to pull, `make_design(support, k)`.
        k: size of a super-arm.
        look: the rule, (estimate, t) -> (Look, width), the width as `safe_stride` wants it.
        reach: as in `safe_stride`.
        first_test: () at least s; the rule is not tested before so many pulls. None: s, the size of the support.
        resolution: as in `safe_stride`.
        stride_z: as in `safe_stride`.
        stride_variance: as in `safe_stride`; None: k.
        gram: as in `estimator`.

    Returns:
        Algorithm with actions `Block` and answers bool (n,). Pulls that an integer could not count are not begun: such
        a run idles until its rounds are spent, and is censored.

    Raises:
        ValueError: an argument is out of range.
    """
    s = design.support.shape[0]
    require(first_test is None or known(first_test) >= s, "first_test", f"be at least {s}, one pull each", first_test)
    require(resolution is None or known(resolution) >= 0, "resolution", "be at least 0, or None", resolution)
    require(known(stride_z) > 0, "stride_z", "be positive", stride_z)
    require(stride_variance is None or known(stride_variance) > 0, "stride_variance", "be positive", stride_variance)
    require(gram in get_args(Gram), "gram", f"be one of {get_args(Gram)}", gram)
    dtype = design.inverse.dtype
    first = jnp.asarray(s if first_test is None else first_test, int)
    estimate = estimator(design, gram=gram)
    none = jnp.zeros(s, int)

    def init(key: Key) -> State:
        del key
        return State(none, none.astype(dtype), jnp.zeros((), int))

    def decide(key: Key, state: State) -> Decision:
        del key
        t = jnp.maximum(state.pulls, 1).astype(dtype)
        seen, width = look(estimate(state.counts, state.sums), t)
        stride = safe_stride(
            t,
            seen.margin,
            width,
            reach=reach,
            stride_z=stride_z,
            stride_variance=k if stride_variance is None else stride_variance,
            resolution=resolution,
        )
        is_tested = state.pulls >= first
        stride = jnp.where(is_tested, stride, first - state.pulls)
        counts = next_counts(design, state, stride, whole_cycles=gram == "limit" and resolution is not None)
        return Decision(Block(counts, jnp.zeros((), dtype)), is_tested & seen.stop, seen.answer)

    def observe(state: State, action: Block, observation: Array) -> State:
        return State(state.counts + action.counts, state.sums + observation, state.pulls + action.counts.sum())

    return Algorithm(init, decide, observe, Block(none, jnp.zeros((), dtype)))


def estimator(design: Design, *, gram: Gram = "counts") -> Callable[[Array, Array], Estimate]:
    """Least squares for runs that track a design.

    "counts" inverts A = sum of count x x' anew at every test, in units of a pull. "limit" puts the design's own
    weights for the shares of the counts, so that nothing is inverted during a run: theta is the weighted least squares
    estimate, unbiased whatever the counts, and level Lambda bounds its precision from below. The two agree where the
    counts are proportional to the weights, as those of a uniform design are after every whole cycle.

    Args:
        design: what is tracked.
        gram: "counts" or "limit".

    Returns:
        (counts int (s,), sums float (s,)) -> Estimate. A super-arm that has not been pulled counts as pulled once:
        with nothing seen the estimate is 0, and regular. Cost: O(s n^2 + n^3) for "counts", O(s n + n^2) for "limit".
    """

    def estimate(counts: Array, sums: Array) -> Estimate:
        pulled = jnp.maximum(counts, 1).astype(design.inverse.dtype)
        level = jnp.min(pulled / design.weights)
        if gram == "counts":
            t = pulled.sum()
            inverse = spd_inverse(gram_matrix(design.support, pulled / t)) / t
            weighted, unit = sums, inverse
        else:
            # DEVIATION: the sums are rescaled to counts that match the weights. The published Lambda^-1 X' S / t is
            # biased as long as they do not.
            inverse = design.inverse / level
            weighted, unit = sums * (design.weights / pulled), design.inverse
        theta = jnp.matmul(unit, jnp.matmul(weighted, design.support, precision="highest"), precision="highest")
        return Estimate(theta, inverse, level)

    return estimate


def next_counts(design: Design, state: PyTree, stride: Array, *, whole_cycles: bool) -> Array:
    """The pulls of the next block.

    Args:
        design: what is tracked.
        state: anything with `counts` int (s,) and `pulls` int ().
        stride: int (), pulls of the block.
        whole_cycles: whether a uniform design is to end on a whole cycle; the block is prolonged to it.

    Returns:
        int (s,), at least 0; 0 where an integer could not count the pulls.
    """
    s = design.support.shape[0]
    room = jnp.iinfo(state.pulls.dtype).max - s - state.pulls
    target = state.pulls + jnp.where(stride <= room, stride, 0)
    if whole_cycles:
        cycle = jnp.maximum(design.cycle, 1).astype(target.dtype)
        target = -(-target // cycle) * cycle
    # In float32 a count may be off by a few pulls, but no pull is taken back.
    return jnp.maximum(tracking_counts(design, target) - state.counts, 0)


def top_set(theta: Array, k: int) -> Array:
    """The k largest entries, the lowest index first among ties, as a mask bool (n,)."""
    return jnp.zeros(theta.shape, bool).at[lax.top_k(theta, k)[1]].set(True)


def check_run(
    design: Design, k: int, *, delta: Array | float, epsilon: Array | float, sigma: Array | float | None
) -> None:
    """Raises `ValueError` unless a design and the arguments that all rules share are in range.

    Args:
        design: `make_design(support, k)`, possibly traced.
        k: size of a super-arm.
        delta: admitted probability of error, in (0, 1).
        epsilon: admitted loss, at least 0.
        sigma: bound of the noise of a pull, above 0, or None.
    """
    check_design(design, k)
    check_confidence(design.support.shape[1], k, delta, sigma)
    require_not_negative("epsilon", epsilon)
