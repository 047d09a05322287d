"""An algorithm and an environment of two problems are refused in a sentence that names both."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine.toys import NOISE, counter

import jaxbandits
from jaxbandits import cpe, fullbandit, kcenter, kernel, linear, mab, memoryless
from jaxbandits.engine.run import compatibility

KEY = jax.random.key(0)
BOUNDS = {"kernel": kernel.paper_kernel("branin"), "horizon": 5, "beta": 1.0, "noise_variance": 0.1}
GRID, POINTS = kernel.branin(KEY, size=50), kernel.branin(KEY, size=20)
MOVED = POINTS._replace(candidates=POINTS.candidates + 1e-3)
DISTANCES = kcenter.distance_instance(1 - np.eye(5), k=2, noise_scale=0.1)
FIRST, OTHER = (fullbandit.make_design(fullbandit.random_support(seed, 6, 2, size=8), 2) for seed in (0, 1))
SUMS = fullbandit.Instance(jnp.linspace(0.0, 1.0, 6), 2, jnp.asarray(0.1))

PAIRS = {
    "mab, more arms": (
        mab.ttucb(mab.Bernoulli(8), delta=0.1),
        mab.environment(mab.gk1()),
        "same arms, got 8 in the algorithm and 4 in the environment",
    ),
    "mab, fewer arms": (
        mab.ucb1(mab.Bernoulli(3)),
        mab.environment(mab.gk1()),
        "same arms, got 3 in the algorithm and 4",
    ),
    "linear, sizes": (
        linear.lingape(linear.canonical(0.5, 6).arms, delta=0.1),
        linear.environment(linear.canonical(0.5, 4)),
        r"same arms, got shape \(6, 6\) in the algorithm and \(4, 4\) in the environment",
    ),
    "linear, values": (
        linear.lingape(linear.soare(5, 0.1).arms, delta=0.1),
        linear.environment(linear.soare(5, 0.2)),
        r"same arms, got arrays of shape \(6, 5\) with other values in the algorithm than in the environment",
    ),
    "cpe, arms": (
        cpe.coci(cpe.top_k(6, 2), delta=0.1),
        cpe.environment(cpe.best5()),
        "same arms, got 6 in the algorithm and 5 in the environment",
    ),
    "cpe, quota": (
        cpe.coci(cpe.top_k(5, 2), delta=0.1),
        cpe.environment(cpe.best5()),
        "same problem, got 2 of quota in the algorithm and 1 in the environment",
    ),
    "kernel, candidates": (
        kernel.gp_ucb(GRID.candidates, **BOUNDS),
        kernel.environment(POINTS),
        r"same candidates, got shape \(50, 2\) in the algorithm and \(20, 2\) in the environment",
    ),
    "kernel, values": (
        kernel.gp_ucb(MOVED.candidates, **BOUNDS),
        kernel.environment(POINTS),
        r"same candidates, got arrays of shape \(20, 2\) with other values",
    ),
    "kernel, agents": (
        kernel.n_kernel_ucb(POINTS.candidates, n_agents=3, **BOUNDS),
        kernel.environment(POINTS),
        "same n_agents, got 3 in the algorithm and 1 in the environment",
    ),
    "fullbandit": (
        fullbandit.saqm(FIRST, delta=0.1, epsilon=0.1, noise_scale=0.1),
        fullbandit.environment(SUMS, fullbandit.saqm(OTHER, delta=0.1, epsilon=0.1, noise_scale=0.1)),
        r"same design.support, got arrays of shape \(8, 6\) with other values",
    ),
    "kcenter": (
        kcenter.ns_ts(kcenter.Distances(4, 2), delta=0.1, noise_scale=0.1),
        kcenter.environment(DISTANCES),
        r"same problem, got Distances\(n=4, k=2, noise='gaussian'\) in the algorithm and Distances\(n=5",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_another_problem_is_refused_by_run_and_trace(name):
    algorithm, environment, message = PAIRS[name]
    with pytest.raises(ValueError, match=f"algorithm and environment must have the {message}"):
        jaxbandits.run(KEY, algorithm, environment, max_rounds=10)
    with pytest.raises(ValueError, match=message):
        jaxbandits.trace(KEY, algorithm, environment, rounds=10)


@pytest.mark.parametrize("name", ["mab, more arms", "linear, values"])
def test_another_problem_is_refused_by_sweep_before_the_first_round(name):
    algorithm, environment, message = PAIRS[name]
    with pytest.raises(ValueError, match=message):
        jaxbandits.sweep(lambda task, key: (algorithm, environment), seeds=2, key=KEY, max_rounds=10, progress=False)


def test_traced_values_and_rounding_are_not_compared():
    instance = linear.soare(3, 0.1)
    environment = linear.environment(instance)

    def pulls(arms):
        algorithm = linear.lingape(arms, delta=0.1)
        return jaxbandits.run(KEY, algorithm, environment, max_rounds=10).pulls

    jax.eval_shape(pulls, 2 * instance.arms)
    jax.eval_shape(lambda: pulls(instance.arms * (1 + 1e-15)))


def test_wrong_model_is_allowed_if_declared():
    algorithm, environment, _ = PAIRS["linear, values"]
    outcome = jaxbandits.run(KEY, algorithm, environment._replace(problem=None), max_rounds=3)
    assert outcome.rounds == 3
    noisier = mab.environment(mab.gaussian((0.5, 0.4, 0.3, 0.2), noise_scale=2.0))
    assert jaxbandits.run(KEY, mab.ucb1(mab.Gaussian(4)), noisier, max_rounds=3).rounds == 3


@pytest.mark.parametrize(
    ("environment", "action"),
    [
        (mab.environment(mab.gk1()), mab.Pull(jnp.array([4]), jnp.array([1]))),
        (mab.environment(mab.gk1()), mab.Pull(jnp.array([-1]), jnp.array([1]))),
        (linear.environment(linear.canonical(0.5)), linear.Pull(jnp.asarray(5), jnp.asarray(1))),
        (linear.environment(linear.canonical(0.5)), linear.Pull(jnp.asarray(0), jnp.asarray(-1))),
        (
            linear.environment(linear.canonical(0.5), linear.Allocation(jnp.zeros(5, int))),
            linear.Allocation(jnp.array([1, 1, 1, 1, -1])),
        ),
        (fullbandit.environment(SUMS, FIRST), fullbandit.Pulls(jnp.full(8, -1))),
        (cpe.environment(cpe.best5()), cpe.Pulls(jnp.array([6]))),
        (kernel.environment(POINTS, jnp.array([20, 20])), jnp.array([0, 21])),
        (
            kcenter.environment(DISTANCES),
            kcenter.Pull(jnp.asarray(6), jnp.asarray(0), jnp.zeros(1, int), jnp.asarray(False), DISTANCES.problem),
        ),
    ],
)
def test_concrete_action_outside_of_the_domain_is_refused(environment, action):
    with pytest.raises(ValueError, match="action must"):
        environment.respond((), action, environment.noise(KEY))
    assert not environment.accepts(action)


def test_action_of_fewer_agents_is_refused():
    environment = kernel.environment(POINTS)
    with pytest.raises(ValueError, match=r"action must have shape \(1,\), .* got \(3,\)\. Write kernel\.environment"):
        environment.respond((), jnp.array([0, 1, 2]), environment.noise(KEY))


def promotes_ranks(action, noise):
    return jnp.sum(jnp.ones((2, 2)) * jnp.ones(2)) * action.astype(float)


def test_rank_promotion_within_the_library_names_the_setting(monkeypatch):
    monkeypatch.setattr(compatibility, "LIBRARY", str(Path(__file__).parent))  # as if this file were of the library
    environment = memoryless(NOISE.noise, promotes_ranks)
    with (
        jax.numpy_rank_promotion("raise"),
        pytest.raises(ValueError, match="^jax_numpy_rank_promotion must be .* promotes ranks in test_one_problem.py"),
    ):
        jaxbandits.run(KEY, counter(5), environment, max_rounds=10)


def test_rank_promotion_does_not_hide_a_misfit(monkeypatch):
    monkeypatch.setattr(compatibility, "LIBRARY", str(Path(__file__).parent))
    environment = memoryless(NOISE.noise, lambda action, noise: promotes_ranks(action, noise) + action.arms)
    with (
        jax.numpy_rank_promotion("raise"),
        pytest.raises(ValueError, match="^environment does not answer this algorithm"),
    ):
        jaxbandits.run(KEY, counter(5), environment, max_rounds=10)


def test_rank_promotion_in_a_users_environment_names_it():
    environment = memoryless(NOISE.noise, promotes_ranks)
    with (
        jax.numpy_rank_promotion("raise"),
        pytest.raises(ValueError, match="^environment does not answer this algorithm: .* respond"),
    ):
        jaxbandits.run(KEY, counter(5), environment, max_rounds=10)


@pytest.mark.parametrize(
    ("sums", "advice"),
    [
        (lambda action: [1.0], r"sums=\[float64\[\]\].* Answer with an array instead of a list: jnp.asarray"),
        (lambda action: None, r"sums=None.* Answer with an array instead of None"),
        (lambda action: action.times > 0, r"sums=bool\[1\].* Answer with a number instead of a boolean"),
    ],
    ids=["list", "none", "boolean"],
)
def test_rewards_of_another_kind_are_refused_with_advice(sums, advice):
    environment = memoryless(NOISE.noise, lambda action, noise: mab.Rewards(sums(action), action.times))
    with pytest.raises(ValueError, match=f"^algorithm does not take this environment's observations: .*{advice}"):
        jaxbandits.run(KEY, mab.thompson(mab.Bernoulli(3)), environment, max_rounds=5)
