"""The greedy bases against an enumeration of all sets."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.numerics import matroid

N = 8
GROUPS = np.array([0, 2, 0, 1, 1, 0, 2, 1])
CAPACITIES = np.array([2, 1, 4])  # group 2 has only two elements
# Two components; edges 0 and 3 are parallel, edge 5 is a loop, edge 7 is a bridge. Vertices are arbitrary numbers.
EDGES = np.array([[10, 20], [20, 35], [35, 10], [20, 10], [35, -4], [-4, -4], [35, -4], [1, 2]])


def is_forest(edges):
    """Checks that there is no cycle: every edge joins two components."""
    component = {}
    for a, b in edges:
        a, b = (component.setdefault(v, {v}) for v in (a, b))
        if a is b:
            return False
        for v in b:
            component[v] = a
        a |= b
    return True


MATROIDS = {
    "uniform": (matroid.uniform(3), lambda members: len(members) <= 3),
    "partition": (
        matroid.partition(GROUPS, CAPACITIES),
        lambda members: np.all(np.bincount(GROUPS[list(members)], minlength=3) <= CAPACITIES),
    ),
    "graphic": (matroid.graphic(EDGES), lambda members: is_forest(EDGES[list(members)].tolist())),
}
RANKS = {"uniform": 3, "partition": 5, "graphic": 4}


def bases(name):
    """Returns all largest independent sets, bool (B, N)."""
    independent = MATROIDS[name][1]
    members = itertools.combinations(range(N), RANKS[name])
    assert not any(independent(more) for more in itertools.combinations(range(N), RANKS[name] + 1))
    return np.array([np.isin(np.arange(N), chosen) for chosen in members if independent(chosen)])


@pytest.mark.parametrize("name", MATROIDS)
def test_maximize_returns_a_base_with_the_largest_weight(name):
    """Weights of both signs; integer weights tie."""
    every = bases(name)
    rng = np.random.default_rng(0)
    weights = np.concatenate([rng.normal(size=(50, N)), rng.integers(-2, 3, (50, N)), -rng.random((20, N))])
    chosen = np.asarray(jax.jit(jax.vmap(MATROIDS[name][0]))(weights))
    assert all(any(np.array_equal(one, base) for base in every) for one in chosen)
    np.testing.assert_allclose(np.sum(chosen * weights, axis=1), (weights @ every.T).max(axis=1), rtol=1e-12)


@pytest.mark.parametrize("name", MATROIDS)
@pytest.mark.parametrize("element", range(N))
def test_a_forbidden_element_is_chosen_only_if_every_base_has_it(name, element):
    every = bases(name)
    weights = np.random.default_rng(element).normal(size=N)
    weights[element] = -np.inf
    chosen = np.asarray(MATROIDS[name][0](jnp.asarray(weights)))
    assert chosen[element] == every[:, element].all()
    others = np.delete(np.arange(N), element)
    allowed = every[~every[:, element]] if not chosen[element] else every
    np.testing.assert_allclose(
        chosen[others] @ weights[others], (allowed[:, others] @ weights[others]).max(), rtol=1e-12
    )


def test_ties_go_to_the_lowest_index():
    ones = jnp.ones(N)
    chosen = {name: np.flatnonzero(maximize(ones)).tolist() for name, (maximize, _) in MATROIDS.items()}
    assert chosen == {"uniform": [0, 1, 2], "partition": [0, 1, 2, 3, 6], "graphic": [0, 1, 4, 7]}


def test_a_vector_and_its_batch_agree_in_every_dtype():
    weights = np.random.default_rng(1).integers(-9, 9, (4, N))
    for maximize, _ in MATROIDS.values():
        expected = jax.vmap(maximize)(weights.astype(np.float64))
        np.testing.assert_array_equal(jax.vmap(maximize)(weights.astype(np.float32)), expected)
        np.testing.assert_array_equal([maximize(jnp.asarray(one)) for one in weights], expected)


def test_a_partition_of_one_group_is_uniform():
    weights = np.random.default_rng(3).normal(size=(20, N))
    one_group = matroid.partition(np.zeros(N, int), np.array([3]))
    np.testing.assert_array_equal(jax.vmap(one_group)(weights), jax.vmap(matroid.uniform(3))(weights))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: matroid.uniform(3)(jnp.ones(2)), r"weights must have at least 3 entries, got \(2,\)"),
        (lambda: matroid.uniform(3)(jnp.ones((4, 4))), r"weights must have shape \(n,\), got \(4, 4\)"),
        (lambda: matroid.partition(np.array([0, 1]), np.ones(1, int)), r"groups must lie in \[0, 0\]"),
        (lambda: MATROIDS["partition"][0](jnp.ones(7)), r"weights must have shape \(8,\), got \(7,\)"),
        (lambda: MATROIDS["graphic"][0](jnp.ones(7)), r"weights must have shape \(8,\), got \(7,\)"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
