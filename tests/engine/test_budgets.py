"""Runs with a horizon need no budget of rounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine.toys import KEY, PERTURBED, stride

import jaxbandits
from jaxbandits.base import Status

HORIZONS = np.array([15, 16, 4])
SETTINGS = {"key": KEY, "seeds": 2, "lanes": 4, "chunk": 4, "progress": False}


def build(task, key):
    """Pulls 1, 2, 3, .. times; an idler never pulls, and does not stop."""
    algorithm = stride(1000, 3)

    def decide(key, state):
        decision = algorithm.decide(key, state)
        return decision._replace(action=jnp.where(task["idles"], 0, decision.action))

    return algorithm._replace(decide=decide), PERTURBED


TASKS = {"idles": np.array([False, False, True]), "horizon": HORIZONS}


def test_a_sweep_with_a_horizon_needs_no_budget(tmp_path):
    results = jaxbandits.sweep(build, TASKS, horizon="horizon", store=tmp_path, **SETTINGS)
    first = results.columns["seed"] == 0
    # A run without pulls is censored after as many rounds as its horizon has pulls.
    np.testing.assert_array_equal(results.columns["status"][first], [Status.HORIZON, Status.HORIZON, Status.MAX_ROUNDS])
    np.testing.assert_array_equal(results.columns["pulls"][first], [15, 21, 0])
    np.testing.assert_array_equal(results.columns["rounds"][first], [5, 6, 4])
    ample = jaxbandits.sweep(build, TASKS, horizon="horizon", max_rounds=100, **SETTINGS)
    runs = ample.columns["row"] < 2
    for name in ("status", "pulls", "rounds", "answer"):
        np.testing.assert_array_equal(results.columns[name][runs], ample.columns[name][runs])
    with pytest.raises(ValueError, match='arguments.max_rounds: "horizon" in the store, 100 now'):
        jaxbandits.sweep(build, TASKS, horizon="horizon", max_rounds=100, store=tmp_path, **SETTINGS)


def test_a_run_with_a_horizon_needs_no_budget():
    @jax.jit
    @jax.vmap
    def run(idles, horizon):
        outcome = jaxbandits.run(KEY, *build({"idles": idles}, KEY), horizon=horizon, chunk=4)
        return outcome.status, outcome.rounds

    status, rounds = run(TASKS["idles"], HORIZONS)
    np.testing.assert_array_equal(status, [Status.HORIZON, Status.HORIZON, Status.MAX_ROUNDS])
    np.testing.assert_array_equal(rounds, [5, 6, 4])


def test_run_without_horizon_requires_a_budget():
    message = r"max_rounds must be an integer .*, got None"
    with pytest.raises(ValueError, match=message):
        jaxbandits.run(KEY, stride(1000, 3), PERTURBED)
    with pytest.raises(ValueError, match=message):
        jaxbandits.sweep(build, TASKS, **SETTINGS)
