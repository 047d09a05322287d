"""Likelihood-ratio stopping: the state, the statistic, and the algorithm of a sampling rule.

The items Z are compared, the arms X are pulled. With y_j = z_i - z_j for the leader i, challenger j has the statistic
(y_j.theta_hat + epsilon)^2 / (2 noise_scale^2 ||y_j||^2_{A^-1}). The run stops once the smallest exceeds the threshold.
Another question has other directions y_j, one for each alternative to its answer (`_problem.questions.kind`).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxbandits.base import Algorithm, Array, Decision, Key, PyTree
from jaxbandits.linear._problem.environment import Pull, Step, made_for
from jaxbandits.linear._problem.questions.asked import kind_of
from jaxbandits.linear._shared import ridge
from jaxbandits.linear._shared.factor import root_after, root_without_errors
from jaxbandits.linear._shared.fixed_confidence import FixedConfidenceSettings
from jaxbandits.numerics.compensated import add_at, no_loss
from jaxbandits.numerics.elementary import log1p
from jaxbandits.numerics.indexing import first_largest, sliced
from jaxbandits.numerics.linalg import dot, gram, spd_inverse_logdet
from jaxbandits.numerics.thresholds import Evidence


class Cache(NamedTuple):
    """Least squares, with A = ridge I + sum_k counts_k x_k x_k', or without ridge I if the stop has no ridge."""

    images: Array  # float (N, d)    A^-1 z of each point z: the arms, then the items if they are other points
    leverage: Array  # float (K,)    x_k' A^-1 x_k
    theta: Array  # float (d,)


class State(NamedTuple):
    """Statistics, their cache, and the memory of the rule."""

    pulls: Array  # int ()
    counts: Array  # int (K,)      exact
    sums: Array  # float (K,)      exact: sums of rewards
    cache: Cache
    logdet: Array  # float ()      log det(A / ridge), with the ridge
    plain: Cache | tuple[()]  # without ridge, if the stop has none; during the start with the start's Gram matrix
    items_left: Array | tuple[()]  # bool (M,)   if items are eliminated
    root: Array | tuple[()]  # float (d, d)   for rules that draw: R with R'R = A^-1, with the ridge; not a cache
    memory: PyTree = ()  # the rule's memory; unlike a cache it cannot be rebuilt
    lost: Array | tuple[()] = ()  # float (K,) in 32 bit: rounding error of `sums`, as in `compensated`


class ItemComparison(NamedTuple):
    """Comparison of the answer with its alternatives j: of the leading item with every item, or of a set.

    For the best item P is the number of items, M. For another question see `_problem.questions.kind`.
    """

    answer: Array  # int () the leading item, or bool (M,) a set
    directions: Array  # float (P, d)   y_j = z_leader - z_j, or the alternative's direction
    gaps: Array  # float (P,)           y_j.theta_hat less its offset, over noise_scale, at least 0
    norms: Array  # float (P,)          ||y_j||^2 in A^-1
    rivals: Array  # bool (P,)          True for the items that may be challengers, and for alternatives that exist
    images: Array | tuple[()] = ()  # float (P, d)   A^-1 y_j; () for the best item, where the cache has them


# (key, state, comparison) -> arm int (), and the rule's memory after this pull
Rule = Callable[[Key, State, ItemComparison], tuple[Array, PyTree]]


