"""The figure on C of Jali, Karamchandani, Moharir: queries and errors of DS-UCB against the scale of its radii.

Radii are sqrt(C log(1 + (1 + log t) / delta') / t), delta = 0.1, k = 10 centers of 1000 images, first center image 0.
The figure has no printed values; the paper chooses C = 0.1 by it. The radius of the answer is the distance of the image
farthest from its nearest center.
"""

from typing import Any

from experiments.claims import between, every_run_stops, grows
from experiments.figures import curve, split
from experiments.kcenter import common
from experiments.kcenter.common import add_arguments as add_arguments
from experiments.kcenter.sampling import draw_instances, measured, scheduled_runs
from experiments.report import Claim, Report, joined, line, plus_minus
from experiments.settings import Settings
from jaxbandits.base import Algorithm
from jaxbandits.kcenter import Dimensions, Lil, ds_ucb

SIZE, QUICK_SIZE = (1000, 10_000), (100, 500)  # images of an instance, and in all
PICKED = 0.1
SCALES = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1)
LARGE = (0.3, 1.0)  # values with three to six times the queries of 0.1, which get fewer runs


def ucb(problem: Dimensions, *, radius_scale: Any, **settings: Any) -> Algorithm:
    """Builds DS-UCB with radii of this scale."""
    return ds_ucb(problem, interval=Lil(radius_scale), **settings)


def run(options: Settings) -> Report:
    n, total = QUICK_SIZE if options.quick else SIZE
    runs, large = options.seeds or (8 if options.quick else 20), LARGE[:1] if options.quick else LARGE
    others = total // n - 1
    images = common.images(options.data, total)
    plans = {"small": (SCALES, {"first": runs, "runs": 2}), "large": (large, {"first": 2})}
    sweeps, at = {}, {}
    for name, (scales, plan) in plans.items():
        plan |= {"others": others, "settings": {"radius_scale": scales}, "options": options}
        columns = scheduled_runs(f"kcenter figure 1: {name} C, n = {n}", ucb, images, n, **plan)
        sweeps[name] = columns
        at |= common.by_value(columns, "radius_scale")
    cells = {scale: measured(f"queries, C = {scale:g}", columns) for scale, columns in at.items()}
    errors, set_errors, radii = (
        {scale: line("", values(columns), status=columns["status"]) for scale, columns in at.items()}
        for values in (lambda runs: ~runs["ordered"], lambda runs: ~runs["members"], lambda runs: runs["radius"])
    )

    def draw(figure: Any) -> None:
        left, middle, right = split(figure, (12, 4.2), 1, 3)
        curve(left, list(cells), [cell.line for cell in cells.values()], f"first {n} images", 0)
        draw_instances(left, list(cells), list(cells.values()))
        left.set(yscale="log", ylabel="queries until ten centers", title="The cost of wide radii")
        left.legend(loc="upper left", fontsize=9)
        curve(middle, list(cells), list(errors.values()), "not greedy's, in order", 1)
        curve(middle, list(cells), list(set_errors.values()), "not greedy's, as a set", 2)
        middle.axhline(common.DELTA, color="k", lw=1, ls=":")
        middle.text(SCALES[0], common.DELTA, "delta", va="bottom", fontsize=9)
        middle.set(ylabel=f"share of the runs, {1 + others} instances", title="The share of wrong centers")
        middle.set_ylim(-0.03, 1.05)
        middle.legend(loc="lower left", fontsize=9, bbox_to_anchor=(0, 0.14))
        curve(right, list(cells), list(radii.values()), "", 3)
        right.axhline(1, color="k", lw=1, ls=":")
        right.set(ylabel="radius / radius of greedy's centers", title="Wrong centers are nearly as good")
        for axes in (left, middle, right):
            axes.set(xscale="log", xlabel="C, the scale of the squared radii")
            axes.axvline(PICKED, color="#777777", lw=1, ls="--", zorder=0)
        left.text(0.9 * PICKED, 0.03, "the paper's C", transform=left.get_xaxis_transform(), ha="right", fontsize=9)

    return Report(
        f"DS-UCB against C, n = {n}, k = 10, delta = 0.1, {images.label}",
        [],
        [
            every_run_stops(sweeps.values()),
            grows("queries grow with C", [cell.line for cell in cells.values()]),
            grows("errors fall with C", list(errors.values()), ".2f", down=True),
            Claim(
                "small radii err: all answers are wrong at C = 0.01 or below",
                f"{errors[1e-2].ours:.0%} at 0.01",
                all(errors[scale].ours == 1 for scale in SCALES if scale <= 1e-2),
            ),
            between(
                "wrong centers are nearly as good: the radius is at most 10 % above greedy's for every C",
                [radius.ours for radius in radii.values()],
                most=1.1,
                form=".3f",
            ),
        ],
        joined(sweeps, "part"),
        draw,
        notes=(
            f"queries: means over runs on the first {n} images with standard errors, then the mean and the range over "
            f"{1 + others} instances of {n} images that share none. Ordered (set): the runs on the first {n} images "
            "with greedy's centers in order (as a set). Errors and radius: over all runs on all instances.",
            "The radius is a squared distance, over greedy's; below 1 the answer is better than greedy's. At the "
            "smallest C centers depend on hardly more than one number of each image, yet their radius is "
            f"{radii[SCALES[0]].ours:.2f} times greedy's.",
        ),
        grid=[
            {
                "C": f"{scale:g}",
                "queries, first images": plus_minus(cell.line),
                "ordered (set)": common.matches(cell.first),
                "instances": cell.spread,
                "errors": f"{errors[scale].ours:.3f}",
                "radius": plus_minus(radii[scale], 3),
                "runs": str(errors[scale].runs),
            }
            for scale, cell in cells.items()
        ],
    )
