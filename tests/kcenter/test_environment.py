"""The laws of the environments, and bad input.

A test of a law samples from fixed seeds and admits five standard errors.
"""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits
from jaxbandits import kcenter
from jaxbandits.kcenter import Counts, PairPull, Pull

DRAWS = 20_000
RNG = np.random.default_rng(3)
PIXELS = RNG.integers(0, 256, (6, 40)).astype(np.uint8)
FLOATS = RNG.random((6, 40))
# A metric table of six points, all distances in (0, 1).
TABLE = np.abs(np.subtract.outer(x := np.array([0.0, 0.07, 0.3, 0.55, 0.8, 0.99]), x))


def brute_sums(points):
    points = points.astype(np.int64 if points.dtype.kind in "iu" else float)
    return np.square(points[:, None] - points[None]).sum(axis=-1)


def sampling(points, k=3, *, leap=1, **parts):
    """Returns the environment of points, and a maker of its actions from (node, slot, centers, exact)."""
    instance = kcenter.dimension_instance(points, k=k, **parts)

    def pull(node, slot, centers, exact=False):
        return Pull(*integers(node, slot, centers), jnp.array(exact), instance.problem)

    return kcenter.environment(instance, kcenter.ds_ucb(instance.problem, delta=0.1, leap=leap)), pull


def noisy(distances, action=PairPull, **parts):
    """Returns the environment of noisy distances, and a maker of its actions."""
    instance = kcenter.distance_instance(distances, k=3, **parts)
    extra = {"exact": jnp.array(False)} if action is Pull else {}

    def make(*fields):
        return action(*integers(*fields), **extra, problem=instance.problem)

    n = instance.problem.n
    idle = {Pull: (n, 0), PairPull: ([n, n], [0, 0]), Counts: (np.zeros((n, 2)),)}[action]
    return kcenter.environment(instance, make(*idle, [0, 0])), make


def integers(*fields):
    return (jnp.array(x, jnp.int32) for x in fields)


@functools.cache
def sampler(environment):
    one = jax.vmap(lambda key, action: environment.respond((), action, environment.noise(key))[0], (0, None))
    return jax.jit(lambda key, action: one(jax.random.split(key, DRAWS), action))


def sample(environment, action, seed=0):
    """Samples independent observations of one action, stacked."""
    return jax.tree.map(np.asarray, sampler(environment)(jax.random.key(seed), action))


def assert_moments(values, mean, variance, fourth=3.0):
    """Checks mean and variance over axis 0 to five standard errors; `fourth` bounds the standardised fourth moment."""
    error = np.sqrt(variance / len(values))
    assert np.all(np.abs(values.mean(axis=0) - mean) <= 5 * error + 1e-12)
    spread = np.square(values - mean).mean(axis=0)
    assert np.all(np.abs(spread - variance) <= 5 * variance * np.sqrt((fourth - 1) / len(values)) + 1e-12)


# Dimension sampling


@pytest.mark.parametrize(("points", "levels", "dtype"), [(PIXELS, 255, jnp.int32), (FLOATS, None, jnp.float64)])
def test_a_sample_holds_the_drawn_dimensions(points, levels, dtype):
    environment, pull = sampling(points, levels=levels, leap=3)
    dims = jnp.array([5, 39, 0], jnp.int32)
    reply, _ = jax.jit(environment.respond)((), pull(4, 1, [2, 0]), dims)
    wide = points.astype(np.int64 if levels else float)
    np.testing.assert_array_equal(reply.rewards, np.square(wide[4, [5, 39, 0]] - wide[0, [5, 39, 0]]))
    np.testing.assert_allclose(reply.exact, brute_sums(points)[4, 0], rtol=1e-15)
    assert reply.rewards.dtype == reply.exact.dtype == dtype


def test_rows_pick_the_instance_from_shared_points():
    rows = np.array([5, 0, 3], np.int32)
    shared, pull = sampling(PIXELS, levels=255, leap=2, rows=rows)
    separate, _ = sampling(PIXELS[rows], levels=255, leap=2)
    noise = separate.noise(jax.random.key(1))
    np.testing.assert_array_equal(shared.noise(jax.random.key(1)), noise)
    for action in (pull(0, 1, [1, 2]), pull(2, 0, [1, 0]), pull(1, 1, [0, 2])):
        jax.tree.map(
            np.testing.assert_array_equal, shared.respond((), action, noise)[0], separate.respond((), action, noise)[0]
        )


def test_actions_out_of_range_and_missing_centers_give_finite_replies():
    """An action past the nodes or the slots gives no NaN, and centers that do not exist yet change nothing."""
    environment, pull = sampling(FLOATS, leap=2)
    noise = environment.noise(jax.random.key(0))
    for action in (pull(6, 0, [0, -1]), pull(1, 2, [0, -1])):
        assert all(np.all(np.isfinite(x)) for x in environment.respond((), action, noise)[0])
    first = environment.respond((), pull(4, 0, [2, -1]), noise)[0]
    other = environment.respond((), pull(4, 0, [2, 5]), noise)[0]
    np.testing.assert_array_equal(first.rewards, other.rewards)
    assert first.exact == other.exact


