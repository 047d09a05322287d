"""Error rates of over-confident rules: sigma is scaled down until they err.

At their own sigma the rules never err in any number of runs that one could wait for, so their error rate says nothing.
Here n = 6 arms with means 0 .. 0.5 in steps of 0.1, super-arms of k = 2, all 15 of them in equal shares, noise N(0, 1)
of every arm, delta = 0.05, epsilon = 0.01; sigma = k = 2 times 1, 1/2 .. 1/32. This tests the counting of errors, and
shows how much confidence is to spare.
"""

from argparse import Namespace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import beta

from experiments._fullbandit import DELTA
from experiments._simulate import simulate
from experiments.report import Claim, Line, Report, curve, joined, line, number
from jaxbandits import Outcome, Status, fullbandit

THETA = (0.2, 0.5, 0.0, 0.4, 0.1, 0.3)
SIZE = 2
EPSILON = 0.01  # less than any two super-arms differ by
SCALES = tuple(2.0**-j for j in range(6))  # of an arm's noise, as the learner is told it; sigma is k times that
RULES = {
    "SAQM": fullbandit.saqm,
    "Exhaustive": fullbandit.exhaustive,
    "ICB, Lemma 1": partial(fullbandit.icb, radius="lemma1"),
}


def run(options: Namespace) -> Report:
    seeds = options.seeds or (500 if options.quick else 10_000)
    design = fullbandit.make_design(fullbandit.all_superarms(len(THETA), SIZE), SIZE)
    instance = fullbandit.Instance(jnp.asarray(THETA), SIZE)

    def judge(noise_scale: jax.Array, outcome: Outcome) -> dict[str, jax.Array]:
        return {"good": fullbandit.is_right(instance, outcome.answer, EPSILON)}

    parts = {
        name: simulate(
            f"error rate: {name}",
            lambda noise_scale, key, rule=rule: (
                rule(design, delta=DELTA, epsilon=EPSILON, noise_scale=noise_scale),
                fullbandit.environment(instance, design),
            ),
            jnp.asarray(SCALES),
            options=options,
            seeds=seeds,
            max_rounds=100_000,
            metrics=judge,
            chunk=64,
        ).columns
        for name, rule in RULES.items()
    }
    pulls: dict[str, list[Line]] = {}
    errors: dict[str, list[Line]] = {}
    for name, columns in parts.items():
        by_scale = [columns["row"] == row for row in range(len(SCALES))]
        labels = [f"{name}, sigma = {SIZE * scale:g}" for scale in SCALES]
        pulls[name] = [
            line(f"{label}, pulls", columns["pulls"][chosen], status=columns["status"][chosen])
            for label, chosen in zip(labels, by_scale, strict=True)
        ]
        errors[name] = [
            line(f"{label}, errors", ~columns["good"][chosen], status=columns["status"][chosen])
            for label, chosen in zip(labels, by_scale, strict=True)
        ]
    rates = {name: np.array([x.ours for x in lines]) for name, lines in errors.items()}
    exponents = {
        name: -np.diff(np.log2([x.ours for x in lines]))[rates[name][1:] <= DELTA] for name, lines in pulls.items()
    }
    stopped = all(np.all(columns["status"] == Status.STOPPED) for columns in parts.values())
    claims = [
        Claim("every run stops", f"{sum(len(columns['row']) for columns in parts.values()):,} runs", stopped),
        Claim(
            "no error at the full sigma",
            ", ".join(f"{name} {values[0]:.2%}" for name, values in rates.items())
            + f"; up to {upper(0, seeds):.2%} is possible",
            all(values[0] == 0 for values in rates.values()),
        ),
        Claim(
            "the error rate rises as sigma falls",
            ", ".join(f"{name} to {values[-1]:.1%}" for name, values in rates.items()),
            all(np.all(np.diff(values) >= 0) and values[-1] > 0 for values in rates.values()),
        ),
        Claim(
            f"at 1/32 of sigma every rule errs more often than delta = {DELTA}",
            ", ".join(f"{name} {values[-1]:.1%}" for name, values in rates.items()),
            all(values[-1] > DELTA for values in rates.values()),
        ),
        Claim(
            "pulls fall about as sigma^2 (exponents 1.8 to 2.6) until errors are more frequent than delta",
            "; ".join(f"{name} " + ", ".join(f"{x:.2f}" for x in values) for name, values in exponents.items()),
            all(np.all((values > 1.8) & (values < 2.6)) for values in exponents.values()),
        ),
    ]

    def draw(figure) -> None:
        figure.set_size_inches(9.6, 4.4)
        left, right = figure.subplots(1, 2, sharex=True)
        sigmas = SIZE * np.array(SCALES)
        for style, name in enumerate(RULES):
            curve(left, sigmas, pulls[name], name, style)
            erred = rates[name] > 0
            shown = [x for x, is_shown in zip(errors[name], erred, strict=True) if is_shown]
            curve(right, sigmas[erred], shown, name, style)
        right.axhline(DELTA, color="k", lw=1)
        right.text(sigmas[0], DELTA, "delta", ha="right", va="bottom")
        left.set(yscale="log", ylabel="pulls until the stop", title="Pulls")
        right.set(yscale="log", ylabel="share of wrong answers", title="Errors (none seen: not drawn)")
        for axes in (left, right):
            axes.set(xscale="log", xlabel="sigma (2 would be right)")
            axes.set_xticks(sigmas, [f"{SIZE}" if s == 1 else f"{SIZE}/{1 / s:.0f}" for s in SCALES])
            axes.minorticks_off()
        left.legend()

    return Report(
        "Error rates of over-confident rules, n = 6, k = 2",
        [line for name in RULES for line in (*pulls[name], *errors[name])],
        claims,
        joined(parts),
        draw,
        notes=(
            "An answer is wrong if it loses more than epsilon. In brackets the 95 % interval of Clopper and Pearson. "
            f"{seeds:,} runs of each. Where noise alone can carry a rule over its threshold, pulls fall faster than "
            "sigma^2, down to the few that come before the first test.",
        ),
        grid=(
            ("sigma", *(f"{name}, {what}" for name in RULES for what in ("pulls", "wrong"))),
            [
                (
                    f"{SIZE * scale:g}",
                    *(
                        cell
                        for name in RULES
                        for cell in (
                            f"{number(round(pulls[name][row].ours))} +- {number(float(f'{pulls[name][row].se:.2g}'))}",
                            share(round(rates[name][row] * seeds), seeds),
                        )
                    ),
                )
                for row, scale in enumerate(SCALES)
            ],
        ),
    )


def share(errors: int, runs: int) -> str:
    return f"{errors / runs:.2%} ({lower(errors, runs):.2%}, {upper(errors, runs):.2%})"


def lower(errors: int, runs: int) -> float:
    return float(beta.ppf(0.025, errors, runs - errors + 1)) if errors else 0.0


def upper(errors: int, runs: int) -> float:
    return float(beta.ppf(0.975, errors + 1, runs - errors)) if errors < runs else 1.0
