"""Table 2 with the answers that workers really gave: does it matter that their errors are correlated?

What is hard for one worker is hard for another. "Replay" draws one question a pull and counts the right answers of its
ten workers; "independent" has each of them right with the same probability, by themselves. SAQM as in Table 2, on the
same super-arms under both. Needs the published answers, --data. An extension: the paper does not look at it.
"""

import itertools
from argparse import ArgumentParser, Namespace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import jaxbandits
from experiments import _fullbandit as runs
from experiments.fullbandit_table2 import RULES
from experiments.report import Claim, Report, joined, number
from jaxbandits import fullbandit
from jaxbandits.fullbandit import Design
from jaxbandits.fullbandit._crowdsourcing import FOLDERS

NEAR = 0.03
MARKERS = "os^Dv<>P"  # of the answers
NOISES = ("independent", "replay")
# Variance of a pull by another program: independent, replay; means over one random support.
OTHER_VARIANCE = {
    "it": (2.2, 5.9),
    "medicine": (2.1, 4.3),
    "chinese": (2.1, 4.8),
    "pokemon": (1.3, 1.4),
    "english": (1.7, 2.0),
    "science": (1.9, 2.7),
}
SAME_VARIANCE = 0.1  # by how much the two programs may differ: the supports do


class Pulls(NamedTuple):
    """The stopping times of one quiz under one noise."""

    mean: float
    se: float  # of the mean, on these supports
    deviation: float  # standard deviation on a support
    given_answer: float  # the same among runs with one answer
    answers: int  # different ones


def add_arguments(parser: ArgumentParser) -> None:
    runs.add_data_argument(parser, required=True)


def run(options: Namespace) -> Report:
    quizzes = runs.QUICK_QUIZZES if options.quick else runs.QUIZZES
    seeds = options.seeds or (8 if options.quick else 20)
    sweeps, variances, tied = {}, {}, []
    for quiz in quizzes:
        correct = fullbandit.load_correct(options.data / FOLDERS[quiz])
        ranked = np.sort(correct.sum(axis=0))[::-1]
        if ranked[runs.SIZE - 1] == ranked[runs.SIZE]:
            tied.append(quiz)
        designs = runs.random_designs(3, correct.shape[1], runs.SIZE)
        variances[quiz] = pull_variances(correct, designs)
        crowd = fullbandit.from_answers(correct, k=runs.SIZE)
        environments = (
            partial(fullbandit.environment, crowd, noise="bernoulli", sampler="normal"),
            partial(fullbandit.environment, crowd, noise="replay"),
        )
        for noise, environment in zip(NOISES, environments, strict=True):
            sweeps[noise, quiz] = runs.quiz_runs(
                f"replay: SAQM: {noise}: {quiz}",
                correct.sum(axis=0),
                RULES["SAQM"],
                environment,
                designs,
                options=options,
                seeds=seeds,
            )

    pulls = {case: described(sweep) for case, sweep in sweeps.items()}
    ratio = np.array([pulls["replay", quiz].mean / pulls["independent", quiz].mean for quiz in quizzes])
    # The share of the variance on a support that is left once the answer is known.
    left = {case: (p.given_answer / p.deviation) ** 2 for case, p in pulls.items() if case[1] in tied}
    off = max(np.abs(variances[quiz] / OTHER_VARIANCE[quiz] - 1).max() for quiz in quizzes)
    right, total = runs.optimal_runs(list(sweeps.values()))
    return Report(
        "Table 2 with real answers: thousands of pulls of SAQM",
        [],
        [
            Claim("every run ends with an answer of the largest value", f"{right} of {total}", right == total),
            Claim(
                f"correlated errors change the mean by less than {NEAR:.0%}",
                f"replay / independent {' '.join(f'{x:.4f}' for x in ratio)}",
                bool(np.all(np.abs(ratio - 1) < NEAR)),
            ),
            Claim(
                "where workers tie, most of the spread on a support comes from which of them are answered",
                f"{min(left.values()):.0%} to {max(left.values()):.0%} of the variance is left given the answer",
                max(left.values()) < 0.5,
            ),
            Claim(
                f"another program has the same variances of a pull, within {SAME_VARIANCE:.0%}",
                f"at most {off:.1%} apart",
                bool(off < SAME_VARIANCE),
            ),
        ],
        joined({noise: joined({quiz: sweeps[noise, quiz].columns for quiz in quizzes}, "quiz") for noise in NOISES}),
        partial(draw, sweeps=sweeps, quizzes=quizzes),
        notes=(
            f"Means over {3 * seeds} runs, on the same three supports under both noises; standard errors are for these "
            "supports. Deviations are standard ones on a support, of all runs and of those with the same answer.",
        ),
        grid=(
            HEAD,
            [
                row(f"{quiz}, {noise}", variances[quiz][n], pulls[noise, quiz])
                for quiz in quizzes
                for n, noise in enumerate(NOISES)
            ],
        ),
    )


