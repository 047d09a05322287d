"""Best-arm identification in linear bandits (Xu, Honda, Sugiyama 2018; Soare, Lazaric, Munos 2014)."""

from jaxbandits.linear.allocations import g_allocation, pair_directions, xy_allocation
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
from jaxbandits.linear.xy_oracle import xy_oracle
