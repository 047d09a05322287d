"""DS-UCB: greedy k-center from sampled dimensions, by upper and lower confidence bounds."""

from typing import Any

from jaxbandits.base import Algorithm, Array
from jaxbandits.kcenter._problem.problem import Dimensions
from jaxbandits.kcenter._shared.dimension_sampling import Pick, Ties, algorithm_from_sampler, lowest, make_sampler
from jaxbandits.kcenter._shared.intervals import Interval, Lil, Scale
from jaxbandits.kcenter._shared.triangle import Triangle


def ds_ucb(
    problem: Dimensions,
    *,
    delta: Array | float,
    interval: Interval = Lil(),  # noqa: B008  it cannot be changed
    first_center: Array | int | None = 0,
    scale: Scale = "mean",
    cap: int | None = None,
    triangle: Triangle | None = None,
    ties: Ties = "none",
    leap: int = 1,
    dtype: Any = None,
) -> Algorithm:
    """Queries the node of largest upper bound against its apparently nearest center, until it is the next center.

    A stage starts by querying every candidate once against the newest center. Then each round takes the candidate v of
    largest U(v) = min_i U(v, i), and its slot i of smallest lower bound L(v, i). The stage ends, with center v, once
    min_i L(v, i) exceeds U of all others. An arm that has been queried `cap` times is read exactly instead, for m
    queries, and never queried again.

    Args:
        problem: the sizes, `instance.problem`.
        delta: () in (0, 1), allowed probability of error.
        interval: `Lil(radius_scale)`, the paper's heuristic (22); `Lemma1()`, proved, and about ten times wider; or
            `KL(alpha, k1)`, (14). Their `union` sets how delta is shared.
        first_center: the first node. If None, it is drawn at random.
        scale: if "mean", the interval is around the mean reward; if "root", around its root, as (7) is printed.
        cap: queries of an arm until it is read, at least 1. If None, m.
        triangle: sharpens bounds by the triangle inequality for d ("metric") or for sqrt(d) ("squared", the case of
            dimension sampling unless scale="root"). It saves queries on clustered points. If None, it is not used.
        ties: rule for the two best nodes having exactly the same distance, which (8) never decides. If "none", nothing
            is queried any more, and the run ends as MAX_ROUNDS. If "lowest", the lower node is the center.
        leap: largest number of queries per round. The law of a run does not depend on it, the number of rounds does.
        dtype: dtype of bounds and of float sums. If None, JAX's default.

    Returns:
        Algorithm with actions `Pull`, observed as `Sample`, and answers `Centers`.

    Raises:
        ValueError: an argument lies outside the range above, or its choices; or triangle is "squared" with
            scale="root", where distances are no longer squares.

    **Guarantee**: greedy's centers, in order, where all intervals hold; with probability 1 - delta for `Lemma1`. `Lil`
    is not proved. **Queries**: at most 2m sum_p (n - p). At least about 2m per stage, as only the leader is queried:
    the others stay just below its upper bound until it is read. **Cost**: O(k^2 + n/B + B) per round with blocks of
    B = sqrt(n) nodes, and O(k leap) for a leap. On two cores, with 12288 dimensions, k = 10 and n = 1000, a leap of 16
    makes 6 queries per round.

    **float32**: upper bounds that differ by less than the rounding are not distinguished. A run may differ from the
    run in float64 by a few queries.

    Source: Jali, Karamchandani and Moharir, Greedy k-center from noisy distance samples, Algorithm 1.
    """
    sampler = make_sampler(
        problem,
        lambda cap: Pick(lowest, 0),
        delta=delta,
        interval=interval,
        first_center=first_center,
        scale=scale,
        cap=cap,
        triangle=triangle,
        ties=ties,
        leap=leap,
        dtype=dtype,
    )
    return algorithm_from_sampler(sampler)
