"""Figure 3 of Xu, Honda, Sugiyama (2018): stopping time on real features, against the number of arms.

The paper's procedure (section 7.2, appendix A): the ridge fit of labels +1 and -1 is the truth theta, a pull of arm x
returns +1 with probability (1 + x.theta) / 2 and -1 otherwise, and arms are drawn until the best leads by 0.05. delta =
0.05, R = 2, S = ||theta||; XY-static with ridge 0.01. The paper's log (Yahoo! R6A) may not be redistributed:

  by default          handwritten digits x images, from scikit-learn (another of its data sets with --instance NAME)
  --instance yahoo_like   a synthetic stand-in of the log
  --r6a PATH          the log itself, plain or gzipped

The figure has no printed values; the text says "roughly five times" fewer pulls than XY-static, growing with K.
"""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments import study
from experiments.claims import between, errors_are_rare
from experiments.linear import common as runs
from experiments.linear.datasets import load_r6a, r6a_instance, real_features
from experiments.report import Claim, Line, Report, joined, listed, mean_se, means
from experiments.settings import Settings, whole
from experiments.simulate import simulate
from jaxbandits import linear

# The hardest runs are twenty times as long as most, so batches are narrow: a round of few lanes is short.
SHAPES: dict[str, Any] = {"LinGapE": {"max_rounds": 10**8, "lanes": 16}, "XY-static": {"max_rounds": 100_000}}
NOISE = 2.0  # the paper's R: it bounds the noise of a +-1 reward by 2, though 1 is its sub-Gaussian constant


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--instance",
        default="digits",
        choices=("digits", "diabetes", "wine", "breast_cancer", "yahoo_like"),
        help="source of the features (%(default)s)",
    )
    parser.add_argument("--r6a", metavar="PATH", help="the Yahoo! R6A log of 1 May 2009; overrides --instance")
    parser.add_argument("--instances", type=whole, help="instances of each K (default: 10, quick 2)")


def run(options: Settings) -> Report:
    sizes = (5, 10) if options.quick else (10, 20, 40)
    count = options.extra["instances"] or (2 if options.quick else 10)
    seeds = options.seeds or (4 if options.quick else 10)
    log = load_r6a(options.extra["r6a"]) if options.extra["r6a"] else None
    source = "r6a" if log else options.extra["instance"]

    def drawn(seed: int, K: int) -> linear.Instance:
        if log is not None:
            return r6a_instance(log, seed, K)
        return linear.yahoo_like(seed, K) if source == "yahoo_like" else real_features(source, seed, K)

    def adaptive(task, key):
        instance, norm = task
        rule = linear.lingape(instance.arms, delta=runs.DELTA, noise_scale=NOISE, norm_bound=norm)
        return rule, linear.environment(instance, rule, noise="sign")

    def static(task, key):
        instance, allocation = task
        rule = linear.xy_static(instance.arms, allocation, delta=runs.DELTA, noise_scale=NOISE, ridge=0.01)
        return rule, linear.environment(instance, rule, noise="sign")

    def judged(task, outcome):
        return {"right": linear.is_right(task[0], outcome.answer)}

    shared: dict[str, Any] = {"options": options, "seeds": seeds, "metrics": judged}
    parts, means_of = {}, {}
    for K in sizes:
        full = [drawn(seed, K) for seed in range(count)]
        reduced = [linear.reduce_instance(instance) for instance in full]
        bounds = np.array([runs.bound(instance) for instance in reduced])
        # The hardest instances come first, so that no long run begins near the end.
        order = np.argsort(-bounds)
        norms = jnp.stack([jnp.linalg.norm(full[n].theta) for n in order])
        allocations = jnp.stack([linear.xy_allocation(reduced[n].arms).allocation for n in order])
        instances, bounds = stacked([reduced[n] for n in order]), bounds[order]
        for name, build, known in (("LinGapE", adaptive, norms), ("XY-static", static, allocations)):
            heading = f"figure 3, {source}, K = {K}: {name}"
            sweep = simulate(heading, build, (instances, known), **shared, **SHAPES[name])
            row = sweep.columns["row"]
            means_of[name, K] = across_instances(sweep.summary(), bounds)
            parts[f"{name}, K = {K}"] = sweep.columns | {"K": np.full(len(row), K), "bound": bounds[row]}

    cells = study.collected({"rule": SHAPES, "K": sizes}, means_of, name="{rule}, K = {K}")
    lingape, statics = map(means, study.by(cells, "rule").values())
    ratio = statics / lingape
    shown = {f"K = {K}:": r for K, r in zip(sizes, ratio, strict=True)}
    labels = {"xlabel": "arms K", "title": f"Figure 3: {source}, mean of {count} instances"}
    return Report(
        f"Figure 3 of Xu, Honda, Sugiyama (2018): pulls against the number of arms, {source}",
        list(cells.lines.values()),
        [
            between("LinGapE needs roughly five times fewer pulls (3 to 10 times)", shown, 3, 10, ".2f"),
            Claim("the advantage grows with K", listed(shown, ".2f"), np.all(np.diff(ratio) > 0)),
            errors_are_rare(parts.values(), runs.DELTA),
        ],
        joined(parts, label="run"),
        study.figure(cells, "K", x_ticks=True, yscale="log", **labels),
        notes=(
            f"Means and standard errors over {count} instances of {seeds} runs each: instances differ more than runs. "
            "T* kl is for Gaussian noise of variance 1, which a +-1 reward approaches at x.theta = 0.",
        ),
    )


def stacked(instances: list[linear.Instance]) -> linear.Instance:
    """Stacks instances of different ranks into one table of tasks; a coordinate that is always zero changes nothing."""
    rank = max(instance.theta.size for instance in instances)

    def widened(x: jax.Array) -> jax.Array:
        return x if x.ndim == 0 else jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, rank - x.shape[-1])])

    return jax.tree.map(lambda *leaves: jnp.stack([widened(x) for x in leaves]), *instances)


def across_instances(summary: Mapping[str, np.ndarray], bounds: np.ndarray) -> Line:
    """Returns the mean over instances of the mean over runs, with the standard error over instances."""
    mean, se = mean_se(summary["pulls_mean"])
    runs, censored, failed = (int(summary[name].sum()) for name in ("runs", "censored", "failed"))
    return Line("", float(mean), float(se), runs=runs, censored=censored, failed=failed, bound=float(np.mean(bounds)))
