"""Figure 1 of Xu, Honda, Sugiyama (2018): stopping time against the dimension, on the instance of Soare et al.

d canonical arms and one more at an angle of 0.01 to the best, d = 2..10; delta = 0.05, standard normal noise. The
figure has no printed values; the claims check what the text says about it.
"""

import numpy as np

from experiments.claims import above, below, between
from experiments.figures import legend_under, means_figure
from experiments.linear import common as runs
from experiments.report import Claim, Line, Report, joined, line_of, means
from experiments.settings import Settings
from jaxbandits import linear


def run(options: Settings) -> Report:
    dimensions = (2, 6, 10) if options.quick else tuple(range(2, 11))
    seeds = options.seeds or (50 if options.quick else 400)
    curves: dict[str, list[Line]] = {"LinGapE": [], "XY-static": [], "XY-oracle": [], "XY-adaptive": []}
    parts = {}
    for d in dimensions:
        instance, name = linear.soare(d), f"figure 1, d = {d}"
        shared = {"instance": instance, "options": options}
        sweeps = {
            "LinGapE": runs.lingape_runs(name, **shared, seeds=seeds),
            "XY-static": runs.static_runs(name, **shared, seeds=min(seeds, 20 if options.quick else 60)),
            "XY-adaptive": runs.adaptive_runs(name, **shared, seeds=min(seeds, 20)),
        }
        for algorithm, sweep in sweeps.items():
            quantity = f"{algorithm}, d = {d}"
            curves[algorithm].append(line_of(quantity, sweep, bound=runs.bound(instance)))
            parts[quantity] = sweep.columns | {"d": np.full(len(sweep.columns["row"]), d)}
        curves["XY-oracle"].append(runs.oracle_line(f"XY-oracle, d = {d}", instance))

    lingape, static, oracle, adaptive = map(means, curves.values())
    slopes = [np.polyfit(dimensions, values, 1)[0] for values in (static, lingape)]
    fit = np.corrcoef(dimensions, static)[0, 1] ** 2
    worst, spread = adaptive / static, oracle.max() / oracle.min() - 1

    def draw(figure) -> None:
        axes = means_figure(figure, dimensions, curves, yscale="log", title="Figure 1: soare(d)")
        least = [line.bound for line in curves["LinGapE"]]
        axes.plot(dimensions, least, color="k", lw=1, label="T* kl, the lower bound")
        axes.set(xlabel="dimension d", ylabel="pulls until the stop")
        legend_under(axes, fontsize=10)

    return Report(
        "Figure 1 of Xu, Honda, Sugiyama (2018): pulls against the dimension",
        [line for lines in curves.values() for line in lines],
        [
            above(
                "LinGapE needs the fewest pulls in every dimension (the next over LinGapE)",
                np.min([static, oracle, adaptive], axis=0) / lingape,
            ),
            Claim(
                "XY-static grows linearly in d, LinGapE far more slowly",
                f"{slopes[0]:.3g} against {slopes[1]:.3g} pulls a dimension, R^2 = {fit:.4f}",
                fit > 0.99 and slopes[0] > 20 * slopes[1],
            ),
            below("XY-oracle hardly depends on d (from least to most)", [spread], 0.05, ".1%"),
            between("XY-adaptive needs at least five times the pulls of XY-static", worst, 5, form=".1f"),
        ],
        joined(parts, label="run"),
        draw,
    )
