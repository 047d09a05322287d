"""Numbered pulls: earlier pulls are counted, and a stream's reward depends only on the arm and the number."""

import collections
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxbandits
from jaxbandits import Numbered, cpe, fullbandit, kcenter, kernel, linear, mab, numbered, run

KEY, STREAM = jax.random.key(0), jax.random.key(1)
SOARE = linear.soare(2, 0.4)
BEST = cpe.best5()
POINTS = kcenter.dimension_instance(kcenter.contrast_rows(5, 40, seed=0), k=3)
PLACES = np.array([0.0, 0.3, 0.55, 1.0])
NOISY = kcenter.distance_instance(np.abs(np.subtract.outer(PLACES, PLACES)), k=3, noise_scale=0.2)
JUDGED = kcenter.distance_instance(np.abs(np.subtract.outer(PLACES, PLACES)), k=3, noise="bernoulli")
VALUES = kernel.tabular(np.arange(4.0)[:, None], np.arange(4.0), noise_scale=0.5)
AGENTS = {"kernel": kernel.paper_kernel("h1"), "horizon": 6, "beta": 1.0, "noise_variance": 0.25, "n_agents": 2}
DESIGN = fullbandit.make_design(fullbandit.cyclic_support(5, 3), 3)
ARMS, ONES = mab.gauss4(), mab.gk1()
TOP3 = fullbandit.synthetic(0, 5, 3, 0.3)


class Case(NamedTuple):
    algorithm: jaxbandits.Algorithm
    environment: jaxbandits.Environment
    parts: Callable  # (action, before) -> (arm, number of its first pull, pulls), for each arm


def by_arm(counts, before):
    return zip(range(counts.size), before.ravel(), counts.ravel(), strict=True)


def by_node(n):
    def parts(action, before):
        arms = zip(*map(np.atleast_1d, (action.node, action.slot, before)), strict=True)
        return [((node, slot), number, 1) for node, slot, number in arms if node < n and slot < 2]

    return parts


def by_slot(pulls, before):
    return [(arm, number, 1) for arm, number in zip(pulls.arms, before, strict=True) if arm < 5]


def by_times(pull, before):
    return list(zip(pull.arms, before, pull.times, strict=True))


NAMES = ("lingape", "xy_adaptive", "coci", "clucb", "icb", "ds_random", "ns_ts", "ns_random", "n_kernel_ucb")
NAMES += ("ttucb", "kl_lucb", "successive_rejects")


@functools.cache
def cases():
    return {
        "lingape": Case(
            linear.lingape(SOARE.arms, delta=0.1, leap=64),
            linear.environment(SOARE, stream=STREAM),
            lambda pull, before: [(int(pull.arm), before, pull.times)],
        ),
        "xy_adaptive": Case(
            linear.xy_adaptive(SOARE.arms, delta=0.1, design_steps=20),
            linear.environment(SOARE, linear.Allocation, stream=STREAM),
            lambda allocation, before: by_arm(allocation.counts, before),
        ),
        "coci": Case(cpe.coci(BEST.problem, delta=0.1, leap=4), cpe.environment(BEST, leap=4, stream=STREAM), by_slot),
        "clucb": Case(cpe.clucb(BEST.problem, delta=0.1), cpe.environment(BEST, stream=STREAM), by_slot),
        "icb": Case(
            fullbandit.icb(DESIGN, delta=0.1, epsilon=0.1),
            fullbandit.environment(TOP3, DESIGN, stream=STREAM),
            lambda pulls, before: by_arm(pulls.counts, before),
        ),
        "ds_random": Case(
            kcenter.ds_random(POINTS.problem, delta=0.1, test_every=3),
            kcenter.environment(POINTS, test_every=3, stream=STREAM),
            by_node(5),
        ),
        "ns_ts": Case(
            kcenter.ns_ts(NOISY.problem, delta=0.1, noise_scale=0.2),
            kcenter.environment(NOISY, stream=STREAM),
            by_node(4),
        ),
        "ns_random": Case(
            kcenter.ns_random(NOISY.problem, delta=0.1, noise_scale=0.2, test_every=4),
            kcenter.environment(NOISY, action=kcenter.Counts, stream=STREAM),
            lambda counts, before: by_arm(counts.pulls, before),
        ),
        "n_kernel_ucb": Case(
            kernel.n_kernel_ucb(VALUES.candidates, **AGENTS),
            kernel.environment(VALUES, n_agents=2, stream=STREAM),
            lambda queries, before: [("both agents", before, int((queries < 4).all()))],
        ),
        "ttucb": Case(mab.ttucb(ARMS.problem, delta=0.1), mab.environment(ARMS, stream=STREAM), by_times),
        "kl_lucb": Case(mab.kl_lucb(ONES.problem, delta=0.1), mab.environment(ONES, slots=2, stream=STREAM), by_times),
        "successive_rejects": Case(
            mab.successive_rejects(ARMS.problem, horizon=200, leap=30),
            mab.environment(ARMS, leap=30, stream=STREAM),
            by_times,
        ),
    }


