"""RAGE: its phases by hand, its laws, bad input, and its mean pulls."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits
from jaxbandits import linear
from jaxbandits.base import Status
from jaxbandits.engine.run.loop import ask

KEY = jax.random.key(0)
STEPS = 100


@functools.cache
def phase_program(reuse):
    """Builds a program for the pulls of a phase that observes the given means, and for the state after it."""

    @jax.jit
    def program(arms, items, means, numbers, begun, earlier_sums):
        algorithm = linear.rage(arms, items=items, reuse=reuse, design_steps=STEPS, **numbers)
        start = algorithm.init(KEY)
        start = start._replace(phase=begun, counts=jnp.full_like(start.counts, 5), sums=earlier_sums)
        state, (action, *_) = ask(algorithm, KEY, start)
        state = algorithm.observe(state, action, action.counts.astype(float) * means)
        return action.counts, state, algorithm.decide(KEY, state), algorithm.stale(state)

    def phase(arms, means, items=None, begun=0, earlier=0.0, **numbers):
        numbers = {"delta": 0.1, "epsilon": 0.0, "noise_scale": 1.0, "rounding": 0.1} | numbers
        inputs = (arms, arms if items is None else items, np.asarray(means), numbers, begun)
        return jax.device_get(program(*inputs, np.full(len(arms), earlier)))

    return phase


@pytest.mark.parametrize(("begun", "scale"), [(0, 1.0), (1, 1.0), (0, 3.0)])
def test_the_pulls_of_a_phase_by_hand(begun, scale):
    # A pair of canonical arms has the squared width 2 K in the uniform design, the best one, so 2^-t takes
    # 2 scale^2 4^t 2 K (1 + rounding) log(2 M^2 t^2 / delta) pulls.
    counts, *_ = phase_program(False)(np.eye(3), [1.0, 0.9, 0.8], begun=begun, noise_scale=scale)
    t = begun + 1
    assert counts.sum() == np.ceil(2 * scale**2 * 4**t * 6 * 1.1 * np.log(18 * t**2 / 0.1))
    assert np.ptp(counts) <= 1


@pytest.mark.parametrize("rounding", [0.1, 0.5])
def test_a_phase_takes_enough_pulls_for_its_rounding(rounding):
    counts, *_ = phase_program(False)(np.eye(3), [1.0, 0.9, 0.8], noise_scale=1e-3, rounding=rounding)
    assert counts.sum() == np.ceil(3 * (1 + rounding) / rounding)


def test_every_arm_is_pulled_in_a_phase_that_stands_alone():
    arms, items = np.eye(3), np.array([[1.0, 0, 0], [0, 1.0, 0], [0.5, 0.5, 0]])
    counts, *_ = phase_program(False)(arms, [0.0, 0.0, 0.0], items)
    assert counts[2] == 1  # no item depends on it
    counts, *_ = phase_program(True)(arms, [0.0, 0.0, 0.0], items)
    assert counts[2] == 1
    counts, *_ = phase_program(True)(arms, [0.0, 0.0, 0.0], items, begun=1)
    assert counts[2] == 0


def test_items_are_eliminated_when_their_gap_exceeds_their_width():
    # After phase 1 every width is at most 1/2, and not much less.
    _, state, decision, is_stale = phase_program(False)(np.eye(3), [1.0, 0.8, 0.4])
    assert (state.items_left.tolist(), bool(decision.stop), bool(is_stale)) == ([True, True, False], False, True)
    _, state, decision, is_stale = phase_program(False)(np.eye(3), [0.0, 1.0, 0.4])
    assert (state.items_left.tolist(), bool(decision.stop), bool(is_stale)) == ([False, True, False], True, False)
    assert decision.answer == 1


def test_the_answer_is_an_item():
    items = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    _, _, decision, _ = phase_program(False)(np.eye(3), [1.0, 0.8, 0.4], items)
    assert (bool(decision.stop), int(decision.answer)) == (True, 1)


@pytest.mark.parametrize(("begun", "stops"), [(0, False), (1, False), (2, True)])
def test_epsilon_ends_the_run_once_a_phase_is_as_precise(begun, stops):
    # The run ends after phase 3 at the latest: 2^(1 - 3) <= .3 < 2^(1 - 2).
    _, state, decision, is_stale = phase_program(False)(np.eye(3), [1.0, 1.01, 1.0], begun=begun, epsilon=0.3)
    assert state.items_left.all()
    assert (bool(decision.stop), bool(is_stale), int(decision.answer)) == (stops, not stops, 1)


def test_a_huge_epsilon_does_not_end_a_run_before_its_first_phase():
    algorithm = linear.rage(np.eye(3), delta=0.1, epsilon=10.0, design_steps=STEPS)
    assert not algorithm.decide(KEY, algorithm.init(KEY)).stop


@pytest.mark.parametrize(("max_pulls", "begins"), [(3, False), (271, False), (2000, True)])
def test_a_phase_beyond_the_budget_is_not_begun(max_pulls, begins):
    algorithm = linear.rage(np.eye(3), delta=0.1, max_pulls=max_pulls, design_steps=STEPS)
    state = algorithm.plan(KEY, algorithm.init(KEY))
    decision = algorithm.decide(KEY, state)
    assert not decision.stop
    assert not algorithm.stale(state)
    assert (decision.action.counts.sum() > 0) == begins


def test_a_phase_beyond_any_integer_is_not_begun():
    algorithm = linear.rage(np.eye(3), delta=0.1, design_steps=STEPS)
    state = algorithm.plan(KEY, algorithm.init(KEY)._replace(phase=jnp.asarray(40)))
    np.testing.assert_array_equal(state.due, 0)


def test_a_nan_in_one_phase_stays():
    """A NaN in a phase stays, so that the run ends, though the next phase alone would be finite."""
    algorithm = linear.rage(np.eye(3), delta=0.1, design_steps=STEPS)
    state = algorithm.init(KEY)._replace(theta=jnp.full(3, jnp.nan))
    ones = jnp.ones(3, int)
    assert np.isnan(jax.jit(algorithm.observe)(state, linear.Allocation(ones), jnp.ones(3)).theta).all()


def played(instance, assumed, seeds, **options):
    def build(task, key):
        del key
        algorithm = linear.rage(
            instance.arms, items=instance.items, delta=0.1, noise_scale=task["assumed"], design_steps=STEPS, **options
        )
        return algorithm, linear.environment(instance, algorithm)

    table = jaxbandits.grid(assumed=assumed)
    return jaxbandits.sweep(build, table, seeds=seeds, key=KEY, max_rounds=40, progress=False)


def test_rage_errs_if_noise_scale_is_too_small():
    # The two items are 0.05 apart, so rounding sets the pulls of hardly any phase.
    instance = linear.Instance(np.eye(2), np.array([0.05, 0.0]), 1.0)
    results = played(instance, [1.0, 0.2], 200)
    wrong = results.columns["answer"].reshape(2, 200) != 0
    assert np.all(results.columns["status"] == Status.STOPPED)
    assert wrong[0].sum() <= 5  # the proof gives at most .42 delta
    assert wrong[1].sum() >= 40


@pytest.mark.thorough
@pytest.mark.slow
def test_published_constants_on_soare():
    """Reference: a mean of 7048 +- 212 pulls (400 runs), with more steps of the design."""
    instance = linear.soare(6, 0.1)

    def build(task, key):
        del task, key
        algorithm = linear.rage(instance.arms, delta=0.1)
        return algorithm, linear.environment(instance, algorithm)

    pulls = jaxbandits.sweep(build, seeds=1000, key=KEY, max_rounds=40, progress=False).columns["pulls"]
    assert abs(pulls.mean() - 7048) <= 4 * np.hypot(212, pulls.std() / np.sqrt(1000))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"items": np.eye(2)}, "items must have 3 columns"),
        ({"max_pulls": 2}, r"max_pulls must be an integer in \[3, \d+\], got 2"),
    ],
)
def test_bad_input(changes, message):
    with pytest.raises(ValueError, match=message):
        linear.rage(**({"arms": np.eye(3), "delta": 0.1} | changes))
