"""Laws of the environments.

A test of a law compares draws from fixed seeds with the exact distribution. Over the seeds, the probability of a false
alarm is about 1e-5.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandits
from jaxbandits import linear, mab
from jaxbandits.linear import Allocation, Bridge, Instance, Pull

DRAWS = 10_000
FALSE_ALARM = 1e-5


# Forms of actions; an environment reads nothing but their class.
ALLOCATION = Allocation(jnp.zeros(2, int))
BRIDGE = Bridge(jnp.zeros(2, int), jnp.zeros(2, int), jnp.zeros(2))


def leaping(leap, K=2):
    """Returns an algorithm that says its leap."""
    return linear.lin_ucb(np.eye(K), delta=0.1, norm_bound=1.0)._replace(problem=lambda: {"leap": leap})


def canonical(means, noise_scale=1.0, dtype=float):
    """Builds an instance of canonical arms, so that theta is the vector of the means."""
    means = jnp.array(means, dtype)
    return Instance(np.eye(len(means), dtype=dtype), means, jnp.array(noise_scale, dtype))


def sample(environment, action, seed=0, draws=DRAWS):
    """Draws independent observations of one action."""
    keys = jax.random.split(jax.random.key(seed), draws)
    return jax.vmap(lambda key: environment.respond((), action, environment.noise(key))[0])(keys)


def assert_normal(values, mean, variance):
    assert stats.kstest(values, stats.norm(mean, np.sqrt(variance)).cdf).pvalue > FALSE_ALARM


def assert_binomial_signs(values, n, p):
    """Asserts the law 2 Binomial(n, p) - n, by chi-square over cells of at least 10 expected values."""
    successes = (values + n) / 2
    np.testing.assert_array_equal(successes, np.round(successes))
    edges = np.unique(stats.binom(n, p).ppf(np.linspace(0.05, 0.95, 19)))
    cdf = np.concatenate([[0], stats.binom(n, p).cdf(edges), [1]])
    expected = len(values) * np.diff(cdf)
    observed = np.bincount(np.searchsorted(edges, successes), minlength=len(expected))
    big = expected > 10
    assert observed[~big].sum() <= 30
    assert stats.chi2(max(big.sum() - 1, 1)).sf(np.sum((observed - expected)[big] ** 2 / expected[big])) > FALSE_ALARM


# Gaussian


@pytest.mark.parametrize("times", [1, 7, 1000])
def test_gaussian_pull_has_the_law_of_a_sum(times):
    environment = linear.environment(canonical([0.5, -0.3, 0.0], noise_scale=2.0))
    values = sample(environment, Pull(jnp.array(1), jnp.array(times)))
    assert values.shape == (DRAWS,)
    assert_normal(values, -0.3 * times, 4 * times)


def test_gaussian_mean_is_the_inner_product():
    instance = Instance(jnp.array([[1.0, 2.0], [3.0, -1.0]]), jnp.array([0.5, 0.25]), jnp.array(1.0))
    environment = linear.environment(instance)
    assert environment.respond((), Pull(jnp.array(1), jnp.array(4)), jnp.array(0.0))[0] == 4 * 1.25


def test_gaussian_allocation_has_independent_sums():
    environment = linear.environment(canonical([0.5, -0.3, 0.0], noise_scale=0.5), ALLOCATION)
    values = sample(environment, Allocation(jnp.array([3, 0, 40])))
    assert_normal(values[:, 0], 1.5, 0.25 * 3)
    assert np.all(values[:, 1] == 0)
    assert_normal(values[:, 2], 0, 0.25 * 40)
    assert abs(np.corrcoef(values[:, 0], values[:, 2])[0, 1]) < 4.5 / np.sqrt(DRAWS)


def test_bridge_refines_a_sum_without_changing_its_law():
    """An end and then a middle given the end have the law of two consecutive sums."""
    instance = canonical([0.5, -0.3, 1.0], noise_scale=1.5)
    environment = linear.environment(instance, BRIDGE)
    zeros, counts, ahead = jnp.zeros(3, int), jnp.array([3, 10, 1]), jnp.array([12, 11, 2])

    def both(key):
        first, second = jax.random.split(key)
        end = environment.respond((), Bridge(ahead, zeros, jnp.zeros(3)), environment.noise(first))[0]
        middle = environment.respond((), Bridge(counts, ahead, end), environment.noise(second))[0]
        return middle, end

    middle, end = jax.vmap(both)(jax.random.split(jax.random.key(1), DRAWS))
    remainder = np.asarray(end - middle)
    for k in range(3):
        mean, n, m = float(instance.theta[k]), int(counts[k]), int(ahead[k] - counts[k])
        assert_normal(np.asarray(middle)[:, k], n * mean, 2.25 * n)
        assert_normal(remainder[:, k], m * mean, 2.25 * m)
        assert abs(np.corrcoef(np.asarray(middle)[:, k], remainder[:, k])[0, 1]) < 4.5 / np.sqrt(DRAWS)


def test_bridge_by_hand():
    environment = linear.environment(canonical([0.5, -0.3, 1.0, 9.0, 9.0], noise_scale=2.0), BRIDGE)
    action = Bridge(jnp.array([3, 7, 4, 0, 0]), jnp.array([12, 7, 0, 5, 0]), jnp.array([8.0, 0.1, 99.0, 3.0, 7.0]))
    values = environment.respond((), action, jnp.ones(5))[0]
    # Expected: a quarter of the sum and 2 sqrt(3 * 9 / 12), the known sum, four fresh pulls, nothing.
    np.testing.assert_allclose(values, [2 + 3, 0.1, 4 + 4, 0, 0], rtol=1e-15, atol=0)
    assert values[1] == 0.1


# Signs


@pytest.mark.parametrize("mean", [-1.0, -0.9, 0.0, 0.3, 1.0])
def test_a_sign_is_positive_with_its_probability(mean):
    values = sample(linear.environment(canonical([0.5, mean]), noise="sign"), Pull(jnp.array(1), jnp.array(1)))
    assert set(np.unique(values)) <= {-1.0, 1.0}
    assert stats.binomtest(int(np.sum(values == 1)), DRAWS, (1 + mean) / 2).pvalue > FALSE_ALARM


SUMS = {1: 0.2, 2: -0.9, 19: 0.0, 50: 0.9, 1000: -0.4, 10**7: 0.02}  # number of pulls -> mean


def test_sums_of_signs_are_binomial():
    environment = linear.environment(canonical(list(SUMS.values())), leaping(10**7), noise="sign")
    draw = jax.jit(lambda action: sample(environment, action))
    for arm, (times, mean) in enumerate(SUMS.items()):
        values = draw(Pull(jnp.array(arm), jnp.array(times)))
        assert_binomial_signs(np.asarray(values), times, (1 + mean) / 2)


def test_an_allocation_of_signs_is_binomial_per_arm():
    environment = linear.environment(canonical([*SUMS.values(), -1.0, 0.1, 1.0]), ALLOCATION, noise="sign")
    values = np.asarray(sample(environment, Allocation(jnp.array([*SUMS, 9, 0, 5]))))
    for arm, (times, mean) in enumerate(SUMS.items()):
        assert_binomial_signs(values[:, arm], times, (1 + mean) / 2)
    np.testing.assert_array_equal(values[:, len(SUMS) :], np.broadcast_to([-9.0, 0.0, 5.0], (DRAWS, 3)))


@pytest.mark.parametrize("leap", [1, 2])
def test_a_pull_of_more_than_the_leap_gives_nan(leap):
    environment = linear.environment(canonical([0.5, 0.1]), leaping(leap), noise="sign")
    noise = environment.noise(jax.random.key(0))
    assert jnp.isfinite(environment.respond((), Pull(jnp.array(0), jnp.array(leap)), noise)[0])
    assert jnp.isnan(environment.respond((), Pull(jnp.array(0), jnp.array(leap + 1)), noise)[0])


@pytest.mark.parametrize(
    ("action", "options"),
    [(Pull(jnp.array(0), jnp.array(1)), {}), (Allocation(jnp.array([1, 1])), {"algorithm": ALLOCATION})],
)
def test_a_traced_mean_beyond_one_gives_nan(action, options):
    """Nothing can raise in a trace, so the run must fail instead of continuing with a law that does not exist."""

    def respond(theta):
        environment = linear.environment(Instance(np.eye(2), theta, jnp.array(1.0)), noise="sign", **options)
        return environment.respond((), action, environment.noise(jax.random.key(0)))[0]

    assert jnp.isnan(jax.jit(respond)(jnp.array([1.2, 0.0]))).any()


def test_binomial_sums_need_64_bit():
    with jax.enable_x64(False):
        instance = linear.canonical(0.5)
        assert (
            linear.environment(instance, noise="sign").respond((), Pull(jnp.array(0), jnp.array(1)), jnp.float32(0.3))[
                0
            ]
            == 1
        )
        with pytest.raises(ValueError, match="jax_enable_x64 must be on"):
            linear.environment(instance, ALLOCATION, noise="sign")


# Both


ENVIRONMENTS = {
    "gaussian pull": ({}, Pull(jnp.array(1), jnp.array(0))),
    "gaussian allocation": ({"algorithm": ALLOCATION}, Allocation(jnp.array([0, 0]))),
    "gaussian bridge": ({"algorithm": BRIDGE}, Bridge(jnp.array([0, 0]), jnp.array([0, 2]), jnp.array([0.0, 3.0]))),
    "one sign": ({"noise": "sign"}, Pull(jnp.array(1), jnp.array(0))),
    "sum of signs": ({"noise": "sign", "algorithm": leaping(8)}, Pull(jnp.array(1), jnp.array(0))),
    "sign allocation": ({"noise": "sign", "algorithm": ALLOCATION}, Allocation(jnp.array([0, 0]))),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_nothing_pulled_gives_zero_in_the_dtype_of_the_arms(name, dtype):
    options, action = ENVIRONMENTS[name]
    environment = linear.environment(canonical([0.5, -0.7], dtype=dtype), **options)
    action = jax.tree.map(lambda x: x.astype(dtype) if x.dtype == jnp.float64 else x, action)
    observation = environment.respond((), action, environment.noise(jax.random.key(3)))[0]
    assert observation.dtype == dtype
    np.testing.assert_array_equal(observation, np.zeros(observation.shape))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments_can_be_built_inside_vmap_over_instances(name):
    options, action = ENVIRONMENTS[name]
    some = {Pull: lambda a: a._replace(times=jnp.array(1))}
    action = some.get(type(action), lambda a: a._replace(counts=jnp.array([1, 2])))(action)
    instances = [canonical([0.5, -0.7]), canonical([0.1, 0.9], noise_scale=3.0)]

    def respond(instance):
        environment = linear.environment(instance, **options)
        return environment.respond((), action, environment.noise(jax.random.key(5)))[0]

    batch = jax.jit(jax.vmap(respond))(jax.tree.map(lambda *leaves: np.stack(leaves), *instances))
    np.testing.assert_allclose(batch, np.stack([respond(instance) for instance in instances]), rtol=1e-14)


# Form of the actions


KEY = jax.random.key(0)
PLAIN = canonical([0.5, -0.7])
RULES = {
    "lingape": linear.lingape(PLAIN.arms, delta=0.1),
    "lingape, leap": linear.lingape(PLAIN.arms, delta=0.1, leap=64),
    "fws": linear.fws(PLAIN.arms, stop=linear.no_stop()),
    "xy_static": linear.xy_static(PLAIN.arms, jnp.full(2, 0.5), delta=0.1),
    "xy_static_exact": linear.xy_static_exact(PLAIN.arms, jnp.full(2, 0.5), delta=0.1),
}


@pytest.mark.parametrize("noise", ["gaussian", "sign"])
@pytest.mark.parametrize("name", RULES)
def test_environment_given_an_algorithm_answers_it(name, noise):
    algorithm = RULES[name]
    if name == "xy_static_exact" and noise == "sign":
        with pytest.raises(ValueError, match="algorithm must have actions Pull, Step or Allocation"):
            linear.environment(PLAIN, algorithm, noise=noise)
        return
    environment = linear.environment(PLAIN, algorithm, noise=noise)
    assert jaxbandits.run(KEY, algorithm, environment, max_rounds=9).pulls > 0


def test_environment_without_the_algorithm_refuses_another_class_of_actions():
    message = "action must be of type Pull, .*, got Allocation. Write linear.environment\\(instance, algorithm\\)"
    with pytest.raises(ValueError, match=message):
        jaxbandits.run(KEY, RULES["xy_static"], linear.environment(PLAIN), max_rounds=9)
    with pytest.raises(ValueError, match="action must be of type Allocation, .*, got Bridge"):
        linear.environment(PLAIN, ALLOCATION).respond((), BRIDGE, jnp.zeros(2))


def test_leap_is_compared_under_signs_alone():
    algorithm = RULES["lingape, leap"]
    message = "must have the same leap, got 64 in the algorithm and 1 .* write environment\\(instance, algorithm\\)"
    with pytest.raises(ValueError, match=message):
        jaxbandits.run(KEY, algorithm, linear.environment(PLAIN, noise="sign"), max_rounds=9)
    assert jaxbandits.run(KEY, algorithm, linear.environment(PLAIN), max_rounds=9).pulls > 0


# Bad input


@pytest.mark.parametrize("noise", ["gaussian", "sign"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"theta": jnp.zeros(3)}, r"instance.theta must be an array of real numbers of shape \(2,\), got \[0. 0. 0.\]"),
        ({"noise_scale": jnp.array(0.0)}, "instance.noise_scale must be positive, got 0.0"),
        ({"noise_scale": jnp.ones(2)}, "instance.noise_scale must be positive, got "),
        ({"arms": jnp.ones((2, 2))}, "instance.arms must have no two equal rows"),
    ],
)
def test_bad_instances(noise, change, message):
    with pytest.raises(ValueError, match=message):
        linear.environment(canonical([0.1, 0.2])._replace(**change), noise=noise)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "sign"}, r"instance.theta must give abs\(x.theta\) <= 1 for every arm x, got 1.5"),
        (
            {"noise": "sign", "algorithm": BRIDGE},
            "algorithm must have actions Pull, Step or Allocation with noise='sign', got .*Bridge",
        ),
        (
            {"algorithm": mab.ucb1(mab.Gaussian(2))},
            "algorithm must have actions Pull, Step, Allocation or Bridge with noise='gaussian', got Pull",
        ),
        ({"algorithm": Allocation}, "algorithm must have actions Pull, Step, .* got .*Allocation"),
        ({"algorithm": leaping(0), "noise": "sign"}, "leap must be an integer of at least 1, got 0"),
    ],
)
def test_bad_environments(options, message):
    with pytest.raises(ValueError, match=message):
        linear.environment(canonical([0.1, -1.5]), **options)
