"""NS-TS against worked numbers, a plain transcription on one tape, and the laws it must obey."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.kcenter_ns import KEY, distances, follow, tape

from experiments.bench.reference import kcenter_ns as reference
from jaxbandits.base import Status
from jaxbandits.engine.running import run
from jaxbandits.kcenter import KL, Distances, distance_instance, environment, ns_ts
from jaxbandits.numerics.beta import beta

THREE = np.array([[0, 0.5, 0.8], [0.5, 0, 0.9], [0.8, 0.9, 0]])


@functools.cache
def compiled():
    @jax.jit
    def three_nodes(key, table, first_center, told, noise_scale):
        instance = distance_instance(table, k=2, noise_scale=noise_scale)
        algorithm = ns_ts(instance.problem, delta=0.1, noise_scale=told, first_center=first_center, mix=0.0)
        return run(key, algorithm, environment(instance), max_rounds=2000)

    return three_nodes


def three(table=THREE, first_center=0, told=0.1, noise_scale=0.0, seed=0):
    """Two centers among three nodes; by default without noise, though a noise scale of 0.1 is allowed for."""
    return compiled()(jax.random.key(seed), jnp.asarray(table), first_center, told, noise_scale)


# Worked by hand


def test_three_nodes_by_hand():
    # Half-widths sqrt(.02 log(11.11 t^1.1 9 / .1) / t): .15162 at t = 8, .14395 at t = 9, and the gap is .3.
    end = three()
    assert end.status == Status.STOPPED
    assert (end.pulls, end.rounds) == (18, 11)  # node by node first, the center's round being empty, then 8 pairs
    np.testing.assert_array_equal(end.answer.indices, [0, 2])
    np.testing.assert_array_equal(end.answer.queries, [18])
    np.testing.assert_array_equal(end.state.samples.counts, [[0], [9], [9]])


# Laws


def test_permuted_nodes_are_permuted_centers():
    order = np.array([2, 0, 1])  # the new names' old names
    end = three(THREE[np.ix_(order, order)], first_center=1)
    np.testing.assert_array_equal(order[np.asarray(end.answer.indices)], [0, 2])
    assert end.pulls == 18


def test_only_distance_over_deviation_counts():
    one, two = three(noise_scale=0.1, seed=1), three(2 * THREE, told=0.2, noise_scale=0.2, seed=1)
    assert one.pulls == two.pulls != 18
    assert three(noise_scale=0.1, seed=2).pulls != one.pulls


def test_equal_nodes_are_never_decided():
    tied = np.array([[0, 0.5, 0.5], [0.5, 0, 0.9], [0.5, 0.9, 0]])
    end = three(tied)
    assert end.status == Status.MAX_ROUNDS
    assert end.pulls == 2 + 2 * (2000 - 3)
    np.testing.assert_array_equal(end.answer.indices, [0, 1])  # a guess, the lowest


def test_a_noise_scale_set_too_low_gives_wrong_centers():
    ends = [three(told=0.01, noise_scale=0.3**0.5, seed=seed) for seed in range(20)]
    wrong = sum(int(end.answer.indices[1]) == 1 for end in ends)
    assert all(end.status == Status.STOPPED for end in ends)
    assert wrong >= 3  # the probability of fewer at odds of one in three is below 2 %


# The transcription

N, K, DELTA = 7, 4, 0.1
TABLE = distances(126, N, dim=2)  # its gaps are .18, .11 and .10
QUERIES = 3000


@functools.cache
def maker(noise="gaussian", **settings):
    def make(table, variance):
        noise_scale = jnp.sqrt(variance) if noise == "gaussian" else None
        instance = distance_instance(table, k=K, noise_scale=noise_scale, noise=noise)
        algorithm = ns_ts(instance.problem, noise_scale=noise_scale, delta=DELTA, **settings)
        return algorithm, environment(instance)

    return make


def compare(make, noise="gaussian", table=TABLE, variance=0.01, ends=True, **settings):
    recorded = tape(5, QUERIES + 4, noise)
    interval = {"gaussian": functools.partial(reference.gaussian, variance), "bernoulli": reference.bernoulli}[noise]

    def reward(v, s, q):
        normal = table[v, s] + np.sqrt(variance) * recorded[q]
        return normal if noise == "gaussian" else float(recorded[q] < table[v, s])

    bounds = interval(n=N, delta=DELTA)
    expected = reference.ns_ts(reward, bounds, n=N, k=K, max_queries=QUERIES, **settings)
    state, log = follow(make, (jnp.asarray(table), variance), recorded, QUERIES + 2 * N, K)
    assert log[:QUERIES] == expected.log[:QUERIES]
    assert (len(expected.centers) == K) is ends
    if ends:
        assert len(log) == len(expected.log) == state.pulls
        assert state.stage.centers.tolist() == expected.centers
        assert state.stage.queries.tolist() == expected.queries()
    return state


@functools.cache
def chance():
    """The coins and normal draws of the round that begins with query q."""

    @jax.jit
    @jax.vmap
    def draws(q):
        for_coins, for_draws = jax.random.split(jax.random.fold_in(KEY, q))
        return jax.random.uniform(for_coins, (2,)), jax.random.normal(for_draws, (2, K - 1))

    return tuple(np.asarray(x) for x in draws(jnp.arange(QUERIES)))


def test_least_lower_bound_equals_the_transcription():
    assert compare(maker(mix=0.0, interval=KL(k1=11.11))).pulls > 300


def test_one_node_alone_equals_the_transcription_and_does_not_end():
    state = compare(maker(mix=0.0, pair=False), ends=False, pair=False)
    queries = np.sort(np.asarray(state.samples.counts).max(axis=1))
    assert queries[-1] > 10 * queries[-2]  # the best node is queried on and on, the others wait


def test_conjugate_draws_equal_the_transcription():
    coins, normals = chance()

    def sample(q, half, v, arms):
        if coins[q, half] >= 0.9:
            return None
        precision = [2 + t / 0.01 for t, _ in arms]
        return [s / 0.01 / w + z / w**0.5 for (_, s), w, z in zip(arms, precision, normals[q, half], strict=False)]

    compare(maker(), sample=sample)


def test_printed_posterior_equals_the_transcription():
    coins, normals = chance()
    laws = {}

    def sample(q, half, v, arms):
        for i, (t, s) in enumerate(arms):
            # (17) is applied once for each query since; only one arm of a node gains a query in a round.
            mean, precision, seen = laws.get((v, i), (0.0, 2.0, 1))
            if t > seen:
                new = t / 0.01
                mean, precision = (precision * mean + new * s / t) / (precision + new), precision + new
                laws[v, i] = mean, precision, t
        if coins[q, half] >= 0.9:
            return None
        return [
            laws.get((v, i), (0.0, 2.0))[0] + normals[q, half, i] / laws.get((v, i), (0.0, 2.0))[1] ** 0.5
            for i in range(len(arms))
        ]

    compare(maker(posterior="printed"), sample=sample)


def test_bernoulli_equals_the_transcription():
    coins, _ = chance()
    draw = jax.jit(beta)

    def sample(q, half, v, arms):
        if coins[q, half] >= 0.9:
            return None
        s, t = np.zeros((2, K - 1)), np.zeros((2, K - 1))
        t[half, : len(arms)], s[half, : len(arms)] = zip(*arms, strict=True)
        key = jax.random.split(jax.random.fold_in(KEY, q))[1]
        return np.asarray(draw(key, 1 + s, 1 + t - s))[half, : len(arms)].tolist()

    state = compare(maker("bernoulli"), "bernoulli", ends=False, sample=sample)
    assert state.stage.found == 2


@pytest.mark.parametrize(("seed", "dim", "variance"), [(147, 3, 0.01), (126, 2, 0.0001)])
def test_triangle_equals_the_transcription(seed, dim, variance):
    instance = {"table": distances(seed, N, dim), "variance": variance}
    sharper = compare(maker(mix=0.0, triangle="squared"), triangle="squared", **instance)
    plain = compare(maker(mix=0.0, interval=KL(k1=11.11)), **instance)
    np.testing.assert_array_equal(sharper.stage.centers, plain.stage.centers)
    assert sharper.pulls < plain.pulls
    # With little noise some nodes need no query against the newest center at all.
    unasked = jnp.any((sharper.samples.counts == 0) & (plain.samples.counts > 0))
    assert bool(unasked) is (variance < 0.01)


# Bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"problem": Distances(1, 2)}, r"problem.n must be an integer of at least 2, got 1"),
        ({"problem": Distances(7, 8)}, r"problem.k must be an integer in \[2, 7\], got 8"),
        ({"problem": Distances(7, 4, "laplace")}, r"problem.noise must be one of .*, got 'laplace'"),
        ({"problem": (7, 4)}, r"problem must be of type Distances, got \(7, 4\)"),
        ({"first_center": 7}, r"first_center must be an integer in \[0, 6\], got 7"),
        ({"delta": 1.0}, r"delta must lie in \(0, 1\), got 1.0"),
        ({"noise_scale": None}, r"noise_scale must be given for Gaussian noise, got None"),
        ({"noise_scale": 0.0}, r"noise_scale must be positive, got 0.0"),
        ({"problem": Distances(7, 4, "bernoulli")}, r"noise_scale must be None for Bernoulli noise, got 0.1"),
        ({"mix": 1.1}, r"mix must lie in \[0, 1\], got 1.1"),
        ({"interval": KL(1.0)}, r"interval.alpha must be more than 1, got 1.0"),
        ({"interval": KL(k1=10.0)}, r"interval.k1 must exceed 1 \+ 1 / \(alpha - 1\), got 10.0"),
        ({"posterior": "flat"}, r"posterior must be .*, got 'flat'"),
        ({"triangle": "cubed"}, r"triangle must be .*, got 'cubed'"),
        ({"dtype": "int32"}, r"dtype must be a floating dtype, got 'int32'"),
    ],
)
def test_bad_input(settings, message):
    with pytest.raises(ValueError, match=message):
        ns_ts(**({"problem": Distances(7, 4), "delta": 0.1, "noise_scale": 0.1} | settings))
