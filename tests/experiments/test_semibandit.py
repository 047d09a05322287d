"""The experiments on plays: their own counts, and verdicts on made-up runs."""

import numpy as np
import pytest

from experiments import study
from experiments.semibandit import common, delta, exactness, regret, trees
from jaxbandits import Status, cpe


@pytest.fixture(scope="module")
def listed():
    return trees.all_trees(cpe.spanning_trees_e20().problem)


def test_all_trees_lists_every_tree_once(listed):
    assert len(listed) == 20_736
    assert len(np.unique(listed, axis=0)) == 20_736
    assert (listed.sum(axis=1) == 7).all()
    small = cpe.trees5().problem.rows
    graph = cpe.graphic(4, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)])
    np.testing.assert_array_equal(np.unique(trees.all_trees(graph), axis=0), np.unique(small, axis=0))


def test_a_game_is_never_below_the_minimum(listed):
    means, few = np.asarray(cpe.spanning_trees_e20().theta), listed[::40]
    shares = np.full(20, 0.35)
    minimum = exactness.least(few, means, shares)
    values = exactness.games(few, means, shares, 2, 200)
    assert (values >= minimum * (1 - 1e-12)).all()
    assert np.isfinite(values).all()


def test_slope_of_runs_on_the_asymptote_is_1():
    """Plays n that equal 400 times the threshold at n have a slope of 1 at T* = 400."""
    deltas, plays = np.array([0.1, 1e-6]), np.array([2000.0, 6000.0])
    for _ in range(100):
        plays = 400 * common.gk16(plays, deltas)
    share, se = delta.slope(np.stack([plays, plays], axis=1), deltas, 400.0)
    assert share == pytest.approx(1)
    assert se == 0


def test_regret_agrees_with_another_implementation_or_fails():
    mean = np.array([value for value, _ in regret.EXPECTED["CTS"]], float)
    assert regret.agrees("CTS", mean, np.ones(4)).holds
    assert not regret.agrees("CTS", mean + np.array([0, 0, 0, 60]), np.ones(4)).holds


def test_errors_within_delta():
    assert common.confident({"a": (10, 1000), "b": (130, 1000)}).holds
    assert not common.confident({"a": (10, 1000), "b": (160, 1000)}).holds
    assert not common.confident({"a": (0, 0)}).holds


def test_claims_fail_if_round_robin_is_as_fast_as_pfws():
    def claims(other):
        pulls = {("E20", "P-FWS"): 2000.0, ("E20", "all trees in turn"): other}
        sweeps = {key: made_up(np.linspace(0.9, 1.1, 9) * mean) for key, mean in pulls.items()}
        cells = study.collected({"graph": ["E20"], "rule": trees.RULES}, sweeps)
        verdicts = trees.claims(cells, dict.fromkeys(cells.lines, 1900.0), 3.0)
        return {claim.statement.partition(",")[0]: bool(claim.holds) for claim in verdicts}

    assert claims(4900.0)["E20: P-FWS stops before all trees in turn"]
    assert not claims(2100.0)["E20: P-FWS stops before all trees in turn"]


def made_up(pulls):
    return {"pulls": pulls, "status": np.full(len(pulls), Status.STOPPED), "wrong": np.zeros(len(pulls), bool)}
