"""ApproxDisKernelUCB in its limits, and by hand."""

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import Status, kernel, run
from jaxbandits.engine.run.loop import ask
from jaxbandits.numerics.gp import cross

M, N, T, D = 60, 4, 24, 2
NOISE_VARIANCE = 0.04
KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
POINTS = jnp.asarray(RNG.random((M, D)))
VALUES = jnp.asarray(np.sin(5 * POINTS[:, 0]) + POINTS[:, 1] ** 2)


class Numbers(NamedTuple):
    """Arguments of the compiled program."""

    points: jax.Array = POINTS
    gram: jax.Array | None = None
    lengthscale: float = 0.3
    scale: float = 1.0
    beta: float | np.ndarray = 0.7
    noise_variance: float = NOISE_VARIANCE
    threshold: float = 40.0
    oversampling: float = 1.0
    jitter: float = 1e-10

    def kernel(self, x, y):
        return self.scale * kernel.squared_exponential(x, y, lengthscale=self.lengthscale)


class Tape(NamedTuple):
    coins: kernel.Coins
    rewards: jax.Array  # float (T, N, M)


class Step(NamedTuple):
    action: np.ndarray
    due: bool  # True if a synchronisation followed the round
    state: NamedTuple  # after it
    answer: int


def tape(seed, agents=N):
    rng = np.random.default_rng(seed)
    shapes = (agents, T), (agents, T), (T, agents, T)
    noise = 0.2 * rng.standard_normal((T, agents, 1))
    return Tape(kernel.Coins(*(jnp.asarray(rng.random(shape)) for shape in shapes)), VALUES + jnp.asarray(noise))


TAPE = tape(1)


def build(numbers, coins=None, **static):
    options = {"kernel": numbers.kernel, "n_agents": N, "horizon": T} | static
    points, gram, _, _, *options_of = numbers
    names = ("beta", "noise_variance", "threshold", "oversampling", "jitter")
    return kernel.approx_dis_kernel_ucb(
        points, gram=gram, coins=coins, **dict(zip(names, options_of, strict=True)), **options
    )


def arrays(**numbers):
    numbers = Numbers(**numbers)
    return jax.tree.map(jnp.asarray, numbers._replace(beta=np.broadcast_to(numbers.beta, (T,)).astype(float)))


@functools.partial(jax.jit, static_argnames="agents")
def one_round(tape, numbers, state, agents):
    algorithm = build(numbers, tape.coins, n_agents=agents)
    decision = algorithm.decide(KEY, state)
    rewards = jnp.take_along_axis(tape.rewards[state.t], decision.action[:, None], axis=1)[:, 0]
    state = algorithm.observe(state, decision.action, rewards)
    return decision, algorithm.stale(state), state


@functools.partial(jax.jit, static_argnames="agents")
def planned(tape, numbers, state, agents):
    algorithm = build(numbers, tape.coins, n_agents=agents)
    return ask(algorithm, KEY, state)


@jax.jit
def waited(numbers, state):
    algorithm = build(numbers)
    return algorithm.observe(state, algorithm.idle, jnp.ones(N))


def replay(tape, waits=False, **numbers):
    """Replays the run of a tape."""
    agents, numbers = len(tape.coins.queries), arrays(**numbers)
    state, steps = build(numbers, tape.coins, n_agents=agents).init(KEY), []
    for _ in range(T):
        if waits:
            state = waited(numbers, state)
        decision, due, state = one_round(tape, numbers, state, agents)
        assert not decision.stop
        if waits:
            state = waited(numbers, waited(numbers, state))
        state, after = planned(tape, numbers, state, agents)
        same(planned(tape, numbers, state, agents)[0], state)
        steps.append(Step(np.asarray(decision.action), bool(due), state, int(after.answer)))
    assert after.stop
    return steps


def same(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)


def test_first_synchronisation_by_hand():
    # k = 1 and noise variance 0.04: one query spends 25 > 20, and every query is an inducing point. The 4 coins differ.
    first = replay(TAPE, threshold=20.0)[0]
    assert first.due
    assert len(set(first.action)) == N
    assert first.state.traffic.uplink == N * (D + N**2 + N)
    assert first.state.traffic.downlink == N * D + N**2 + N
    assert not replay(TAPE, threshold=25.5)[0].due


def test_ten_distinct_points_in_ten_dimensions():
    # In float32: everything stays in it.
    points = jnp.asarray(np.random.default_rng(5).random((10, 10)), jnp.float32)
    uniforms = jnp.tile((jnp.arange(10, dtype=jnp.float32)[:, None] + 0.5) / 10, (1, 2))
    coins = kernel.Coins(uniforms, uniforms, jnp.zeros((2, 10, 2), jnp.float32))
    unit = functools.partial(kernel.squared_exponential, lengthscale=1.0)
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
    steps = replay(TAPE, threshold=np.inf)
    assert not any(step.due for step in steps)
    queries = np.stack([step.action for step in steps], axis=1)
    np.testing.assert_array_equal(queries, np.floor(np.asarray(TAPE.coins.queries) * M))
    last = steps[-1]
    assert last.state.traffic.uplink == last.state.traffic.downlink == last.answer == 0