def algorithm_from_rule(
    settings: FixedConfidenceSettings, rule: Rule, memory: PyTree = (), *, draws: bool = False
) -> Algorithm:
    """Builds the algorithm of a sampling rule: the start, then the rule, until the test holds.

    Args:
        settings: settings of the problem and the test.
        rule: the sampling rule, which decides after the start.
        memory: the rule's memory at the end of the start. If it has any, or items are eliminated, actions are `Step`s.
        draws: if True, the rule draws from the posterior, and the state has a `root`.

    Returns:
        Algorithm with actions `Pull` or `Step`, and answers int (), an item, or bool (M,), a set of items.
    """
    arms, dtype = settings.arms, settings.arms.dtype
    K, M = arms.shape[0], settings.items.shape[0]
    first, is_step = len(settings.start), bool(jax.tree.leaves(memory)) or settings.eliminate is not None
    all_items = jnp.ones(M, bool) if settings.eliminate is not None else ()

    def init(key: Key) -> State:
        del key
        return State(
            pulls=jnp.zeros((), int),
            counts=jnp.zeros(K, int),
            sums=jnp.zeros(K, dtype),
            cache=Cache(settings.points / settings.ridge, dot(arms, arms) / settings.ridge, jnp.zeros_like(arms[0])),
            logdet=jnp.zeros((), dtype),
            plain=_without_ridge(settings, jnp.zeros(K, int), jnp.zeros(K, dtype)) if settings.least_squares else (),
            items_left=all_items,
            root=jnp.eye(arms.shape[1], dtype=dtype) / jnp.sqrt(settings.ridge) if draws else (),
            memory=memory,
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
        carried = jax.tree.map(lambda a, b: jnp.where(is_first, b, a), (verdict.items_left, later), (all_items, memory))
        return Decision(Step(arm, times, carried), verdict.stop, verdict.answer)

    def observe(state: State, action: Pull | Step, observation: Array) -> State:
        moves = action.times > 0
        pulled = jnp.arange(K) == action.arm
        items_left, carried = state.items_left, state.memory
        if isinstance(action, Step):
            items_left, carried = jax.tree.map(
                lambda new, old: jnp.where(moves, new, old), action.carried, (items_left, carried)
            )
        times = action.times.astype(dtype)
        leverage = sliced(state.cache.leverage, action.arm)
        plain = state.plain
        if isinstance(plain, Cache):
            plain = _added(
                settings, plain, arm=action.arm, times=times, reward=observation, is_fixed=state.pulls < first
            )
        root = state.root
        if not isinstance(root, tuple):
            image = sliced(state.cache.images, action.arm)
            root = root_after(root, sliced(arms, action.arm), image, leverage, times)
        sums, lost = add_at(state.sums, state.lost, action.arm, observation)
        return State(
            pulls=state.pulls + action.times,
            counts=state.counts + jnp.where(pulled, action.times, 0),
            sums=sums,
            cache=_added(settings, state.cache, arm=action.arm, times=times, reward=observation, is_fixed=False),
            logdet=state.logdet + log1p(times * leverage),
            plain=plain,
            items_left=items_left,
            root=root,
            memory=carried,
            lost=lost,
        )

    def refresh(state: State) -> State:
        A = ridge.gram_of(arms, settings.ridge, state.counts)
        inverse, logdet = spd_inverse_logdet(A / settings.ridge)
        cache = _cache(settings, inverse / settings.ridge, state.sums)
        plain = _without_ridge(settings, state.counts, state.sums) if settings.least_squares else ()
        root = state.root if isinstance(state.root, tuple) else root_without_errors(state.root, A)
        return state._replace(cache=cache, logdet=logdet, plain=plain, root=root)

    idle = Pull(jnp.zeros((), int), jnp.zeros((), int))
    if is_step:
        idle = Step(*idle, jax.tree.map(jnp.zeros_like, (all_items, memory)))
    return Algorithm(
        init,
        decide,
        observe,
        idle,
        refresh,
        needs_order=bool(jax.tree.leaves(memory)),
        **made_for(
            settings.arms, settings.items, **({} if settings.question is None else {"question": settings.question})
        ),
    )


class Verdict(NamedTuple):
    """Result of the test."""

    stop: Array  # bool ()
    answer: Array  # int (), an item, or bool (M,), a set
    items_left: Array | tuple[()]  # bool (M,)   the items that are not eliminated


def look(settings: FixedConfidenceSettings, state: State) -> tuple[ItemComparison, Verdict]:
    """Compares the items for the sampling rule, and performs the test. Cost: O(P d)."""
    sampling = compare(settings, state.cache)
    tested = compare(settings, state.plain) if isinstance(state.plain, Cache) else sampling
    beaten = statistics(tested, settings.epsilon) > level_of(settings, state)
    is_leader = ~tested.rivals
    after_start = state.pulls >= len(settings.start)
    if isinstance(state.items_left, tuple):
        return sampling, Verdict(after_start & jnp.all(beaten | is_leader), tested.answer, ())
    items_left = state.items_left & (is_leader | ~beaten)
    number = jnp.sum(items_left)
    answer = jnp.where(number == 1, jnp.argmax(items_left), tested.answer)
    if settings.eliminate == "both":
        sampling = sampling._replace(rivals=sampling.rivals & items_left)
    return sampling, Verdict(after_start & (number <= 1), answer, items_left)


def level_of(settings: FixedConfidenceSettings, state: State) -> Array:
    """Computes the level that a statistic must exceed, float ()."""
    least = None if settings.least is None else jnp.asarray(settings.least, state.logdet.dtype)
    return settings.threshold(settings.delta, Evidence(state.pulls, state.counts, state.logdet, least))


def compare(settings: FixedConfidenceSettings, cache: Cache) -> ItemComparison:
    """Compares the answer at the estimates with all alternatives."""
    question, items = settings.question, settings.items
    if question is None:
        return compare_items(settings, cache)
    kind, images = kind_of(question), cache.images[-items.shape[0] :]
    answer = kind.answer(question, dot(items, cache.theta))
    directions, images = (kind.directions(question, answer, points) for points in (items, images))
    gaps = (dot(directions, cache.theta) - kind.offsets(question, answer, items.dtype)) / settings.noise_scale
    norms = jnp.maximum(dot(directions, images), 0)
    gaps, norms = lax.optimization_barrier((gaps, norms))
    return ItemComparison(
        answer=answer,
        directions=directions,
        gaps=gaps,
        norms=norms,
        rivals=kind.exists(question, items),
        images=images,
    )


def compare_items(settings: FixedConfidenceSettings, cache: Cache, leader: Array | None = None) -> ItemComparison:
    """Compares an item, by default the one with the largest estimate, with all items."""
    # Differences first: near ties, the estimates of two items and the Gram form of the norms lose all their digits.
    items, images = settings.items, cache.images[-settings.items.shape[0] :]
    leader = first_largest(dot(items, cache.theta)) if leader is None else leader
    directions = sliced(items, leader)[None] - items
    gaps = dot(directions, cache.theta) / settings.noise_scale
    norms = jnp.maximum(dot(directions, sliced(images, leader)[None] - images), 0)
    gaps, norms = lax.optimization_barrier((gaps, norms))
    return ItemComparison(leader, directions, gaps, norms, jnp.arange(items.shape[0]) != leader)


def statistics(comparison: ItemComparison, epsilon: Array | float = 0.0) -> Array:
    """Computes Z_j of all items (M,), the likelihood ratio of the leader against each; 0 if the leader is behind."""
    leads = comparison.gaps + epsilon
    is_ahead = (leads > 0) & (comparison.norms > 0)
    return jnp.where(is_ahead, leads**2 / (2 * jnp.where(is_ahead, comparison.norms, 1)), 0)


def weakest(costs: Array, rivals: Array) -> Array:
    """Returns the rival of smallest cost, int (), or rival 0 if there is none."""
    return first_largest(-jnp.where(rivals, costs, jnp.inf))


def image_of(settings: FixedConfidenceSettings, state: State, comparison: ItemComparison, rival: Array) -> Array:
    """Returns A^-1 y of a rival's direction y, float (d,)."""
    if isinstance(comparison.images, tuple):
        return image_between(settings, state, comparison.answer, rival)
    return sliced(comparison.images, rival)


def image_between(settings: FixedConfidenceSettings, state: State, leader: Array, challenger: Array) -> Array:
    """Returns A^-1 y of the difference y of two items, float (d,)."""
    images = state.cache.images[-settings.items.shape[0] :]
    return sliced(images, leader) - sliced(images, challenger)


def most_informative(settings: FixedConfidenceSettings, state: State, image: Array) -> Array:
    """Returns the arm that shrinks the width ||y|| most, int (), given A^-1 y."""
    # y'(A + x x')^-1 y = y'A^-1 y - (x'A^-1 y)^2 / (1 + x'A^-1 x)
    influence = dot(settings.arms, image)
    return first_largest(influence**2 / (1 + state.cache.leverage))


def _added(
    settings: FixedConfidenceSettings, cache: Cache, *, arm: Array, times: Array, reward: Array, is_fixed: Array | bool
) -> Cache:
    """Updates the cache by `times` pulls of one arm; if `is_fixed`, its matrix already counts them."""
    image = sliced(cache.images, arm)
    leverage = sliced(cache.leverage, arm)
    arms = settings.arms
    moved, gain, surprise = ridge.update(
        settings.points, arms, cache.theta, arm=arm, image=image, leverage=leverage, times=times, reward=reward
    )
    if is_fixed is not False:
        gain, surprise = jnp.where(is_fixed, 0, gain), jnp.where(is_fixed, reward, surprise)
    return Cache(
        images=cache.images - (gain * moved)[:, None] * image[None],
        leverage=cache.leverage - gain * moved[: arms.shape[0]] ** 2,
        theta=cache.theta + surprise * image,
    )


def _cache(settings: FixedConfidenceSettings, inverse: Array, sums: Array) -> Cache:
    arms = settings.arms
    images = jnp.matmul(settings.points, inverse, precision="highest")
    of_arms = images[: arms.shape[0]]
    return Cache(images, dot(of_arms, arms), jnp.matmul(sums, of_arms, precision="highest"))


def _without_ridge(settings: FixedConfidenceSettings, counts: Array, sums: Array) -> Cache:
    """Computes the cache of V = sum_k counts_k x_k x_k'; an arm of the start counts once before it is pulled."""
    at_start = jnp.zeros_like(counts).at[jnp.asarray(settings.start)].set(1)
    V = gram(settings.arms, jnp.maximum(counts, at_start).astype(settings.arms.dtype))
    return _cache(settings, spd_inverse_logdet(V)[0], sums)
