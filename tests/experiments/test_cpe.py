"""The experiments on combinatorial pure exploration: shared samples, and their own computations."""

import numpy as np
import pytest

from experiments.cpe import block, common, float32, opinion, osa, two_call, water
from experiments.report import line_of
from experiments.settings import Settings
from jaxbandits import Results, Status, cpe
from jaxbandits.cpe import decision, solve

OPTIONS = Settings(quick=True)


def test_runs_of_one_heading_share_samples():
    pair = [common.best_arm_instance((0.95, 0.1)), common.without_noise(common.best_arm_instance((1, 0)))]
    columns = common.runs(
        "test",
        pair,
        "COCI",
        options=OPTIONS,
        replicates=[3, 1],
        settings={"delta": (0.1, 0.1, 1e-6)},
        leap=1,
        curves=common.xi,
        metrics=common.was_inside,
    ).columns
    assert columns["replicate"].tolist() == [0, 1, 2, 0] * 3
    assert columns["instance"].tolist() == [0, 0, 0, 1] * 3
    assert columns["delta"].tolist() == [0.1] * 8 + [1e-6] * 4
    assert columns["right"].all()
    assert columns["inside"].all()
    first, again, surer = columns["pulls"].reshape(3, 4)
    assert first.tolist() == again.tolist()
    assert np.all(surer > first)
    assert len(set(first[:3])) > 1
    # Without noise: the radii add up to 1.005 after 64 pulls, and to 0.999 after 65.
    assert first[3] == 65
    assert columns["counts"][3].tolist() == [33, 32]


def test_clucb_is_refused_without_linear_means():
    names = ("best5", "water3", "osa4", "paths5")
    refused = [name for name in names if common.refuses("CLUCB", getattr(cpe, name)())]
    assert refused == ["water3", "osa4"]
    assert not common.refuses("uniform", cpe.osa4())


def test_law_of_best5():
    laws = common.laws([cpe.best5()])
    # Lambda = (.125, .125, .15, .25, .375)
    assert round(laws["COCI"].H[0], 2) == 195.56
    assert round(laws["uniform"].H[0], 2) == 320
    assert (round(laws["COCI"].root[0]), round(laws["COCI"].bound[0])) == (2681, 22734)
    # Many deltas at once.
    several = common.law(laws["COCI"].H[0], 5, delta=np.array([0.1, 0.01]))
    assert several.root[0] == laws["COCI"].root[0] < several.root[1]


@pytest.mark.parametrize(("rule", "mean"), [("COCI", 2600), pytest.param("uniform", 4635, marks=pytest.mark.wide)])
def test_mean_pulls_against_an_independent_program(rule, mean):
    sweep = common.runs("cpe eight: best5", cpe.best5(), rule, options=OPTIONS, replicates=60)
    ours = line_of(rule, sweep)
    assert abs(ours.ours - mean) < 4 * ours.se * np.sqrt(1 + 60 / 400)  # the other program's mean is over 400 runs


def test_brute_force_finds_the_leading_optimum():
    ties = osa.Problem(np.ones(3, int), np.full(3, 0.25), 5)
    assert osa.by_brute_force(**ties._asdict()).tolist() == [1, 2, 2]
    zeros = osa.Problem(np.array([2, 1, 1]), np.array([0.25, 0, 0]), 4)
    assert osa.by_brute_force(**zeros._asdict()).tolist() == [2, 1, 1]
    nothing = osa.Problem(np.ones(2, int), np.zeros(2), 5)
    assert osa.by_brute_force(**nothing._asdict()).tolist() == [1, 1]


def test_concave_costs_by_linear_programs():
    assert two_call.concave_radii() == pytest.approx([0.150005] * 3, abs=1e-6)
    assert two_call.exact_run() == "stops at 1,739, counts (580, 580, 579)"
    assert two_call.concave_example().holds
    # If theta_2 alone moves, (5, 0, 5) is next: it is worse by 2.5 - exp(-10), and gains 5 (.7 - theta_2).
    far = two_call.reach(np.array([1e-9, 1.0, 1e-9]))
    assert far[two_call.DECISIONS[:, 1] != 5].min() == pytest.approx(0.5 - np.exp(-10) / 5, abs=1e-7)


def test_water_plans_and_sites_are_optimal():
    cases = water.instances()
    theta = np.asarray(cases["water"].theta)
    plan = np.asarray(decision(cases["water"].problem, solve(cases["water"].problem, cases["water"].theta)))
    assert plan.sum() == water.DEMAND
    last, following = water.step_costs(plan)
    assert np.max(last - theta) < np.min(following - theta)
    worth = theta - [source.site for source in water.SOURCES]
    built = np.asarray(solve(cases["sites"].problem, cases["sites"].theta)) > 0
    assert built.sum() == water.PLANTS
    assert worth[built].min() > worth[~built].max()


def test_opinion_has_the_figures_of_1996():
    # All respondents of anes96, the expected voters for Dole, and one variance by hand: .015 * .985.
    assert opinion.SIZES.sum() == 944
    assert opinion.DOLE.sum() == 393
    assert opinion.THETA[0] == pytest.approx(0.014775)
    case = opinion.instance(8)
    assert np.asarray(case.theta) == pytest.approx(opinion.THETA, rel=1e-12)


def test_neyman_has_the_smallest_variance():
    best = opinion.neyman(10)
    assert best.sum() == pytest.approx(10)
    # (sum n_i sqrt(theta_i))^2 / (N^2 interviews)
    smallest = np.sum(opinion.SIZES * np.sqrt(opinion.THETA)) ** 2 / (944**2 * 1000)
    assert opinion.variance(best) == pytest.approx(smallest, rel=1e-12)
    others = np.random.default_rng(0).dirichlet(np.ones(5), 100) * 10
    assert np.all(opinion.variance(others) >= smallest)
    assert opinion.second_best(np.array([1, 2, 4, 2, 1])) == pytest.approx(0.0335665, rel=1e-5)


@pytest.mark.parametrize("column", ["pulls", "counts", "answer", "status"])
def test_claims_notice_one_run_that_differs(column):
    def runs():
        columns = {"status": np.full(2, Status.STOPPED), "pulls": np.array([7, 9])}
        return Results(columns | {"counts": np.array([[3, 4], [4, 5]]), "answer": np.array([[0, 1], [0, 1]])}, None)

    blocks = {("best5", "COCI", slots): runs() for slots in (1, 32)}
    twins = {("best5", "COCI"): {dtype: runs() for dtype in float32.DTYPES}}
    assert block.same_runs(blocks).holds
    assert float32.share_claim(twins, "COCI").measured == "2 of 2"
    blocks["best5", "COCI", 32].columns[column][1] += 1
    twins["best5", "COCI"]["float32"].columns[column][1] += 1
    assert block.same_runs(blocks).measured == "1 of 2"
    agree = common.twins_agree(*twins["best5", "COCI"].values(), ("pulls", "counts", "answer"))
    assert agree.tolist() == [True, False]
