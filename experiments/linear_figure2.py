"""Figure 2 of Xu, Honda, Sugiyama (2018): stopping time against the gap, with five canonical arms.

theta = (gap, 0, 0, 0, 0), gap = 0.1 .. 0.5; delta = 0.05, standard normal noise. The figure has no printed values;
what the text says of it is checked. All gaps of an algorithm are one sweep, round by round: their stopping times
differ by a factor of thirty, and the lanes stay busy all the same.
"""

from argparse import Namespace

import jax
import jax.numpy as jnp
import numpy as np

from experiments import _linear as runs
from experiments._simulate import simulate
from experiments.report import Claim, Line, Report, answers_are_right, curve, joined, line
from jaxbandits import Status, linear

GAPS = (0.1, 0.2, 0.3, 0.4, 0.5)


def run(options: Namespace) -> Report:
    arms = linear.canonical(GAPS[0]).arms
    gaps = jnp.asarray(GAPS)
    allocation = linear.xy_allocation(arms).allocation
    seeds = options.seeds or (200 if options.quick else 2000)

    def instance(gap: jax.Array) -> linear.Instance:
        return linear.Instance(arms, jnp.zeros(5).at[0].set(gap), jnp.ones(()))

    sweeps = {
        "LinGapE": simulate(
            "figure 2: LinGapE",
            lambda gap, key: (linear.lingape(arms, delta=runs.DELTA), linear.environment(instance(gap))),
            gaps,
            options=options,
            seeds=seeds,
            max_rounds=10**7,
        ),
        "XY-static": simulate(
            "figure 2: XY-static",
            lambda gap, key: (
                linear.xy_static(arms, allocation, delta=runs.DELTA),
                linear.environment(instance(gap), linear.Allocation),
            ),
            gaps,
            options=options,
            seeds=min(seeds, 400),
            max_rounds=100_000,
        ),
    }
    bounds = [runs.bound(linear.canonical(gap)) for gap in GAPS]
    curves: dict[str, list[Line]] = {name: [] for name in sweeps} | {"XY-oracle": []}
    for row, gap in enumerate(GAPS):
        for name, sweep in sweeps.items():
            chosen = sweep.columns["row"] == row
            pulls, status = sweep.columns["pulls"][chosen], sweep.columns["status"][chosen]
            curves[name].append(line(f"{name}, gap {gap}", pulls, status=status, bound=bounds[row]))
        truth = linear.canonical(gap).theta
        oracle = linear.xy_oracle(arms, theta=truth, delta=runs.DELTA)
        curves["XY-oracle"].append(Line(f"XY-oracle, gap {gap}", oracle.n, bound=bounds[row]))

    ours = {name: np.array([line.ours for line in lines]) for name, lines in curves.items()}
    ratio = ours["XY-static"] / ours["LinGapE"]
    scaled = ours["LinGapE"] * np.square(GAPS)
    wrong = sum(runs.wrong(sweep, linear.canonical(GAPS[0])) for sweep in sweeps.values())
    stopped = sum(int(np.sum(sweep.columns["status"] == Status.STOPPED)) for sweep in sweeps.values())
    claims = [
        Claim(
            "LinGapE needs the fewest pulls at every gap",
            f"XY-static / LinGapE {ratio.min():.2f} to {ratio.max():.2f}",
            bool(np.all(ours["LinGapE"] < np.minimum(ours["XY-static"], ours["XY-oracle"]))),
        ),
        Claim(
            "its advantage grows as the gap shrinks, as a difference",
            ", ".join(f"{x:.3g}" for x in ours["XY-static"] - ours["LinGapE"]),
            bool(np.all(np.diff(ours["XY-static"] - ours["LinGapE"]) < 0)),
        ),
        Claim(
            "its advantage grows as the gap shrinks, as a ratio (by more than 10 %)",
            ", ".join(f"{x:.2f}" for x in ratio),
            bool(ratio[0] > 1.1 * ratio[-1]),
        ),
        Claim(
            "pulls x gap^2 falls slowly in the gap",
            ", ".join(f"{x:.0f}" for x in scaled),
            bool(np.all(np.diff(scaled) < 0) and scaled[-1] > scaled[0] / 2),
        ),
        answers_are_right(wrong, stopped, runs.DELTA),
    ]

    def draw(figure) -> None:
        axes = figure.subplots()
        for style, name in enumerate(("LinGapE", "XY-static", "XY-oracle")):
            curve(axes, GAPS, curves[name], name, style)
        axes.plot(GAPS, bounds, color="k", lw=1, label="T* kl, the least possible")
        axes.set(xscale="log", yscale="log", xlabel="gap", ylabel="pulls until the stop")
        axes.set(title="Figure 2: five canonical arms", xticks=GAPS, xticklabels=map(str, GAPS))
        axes.minorticks_off()
        axes.legend()

    stats = sweeps["LinGapE"].stats
    return Report(
        "Figure 2 of Xu, Honda, Sugiyama (2018): pulls against the gap",
        [line for lines in curves.values() for line in lines],
        claims,
        joined({name: sweep.columns | {"gap": gaps[sweep.columns["row"]]} for name, sweep in sweeps.items()}),
        draw,
        notes=(
            f"LinGapE: {stats.pulls / stats.seconds:.3g} pulls a second round by round, lane occupancy "
            f"{stats.occupancy:.1%} over {5 * seeds} tasks in {stats.batches} x {stats.lanes} lanes.",
        ),
    )
