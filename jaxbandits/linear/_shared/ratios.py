"""The best shares of the pulls for each pair of arms: the tables of LinGapE's ratio rule."""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from jaxbandits import checks
from jaxbandits.base import Array
from jaxbandits.checks import is_concrete, require
from jaxbandits.linear._problem.arms import checked_arms
from jaxbandits.numerics.l1 import decompose


class RatioTables(NamedTuple):
    """Best design for the difference of each pair of arms. NumPy float64, zero for i = j."""

    p: np.ndarray  # float (K, K, K)   p[i, j, k]: share of arm k's pulls
    rho: np.ndarray  # float (K, K)    x_i - x_j has squared norm rho[i, j] / n after n pulls in these shares


def ratio_tables(arms: Array | np.ndarray) -> RatioTables:
    """Solves w* = argmin ||w||_1 subject to sum_k w_k x_k = x_i - x_j for every pair of arms.

    The shares are p_k(i, j) = |w*_k| / ||w*||_1 and rho(i, j) = ||w*||_1^2; both are symmetric in i and j.

    Args:
        arms: float (K, d), concrete; they need not span R^d.

    Returns:
        RatioTables; the functions that take them cast them to the dtype of the arms.

    Raises:
        ValueError: `arms` is not a valid (K, d) array, or is traced.

    Cost: K (K - 1)/2 linear programs on the host, about a second for K = 30.

    Source: Xu, Honda and Sugiyama (2018), equations (10) and (11); rho as in appendix B.
    """
    checked_arms(arms)
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


def checked_shares(ratios: Any, K: int, dtype: Any) -> Array:
    """Returns the table p as an array; raises `ValueError` unless it is one for K arms."""
    array = checks.array("ratios", ratios, (K, K, K), least=0)
    if is_concrete(ratios):
        table = np.asarray(ratios)
        sums_to_one = abs(table.sum(-1) - 1) < 1e-6
        require(sums_to_one | np.eye(K, dtype=bool), "ratios", "sum to 1 over the last axis for every i != j", table)
        require(table == table.swapaxes(0, 1), "ratios", "be the same for (i, j) and (j, i)", table)
    return array.astype(dtype)
