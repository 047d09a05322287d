"""Table 1 of Xu, Honda, Sugiyama (2018): pulls of every arm on the instance of Soare et al. with d = 5.

Five canonical arms and a sixth at an angle of 0.01 to the best one; delta = 0.05, standard normal noise. The paper
prints one run of each algorithm, so its numbers are compared with our mean up to the spread of a single run.
"""

import itertools

import numpy as np

from experiments.figures import STYLES
from experiments.linear import common as runs
from experiments.papers import printed
from experiments.report import Claim, Line, Report, joined, line, line_of, listed, means
from experiments.settings import Settings
from jaxbandits import linear

NAMES = ("LinGapE", "XY-oracle", "XY-static", "XY-adaptive")  # in the order of their pulls
PRINTED = {name: printed("linear", f"table1 {name}") for name in NAMES[:3]}  # arms 1 to 6, and their total
ROUNDING = 20  # pulls by which the oracle's total may differ, since its design is printed to a few decimals
SHADES = ("#333333", "#777777", "#aaaaaa", "#dddddd")


def run(options: Settings) -> Report:
    instance = linear.soare(5)
    seeds = options.seeds or (200 if options.quick else 2000)
    shared = {"options": options, "instance": instance}
    sweeps = {
        "LinGapE": runs.lingape_runs("table 1", **shared, seeds=seeds),
        "XY-static": runs.static_runs("table 1", **shared, seeds=min(seeds, 60 if options.quick else 400)),
        "XY-adaptive": runs.adaptive_runs("table 1", **shared, seeds=min(seeds, 20)),
    }
    oracle = linear.xy_oracle(instance.arms, theta=instance.theta, delta=runs.DELTA)
    shown: dict[str, list[Line]] = {"LinGapE": [], "XY-static": [], "XY-oracle": [], "XY-adaptive": []}
    for name in ("LinGapE", "XY-static"):
        columns = sweeps[name].columns
        for arm, number in enumerate(PRINTED[name][:-1]):
            settings = {"status": columns["status"], "printed": number, "printed_runs": 1}
            note = "the optimal shares are not unique" if name == "XY-static" and arm in (0, 5) else ""
            shown[name].append(line(f"{name}, arm {arm + 1}", columns["counts"][:, arm], note=note, **settings))
    for arm, (count, number) in enumerate(zip(oracle.counts, PRINTED["XY-oracle"], strict=False)):
        tolerance = ROUNDING if number > 1000 else 2
        shown["XY-oracle"].append(Line(f"XY-oracle, arm {arm + 1}", float(count), printed=number, tolerance=tolerance))
    for name, sweep in sweeps.items():
        settings = {"printed": PRINTED[name][-1] if name in PRINTED else None, "printed_runs": 1}
        shown[name].append(line_of(f"{name}, total", sweep, bound=runs.bound(instance), **settings))
    total = runs.oracle_line("XY-oracle, total", instance)
    shown["XY-oracle"].append(total._replace(printed=PRINTED["XY-oracle"][-1], tolerance=ROUNDING))
    pulls = {name: shown[name][-1].ours for name in NAMES}
    counts = sweeps["LinGapE"].columns["counts"].sum(axis=0)
    share, odds = counts[1] / counts.sum(), counts[1] / counts[0]
    short = np.mean(sweeps["LinGapE"].columns["pulls"] <= PRINTED["LinGapE"][-1])

    def draw(figure) -> None:
        axes = figure.subplots()
        for n, (name, shade) in enumerate(zip(NAMES, SHADES, strict=True)):
            x = np.arange(1, 8)[-len(shown[name]) :] + 0.2 * (n - 1.5)
            bars = {"yerr": [2 * each.se for each in shown[name]], "error_kw": {"capsize": 2, "lw": 1}}
            axes.bar(x, means(shown[name]), 0.18, color=shade, edgecolor="k", label=name, **bars)
            if name in PRINTED:
                look = {"marker": STYLES[n]["marker"], "mfc": "w", "mec": "k", "ms": 5}
                axes.plot(x, PRINTED[name], ls="", label=f"{name}, printed", **look)
        axes.set(yscale="log", xlabel="arm", ylabel="pulls (bars: 2 s.e.)", ylim=(0.5, 1e9))
        axes.set_title("Table 1: where the pulls go, d = 5")
        axes.set_xticks(range(1, 8), [*map(str, range(1, 7)), "all"])
        axes.grid(axis="x", visible=False)
        figure.legend(loc="outside lower center", ncols=4, fontsize=9)

    return Report(
        "Table 1 of Xu, Honda, Sugiyama (2018): pulls of every arm, d = 5",
        list(itertools.chain.from_iterable(shown.values())),
        [
            Claim(
                f"pulls grow in the order {', '.join(NAMES)}",
                listed(pulls.values()),
                all(few < many for few, many in itertools.pairwise(pulls.values())),
            ),
            Claim("LinGapE's share of arm 2 is .9949 +- .0005", f"{share:.4f}", abs(share - 0.9949) < 5e-4),
            Claim("LinGapE pulls arm 2 200 +- 2 times as often as arm 1", f"{odds:.1f}", abs(odds - 200) < 2),
            runs.delta_is_kept(list(sweeps.values()), instance),
        ],
        joined(sweeps),
        draw,
        notes=(
            "T* kl is the smallest expected number of pulls of any algorithm with this delta. Printed numbers of "
            "LinGapE and XY-static are single runs; the LinGapE run of the paper was a short one "
            f"({short:.1%} of ours are as short).",
        ),
    )
