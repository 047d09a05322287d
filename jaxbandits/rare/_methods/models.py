"""Rewards that have a likelihood, by family: their law, the instances of a draw, and the count of what a run was paid.

The environment of a run is wrapped: its memory counts the pulls and the rewards of every arm. So any algorithm can be
examined, also one whose state keeps the sums of its last phase only.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks, cpe, fullbandit, mab
from jaxbandits import linear as linear_family
from jaxbandits.base import Algorithm, Array, Environment, Key, PyTree
from jaxbandits.checks import require
from jaxbandits.engine.sweep.tasks import Build, build_row, make_job
from jaxbandits.numerics import compensated
from jaxbandits.rare._methods import laws, linear, mixture, phases
from jaxbandits.rare._methods.laws import Arms, Kind, Table
from jaxbandits.rare._methods.linear import Linear, Normals
from jaxbandits.rare._methods.mixture import Mixture

KINDS: dict[str, Kind] = {
    "Gaussian": "gaussian",
    "Bernoulli": "bernoulli",
    "Poisson": "poisson",
    "Exponential": "exponential",
}
NONE = "rare: no likelihood ratio for"


class Tally(NamedTuple):
    """Memory of a wrapped environment."""

    inner: PyTree  # memory of the environment itself
    # int (K,)   pulls of each arm; if means change (J + 1, K), also of first pulls for each of `phases.LENGTHS`
    counts: Array
    sums: compensated.Sum  # float, as `counts`   sums of their rewards


class Model(NamedTuple):
    """An instance as the law of its rewards."""

    truth: Arms | Linear  # law of the rewards
    first: Mixture  # broad mixture of the first round
    parameters: np.ndarray  # float64 (P,)   the parameters that a draw replaces: means, or theta
    instance_of: Callable[[Array], Any]  # (parameters) -> instance
    environment_of: Callable[[Any, Algorithm], Environment]  # (instance, algorithm) -> the family's environment
    paid: Callable[[PyTree, PyTree], tuple[Array, Array]]  # (action, observation) -> pulls and rewards, (K,) each
    is_wrong: Callable[[Any], bool]  # (answer) -> True if it is wrong at the truth
    focus: int  # arm whose number of pulls separates the ways to be late: the best one
    is_tied: bool  # True if the best answer is not unique
    dtype: Any  # dtype of a run
    # (is_first, action, first, later) -> the observation `first` of the arms in is_first (K,), `later` of the others;
    # None if means cannot change within a run
    merged: Callable[[Array, PyTree, PyTree, PyTree], PyTree] | None = None


def model_of(build: Build, instance: Any, key: Key) -> Model:
    """Returns the model of an instance, after a check that `build` answers by the rewards of the instance it is given.

    Raises:
        ValueError: the rewards have no likelihood ratio here, or an argument is not valid; the message names it.
    """
    checks.function("build", build, "(instance, key)")
    checks.key("key", key)
    require_instance(instance)
    families = {
        mab.Instance: _arms_of_mab,
        linear_family.Instance: _linear,
        cpe.Instance: _arms_of_cpe,
        fullbandit.Instance: _superarms,
    }
    family = families[type(instance)]
    job = make_job(build, None, seeds=1, key=key, max_rounds=1)
    algorithm, environment, _ = build_row(job, instance, key)
    require_plain(environment)
    model = family(instance, algorithm)
    _require_its_rewards(job, model, key)
    return model


def require_instance(instance: Any) -> int:
    """Returns the number of parameters; raises `ValueError` unless it is an instance of a family, and is known."""
    if not isinstance(instance, (mab.Instance, linear_family.Instance, cpe.Instance, fullbandit.Instance)):
        names = "mab, linear, cpe or fullbandit"
        raise ValueError(f"{NONE} {checks.show(instance)}. instance must be an Instance of {names}")
    require(checks.is_concrete(*jax.tree.leaves(instance)), "instance", "be known before tracing", instance)
    name = "means" if isinstance(instance, mab.Instance) else "theta"
    if isinstance(instance, mab.Instance):
        # Making an environment checks the instance, and compiles nothing.
        mab.environment(instance)
    values = checks.array(f"instance.{name}", getattr(instance, name), ("P",), finite=True)
    return int(values.shape[0])


def require_plain(environment: Environment) -> None:
    """Raises `ValueError` for an environment whose rewards depend on more than the action and fresh noise."""
    if environment.stream is not None:
        raise ValueError(f"{NONE} shared rewards. build must make an environment without stream")
    memory = jax.eval_shape(environment.init, jax.random.key(0))
    if jax.tree.leaves(memory):
        raise ValueError(f"{NONE} rewards that depend on the past. build must make an environment without a memory")


def observed(model: Model, environment: Environment) -> Environment:
    """Returns the environment with a memory that counts pulls and sums rewards."""
    K = (model.truth.features.shape[0],) if isinstance(model.truth, Linear) else model.truth.means.shape

    def init(key: Key) -> Tally:
        return Tally(environment.init(key), jnp.zeros(K, int), compensated.zeros(K, model.dtype))

    def respond(memory: Tally, action: PyTree, noise: PyTree) -> tuple[PyTree, Tally]:
        observation, inner = environment.respond(memory.inner, action, noise)
        pulls, rewards = model.paid(action, observation)
        sums = compensated.add(memory.sums, rewards.astype(model.dtype))
        return observation, Tally(inner, memory.counts + pulls.astype(memory.counts.dtype), sums)

    return environment._replace(init=init, respond=respond)


def observed_in_phases(model: Model, later: Environment, first: Environment, number: Array) -> Environment:
    """Returns the environment that answers an arm's first pulls by `first`, with a memory of counts and sums.

    Args:
        model: the model, with `merged`.
        later: environment of the means of later pulls.
        first: environment of the means of an arm's first pulls, with the same noise.
        number: int (), 0 for none, or j for the first LENGTHS[j - 1] pulls of each arm. Pulls that are made at once
            all belong to the phase in which the first of them is.
    """
    merged = model.merged
    assert merged is not None
    K = model.truth.means.size  # type: ignore[union-attr]
    shape = (len(phases.LENGTHS) + 1, K)
    lengths = jnp.array(phases.LENGTHS)

    def init(key: Key) -> Tally:
        return Tally(later.init(key), jnp.zeros(shape, int), compensated.zeros(shape, model.dtype))

    def respond(memory: Tally, action: PyTree, noise: PyTree) -> tuple[PyTree, Tally]:
        is_first = memory.counts[0] < lengths[:, None]  # (J, K)
        is_moved = (number > 0) & jnp.take(is_first, jnp.maximum(number - 1, 0), axis=0)
        by_first, _ = first.respond(memory.inner, action, noise)
        by_later, inner = later.respond(memory.inner, action, noise)
        observation = merged(is_moved, action, by_first, by_later)
        pulls, rewards = model.paid(action, observation)
        is_counted = jnp.concatenate([jnp.ones((1, K), bool), is_first])
        sums = compensated.add(memory.sums, jnp.where(is_counted, rewards.astype(model.dtype), 0))
        counts = memory.counts + jnp.where(is_counted, pulls.astype(memory.counts.dtype), 0)
        return observation, Tally(inner, counts, sums)

    return later._replace(init=init, respond=respond)


def _require_its_rewards(job: Any, model: Model, key: Key) -> None:
    """Raises `ValueError` unless a build at shifted parameters is answered as the family's environment answers."""
    shifted = _shifted(model)
    task = model.instance_of(jnp.asarray(shifted, model.dtype))
    algorithm, environment, _ = build_row(job, task, key)
    require_plain(environment)
    reference = model.environment_of(task, algorithm)
    at_truth = model.environment_of(model.instance_of(jnp.asarray(model.parameters, model.dtype)), algorithm)
    noise = environment.noise(key)
    actions = list(_probes(algorithm.idle, model))
    answers = [[_answer(each, action, noise) for action in actions] for each in (environment, reference, at_truth)]
    if _same(environment.noise(key), reference.noise(key)) and _same(answers[0], answers[1]):
        return
    if _same(environment.noise(key), at_truth.noise(key)) and _same(answers[0], answers[2]):
        raise ValueError(
            "build must answer by the rewards of the instance that it receives, got the same rewards for every "
            "instance. Make the environment from its first argument"
        )
    raise ValueError(
        f"{NONE} the rewards of this environment. build must return the family's environment of the instance that it "
        "receives, with its default noise"
    )


