"""DS-UCB: greedy k-center from sampled dimensions, by upper and lower confidence bounds."""

from collections.abc import Callable
from typing import Any

from jaxbandits.base import Algorithm, Array
from jaxbandits.kcenter.ds import Scale, Ties, dimension_sampler, lowest
from jaxbandits.kcenter.intervals import Form, Union, sampled_interval
from jaxbandits.kcenter.stage import check_run
from jaxbandits.kcenter.triangle import Triangle


def ds_ucb(
    n: int,
    m: int,
    k: int,
    *,
    first_center: Array | int | None = 0,
    delta: Array | float = 0.1,
    radius_scale: Array | float = 0.1,
    scale: Scale = "mean",
    union: Union | None = None,
    interval: Form = "lil",
    alpha: Array | float = 1.1,
    k1: Array | float | None = None,
    cap: int | None = None,
    triangle: Triangle | None = None,
    ties: Ties = "none",
    levels: int | None = None,
    burst: int = 1,
    exact_distance: Callable[[Array, Array], Array] | None = None,
    dtype: Any = None,
) -> Algorithm:
    """DS-UCB asks the node of largest upper bound about its seemingly nearest center, until it is the next center.

    A stage starts by asking every candidate once about the newest center. Then each round takes the candidate v of
    largest U(v) = min_i U(v, i), and its slot i of least lower bound L(v, i). The stage ends, with center v, once
    min_i L(v, i) exceeds U of all others. An arm that has been asked `cap` times is read exactly instead, for m
    queries, and never asked again.

    Args:
        n: number of nodes, at least 2.
        m: their dimension, at least 1; n m (k-1) < 2^31.
        k: number of centers, in 2..n.
        first_center: the node that is given, or None: a random one.
        delta: () in (0, 1), admitted probability of error.
        radius_scale: () > 0, C of the interval "lil". Below .03 it returns wrong centers on images, with hardly a
            larger radius; .1 is the paper's choice.
        scale: "mean": the interval is around the mean reward. "root": around its root, as (7) is printed.
        union: "points": each interval has delta / n. "pairs": it has delta / n^2. None: "points" for the interval
            "lil", as the paper's tables were made, "pairs" for the others, as it is printed.
        interval: "lil", the paper's heuristic (22); "lemma1", the proved one, some ten times wider; "kl", (14).
        alpha: () > 1, of the interval "kl".
        k1: () > 1 + 1 / (alpha - 1), of the interval "kl"; None: 1.01 of that.
        cap: queries of an arm until it is read, at least 1; None: m.
        triangle: "metric" or "squared": bounds are sharpened by the triangle inequality for d, or for sqrt(d), the
            case of dimension sampling unless scale="root". It saves queries on clustered points. None: they are not.
        ties: what is done when the two best nodes have exactly the same distance, which (8) never decides. "none":
            nothing is asked any more, and the run ends as MAX_ROUNDS. "lowest": the lower node is the center.
        levels: the largest value of integer points; None for floats.
        burst: the environment's `burst`. The law of a run does not depend on it; its rounds do.
        exact_distance: (node, node) -> (), the sum over all dimensions as in `Sample.exact`, computed in `refresh`,
            for points too many for a table of all pairs. None: the environment's samples bring it.
        dtype: of bounds and of float sums; by default JAX's own.

    Returns:
        Algorithm with actions `Pull`, observed as `Sample`, and answers `Centers`.

    Raises:
        ValueError: an argument lies outside the range above, or its choices; m levels^2 reaches 2^31; or triangle is
            "squared" with scale="root", which is no square any more.

    **Guarantee**: greedy's centers, in order, where all intervals hold; with probability 1 - delta for "lemma1". The
    interval "lil" is not proved. **Queries**: at most 2m sum_p (n - p). At least some 2m a stage, as only the leader is
    asked: the others rest just below its upper bound until it is read. **Cost**: O(k^2 + n/B + B) a round with blocks
    of B = sqrt(n) nodes, and O(k burst) for a burst. On two cores, 12288 dimensions and k = 10, a burst of 16 brings 6
    queries a round at n = 1000.

    **float32**: upper bounds that differ by rounding only are told apart in float64 alone; a run may differ by some
    queries.

    Source: Jali, Karamchandani and Moharir, Greedy k-center from noisy distance samples, Algorithm 1.
    """
    check_run(n, k, first_center, delta)
    return dimension_sampler(
        n,
        m,
        k,
        interval=sampled_interval(interval, n, delta=delta, union=union, radius_scale=radius_scale, alpha=alpha, k1=k1),
        pick=lowest,
        width=0,
        first_center=first_center,
        cap=cap,
        scale=scale,
        triangle=triangle,
        ties=ties,
        levels=levels,
        burst=burst,
        exact_distance=exact_distance,
        dtype=dtype,
    )
