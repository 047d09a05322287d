"""The experiments on likelihood-ratio stopping: reference figures, and verdicts on made-up runs."""

import numpy as np
import pytest

from experiments.likelihood import common, identification, many_arms, tirinzoni, transductive, wang
from experiments.likelihood import random as random_instances
from experiments.likelihood import thresholds as threshold_costs
from experiments.report import Line
from jaxbandits import Status, linear


def test_bounds_of_soare():
    time = common.time_of(linear.soare(6, 0.1))
    assert time == pytest.approx(222.2499, rel=1e-5)
    assert time * float(common.kl(0.1)) == pytest.approx(390.66, rel=1e-4)
    t = common.practical(time, 0.1)
    assert t == pytest.approx(time * np.log((1 + np.log(t)) / 0.1), rel=1e-9)
    assert 965 < t < 975


def test_shown_has_the_interval_of_a_count():
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


@pytest.mark.parametrize(("share", "holds"), [(0.78, True), (0.6, False)])
def test_expected_shares_of_right_answers(share, holds):
    marks = identification.MARKS
    right = {("soare(6)", rule): (np.array(shares), None) for rule, (shares, _) in identification.EXAMPLES.items()}
    right["soare(6)", "PEPS"][0][2] = share
    assert bool(identification.expected(right, marks, 1000).holds) == holds


def test_not_below_fails_with_peps_below_uniform():
    mean = np.array([0.5, 0.9])
    right = {("a", "PEPS"): (mean - [0.0, 0.1], np.full(2, 0.01)), ("a", "uniform"): (mean, np.full(2, 0.01))}
    assert not identification.not_below("a", right).holds
    right["a", "PEPS"] = (mean - 0.01, np.full(2, 0.01))
    assert identification.not_below("a", right).holds


def test_published_pulls_have_the_error_of_a_hundred_runs():
    cells = tirinzoni.published()
    assert len(cells) == 11
    assert cells["LinGapE", tirinzoni.PLAIN] == pytest.approx({"printed": 33_190, "printed_se": 870})
    assert cells["Oracle", tirinzoni.BOTH] == pytest.approx({"printed": 55_360, "printed_se": 930})
    assert ("RAGE", tirinzoni.BOTH) not in cells


@pytest.mark.parametrize(
    ("rule", "ours", "said"), [("LinGame", 900.0, "reproduced"), ("LinGame", 990.0, "differs"), ("FWS", 990.0, "expl")]
)
def test_verdicts_of_the_table_of_tirinzoni(rule, ours, said):
    columns = {"status": np.full(3, Status.STOPPED), "pulls": np.array([800, 900, 1000])}
    each = line(ours, printed=900.0, bound=450.0)._replace(printed_se=2.0)
    row = tirinzoni.row_of((rule, "none"), each, columns, (0, 3), practical=600.0)
    assert row["verdict"].startswith(said)
    assert (row["median"], row["/ practical"]) == ("900", f"{ours / 600:.2f}")


def test_practical_time_under_log_t():
    t = tirinzoni.practical_by_log_t(2103.877)
    assert t == pytest.approx(2103.877 * np.log((t + 1) / tirinzoni.DELTA))
    assert 31_400 < t < 31_600


@pytest.mark.parametrize(("wrong", "said"), [(90, "errs not more often"), (200, "errs more often")])
def test_search_reports_whether_errors_exceed_delta(wrong, said):
    searched = {
        (rule, arms, delta): (wrong if (rule, arms, delta) == ("uniform", 2, 0.1) else 0, 1000)
        for rule in threshold_costs.SEARCHED
        for arms in threshold_costs.DIMENSIONS
        for delta in threshold_costs.DELTAS
    }
    first, second = threshold_costs.worst_settings(searched)
    assert said in first
    assert "(uniform, 2 arms)" in first
    assert "not more often" in second


def test_counts_of_proved_thresholds():
    wrong = {("soare(6)", "FWS", kind, 0.1): (1, 10) for kind in threshold_costs.KINDS}
    proved = threshold_costs.counts_of(wrong, "proved")
    assert [name.split(", ")[2] for name in proved] == ["jp", "ellipsoid", "ellipsoid_trace", "kk_all"]
    assert set(proved.values()) == {(1, 10, 0.1)}


@pytest.mark.parametrize(("factor", "holds"), [(2.0, True), (1.0, False)])
def test_pairs_of_random_instances(factor, holds):
    logs = np.log(factor) + np.linspace(-0.2, 0.2, 101)
    assert random_instances.geometric(logs)[0] == pytest.approx(factor)
    assert bool(random_instances.dearer("uniform", logs).holds) == holds


@pytest.mark.parametrize(("uniform", "holds"), [(3.0, True), (1.0, False)])
def test_grows_compares_uniform_sampling_over_dimensions(uniform, holds):
    lines = {rule: [line(1000.0), line(1000.0)] for rule in transductive.RULES}
    lines["FWS"][1] = line(1500.0)
    lines["uniform"][1] = line(1000.0 * uniform)
    assert bool(transductive.grows(lines, (2, 4)).holds) == holds


@pytest.mark.parametrize(("last", "holds"), [(190.0, True), (260.0, False)])
def test_stays_bounds_the_cost_of_many_arms(last, holds):
    lines = [line(100.0, se=0.1), line(last, se=0.1)]
    assert bool(many_arms.stays("RAGE", lines, (100, 1000)).holds) == holds
