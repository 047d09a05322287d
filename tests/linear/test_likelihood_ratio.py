"""Parts that rules with a likelihood-ratio stop share: by hand, by brute force, and bad input."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.stops import by_ratios
from jax import lax
from scipy.optimize import linprog

import jaxbandits
from jaxbandits import linear
from jaxbandits.linear._algorithms.fws import best_response
from jaxbandits.linear._shared.factor import (
    factored,
    gram_of,
    influence,
    is_positive_definite,
    norms_of,
    root_after,
    root_without_errors,
)
from jaxbandits.linear._shared.fixed_confidence import checked_settings, first_spanner
from jaxbandits.linear._shared.hedge import Hedge, learned, weights_of
from jaxbandits.linear._shared.likelihood_ratio import State, algorithm_from_rule, compare_items, look, statistics
from jaxbandits.numerics import thresholds
from jaxbandits.numerics.design import design, frank_wolfe

KEY = jax.random.key(0)
GK16 = thresholds.gk16(arms=2)
STOP = linear.likelihood_ratio(GK16, delta=0.1)
RNG = np.random.default_rng(0)
ARMS = RNG.normal(size=(6, 3))


def settings_of(arms, **options):
    stop = linear.likelihood_ratio(GK16, delta=0.1, **options)
    return checked_settings(arms, stop, ridge=1.0, noise_scale=1.0, start="arms")


@functools.cache
def after_pulls(glr_ridge, items):
    """Builds a program for the state after pulls of arms 0, 1, .. with given rewards, and after its refresh."""

    @jax.jit
    def play(arms, rewards, repeats):
        compared = jnp.asarray(RNG.normal(size=(4, arms.shape[1]))) if items else None
        settings = settings_of(arms, glr_ridge=glr_ridge, items=compared)
        algorithm = algorithm_from_rule(settings, lambda key, state, comparison: (jnp.argmin(state.counts), ()))
        state = algorithm.init(KEY)

        def one_round(n, state):
            return algorithm.observe(state, algorithm.decide(KEY, state).action, rewards[n])

        state = lax.fori_loop(0, repeats * arms.shape[0], one_round, state)
        comparison, verdict = look(settings, state)
        tested = compare_items(settings, state.plain) if glr_ridge == 0 else comparison
        return state, algorithm.refresh(state), statistics(tested), statistics(tested, 0.5), verdict

    return play


@pytest.mark.parametrize(("glr_ridge", "Z", "with_epsilon"), [(None, 0.125, 0.5), (0, 0.25, 0.5625)])
def test_statistics_by_hand(glr_ridge, Z, with_epsilon):
    _, _, plain, raised, verdict = after_pulls(glr_ridge, False)(np.eye(2), np.array([1.0, 0.0]), 1)
    assert int(verdict.answer) == 0
    assert float(plain[1]) == pytest.approx(Z)
    assert float(raised[1]) == pytest.approx(with_epsilon)


@pytest.mark.parametrize("glr_ridge", [None, 0])
def test_caches_are_inverses_before_and_after_a_refresh(glr_ridge):
    rewards = RNG.normal(size=18)
    state, refreshed, *_ = after_pulls(glr_ridge, True)(ARMS, rewards, 3)
    V = 3 * ARMS.T @ ARMS
    b = ARMS.T @ rewards.reshape(3, 6).sum(0)
    caches = [(state.cache, refreshed.cache, V + np.eye(3))]
    if glr_ridge == 0:
        caches.append((state.plain, refreshed.plain, V))
    for cache, rebuilt, matrix in caches:
        inverse = np.linalg.inv(matrix)
        np.testing.assert_allclose(cache.theta, inverse @ b, rtol=1e-10)
        np.testing.assert_allclose(cache.images[:6], ARMS @ inverse, rtol=1e-10)
        assert cache.images.shape == (10, 3)
        jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-9), cache, rebuilt)
    assert isinstance(state, State)
    assert float(state.logdet) == pytest.approx(np.linalg.slogdet(V + np.eye(3))[1])


@functools.cache
def factor_program():
    def program(matrix, arms, weights, directions):
        norms = norms_of(gram_of(arms, weights), directions)
        on_arms = influence(norms.factor, arms, directions[2])
        return is_positive_definite(matrix), factored(matrix).scales, norms.squares, on_arms

    return jax.jit(jax.vmap(program, in_axes=(0, None, 0, None)))


def test_factors_against_library_calls():
    # A generator of its own gives the same matrices whatever tests run before.
    rng = np.random.default_rng(5)
    roots = rng.normal(size=(20, 3, 3))
    shifts = rng.uniform(0, 2, size=20)
    matrices = roots @ roots.transpose(0, 2, 1) - shifts[:, None, None] * np.eye(3)
    weights, directions = rng.uniform(0.1, 1, (20, 6)), rng.normal(size=(4, 3))
    positive, scales, squares, on_arms = factor_program()(matrices, ARMS, weights, directions)
    least = np.linalg.eigvalsh(matrices)[:, 0]
    np.testing.assert_array_equal(positive, least > 0)
    assert 3 < positive.sum() < 17
    np.testing.assert_array_equal(np.isfinite(scales[-1]), positive)
    for lane in range(20):
        inverse = np.linalg.inv(ARMS.T @ (weights[lane][:, None] * ARMS))
        np.testing.assert_allclose(squares[lane], np.einsum("md,de,me->m", directions, inverse, directions), rtol=1e-9)
        np.testing.assert_allclose(on_arms[lane], ARMS @ inverse @ directions[2], rtol=1e-8, atol=1e-10)


def test_root_after_updates_the_root_with_the_smallest_turn():
    roots = np.random.default_rng(6).normal(size=(4, 4))
    matrix, x = roots @ roots.T + np.eye(4), np.array([0.3, -1.0, 0.0, 2.0])
    inverse, root = np.linalg.inv(matrix), np.linalg.inv(np.linalg.cholesky(matrix))

    @jax.jit
    def program(root, times):
        return root_after(root, x, inverse @ x, x @ inverse @ x, times)

    for times in (1.0, 7.0):
        after, expected = np.asarray(program(root, times)), np.linalg.inv(matrix + times * np.outer(x, x))
        np.testing.assert_allclose(after.T @ after, expected, rtol=1e-12, atol=1e-14)
        # It turns the last root least of all such roots: the factor between the two is symmetric and positive.
        turn = after @ np.linalg.inv(root)
        np.testing.assert_allclose(turn, turn.T, atol=1e-13)
        assert np.linalg.eigvalsh(turn)[0] > 0
        off = after * (1 + 1e-5 * RNG.uniform(-1, 1, after.shape))
        mended = np.asarray(root_without_errors(off, matrix + times * np.outer(x, x)))
        np.testing.assert_allclose(mended.T @ mended, expected, rtol=1e-9)
        np.testing.assert_allclose(mended, after, rtol=1e-3)
    np.testing.assert_array_equal(program(root, 0.0), root)


def test_adahedge_by_hand():
    hedge = Hedge(np.zeros(2), np.float64(0.01))
    weights = weights_of(hedge)
    np.testing.assert_allclose(weights, [0.5, 0.5])
    after = learned(hedge, weights, np.array([0.0, 1.0]))
    assert float(after.gap) == pytest.approx(0.5, abs=1e-6)  # mixed loss: .01
    np.testing.assert_allclose(after.losses, [0, 1])


def test_best_response_against_the_linear_program():
    steps, rows = 512, np.array([True, True, False, True])
    payoffs = np.vstack([[[1, -1, 0.2], [-1, 1, 0.1]], RNG.uniform(-1, 1, (2, 3))])
    strategy = jax.jit(best_response, static_argnums=2)(payoffs, rows, steps)
    assert float(strategy.sum()) == pytest.approx(1)
    for chosen, exact in ((rows, None), (np.array([True, True, False, False]), 1 / 7)):
        z = strategy if exact is None else jax.jit(best_response, static_argnums=2)(payoffs, chosen, steps)
        game = payoffs[chosen]
        optimum = linprog(
            [0, 0, 0, -1],
            A_ub=np.hstack([-game, np.ones((len(game), 1))]),
            b_ub=np.zeros(len(game)),
            A_eq=[[1, 1, 1, 0]],
            b_eq=[1],
            bounds=[(0, None)] * 3 + [(None, None)],
        )
        assert exact is None or -optimum.fun == pytest.approx(exact)
        value, error = -optimum.fun, np.ptp(game) * np.sqrt(np.log(4) / (2 * steps))
        assert value - error <= (game @ z).min() <= value + 1e-9


def test_frank_wolfe_is_close_to_the_optimal_design():
    directions, weights = ARMS[0] - ARMS[1:], np.array([1.0, 0.2, 3.0, 0.0, 1.0])
    shares = np.asarray(frank_wolfe(ARMS, directions, weights, steps=1000))
    inverse = np.linalg.inv(ARMS.T @ (shares[:, None] * ARMS))
    value = (weights * np.einsum("md,de,me->m", directions, inverse, directions)).max()
    optimum = design(ARMS, directions, weights=weights, steps=1000)
    assert float(optimum.lower) <= value <= 1.05 * float(optimum.value)
    assert shares.sum() == pytest.approx(1)
    few = np.asarray(frank_wolfe(ARMS, directions, weights, steps=5, start=np.arange(len(ARMS)) < ARMS.shape[1]))
    assert few.sum() == pytest.approx(1)
    assert ARMS.shape[1] <= (few > 0).sum() < len(ARMS)


def test_first_spanner_takes_the_first_arms_that_span():
    np.testing.assert_array_equal(first_spanner(np.array([[0.0, 1], [0, 2], [1, 1], [1, 0]])), [0, 2])


def test_start_with_a_spanner_pulls_it_first():
    instance = linear.Instance(jnp.asarray([[0.0, 1], [0, 2], [1, 1], [1, 0]]), jnp.asarray([1.0, 0.0]), 1.0)
    algorithm = linear.uniform(instance.arms, stop=STOP, start="spanner")
    tape = jaxbandits.trace(KEY, algorithm, linear.environment(instance), rounds=3)
    np.testing.assert_array_equal(tape.actions.arm[:2], [0, 2])


def test_characteristic_time_of_soare_by_hand():
    instance = linear.soare(2, 0.1)
    T = 2 * ((1 + 1 / np.tan(0.05)) / 2) ** 2
    time = linear.characteristic_time(instance.arms, instance.theta)
    assert float(time.lower) <= T * (1 + 1e-12)
    assert float(time.value) * (1 + 1e-12) >= T
    assert float(time.value) / float(time.lower) < 1 + 1e-6


def test_characteristic_time_is_certified_against_random_shares():
    instance = linear.sphere(3, 6, 3, 0.1)
    items = RNG.normal(size=(5, 3))
    time = linear.characteristic_time(instance.arms, instance.theta, items=items, noise_scale=0.5, steps=500)
    means = items @ np.asarray(instance.theta)
    y = items[means.argmax()] - np.delete(items, means.argmax(), axis=0)
    gaps = y @ np.asarray(instance.theta)

    def time_of(shares):
        inverse = np.linalg.inv(np.asarray(instance.arms).T @ (shares[:, None] * np.asarray(instance.arms)))
        return (2 * 0.25 * np.einsum("md,de,me->m", y, inverse, y) / gaps**2).max()

    assert time_of(np.asarray(time.allocation)) == pytest.approx(float(time.value), rel=1e-9)
    assert float(time.value) / float(time.lower) < 1 + 1e-3
    assert min(time_of(w) for w in RNG.dirichlet(np.ones(6), 300)) >= float(time.lower)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"glr_ridge": 0.5}, "glr_ridge"),
        ({"glr_ridge": 0, "threshold": thresholds.ellipsoid(norm_bound=1.0)}, "glr_ridge must be None"),
        ({"epsilon": 0.1, "eliminate": "stop"}, "epsilon must be 0"),
        ({"threshold": thresholds.kk_pair(arms=2), "arms": np.eye(3)}, "threshold must accept this rule's evidence"),
        ({"items": np.eye(3)}, "items must have 2 columns"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        by_ratios(linear.uniform)(**({"arms": np.eye(2), "delta": 0.1, "threshold": GK16} | arguments))


@pytest.mark.parametrize("rule", [linear.fws, linear.lingame, linear.lingame_c, linear.lazy_tas])
@pytest.mark.parametrize("arms", [np.diag([1.0, 1.0, 0.0])[:2], np.array([[1.0, 0, 0], [0, 1.0, 0], [0.8, 0.5, 0]])])
def test_rules_that_invert_the_design_of_shares_refuse_arms_without_full_rank(rule, arms):
    with pytest.raises(ValueError, match=r"arms must have rank 3 \(see linear.reduce_rank\), got 2"):
        rule(arms, stop=STOP)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda **a: linear.lingame_c(**a, max_pairs=3), "max_pairs must be at least 4"),
        (lambda **a: linear.lazy_tas(**a, spanner=[0, 0]), "spanner must name 2 arms"),
        (
            lambda arms, stop: linear.l_t3c(arms, stop=stop._replace(items=np.eye(2)), leader_share=0.5),
            "leader_share must be None",
        ),
        (
            lambda arms, stop: linear.lingape_glr(arms, stop=stop._replace(items=np.eye(2)), ratios=np.ones((2, 2, 2))),
            "ratios must be None where the stop has items",
        ),
        (lambda **a: linear.fixed_weights(a.pop("arms"), np.ones(2), **a), "allocation must sum to 1"),
    ],
)
def test_bad_options(call, message):
    with pytest.raises(ValueError, match=message):
        call(arms=np.eye(2), stop=STOP)
