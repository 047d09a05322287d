"""How many super-arms should a learner pull? Pulls of three rules against the size of the support.

Synthetic instances of n = 10 arms, super-arms of k = 5, gap 0.4, noise N(0, 1) of every arm, sigma = 5, delta = 0.05,
epsilon = 0.5; equal shares on s random super-arms, s = n .. 5 n, and on all 252, a new support for each realization.
Kuroki et al. (2020) leave the support open. Beside the pulls: the condition of the design; the largest |chi_M|^2 in
Lambda^-1 over all super-arms, n at best; and the share of the largest norm that SAQM's greedy peeling reaches.
"""

from argparse import Namespace
from functools import partial
from math import comb

import jax
import jax.numpy as jnp
import numpy as np

from experiments._fullbandit import DELTA
from experiments._fullbandit_synthetic import ARMS, SIZE, rule_runs, tasks, uniform_design
from experiments.report import STYLES, Claim, Report, answers_are_right, joined, line, number
from jaxbandits import Status, fullbandit
from jaxbandits.fullbandit import Design
from jaxbandits.numerics.densest_subgraph import quadratic_maximization

GAP = 0.4
FULL = comb(ARMS, SIZE)
SIZES = (10, 15, 20, 22, 30, 50, FULL)
MAIN, QUICK = (10, 20, 50, FULL), (10, 20, FULL)  # sizes that differ in more than chance
RULES = {
    "SAQM": fullbandit.saqm,
    "ICB, ellipsoid": partial(fullbandit.icb, radius="ellipsoid"),
    "spectral": fullbandit.spectral,
}
LIMIT = fullbandit.Pace(design_matrix="limit")
RELIED_ON = 0.9  # the ratio that SAQM takes its peeling to have
# By s, over 40 supports, from an implementation in NumPy that shares nothing with ours.
RHO = {20: 4.3, 50: 1.9}
RATIO = {10: 0.60, 20: 0.83, 50: 0.93}


