"""The best action, covers, `most_confusing`, the gradient, the proved threshold and T*, against brute force."""

import itertools

import jax
import numpy as np
import pytest
from scipy.optimize import linprog

from experiments.bench.reference import plays as reference
from experiments.semibandit.exactness import least
from experiments.semibandit.trees import all_trees
from jaxbandits import cpe
from jaxbandits.numerics import matroid
from jaxbandits.numerics.thresholds import Evidence

K5 = list(itertools.combinations(range(5), 2))
DOUBLED = [(0, 1), (0, 1), (1, 2), (2, 0), (2, 3), (3, 1)]  # parallel edges
THREE = np.array([np.isin(range(8), chosen).astype(int) for chosen in itertools.combinations(range(8), 3)])
PATHS = cpe.paths5().problem
CLASSES = {
    "complete": (cpe.graphic(5, K5), reference.trees(5, K5)),
    "doubled": (cpe.graphic(4, DOUBLED), reference.trees(4, DOUBLED)),
    "top": (cpe.top_k(8, 3), THREE),
    "paths": (PATHS, np.asarray(PATHS.rows)[::-1]),
}


def class_and_best(name):
    problem, rows = CLASSES[name]
    return problem, rows, reference.listed if name == "paths" else reference.greedy


@pytest.mark.parametrize("name", CLASSES)
def test_maximum_takes_the_lowest_index_among_ties(name):
    problem, rows, best = class_and_best(name)
    weights = np.random.default_rng(0).integers(0, 3, (200, rows.shape[1])).astype(float)
    ours = np.asarray(jax.jit(jax.vmap(lambda w: cpe.maximum(problem, w)))(weights))
    np.testing.assert_array_equal(ours, [best(rows, w) for w in weights])
    assert np.all((ours * weights).sum(1) == (weights @ rows.T).max(1))


def test_maximum_by_prim_on_ties_equals_kruskal():
    graph = cpe.spanning_trees_e20().problem
    weights = np.random.default_rng(1).integers(0, 4, (1000, 20)).astype(float)
    ours = jax.jit(jax.vmap(lambda w: cpe.maximum(graph, w)))(weights)
    theirs = jax.jit(jax.vmap(matroid.graphic(graph.ends)))(weights)
    np.testing.assert_array_equal(ours > 0, theirs)


@pytest.mark.parametrize("name", CLASSES)
def test_most_confusing_is_one_swap(name):
    problem, rows, best = class_and_best(name)
    rng, K = np.random.default_rng(2), rows.shape[1]
    means = np.concatenate([rng.normal(size=(100, K)), rng.integers(0, 4, (50, K))])
    weights = rng.uniform(0.1, 1, means.shape)
    closest = jax.jit(jax.vmap(lambda m, w: cpe.most_confusing(problem, m, w, 2.0)))(means, weights)
    scaled = jax.jit(jax.vmap(lambda m, w: cpe.most_confusing(problem, m, w, 2.0)))(means, 3 * weights)
    np.testing.assert_allclose(scaled.value, 3 * closest.value, rtol=1e-12)  # homogeneous
    for n, (m, w) in enumerate(zip(means, weights, strict=True)):
        action = best(rows, m)
        value, rival, _ = reference.hardest(rows, action, m, w)
        np.testing.assert_allclose(closest.value[n], value / 4, rtol=1e-10, atol=1e-14)
        if name == "paths":
            assert closest.into[n] == -1
            if value > 1e-14:
                np.testing.assert_array_equal(problem.rows[closest.out[n]], rival)
        else:
            swapped = action.copy()
            assert swapped[closest.out[n]] == 1
            assert swapped[closest.into[n]] == 0
            swapped[[closest.out[n], closest.into[n]]] = 0, 1
            assert np.any(np.all(rows == swapped, axis=1))
            if value > 1e-14:
                np.testing.assert_array_equal(swapped, rival)


