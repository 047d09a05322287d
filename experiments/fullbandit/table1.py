"""Table 1 of Kuroki, Xu, Miyauchi, Honda, Sugiyama (2020): six crowdsourced quizzes.

Computed from the published answers with --data, otherwise from the numbers of right answers in the package. The table
adds the value of the ten best workers, and the number of sets of ten that attain it.
"""

import math
from argparse import ArgumentParser

import numpy as np

from experiments.claims import above, all_of
from experiments.figures import split
from experiments.fullbandit import common as runs
from experiments.papers import printed
from experiments.report import Claim, Line, Report
from experiments.settings import Settings
from jaxbandits.fullbandit import crowdsourcing_counts, load_correct
from jaxbandits.fullbandit._problem.crowdsourcing import FOLDERS, Crowd

ROUNDING = 0.005


def add_arguments(parser: ArgumentParser) -> None:
    runs.add_data_argument(parser)


def run(options: Settings) -> Report:
    held = crowds = {name: crowdsourcing_counts(name) for name in runs.QUIZZES}
    if options.data:
        answers = {name: load_correct(options.data / folder) for name, folder in FOLDERS.items()}
        crowds = {name: Crowd(correct.sum(axis=0), len(correct)) for name, correct in answers.items()}
    lines, superarms, gaps = [], {}, {}
    for name, (correct, questions) in crowds.items():  # counted in right answers, without rounding
        tasks, workers, average, best = printed("fullbandit", f"table1 {name}")
        ranked = np.sort(correct)[::-1]
        chosen, last = ranked[: runs.SIZE], ranked[runs.SIZE - 1]
        optimal = math.comb(int(np.sum(ranked == last)), int(np.sum(chosen == last)))
        lines += [
            Line(f"{name}: tasks", questions, printed=tasks),
            Line(f"{name}: workers", len(correct), printed=workers),
            Line(f"{name}: average accuracy", correct.mean() / questions, printed=average, tolerance=ROUNDING),
            Line(f"{name}: best accuracy", ranked[0] / questions, printed=best, tolerance=ROUNDING),
            Line(f"{name}: value of the ten best", chosen.sum() / questions),
            Line(f"{name}: optimal sets", optimal),  # sets that attain this value
        ]
        superarms[name] = math.comb(len(correct), runs.SIZE)
        gaps[name] = (last - ranked[runs.SIZE]) / questions
    gap = max(gaps.values())
    claims = [
        above("there are more than 10^10 super-arms", superarms, 1e10),
        Claim(
            "the gap between the tenth and the eleventh worker is less than 0.1",
            f"0 in {', '.join(name for name in gaps if gaps[name] == 0)}, at most {gap:.2g}",
            gap < 0.1,
        ),
    ]
    if options.data:
        same = [sorted(held[name].correct) == sorted(crowds[name].correct) for name in held]
        claims.append(all_of("the package holds the published answers", np.array(same)))

    def draw(figure) -> None:
        panels = split(figure, (8, 4.8), 2, 3, sharey=True)
        for axes, (name, crowd) in zip(panels.flat, crowds.items(), strict=True):
            accuracy = np.sort(crowd.correct)[::-1] / crowd.questions
            rank = np.arange(1, len(accuracy) + 1)
            axes.bar(rank, accuracy, width=1, color=np.where(rank <= runs.SIZE, "#333333", "#bbbbbb"))
            # Workers with as many right answers as the tenth are interchangeable with it.
            axes.axhline(accuracy[runs.SIZE - 1], color="#b03a2e", lw=1, ls="--")
            axes.set_title(f"{name}: {len(accuracy)} workers, {crowd.questions} tasks", fontsize=9)
            axes.grid(axis="x", visible=False)
        figure.suptitle("Table 1: accuracies of the workers", fontsize=11)
        figure.supxlabel("rank of the worker (dark: the ten best; dashed: accuracy of the tenth)", fontsize=10)
        figure.supylabel("accuracy", fontsize=10)

    return Report(
        "Table 1 of Kuroki et al. (2020): six crowdsourced quizzes",
        lines,
        claims,
        {
            "quiz": np.repeat(list(crowds), [len(crowd.correct) for crowd in crowds.values()]),
            "correct": np.concatenate([crowd.correct for crowd in crowds.values()]),
            "questions": np.concatenate([np.full(len(crowd.correct), crowd.questions) for crowd in crowds.values()]),
        },
        draw,
        notes=(
            "Where workers tie at rank ten, several sets are optimal, and an answer is judged by its value. "
            f"Accuracies are from {'the published answers' if options.data else 'the counts in the package'}; data: "
            "J. Li, Y. Baba, H. Kashima, CIKM 2017, and J. Li, ICASSP 2024, CC BY 4.0.",
        ),
    )