def _shifted(model: Model) -> np.ndarray:
    """Returns other valid parameters."""
    if isinstance(model.truth, Arms) and model.truth.kind != "gaussian":
        table, _ = laws.dictionary(model.truth)
        return table.first[3]
    return model.parameters + model.truth.scale * (1 + np.arange(model.parameters.size)) / 7


def _probes(idle: PyTree, model: Model) -> Any:
    """Yields an action for each arm, or one for all, of the form of the idle action."""
    if hasattr(idle, "decision"):
        yield idle._replace(decision=jnp.ones_like(idle.decision))
    elif hasattr(idle, "counts"):
        yield idle._replace(counts=jnp.ones_like(idle.counts))
    elif hasattr(idle, "arm"):
        for arm in range(len(model.truth.features)):  # type: ignore[union-attr]
            yield idle._replace(arm=jnp.full_like(idle.arm, arm), times=jnp.ones_like(idle.times))
    else:
        more = {"times": jnp.ones_like(idle.times)} if hasattr(idle, "times") else {}
        for arm in range(model.truth.means.size):  # type: ignore[union-attr]
            yield idle._replace(arms=jnp.full_like(idle.arms, arm), **more)


def _answer(environment: Environment, action: PyTree, noise: PyTree) -> PyTree:
    try:
        return environment.respond((), action, noise)[0]
    except Exception:  # noise or actions of another form
        return None