def tape(case, rounds):
    """Returns actions and observations of `rounds` rounds, as NumPy arrays. Due plans are made."""
    algorithm = numbered(case.algorithm)

    def one_round(state, key):
        state, decision = jaxbandits.ask(algorithm, key, state)
        observation = case.environment.respond(decision.action, case.environment.noise(key))
        return algorithm.observe(state, decision.action, observation), (decision.action, observation)

    scan = jax.jit(lambda: lax.scan(one_round, algorithm.init(KEY), jax.random.split(KEY, rounds))[1])
    return jax.tree.map(np.asarray, scan())


@pytest.mark.parametrize("name", NAMES)
def test_numbered_actions_count_earlier_pulls(name):
    case = cases()[name]
    actions, observations = tape(case, 6 if name == "n_kernel_ucb" else 12)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(observations))
    pulled = collections.Counter()
    for r in range(len(jax.tree.leaves(actions)[0])):
        action, before = (jax.tree.map(lambda x, r=r: x[r], part) for part in actions)
        for arm, number, pulls in list(case.parts(action, before)):
            assert pulls == 0 or number == pulled[arm], (r, arm)
            pulled[arm] += pulls
    assert sum(pulled.values()) >= 6


@pytest.fixture(scope="module")
def linear_sums():
    """Returns the rewards of pulls of arm 1: one by one, the same ones together, and all arms at once."""
    single, many = (linear.environment(SOARE, kind, stream=STREAM) for kind in (linear.Pull, linear.Allocation))

    @jax.jit
    def sums():
        def pull(before, times):
            return single.respond(Numbered(linear.Pull(jnp.ones((), int), times), before), ())

        ones = jax.vmap(pull, (0, None))(jnp.arange(40), jnp.ones((), int))
        counts = jnp.array([3, 25, 0])
        together = many.respond(Numbered(linear.Allocation(counts), jnp.array([0, 15, 7])), ())
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
        algorithm = numbered(linear.lingape(SOARE.arms, delta=0.1, leap=leap))

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
        return environment.respond(Numbered(action, before), ())

    once, again = signs(jnp.arange(2000)), signs(jnp.arange(2000)[::-1])
    np.testing.assert_array_equal(once, again[::-1])
    assert abs(np.mean(once) - 0.5) < 5 * np.sqrt(0.75 / 2000)


def test_stream_of_a_pair_of_nodes_is_symmetric():
    """The reward does not depend on which node is the center, or on its slot."""
    n = NOISY.problem.n
    for instance, kind in ((NOISY, kcenter.Pull), (JUDGED, kcenter.Pull)):
        respond = jax.jit(kcenter.environment(instance, action=kind, stream=STREAM).respond)

        def reward(node, slot, centers, before, respond=respond, problem=instance.problem):
            action = kcenter.Pull(
                *map(jnp.int32, (node, slot)), jnp.asarray(centers, jnp.int32), jnp.zeros((), bool), problem
            )
            return respond(Numbered(action, jnp.int32(before)), ())

        assert reward(1, 0, [2, 0], 3) == reward(2, 1, [3, 1], 3)
    assert reward(n, 0, [2, 0], 0).shape == ()
    several = kcenter.environment(NOISY, action=kcenter.Counts, stream=STREAM)
    counts = kcenter.Counts(jnp.zeros((4, 2), jnp.int32).at[1, 0].set(5), jnp.array([2, 0], jnp.int32), NOISY.problem)
    sums = several.respond(Numbered(counts, jnp.zeros((4, 2), jnp.int32)), ())
    respond = jax.jit(kcenter.environment(NOISY, action=kcenter.Pull, stream=STREAM).respond)
    ones = [
        respond(
            Numbered(kcenter.Pull(*map(jnp.int32, (1, 0)), counts.centers, jnp.zeros((), bool), NOISY.problem), i), ()
        )
        for i in jnp.arange(5, dtype=jnp.int32)
    ]
    np.testing.assert_allclose(sums[1, 0], sum(ones), rtol=1e-10)


