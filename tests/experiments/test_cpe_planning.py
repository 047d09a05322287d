"""The experiments on plans: what they compute by themselves, that their claims can fail, and that they are drawn."""

from argparse import Namespace

import jax.numpy as jnp
import numpy as np
import pytest

from experiments import (
    _cpe,
    cpe_block,
    cpe_float32,
    cpe_opinion,
    cpe_osa,
    cpe_two_call,
    cpe_water,
    report,
)
from jaxbandits import Results, Status
from jaxbandits.cpe import decision, solve
from jaxbandits.engine import Stats

OPTIONS = Namespace(quick=True, seeds=4, lanes=None, folder=None, workers=1, executor=None)
STATS = Stats(*[1.0] * len(Stats._fields))


def results(pulls, **columns):
    runs = len(pulls)
    common = {"row": np.arange(runs), "seed": np.zeros(runs, int), "status": np.full(runs, Status.STOPPED)}
    return Results(common | {"pulls": np.asarray(pulls), "rounds": np.asarray(pulls)} | columns, STATS)


# Opinion sampling, the oracles


def test_brute_force_finds_the_leading_optimum():
    ties = cpe_osa.Problem(np.ones(3, int), np.full(3, 0.25), 5)
    assert cpe_osa.by_brute_force(ties).tolist() == [1, 2, 2]
    zeros = cpe_osa.Problem(np.array([2, 1, 1]), np.array([0.25, 0, 0]), 4)
    assert cpe_osa.by_brute_force(zeros).tolist() == [2, 1, 1]
    nothing = cpe_osa.Problem(np.ones(2, int), np.zeros(2), 5)
    assert cpe_osa.by_brute_force(nothing).tolist() == [1, 1]


def test_the_printed_base_is_too_high_only_with_zeros():
    zeros = cpe_osa.Problem(np.array([2, 1, 1]), np.array([0.25, 0, 0]), 4)
    assert cpe_osa.printed_base(zeros).tolist() == [4, 1, 1]
    plain = cpe_osa.Problem(np.array([10, 30, 20]), np.array([0.21, 0.04, 0.09]), 50)
    assert cpe_osa.printed_base(plain).tolist() == [13, 17, 17]


def test_rules_of_thumb_keep_to_the_budget():
    for seed in range(50):
        one = cpe_osa.draw_problem(6, 8, "continuous", seed)
        down, near = cpe_osa.rounded(one).values()
        assert down.sum() <= near.sum() == 8
        assert min(down) >= 1
        assert cpe_osa.variance(one, cpe_osa.by_brute_force(one)) <= cpe_osa.variance(one, near)


# Two calls


def test_concave_costs_by_linear_programs():
    assert cpe_two_call.concave_radii() == pytest.approx(cpe_two_call.RADII["concave costs, exact"], abs=1e-6)
    assert cpe_two_call.concave_example().holds
    # If theta_2 alone moves, (5, 0, 5) is next: it is worth 2.5 - exp(-10) less, and 5 (.7 - theta_2) counts for it.
    decisions, _ = cpe_two_call.concave_decisions()
    far = cpe_two_call.reach(np.array([1e-9, 1.0, 1e-9]))
    assert far[decisions[:, 1] != 5].min() == pytest.approx(0.5 - np.exp(-10) / 5, abs=1e-7)


# Blocks and dtypes


@pytest.mark.parametrize("column", ["pulls", "counts", "answer", "status"])
def test_one_run_that_differs_is_noticed(column):
    def runs():
        return results([7, 9], counts=np.array([[3, 4], [4, 5]]), answer=np.array([[0, 1], [0, 1]]))

    blocks = {("best5", "COCI", block): runs() for block in (1, 32)}
    dtypes = {("best5", "COCI", dtype): runs() for dtype in cpe_float32.DTYPES}
    assert cpe_block.same_runs(blocks).holds
    assert cpe_float32.answers(dtypes, [("best5", "COCI")]).holds
    assert cpe_float32.share_claim(dtypes, [("best5", "COCI")], "COCI").measured == "2 of 2"

    blocks["best5", "COCI", 32].columns[column][1] += 1
    dtypes["best5", "COCI", "float32"].columns[column][1] += 1
    assert cpe_block.same_runs(blocks).measured == "1 of 2"
    agree = cpe_float32.twins_agree(dtypes, "best5", "COCI", ("pulls", "counts", "answer"))
    assert agree.tolist() == [True, False]


# Water


def test_water_is_planned_by_the_dearest_step():
    cases = cpe_water.instances()
    theta = np.asarray(cases["water"].theta)
    plan = np.asarray(decision(cases["water"].problem, solve(cases["water"].problem, cases["water"].theta)))
    assert plan.sum() == cpe_water.DEMAND
    last, following = cpe_water.step_costs(plan)
    assert np.max(last - theta) < np.min(following - theta)
    worth = theta - [source.site for source in cpe_water.SOURCES]
    built = np.asarray(solve(cases["sites"].problem, cases["sites"].theta)) > 0
    assert built.sum() == cpe_water.PLANTS
    assert worth[built].min() > worth[~built].max()


