import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference import kcenter_ds as reference
from reference.kcenter_ds_tape import KEY, follow, one_by_one, tape

from jaxbandits.kcenter.ds import Arms
from jaxbandits.kcenter.ds_ts import ds_ts, thompson
from jaxbandits.kcenter.ds_ucb import ds_ucb
from jaxbandits.numerics.beta import beta_of

N, M, K, LEVELS = 6, 150, 3, 16
# Binary rows of different densities; the third is about as far from the first as from the last.
DENSITIES = np.array([0.05, 0.3, 0.45, 0.6, 0.75, 0.95])[:, None]
PIXELS = (LEVELS * (np.random.default_rng(0).random((N, M)) < DENSITIES)).astype(np.uint8)
INTERVAL = partial(reference.kl_bounds, delta=0.1 / 36)


@jax.jit
def draws(seed, step, successes, failures):
    """The draws of one query: of its slot, of its choice between the rules, of its rounding."""
    key = jax.random.fold_in(jax.random.wrap_key_data(seed), step)
    uniform = jax.random.uniform(key, (2 + 16 * (K - 1),))
    theta = beta_of(uniform[1:-1].reshape(16, K - 1), 1.0 + successes, 1.0 + failures)
    return theta, uniform[0], uniform[-1]


def expected(seed, mix, **options):
    zeros = np.zeros(K - 1)

    def pick(lower, step, successes, counts, open):
        failures = np.minimum(counts, M) - successes
        theta, z, _ = (np.asarray(x) for x in draws(seed, step, successes.astype(float), failures.astype(float)))
        return min(open, key=lambda i: (theta[i], i)) if z < mix else reference.lowest(lower)

    def coin(step):
        return float(draws(seed, step, zeros, zeros)[2])

    return reference.sample(PIXELS, K, tape(2, M), interval=INTERVAL, levels=LEVELS, pick=pick, coin=coin, **options)


@pytest.mark.parametrize(("burst", "options"), [(1, {"redraw": True}), (4, {}), (8, {"cap": 80})], ids=str)
def test_every_query_is_that_of_the_transcription(burst, options):
    algorithm = ds_ts(N, M, K, mix=0.7, levels=LEVELS, burst=burst, **options)
    drive = follow(lambda: algorithm, PIXELS, rounds=2000, levels=LEVELS, burst=burst)
    state, asked = drive(tape(2, M))
    run = expected(state.chance.seed, 0.7, **options)
    assert one_by_one(asked, M) == run.asked
    assert state.stage.centers.tolist() == run.centers
    # With `redraw` a count also tells the stage in which the arm was read.
    cap = options.get("cap", M)
    np.testing.assert_array_equal(np.minimum(state.counts, cap + 1), run.counts)
    successes = np.asarray(state.chance.successes)
    assert np.all(successes <= np.asarray(state.counts))
    assert successes.sum() > 0


def test_mix_is_a_share_that_may_be_traced_and_at_0_it_is_ds_ucb_at_the_same_interval():
    def drive(make):
        return follow(make, PIXELS, rounds=900, levels=LEVELS, burst=4)

    plain = ds_ts(N, M, K, mix=0, levels=LEVELS, burst=4)
    assert plain.init(KEY).chance is None
    state, asked = drive(lambda: plain)(tape(2, M))
    assert state.stage.found == K
    ucb = drive(lambda: ds_ucb(N, M, K, interval="kl", levels=LEVELS, burst=4))
    np.testing.assert_array_equal(ucb(tape(2, M))[1], asked)
    traced = drive(lambda mix: ds_ts(N, M, K, mix=mix, levels=LEVELS, burst=4))
    never, half, always = (traced(tape(2, M), mix)[1] for mix in (0.0, 0.5, 1.0))
    np.testing.assert_array_equal(never, asked)
    assert not np.array_equal(never, half)
    assert not np.array_equal(half, always)


def test_slots_are_drawn_by_the_posterior():
    """Beta(4, 8) against Beta(10, 12), and an arm that is closed; the second has the least lower bound."""
    arms = Arms(
        counts=jnp.array([10, 20, 5], jnp.int32),
        successes=jnp.array([3, 9, 0], jnp.int32),
        lower=jnp.array([0.3, 0.1, 0.2]),
        open=jnp.array([True, True, False]),
    )
    rng = np.random.default_rng(0)
    share = np.mean(rng.beta(4, 8, 10**5) > rng.beta(10, 12, 10**5))

    @jax.jit
    def draw(mix):
        return jax.vmap(lambda uniform: thompson(mix, M)(uniform, arms))(jax.random.uniform(KEY, (4000, 49)))

    for mix, second in ((1.0, share), (0.4, 0.4 * share + 0.6)):
        slots = np.asarray(draw(mix))
        assert np.all(slots < 2)
        assert abs(slots.mean() - second) < 4 * np.sqrt(second * (1 - second) / 4000) + 0.006


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mix": 1.5}, "mix must lie in [0, 1], got 1.5"),
        ({"mix": -0.1}, "mix must lie in [0, 1], got -0.1"),
        ({"delta": 1.0}, "delta must lie in (0, 1), got 1.0"),
        ({"alpha": 0.5}, "alpha must exceed 1, got 0.5"),
        ({"union": "none"}, "union must be one of ('points', 'pairs'), got 'none'"),
        ({"burst": 0}, "burst must be at least 1, got 0"),
    ],
    ids=str,
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ds_ts(N, M, K, **arguments)