def test_posterior_with_every_query_inducing_is_exact():
    # The lengthscale makes points nearly independent; the jitter is negligible.
    numbers = {"lengthscale": 0.05, "jitter": 1e-14}
    gram = np.asarray(cross(Numbers(**numbers).kernel, POINTS, POINTS))
    compared = 0
    for t, (_, due, state, _) in enumerate(replay(TAPE, threshold=3.0, oversampling=1e12, **numbers)):
        if due:
            queried = np.asarray(state.queries[:, : t + 1]).ravel()
            assert state.inducing == len(set(queried))
            mean, variance = exact(gram, queried, np.asarray(state.rewards[:, : t + 1]).ravel())
            np.testing.assert_allclose(state.mean, np.tile(mean, (N, 1)), atol=1e-9)
            np.testing.assert_allclose(state.shared_variance, variance, atol=1e-9)
            compared += 1
    assert compared >= 3


def test_waiting_and_idling_change_nothing():
    for one, other in zip(replay(TAPE), replay(TAPE, waits=True), strict=True):
        np.testing.assert_array_equal(one.action, other.action)
        same(one.state, other.state)


def test_a_permutation_of_the_candidates_permutes_the_queries():
    order = np.random.default_rng(3).permutation(M)
    plain = replay(TAPE)
    uniforms, start = np.array(TAPE.coins.queries), 1 + next(t for t, step in enumerate(plain) if step.due)
    for t in range(start):  # A coin picks an index, not a point.
        uniforms[:, t] = (np.argsort(order)[plain[t].action] + 0.5) / M
    moved = Tape(TAPE.coins._replace(queries=jnp.asarray(uniforms)), TAPE.rewards[:, :, order])
    for one, other in zip(plain, replay(moved, points=POINTS[order]), strict=True):
        np.testing.assert_array_equal(one.action, order[other.action])
        assert one.state.traffic == other.state.traffic


def test_variance_falls_with_an_agents_own_data():
    fallen = 0
    for one, other in itertools.pairwise(replay(TAPE)):
        if not other.due:
            assert np.all(other.state.variance <= one.state.variance)
            fallen += bool(np.any(other.state.variance < one.state.variance))
    assert fallen >= 10


@jax.jit
def three_lanes(keys, betas, thresholds, oversampling):
    """Runs lanes with a capacity of 16 inducing points, which wait for each other."""
    instance = kernel.tabular(POINTS, VALUES, noise_scale=0.2)

    def one(key, beta, threshold, oversampling):
        numbers = Numbers(beta=beta, threshold=threshold, oversampling=oversampling)
        algorithm = build(numbers, max_inducing=16)
        environment = kernel.environment(instance, algorithm)
        return run(key, algorithm, environment, max_rounds=T, chunk=10, axis_name="lanes")

    return jax.vmap(one, axis_name="lanes")(keys, betas, thresholds, oversampling)


KEYS, BETAS = jax.random.split(KEY, 3), jnp.asarray([0.2, 1.0, 3.0])


def test_lanes_that_wait_for_each_other_equal_single_runs():
    usual = np.full(3, 20.0), np.full(3, 0.05)
    together = three_lanes(KEYS, BETAS, *usual)
    np.testing.assert_array_equal(together.status, Status.STOPPED)
    np.testing.assert_array_equal(together.pulls, N * T)
    assert len(set(np.asarray(together.state.traffic.uplink).tolist())) == 3
    assert np.all(together.state.inducing > 0)
    for i in range(3):
        alone = three_lanes(KEYS[jnp.full(3, i)], BETAS[jnp.full(3, i)], *usual)  # all are due at the same time
        for name in ("queries", "rewards", "trigger", "mean", "variance", "traffic"):
            same(*(jax.tree.map(lambda x, i=i: x[i], getattr(runs.state, name)) for runs in (together, alone)))


def test_inducing_points_beyond_the_capacity_end_as_nonfinite():
    # The second lane explores, and makes each of its points an inducing point in every round.
    explores = np.array([False, True, False])
    runs = three_lanes(
        KEYS, jnp.where(explores, 100.0, BETAS), np.where(explores, 1e-3, 20.0), np.where(explores, 1e12, 0.05)
    )
    np.testing.assert_array_equal(runs.status, [Status.STOPPED, Status.NONFINITE, Status.STOPPED])