def _same(a: PyTree, b: PyTree) -> bool:
    leaves = jax.tree.leaves(a), jax.tree.leaves(b)
    if jax.tree.structure(a) != jax.tree.structure(b) or not leaves[0]:
        return False
    return all(
        np.shape(x) == np.shape(y) and np.allclose(np.asarray(x), np.asarray(y), rtol=1e-5, atol=1e-6)
        for x, y in zip(*leaves, strict=True)
    )


# The families


def _no_components(arms: Arms) -> Table:
    return laws.points(arms, np.zeros((0, arms.means.size)))


def _equal(strata: mixture.Strata) -> np.ndarray:
    B = strata.weights.shape[0]
    return np.full(B, 1 / B)


def _arms_of_mab(instance: Any, algorithm: Algorithm) -> Model:
    declared = {} if algorithm.problem is None else algorithm.problem()
    problem, question = instance.problem, declared.get("question")
    kind = KINDS.get(type(problem).__name__)
    if kind is None:
        raise ValueError(f"{NONE} {checks.show(problem)}. instance must have rewards of an exponential family")
    if getattr(problem, "noise_scale", 1.0) is None:
        raise ValueError(f"{NONE} {checks.show(problem)}. instance must have known variances")
    means = np.asarray(instance.means, np.float64)
    laws.require_inside("instance.means", kind, means)
    arms = Arms(kind, means, float(getattr(problem, "noise_scale", 1.0)))
    best = int(means.argmax())
    is_best_arm = question is None or isinstance(question, mab.BestArm)
    strata = mixture.one_best(arms, best) if is_best_arm else mixture.exchanges(arms, _members(question, means))

    def is_wrong(answer: Any) -> bool:
        if question is not None:
            return not bool(mab.is_right(instance, jnp.asarray(answer), question=question))
        is_arm = np.ndim(answer) == 0 and 0 <= int(answer) < means.size
        require(is_arm, "wrong", "be given for answers that are no arms", answer)
        return not bool(mab.is_right(instance, int(answer)))

    def paid(action: Any, rewards: Any) -> tuple[Array, Array]:
        counts = jnp.zeros(means.size, rewards.times.dtype).at[action.arms].add(rewards.times)
        return counts, jnp.zeros(means.size, rewards.sums.dtype).at[action.arms].add(rewards.sums)

    def merged(is_first: Array, action: Any, first: Any, later: Any) -> Any:
        return jax.tree.map(lambda a, b: jnp.where(is_first[action.arms], a, b), first, later)

    return Model(
        truth=arms,
        first=Mixture(arms, _equal(strata), _no_components(arms), strata),
        parameters=means,
        instance_of=lambda means: instance._replace(means=means),
        environment_of=mab.environment,
        paid=paid,
        is_wrong=is_wrong,
        focus=best,
        is_tied=is_best_arm and int((means == means.max()).sum()) > 1,
        dtype=jnp.asarray(instance.means).dtype,
        merged=merged,
    )


