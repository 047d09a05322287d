"""Likelihood-ratio stopping: the state, the statistic, and how a sampling rule becomes an algorithm.

The items Z are compared, the arms X are pulled. With y_j = z_i - z_j for the leader i, challenger j has the statistic
(y_j.theta_hat + epsilon)^2 / (2 noise_scale^2 ||y_j||^2_{A^-1}); the least of all is held against the threshold.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Decision, Key, PyTree
from jaxbandits.linear._problem.environment import Pull, Step, made_for
from jaxbandits.linear._shared.factor import root_after, root_without_errors
from jaxbandits.linear._shared.fixed_confidence import Settings
from jaxbandits.numerics.compensated import add_at, no_loss
from jaxbandits.numerics.linalg import dot, gram, spd_inverse_logdet
from jaxbandits.numerics.thresholds import Evidence


class Cache(NamedTuple):
    """Least squares, with A = ridge I + sum_k counts_k x_k x_k', or that sum alone where the stop has no ridge."""

    images: Array  # float (N, d)    A^-1 of every point: the arms, and behind them items that are apart
    leverage: Array  # float (K,)    x_k' A^-1 x_k
    theta: Array  # float (d,)


class State(NamedTuple):
    """Statistics, their cache, and what the rule remembers."""

    pulls: Array  # int ()
    counts: Array  # int (K,)      exact
    sums: Array  # float (K,)      exact: sums of rewards
    cache: Cache
    logdet: Array  # float ()      log det(A / ridge), with the ridge
    plain: Cache | tuple[()]  # without ridge, where the stop has none; until the start is over, with its Gram matrix
    items_left: Array | tuple[()]  # bool (M,)   where items are eliminated
    root: Array | tuple[()]  # float (d, d)   for rules that draw: R with R'R = A^-1, with the ridge; no cache
    own: PyTree = ()  # of the rule: no cache, it cannot be rebuilt
    lost: Array | tuple[()] = ()  # float (K,) in 32 bit: what `sums` has lost to rounding, as in `compensated`


class Comparison(NamedTuple):
    """The leading item against every item j."""

    leader: Array  # int ()
    directions: Array  # float (M, d)   y_j = z_leader - z_j
    gaps: Array  # float (M,)           y_j.theta_hat over noise_scale, at least 0
    norms: Array  # float (M,)          ||y_j||^2 in A^-1
    rivals: Array  # bool (M,)          which may be challengers


# (key, state, comparison) -> the arm int (), and what the rule remembers after this pull
Rule = Callable[[Key, State, Comparison], tuple[Array, PyTree]]


