"""Scores of an answer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import kcenter

# A metric table of six points, all distances in (0, 1).
TABLE = np.abs(np.subtract.outer(x := np.array([0.0, 0.07, 0.3, 0.55, 0.8, 0.99]), x))


def test_matches_and_radius_by_hand():
    truth = jnp.array([0, 5, 3], jnp.int32)
    answers = jnp.array([[0, 5, 3], [0, 3, 5], [0, 5, 2], [0, 5, -1], [0, -1, -1]], jnp.int32)
    match = jax.jit(jax.vmap(lambda a: kcenter.centers_match(a, truth)))(answers)
    np.testing.assert_array_equal(match.ordered, [True, False, False, False, False])
    np.testing.assert_array_equal(match.members, [True, True, False, False, False])
    # Points 0, .07, .3, .55, .8, .99: the largest distance to a center.
    radii = jax.jit(jax.vmap(lambda a: kcenter.radius(a, TABLE)))(answers)
    np.testing.assert_allclose(radii, [0.25, 0.25, 0.25, 0.44, 0.99])
    ratios = jax.vmap(lambda a: kcenter.radius_ratio(a, truth, TABLE))(answers)
    np.testing.assert_allclose(ratios, [1, 1, 1, 1.76, 3.96])


def test_radius_on_rows_of_a_shared_table_of_integers():
    rows = np.array([5, 0, 3], np.int32)
    table = jnp.asarray(np.round(TABLE * 100).astype(np.int32))
    assert kcenter.radius(jnp.array([0, 1]), table, rows) == 44  # point 3 is .44 from point 5
    ratio = kcenter.radius_ratio(jnp.array([1, -1]), jnp.array([0, 1]), table, rows)
    assert ratio == 99 / 44
    with jax.enable_x64(False):
        assert kcenter.radius_ratio(jnp.array([1, -1]), jnp.array([0, 1]), table, rows).dtype == jnp.float32


def answer(indices):
    return kcenter.Centers(jnp.asarray(indices, jnp.int32), jnp.asarray(2, jnp.int32), jnp.zeros(2, jnp.uint32))


@pytest.mark.parametrize("seed", range(3))
def test_is_right_is_greedy_from_the_same_first_center_with_ties_to_the_lowest_node(seed):
    # Few levels, so that ties are common.
    points = np.random.default_rng(seed).integers(0, 3, (12, 4)).astype(np.uint8)
    rows = np.random.default_rng(seed).permutation(12)[:7].astype(np.int32)
    shared = kcenter.dimension_instance(points, k=4, levels=2, rows=rows)
    table = kcenter.normalised_distances(kcenter.pairwise_sums(points), m=4, levels=2)
    noisy = kcenter.distance_instance(table, k=4, noise_scale=0.1, rows=rows)
    judge = jax.jit(kcenter.is_right)
    for first in range(7):
        truth = kcenter.greedy(kcenter.pairwise_sums(points[rows]), k=4, first_center=first).centers
        for instance in (shared, noisy):
            assert judge(instance, answer(truth))
            assert not judge(instance, answer([*truth[:3], -1]))
            assert not judge(instance, answer([truth[0], truth[2], truth[1], truth[3]]))


def test_bad_answers():
    instance = kcenter.distance_instance(TABLE, k=3, noise_scale=0.1)
    with pytest.raises(ValueError, match=r"answer.indices must be an array of integers of shape \(3,\)"):
        kcenter.is_right(instance, answer([0, 1]))
    with pytest.raises(ValueError, match=r"indices must be an array of integers of shape \(3,\)"):
        kcenter.centers_match(jnp.zeros(2, int), jnp.zeros(3, int))
