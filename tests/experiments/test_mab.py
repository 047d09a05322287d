"""The experiments on independent arms: shared rewards, and verdicts on made-up runs."""

import jax
import numpy as np
import pytest

from experiments.bench import arms
from experiments.bench.mab import MEANS, factories
from experiments.mab import budget, changepoint, common, delay, delta, epsilon, recorded, regret, thresholds
from experiments.report import Line
from experiments.settings import Settings
from jaxbandits import Status, compare, feedback, mab, run

OPTIONS = Settings(quick=True)


@pytest.mark.wide
def test_rules_of_one_heading_share_rewards():
    """Two arms without overlap. Two rules that pull in turn at first differ little on the same rewards."""
    instance = mab.gaussian((1.0, 0.0))
    settings = {"options": OPTIONS, "seeds": 8, "marks": (2, 10**4), "longest": 10**4}
    joint = common.runs("test", instance, ("uniform", "LUCB"), **settings)
    both = {rule: joint.where(rule=rule) for rule in ("uniform", "LUCB")}
    streams = [sweep.columns["stream"].tolist() for sweep in both.values()]
    assert streams[0] == streams[1]
    assert len({tuple(words) for words in streams[0]}) == 8
    assert compare(*both.values(), paired=True)["pairs"] == [8]
    alone = common.runs("test", instance, "uniform", paired=False, **settings)
    assert "stream" not in alone.columns
    for sweep in (*both.values(), alone):
        assert sweep.columns["curve.wrong"][:, -1].tolist() == sweep.columns["wrong"].tolist()
        assert sweep.columns["counts"].sum(axis=1).tolist() == sweep.columns["pulls"].tolist()


def test_an_instance_without_a_best_arm_is_refused():
    with pytest.raises(ValueError, match="unique best arm"):
        common.bound(mab.bernoulli((0.5, 0.5, 0.1)))


def test_the_bound_of_two_gaussian_arms():
    # T* = 8 / gap^2, kl(.1, .9) = .8 log 9
    assert common.bound(mab.gaussian((1.0, 0.0))) == pytest.approx(8 * 0.8 * np.log(9))


@pytest.mark.parametrize(("wrong", "holds"), [(0, True), (130, True), (160, False)])
def test_errors_within_delta(wrong, holds):
    claim = common.confident({"a": (3, 1000), "b": (wrong, 1000)}, 0.1)
    assert bool(claim.holds) == holds
    assert f"at most {max(wrong, 3)} of 1000" in claim.measured


def test_confident_fails_without_a_stopped_run():
    assert not common.confident({"a": (0, 0)}).holds


def test_slope_is_fitted_at_small_deltas():
    lines = [Line("", 5000.0), *(Line("", 450 * -np.log(d) + 100) for d in (1e-3, 1e-5, 1e-8))]
    assert delta.slope((1e-1, 1e-3, 1e-5, 1e-8), lines) == pytest.approx([450, 0])
    assert delta.slope_claim("TaS", 1.04, 0.0, "T*").holds
    assert delta.slope_claim("TaS", 0.9, 0.02, "T*").holds
    assert not delta.slope_claim("TaS", 0.9, 0.01, "T*").holds


def test_in_order_fails_for_thresholds_out_of_order():
    lines = {("gk2", "gk16"): Line("", 1700.0), ("gk2", "log_t"): Line("", 3600.0)}
    assert thresholds.in_order("gk2", lines, {("gk2", "gk16"): 4.4, ("gk2", "log_t"): 10.0}).holds
    assert not thresholds.in_order("gk2", lines, {("gk2", "gk16"): 10.0, ("gk2", "log_t"): 4.4}).holds


def test_epsilon_claims_fail_with_a_censored_run():
    def claims(censored):
        row = [Line("", 1000.0 - 100 * n, runs=10) for n in range(4)]
        return epsilon.claims({"EB-TC": [*row[:2], row[2]._replace(censored=censored), row[3]]}, epsilon.EPSILONS)

    assert [claim.holds for claim in claims(0)] == [True, True]
    assert [claim.holds for claim in claims(1)] == [True, False]


def test_agree_fails_for_leaps_of_another_law():
    cell = budget.Cell("one of 20", 2000, "SR")
    assert budget.agree({cell: (16000, 100_000), cell._replace(step=True): (320, 2000)}).holds
    assert not budget.agree({cell: (16000, 100_000), cell._replace(step=True): (420, 2000)}).holds


def test_regret_claims_compare_with_the_constant_of_the_instance():
    few = dict.fromkeys(regret.OPTIMAL, Line("", 20.0))
    lines = {("two arms", rule): each for rule, each in (few | {"UCB1": Line("", 60.0)}).items()}
    assert [claim.holds for claim in regret.claims(lines, {"two arms": 2.25}, 10**5)] == [True, True]
    lines["two arms", "Thompson"] = Line("", 70.0)
    assert [claim.holds for claim in regret.claims(lines, {"two arms": 2.25}, 10**5)] == [False, False]


def test_counted_counts_late_pulls_and_leaves_the_run_unchanged():
    instance = mab.gaussian((1.0, 0.0))
    algorithm = mab.ucb1(instance.problem)
    plain = mab.environment(instance)
    ends = [
        run(jax.random.key(0), *feedback.delayed(algorithm, environment, delay=5), horizon=30)
        for environment in (plain, common.counted(plain, algorithm, 2))
    ]
    jax.tree.map(np.testing.assert_array_equal, ends[0].state, ends[1].state)
    counts = ends[1].memory.inner.counts
    assert counts.sum() == 30 == ends[1].state.inner.counts.sum() + 5
    assert counts[0] >= 6 <= counts[1]  # each of the first pulls is repeated until its observation arrives


