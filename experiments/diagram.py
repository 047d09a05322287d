"""Draws the README's picture of a sweep: `python -m experiments.diagram` writes experiments/gallery/sweep.png."""

from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from experiments import HERE
from experiments.figures import COLORS

ROWS, SEEDS, LANES = 3, 5, 4
TABLE, QUEUE, BATCH, STORE = 0.3, 3.1, 5.2, 9.7  # left edges of the parts
# Start and end of the runs of each lane. A free lane takes the next run of the queue at the end of the chunk.
RUNS = (
    ((0, 0.24), (0.25, 0.62), (0.75, 1)),
    ((0, 0.45), (0.5, 0.91)),
    ((0, 0.31), (0.5, 1)),
    ((0, 0.68), (0.75, 0.88)),
)


def box(axes: Any, corner: tuple[float, float], size: tuple[float, float], color: str, **more: Any) -> None:
    axes.add_patch(Rectangle(corner, *size, facecolor=color, edgecolor="w", lw=1, **more))


def arrow(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=14, color="#444444", lw=1.3))


def draw(figure: Figure) -> None:
    axes = figure.subplots()
    axes.set(xlim=(0, 12.2), ylim=(-1.35, 3.6), aspect="equal")
    axes.axis("off")

    def write(x: float, y: float, text: str, size: float = 9.5, **more: Any) -> None:
        axes.text(x, y, text, fontsize=size, **{"ha": "center", "va": "center", "color": "#222222"} | more)

    for row in range(ROWS):
        for seed in range(SEEDS):
            box(axes, (TABLE + 0.4 * seed, 1.9 - 0.6 * row), (0.36, 0.5), COLORS[row], alpha=0.35 + 0.13 * seed)
    write(TABLE + 1, 3.15, "tasks: rows x seeds", 10.5, weight="bold")
    write(TABLE + 1, 0.25, "a row is an instance\nwith its parameters")
    for task in range(6):
        box(axes, (QUEUE + 0.22 * task, 1.3), (0.19, 0.5), COLORS[(task * 2) % ROWS], alpha=0.5 + 0.08 * task)
    write(QUEUE + 0.65, 3.15, "queue", 10.5, weight="bold")
    write(QUEUE + 0.65, 0.9, "every task has\na key of its own")
    for device, bottom in enumerate((1.75, -0.1)):
        axes.add_patch(Rectangle((BATCH - 0.1, bottom - 0.1), 3.7, 1.5, facecolor="#f3f4f6", edgecolor="#999999", lw=1))
        for lane, runs in enumerate(RUNS):
            for n, (start, end) in enumerate(runs):
                color, shade = COLORS[(lane + n + device) % ROWS], 0.4 + 0.15 * n
                corner = BATCH + 3.5 * start, bottom + 0.33 * lane
                box(axes, corner, (3.5 * (end - start), 0.28), color, alpha=shade)
        for chunk in range(1, 4):
            axes.plot(2 * [BATCH + 3.5 * chunk / 4], [bottom - 0.05, bottom + 1.35], color="k", lw=0.8, ls=":")
        write(BATCH + 3.75, bottom + 0.65, f"device {device}", 8.5, rotation=270)
    write(BATCH + 1.75, 3.4, "lanes, advanced by a compiled call", 10.5, weight="bold")
    write(
        BATCH + 1.75,
        -0.75,
        "between two dotted lines: a chunk of rounds; then\n"
        "the host takes out the runs that have ended\nand refills their lanes",
    )
    for part in range(3):
        box(axes, (STORE + 0.12 * part, 1.9 - 0.45 * part), (1.5, 0.4), "#d8dce2")
        write(STORE + 0.75 + 0.12 * part, 2.1 - 0.45 * part, "part.parquet", 8)
    write(STORE + 0.9, 3.15, "store, or memory", 10.5, weight="bold")
    write(STORE + 0.9, 0.25, "one row a run;\nafter a kill, the\nsame call goes on")
    arrow(axes, (TABLE + 2.1, 1.55), (QUEUE - 0.1, 1.55))
    for bottom in (2.4, 0.65):
        arrow(axes, (QUEUE + 1.4, 1.55), (BATCH - 0.15, bottom))
        arrow(axes, (BATCH + 3.95, bottom), (STORE - 0.1, 1.55))


if __name__ == "__main__":
    figure = Figure(figsize=(11, 4.5), dpi=130, layout="constrained")
    draw(figure)
    figure.savefig(HERE / "gallery" / "sweep.png", facecolor="w")
