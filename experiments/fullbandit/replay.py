"""Table 2 with the workers' real answers: do their correlated errors matter? A question that is hard for one worker is
hard for others. "Replay" draws one question per pull and counts the right answers of its ten workers. "Independent"
makes each of them right with the same probability, independently. SAQM runs as in Table 2, on the same super-arms under
both. Needs the published answers, --data. This is an extension of the paper.
"""

import itertools
from argparse import ArgumentParser
from functools import partial

import numpy as np

from experiments.figures import split
from experiments.fullbandit import common as runs
from experiments.fullbandit.table2 import RULES
from experiments.report import Claim, Report, joined, listed, number
from experiments.settings import Settings
from jaxbandits import fullbandit
from jaxbandits.fullbandit import Design
from jaxbandits.fullbandit._problem.crowdsourcing import FOLDERS

NEAR = 0.03
MARKERS = "os^Dv<>P"  # markers of answers
NOISES = {"independent": {"noise": "bernoulli_normal"}, "replay": {"noise": "replay"}}


def add_arguments(parser: ArgumentParser) -> None:
    runs.add_data_argument(parser, required=True)


def run(options: Settings) -> Report:
    quizzes = runs.QUICK_QUIZZES if options.quick else runs.QUIZZES
    seeds = options.seeds or (8 if options.quick else 20)
    sweeps, mean, shares, grid = {}, {}, [], []
    for quiz in quizzes:
        correct = fullbandit.load_correct(options.data / FOLDERS[quiz])
        counts = correct.sum(axis=0)
        ranked = np.sort(counts)[::-1]
        designs = runs.random_designs(3, correct.shape[1], runs.SIZE)
        crowd = fullbandit.from_answers(correct, k=runs.SIZE)
        for (noise, settings), variance in zip(NOISES.items(), pull_variances(correct, designs), strict=True):
            made = RULES["SAQM"], partial(fullbandit.environment, crowd, **settings), designs
            heading = f"replay: SAQM: {noise}: {quiz}"
            sweeps[noise, quiz] = sweep = runs.quiz_runs(heading, counts, *made, options=options, seeds=seeds)
            pulls, row = sweep.columns["pulls"], sweep.columns["row"]
            mean[noise, quiz] = center = pulls.mean()
            _, answer = np.unique(sweep.columns["answer"], axis=0, return_inverse=True)
            deviation, given = (pooled_deviation(pulls, group) for group in (row, row * len(pulls) + answer.ravel()))
            if ranked[runs.SIZE - 1] == ranked[runs.SIZE]:
                shares.append((given / deviation) ** 2)  # share of the variance on a support given the answer
            shown = {"": f"{quiz}, {noise}", "variance of a pull": number(variance), "mean": number(center / 1000)}
            shown |= {"+- s.e.": number(deviation / np.sqrt(len(pulls)) / 1000)}
            shown |= {"deviation": f"{100 * deviation / center:.2f} %", "given answer": f"{100 * given / center:.2f} %"}
            grid.append(shown | {"different answers": str(len(np.unique(answer)))})

    ratio = np.array([mean["replay", quiz] / mean["independent", quiz] for quiz in quizzes])

    def draw(figure) -> None:
        panels = split(figure, (8, 4.4), 1, len(quizzes), sharey=True, squeeze=False)[0]
        for axes, quiz in zip(panels, quizzes, strict=True):
            parts = [sweeps[noise, quiz].columns for noise in NOISES]
            pulls, row, answers = (np.stack([part[name] for part in parts]) for name in ("pulls", "row", "answer"))
            distinct, answer = np.unique(answers.reshape(row.size, -1), axis=0, return_inverse=True)
            answer = answer.reshape(row.shape)
            pulls, answer = (
                x[:, row[0] == 0] for x in (pulls, answer)
            )  # One support, because others have other means.
            deviation = 100 * (pulls / pulls.mean() - 1)
            x = np.arange(2)[:, None] + np.linspace(-0.3, 0.3, pulls.shape[1])
            for nth, marker in zip(range(len(distinct)), itertools.cycle(MARKERS)):
                chosen = answer == nth
                axes.plot(x[chosen], deviation[chosen], ls="", marker=marker, color=f"C{nth}", mfc="w", ms=4)
            axes.set(xlim=(-0.6, 1.6), xticks=(0, 1), title=quiz)
            axes.set_xticklabels(["indep.", "replay"], fontsize=9)
            axes.grid(axis="x", visible=False)
        panels[0].set_ylabel("pulls until the stop: deviation from the mean (%)")
        figure.suptitle("Runs of SAQM on one support, a marker for each answer", fontsize=11)

    return Report(
        "Table 2 with real answers: thousands of pulls of SAQM",
        [],
        [
            runs.all_optimal(list(sweeps.values())),
            Claim(
                f"correlated errors change the mean by less than {NEAR:.0%}",
                f"replay / independent {listed(ratio, '.4f', ' ')}",
                np.all(np.abs(ratio - 1) < NEAR),
            ),
            Claim(
                "where workers tie, most of the spread on a support comes from which of them is the answer",
                f"{min(shares):.0%} to {max(shares):.0%} of the variance remains given the answer",
                max(shares) < 0.5,
            ),
        ],
        joined(sweeps),
        draw,
        notes=(
            f"Means over {3 * seeds} runs, on the same three supports under both noises; standard errors are for these "
            "supports. Deviations are standard deviations on a support, over all runs and over runs with the same "
            "answer.",
        ),
        grid=grid,
    )


def pull_variances(correct: np.ndarray, designs: Design) -> np.ndarray:
    """Computes the variance of a pull, averaged over all super-arms, under the two noises."""
    support = np.asarray(designs.support).reshape(-1, correct.shape[1])
    accuracy = correct.mean(axis=0)
    return np.array([(support @ (accuracy * (1 - accuracy))).mean(), (support @ correct.T).var(axis=1).mean()])


def pooled_deviation(values: np.ndarray, group: np.ndarray) -> float:
    """Computes the standard deviation within groups."""
    _, group, size = np.unique(group, return_inverse=True, return_counts=True)
    means = np.bincount(group, values) / size
    return float(np.sqrt(np.sum((values - means[group]) ** 2) / (len(values) - len(size))))
