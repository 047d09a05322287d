"""Distributed kernel bandits: instances, the environment, and what is measured of a run.

N agents ask a function f on M candidates for T rounds, one candidate each a round. The reward of candidate a is f(a)
plus Gaussian noise. What counts is the regret of all agents together, and the numbers that they send and receive.
"""

import functools
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp

from jaxbandits.base import Algorithm, Array, Decision, Environment, Key, PyTree
from jaxbandits.checks import is_concrete, known, require, require_not_negative, require_positive
from jaxbandits.numerics.gp import Kernel, cross, squared_exponential

Domain = Literal["ball", "sphere"]
CENTERS = 20  # of a random function of known norm

# Picheny, Wagner and Ginsbourger (2013). P[2, 1] is .1451: the often quoted maximum, 3.135474, belongs to .1415.
HARTMANN_C = (1.0, 1.2, 3.0, 3.2)
HARTMANN_A = ((10.0, 3.0, 17.0, 3.5), (0.05, 10.0, 17.0, 0.1), (3.0, 3.5, 1.7, 10.0), (17.0, 8.0, 0.05, 10.0))
HARTMANN_P = (
    (0.1312, 0.1696, 0.5569, 0.0124),
    (0.2329, 0.4135, 0.8307, 0.3736),
    (0.2348, 0.1451, 0.3522, 0.2883),
    (0.4047, 0.8828, 0.8732, 0.5743),
)


class Problem(NamedTuple):
    """One instance, truth included."""

    candidates: Array  # float (M, d)
    values: Array  # float (M,)  f: never given to a factory
    noise_sd: Array  # float ()
    best: Array  # float ()      the largest value


class Draws(NamedTuple):
    """Uniform variables in [0, 1) that replace those of an algorithm's keys: for replays, and for paired comparisons.

    The first axis of `coins` is the agents', so that agents n and n' never share a coin.
    """

    coins: Array  # float (N, T)     of every agent and round
    thinning: Array  # float (N, T)  which draws DUETS makes inducing points
    rls: Array  # float (T, N, T)    which draws ApproxDisKernelUCB does, at a synchronisation after each round


class Traffic(NamedTuple):
    """Real numbers sent so far. One point of the domain is d numbers."""

    uplink: Array  # int ()    by agents, summed over them
    downlink: Array  # int ()  in broadcasts, each counted once


class Metered(NamedTuple):
    """An algorithm's state, and what an observer who knows the truth has measured."""

    inner: PyTree  # the algorithm's state
    pulls: Array  # int ()
    round: Array  # int32 ()
    regret: Array  # float ()    of all agents so far
    syncs: Array  # int32 ()     times that something was sent
    curve: Array  # float (G, 3) regret, uplink an agent, downlink, after each round of the grid; 0 before it


def h1(
    key: Key, *, size: int = 1000, dimension: int = 10, domain: Domain = "ball", noise_sd: Any = 0.2, dtype: Any = None
) -> Problem:
    """cos(3 u) with u = x'theta, theta uniform on the sphere: largest, 1, on the whole slice u = 0.

    Args:
        key: for candidates and theta.
        size: M, candidates.
        dimension: d.
        domain: "ball": candidates are uniform in the unit ball; "sphere": on it.
        noise_sd: () >= 0.
        dtype: of the run; None: JAX's default float type.

    Returns:
        Problem. Its length scale is 1.

    Raises:
        ValueError: an argument is out of range.

    Source: Pavlovic, Salgia and Zhao (2024), Section 5.
    """
    u, candidates = _ridge_function(key, size, dimension, domain, dtype)
    return tabular(candidates, jnp.cos(3 * u), noise_sd=noise_sd)


def h2(
    key: Key, *, size: int = 1000, dimension: int = 10, domain: Domain = "ball", noise_sd: Any = 0.2, dtype: Any = None
) -> Problem:
    """u^3 - 3 u^2 + 3 u + 3 with u = x'theta: increasing in u, with mean 2.75, which the prior does not know.

    Arguments, result, errors and source as for `h1`.
    """
    u, candidates = _ridge_function(key, size, dimension, domain, dtype)
    return tabular(candidates, u**3 - 3 * u**2 + 3 * u + 3, noise_sd=noise_sd)


def branin(key: Key, *, size: int = 1000, noise_sd: Any = 0.2, dtype: Any = None) -> Problem:
    """Branin's function, standardised and with its sign flipped, on the unit square.

    Args:
        key: for the candidates, uniform.
        size: M, candidates.
        noise_sd: () >= 0.
        dtype: of the run; None: JAX's default float type.

    Returns:
        Problem. Its length scale is 0.2; the maximum on the square is 1.0473938911.

    Raises:
        ValueError: an argument is out of range.

    Source: Picheny, Wagner and Ginsbourger (2013); Pavlovic, Salgia and Zhao (2024), Section 5.
    """
    candidates = _uniform(key, size, 2, dtype)
    return tabular(candidates, jax.vmap(branin_value)(candidates), noise_sd=noise_sd)