def water_runs(heading, case, rule, *, replicates, **_):
    """A run ends with a box of half-width .05, within which the plan is the same."""
    theta = np.asarray(case.theta)
    pulls = {"COCI": 1000, "uniform": 2000, "CLUCB": 900}[rule] + 10 * np.arange(replicates)
    answer = np.tile(np.asarray(solve(case.problem, case.theta)), (replicates, 1))
    return results(
        pulls,
        answer=answer,
        counts=np.tile(pulls[:, None] // theta.size, theta.size),
        right=np.ones(replicates, bool),
        lo=np.tile(theta - 0.05, (replicates, 1)),
        hi=np.tile(theta + 0.05, (replicates, 1)),
    )


def test_the_report_on_water(monkeypatch, tmp_path):
    monkeypatch.setattr(_cpe, "runs", water_runs)
    made = cpe_water.run(OPTIONS)
    assert len(made.grid[1]) == 1 + len(cpe_water.SOURCES)
    failed = [claim.statement for claim in made.claims if not claim.holds]
    assert failed == ["T of COCI and of uniform sampling over the law lies in [0.88, 1.1]"]
    assert report.save(made, "water", tmp_path)[2].stat().st_size > 10_000
    wide = water_runs("", cpe_water.instances()["water"], "COCI", replicates=3)
    wide.columns["hi"][1] += 0.05
    assert cpe_water.boxes_settle(wide, "COCI").measured == "2 of 3 runs"


# The poll


def test_the_poll_is_that_of_1996():
    # All respondents of anes96, those who expected to vote for Dole, and one variance by hand: .015 * .985.
    assert cpe_opinion.SIZES.sum() == 944
    assert sum(group.dole for group in cpe_opinion.GROUPS) == 393
    assert cpe_opinion.THETA[0] == pytest.approx(0.014775)
    case = cpe_opinion.instance(8)
    assert np.asarray(case.theta) == pytest.approx(cpe_opinion.THETA, rel=1e-12)


def test_neyman_has_the_least_variance():
    best = cpe_opinion.neyman(10)
    assert best.sum() == pytest.approx(10)
    # (sum n_i sqrt(theta_i))^2 / (N^2 interviews)
    least = np.sum(cpe_opinion.SIZES * np.sqrt(cpe_opinion.THETA)) ** 2 / (944**2 * 1000)
    assert cpe_opinion.variance(best) == pytest.approx(least, rel=1e-12)
    others = np.random.default_rng(0).dirichlet(np.ones(5), 100) * 10
    assert np.all(cpe_opinion.variance(others) >= least)
    assert cpe_opinion.second_best(np.array([1, 2, 4, 2, 1])) == pytest.approx(0.0335665, rel=1e-5)


def poll_runs(heading, case, rule, *, replicates, **_):
    best = np.asarray(solve(case.problem, case.theta))
    plans = np.tile(best, (replicates, len(cpe_opinion.TIMES), 1))
    plans[:, 0] = np.roll(best, 1)
    pulls = {"COCI": 100_000, "uniform": 200_000}[rule] + 100 * np.arange(replicates)
    return results(pulls, answer=plans[:, -1], plans=plans, right=np.ones(replicates, bool))


def test_the_report_on_the_poll(monkeypatch, tmp_path):
    monkeypatch.setattr(_cpe, "runs", poll_runs)
    monkeypatch.setattr(cpe_opinion, "QUICK_BUDGETS", (8,))
    made = cpe_opinion.run(OPTIONS)
    assert [row[1] for row in made.grid[1]] == ["1 1 3 2 1"]
    failed = [claim.statement for claim in made.claims if not claim.holds]
    assert failed == ["T over the law lies in [0.9, 1.1]"]
    assert "in 100% of the runs after 500 pilot interviews" in made.notes[1]
    assert report.save(made, "opinion", tmp_path)[2].stat().st_size > 10_000


def test_plans_are_noted_when_their_time_comes():
    problem = cpe_opinion.instance(8).problem
    algorithm = cpe_opinion.noting(cpe_opinion_coci(problem), {}, problem=problem)
    state = algorithm.init(None)
    # 20 interviews in which only independents disagree: all interviewers beyond the first of each group go there.
    for pull in range(20):
        arm = pull % 5
        action = algorithm.idle._replace(arms=jnp.asarray([arm], jnp.int32), index=jnp.asarray([pull // 5], jnp.int32))
        state = algorithm.observe(state, action, jnp.asarray([float(arm == 2 and pull // 5 % 2)]))
    assert state.pulls == 20
    assert state.plans[0].tolist() == [0, 0, 3, 0, 0]
    assert not state.plans[1:].any()


def cpe_opinion_coci(problem):
    return _cpe.RULES["COCI"](problem, delta=0.1, estimator="variance", observations="binary")
