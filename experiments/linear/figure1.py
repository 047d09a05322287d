"""Figure 1 of Xu, Honda, Sugiyama (2018): stopping time against the dimension, on the instance of Soare et al.

d canonical arms and one more at an angle of 0.01 to the best, d = 2..10; delta = 0.05, standard normal noise. The
figure has no printed values; the claims check what the text says about it.
"""

from functools import partial

import numpy as np

from experiments import study
from experiments.claims import above, below, between
from experiments.linear import common as runs
from experiments.report import Claim, Report, means
from experiments.settings import Settings
from jaxbandits import linear


def run(options: Settings) -> Report:
    dimensions = (2, 6, 10) if options.quick else tuple(range(2, 11))
    seeds = options.seeds or (50 if options.quick else 400)
    instances = {d: linear.soare(d) for d in dimensions}
    bounds = {d: runs.bound(instance) for d, instance in instances.items()}
    runs_of = {
        "LinGapE": partial(runs.lingape_runs, seeds=seeds),
        "XY-static": partial(runs.static_runs, seeds=min(seeds, 20 if options.quick else 60)),
        "XY-oracle": runs.oracle_line,
        "XY-adaptive": partial(runs.adaptive_runs, seeds=min(seeds, 20)),
    }
    cells = study.crossed(
        {"rule": runs_of, "d": dimensions},
        lambda rule, d: runs_of[rule](f"figure 1, d = {d}", instances[d], options=options),
        name="{rule}, d = {d}",
        more=lambda rule, d: {"bound": bounds[d]},
    )
    lingape, static, oracle, adaptive = map(means, study.by(cells, "rule").values())
    slopes = [np.polyfit(dimensions, values, 1)[0] for values in (static, lingape)]
    fit = np.corrcoef(dimensions, static)[0, 1] ** 2
    worst, spread = adaptive / static, oracle.max() / oracle.min() - 1

    return study.report(
        "Figure 1 of Xu, Honda, Sugiyama (2018): pulls against the dimension",
        cells,
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
        draw=study.figure(
            cells,
            "d",
            references={"T* kl, the lower bound": list(bounds.values())},
            legend=2,
            yscale="log",
            xlabel="dimension d",
            title="Figure 1: soare(d)",
        ),
    )
