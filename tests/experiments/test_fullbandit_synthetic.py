"""What the experiments on synthetic instances of top-k identification compute from their runs."""

import itertools
from argparse import Namespace

import jax
import numpy as np
import pytest

from experiments import fullbandit_error_rate as error_rate
from experiments import fullbandit_figure1 as figure1
from experiments import fullbandit_figure3 as figure3
from experiments import fullbandit_support as support
from experiments._fullbandit_synthetic import ARMS, SIZE, instance, tasks, uniform_design
from jaxbandits import Results, Status, fullbandit, run

OPTIONS = Namespace(quick=True, seeds=None, lanes=None, folder=None, workers=1, executor=None)


def failed(report):
    return [claim.statement for claim in report.claims if not claim.holds]


def figure3_from(monkeypatch, change=lambda name, columns: None):
    """Figure 3 from runs that are made up: the independent implementation's means, with little noise."""
    rng = np.random.default_rng(0)

    def made_up(heading, rule, table, *, options):
        name = heading.removeprefix("figure 3: ")
        pulls = np.repeat([mean for mean, _ in figure3.INDEPENDENT[name]], 10) * rng.normal(1, 1e-4, 60)
        right = np.ones(60, bool)
        columns = {"row": np.arange(60), "pulls": pulls, "status": np.full(60, Status.STOPPED)}
        columns |= {"best": right, "good": right.copy()}
        change(name, columns)
        return columns

    monkeypatch.setattr(figure3, "rule_runs", made_up)
    monkeypatch.setattr(figure3, "tasks", lambda *_: None)
    return figure3.run(OPTIONS)


NOT_COMPARABLE = "all take about as many pulls as Exhaustive (within a factor of 2)"


def test_figure3_finds_that_the_rules_are_not_comparable(monkeypatch):
    result = figure3_from(monkeypatch)
    assert failed(result) == [NOT_COMPARABLE]
    assert len(result.lines) == len(figure3.RULES) * len(figure3.GAPS)


@pytest.mark.parametrize(
    ("rule", "column", "row", "value", "others"),
    [
        ("SAQM", "pulls", slice(50, 60), 310_000, ["all fall", "SAQM takes 7.5", "SAQM's pulls", "the means"]),
        ("SA-FOA", "pulls", slice(20, 30), 58_000, ["SA-FOA takes more", "the means"]),
        ("ICB, Lemma 1", "pulls", slice(0, 10), 60_000, ["ICB takes 4.7"]),
        ("Exhaustive", "best", 7, False, ["every answer is the best"]),
    ],
)
def test_figure3_notices(rule, column, row, value, others, monkeypatch):
    def change(name, columns):
        if name == rule:
            columns[column][row] = value

    found = [statement for statement in failed(figure3_from(monkeypatch, change)) if statement != NOT_COMPARABLE]
    assert len(found) == len(others)
    assert all(statement.startswith(start) for statement, start in zip(found, others, strict=True))


def test_figure3_counts_a_wrong_answer_of_a_censored_run_for_nothing(monkeypatch):
    def change(name, columns):
        columns["status"][3] = Status.MAX_ROUNDS
        columns["best"][3] = columns["good"][3] = False

    result = figure3_from(monkeypatch, change)
    assert failed(result) == [NOT_COMPARABLE]
    assert {line.censored for line in result.lines} == {0, 1}


RATES = (0.0, 0.0, 0.01, 0.04, 0.1, 0.3)


def error_rate_from(monkeypatch, rates=RATES, exponent=2.0):
    """From made-up runs of all rules."""
    seeds = 100

    def made_up(heading, build, scales, **_):
        row = np.repeat(np.arange(len(rates)), seeds)
        return Results(
            {
                "row": row,
                "pulls": 1e5 * 2.0 ** (-exponent * row),
                "status": np.full(len(row), Status.STOPPED),
                "good": np.concatenate([np.arange(seeds) >= rate * seeds for rate in rates]),
            },
            None,
        )

    monkeypatch.setattr(error_rate, "simulate", made_up)
    return error_rate.run(Namespace(**vars(OPTIONS) | {"seeds": seeds}))


