"""The experiments on questions: verdicts on made-up runs."""

import jax
import numpy as np
import pytest

import jaxbandits
from experiments.bench import questions as bench
from experiments.bench import variances as bench_of_variances
from experiments.mab import (
    questions,
    questions_budget,
    questions_delta,
    questions_good_arm,
    questions_variances,
    variances,
)
from experiments.mab.questions import Asked
from experiments.papers import printed
from experiments.report import Line, verdict
from jaxbandits import Status, mab
from jaxbandits.engine.run.compatibility import require_fit


def test_arms_without_a_unique_answer_are_refused():
    with pytest.raises(ValueError, match=r"unique answer, got \[0\.5, 0\.2, 0\.2\]"):
        questions.time_of(Asked(mab.gaussian, (0.5, 0.2, 0.2), mab.TopM(2)))


def test_times_of_questions_by_hand():
    # One arm alone has to be told from the level, 2 / mean^2, or every arm from it.
    assert questions.time_of(questions.SEVERAL) == pytest.approx(2 / 0.6**2)
    assert questions.time_of(questions.ABOVE) == pytest.approx(sum(2 / x**2 for x in questions.ABOVE.means))
    assert questions.time_of(questions.NONE) == pytest.approx(sum(2 / x**2 for x in questions.NONE.means))


def test_near_compares_the_cells_that_were_run():
    lines = {"a": Line("a", 100.0, 3.0), "b": Line("b", 100.0, 3.0)}
    assert questions.near(lines, {"a": (80.1, 4.0), "b": (119.9, 4.0), "c": (0.0, 1.0)}).holds
    assert not questions.near(lines, {"a": (79.9, 4.0)}).holds


def ratios(change):
    """Returns falling ratios of all rules, of which the first is changed by a number at the end."""
    deltas = questions_delta.DELTAS
    made = {}
    for question, (_, rules) in questions_delta.ASKED.items():
        for rule in rules:
            made |= {(question, rule, d): Line("", 2.0 - 0.1 * n, 0.1, 300) for n, d in enumerate(deltas)}
    last = ("two best arms", "EB-TCI, ids", deltas[-1])
    made[last] = made[last]._replace(ours=made[last].ours + change)
    return made, deltas


@pytest.mark.parametrize(("change", "holds"), [(0.0, True), (0.6, True), (0.7, False)])
def test_falls_allows_four_standard_errors(change, holds):
    assert questions_delta.falls(*ratios(change)).holds == holds


def test_falls_fails_if_the_last_ratio_is_above_the_first():
    made, deltas = ratios(0.0)
    flat = {key: line._replace(ours=1.0 + 0.01 * deltas.index(key[2])) for key, line in made.items()}
    assert not questions_delta.falls(flat, deltas).holds


def test_examples_have_the_spread_of_our_runs_and_the_rounding():
    made, _ = ratios(0.0)
    value, se = questions_delta.examples(made)["all arms within .2 of the best", "EB-TC, ids", 1e-3]
    assert value == 1.31
    assert se == pytest.approx(np.hypot(0.1 * np.sqrt(3), 0.005 / np.sqrt(3)))  # 300 runs here, 100 there


def test_beats_compares_budgets_at_which_either_errs():
    pair = ("q", "a"), ("q", "b")
    wrong = {("q", "a", 1): (5, 100), ("q", "b", 1): (9, 100), ("q", "a", 2): (0, 100), ("q", "b", 2): (0, 100)}
    assert questions_budget.beats("q", wrong, *pair).holds
    assert not questions_budget.beats("q", wrong | {("q", "a", 2): (1, 100)}, *pair).holds
    assert questions_budget.beats(
        "q", wrong | {("q", "a", 1): (10, 100), ("q", "b", 2): (1, 100)}, *pair, least=2
    ).holds
    none = dict.fromkeys(wrong, (0, 100))
    assert not questions_budget.beats("q", none, *pair).holds


def test_near_holds_shares_against_those_of_numpy_programs():
    def holds(apt):
        wrong = {
            (*key, T): (round(share * 10_000), 10_000)
            for key, (shares, _) in questions_budget.EXAMPLES.items()
            for T, share in zip(questions_budget.EXAMPLE_BUDGETS, shares, strict=True)
        }
        return questions_budget.near(wrong | {("all above .5", "APT, epsilon 0", 500): (apt, 10_000)}).holds

    assert holds(1100)
    assert not holds(1350)


def test_uniform_answers_at_its_horizon():
    instance = mab.bernoulli((0.999, 0.001))
    algorithm = questions_budget.uniform(instance.problem, question=mab.Above(0.5), horizon=31)
    environment = mab.environment(instance, algorithm)
    outcome = jaxbandits.run(jax.random.key(0), algorithm, environment, max_rounds=100)
    assert (outcome.status, outcome.pulls) == (Status.STOPPED, 31)
    assert outcome.answer.tolist() == [True, False]


def columns(setting, rule, factor):
    """Returns the runs of the public record, times a factor, with a spread of a tenth."""
    record = printed("mab", "good_arms")[list(questions_good_arm.ALL).index(setting)]
    *good, end = factor * np.array(record[list(questions_good_arm.BY_LABELS).index(rule)])
    spread = 1 + 0.1 * np.linspace(-1, 1, 1001)
    padded = np.array([*good, *[end + 1] * questions_good_arm.MOST])[: questions_good_arm.MOST]
    status = np.full(1001, Status.STOPPED)
    return {"pulls": end * spread, "good_at": np.outer(spread, padded), "status": status, "wrong": np.zeros(1001, bool)}