def algorithm_of(settings: Settings, rule: Rule, own: PyTree = (), *, draws: bool = False) -> Algorithm:
    """The algorithm of a sampling rule: the start, then the rule, until the test holds.

    Args:
        settings: of the problem and the test.
        rule: asked after the start.
        own: its memories at the end of the start. Where it has any, or items are eliminated, actions are `Step`s.
        draws: whether the rule draws from the posterior, and its state has a `root`.

    Returns:
        Algorithm with actions `Pull` or `Step`, and answers int (), an item.
    """
    arms, dtype = settings.arms, settings.arms.dtype
    K, M = arms.shape[0], settings.items.shape[0]
    first, is_step = len(settings.start), bool(jax.tree.leaves(own)) or settings.eliminate is not None
    left = jnp.ones(M, bool) if settings.eliminate is not None else ()

    def init(key: Key) -> State:
        del key
        return State(
            pulls=jnp.zeros((), int),
            counts=jnp.zeros(K, int),
            sums=jnp.zeros(K, dtype),
            cache=Cache(settings.points / settings.ridge, dot(arms, arms) / settings.ridge, jnp.zeros_like(arms[0])),
            logdet=jnp.zeros((), dtype),
            plain=_without_ridge(settings, jnp.zeros(K, int), jnp.zeros(K, dtype)) if settings.least_squares else (),
            items_left=left,
            root=jnp.eye(arms.shape[1], dtype=dtype) / jnp.sqrt(settings.ridge) if draws else (),
            own=own,
            lost=no_loss((K,), dtype),
        )

    def decide(key: Key, state: State) -> Decision:
        is_first = state.pulls < first
        sampling, verdict = look(settings, state)
        arm, later = rule(key, state, sampling)
        start = jnp.asarray(settings.start)[jnp.minimum(state.pulls, first - 1)]
        arm, times = jnp.where(is_first, start, arm).astype(int), jnp.ones((), int)
        if not is_step:
            return Decision(Pull(arm, times), verdict.stop, verdict.answer)
        carried = jax.tree.map(lambda a, b: jnp.where(is_first, b, a), (verdict.left, later), (left, own))
        return Decision(Step(arm, times, carried), verdict.stop, verdict.answer)

    def observe(state: State, action: Pull | Step, observation: Array) -> State:
        moves = action.times > 0
        pulled = jnp.arange(K) == action.arm
        items_left, mine = state.items_left, state.own
        if isinstance(action, Step):
            items_left, mine = jax.tree.map(
                lambda new, old: jnp.where(moves, new, old), action.carried, (items_left, mine)
            )
        times = action.times.astype(dtype)
        leverage = entry(state.cache.leverage, action.arm)
        plain = state.plain
        if isinstance(plain, Cache):
            plain = _added(settings, plain, action.arm, times, observation, state.pulls < first)
        root = state.root
        if not isinstance(root, tuple):
            image = entry(state.cache.images, action.arm)
            root = root_after(root, entry(arms, action.arm), image, leverage, times)
        sums, lost = add_at(state.sums, state.lost, action.arm, observation)
        return State(
            pulls=state.pulls + action.times,
            counts=state.counts + jnp.where(pulled, action.times, 0),
            sums=sums,
            cache=_added(settings, state.cache, action.arm, times, observation, False),
            logdet=state.logdet + jnp.log1p(times * leverage),
            plain=plain,
            items_left=items_left,
            root=root,
            own=mine,
            lost=lost,
        )

    def refresh(state: State) -> State:
        A = settings.ridge * jnp.eye(arms.shape[1], dtype=dtype) + gram(arms, state.counts.astype(dtype))
        inverse, logdet = spd_inverse_logdet(A / settings.ridge)
        cache = _cache(settings, inverse / settings.ridge, state.sums)
        plain = _without_ridge(settings, state.counts, state.sums) if settings.least_squares else ()
        root = state.root if isinstance(state.root, tuple) else root_without_errors(state.root, A)
        return state._replace(cache=cache, logdet=logdet, plain=plain, root=root)

    idle = Pull(jnp.zeros((), int), jnp.zeros((), int))
    if is_step:
        idle = Step(*idle, jax.tree.map(jnp.zeros_like, (left, own)))
    return Algorithm(
        init,
        decide,
        observe,
        idle,
        refresh,
        before=lambda state, action: state.counts[action.arm],
        **made_for(settings.arms, settings.items),
    )


class Verdict(NamedTuple):
    """What the test says."""

    stop: Array  # bool ()
    answer: Array  # int (), an item
    left: Array | tuple[()]  # bool (M,)   the items that are not eliminated


def look(settings: Settings, state: State) -> tuple[Comparison, Verdict]:
    """How the items compare for the sampling rule, and what the test says. Cost: O(M d)."""
    sampling = compare(settings, state.cache)
    tested = compare(settings, state.plain) if isinstance(state.plain, Cache) else sampling
    beaten = statistics(tested, settings.epsilon) > level_of(settings, state)
    is_leader = ~tested.rivals
    after_start = state.pulls >= len(settings.start)
    if isinstance(state.items_left, tuple):
        return sampling, Verdict(after_start & jnp.all(beaten | is_leader), tested.leader, ())
    left = state.items_left & (is_leader | ~beaten)
    number = jnp.sum(left)
    answer = jnp.where(number == 1, jnp.argmax(left), tested.leader)
    if settings.eliminate == "both":
        sampling = sampling._replace(rivals=sampling.rivals & left)
    return sampling, Verdict(after_start & (number <= 1), answer, left)


def level_of(settings: Settings, state: State) -> Array:
    """What a statistic must exceed, float ()."""
    least = None if settings.least is None else jnp.asarray(settings.least, state.logdet.dtype)
    return settings.threshold(settings.delta, Evidence(state.pulls, state.counts, state.logdet, least))


