"""Messages of common mistakes end with the line to write."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine.toys import KEY

import jaxbandits
from jaxbandits import cpe, linear, mab
from jaxbandits.base import memoryless

MAB = mab.bernoulli([0.5, 0.4])
LINEAR = linear.canonical(0.5)
CPE = cpe.best5()
TTUCB = mab.ttucb(MAB.problem, delta=0.1)
DELTAS = {"delta": np.array([0.1, 0.2])}
TWO_SLOTS = mab.Pull(np.zeros(2, int), np.zeros(2, int))


def tell_a_float():
    action = mab.Pull(jnp.zeros(1, jnp.int32), jnp.ones(1, jnp.int32))
    return jaxbandits.tell(TTUCB, TTUCB.init(KEY), action, 1.0)


def play_whole_decisions():
    decision = jnp.array([1, 0, 0, 0, 0])
    return cpe.environment(CPE).respond((), cpe.Play(*[decision] * len(cpe.Play._fields)), np.zeros(1))


def run_own(respond, algorithm=TTUCB):
    environment = memoryless(lambda key: jax.random.normal(key), respond)
    return jaxbandits.run(KEY, algorithm, environment, max_rounds=9)


def sweep(build=lambda task, key: (TTUCB, mab.environment(MAB, TTUCB)), tasks=None, **settings):
    return jaxbandits.sweep(build, tasks, seeds=1, key=KEY, max_rounds=9, progress=False, **settings)


@pytest.mark.parametrize(
    ("mistake", "line"),
    [
        (lambda: mab.environment(MAB.problem), "Write instance instead of instance.problem"),
        (lambda: mab.environment([0.5, 0.4]), "Write mab.gaussian(means) or mab.bernoulli(means)"),
        (lambda: linear.environment(LINEAR.arms), "Write instance instead of instance.arms"),
        (lambda: cpe.environment(CPE.problem), "Write instance instead of instance.problem"),
        (lambda: cpe.environment(CPE.arms), "Write cpe.instance(problem, arms)"),
        (lambda: mab.environment(LINEAR), "Write linear instead of mab"),
        (lambda: linear.environment(MAB), "Write mab instead of linear"),
        (lambda: cpe.environment(LINEAR), "Write linear instead of cpe"),
        (lambda: run_own(lambda pull, noise: noise), "Write mab.Rewards(sums, times)"),
        (lambda: run_own(lambda pull, noise: (noise[None], pull.times)), "Write mab.Rewards(sums, times)"),
        (lambda: sweep(metrics=lambda task, outcome: outcome.answer), 'Write {"wrong": ..}'),
        (lambda: sweep(metrics=lambda task, outcome: [outcome.answer]), 'Write {"wrong": ..}'),
        (lambda: sweep(metrics=lambda task, outcome: {"x": [outcome.answer]}), 'Write {"x": jax.numpy.asarray(..)}'),
        (
            lambda: sweep(metrics=lambda task, outcome: {"x": float(outcome.answer)}),
            "The values of a task and an outcome are traced: use jax.numpy",
        ),
        (
            lambda: sweep(lambda task, key: mab.ttucb(MAB.problem, delta=float(task["delta"])), DELTAS),
            "The values of a task are traced: use jax.numpy, or make a sweep for each value",
        ),
        (
            lambda: sweep(lambda task, key: 1 if task["delta"] > 0.1 else 2, DELTAS),
            "The values of a task are traced: use jax.numpy, or make a sweep for each value",
        ),
        (lambda: sweep(lambda task, key: TTUCB), "got an Algorithm alone. Write (algorithm, environment)"),
        (
            lambda: sweep(lambda task, key: (mab.environment(MAB), TTUCB)),
            "got (Environment, Algorithm). Write (algorithm, environment)",
        ),
        (
            lambda: sweep(tasks={"means": np.ones((3, 2)), "delta": np.ones(2), "gap": np.ones(())}),
            "got lengths delta: 2, gap: no axis, means: 3. Write jaxbandits.grid(..) for all combinations, or "
            "jaxbandits.rows(..), where a number stands for all rows",
        ),
        (lambda: mab.ttucb(MAB, delta=0.1), "Write instance.problem"),
        (lambda: cpe.clucb(CPE, delta=0.1), "Write instance.problem"),
        (lambda: linear.lingape(LINEAR, delta=0.1), "Write instance.arms"),
        (tell_a_float, "Write mab.Rewards(sums, action.times), with the sum of the rewards of each slot"),
        (play_whole_decisions, "Write cpe.environment(instance, algorithm)"),
        (
            lambda: mab.environment(MAB).respond((), TWO_SLOTS, np.zeros(1)),
            "Write mab.environment(instance, algorithm)",
        ),
        (
            lambda: jaxbandits.run(KEY, TTUCB, mab.environment(MAB)),
            "Write max_rounds=n, the most rounds of a run, or horizon=n, the pulls after which every run ends",
        ),
        (
            lambda: jaxbandits.sweep(lambda task, key: None, seeds=1, key=KEY),
            "Write max_rounds=n, the most rounds of a run, or horizon=n, the pulls after which every run ends",
        ),
    ],
)
def test_message_ends_with_the_line_to_write(mistake, line):
    with pytest.raises(ValueError, match="must") as raised:
        mistake()
    assert str(raised.value).endswith(line)


@pytest.mark.parametrize(
    ("metrics", "kind"),
    [
        (lambda task, outcome: {"x": outcome.nothing}, AttributeError),
        (lambda task, outcome: {"x": (outcome.answer,)[1]}, IndexError),
    ],
)
def test_error_within_metrics_names_it(metrics, kind):
    with pytest.raises(kind) as raised:
        sweep(metrics=metrics)
    assert "The error is in metrics." in raised.value.__notes__


def test_error_within_build_says_what_it_gets():
    with pytest.raises(ValueError, match=r"must be an array of real numbers of shape") as raised:
        sweep(lambda instance, key: (TTUCB, mab.environment(instance, TTUCB)), mab.gauss4())
    row = "It gets one row of tasks: one entry along the first axis of each array."
    assert f"The error is in build. {row}" in raised.value.__notes__


def test_observation_names_what_respond_must_return():
    message = r"^respond must return mab.Rewards\(sums, times\), got float\d\d\[\] for the algorithm's idle action Pull"
    with pytest.raises(ValueError, match=message):
        run_own(lambda pull, noise: noise)


@pytest.mark.parametrize(
    ("algorithm", "environment"),
    [
        (mab.lucb(MAB.problem, delta=0.1), mab.environment(MAB)),
        (linear.rage(LINEAR.arms, delta=0.1), linear.environment(LINEAR)),
        (cpe.cucb(CPE.problem), cpe.environment(CPE)),
        (TTUCB, memoryless(lambda key: (), lambda pull, noise: pull.nothing)),
    ],
)
def test_advice_is_given_once(algorithm, environment):
    with pytest.raises(ValueError, match="does not answer this algorithm") as raised:
        jaxbandits.run(KEY, algorithm, environment, max_rounds=9)
    assert str(raised.value).count("environment(instance, algorithm)") == 1
    assert str(raised.value).endswith("environment(instance, algorithm)")


def test_an_instance_of_another_family_is_named_with_it():
    with pytest.raises(ValueError, match=r"must be of type mab.Instance, got linear.Instance\("):
        mab.environment(LINEAR)
    with pytest.raises(ValueError, match=r"must be of type mab.Gaussian or .*mab.Bounded, got linear.Instance\("):
        mab.ttucb(LINEAR, delta=0.1)


def test_instance_of_another_kind_gets_no_advice():
    with pytest.raises(ValueError, match="must be of type") as raised:
        mab.ttucb(3, delta=0.1)
    assert "Write" not in str(raised.value)


def test_rows_of_lists_gives_each_task_a_vector():
    table = jaxbandits.rows(means=[[0.5, 0.4], (0.5, 0.3)], deep=[[[1, 2], [3, 4]]] * 2, delta=0.1)
    np.testing.assert_array_equal(table["means"], [[0.5, 0.4], [0.5, 0.3]])
    assert (table["deep"].shape, table["deep"].dtype.kind, table["delta"].shape) == ((2, 2, 2), "i", (2,))
    with pytest.raises(ValueError, match=r"means must have vectors of one length, got lengths \[2, 1\]"):
        jaxbandits.rows(means=[[0.5, 0.4], [0.5]])
    with pytest.raises(ValueError, match="means must be a sequence of numbers"):
        jaxbandits.rows(means=[[[1, 2], [3]], [[1, 2], [3, 4]]])
