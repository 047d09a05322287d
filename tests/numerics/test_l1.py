"""Shortest decompositions against their dual and against every basis."""

from itertools import combinations

import numpy as np
import pytest

from jaxbandits.numerics.l1 import decompose


def shortest_over_bases(atoms, target):
    """Returns the smallest l1 norm over all basic solutions, at one of which a linear program attains its optimum."""
    d = len(target)
    solutions = (np.linalg.solve(atoms[list(basis)].T, target) for basis in combinations(range(len(atoms)), d))
    return min(np.abs(solution).sum() for solution in solutions)


@pytest.mark.parametrize("seed", range(5))
def test_decomposes_and_is_shortest(seed):
    rng = np.random.default_rng(seed)
    atoms, target = rng.normal(size=(8, 3)), rng.normal(size=3)
    weights, certificate = decompose(atoms, target)
    length = np.abs(weights).sum()
    np.testing.assert_allclose(weights @ atoms, target, atol=1e-12)
    assert np.abs(atoms @ certificate).max() <= 1 + 1e-9
    assert target @ certificate == pytest.approx(length, rel=1e-9)
    assert length == pytest.approx(shortest_over_bases(atoms, target), rel=1e-9)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("length", [1e-9, 1e9])
def test_decomposition_scales_with_atoms_and_target(unit, length):
    """The solver's tolerances are absolute; the answer's are relative."""
    atoms, target = np.random.default_rng(0).normal(size=(6, 3)), np.array([1.0, -2, 0.5])
    base, scaled = decompose(atoms, target), decompose(unit * atoms, length * target)
    np.testing.assert_allclose(scaled.weights, base.weights * length / unit, rtol=1e-9)
    np.testing.assert_allclose(scaled.certificate, base.certificate / unit, rtol=1e-9)


def test_unused_atoms_get_exactly_zero():
    weights = decompose(np.vstack([np.eye(3), [[0.3, 0.3, 0.3]]]), np.array([1.0, -1, 0])).weights
    assert weights.tolist() == [1, -1, 0, 0]


@pytest.mark.parametrize(
    ("atoms", "target", "message"),
    [
        (np.eye(2), np.zeros(2), "target must not be zero"),
        (np.array([[1.0, 0], [2, 0]]), np.array([0.0, 1]), "target must lie in the span of the atoms"),
    ],
)
def test_refuses(atoms, target, message):
    with pytest.raises(ValueError, match=message):
        decompose(atoms, target)
