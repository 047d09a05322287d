import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxbandits.kcenter import Dimensions
from jaxbandits.kcenter._shared import stages

KEY = jax.random.key(0)


def integer(value):
    return jnp.asarray(value, jnp.int32)


def test_is_decided_is_the_printed_stop_test():
    """Test (8): some node's lower bound exceeds the upper bounds of all others. Small integers give many ties."""
    rng = np.random.default_rng(0)
    cases = set()
    for _ in range(5000):
        n = rng.integers(1, 6)
        lower = rng.integers(0, 6, n)
        upper = lower + rng.integers(0, 4, n) * rng.integers(0, 2, n)
        winners = [v for v in range(n) if all(lower[v] > upper[w] for w in range(n) if w != v)]
        leader = int(np.argmax(upper))
        runner_up = max((upper[w] for w in range(n) if w != leader), default=-1)
        decided = bool(stages.is_decided(lower[leader], runner_up))
        assert winners == ([leader] if decided else [])
        cases.add((decided, upper[leader] == runner_up))
    assert cases == {(True, False), (False, False), (False, True)}


def test_three_centers_by_hand():
    stage = stages.begin(KEY, Dimensions(5, 1, 3), 2)
    assert stage.centers.tolist() == [2, -1, -1]
    assert stages.slots(stage).tolist() == [True, False]
    assert [bool(stages.is_center(stage, integer(v))) for v in range(5)] == [False, False, True, False, False]
    assert stages.newest(stage) == 0
    stage = stages.spend(stages.step(stages.spend(stage, integer(4)), 5), integer(3))
    assert stage.cursor == 5
    answer = stages.answer(stage, integer(4))
    assert answer.indices.tolist() == [2, 4, -1]
    assert answer.queries.tolist() == [7, 0]

    same = stages.advance(stage, integer(4), jnp.asarray(False))
    for old, new in zip(jax.tree.leaves(stage), jax.tree.leaves(same), strict=True):
        np.testing.assert_array_equal(old, new)
    stage = stages.advance(stage, integer(4), jnp.asarray(True))
    assert stage.centers.tolist() == [2, 4, -1]
    assert stage.cursor == 0
    assert stages.newest(stage) == 1
    assert not stages.is_complete(stage)
    assert stages.answer(stage, integer(4)).indices.tolist() == [2, 4, -1]  # a center is never the guess
    stage = stages.advance(stages.spend(stage, integer(9)), integer(0), jnp.asarray(True))
    assert stages.is_complete(stage)
    answer = stages.answer(stage, integer(1))
    assert answer.indices.tolist() == [2, 4, 0]
    assert answer.queries.tolist() == [7, 9]
    assert answer.queries.dtype == jnp.uint32


def test_the_first_center_is_drawn_uniformly():
    firsts = jax.vmap(lambda key: stages.begin(key, Dimensions(4, 1, 2), None).centers[0])(jax.random.split(KEY, 2000))
    assert stats.chisquare(np.bincount(firsts, minlength=4)).pvalue > 1e-4


def test_arm_of_and_draw_arms_run_over_candidates_times_slots():
    for centers in ([3], [3, 0], [5, 2, 3]):
        stage = stages.begin(KEY, Dimensions(6, 1, 4), centers[0])
        for center in centers[1:]:
            stage = stages.advance(stage, integer(center), jnp.asarray(True))
        p = len(centers)
        numbers = jnp.arange((6 - p) * p, dtype=jnp.int32)
        arms = list(zip(*(x.tolist() for x in stages.arm_of(numbers, stage, 6)), strict=True))
        assert arms == [(v, i) for v in range(6) if v not in centers for i in range(p)]
        drawn = stages.draw_arms(KEY, stage, 6, (500,))
        assert set(zip(*(x.tolist() for x in drawn), strict=True)) == set(arms)
