"""One or more rules of every family, each on one instance, in whole runs that can be made in either precision."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxbandits
from experiments.bench import fullbandit as quizzes
from experiments.bench import mab as arms
from jaxbandits import cpe, fullbandit, kcenter, kernel, linear, mab
from jaxbandits.base import Algorithm, Array, Environment
from jaxbandits.numerics import thresholds

MOST = 2**30  # rounds
SEEDS = {"TaS": 10_000, "TaS, C": 10_000, "TTTS": 1000, "elimination": 20_000}  # runs of rules that take long
REGRET_ROUNDS = 4096
OMEGA = 0.3  # angle between the best arm of soare(6) and the one that is hard to tell from it, for the ratio rules
AGENTS, HORIZON, CANDIDATES = 10, 50, 1000  # sizes of the kernel bandits
NODES, FEW, SIDE = 50, 15, 16  # crops to sample, crops with noisy distances, pixels per side

Built = tuple[Algorithm, Environment]
Judge = Callable[[Any], Array]  # (outcome) -> value


class Twin(NamedTuple):
    """A rule on an instance."""

    family: str
    rule: str
    instance: str
    build: Callable[[str], Callable[..., tuple[Any, ...]]]  # (dtype) -> build function for `sweep`
    seeds: int
    is_right: Judge | None = None
    delta: float = 0.1
    value: Judge | None = None  # compared value. If None, pulls.
    max_rounds: int = MOST


def fixed(of_dtype: Callable[..., Built], **settings: Any) -> Callable[[str], Callable[..., Built]]:
    """Returns a function from a dtype to a build function whose runs are all alike."""

    def of(dtype: str) -> Callable[..., Built]:
        made = of_dtype(dtype, **settings)
        return lambda task, key: made

    return of


def judged(is_right: Callable[..., Array], *instance: Any, **settings: Any) -> Judge:
    """Returns a function that checks whether an outcome's answer is right."""
    return lambda outcome: is_right(*instance, outcome.answer, **settings)


def twins() -> list[Twin]:
    """Returns all twins."""
    return [*of_mab(), *of_linear(), *of_fullbandit(), *of_kcenter(), *of_cpe(), *of_kernel()]


def of_mab() -> list[Twin]:
    """Returns rules of fixed confidence."""

    def made(dtype: str, name: str, make: Any) -> Built:
        instance = make(dtype=dtype)
        algorithm = arms.SURE[name](instance.problem, delta=0.1)
        return algorithm, mab.environment(instance, algorithm)

    listed = []
    for name in arms.SURE:
        where, make = ("gk2", mab.gk2) if name in arms.LAW else ("gauss4", mab.gauss4)
        seeds = SEEDS.get(name, 100_000)
        build = fixed(made, name=name, make=make)
        listed.append(Twin("mab", name, where, build=build, seeds=seeds, is_right=judged(mab.is_right, make())))
    return listed


def of_linear() -> list[Twin]:
    """Returns LinGapE and designs, rules that stop by likelihood ratios, and the regret of two rules."""

    def soare(dtype: str, factory: Any) -> Built:
        instance = linear.soare(5, dtype=dtype)
        given = (linear.xy_allocation(instance.arms).allocation,) if factory is linear.xy_static else ()
        algorithm = factory(instance.arms, *given, delta=0.05)
        return algorithm, linear.environment(instance, algorithm)

    def ratio(dtype: str, factory: Any) -> Built:
        instance = linear.soare(6, OMEGA, dtype=dtype)
        stop = linear.likelihood_ratio(thresholds.log_t(arms=len(instance.arms)), delta=0.1)
        algorithm = factory(instance.arms, stop=stop)
        return algorithm, linear.environment(instance, algorithm)

    def regret(dtype: str, factory: Any) -> Built:
        instance = linear.soare(6, dtype=dtype)
        algorithm = factory(instance.arms)
        return algorithm, linear.environment(instance, algorithm)

    designs = (
        ("LinGapE", linear.lingape, 4000),
        ("XY-static", linear.xy_static, 4000),
        ("XY-adaptive", linear.xy_adaptive, 1000),
    )
    right = judged(linear.is_right, linear.soare(5))
    listed = [
        Twin(
            "linear",
            name,
            "soare(5)",
            build=fixed(soare, factory=rule),
            seeds=seeds,
            is_right=right,
            delta=0.05,
        )
        for name, rule, seeds in designs
    ]
    right = judged(linear.is_right, linear.soare(6, OMEGA))
    rules = {"uniform": linear.uniform, "LinGapE": linear.lingape_glr, "L-T3C": linear.l_t3c, "FWS": linear.fws}
    rules |= {"LinGame": linear.lingame, "Lazy TaS": linear.lazy_tas}
    for name, rule in rules.items():
        build = fixed(ratio, factory=rule)
        twin = Twin("linear", f"{name}, ratios", f"soare(6, {OMEGA})", build=build, seeds=40_000, is_right=right)
        listed.append(twin)
    tilted = linear.soare(6)
    means = tilted.arms @ tilted.theta
    lost = jnp.max(means) - means
    regrets = {
        "LinUCB": partial(linear.lin_ucb, delta=0.05, norm_bound=2.0),
        "LinTS": partial(linear.lin_ts, width=linear.Proved(0.05, 2.0, REGRET_ROUNDS)),
    }
    for name, rule in regrets.items():
        twin = Twin("linear", f"{name}, regret", "soare(6)", fixed(regret, factory=rule), 4000)
        value = lambda outcome: lost @ outcome.state.counts.astype(lost.dtype)  # noqa: E731
        listed.append(twin._replace(value=value, max_rounds=REGRET_ROUNDS))
    return listed


