"""Good arms: pulls until an arm is known to lie above a level, or none, and until all of them are known.

Kano et al.'s (2019) three settings of Bernoulli arms, delta = .05: pulls at each good arm that is put out, and until
every arm has its label, beside a public record of 1000 runs. Then one good arm is sought, delta = .1, where several
arms, one arm and no arm are good.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from experiments import study
from experiments.claims import answers_are_right
from experiments.figures import STYLES, curve, points, side_by_side, split
from experiments.mab import common, questions
from experiments.mab.questions import Asked
from experiments.papers import printed
from experiments.report import (
    STANDARD_ERRORS,
    Claim,
    Columns,
    Line,
    Report,
    joined,
    line,
    listed,
    means,
    number,
    plus_minus,
    verdict,
)
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, mab
from jaxbandits.base import Algorithm, Outcome
from jaxbandits.numerics import thresholds

ALL = {  # means and level
    "setting 1": ((0.1, 0.1, 0.1, 0.35, 0.45, 0.55, 0.65, 0.9, 0.9, 0.9), 0.5),
    "setting 2": ((0.1, 0.2, 0.3, 0.4, 0.5, 0.6), 0.35),
    "setting 3": ((*[0.55] * 3, *[0.45] * 7), 0.5),
}
BY_LABELS = {"HDoC": mab.hdoc, "LUCB-G": mab.lucb_g, "APT-G": mab.apt_g}
DELTA = 0.05  # probability of error in the three settings
RECORD_RUNS = 1000
ONE_MORE = 1.0  # pulls that the public record counts more
MOST = 5  # good arms of a setting

ONE = {
    "several are good": questions.SEVERAL,
    "one is good": Asked(mab.gaussian, (0.6, -0.1, -0.3, -0.3), mab.GoodArm(0.0)),
    "none is good": Asked(mab.bernoulli, (0.45, 0.4, 0.3), mab.GoodArm(0.5)),
}
EXAMPLES = {  # means and standard errors of NumPy programs, 1000 runs
    ("several are good", "HDoC"): (113.9, 2.0),
    ("several are good", "LUCB-G"): (122.9, 2.1),
    ("several are good", "APT-G"): (3025.1, 36.1),
    ("several are good", "EB-TC"): (57.2, 1.9),
    ("several are good", "APGAI"): (57.2, 1.9),
    ("several are good", "TaS"): (59.2, 1.2),
    ("several are good", "TaS, sticky"): (52.4, 0.9),
    ("none is good", "HDoC"): (5229.1, 47.8),
    ("none is good", "LUCB-G"): (5229.1, 47.8),
    ("none is good", "APT-G"): (5229.1, 47.8),
    ("none is good", "EB-TC"): (1270.2, 21.3),
    ("none is good", "APGAI"): (1270.2, 21.3),
    ("none is good", "TaS"): (1574.4, 24.6),
    ("none is good", "TaS, sticky"): (2979.3, 57.0),
}

Outputs = Mapping[study.Key, Sequence[Line]]  # pulls at each good arm and at the end, by setting and rule


def run(options: Settings) -> Report:
    seeds = options.seeds or (60 if options.quick else 2000)
    settings = study.crossed({"instance": ALL, "rule": BY_LABELS}, partial(all_arms, options=options, seeds=seeds))
    outputs = {key: lines_of(key, columns) for key, columns in settings.cells.items()}

    def sweep(instance: str, rule: str) -> Results:
        heading, asked = f"mab questions good arm, {instance}: {rule}", ONE[instance]
        return questions.runs(heading, asked, rules(asked)[rule], delta=common.DELTA, options=options, seeds=seeds)

    cells = study.crossed({"instance": ONE, "rule": rules(questions.SEVERAL)}, sweep)
    wrong = study.errors(settings) | study.errors(cells)
    runs = settings.cells | cells.cells
    return Report(
        "Good arms: pulls until one is known, and until all are",
        [each for lines in outputs.values() for each in lines] + list(cells.lines.values()),
        [
            as_recorded(outputs),
            first_is_fastest(outputs),
            answers_are_right(*np.sum([wrong[key] for key in outputs], axis=0).tolist(), DELTA, "all arms"),
            questions.near(cells.lines, EXAMPLES),
            stop_alike(outputs, cells.lines),
            common.confident({cells.lines[key].quantity: wrong[key] for key in cells.cells}),
        ],
        joined(runs, label="instance, rule"),
        partial(draw, outputs=outputs, cells=cells),
        notes=(
            f"Settings 1 to 3 ask for all good arms, delta = {DELTA:g}: mean pulls at each output, and in brackets "
            f"the public record, {number(RECORD_RUNS)} runs, which counts one pull more. The other instances "
            f"ask for one good arm, delta = {common.DELTA:g}. EB-TC, APGAI, which makes the same pulls, and "
            "Track-and-Stop stop by gk16 for K comparisons, a heuristic, the other rules by proved intervals.",
        ),
        grid=[row(key, columns, outputs.get(key, ()), wrong[key]) for key, columns in runs.items()],
    )


def rules(asked: Asked) -> dict[str, Callable[..., Algorithm]]:
    """Returns the rules that look for one good arm, as functions of (problem, *, delta)."""
    gk16 = thresholds.gk16(comparisons=len(asked.means))
    by_labels = {name: partial(rule, level=asked.question.level) for name, rule in BY_LABELS.items()}
    return by_labels | {
        "EB-TC": partial(mab.eb_tc, question=asked.question, threshold=gk16),
        "APGAI": partial(mab.apgai, level=asked.question.level, threshold=gk16),
        "TaS": partial(mab.tas, question=asked.question, threshold=gk16),
        "TaS, sticky": partial(mab.tas, question=asked.question, sticky=True, threshold=gk16),
    }


def all_arms(instance: str, rule: str, *, options: Settings, seeds: int) -> Results:
    """Runs a rule until all arms have labels.

    Columns: `wrong`, and `good_at` (MOST,), the pulls at which good arms were put out, in order.
    """
    of_arms, level = ALL[instance]
    truth = mab.bernoulli(of_arms)

    def build(task: Any, key: Any) -> tuple:
        algorithm = BY_LABELS[rule](truth.problem, level=level, delta=DELTA, all_arms=True)
        return algorithm, mab.environment(truth, algorithm)

    def metrics(task: Any, outcome: Outcome) -> dict[str, Any]:
        good_at = outcome.state.memory.good_at
        in_order = jnp.sort(jnp.where(good_at > 0, good_at, outcome.pulls + 1))
        return {
            "wrong": ~mab.is_right(truth, outcome.answer, question=mab.Above(level)),
            "good_at": in_order[:MOST],
        }

    return simulate(
        f"mab questions good arm, {instance}, all arms: {rule}",
        build,
        options=options,
        seeds=seeds,
        max_rounds=common.LONGEST,
        metrics=metrics,
    )


def lines_of(key: study.Key, columns: Columns) -> list[Line]:
    """Returns the mean pulls at every output and at the end, over the runs with the right set."""
    instance, rule = key
    record = printed("mab", "good_arms")[list(ALL).index(instance)][list(BY_LABELS).index(rule)]
    names = [f"{instance}, {rule}, good arm {n + 1}" for n in range(len(record) - 1)]
    right = ~columns["wrong"] & common.stopped(columns)
    values = [*columns["good_at"].T[: len(names)], columns["pulls"]]
    return [
        line(name, each[right], printed=number, printed_runs=RECORD_RUNS, tolerance=ONE_MORE)
        for name, each, number in zip([*names, f"{instance}, {rule}, end"], values, record, strict=True)
    ]


def row(key: study.Key, columns: Columns, outputs: Sequence[Line], wrong: tuple[int, int]) -> dict[str, str]:
    """Formats the row of a rule on an instance."""
    shown = [f"{each.ours:,.0f} +- {each.se:,.0f} ({each.printed:,.0f})" for each in outputs]
    pulls = columns["pulls"][common.stopped(columns)]
    end = shown[-1] if shown else plus_minus(line("", pulls))
    return (
        {"instance": key[0], "rule": key[1]}
        | {f"good arm {n + 1}": shown[n] if n < len(shown) - 1 else "" for n in range(MOST)}
        | {"end": end, "median": f"{np.median(pulls):,.0f}", "wrong": "{} of {}".format(*wrong)}
    )


def as_recorded(outputs: Outputs) -> Claim:
    lines = [each for row in outputs.values() for each in row]
    differ = [each.quantity for each in lines if verdict(each) == "DIFFERS"]
    return Claim(
        f"mean pulls agree with the public record, within {STANDARD_ERRORS} standard errors and one pull",
        f"{len(lines) - len(differ)} of {len(lines)}{'; not ' * bool(differ)}{'; '.join(differ)}",
        not differ,
    )


def first_is_fastest(outputs: Outputs) -> Claim:
    """Claims that HDoC finds the first good arm soonest, and APT-G last."""
    firsts = {instance: [outputs[instance, rule][0] for rule in BY_LABELS] for instance in ALL}
    pairs = [pair for lines in firsts.values() for pair in itertools.pairwise(lines)]
    return Claim(
        "in every setting HDoC puts out its first good arm before LUCB-G, and that before APT-G, up to "
        f"{STANDARD_ERRORS} standard errors",
        "; ".join(f"{instance} {listed(means(lines), ',.0f')}" for instance, lines in firsts.items()),
        all(a.ours - b.ours <= STANDARD_ERRORS * np.hypot(a.se, b.se) for a, b in pairs),
    )


def stop_alike(outputs: Outputs, lines: Mapping[study.Key, Line]) -> Claim:
    """Claims that the rules by labels end after the same mean number of pulls, if no good arm ends a run."""
    ends = {instance: [outputs[instance, rule][-1] for rule in BY_LABELS] for instance in ALL}
    ends["none is good"] = [lines["none is good", rule] for rule in BY_LABELS]
    off = {
        instance: max(abs(a.ours - b.ours) / float(np.hypot(a.se, b.se)) for a in row for b in row if a is not b)
        for instance, row in ends.items()
    }
    return Claim(
        f"HDoC, LUCB-G and APT-G end alike where no good arm ends a run, within {STANDARD_ERRORS} standard errors",
        "largest differences: " + listed(off, ".1f"),
        max(off.values()) <= STANDARD_ERRORS,
    )


def draw(figure: Any, *, outputs: Outputs, cells: study.Study) -> None:
    panels = split(figure, (10, 7.6), 2, 2).ravel()
    for axes, instance in zip(panels, ALL, strict=False):
        for style, rule in enumerate(BY_LABELS):
            lines = outputs[instance, rule]
            at = range(len(lines))
            curve(axes, at, lines, rule, style)
            axes.plot(at, [each.printed for each in lines], "kx", ms=9, label="public record" if style == 0 else None)
        side_by_side(axes, [*map(str, range(1, len(lines))), "end"], yscale="log", title=f"{instance}, all good arms")
        axes.set(xlabel="good arm, in the order of output", ylabel="pulls")
    for style, rule in enumerate(cells.axes["rule"]):
        lines = [cells.lines[instance, rule] for instance in ONE]
        at = np.arange(len(ONE)) + 0.1 * (style - (len(cells.axes["rule"]) - 1) / 2)
        points(panels[3], at, lines, None if rule in BY_LABELS else rule, style)
        medians = [np.median(cells.cells[instance, rule]["pulls"]) for instance in ONE]
        panels[3].plot(at, medians, "_", ms=14, color=STYLES[style]["color"])
    side_by_side(panels[3], list(ONE), yscale="log", title="one good arm (dash: median)", ylabel="pulls")
    handles = [axes.get_legend_handles_labels() for axes in (panels[0], panels[3])]
    figure.legend(*(a + b for a, b in zip(*handles, strict=True)), loc="outside lower center", ncols=5, fontsize=9)
