"""Figure 3 of Kuroki et al. (2020): pulls against the gap, on synthetic instances.

n = 10 arms, super-arms of k = 5, gap = 0.1 .. 1.0; a new instance and a new support in every realization, the supports
the same for all gaps. Every arm has noise N(0, 1), the learner tracks the G-optimal shares on 50 random super-arms,
sigma = k = 5, delta = 0.05, epsilon = 0.5. The paper leaves sigma, epsilon and the support open. The figure has no
printed values, so the claims check the text about it.
"""

from functools import partial

import numpy as np

from experiments import study
from experiments.claims import all_of, between, errors_are_rare
from experiments.fullbandit.common import DELTA, EPSILON
from experiments.fullbandit.synthetic import ARMS, SIZE, g_design, rule_runs, tasks
from experiments.report import Claim, Report, listed, means
from experiments.settings import Settings
from jaxbandits import Status, fullbandit

GAPS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
ROWS = 50  # super-arms of a support
RULES = {
    "SAQM": fullbandit.saqm,
    "ICB, ellipsoid": partial(fullbandit.icb, radius="ellipsoid"),
    "SA-FOA": fullbandit.sa_foa,
    "Exhaustive": fullbandit.exhaustive,
    "ICB, Lemma 1": partial(fullbandit.icb, radius="lemma1"),
}


def run(options: Settings, *, gaps: tuple[float, ...] = GAPS) -> Report:
    realizations = options.seeds or (10 if options.quick else 100)
    table = tasks(gaps, realizations, lambda r: g_design(r, ROWS))
    parts = {name: rule_runs(f"figure 3: {name}", rule, table, options) for name, rule in RULES.items()}
    cells = study.collected({"rule": RULES, "gap": gaps}, parts, split="gap", name="{rule}, gap {gap}")
    runs = study.columns(cells)
    pulls = {name: means(lines) for name, lines in study.by(cells, "rule").items()}
    ratios = {name: pulls[name] / pulls["Exhaustive"] for name in RULES if name != "Exhaustive"}
    widths = pulls["ICB, ellipsoid"] / pulls["ICB, Lemma 1"]
    # SAQM's width falls as C_t / sqrt(t), and it stops once the width is the gap plus epsilon.
    scaled = pulls["SAQM"] * (np.array(gaps) + EPSILON) ** 2
    scaled /= np.asarray(fullbandit.ellipsoid_radius(pulls["SAQM"], ARMS, SIZE, DELTA)) ** 2
    scaled /= scaled.mean()
    others = np.concatenate(list(ratios.values()))
    claims = [
        Claim(
            "all fall as the gap grows",
            "from the first gap to the last " + ranges({name: p[:1] / p[-1:] for name, p in pulls.items()}),
            all(np.all(np.diff(p) < 0) for p in pulls.values()),
        ),
        Claim(
            "all take about as many pulls as Exhaustive (within a factor of 2)",
            ranges(ratios),
            np.all((others > 1 / 2) & (others < 2)),
        ),
        all_of("every answer is the best super-arm", runs["best"][runs["status"] == Status.STOPPED]),
        errors_are_rare([runs], DELTA, right="good"),
        between("SAQM takes 7.5 to 8.5 times the pulls of Exhaustive", ratios["SAQM"], 7.5, 8.5, ".2f"),
        Claim(
            "SA-FOA takes more pulls than Exhaustive up to gap 0.2, fewer from 0.4 on",
            listed(ratios["SA-FOA"], ".2f"),
            np.array_equal(ratios["SA-FOA"] < 1, np.array(gaps) > 0.3),
        ),
        between("ICB takes 4.7 to 5.3 times more pulls with the ellipsoid than with Lemma 1", widths, 4.7, 5.3, ".2f"),
        between("SAQM's pulls are C_t^2 / (gap + epsilon)^2 up to a constant (within 15 %)", scaled, 0.85, 1.15, ".2f"),
    ]
    return study.report(
        "Figure 3 of Kuroki et al. (2020): pulls against the gap",
        cells,
        claims,
        draw=study.figure(
            cells,
            "gap",
            x_ticks=True,
            legend=3,
            yscale="log",
            xlabel="gap between arms k and k + 1",
            title=f"Figure 3: n = {ARMS}, k = {SIZE}, mean of {realizations} realizations",
        ),
        notes=(
            "The paper calls its algorithms comparable to Exhaustive. With one sigma for all they are not: the width "
            "of SAQM is the sum of two norms of super-arms, the width of Exhaustive the norm of a difference. ICB "
            "beats it only with the radius of Lemma 1, which has log n instead of log C(n, k) and half the constant.",
        ),
        grid=study.across(cells, "rule", more=lambda gap: {"gap": str(gap), "runs": str(realizations)}),
    )


def ranges(ratios: dict[str, np.ndarray]) -> str:
    """Formats the smallest and the largest ratio of each, once if they are equal."""
    spans = {name: dict.fromkeys(f"{x:.2g}" for x in (each.min(), each.max())) for name, each in ratios.items()}
    return ", ".join(f"{name} {' to '.join(span)} times" for name, span in spans.items())
