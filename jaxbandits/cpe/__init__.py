"""Combinatorial pure exploration with continuous, separable rewards: which decision is the best?

A sample of arm i lies in [0, 1]; its mean, or its variance, is theta_i. A decision gives every arm a level, and pays a
sum over the arms of a function of theta_i and the level. The goal is the decision with the largest reward, with error
probability at most delta. Problems are tables of marginal values (best arm, top k, water planning, sites), opinion
sampling, enumerated classes (paths, matchings, trees), spanning trees, or an oracle of your own.

    >>> import jax, jaxbandits
    >>> from jaxbandits import cpe
    >>> key = jax.random.key(0)

    >>> instance = cpe.best5()  # the truth: an Instance
    >>> algorithm = cpe.coci(instance.problem, delta=0.05)  # from what a learner may know
    >>> environment = cpe.environment(instance, algorithm)  # answers it
    >>> outcome = jaxbandits.run(key, algorithm, environment, max_rounds=10**6)
    >>> print(cpe.is_right(instance, outcome.answer))
    True

| function | method |
| --- | --- |
| `coci` | pulls the arm with fewest pulls among the arms on which the best decision is still open |
| `uniform` | pulls all arms in turn, with the same stopping rule |
| `clucb` | 0/1 decisions with a linear reward: pulls an arm on which the best decision and its strongest rival differ |
| `pfws` | plays whole 0/1 decisions and observes every arm in them: climbs along the hardest swaps |
| `combgame` | plays whole decisions too: a learner of plays against the closest instance with another answer |
| `greedy_osa`, `osa_threshold` | no bandits: compute the best allocation of interviews at known variances |

An instance of your own is `cpe.instance(problem, arms)`.

Semi-bandits: a round plays a whole 0/1 decision and observes a sample of every arm in it, Gaussian (`gaussian`) or in
[0, 1]. The goal is the best decision after few plays: a graph's spanning tree, a set of k arms, or a row of a listed
class:

    >>> instance = cpe.complete_graph(5, key)
    >>> algorithm = cpe.pfws(instance.problem, delta=0.1)
    >>> environment = cpe.environment(instance, algorithm)
    >>> outcome = jaxbandits.run(key, algorithm, environment, max_rounds=10**5)
    >>> print(cpe.is_right(instance, outcome.answer))
    True

| algorithm | method |
| --- | --- |
| `pfws` | climbs the rate of the `most_confusing` decision, along its gradient at perturbed shares of plays |
| `semi_clucb` | plays the widest intervals among the arms on which the best decision and its strongest rival differ |
| `round_robin` | plays the decisions of a list in turn |
| `cucb`, `cts` | never stop, for small regret: play the best decision at upper bounds, or at a posterior draw |

The guarantee depends on their threshold (`numerics.thresholds`). The default is a heuristic from experiments;
`proved_threshold(problem)` gives a guarantee.

Reading a run: in a state of `coci`, `uniform` or `clucb`, `state.statistics.counts` (m,) are the pulls of each arm.
`state.statistics.sums` are the number of ones (`observations="binary"`) or compensated sums of the samples.
`confidence` computes the estimate, its radii and the box for theta from them. `reward` computes what a decision pays
at a given theta.

Sources: Huang, Ok, Li and Chen (2018), Combinatorial Pure Exploration with Continuous and Separable Reward Functions
and Its Applications; Tzeng, Wang, Proutiere and Lu (2023), Closing the Computational-Statistical Gap in Best Arm
Identification for Combinatorial Semi-bandits.
"""

