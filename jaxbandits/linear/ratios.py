"""How the pulls for one pair of arms are best shared out: the tables of LinGapE's ratio rule."""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear.problem import check_arms
from jaxbandits.numerics.l1 import decompose


class RatioTables(NamedTuple):
    """For every pair of arms, the design that is best for their difference. NumPy float64, zero for i = j."""

    p: np.ndarray  # float (K, K, K)   p[i, j, k]: share of arm k's pulls
    rho: np.ndarray  # float (K, K)    x_i - x_j has squared norm rho[i, j] / n after n pulls in these shares


def ratio_tables(arms: Array | np.ndarray) -> RatioTables:
    """Solves w* = argmin ||w||_1 subject to sum_k w_k x_k = x_i - x_j for every pair of arms.

    The shares are p_k(i, j) = |w*_k| / ||w*||_1 and rho(i, j) = ||w*||_1^2; both are symmetric in i and j.

    Args:
        arms: float (K, d), concrete; they need not span R^d.

    Returns:
        RatioTables. A cast to the dtype of the run is the caller's.

    Raises:
        ValueError: `arms` are no valid (K, d) array, or a tracer.

    Cost: K (K - 1)/2 linear programs on the host, about a second for K = 30.

    Source: Xu, Honda and Sugiyama (2018), equations (10) and (11); rho as in appendix B.
    """
    check_arms(arms)
    require(is_concrete(arms), "arms", "be concrete", arms)
    arms = np.asarray(arms, np.float64)
    K = len(arms)
    p, rho = np.zeros((K, K, K)), np.zeros((K, K))
    for i, j in combinations(range(K), 2):
        weights = np.abs(decompose(arms, arms[i] - arms[j]).weights)
        total = weights.sum()
        p[i, j] = p[j, i] = weights / total
        # Equation (15) prints the norm itself. Appendix B, where rho is the optimum of sum_k w_k^2 / p_k, and the
        # example of the canonical arms (w = (1, -1), rho = 4) need its square.
        rho[i, j] = rho[j, i] = total**2
    return RatioTables(p, rho)