def test_most_confusing_on_the_published_graph_is_one_swap():
    graph, rng = cpe.spanning_trees_e20().problem, np.random.default_rng(3)
    trees = all_trees(graph)
    assert len(trees) == 20_736
    means, weights = rng.normal(size=(20, 20)), rng.uniform(0.1, 1, (20, 20))
    closest = jax.jit(jax.vmap(lambda m, w: cpe.most_confusing(graph, m, w)))(means, weights)
    listed = [least(trees, m, w) for m, w in zip(means, weights, strict=True)]
    np.testing.assert_allclose(closest.value, listed, rtol=1e-10)


@pytest.mark.parametrize("name", ["complete", "top", "paths"])
def test_direction_is_the_gradient(name):
    problem, rows, _ = class_and_best(name)
    rng, K = np.random.default_rng(3), rows.shape[1]
    means, omega, z = rng.normal(size=K), rng.uniform(0.3, 1, K), 0.1 * rng.uniform(-1, 1, (3, K))
    live = np.array([True, False, True])

    def total(omega):
        return sum(cpe.most_confusing(problem, means, omega + z[n]).value for n in (0, 2))

    step = 1e-6 * np.eye(K)
    numeric = jax.jit(jax.vmap(total))(np.concatenate([omega + step, omega - step]))
    ours = jax.jit(lambda *at: cpe.direction(problem, *at))(means, omega, z, live)
    np.testing.assert_allclose(ours, (numeric[:K] - numeric[K:]) / 2e-6, rtol=1e-6, atol=1e-9)


def test_covers_have_the_printed_sizes():
    for instance, small, unit in ((cpe.spanning_trees_e20(), 4, 14), (cpe.spanning_trees_e25(), 4, 17)):
        assert cpe.small_cover(instance.problem).shape[0] == small
        assert cpe.unit_cover(instance.problem).shape[0] == unit
    for name in CLASSES:
        for cover in (cpe.small_cover, cpe.unit_cover):
            rows = np.asarray(cover(CLASSES[name][0]))
            assert rows.any(axis=0).all()
            assert all(np.any(np.all(CLASSES[name][1] == row, axis=1)) for row in rows)


def test_the_proved_threshold_by_hand():
    threshold = cpe.proved_threshold(cpe.spanning_trees_e20().problem)
    np.testing.assert_allclose(threshold(0.1, Evidence(pulls=10_000)), 20.483, atol=5e-4)
    assert cpe.proved_threshold(PATHS).__name__ == "kk_all"


def test_characteristic_times():
    means = np.array([1, 0.85, 0.8, 0.7])
    eight = np.array([1, 0.9, 0.85, 0.6, 0.5, 0.45, 0.3, 0.1])
    for problem, truth, expected in (
        (cpe.top_k(4, 1), means, 449.870),
        (cpe.top_k(4, 2), means, 1672.865),
        (cpe.top_k(4, 3), means, 400.000),
        (cpe.top_k(8, 3), eight, 75.3355),
        *(
            (each.problem, each.theta, T)
            for each, T in ((cpe.spanning_trees_e20(), 409.18), (cpe.spanning_trees_e25(), 400.65))
        ),
    ):
        time = cpe.characteristic_time(problem, np.asarray(truth))
        assert time.lower <= expected * (1 + 2e-5)
        assert time.upper >= expected * (1 - 2e-5)
        assert time.upper / time.lower - 1 < 1.01e-4
        value = jax.jit(lambda *at, problem=problem: cpe.most_confusing(problem, *at).value)(truth, time.allocation)
        np.testing.assert_allclose(1 / value, time.value, rtol=1e-9)
    twice = cpe.characteristic_time(cpe.top_k(4, 1), means, 2.0)
    np.testing.assert_allclose(twice.value, 4 * cpe.characteristic_time(cpe.top_k(4, 1), means).value)


