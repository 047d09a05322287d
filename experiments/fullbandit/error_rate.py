"""Error rates of over-confident rules: sigma is scaled down until they err.

At their own sigma the rules do not err in any feasible number of runs, so their error rate says nothing. Here n = 6
arms with means 0 .. 0.5 in steps of 0.1, super-arms of k = 2, all 15 of them in equal shares, noise N(0, 1) of every
arm, delta = 0.05, epsilon = 0.01; sigma = k = 2 times 1, 1/2 .. 1/32. This tests the counting of errors, and shows how
conservative the rules are.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.claims import above, every_run_stops, never_falls
from experiments.figures import curve, curves, split, ticks
from experiments.fullbandit.common import DELTA
from experiments.report import Claim, Report, joined, lines_by, listed, means, number, two_digits
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Outcome, fullbandit
from jaxbandits.base import Algorithm, Environment
from jaxbandits.engine.results.intervals import clopper_pearson

THETA = (0.2, 0.5, 0.0, 0.4, 0.1, 0.3)
SIZE = 2
EPSILON = 0.01  # epsilon, below the smallest difference of two super-arms
SCALES = tuple(2.0**-j for j in range(6))  # noise scales of an arm that the learner assumes; sigma is k times as large
RULES = {
    "SAQM": fullbandit.saqm,
    "Exhaustive": fullbandit.exhaustive,
    "ICB, Lemma 1": partial(fullbandit.icb, radius="lemma1"),
}


def run(options: Settings, *, epsilon: float = EPSILON) -> Report:
    seeds = options.seeds or (500 if options.quick else 10_000)
    design = fullbandit.make_design(fullbandit.all_superarms(len(THETA), SIZE), SIZE)
    instance = fullbandit.Instance(jnp.asarray(THETA), SIZE)

    def judge(noise_scale: jax.Array, outcome: Outcome) -> dict[str, jax.Array]:
        return {"good": fullbandit.is_right(instance, outcome.answer, epsilon)}

    settings = {"options": options, "seeds": seeds, "max_rounds": 100_000, "metrics": judge, "chunk": 64}
    sigmas = SIZE * np.array(SCALES)
    parts, pulls, errors = {}, {}, {}
    for name, factory in RULES.items():
        rule = partial(factory, design, delta=DELTA, epsilon=epsilon)

        def build(scale: jax.Array, key: jax.Array, rule: Any = rule) -> tuple[Algorithm, Environment]:
            algorithm = rule(noise_scale=scale)
            return algorithm, fullbandit.environment(instance, algorithm)

        columns = simulate(f"error rate: {name}", build, jnp.asarray(SCALES), **settings).columns
        parts[name] = columns | {"wrong": ~columns["good"]}
        at = [f"{name}, sigma = {sigma:g}" for sigma in sigmas]
        pulls[name] = lines_by([f"{where}, pulls" for where in at], columns)
        errors[name] = lines_by([f"{where}, errors" for where in at], parts[name], values="wrong")
    rates = {name: means(lines) for name, lines in errors.items()}
    exponents = {name: -np.diff(np.log2(means(lines)))[rates[name][1:] <= DELTA] for name, lines in pulls.items()}
    first, most = ({name: values[n] for name, values in rates.items()} for n in (0, -1))

    grid = []
    for row, sigma in enumerate(sigmas):
        grid.append({"sigma": f"{sigma:g}"})
        for name in RULES:
            line, rate = pulls[name][row], rates[name][row]
            low, high = clopper_pearson(round(rate * seeds), seeds)
            grid[row][f"{name}, pulls"] = f"{number(round(line.ours))} +- {number(two_digits(line.se))}"
            grid[row][f"{name}, wrong"] = f"{rate:.2%} ({low:.2%}, {high:.2%})"

    def draw(figure) -> None:
        left, right = split(figure, (9.6, 4.4), 1, 2, sharex=True)
        curves(left, sigmas, pulls, yscale="log", ylabel="pulls until the stop", title="Pulls")
        for style, name in enumerate(RULES):
            erred = np.flatnonzero(rates[name] > 0)
            curve(right, sigmas[erred], [errors[name][row] for row in erred], name, style)
        right.axhline(DELTA, color="k", lw=1)
        right.text(sigmas[0], DELTA, "delta", ha="right", va="bottom")
        right.set(yscale="log", ylabel="share of wrong answers", title="Errors (none seen: not drawn)")
        for axes in (left, right):
            axes.set(xscale="log", xlabel="sigma (2 would be right)")
            ticks(axes, sigmas, [f"{SIZE}" if s == 1 else f"{SIZE}/{1 / s:.0f}" for s in SCALES])
        left.legend()

    return Report(
        "Error rates of over-confident rules, n = 6, k = 2",
        [line for name in RULES for line in (*pulls[name], *errors[name])],
        [
            every_run_stops(parts.values()),
            Claim(
                "no error at the full sigma",
                f"{listed(first, '.2%')}; up to {clopper_pearson(0, seeds)[1]:.2%} is possible",
                not any(first.values()),
            ),
            Claim(
                "the error rate rises as sigma falls",
                listed({f"{name} to": rate for name, rate in most.items()}, ".1%"),
                all(never_falls(values) and values[-1] > 0 for values in rates.values()),
            ),
            above(f"at 1/32 of sigma every rule errs more often than delta = {DELTA}", most, DELTA, ".1%"),
            Claim(
                "pulls fall about as sigma^2 (exponents 1.8 to 2.6) until errors are more frequent than delta",
                "; ".join(f"{name} {listed(values, '.2f')}" for name, values in exponents.items()),
                all(np.all((values > 1.8) & (values < 2.6)) for values in exponents.values()),
            ),
        ],
        joined(parts),
        draw,
        notes=(
            "An answer is wrong if it loses more than epsilon. In brackets the 95 % interval of Clopper and Pearson. "
            f"{seeds:,} runs of each. Where noise alone can carry a rule over its threshold, pulls fall faster than "
            "sigma^2, down to the few before the first test.",
        ),
        grid=grid,
    )
