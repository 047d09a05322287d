"""Instances by hand, laws of the environments, and the score of an answer.

A test of a law compares draws from fixed seeds with the exact distribution. Over the seeds, the probability of a false
alarm is about 1e-5.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from scipy import stats

from jaxbandits import fullbandit
from jaxbandits.fullbandit import Instance, Pulls, all_superarms, environment, make_design

DRAWS = 4000
FALSE_ALARM = 1e-5

PAIRS = make_design(all_superarms(4, 2), 2)  # six super-arms
X = np.asarray(PAIRS.support)
THETA = np.array([0.9, 0.5, 0.0, 1.0])
COUNTS = np.array([1, 0, 3, 1, 40, 7])
# Five questions. Workers 0 and 1 are right together, worker 2 when they are wrong, worker 3 always.
CORRECT = np.array([[1, 1, 0, 1], [1, 1, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 1]])


def instance(theta=THETA, k=2, noise_scale=1.0):
    return Instance(jnp.asarray(theta), k, noise_scale)


def pulls(counts):
    return Pulls(jnp.asarray(counts))


@functools.cache
def sampler(environment, draws):
    """Returns a sampler that is compiled once for all counts and seeds."""
    one = jax.vmap(lambda key, counts: environment.respond((), pulls(counts), environment.noise(key))[0], (0, None))
    return jax.jit(lambda key, counts: one(jax.random.split(key, draws), counts))


def sample(environment, counts, seed=0, draws=DRAWS):
    """Draws independent observations of one action, (draws, s)."""
    return np.asarray(sampler(environment, draws)(jax.random.key(seed), jnp.asarray(counts)))


def assert_normal(values, mean, variance):
    assert stats.kstest(values, stats.norm(mean, np.sqrt(variance)).cdf).pvalue > FALSE_ALARM


def assert_law(values, pmf):
    """Tests values 0, 1, .. against their probabilities: chi-square over cells of at least 10 expected values."""
    np.testing.assert_array_equal(values, np.round(values))
    expected, observed = len(values) * pmf, np.bincount(values.astype(int), minlength=len(pmf))
    assert len(observed) == len(pmf)
    assert observed[expected < 1e-9].sum() == 0
    big = expected > 10
    rare = expected[~big].sum()
    assert observed[~big].sum() <= rare + 6 * np.sqrt(rare) + 10
    assert stats.chi2(max(big.sum() - 1, 1)).sf(np.sum((observed - expected)[big] ** 2 / expected[big])) > FALSE_ALARM


def law_of_a_sum(pull, m):
    """Computes the probabilities of the sum of m pulls from the probabilities of one, pull by pull."""
    pmf = np.ones(1)
    for _ in range(m):
        pmf = np.convolve(pmf, pull)
    return pmf


# Gaussian


def test_gaussian_sums_have_their_law():
    theta, variance = np.array([0.5, -0.3, 0.1, 1.0]), 2 * 0.25
    values = sample(environment(instance(theta, noise_scale=0.5), PAIRS), COUNTS)
    assert np.all(values[:, COUNTS == 0] == 0)
    for i in np.flatnonzero(COUNTS):
        assert_normal(values[:, i], COUNTS[i] * (X[i] @ theta), COUNTS[i] * variance)
    correlation = np.corrcoef(values[:, COUNTS > 0].T) - np.eye(5)
    assert np.abs(correlation).max() < 5 / np.sqrt(DRAWS)


def test_gaussian_by_hand():
    answers = environment(instance([0.5, -0.25, 0.0, 2.0], noise_scale=3 / np.sqrt(2)), PAIRS)
    assert answers.noise(jax.random.key(0)).shape == (6,)
    noise = jnp.array([1.0, 1.0, -2.0, 0.0, 0.0, 1.0])
    observed = answers.respond((), pulls([8, 0, 2, 1, 4, 0]), noise)[0]
    root = np.sqrt(2)
    np.testing.assert_allclose(observed, [2 + 3 * 2 * root, 0, 5 - 2 * 3 * root, -0.25, 7, 0], rtol=1e-14)


# Design


def test_environment_of_an_algorithm_answers_for_its_design():
    algorithm = fullbandit.icb(PAIRS, delta=0.1, epsilon=0.1)
    read, told = (environment(instance(), asker) for asker in (algorithm, PAIRS))
    noise = told.noise(jax.random.key(0))
    for each in (read, told):
        np.testing.assert_array_equal(each.problem()["design.support"], PAIRS.support)
        assert each.problem()["design.k"] == algorithm.problem()["design.k"] == 2
    observed, expected = (each.respond((), pulls(COUNTS), noise)[0] for each in (read, told))
    np.testing.assert_array_equal(observed, expected)


@pytest.mark.parametrize("problem", [None, lambda: {"arms": 4}])
def test_environment_of_an_algorithm_without_a_design_is_refused(problem):
    algorithm = fullbandit.icb(PAIRS, delta=0.1, epsilon=0.1)._replace(problem=problem)
    with pytest.raises(ValueError, match=r"algorithm must have a design in its problem, got (nothing|arms)\. Give the"):
        environment(instance(), algorithm)


# Right and wrong answers


def bernoulli_pull(i):
    """Computes the probabilities of one pull of super-arm i."""
    pmf = np.ones(1)
    for p in THETA[X[i] == 1]:
        pmf = np.convolve(pmf, [1 - p, p])
    return pmf


def replay_pull(i):
    return np.bincount((CORRECT @ X[i]).astype(int), minlength=3) / len(CORRECT)


COUNTING = {
    "bernoulli": (environment(instance(), PAIRS, noise="bernoulli"), bernoulli_pull),
    "replay": (environment(fullbandit.from_answers(CORRECT, k=2), PAIRS, noise="replay"), replay_pull),
}


@pytest.mark.parametrize("name", COUNTING)
def test_counted_sums_have_their_law(name):
    """Super-arms have 0, 1 or many pulls, and some arms always or never succeed."""
    environment, pull = COUNTING[name]
    values = sample(environment, COUNTS)
    for i, m in enumerate(COUNTS):
        assert_law(values[:, i], law_of_a_sum(pull(i), m))
    moving = np.std(values, axis=0) > 0
    assert moving.sum() >= 3
    assert np.abs(np.corrcoef(values[:, moving].T) - np.eye(moving.sum())).max() < 5 / np.sqrt(DRAWS)


@pytest.mark.parametrize("name", COUNTING)
def test_one_action_has_the_law_of_many_single_pulls(name):
    environment, _ = COUNTING[name]
    m = 8
    together = sample(environment, np.full(6, m), seed=1)
    one_by_one = sum(sample(environment, np.ones(6, int), seed=2 + pull) for pull in range(m))
    for i in range(6):
        assert stats.ks_2samp(together[:, i], one_by_one[:, i]).pvalue > FALSE_ALARM
        # The mean and the variance of the draws are off by less than six standard deviations.
        spread = max(together[:, i].var(), one_by_one[:, i].var())
        assert abs(together[:, i].mean() - one_by_one[:, i].mean()) <= 6 * np.sqrt(2 * spread / DRAWS)
        assert abs(together[:, i].var() - one_by_one[:, i].var()) <= 6 * spread * np.sqrt(4 / DRAWS)


@pytest.mark.parametrize("m", [10**5, 2 * 10**8])
def test_sums_of_huge_counts_are_normal(m):
    """The counts are too large for single pulls."""
    counts = np.full(6, m)
    for name, (answers, pull) in COUNTING.items():
        values = sample(answers, counts, seed=3)
        for i in range(6):
            support = np.arange(3)
            mean = pull(i) @ support
            variance = pull(i) @ (support - mean) ** 2
            if variance == 0:
                assert np.all(values[:, i] == m * mean), name
            else:
                assert_normal(values[:, i] + np.random.default_rng(i).uniform(-0.5, 0.5, DRAWS), m * mean, m * variance)


def test_replay_noise_is_shared_by_the_workers():
    """Workers 0 and 1 are right together, 0 and 2 never: variances 4 * 0.24 and 0, where independence has 0.48."""
    shared, opposite = (int(np.flatnonzero((pair == X).all(axis=1))[0]) for pair in ([1, 1, 0, 0], [1, 0, 1, 0]))
    values = sample(COUNTING["replay"][0], np.full(6, 100))
    assert abs(values[:, shared].var() / 96 - 1) < 6 * np.sqrt(2 / DRAWS)
    assert np.all(values[:, opposite] == 100)


def test_normal_sums_have_the_moments_of_binomial_ones():
    values = sample(environment(instance(), PAIRS, noise="bernoulli_normal"), COUNTS)
    variances = X @ (THETA * (1 - THETA))
    for i, m in enumerate(COUNTS):
        if m * variances[i] == 0:
            np.testing.assert_allclose(values[:, i], m * (X[i] @ THETA), rtol=1e-14)
        else:
            assert_normal(values[:, i], m * (X[i] @ THETA), m * variances[i])


def test_workers_who_always_or_never_know_give_no_noise():
    theta = np.array([1.0, 0.0, 1.0, 0.0])
    counts = np.array([0, 1, 10, 11, 1000, 10**9])
    for noise in ("bernoulli", "bernoulli_normal"):
        values = sample(environment(instance(theta), PAIRS, noise=noise), counts)
        np.testing.assert_array_equal(values, np.tile(counts * (X @ theta), (DRAWS, 1)))


def test_accuracies_outside_0_and_1_end_a_run():
    for noise in ("bernoulli", "bernoulli_normal"):

        def respond(theta, noise=noise):
            answers = environment(instance(theta), PAIRS, noise=noise)
            return answers.respond((), pulls(COUNTS), answers.noise(jax.random.key(0)))[0]

        assert not jnp.isnan(jax.jit(respond)(jnp.asarray(THETA))).any()
        assert jnp.isnan(jax.jit(respond)(jnp.array([0.5, 1.2, 0.5, 0.5]))).any()
        assert jnp.isnan(jax.jit(respond)(jnp.array([-0.1, 0.9, 0.5, 0.5]))).any()


def test_binomial_sums_need_64_bit():
    with jax.enable_x64(False):
        design = make_design(all_superarms(4, 2), 2)
        few = Instance(jnp.asarray(THETA), 2)
        normal = environment(few, design, noise="bernoulli_normal")
        assert normal.respond((), Pulls(jnp.ones(6, int)), jnp.zeros(6))[0].dtype == jnp.float32
        with pytest.raises(ValueError, match="jax_enable_x64 must be on for binomial sums, got False"):
            environment(few, design, noise="bernoulli")
        with pytest.raises(ValueError, match="jax_enable_x64 must be on for binomial sums, got False"):
            environment(fullbandit.from_answers(CORRECT, k=2), design, noise="replay")


# All environments


def make(name, theta, design):
    if name == "replay":
        correct = theta > jnp.asarray([[0.2], [0.6], [0.95]], theta.dtype)
        return environment(fullbandit.from_answers(correct, k=2), design, noise="replay")
    return environment(Instance(theta, 2), design, noise=name)


ENVIRONMENTS = ["gaussian", "bernoulli", "bernoulli_normal", "replay"]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_nothing_pulled_gives_zero_in_the_dtype_of_the_design(name):
    dtype = jnp.float32
    answers = make(name, jnp.asarray(THETA), make_design(all_superarms(4, 2), 2, dtype=dtype))
    observed = answers.respond((), Pulls(jnp.zeros(6, int)), answers.noise(jax.random.key(3)))[0]
    assert observed.dtype == dtype
    np.testing.assert_array_equal(observed, np.zeros(6))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_environments_can_be_built_inside_vmap_over_instances_and_designs(name):
    thetas = jnp.asarray([THETA, [0.1, 0.7, 0.3, 0.25]])
    weighted = make_design(all_superarms(4, 2), 2, weights=np.array([3, 1, 1, 1, 1, 1]) / 8)
    cyclic = make_design(all_superarms(4, 2)[::-1], 2)
    designs = [weighted, cyclic]

    def respond(theta, design):
        answers = make(name, theta, design)
        return answers.respond((), pulls(COUNTS), answers.noise(jax.random.key(5)))[0]

    batch = jax.jit(jax.vmap(respond))(thetas, jax.tree.map(lambda *leaves: np.stack(leaves), *designs))
    one_by_one = [jax.jit(respond)(theta, design) for theta, design in zip(thetas, designs, strict=True)]
    np.testing.assert_allclose(batch, one_by_one, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_lane_does_not_depend_on_its_neighbours(name):
    """In a compiled loop over rounds, some lanes idle and others make millions of pulls."""
    answers = make(name, jnp.asarray(THETA), PAIRS)

    def total(key, counts):
        def one_round(r, sums):
            noise = answers.noise(jax.random.fold_in(key, r))
            return sums + answers.respond((), pulls(counts * r), noise)[0]

        return lax.fori_loop(0, 4, one_round, jnp.zeros(6))

    total = jax.jit(jax.vmap(total))
    keys = jax.random.split(jax.random.key(0), 3)
    counts = jnp.asarray([np.zeros(6, int), COUNTS, COUNTS * 10**6])
    sums = total(keys, counts)
    assert np.all(sums[0] == 0)
    for idle in range(3):
        masked = total(keys, counts.at[idle].set(0))
        np.testing.assert_array_equal(masked, sums.at[idle].set(0))


def test_adding_a_constant_to_theta_adds_it_to_every_pull():
    noise, action = jnp.linspace(-1, 1, 6), pulls(COUNTS)
    low, high = (environment(instance(THETA + shift), PAIRS).respond((), action, noise)[0] for shift in (0, 3))
    np.testing.assert_allclose(high - low, 2 * 3 * COUNTS, rtol=1e-12)


# The value of an answer


@pytest.mark.parametrize("k", [2, 3, 5])
def test_score_against_all_sets(k):
    counts = np.array([7, 3, 7, 3, 5, 3, 0])
    sets = np.array([[i in chosen for i in range(7)] for chosen in itertools.combinations(range(7), k)])
    values = sets @ counts
    losses = jax.vmap(lambda answer: fullbandit.loss(Instance(counts, k), answer))(sets)
    np.testing.assert_array_equal(losses, values.max() - values)
    for theta in (counts, counts / 30, (counts / 30).astype(np.float32)):
        right = jax.jit(jax.vmap(lambda answer, theta=theta: fullbandit.is_right(Instance(theta, k), answer)))(sets)
        np.testing.assert_array_equal(right, values == values.max())
    # k = 3 takes the only arm of its value, k = 5 two of three tied arms.
    assert np.sum(values == values.max()) == {2: 1, 3: 1, 5: 3}[k]


def test_epsilon_admits_a_loss():
    means, answer = Instance(np.array([0.9, 0.5, 0.3, 0.1]), 2), np.array([True, False, True, False])
    admitted = [bool(fullbandit.is_right(means, answer, epsilon)) for epsilon in (0.19, 0.2, 0.21)]
    # 0.5 - 0.3 is a little more than 0.2 in float64; the tolerance admits it.
    assert admitted == [False, True, True]
    counts = Instance(np.array([9, 5, 3, 1]), 2)
    admitted = [bool(fullbandit.is_right(counts, answer, epsilon)) for epsilon in (0, 1.9, 2)]
    assert admitted == [False, False, True]


def test_a_set_of_another_size_is_not_right():
    means = Instance(np.array([0.9, 0.5, 0.3, 0.1]), 2)
    for size in range(5):
        assert bool(fullbandit.is_right(means, np.arange(4) < size, 10.0)) == (size == 2)


# Instances


def test_synthetic_has_its_gap():
    for seed, gap in itertools.product(range(20), (0.0, 0.1, 1.0)):
        theta = np.asarray(fullbandit.synthetic(seed, 10, 4, gap).theta)
        assert theta.shape == (10,)
        assert abs(theta[:4].min() - theta[4] - gap) < 1e-15
        assert np.all((theta[:4] >= 0) & (theta[:4] <= 1))
        assert np.all((theta[5:] >= -1) & (theta[5:] <= theta[4]))


def test_synthetic_means_are_uniform():
    thetas = np.stack([fullbandit.synthetic(seed, 7, 3, 0.2).theta for seed in range(500)])
    assert stats.kstest(thetas[:, :3].ravel(), stats.uniform.cdf).pvalue > FALSE_ALARM
    scaled = (thetas[:, 4:] + 1) / (thetas[:, 3:4] + 1)
    assert stats.kstest(scaled.ravel(), stats.uniform.cdf).pvalue > FALSE_ALARM


def test_synthetic_shuffles_the_same_means():
    sorted_first = [
        tuple(np.argsort(-fullbandit.synthetic(seed, 6, 2, 0.1, shuffle=True).theta)[:2]) for seed in range(30)
    ]
    assert len(set(map(frozenset, sorted_first))) > 8
    plain, shuffled, again, other = (
        np.asarray(fullbandit.synthetic(seed, 6, 2, 0.1, shuffle=shuffle).theta)
        for seed, shuffle in ((4, False), (4, True), (4, True), (5, True))
    )
    np.testing.assert_array_equal(np.sort(plain), np.sort(shuffled))
    np.testing.assert_array_equal(shuffled, again)
    assert not np.array_equal(np.sort(shuffled), np.sort(other))


def test_synthetic_of_the_fewest_arms():
    theta = np.asarray(fullbandit.synthetic(0, 3, 2, 1.0).theta)
    assert theta.shape == (3,)
    assert abs(theta[:2].min() - theta[2] - 1) < 1e-15


SIZES = {
    "it": (36, 25, 0.5367, 0.84),
    "medicine": (45, 36, 0.4753, 0.9167),
    "pokemon": (55, 20, 0.2773, 1.0),
    "science": (111, 20, 0.2946, 0.85),
    "few": (12, 3, 0.5, 1.0),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("seed", range(5))
def test_crowd_like_has_its_size_average_best_and_gap(name, seed):
    workers, tasks, average, best = SIZES[name]
    made = fullbandit.crowd_like(seed, workers, tasks, average, best)
    counts = np.asarray(made.theta) * tasks
    assert made.k == 10
    assert counts.shape == (workers,)
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-12)
    assert counts.min() > -1e-12
    assert round(counts.max()) == round(best * tasks)
    assert round(counts.sum()) == round(average * tasks * workers)
    tenth, next_best = np.sort(counts)[::-1][9:11]
    assert tenth - next_best > 0.5
    again, other = (fullbandit.crowd_like(s, workers, tasks, average, best).theta for s in (seed, seed + 100))
    np.testing.assert_array_equal(made.theta, again)
    assert not np.array_equal(made.theta, other)


def test_crowd_like_draws_beta_accuracies():
    theta = np.asarray(fullbandit.crowd_like(0, 3000, 10_000, 0.3, 0.8, k=100).theta)
    assert stats.kstest(theta / 0.8, stats.beta(4 * 0.375, 4 * 0.625).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_instances_take_a_dtype(dtype):
    made = [
        fullbandit.synthetic(0, 6, 2, 0.1, dtype=dtype),
        fullbandit.crowdsourcing("it", dtype=dtype),
        fullbandit.crowd_like(0, 36, 25, 0.5, 0.8, dtype=dtype),
    ]
    assert {each.theta.dtype for each in made} == {jnp.dtype(dtype)}


# Bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fullbandit.crowd_like(0, 30, 5, 0.8, 0.8), r"average must lie in \(0, 0.8\), got 0.8"),
        (lambda: fullbandit.crowd_like(0, 30, 5, 0.01, 0.05), "best must be at least one of 5 tasks, got 0.05"),
        (
            lambda: fullbandit.crowd_like(0, 30, 5, 0.02, 0.8),
            r"average must give a sum of correct answers in 4..120, .*, got 0.02",
        ),
        (
            lambda: fullbandit.crowd_like(0, 30, 1, 0.9, 1.0),
            "k must leave a gap .*, got 10",
        ),
        (lambda: environment(instance(noise_scale=-1.0), PAIRS), "instance.noise_scale must be at least 0, got -1.0"),
        (
            lambda: environment(instance(THETA[:3]), PAIRS),
            "instance.theta and design must be of one size, got",
        ),
        (lambda: environment(instance(k=3), PAIRS), "instance.k and design.k must be of one size, got: .* has 3"),
        (lambda: environment(instance(2 * THETA), PAIRS, noise="bernoulli"), r"theta must lie in \[0, 1\]"),
        (lambda: environment(instance(), PAIRS, noise="replay"), "instance.correct must hold the answers"),
        (
            lambda: environment(instance()._replace(correct=CORRECT[:, :3] == 1), PAIRS, noise="replay"),
            r"instance.correct must be an array of booleans of shape \(Q, 4\)",
        ),
        (lambda: fullbandit.from_answers(CORRECT[:0], k=2), r"correct must be an array of .* of shape \(Q, n\)"),
        (lambda: fullbandit.from_answers(CORRECT / 2, k=2), "correct must have entries 0 and 1"),
        (lambda: fullbandit.loss(instance(), np.ones(3, bool)), r"answer must be an array of booleans of shape \(4,\)"),
        (lambda: fullbandit.loss(instance(np.ones((2, 4))), np.ones((2, 4), bool)), "instance.theta must be an array"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_k_as_an_array_of_a_batch_is_refused():
    batch = Instance(jnp.asarray([THETA, THETA]), jnp.array([2, 2]))
    with pytest.raises(ValueError, match="instance.k must be an integer"):
        jax.vmap(lambda theta: environment(batch._replace(theta=theta), PAIRS).noise(jax.random.key(0)))(batch.theta)