from jaxbandits.cpe._algorithms.clucb import Chen, Coci, clucb
from jaxbandits.cpe._algorithms.coci import coci
from jaxbandits.cpe._algorithms.combgame import CombPlay, CombState, combgame
from jaxbandits.cpe._algorithms.cts import cts
from jaxbandits.cpe._algorithms.cucb import cucb
from jaxbandits.cpe._algorithms.pfws import direction, pfws
from jaxbandits.cpe._algorithms.round_robin import round_robin
from jaxbandits.cpe._algorithms.semi_clucb import semi_clucb
from jaxbandits.cpe._algorithms.uniform import uniform
from jaxbandits.cpe._problem.arms import (
    Arms,
    GaussianArms,
    bernoulli,
    constant,
    discrete,
    gaussian,
    means,
    stack_arms,
    uniform_arms,
    variances,
)
from jaxbandits.cpe._problem.classes import perfect_matchings, spanning_trees, st_paths
from jaxbandits.cpe._problem.environment import Play, Pulls, environment
from jaxbandits.cpe._problem.graphs import complete_graph, spanning_trees_e20, spanning_trees_e25
from jaxbandits.cpe._problem.instances import (
    Instance,
    best5,
    instance,
    is_right,
    matching3,
    osa4,
    paths5,
    sites5,
    top2of6,
    trees5,
    water3,
)
from jaxbandits.cpe._problem.kinds.enumerated import Enumerated, enumerated
from jaxbandits.cpe._problem.kinds.graphic import Graphic, graphic
from jaxbandits.cpe._problem.kinds.opinions import (
    Greedy,
    OpinionSampling,
    greedy_osa,
    opinion_sampling,
    osa_threshold,
)
from jaxbandits.cpe._problem.kinds.oracle import Oracle, find_bi_monotone_violation, oracle
from jaxbandits.cpe._problem.kinds.table import Table, table
from jaxbandits.cpe._problem.problems import decision, solve
from jaxbandits.cpe._problem.tables import best_arm, sites, top_k, water
from jaxbandits.cpe._shared.candidates import candidates, stops, two_call
from jaxbandits.cpe._shared.confusing import Confusing, most_confusing, proved_threshold
from jaxbandits.cpe._shared.maximum import maximum, small_cover, unit_cover
from jaxbandits.cpe._shared.playing import PlayState
from jaxbandits.cpe._theory.bounds import (
    arm_bound,
    clucb_bound,
    hardness,
    implicit_time,
    lower_bound_rate,
    theorem1_bound,
    uniform_hardness,
)
from jaxbandits.cpe._theory.complexity import consistent_radius, exchange_width, radius_top_k, reward_gaps
from jaxbandits.cpe._theory.diagnostics import Confidence, confidence, reward
from jaxbandits.cpe._theory.play_time import CharacteristicTime, characteristic_time

__all__ = [
    "Arms",
    "CharacteristicTime",
    "Chen",
    "Coci",
    "CombPlay",
    "CombState",
    "Confidence",
    "Confusing",
    "Enumerated",
    "GaussianArms",
    "Graphic",
    "Greedy",
    "Instance",
    "OpinionSampling",
    "Oracle",
    "Play",
    "PlayState",
    "Pulls",
    "Table",
    "arm_bound",
    "bernoulli",
    "best5",
    "best_arm",
    "candidates",
    "characteristic_time",
    "clucb",
    "clucb_bound",
    "coci",
    "combgame",
    "complete_graph",
    "confidence",
    "consistent_radius",
    "constant",
    "cts",
    "cucb",
    "decision",
    "direction",
    "discrete",
    "enumerated",
    "environment",
    "exchange_width",
    "find_bi_monotone_violation",
    "gaussian",
    "graphic",
    "greedy_osa",
    "hardness",
    "implicit_time",
    "instance",
    "is_right",
    "lower_bound_rate",
    "matching3",
    "maximum",
    "means",
    "most_confusing",
    "opinion_sampling",
    "oracle",
    "osa4",
    "osa_threshold",
    "paths5",
    "perfect_matchings",
    "pfws",
    "proved_threshold",
    "radius_top_k",
    "reward",
    "reward_gaps",
    "round_robin",
    "semi_clucb",
    "sites",
    "sites5",
    "small_cover",
    "solve",
    "spanning_trees",
    "spanning_trees_e20",
    "spanning_trees_e25",
    "st_paths",
    "stack_arms",
    "stops",
    "table",
    "theorem1_bound",
    "top2of6",
    "top_k",
    "trees5",
    "two_call",
    "uniform",
    "uniform_arms",
    "uniform_hardness",
    "unit_cover",
    "variances",
    "water",
    "water3",
]