def hartmann4(key: Key, *, size: int = 1000, noise_sd: Any = 0.2, dtype: Any = None) -> Problem:
    """Hartmann's function of four variables, standardised and with its sign flipped, on the unit cube.

    Its length scale is 1; the maximum on the cube is 3.1344941. Else as `branin`.
    """
    candidates = _uniform(key, size, 4, dtype)
    return tabular(candidates, jax.vmap(hartmann4_value)(candidates), noise_sd=noise_sd)


def rkhs(
    key: Key,
    *,
    kernel: Kernel,
    dimension: int,
    norm: Array | float = 1.0,
    size: int = 1000,
    noise_sd: Any = 0.2,
    dtype: Any = None,
) -> Problem:
    """A random function whose norm in the kernel's space is known: sum_i a_i k(., u_i), 20 centers in the unit cube.

    Args:
        key: for the candidates, the centers and the coefficients.
        kernel: of a single pair.
        dimension: d.
        norm: sqrt(a'Ka), () > 0.
        size: M, candidates.
        noise_sd: () >= 0.
        dtype: of the run; None: JAX's default float type.

    Returns:
        Problem.

    Raises:
        ValueError: an argument is out of range.
    """
    require_positive("norm", norm)
    for_candidates, for_centers, for_weights = jax.random.split(key, 3)
    candidates = _uniform(for_candidates, size, dimension, dtype)
    centers = jax.random.uniform(for_centers, (CENTERS, dimension), candidates.dtype)
    weights = jax.random.normal(for_weights, (CENTERS,), candidates.dtype)
    gram = cross(kernel, centers, centers)
    square = jnp.matmul(weights, jnp.matmul(gram, weights, precision="highest"), precision="highest")
    weights *= jnp.asarray(norm, candidates.dtype) / jnp.sqrt(square)
    values = jnp.matmul(cross(kernel, candidates, centers), weights, precision="highest")
    return tabular(candidates, values, noise_sd=noise_sd)


def tabular(candidates: Array, values: Array, *, noise_sd: Any) -> Problem:
    """An instance from its table of values.

    Args:
        candidates: float (M, d).
        values: float (M,).
        noise_sd: () >= 0.

    Returns:
        Problem.

    Raises:
        ValueError: an argument has the wrong shape or is out of range.
    """
    candidates = check_candidates(candidates)
    require(jnp.shape(values) == candidates.shape[:1], "values", f"have shape ({len(candidates)},)", jnp.shape(values))
    require_not_negative("noise_sd", noise_sd)
    dtype = candidates.dtype
    return Problem(candidates, jnp.asarray(values, dtype), jnp.asarray(noise_sd, dtype), jnp.max(values).astype(dtype))


def environment(problem: Problem, n_agents: int) -> Environment:
    """Rewards with independent Gaussian noise, common to no two agents.

    Args:
        problem: the instance.
        n_agents: N.

    Returns:
        Environment. An action is int32 (N,), the candidate of each agent; the observation is float (N,); the noise is
        standard normal, (N,).

    Raises:
        ValueError: `n_agents` is below 1.
    """
    check_size("n_agents", n_agents)
    dtype = problem.values.dtype

    def respond(action: Array, noise: Array) -> Array:
        return problem.values.at[action].get(mode="clip") + problem.noise_sd * noise

    return Environment(lambda key: jax.random.normal(key, (n_agents,), dtype), respond)


