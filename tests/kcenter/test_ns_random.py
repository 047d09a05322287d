"""Random sampling with noise in rounds of several queries."""

import jax
import jax.numpy as jnp
import numpy as np
from drivers.kcenter_ns import KEY, distances

from jaxbandits.base import Status
from jaxbandits.engine.run.loop import run
from jaxbandits.kcenter import Distances, distance_instance, environment, ns_random

N, K, DELTA = 7, 4, 0.1
TABLE = distances(126, N, dim=2)  # its gaps are .18, .11 and .10


def test_rounds_of_several_queries_find_the_same_centers():
    instance = distance_instance(TABLE, k=K, noise_scale=0.1)
    algorithm = ns_random(instance.problem, noise_scale=0.1, delta=DELTA, test_every=32)
    end = jax.jit(lambda: run(KEY, algorithm, environment(instance, algorithm), max_rounds=1000))()
    assert end.status == Status.STOPPED
    np.testing.assert_array_equal(end.answer.indices, [0, 5, 3, 2])
    counts = np.asarray(end.state.samples.counts)
    assert int(end.pulls) == counts.sum() == int(end.answer.queries.sum())
    assert (counts.sum() - (6 + 5 + 4)) % 32 == 0
    assert not counts[0].any()  # the first center
    assert not counts[5, 1:].any()  # a center from the second stage on


def test_a_round_is_uniform_over_the_arms_of_the_stage():
    algorithm = ns_random(Distances(N, K), noise_scale=0.1, delta=DELTA, test_every=7000)
    state = algorithm.init(KEY)
    stage = state.stage._replace(
        centers=jnp.asarray([6, 0, 3, -1], jnp.int32), found=jnp.asarray(3, jnp.int32), cursor=jnp.asarray(N, jnp.int32)
    )
    pulls = np.asarray(jax.jit(algorithm.decide)(KEY, state._replace(stage=stage)).action.pulls)
    arms = ~np.isin(np.arange(N), [6, 0, 3])
    assert pulls.sum() == 7000
    assert not pulls[~arms].any()
    # Twelve arms with 583.3 expected each: five standard deviations are 116.
    assert abs(pulls[arms] - 7000 / 12).max() < 116
