"""Messages of common mistakes end with the line to write."""

import jax.numpy as jnp
import numpy as np
import pytest
from engine.toys import KEY

import jaxbandits
from jaxbandits import cpe, linear, mab

MAB = mab.bernoulli([0.5, 0.4])
LINEAR = linear.canonical(0.5)
CPE = cpe.best5()
TTUCB = mab.ttucb(MAB.problem, delta=0.1)
TWO_SLOTS = mab.Pull(np.zeros(2, int), np.zeros(2, int))


def tell_a_float():
    action = mab.Pull(jnp.zeros(1, jnp.int32), jnp.ones(1, jnp.int32))
    return jaxbandits.tell(TTUCB, TTUCB.init(KEY), action, 1.0)


def play_whole_decisions():
    decision = jnp.array([1, 0, 0, 0, 0])
    return cpe.environment(CPE).respond((), cpe.Play(*[decision] * len(cpe.Play._fields)), np.zeros(1))


@pytest.mark.parametrize(
    ("mistake", "line"),
    [
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
