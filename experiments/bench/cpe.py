"""Combinatorial pure exploration: COCI, uniform sampling and CLUCB on problems of every kind, with and without blocks.

Bernoulli arms (osa4: also a uniform one), delta = 0.1, float64. Whole runs, several one after another in a lane. Whole
trees are played on the published graph of 20 edges, whose samples are normal. There "same numbers" is P-FWS that draws
nothing: samples and perturbations are the same in every round, and the rest of a round is what it was. It never stops,
lest its runs be short; what it gains in rounds of busy lanes is the share that random numbers take.
"""

from collections.abc import Callable, Iterable
from functools import partial

import jax

from experiments.bench import loops
from experiments.bench.case import Case, always
from experiments.settings import Settings
from jaxbandits import cpe
from jaxbandits.base import Algorithm

DELTA = 0.1
BLOCK = 16  # fastest for COCI: larger ones are seldom filled, and each slot draws its sample
LANES = (64, 256, 1024)
RUNS = 4  # that a lane goes through, so that the last ones, which end one by one, count little
PLAYS = 4000  # of a run, after which it is cut, so that the slow ones do not decide
NAMES = ("best5", "top2of6", "water3", "osa4", "paths5", "matching3")  # the first has the most lanes to show


def rules(instance: cpe.Instance) -> dict[tuple[str, int], Callable[..., Algorithm]]:
    """All that applies to an instance, by name and block."""
    mean = instance.tau == 1
    common = {"delta": DELTA, "observations": "binary" if mean else "unit"}
    found: dict[tuple[str, int], Callable[..., Algorithm]] = {
        (name, block): partial(rule, estimator="mean" if mean else "variance", leap=block, **common)
        for name, rule in (("COCI", cpe.coci), ("uniform", cpe.uniform))
        for block in (1, BLOCK)
    }
    if isinstance(instance.problem, cpe.Enumerated) or instance.problem.coef.shape[1] == 1:
        found["CLUCB", 1] = partial(cpe.clucb, **common)
    return found


def cases() -> list[Case]:
    """One instance of single arms, one of whole trees."""
    return pulls() + plays()


def pulls(name: str = "top2of6", lanes: Iterable[int] = LANES[1:2]) -> list[Case]:
    """One instance, in so many lanes."""
    instance = getattr(cpe, name)()

    def case(rule: str, block: int, factory: Callable[..., Algorithm], width: int) -> Case:
        build = always(partial(factory, instance.problem), cpe.environment(instance, leap=block))
        label, plain = rule if block == 1 else f"{rule}, blocks", partial(loops.coci, instance)
        return Case("cpe", label, name, build, plain, 10**6, lanes=width, runs=RUNS)

    return [case(*key, factory, width) for key, factory in rules(instance).items() for width in lanes]


def plays(width: int | None = None, names: Iterable[str] = ("P-FWS",)) -> list[Case]:
    """Whole trees, on the published graph of 20 edges."""
    instance = cpe.spanning_trees_e20()
    environment = cpe.environment(instance, cpe.Play)
    still = jax.random.key(0)

    def same_numbers(algorithm: Algorithm) -> Algorithm:
        return algorithm._replace(decide=lambda key, state: algorithm.decide(still, state))

    rules: dict[str, Callable[[], Algorithm]] = {
        "P-FWS": partial(cpe.pfws, instance.problem, delta=DELTA),
        "P-FWS, independent": partial(cpe.pfws, instance.problem, delta=DELTA, independent=True),
        "P-FWS, same numbers": lambda: same_numbers(cpe.pfws(instance.problem, delta=1e-300)),
        "CombGame": partial(cpe.combgame, instance.problem, delta=DELTA),
        "CLUCB on plays": partial(cpe.semi_clucb, instance.problem, delta=DELTA),
        "CTS": partial(cpe.cts, instance.problem),
    }
    answers = {"P-FWS, same numbers": environment._replace(noise=lambda key: environment.noise(still))}

    def case(name: str) -> Case:
        build, loop = always(rules[name], answers.get(name, environment)), partial(loops.plays, instance)
        return Case("cpe", name, "E20", build, loop, PLAYS, width, RUNS, bar=1e5 if name == "P-FWS" else None)

    return [case(name) for name in names or rules]


def more_cases(options: Settings) -> list[Case]:
    """Six instances; all widths on the first. Then whole trees."""
    widths = {name: LANES if name == NAMES[0] and not options.quick else LANES[1:2] for name in NAMES}
    return [each for name, lanes in widths.items() for each in pulls(name, lanes)] + plays(LANES[1], ())
