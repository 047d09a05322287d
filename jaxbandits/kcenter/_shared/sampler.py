"""DS-UCB and DS-TS: their settings and their state. The rules are in `_ds`."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import require
from jaxbandits.kcenter._problem.problem import Dimensions, check_dimensions
from jaxbandits.kcenter._shared import stage as _stage
from jaxbandits.kcenter._shared.intervals import Bounds, Interval, Scale, arm_bounds, bounds_of, check_interval
from jaxbandits.kcenter._shared.stacked import Stacked
from jaxbandits.kcenter._shared.stage import Stage
from jaxbandits.kcenter._shared.triangle import CenterBounds, Triangle, check_triangle
from jaxbandits.numerics.blocked_argmax import Blocks

Ties = Literal["none", "lowest"]


class Arms(NamedTuple):
    """What a slot of one node is chosen from."""

    counts: Array  # int32 (k-1,)
    successes: Array | None  # int32 (k-1,); None where `pick` takes no numbers
    lower: Array  # float (k-1,)  the largest finite value where the slot holds no center
    open: Array  # bool (k-1,)    the slot holds a center, to which the distance is not known exactly


class Pick(NamedTuple):
    """How the slot of the leader is chosen."""

    slot: Callable[[Array, Arms], Array]  # (uniform numbers on [0, 1) (size,), arms) -> int32 ()
    size: int  # how many numbers it takes; with 0 no successes are counted


class Sampler(NamedTuple):
    """A rule of this kind."""

    problem: Dimensions
    first_center: Array | int | None
    bounds: Bounds  # (counts, sums) -> (lower, upper)
    pick: Pick
    cap: int
    triangle: Triangle | None
    ties: Ties
    leap: int
    redraw: bool  # whether arms read in an earlier stage are open to `pick`; a round that picks one is lost
    dtype: Any


class Query(NamedTuple):
    """What to query next, and what it takes to query the same again. Derived from the statistics."""

    node: Array  # int32 ()       n: nothing, until the run ends
    slot: Array  # int32 ()       `no_slot(k)`: nothing, this round
    exact: Array  # bool ()       the arm is at its cap, so it is to be read
    rival: Array  # float ()      the largest upper bound of the other nodes
    leader: Array  # int32 ()     the node of largest upper bound
    tied: Array  # int32 ()       it, if its distance is known exactly and equals the others' largest upper bound; or -1
    coin: Array  # float ()       uniform, rounds the first reward at random


class Draws(NamedTuple):
    """What a randomised choice of slots needs. Query s has random numbers of its own, in whichever leap it comes."""

    seed: Array  # uint32 (2,)  key data
    step: Array  # int32 ()     s


class Row(NamedTuple):
    """The arms of one node, or of all (n, k-1)."""

    # int32 (k-1,), queries. Above the cap the arm has been read, and is known exactly: cap + 1, with `redraw` the cap
    # and the number of the stage.
    counts: Array
    sums: Array  # (k-1,)          of rewards, over all m dimensions once the arm is read; int32 or float
    successes: Array | None  # int32 (k-1,)  of the rewards, rounded at random to 0 or 1; None without `Draws`
    # float (k-1,), derived, before the triangle inequality; those of `KL` take longer than all else in a round.
    lower: Array
    upper: Array


class State(NamedTuple):
    """Statistics of every arm, one row a node, and what is derived from them."""

    pulls: Array  # int ()
    stage: Stage
    arms: Stacked  # Row (n, k-1)
    draws: Draws | None
    least_upper: Blocks  # n values  the least upper bound of every candidate
    between: CenterBounds | None  # with the triangle inequality
    query: Query

    @property
    def counts(self) -> Array:
        """Int32 (n, k-1), queries of every arm, see `Row`."""
        return self.arms.tree.counts

    @property
    def sums(self) -> Array:
        """(n, k-1), sums of the rewards of every arm, see `Row`."""
        return self.arms.tree.sums

    @property
    def lower(self) -> Array:
        """Float (n, k-1), lower bounds of every arm, see `Row`."""
        return self.arms.tree.lower

    @property
    def upper(self) -> Array:
        """Float (n, k-1), upper bounds of every arm, see `Row`."""
        return self.arms.tree.upper


def make_sampler(
    problem: Dimensions,
    pick: Callable[[int], Pick],
    delta: Array | float,
    interval: Interval,
    first_center: Array | int | None,
    scale: Scale,
    cap: int | None,
    triangle: Triangle | None,
    ties: Ties,
    leap: int,
    dtype: Any,
    redraw: bool = False,
) -> Sampler:
    """The sampler of these settings, checked; they are those of `ds_ucb` and `ds_ts`. `pick` is told the cap."""
    cap, dtype = check_sampling(problem, delta, interval, first_center, scale, cap, dtype)
    check_triangle(triangle)
    require(not (triangle == "squared" and scale == "root"), "triangle", "be 'metric' with scale='root'", triangle)
    checks.one_of("ties", ties, Ties)
    leap, redraw = checks.whole("leap", leap, least=1), checks.flag("redraw", redraw)
    bounds = arm_bounds(bounds_of(interval, problem.n, delta), problem, cap=cap, scale=scale, dtype=dtype)
    return Sampler(problem, first_center, bounds, pick(cap), cap, triangle, ties, leap, redraw, dtype)


def check_sampling(
    problem: Dimensions,
    delta: Array | float,
    interval: Interval,
    first_center: Array | int | None,
    scale: Scale,
    cap: int | None,
    dtype: Any,
) -> tuple[int, Any]:
    """The cap and the dtype of a run; raises `ValueError` unless the arguments that all samplers share are in order."""
    check_dimensions(problem)
    checks.probability("delta", delta)
    check_interval(interval)
    _stage.check_first_center(first_center, problem.n)
    checks.one_of("scale", scale, Scale)
    return problem.m if cap is None else checks.whole("cap", cap, least=1), checks.float_dtype("dtype", dtype)