def _least_time(problem, rows, means):
    """Computes lower and upper bounds of T* by cutting planes: linear programs over actions, rates below tangents."""
    best = rows[np.argmax(rows @ means)]
    rivals = [row for row in rows if np.any(row != best)]
    if isinstance(problem, cpe.Graphic):  # single swaps bind
        rivals = [row for row in rivals if np.abs(row - best).sum() == 2]
    differs = np.abs(np.array(rivals) - best)
    scale = ((best - np.array(rivals)) @ means) ** 2 / 2
    M = len(rows)
    omega, reached, cuts = rows.mean(axis=0), 0.0, []
    for _ in range(2000):
        total = differs @ (1 / omega)
        reached = max(reached, (scale / total).min())
        cuts += list((scale / total**2)[:, None] * differs / omega**2)
        solved = linprog(
            np.append(np.zeros(M), -1),
            A_ub=np.column_stack([-np.array(cuts) @ rows.T, np.ones(len(cuts))]),
            b_ub=np.zeros(len(cuts)),
            A_eq=np.append(np.ones(M), 0)[None],
            b_eq=[1],
        )
        bound = -solved.fun
        if bound <= reached * (1 + 1e-3):
            break
        # Half of the way keeps the shares positive, and the cuts useful.
        omega = (omega + solved.x[:M] @ rows) / 2
        cuts = [cut for cut in cuts if cut @ (solved.x[:M] @ rows) <= bound * 1.5]
    return 1 / bound, 1 / reached


@pytest.mark.parametrize("seed", range(12))
def test_characteristic_times_of_degenerate_optima(seed):
    """Some actions have no share there: sets of k and trees with which the Newton matrix was singular."""
    rng = np.random.default_rng(seed)
    if seed < 4:
        m, k = [(4, 2), (5, 2), (6, 3), (5, 4)][seed]
        problem, rows = cpe.top_k(m, k), [np.isin(range(m), s) for s in itertools.combinations(range(m), k)]
        means = np.array([0.9, 0.5, 0.7, 0.1]) if seed == 0 else rng.uniform(size=m)
    else:
        (problem, rows), means = CLASSES["complete"], rng.uniform(size=10)
    rows = np.asarray(rows, float)
    time = cpe.characteristic_time(problem, means)
    lower, upper = _least_time(problem, rows, means)
    assert time.upper / time.lower - 1 < 1.01e-4
    assert time.lower <= upper * (1 + 1e-9)
    assert time.upper >= lower * (1 - 1e-9)
    assert upper / lower < 1.01


def test_problems_that_cannot_be_played_are_refused():
    bridge = cpe.graphic(4, [(0, 1), (1, 2), (0, 2), (2, 3)])
    assert cpe.pfws(bridge, delta=0.1)  # its edge is in every action
    refused = {
        "no linear oracle": cpe.oracle(lambda theta: (theta > 0).astype(int), 3, bi_monotone=True),
        "top_k or best_arm": cpe.sites([0.5, 0.25, 0.0], 1),
        "connected": cpe.graphic(5, [(0, 1), (1, 2), (0, 2), (3, 4)]),
        "loops": cpe.graphic(3, [(0, 1), (1, 2), (2, 2)]),
        "offset": cpe.enumerated(np.eye(3, dtype=int), [0.5, 0.0, 0.0]),
        "every arm": cpe.enumerated([[1, 0, 0], [0, 1, 0]]),
        "Graphic": cpe.opinion_sampling([1, 2], 40),
    }
    for word, problem in refused.items():
        with pytest.raises(ValueError, match=word):
            cpe.pfws(problem, delta=0.1)
    for cover, word in (([[1, 1, 0, 1]], "hold every arm"), ([[1, 1, 1, 0], [1, 1, 0, 1]], "actions of the problem")):
        with pytest.raises(ValueError, match=word):
            cpe.pfws(bridge, delta=0.1, cover=cover)
    with pytest.raises(ValueError, match="capacity"):
        cpe.combgame(bridge, delta=0.1, capacity=1)
