"""The experiments on likelihood-ratio stopping: what they compare with, and what their words say of made-up runs."""

import numpy as np
import pytest

from experiments.linear2 import common, identification, wang
from experiments.report import Line
from jaxbandits import linear


def test_bounds_of_soare():
    time = common.time_of(linear.soare(6, 0.1))
    assert time == pytest.approx(222.2499, rel=1e-5)
    assert time * float(common.kl(0.1)) == pytest.approx(390.66, rel=1e-4)
    t = common.practical(time, 0.1)
    assert t == pytest.approx(time * np.log((1 + np.log(t)) / 0.1), rel=1e-9)
    assert 965 < t < 975


def test_errors_are_those_of_runs_that_stopped():
    columns = {"status": np.array([1, 2, 1, 1]), "wrong": np.array([True, True, False, False]), "row": np.arange(4) % 2}
    assert common.errors(columns) == (1, 3)
    assert common.errors(common.row_of(columns, 0)) == (1, 2)
    assert common.shown(1, 3).startswith("1 of 3 [0.008")


@pytest.mark.parametrize(("wrong", "holds"), [(2, True), (30, False)])
def test_errors_within_delta(wrong, holds):
    claim = common.confident({"many": (5, 100, 0.1), "few": (wrong, 1000, 0.01)})
    assert bool(claim.holds) == holds
    assert not common.confident({"none": (0, 0, 0.1)}).holds


def line(ours, se=1.0, **more):
    return Line("a", ours, se, 1000, printed_se=1.0, **more)


@pytest.mark.parametrize(
    ("name", "printed", "said"),
    [
        ("FWS", 1030.0, "explained"),
        ("LinGame", 1030.0, "differs"),
        ("LinGame", 902.0, "reproduced"),
        ("PEPS", None, "no figure"),
    ],
)
def test_a_printed_mean_is_reproduced_explained_or_differs(name, printed, said):
    stop = wang.Stop(name, name, "gk16", "heuristic")
    assert wang.grid_row(stop, 0.1, line(900.0, printed=printed, bound=390.0), (0, 1000))["verdict"] == said


def test_a_mean_below_the_bound_fails():
    found = [bool(wang.above_bound({("FWS", 0.1): line(ours, bound=390.0)}).holds) for ours in (391.0, 389.0)]
    assert found == [True, False]


@pytest.mark.parametrize(("share", "holds"), [(0.78, True), (0.6, False)])
def test_shares_of_right_answers(share, holds):
    marks = identification.MARKS
    right = {("soare(6)", rule): (np.array(shares), None) for rule, (shares, _) in identification.EXAMPLES.items()}
    right["soare(6)", "PEPS"][0][2] = share
    assert bool(identification.expected(right, marks, 1000).holds) == holds


def test_peps_below_uniform_fails():
    mean = np.array([0.5, 0.9])
    right = {("a", "PEPS"): (mean - [0.0, 0.1], np.full(2, 0.01)), ("a", "uniform"): (mean, np.full(2, 0.01))}
    assert not identification.not_below("a", right).holds
    right["a", "PEPS"] = (mean - 0.01, np.full(2, 0.01))
    assert identification.not_below("a", right).holds