def test_dimensions_are_uniform_and_independent_within_a_leap():
    environment, _ = sampling(PIXELS, levels=255, leap=2)
    dims = np.asarray(jax.vmap(environment.noise)(jax.random.split(jax.random.key(0), DRAWS)))
    assert dims.dtype == np.int32
    assert dims.shape == (DRAWS, 2)
    shares = np.bincount(dims.ravel(), minlength=40) / dims.size
    assert np.all(np.abs(shares - 1 / 40) < 5 * np.sqrt(1 / 40 / dims.size))
    joint = np.mean((dims[:, 0] < 20) & (dims[:, 1] < 20))
    assert abs(joint - 0.25) < 5 * np.sqrt(0.25 * 0.75 / DRAWS)


def test_the_mean_of_a_reward_is_the_distance():
    environment, pull = sampling(PIXELS, levels=255)
    for slot, center in enumerate([2, 0]):
        rewards = sample(environment, pull(4, slot, [2, 0])).rewards[:, 0] / 255**2
        exact = np.square((PIXELS[4].astype(float) - PIXELS[center]) / 255)
        fourth = np.mean((exact - exact.mean()) ** 4) / exact.var() ** 2
        assert_moments(rewards, exact.mean(), exact.var(), fourth)


def test_environments_may_be_built_under_a_trace():
    @jax.jit
    @functools.partial(jax.vmap, in_axes=(None, None, 0))
    def reads(points, table, rows):
        environment, pull = sampling(points, k=2, exact=table, rows=rows, levels=255)
        return environment.respond((), pull(1, 0, [0], exact=True), environment.noise(jax.random.key(0)))[0].exact

    rows = np.array([[0, 1], [4, 2]], np.int32)
    for table in (kcenter.pairwise_sums(PIXELS), None):  # if None, it is computed under the trace
        np.testing.assert_array_equal(reads(PIXELS, table, rows), brute_sums(PIXELS)[rows[:, 1], rows[:, 0]])


# Noisy distances


def test_gaussian_rewards():
    one, pull = noisy(TABLE, noise_scale=0.2, action=Pull)
    assert_moments(sample(one, pull(3, 1, [0, 5])), TABLE[3, 5], 0.04)
    two, pair = noisy(TABLE, noise_scale=0.2)
    rewards = sample(two, pair([3, 1], [1, 0], [0, 5]))
    assert_moments(rewards, TABLE[[3, 1], [5, 0]], 0.04)
    assert abs(np.corrcoef(rewards.T)[0, 1]) < 5 / np.sqrt(DRAWS)


def test_sums_of_gaussian_rewards():
    pulls = np.array([[0, 1], [5, 1000], [1, 0], [0, 0], [2, 2], [10**6, 3]])
    environment, counts = noisy(TABLE, noise_scale=0.2, action=Counts)
    rewards = sample(environment, counts(pulls, [0, 4]))
    assert_moments(rewards, pulls * TABLE[:, [0, 4]], 0.04 * pulls)
    assert np.all(rewards[:, pulls == 0] == 0)


def test_bernoulli_rewards():
    one, pull = noisy(TABLE, noise="bernoulli", action=Pull)
    rewards = sample(one, pull(3, 1, [0, 5]))
    assert rewards.dtype == np.int32
    assert set(rewards) == {0, 1}
    assert_moments(rewards, TABLE[3, 5], TABLE[3, 5] * (1 - TABLE[3, 5]))
    environment, pair = noisy(TABLE, noise="bernoulli")
    two = sample(environment, pair([3, 2], [1, 0], [2, 5]))
    chance = TABLE[[3, 2], [5, 2]]
    assert chance[1] == 0
    assert_moments(two, chance, chance * (1 - chance))
    assert np.all(two[:, 1] == 0)


def test_sums_of_bernoulli_rewards():
    """Counts go up to sizes at which JAX's 32-bit sampler is wrong."""
    certain = np.where(TABLE > 0.98, 1.0, TABLE)
    pulls = np.array([[0, 7], [5, 1000], [1, 0], [0, 0], [2, 2], [10, 10**7]])
    chance = certain[:, [0, 4]]
    environment, counts = noisy(certain, noise="bernoulli", action=Counts)
    rewards = sample(environment, counts(pulls, [0, 4]))
    assert rewards.dtype == np.int32
    assert_moments(rewards, pulls * chance, pulls * chance * (1 - chance), fourth=20)
    assert np.all(rewards[:, 5, 0] == 10)
    with (
        jax.enable_x64(False),
        pytest.raises(ValueError, match="jax_enable_x64 must be on for binomial sums, got False"),
    ):
        noisy(TABLE.astype(np.float32), noise="bernoulli", action=Counts)


