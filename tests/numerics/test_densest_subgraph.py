"""Greedy peeling against hand-worked cases, a literal transcription and enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.numerics.densest_subgraph import alpha_dks, edge_weights, quadratic_maximization, theorem1_ratio

HAND = jnp.array([[4.0, 0.0, 0.0], [0.0, 2.0, 1.5], [0.0, 1.5, 2.0]])


def random_spd(seed, n):
    root = np.random.default_rng(seed).normal(size=(n + 2, n))
    return root.T @ root


def random_symmetric(seed, n):
    matrix = np.random.default_rng(seed).normal(size=(n, n))
    return matrix + matrix.T


def indicators(n, k):
    return np.array([np.isin(np.arange(n), members) for members in itertools.combinations(range(n), k)], float)


def values(W, k):
    """Computes chi' W chi for every set of k elements."""
    chi = indicators(len(W), k)
    return np.einsum("mi,ij,mj->m", chi, W, chi)


def peel(W, k, reduction):
    """Peels the graph by the definition, degree by degree."""
    alive, order = list(range(len(W))), []
    while len(alive) > k:
        degrees = []
        for i in alive:
            others = [j for j in alive if j != i]
            if reduction == "paper":
                degrees.append(sum(W[i, j] + W[i, i] + W[j, j] for j in others))
            else:
                degrees.append(sum(2 * W[i, j] + (W[i, i] + W[j, j]) / (k - 1) for j in others))
        order.append(alive.pop(int(np.argmin(degrees))))
    return alive, order


@pytest.mark.parametrize(
    ("reduction", "members", "removed", "value"), [("paper", [0, 2], 1, 6), ("exact", [1, 2], 0, 7)]
)
def test_by_hand(reduction, members, removed, value):
    """Paper weights 6, 6, 5.5 give degrees 12, 11.5, 11.5; the first of the tied is removed. Exact weights: 6, 6, 7."""
    peeled = quadratic_maximization(HAND, 2, reduction=reduction)
    assert np.flatnonzero(peeled.mask).tolist() == members
    assert peeled.removal_order.tolist() == [removed]
    assert peeled.value == value


def test_paper_edge_weights_are_no_bound_for_pairs():
    """Lemma 5 claims chi' W chi <= the weight inside the set; for {1, 2} they are 7 and 5.5."""
    weights = edge_weights(HAND, 2, reduction="paper")
    assert [weights[0, 1], weights[0, 2], weights[1, 2]] == [6, 6, 5.5]
    assert values(np.asarray(HAND), 2).tolist() == [6, 6, 7]


@pytest.mark.parametrize("reduction", ["paper", "exact"])
@pytest.mark.parametrize("make", [random_spd, random_symmetric])
@pytest.mark.parametrize(("n", "k"), [(5, 2), (9, 4), (12, 11), (12, 12)])
def test_equals_the_definition(make, n, k, reduction):
    W = make(n + k, n)
    peeled = quadratic_maximization(jnp.array(W), k, reduction=reduction)
    alive, order = peel(W, k, reduction)
    assert np.flatnonzero(peeled.mask).tolist() == alive
    assert peeled.removal_order.tolist() == order
    assert peeled.value == pytest.approx(W[np.ix_(alive, alive)].sum(), rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 5, 7])
def test_exact_edge_weights_inside_a_set_equal_its_quadratic_form(k):
    W = random_symmetric(k, 7)
    weights = np.asarray(edge_weights(jnp.array(W), k, reduction="exact"))
    np.testing.assert_allclose(values(weights, k) / 2, values(W, k), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("k", [3, 4, 6])
def test_value_lies_between_the_guarantee_and_the_optimum(k):
    W = jnp.array([random_spd(seed, 9) for seed in range(40)])
    optimum = np.array([values(np.asarray(w), k).max() for w in W])
    shares = {}
    for reduction in ("paper", "exact"):
        value = jax.vmap(lambda w, r=reduction: quadratic_maximization(w, k, reduction=r).value)(W)
        shares[reduction] = np.asarray(value) / optimum
        assert np.all(shares[reduction] <= 1 + 1e-12)
    assert np.all(shares["paper"] >= jax.vmap(lambda w: theorem1_ratio(w, k))(W))
    assert shares["exact"].mean() > max(0.98, shares["paper"].mean())


def test_equal_vertices_are_removed_in_the_order_of_their_index():
    peeled = quadratic_maximization(np.eye(6) + 1, 3)
    assert peeled.removal_order.tolist() == [0, 1, 2]
    assert peeled.value == 12


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_keeps_the_dtype_under_jit_and_vmap(dtype):
    W = jnp.array([random_spd(seed, 8) for seed in range(5)], dtype)
    peeled = jax.jit(jax.vmap(lambda w: quadratic_maximization(w, 3)))(W)
    assert peeled.value.dtype == dtype
    for i, w in enumerate(W):
        single = quadratic_maximization(w, 3)
        np.testing.assert_array_equal(peeled.mask[i], single.mask)
        np.testing.assert_allclose(peeled.value[i], single.value, rtol=1e-6)


@pytest.mark.parametrize(("n", "k", "share"), [(3, 2, 0.64), (10, 5, 4 / 9), (4, 4, 1), (9, 3, 0.25), (40, 10, 1 / 6)])
def test_share_of_the_densest_subgraph(n, k, share):
    assert alpha_dks(n, k) == pytest.approx(share)


def test_theorem1_ratio_by_hand():
    """Eigenvalues .5, 3.5 and 4: .125 * .64 / (2 - 1)."""
    assert theorem1_ratio(HAND, 2) == pytest.approx(0.08, rel=1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float64, 1e-8), (jnp.float32, 1e-4)])
@pytest.mark.parametrize("scale", [1e-6, 1e8])
def test_theorem1_ratio_against_numpy(dtype, tolerance, scale):
    W = random_spd(0, 30)
    expected = alpha_dks(30, 4) / 3 / np.linalg.cond(W)
    ratio = jax.jit(lambda w: theorem1_ratio(w, 4))(jnp.array(scale * W, dtype))
    assert ratio.dtype == dtype
    assert ratio == pytest.approx(expected, rel=tolerance)
