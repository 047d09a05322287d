"""Streams: the environment counts the pulls of each arm, and a reward depends only on the arm and its number."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.programs import wide_except

import jaxbandits
from jaxbandits import Algorithm, Decision, cpe, fullbandit, kcenter, kernel, linear, mab, run

KEY, STREAM = jax.random.key(0), jax.random.key(1)
SOARE = linear.soare(2, 0.4)
BEST = cpe.best5()
POINTS = kcenter.dimension_instance(kcenter.contrast_rows(5, 40, seed=0), k=3)
PLACES = np.array([0.0, 0.3, 0.55, 1.0])
NOISY = kcenter.distance_instance(np.abs(np.subtract.outer(PLACES, PLACES)), k=3, noise_scale=0.2)
JUDGED = kcenter.distance_instance(np.abs(np.subtract.outer(PLACES, PLACES)), k=3, noise="bernoulli")
COUNTS = kcenter.Counts(jnp.zeros((4, 2), jnp.int32), jnp.zeros(2, jnp.int32), NOISY.problem)
VALUES = kernel.tabular(np.arange(4.0)[:, None], np.arange(4.0), noise_scale=0.5)
AGENTS = {"kernel": kernel.paper_kernel("h1"), "horizon": 6, "beta": 1.0, "noise_variance": 0.25, "n_agents": 2}
DESIGN = fullbandit.make_design(fullbandit.cyclic_support(5, 3), 3)
ARMS, ONES = mab.gauss4(), mab.gk1()
TOP3 = fullbandit.synthetic(0, 5, 3, 0.3)
ALLOCATION = linear.Allocation(jnp.zeros(3, int))
BRIDGE = linear.Bridge(jnp.zeros(3, int), jnp.zeros(3, int), jnp.zeros(3))
LEAPING = linear.lingape(SOARE.arms, delta=0.1, leap=2)


class Case(NamedTuple):
    algorithm: jaxbandits.Algorithm
    environment: jaxbandits.Environment
    counts: Callable  # (state) -> earlier pulls of each arm, as the environment counts them


NAMES = ("lingape", "xy_adaptive", "coci", "clucb", "cts", "icb", "ds_random", "ns_ts", "ns_random", "n_kernel_ucb")
NAMES += ("ttucb", "kl_lucb", "successive_rejects")
ALWAYS = ("lingape", "coci", "icb", "n_kernel_ucb", "ttucb")


@functools.cache
def cases():
    return {
        "lingape": Case(
            linear.lingape(SOARE.arms, delta=0.1, leap=64),
            linear.environment(SOARE, stream=STREAM),
            lambda state: state.counts,
        ),
        "xy_adaptive": Case(
            linear.xy_adaptive(SOARE.arms, delta=0.1, design_steps=20),
            linear.environment(SOARE, ALLOCATION, stream=STREAM),
            lambda state: state.counts,
        ),
        "coci": Case(
            cpe.coci(BEST.problem, delta=0.1, leap=4),
            cpe.environment(BEST, cpe.coci(BEST.problem, delta=0.1, leap=4), stream=STREAM),
            lambda state: state.statistics.counts,
        ),
        "clucb": Case(
            cpe.clucb(BEST.problem, delta=0.1),
            cpe.environment(BEST, stream=STREAM),
            lambda state: state.statistics.counts,
        ),
        "cts": Case(
            cpe.cts(BEST.problem),
            cpe.environment(BEST, cpe.cts(BEST.problem), stream=STREAM),
            lambda state: state.counts,
        ),
        "icb": Case(
            fullbandit.icb(DESIGN, delta=0.1, epsilon=0.1),
            fullbandit.environment(TOP3, fullbandit.icb(DESIGN, delta=0.1, epsilon=0.1), stream=STREAM),
            lambda state: state.counts,
        ),
        "ds_random": Case(
            kcenter.ds_random(POINTS.problem, delta=0.1, test_every=3),
            kcenter.environment(POINTS, kcenter.ds_random(POINTS.problem, delta=0.1, test_every=3), stream=STREAM),
            lambda state: state.counts,
        ),
        "ns_ts": Case(
            kcenter.ns_ts(NOISY.problem, delta=0.1, noise_scale=0.2),
            kcenter.environment(NOISY, kcenter.ns_ts(NOISY.problem, delta=0.1, noise_scale=0.2), stream=STREAM),
            lambda state: state.samples.counts,
        ),
        "ns_random": Case(
            kcenter.ns_random(NOISY.problem, delta=0.1, noise_scale=0.2, test_every=4),
            kcenter.environment(NOISY, COUNTS, stream=STREAM),
            lambda state: state.samples.counts,
        ),
        "n_kernel_ucb": Case(
            kernel.n_kernel_ucb(VALUES.candidates, **AGENTS),
            kernel.environment(VALUES, kernel.n_kernel_ucb(VALUES.candidates, **AGENTS), stream=STREAM),
            lambda state: state.t,
        ),
        "ttucb": Case(
            mab.ttucb(ARMS.problem, delta=0.1), mab.environment(ARMS, stream=STREAM), lambda state: state.counts
        ),
        "kl_lucb": Case(
            mab.kl_lucb(ONES.problem, delta=0.1),
            mab.environment(ONES, mab.kl_lucb(ONES.problem, delta=0.1), stream=STREAM),
            lambda state: state.counts,
        ),
        "successive_rejects": Case(
            mab.successive_rejects(ARMS.problem, horizon=200, leap=30),
            mab.environment(ARMS, mab.successive_rejects(ARMS.problem, horizon=200, leap=30), stream=STREAM),
            lambda state: state.counts,
        ),
    }


@pytest.mark.parametrize("name", wide_except(NAMES, *ALWAYS))
def test_memory_counts_the_pulls_of_each_arm(name):
    case = cases()[name]
    end = jax.jit(lambda: run(KEY, case.algorithm, case.environment, max_rounds=6 if name == "n_kernel_ucb" else 12))()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(end.state) if leaf.dtype.kind == "f")
    np.testing.assert_array_equal(end.memory, case.counts(end.state))
    assert end.memory.sum() >= 6


class TwoSlots(NamedTuple):
    pulls: jax.Array
    sums: jax.Array


def test_slots_of_one_arm_pay_its_next_rewards():
    """A user's algorithm may name one arm twice in a round; the library's never do."""
    once, idle = jnp.ones(2, jnp.int32), mab.Pull(jnp.zeros(2, jnp.int32), jnp.zeros(2, jnp.int32))
    zero = TwoSlots(jnp.zeros((), int), jnp.zeros(2))

    def observe(state, pull, rewards):
        return TwoSlots(state.pulls + pull.times.sum(), jnp.where(pull.times.sum() > 0, rewards.sums, state.sums))

    def rewards(arms, rounds):
        decision = Decision(mab.Pull(jnp.int32(arms), once), jnp.zeros((), bool), jnp.int32(0))
        algorithm = Algorithm(lambda key: zero, lambda key, state: decision, observe, idle)
        environment = mab.environment(ARMS, algorithm, stream=STREAM)
        return jaxbandits.trace(KEY, algorithm, environment, rounds=rounds).observations.sums

    np.testing.assert_array_equal(rewards([1, 1], 2).ravel(), rewards([1, 0], 4)[:, 0])


@pytest.fixture(scope="module")
def linear_sums():
    """Returns the rewards of pulls of arm 1: one by one, the same ones together, and all arms at once."""
    single, many = (linear.environment(SOARE, action, stream=STREAM) for action in (None, ALLOCATION))

    @jax.jit
    def sums():
        def pull(before, times):
            return single.respond(jnp.full(3, before), linear.Pull(jnp.ones((), int), times), ())[0]

        ones = jax.vmap(pull, (0, None))(jnp.arange(40), jnp.ones((), int))
        counts = jnp.array([3, 25, 0])
        together, _ = many.respond(jnp.array([0, 15, 7]), linear.Allocation(counts), ())
        return ones, pull(jnp.array(10), jnp.array(30)), together

    return jax.tree.map(np.asarray, sums())


def test_stream_pays_equal_sums_for_single_and_joint_pulls(linear_sums):
    ones, thirty, together = linear_sums
    np.testing.assert_allclose(thirty, ones[10:].sum(), rtol=1e-10)
    np.testing.assert_allclose(together[1], ones[15:].sum(), rtol=1e-10)
    assert together[2] == 0
    assert together[0] != 0


def test_stream_makes_leaps_equal_single_pulls():
    """Leaps on fresh noise only have the law of single pulls; leaps on a stream are the same run."""

    def ends(leap):
        algorithm = linear.lingape(SOARE.arms, delta=0.1, leap=leap)

        def end(key):
            outcome = run(key, algorithm, linear.environment(SOARE, stream=key), max_rounds=20_000)
            return outcome.state.counts, outcome.rounds

        return jax.device_get(jax.jit(jax.vmap(end))(jax.random.split(KEY, 4)))

    (single, rounds), (leaping, fewer) = ends(1), ends(256)
    np.testing.assert_array_equal(single, leaping)
    assert (fewer < rounds).all()


def test_stream_of_signs_depends_on_the_number_alone():
    instance = linear.canonical(0.5, 2)
    environment = linear.environment(instance, noise="sign", stream=STREAM)

    @jax.jit
    @jax.vmap
    def signs(before):
        action = linear.Pull(jnp.zeros((), int), jnp.ones((), int))
        return environment.respond(jnp.full(2, before), action, ())[0]

    once, again = signs(jnp.arange(2000)), signs(jnp.arange(2000)[::-1])
    np.testing.assert_array_equal(once, again[::-1])
    assert abs(np.mean(once) - 0.5) < 5 * np.sqrt(0.75 / 2000)


def test_stream_of_a_pair_of_nodes_is_symmetric():
    """The reward does not depend on which node is the center, or on its slot."""
    n = NOISY.problem.n
    for instance in (NOISY, JUDGED):
        respond = jax.jit(kcenter.environment(instance, stream=STREAM).respond)

        def reward(node, slot, centers, before, respond=respond, problem=instance.problem):
            action = kcenter.Pull(
                *map(jnp.int32, (node, slot)), jnp.asarray(centers, jnp.int32), jnp.zeros((), bool), problem
            )
            return respond(jnp.full((4, 2), before, jnp.int32), action, ())[0]

        assert reward(1, 0, [2, 0], 3) == reward(2, 1, [3, 1], 3)
    assert reward(n, 0, [2, 0], 0).shape == ()
    several = kcenter.environment(NOISY, COUNTS, stream=STREAM)
    counts = COUNTS._replace(pulls=COUNTS.pulls.at[1, 0].set(5), centers=jnp.array([2, 0], jnp.int32))
    sums, _ = several.respond(several.init(KEY), counts, ())
    respond = jax.jit(kcenter.environment(NOISY, stream=STREAM).respond)
    pull = kcenter.Pull(*map(jnp.int32, (1, 0)), counts.centers, jnp.zeros((), bool), NOISY.problem)
    ones = [respond(jnp.full((4, 2), i, jnp.int32), pull, ())[0] for i in range(5)]
    np.testing.assert_allclose(sums[1, 0], sum(ones), rtol=1e-10)


def test_stream_noise_of_an_agent_does_not_depend_on_its_query():
    respond = jax.jit(kernel.environment(VALUES, jnp.full(3, 4), stream=STREAM).respond)
    t = jnp.int32(4)
    a, b = (np.asarray(respond(t, jnp.int32(q), ())[0]) for q in ([0, 1, 2], [3, 1, 0]))
    np.testing.assert_allclose(a - [0, 1, 2], b - [3, 1, 0], atol=1e-14)
    assert len(np.unique(a - [0, 1, 2])) == 3
    fewer, _ = kernel.environment(VALUES, jnp.full(2, 4), stream=STREAM).respond(t, jnp.int32([0, 1]), ())
    np.testing.assert_allclose(fewer, a[:2], atol=1e-14)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear.environment(SOARE, BRIDGE, stream=STREAM), "stream must be None for a Bridge"),
        (lambda: linear.environment(SOARE, LEAPING, noise="sign", stream=STREAM), "stream must be None for a Bridge"),
        (lambda: fullbandit.environment(TOP3, DESIGN, noise="bernoulli", stream=STREAM), "stream must be None|theta"),
        (lambda: kcenter.environment(JUDGED, COUNTS, stream=STREAM), "stream must be None for binomial"),
        (
            lambda: kcenter.environment(POINTS, kcenter.ds_ucb(POINTS.problem, delta=0.1, leap=2), stream=STREAM),
            "stream must be None for leaps, of whose samples",
        ),
    ],
)
def test_unsupported_stream_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
