"""The table of all speeds: every family is in it, and its limit is a sweep that repeats one query."""

import importlib
from argparse import Namespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.bench import all as every
from experiments.bench.case import Case, repeating
from jaxbandits import linear, run
from jaxbandits.engine.fit import require_fit

RULES = {
    "linear": {"LinGapE", "LinGapE, leap", "XY-static", "XY-static, every pull", "XY-adaptive"},
    "fullbandit": {"SAQM", "ICB, ellipsoid", "spectral", "SA-FOA, eps/2"},
    "kcenter": {"DS-UCB", "DS-TS", "NS-TS", "NS-TandS, difference", "NS-TandS, ratio"},
    "cpe": {"COCI", "COCI, blocks", "uniform", "uniform, blocks", "CLUCB"},
    "kernel": {"DUETS", "DisKernelUCB", "ApproxDisKernelUCB", "N-KernelUCB"},
}


@pytest.mark.parametrize("family", every.FAMILIES)
def test_every_algorithm_has_a_row(family):
    cases = importlib.import_module(f"experiments.bench.{family}").cases()
    assert {case.rule for case in cases} == RULES[family]
    for case in cases:
        task = None if case.tasks is None else jax.tree.leaves(case.tasks)[0][0]
        algorithm, environment = case.build(task, jax.random.key(0))
        require_fit(algorithm, environment)


def test_the_first_query_is_repeated_and_every_observation_counted():
    instance = linear.canonical(0.5)
    algorithm = linear.lingape(instance.arms, delta=0.1)
    outcome = run(jax.random.key(0), repeating(algorithm), linear.environment(instance), max_rounds=50)
    assert outcome.rounds == 50
    assert outcome.state.action.arm == 0
    assert outcome.state.total != 0
    another = run(jax.random.key(0), repeating(algorithm), linear.environment(instance), max_rounds=49)
    assert outcome.state.total != another.state.total


def test_a_row(monkeypatch):
    instance = linear.canonical(0.5)

    def build(task, key):
        return linear.lingape(instance.arms, delta=0.1), linear.environment(instance)

    case = Case("linear", "LinGapE", "canonical", build, lambda: 10.0, max_rounds=64, lanes=4)
    monkeypatch.setattr(every, "FAMILIES", ("linear",))
    monkeypatch.setattr(importlib.import_module("experiments.bench.linear"), "cases", lambda: [case])
    report = every.run(Namespace(lanes=None, quick=True))
    columns = {name: values[0] for name, values in report.columns.items()}
    assert columns["rounds"] == 4 * columns["batches"] * columns["devices"] * 64
    assert columns["queries"] == pytest.approx(columns["pulls"] / columns["seconds"])
    assert columns["limit"] > 0
    head, rows = report.grid
    row = dict(zip(head, rows[0], strict=True))
    assert row["algorithm"] == "LinGapE"
    assert row["x NumPy"] == every.number(float(f"{columns['queries'] / 10:.2g}"))
    assert row["share of limit"] == f"{columns['queries'] / columns['limit']:.0%}"


def test_a_floor_takes_the_place_of_the_answers():
    instance = linear.canonical(0.5)
    case = Case(
        "linear",
        "LinGapE",
        "canonical",
        lambda beta, key: (linear.lingape(instance.arms, delta=beta), linear.environment(instance)),
        lambda: 1.0,
        max_rounds=16,
        lanes=2,
        tasks=jnp.array([0.1, 0.2]),
        floor=lambda: (123.0, "memory"),
    )
    part = every.measured(case, Namespace(lanes=None, quick=False))
    assert (part["limit"], part["by"]) == (123.0, "memory")
    assert np.isfinite(part["queries"])
