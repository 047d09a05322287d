"""DUETS against its message protocol, its two forms against each other, and its limits."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers import kernel as driver
from drivers.programs import assert_same

import jaxbandits
from experiments.bench.reference import kernel_duets as reference
from jaxbandits import Status, kernel, run
from jaxbandits.engine.run.round import streams
from jaxbandits.kernel._shared.duets_server import (
    HEAD,
    SURVIVORS,
    largest_variance,
    pool,
    tabulate,
    trim,
)
from jaxbandits.numerics import gp

KEY = jax.random.key(0)
N, T, M, NOISE_VARIANCE = 3, 20, 300, 0.04  # 300 candidates: a whole block of the table and a part of one
LENGTHS = (2, 6, 10, 2)
SE = gp.SquaredExponential(0.2)
INSTANCE = kernel.branin(jax.random.key(1), size=M)


@functools.cache
def largest_of_lanes():
    """Computes the largest variance of several lanes, each with a lengthscale, draws and active candidates."""

    def one(lengthscale, indices, size):
        def covariance(i, j):
            points = [INSTANCE.candidates.at[k].get(mode="clip") for k in (i, j)]
            return gp.cross(gp.SquaredExponential(lengthscale), *points)

        active = jnp.arange(M, dtype=jnp.int32)
        drawn = pool(covariance, indices, M)
        table = tabulate(covariance, drawn.slots, drawn.live, active, size)
        weights = jnp.sqrt(drawn.counts.astype(float))
        factor = gp.data_factor(drawn.gram, weights, noise_variance=NOISE_VARIANCE, live=drawn.live)
        scale = weights / NOISE_VARIANCE**0.5
        return largest_variance(factor, scale, table, jnp.ones(M), size)

    return jax.jit(jax.vmap(one))


def test_largest_variance_is_over_all_active_candidates():
    rng = np.random.default_rng(0)
    # Length scale, draws, active candidates; in the second lane every active candidate is drawn.
    lanes = [(0.2, 150, M), (0.03, 200, 200), (0.01, 150, 90), (0.1, 200, 1), (0.2, 40, M), (0.05, 1, M)]
    indices = np.full((len(lanes), 200), M, np.int32)
    for row, (_, draws, size) in zip(indices, lanes, strict=True):
        row[:draws] = rng.permutation(size) if draws == size else rng.integers(0, size, draws)
    scales, _, sizes = (jnp.asarray(column) for column in zip(*lanes, strict=True))
    largest = largest_of_lanes()(scales, jnp.asarray(indices), sizes.astype(jnp.int32))

    remaining = []
    for value, row, (lengthscale, draws, size) in zip(largest, indices, lanes, strict=True):
        points, counts = np.unique(row[:draws], return_counts=True)
        x = np.asarray(INSTANCE.candidates)
        gram = np.exp(-np.sum((x[:, None] - x) ** 2, axis=2) / (2 * lengthscale**2))

        def variances(first, gram=gram, points=points, counts=counts, size=size):
            at, noise = points[:first], NOISE_VARIANCE / counts[:first]
            rows = gram[at][:, :size]
            return 1 - np.sum(rows * np.linalg.solve(gram[np.ix_(at, at)] + np.diag(noise), rows), axis=0)

        largest = variances(len(points)).max()
        np.testing.assert_allclose(value, largest, rtol=1e-10)
        if len(points) > HEAD:
            remaining.append(int(np.sum(variances(HEAD) > largest * (1 + 1e-9))))
    # The lanes have nothing, a part of a block, and more than one block to compute.
    assert min(remaining) == 0
    assert max(remaining) > SURVIVORS
    assert any(0 < count < SURVIVORS for count in remaining)


LANES = 40  # lanes of every call of `whole`, which is compiled once


@functools.cache
def whole():
    """Maps `duets_run` over lanes of (key, hyperparameters, scale of f, sign of the kernel)."""

    def one(key, hyper, scale, sign):
        instance = INSTANCE._replace(values=scale * INSTANCE.values, noise_scale=scale * INSTANCE.noise_scale)
        settings = {
            "n_agents": N,
            "horizon": T,
            "noise_variance": scale**2 * NOISE_VARIANCE,
            "jitter": scale**2 * 1e-10,
        }
        return kernel.duets_run(key, instance, kernel=lambda x, y: sign * scale**2 * SE(x, y), **settings, **hyper)

    return jax.jit(jax.vmap(one))


def lanes(keys, beta, rate, scale=1.0, sign=1.0):
    beta, rate, scale, sign = (jnp.broadcast_to(jnp.asarray(x, float), (LANES,)) for x in (beta, rate, scale, sign))
    return whole()(keys, {"beta": beta, "inducing_rate": rate}, scale, sign)


def test_duets_run_equals_the_run_by_rounds():
    keys = jax.random.split(jax.random.key(3), LANES)
    hyper = {"beta": jnp.asarray([0.2, 0.5, 1.0, 0.5] * 10), "inducing_rate": jnp.asarray([10.0, 0.5, 10.0, 2.0] * 10)}
    result = lanes(keys, hyper["beta"], hyper["inducing_rate"])
    noise_of = kernel.environment(INSTANCE, jnp.full(N, M)).noise
    for lane in range(3):
        ours, one = jax.tree.map(lambda x, lane=lane: x[lane], (result, hyper))
        noise = np.array([noise_of(jax.random.fold_in(streams(keys[lane]).noise, r)) for r in range(T)])
        rewards = np.asarray(INSTANCE.values) + 0.2 * noise[..., None]
        steps = driver.follow(kernel.duets, INSTANCE.candidates, rewards, key=keys[lane], kernel=SE, **one)
        queries, last = np.array([step.action for step in steps]), steps[-1].state
        synchronised = [steps[t - 1].state for t in np.cumsum(LENGTHS[:-1])]
        np.testing.assert_array_equal(ours.actions, queries)
        np.testing.assert_array_equal(ours.sizes, [M, *(state.size for state in synchronised)])
        np.testing.assert_array_equal(ours.answer, last.answer)
        np.testing.assert_allclose(ours.peak, last.peak, rtol=1e-6)
        np.testing.assert_allclose(ours.sigma_max, last.sigma_max, rtol=1e-9)
        gaps = INSTANCE.best - np.asarray(INSTANCE.values)[queries]
        np.testing.assert_allclose(ours.regret, gaps.sum(1).cumsum())
        # Messages belong to the round after which they are sent.
        sent = [[int(x) for x in (*state.traffic, *state.traffic_draws)] for state in synchronised]
        for a, b in zip((*ours.traffic, *ours.traffic_draws), zip(*sent, strict=True), strict=True):
            np.testing.assert_array_equal(a, np.repeat([0, *b], (1, 6, 10, 3)))


def test_duets_run_outside_of_a_trace_equals_the_compiled_one():
    """Checks a call in which JAX knows the trip counts of loops, and counts in another type."""
    instance = kernel.branin(jax.random.key(1), size=20)

    def one(key):
        settings = {"kernel": SE, "n_agents": 2, "horizon": 3, "beta": 1.0, "noise_variance": NOISE_VARIANCE}
        return kernel.duets_run(key, instance, epochs=(2, 1), **settings)

    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-9), one(KEY), jax.jit(one)(KEY))


def test_limits_and_scale():
    wide, greedy, silent, plain, double, indefinite = range(6)
    keys = jax.vmap(lambda i: jax.random.key(3))(jnp.arange(LANES))
    others = [0.5] * (LANES - 6)
    result = lanes(
        keys,
        beta=[1e6, 0.0, 0.5, 0.5, 0.5, 0.5, *others],
        rate=[10.0, 10.0, 1e-12, 1.0, 0.25, 1.0, *others],
        scale=[1.0, 1.0, 1.0, 1.0, 2.0, 1.0, *others],
        sign=[1.0, 1.0, 1.0, 1.0, 1.0, -1.0, *others],
    )
    np.testing.assert_array_equal(result.sizes[wide], M)
    assert result.traffic.uplink[wide, -1] > 0
    np.testing.assert_array_equal(result.sizes[greedy, 1:], 1)
    np.testing.assert_array_equal(result.actions[greedy, -2:], result.answer[greedy])
    np.testing.assert_array_equal(result.sizes[silent], M)
    for numbers in (*result.traffic, *result.traffic_draws):
        np.testing.assert_array_equal(numbers[silent], 0)
    assert result.answer[silent] == 0
    assert result.sizes[plain, -1] < M
    # The kernel and the noise variance times 4, p0 over 4, f and its noise times 2: the same queries.
    np.testing.assert_array_equal(result.actions[double], result.actions[plain])
    np.testing.assert_allclose(result.regret[double], 2 * result.regret[plain])
    # Not a covariance: the factor fails, and the run must not continue from the prior.
    assert np.isnan(result.sigma_max[indefinite])
    assert np.all(np.isfinite(result.peak[:indefinite]))


def test_duets_without_elimination_samples_uniformly():
    keys = jax.random.split(jax.random.key(4), (5, LANES))
    regret = np.ravel([lanes(some, beta=1e6, rate=10.0).regret[:, -1] for some in keys])
    values = np.asarray(INSTANCE.values)
    expected = N * T * (values.max() - values.mean())
    error = np.sqrt(N * T) * values.std() / np.sqrt(regret.size)
    assert abs(regret.mean() - expected) < 4 * error  # false alarm: 6e-5


def test_first_synchronisation_by_hand():
    # 20 draws of 1000 candidates, all inducing points; d = 10.
    lanes_, d = 160, 10

    def one(key):
        instance = kernel.h1(jax.random.fold_in(key, 1), size=1000, dimension=d)
        return kernel.duets_run(
            key,
            instance,
            kernel=kernel.paper_kernel("h1"),
            n_agents=10,
            horizon=3,
            epochs=(2, 1),
            beta=0.5,
            noise_variance=NOISE_VARIANCE,
        )

    result = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(5), lanes_))
    distinct = np.array([len(set(np.ravel(actions[:2]))) for actions in np.asarray(result.actions)])
    uplink, downlink = (np.asarray(numbers) for numbers in result.traffic)
    assert (distinct == 20).any()
    assert (distinct < 20).any()
    np.testing.assert_array_equal(uplink[:, 0], 0)
    np.testing.assert_array_equal(uplink[:, 1], 10 * distinct)
    np.testing.assert_array_equal(downlink[distinct == 20, 1], 221)
    np.testing.assert_array_equal(downlink[:, 2], 11 * distinct + 1)
    np.testing.assert_array_equal(result.traffic_draws.uplink[:, 1], 200)
    np.testing.assert_array_equal(result.traffic_draws.downlink[:, 1], 221)
    cost = uplink[:, 1] / 10 + downlink[:, 1]
    expected = 1000 * (1 - 0.999**20)
    assert abs(expected - 19.81) < 0.005
    assert abs(cost.mean() - (expected * (d + 2) + 1)) < 4 * cost.std() / np.sqrt(lanes_)


@pytest.mark.thorough
@pytest.mark.slow
def test_long_float32_runs_reach_the_horizon():
    # Factors are as large as in a run of the paper: for 220 draws, rounding must leave every pivot positive.
    settings = {"kernel": SE, "n_agents": 10, "horizon": 50, "beta": 0.5, "noise_variance": 1e-2}

    def build(task, key):
        instance = kernel.branin(key, size=2000, dtype="float32")
        algorithm = kernel.duets(instance.candidates, **settings)
        return algorithm, kernel.environment(instance, algorithm)

    results = jaxbandits.sweep(build, seeds=40, key=KEY, max_rounds=51, chunk=51, lanes=1, progress=False)
    np.testing.assert_array_equal(results.columns["status"], Status.STOPPED)
    np.testing.assert_array_equal(results.columns["pulls"], 500)


def test_agent_that_queries_nothing_is_not_counted_and_its_reward_not_read():
    algorithm = kernel.duets(
        INSTANCE.candidates, kernel=SE, n_agents=N, horizon=T, beta=0.5, noise_variance=NOISE_VARIANCE
    )
    partly_idle = jnp.asarray([5, M, 9], jnp.int32)
    state = algorithm.observe(algorithm.init(KEY), partly_idle, jnp.asarray([1.0, jnp.nan, 2.0]))
    assert (state.pulls, state.t) == (2, 1)
    np.testing.assert_array_equal(state.indices[:, 0], partly_idle)
    np.testing.assert_array_equal(state.rewards[:, 0], [1.0, 0.0, 2.0])
    assert_same(algorithm.observe(state, algorithm.idle, jnp.full(N, jnp.nan)), state)


def test_epochs_by_hand():
    assert kernel.epoch_lengths(50) == (2, 10, 22, 16)
    assert kernel.epoch_lengths(500) == (2, 31, 124, 248, 95)
    assert kernel.epoch_lengths(50, 5) == (5, 15, 27, 3)
    assert kernel.epoch_lengths(50, 50) == (50,)
    assert kernel.epoch_lengths(T) == LENGTHS == tuple(reference.epochs(T, 2))
    # T_j = T: a root taken in floating point may fall below.
    assert kernel.epoch_lengths(10**8 + 1, 10**8) == (10**8, 1)


def test_single_epoch_sends_nothing():
    algorithm = kernel.duets(
        INSTANCE.candidates, kernel=SE, n_agents=N, horizon=4, beta=0.5, noise_variance=NOISE_VARIANCE, epochs=4
    )
    outcome = jax.jit(lambda: run(KEY, algorithm, kernel.environment(INSTANCE, algorithm), max_rounds=9, chunk=5))()
    assert (outcome.status, outcome.rounds, outcome.pulls) == (Status.STOPPED, 4, 4 * N)
    assert (outcome.state.traffic.uplink, outcome.state.traffic.downlink, outcome.answer) == (0, 0, 0)
    short = kernel.duets(INSTANCE.candidates, kernel=SE, n_agents=N, horizon=1, beta=0.5, noise_variance=NOISE_VARIANCE)
    assert short.plan is None
    assert short.stale is None


def test_coins_by_hand():
    coins = kernel.Coins(jnp.asarray([[0.5], [0.999999], [0.0]]), jnp.zeros((3, 1)), jnp.zeros((1, 3, 1)))
    algorithm = kernel.duets(
        INSTANCE.candidates, kernel=SE, n_agents=3, horizon=1, beta=0.5, noise_variance=NOISE_VARIANCE, coins=coins
    )
    active = jnp.full(M, M, jnp.int32).at[:3].set(jnp.asarray([3, 7, 9], jnp.int32))
    state = algorithm.init(KEY)._replace(active=active, size=jnp.int32(3))
    np.testing.assert_array_equal(algorithm.decide(KEY, state).action, [7, 9, 3])


def test_trim_by_hand():
    mean, active = jnp.asarray([1.0, 0.7, 0.2, 9.0]), jnp.asarray([True, True, True, False])
    np.testing.assert_array_equal(trim(mean, jnp.asarray(0.5 * 0.5), active), [True, True, False, False])
    sd = jnp.asarray([0.1, 0.6, 0.3, 0.0])
    np.testing.assert_array_equal(trim(mean, 0.5 * sd, active), [True, True, False, False])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beta": jnp.ones(T)}, "beta must be at least 0, got"),
        ({"epochs": 21}, r"epochs must be an integer in \[1, 20\], got 21"),
        ({"epochs": (2, 17)}, r"epochs must hold ints >= 1 summing to 20, got \(2, 17\)"),
        ({"epochs": (20, 0)}, r"epochs must hold ints >= 1 summing to 20, got \(20, 0\)"),
    ],
)
def test_relation_of_arguments_that_fails_is_refused(changes, message):
    arguments = {"kernel": SE, "n_agents": N, "horizon": T, "beta": 0.5, "noise_variance": NOISE_VARIANCE} | changes
    with pytest.raises(ValueError, match=message):
        kernel.duets(INSTANCE.candidates, **arguments)


def test_messages_equal_the_reference():
    """Messages from plain arrays: draws of all agents one by one, and with repeats merged."""
    points, rng = np.asarray(INSTANCE.candidates)[:40], np.random.default_rng(5)
    covariance, noise = reference.squared_exponential(0.2), rng.standard_normal((N, T, 40))
    _, records, _ = reference.duets(
        points,
        lambda n, t, a: noise[n, t, a],
        *rng.random((2, N, T)),
        kernel=covariance,
        beta=5.0,
        noise_variance=NOISE_VARIANCE,
        lengths=LENGTHS,
    )
    assert [bool(record["inducing"]) for record in records] == [True] * 3
    for record in records:
        chosen = points[record["inducing"]]
        lower = np.linalg.cholesky(covariance(chosen, chosen) + 1e-10 * np.eye(len(chosen)))
        agents, indices, rewards, _ = map(np.array, zip(*record["drawn"], strict=True))
        features = np.linalg.solve(lower, covariance(chosen, points[indices]))
        messages = [kernel.agent_message(features[:, agents == n], rewards[agents == n]) for n in range(N)]
        np.testing.assert_allclose(messages, record["messages"], rtol=1e-9, atol=1e-12)
        broadcast = kernel.server_message(features, sum(messages), noise_variance=NOISE_VARIANCE)
        np.testing.assert_allclose(broadcast, record["broadcast"], rtol=1e-6, atol=1e-8)
        distinct, counts = np.unique(indices, return_counts=True)
        merged = np.linalg.solve(lower, covariance(chosen, points[distinct]))
        again = kernel.server_message(merged, sum(messages), noise_variance=NOISE_VARIANCE, counts=counts)
        np.testing.assert_allclose(again, record["broadcast"], rtol=1e-6, atol=1e-8)
