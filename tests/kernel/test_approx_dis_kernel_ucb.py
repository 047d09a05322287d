"""ApproxDisKernelUCB in its limits, and by hand."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from drivers import kernel as driver
from drivers.programs import assert_same

from jaxbandits import Status, kernel, run
from jaxbandits.numerics.gp import cross

M, N, T, D = 60, 4, 24, 2
NOISE_VARIANCE = 0.04
KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
POINTS = jnp.asarray(RNG.random((M, D)))
VALUES = jnp.asarray(np.sin(5 * POINTS[:, 0]) + POINTS[:, 1] ** 2)
SE = kernel.SquaredExponential(0.3)
TAPE_RNG = np.random.default_rng(1)
COINS = kernel.Coins(*(jnp.asarray(TAPE_RNG.random(shape)) for shape in ((N, T), (N, T), (T, N, T))))
REWARDS = VALUES + jnp.asarray(0.2 * TAPE_RNG.standard_normal((T, N, 1)))


def follow(points=POINTS, rewards=REWARDS, coins=COINS, of=SE, **numbers):
    numbers = {"beta": 0.7, "threshold": 40.0, "oversampling": 1.0, "jitter": 1e-10} | numbers
    return driver.follow(kernel.approx_dis_kernel_ucb, points, rewards, coins, kernel=of, **numbers)


def synchronised(steps):
    """Returns True for every round after which messages were sent."""
    return np.diff([int(step.state.traffic.uplink) for step in steps], prepend=0) > 0


def test_first_synchronisation_by_hand():
    # k = 1 and noise variance 0.04: one query spends 25 > 20, and every query is an inducing point. The 4 coins differ.
    steps = follow(threshold=20.0)
    first = steps[0]
    assert synchronised(steps)[0]
    assert len(set(first.action)) == N
    assert first.state.traffic.uplink == N * (D + N**2 + N)
    assert first.state.traffic.downlink == N * D + N**2 + N
    assert not synchronised(follow(threshold=25.5))[0]


def test_ten_distinct_points_in_ten_dimensions():
    # In float32: everything stays in it.
    points = jnp.asarray(np.random.default_rng(5).random((10, 10)), jnp.float32)
    uniforms = jnp.tile((jnp.arange(10, dtype=jnp.float32)[:, None] + 0.5) / 10, (1, 2))
    coins = kernel.Coins(uniforms, uniforms, jnp.zeros((2, 10, 2), jnp.float32))
    unit = kernel.SquaredExponential(1.0)
    algorithm = kernel.approx_dis_kernel_ucb(
        points, kernel=unit, n_agents=10, horizon=2, beta=1.0, noise_variance=NOISE_VARIANCE, coins=coins
    )
    start = jax.jit(algorithm.init)(KEY)
    action = jax.jit(algorithm.decide)(KEY, start).action
    np.testing.assert_array_equal(action, np.arange(10))
    rewards = jnp.arange(10, dtype=jnp.float32)
    observed = jax.jit(algorithm.observe)(start, action, rewards)
    assert algorithm.stale(observed)
    state = jax.jit(algorithm.plan)(KEY, observed)
    assert (state.traffic.uplink / 10, state.traffic.downlink) == (120, 210)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), state) == jax.tree.map(lambda x: (x.shape, x.dtype), start)
    mean, variance = exact(np.asarray(cross(unit, points, points), float), range(10), np.arange(10.0))
    np.testing.assert_allclose(state.shared_mean, mean, atol=2e-4)
    np.testing.assert_allclose(state.shared_variance, variance, atol=1e-5)


def exact(gram, queries, rewards):
    queries = list(queries)
    inverse = np.linalg.inv(gram[np.ix_(queries, queries)] + NOISE_VARIANCE * np.eye(len(queries)))
    return gram[:, queries] @ inverse @ rewards, np.diag(gram - gram[:, queries] @ inverse @ gram[queries])


def test_infinite_threshold_never_synchronises():
    steps = follow(threshold=np.inf)
    queries = np.stack([step.action for step in steps], axis=1)
    np.testing.assert_array_equal(queries, np.floor(np.asarray(COINS.queries) * M))
    last = steps[-1]
    assert last.state.traffic.uplink == last.state.traffic.downlink == last.answer == 0


def test_posterior_with_every_query_inducing_is_exact():
    # The lengthscale makes points nearly independent; the jitter is negligible.
    narrow = kernel.SquaredExponential(0.05)
    gram = np.asarray(cross(narrow, POINTS, POINTS))
    steps = follow(of=narrow, threshold=3.0, oversampling=1e12, jitter=1e-14)
    compared = 0
    for t, is_synchronised in enumerate(synchronised(steps)):
        if is_synchronised:
            state = steps[t].state
            queried = np.asarray(state.queries[:, : t + 1]).ravel()
            assert state.inducing == len(set(queried))
            mean, variance = exact(gram, queried, np.asarray(state.rewards[:, : t + 1]).ravel())
            np.testing.assert_allclose(state.mean, np.tile(mean, (N, 1)), atol=1e-9)
            np.testing.assert_allclose(state.shared_variance, variance, atol=1e-9)
            compared += 1
    assert compared >= 3


def test_idle_changes_no_bit():
    numbers = {"beta": 0.7, "noise_variance": NOISE_VARIANCE, "threshold": 40.0}
    algorithm = kernel.approx_dis_kernel_ucb(POINTS, kernel=SE, n_agents=N, horizon=T, coins=COINS, **numbers)
    steps, observe = follow(), jax.jit(algorithm.observe)
    for t in (int(np.argmax(synchronised(steps))), T // 2, T - 1):
        assert_same(observe(steps[t].state, algorithm.idle, jnp.ones(N)), steps[t].state)


def test_a_permutation_of_the_candidates_permutes_the_queries():
    order = np.random.default_rng(3).permutation(M)
    plain = follow()
    uniforms, start = np.array(COINS.queries), 1 + int(np.argmax(synchronised(plain)))
    for t in range(start):  # A coin picks an index, not a point.
        uniforms[:, t] = (np.argsort(order)[plain[t].action] + 0.5) / M
    moved = follow(POINTS[order], REWARDS[:, :, order], COINS._replace(queries=jnp.asarray(uniforms)))
    for one, other in zip(plain, moved, strict=True):
        np.testing.assert_array_equal(one.action, order[other.action])
        assert one.state.traffic == other.state.traffic


def test_variance_falls_with_an_agents_own_data():
    fallen = 0
    steps = follow()
    for (one, other), is_synchronised in zip(itertools.pairwise(steps), synchronised(steps)[1:], strict=True):
        if not is_synchronised:
            assert np.all(other.state.variance <= one.state.variance)
            fallen += bool(np.any(other.state.variance < one.state.variance))
    assert fallen >= 10


def test_inducing_points_beyond_the_capacity_end_as_nonfinite():
    # The second lane explores, and makes each of its points an inducing point in every round.
    explores = np.array([False, True, False])
    instance = kernel.tabular(POINTS, VALUES, noise_scale=0.2)

    def one(key, beta, threshold, oversampling):
        numbers = {"beta": beta, "threshold": threshold, "oversampling": oversampling, "noise_variance": NOISE_VARIANCE}
        algorithm = kernel.approx_dis_kernel_ucb(POINTS, kernel=SE, n_agents=N, horizon=T, max_inducing=16, **numbers)
        environment = kernel.environment(instance, algorithm)
        return run(key, algorithm, environment, max_rounds=T, chunk=10, axis_name="lanes")

    numbers = np.where(explores, 100.0, 1.0), np.where(explores, 1e-3, 20.0), np.where(explores, 1e12, 0.05)
    runs = jax.jit(jax.vmap(one, axis_name="lanes"))(jax.random.split(KEY, 3), *numbers)
    np.testing.assert_array_equal(runs.status, [Status.STOPPED, Status.NONFINITE, Status.STOPPED])