def of_fullbandit() -> list[Twin]:
    """Returns rules on a quiz, with sums from the normal law."""
    crowd = fullbandit.crowdsourcing("it")
    support = fullbandit.random_support(0, crowd.theta.size, crowd.k, size=2 * crowd.theta.size)

    def made(dtype: str, factory: Any) -> Built:
        design, quiz = (
            fullbandit.make_design(support, crowd.k, dtype=dtype),
            fullbandit.crowdsourcing("it", dtype=dtype),
        )
        algorithm = factory(design)
        return algorithm, fullbandit.environment(quiz, algorithm, noise="bernoulli_normal")

    right = judged(fullbandit.is_right, crowd, epsilon=0.5)
    return [
        Twin(
            "fullbandit",
            name,
            "it",
            build=fixed(made, factory=rule),
            seeds=100 if name.startswith("SA-FOA") else 4000,
            is_right=right,
            delta=0.05,
        )
        for name, rule in quizzes.RULES.items()
    ]


def of_kcenter() -> list[Twin]:
    """Returns rules on crops of photographs: sampled pixels, or noisy distances."""
    points = kcenter.image_crops(NODES, 7, size=SIDE, augment=True)
    sums, m = kcenter.pairwise_sums(points), points.shape[1]
    problem = kcenter.Dimensions(NODES, m, 5, 255)
    images = kcenter.DimensionInstance(
        problem, jnp.asarray(points), jnp.asarray(sums), jnp.arange(NODES, dtype=jnp.int32)
    )

    def observed(dtype: str) -> kcenter.DistanceInstance:
        distances = kcenter.normalised_distances(sums[:FEW, :FEW], m=m, levels=255, dtype=dtype)
        return kcenter.distance_instance(distances, k=3, noise_scale=0.1)

    def sampled(dtype: str, factory: Any) -> Built:
        algorithm = factory(problem, delta=0.1, leap=1, dtype=dtype)
        return algorithm, kcenter.environment(images, algorithm)

    def noisy(dtype: str, factory: Any) -> Built:
        instance = observed(dtype)
        algorithm = factory(instance.problem, delta=0.1, noise_scale=0.1, dtype=dtype)
        return algorithm, kcenter.environment(instance, algorithm)

    listed = []
    for name, rule, seeds in (("DS-UCB", kcenter.ds_ucb, 2000), ("DS-TS", kcenter.ds_ts, 500)):
        right = judged(kcenter.is_right, images)
        build = fixed(sampled, factory=rule)
        twin = Twin("kcenter", name, f"crops, n = {NODES}", build=build, seeds=seeds, is_right=right)
        listed.append(twin)
    rules: dict[str, Callable[..., Algorithm]] = {"NS-TS": kcenter.ns_ts}
    for tracking in ("difference", "ratio"):
        rules[f"NS-TandS, {tracking}"] = partial(kcenter.ns_tands, tracking=tracking)
    for name, rule in rules.items():
        build = fixed(noisy, factory=rule)
        right = judged(kcenter.is_right, observed("float64"))
        twin = Twin("kcenter", name, f"crops, n = {FEW}", build=build, seeds=5000, is_right=right)
        listed.append(twin)
    return listed


def of_cpe() -> list[Twin]:
    """Returns rules for the two best of six arms, by single pulls and by pulls of two."""

    def made(dtype: str, factory: Any) -> Built:
        instance = cpe.top2of6(dtype=dtype)
        algorithm = factory(instance.problem, delta=0.1, observations="binary")
        return algorithm, cpe.environment(instance, algorithm)

    def played(dtype: str) -> Built:
        instance = cpe.top2of6(dtype=dtype)
        algorithm = cpe.pfws(instance.problem, delta=0.1, noise_scale=0.5)
        return algorithm, cpe.environment(instance, algorithm)

    right = judged(cpe.is_right, cpe.top2of6())
    rules = {"COCI": cpe.coci, "uniform": cpe.uniform, "CLUCB": cpe.clucb}
    known: dict[str, Any] = {"seeds": 20_000, "is_right": right}
    listed = [Twin("cpe", name, "top2of6", build=fixed(made, factory=rule), **known) for name, rule in rules.items()]
    return [*listed, Twin("cpe", "P-FWS", "top2of6", build=fixed(played), **known)]


def of_kernel() -> list[Twin]:
    """Returns the regret of distributed kernel bandits, each run on an instance of its own."""
    rules: dict[str, Callable[..., Algorithm]] = {
        "DUETS": kernel.duets,
        "DisKernelUCB": kernel.dis_kernel_ucb,
        "ApproxDisKernelUCB": partial(kernel.approx_dis_kernel_ucb, max_inducing=64),
        "N-KernelUCB": kernel.n_kernel_ucb,
    }
    known: dict[str, Any] = {
        "kernel": kernel.paper_kernel("branin"),
        "n_agents": AGENTS,
        "horizon": HORIZON,
        "beta": 1.0,
    }

    def build(dtype: str, factory: Any) -> Callable[..., tuple[Any, ...]]:
        def of(task: Any, key: jax.Array) -> tuple[Any, ...]:
            instance = kernel.branin(key, size=CANDIDATES, dtype=dtype)
            algorithm, regret = (
                factory(instance.candidates, noise_variance=0.04, **known),
                kernel.round_regret(instance),
            )
            curves = jaxbandits.record(at=[HORIZON], by="rounds", value=kernel.messages, total=regret)
            return algorithm, kernel.environment(instance, algorithm), curves

        return of

    return [
        Twin("kernel", f"{name}, regret", "Branin", partial(build, factory=rule), 4000)._replace(
            value=lambda outcome: outcome.curves["regret"][0]
        )
        for name, rule in rules.items()
    ]
