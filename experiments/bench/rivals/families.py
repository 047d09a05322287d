"""A rule or two of the other families."""

from collections.abc import Iterator
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.bench import kernel as kernel_bench
from experiments.bench.case import always
from experiments.bench.loops import decisions_of
from experiments.bench.reference import scalar as plain
from experiments.bench.reference.over_lanes import cpe as cpe_lanes
from experiments.bench.reference.over_lanes import fullbandit as fullbandit_lanes
from experiments.bench.reference.over_lanes import kcenter as kcenter_lanes
from experiments.bench.reference.over_lanes import kernel as kernel_lanes
from experiments.bench.reference.over_lanes import linear as linear_lanes
from experiments.bench.rivals import rival as common
from experiments.bench.rivals.rival import DELTA, SEEDS, Rival
from jaxbandits import cpe, fullbandit, kcenter, kernel, linear


def rivals() -> Iterator[Rival]:
    """Yields all of them."""
    yield from of_linear()
    yield from of_cpe()
    yield of_kcenter()
    yield of_fullbandit()
    yield of_kernel()


def of_linear() -> Iterator[Rival]:
    """Yields LinGapE and LinUCB on the instance of Soare et al. with K = 6."""
    instance = linear.soare(5)
    arms, means = np.asarray(instance.arms), np.asarray(instance.arms @ instance.theta)
    settings = {"ridge": 1.0, "delta": DELTA, "noise_scale": 1.0, "norm_bound": 2.0}
    scalar = common.scalar(plain.lingape, common.one_normal(means), arms @ arms.T, *settings.values())
    for name, numba in (("LinGapE", scalar), ("LinUCB", None)):
        rule = {"LinGapE": linear_lanes.lingape, "LinUCB": linear_lanes.lin_ucb}[name](arms, **settings)
        factory = partial({"LinGapE": linear.lingape, "LinUCB": linear.lin_ucb}[name], instance.arms, **settings)
        build = always(factory, linear.environment(instance, factory()))
        numpy = partial(common.over_lanes, lambda _, rule=rule: rule, common.normal(means))
        yield Rival("linear", name, "soare(5)", numpy=numpy, numba=numba, **common.ours(build))


def of_cpe() -> Iterator[Rival]:
    """Yields COCI on Bernoulli arms with nearly equal means."""
    delta = 1e-300  # paths of two and of three edges are told apart after 13,000 pulls with 1e-30
    problems = {
        "best of 4": (cpe.best_arm(4), 4, 1),
        "opinions of 4": (cpe.osa4().problem, 4, 2),
        "5 paths": (cpe.paths5().problem, 7, 1),
    }
    for name, (problem, m, tau) in problems.items():
        means, estimator = np.linspace(0.49, 0.5, m), ("mean", "variance")[tau - 1]
        instance = cpe.instance(problem, cpe.bernoulli(means), estimator=estimator)
        listed = decisions_of(instance)
        settings = {"delta": delta, "estimator": estimator, "observations": "binary"}
        factory = partial(cpe.coci, problem, **settings)
        build = always(factory, cpe.environment(instance, factory()))
        rule = cpe_lanes.coci(listed, delta=delta, tau=tau)
        numpy = partial(common.over_lanes, lambda _, rule=rule: rule, common.bernoulli(means))
        slopes, constants = cpe_lanes.affine(listed)
        known = (listed.decisions, slopes, constants, listed.bi_monotone, tau, delta, 1.0)
        numba = common.scalar(plain.coci, common.one_bernoulli(means), *known)
        yield Rival("cpe", "COCI", name, numpy=numpy, numba=numba, **common.ours(build))


