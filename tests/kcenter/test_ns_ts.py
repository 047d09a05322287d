"""NS-TS against worked numbers, and its laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.kcenter_ns import KEY, distances
from drivers.programs import compiled

from jaxbandits.base import Status
from jaxbandits.engine.run.loop import run
from jaxbandits.kcenter import KL, Distances, distance_instance, environment, ns_ts

THREE = np.array([[0, 0.5, 0.8], [0.5, 0, 0.9], [0.8, 0.9, 0]])


@compiled
def ended():
    def three_nodes(key, table, first_center, assumed, noise_scale):
        instance = distance_instance(table, k=2, noise_scale=noise_scale)
        algorithm = ns_ts(instance.problem, delta=0.1, noise_scale=assumed, first_center=first_center, mix=0.0)
        return run(key, algorithm, environment(instance, algorithm), max_rounds=2000)

    return three_nodes


def three(table=THREE, first_center=0, assumed=0.1, noise_scale=0.0, seed=0):
    """Finds two centers of three nodes; by default without noise, while the algorithm assumes a noise scale of 0.1."""
    return ended()(jax.random.key(seed), jnp.asarray(table), first_center, assumed, noise_scale)


# Worked by hand


def test_three_nodes_by_hand():
    # Half-widths sqrt(.02 log(11.11 t^1.1 9 / .1) / t): .15162 at t = 8, .14395 at t = 9, and the gap is .3.
    end = three()
    assert end.status == Status.STOPPED
    assert (end.pulls, end.rounds) == (18, 11)  # one empty round, of the center, and two single queries; then 8 pairs
    np.testing.assert_array_equal(end.answer.indices, [0, 2])
    np.testing.assert_array_equal(end.answer.queries, [18])
    np.testing.assert_array_equal(end.state.samples.counts, [[0], [9], [9]])


# Laws


def test_equal_nodes_are_never_decided():
    tied = np.array([[0, 0.5, 0.5], [0.5, 0, 0.9], [0.5, 0.9, 0]])
    end = three(tied)
    assert end.status == Status.MAX_ROUNDS
    assert end.pulls == 2 + 2 * (2000 - 3)
    np.testing.assert_array_equal(end.answer.indices, [0, 1])  # 1 is a guess, the lowest node


def test_a_noise_scale_set_too_low_gives_wrong_centers():
    ends = [three(assumed=0.01, noise_scale=0.3**0.5, seed=seed) for seed in range(20)]
    wrong = sum(int(end.answer.indices[1]) == 1 for end in ends)
    assert all(end.status == Status.STOPPED for end in ends)
    assert wrong >= 3  # at a probability of 1/3 each, fewer than 3 have a probability below 2 %


# The triangle inequality

N, K, DELTA = 7, 4, 0.1
QUERIES = 3000


@compiled
def shared(triangle):
    """Makes runs in which the n-th query of a pair of nodes always has the same answer."""

    def end(table, noise_scale):
        instance = distance_instance(table, k=K, noise_scale=noise_scale)
        settings = {"noise_scale": noise_scale, "delta": DELTA, "interval": KL(k1=11.11)}
        algorithm = ns_ts(instance.problem, mix=0.0, triangle=triangle, **settings)
        return run(KEY, algorithm, environment(instance, algorithm, stream=KEY), max_rounds=QUERIES)

    return end


@pytest.mark.parametrize(
    ("seed", "dim", "variance"), [(147, 3, 0.01), pytest.param(126, 2, 0.0001, marks=pytest.mark.wide)]
)
def test_the_triangle_inequality_saves_queries(seed, dim, variance):
    sharper, plain = (shared(triangle)(distances(seed, N, dim), variance**0.5) for triangle in ("squared", None))
    np.testing.assert_array_equal(sharper.answer.indices, plain.answer.indices)
    assert sharper.pulls < plain.pulls
    # At little noise some nodes need no query against the newest center at all.
    has_skipped = np.any((np.asarray(sharper.state.samples.counts) == 0) & (np.asarray(plain.state.samples.counts) > 0))
    assert bool(has_skipped) is (variance < 0.01)


# Bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"first_center": 7}, r"first_center must be an integer in \[0, 6\], got 7"),
        ({"noise_scale": None}, r"noise_scale must be given for Gaussian noise, got None"),
        ({"problem": Distances(7, 4, "bernoulli")}, r"noise_scale must be None for Bernoulli noise, got 0.1"),
    ],
)
def test_bad_input(settings, message):
    with pytest.raises(ValueError, match=message):
        ns_ts(**({"problem": Distances(7, 4), "delta": 0.1, "noise_scale": 0.1} | settings))
