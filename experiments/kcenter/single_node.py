"""Why two nodes are queried: the rule of DS-UCB, which pulls the leader alone, with and without an end to its pulls.

The leader is the node of largest upper bound. Its rivals are pulled only while they lead, so their upper bounds stay
just below the leader's, above its distance; a stage ends once the leader's lower bound is above theirs.

Noisy distances (Gaussian, variance 0.01; three candidates for a second center, at 0.5, 0.5 and 0.5 + gap): NS-TS,
which pulls the candidate of largest mean as well (a pair), beside the leader alone; mix 0 both. Dimension sampling:
DS-UCB for the second center of ten images, of which m random dimensions are taken. An arm is read exactly after m
queries, at m more, so that a stage costs about 2 m and what the rivals take.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.claims import all_of, between
from experiments.figures import COLORS, STYLES, marks, split, ticks
from experiments.kcenter import common as runs
from experiments.kcenter.common import add_arguments as add_arguments
from experiments.kcenter.common import chosen
from experiments.kcenter.noisy import ALPHA, K1, expected, times
from experiments.report import Claim, Columns, Report, joined, listed, number
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Algorithm, Environment, Outcome, Status, kcenter
from jaxbandits.kcenter import Lil, ds_ucb, greedy, ns_ts, pairwise_sums
from jaxbandits.kcenter._samples import mean

NOISE_SCALE = 0.1
NODES = 4  # of the noisy instances, the first center among them
BEST = 1
GAPS = (0.4, 0.2, 0.1, 0.05, 0.025)
LIMIT = 1_000_000  # rounds
QUICK_LIMIT = 50_000
SIZE, IMAGES = 10, 400  # nodes of an instance of images; images
DIMENSIONS = (256, 1024, 4096, 12288)
QUICK_DIMENSIONS = (256, 1024)
RADIUS_SCALE = 0.1
PULLS = {"pair": "a pair (NS-TS)", "leader": "the leader alone"}


class Noisy(NamedTuple):
    """The runs at one gap."""

    ended: np.ndarray  # bool (runs,)
    quartiles: np.ndarray  # (3,)  queries of all runs, infinite where so many did not end
    best: float  # median queries of the best candidate
    rival: float  # and of the most queried of the others
    width: float  # of the best candidate's interval after so many

    @property
    def share(self) -> str:
        """How many ended."""
        return f"{self.ended.sum()} of {len(self.ended)}"


class Read(NamedTuple):
    """The runs with dimension sampling, m of them."""

    over: np.ndarray  # (runs,)  queries over 2 m
    gaps: np.ndarray  # (blocks,)  to the second best
    law: np.ndarray  # (blocks,)  queries of the rivals
    excess: np.ndarray  # (blocks,)  mean queries beyond 2 m


def run(options: Settings) -> Report:
    seeds = options.seeds or (10 if options.quick else 40)
    limit = QUICK_LIMIT if options.quick else LIMIT
    pulled = {name: noisy_runs(name, limit, seeds, options) for name in PULLS}
    noisy = {
        (name, gap): noisy_of(chosen(columns, columns["row"] == row))
        for name, columns in pulled.items()
        for row, gap in enumerate(GAPS)
    }
    law = {gap: expected(times(table(gap), greedy(table(gap), k=2), NOISE_SCALE), NODES)[0] for gap in GAPS}

    images = runs.images(options, IMAGES)
    order = np.random.default_rng(0).permutation(images.points.shape[1])
    thinned = {m: thin(images, order[:m]) for m in (QUICK_DIMENSIONS if options.quick else DIMENSIONS)}
    rows = runs.blocks(SIZE, IMAGES // SIZE)
    rule = partial(ds_ucb, delta=runs.DELTA, interval=Lil(RADIUS_SCALE))
    shared = {"k": 2, "options": options, "seeds": max(seeds // 4, 1)}
    read = {
        m: runs.image_runs(f"kcenter single node: m = {m}", rule, each, rows, **shared) for m, each in thinned.items()
    }
    reads = {m: read_of(columns, thinned[m], rows) for m, columns in read.items()}
    return Report(
        f"The leader alone: with noisy distances, and with {images.label}",
        [],
        [*noisy_claims(noisy, limit), *read_claims(reads)],
        joined(pulled | {f"m = {m}": columns for m, columns in read.items()}, "sweep"),
        partial(draw, noisy=noisy, law=law, reads=reads, limit=limit),
        notes=notes(len(rows)),
        grid=grid(noisy, limit, law, reads),
    )


def thin(images: runs.Images, dimensions: np.ndarray) -> runs.Images:
    """Images of which only some numbers are left."""
    points = np.ascontiguousarray(images.points[:, dimensions])
    return runs.Images(points, pairwise_sums(points), images.label)


def table(gap: float) -> np.ndarray:
    """Distances: from node 0, node 1 is `gap` farther than all others."""
    distances = np.full((NODES, NODES), 0.5)
    np.fill_diagonal(distances, 0)
    distances[0, BEST] = distances[BEST, 0] = 0.5 + gap
    return distances


def noisy_runs(name: str, limit: int, seeds: int, options: Settings) -> Columns:
    def state(task: jax.Array, outcome: Outcome) -> dict[str, jax.Array]:
        samples = outcome.state.samples
        return {"counts": samples.counts[:, 0], "means": mean(samples, task.dtype)[:, 0]}

    def build(task: jax.Array, key: jax.Array) -> tuple[Algorithm, Environment]:
        instance = kcenter.distance_instance(task, k=2, noise_scale=NOISE_SCALE)
        algorithm = ns_ts(instance.problem, noise_scale=NOISE_SCALE, delta=runs.DELTA, mix=0.0, pair=name == "pair")
        return algorithm, kcenter.environment(instance)

    tables, budget = np.stack([table(gap) for gap in GAPS]), {"seeds": seeds, "max_rounds": limit}
    return simulate(f"kcenter single node: {name}", build, tables, options=options, metrics=state, **budget).columns


def noisy_of(columns: Columns) -> Noisy:
    counts, ended = columns["counts"], columns["status"] == Status.STOPPED
    queries = np.where(ended, columns["pulls"], np.inf)
    best = float(np.median(counts[:, BEST]))
    level = (np.log(K1 * NODES**2 / runs.DELTA) + ALPHA * np.log(best)) / best
    rival = float(np.median(np.delete(counts, (0, BEST), axis=1).max(axis=1)))
    quartiles = np.quantile(queries, (0.25, 0.5, 0.75), method="higher")
    return Noisy(ended, quartiles, best, rival, float(2 * NOISE_SCALE * np.sqrt(2 * level)))


def read_of(columns: Columns, images: runs.Images, rows: np.ndarray) -> Read:
    m, distances = images.points.shape[1], images.distances
    queries, blocks = columns["pulls"], columns["instance"]
    stopped = columns["status"] == Status.STOPPED
    gaps, law, excess = [], [], []
    for block, (row, solution) in enumerate(zip(rows, runs.solutions(images.sums, rows, 2), strict=True)):
        best = solution.centers[1]
        to_others = distances[row[0], row[best]] - np.delete(distances[row[0], row], (0, best))
        gaps.append(to_others.min())
        law.append(rivals(to_others, m))
        excess.append(queries[stopped & (blocks == block)].mean() - 2 * m)
    return Read(queries[stopped] / (2 * m), *map(np.array, (gaps, law, excess)))


def rivals(gaps: np.ndarray, m: int) -> float:
    """Queries until every rival's upper bound is below the best distance, were its mean exact; 2 m if m do not do."""
    t = np.arange(1, m + 1)
    radius = np.sqrt(RADIUS_SCALE * np.log1p((1 + np.log(t)) * SIZE / runs.DELTA) / t)
    needed = [int(np.argmax(radius < gap)) + 1 if radius[-1] < gap else 2 * m for gap in gaps]
    return float(sum(needed))


