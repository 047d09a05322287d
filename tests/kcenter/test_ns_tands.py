"""NS-TandS: its rounds, weights, batches and laws."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.kcenter_ns import KEY, distances, tape
from transcriptions.kcenter import weights

from experiments.bench.reference import kcenter_ns as reference
from jaxbandits.base import Status
from jaxbandits.engine.run.loop import run
from jaxbandits.kcenter import (
    Distances,
    distance_instance,
    environment,
    ns_tands,
    track_and_stop,
)
from jaxbandits.kcenter._algorithms.track_and_stop import batch_pulls

N, K, DELTA = 7, 4, 0.1
TABLE = distances(126, N, dim=2)  # its gaps are .18, .11 and .10
EVERY, OFFSET = 20, 0.5  # small enough for rounds of every kind to occur


@functools.cache
def maker(noise="gaussian", **settings):
    settings = {"weights_every": EVERY, "forced_offset": OFFSET, "delta": DELTA} | settings

    def make(table, variance):
        noise_scale = jnp.sqrt(variance) if noise == "gaussian" else None
        instance = distance_instance(table, k=K, noise_scale=noise_scale, noise=noise)
        algorithm = ns_tands(instance.problem, noise_scale=noise_scale, **settings)
        return algorithm, environment(instance, algorithm)

    return make


# The weights


@functools.cache
def stepwise():
    """Returns an algorithm with compiled functions, its environment and a first state."""
    algorithm, answers = maker()(jnp.asarray(TABLE), 0.01)
    functions = {name: jax.jit(getattr(algorithm, name)) for name in ("decide", "observe", "plan", "stale")}
    return algorithm._replace(**functions), answers, algorithm.init(KEY)


def same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


def test_plan_renews_old_weights_and_replaces_a_refuted_witness_or_ends_the_stage():
    algorithm, answers, state = stepwise()
    ages, looks, ends = [], 0, 0
    for z in tape(5, 300):
        if algorithm.stale(state):
            fresh = algorithm.plan(KEY, state)
            assert not algorithm.stale(fresh)
            assert not fresh.is_refuted
            assert fresh.pulls == state.pulls
            looks += bool(state.is_refuted)
            ends += int(fresh.stage.found - state.stage.found)
            if fresh.solved == state.pulls:
                ages.append(int(state.pulls - state.solved) if state.solved >= 0 else EVERY)
                means = np.asarray(state.samples.sums.total) / np.maximum(state.samples.counts, 1)
                nodes = [v for v in range(N) if v not in state.stage.centers.tolist()]
                np.testing.assert_allclose(fresh.omega, weights(means[:, : int(state.stage.found)], nodes), atol=1e-9)
            else:
                assert state.is_refuted
            if state.is_refuted and fresh.stage.found == state.stage.found:
                assert fresh.witnesses[0] not in [*state.stage.centers.tolist(), state.best]
            state = fresh
        same(algorithm.plan(KEY, state), state)
        action = algorithm.decide(KEY, state).action
        state = algorithm.observe(state, action, answers.respond((), action, jnp.asarray(z))[0])
        same(algorithm.observe(state, algorithm.idle, jnp.asarray(z)), state)
    assert len(ages) >= 3
    assert min(ages) == EVERY
    assert looks > ends >= 1


def test_forced_queries_need_no_weights():
    algorithm, _, state = stepwise()

    def after(queries):
        stage = state.stage._replace(queries=jnp.asarray([queries, 0, 0], jnp.uint32), cursor=jnp.asarray(N, jnp.int32))
        counts = state.samples.counts.at[:, 0].set(jnp.asarray([0, 400, 400, 400, 400, 400, 10], jnp.int32))
        samples = state.samples._replace(counts=counts)
        return state._replace(stage=stage, samples=samples, fewest=jnp.asarray(6 * (K - 1), jnp.int32))

    # sqrt(T) - offset n k / 2 is above the 10 queries of node 6 for T > 17^2 = 289.
    assert algorithm.stale(after(289))
    assert not algorithm.stale(after(290))
    action = algorithm.decide(KEY, after(290)).action
    assert (action.node, action.slot) == (6, 0)


# Laws


@functools.cache
def compiled(**settings):
    @jax.jit
    def end(key, table, assumed, noise_scale):
        instance = distance_instance(table, k=K, noise_scale=noise_scale)
        algorithm = ns_tands(instance.problem, noise_scale=assumed, delta=DELTA, **settings)
        return run(key, algorithm, environment(instance, algorithm), max_rounds=3000)

    return end


def ended(table=TABLE, assumed=0.1, noise_scale=0.1, seed=0, **settings):
    return compiled(**settings)(jax.random.key(seed), jnp.asarray(table), assumed, noise_scale)


def test_noise_scale_set_too_low_gives_wrong_centers():
    np.testing.assert_array_equal(ended(seed=1).answer.indices, [0, 5, 3, 2])
    ends = [ended(assumed=0.01, noise_scale=0.1**0.5, seed=seed) for seed in range(9)]
    wrong = sum(not np.array_equal(end.answer.indices, [0, 5, 3, 2]) for end in ends)
    assert wrong >= 5


def test_equal_nodes_are_never_separated():
    tied = TABLE.copy()
    tied[1], tied[:, 1] = TABLE[5], TABLE[:, 5]
    tied[1, 1] = tied[1, 5] = tied[5, 1] = 0
    end = ended(tied, noise_scale=0.0)
    assert end.status == Status.MAX_ROUNDS
    np.testing.assert_array_equal(end.answer.indices, [0, 1, -1, -1])


# Batches


@pytest.mark.parametrize("floor", [-3.0, 2.0, 9.5, 60.0])
def test_batches_equal_the_transcription(floor):
    rng = np.random.default_rng(int(floor) + 9)
    allot = jax.jit(functools.partial(batch_pulls, batch=50))
    for _ in range(20):
        arms = (rng.random(N) < 0.8)[:, None] & (np.arange(3) < rng.integers(1, 4))
        arms[0, 0] = True
        omega = np.where(arms, rng.random((N, 3)) ** 4 * (rng.random((N, 3)) < 0.5) + 1e-9, 0)
        omega /= omega.sum()
        pulls = np.where(arms, rng.integers(1, 30, (N, 3)), 5).astype(np.int32)
        T = int(pulls[arms].sum())
        given = np.asarray(allot(omega, pulls, float(T), floor=floor, arms=arms))
        assert given.sum() == 50
        assert not given[~arms].any()
        np.testing.assert_array_equal(given[arms], reference.batch_of(omega[arms], pulls[arms], T, 50, floor))


def test_batch_pulls_by_hand():
    # Targets .55, .25 and .2 of 40 minus 20, 6 and 4 pulls: 2, 4 and 4. In proportion, 4 queries are .8, 1.6 and 1.6.
    omega, pulls = jnp.asarray([[0.55], [0.25], [0.2]]), jnp.asarray([[20], [6], [4]], jnp.int32)
    arms = jnp.ones((3, 1), bool)
    given = batch_pulls(omega, pulls, jnp.asarray(36.0), batch=4, floor=jnp.asarray(0.0), arms=arms)
    np.testing.assert_array_equal(given, [[1], [2], [1]])


def test_track_and_stop_spends_batches():
    instance = distance_instance(TABLE, k=K, noise_scale=0.1)
    algorithm = track_and_stop(instance.problem, noise_scale=0.1, delta=DELTA, test_every=25, weights_every=25)
    end = jax.jit(lambda: run(KEY, algorithm, environment(instance, algorithm), max_rounds=1000))()
    assert end.status == Status.STOPPED
    np.testing.assert_array_equal(end.answer.indices, [0, 5, 3, 2])
    assert (int(end.pulls) - (6 + 5 + 4)) % 25 == 0
    assert int(end.pulls) == int(end.answer.queries.sum()) == int(end.state.samples.counts.sum())


def test_gaussian_rate_is_refused_with_bernoulli_noise():
    with pytest.raises(ValueError, match="rate must not be 'gaussian' with the"):
        ns_tands(Distances(7, 4, "bernoulli"), delta=DELTA, noise_scale=None, rate="gaussian")
