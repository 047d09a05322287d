"""DS-UCB: greedy k-center from sampled dimensions, by upper and lower confidence bounds."""

from typing import Any

from jaxbandits.base import Algorithm, Array
from jaxbandits.kcenter._problem.problem import Dimensions
from jaxbandits.kcenter._shared.ds import dimension_sampler, lowest
from jaxbandits.kcenter._shared.intervals import Interval, Lil, Scale
from jaxbandits.kcenter._shared.sampler import Pick, Ties, make_sampler
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
    """DS-UCB queries the node of largest upper bound against its seemingly nearest center, until it is the next center.

    A stage starts by querying every candidate once against the newest center. Then each round takes the candidate v of
    largest U(v) = min_i U(v, i), and its slot i of least lower bound L(v, i). The stage ends, with center v, once
    min_i L(v, i) exceeds U of all others. An arm that has been queried `cap` times is read exactly instead, for m
    queries, and never queried again.

    Args:
        problem: the sizes, `instance.problem`.
        delta: () in (0, 1), admitted probability of error.
        interval: `Lil(radius_scale)`, the paper's heuristic (22); `Lemma1()`, the proved one, some ten times wider;
            `KL(alpha, k1)`, (14). Their `union` says how delta is shared.
        first_center: the node that is given, or None: a random one.
        scale: "mean": the interval is around the mean reward. "root": around its root, as (7) is printed.
        cap: queries of an arm until it is read, at least 1; None: m.
        triangle: "metric" or "squared": bounds are sharpened by the triangle inequality for d, or for sqrt(d), the
            case of dimension sampling unless scale="root". It saves queries on clustered points. None: they are not.
        ties: what is done when the two best nodes have exactly the same distance, which (8) never decides. "none":
            nothing is queried any more, and the run ends as MAX_ROUNDS. "lowest": the lower node is the center.
        leap: the most queries that a round may stand for, that of the environment. The law of a run does not depend
            on it; its rounds do.
        dtype: of bounds and of float sums; by default JAX's own.

    Returns:
        Algorithm with actions `Pull`, observed as `Sample`, and answers `Centers`.

    Raises:
        ValueError: an argument lies outside the range above, or its choices; or triangle is "squared" with
            scale="root", which is no square any more.

    **Guarantee**: greedy's centers, in order, where all intervals hold; with probability 1 - delta for `Lemma1`. `Lil`
    is not proved. **Queries**: at most 2m sum_p (n - p). At least some 2m a stage, as only the leader is queried: the
    others rest just below its upper bound until it is read. **Cost**: O(k^2 + n/B + B) a round with blocks of
    B = sqrt(n) nodes, and O(k leap) for a leap. On two cores, 12288 dimensions and k = 10, a leap of 16 brings 6
    queries a round at n = 1000.

    **float32**: it cannot distinguish upper bounds that differ by less than its rounding; a run may differ from that in
    float64 by some queries.

    Source: Jali, Karamchandani and Moharir, Greedy k-center from noisy distance samples, Algorithm 1.
    """
    sampler = make_sampler(
        problem, lambda cap: Pick(lowest, 0), delta, interval, first_center, scale, cap, triangle, ties, leap, dtype
    )
    return dimension_sampler(sampler)
