"""Why two nodes are queried: DS-UCB's rule, which pulls the leader alone, with a limited and an unlimited number of
pulls per arm. The leader is the node of largest upper bound. Its rivals are pulled only while they lead, so their upper
bounds stay just below the leader's, above its distance. A stage ends once the leader's lower bound is above theirs: its
interval must become as narrow as a rival's last step, so where two nodes take t queries each, the leader alone takes
the order of t^3.

Noisy distances (Gaussian, variance 0.01; three candidates for a second center, at 0.5, 0.5 and 0.5 + gap): NS-TS, which
pulls the candidate of largest mean as well (a pair), and the leader alone, both with mix 0. Dimension sampling: DS-UCB
for the second center of ten images, of which m random dimensions are taken. After m queries an arm is read exactly, for
m more queries. A stage thus costs about 2 m plus the rivals' queries.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.claims import all_of, between
from experiments.figures import COLORS, STYLES, marks, split, ticks
from experiments.kcenter import common as runs
from experiments.kcenter.common import add_arguments as add_arguments
from experiments.kcenter.noisy import ALPHA, K1, expected, times
from experiments.report import Claim, Columns, Report, joined, listed, number
from experiments.settings import Settings
from jaxbandits import Algorithm, Decision, Outcome, Status
from jaxbandits.kcenter import Distances, Lil, ds_ucb, ns_ts

NOISE_SCALE = 0.1
NODES = 4  # nodes of the noisy instances, including the first center
BEST = 1
GAPS = (0.4, 0.2, 0.1, 0.05, 0.025)
LIMIT, QUICK_LIMIT = 1_000_000, 50_000  # rounds
SIZE, IMAGES = 10, 400  # nodes of an instance of images; images
DIMENSIONS, QUICK_DIMENSIONS = (256, 1024, 4096, 12288), (256, 1024)
RADIUS_SCALE = 0.1
PULLS = {"pair": "a pair (NS-TS)", "leader": "the leader alone"}


def leader_alone(problem: Distances, **settings: Any) -> Algorithm:
    """Builds `ns_ts` without its rule for pairs: it queries the node of largest upper bound alone."""
    algorithm = ns_ts(problem, **settings)

    def decide(key: jax.Array, state: Any) -> Decision:
        # After the first pass of a stage, the guess of the answer is the node of largest upper bound.
        leader = jnp.stack([state.query.guess, jnp.int32(problem.n)])
        node = jnp.where(state.stage.cursor < problem.n, state.query.node, leader)
        return algorithm.decide(key, state._replace(query=state.query._replace(node=node)))

    return algorithm._replace(decide=decide)


RULES = {"pair": ns_ts, "leader": leader_alone}


class Read(NamedTuple):
    """The runs with dimension sampling, for one m."""

    over: np.ndarray  # (runs,)  queries over 2 m
    gaps: np.ndarray  # (blocks,) gap to the second best
    law: np.ndarray  # (blocks,)  queries of the rivals
    excess: np.ndarray  # (blocks,)  mean queries beyond 2 m


Noisy = dict[tuple[str, float], Columns]  # (rule, gap) -> the runs


def run(options: Settings) -> Report:
    seeds = options.seeds or (10 if options.quick else 40)
    limit = QUICK_LIMIT if options.quick else LIMIT
    distances, instances = tables(), runs.blocks(NODES, len(GAPS))
    shared = {"k": 2, "noise_scale": NOISE_SCALE, "metrics": counts, "max_rounds": limit}
    shared |= {"options": options, "seeds": seeds}
    pulled, noisy = {}, {}
    for name in PULLS:
        rule = partial(RULES[name], mix=0.0)
        pulled[name] = runs.distance_runs(f"kcenter single node: {name}", rule, distances, instances, **shared)
        noisy |= {(name, GAPS[i]): columns for i, columns in runs.by_value(pulled[name], "instance").items()}
    stages = [times(*each, NOISE_SCALE) for each in runs.solved(distances, instances, 2)]
    law = {gap: expected(stage, NODES)[0] for gap, stage in zip(GAPS, stages, strict=True)}

    images, rows = runs.images(options.data, IMAGES), runs.blocks(SIZE, IMAGES // SIZE)
    order = np.random.default_rng(0).permutation(images.points.shape[1])
    rule = partial(ds_ucb, interval=Lil(RADIUS_SCALE))
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
            "Queries of the best node and of its most queried rival are medians over all runs. The width is that "
            "interval's width of the best node after its median queries. The law of a pair is 2 beta T*. For images, "
            f"entries are the median and, in brackets, the range over {len(rows)} blocks of {SIZE}. Their law is the "
            "number of queries until the radius is below a rival's gap, summed over the rivals.",
            "The leader alone ends if the gap is large. A query moves a rival's upper bound by about sqrt(variance) "
            "over its queries. The stage is over once such a step takes it below the leader's lower bound, which "
            "comes arbitrarily close to its upper bound. Small gaps mean many queries of the rivals and hence small "
            "steps, and an interval of that width takes the square of that number of queries. With dimension sampling "
            "and large m, a stage may end this way before its 2 m queries.",
        ),
        grid=grid(noisy, limit, law, reads),
    )


def tables() -> np.ndarray:
    """Builds the distances, with one instance per gap; from its node 0, node 1 is farther than all others."""
    distances = 0.5 * (1 - np.eye(NODES * len(GAPS)))
    first = NODES * np.arange(len(GAPS))
    distances[first, first + BEST] = distances[first + BEST, first] = 0.5 + np.array(GAPS)
    return distances


def counts(task: Any, outcome: Outcome) -> dict[str, jax.Array]:
    return {"counts": outcome.state.samples.counts[:, 0]}


def share(columns: Columns) -> str:
    """Counts the runs that stopped."""
    return f"{np.sum(columns['status'] == Status.STOPPED)} of {len(columns['status'])}"


def quartiles(columns: Columns) -> np.ndarray:
    """Computes quartiles of queries (3,), infinite where too many runs did not stop."""
    queries = np.where(columns["status"] == Status.STOPPED, columns["pulls"], np.inf)
    return np.quantile(queries, (0.25, 0.5, 0.75), method="higher")


def read_of(columns: Columns, images: runs.Images, rows: np.ndarray) -> Read:
    m, distances = images.points.shape[1], images.distances
    from_first = np.sort([distances[row[0], row] for row in rows])  # to itself, to the rivals, to the best
    gaps = from_first[:, -1:] - from_first[:, 1:-1]
    stopped = runs.stopped(columns)
    means = [block["pulls"].mean() for block in runs.by_value(stopped, "instance").values()]
    return Read(stopped["pulls"] / (2 * m), gaps.min(axis=1), rivals(gaps, m), np.array(means) - 2 * m)


def rivals(gaps: np.ndarray, m: int) -> np.ndarray:
    """Counts queries until every rival's upper bound, around its exact mean, is below the best distance; 2 m if m do
    not suffice.
    """
    t = np.arange(1, m + 1)
    radius = np.sqrt(RADIUS_SCALE * np.log1p((1 + np.log(t)) * SIZE / runs.DELTA) / t)
    wide = np.searchsorted(-radius, -gaps, side="right")  # number of radii that are not below the gap
    return np.where(wide < m, wide + 1, 2 * m).sum(axis=1)


def noisy_claims(noisy: Noisy, limit: int) -> list[Claim]:
    ended = {case: columns["status"] == Status.STOPPED for case, columns in noisy.items()}
    pairs, alone = ([ended[name, gap] for gap in GAPS] for name in PULLS)
    shares = [", ".join(f"{share(noisy[name, gap])} (gap {gap})" for gap in GAPS) for name in PULLS]
    few, many = (np.array([quartiles(noisy[name, gap])[1] for gap in GAPS]) for name in PULLS)
    factors = [("> " if np.isinf(b) else "") + number(min(b, limit) / a) for a, b in zip(few, many, strict=True)]
    return [
        Claim("with a pair every run ends", shares[0], np.all(pairs)),
        Claim(f"the leader alone never ends, within {limit:,} queries", f"ended: {shares[1]}", not np.any(alone)),
        Claim(
            "the leader alone takes at least ten times as many queries as a pair, in the median",
            ", ".join(f"{factor} (gap {gap})" for factor, gap in zip(factors, GAPS, strict=True)),
            np.all(many >= 10 * few),
        ),
    ]


def read_claims(reads: dict[int, Read]) -> list[Claim]:
    ratios = {f"m = {m}:": np.median(read.excess / read.law) for m, read in reads.items()}
    least = listed({f"m = {m}:": read.over.min() for m, read in reads.items()}, ".2f")
    over = np.concatenate([read.over for read in reads.values()])
    enough = all_of("with dimension sampling a stage takes at least 2 m queries", over >= 1)
    within = "queries beyond 2 m agree with the law of the rivals' bounds, within 30 % in the median"
    return [
        enough._replace(measured=f"{enough.measured}; smallest over 2 m at {least}"),
        between(within, ratios, 0.7, 1.3, ".2f"),
    ]


def grid(noisy: Noisy, limit: int, law: dict[float, float], reads: dict[int, Read]) -> list[dict[str, str]]:
    rows = []
    for (name, gap), columns in noisy.items():
        median, counts = quartiles(columns)[1], columns["counts"]
        best = np.median(counts[:, BEST])
        rival = np.median(np.delete(counts, (0, BEST), axis=1).max(axis=1))
        level = (np.log(K1 * NODES**2 / runs.DELTA) + ALPHA * np.log(best)) / best
        rows.append(
            {
                "": f"noisy, {name}, gap {gap}",
                "ended": share(columns),
                "median queries": number(median) if np.isfinite(median) else f"> {number(limit)}",
                "law": number(round(law[gap])) if name == "pair" else "",
                "of the best": number(best),
                "of a rival": number(rival),
                "width": f"{2 * NOISE_SCALE * np.sqrt(2 * level):.4f}",
            }
        )
    for m, read in reads.items():
        row = {"": f"images, m = {m}, queries - {2 * m:,}", "ended": str(len(read.over))}
        row["median queries"] = runs.spread(read.excess, lambda value: number(round(value)))
        row["law"] = number(round(np.median(read.law)))
        rows.append(dict.fromkeys(rows[0], "") | row)
    return rows


def draw(figure: Any, *, noisy: Noisy, law: dict[float, float], reads: dict[int, Read], limit: int) -> None:
    left, right = split(figure, (9.6, 4.6), 1, 2)
    for style, (name, label) in enumerate(PULLS.items()):
        queries = np.array([quartiles(noisy[name, gap]) for gap in GAPS])
        is_known = np.isfinite(queries[:, 1])
        low, median, high = np.minimum(queries[is_known], limit).T
        bars = [median - low, high - median]
        left.errorbar(np.array(GAPS)[is_known], median, yerr=bars, mfc="w", label=label, **STYLES[style])
        left.plot(np.array(GAPS)[~is_known], [limit] * sum(~is_known), "^", color=COLORS[style], ms=8)
        for gap in GAPS:
            columns = noisy[name, gap]
            if np.any(columns["status"] != Status.STOPPED):
                text = f"{share(columns)}\nended"
                left.annotate(text, (gap, 1.4 * limit), ha="center", va="bottom", fontsize=8)
    left.plot(GAPS, list(law.values()), "k:", lw=1.2, label=r"$2\,\beta\,T^*$")
    left.set(ylabel="queries until the stop (median, quartiles)", title="noisy distances")
    left.legend(loc="lower left", fontsize=9)
    for style, (m, queries) in enumerate(reads.items()):
        right.plot(queries.gaps, 1 + queries.excess / (2 * m), label=f"m = {m}", **marks(style, ms=4))
    right.set(ylabel="queries / (2 m), means of blocks", title="dimension sampling: the second of ten images")
    right.legend(fontsize=9)
    for axes, end in ((left, limit), (right, 1)):
        axes.axhline(end, color="k", lw=0.8, ls=":")
        axes.set(xscale="log", yscale="log", xlabel="gap to the second best")
        axes.title.set_fontsize(11)
    ticks(left, GAPS)
    left.set(xlim=(GAPS[-1] / 1.3, GAPS[0] * 1.3), ylim=(None, 6 * limit))
