"""CLUCB without noise."""

import jax.numpy as jnp
import numpy as np
import pytest
from drivers.cpe import best, follow

from jaxbandits import cpe


@pytest.mark.parametrize(
    ("name", "pulls"),
    [
        ("best5", 2293),
        ("top2of6", 2302),
        ("sites5", 1404),
        ("paths5", 1734),
        ("trees5", 2269),
        ("matching3", 3323),
    ],
)
def test_clucb_without_noise_makes_the_known_pulls(name, pulls):
    instance = getattr(cpe, name)()
    state, rounds, answer = follow(cpe.clucb(instance.problem, delta=0.1), instance.theta)
    assert state.pulls == rounds == pulls
    assert answer == best(instance.problem, instance.theta).tolist()


def test_clucb_on_listed_and_unlisted_trees_agrees():
    edges, theta = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], [0.85, 0.55, 0.3, 0.7, 0.2]
    state, _, answer = follow(cpe.clucb(cpe.graphic(4, edges), delta=0.1), theta)
    assert (int(state.pulls), answer) == (2269, [1, 1, 0, 1, 0])


def test_the_published_radius_by_hand():
    # Two constant arms, gap 1: the run ends once twice the radius, sqrt(2 ln(8 n^3 / .1) / T) / 2, is at most 1.
    def leads(n):
        return sum(np.sqrt(2 * np.log(80 * n**3) / T) / 2 for T in (n - n // 2, n // 2)) <= 1

    expected = next(n for n in range(2, 1000) if leads(n))
    state, _, _ = follow(cpe.clucb(cpe.best_arm(2), delta=0.1, radius=cpe.Chen()), [1.0, 0.0])
    assert state.pulls == expected


@pytest.mark.parametrize(
    ("problem", "changes", "message"),
    [
        (cpe.water3().problem, {}, "problem must be Enumerated, .*, got 'rows of 4 entries'"),
        (
            cpe.table([[1.0], [1.0], [1.0]], [[0.1], [0.2], [0.3]], 2, kind="at most"),
            {},
            "problem must be Enumerated, .*, got 'floor 0.0 and ceiling inf'",
        ),
        (cpe.OpinionSampling(jnp.ones(3), 50), {}, "problem must be Enumerated, .*, got 'OpinionSampling'"),
        (
            cpe.oracle(lambda theta: (theta > 0).astype(int), 2, bi_monotone=True),
            {},
            "problem must be Enumerated, .*, got 'Oracle'",
        ),
    ],
)
def test_bad_input(problem, changes, message):
    with pytest.raises(ValueError, match=message):
        cpe.clucb(problem, **({"delta": 0.1} | changes))
