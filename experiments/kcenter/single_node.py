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
from experiments.kcenter.noisy import ALPHA, K1, expected, times
from experiments.report import Claim, Columns, Report, joined, listed, number
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Algorithm, Environment, Outcome, Status, kcenter
from jaxbandits.kcenter import Lil, ds_ucb, greedy, ns_ts
from jaxbandits.kcenter._samples import mean

NOISE_SCALE = 0.1
NODES = 4  # of the noisy instances, the first center among them
BEST = 1
GAPS = (0.4, 0.2, 0.1, 0.05, 0.025)
LIMIT, QUICK_LIMIT = 1_000_000, 50_000  # rounds
SIZE, IMAGES = 10, 400  # nodes of an instance of images; images
DIMENSIONS, QUICK_DIMENSIONS = (256, 1024, 4096, 12288), (256, 1024)
RADIUS_SCALE = 0.1
PULLS = {"pair": "a pair (NS-TS)", "leader": "the leader alone"}


class Noisy(NamedTuple):
    """The runs at one gap."""

    ended: np.ndarray  # bool (runs,)
    low: float  # quartiles of the queries, infinite where so many did not end
    median: float
    high: float
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


Entries = dict[str, dict[float, Noisy]]  # how is pulled -> gap -> the runs


def run(options: Settings) -> Report:
    seeds = options.seeds or (10 if options.quick else 40)
    limit = QUICK_LIMIT if options.quick else LIMIT
    pulled = {name: noisy_runs(name, limit, seeds, options) for name in PULLS}
    noisy = {
        name: dict(zip(GAPS, map(noisy_of, runs.by_value(columns, "row").values()), strict=True))
        for name, columns in pulled.items()
    }
    law = {gap: expected(times(table(gap), greedy(table(gap), k=2), NOISE_SCALE), NODES)[0] for gap in GAPS}

    images, rows = runs.images(options, IMAGES), runs.blocks(SIZE, IMAGES // SIZE)
    order = np.random.default_rng(0).permutation(images.points.shape[1])
    rule = partial(ds_ucb, delta=runs.DELTA, interval=Lil(RADIUS_SCALE))
    read, reads = {}, {}
    for m in QUICK_DIMENSIONS if options.quick else DIMENSIONS:
        thinned = runs.as_images(np.ascontiguousarray(images.points[:, order[:m]]))
        shared = {"k": 2, "options": options, "seeds": max(seeds // 4, 1)}
        read[f"m = {m}"] = runs.image_runs(f"kcenter single node: m = {m}", rule, thinned, rows, **shared)
        reads[m] = read_of(read[f"m = {m}"], thinned, rows)
    return Report(
        f"The leader alone: with noisy distances, and with {images.label}",
        [],
        [*noisy_claims(noisy, limit), *read_claims(reads)],
        joined(pulled | read, "sweep"),
        partial(draw, noisy=noisy, law=law, reads=reads, limit=limit),
        notes=(
            "Queries of the best and of its most queried rival are medians over all runs, and the width is that of "
            "the best's interval after so many. The law of a pair is 2 beta T*. Of images the median and, in "
            f"brackets, the range over {len(rows)} blocks of {SIZE}; their law: queries until the radius is below a "
            "rival's gap, summed over the rivals.",
            "The leader alone does end where the gap is large: a query moves a rival's upper bound in steps of about "
            "sqrt(variance) over its queries, and once such a step takes it below the leader's lower bound, which "
            "comes as near to its upper bound as you like, the stage is over. Small gaps mean many queries of the "
            "rivals and hence small steps, and an interval of that width takes the square of that many queries. With "
            "dimension sampling a stage may end so before its 2 m queries, where m is large.",
        ),
        grid=grid(noisy, limit, law, reads),
    )


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
    quartiles = np.quantile(np.where(ended, columns["pulls"], np.inf), (0.25, 0.5, 0.75), method="higher")
    best = float(np.median(counts[:, BEST]))
    rival = float(np.median(np.delete(counts, (0, BEST), axis=1).max(axis=1)))
    level = (np.log(K1 * NODES**2 / runs.DELTA) + ALPHA * np.log(best)) / best
    return Noisy(ended, *quartiles, best, rival, float(2 * NOISE_SCALE * np.sqrt(2 * level)))


def read_of(columns: Columns, images: runs.Images, rows: np.ndarray) -> Read:
    m, distances = images.points.shape[1], images.distances
    from_first = np.sort([distances[row[0], row] for row in rows])  # to itself, to the rivals, to the best
    gaps = from_first[:, -1:] - from_first[:, 1:-1]
    stopped = runs.chosen(columns, columns["status"] == Status.STOPPED)
    means = [block["pulls"].mean() for block in runs.by_value(stopped, "instance").values()]
    return Read(stopped["pulls"] / (2 * m), gaps.min(axis=1), rivals(gaps, m), np.array(means) - 2 * m)


def rivals(gaps: np.ndarray, m: int) -> np.ndarray:
    """Queries until every rival's upper bound is below the best distance, were its mean exact; 2 m if m do not do."""
    t = np.arange(1, m + 1)
    radius = np.sqrt(RADIUS_SCALE * np.log1p((1 + np.log(t)) * SIZE / runs.DELTA) / t)
    wide = np.searchsorted(-radius, -gaps, side="right")  # how many of the radii are no less than the gap
    return np.where(wide < m, wide + 1, 2 * m).sum(axis=1)


def noisy_claims(noisy: Entries, limit: int) -> list[Claim]:
    pairs, alone = noisy["pair"], noisy["leader"]
    ended = [", ".join(f"{entry.share} (gap {gap})" for gap, entry in each.items()) for each in (pairs, alone)]

    def factor(gap: float) -> str:
        more = "> " if np.isinf(alone[gap].median) else ""
        return f"{more}{number(min(alone[gap].median, limit) / pairs[gap].median)} (gap {gap})"

    return [
        Claim("with a pair every run ends", ended[0], all(pair.ended.all() for pair in pairs.values())),
        Claim(
            f"the leader alone never ends, within {limit:,} queries",
            f"ended: {ended[1]}",
            not any(entry.ended.any() for entry in alone.values()),
        ),
        Claim(
            "the leader alone takes at least ten times as many queries as a pair, in the median",
            ", ".join(map(factor, GAPS)),
            all(alone[gap].median >= 10 * pairs[gap].median for gap in GAPS),
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


def grid(noisy: Entries, limit: int, law: dict[float, float], reads: dict[int, Read]) -> list[dict[str, str]]:
    def whole(value: float) -> str:
        return number(round(value))

    rows = [
        {
            "": f"noisy, {name}, gap {gap}",
            "ended": entry.share,
            "median queries": number(entry.median) if np.isfinite(entry.median) else f"> {number(limit)}",
            "law": whole(law[gap]) if name == "pair" else "",
            "of the best": number(entry.best),
            "of a rival": number(entry.rival),
            "width": f"{entry.width:.4f}",
        }
        for name, entries in noisy.items()
        for gap, entry in entries.items()
    ]
    for m, found in reads.items():
        row = {"": f"images, m = {m}, queries - {2 * m:,}", "ended": str(len(found.over))}
        row |= {"median queries": runs.spread(found.excess, whole), "law": whole(np.median(found.law))}
        rows.append(dict.fromkeys(rows[0], "") | row)
    return rows


def draw(figure: Any, *, noisy: Entries, law: dict[float, float], reads: dict[int, Read], limit: int) -> None:
    left, right = split(figure, (9.6, 4.6), 1, 2)
    for style, (name, label) in enumerate(PULLS.items()):
        known = [gap for gap in GAPS if np.isfinite(noisy[name][gap].median)]
        ended = [noisy[name][gap] for gap in known]
        bars = [[each.median - each.low for each in ended], [min(each.high, limit) - each.median for each in ended]]
        left.errorbar(known, [each.median for each in ended], yerr=bars, mfc="w", label=label, **STYLES[style])
        for gap, entry in noisy[name].items():
            if not entry.ended.all():
                text = f"{entry.share}\nended"
                left.annotate(text, (gap, 1.4 * limit), ha="center", va="bottom", fontsize=8)
            if gap not in known:
                left.plot(gap, limit, marker="^", color=COLORS[style], ms=8)
    left.plot(GAPS, list(law.values()), "k:", lw=1.2, label=r"$2\,\beta\,T^*$")
    left.set(ylabel="queries until the stop (median, quartiles)", title="noisy distances")
    left.legend(loc="lower left", fontsize=9)
    for style, (m, found) in enumerate(reads.items()):
        right.plot(found.gaps, 1 + found.excess / (2 * m), label=f"m = {m}", **marks(style, ms=4))
    right.set(ylabel="queries / (2 m), means of blocks", title="dimension sampling: the second of ten images")
    right.legend(fontsize=9)
    for axes, end in ((left, limit), (right, 1)):
        axes.axhline(end, color="k", lw=0.8, ls=":")
        axes.set(xscale="log", yscale="log", xlabel="gap to the second best")
        axes.title.set_fontsize(11)
    ticks(left, GAPS)
    left.set(xlim=(GAPS[-1] / 1.3, GAPS[0] * 1.3), ylim=(None, 6 * limit))
