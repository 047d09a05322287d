"""Arms and their samples: laws, moments, streams that depend on (stream, arm, number) only."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import cpe
from jaxbandits.cpe import Arms, Pulls

KEY = jax.random.key(0)
MIXED = cpe.stack_arms(
    [
        cpe.bernoulli([0.3, 0.0, 1.0]),
        cpe.uniform_arms([0.35], [0.65]),
        cpe.discrete([[0.25, 0.5, 1.0]], [[0.5, 0.25, 0.25]]),
        cpe.constant([0.7]),
    ]
)
MEANS = [0.3, 0, 1, 0.5, 0.5, 0.7]
VARIANCES = [0.21, 0, 0, 0.3**2 / 12, 0.5 * 0.25**2 + 0.25 * 0.5**2, 0]


def pulls(slots):
    return Pulls(np.asarray(slots, np.int32))


def environment(law, slots=1, **settings):
    """Builds an environment of some arms; the problem is irrelevant."""
    m, dtype = law.low.shape[0], law.low.dtype
    return cpe.environment(cpe.instance(cpe.best_arm(m, dtype=dtype), law), pulls([m] * slots), **settings)


def responder(law, slots=1, **settings):
    """Returns the compiled samples of pulls, given the number of earlier pulls of each arm, () without a stream."""
    made = partial(environment, law, slots, **settings)
    return jax.jit(lambda action, noise, counts=(): made().respond(counts, action, noise)[0])


def test_moments_by_hand():
    np.testing.assert_allclose(cpe.means(MIXED), MEANS, rtol=1e-14)
    np.testing.assert_allclose(cpe.variances(MIXED), VARIANCES, rtol=1e-14, atol=1e-30)


def test_samples_by_hand():
    respond = responder(MIXED, slots=6)
    u = jnp.asarray([0.0, 0.25, 0.3, 0.5, 0.75, 1 - 2**-24])
    expected = [
        [1, 1, 0, 0, 0, 0],  # 1 iff u < 0.3
        [0, 0, 0, 0, 0, 0],
        [1, 1, 1, 1, 1, 1],
        [0.35, 0.425, 0.44, 0.5, 0.575, 0.65 - 0.3 * 2**-24],
        [0.25, 0.25, 0.25, 0.5, 1, 1],
        [0.7] * 6,
        [0] * 6,  # an empty slot
    ]
    for arm, row in enumerate(expected):
        np.testing.assert_allclose(respond(pulls([arm] * 6), u), row, rtol=1e-14)


def test_a_mixture_of_segments():
    law = Arms(*(jnp.asarray([row] * 2) for row in ([0.0, 0.5], [0.25, 1.0], [0.75, 0.25])))
    respond = responder(law, slots=4)
    samples = respond(pulls([0, 0, 0, 0]), jnp.asarray([0.0, 0.375, 0.75, 0.875]))
    np.testing.assert_allclose(samples, [0, 0.125, 0.5, 0.75])
    np.testing.assert_allclose(cpe.means(law), 0.75 * 0.125 + 0.25 * 0.75)
    expected = 0.75 * (0.25**2 / 12 + 0.125**2) + 0.25 * (0.5**2 / 12 + 0.75**2) - cpe.means(law) ** 2
    np.testing.assert_allclose(cpe.variances(law), expected)


@pytest.mark.wide
@pytest.mark.parametrize("stream", [None, jax.random.key(7)])
def test_samples_have_the_moments_of_their_law(stream):
    n, m = 20_000, 6

    @jax.jit
    def draw(arm):
        sampler = environment(MIXED, slots=n, stream=stream)
        noise = sampler.noise(jax.random.fold_in(jax.random.key(1), arm))
        return sampler.respond(sampler.init(KEY), Pulls(jnp.full(n, arm)), noise)[0]

    samples = np.array([draw(np.int32(arm)) for arm in range(m)])
    # 5 standard errors: 6e-7 false alarms per arm.
    deviation = np.sqrt(VARIANCES)
    assert (np.abs(samples.mean(axis=1) - MEANS) <= 5 * deviation / np.sqrt(n) + 1e-12).all()
    np.testing.assert_allclose(samples.var(axis=1), VARIANCES, rtol=0.05, atol=1e-20)
    assert samples.min() >= 0
    assert samples.max() <= 1
    # Arms do not share their randomness.
    assert np.abs(np.corrcoef(samples[[0, 3, 4]])[np.triu_indices(3, 1)]).max() < 5 / np.sqrt(n)


def test_a_stream_depends_on_arm_and_number_only():
    key = jax.random.key(3)
    assert jax.tree.leaves(environment(MIXED, stream=key).noise(key)) == []
    one, three = responder(MIXED, stream=key), responder(MIXED, slots=3, stream=key)
    counts = jnp.int32([2, 7, 7, 5, 7, 7])
    together = three(pulls([3, 0, 3]), (), counts)
    apart = [one(pulls([arm]), (), jnp.full(6, s, jnp.int32))[0] for arm, s in ((3, 5), (0, 2), (3, 6))]
    np.testing.assert_array_equal(together, apart)
    assert together[0] != together[2]
    elsewhere = responder(MIXED, slots=3, stream=jax.random.key(4))(pulls([3, 0, 3]), (), counts)
    assert together[0] != elsewhere[0]


def test_a_stream_has_the_same_uniforms_for_every_law():
    key = jax.random.key(5)
    plain = responder(cpe.uniform_arms([0.0, 0.0], [1.0, 1.0]), slots=50, stream=key)
    coins = responder(cpe.bernoulli([0.2, 0.6]), slots=50, stream=key)
    action, counts = pulls([1] * 50), jnp.zeros(2, jnp.int32)
    np.testing.assert_array_equal(coins(action, (), counts), plain(action, (), counts) < 0.6)


@pytest.mark.parametrize("stream", [None, jax.random.key(9)])
def test_samples_in_32_and_64_bit_are_equal(stream):
    def samples_in(dtype):
        @jax.jit
        def draw(action, key):
            law = cpe.stack_arms([cpe.bernoulli([0.3], dtype=dtype), cpe.uniform_arms([0.0], [1.0], dtype=dtype)])
            sampler = environment(law, slots=2000, stream=stream)
            return sampler.respond(sampler.init(key), action, sampler.noise(key))[0]

        samples = draw(pulls([0, 1] * 1000), jax.random.key(1))
        assert samples.dtype == dtype
        return np.asarray(samples, np.float64)

    np.testing.assert_array_equal(samples_in("float32"), samples_in("float64"))


def test_fresh_noise_differs_between_rounds():
    sampler = environment(MIXED, slots=4)
    noise = [sampler.noise(jax.random.key(i)) for i in range(2)]
    assert noise[0].shape == (4,)
    assert not (noise[0] == noise[1]).any()
    # 24 bits: exact in 32 bit.
    np.testing.assert_array_equal(np.asarray(noise[0]).astype(np.float32), noise[0])
    np.testing.assert_array_equal(noise[0] * 2**24 % 1, 0)


def test_arms_may_be_traced():
    @jax.jit
    def draw(p, slots):
        law = cpe.bernoulli(p)
        return environment(law, slots=3).respond((), slots, jnp.asarray([0.1, 0.5, 0.1]))[0], cpe.means(law)

    samples, means = draw(jnp.asarray([0.4, 0.2]), pulls([0, 1, 2]))
    np.testing.assert_array_equal(samples, [1, 0, 0])
    np.testing.assert_allclose(means, [0.4, 0.2])
    # An arm with invalid parameters returns NaN; the other arms are unaffected.
    samples, _ = draw(jnp.asarray([0.4, 1.2]), pulls([0, 1, 2]))
    np.testing.assert_array_equal(samples, [1, np.nan, 0])


HALF = jnp.full((2, 2), 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cpe.uniform_arms([0.5], [0.4]), "high must be at least low"),
        (lambda: cpe.discrete([[0.5, 1.0]], [[0.5, 0.4]]), "weights must sum to 1 for every arm"),
        (lambda: environment(Arms(HALF, HALF, HALF - 0.1)), "arms.weight must sum to 1 for every arm"),
        (lambda: environment(Arms(HALF, HALF, HALF * jnp.asarray([3.0, -1.0]))), "arms.weight must be at least 0"),
        (lambda: environment(Arms(HALF - 1, HALF, HALF)), "arms.low must lie in [0, 1]"),
        (lambda: environment(Arms(HALF, HALF + 1, HALF)), "arms.high must lie in [0, 1]"),
        (lambda: environment(Arms(HALF, HALF / 2, HALF)), "arms.high must be at least low"),
        (
            lambda: environment(Arms(HALF, HALF[0], HALF)),
            "arms.high must be an array of real numbers of shape (2, 2), got",
        ),
        (
            lambda: environment(Arms(HALF, HALF, HALF[:1])),
            "arms.weight must be an array of real numbers of shape (2, 2), got",
        ),
        (
            lambda: environment(Arms(HALF[0], HALF[0], HALF[0])),
            "arms.low must be an array of real numbers of shape (m, V), got",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match="must") as error:
        call()
    assert message in str(error.value)
