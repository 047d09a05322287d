"""NS-TS: queries the node that is best on average and its most promising rival, until the two are told apart."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.base import Algorithm, Array, Decision, Key
from jaxbandits.checks import is_concrete, known, require
from jaxbandits.kcenter import samples as seen
from jaxbandits.kcenter import stage as stages
from jaxbandits.kcenter.problem import PairPull
from jaxbandits.kcenter.samples import Noise, Samples
from jaxbandits.kcenter.stage import Stage
from jaxbandits.kcenter.triangle import Spans, Triangle, check_triangle, is_out_of_reach, join, tighten, unknown
from jaxbandits.numerics import blocks
from jaxbandits.numerics.beta import beta
from jaxbandits.numerics.blocks import Blocks

PRIOR_PRECISION = 2  # of the paper's prior N(0, 1/2) on a distance


class Posterior(NamedTuple):
    """Normal laws of the distances, where they are no function of the samples."""

    mean: Array  # float (n, k-1)
    precision: Array  # float (n, k-1)


class State(NamedTuple):
    """Statistics of every arm, one row a node, and two orders of the nodes."""

    pulls: Array  # int ()
    stage: Stage
    samples: Samples  # (n, k-1)     exact
    upper: Blocks  # n values        of each candidate, the least upper bound of its arms
    nearest: Blocks  # n values      of each candidate, the least mean of its arms
    posterior: Posterior | None  # with the posterior as printed
    spans: Spans | None  # with the triangle inequality


def ns_ts(
    n: int,
    k: int,
    *,
    variance: Array | float | None = None,
    noise: Noise = "gaussian",
    first_center: Array | int | None = 0,
    delta: Array | float = 0.1,
    mix: Array | float = 0.9,
    alpha: Array | float = 1.1,
    k1: Array | float | None = None,
    posterior: Literal["conjugate", "printed"] = "conjugate",
    pair: bool = True,
    triangle: Triangle | None = None,
    dtype: Any = None,
) -> Algorithm:
    """Queries two nodes a round, the one of largest mean and, of the others, the one of largest upper bound.

    A node's mean and its bounds are the least over its slots, the centers found so far. A stage ends with the node
    whose lower bound exceeds the upper bounds of all others. Each of the two nodes is queried against the slot of the
    least posterior draw with probability `mix`, else against that of the least lower bound.

    Args:
        n: number of nodes.
        k: number of centers, in 2..n.
        variance: () > 0, of one reward; needed for Gaussian noise, and not read for Bernoulli noise.
        noise: the law of the rewards, "gaussian" or "bernoulli".
        first_center: () in 0..n-1, or None: uniform.
        delta: () in (0, 1), admitted probability of error.
        mix: () in [0, 1], share of the rounds that go by posterior draws. With 1 a stage may never end: the arms of the
            best node that are not its nearest are hardly ever drawn, and its lower bound stays low. 0 draws nothing.
        alpha: () > 1, exponent of the interval: t kl(mean, q) <= log(k1 t^alpha n^2 / delta).
        k1: () > 1 + 1 / (alpha - 1), its factor; by default the least such value and 1 %.
        posterior: of Gaussian distances. "conjugate": from the prior N(0, 1/2) by Bayes' rule. "printed": the paper's
            update (17), which counts each old sample again with every new one, so that the precision grows like t^2;
            no difference has been measured for mix <= 0.9. Bernoulli distances have Beta(1 + s, 1 + f).
        pair: False queries the node of largest upper bound alone, as DS-UCB does, and practically never ends a stage.
            Rivals are queried only while they lead, so their upper bounds stop within one query's step of the best
            distance, and that is how narrow the interval of the best node must become: where a pair of nodes takes t
            queries each, it alone takes the order of t^3. It is kept to show why two nodes are needed.
        triangle: None; or sharper lower bounds where d is a metric ("metric") or the square of one ("squared").
        dtype: of the run's floats, that of the distances; JAX's own by default.

    Returns:
        Algorithm with actions `PairPull` and answers `Centers`. Two equal best nodes are never told apart: such a run
        ends by its budget of rounds.

    Raises:
        ValueError: an argument lies outside the range above, or the variance is missing.

    **Guarantee**: the greedy centers in their order with probability at least 1 - delta. **Cost**: O(k + n/B + B) a
    round with blocks of B = sqrt(n) nodes; O(k^2) more with the triangle inequality. About 2 log(k1 t^alpha n^2 /
    delta) T* queries a stage.

    **float32**: sums are compensated, so means stay exact to a rounding at 10^7 queries of an arm.

    Source: Jali, Karamchandani and Moharir, Greedy k-center from noisy distance samples, Algorithm 3.
    """
    stages.check_run(n, k, first_center, delta)
    seen.check_noise(noise, variance)
    dtype = seen.check_dtype(dtype)
    require((known(mix) >= 0) & (known(mix) <= 1), "mix", "lie in [0, 1]", mix)
    require(posterior in ("conjugate", "printed"), "posterior", "be 'conjugate' or 'printed'", posterior)
    check_triangle(triangle)
    interval = seen.confidence_interval(n, noise=noise, variance=variance, delta=delta, alpha=alpha, k1=k1)
    draws = not (is_concrete(mix) and np.all(known(mix) == 0))
    printed = draws and posterior == "printed" and noise == "gaussian"
    least, most = jnp.finfo(dtype).min, jnp.finfo(dtype).max
    null = jnp.asarray(n, jnp.int32)
    idle = PairPull(jnp.full(2, null), jnp.zeros(2, jnp.int32), jnp.zeros(k - 1, jnp.int32))
    places = jnp.arange(k - 1, dtype=jnp.int32)

    def init(key: Key) -> State:
        unseen = blocks.build(jnp.full(n, most, dtype))
        prior = Posterior(jnp.zeros((n, k - 1), dtype), jnp.full((n, k - 1), PRIOR_PRECISION, dtype))
        return State(
            pulls=jnp.zeros((), int),
            stage=stages.begin(key, n, k, first_center),
            samples=seen.empty(n, k, noise, dtype),
            upper=unseen,
            nearest=unseen,
            posterior=prior if printed else None,
            spans=None if triangle is None else unknown(k, dtype),
        )

    def bounds(arms: Samples) -> tuple[Array, Array]:
        """The intervals of arms (..., k-1); nothing is known of one without a sample."""
        lower, upper = interval(seen.mean(arms, dtype), jnp.maximum(arms.counts, 1))
        return jnp.where(arms.counts > 0, lower, 0), jnp.where(arms.counts > 0, upper, most)

    def lower_bounds(state: State, arms: Samples) -> Array:
        """Of one node (k-1,), with the triangle inequality; largest where the slot holds no center."""
        slots = stages.slots(state.stage)
        lower, upper = bounds(arms)
        if state.spans is not None and triangle is not None:
            lower = tighten(state.spans, lower, upper, slots, triangle)
        return jnp.where(slots, lower, most)

    def draw(key: Key, state: State, nodes: Array, arms: Samples) -> Array:
        """Posterior draws of the distances (2, k-1)."""
        if noise == "bernoulli":
            successes = seen.total(arms, dtype)
            return beta(key, 1 + successes, 1 + (arms.counts.astype(dtype) - successes))
        normal = jax.random.normal(key, (2, k - 1), dtype)
        if state.posterior is not None:
            law = seen.rows(state.posterior, nodes)
            return law.mean + normal / jnp.sqrt(law.precision)
        # DEVIATION from (17), which is not the posterior: see `posterior="printed"`.
        per_sample = 1 / jnp.asarray(variance, dtype)
        precision = PRIOR_PRECISION + arms.counts.astype(dtype) * per_sample
        return seen.total(arms, dtype) * per_sample / precision + normal / jnp.sqrt(precision)

    def pick(key: Key, state: State, nodes: Array) -> Array:
        """The slots to query of two nodes (2,)."""
        arms = seen.rows(state.samples, nodes)
        by_bound = jnp.argmin(jax.vmap(lower_bounds, (None, 0))(state, arms), axis=1)
        if not draws:
            return by_bound.astype(jnp.int32)
        for_coins, for_draws = jax.random.split(key)
        # An arm without a sample is out of reach by the triangle inequality: it is not the nearest.
        usable = stages.slots(state.stage) & (arms.counts > 0)
        by_draw = jnp.argmin(jnp.where(usable, draw(for_draws, state, nodes, arms), most), axis=1)
        drawn = jax.random.uniform(for_coins, (2,), dtype) < jnp.asarray(mix, dtype)
        return jnp.where(drawn, by_draw, by_bound).astype(jnp.int32)

    def passes(state: State) -> Array:
        """Whether the first pass asks nothing of the node it has come to."""
        node = state.stage.cursor
        if state.spans is None or triangle is None:
            return stages.is_center(state.stage, node)
        lower, upper = bounds(seen.rows(state.samples, node))
        slots, newest = stages.slots(state.stage), stages.newest(state.stage)
        out_of_reach = is_out_of_reach(state.spans, newest, lower, upper, slots, triangle)
        return stages.is_center(state.stage, node) | out_of_reach

    def decide(key: Key, state: State) -> Decision:
        stage = state.stage
        promising = blocks.leader(state.upper)
        best = blocks.leader(state.nearest).index if pair else promising.index
        rival = jnp.where(promising.index == best, promising.challenger, promising.index) if pair else null
        is_opening, is_complete = stage.cursor < n, stages.is_complete(stage)
        node = jnp.where(is_opening, jnp.stack([stage.cursor, null]), jnp.stack([best, rival]))
        opening_slot = jnp.where(passes(state), stages.passing(k), stages.newest(stage))
        action = PairPull(
            node=jnp.where(is_complete, null, node),
            slot=jnp.where(is_opening, opening_slot, pick(key, state, node)),
            centers=stage.centers[:-1],
        )
        return Decision(action, is_complete, stages.answer(stage, promising.index))

    def observe(state: State, action: PairPull, rewards: Array) -> State:
        stage, node = state.stage, action.node
        is_asked = node < n
        is_opening = is_asked[0] & (stage.cursor < n)
        slots = stages.slots(stage)
        here = is_asked[:, None] & (places == action.slot[:, None])
        arms = seen.add(seen.rows(state.samples, node), here.astype(jnp.int32), rewards[:, None])
        mean, (_, upper) = seen.mean(arms, dtype), bounds(arms)

        def least_of(values: Array) -> Array:
            value = jnp.min(jnp.where(slots & (arms.counts > 0), values, most), axis=1)
            return jnp.where(stages.is_center(stage, node), least, value)

        def note(order: Blocks, values: Array) -> Blocks:
            return blocks.update(blocks.update(order, node[0], values[0]), node[1], values[1])

        posterior = state.posterior
        if posterior is not None:
            law = seen.rows(posterior, node)
            new = arms.counts.astype(dtype) / jnp.asarray(variance, dtype)
            precision = law.precision + new
            posterior = Posterior((law.precision * law.mean + new * mean) / precision, precision)
            # The first pass leaves the posterior as it is: Algorithm 3 updates it in line 15, not in line 7.
            law = jax.tree.map(lambda new, old: jnp.where(here & ~is_opening, new, old), posterior, law)
            posterior = seen.put(state.posterior, node, law)
        queries = here.sum(dtype=jnp.int32)
        state = State(
            pulls=state.pulls + queries.astype(state.pulls.dtype),
            stage=stages.step(stages.spend(stage, queries), is_opening.astype(jnp.int32)),
            samples=seen.put(state.samples, node, arms),
            upper=note(state.upper, least_of(upper)),
            nearest=note(state.nearest, least_of(mean)),
            posterior=posterior,
            spans=state.spans,
        )
        return end_stage(state, is_asked[0] & (state.stage.cursor == n))

    def end_stage(state: State, is_tested: Array) -> State:
        """Makes the leader a center where the stop test of the stage holds."""
        lead = blocks.leader(state.upper)
        arms = seen.rows(state.samples, lead.index)
        decided = is_tested & stages.is_decided(jnp.min(lower_bounds(state, arms)), lead.runner_up)
        spans = state.spans
        if spans is not None and triangle is not None:
            joined = join(spans, state.stage.found, *bounds(arms), triangle)
            spans = jax.tree.map(lambda new, old: jnp.where(decided, new, old), joined, spans)
        return state._replace(stage=stages.advance(state.stage, lead.index, decided), spans=spans)

    return Algorithm(init, decide, observe, idle)
