"""Best-arm identification in linear bandits (Xu, Honda, Sugiyama 2018; Soare, Lazaric, Munos 2014)."""

from jaxbandits.linear.allocations import g_allocation, oracle_allocation, pair_directions, xy_allocation
from jaxbandits.linear.complexity import (
    gaps,
    hardness_lingape,
    hardness_oracle,
    hardness_oracle_sum,
    hardness_ugape,
    lower_bound,
    theorem2_bound,
    theorem2_implicit,
    theorem2_large_ridge_bound,
    theorem2_ridge_limit,
)
from jaxbandits.linear.lingape import lingape
from jaxbandits.linear.problem import (
    Allocation,
    Bridge,
    LinearBandit,
    Pull,
    canonical,
    gaussian,
    reduce_bandit,
    reduce_rank,
    signs,
    soare,
    sphere,
    theorem3_counterexample,
    yahoo_like,
)
from jaxbandits.linear.ratios import ratio_tables
from jaxbandits.linear.width import confidence_scale
from jaxbandits.linear.xy_adaptive import xy_adaptive
from jaxbandits.linear.xy_oracle import xy_oracle
from jaxbandits.linear.xy_static import xy_static, xy_static_exact

__all__ = [
    "Allocation",
    "Bridge",
    "LinearBandit",
    "Pull",
    "canonical",
    "confidence_scale",
    "g_allocation",
    "gaps",
    "gaussian",
    "hardness_lingape",
    "hardness_oracle",
    "hardness_oracle_sum",
    "hardness_ugape",
    "lingape",
    "lower_bound",
    "oracle_allocation",
    "pair_directions",
    "ratio_tables",
    "reduce_bandit",
    "reduce_rank",
    "signs",
    "soare",
    "sphere",
    "theorem2_bound",
    "theorem2_implicit",
    "theorem2_large_ridge_bound",
    "theorem2_ridge_limit",
    "theorem3_counterexample",
    "xy_adaptive",
    "xy_allocation",
    "xy_oracle",
    "xy_static",
    "xy_static_exact",
    "yahoo_like",
]
