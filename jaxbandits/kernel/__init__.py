"""Distributed kernel bandits: agents that share what they learn of one function, at the price of communication.

Source: Pavlovic, Salgia and Zhao (2024), Order-Optimal Regret in Distributed Kernel Bandits using Uniform Sampling with
Shared Randomness.
"""

from jaxbandits.kernel.approx_dis_kernel_ucb import approx_dis_kernel_ucb
from jaxbandits.kernel.bpe import bpe
from jaxbandits.kernel.complexity import (
    Orders,
    anytime_width,
    confidence_width,
    duets_delta,
    duets_p0,
    duets_regret_bound,
    effective_dimension,
    epoch_bound,
    greedy_information_gain,
    inducing_set_bound,
    information_gain,
    information_gain_order,
    orders,
)
from jaxbandits.kernel.dis_kernel_ucb import dis_kernel_ucb
from jaxbandits.kernel.duets import duets, duets_run, log_rate
from jaxbandits.kernel.gp_ucb import gp_ucb
from jaxbandits.kernel.n_kernel_ucb import n_kernel_ucb
from jaxbandits.kernel.problem import (
    Draws,
    Metered,
    Problem,
    Traffic,
    branin,
    environment,
    h1,
    h2,
    hartmann4,
    metered,
    paper_kernel,
    rkhs,
    tabular,
)
from jaxbandits.numerics.gp import matern, squared_exponential

__all__ = [
    "Draws",
    "Metered",
    "Orders",
    "Problem",
    "Traffic",
    "anytime_width",
    "approx_dis_kernel_ucb",
    "bpe",
    "branin",
    "confidence_width",
    "dis_kernel_ucb",
    "duets",
    "duets_delta",
    "duets_p0",
    "duets_regret_bound",
    "duets_run",
    "effective_dimension",
    "environment",
    "epoch_bound",
    "gp_ucb",
    "greedy_information_gain",
    "h1",
    "h2",
    "hartmann4",
    "inducing_set_bound",
    "information_gain",
    "information_gain_order",
    "log_rate",
    "matern",
    "metered",
    "n_kernel_ucb",
    "orders",
    "paper_kernel",
    "rkhs",
    "squared_exponential",
    "tabular",
]
