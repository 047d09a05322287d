"""Instances by hand, and the laws of the environments.

A test of a law compares draws from fixed seeds with the exact distribution; over the seeds, it would raise a
false alarm with a probability of about 1e-5.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxbandits.linear import problem
from jaxbandits.linear.problem import Allocation, Bridge, LinearBandit, Pull

DRAWS = 10_000
FALSE_ALARM = 1e-5


def bandit(means, noise_scale=1.0, dtype=float):
    """Canonical arms, so that theta is the vector of the means."""
    means = jnp.array(means, dtype)
    return LinearBandit(jnp.eye(len(means), dtype=dtype), means, jnp.array(noise_scale, dtype))


def sample(environment, action, seed=0, draws=DRAWS):
    """Independent observations of one action."""
    keys = jax.random.split(jax.random.key(seed), draws)
    return jax.vmap(lambda key: environment.respond(action, environment.noise(key)))(keys)


def assert_normal(values, mean, variance):
    assert stats.kstest(values, stats.norm(mean, np.sqrt(variance)).cdf).pvalue > FALSE_ALARM


def assert_binomial_signs(values, n, p):
    """The sum of n signs is 2 Binomial(n, p) - n: chi-square over cells of at least 10 expected values."""
    successes = (values + n) / 2
    np.testing.assert_array_equal(successes, np.round(successes))
    edges = np.unique(stats.binom(n, p).ppf(np.linspace(0.05, 0.95, 19)))
    cdf = np.concatenate([[0], stats.binom(n, p).cdf(edges), [1]])
    expected = len(values) * np.diff(cdf)
    found = np.bincount(np.searchsorted(edges, successes), minlength=len(expected))
    big = expected > 10
    assert found[~big].sum() <= 30
    assert stats.chi2(max(big.sum() - 1, 1)).sf(np.sum((found - expected)[big] ** 2 / expected[big])) > FALSE_ALARM


# Gaussian


@pytest.mark.parametrize("times", [1, 7, 1000])
def test_gaussian_pull_has_the_law_of_a_sum(times):
    environment = problem.gaussian(bandit([0.5, -0.3, 0.0], noise_scale=2.0))
    values = sample(environment, Pull(jnp.array(1), jnp.array(times)))
    assert values.shape == (DRAWS,)
    assert_normal(values, -0.3 * times, 4 * times)


def test_gaussian_mean_is_the_inner_product():
    instance = LinearBandit(jnp.array([[1.0, 2.0], [3.0, -1.0]]), jnp.array([0.5, 0.25]), jnp.array(1.0))
    environment = problem.gaussian(instance)
    assert environment.respond(Pull(jnp.array(1), jnp.array(4)), jnp.array(0.0)) == 4 * 1.25


def test_gaussian_allocation_has_independent_sums():
    environment = problem.gaussian(bandit([0.5, -0.3, 0.0], noise_scale=0.5), Allocation)
    values = sample(environment, Allocation(jnp.array([3, 0, 40])))
    assert_normal(values[:, 0], 1.5, 0.25 * 3)
    assert np.all(values[:, 1] == 0)
    assert_normal(values[:, 2], 0, 0.25 * 40)
    assert abs(np.corrcoef(values[:, 0], values[:, 2])[0, 1]) < 4.5 / np.sqrt(DRAWS)


def test_bridge_refines_a_sum_without_changing_its_law():
    """Drawing the end first and the middle given the end is drawing two consecutive sums."""
    instance = bandit([0.5, -0.3, 1.0], noise_scale=1.5)
    environment = problem.gaussian(instance, Bridge)
    zeros, counts, ahead = jnp.zeros(3, int), jnp.array([3, 10, 1]), jnp.array([12, 11, 2])

    def both(key):
        first, second = jax.random.split(key)
        end = environment.respond(Bridge(ahead, zeros, jnp.zeros(3)), environment.noise(first))
        middle = environment.respond(Bridge(counts, ahead, end), environment.noise(second))
        return middle, end

    middle, end = jax.vmap(both)(jax.random.split(jax.random.key(1), DRAWS))
    rest = np.asarray(end - middle)
    for k in range(3):
        mean, n, m = float(instance.theta[k]), int(counts[k]), int(ahead[k] - counts[k])
        assert_normal(np.asarray(middle)[:, k], n * mean, 2.25 * n)
        assert_normal(rest[:, k], m * mean, 2.25 * m)
        assert abs(np.corrcoef(np.asarray(middle)[:, k], rest[:, k])[0, 1]) < 4.5 / np.sqrt(DRAWS)


def test_bridge_by_hand():
    environment = problem.gaussian(bandit([0.5, -0.3, 1.0, 9.0, 9.0], noise_scale=2.0), Bridge)
    action = Bridge(jnp.array([3, 7, 4, 0, 0]), jnp.array([12, 7, 0, 5, 0]), jnp.array([8.0, 0.1, 99.0, 3.0, 7.0]))
    values = environment.respond(action, jnp.ones(5))
    # A quarter of the sum and 2 sqrt(3 * 9 / 12); the known sum; four fresh pulls; nothing.
    np.testing.assert_allclose(values, [2 + 3, 0.1, 4 + 4, 0, 0], rtol=1e-15, atol=0)
    assert values[1] == 0.1


# Signs


@pytest.mark.parametrize("mean", [-1.0, -0.9, 0.0, 0.3, 1.0])
def test_a_sign_is_positive_with_its_probability(mean):
    values = sample(problem.signs(bandit([0.5, mean])), Pull(jnp.array(1), jnp.array(1)))
    assert set(np.unique(values)) <= {-1.0, 1.0}
    assert stats.binomtest(int(np.sum(values == 1)), DRAWS, (1 + mean) / 2).pvalue > FALSE_ALARM


BLOCKS = {1: 0.2, 2: -0.9, 19: 0.0, 50: 0.9, 1000: -0.4, 10**7: 0.02}  # pulls: mean


def test_blocks_of_signs_are_binomial():
    environment = problem.signs(bandit(list(BLOCKS.values())), blocks=True)
    draw = jax.jit(lambda action: sample(environment, action))
    for arm, (times, mean) in enumerate(BLOCKS.items()):
        values = draw(Pull(jnp.array(arm), jnp.array(times)))
        assert_binomial_signs(np.asarray(values), times, (1 + mean) / 2)


def test_an_allocation_of_signs_is_binomial_per_arm():
    environment = problem.signs(bandit([*BLOCKS.values(), -1.0, 0.1, 1.0]), Allocation)
    values = np.asarray(sample(environment, Allocation(jnp.array([*BLOCKS, 9, 0, 5]))))
    for arm, (times, mean) in enumerate(BLOCKS.items()):
        assert_binomial_signs(values[:, arm], times, (1 + mean) / 2)
    np.testing.assert_array_equal(values[:, len(BLOCKS) :], np.broadcast_to([-9.0, 0.0, 5.0], (DRAWS, 3)))


def test_a_single_sign_refuses_to_stand_for_a_block():
    environment = problem.signs(bandit([0.5, 0.1]))
    assert jnp.isnan(environment.respond(Pull(jnp.array(0), jnp.array(2)), jnp.array(0.3)))


@pytest.mark.parametrize(
    ("action", "options"),
    [(Pull(jnp.array(0), jnp.array(1)), {}), (Allocation(jnp.array([1, 1])), {"action": Allocation})],
)
def test_a_traced_mean_beyond_one_gives_nan(action, options):
    """Nothing can raise under a trace; the run must fail and not go on with a law that does not exist."""

    def respond(theta):
        environment = problem.signs(LinearBandit(jnp.eye(2), theta, jnp.array(1.0)), **options)
        return environment.respond(action, environment.noise(jax.random.key(0)))

    assert jnp.isnan(jax.jit(respond)(jnp.array([1.2, 0.0]))).any()


def test_binomial_sums_need_64_bit():
    with jax.enable_x64(False):
        instance = problem.canonical(0.5)
        assert problem.signs(instance).respond(Pull(jnp.array(0), jnp.array(1)), jnp.float32(0.3)) == 1
        with pytest.raises(ValueError, match="jax_enable_x64 must be on"):
            problem.signs(instance, Allocation)


# Both


ENVIRONMENTS = {
    "gaussian pull": (problem.gaussian, {}, Pull(jnp.array(1), jnp.array(0))),
    "gaussian allocation": (problem.gaussian, {"action": Allocation}, Allocation(jnp.array([0, 0]))),
    "gaussian bridge": (
        problem.gaussian,
        {"action": Bridge},
        Bridge(jnp.array([0, 0]), jnp.array([0, 2]), jnp.array([0.0, 3.0])),
    ),
    "one sign": (problem.signs, {}, Pull(jnp.array(1), jnp.array(0))),
    "block of signs": (problem.signs, {"blocks": True}, Pull(jnp.array(1), jnp.array(0))),
    "sign allocation": (problem.signs, {"action": Allocation}, Allocation(jnp.array([0, 0]))),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_nothing_pulled_gives_zero_in_the_dtype_of_the_arms(name, dtype):
    make, options, action = ENVIRONMENTS[name]
    environment = make(bandit([0.5, -0.7], dtype=dtype), **options)
    action = jax.tree.map(lambda x: x.astype(dtype) if x.dtype == jnp.float64 else x, action)
    observation = environment.respond(action, environment.noise(jax.random.key(3)))
    assert observation.dtype == dtype
    np.testing.assert_array_equal(observation, np.zeros(observation.shape))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments_can_be_built_inside_vmap_over_instances(name):
    make, options, action = ENVIRONMENTS[name]
    some = {Pull: lambda a: a._replace(times=jnp.array(1))}
    action = some.get(type(action), lambda a: a._replace(counts=jnp.array([1, 2])))(action)
    instances = [bandit([0.5, -0.7]), bandit([0.1, 0.9], noise_scale=3.0)]

    def respond(instance):
        environment = make(instance, **options)
        return environment.respond(action, environment.noise(jax.random.key(5)))

    batch = jax.jit(jax.vmap(respond))(jax.tree.map(lambda *leaves: jnp.stack(leaves), *instances))
    np.testing.assert_allclose(batch, np.stack([respond(instance) for instance in instances]), rtol=1e-14)


# Instances


def test_soare_by_hand():
    instance = problem.soare(3, 0.01)
    np.testing.assert_array_equal(instance.arms[:3], np.eye(3))
    np.testing.assert_allclose(instance.arms[3], [0.9999500004166653, 0.009999833334166664, 0], rtol=1e-15)
    means = np.asarray(instance.arms @ instance.theta)
    np.testing.assert_allclose(means[0] - means, [0, 2, 2, 9.999916667e-5], rtol=1e-8)


def test_canonical_by_hand():
    instance = problem.canonical(0.3, 4, noise_scale=2.0)
    np.testing.assert_array_equal(instance.arms, np.eye(4))
    np.testing.assert_array_equal(instance.theta, [0.3, 0, 0, 0])
    assert instance.noise_scale == 2


def test_theorem3_counterexample_by_hand():
    instance = problem.theorem3_counterexample(2, s=0.5, gap=0.1)
    arms = [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0.5, 0], [1, 0, 0, 0.5], [0, 0, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_array_equal(instance.arms, arms)
    np.testing.assert_allclose(instance.arms @ instance.theta, [0, -0.1, -0.1, -0.1, -0.2, -0.2], rtol=1e-15)


def test_sphere_is_uniform_on_unit_vectors():
    instances = [problem.sphere(seed, 2, 3, 0.0) for seed in range(1000)]
    vectors = np.concatenate([np.vstack([instance.arms, instance.theta]) for instance in instances])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-14)
    # A coordinate is uniform; the sum of the three fourth powers has mean 3/5 and variance 16/525.
    assert stats.kstest(vectors[:, 0], stats.uniform(-1, 2).cdf).pvalue > FALSE_ALARM
    assert abs(np.mean(np.sum(vectors**4, axis=1)) - 3 / 5) < 4.5 * np.sqrt(16 / 525 / 3000)


def test_sphere_redraws_until_the_best_arm_leads():
    instances = [problem.sphere(seed, 6, 3, 0.1) for seed in range(200)]
    means = np.sort(np.stack([instance.arms @ instance.theta for instance in instances]))
    leads = means[:, -1] - means[:, -2]
    assert 0.1 <= leads.min() < 0.12
    np.testing.assert_array_equal(problem.sphere(7, 6, 3, 0.1).arms, instances[7].arms)


@pytest.mark.parametrize("K", [10, 40])
def test_yahoo_like_keeps_its_promises(K):
    instance = problem.yahoo_like(0, K)
    arms, means = np.asarray(instance.arms), np.sort(instance.arms @ instance.theta)
    assert arms.shape == (K, 36)
    assert len(np.unique(arms, axis=0)) == K
    assert means[-1] - means[-2] >= 0.05
    assert np.abs(means).max() < 1
    # Each arm is the product of two vectors whose memberships sum to one and whose last entry is 1.
    for z in arms.reshape(K, 6, 6):
        np.testing.assert_allclose(z, np.outer(z[:, 5], z[5]), atol=1e-15)
        np.testing.assert_allclose([z[:5, 5].sum(), z[5, :5].sum(), z[5, 5]], [1, 1, 1], rtol=1e-12)
    assert problem.reduce_rank(instance.arms).shape == (K, min(K, 25))


def test_yahoo_like_truth_is_the_click_rate():
    """Click probabilities lie in [0.01, 0.26], so the means of the labels lie in [-0.98, -0.5], up to the fit."""
    instances = [problem.yahoo_like(seed, 10, log=10_000) for seed in range(3)]
    means = np.concatenate([instance.arms @ instance.theta for instance in instances])
    assert -0.98 < means.mean() < -0.5
    assert means.max() > -0.75


def test_separated_arms_redraws_what_is_too_close_or_double():
    features = np.array([[0.9], [0.88], [0.5], [0.5], [0.1], [1.5], [-1.0]])
    draws = {
        tuple(sorted(problem.separated_arms(np.random.default_rng(seed), features, np.ones(1), 3, 0.05).ravel()))
        for seed in range(50)
    }
    assert draws == {(0.1, 0.5, 0.9), (0.1, 0.5, 0.88)}


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_instances_take_a_dtype(dtype):
    for instance in [problem.soare(2, dtype=dtype), problem.sphere(0, 4, 2, 0.0, dtype=dtype)]:
        assert {leaf.dtype for leaf in instance} == {jnp.dtype(dtype)}


# Rank


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_reduce_rank_keeps_the_geometry(dtype):
    rng = np.random.default_rng(0)
    basis = rng.standard_normal((3, 7))
    arms = jnp.asarray(rng.standard_normal((9, 3)) @ basis, dtype)
    reduced = problem.reduce_rank(arms)
    assert reduced.shape == (9, 3)
    assert reduced.dtype == dtype
    np.testing.assert_allclose(reduced @ reduced.T, arms @ arms.T, rtol=0, atol=500 * jnp.finfo(dtype).eps)


def test_reduce_rank_leaves_arms_that_span_their_space():
    arms = problem.soare(3).arms
    np.testing.assert_array_equal(problem.reduce_rank(arms), arms)


def test_reduce_bandit_keeps_the_means():
    arms = jnp.array([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0], [2.0, 3.0, -1.0]])
    instance = LinearBandit(arms, jnp.array([0.3, -0.2, 0.7]), jnp.array(1.0))
    reduced = problem.reduce_bandit(instance)
    assert reduced.arms.shape == (3, 2)
    np.testing.assert_allclose(reduced.arms @ reduced.theta, arms @ instance.theta, atol=1e-14)
    assert problem.reduce_bandit(problem.canonical(0.1)).arms.shape == (5, 5)


# Bad input


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (jnp.ones(3), r"arms must have shape \(K, d\) with K >= 2 and d >= 1, got \(3,\)"),
        (jnp.ones((1, 3)), r"arms must have shape .*, got \(1, 3\)"),
        (jnp.ones((2, 0)), r"arms must have shape .*, got \(2, 0\)"),
        (jnp.eye(3, dtype=int), r"arms must have a floating-point dtype, got dtype\('int64'\)"),
        (jnp.array([[1.0, jnp.nan], [0.0, 1.0]]), "arms must be finite"),
        (jnp.array([[1.0, jnp.inf], [0.0, 1.0]]), "arms must be finite"),
        (jnp.zeros((2, 2)), "arms must not be all zero"),
        (jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), "arms must have no two equal rows"),
    ],
)
def test_bad_arms(arms, message):
    for check in (problem.check_arms, problem.reduce_rank):
        with pytest.raises(ValueError, match=message):
            check(arms)
    d = arms.shape[-1]
    with pytest.raises(ValueError, match=message):
        problem.gaussian(LinearBandit(arms, jnp.ones(d), jnp.array(1.0)))


def test_rank_is_checked_where_it_matters():
    arms = jnp.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    problem.check_arms(arms)
    with pytest.raises(ValueError, match=r"arms must have rank 3 \(see linear.reduce_rank\), got 2"):
        problem.check_arms(arms, full_rank=True)
    problem.check_arms(problem.reduce_rank(arms), full_rank=True)


def test_values_are_not_checked_under_a_trace_but_shapes_are():
    jax.jit(problem.check_arms)(jnp.zeros((2, 2)))
    with pytest.raises(ValueError, match="arms must have shape"):
        jax.jit(problem.check_arms)(jnp.zeros(2))


@pytest.mark.parametrize("environment", [problem.gaussian, problem.signs])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"theta": jnp.zeros(3)}, r"theta must have shape \(2,\), got \(3,\)"),
        ({"theta": jnp.array([0.0, jnp.nan])}, "theta must be finite"),
        ({"noise_scale": jnp.array(0.0)}, "noise_scale must be positive, got 0.0"),
        ({"noise_scale": jnp.array(jnp.nan)}, "noise_scale must be positive, got nan"),
        ({"noise_scale": jnp.ones(2)}, "noise_scale must be a scalar"),
    ],
)
def test_bad_bandits(environment, change, message):
    with pytest.raises(ValueError, match=message):
        environment(bandit([0.1, 0.2])._replace(**change))


def test_bad_environments():
    with pytest.raises(ValueError, match=r"theta must give abs\(x.theta\) <= 1 for every arm x, got 1.5"):
        problem.signs(bandit([0.1, -1.5]))
    with pytest.raises(ValueError, match=r"action must be Pull or Allocation, got .*Bridge"):
        problem.signs(bandit([0.1, 0.5]), Bridge)
    with pytest.raises(ValueError, match=r"action must be Pull, Allocation or Bridge, got .*int"):
        problem.gaussian(bandit([0.1, 0.5]), int)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: problem.soare(1), "d must be at least 2, got 1"),
        (lambda: problem.soare(3, 0.0), r"omega must lie in \(0, pi/2\), got 0.0"),
        (lambda: problem.soare(3, noise_scale=-1.0), "noise_scale must be positive, got -1.0"),
        (lambda: problem.canonical(0.0), "gap must be positive, got 0.0"),
        (lambda: problem.canonical(0.1, 1), "d must be at least 2, got 1"),
        (lambda: problem.sphere(0, 1, 3, 0.1), "K must be at least 2, got 1"),
        (lambda: problem.sphere(0, 3, 1, 0.1), "d must be at least 2, got 1"),
        (lambda: problem.yahoo_like(0, 1), "K must be at least 2, got 1"),
        (lambda: problem.theorem3_counterexample(0), "n must be at least 1, got 0"),
        (lambda: problem.theorem3_counterexample(2, s=0.0), "s must be positive, got 0.0"),
        (lambda: problem.theorem3_counterexample(2, gap=-1.0), "gap must be positive, got -1.0"),
    ],
)
def test_bad_instances(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_gap_out_of_reach_is_refused(monkeypatch):
    monkeypatch.setattr(problem, "MAX_DRAWS", 100)
    with pytest.raises(ValueError, match=r"min_gap must be within reach of 100 draws, got 2.1"):
        problem.sphere(0, 3, 2, 2.1)
    with pytest.raises(ValueError, match=r"min_gap must be within reach of 100 draws of 3 arms, got 0.9"):
        problem.yahoo_like(0, 3, min_gap=0.9)
    with pytest.raises(ValueError, match=r"features must have a row x with abs\(x.theta\) < 1"):
        problem.separated_arms(np.random.default_rng(0), np.ones((4, 1)), np.ones(1), 2, 0.1)
