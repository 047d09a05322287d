"""Theorem 3 of Xu, Honda, Sugiyama (2018): its bound H_0 <= 72 H' is false; does LinGapE pay for it?

On a counterexample with 2n + 2 arms in n + 2 dimensions the ratio H_0 / H' grows without limit. LinGapE's own pulls are
shown too, divided by the lower bound T* kl, by H_0 and by H'. In general, 9 H_oracle <= H_0 <= 36 K H_oracle.
"""

import jax.numpy as jnp
import numpy as np

from experiments import study
from experiments.claims import between
from experiments.figures import curve, ticks
from experiments.linear import common as runs
from experiments.report import Claim, Line, Report, means
from experiments.settings import Settings
from jaxbandits import Results, linear

LARGEST_PLAYED = 16  # largest n with runs; beyond it, from 26 dimensions on, only the bounds are computed


def run(options: Settings) -> Report:
    sizes = (1, 4, 16) if options.quick else (1, 2, 4, 8, 16, 24)
    played = [n for n in sizes if n <= LARGEST_PLAYED]
    seeds = options.seeds or (8 if options.quick else 40)
    instances = {n: linear.theorem3_counterexample(n) for n in sizes}
    hardness, bracketed = [], True
    for instance in instances.values():
        ratios = linear.ratio_tables(instance.arms)
        H0, oracle, total = (
            float(measure(instance.arms, instance.theta, ratios=ratios))
            for measure in (linear.hardness_lingape, linear.hardness_oracle, linear.hardness_oracle_sum)
        )
        hardness.append((H0, total))
        bracketed &= 1 - 1e-9 <= H0 / (9 * oracle) <= 4 * instance.arms.shape[0]

    def sweep(n: int) -> Results:
        # leap: 1, because the rule changes its arm in every round here
        settings = {"norm_bound": float(jnp.linalg.norm(instances[n].theta)), "leap": 1}
        return runs.lingape_runs(f"theorem 3, n = {n}", instances[n], options=options, seeds=seeds, **settings)

    cells = study.crossed(
        {"n": played}, sweep, name="LinGapE, n = {n}", more=lambda n: {"bound": runs.bound(instances[n])}
    )
    pulls = list(cells.lines.values())
    H0, total = np.array(hardness).T
    over_total, over_H0 = ((means(pulls) / x[: len(played)])[[0, -1]] for x in (total, H0))
    growth_total, growth_H0 = over_total[1] / over_total[0], over_H0[1] / over_H0[0]

    def draw(figure) -> None:
        axes = figure.subplots()
        axes.plot(sizes, H0 / total, "k-", marker="*", label="H_0 / H'")
        axes.axhline(72, color="k", lw=0.8, ls=":", label="72, the printed limit")
        curve(axes, played, pulls, "LinGapE pulls / H'", 0, scale=1 / total[: len(played)])
        curve(axes, played, pulls, "LinGapE pulls / (T* kl)", 1, scale=1 / np.array([line.bound for line in pulls]))
        axes.set(xscale="log", yscale="log", xlabel="n", title="Theorem 3's counterexample")
        ticks(axes, sizes)
        axes.legend()

    report = study.report(
        "Theorem 3 of Xu, Honda, Sugiyama (2018): H_0 against H' on a counterexample",
        cells,
        [
            between("H_0 <= 72 H' for every instance (Theorem 3 as printed)", H0 / total, most=72, form=".1f"),
            Claim("9 H_oracle <= H_0 <= 36 K H_oracle", "all sizes", bracketed),
            Claim(
                "LinGapE itself pays: its pulls follow H_0, not H'",
                f"n = {played[0]} to {played[-1]}: pulls / H' grow {growth_total:.2f} times, pulls / H_0 "
                f"{growth_H0:.2f}",
                abs(np.log(growth_H0)) < abs(np.log(growth_total)) / 2,
            ),
        ],
        draw=draw,
        notes=(
            "Apart from the hardness, LinGapE's pulls contain the square of its confidence radius. The radius grows "
            "with n too, through the dimension n + 2 and through S = ||theta||, about 10 sqrt(n).",
        ),
    )
    ratios = [Line(f"H_0 / H', n = {n}", value) for n, value in zip(sizes, H0 / total, strict=True)]
    return report._replace(lines=[*ratios, *pulls])