def _members(question: Any, means: np.ndarray) -> np.ndarray:
    """Returns the arms that the right answer to another question than the best arm is made of, bool (K,)."""
    if isinstance(question, mab.TopM):
        return np.argsort(np.argsort(-means, kind="stable"), kind="stable") < question.m
    if isinstance(question, mab.AllGood):
        return means >= means.max() - float(question.epsilon)
    return means > float(question.level)


def _linear(instance: Any, algorithm: Algorithm) -> Model:
    question = None if algorithm.problem is None else algorithm.problem().get("question")
    linear_family.is_right(instance, 0)
    features, theta = (np.asarray(x, np.float64) for x in (instance.arms, instance.theta))
    items = features if instance.items is None else np.asarray(instance.items, np.float64)
    values = items @ theta
    truth = Linear(features, theta, float(instance.noise_scale))
    normals, shares = linear.broad(truth, *_directions(question, items, values))
    K = features.shape[0]

    def paid(action: Any, rewards: Array) -> tuple[Array, Array]:
        if hasattr(action, "arm"):
            return jnp.zeros(K, action.times.dtype).at[action.arm].add(action.times), jnp.zeros(K, rewards.dtype).at[
                action.arm
            ].add(rewards)
        if hasattr(action, "ahead"):
            # The end of a stretch is drawn first and has the likelihood; what lies before it adds nothing.
            is_fresh = action.ahead == 0
            return jnp.where(is_fresh, action.counts, 0), jnp.where(is_fresh, rewards, 0)
        return action.counts, rewards

    return Model(
        truth=truth,
        first=Mixture(truth, shares, normals),
        parameters=theta,
        instance_of=lambda theta: instance._replace(theta=theta),
        environment_of=linear_family.environment,
        paid=paid,
        is_wrong=lambda answer: not bool(linear_family.is_right(instance, jnp.asarray(answer), question=question)),
        focus=int((features @ theta).argmax()),
        is_tied=question is None and int((values == values.max()).sum()) > 1,
        dtype=jnp.asarray(instance.arms).dtype,
    )


