"""Combinatorial pure exploration with continuous, separable rewards: which decision is the best?

Problems are tables of marginal values (best arm, top k, water planning, sites), opinion sampling, enumerated classes
(paths, matchings, trees), spanning trees, or an oracle of the user's. Rewards depend on the means of the arms, or on
their variances.

Source: Huang, Ok, Li and Chen (2018), Combinatorial Pure Exploration with Continuous and Separable Reward Functions and
Its Applications.
"""

from jaxbandits.cpe.arms import (
    Arms,
    bernoulli,
    constant,
    discrete,
    environment,
    means,
    stack_arms,
    uniform_arms,
    variances,
)
from jaxbandits.cpe.candidates import candidates, stops, two_call
from jaxbandits.cpe.classes import enumerated, graphic, perfect_matchings, spanning_trees, st_paths
from jaxbandits.cpe.clucb import clucb
from jaxbandits.cpe.coci import coci
from jaxbandits.cpe.complexity import (
    arm_bound,
    clucb_bound,
    consistent_radius,
    hardness,
    implicit_time,
    lower_bound_rate,
    radius_top_k,
    reward_gaps,
    theorem1_bound,
    uniform_hardness,
    width,
)
from jaxbandits.cpe.instances import (
    Instance,
    best5,
    matching3,
    osa4,
    paths5,
    sites5,
    top2of6,
    trees5,
    water3,
)
from jaxbandits.cpe.oracles import greedy_osa, osa_threshold, solve
from jaxbandits.cpe.problem import (
    Enumerated,
    Graphic,
    OpinionSampling,
    Oracle,
    Pulls,
    Table,
    decision,
    find_bi_monotone_violation,
    oracle,
)
from jaxbandits.cpe.tables import best_arm, opinion_sampling, sites, table, top_k, water
from jaxbandits.cpe.uniform import uniform

__all__ = [
    "Arms",
    "Enumerated",
    "Graphic",
    "Instance",
    "OpinionSampling",
    "Oracle",
    "Pulls",
    "Table",
    "arm_bound",
    "bernoulli",
    "best5",
    "best_arm",
    "candidates",
    "clucb",
    "clucb_bound",
    "coci",
    "consistent_radius",
    "constant",
    "decision",
    "discrete",
    "enumerated",
    "environment",
    "find_bi_monotone_violation",
    "graphic",
    "greedy_osa",
    "hardness",
    "implicit_time",
    "lower_bound_rate",
    "matching3",
    "means",
    "opinion_sampling",
    "oracle",
    "osa4",
    "osa_threshold",
    "paths5",
    "perfect_matchings",
    "radius_top_k",
    "reward_gaps",
    "sites",
    "sites5",
    "solve",
    "spanning_trees",
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
    "variances",
    "water",
    "water3",
    "width",
]
