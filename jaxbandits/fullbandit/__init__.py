"""Top-k identification when only sums of rewards are seen (Kuroki, Xu, Miyauchi, Honda, Sugiyama 2020)."""

from jaxbandits.fullbandit.complexity import (
    gap,
    hardness,
    icb_bound,
    mean_field_time,
    oracle_time,
    rho,
    rho_independent,
    saqm_bound,
)
from jaxbandits.fullbandit.confidence import ellipsoid_radius, lemma1_radius
from jaxbandits.fullbandit.design import (
    Design,
    all_superarms,
    cyclic_support,
    g_allocation,
    make_design,
    random_support,
    tracking_counts,
    xy_allocation,
)
from jaxbandits.fullbandit.exhaustive import exhaustive, exhaustive_rule
from jaxbandits.fullbandit.first_passage import bernoulli_path, first_passage, gaussian_path
from jaxbandits.fullbandit.icb import icb, icb_rule
from jaxbandits.fullbandit.problem import (
    Block,
    Instance,
    bernoulli,
    crowd_like,
    crowdsourcing,
    crowdsourcing_counts,
    gaussian,
    is_optimal,
    load_correct,
    loss,
    replay,
    synthetic,
)
from jaxbandits.fullbandit.sa_foa import sa_foa, surrogates
from jaxbandits.fullbandit.saqm import saqm, saqm_rule
from jaxbandits.fullbandit.spectral import spectral, spectral_rule
from jaxbandits.fullbandit.state import Estimate, Look, State, estimator, top_set

__all__ = [
    "Block",
    "Design",
    "Estimate",
    "Instance",
    "Look",
    "State",
    "all_superarms",
    "bernoulli",
    "bernoulli_path",
    "crowd_like",
    "crowdsourcing",
    "crowdsourcing_counts",
    "cyclic_support",
    "ellipsoid_radius",
    "estimator",
    "exhaustive",
    "exhaustive_rule",
    "first_passage",
    "g_allocation",
    "gap",
    "gaussian",
    "gaussian_path",
    "hardness",
    "icb",
    "icb_bound",
    "icb_rule",
    "is_optimal",
    "lemma1_radius",
    "load_correct",
    "loss",
    "make_design",
    "mean_field_time",
    "oracle_time",
    "random_support",
    "replay",
    "rho",
    "rho_independent",
    "sa_foa",
    "saqm",
    "saqm_bound",
    "saqm_rule",
    "spectral",
    "spectral_rule",
    "surrogates",
    "synthetic",
    "top_set",
    "tracking_counts",
    "xy_allocation",
]
