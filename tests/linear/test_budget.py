"""Fixed budgets: rounding, random pulls and designs by brute force, and the pulls of the rules. Regret by hand."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandits
from jaxbandits import Status, linear
from jaxbandits.linear._shared import fixed_budget as shared

RULES = (linear.g_bai, linear.od_linbai, linear.peace, linear.p1_rage)
ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [0.6, -0.8]])


@pytest.fixture(scope="module")
def rounded():
    return jax.jit(jax.vmap(partial(shared.rounded, all_arms=True), (0, 0, None)))


def test_rounding_is_efficient(rounded):
    """The smallest count per share is as large as possible; every arm is pulled if there are enough pulls."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(5, 0.7), 300)
    shares[rng.random(shares.shape) < 0.2] = 0
    shares = shares[shares.sum(axis=1) > 0]
    shares /= shares.sum(axis=1, keepdims=True)
    pulls = rng.integers(1, 40, len(shares))
    for p, n, counts in zip(shares, pulls, np.asarray(rounded(shares, pulls, jnp.arange(5))), strict=True):
        support, spare = p > 0, int(np.sum(p == 0)) * (n >= 5)
        assert counts.sum() == n
        assert counts[~support].tolist() == [int(n >= 5)] * int(np.sum(~support))
        if n - spare < support.sum():
            assert set(counts[support].tolist()) <= {0, 1}
            continue
        # Adams' divisors: no pull of one arm would raise another's count per share further.
        worst, best = np.min(counts[support] / p[support]), np.max((counts[support] - 1) / p[support])
        assert best <= worst * (1 + 1e-9)


def test_rounded_gives_extra_pulls_by_lots_among_equal_shares(rounded):
    """Equal shares from a solver differ by rounding, which is as arbitrary as the order of the arms."""
    shares = np.full((3, 5), 0.2) * (1 + 1e-15 * np.random.default_rng(0).normal(size=(3, 5)))
    for lots in (jnp.arange(5), -jnp.arange(5), jnp.asarray([2, 9, 1, 7, 3])):
        order = np.argsort(-np.asarray(lots))
        for n, counts in zip((7, 10, 14), np.asarray(rounded(shares, np.array([7, 10, 14]), lots)), strict=True):
            np.testing.assert_array_equal(counts[order], n // 5 + (np.arange(5) < n % 5))


def test_draws_are_multinomial():
    """Means and covariances of 20,000 draws; an arm without a share gets nothing."""
    shares, n, draws = np.array([0.5, 0.0, 0.3, 0.02, 0.18, 0.0]), 200, 20_000
    keys = jax.random.split(jax.random.key(0), draws)
    counts, is_drawn = jax.jit(jax.vmap(lambda key: shared.multinomial(key, jnp.int32(n), jnp.asarray(shares))))(keys)
    counts = np.asarray(counts)
    assert np.asarray(is_drawn).all()
    assert (counts.sum(axis=1) == n).all()
    assert not counts[:, shares == 0].any()
    deviation = np.sqrt(n * shares * (1 - shares) / draws)
    np.testing.assert_array_less(np.abs(counts.mean(axis=0) - n * shares), 5 * deviation + 1e-9)
    covariance = n * (np.diag(shares) - np.outer(shares, shares))
    np.testing.assert_allclose(np.cov(counts.T), covariance, atol=5 * 50 * (2 / draws) ** 0.5)


def test_spanned_design_lies_in_the_span_of_the_remaining_arms():
    """Three arms in a plane of four dimensions: the design lies in the plane, certified by its value, the rank."""
    rng = np.random.default_rng(1)
    basis, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    plane = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.2]]) @ basis[:2]
    arms = np.concatenate([plane, basis[2:]])
    remaining = np.array([True, True, True, False, False])
    solved = jax.jit(lambda remaining: shared.spanned_design(jnp.asarray(arms), remaining, 1000))(remaining)
    assert abs(float(solved.value) - 2) < 5e-3
    assert not np.asarray(solved.allocation)[3:].any()
    beyond = np.asarray(jax.jit(shared.beyond)(arms * remaining[:, None]))
    np.testing.assert_allclose(beyond @ plane.T, 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.eigvalsh(beyond), [0, 0, 1, 1], atol=1e-12)


