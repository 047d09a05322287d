"""Combinatorial pure exploration: COCI, uniform sampling and CLUCB on problems of every kind, with and without blocks.

Bernoulli arms (osa4: also a uniform one), delta = 0.1, float64. Whole runs, several one after another in a lane. Whole
trees are played on the published graph of 20 edges, whose samples are normal. There "same numbers" is P-FWS that draws
nothing: samples and perturbations are the same in every round, and nothing else of a round changes. It never stops,
since short runs would distort its speed. Its gain in rounds of busy lanes is the share of time of the random numbers.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import jax

from experiments.bench import loops
from experiments.bench.case import Case, always
from experiments.cpe.common import refuses
from experiments.settings import Settings
from jaxbandits import cpe
from jaxbandits.base import Algorithm

DELTA = 0.1
BLOCK = 16  # fastest for COCI: larger blocks are seldom filled, and each slot draws its sample
LANES = (64, 256, 1024)
# Several runs per lane: the last ones end one by one and leave lanes idle, which then counts little.
RUNS = 4
PLAYS = 4000  # plays after which a run is cut, so that slow runs do not decide
NAMES = ("best5", "top2of6", "water3", "osa4", "paths5", "matching3")  # all numbers of lanes on the first


def rules(instance: cpe.Instance) -> dict[tuple[str, int], Callable[..., Algorithm]]:
    """Returns the rules that apply to an instance, by (name, block)."""
    mean = instance.tau == 1
    common = {"delta": DELTA, "observations": "binary" if mean else "unit"}
    by_name: dict[tuple[str, int], Callable[..., Algorithm]] = {
        (name, block): partial(rule, estimator="mean" if mean else "variance", leap=block, **common)
        for name, rule in (("COCI", cpe.coci), ("uniform", cpe.uniform))
        for block in (1, BLOCK)
    }
    if not refuses("CLUCB", instance):
        by_name["CLUCB", 1] = partial(cpe.clucb, **common)
    return by_name


def cases() -> list[Case]:
    """Returns cases on one instance of single arms and one of whole trees."""
    return pulls() + plays()


def pulls(name: str = "top2of6", lanes: Iterable[int] = LANES[1:2]) -> list[Case]:
    """Returns cases on one instance, for each number of lanes."""
    instance = getattr(cpe, name)()

    def case(rule: str, block: int, factory: Callable[..., Algorithm], width: int) -> Case:
        build = always(partial(factory, instance.problem), cpe.environment(instance, factory(instance.problem)))
        label, plain = rule if block == 1 else f"{rule}, blocks", partial(loops.coci, instance)
        return Case("cpe", label, name, build=build, plain=plain, max_rounds=10**6, lanes=width, runs=RUNS)

    return [case(*key, factory, width) for key, factory in rules(instance).items() for width in lanes]


def plays(width: int | None = None, names: Iterable[str] = ("P-FWS",)) -> list[Case]:
    """Returns cases of whole trees on the published graph of 20 edges; all rules if `names` is empty."""
    instance = cpe.spanning_trees_e20()
    environment = cpe.environment(instance, cpe.pfws(instance.problem, delta=DELTA))
    fixed_key = jax.random.key(0)

    def same_numbers(algorithm: Algorithm) -> Algorithm:
        return algorithm._replace(decide=lambda key, state: algorithm.decide(fixed_key, state))

    rules: dict[str, Callable[[], Algorithm]] = {
        "P-FWS": partial(cpe.pfws, instance.problem, delta=DELTA),
        "P-FWS, independent": partial(cpe.pfws, instance.problem, delta=DELTA, independent=True),
        "P-FWS, same numbers": lambda: same_numbers(cpe.pfws(instance.problem, delta=1e-300)),
        "CombGame": partial(cpe.combgame, instance.problem, delta=DELTA),
        "CLUCB on plays": partial(cpe.semi_clucb, instance.problem, delta=DELTA),
        "CTS": partial(cpe.cts, instance.problem),
    }
    answers = {"P-FWS, same numbers": environment._replace(noise=lambda key: environment.noise(fixed_key))}

    def case(name: str) -> Case:
        build, loop = always(rules[name], answers.get(name, environment)), partial(loops.plays, instance)
        bar = 1e5 if name == "P-FWS" else None
        shape: dict[str, Any] = {"max_rounds": PLAYS, "lanes": width, "runs": RUNS}
        return Case("cpe", name, "E20", build=build, plain=loop, bar=bar, **shape)

    return [case(name) for name in names or rules]


def more_cases(options: Settings) -> list[Case]:
    """Returns cases on six instances, with all widths on the first, then whole trees."""
    widths = {name: LANES if name == NAMES[0] and not options.quick else LANES[1:2] for name in NAMES}
    return [each for name, lanes in widths.items() for each in pulls(name, lanes)] + plays(LANES[1], ())
