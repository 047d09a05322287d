"""Computations of the experiments on distributed kernel bandits from their runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.kernel import common as kernels
from experiments.kernel import figure1, protocol, scaling
from experiments.kernel import figure1_continuum as continuum
from experiments.kernel import information_gain as information
from experiments.settings import Settings
from jaxbandits import Results, Status, kernel
from jaxbandits.numerics import gp

OPTIONS = Settings(quick=True, lanes=2)
SMALL = {"n_agents": 3, "horizon": 6, "size": 40, "replicates": 3, "betas": (0.2, 1.0), "grid": (2, 6)}


@pytest.fixture(scope="module")
def sweeps():
    """Runs two algorithms on the same instances and noise."""
    return {rule: kernels.runs("a test", "branin", rule, options=OPTIONS, **SMALL) for rule in ("DUETS", "N-KernelUCB")}


@pytest.mark.wide
def test_runs_have_regret_and_communication(sweeps):
    for rule, results in sweeps.items():
        columns = results.columns
        assert np.all(columns["status"] == Status.STOPPED)
        assert np.all(columns["pulls"] == 18)
        curve = kernels.by_beta(results, "curve")
        assert curve.shape == (2, 3, 2, 3)
        assert np.all(np.diff(kernels.growth(curve)[0], axis=-1) > 0)
        np.testing.assert_allclose(curve[..., -1, 0], kernels.by_beta(results, "regret"))
        np.testing.assert_allclose(columns["uplink"] + columns["downlink"], columns["communication"])
        assert np.all((columns["syncs"] > 0) == (rule == "DUETS"))
    draws = sweeps["DUETS"].columns["communication_draws"]
    assert np.all(draws >= sweeps["DUETS"].columns["communication"])


def test_paired_algorithms_have_the_same_noise():
    instance = kernel.tabular(jnp.zeros((4, 1)), jnp.arange(4.0), noise_scale=1.0)
    settings = {
        "kernel": kernel.paper_kernel("branin"),
        "n_agents": 2,
        "horizon": 5,
        "beta": 1.0,
        "noise_variance": 0.04,
    }
    noises = []
    for factory in (kernel.duets, kernel.n_kernel_ucb):
        algorithm = factory(instance.candidates, **settings)
        environment = kernels.environment(instance, algorithm, jax.random.key(3))
        state = algorithm.init(jax.random.key(len(noises)))
        action = algorithm.decide(jax.random.key(1), state).action
        rewards, t = environment.respond(jnp.int32(4), action, environment.noise(jax.random.key(2)))
        assert t == 5
        noises.append(np.asarray(rewards - instance.values[action]))
    np.testing.assert_allclose(noises[0], noises[1], atol=1e-12)
    assert abs(noises[0][0] - noises[0][1]) > 1e-3  # one per agent


def test_gain_is_the_log_determinant_over_all_queries(monkeypatch):
    monkeypatch.setattr(information, "SIZE", SMALL["size"])
    results = kernels.runs(
        "a test",
        "branin",
        "N-KernelUCB",
        options=OPTIONS,
        **(SMALL | {"replicates": 1, "betas": (1.0,)}),
        total=information.queries,
        metrics=lambda instance, outcome: (
            information.gain("branin", instance, outcome)
            | {"counts": outcome.curves["queries"][-1], "candidates": instance.candidates}
        ),
    )
    counts = results.columns["counts"][0]
    assert counts.sum() == 18
    points = np.repeat(results.columns["candidates"][0], counts, axis=0)
    gram = gp.cross(kernel.paper_kernel("branin"), jnp.asarray(points), jnp.asarray(points))
    expected = np.linalg.slogdet(np.eye(18) + np.asarray(gram) / 0.04)[1] / 2
    np.testing.assert_allclose(results.columns["gain"][0], expected, rtol=1e-9)


def test_wins_is_the_share_of_draws_with_the_smallest_regret():
    rng = np.random.default_rng(0)
    first = np.array([[5.0] * 10, [1.0] * 10])  # best at its second beta
    second = np.array([[2.0] * 10, [3.0] * 10])
    np.testing.assert_array_equal(protocol.wins(np.stack([first, second]), rng, 100), [1.0, 0.0])
    noisy = np.stack([rng.normal(size=(1, 400)), rng.normal(size=(1, 400))])
    assert abs(protocol.wins(noisy, rng, 2000)[0] - 0.5) < 0.25


def test_slope_of_a_power_law():
    rng = np.random.default_rng(0)
    x = [5, 10, 20, 40]
    slope, low, high = scaling.slope_of(x, [3 * n**1.5 * rng.uniform(0.9, 1.1, 50) for n in x])
    assert low < slope < high
    assert abs(slope - 1.5) < 0.02
    assert high - low < 0.05


@pytest.mark.wide
def test_beta_is_chosen_on_the_tuning_runs_alone(sweeps):
    betas, runs = len(kernels.BETAS), figure1.TUNING + 2
    beta, replicate = np.meshgrid(kernels.BETAS, np.arange(runs), indexing="ij")
    # All other runs would choose another beta.
    regret = np.where(replicate < figure1.TUNING, abs(beta - 1.0), -abs(beta - 1.0))
    results = Results({"beta": beta.ravel(), "replicate": replicate.ravel(), "regret": regret.ravel()}, None)
    chosen = figure1.at_chosen(results)
    assert np.all(chosen["beta"] == 1.0)
    assert chosen["regret"].shape == (2,)
    assert kernels.by_beta(results, "regret").shape == (betas, runs)


def test_duets_on_the_continuum():
    run = continuum.duets("branin", np.random.default_rng(0))
    assert 0 < run["regret"] < 500 * (continuum.BEST["branin"] + 5)
    assert (run["communication"] - 3) % 4 == 0  # d + 2 numbers per point, and one for each of 3 synchronisations
    rng = np.random.default_rng(1)
    draw, _ = continuum.domain("branin", rng)
    half = continuum.Elimination(np.array([[0.0, 0.5]]), np.array([1.0]), 0.5)
    points, is_short = continuum.active(draw, [half], 500, 0.2, rng)
    assert not is_short
    assert np.all(continuum.covariance(points, half.points, 0.2)[:, 0] >= 0.5)
    nowhere = continuum.Elimination(np.array([[0.5, 0.5]]), np.array([1.0]), 1.0)
    points, is_short = continuum.active(draw, [nowhere], 5, 0.2, rng)
    assert is_short
    np.testing.assert_array_equal(points, np.full((5, 2), 0.5))