def test_least_squares_of_fewer_pulls_than_dimensions():
    counts, sums = np.array([3, 0, 0, 2]), np.array([3.0, 0.0, 0.0, -1.0])
    theta = jax.jit(shared.least_squares_in_span)(ARMS, counts, sums)
    expected = np.linalg.lstsq(ARMS[counts > 0], sums[counts > 0] / counts[counts > 0], rcond=None)[0]
    np.testing.assert_allclose(theta, expected, rtol=1e-9)
    alone = jax.jit(shared.least_squares_in_span)(ARMS, np.array([0, 0, 2, 0]), np.array([0.0, 0.0, 3.0, 0.0]))
    np.testing.assert_allclose(alone, 1.5 * ARMS[2], rtol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_rules_keep_their_budget(rule, monkeypatch):
    """A concrete horizon, with designs that are solved instead of looked up, gives the same run as a traced one."""
    instance = linear.Instance(jnp.asarray(ARMS), jnp.asarray([1.0, 0.8]), jnp.asarray(1.0))

    def one(horizon, key):
        algorithm = rule(ARMS, horizon=horizon, design_steps=30)
        end = jaxbandits.run(key, algorithm, linear.environment(instance, algorithm), max_rounds=60, chunk=8)
        return end.status, end.pulls, end.state.counts, end.answer

    keys = jax.random.split(jax.random.key(1), 8)
    horizons = np.array([5, 6, 9, 40, 41, 200] + 8 * [80], np.int32)
    status, pulls, counts, answers = jax.device_get(jax.jit(jax.vmap(one))(horizons, keys[np.arange(14) - 6]))
    assert (status == Status.STOPPED).all()
    assert (counts.sum(axis=1) == pulls).all()
    assert (pulls <= horizons).all()
    if rule in (linear.g_bai, linear.p1_rage):
        assert (pulls == horizons).all()
    monkeypatch.setattr(shared, "TABLE_ARMS", 3)
    known = jax.device_get(jax.jit(jax.vmap(partial(one, 80)))(keys))
    assert known[2].tolist() == counts[6:].tolist()
    assert known[3].tolist() == answers[6:].tolist()


def test_a_horizon_that_is_too_short_warns_or_is_refused():
    with pytest.warns(UserWarning, match="horizon 3 is too short"):
        algorithm = linear.od_linbai(ARMS, horizon=3, design_steps=5)
    environment = linear.environment(linear.Instance(jnp.asarray(ARMS), jnp.ones(2), jnp.asarray(1.0)), algorithm)
    ends = jax.jit(jax.vmap(lambda key: jaxbandits.run(key, algorithm, environment, max_rounds=9)))
    end = ends(jax.random.split(jax.random.key(0), 400))
    assert not np.asarray(end.pulls).any()
    assert np.bincount(np.asarray(end.answer), minlength=4).min() > 60
    arms = np.asarray(linear.soare(10, 0.1).arms)
    for rule in (linear.peace, linear.p1_rage):
        with pytest.raises(ValueError, match="horizon must be at least the number of epochs"):
            rule(arms, horizon=2, design_steps=5)


def test_upper_bounds_by_hand():
    """C_0 = 3.14597; after a reward of 1 from arm 0, C_1 = 3.30181 and the indices are 2.83473 and 3.30181."""
    algorithm = linear.lin_ucb(np.eye(2), delta=0.1, norm_bound=1.0)
    state = algorithm.init(jax.random.key(0))
    first = algorithm.decide(jax.random.key(0), state).action
    after = algorithm.observe(state, first, jnp.ones(()))
    assert int(first.arm) == 0
    assert int(algorithm.decide(jax.random.key(0), after).action.arm) == 1
    radii = [
        float(linear.lingape_radius(s.logdet, K=2, delta=0.1, norm_bound=1.0, union_bound=1.0)) for s in (state, after)
    ]
    np.testing.assert_allclose(radii, [3.14597, 3.30181], atol=5e-6)
    indices = np.eye(2) @ np.asarray(after.theta) + radii[1] * np.sqrt(np.asarray(after.leverage))
    np.testing.assert_allclose(indices, [2.83473, 3.30181], atol=5e-6)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("factory", "gap", "runs"),
    [(linear.g_bai, 0.3, 1500), (linear.od_linbai, 0.3, 1500), (linear.peace, 0.4, 8000)],
    ids=["g_bai", "od_linbai", "peace"],
)
def test_the_error_under_signs_does_not_depend_on_the_position_of_the_best_arm(factory, gap, runs):
    """Unit vectors, rewards +1 and -1, 42 pulls, `runs` runs per position; false alarm 1e-5.

    If the first arm won ties, OD-LinBAI would err with probability .31 if the best arm is first, and .62 if it is last.
    If the first arm got the extra pulls of rounding, Peace would err with .50 and .55.
    """
    arms = np.eye(4)
    algorithm = factory(arms, horizon=42, design_steps=300)

    def build(task, key):
        instance = linear.Instance(jnp.asarray(arms), task["theta"], jnp.asarray(1.0))
        return algorithm, linear.environment(instance, algorithm, noise="sign")

    tasks = {"theta": gap * arms[[0, 2, 3]]}
    results = jaxbandits.sweep(build, tasks, seeds=runs, key=jax.random.key(0), max_rounds=20, chunk=8, progress=False)
    is_wrong = results.columns["answer"] != np.array([0, 2, 3])[results.columns["row"]]
    wrong = np.bincount(results.columns["row"], is_wrong, minlength=3)
    assert stats.chi2_contingency([wrong, runs - wrong]).pvalue > 1e-5, wrong / runs