def test_noisy_environment_of_rows_without_noise_keeps_the_dtype():
    rows = np.array([5, 0, 3], np.int32)
    silent, pair = noisy(TABLE.astype(np.float32), noise_scale=0.0, rows=rows)
    rewards = silent.respond((), pair([0, 2], [1, 0], [1, 2]), silent.noise(jax.random.key(0)))[0]
    assert rewards.dtype == np.float32
    np.testing.assert_array_equal(rewards, TABLE.astype(np.float32)[[5, 3], [3, 0]])
    block, counts = noisy(TABLE, noise_scale=0.0, rows=rows, action=Counts)
    sums = block.respond((), counts([[1, 2], [0, 1], [3, 0]], [1, 2]), block.noise(jax.random.key(0)))[0]
    np.testing.assert_array_equal(sums, np.array([[1, 2], [0, 1], [3, 0]]) * TABLE[np.ix_(rows, [0, 3])])
    idle = silent.respond((), pair([3, 3], [2, 2], [1, -1]), silent.noise(jax.random.key(0)))[0]
    assert np.all(np.isfinite(idle))


# Mismatched algorithms and environments


@pytest.mark.parametrize(
    ("n", "m", "k"), [(5, 40, 3), (6, 41, 3), (6, 40, 2)], ids=["another n", "another m", "another k"]
)
def test_an_algorithm_for_other_sizes_is_refused(n, m, k):
    environment, _ = sampling(FLOATS)
    algorithm = kcenter.ds_ucb(kcenter.Dimensions(n, m, k), delta=0.1)
    with pytest.raises(ValueError, match=re.escape(f"got {algorithm.idle.problem} in the algorithm")):
        jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=5)


@pytest.mark.parametrize("action", [kcenter.Pull, kcenter.PairPull, kcenter.Counts])
def test_an_algorithm_for_fewer_nodes_or_another_law_is_refused(action):
    environment, _ = noisy(TABLE, noise_scale=0.1, action=action)
    factory = {kcenter.Pull: kcenter.ns_tands, kcenter.PairPull: kcenter.ns_ts, kcenter.Counts: kcenter.track_and_stop}
    for problem in (kcenter.Distances(5, 3), kcenter.Distances(6, 2), kcenter.Distances(6, 3, "bernoulli")):
        noise_scale = 0.1 if problem.noise == "gaussian" else None
        algorithm = factory[action](problem, delta=0.1, noise_scale=noise_scale)
        with pytest.raises(ValueError, match=r"in the algorithm and Distances\(n=6, k=3, noise='gaussian'\)"):
            jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=5)


def test_an_algorithm_with_other_actions_leap_or_draws_is_refused():
    instance = kcenter.distance_instance(TABLE, k=3, noise_scale=0.1)
    points = kcenter.dimension_instance(FLOATS, k=3)
    pair = kcenter.ns_ts(instance.problem, delta=0.1, noise_scale=0.1)
    one = kcenter.ns_tands(instance.problem, delta=0.1, noise_scale=0.1)
    plain, four = (kcenter.ds_ucb(points.problem, delta=0.1, leap=leap) for leap in (1, 4))
    many, two = (kcenter.ds_random(points.problem, delta=0.1, test_every=count) for count in (4, 2))
    leap = "must have the same leap, got {} in the algorithm and {} in the environment"
    pairs = [
        (pair, kcenter.environment(instance), "action must be of type Pull, as the environment was made"),
        (one, kcenter.environment(instance, pair), "action must be of type PairPull, as the environment was made"),
        (plain, kcenter.environment(instance), "does not answer this algorithm"),
        (four, kcenter.environment(points), leap.format(4, 1)),
        (four, kcenter.environment(points, kcenter.ds_ts(points.problem, delta=0.1, leap=2)), leap.format(4, 2)),
        (plain, kcenter.environment(points, four), leap.format(1, 4)),
        (many, kcenter.environment(points), "action.node must have shape (), as the environment was made"),
        (many, kcenter.environment(points, two), "action.node must have shape (2,), as the environment was made"),
        (plain, kcenter.environment(points, many), "action.node must have shape (4,), as the environment was made"),
    ]
    for algorithm, environment, message in pairs:
        with pytest.raises(ValueError, match=re.escape(message)):
            jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=5)


def test_environment_refuses_an_algorithm_for_the_other_kind_of_instance():
    instance = kcenter.distance_instance(TABLE, k=3, noise_scale=0.1)
    points = kcenter.dimension_instance(FLOATS, k=3)
    several = kcenter.ds_random(points.problem, delta=0.1, test_every=2)
    with pytest.raises(ValueError, match=r"algorithm\.node must have shape \(\), got \(2,\)"):
        kcenter.environment(instance, several)
    with pytest.raises(ValueError, match=r"algorithm must be of type kcenter.Pull, got PairPull"):
        kcenter.environment(points, kcenter.ns_ts(instance.problem, delta=0.1, noise_scale=0.1))
    with pytest.raises(ValueError, match="must be of type kcenter.Pull or kcenter.PairPull or kcenter.Counts, got"):
        kcenter.environment(instance, Pull)
    block = jax.tree.map(lambda x: jnp.broadcast_to(x, (2, 2, *x.shape)), several.idle._replace(node=jnp.int32(6)))
    with pytest.raises(ValueError, match=r"algorithm\.node must have shape \(\) or \(test_every,\), got \(2, 2\)"):
        kcenter.environment(points, block)