def test_stream_makes_leaps_of_dimensions_equal_single_samples():
    def ends(leap):
        algorithm = numbered(kcenter.ds_ucb(POINTS.problem, delta=0.1, cap=20, leap=leap))

        def end(key):
            return run(key, algorithm, kcenter.environment(POINTS, leap=leap, stream=key), max_rounds=5000)

        outcome = jax.jit(jax.vmap(end))(jax.random.split(KEY, 3))
        return outcome.state.counts, outcome.state.sums, outcome.answer.indices

    jax.tree.map(np.testing.assert_array_equal, ends(1), ends(8))


def test_stream_noise_of_an_agent_does_not_depend_on_its_query():
    respond = jax.jit(kernel.environment(VALUES, n_agents=3, stream=STREAM).respond)
    t = jnp.int32(4)
    a, b = (np.asarray(respond(Numbered(jnp.int32(q), t), ())) for q in ([0, 1, 2], [3, 1, 0]))
    np.testing.assert_allclose(a - [0, 1, 2], b - [3, 1, 0], atol=1e-14)
    assert len(np.unique(a - [0, 1, 2])) == 3
    fewer = kernel.environment(VALUES, n_agents=2, stream=STREAM).respond(Numbered(jnp.int32([0, 1]), t), ())
    np.testing.assert_allclose(fewer, a[:2], atol=1e-14)


def test_round_regret_accepts_numbered_queries():
    regret, queries = kernel.round_regret(VALUES), jnp.int32([0, 3])
    decisions = [jaxbandits.Decision(action, None, None) for action in (queries, Numbered(queries, jnp.int32(0)))]
    assert [float(regret(None, decision, None)["regret"]) for decision in decisions] == [3, 3]


def test_numbered_keeps_the_run(linear_sums):
    """Only the actions change: without a stream, states and answers equal the algorithm's."""
    del linear_sums
    algorithm = linear.xy_static(SOARE.arms, np.full(3, 1 / 3), delta=0.1)
    inside = numbered(algorithm)
    state = algorithm.init(KEY)
    decision, other = algorithm.decide(KEY, state), inside.decide(KEY, state)
    jax.tree.map(np.testing.assert_array_equal, decision, other._replace(action=other.action.action))
    assert jax.tree.structure(inside.idle) == jax.tree.structure(other.action)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: linear.environment(SOARE, linear.Bridge, stream=STREAM), "stream must be None for a Bridge"),
        (
            lambda: linear.environment(linear.canonical(0.5), noise=linear.Signs(2), stream=STREAM),
            "stream must be None",
        ),
        (lambda: fullbandit.environment(TOP3, DESIGN, noise="bernoulli", stream=STREAM), "stream must be None|theta"),
        (lambda: kcenter.environment(JUDGED, action=kcenter.Counts, stream=STREAM), "stream must be None for binomial"),
        (
            lambda: run(
                KEY, linear.lingape(SOARE.arms, delta=0.1), linear.environment(SOARE, stream=STREAM), max_rounds=9
            ),
            "action must be Numbered where rewards come from a stream",
        ),
        (
            lambda: numbered(linear.xy_static_exact(SOARE.arms, np.full(3, 1 / 3), delta=0.1)),
            "algorithm must say how often its arms were pulled, in its field `before`",
        ),
        (lambda: numbered(numbered(cases()["lingape"].algorithm)), "algorithm must not be numbered already"),
    ],
)
def test_unsupported_stream_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
