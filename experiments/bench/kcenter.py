"""Greedy k-center on crops of photographs (m = 12288, k = 10): queries per second, and the cost of a round as n grows.

Dimension sampling of images in memory, in leaps of 16 (DS-TS: one by one); noisy sampling of their distances with
noise scale 0.1; delta = 0.1. DS-UCB makes whole runs. If n is small, half of its queries are reads of whole arms (m
queries each), which a loop makes as fast. The other rules are cut after a fixed number of rounds.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments.bench import loops
from experiments.bench.case import Case, always
from experiments.settings import Settings
from jaxbandits import kcenter

K = 10
LEVELS = 255
LEAP, THOMPSON_LEAP = 16, 1  # DS-TS draws from the posterior for every sample that a round may use
DELTA = 0.1
NOISE_SCALE = 0.1
SIZES = (100, 1000, 10_000)
SMALL = (15, 50)  # nodes, for NS-TandS, whose rounds cost O(n k^2)
SMALL_K = 5
CUT = 2**11  # rounds after which a run is cut


def cases(sizes: tuple[int, ...] = SIZES[:1], small: tuple[int, ...] = SMALL[:1]) -> list[Case]:
    """Returns cases on `sizes` crops of photographs, and on `small` for NS-TandS."""
    points = kcenter.image_crops(max(sizes), 7, augment=True)
    sums, m = kcenter.pairwise_sums(points), points.shape[1]
    shared, table = jnp.asarray(points), jnp.asarray(sums)
    distances = jnp.asarray(kcenter.normalised_distances(sums[:1000, :1000], m=m, levels=LEVELS))

    def sampled(rule: str, factory: Any, n: int, leap: int, rounds: int) -> Case:
        nodes = jnp.arange(n, dtype=jnp.int32)
        instance = kcenter.DimensionInstance(kcenter.Dimensions(n, m, K, LEVELS), shared, table, nodes)
        make = partial(factory, instance.problem, delta=DELTA, leap=leap)
        build = always(make, kcenter.environment(instance, make()))
        lanes, plain = 64 if n <= 1000 else 8, partial(loops.sampling, points[:n])
        return Case("kcenter", rule, f"crops, n = {n}", build=build, plain=plain, max_rounds=rounds, lanes=lanes)

    def noisy(rule: str, factory: Any, *, n: int, k: int, rounds: int, plain: Any) -> Case:
        instance = kcenter.distance_instance(distances[:n, :n], k=k, noise_scale=NOISE_SCALE)
        make = partial(factory, instance.problem, delta=DELTA, noise_scale=NOISE_SCALE)
        build = always(make, kcenter.environment(instance, make()))
        plain = partial(plain, np.asarray(distances[:n, :n]))
        return Case("kcenter", rule, f"crops, n = {n}", build=build, plain=plain, max_rounds=rounds, lanes=64)

    listed = []
    for n in sizes:
        listed.append(sampled("DS-UCB", kcenter.ds_ucb, n, LEAP, 2**30))
        listed.append(sampled("DS-TS", kcenter.ds_ts, n, THOMPSON_LEAP, CUT))
    listed += [
        noisy("NS-TS", kcenter.ns_ts, n=n, k=K, rounds=8 * CUT, plain=loops.noisy) for n in sizes if n <= len(distances)
    ]
    for n in small:
        for tracking in ("difference", "ratio"):
            factory, plain = partial(kcenter.ns_tands, tracking=tracking), partial(loops.tracking, how=tracking)
            shape = {"n": n, "k": SMALL_K, "rounds": CUT}
            listed.append(noisy(f"NS-TandS, {tracking}", factory, **shape, plain=plain))
    return listed


def more_cases(options: Settings) -> list[Case]:
    """Returns cases on up to ten thousand images."""
    return cases(SIZES[:2] if options.quick else SIZES, SMALL)
