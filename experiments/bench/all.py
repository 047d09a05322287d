"""Every algorithm of every family on one instance each: speed, and how far it is from what the device allows.

The limit is the speed of the same sweep if its algorithm asks its first question again and again: keys, random numbers
and answers of a round, and the host's visits, are left, but nothing is estimated or decided. For distributed kernel
bandits, which ask seldom and compute much, it is the memory that a round must read or the products that it must
multiply, at rates measured in the same run (see `bench kernel`). No program that makes the same rounds is faster; one
that stands for more queries in a round may be, which is why queries a second stand beside rounds a second.
"""

import importlib
import sys
from functools import partial
from typing import Any

import jax
import numpy as np

from experiments.bench.case import Case, answers_a_second, measure
from experiments.report import Report, number
from experiments.settings import Settings

FAMILIES = ("linear", "fullbandit", "kcenter", "cpe", "kernel")
WIDER = 64  # times as many lanes on an accelerator
HEAD = (
    "family",
    "algorithm",
    "instance",
    "lanes",
    "queries/s",
    "rounds/s",
    "x NumPy",
    "share of limit",
    "limited by",
    "busy",
    "compile s",
    "MB",
)


def run(options: Settings) -> Report:
    parts = []
    for family in FAMILIES:
        for case in importlib.import_module(f"experiments.bench.{family}").cases():
            part = measured(case, options)
            print(*(part[name] for name in ("family", "rule")), f"{part['queries']:.2e} queries/s", file=sys.stderr)
            parts.append(part)
    return Report(
        "Speed of the whole engine, all families",
        lines=[],
        claims=[],
        columns={name: np.array([part[name] for part in parts]) for name in parts[0]},
        draw=partial(draw, parts=parts),
        notes=[
            "x NumPy: against a plain loop over one run on one core, measured in the same call.",
            "limited by: answers, the same sweep without estimates and decisions; memory and products, see --help.",
            "busy: share of lanes at work. Every lane makes few runs here, so lanes are empty at the end.",
        ],
        grid=(HEAD, [row(part) for part in parts]),
    )


def measured(case: Case, options: Settings) -> dict[str, Any]:
    """One row as numbers."""
    wider = 1 if jax.default_backend() == "cpu" else WIDER
    stats = measure(case, lanes=options.lanes or case.lanes * wider, runs=1 if options.quick else case.runs)
    queries = stats.pulls / stats.seconds
    if case.floor is None:
        limit, by = answers_a_second(case, stats) * stats.pulls / stats.rounds, "answers"
    else:
        limit, by = case.floor()
    named = {"family": case.family, "rule": case.rule, "instance": case.instance}
    return named | {"queries": queries, "plain": case.plain(), "limit": limit, "by": by} | stats._asdict()


def row(part: dict[str, Any]) -> tuple[str, ...]:
    """One row as text."""
    return (
        part["family"],
        part["rule"],
        part["instance"],
        str(part["lanes"]),
        f"{part['queries']:.2e}",
        f"{part['rounds'] / part['seconds']:.2e}",
        number(float(f"{part['queries'] / part['plain']:.2g}")),
        f"{part['queries'] / part['limit']:.0%}",
        part["by"],
        f"{part['occupancy']:.0%}",
        f"{part['compile_seconds']:.1f}",
        f"{part['bytes'] / 1e6:.1f}",
    )


def draw(figure: Any, *, parts: list[dict[str, Any]]) -> None:
    figure.set_size_inches(7, 1 + 0.3 * len(parts))
    axes = figure.subplots()
    y = np.arange(len(parts))[::-1]
    for name, label, marker in (
        ("plain", "NumPy loop, one core", "s"),
        ("queries", "measured", "o"),
        ("limit", "limit", "|"),
    ):
        axes.plot([part[name] for part in parts], y, marker, label=label, ms=8, mfc="w", color="#1b4f8f")
    axes.set(xscale="log", xlabel="queries a second")
    axes.set_yticks(y, [f"{part['rule']} ({part['family']})" for part in parts], fontsize=8)
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)