def outputs(factor):
    return {
        (setting, rule): questions_good_arm.lines_of((setting, rule), columns(setting, rule, factor))
        for setting in questions_good_arm.ALL
        for rule in questions_good_arm.BY_LABELS
    }


@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (1.05, False)])
def test_pulls_at_each_good_arm_are_held_against_the_record(factor, holds):
    made = outputs(factor)
    assert [len(lines) for lines in made.values()] == [6] * 3 + [4] * 6
    assert questions_good_arm.as_recorded(made).holds == holds
    assert (verdict(made["setting 1", "HDoC"][0]) == "DIFFERS") != holds
    assert questions_good_arm.first_is_fastest(made).holds


def test_first_is_fastest_fails_if_two_rules_change_places():
    made = outputs(1.0)
    made["setting 3", "HDoC"], made["setting 3", "APT-G"] = made["setting 3", "APT-G"], made["setting 3", "HDoC"]
    assert not questions_good_arm.first_is_fastest(made).holds


@pytest.mark.parametrize(("pulls", "holds"), [(5100.0, True), (5500.0, False)])
def test_rules_by_labels_end_alike(pulls, holds):
    ends = {("none is good", rule): Line("", 5000.0, 50.0) for rule in questions_good_arm.BY_LABELS}
    ends["none is good", "APT-G"] = Line("", pulls, 50.0)
    assert questions_good_arm.stop_alike(outputs(1.0), ends).holds == holds


def test_benches_of_questions_fit_their_environments_and_play_in_numpy():
    cases = bench.cases()
    assert len({case.rule for case in cases}) == len(cases) == 20
    for case in cases:
        require_fit(*case.build(None, jax.random.key(0)))
        assert bench.rate(*case.rule.rsplit(", ", 1), seconds=1e-3, rounds=8) > 0


def test_benches_of_unknown_variances_fit_their_environments_and_play_in_numpy():
    cases = bench_of_variances.cases()
    assert len({case.rule for case in cases}) == len(cases) == 8
    for case in cases:
        require_fit(*case.build(None, jax.random.key(0)))
        assert bench_of_variances.rate(*case.rule.rsplit(", ", 1), seconds=1e-3, rounds=20) > 0


def known_lines(change=1.0):
    """Returns pulls of all rules on the four arms, of which student's with one cost are changed."""
    pulls = {"gk16": 100.0, "student": 200.0, "uv_box": 500.0, "kk_pair": 300.0}
    made = {
        (sd, rule, cost, kind, 0.1): Line(
            f"{sd}, {rule}, {cost}, {kind}", (0.5 if cost == "known" else 1) * pulls[kind], 1
        )
        for sd in variances.SD
        for rule, forms in variances.PLAYED.items()
        for cost, kind in forms
    }
    key = ("unequal", "EB-TCI", "plug-in", "student", 0.1)
    return made | {key: made[key]._replace(ours=change * made[key].ours)}


@pytest.mark.parametrize(("change", "holds"), [(1.0, True), (2.4, True), (2.6, False), (0.4, False)])
def test_pulls_have_the_order_of_their_thresholds(change, holds):
    assert questions_variances.as_thresholds(known_lines(change)).holds == holds


def test_price_is_a_ratio_with_the_errors_of_both():
    lines = known_lines()
    ratio = questions_variances.price(lines, "equal", "EB-TCI", ("student", "kk_pair"), 0.1)
    assert (ratio.ours, ratio.se) == pytest.approx((200 / 150, 200 / 150 * np.hypot(1 / 200, 1 / 150)))
    # The ratios are 2, 1.33 and 2.
    assert [claim.holds for claim in questions_variances.prices(lines, 0.1)] == [False, False, False]
    cheap = {key: line._replace(ours=0.5 * line.ours) if key[2] != "known" else line for key, line in lines.items()}
    assert [claim.holds for claim in questions_variances.prices(cheap, 0.1)] == [True, True, False]
    cheaper = {key: line._replace(ours=0.9 * line.ours) if key[2] != "known" else line for key, line in cheap.items()}
    assert all(claim.holds for claim in questions_variances.prices(cheaper, 0.1))


def passed(**changes):
    """Returns the shares of a NumPy program in 3000 runs of two equal arms; student and uv_box are passed by few."""
    made = {(cost, "gk16", start): (round(3000 * share), 3000) for (cost, start), share in variances.PASSED.items()}
    made |= {(cost, kind, 2): (4, 3000) for cost in variances.COSTS for kind in ("student", "uv_box")}
    return made | changes.get("of", {})


@pytest.mark.parametrize(
    ("of", "failing"),
    [
        ({}, []),
        ({("plug-in", "gk16", 2): (300, 3000)}, [0, 1]),
        ({("adaptive", "gk16", 30): (600, 3000)}, [0, 2]),
        ({("plug-in", "student", 2): (450, 3000)}, [3]),
    ],
)
def test_shares_of_two_equal_arms(of, failing):
    claims = questions_variances.claims_on_shares(passed(of=of))
    assert [n for n, claim in enumerate(claims) if not claim.holds] == failing


def test_times_of_unknown_variances_exceed_those_of_known_ones():
    for sd in variances.SD.values():
        times = variances.times_of(sd)
        assert 1 < times["adaptive"] / times["known"] < 1.05
