"""Instances by hand and by their statistics, the environment, and what a metered run records."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import chisquare

from jaxbandits import kernel
from jaxbandits.base import Algorithm, Decision
from jaxbandits.kernel.problem import (
    HARTMANN_A,
    HARTMANN_C,
    HARTMANN_P,
    branin_value,
    check_run,
    chosen,
    every_tenth,
    hartmann4_value,
    round_coins,
)
from jaxbandits.numerics.gp import cross, squared_exponential

KEY = jax.random.key(0)
SE = functools.partial(squared_exponential, lengthscale=0.2)
branin_at, hartmann_at = jax.jit(jax.vmap(branin_value)), jax.jit(jax.vmap(hartmann4_value))


def test_branin_by_hand():
    pi = np.pi
    top = [[(pi + 5) / 15, 2.275 / 15], [(5 - pi) / 15, 12.275 / 15], [(3 * pi + 5) / 15, 2.475 / 15]]
    values = branin_at(jnp.asarray([[0.5, 0.5], [0.0, 0.0], *top]))
    np.testing.assert_allclose(values, [0.5905685387, -4.8762097404] + 3 * [1.0473938911], atol=1e-9)


def test_hartmann_by_hand():
    top = [0.187395, 0.194152, 0.557918, 0.264780]
    values = hartmann_at(jnp.asarray([4 * [0.5], 4 * [0.0], top, [0.1873, 0.1906, 0.5566, 0.2647]]))
    np.testing.assert_allclose(values, [1.0833433453, -0.3132914559, 3.1344941, 3.1343], atol=2e-4)
    np.testing.assert_allclose(values[:2], [1.0833433453, -0.3132914559], atol=1e-9)
    np.testing.assert_allclose(values[2], 3.1344941, atol=1e-7)
    # The point that is often quoted as the maximum is not one, and no point near the maximum is higher.
    assert values[3] < values[2]
    near = jnp.asarray(top) + 1e-3 * jax.random.normal(KEY, (2000, 4))
    assert jnp.max(hartmann_at(near)) <= values[2] + 1e-9


def test_functions_are_standardised():
    # By the rounded constants of the paper: mean 0 and standard deviation 1 but for some hundredths.
    branin = branin_at(jax.random.uniform(KEY, (200_000, 2)))
    assert abs(jnp.mean(branin)) < 0.02
    assert jnp.std(branin) == pytest.approx(0.984, abs=0.01)
    hartmann = hartmann_at(jax.random.uniform(KEY, (200_000, 4)))
    assert abs(jnp.mean(hartmann)) < 0.06
    assert jnp.std(hartmann) == pytest.approx(1, abs=0.06)
    # The integral of exp(-a (x - p)^2) over the unit interval, for each of the four terms.
    a, p = np.array(HARTMANN_A), np.array(HARTMANN_P)
    root = np.sqrt(a)
    integrals = np.sqrt(np.pi) / (2 * root) * (erf(root * (1 - p)) + erf(root * p))
    mean = (np.sum(np.array(HARTMANN_C) * integrals.prod(axis=1)) - 1.1) / 0.839
    assert jnp.mean(hartmann) == pytest.approx(mean, abs=5 / np.sqrt(200_000))


def made(make, key=KEY, **options):
    """An instance, compiled as a whole: operation by operation takes seconds."""
    return jax.jit(functools.partial(make, **options))(key)


def test_functions_of_one_direction():
    # h2 = (u - 1)^3 + 4; theta is found from the table, as the values are invertible in u.
    bandit = made(kernel.h2, size=500, dimension=3)
    u = 1 + np.cbrt(np.asarray(bandit.values) - 4)
    theta, *_ = np.linalg.lstsq(np.asarray(bandit.candidates), u, rcond=None)
    assert np.linalg.norm(theta) == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(np.asarray(bandit.candidates) @ theta, u, atol=1e-9)
    other = made(kernel.h1, size=500, dimension=3)
    np.testing.assert_array_equal(other.candidates, bandit.candidates)
    np.testing.assert_allclose(other.values, np.cos(3 * u), atol=1e-9)
    assert other.best == other.values.max()
    assert other.noise_scale == 0.2


def test_uniform_in_the_ball():
    d, n = 10, 20_000
    points = np.asarray(made(kernel.h1, size=n, dimension=d).candidates)
    square = np.sum(points**2, axis=1)
    sd = np.sqrt(d / (d + 4) - (d / (d + 2)) ** 2)  # E |x|^4 = d / (d + 4)
    assert abs(square.mean() - d / (d + 2)) < 5 * sd / np.sqrt(n)
    assert square.max() < 1
    assert chisquare(np.histogram(square ** (d / 2), bins=20, range=(0, 1))[0]).pvalue > 1e-6  # |x|^d is uniform
    assert np.all(abs(points.mean(0)) < 5 / np.sqrt(n * (d + 2)))
    sphere = made(kernel.h1, size=100, dimension=d, domain="sphere").candidates
    np.testing.assert_allclose(jnp.sum(sphere**2, axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("norm", [1.0, 3.0])
def test_norm_of_a_random_function(norm):
    # On few enough points that they pin the function down, the least norm that fits its values is close to its own;
    # with fewer it is less.
    bandit = made(kernel.rkhs, kernel=SE, dimension=1, norm=norm, size=200)
    values = np.asarray(bandit.values)

    def least_norm(n):
        gram = np.asarray(cross(SE, bandit.candidates[:n], bandit.candidates[:n])) + 1e-12 * np.eye(n)
        return np.sqrt(values[:n] @ np.linalg.solve(gram, values[:n]))

    assert least_norm(200) == pytest.approx(norm, rel=1e-3)
    assert least_norm(3) <= norm * (1 + 1e-9)


def test_random_instances():
    for make in (kernel.branin, kernel.hartmann4, functools.partial(kernel.rkhs, kernel=SE, dimension=2)):
        compiled = jax.jit(functools.partial(make, size=30))
        bandit, other = compiled(KEY), compiled(jax.random.key(1))
        assert np.any(bandit.candidates != other.candidates)
        assert jnp.all((bandit.candidates >= 0) & (bandit.candidates < 1))
        assert bandit.best == jnp.max(bandit.values)
        assert bandit.noise_scale == 0.2
        single = made(make, size=30, dtype=jnp.float32, noise_scale=0.5)
        assert {leaf.dtype for leaf in single} == {jnp.dtype("float32")}
        assert single.noise_scale == 0.5
    bandit = made(kernel.branin)
    assert bandit.candidates.shape == (1000, 2)
    np.testing.assert_allclose(bandit.values, branin_at(bandit.candidates))


def test_environment():
    bandit = kernel.tabular(jnp.zeros((3, 1)), jnp.asarray([1.0, 2.0, 4.0]), noise_scale=0.5)
    environment = kernel.environment(bandit, 2)
    rewards = environment.respond(jnp.asarray([2, 0], jnp.int32), jnp.asarray([1.0, -2.0]))
    np.testing.assert_array_equal(rewards, [4.5, 0.0])
    idle = environment.respond(jnp.full(2, 3, jnp.int32), jnp.zeros(2))
    assert jnp.all(jnp.isfinite(idle))
    noise = jax.vmap(environment.noise)(jax.random.split(KEY, 5000))
    assert noise.shape == (5000, 2)
    assert abs(noise.mean()) < 0.05
    np.testing.assert_allclose(jnp.cov(noise.T), np.eye(2), atol=0.1)


def test_coins():
    active = jnp.asarray([3, 7, 9])
    np.testing.assert_array_equal(active[chosen(jnp.asarray([0.0, 0.5, 0.999999]), 3)], [3, 7, 9])
    assert chosen(jnp.float32(1 - 2**-24), 10**6) == 10**6 - 1  # rounds up to the size
    for size in (3, 7, 1000):
        picked = chosen(jax.random.uniform(KEY, (200 * size,)), size)
        assert chisquare(np.bincount(picked, minlength=size)).pvalue > 1e-6


def test_round_coins():
    draws = kernel.Coins(jnp.asarray([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]), jnp.zeros((2, 3)), jnp.zeros((3, 2, 3)))
    np.testing.assert_array_equal(round_coins(KEY, draws, jnp.int32(1), 2, jnp.float64), [0.2, 0.5])
    coins = round_coins(KEY, None, jnp.int32(1), 5, jnp.float32)
    assert (coins.shape, coins.dtype) == ((5,), jnp.float32)
    assert len(set(coins.tolist())) == 5


def test_kernels_of_the_paper():
    x, y = jnp.zeros(2), jnp.ones(2)
    assert kernel.paper_kernel("h1")(x, y) == pytest.approx(np.exp(-1))
    assert kernel.paper_kernel("branin")(x, y) == pytest.approx(np.exp(-25))
    with pytest.raises(ValueError, match="name must be one of"):
        kernel.paper_kernel("h3")


class Walk(NamedTuple):
    pulls: jax.Array
    t: jax.Array
    traffic: kernel.Traffic
    due: jax.Array
    last: jax.Array


def walk(n_agents, size):
    """Asks candidates t, t + 1, ..; after every third round it synchronises, for 10 numbers an agent and 7 to all."""
    nothing = jnp.zeros((), int)

    def init(key):
        return Walk(nothing, nothing, kernel.Traffic(nothing, nothing), jnp.zeros((), bool), jnp.zeros(()))

    def decide(key, state):
        action = (state.t + jnp.arange(n_agents)) % size
        return Decision(action.astype(jnp.int32), state.t >= 12, state.t)

    def observe(state, action, rewards):
        asked = jnp.any(action < size)
        t = state.t + asked
        return state._replace(
            pulls=state.pulls + n_agents * asked,
            t=t,
            due=jnp.where(asked, t % 3 == 0, state.due),
            last=jnp.where(asked, rewards[0], state.last),
        )

    def refresh(state):
        uplink, downlink = state.traffic
        traffic = kernel.Traffic(uplink + 10 * n_agents * state.due, downlink + 7 * state.due)
        return state._replace(traffic=traffic, due=jnp.zeros((), bool))

    return Algorithm(init, decide, observe, jnp.full(n_agents, size, jnp.int32), refresh, lambda state: state.due)


def test_metered():
    values = jnp.asarray([1.0, 2.0, 4.0, 0.0, 3.0])
    bandit = kernel.tabular(jnp.zeros((5, 1)), values, noise_scale=0.1)
    inner, environment, grid = walk(2, 5), kernel.environment(bandit, 2), (1, 3, 4, 12)
    outer = kernel.metered(inner, bandit, grid=grid)
    plain, state = inner.init(KEY), outer.init(KEY)
    regret, rows = 0.0, {}
    with jax.numpy_dtype_promotion("standard"):
        for t in range(1, 13):
            if outer.stale(state):
                idle = outer.observe(state, outer.idle, jnp.ones(2))  # waiting changes nothing
                jax.tree.map(np.testing.assert_array_equal, idle, state)
                state = outer.refresh(state)
            if inner.stale(plain):
                plain = inner.refresh(plain)
            decision, same = outer.decide(KEY, state), inner.decide(KEY, plain)
            jax.tree.map(np.testing.assert_array_equal, decision, same)
            rewards = environment.respond(decision.action, environment.noise(jax.random.key(t)))
            state = outer.observe(state, decision.action, rewards)
            plain = inner.observe(plain, same.action, rewards)
            jax.tree.map(np.testing.assert_array_equal, state.inner, plain)
            regret += sum(4.0 - float(values[a]) for a in decision.action)
            # A synchronisation after round t counts in row t.
            synchronised = t // 3
            rows[t] = (regret, 10 * synchronised, 7 * synchronised)
        state = outer.refresh(state)
    np.testing.assert_allclose(state.curve, [rows[t] for t in grid])
    assert state.regret == pytest.approx(regret)
    assert state.pulls == 24
    assert state.round == 12


def test_default_grid():
    assert every_tenth(50) == (5, 10, 15, 20, 25, 30, 35, 40, 45, 50)
    assert every_tenth(500)[0] == 50
    assert every_tenth(3) == (1, 2, 3)
    assert every_tenth(1) == (1,)


ONE = jnp.zeros((4, 2))
GOOD = {"kernel": SE, "n_agents": 2, "horizon": 3, "beta": 1.0, "noise_variance": 0.1}
DRAWS = kernel.Coins(jnp.zeros((2, 3)), jnp.zeros((2, 3)), jnp.zeros((3, 2, 3)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kernel.h1(KEY, size=0), "size must be an int >= 1, got 0"),
        (lambda: kernel.h1(KEY, size=True), "size must be an int >= 1, got True"),
        (lambda: kernel.branin(KEY, size=2.0), "size must be an int >= 1, got 2.0"),
        (lambda: kernel.h2(KEY, dimension=0), "dimension must be an int >= 1, got 0"),
        (lambda: kernel.h2(KEY, domain="cube"), "domain must be one of ('ball', 'sphere'), got 'cube'"),
        (lambda: kernel.branin(KEY, noise_scale=-1.0), "noise_scale must be at least 0, got -1.0"),
        (lambda: kernel.rkhs(KEY, kernel=SE, dimension=2, norm=0.0), "norm must be positive, got 0.0"),
        (lambda: kernel.tabular(ONE, jnp.zeros(3), noise_scale=1.0), "values must have shape (4,), got (3,)"),
        (lambda: kernel.tabular(jnp.zeros(4), jnp.zeros(4), noise_scale=1.0), "got (4,)"),
        (lambda: kernel.tabular(jnp.zeros((0, 2)), jnp.zeros(0), noise_scale=1.0), "got (0, 2)"),
        (lambda: kernel.tabular(jnp.zeros((4, 2), int), jnp.zeros(4), noise_scale=1.0), "candidates must be floating"),
        (lambda: kernel.tabular(ONE.at[1, 1].set(jnp.nan), jnp.zeros(4), noise_scale=1.0), "candidates must be finite"),
        (lambda: kernel.environment(kernel.branin(KEY, size=3), 0), "n_agents must be an int >= 1, got 0"),
        (lambda: check(kernel=3), "kernel must be a function of two points, got 3"),
        (lambda: check(n_agents=0), "n_agents must be an int >= 1, got 0"),
        (lambda: check(horizon=2.5), "horizon must be an int >= 1, got 2.5"),
        (lambda: check(beta=-1.0), "beta must be at least 0, got -1.0"),
        (lambda: check(beta=np.inf), "beta must be finite, got inf"),
        (lambda: check(beta=jnp.ones(2)), "beta must have shape () or (3,), got (2,)"),
        (lambda: check(beta=jnp.ones(3), schedule=False), "beta must have shape (), got (3,)"),
        (lambda: check(noise_variance=0.0), "ridge must be positive, got 0.0"),
        (lambda: check(gram=jnp.eye(3)), "gram must have shape (4, 4), got (3, 3)"),
        (
            lambda: check(draws=DRAWS._replace(coins=jnp.zeros((3, 2)))),
            "draws.coins must have shape (2, 3), got (3, 2)",
        ),
        (lambda: check(draws=DRAWS._replace(rls=jnp.ones((3, 2, 3)))), "draws.rls must lie in [0, 1), got"),
        (lambda: check(draws=DRAWS._replace(thinning=DRAWS.thinning - 1)), "draws.thinning must lie in [0, 1), got"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call()
    assert message in str(caught.value)


def check(**change):
    return check_run(ONE, **(GOOD | change))


def test_shapes_are_checked_under_a_trace_too():
    check(draws=DRAWS, gram=jnp.eye(4), beta=jnp.ones(3))

    @jax.jit
    def traced(beta, ridge):
        check(beta=beta, noise_variance=ridge)

    traced(jnp.asarray(-1.0), jnp.asarray(-1.0))  # values are not known
    with pytest.raises(ValueError, match=r"beta must have shape"):
        traced(jnp.ones(2), jnp.asarray(1.0))


@pytest.mark.parametrize("grid", [(), (0, 1), (2, 1), (1, 1), (1.0,)])
def test_bad_grid(grid):
    bandit = kernel.branin(KEY, size=5)
    with pytest.raises(ValueError, match="grid must hold increasing integers >= 1"):
        kernel.metered(walk(2, 5), bandit, grid=grid)