def test_error_rates_are_those_of_the_runs(monkeypatch):
    result = error_rate_from(monkeypatch)
    assert failed(result) == []
    shares = [line.ours for line in result.lines if line.quantity.startswith("SAQM") and "errors" in line.quantity]
    np.testing.assert_allclose(shares, RATES)
    # The exact interval: none of 100 leaves up to 1 - .025^(1/100).
    assert error_rate.share(0, 100) == "0.00% (0.00%, 3.62%)"
    assert error_rate.lower(100, 100) == pytest.approx(0.025**0.01)


@pytest.mark.parametrize(
    ("changed", "claims"),
    [
        ({"rates": (0.01, 0.01, 0.02, 0.04, 0.1, 0.3)}, ["no error"]),
        ({"rates": (0.0, 0.02, 0.01, 0.04, 0.1, 0.3)}, ["the error rate rises"]),
        ({"rates": (0.0, 0.0, 0.0, 0.01, 0.02, 0.03)}, ["at 1/32 of sigma"]),
        ({"exponent": 3.0}, ["pulls fall"]),
    ],
)
def test_error_rates_notice(changed, claims, monkeypatch):
    found = failed(error_rate_from(monkeypatch, **changed))
    assert len(found) == len(claims)
    assert all(statement.startswith(start) for statement, start in zip(found, claims, strict=True))


def test_supports_are_measured_and_compared(monkeypatch):
    """The designs are real, the runs made up: pulls fall with the size, and one support of three deceives SAQM."""
    count = 3

    def made_up(heading, rule, table, *, options, pace):
        size = int(heading.rpartition(" ")[2])
        right = np.ones(count, bool)
        pulls = np.full(count, 1e7 if size == 10 else 1e6 / size)
        columns = {"row": np.arange(count), "pulls": pulls, "status": np.full(count, Status.STOPPED)}
        return columns | {"best": right, "good": right.copy()}

    monkeypatch.setattr(support, "rule_runs", made_up)
    result = support.run(Namespace(**vars(OPTIONS) | {"seeds": count}))
    more, few, theory, *_, relied_on, _ = result.claims
    assert (more.holds, few.holds, theory.holds) == (True, True, True)
    assert "s = 10, 20, 252" in more.statement
    designs = {s: support.quality(uniform_design(0, s)) for s in (20, 252)}
    assert float(designs[252]["rho"]) == pytest.approx(ARMS)
    assert 0 < float(designs[20]["ratio"]) <= 1
    ratios = result.columns["ratio"][(result.columns["s"] == 10) & (result.columns["rule"] == "SAQM")]
    assert f"s = 10: {np.mean(ratios >= support.RELIED_ON):.0%}" in relied_on.measured


def test_figure1_compares_with_the_largest_of_all_super_arms():
    """SAQM's ratio and difference along one run, against norms of all 252 super-arms in NumPy."""
    table = tasks((0.1,), 1, lambda r: uniform_design(r, 50))
    task = jax.tree.map(lambda x: x[0], table)
    outcome = run(
        jax.random.key(0),
        figure1.observer(task.design),
        fullbandit.environment(instance(task), task.design),
        max_rounds=len(figure1.TIMES) + 1,
        chunk=len(figure1.TIMES) + 1,
    )
    assert outcome.status == Status.STOPPED
    quality = figure1.quality(task, outcome)
    sets = np.array([np.isin(np.arange(ARMS), chosen) for chosen in itertools.combinations(range(ARMS), SIZE)], float)
    for index in (0, len(figure1.TIMES) - 1):
        t = figure1.TIMES[index]
        counts = np.asarray(fullbandit.tracking_counts(task.design, t))
        rows = np.asarray(task.design.support, float)
        inverse = np.linalg.inv(rows.T @ (counts[:, None] * rows))
        largest = np.sqrt(np.einsum("si,ij,sj->s", sets, inverse, sets).max())
        radius = float(fullbandit.ellipsoid_radius(t, ARMS, SIZE, 0.05))
        ratio, difference = (float(quality[name][index]) for name in ("saqm_ratio", "saqm_difference"))
        assert 0.5 < ratio <= 1 + 1e-9
        assert difference == pytest.approx(radius * largest * (1 - ratio), rel=1e-6, abs=1e-9)
    for name in ("saqm_ratio", "sa_foa_ratio"):
        assert np.all((np.asarray(quality[name]) > 0) & (np.asarray(quality[name]) <= 1 + 1e-9))