def compare(settings: Settings, cache: Cache, leader: Array | None = None) -> Comparison:
    """An item, by default the one with the largest estimate, against all."""
    # Differences first: near ties, the estimates of two items and the Gram form of the norms lose all their digits.
    items, images = settings.items, cache.images[-settings.items.shape[0] :]
    leader = largest(dot(items, cache.theta)) if leader is None else leader
    directions = entry(items, leader)[None] - items
    gaps = dot(directions, cache.theta) / settings.noise_scale
    norms = jnp.maximum(dot(directions, entry(images, leader)[None] - images), 0)
    gaps, norms = lax.optimization_barrier((gaps, norms))
    return Comparison(leader, directions, gaps, norms, jnp.arange(items.shape[0]) != leader)


def statistics(comparison: Comparison, epsilon: Array | float = 0.0) -> Array:
    """Z_j of all items (M,), the likelihood ratios of the leader against each; 0 where the leader is behind."""
    leads = comparison.gaps + epsilon
    is_ahead = (leads > 0) & (comparison.norms > 0)
    return jnp.where(is_ahead, leads**2 / (2 * jnp.where(is_ahead, comparison.norms, 1)), 0)


def weakest(costs: Array, rivals: Array) -> Array:
    """The rival of the least cost, int (); item 0 if there is none."""
    return largest(-jnp.where(rivals, costs, jnp.inf))


def telling(settings: Settings, state: State, leader: Array, challenger: Array) -> Array:
    """The arm that shrinks the width of two items most, int ()."""
    images = state.cache.images[-settings.items.shape[0] :]
    # y'(A + x x')^-1 y = y'A^-1 y - (x'A^-1 y)^2 / (1 + x'A^-1 x)
    influence = dot(settings.arms, entry(images, leader) - entry(images, challenger))
    return largest(influence**2 / (1 + state.cache.leverage))


def largest(values: Array) -> Array:
    """The place of the largest value, the first of several, int (); the last place where one is NaN.

    Two plain reductions, which XLA:CPU vectorises, unlike those of `argmax`.
    """
    n = values.shape[0]
    return jnp.min(jnp.where(values == jnp.max(values), jnp.arange(n), n - 1))


def entry(values: Array, index: Array) -> Array:
    """The entry, or row, of an index that is known to be one."""
    return lax.dynamic_index_in_dim(values, index, keepdims=False)


def is_first_of(values: Array) -> Array:
    """Where the largest value is, the first of several: bool, as the values."""
    return jnp.arange(values.shape[0]) == jnp.argmax(values)


def _added(settings: Settings, cache: Cache, arm: Array, times: Array, reward: Array, is_fixed: Array | bool) -> Cache:
    """The cache after `times` pulls of one arm; where `is_fixed`, its matrix counts them already."""
    image = entry(cache.images, arm)
    leverage = entry(cache.leverage, arm)
    g = dot(settings.points, image)
    gain = times / (1 + times * leverage)
    surprise = (reward - times * dot(entry(settings.arms, arm), cache.theta)) / (1 + times * leverage)
    if is_fixed is not False:
        gain, surprise = jnp.where(is_fixed, 0, gain), jnp.where(is_fixed, reward, surprise)
    return Cache(
        images=cache.images - (gain * g)[:, None] * image[None],
        leverage=cache.leverage - gain * g[: settings.arms.shape[0]] ** 2,
        theta=cache.theta + surprise * image,
    )


def _cache(settings: Settings, inverse: Array, sums: Array) -> Cache:
    arms = settings.arms
    images = jnp.matmul(settings.points, inverse, precision="highest")
    of_arms = images[: arms.shape[0]]
    return Cache(images, dot(of_arms, arms), jnp.matmul(sums, of_arms, precision="highest"))


def _without_ridge(settings: Settings, counts: Array, sums: Array) -> Cache:
    """The cache of V = sum_k counts_k x_k x_k', where an arm of the start counts once before it is pulled."""
    at_start = jnp.zeros_like(counts).at[jnp.asarray(settings.start)].set(1)
    V = gram(settings.arms, jnp.maximum(counts, at_start).astype(settings.arms.dtype))
    return _cache(settings, spd_inverse_logdet(V)[0], sums)
