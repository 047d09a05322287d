"""Uniform sampling against its transcription, and its runs without noise."""

import numpy as np
import pytest
from drivers.cpe import assert_same, follow, hold_variance, record

from experiments.bench.reference import cpe as reference
from jaxbandits import cpe

TREES = cpe.trees5().problem
WATER = cpe.water3().problem


@pytest.mark.parametrize(
    ("problem", "plain", "means", "scale"),
    [
        (cpe.top_k(5, 2), reference.table(np.ones((5, 1)), np.zeros((5, 1)), 2), (0.9, 0.8, 0.3, 0.2, 0.1), 0.5),
        (WATER, reference.table(WATER.coef, WATER.cost, 6), (0.6, 0.85, 0.15), 0.3),
        (TREES, reference.linear(TREES.rows, bi_monotone=True), (0.9, 0.8, 0.1, 0.9, 0.1), 0.5),
    ],
)
def test_is_the_transcription_step_by_step(problem, plain, means, scale):
    rng = np.random.default_rng(1)
    m = plain.decisions.shape[1]
    tape = (rng.uniform(size=(m, 400)) < np.array(means)[:, None]).astype(float)
    rounds = reference.uniform(plain, tape, delta=0.1, scale=scale)
    assert 30 < len(rounds) < 1000
    assert {r.arm for r in rounds[:m]} == set(range(m))
    algorithm = cpe.uniform(problem, delta=0.1, observations="binary", radius_scale=scale)
    assert_same(record(algorithm, tape, 1000), rounds)


@pytest.mark.parametrize(
    ("name", "pulls"),
    [
        ("best5", 4642),
        ("top2of6", 5211),
        ("water3", 4321),
        ("sites5", 1616),
        ("osa4", 12803),
        ("paths5", 2365),
        ("trees5", 4643),
        ("matching3", 5955),
    ],
)
def test_without_noise(name, pulls):
    instance = getattr(cpe, name)()
    estimator = "variance" if instance.tau == 2 else "mean"
    hold = hold_variance(instance.theta) if instance.tau == 2 else lambda state: state
    state, rounds, answer = follow(
        cpe.uniform(instance.problem, delta=0.1, estimator=estimator), instance.theta, hold=hold
    )
    counts = np.asarray(state.statistics.counts)
    assert state.pulls == rounds == pulls
    assert (np.diff(counts) <= 0).all()
    assert counts[0] - counts[-1] <= 1
    assert answer == cpe.solve(instance.problem, instance.theta).tolist()


def test_a_smaller_delta_takes_longer():
    def pulls(delta):
        return int(follow(cpe.uniform(cpe.best_arm(2), delta=delta), [0.9, 0.1])[0].pulls)

    assert pulls(0.1) < pulls(0.01)
