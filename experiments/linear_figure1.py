"""Figure 1 of Xu, Honda, Sugiyama (2018): stopping time against the dimension, on the instance of Soare et al.

d canonical arms and one more at an angle of 0.01 to the best, d = 2..10; delta = 0.05, standard normal noise. The
figure has no printed values; what the text says of it is checked.
"""

from argparse import Namespace

import numpy as np

from experiments import _linear as runs
from experiments.report import Claim, Line, Report, curve, joined, line
from jaxbandits import linear


def run(options: Namespace) -> Report:
    dimensions = (2, 6, 10) if options.quick else tuple(range(2, 11))
    seeds = options.seeds or (50 if options.quick else 400)
    curves: dict[str, list[Line]] = {"LinGapE": [], "XY-oracle": [], "XY-static": [], "XY-adaptive": []}
    parts = {}
    for d in dimensions:
        instance, name = linear.soare(d), f"figure 1, d = {d}"
        bound = runs.bound(instance)
        sweeps = {
            "LinGapE": runs.lingape_runs(name, instance, options=options, seeds=seeds),
            "XY-static": runs.static_runs(
                name, instance, options=options, seeds=min(seeds, 20 if options.quick else 60)
            ),
            "XY-adaptive": runs.adaptive_runs(name, instance, options=options, seeds=min(seeds, 20)),
        }
        for algorithm, sweep in sweeps.items():
            columns = sweep.columns
            quantity = f"{algorithm}, d = {d}"
            curves[algorithm].append(line(quantity, columns["pulls"], status=columns["status"], bound=bound))
            parts[quantity] = columns | {"d": np.full(len(columns["row"]), d)}
        oracle = linear.xy_oracle(instance.arms, theta=instance.theta, delta=runs.DELTA)
        curves["XY-oracle"].append(Line(f"XY-oracle, d = {d}", oracle.n, bound=bound))

    ours = {name: np.array([line.ours for line in lines]) for name, lines in curves.items()}
    slopes = {name: np.polyfit(dimensions, values, 1)[0] for name, values in ours.items()}
    fit = np.corrcoef(dimensions, ours["XY-static"])[0, 1] ** 2
    worst = ours["XY-adaptive"] / ours["XY-static"]
    spread = ours["XY-oracle"].max() / ours["XY-oracle"].min() - 1
    claims = [
        Claim(
            "LinGapE needs the fewest pulls in every dimension",
            f"XY-oracle / LinGapE {np.min(ours['XY-oracle'] / ours['LinGapE']):.2f} or more",
            bool(np.all(ours["LinGapE"] < np.min([ours[n] for n in ours if n != "LinGapE"], axis=0))),
        ),
        Claim(
            "XY-static grows linearly in d, LinGapE far more slowly",
            f"{slopes['XY-static']:.3g} against {slopes['LinGapE']:.3g} pulls a dimension, R^2 = {fit:.4f}",
            bool(fit > 0.99 and slopes["XY-static"] > 20 * slopes["LinGapE"]),
        ),
        Claim("XY-oracle hardly depends on d", f"{spread:.1%} from least to most", bool(spread < 0.05)),
        Claim(
            "XY-adaptive needs at least five times the pulls of XY-static",
            f"{worst.min():.1f} to {worst.max():.1f} times",
            bool(np.all(worst >= 5)),
        ),
    ]

    def draw(figure) -> None:
        axes = figure.subplots()
        for style, name in enumerate(("LinGapE", "XY-static", "XY-oracle", "XY-adaptive")):
            curve(axes, dimensions, curves[name], name, style)
        least = [line.bound for line in curves["LinGapE"]]
        axes.plot(dimensions, least, color="k", lw=1, label="T* kl, the least possible")
        axes.set(yscale="log", xlabel="dimension d", ylabel="pulls until the stop", title="Figure 1: soare(d)")
        axes.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.14))

    lines = [line for name in curves for line in curves[name]]
    return Report(
        "Figure 1 of Xu, Honda, Sugiyama (2018): pulls against the dimension",
        lines,
        claims,
        joined(parts, label="run"),
        draw,
    )
