"""The experiments on independent arms: shared rewards, and verdicts on made-up runs."""

from typing import Any

import numpy as np
import pytest

from experiments.bench import arms
from experiments.bench.mab import MEANS, factories
from experiments.mab import budget, common, delta, epsilon, regret, thresholds
from experiments.report import Line
from experiments.settings import Settings
from jaxbandits import Results, compare, mab

OPTIONS = Settings(quick=True)


@pytest.mark.wide
def test_rules_of_one_heading_share_rewards():
    """Two arms without overlap. Two rules that pull in turn at first differ little on the same rewards."""
    instance = mab.gaussian((1.0, 0.0))
    settings = {"options": OPTIONS, "seeds": 8, "marks": (2, 10**4), "longest": 10**4}
    both = {rule: common.runs("test", instance, rule, **settings) for rule in ("uniform", "LUCB")}
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


def test_a_censored_run_is_not_a_wrong_answer():
    columns = {"status": np.array([1, 2, 1]), "wrong": np.array([True, True, False])}
    stats: Any = None
    assert common.errors(Results(columns, stats)) == (1, 2)


def test_wilson_by_hand():
    # Wilson's interval of 0 of 10, and of 5 of 10 by hand.
    assert common.wilson(0, 10) == pytest.approx((0, 0.2775), abs=1e-3)
    assert common.wilson(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-3)


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


@pytest.mark.parametrize("law", ["Gaussian", "Bernoulli"])
def test_every_rule_has_a_reference_loop(law):
    for rule in factories():
        if not rule.endswith("leap"):
            assert arms.rate(rule, law, MEANS, seconds=0) == 0  # built, and not played