def metered(algorithm: Algorithm, problem: Problem, *, grid: tuple[int, ...]) -> Algorithm:
    """An algorithm of this family that measures itself: it takes the truth, and changes no query.

    Args:
        algorithm: what decides; its state has a field `traffic`.
        problem: the instance, truth included.
        grid: rounds after which a row of the curve is written, increasing, each at least 1.

    Returns:
        Algorithm with states `Metered`.

    Raises:
        ValueError: `grid` is not increasing, or begins below 1.

    Example:
        >>> from jaxbandits import kernel, run
        >>> bandit, rule = branin(jax.random.key(0), size=100), paper_kernel("branin")
        >>> duets = kernel.duets(bandit.candidates, kernel=rule, n_agents=4, horizon=20, beta=0.5, ridge=0.04)
        >>> duets = metered(duets, bandit, grid=(10, 20))
        >>> outcome = run(jax.random.key(0), duets, environment(bandit, 4), max_rounds=21)
        >>> print(outcome.pulls, outcome.state.round, outcome.state.curve.shape)
        80 20 (2, 3)
    """
    increasing = all(isinstance(t, int) and t >= 1 for t in grid) and list(grid) == sorted(set(grid)) and len(grid) > 0
    require(increasing, "grid", "hold increasing integers >= 1", grid)
    rounds = jnp.asarray(grid, jnp.int32)
    dtype, size = problem.values.dtype, problem.values.shape[0]
    agents = algorithm.idle.shape[0]

    def written(state: Metered) -> Metered:
        traffic = state.inner.traffic
        row = [state.regret, traffic.uplink.astype(dtype) / agents, traffic.downlink.astype(dtype)]
        return state._replace(curve=jnp.where((rounds == state.round)[:, None], jnp.stack(row), state.curve))

    def init(key: Key) -> Metered:
        inner = algorithm.init(key)
        nothing = jnp.zeros((), dtype)
        none = jnp.zeros((), jnp.int32)
        return Metered(inner, inner.pulls, none, nothing, none, jnp.zeros((len(grid), 3), dtype))

    def decide(key: Key, state: Metered) -> Decision:
        return algorithm.decide(key, state.inner)

    def observe(state: Metered, action: Array, rewards: Array) -> Metered:
        inner = algorithm.observe(state.inner, action, rewards)
        asked = action < size
        regret = jnp.where(asked, problem.best - problem.values.at[action].get(mode="clip"), 0)
        return written(
            Metered(
                inner=inner,
                pulls=inner.pulls,
                round=state.round + jnp.any(asked).astype(jnp.int32),
                regret=state.regret + jnp.sum(regret),
                syncs=state.syncs + has_sent(state.inner, inner),
                curve=state.curve,
            )
        )

    def refresh(state: Metered) -> Metered:
        return state._replace(inner=algorithm.refresh(state.inner))

    def plan(key: Key, state: Metered) -> Metered:
        # A synchronisation after a round belongs to that round.
        inner = algorithm.plan(key, state.inner)
        return written(state._replace(inner=inner, syncs=state.syncs + has_sent(state.inner, inner)))

    def has_sent(before: PyTree, after: PyTree) -> Array:
        return (after.traffic.downlink != before.traffic.downlink).astype(jnp.int32)

    def stale(state: Metered) -> Array:
        return algorithm.stale(state.inner)

    return Algorithm(
        init,
        decide,
        observe,
        algorithm.idle,
        refresh=None if algorithm.refresh is None else refresh,
        plan=None if algorithm.plan is None else plan,
        stale=None if algorithm.stale is None else stale,
    )


