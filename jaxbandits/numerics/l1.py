"""Linear programs over the l1 norm, solved on the host in float64."""

from typing import NamedTuple

import numpy as np

from jaxbandits import checks

# Fraction of the largest weight below which a weight is rounding, and set to zero.
NEGLIGIBLE = 1e-12


class Decomposition(NamedTuple):
    """A shortest decomposition of a vector, and the proof that it is shortest."""

    weights: np.ndarray  # float (K,)
    certificate: np.ndarray  # float (d,)   alpha with |x_k.alpha| <= 1 for all k and target.alpha = sum |weights|


def decompose(atoms: np.ndarray, target: np.ndarray) -> Decomposition:
    """Minimises sum_k |w_k| subject to sum_k w_k x_k = target.

    Args:
        atoms: float (K, d), the x_k; they need not span R^d.
        target: float (d,), in their span and not zero.

    Returns:
        Decomposition. Its certificate shows that the weights are optimal: any other weights v satisfy
        target.alpha = sum_k v_k x_k.alpha <= sum_k |v_k|.

    Raises:
        ValueError: a shape does not fit, an entry is not finite, or `target` is zero or not in the span of the atoms.

    Cost: one linear program with 2K variables and d constraints, 2 ms for K = 30.
    """
    # Importing SciPy takes a quarter of a second, and most programs do not need it.
    from scipy.optimize import linprog

    checks.array("atoms", atoms, ("K", "d"))
    for name, value in {"atoms": atoms, "target": target}.items():
        checks.require(checks.is_concrete(value), name, "be concrete", value)
    atoms = np.asarray(atoms, np.float64)
    checks.array("target", target, atoms.shape[1:])
    target = np.asarray(target, np.float64)
    checks.require(np.any(target), "target", "not be zero", target)
    # The solver's tolerances are absolute.
    unit, length = np.abs(atoms).max(), np.abs(target).max()
    signed = np.vstack([atoms, -atoms]).T / unit
    result = linprog(np.ones(2 * len(atoms)), A_eq=signed, b_eq=target / length, method="highs-ds")
    checks.require(result.status == 0, "target", "lie in the span of the atoms", target)
    positive, negative = np.split(result.x, 2)
    weights = (positive - negative) * (length / unit)
    weights[np.abs(weights) < NEGLIGIBLE * np.abs(weights).max()] = 0
    return Decomposition(weights, result.eqlin.marginals / unit)
