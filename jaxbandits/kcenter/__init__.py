"""Greedy k-center from noisy samples of distances (Jali, Karamchandani and Moharir).

Greedy starts from one point and k - 1 times adds the point farthest from the centers found so far. The algorithms find
its centers, in order, with probability 1 - delta and few queries. A query samples a single dimension of the distance of
two points (`dimension_instance`: points too long to be read completely), or their distance with noise
(`distance_instance`: for example, people's judgements).

>>> import jax, jaxbandits
>>> from jaxbandits import kcenter
>>> key = jax.random.key(0)
>>> instance = kcenter.dimension_instance(kcenter.contrast_rows(6, 100, seed=0), k=3)
>>> algorithm = kcenter.ds_ucb(instance.problem, delta=0.05)
>>> environment = kcenter.environment(instance, algorithm)
>>> outcome = jaxbandits.run(key, algorithm, environment, max_rounds=10**6)
>>> print(kcenter.is_right(instance, outcome.answer))
True

| algorithm | what it does |
| --- | --- |
| `ds_ucb` | samples dimensions, by upper and lower confidence bounds |
| `ds_ts` | `ds_ucb` with Thompson sampling of the center |
| `ds_random` | samples dimensions uniformly: a baseline |
| `naive_greedy` | reads all dimensions of every distance: a baseline, on the host |
| `ns_ts` | samples noisy distances, two nodes per round, by confidence bounds and Thompson sampling |
| `ns_tands` | samples noisy distances, tracking the optimal proportions of queries |
| `track_and_stop` | `ns_tands` in batches, beyond the paper |
| `ns_random` | samples noisy distances uniformly: a baseline |

Reading a run: an arm is a pair (node, slot), where slot i stands for center `state.stage.centers[i]`. If dimensions
are sampled, `state.counts` (n, k-1) are the queries of each arm and `state.sums` (n, k-1) its rewards, in units of
1/levels^2 for integer points. If distances are noisy, they are `state.samples.counts` and `state.samples.sums`.
`state.stage.queries` counts the queries by stage. `confidence` computes means and intervals from a state.
"""

from jaxbandits.kcenter._algorithms.ds_random import ds_random
from jaxbandits.kcenter._algorithms.ds_ts import ds_ts
from jaxbandits.kcenter._algorithms.ds_ucb import ds_ucb
from jaxbandits.kcenter._algorithms.ns_random import ns_random
from jaxbandits.kcenter._algorithms.ns_tands import ns_tands
from jaxbandits.kcenter._algorithms.ns_ts import ns_ts
from jaxbandits.kcenter._algorithms.track_and_stop import track_and_stop
from jaxbandits.kcenter._problem.environment import Counts, PairPull, Pull, Sample, environment
from jaxbandits.kcenter._problem.exact import (
    Greedy,
    NaiveGreedy,
    greedy,
    greedy_from_points,
    naive_greedy,
    naive_queries,
    normalised_distances,
    pairwise_sums,
)
from jaxbandits.kcenter._problem.images import digits, image_crops, tiny_imagenet
from jaxbandits.kcenter._problem.judgements import triplet_like, zappos, zappos_from_votes
from jaxbandits.kcenter._problem.points import binary_rows, clusters, contrast_rows
from jaxbandits.kcenter._problem.problem import (
    DimensionInstance,
    Dimensions,
    DistanceInstance,
    Distances,
    dimension_instance,
    distance_instance,
)
from jaxbandits.kcenter._shared.intervals import KL, Lemma1, Lil
from jaxbandits.kcenter._shared.stages import Centers
from jaxbandits.kcenter._shared.thresholds import exploration_rate
from jaxbandits.kcenter._shared.weights import Weights, omega_mirror, omega_newton
from jaxbandits.kcenter._theory.complexity import (
    LowerBound,
    characteristic_time,
    lower_bound,
    most_queries,
    noisy_lower_bound,
    stage_times,
    upper_bound,
)
from jaxbandits.kcenter._theory.diagnostics import Confidence, confidence
from jaxbandits.kcenter._theory.scores import Match, centers_match, is_right, radius, radius_ratio

__all__ = [
    "KL",
    "Centers",
    "Confidence",
    "Counts",
    "DimensionInstance",
    "Dimensions",
    "DistanceInstance",
    "Distances",
    "Greedy",
    "Lemma1",
    "Lil",
    "LowerBound",
    "Match",
    "NaiveGreedy",
    "PairPull",
    "Pull",
    "Sample",
    "Weights",
    "binary_rows",
    "centers_match",
    "characteristic_time",
    "clusters",
    "confidence",
    "contrast_rows",
    "digits",
    "dimension_instance",
    "distance_instance",
    "ds_random",
    "ds_ts",
    "ds_ucb",
    "environment",
    "exploration_rate",
    "greedy",
    "greedy_from_points",
    "image_crops",
    "is_right",
    "lower_bound",
    "most_queries",
    "naive_greedy",
    "naive_queries",
    "noisy_lower_bound",
    "normalised_distances",
    "ns_random",
    "ns_tands",
    "ns_ts",
    "omega_mirror",
    "omega_newton",
    "pairwise_sums",
    "radius",
    "radius_ratio",
    "stage_times",
    "tiny_imagenet",
    "track_and_stop",
    "triplet_like",
    "upper_bound",
    "zappos",
    "zappos_from_votes",
]
