"""Whole runs of P-FWS: forced plays, points that need no clipping; and the points themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits
from jaxbandits import cpe
from jaxbandits.cpe._algorithms import pfws as points

KEY = jax.random.key(0)
ROUNDS = 400
E20 = cpe.spanning_trees_e20()


@pytest.mark.parametrize("cover", [cpe.small_cover, cpe.unit_cover])
def test_blocks_are_forced_and_points_stay_inside(cover):
    """Rounds t = M p^2 .. M p^2 + M - 1 play the cover. In all others every arm has more than sqrt(t / M) plays."""
    rows = np.asarray(cover(E20.problem))
    M, algorithm = len(rows), cpe.pfws(E20.problem, delta=1e-30, cover=rows)
    environment = cpe.environment(E20, algorithm)
    run = jax.device_get(
        jax.jit(lambda: jaxbandits.trace(KEY, algorithm, environment, rounds=ROUNDS, watch=lambda s: s.counts))()
    )
    t = np.arange(ROUNDS)
    forced = np.isin(t // M, np.arange(100) ** 2)
    np.testing.assert_array_equal(run.actions.decision[forced], rows[t[forced] % M])
    free = ~forced
    omega, eta = run.watched[free] / t[free, None], 1 / (4 * np.sqrt(t[free] * M))
    assert np.all(omega - eta[:, None] >= 0.75 * omega)
    assert not run.stops.any()


def test_shifted_points_are_uniform_in_the_ball():
    K, n, N = 6, 12, 4000
    z = np.asarray(
        jax.jit(jax.vmap(lambda key: points._shifted(key, n, K, np.dtype("float64"))))(jax.random.split(KEY, N))
    )
    norms = np.linalg.norm(z, axis=2)
    np.testing.assert_allclose(norms, np.broadcast_to(norms[:, :1], norms.shape))
    assert abs(np.mean(norms[:, 0] ** K) - 0.5) < 5 / np.sqrt(12 * N)  # uniform in [0, 1]
    assert len(np.unique(np.round(z[0], 12), axis=0)) == n
    # The mean gradient equals the mean gradient of independent points.
    independent = np.asarray(
        jax.jit(jax.vmap(lambda key: points._independent(key, n, K, np.dtype("float64"))))(jax.random.split(KEY, N))
    )
    problem, means, omega = cpe.top_k(K, 2), jnp.linspace(0.0, 0.5, K), jnp.full(K, 0.5)
    gradient = jax.jit(jax.vmap(lambda z: cpe.direction(problem, means, omega, 0.25 * z, jnp.ones(n, bool))))
    ours, theirs = np.asarray(gradient(z)), np.asarray(gradient(independent))
    error = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / N)
    assert np.all(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) <= 5 * error + 1e-12)


@pytest.mark.thorough
@pytest.mark.slow
def test_mean_plays_of_the_published_graphs():
    """2076 +- 40 and 1969 +- 36 in the runs of another implementation, in Numba."""
    for instance, mean, error in ((E20, 2076, 40), (cpe.spanning_trees_e25(), 1969, 36)):

        def build(task, key, instance=instance):
            algorithm = cpe.pfws(instance.problem, delta=0.1)
            return algorithm, cpe.environment(instance, algorithm)

        columns = jaxbandits.sweep(build, seeds=300, key=KEY, max_rounds=10**5, progress=False).columns
        pulls = columns["pulls"]
        assert abs(pulls.mean() - mean) < 4 * np.hypot(error, pulls.std() / np.sqrt(len(pulls)))
        best = np.asarray(cpe.maximum(instance.problem, instance.theta))
        wrong = np.sum(np.any(columns["answer"] != best, axis=1))
        assert wrong <= 15
