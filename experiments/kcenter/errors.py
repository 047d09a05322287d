"""Error rates of DS-UCB with the paper's radius, with the proved one, and with Bernoulli KL intervals.

The paper runs DS-UCB with radii sqrt(C log(1 + (1 + log t) / delta') / t), C = 0.1, which is no bound for rewards in
[0, 1]. Lemma 1 proves a radius some six times as wide. Here n = 20 points have m = 192 dimensions, k = 3. There are 20
instances of three kinds: points around the middle of the cube, each at a scale of its own (contrast), crops of
photographs, 8 x 8 x 3 (crops), and corners of the cube (binary), whose rewards have the largest variance, up to 1/4.
This is an extension of the paper.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments import study
from experiments.claims import FALSE_ALARM, allowed, errors
from experiments.figures import STYLES, legend_below, marks, split
from experiments.kcenter import common
from experiments.report import Claim, Columns, Report, plus_minus
from experiments.settings import Settings
from jaxbandits.engine.results.intervals import clopper_pearson
from jaxbandits.kcenter import KL, Lemma1, Lil, binary_rows, contrast_rows, ds_ucb, greedy, image_crops, pairwise_sums
from jaxbandits.kcenter._problem.images import IMAGE_LEVELS
from jaxbandits.kcenter._problem.points import BINARY_LEVELS

N, SIDE, K = 20, 8, 3
M = 3 * SIDE**2
INSTANCES, QUICK_INSTANCES = 20, 5
DELTAS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
KINDS = {
    "contrast": (partial(contrast_rows, N, M), None),
    "crops": (partial(image_crops, N, size=SIDE, augment=True), IMAGE_LEVELS),
    "binary": (partial(binary_rows, N, M), BINARY_LEVELS),
}
QUICK_KINDS = ("contrast", "binary")  # kinds whose rewards have the smallest and the largest variance
PAPER = "C = 0.1"
RULES = {PAPER: Lil(), "Lemma 1": Lemma1(), "KL": KL()}
RADIUS_SCALE = 0.1  # C
LEAP = {"leap": 1}  # dimensions drawn per round; with so few in all, arms get two to five queries in a row


Counts = dict[tuple[str, str], np.ndarray]  # (kind, rule) -> int (2, deltas): wrong answers, and runs that stopped


def run(options: Settings, *, deltas: tuple[float, ...] = DELTAS) -> Report:
    deltas = DELTAS[::3] if options.quick and deltas is DELTAS else deltas
    instances = QUICK_INSTANCES if options.quick else INSTANCES
    seeds = options.seeds or (20 if options.quick else 2000 // INSTANCES)
    names = QUICK_KINDS if options.quick else tuple(KINDS)
    shared = {"rows": common.blocks(N, instances), "k": K, "settings": {"delta": deltas}, "drawn": LEAP}
    shared |= {"options": options, "seeds": seeds}
    images, variances = {}, {}
    for kind, (make, levels) in ((name, KINDS[name]) for name in names):
        drawn = common.untied(make, K, instances)
        images[kind] = common.as_images(np.concatenate(drawn), kind, levels)
        variances[kind] = float(np.mean([decisive_variance(points / (levels or 1)) for points in drawn]))

    def sweep(kind: str, rule: str) -> Columns:
        factory = partial(ds_ucb, ties="lowest", interval=RULES[rule])  # A wrong leader may tie with another node.
        return common.image_runs(f"kcenter errors: {kind}, {rule}", factory, images[kind], **shared)

    cells = study.crossed({"kind": names, "rule": RULES, "delta": deltas}, sweep, split="delta")
    wrong = {key: errors([runs], "ordered") for key, runs in cells.cells.items()}
    counts = {name: np.transpose([wrong[*name, delta] for delta in deltas]) for name in cells.sweeps}
    shown = ", ".join(f"{variance:.3f} ({kind})" for kind, variance in variances.items())
    return Report(
        f"Error rates of DS-UCB, n = {N}, m = {M}, k = {K}",
        [],
        [study.stops(cells), *claims(counts, names, deltas)],
        study.columns(cells),
        partial(draw, counts=counts, variances=variances, deltas=np.array(deltas)),
        notes=(
            f"{instances * seeds:,} runs per row, equally many on each instance. A run is wrong if it stops with other "
            "centers than greedy's, or in another order. allowed: the share that a rule of error probability delta "
            f"exceeds with probability {FALSE_ALARM:.1%}.",
            f"The variance of a reward of the next center: {shown}; C / 2 = {RADIUS_SCALE / 2:g}. Where it is larger, "
            "the radius with C = 0.1 is too small, and errors fall more slowly than delta. An arm is known exactly "
            "after m samples, so few dimensions also mean few errors.",
        ),
        grid=[
            {
                "points, rule": f"{kind}, {rule}",
                "delta": str(delta),
                "queries": plus_minus(cells.lines[kind, rule, delta]),
                "wrong": f"{few} of {stopped}",
                "share (95 % interval)": "{:.2%} ({:.2%} to {:.2%})".format(
                    few / stopped, *clopper_pearson(few, stopped)
                ),
                "allowed": f"{allowed(stopped, delta):.0f}",
                "verdict": "BREAKS delta" if few > allowed(stopped, delta) else "keeps delta",
            }
            for (kind, rule, delta), (few, stopped) in wrong.items()
        ],
    )


def share(few: int, runs: int) -> str:
    """Formats a share with its 95 % interval."""
    return "{:.2%} ({:.2%} to {:.2%})".format(few / runs, *clopper_pearson(few, runs))


def decisive_variance(points: np.ndarray) -> float:
    """Computes the variance of rewards of the new center against its nearest center.

    It is the mean over the stages; points (n, m) lie in [0, 1].
    """
    centers = greedy(pairwise_sums(points), k=K).centers
    variances = []
    for p in range(1, K):
        rewards = np.square(points[centers[p]] - points[centers[:p]])
        variances.append(rewards[np.argmin(rewards.mean(axis=1))].var())
    return float(np.mean(variances))


def claims(counts: Counts, kinds: Sequence[str], deltas: Sequence[float]) -> list[Claim]:
    keeps = "{}: a share of at most delta of the answers is wrong, for every {}"
    breaks = {name: wrong > allowed(stopped, deltas) for name, (wrong, stopped) in counts.items()}
    claims = []
    for rule in (rule for rule in RULES if rule != PAPER):
        wrong, stopped = sum(counts[kind, rule].sum(axis=1) for kind in kinds)
        kept = not any(breaks[kind, rule].any() for kind in kinds)
        claims.append(Claim(keeps.format(rule, "kind and delta"), f"{wrong} of {stopped:,}", kept))
    for kind in kinds:
        wrong, stopped = counts[kind, PAPER]
        rates = ", ".join(f"{rate:.2%} at {delta}" for rate, delta in zip(wrong / stopped, deltas, strict=True))
        claims.append(Claim(keeps.format(f"{PAPER}, {kind}", "delta"), rates, not breaks[kind, PAPER].any()))
    most = breaks["binary", PAPER]
    statement = f"{PAPER} errs more often than delta at every delta where the rewards have the largest variance"
    return [*claims, Claim(statement, f"{most.sum()} of {len(most)} deltas on binary points", most.all())]


def draw(figure: Any, *, counts: Counts, variances: dict[str, float], deltas: np.ndarray) -> None:
    panels = split(figure, (10.2, 4.6), 1, len(variances), sharex=True, sharey=True)
    least = min(0.5 / stopped[0] for _, stopped in counts.values())
    for axes, (kind, variance) in zip(panels, variances.items(), strict=True):
        for style, rule in enumerate(RULES):
            wrong, stopped = counts[kind, rule]
            x, rates, erred = deltas * 1.06 ** (style - 1), wrong / stopped, wrong > 0
            low, high = clopper_pearson(wrong, stopped)
            bars = np.array([rates - np.maximum(low, 0.1 * rates), high - rates])
            axes.errorbar(x[erred], rates[erred], bars[:, erred], label=rule, mfc="w", **STYLES[style])
            axes.plot(x[~erred], np.full((~erred).sum(), least), **marks(style))
        axes.plot(deltas[[0, -1]], deltas[[0, -1]], "k-", lw=1, label="delta")
        axes.set(xscale="log", yscale="log", xlabel="delta", title=f"{kind}, variance {variance:.3f}")
        axes.invert_xaxis()
    panels[0].axhline(least, color="none")
    panels[0].set(ylabel="share of wrong answers (lowest: none seen)")
    legend_below(figure, ncols=4)
