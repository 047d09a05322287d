"""The table of all speeds: every family, and its limit, a sweep that repeats one query."""

import importlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.bench import MEASURED, baseline, precision, ratios, rivals, twins, wanted
from experiments.bench import case as bench
from experiments.bench import run as run_bench
from experiments.bench.case import Case, repeating
from experiments.bench.reference import scalar
from experiments.bench.rivals import rival
from experiments.report import number
from experiments.settings import Settings
from jaxbandits import linear, run
from jaxbandits.engine.run.compatibility import require_fit

RULES = {
    "mab": {
        *("uniform", "TaS", "TaS, C", "TTTS", "T3C", "TTUCB", "EB-TC", "EB-TCI", "LUCB", "KL-LUCB", "UGapE"),
        *(
            "elimination",
            "lil'UCB",
            "HDoC",
            "LUCB-G",
            "APT-G",
            "APGAI",
            "(ST)^2",
            "SR",
            "SR, leap",
            "SH",
            "SH, leap",
            "CR",
            "UCB-E",
            "SAR",
            "SH, top m",
            "APT",
            "LSA",
        ),
        *("UCB1", "KL-UCB", "IMED", "Bayes-UCB", "Thompson", "MOSS", "MOSS, anytime"),
        *("D-UCB", "SW-UCB", "M-UCB", "Exp3", "Exp3-IX", "elimination, batches"),
    },
    "linear": {
        *("LinGapE", "LinGapE, leap", "XY-static", "XY-static, every pull", "XY-adaptive"),
        *(f"{rule}, ratios" for rule in (*ratios.FACTORIES, *ratios.ASKED)),
        *("RAGE", "OD-LinBAI", "Peace", "G-BAI", "P1-RAGE", "LinUCB", "LinTS"),
    },
    "fullbandit": {"SAQM", "ICB, ellipsoid", "spectral", "SA-FOA, eps/2"},
    "kcenter": {"DS-UCB", "DS-TS", "NS-TS", "NS-TandS, difference", "NS-TandS, ratio"},
    "cpe": {"COCI", "COCI, blocks", "uniform", "uniform, blocks", "CLUCB", "P-FWS"},
    "kernel": {"DUETS", "DisKernelUCB", "ApproxDisKernelUCB", "N-KernelUCB"},
}


@pytest.mark.parametrize("family", MEASURED)
def test_cases_include_every_algorithm(family):
    cases = importlib.import_module(f"experiments.bench.{family}").cases()
    assert {case.rule for case in cases} == RULES[family]
    for case in cases:
        task = None if case.tasks is None else jax.tree.leaves(case.tasks)[0][0]
        algorithm, environment = case.build(task, jax.random.key(0))
        require_fit(algorithm, environment)


def test_repeating_keeps_the_first_query_and_counts_every_observation():
    instance = linear.canonical(0.5)
    algorithm = linear.lingape(instance.arms, delta=0.1)
    outcome = run(jax.random.key(0), repeating(algorithm), linear.environment(instance), max_rounds=50)
    assert outcome.rounds == 50
    assert outcome.state.action.arm == 0
    assert outcome.state.total != 0
    another = run(jax.random.key(0), repeating(algorithm), linear.environment(instance), max_rounds=49)
    assert outcome.state.total != another.state.total


def canonical(**more):
    instance = linear.canonical(0.5)

    def build(delta, key):
        rule = linear.lingape(instance.arms, delta=0.1 if delta is None else delta)
        return rule, linear.environment(instance)

    return Case("linear", "LinGapE", "canonical", build, lambda: 10.0, max_rounds=64, lanes=4, **more)


def test_report_has_the_measured_speeds():
    report = bench.report("speed", [canonical(bar=3e7)], Settings(quick=True))
    columns = {name: values[0] for name, values in report.columns.items()}
    assert columns["rounds"] == 4 * columns["batches"] * columns["devices"] * 64
    assert columns["queries"] == pytest.approx(columns["pulls"] / columns["seconds"])
    assert columns["limit"] > 0
    (row,) = report.grid
    assert row["algorithm"] == "LinGapE"
    assert row["bar"] == "3e+07"
    assert row["x NumPy"] == number(float(f"{columns['queries'] / 10:.2g}"))
    assert row["share of limit"] == f"{columns['queries'] / columns['limit']:.0%}"


def test_measured_with_a_floor_uses_it_as_the_limit():
    case = canonical(tasks=jnp.array([0.1, 0.2]), floor=lambda: (123.0, "memory"))
    part = bench.measured(case, 1.0, Settings())
    assert (part["limit"], part["by"]) == (123.0, "memory")
    assert np.isfinite(part["queries"])


