"""Table 1 of Xu, Honda, Sugiyama (2018): pulls of every arm on the instance of Soare et al. with d = 5.

Five canonical arms and a sixth at an angle of 0.01 to the best one; delta = 0.05, standard normal noise. The paper
prints one run of each algorithm, so its numbers are compared with our mean up to the spread of a single run.
"""

import itertools
from argparse import Namespace

import numpy as np

from experiments import _linear as runs
from experiments.report import STYLES, Claim, Line, Report, answers_are_right, joined, line
from jaxbandits import Status, linear

PRINTED = {  # arms 1 to 6, and their total
    "LinGapE": (2133, 428889, 19, 34, 33, 11, 431119),
    "XY-static": (1298590, 2546604, 2546666, 2546666, 2546666, 1273742, 12758934),
    "XY-oracle": (13646, 2728606, 68, 68, 68, 1, 2742457),
}
ROUNDING = 20  # pulls by which the oracle's total may differ: its design is known to a few decimals, tracked to a pull


def run(options: Namespace) -> Report:
    instance = linear.soare(5)
    seeds = options.seeds or (200 if options.quick else 2000)
    bound = runs.bound(instance)
    sweeps = {
        "LinGapE": runs.lingape_runs("table 1", instance, options=options, seeds=seeds),
        "XY-static": runs.static_runs(
            "table 1", instance, options=options, seeds=min(seeds, 60 if options.quick else 400)
        ),
        "XY-adaptive": runs.adaptive_runs("table 1", instance, options=options, seeds=min(seeds, 20)),
    }
    oracle = linear.xy_oracle(instance.arms, theta=instance.theta, delta=runs.DELTA)

    lines = []
    for name in ("LinGapE", "XY-static"):
        columns = sweeps[name].columns
        for arm, printed in enumerate(PRINTED[name][:-1]):
            lines.append(
                line(
                    f"{name}, arm {arm + 1}",
                    columns["counts"][:, arm],
                    status=columns["status"],
                    printed=printed,
                    printed_runs=1,
                    note="the optimal shares are not unique" if name == "XY-static" and arm in (0, 5) else "",
                )
            )
        lines.append(total(name, columns, PRINTED[name][-1], bound))
    for arm, printed in enumerate(PRINTED["XY-oracle"][:-1]):
        room = ROUNDING if printed > 1000 else 2
        lines.append(Line(f"XY-oracle, arm {arm + 1}", float(oracle.counts[arm]), printed=printed, tolerance=room))
    lines.append(Line("XY-oracle, total", oracle.n, printed=PRINTED["XY-oracle"][-1], tolerance=ROUNDING, bound=bound))
    lines.append(total("XY-adaptive", sweeps["XY-adaptive"].columns, None, bound))

    means = {name: mean(sweep) for name, sweep in sweeps.items()} | {"XY-oracle": float(oracle.n)}
    order = ["LinGapE", "XY-oracle", "XY-static", "XY-adaptive"]
    counts = sweeps["LinGapE"].columns["counts"]
    share = counts[:, 1].sum() / counts.sum()
    odds = counts[:, 1].sum() / counts[:, 0].sum()
    wrong = sum(runs.wrong(sweep, instance) for sweep in sweeps.values())
    stopped = sum(int(np.sum(sweep.columns["status"] == Status.STOPPED)) for sweep in sweeps.values())
    claims = [
        Claim(
            f"pulls grow in the order {', '.join(order)}",
            ", ".join(f"{means[name]:.3g}" for name in order),
            all(means[a] < means[b] for a, b in itertools.pairwise(order)),
        ),
        Claim("LinGapE's share of arm 2 is .9949 +- .0005", f"{share:.4f}", abs(share - 0.9949) < 5e-4),
        Claim("LinGapE pulls arm 2 200 +- 2 times as often as arm 1", f"{odds:.1f}", abs(odds - 200) < 2),
        answers_are_right(wrong, stopped, runs.DELTA),
    ]

    def draw(figure) -> None:
        axes = figure.subplots()
        names = ["LinGapE", "XY-static", "XY-oracle"]
        ours = {name: sweeps[name].columns["counts"].mean(0) for name in names[:2]} | {"XY-oracle": oracle.counts}
        for n, name in enumerate(names):
            x = np.arange(1, 7) + 0.24 * (n - 1)
            axes.bar(x, ours[name], 0.22, color=("#333333", "#888888", "#dddddd")[n], edgecolor="k", label=name)
            axes.plot(x, PRINTED[name][:-1], ls="", marker=STYLES[n]["marker"], mfc="w", mec="k", ms=5)
        axes.plot([], [], ls="", marker="o", mfc="w", mec="k", label="printed in the paper (one run)")
        axes.set(
            yscale="log", xlabel="arm", ylabel="pulls", ylim=(0.5, 3e8), title="Table 1: where the pulls go, d = 5"
        )
        axes.grid(axis="x", visible=False)
        axes.legend(ncols=2, loc="upper center")

    return Report(
        "Table 1 of Xu, Honda, Sugiyama (2018): pulls of every arm, d = 5",
        lines,
        claims,
        joined({name: sweep.columns for name, sweep in sweeps.items()}),
        draw,
        notes=(
            "T* kl is the least expected number of pulls of any algorithm with this delta. Printed numbers of LinGapE "
            "and XY-static are single runs; the LinGapE run of the paper was a short one "
            f"({np.mean(sweeps['LinGapE'].columns['pulls'] <= 431119):.1%} of ours are as short).",
        ),
    )


def total(name: str, columns: dict, printed: int | None, bound: float) -> Line:
    return line(
        f"{name}, total", columns["pulls"], status=columns["status"], printed=printed, printed_runs=1, bound=bound
    )


def mean(results) -> float:
    return float(results.summary()["pulls_mean"][0])
