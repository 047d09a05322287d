"""NS-TandS: tracks the optimal proportions of queries and stops by a likelihood ratio, one stage a center."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Decision, Key, PyTree
from jaxbandits.checks import known, require
from jaxbandits.kcenter import samples as seen
from jaxbandits.kcenter import stage as stages
from jaxbandits.kcenter.problem import Counts, Pull
from jaxbandits.kcenter.samples import Noise, Samples
from jaxbandits.kcenter.stage import Stage
from jaxbandits.kcenter.thresholds import Rate, exploration_rate
from jaxbandits.kcenter.weights import omega_mirror, omega_newton
from jaxbandits.numerics.kl import bernoulli_kl

Tracking = Literal["difference", "ratio"]
Reset = Literal["stage", "printed"]
Solver = Literal["newton", "mirror"]
Evidence = Callable[[Array, Array, Array, Array], Array]  # (mean, count, mean, count) -> Z, signed

UNSOLVED = -1


class State(NamedTuple):
    """Statistics of every arm, and the proportions that are tracked."""

    pulls: Array  # int ()
    stage: Stage
    samples: Samples  # (n, k-1)    exact
    base: Array  # int32 (n, k-1)   counts that the tracking leaves out: those at the start of the stage
    best: Array  # int32 ()         the node of largest mean
    witness: Array  # int32 ()      the node that had the least Z when all were looked at last
    fewest: Array  # int32 ()       the arm of fewest tracked pulls, as node (k-1) + slot
    omega: Array  # float (n, k-1)  proportions, as last solved for
    solved: Array  # int ()         `pulls` at that time; UNSOLVED before the first time of a stage


def ns_tands(
    n: int,
    k: int,
    *,
    variance: Array | float | None = None,
    noise: Noise = "gaussian",
    first_center: Array | int | None = 0,
    delta: Array | float = 0.1,
    beta: Rate = "loglog",
    tracking: Tracking = "difference",
    reset: Reset = "stage",
    forced_offset: Array | float = 1.0,
    every: Array | int = 100,
    solver: Solver = "newton",
    mirror_steps: int = 1000,
    batch: int = 1,
    dtype: Any = None,
) -> Algorithm:
    """Follows the proportions of queries that would be optimal if the means were the distances.

    The node h of largest mean, least over its slots, is the next center as soon as, for every other node v,
    Z_v = max_i min_j z((h, j), (v, i)) exceeds the exploration rate: z is the signed log-likelihood ratio of the two
    arms' order. Until then an arm that has fallen behind sqrt(T) - forced_offset n k / 2 pulls is queried, with T the
    tracked queries, else the one that the tracking finds furthest behind its proportion.

    Args:
        n: number of nodes.
        k: number of centers, in 2..n.
        variance: () > 0, of one reward; needed for Gaussian noise. With Bernoulli noise it selects the Gaussian z in
            place of the Bernoulli one; 1/4 is safe, and takes 1.1 to 3 times the queries.
        noise: the law of the rewards, "gaussian" or "bernoulli".
        first_center: () in 0..n-1, or None: uniform.
        delta: () in (0, 1), admitted probability of error.
        beta: the rate, one of those of `exploration_rate`; "gaussian" is proved.
        tracking: "difference": the arm of largest omega - t / T, as printed. It starves arms of small weight while
            forced queries take a few per cent: only large weights are ever in deficit then. "ratio": the arm of largest
            omega / t, not the paper's; 1.5 to 7.7 times fewer queries. Not read with batch > 1.
        reset: "stage": t and T count the queries of the present stage. "printed": those of the whole run, so that
            every arm that matters starts a stage in deficit; 1.2 to 2.9 times the queries with difference tracking.
        forced_offset: () >= 0, in units of n k / 2.
        every: () >= 1, queries between two computations of the weights. Each stage begins with one.
        solver: of the weights, "newton" or "mirror" (appendix C).
        mirror_steps: of the latter.
        batch: queries of a round, a Python int. With 1 the actions are `Pull`. With more they are `Counts`: arms that
            have fallen behind come first, then all are filled up towards their proportions of T + batch, by largest
            remainders. The stop test comes after the batch, so at most batch - 1 queries late. The first queries of a
            stage are one round.
        dtype: of the run's floats, that of the distances; JAX's own by default.

    Returns:
        Algorithm with actions `Pull` or `Counts` and answers `Centers`. While new weights are due it is stale, and
        waits. Two equal best nodes are never told apart: such a run ends by its budget of rounds.

    Raises:
        ValueError: an argument lies outside the range above, the variance is missing, or beta is "gaussian" with the
            Bernoulli z.

    **Guarantee**: the greedy centers in their order with probability at least 1 - delta if beta is "gaussian" and the
    noise is; the other rates are customary. **Cost**: O(n k + k^2) a round, and a solution for the weights every
    `every` queries; O(n k^2) in the rare rounds that look at Z of all nodes.

    **float32**: sums are compensated, so Z is as exact as the difference of two means can be.

    Source: Jali, Karamchandani and Moharir, Greedy k-center from noisy distance samples, Algorithm 4.
    """
    stages.check_run(n, k, first_center, delta)
    seen.check_noise(noise, variance)
    dtype = seen.check_dtype(dtype)
    words = {"tracking": (tracking, Tracking), "reset": (reset, Reset), "solver": (solver, Solver)}
    for name, (word, choices) in words.items():
        require(word in get_args(choices), name, f"be one of {get_args(choices)}", word)
    is_bernoulli = noise == "bernoulli" and variance is None
    require(not (is_bernoulli and beta == "gaussian"), "beta", "not be 'gaussian' with the Bernoulli Z", beta)
    require(known(forced_offset) >= 0, "forced_offset", "be at least 0", forced_offset)
    require(known(every) >= 1, "every", "be at least 1", every)
    require(mirror_steps >= 1, "mirror_steps", "be at least 1", mirror_steps)
    require(batch >= 1, "batch", "be at least 1", batch)
    rate = exploration_rate(beta, n, k, delta=delta, dtype=dtype)
    evidence = bernoulli_evidence if is_bernoulli else gaussian_evidence(1.0 if variance is None else variance)
    most = jnp.finfo(dtype).max
    null = jnp.asarray(n, jnp.int32)
    nodes = jnp.arange(n, dtype=jnp.int32)
    no_pulls = jnp.zeros((n, k - 1), jnp.int32)
    idle = stages.no_pull(n, k) if batch == 1 else Counts(no_pulls, jnp.zeros(k - 1, jnp.int32))

    def init(key: Key) -> State:
        return State(
            pulls=jnp.zeros((), int),
            stage=stages.begin(key, n, k, first_center),
            samples=seen.empty(n, k, noise, dtype),
            base=no_pulls,
            best=jnp.zeros((), jnp.int32),
            witness=jnp.zeros((), jnp.int32),
            fewest=jnp.zeros((), jnp.int32),
            omega=jnp.zeros((n, k - 1), dtype),
            solved=jnp.full((), UNSOLVED, int),
        )

    def candidates(stage: Stage) -> Array:
        return ~stages.is_center(stage, nodes)

    def arms(stage: Stage) -> Array:
        """Those of the present stage, bool (n, k-1)."""
        return candidates(stage)[:, None] & stages.slots(stage)

    def tracked(state: State) -> tuple[Array, Array]:
        """The pulls that the tracking counts, by arm and in all."""
        # DEVIATION: Algorithm 4 has reset="printed".
        in_all = state.stage.queries[stages.newest(state.stage)] if reset == "stage" else state.pulls
        return state.samples.counts - state.base, in_all.astype(dtype)

    def floor(in_all: Array) -> Array:
        """Arms with fewer pulls are queried whatever the weights."""
        return jnp.sqrt(in_all) - jnp.asarray(forced_offset, dtype) * (n * k / 2)

    def is_forced(state: State) -> Array:
        pulls, in_all = tracked(state)
        return pulls.ravel()[state.fewest].astype(dtype) < floor(in_all)

    def stale(state: State) -> Array:
        is_due = (state.solved == UNSOLVED) | (state.pulls - state.solved >= jnp.asarray(every, state.pulls.dtype))
        follows = (state.stage.cursor == n) & ~stages.is_complete(state.stage)
        # A batch has room for both kinds of queries.
        return follows & is_due & ~(is_forced(state) & (batch == 1))

    def plan(key: Key, state: State) -> State:
        del key
        is_due = stale(state)

        def solve(mean: Array) -> Array:
            slots, taking_part = stages.slots(state.stage), candidates(state.stage)
            if solver == "newton":
                return omega_newton(mean, slots, taking_part, variance=1.0).omega
            return omega_mirror(mean, slots, taking_part, variance=1.0, steps=mirror_steps).omega

        omega = _when(is_due, solve, seen.mean(state.samples, dtype), state.omega)
        return state._replace(omega=omega, solved=jnp.where(is_due, state.pulls, state.solved))

    def next_arm(state: State) -> Array:
        """The arm to query, as node (k-1) + slot."""
        pulls, in_all = tracked(state)
        if tracking == "ratio":
            lag = state.omega / (pulls.astype(dtype) + 1e-9)
        else:
            lag = state.omega - pulls.astype(dtype) / jnp.maximum(in_all, 1)
        lag = jnp.where(arms(state.stage), lag, -most).ravel()
        return jnp.where(is_forced(state), state.fewest, _first(lag == jnp.max(lag)))

    def decide(key: Key, state: State) -> Decision:
        del key
        stage = state.stage
        is_opening, is_complete = stage.cursor < n, stages.is_complete(stage)
        waits = is_complete | stale(state)
        if isinstance(idle, Pull):
            arm = next_arm(state)
            passes = stages.is_center(stage, stage.cursor)
            node = jnp.where(is_opening, stage.cursor, arm // (k - 1))
            opening_slot = jnp.where(passes, stages.passing(k), stages.newest(stage))
            action = idle._replace(
                node=jnp.where(waits, null, node),
                slot=jnp.where(is_opening, opening_slot, arm % (k - 1)),
                centers=stage.centers[:-1],
            )
        else:
            pulls, in_all = tracked(state)
            here = arms(stage)
            block = batch_pulls(state.omega, pulls, in_all, batch=batch, floor=floor(in_all), arms=here)
            newest = jnp.arange(k - 1, dtype=jnp.int32) == stages.newest(stage)
            block = jnp.where(is_opening, (here & newest).astype(jnp.int32), block)
            action = Counts(jnp.where(waits, 0, block), stage.centers[:-1])
        return Decision(action, is_complete, stages.answer(stage, state.best))

    def observe(state: State, action: Pull | Counts, rewards: Array) -> State:
        stage = state.stage
        if isinstance(action, Pull):
            is_asked = action.node < n
            here = is_asked & (action.slot < k - 1)
            row = seen.rows(state.samples, action.node)
            pulled = (here & (jnp.arange(k - 1, dtype=jnp.int32) == action.slot)).astype(jnp.int32)
            samples = seen.put(state.samples, action.node, seen.add(row, pulled, rewards))
            queries, nodes_passed = here.astype(jnp.int32), 1
        else:
            queries = action.pulls.sum(dtype=jnp.int32)
            is_asked = queries > 0
            samples = seen.add(state.samples, action.pulls, rewards)
            nodes_passed = n
        is_opening = is_asked & (stage.cursor < n)
        stage = stages.step(stages.spend(stage, queries), jnp.where(is_opening, nodes_passed, 0))
        pulls = state.pulls + queries.astype(state.pulls.dtype)

        mean, slots, is_candidate = seen.mean(samples, dtype), stages.slots(stage), candidates(stage)
        nearest = jnp.min(jnp.where(slots & (samples.counts > 0), mean, most), axis=1)
        nearest = jnp.where(is_candidate, nearest, -most)
        best = _first(nearest == jnp.max(nearest))
        is_rival = is_candidate & (nodes != best)
        margins = partial(margins_of, at_best=(mean[best], samples.counts[best]), stage=stage, q=pulls)

        # One node of small Z is enough to go on with the stage, so the others are looked at only when the last one seen
        # to have the least Z is refuted (on Zappos, n = 25, in one round of 2000).
        witness = state.witness
        refuted = ~is_rival[witness] | (margins(mean[witness], samples.counts[witness]) > 0)

        def look(arms: tuple[Array, Array]) -> tuple[Array, Array]:
            margin = jnp.where(is_rival, margins(*arms), most)
            least = jnp.min(margin)
            return _first(margin == least), least > 0

        is_tested = is_asked & (stage.cursor == n) & refuted
        witness, decided = _when(is_tested, look, (mean, samples.counts), (state.witness, jnp.zeros((), bool)))
        base = state.base if reset == "printed" else jnp.where(decided, samples.counts, state.base)
        fewest = jnp.where(arms(stage), samples.counts - base, jnp.iinfo(jnp.int32).max).ravel()
        return State(
            pulls=pulls,
            stage=stages.advance(stage, best, decided),
            samples=samples,
            base=base,
            best=jnp.where(is_asked, best, state.best),
            witness=witness,
            fewest=jnp.where(is_asked, _first(fewest == jnp.min(fewest)), state.fewest),
            omega=state.omega,
            solved=jnp.where(decided, UNSOLVED, state.solved),
        )

    def margins_of(mean: Array, count: Array, *, at_best: tuple[Array, Array], stage: Stage, q: Array) -> Array:
        """By how much Z of nodes (...), with arms (..., k-1), exceeds the exploration rate."""
        slots = stages.slots(stage)
        count = jnp.maximum(count, 1).astype(dtype)
        margin = jnp.full_like(mean, most)
        # Spelled out over the slots of the best node: on a core a third of the time of a minimum over an axis of k - 1.
        for j in range(k - 1):
            mean_j, count_j = at_best[0][j], jnp.maximum(at_best[1][j], 1).astype(dtype)
            ahead = evidence(mean_j, count_j, mean, count) - rate(q, stage.found, count_j, count)
            margin = jnp.where(slots[j], jnp.minimum(margin, ahead), margin)
        return jnp.max(jnp.where(slots, margin, -most), axis=-1)

    return Algorithm(init, decide, observe, idle, plan=plan, stale=stale)


def track_and_stop(
    n: int,
    k: int,
    *,
    variance: Array | float | None = None,
    noise: Noise = "gaussian",
    first_center: Array | int | None = 0,
    delta: Array | float = 0.1,
    beta: Rate = "loglog",
    forced_offset: Array | float = 1.0,
    every: Array | int = 100,
    batch: int = 100,
    dtype: Any = None,
) -> Algorithm:
    """The best of its class, beyond the paper: `ns_tands` in batches that fill all arms up to their proportions.

    With a batch of 1 it is `ns_tands` with ratio tracking. Arguments, results and errors are those of `ns_tands`.
    **Cost**: O(n k log(n k) + k^2) a round, that is, every `batch` queries, and a solution for the weights every
    `every`. It takes 1.0 to 1.4 times sum_p T*_p beta(q) queries.

    Source: Jali, Karamchandani and Moharir, Algorithm 4, tracked by ratios (ours).
    """
    return ns_tands(
        n,
        k,
        variance=variance,
        noise=noise,
        first_center=first_center,
        delta=delta,
        beta=beta,
        tracking="ratio",
        reset="stage",
        forced_offset=forced_offset,
        every=every,
        batch=batch,
        dtype=dtype,
    )


def gaussian_evidence(variance: Array | float) -> Evidence:
    """z(a, b) = (mean_a - mean_b)^2 / (2 variance (1 / t_a + 1 / t_b)), with the sign of the difference."""

    def evidence(mean_a: Array, count_a: Array, mean_b: Array, count_b: Array) -> Array:
        gap = mean_a - mean_b
        # DEVIATION: kl_g is printed for unit variance, with which nothing stops at variance 0.001.
        scale = 2 * jnp.asarray(variance, gap.dtype)
        return gap * jnp.abs(gap) / (scale / count_a + scale / count_b)

    return evidence


def bernoulli_evidence(mean_a: Array, count_a: Array, mean_b: Array, count_b: Array) -> Array:
    """z(a, b) = t_a kl(mean_a, rho) + t_b kl(mean_b, rho), rho the mean of both, with the sign of the difference."""
    rho = (count_a * mean_a + count_b * mean_b) / (count_a + count_b)
    size = count_a * bernoulli_kl(mean_a, rho) + count_b * bernoulli_kl(mean_b, rho)
    return jnp.sign(mean_a - mean_b) * size


def batch_pulls(omega: Array, pulls: Array, in_all: Array, *, batch: int, floor: Array, arms: Array) -> Array:
    """How a batch of queries is spread.

    First the arms below the floor are brought up to it, the one of fewest pulls first. The rest is spread in
    proportion to what the arms lack of omega (in_all + batch), and rounded by largest remainders.

    Args:
        omega: float (n, k-1), proportions, 0 outside `arms`.
        pulls: int32 (n, k-1), what they have had.
        in_all: float (), their sum.
        batch: queries to spread, a Python int.
        floor: float ().
        arms: bool (n, k-1).

    Returns:
        int32 (n, k-1), at least 0, with sum `batch`; ties go to the lowest node, then slot. Cost: O(n k log(n k)).
    """
    shape, dtype = omega.shape, omega.dtype
    omega, pulls, arms = omega.ravel(), pulls.ravel(), arms.ravel()
    size = jnp.arange(omega.size, dtype=jnp.int32)

    order = jnp.argsort(jnp.where(arms, pulls, jnp.iinfo(jnp.int32).max), stable=True)
    lack = jnp.where(arms, jnp.clip(jnp.ceil(floor).astype(jnp.int32) - pulls, 0, batch), 0)[order]
    before = jnp.cumsum(lack) - lack
    forced = jnp.zeros_like(pulls).at[order].set(jnp.clip(batch - before, 0, lack))

    left = batch - forced.sum(dtype=jnp.int32)
    deficit = jnp.maximum(omega * (in_all + batch) - (pulls + forced).astype(dtype), 0)
    share = left.astype(dtype) * (deficit / jnp.maximum(deficit.sum(), jnp.finfo(dtype).tiny))
    whole = jnp.floor(share)
    spread = forced + whole.astype(jnp.int32)
    order = jnp.argsort(whole - share, stable=True)
    return spread.at[order].add((size < batch - spread.sum(dtype=jnp.int32)).astype(jnp.int32)).reshape(shape)


def _when(condition: Array, compute: Callable[[PyTree], PyTree], operand: PyTree, otherwise: PyTree) -> PyTree:
    """`compute(operand)` where the condition holds, else `otherwise`.

    It is a loop of one turn or none: of a `cond`, `vmap` would run both branches in all lanes in every round.
    """

    def turn(carry: tuple[Array, PyTree]) -> tuple[Array, PyTree]:
        # Tied to the carry, or XLA would see that the turns do not differ and compute their result ahead of the loop.
        again, inputs = lax.optimization_barrier((carry[0], operand))
        return ~again, compute(inputs)

    return lax.while_loop(lambda carry: carry[0], turn, (condition, otherwise))[1]


def _first(mask: Array) -> Array:
    """The first place of a vector where it holds; a plain reduction, which XLA vectorises, as it does not argmax."""
    return jnp.min(jnp.where(mask, jnp.arange(mask.size, dtype=jnp.int32), mask.size - 1))