def noisy_claims(noisy: dict[tuple[str, float], Noisy], limit: int) -> list[Claim]:
    pairs, alone = ({gap: noisy[name, gap] for gap in GAPS} for name in ("pair", "leader"))
    times = {gap: min(alone[gap].quartiles[1], limit) / pairs[gap].quartiles[1] for gap in GAPS}
    ended = [", ".join(f"{entry.share} (gap {gap})" for gap, entry in each.items()) for each in (pairs, alone)]
    more = {gap: "> " * bool(np.isinf(alone[gap].quartiles[1])) for gap in GAPS}
    return [
        Claim("with a pair every run ends", ended[0], all(pair.ended.all() for pair in pairs.values())),
        Claim(
            f"the leader alone never ends, within {limit:,} queries",
            f"ended: {ended[1]}",
            not any(entry.ended.any() for entry in alone.values()),
        ),
        Claim(
            "the leader alone takes at least ten times as many queries as a pair, in the median",
            ", ".join(f"{more[gap]}{number(x)} (gap {gap})" for gap, x in times.items()),
            all(alone[gap].quartiles[1] >= 10 * pairs[gap].quartiles[1] for gap in GAPS),
        ),
    ]


def read_claims(reads: dict[int, Read]) -> list[Claim]:
    ratios = {f"m = {m}:": np.median(found.excess / found.law) for m, found in reads.items()}
    least = listed({f"m = {m}:": found.over.min() for m, found in reads.items()}, ".2f")
    over = np.concatenate([found.over for found in reads.values()])
    enough = all_of("with dimension sampling a stage takes at least 2 m queries", over >= 1)
    within = "what it takes beyond 2 m brings the rivals' bounds below the best distance: within 30 % in the median"
    return [
        enough._replace(measured=f"{enough.measured}; the least over 2 m at {least}"),
        between(within, ratios, 0.7, 1.3, ".2f"),
    ]


