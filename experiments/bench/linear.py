"""LinGapE and the fixed designs on soare(5); LinGapE on 30 arms in 8 dimensions, with and without leaps.

The rules that stop by likelihood ratios are in `ratios`, the rules of budgets and regret in `designs`.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp

from experiments.bench import designs, loops, ratios
from experiments.bench.case import Case, always
from experiments.settings import Settings
from jaxbandits import linear
from jaxbandits.engine.sweep.layout import local_mesh, side_by_side

LANES, QUICK_LANES = (64, 256, 1024, 4096, 16384), (256, 1024)
LEAP = 65536
ROUNDS, LEAP_ROUNDS = 2048, 8192  # rounds of every run; with leaps, about as many as soare(5) needs
LEAST, MOST = 10**7, 2**25  # rounds of one measurement: long enough to be timed, short enough to finish soon


def cases() -> list[Case]:
    """Returns cases on soare(5), float64. Single pulls are cut after a number of rounds, the others are whole runs."""
    instance = linear.soare(5)
    arms, allocation = instance.arms, linear.xy_allocation(instance.arms).allocation
    lingape, adaptive = partial(linear.lingape, arms), partial(linear.xy_adaptive, arms)
    static, exact = (partial(rule, arms, allocation) for rule in (linear.xy_static, linear.xy_static_exact))
    loop = partial(loops.lingape, instance)

    def case(rule: str, factory: Any, plain: Any, max_rounds: int, **more: Any) -> Case:
        make = partial(factory, delta=0.05)
        build = always(make, linear.environment(instance, make()))
        return Case("linear", rule, "soare(5)", build=build, plain=plain, max_rounds=max_rounds, lanes=256, **more)

    return [
        case("LinGapE", lingape, loop, 8 * ROUNDS),
        case("LinGapE, leap", partial(lingape, leap=LEAP), loop, LEAP_ROUNDS),
        case("XY-static", static, loops.xy_static, 10**5, runs=8),
        case("XY-static, every pull", exact, loops.xy_static, 10**5, runs=8),
        case("XY-adaptive", adaptive, loops.xy_adaptive, 100, runs=2, chunk=4),
        *ratios.cases(),
        *designs.cases(),
    ]


def more_cases(options: Settings) -> list[Case]:
    """Returns cases of LinGapE in both precisions and many widths, then the other rules as in `cases`."""
    listed = []
    makers = {"soare(5)": partial(linear.soare, 5), "K=30, d=8": partial(linear.sphere, 0, 30, 8, 0.05)}
    for name, make in makers.items():
        for leap, dtype in ((1, jnp.float64), (1, jnp.float32), (LEAP, jnp.float64)):
            instance = make(dtype=dtype)
            rule, where = f"LinGapE{', leap' * (leap > 1)}", f"{name}, {jnp.dtype(dtype).name}"
            make_rule = partial(linear.lingape, instance.arms, delta=0.05, leap=leap)
            build = always(make_rule, linear.environment(instance, make_rule()))
            for lanes in QUICK_LANES if options.quick else LANES:
                width = side_by_side(local_mesh()) * lanes
                least = LEAST // (10 if options.quick else 1) // width
                rounds = LEAP_ROUNDS if leap > 1 else max(ROUNDS, least)
                plain = partial(loops.lingape, make(dtype=jnp.float64))
                shape = {"max_rounds": min(rounds, MOST // width), "lanes": lanes}
                listed.append(Case("linear", rule, where, build=build, plain=plain, **shape))
    return listed + ratios.cases() + designs.cases()