def every_tenth(horizon: int) -> tuple[int, ...]:
    """The default grid of a curve: ten rounds, evenly spaced, the last one the horizon's."""
    return tuple(sorted({max(1, horizon * i // 10) for i in range(1, 11)}))


def branin_value(x: Array) -> Array:
    """Branin's function at x (2,) in the unit square, float ()."""
    pi = jnp.pi
    a, b = 15 * x[0] - 5, 15 * x[1]
    square = (b - 5.1 * a**2 / (4 * pi**2) + 5 * a / pi - 6) ** 2
    return -(square + (10 - 10 / (8 * pi)) * jnp.cos(a) - 44.81) / 51.95


def hartmann4_value(x: Array) -> Array:
    """Hartmann's function at x (4,) in the unit cube, float ()."""
    c, a, p = (jnp.asarray(table, x.dtype) for table in (HARTMANN_C, HARTMANN_A, HARTMANN_P))
    return (jnp.sum(c * jnp.exp(-jnp.sum(a * (x - p) ** 2, axis=1))) - 1.1) / 0.839


def unit_ball(key: Key, size: int, dimension: int, dtype: Any, domain: Domain = "ball") -> Array:
    """Uniform points of the unit ball, or of the sphere, float (size, dimension)."""
    for_direction, for_radius = jax.random.split(key)
    normal = jax.random.normal(for_direction, (size, dimension), dtype)
    direction = normal / jnp.sqrt(jnp.sum(normal**2, axis=1, keepdims=True))
    if domain == "sphere":
        return direction
    return direction * jax.random.uniform(for_radius, (size, 1), dtype) ** (1 / dimension)


def check_candidates(candidates: Array) -> Array:
    """The candidates; raises `ValueError` unless they are finite, floating, and a (M, d) array with M, d >= 1."""
    shape = jnp.shape(candidates)
    require(len(shape) == 2 and min(shape) >= 1, "candidates", "have shape (M, d) with M, d >= 1", shape)
    dtype = jnp.result_type(candidates)
    require(jnp.issubdtype(dtype, jnp.floating), "candidates", "be floating", dtype)
    if is_concrete(candidates):
        require(jnp.all(jnp.isfinite(known(candidates))), "candidates", "be finite", candidates)
    return jnp.asarray(candidates)


def check_run(
    candidates: Array,
    *,
    kernel: Kernel,
    n_agents: int,
    horizon: int,
    beta: Array | float,
    ridge: Array | float,
    draws: Draws | None = None,
    schedule: bool = True,
    gram: Array | None = None,
) -> Array:
    """Checks what all algorithms of the family take.

    Args:
        candidates: float (M, d).
        kernel: of a single pair.
        n_agents: N.
        horizon: T.
        beta: () or, with `schedule`, (T,).
        ridge: () > 0.
        draws: replaces the algorithm's randomness.
        schedule: whether beta may change over time.
        gram: float (M, M), the kernel of all pairs of candidates, or None.

    Returns:
        The candidates, an array.

    Raises:
        ValueError: naming what is wrong.
    """
    candidates = check_candidates(candidates)
    require(callable(kernel), "kernel", "be a function of two points", kernel)
    check_size("n_agents", n_agents)
    check_size("horizon", horizon)
    shapes = [(), (horizon,)] if schedule else [()]
    require(jnp.shape(beta) in shapes, "beta", f"have shape {' or '.join(map(str, shapes))}", jnp.shape(beta))
    require_not_negative("beta", beta)
    require_positive("ridge", ridge)
    if gram is not None:
        size = candidates.shape[0]
        require(jnp.shape(gram) == (size, size), "gram", f"have shape ({size}, {size})", jnp.shape(gram))
    if draws is not None:
        shapes = (n_agents, horizon), (n_agents, horizon), (horizon, n_agents, horizon)
        for name, values, shape in zip(Draws._fields, draws, shapes, strict=True):
            require(jnp.shape(values) == shape, f"draws.{name}", f"have shape {shape}", jnp.shape(values))
            require((known(values) >= 0) & (known(values) < 1), f"draws.{name}", "lie in [0, 1)", values)
    return candidates


def check_size(name: str, value: Any) -> None:
    """Raises `ValueError` unless `value` is a Python int of at least 1."""
    require(isinstance(value, int) and not isinstance(value, bool) and value >= 1, name, "be an int >= 1", value)


def chosen(coin: Array, size: Array | int) -> Array:
    """The index in 0 .. size - 1 that a uniform variable picks, int32, shaped as `coin`."""
    size = jnp.asarray(size, jnp.int32)
    return jnp.minimum(jnp.floor(coin * size.astype(coin.dtype)).astype(jnp.int32), size - 1)


def round_coins(key: Key, draws: Draws | None, t: Array, n_agents: int, dtype: Any) -> Array:
    """The coins of round `t` (from 0), float (N,): from the key of the decision, or from the draws."""
    if draws is None:
        return jax.random.uniform(key, (n_agents,), dtype)
    return jnp.asarray(draws.coins, dtype)[:, jnp.minimum(t, draws.coins.shape[1] - 1)]


def _ridge_function(key: Key, size: int, dimension: int, domain: Domain, dtype: Any) -> tuple[Array, Array]:
    check_size("size", size)
    check_size("dimension", dimension)
    require(domain in get_args(Domain), "domain", f"be one of {get_args(Domain)}", domain)
    dtype = jnp.result_type(float) if dtype is None else dtype
    for_candidates, for_theta = jax.random.split(key)
    candidates = unit_ball(for_candidates, size, dimension, dtype, domain)
    theta = unit_ball(for_theta, 1, dimension, dtype, "sphere")[0]
    return jnp.matmul(candidates, theta, precision="highest"), candidates


def _uniform(key: Key, size: int, dimension: int, dtype: Any) -> Array:
    check_size("size", size)
    check_size("dimension", dimension)
    return jax.random.uniform(key, (size, dimension), jnp.result_type(float) if dtype is None else dtype)


LENGTHSCALES = {"h1": 1.0, "h2": 1.0, "branin": 0.2, "hartmann4": 1.0}  # of the paper's squared exponential kernels


def paper_kernel(name: str) -> Kernel:
    """The squared exponential kernel that the paper's experiments use for a function.

    Args:
        name: "h1", "h2", "branin" or "hartmann4".

    Returns:
        (x (d,), y (d,)) -> float ().

    Raises:
        ValueError: it names no such function.
    """
    require(name in LENGTHSCALES, "name", f"be one of {tuple(LENGTHSCALES)}", name)
    return functools.partial(squared_exponential, lengthscale=LENGTHSCALES[name])
