"""An action that does not exist ends the run with a status of its own, in every family."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract.cases import CASES

import jaxbandits
from jaxbandits import Algorithm, Decision, Status, cpe, fullbandit, kcenter, kernel, linear, mab
from jaxbandits.engine.run.compatibility import action_check

KEY = jax.random.key(0)
DISTANCES = kcenter.distance_instance(1 - np.eye(5), k=2, noise_scale=0.1)
DESIGN = fullbandit.make_design(fullbandit.random_support(0, 6, 2, size=8), 2)
LAWFUL = 3  # rounds


def distances(node, times):
    return kcenter.Pull(jnp.asarray(node), jnp.asarray(0), jnp.zeros(1, int), jnp.asarray(times > 0), DISTANCES.problem)


# environment, (number, times) -> action, the last number that exists
FAMILIES = {
    "mab": (mab.environment(mab.gk1()), lambda n, times: mab.Pull(jnp.full(1, n), jnp.full(1, times)), 3),
    "linear": (
        linear.environment(linear.canonical(0.5)),
        lambda n, times: linear.Pull(jnp.asarray(n), jnp.asarray(times)),
        4,
    ),
    "fullbandit": (
        fullbandit.environment(fullbandit.Instance(jnp.linspace(0.0, 1.0, 6), 2, jnp.asarray(0.1)), DESIGN),
        lambda n, times: fullbandit.Pulls(jnp.full(8, jnp.where(n > 5, -1, 1) * times)),
        5,
    ),
    "cpe": (
        cpe.environment(cpe.best5()),
        lambda n, times: cpe.Pulls(jnp.full(1, jnp.where(times > 0, n, 5), jnp.int32)),
        4,
    ),
    "kcenter": (
        kcenter.environment(DISTANCES),
        lambda n, times: distances(jnp.where(times > 0, n, 5), times),
        4,
    ),
    "kernel": (
        kernel.environment(kernel.branin(KEY, size=20), jnp.array([20, 20])),
        lambda n, times: jnp.full(2, jnp.where(times > 0, n, 20)),
        19,
    ),
}
BEYOND = {
    "kcenter": 2,
    "cpe": 2,
    "kernel": 2,
    "linear": 1,
    "mab": 1,
    "fullbandit": 1,
}  # the number after it may be valid


class State(NamedTuple):
    pulls: jax.Array


def asking(make, number, *, draws=False):
    """Queries number 0 `LAWFUL` times, then another number; if it draws, a coin chooses between the two."""
    idle = jax.tree.map(jnp.asarray, make(0, 0))

    def decide(key, state):
        coin = jax.random.bernoulli(key) if draws else jnp.ones((), bool)
        n = jnp.where((state.pulls >= LAWFUL) & coin, number, 0)
        action = jax.tree.map(lambda a, b: jnp.asarray(a, b.dtype), make(n, 1), idle)
        return Decision(action, state.pulls >= 2 * LAWFUL, state.pulls)

    def observe(state, action, observation):
        leaves = zip(jax.tree.leaves(action), jax.tree.leaves(idle), strict=True)
        asked = ~jnp.all(jnp.stack([jnp.all(a == b) for a, b in leaves]))
        return state._replace(pulls=state.pulls + asked.astype(int))

    return Algorithm(lambda key: State(jnp.zeros((), int)), decide, observe, idle)


@pytest.mark.parametrize("family", FAMILIES)
def test_run_ends_at_an_action_that_does_not_exist(family):
    environment, make, last = FAMILIES[family]
    outcome = jaxbandits.run(KEY, asking(make, last + BEYOND[family]), environment, max_rounds=50)
    assert (outcome.status, outcome.rounds, outcome.pulls) == (Status.INVALID_ACTION, LAWFUL, LAWFUL)
    outcome = jaxbandits.run(KEY, asking(make, last), environment, max_rounds=50)
    assert (outcome.status, outcome.rounds) == (Status.STOPPED, 2 * LAWFUL)


@pytest.mark.parametrize("draws", [False, True], ids=["plain", "drawn ahead"])
def test_invalid_action_ends_runs_in_any_chunk_as_failed(draws):
    environment, make, _ = FAMILIES["mab"]

    def build(number, key):
        return asking(make, number, draws=draws), environment

    numbers, seeds = jnp.asarray([-1, 0, 3, 4]), 8
    sweeps = [
        jaxbandits.sweep(build, numbers, seeds=seeds, key=KEY, max_rounds=20, lanes=3, chunk=chunk, progress=False)
        for chunk in (2, 16)
    ]
    first, other = (results.columns for results in sweeps)
    for name in ("status", "rounds", "pulls", "answer"):
        np.testing.assert_array_equal(first[name], other[name])
    is_invalid = first["status"] == Status.INVALID_ACTION
    assert not is_invalid[seeds : 3 * seeds].any()
    assert is_invalid.reshape(4, seeds).sum(axis=1)[[0, 3]].min() >= (seeds // 2 if draws else seeds)
    assert len(set(first["rounds"][is_invalid])) == (LAWFUL if draws else 1)  # in any of the rounds with a coin
    summary = sweeps[0].summary(by="task")
    np.testing.assert_array_equal(summary["failed"], is_invalid.reshape(4, seeds).sum(axis=1))
    np.testing.assert_array_equal(summary["finished"], seeds - summary["failed"])


def test_budget_takes_precedence_over_an_invalid_action():
    environment, make, last = FAMILIES["mab"]
    algorithm = asking(make, last + 1)
    assert jaxbandits.run(KEY, algorithm, environment, max_rounds=LAWFUL).status == Status.MAX_ROUNDS
    assert jaxbandits.run(KEY, algorithm, environment, horizon=LAWFUL).status == Status.HORIZON


def test_a_tape_idles_where_the_action_does_not_exist():
    environment, make, last = FAMILIES["mab"]
    tape = jaxbandits.trace(KEY, asking(make, last + 1), environment, rounds=6)
    np.testing.assert_array_equal(tape.actions.times[:, 0], [1] * LAWFUL + [0] * 3)
    assert not tape.stops.any()


def test_algorithm_without_a_problem_is_checked_in_every_round():
    """Eight arms against four without a comparison of problems: the best arm does not exist."""
    environment = mab.environment(mab.gk1())._replace(problem=None)
    outcome = jaxbandits.run(KEY, mab.ucb1(mab.Bernoulli(8)), environment, max_rounds=50)
    assert (outcome.status, outcome.rounds) == (Status.INVALID_ACTION, 4)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.is_variant])
def test_library_rules_are_not_checked_in_every_round(name):
    """Rule and environment name their problem; `testing.check` checks the actions."""
    case = CASES[name]
    algorithm, environment = case.make(
        jnp.dtype(case.dtypes[0]), **{n: value for n, (value, _) in case.numbers.items()}
    )
    assert environment.accepts is not None
    assert action_check(algorithm, environment) is None
    assert action_check(algorithm._replace(problem=None), environment) is environment.accepts