def test_counted_runs_out_as_its_environment_does():
    algorithm = mab.uniform(mab.Bernoulli(2), delta=1e-9)
    environment = common.counted(mab.recorded([[0.0, 1.0], [1.0, 1.0]]), algorithm, 2)
    end = run(jax.random.key(0), algorithm, environment, max_rounds=9)
    assert end.status == Status.EXHAUSTED
    assert end.memory.counts.tolist() == [2, 2]
    assert end.memory.switches == 3  # in turn: each pull differs from the one before


def test_delay_claims_compare_with_the_pulls_on_the_way_and_the_sum_of_gaps():
    def holds(pulls, regret):
        stops = {("EB-TCI", d): Line("", 2000.0 + pulls * d) for d in delay.DELAYS}
        losses = {("UCB1", d): Line("", 100.0 + regret * d) for d in delay.DELAYS}
        return [claim.holds for claim in delay.claims(stops, losses, delay.DELAYS)]

    # The gaps are 0, .1, .2 and .3.
    assert holds(1.0, 0.59) == [True, True]
    assert holds(0.99, 0.61) == [False, False]


def test_delay_claims_show_a_rule_that_never_stopped():
    stops = {("elimination", d): Line("", np.nan if d == 1000 else 9.0) for d in delay.DELAYS}
    losses = {("UCB1", d): Line("", 100.0) for d in delay.DELAYS}
    claim = delay.claims(stops, losses, delay.DELAYS)[0]
    assert claim.holds
    assert claim.measured == "elimination -; -: no run stopped"


def test_repeating_compares_the_switches_with_those_without_a_delay():
    def holds(ucb1, thompson):
        shares = {("UCB1", 0): 0.04, ("UCB1", 100): ucb1}
        return delay.repeating(shares | {("Thompson", 0): 0.02, ("Thompson", 100): thompson}).holds

    assert holds(0.02, 0.023)
    assert not holds(0.021, 0.023)
    assert not holds(0.02, 0.025)
    assert not holds(0.02, 0.015)


def test_dynamic_regret_is_against_the_best_arm_of_each_pull():
    """Pulls the third arm 3000 times, the first 2000 times, the third 5000 times."""
    marks = (3000, 5000, 10_000)
    counts = np.array([[[0, 0, 3000], [2000, 0, 3000], [2000, 0, 8000]]])
    lost = changepoint.dynamic_regret(counts, marks, changepoint.CHANGES)
    np.testing.assert_allclose(lost, [[300, 300 + 800, 300 + 800 + 500]])
    unchanged = changepoint.dynamic_regret(counts, marks, (10_000, 10_001))
    np.testing.assert_allclose(unchanged, [[300, 300, 800]])
    assert [part.ours for part in changepoint.segments(lost, marks)] == pytest.approx([300, 800, 500])


def test_changepoint_claims_fail_for_rules_that_recover():
    rules = (*changepoint.STATIONARY, *changepoint.ADAPTIVE)

    def holds(after, adaptive, thompson):
        parts = {rule: [Line("", 0.0), Line("", 0.0), Line("", after)] for rule in rules}
        total = {rule: Line("", adaptive if rule in changepoint.ADAPTIVE else 500.0) for rule in rules}
        stationary = {rule: Line("", thompson if rule == "Thompson" else 300.0) for rule in rules}
        return [bool(claim.holds) for claim in changepoint.claims(parts, total, stationary)]

    assert holds(260.0, 400.0, 90.0) == [True] * 4
    assert holds(240.0, 510.0, 110.0) == [False] * 4


def test_the_made_up_record_is_the_same_in_every_call_and_near_its_rates():
    first, second = recorded.visits(), recorded.visits()
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    columns = recorded.rewards(first)
    assert sum(map(len, columns)) == recorded.DAYS * recorded.DAY
    np.testing.assert_allclose([np.mean(column) for column in columns], recorded.RATES, atol=0.003)


def test_censored_runs_are_longer_than_all_others():
    statuses = np.array([Status.STOPPED, Status.EXHAUSTED, Status.STOPPED, Status.MAX_ROUNDS, Status.STOPPED])
    columns = {"status": statuses, "pulls": np.array([800, 300, 900, 100, 400]), "wrong": np.arange(5) < 1}
    assert recorded.until_stop(columns).tolist() == [800, np.inf, 900, np.inf, 400]
    assert recorded.median(columns) == 900
    assert recorded.summary(columns) == {"visits": "900 (400 to -)", "censored": "2", "wrong": "1 of 3"}


def test_recorded_claims_fail_for_long_tests_and_censored_ones():
    def sweep(pulls, censored=0):
        statuses = np.where(np.arange(40) < censored, Status.MAX_ROUNDS, Status.STOPPED)
        return {"status": statuses, "pulls": np.full(40, pulls), "wrong": np.zeros(40, bool)}

    def holds(late, censored):
        cells = {}
        for rule, missing in (("EB-TCI", 0), ("T3C", censored)):
            parts = (sweep(4000), sweep(4000 + late), sweep(4000, missing))
            cells |= {(rule, kind, "bootstrap"): part for kind, part in zip(recorded.FEEDBACK, parts, strict=True)}
        return [bool(claim.holds) for claim in recorded.claims(cells)]

    assert holds(3 * recorded.DAY, 1) == [True, True, True]
    assert holds(3 * recorded.DAY + 1, 2) == [False, False, True]


@pytest.mark.parametrize("law", ["Gaussian", "Bernoulli"])
def test_every_rule_has_a_reference_loop(law):
    for rule in factories():
        if not rule.endswith("leap"):
            assert arms.rate(rule, law, MEANS, seconds=0) == 0  # built, and not played