def _directions(question: Any, items: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns directions z for which z.theta is small where an answer is wrong, and by how much it must fall."""
    if isinstance(question, linear_family.Above):
        # The mean of an item without features is known.
        has_features = items.any(axis=1)
        margins = (values - float(question.level))[has_features]
        return np.where(margins < 0, -1, 1)[:, None] * items[has_features], np.abs(margins)
    m = question.m if isinstance(question, linear_family.TopM) else 1
    order = np.argsort(-values, kind="stable")
    pairs = [(i, j) for i in order[:m] for j in order[m:] if values[i] > values[j]]
    # All items may tie.
    inside, outside = np.array(pairs, int).reshape(-1, 2).T
    return items[inside] - items[outside], values[inside] - values[outside]


def _arms_of_cpe(instance: Any, algorithm: Algorithm) -> Model:
    del algorithm
    if instance.tau != 1:
        raise ValueError(f"{NONE} theta that are variances. instance.tau must be 1, got {instance.tau}")
    given, is_gaussian = instance.arms, isinstance(instance.arms, cpe.GaussianArms)
    means = np.asarray(cpe.means(given), np.float64)
    if is_gaussian:
        arms = Arms("gaussian", means, float(given.noise_scale))
        replaced = lambda means: given._replace(means=means)  # noqa: E731
        dtype = jnp.asarray(given.means).dtype
    else:
        low, high = np.asarray(given.low), np.asarray(given.high)
        if not ((low == high) & ((low == 0) | (low == 1)))[np.asarray(given.weight) > 0].all():
            raise ValueError(f"{NONE} samples in [0, 1]. instance.arms must be Bernoulli or normal")
        laws.require_inside("instance.arms", "bernoulli", means)
        arms = Arms("bernoulli", means)
        replaced = cpe.bernoulli
        dtype = jnp.asarray(given.low).dtype
    answer, is_tied = _best_decision(instance.problem, means, dtype)
    strata = mixture.exchanges(arms, answer > 0)
    m = means.size

    def paid(action: Any, samples: Array) -> tuple[Array, Array]:
        if hasattr(action, "decision"):
            return action.decision, samples
        arm = action.arms
        counts = jnp.zeros(m, jnp.int32).at[arm].add(1, mode="drop")
        return counts, jnp.zeros(m, samples.dtype).at[arm].add(samples, mode="drop")

    return Model(
        truth=arms,
        first=Mixture(arms, _equal(strata), _no_components(arms), strata),
        parameters=means,
        instance_of=lambda means: instance._replace(arms=replaced(means), theta=means),
        environment_of=cpe.environment,
        paid=paid,
        is_wrong=lambda answer: not bool(cpe.is_right(instance, jnp.asarray(answer))),
        focus=int(np.argmax(answer)),
        is_tied=is_tied,
        dtype=dtype,
    )


def _best_decision(problem: Any, means: np.ndarray, dtype: Any) -> tuple[np.ndarray, bool]:
    """Returns the best decision, and True if another one ties with it: tiny changes of the means then change it."""
    answer = np.asarray(cpe.solve(problem, jnp.asarray(means, dtype)))
    steps = np.random.default_rng(0).standard_normal((4, means.size)) * 64 * float(jnp.finfo(dtype).eps)
    nearby = [
        np.asarray(cpe.solve(problem, jnp.asarray(means + sign * step, dtype))) for step in steps for sign in (1, -1)
    ]
    return answer, any((each != answer).any() for each in nearby)


def _superarms(instance: Any, algorithm: Algorithm) -> Model:
    declared = {} if algorithm.problem is None else algorithm.problem()
    if "design.support" not in declared:
        raise ValueError(f"{NONE} an algorithm without a design. build must return an algorithm of fullbandit")
    support = np.asarray(declared["design.support"], np.float64)
    theta = np.asarray(instance.theta, np.float64)
    truth = Linear(support, theta, float(instance.noise_scale) * instance.k**0.5)
    order = np.argsort(-theta, kind="stable")
    top, low = order[: instance.k], order[instance.k :]
    unit = np.eye(theta.size)
    swaps = sorted((unit[i] - unit[j] for i in top for j in low), key=lambda swap: float(swap @ theta))
    swaps = swaps[: linear.MOST_DIRECTIONS // 2]
    # A stop separates its whole answer from all other arms, so a wrong one is likely where both parts move.
    several = range(2, min(top.size, low.size) + 1)
    answers = [unit[top].sum(0) - swap for swap in swaps]
    answers += [unit[[*top[: top.size - r], *low[:r]]].sum(0) for r in several]
    apart = [(1 - answer) / low.size - answer / top.size for answer in answers]
    directions = np.array(swaps + apart)
    normals, shares = linear.broad(truth, directions)

    return Model(
        truth=truth,
        first=Mixture(truth, shares, normals),
        parameters=theta,
        instance_of=lambda theta: instance._replace(theta=theta),
        environment_of=fullbandit.environment,
        paid=lambda action, rewards: (action.counts, rewards),
        is_wrong=lambda answer: not bool(fullbandit.is_right(instance, jnp.asarray(answer))),
        focus=int((support @ theta).argmax()),
        is_tied=bool(theta[top].min() == theta[low].max(initial=-np.inf)),
        dtype=jnp.asarray(declared["design.support"]).dtype,
    )


__all__ = ["Model", "Normals", "Tally", "model_of", "observed", "observed_in_phases"]