def test_report_in_32_bit_notes_refused_cases():
    def build(task, key):
        raise ValueError("arms must be float64")

    cases = [canonical()._replace(build=build)]
    with jax.enable_x64(False):
        notes = bench.report("speed", [*cases, canonical()], Settings(quick=True)).notes
    assert "LinGapE, canonical, refuses 32 bit: arms must be float64" in notes
    with pytest.raises(ValueError, match="must be float64"):
        bench.report("speed", cases, Settings(quick=True))


def test_baseline_measures_all_and_marks_missed_aims(monkeypatch):
    monkeypatch.setattr(baseline, "SHORT", 16)
    monkeypatch.setattr(baseline, "QUICK_LEAST", 0.01)
    players = rival.ours(canonical().build, seeds=4, lanes=4)
    assert players["ours"](20) == players["floor"](20) == 4 * 20

    def slow(rounds):
        return sum(range(1000 * rounds)) and rounds

    made = rival.Rival(
        "linear", "LinGapE", "canonical", numpy=slow, numba=slow, target=np.inf, reason="measured", **players
    )
    monkeypatch.setattr(baseline, "rivals", lambda: [made, made._replace(rule="another", ours=[].index)])
    report = baseline.run(Settings(quick=True, extra={"only": ["lingape"], "numba": True}))
    (row,), columns = report.grid, {name: values[0] for name, values in report.columns.items()}
    for name in ("numpy", "numba"):
        assert columns[f"times_{name}"] == pytest.approx(columns["ours"] / columns[name])
    assert float(row["limit"]) == pytest.approx(columns["floor"] / columns["numpy"], rel=0.1)
    assert min(columns["ours_first"], columns["numpy_again"], columns["numba_first"]) > 0
    assert (row["algorithm"], row["aim"], row["reason"]) == ("LinGapE", "inf, missed", "measured")
    met = columns | {"target": -np.inf, "times_numba": np.nan}
    assert (baseline.row(met)["aim"], baseline.row(met)["x numba"], baseline.row(met)["reason"]) == ("-inf", "", "")
    with pytest.raises(SystemExit, match="--only must name rules of this bench, got nothing"):
        baseline.run(Settings(extra={"only": ["nothing"]}))


def test_every_reason_is_that_of_a_rival():
    made = rivals.rivals()
    assert {(each.rule, each.instance) for each in made if each.reason} == set(rivals.REASONS)


def test_only_chooses_among_the_rules_of_a_family():
    options = Settings(quick=True, extra={"bench": "mab", "float32": False, "only": ["all good", "kl-ucb"]})
    cases = wanted(importlib.import_module("experiments.bench.mab").more_cases(options), options)
    assert {each.rule for each in cases} == {"KL-UCB", "EB-TC, ids, all good", "TaS, all good", "uniform, all good"}
    with pytest.raises(SystemExit, match="--only must name rules of this bench, got nothing"):
        run_bench(options._replace(extra=options.extra | {"only": ["nothing"]}))


def test_rivals_play_in_numpy():
    listed = rivals.rivals()
    assert {each.family for each in listed} == set(MEASURED)
    assert all(each.numpy(30) >= 1024 for each in listed)


def test_baseline_without_numba_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(SystemExit, match=r"--numba requires numba: pip install 'jaxbandits\[bench\]'"):
        rival.scalar(scalar.ucb1, rival.one_normal(np.zeros(4)), 4, 8.0)(10)


def test_scalar_code_compiles():
    pytest.importorskip("numba")
    assert rival.scalar(scalar.ucb1, rival.one_normal(np.zeros(4)), 4, 8.0)(10) == 1024 * 10


def test_precision_compares_both_and_passes_over_refused_rules(monkeypatch):
    coci = next(twin for twin in twins.of_cpe() if twin.rule == "COCI")
    refusing = coci._replace(rule="another", build=lambda dtype: [].index(dtype))
    monkeypatch.setattr(precision, "twins", lambda: [coci, refusing])
    report = precision.run(Settings(seeds=30))
    (row,) = report.grid
    assert report.columns["float64"] > 1000
    # The samples are equal, and so are the runs.
    assert (report.columns["ratio"], report.columns["ratio_se"], row["verdict"]) == (1, 0, "same")
    assert row["wrong, float32"] == row["wrong, float64"] == "0"
    assert report.claims[0].holds


def test_precision_with_a_store_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(precision, "twins", lambda: [next(t for t in twins.of_cpe() if t.rule == "COCI")])
    first, again = (precision.run(Settings(seeds=30, store=tmp_path)).grid for _ in range(2))
    assert first == again  # equal speeds too, which a second measurement would hardly repeat


@pytest.mark.wide
def test_twins_have_the_dtype_given():
    for twin in twins.twins():
        for dtype in precision.DTYPES:
            built = twin.build(dtype)(None, jax.random.key(0))
            require_fit(*built[:2])
            floats = [
                x for x in jax.tree.leaves(jax.eval_shape(built[0].init, jax.random.key(0))) if x.dtype.kind == "f"
            ]
            assert dtype in {x.dtype.name for x in floats}, (twin.rule, dtype)