def grid(noisy: dict, limit: int, law: dict[float, float], reads: dict[int, Read]) -> list[dict[str, str]]:
    body = [
        {
            "": f"noisy, {name}, gap {gap}",
            "ended": entry.share,
            "median queries": number(middle) if np.isfinite(middle) else f"> {number(limit)}",
            "law": number(round(law[gap])) if name == "pair" else "",
            "of the best": number(entry.best),
            "of a rival": number(entry.rival),
            "width": f"{entry.width:.4f}",
        }
        for (name, gap), entry in noisy.items()
        for middle in [float(entry.quartiles[1])]
    ]
    for m, found in reads.items():
        middle, low, high = (number(round(f(found.excess))) for f in (np.median, np.min, np.max))
        row = {
            "": f"images, m = {m}, queries - {2 * m:,}",
            "ended": str(len(found.over)),
            "median queries": f"{middle} ({low} to {high})",
            "law": number(round(np.median(found.law))),
        }
        body.append(dict.fromkeys(body[0], "") | row)
    return body


def notes(blocks: int) -> tuple[str, ...]:
    return (
        "Queries of the best and of its most queried rival are medians over all runs, and the width is that of the "
        "best's interval after so many. The law of a pair is 2 beta T*. Of images "
        f"the median and, in brackets, the range over {blocks} blocks of {SIZE}; their law: "
        "queries until the radius is below a rival's gap, summed over the rivals.",
        "The leader alone does end where the gap is large: a query moves a rival's upper bound in steps of about "
        "sqrt(variance) over its queries, and once such a step takes it below the leader's lower bound, which comes as "
        "near to its upper bound as you like, the stage is over. Small gaps mean many queries of the rivals and hence "
        "small steps, and an interval of that width takes the square of that many queries. With dimension sampling a "
        "stage may end so before its 2 m queries, where m is large.",
    )


def draw(figure: Any, *, noisy: dict, law: dict[float, float], reads: dict[int, Read], limit: int) -> None:
    left, right = split(figure, (9.6, 4.6), 1, 2)
    for style, (name, label) in enumerate(PULLS.items()):
        entries = {gap: noisy[name, gap] for gap in GAPS}
        known = [gap for gap in GAPS if np.isfinite(entries[gap].quartiles[1])]
        low, middle, high = np.array([entries[gap].quartiles for gap in known]).reshape(-1, 3).T
        bars = [middle - low, np.minimum(high, limit) - middle]
        left.errorbar(known, middle, yerr=bars, mfc="w", label=label, **STYLES[style])
        for gap, entry in entries.items():
            if not entry.ended.all():
                text = f"{entry.share}\nended"
                left.annotate(text, (gap, 1.4 * limit), ha="center", va="bottom", fontsize=8)
            if gap not in known:
                left.plot(gap, limit, marker="^", color=COLORS[style], ms=8)
    left.plot(GAPS, list(law.values()), "k:", lw=1.2, label=r"$2\,\beta\,T^*$")
    left.axhline(limit, color="k", lw=0.8, ls=":")
    left.set(ylabel="queries until the stop (median, quartiles)")
    left.legend(loc="lower left", fontsize=9)
    for style, (m, found) in enumerate(reads.items()):
        right.plot(found.gaps, 1 + found.excess / (2 * m), label=f"m = {m}", **marks(style, ms=4))
    right.axhline(1, color="k", lw=0.8, ls=":")
    right.set(ylabel="queries / (2 m), means of blocks")
    right.legend(fontsize=9)
    for axes, title in ((left, "noisy distances"), (right, "dimension sampling: the second of ten images")):
        axes.set(xscale="log", yscale="log", xlabel="gap to the second best")
        axes.set_title(title, fontsize=11)
    ticks(left, GAPS)
    left.set(xlim=(GAPS[-1] / 1.3, GAPS[0] * 1.3), ylim=(None, 6 * limit))
