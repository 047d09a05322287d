"""Regret of CUCB and Thompson sampling on the published graph of 20 edges, over 10,000 plays."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.report import STANDARD_ERRORS, Claim, Report, line, mean_se
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, concatenate, cpe, record
from jaxbandits.base import Decision

HORIZON = 10_000
MARKS = (1000, 2000, 5000, 10_000)
RULES = {"CUCB": cpe.cucb, "CTS": cpe.cts}
# Mean and standard error at the marks, from 100 runs of a separate implementation.
EXPECTED = {
    "CUCB": ((391, 3), (522, 4), (744, 6), (938, 9)),
    "CTS": ((198, 5), (233, 7), (276, 8), (307, 8)),
}


def run(options: Settings) -> Report:
    seeds = options.seeds or (10 if options.quick else 100)
    marks = MARKS[:1] if options.quick else MARKS
    at = tuple(sorted({int(x) for x in np.geomspace(10, marks[-1], 20)} | set(marks)))
    sweeps = {rule: sweep(rule, options, seeds, at) for rule in RULES}
    lost = {rule: each.columns["curve.regret"][:, [at.index(mark) for mark in marks]] for rule, each in sweeps.items()}
    lines = [line(f"{rule}, {mark} plays", lost[rule][:, n]) for rule in RULES for n, mark in enumerate(marks)]
    mean, se = (dict(zip(RULES, each, strict=True)) for each in zip(*(mean_se(lost[r]) for r in RULES), strict=True))
    return Report(
        f"Regret of plays on E20, {marks[-1]:,} plays",
        lines,
        [
            *(agrees(rule, mean[rule], se[rule]) for rule in RULES),
            Claim(
                "Thompson sampling loses less than CUCB at every mark",
                ", ".join(f"{a:.0f} < {b:.0f}" for a, b in zip(mean["CTS"], mean["CUCB"], strict=True)),
                bool(np.all(mean["CTS"] < mean["CUCB"])),
            ),
        ],
        {f"{rule}.{name}": sweeps[rule].columns[name] for rule in RULES for name in ("seed", "curve.regret")},
        partial(draw, results=concatenate(sweeps, name="rule")),
        notes=("Pseudo-regret, the sum of <means, x* - x>; the four plays of the cover are counted.",),
        grid=[
            {"plays": f"{mark:,}"} | {rule: f"{mean[rule][n]:.0f} +- {se[rule][n]:.0f}" for rule in RULES}
            for n, mark in enumerate(marks)
        ],
    )


def sweep(rule: str, options: Settings, seeds: int, at: tuple[int, ...]) -> Results:
    instance = cpe.spanning_trees_e20()
    best = jnp.sum(jnp.where(cpe.solve(instance.problem, instance.theta) > 0, instance.theta, 0))

    def regret(state: Any, decision: Decision) -> dict[str, Any]:
        paid = jnp.sum(instance.theta * state.counts.astype(instance.theta.dtype))
        return {"regret": state.pulls.astype(instance.theta.dtype) * best - paid}

    def build(task: Any, key: jax.Array) -> tuple:
        algorithm = RULES[rule](instance.problem)
        return algorithm, cpe.environment(instance, algorithm), record(at=at, value=regret)

    name = f"pfws regret, E20, {at[-1]}: {rule}"
    return simulate(name, build, options=options, seeds=seeds, max_rounds=at[-1], horizon=at[-1])


def agrees(rule: str, mean: np.ndarray, se: np.ndarray) -> Claim:
    expected = np.array(EXPECTED[rule])[: len(mean)]
    far = np.abs(mean - expected[:, 0]) / np.hypot(se, expected[:, 1])
    return Claim(
        f"{rule}: within {STANDARD_ERRORS} standard errors of another implementation at every mark",
        ", ".join(f"{x:.1f}" for x in far),
        bool(np.all(far < STANDARD_ERRORS)),
    )


def draw(figure: Any, *, results: Results) -> None:
    axes = results.plot(y="curve.regret", band="quantiles", log="x", ax=figure.subplots())
    axes.set(xlabel="plays", ylabel="regret (median, 5 % to 95 %)", title="Spanning trees, E20")
