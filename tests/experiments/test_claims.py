"""Claims that many experiments share: each of them can fail."""

import numpy as np

from experiments import claims
from experiments.report import Line
from jaxbandits import Results, Status


def test_every_run_is_to_stop():
    columns = {"status": np.array([Status.STOPPED, Status.STOPPED])}
    assert claims.every_run_stops([columns, Results(columns, None)]).measured == "4 of 4"
    columns["status"][1] = Status.NONFINITE
    found = claims.every_run_stops([columns])
    assert (found.measured, bool(found.holds)) == ("1 of 2", False)


def test_errors_as_rare_as_promised():
    assert claims.answers_are_right(35, 2000, 0.01).holds
    assert not claims.answers_are_right(36, 2000, 0.01).holds
    assert not claims.answers_are_right(0, 0, 0.01).holds
    assert claims.answers_are_right(0, 9, 0.1, "DS-UCB").statement.startswith("DS-UCB: a share of at most delta = 0.1")


def test_ranges_and_orders():
    assert claims.in_range("x", {"a": 1.0, "b": 2.0}, 1, 2).holds
    assert not claims.in_range("x", {"a": 1.0, "b": 2.1}, 1, 2).holds
    assert not claims.in_range("x", {"a": np.nan}, 1, 2).holds
    assert claims.below("x", {"a": 0.5}).holds
    assert not claims.below("x", {"a": 0.5, "b": 1.0}).holds
    assert not claims.below("x", {}).holds
    assert claims.never_falls([0, 0, 1])
    assert not claims.never_falls([0, 1, 0.5])
    assert not claims.never_falls([0, np.nan])


def test_rises():
    def lines(*means):
        return [Line("", mean, se=0.1) for mean in means]

    assert claims.rises(lines(1, 2, 1.5, 3))
    assert not claims.rises(lines(1, 2, 1.4, 3))
    assert not claims.rises(lines(1, 1, 1))