HEAD = ("", "variance of a pull", "mean", "+- s.e.", "deviation", "given answer", "different answers")


def row(name: str, variance: float, pulls: Pulls) -> list[str]:
    deviations = [f"{100 * x / pulls.mean:.2f} %" for x in (pulls.deviation, pulls.given_answer)]
    return [name, *map(number, (variance, pulls.mean / 1000, pulls.se / 1000)), *deviations, str(pulls.answers)]


def pull_variances(correct: np.ndarray, designs: Design) -> np.ndarray:
    """Variance of a pull, mean over all super-arms, under the two noises."""
    support = np.asarray(designs.support).reshape(-1, correct.shape[1])
    accuracy = correct.mean(axis=0)
    return np.array([(support @ (accuracy * (1 - accuracy))).mean(), (support @ correct.T).var(axis=1).mean()])


def described(sweep: jaxbandits.Results) -> Pulls:
    pulls, row = sweep.columns["pulls"], sweep.columns["row"]
    _, answer = np.unique(sweep.columns["answer"], axis=0, return_inverse=True)
    deviation = pooled_deviation(pulls, row)
    return Pulls(
        mean=pulls.mean(),
        se=deviation / np.sqrt(len(pulls)),
        deviation=deviation,
        given_answer=pooled_deviation(pulls, row * len(pulls) + answer.ravel()),
        answers=len(np.unique(answer)),
    )


def pooled_deviation(values: np.ndarray, group: np.ndarray) -> float:
    """The standard deviation within groups."""
    _, group, size = np.unique(group, return_inverse=True, return_counts=True)
    means = np.bincount(group, values) / size
    return float(np.sqrt(np.sum((values - means[group]) ** 2) / (len(values) - len(size))))


def draw(figure: Any, *, sweeps: dict[tuple[str, str], jaxbandits.Results], quizzes: tuple[str, ...]) -> None:
    figure.set_size_inches(8, 4.4)
    panels = figure.subplots(1, len(quizzes), sharey=True, squeeze=False)[0]
    for axes, quiz in zip(panels, quizzes, strict=True):
        parts = [sweeps[noise, quiz].columns for noise in NOISES]
        pulls, row, answers = (np.stack([part[name] for part in parts]) for name in ("pulls", "row", "answer"))
        seen, answer = np.unique(answers.reshape(row.size, -1), axis=0, return_inverse=True)
        answer = answer.reshape(row.shape)
        pulls, answer = (x[:, row[0] == 0] for x in (pulls, answer))  # one support: others have other means
        deviation = 100 * (pulls / pulls.mean() - 1)
        x = np.arange(2)[:, None] + np.linspace(-0.3, 0.3, pulls.shape[1])
        for nth, marker in zip(range(len(seen)), itertools.cycle(MARKERS)):
            chosen = answer == nth
            axes.plot(x[chosen], deviation[chosen], ls="", marker=marker, color=f"C{nth}", mfc="w", ms=4)
        axes.set(xlim=(-0.6, 1.6), xticks=(0, 1), title=quiz)
        axes.set_xticklabels(["indep.", "replay"], fontsize=9)
        axes.grid(axis="x", visible=False)
    panels[0].set_ylabel("pulls until the stop: deviation from the mean (%)")
    figure.suptitle("Runs of SAQM on one support, a marker for each answer", fontsize=11)
