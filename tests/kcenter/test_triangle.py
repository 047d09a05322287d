from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.engine.run.loop import run
from jaxbandits.kcenter import dimension_instance, ds_ucb, environment, greedy, pairwise_sums
from jaxbandits.kcenter._shared.triangle import far, is_out_of_reach, join, tighten, unknown

SLOTS = 4


@partial(jax.jit, static_argnames="kind")
def everything(lower, upper, n_centers, slot, kind):
    """Joins centers 0..3 one after the other, then bounds node 4; `lower` and `upper` have shape (5, 5)."""
    spans = unknown(SLOTS + 1, lower.dtype)
    for center in range(SLOTS):
        joined = join(spans, jnp.asarray(center, jnp.int32), lower[center, :SLOTS], upper[center, :SLOTS], kind)
        spans = jax.tree.map(lambda new, old, center=center: jnp.where(center < n_centers, new, old), joined, spans)
    slots = jnp.arange(SLOTS) < n_centers
    row = lower[4, :SLOTS], upper[4, :SLOTS]
    return spans, tighten(spans, *row, slots, kind), is_out_of_reach(spans, slot, *row, slots, kind)


def instance(seed, kind):
    rng = np.random.default_rng(seed)
    points = rng.random((5, 2))
    d = np.sqrt(((points[:, None] - points) ** 2).sum(-1))
    d = d if kind == "metric" else d**2
    width = rng.choice([0.0, 0.02, 0.3, 5.0], (2, 5, 5))
    lower, upper = d - width[0] * rng.random((5, 5)), d + width[1] * rng.random((5, 5))
    return d, np.maximum(lower, lower.T), np.minimum(upper, upper.T)


@pytest.mark.parametrize("kind", ["metric", "squared"])
def test_valid_bounds_stay_valid_and_become_sharper(kind):
    gains = skips = 0
    for seed in range(300):
        d, lower, upper = instance(seed, kind)
        n_centers = seed % SLOTS + 1
        newest = jnp.asarray(n_centers - 1, jnp.int32)
        spans, sharper, is_out = jax.tree.map(np.asarray, everything(lower, upper, n_centers, newest, kind))
        r = d[:SLOTS, :SLOTS] if kind == "metric" else np.sqrt(d[:SLOTS, :SLOTS])
        assert np.all(spans.lower <= r + 1e-12)
        assert np.all(spans.upper >= r - 1e-12)
        np.testing.assert_array_equal(spans.lower, spans.lower.T)
        np.testing.assert_array_equal(spans.upper, spans.upper.T)
        assert np.all(np.diag(spans.lower) == 0)
        assert np.all(np.diag(spans.upper) == 0)
        row = slice(0, n_centers)
        assert np.all(sharper[row] >= lower[4, row])
        assert np.all(sharper[row] <= d[4, row] + 1e-12)
        np.testing.assert_array_equal(sharper[n_centers:], lower[4, n_centers:SLOTS])
        gains += np.any(sharper[row] > np.maximum(lower[4, row], 0))
        # An upper bound by way of another center is never the smallest one.
        u = np.minimum(upper, float(far(jnp.float64))) if kind == "metric" else np.sqrt(upper)
        by_way = u[4, row][:, None] + spans.upper[row, row]
        np.testing.assert_allclose(np.min(by_way), np.min(u[4, row]))
        if is_out and n_centers > 1:
            skips += 1
            assert d[4, n_centers - 1] > d[4, : n_centers - 1].min()
    assert gains > 50
    assert skips > 10


def test_three_points_on_a_line_by_hand():
    """Centers at 0 and 1, known exactly. The node is at most .2 from the first, so at least .8 from the second."""
    lower, upper = np.zeros((5, 5)), np.full((5, 5), 9.0)
    lower[1, 0] = upper[1, 0] = 1.0
    lower[4, :2], upper[4, :2] = [0.1, 0.0], [0.2, 9.0]
    _, sharper, is_out = everything(lower, upper, 2, jnp.asarray(1, jnp.int32), "metric")
    np.testing.assert_allclose(sharper[:2], [0.1, 0.8])
    assert is_out
    _, sharper, _ = everything(lower, upper, 1, jnp.asarray(0, jnp.int32), "metric")
    np.testing.assert_array_equal(sharper[:2], [0.1, 0.0])
    _, sharper, is_out = everything(lower**2, upper**2, 2, jnp.asarray(1, jnp.int32), "squared")
    np.testing.assert_allclose(sharper[:2], [0.01, 0.64])
    assert is_out


def test_clustered_points_have_the_same_centers_for_fewer_queries():
    rng = np.random.default_rng(3)
    points = np.clip(rng.uniform(0.1, 0.9, (4, 60))[np.arange(24) % 4] + rng.uniform(-0.1, 0.1, (24, 60)), 0, 1)
    sums = pairwise_sums(points)

    def runs(triangle):
        @jax.jit
        def one(key):
            instance = dimension_instance(points, k=4, exact=sums)
            algorithm = ds_ucb(instance.problem, delta=0.1, leap=4, triangle=triangle)
            return run(key, algorithm, environment(instance, algorithm), max_rounds=20_000)

        return [one(jax.random.key(seed)) for seed in range(4)]

    truth = greedy(sums, k=4).centers.tolist()
    plain, sharp = runs(None), runs("squared")
    assert all(end.answer.indices.tolist() == truth for end in plain + sharp)
    skipped = [int(np.sum(np.asarray(end.state.counts) == 0)) for end in sharp]
    assert min(skipped) > 12  # more than the arms of the centers themselves
    assert all(a.pulls < b.pulls for a, b in zip(sharp, plain, strict=True))