def run(options: Namespace) -> Report:
    realizations = options.seeds or (20 if options.quick else 200)
    sizes = QUICK if options.quick else SIZES
    parts = {}
    for s in sizes:
        table = tasks((GAP,), realizations, lambda r, s=s: uniform_design(r, s))
        qualities = jax.jit(jax.vmap(quality))(table.design)
        for name, rule in RULES.items():
            columns = rule_runs(f"support: {name}, s = {s}", rule, table, options=options, pace=LIMIT)
            sized = {"s": np.full(realizations, s)} | {key: np.asarray(x) for key, x in qualities.items()}
            parts[f"{name}, s = {s}"] = columns | sized | {"rule": np.full(realizations, name)}

    runs = joined(parts, label="run")
    lines = {key: line(f"{key}, pulls", columns["pulls"], status=columns["status"]) for key, columns in parts.items()}
    medians = {name: np.array([np.median(parts[f"{name}, s = {s}"]["pulls"]) for s in sizes]) for name in RULES}
    designs = {s: parts[f"SAQM, s = {s}"] for s in sizes}
    rho = {s: float(np.median(columns["rho"])) for s, columns in designs.items()}
    ratio = {s: float(np.mean(columns["ratio"])) for s, columns in designs.items()}
    condition = {s: float(np.median(columns["condition"])) for s, columns in designs.items()}
    stopped = runs["status"] == Status.STOPPED
    two = sizes.index(20)
    main = [s for s in MAIN if s in sizes]
    claims = [
        Claim(
            f"the more super-arms, the fewer pulls, for every rule (medians at s = {', '.join(map(str, main))})",
            ", ".join(f"{name} {values[0] / values[-1]:.0f} times fewer" for name, values in medians.items())
            + " with all 252 than with n",
            all(np.all(np.diff(values[[sizes.index(s) for s in main]]) < 0) for values in medians.values()),
        ),
        Claim(
            "n super-arms are ill-conditioned: 5 times the pulls of 2 n and more",
            ", ".join(f"{name} {values[0] / values[two]:.0f} times" for name, values in medians.items())
            + f"; condition {condition[10]:.0f} against {condition[20]:.0f}",
            all(values[0] > 5 * values[two] for values in medians.values()),
        ),
        Claim(
            "all super-arms: condition 9, rho = n, and peeling finds the largest norm, as theory has it",
            f"{condition[FULL]:.4f}, {rho[FULL] / ARMS:.4f} n, {ratio[FULL]:.4f}",
            bool(np.allclose((condition[FULL], rho[FULL] / ARMS, ratio[FULL]), (9, 1, 1), rtol=1e-6)),
        ),
        Claim(
            "the median rho / n is that of an independent implementation (within 20 %)",
            ", ".join(f"s = {s}: {rho[s] / ARMS:.3g}, {theirs:g} there" for s, theirs in RHO.items() if s in rho),
            all(abs(rho[s] / ARMS / theirs - 1) < 0.2 for s, theirs in RHO.items() if s in rho),
        ),
        Claim(
            "so is the mean ratio of peeling (within 8 %)",
            ", ".join(f"s = {s}: {ratio[s]:.3f}, {theirs:g} there" for s, theirs in RATIO.items() if s in ratio),
            all(abs(ratio[s] / theirs - 1) < 0.08 for s, theirs in RATIO.items() if s in ratio),
        ),
        Claim(
            f"peeling finds {RELIED_ON} of the largest norm, as SAQM is told, on nine supports of ten of any size",
            ", ".join(f"s = {s}: {np.mean(columns['ratio'] >= RELIED_ON):.0%}" for s, columns in designs.items()),
            all(np.mean(columns["ratio"] >= RELIED_ON) >= 0.9 for columns in designs.values()),
        ),
        answers_are_right(int(np.sum(~runs["good"] & stopped)), int(stopped.sum()), DELTA),
    ]

    def draw(figure) -> None:
        figure.set_size_inches(9.6, 4.4)
        left, right = figure.subplots(1, 2, sharex=True)
        for style, (name, values) in enumerate(medians.items()):
            low, high = np.array([np.quantile(parts[f"{name}, s = {s}"]["pulls"], (0.1, 0.9)) for s in sizes]).T
            left.errorbar(sizes, values, yerr=[values - low, high - values], label=name, mfc="w", **STYLES[style])
        ends = {"condition": "condition of Lambda", "rho_over_n": "largest norm / n"}
        curves = {
            "condition": [columns["condition"] for columns in designs.values()],
            "rho_over_n": [columns["rho"] / ARMS for columns in designs.values()],
            "ratio": [columns["ratio"] for columns in designs.values()],
        }
        for style, (key, values) in enumerate(curves.items()):
            low, middle, high = np.array([np.quantile(x, (0.1, 0.5, 0.9)) for x in values]).T
            label = ends.get(key, "peeled norm / largest norm")
            right.errorbar(sizes, middle, yerr=[middle - low, high - middle], label=label, mfc="w", **STYLES[style])
        left.set(yscale="log", ylabel="pulls until the stop", title="Pulls")
        right.set(yscale="log", title="The design")
        for axes in (left, right):
            axes.axvspan(ARMS / 1.2, ARMS * 1.2, color="#eeeeee", zorder=0)
            axes.set(xscale="log", xlabel="super-arms s of the support (grey: s = n)")
            axes.set_xticks(sizes, [str(s) if s != 22 else "" for s in sizes])
            axes.minorticks_off()
            axes.legend()

    return Report(
        "Pulls against the size of the support, n = 10, k = 5",
        list(lines.values()),
        claims,
        runs,
        draw,
        notes=(
            f"Medians over {realizations} supports, each with an instance of its own; of the ratio the mean and the "
            "least. rho is the largest |chi_M|^2. Bars in the figure reach from the first to the last decile.",
            f"Kuroki et al. take {RELIED_ON} from what they saw on one kind of design. On small supports peeling falls "
            "short of it, and SAQM's guarantee does not cover the run: it stops too early, and right all the same.",
        ),
        grid=(
            ("s", "s / n", "condition", "rho / n", "peeling", *(f"{name}, pulls" for name in RULES), ""),
            [
                (
                    str(s),
                    f"{s / ARMS:g}",
                    f"{condition[s]:.3g}",
                    f"{rho[s] / ARMS:.3g}",
                    f"{ratio[s]:.2f} ({designs[s]['ratio'].min():.2f})",
                    *(number(round(medians[name][row])) for name in RULES),
                    "ill-conditioned" if s == ARMS else "all" if s == FULL else "",
                )
                for row, s in enumerate(sizes)
            ],
        ),
    )


def quality(design: Design) -> dict[str, jax.Array]:
    """What can be said of a design before the first pull."""
    largest = fullbandit.rho(design)
    peeled = quadratic_maximization(design.inverse, SIZE).value
    return {"condition": design.condition, "rho": largest, "ratio": jnp.sqrt(peeled / largest)}
