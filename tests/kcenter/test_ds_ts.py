from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from drivers.kcenter_ds import KEY, follow, tape

from jaxbandits.kcenter import KL, Dimensions, ds_ts, ds_ucb
from jaxbandits.kcenter._algorithms.ds_ts import thompson
from jaxbandits.kcenter._shared.dimension_sampling import Arms
from jaxbandits.numerics.beta import UNIFORMS

N, M, K, LEVELS = 6, 150, 3, 16
# Binary rows of different densities; the third is about as far from the first as from the last.
DENSITIES = np.array([0.05, 0.3, 0.45, 0.6, 0.75, 0.95])[:, None]
PIXELS = (LEVELS * (np.random.default_rng(0).random((N, M)) < DENSITIES)).astype(np.uint8)


def test_mix_may_be_traced_and_mix_0_is_ds_ucb_with_the_same_interval():
    def drive(make):
        return follow(make, PIXELS, k=K, rounds=900, levels=LEVELS, leap=4)

    plain = partial(ds_ts, delta=0.1, mix=0)
    assert plain(Dimensions(N, M, K, LEVELS)).init(KEY).draws is None
    state, queried = drive(plain)(tape(2, M))
    assert state.stage.found == K
    ucb = drive(partial(ds_ucb, delta=0.1, interval=KL()))
    np.testing.assert_array_equal(ucb(tape(2, M))[1], queried)
    traced = drive(lambda problem, mix, leap: ds_ts(problem, delta=0.1, mix=mix, leap=leap))
    never, half, always = (traced(tape(2, M), mix)[1] for mix in (0.0, 0.5, 1.0))
    np.testing.assert_array_equal(never, queried)
    assert not np.array_equal(never, half)
    assert not np.array_equal(half, always)


def test_thompson_draws_slots_from_the_posterior():
    """Beta(4, 8) against Beta(10, 12), and a closed arm. The second has the smallest lower bound."""
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
        return jax.vmap(lambda uniform: thompson(uniform, arms, mix=mix, cap=M))(
            jax.random.uniform(KEY, (40_000, 1 + 3 * UNIFORMS))
        )

    for mix, second in ((1.0, share), (0.4, 0.4 * share + 0.6)):
        slots = np.asarray(draw(mix))
        assert 0 < np.mean(slots == 3) < 0.0005  # refused: 1.3e-4 of the draws
        slots = slots[slots < 3]
        assert np.all(slots < 2)
        assert abs(slots.mean() - second) < 4 * np.sqrt(second * (1 - second) / 40_000) + 0.006
