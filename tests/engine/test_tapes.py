"""Tapes: written by `trace`, read by `replay`, compared by `first_difference`."""

import jax
import numpy as np
import pytest
from engine.toys import KEY, PERTURBED, stride

from jaxbandits import run, testing, trace
from jaxbandits.testing import Difference, Tape


def planner(limit, period):
    """Answers how it was planned, with a key of its own, and refreshes itself."""
    algorithm = stride(limit, period)
    return algorithm._replace(
        decide=lambda key, state: algorithm.decide(key, state)._replace(answer=(state.planned, state.sum)),
        plan=lambda key, state: state._replace(planned=state.steps, sum=state.sum + jax.random.normal(key)),
        refresh=lambda state: state._replace(sum=state.sum + 1),
    )


@pytest.fixture(scope="module")
def tape():
    return jax.device_get(trace(KEY, planner(20, 2), PERTURBED, rounds=10, chunk=4))


def test_a_trace_is_the_run_of_the_same_key(tape):
    outcome = run(KEY, planner(20, 2), PERTURBED, max_rounds=100, chunk=4)
    np.testing.assert_array_equal(tape.actions, [1, 2, 3, 4, 5, 6, 0, 0, 0, 0])  # 21 pulls
    np.testing.assert_array_equal(tape.stops, np.arange(10) >= 6)
    assert (outcome.pulls, outcome.rounds) == (21, 6)
    planned, sums = tape.answers
    np.testing.assert_array_equal(planned, [0, 0, 2, 2, 4, 4, 4, 4, 4, 4])  # a state that stops is not planned
    assert sums[6] == outcome.answer[1]


def test_replay_repeats_the_decisions_of_a_tape(tape):
    assert testing.first_difference(tape, testing.replay(planner(20, 2), tape, key=KEY, chunk=4)) is None
    other = testing.replay(planner(20, 3), tape, key=KEY, chunk=4)
    assert testing.first_difference(tape, other)[:2] == (2, "answers.0")
    shorter = testing.replay(planner(14, 2), tape, key=KEY, chunk=4)
    assert testing.first_difference(tape, shorter) == Difference(5, "stops", False, True)


def test_planning_draws_from_the_key(tape):
    other = testing.replay(planner(20, 2), tape, chunk=4)
    assert testing.first_difference(tape, other).field == "answers.1"


def test_first_difference_by_hand():
    tape = Tape({"arm": np.arange(4)}, np.array([0.5, np.nan, np.inf, 3.0]), np.zeros(4, bool), np.ones((4, 2)))
    assert testing.first_difference(tape, tape) is None
    assert testing.first_difference(tape, jax.tree.map(lambda x: x[:3], tape)) == Difference(3, "rounds", 4, 3)
    near = tape._replace(observations=tape.observations * (1 + 1e-9), answers=np.ones((4, 2)) - 1e-9)
    assert testing.first_difference(tape, near) == Difference(0, "observations", 0.5, 0.5 * (1 + 1e-9))
    assert testing.first_difference(tape, near, tolerance=1e-8) is None
    answers = np.ones((4, 2))
    answers[2, 1] = 3
    arms = {"arm": np.array([0, 1, 5, 3])}
    first = testing.first_difference(tape, tape._replace(answers=answers, actions=arms))
    assert first == Difference(2, "actions.arm", 2, 5)
    assert testing.first_difference(tape, tape._replace(answers=answers)) == Difference(2, "answers", [1, 1], [1, 3])


def test_masked_entries_are_not_compared():
    tape = Tape(np.arange(4), np.zeros(4), np.zeros(4, bool), np.arange(8).reshape(4, 2))
    answers = np.ma.masked_array(tape.answers + 1, mask=tape.answers % 4 < 3)
    other = tape._replace(answers=answers)
    assert testing.first_difference(tape, other) == Difference(1, "answers", [2, 3], [3, 4])
    assert testing.first_difference(other, tape) == Difference(1, "answers", [3, 4], [2, 3])
    answers.mask = True
    assert testing.first_difference(tape, other) is None
    assert testing.first_difference(tape._replace(actions=tape.actions[:3]), other) == Difference(3, "rounds", 3, 4)


def test_an_absolute_tolerance_is_enough_by_itself():
    tape = Tape(np.arange(2), np.array([1e-12, 5.0]), np.zeros(2, bool), ())
    other = tape._replace(observations=np.array([0.0, 5.0 + 1e-9]))
    assert testing.first_difference(tape, other, absolute_tolerance=1e-10).round == 1
    assert testing.first_difference(tape, other, tolerance=1e-9).round == 0
    assert testing.first_difference(tape, other, tolerance=1e-9, absolute_tolerance=1e-10) is None


def test_trace_watches_the_state_that_decides(tape):
    """After planning: this algorithm answers with two fields of its state."""

    def watch(state):
        return state.planned, state.sum

    for other in (
        trace(KEY, planner(20, 2), PERTURBED, rounds=10, chunk=4, watch=watch),
        testing.replay(planner(20, 2), tape, key=KEY, chunk=4, watch=watch),
    ):
        assert testing.first_difference(other, other._replace(watched=tape.answers)) is None
        wrong = testing.first_difference(other, other._replace(watched=(tape.answers[0], tape.answers[1] + 1)))
        assert wrong[:2] == (0, "watched.1")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda tape: trace(KEY, planner(20, 2), PERTURBED, rounds=0),
            "rounds must be an integer of at least 1, got 0",
        ),
        (lambda tape: testing.replay(planner(20, 2), (1, 2)), "tape must be of type Tape"),
        (
            lambda tape: testing.replay(planner(20, 2), tape._replace(observations=np.zeros(0))),
            r"tape must have observations with one common leading axis, the rounds, got shapes \[\(0,\)\]",
        ),
        (
            lambda tape: testing.replay(planner(20, 2), tape._replace(observations=(np.zeros(2), np.zeros(3)))),
            "tape must have observations with one common leading axis",
        ),
        (
            lambda tape: testing.first_difference(tape, tape._replace(actions=(tape.actions,))),
            "other must have actions of the same structure",
        ),
        (
            lambda tape: testing.first_difference(tape, tape._replace(actions=np.ones((10, 2)))),
            r"other must have actions of shape \(\) per round, got \(2,\)",
        ),
    ],
)
def test_bad_arguments_are_named(tape, call, message):
    with pytest.raises(ValueError, match=message):
        call(tape)