def of_kcenter(n: int = 100, k: int = 10, levels: int = 255, leap: int = 16) -> Rival:
    """Returns DS-UCB with leaps on crops of photographs."""
    points = kcenter.image_crops(n, 7, augment=True)
    m = points.shape[1]
    problem = kcenter.Dimensions(n, m, k, levels)
    table = jnp.asarray(kcenter.pairwise_sums(points))
    instance = kcenter.DimensionInstance(problem, jnp.asarray(points), table, jnp.arange(n, dtype=jnp.int32))
    factory = partial(kcenter.ds_ucb, problem, delta=0.1, leap=leap)
    build = always(factory, kcenter.environment(instance, factory()))
    numbers, exact, share = points.astype(float), np.asarray(table) / m / levels**2, 0.1 / n

    def interval(mean: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        radius = np.sqrt(0.1 * np.log1p((1 + np.log(count)) / share) / count)
        return mean - radius, mean + radius

    def respond(rng: np.random.Generator, query: kcenter_lanes.Query) -> np.ndarray:
        drawn = rng.integers(0, m, len(query.node))
        reward = (numbers[query.node, drawn] - numbers[query.center, drawn]) ** 2 / levels**2
        return np.where(query.cost > 1, exact[query.node, query.center], reward)

    rule = kcenter_lanes.ds_ucb(n, m, k, interval=interval)

    def dimension(rng, spent):
        return rng.integers(0, m)

    numpy = partial(common.over_lanes, lambda _: rule, respond, queries=lambda query: query.cost.sum())
    known = (numbers, k, levels, share, 0.1)
    numba = common.scalar(plain.ds_ucb, dimension, *known, count=lambda made: made[:, 2].sum())
    players = common.ours(build, lanes=64) | {"floor": None}  # its first query costs less than most
    # An exact distance counts as m queries, of which most come late, and a round here makes several queries.
    long = {"ours": 2000, "numpy": 15_500, "numba": 15_500}
    return Rival("kcenter", "DS-UCB", f"crops, n = {n}", numpy=numpy, numba=numba, long=long, **players)


def of_fullbandit() -> Rival:
    """Returns SAQM with a test after every pull."""
    crowd = fullbandit.crowdsourcing("it")
    n, theta = crowd.theta.size, np.asarray(crowd.theta)
    scale = float(crowd.noise_scale) * np.sqrt(crowd.k)
    design = fullbandit.make_design(fullbandit.random_support(0, n, crowd.k, size=2 * n), crowd.k)
    settings = {"delta": 0.05, "epsilon": 0.5, "noise_scale": 1.0}
    pace = fullbandit.Pace(growth=None, design_matrix="limit")
    factory = partial(fullbandit.saqm, design, pace=pace, **settings)
    build = always(factory, fullbandit.environment(crowd, factory()))
    support, weights = np.asarray(design.support), np.asarray(design.weights)
    rule = fullbandit_lanes.saqm(support, weights, crowd.k, **settings)

    def respond(rng: np.random.Generator, arms: np.ndarray) -> np.ndarray:
        return support[arms[0]] @ theta + scale * rng.standard_normal(len(arms))

    numpy = partial(common.over_lanes, lambda _: rule, respond)
    return Rival("fullbandit", "SAQM, every pull", f"it, n = {n}", numpy=numpy, **common.ours(build, lanes=64))


def of_kernel(size: int = 2000, horizon: int = 50, beta: float = 1.0) -> Rival:
    """Returns GP-UCB with the same candidates in all runs, one lane after another: more would not fit a cache.

    Its runs have the same length, so there are more of them if more rounds are asked for.
    """
    instance = kernel.branin(jax.random.key(1), size=size)
    of_pairs, noise_variance = kernel.paper_kernel("branin"), kernel_bench.NOISE_VARIANCE
    settings = {"kernel": of_pairs, "horizon": horizon, "beta": beta, "noise_variance": noise_variance}
    factory = partial(kernel.gp_ucb, instance.candidates, **settings)
    build = always(factory, kernel.environment(instance, factory()))
    values, scale = np.asarray(instance.values), float(instance.noise_scale)

    @cache
    def gram() -> np.ndarray:
        pairs = jax.vmap(lambda x: jax.vmap(lambda y: of_pairs(x, y))(instance.candidates))
        return np.asarray(pairs(instance.candidates))

    def runs(rounds: int) -> int:
        return SEEDS * rounds // 500

    def ours(rounds: int) -> int:
        return common.swept(build, horizon + 1, seeds=runs(rounds), lanes=1)

    def numpy(rounds: int, lanes: int = 1) -> int:
        rule = kernel_lanes.gp_ucb(
            gram(), 0, horizon=horizon, beta=np.full(horizon, beta), noise_variance=noise_variance
        )

        def respond(rng: np.random.Generator, queries: np.ndarray) -> np.ndarray:
            return values[queries] + scale * rng.standard_normal(queries.shape)

        return sum(common.over_lanes(lambda _: rule, respond, horizon, lanes=lanes) for _ in range(runs(rounds)))

    return Rival("kernel", "GP-UCB", f"Branin, {size} candidates, {horizon} rounds", ours, numpy)
