"""Claims that many experiments share. Each of them can fail."""

import numpy as np

from experiments import claims
from experiments.report import Line
from jaxbandits import Results, Status


def test_every_run_stops_fails_with_one_nonfinite_run():
    columns = {"status": np.array([Status.STOPPED, Status.STOPPED])}
    assert claims.every_run_stops([columns, Results(columns, None)]).measured == "4 of 4"
    columns["status"][1] = Status.NONFINITE
    claim = claims.every_run_stops([columns])
    assert (claim.measured, bool(claim.holds)) == ("1 of 2", False)


def test_answers_are_right_fails_above_the_allowed_errors():
    assert claims.answers_are_right(35, 2000, 0.01).holds
    assert not claims.answers_are_right(36, 2000, 0.01).holds
    assert not claims.answers_are_right(0, 0, 0.01).holds


def test_in_range_below_and_never_falls():
    assert claims.in_range("x", {"a": 1.0, "b": 2.0}, 1, 2).holds
    assert not claims.in_range("x", {"a": 1.0, "b": 2.1}, 1, 2).holds
    assert not claims.in_range("x", {"a": np.nan}, 1, 2).holds
    assert claims.below("x", {"a": 0.5}).holds
    assert not claims.below("x", {"a": 0.5, "b": 1.0}).holds
    assert not claims.below("x", {}).holds
    assert claims.never_falls([0, 0, 1])
    assert not claims.never_falls([0, 1, 0.5])
    assert not claims.never_falls([0, np.nan])


def test_rises_and_grows():
    def lines(*means):
        return [Line("", mean, se=0.1) for mean in means]

    assert claims.rises(lines(1, 2, 1.5, 3))
    assert not claims.rises(lines(1, 2, 1.4, 3))
    assert not claims.rises(lines(1, 1, 1))
    assert claims.grows("x", lines(1, 3)).holds
    assert claims.grows("x", lines(3, 1), down=True).holds
    assert not claims.grows("x", lines(3, 1)).holds


def test_above_below_and_between_of_lists():
    assert claims.above("x", [1.5, 2]).holds
    assert not claims.above("x", [1, 2]).holds
    assert not claims.above("x", {}).holds
    assert not claims.below("x", [0.5, np.nan]).holds
    claim = claims.between("x", {"a": 1.0, "b": 2.0}, least=1, most=2, form=".1f", more="; more")
    assert (claim.measured, bool(claim.holds)) == ("a 1.0, b 2.0; more", True)
    assert not claims.between("x", [np.nan], 1).holds
    assert not claims.between("x", [1, 2.1], most=2).holds


def test_errors_are_rare_counts_stopped_runs_alone():
    right = np.arange(200) >= 36
    columns = {"status": np.full(200, Status.STOPPED), "good": right}
    assert not claims.errors_are_rare([columns], 0.1, right="good").holds
    # A censored run has no answer.
    columns["status"] = np.where(right, Status.STOPPED, Status.MAX_ROUNDS)
    claim = claims.errors_are_rare([columns], 0.1, right="good", who="a rule")
    assert claim.measured.startswith("0 of 164, ")
    assert claim.holds


def test_interval_is_clopper_pearson():
    assert claims.interval(15, 2000) == "[0.0042, 0.012]"
    # No error in 10 runs: 1 - 0.025^(1/10).
    assert claims.interval(0, 10) == "[0, 0.31]"
    assert claims.interval(10, 10) == "[0.69, 1]"
    assert claims.interval(0, 0) == "-"


def test_a_censored_run_is_not_a_wrong_answer():
    status, wrong = np.array([1, 2, 1, 1]), np.array([True, True, False, False])
    assert claims.errors_of(Results({"status": status, "wrong": wrong}, None)) == (1, 3)
    assert claims.errors_of({"status": status, "right": ~wrong}) == (1, 3)


def test_above_bound_fails_with_a_mean_below():
    lines = [Line("a", 500.0, bound=390.0), Line("b", 500.0)]
    assert claims.above_bound([*lines, Line("c", 391.0, bound=390.0)]).holds
    claim = claims.above_bound([*lines, Line("c", 389.0, bound=390.0)])
    assert not claim.holds
    assert claim.measured == "at least 1.00 (c)"


def test_apart_compares_with_the_standard_errors_of_both():
    lines = {"a": Line("", 100.0, se=3.0), "b": Line("", 50.0, se=3.0)}
    assert claims.apart("x", lines, {"a": (119.0, 4.0), "missing": (0.0, 1.0)}).holds
    assert not claims.apart("x", lines, {"a": (121.0, 4.0)}).holds
    assert not claims.apart("x", lines, {"missing": (0.0, 1.0)}).holds
