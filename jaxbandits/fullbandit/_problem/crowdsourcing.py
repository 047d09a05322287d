"""Crowdsourced quizzes as instances: real ones, their look-alikes, and the published answers behind them."""

import csv
import json
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxbandits import checks
from jaxbandits.checks import is_concrete, require
from jaxbandits.fullbandit._problem.design import check_mask, check_size
from jaxbandits.fullbandit._problem.instances import Instance, instance_of

MAX_DRAWS = 10_000  # draws of a random instance before giving up

# The quizzes of `crowdsourcing`, and the folders of the published files that `load_correct` reads.
FOLDERS = {
    "it": "ITMANAGE",
    "medicine": "MEDICINE",
    "chinese": "CHINESE",
    "pokemon": "POKEMON",
    "english": "ENGLISH",
    "science": "SCIENCE",
}


class Crowd(NamedTuple):
    """Scores of the workers of a quiz."""

    correct: np.ndarray  # int (n,)   correct answers of each worker
    questions: int  # number of questions of the quiz


def crowdsourcing(name: str, *, k: int = 10, dtype: Any = None) -> Instance:
    """Builds an instance of the workers of a real crowdsourced quiz; their means are their accuracies.

    In all quizzes except "pokemon" the 10th and the 11th best worker tie, so there are several best super-arms of size
    10: see `is_right`.

    Args:
        name: "it" (n = 36 workers), "medicine" (45), "chinese" (50), "pokemon" (55), "english" (63) or "science" (111).
        k: arms in a super-arm.
        dtype: dtype of theta. If None, JAX's default float.

    Returns:
        Instance, for `environment(noise="bernoulli")`.

    Raises:
        ValueError: `name` is unknown or `k` is out of range.

    Source: Li, Baba and Kashima (2017), Hyper Questions, doi 10.1145/3132847.3132971, and Li (2024), doi
    10.1109/ICASSP48485.2024.10447803; data licensed CC BY 4.0. Used by Kuroki, Xu, Miyauchi, Honda and Sugiyama (2020),
    table 1.
    """
    correct, questions = crowdsourcing_counts(name)
    check_size(len(correct), k)
    dtype = checks.float_dtype("dtype", dtype)
    return instance_of(correct / questions, k, dtype)


def crowdsourcing_counts(name: str) -> Crowd:
    """Returns the integers behind `crowdsourcing`, for scores free of rounding.

    Args:
        name: name of the quiz, as in `crowdsourcing`.

    Returns:
        Crowd, its workers in the order of the instance's arms.

    Raises:
        ValueError: `name` is unknown.
    """
    checks.one_of("name", name, FOLDERS)
    text = resources.files("jaxbandits.fullbandit").joinpath("crowdsourcing.json").read_text(encoding="utf-8")
    entry = json.loads(text)["sets"][name]
    return Crowd(np.array(entry["correct"]), entry["questions"])


def crowd_like(
    seed: int, workers: int, tasks: int, average: float, best: float, *, k: int = 10, dtype: Any = None
) -> Instance:
    """Simulates workers of a quiz with a given size, average and best accuracy, for sizes that real data lack.

    Accuracies are Beta variables of concentration 4, scaled to [0, best] and rounded to multiples of 1/tasks. One
    worker is set to the best. Single answers of random others are flipped until the sum is right, and all is redrawn
    until the k-th best worker beats the next one.

    Args:
        seed: seed of `numpy.random.default_rng`, at least 0.
        workers: number of arms n.
        tasks: number of questions, at least 1.
        average: mean accuracy, in (0, best); rounded so that the correct answers of all workers are a whole number.
        best: largest accuracy, in (0, 1]; rounded to a multiple of 1/tasks.
        k: arms in a super-arm, in 2..n-1.
        dtype: dtype of theta. If None, JAX's default float.

    Returns:
        Instance, for `environment(noise="bernoulli")`.

    Raises:
        ValueError: an argument lies outside its range, `average` cannot be met with a single best worker given, or no
            draw has a gap between the k-th best worker and the next one.
    """
    checks.whole("seed", seed, least=0)
    checks.whole("workers", workers, least=3)
    checks.whole("k", k, least=2, most=workers - 1)
    checks.whole("tasks", tasks, least=1)
    checks.real("best", best, above=0, most=1)
    checks.real("average", average, above=0, below=best)
    for word, value in {"average": average, "best": best}.items():
        require(is_concrete(value), word, "be concrete: answers are drawn on the host", value)
    dtype = checks.float_dtype("dtype", dtype)
    top, total = round(best * tasks), round(average * tasks * workers)
    require(top >= 1, "best", f"be at least one of {tasks} tasks", best)
    require(
        top <= total <= top * workers,
        "average",
        f"give a sum of correct answers in {top}..{top * workers}, which {workers} workers of at most {top} can have",
        average,
    )
    rng = np.random.default_rng(seed)
    share = average / best
    for _ in range(MAX_DRAWS):
        others = np.rint(top * rng.beta(4 * share, 4 * (1 - share), workers - 1)).astype(int)
        while missing := total - top - int(others.sum()):
            changed = others + np.sign(missing) * (np.arange(workers - 1) == rng.integers(workers - 1))
            others = np.clip(changed, 0, top)
        correct = rng.permutation(np.append(others, top))
        next_best, worst_of_best = np.sort(correct)[workers - k - 1 : workers - k + 1]
        if worst_of_best > next_best:
            return instance_of(correct / tasks, k, dtype)
    raise ValueError(f"k must leave a gap behind worker k in one of {MAX_DRAWS} draws, got {k}")


def from_answers(correct: ArrayLike, *, k: int = 10, dtype: Any = None) -> Instance:
    """Builds an instance of the workers of a quiz together with their answers, to be replayed.

    Args:
        correct: 0/1 (Q, n), whether worker e answered question q correctly, as from `load_correct`.
        k: arms in a super-arm, in 2..n-1.
        dtype: dtype of theta. If None, JAX's default float.

    Returns:
        Instance whose means are the accuracies, for `environment(noise="replay")` and `environment(noise="bernoulli")`.

    Raises:
        ValueError: `correct` is not as above, or `k` is out of range.
    """
    answers = check_mask("correct", correct, ("Q", "n"))
    check_size(answers.shape[1], k)
    dtype = checks.float_dtype("dtype", dtype)
    theta = answers.astype(dtype).sum(axis=0) / answers.shape[0]
    return Instance(theta, k, jnp.ones((), dtype), answers.astype(bool))


def load_correct(folder: Path | str) -> np.ndarray:
    """Reads the published answers of a crowdsourced quiz, for `from_answers`.

    Args:
        folder: a folder with `answer.csv` and `truth.csv`. The header of `answer.csv` is `question_id` and a name for
            each worker; a line is a question's number and one letter for each worker. The header of `truth.csv` is
            `question_id,truth`. The published folders are ITMANAGE, MEDICINE, CHINESE, POKEMON, ENGLISH and SCIENCE,
            below `Datasets` of the repository garfieldpigljy/CrowdLabelwithTextContent on GitHub.

    Returns:
        bool (Q, n), whether worker e answered question q correctly; both in the order of `answer.csv`. Its means over
        the first axis are the accuracies. Names of workers are dropped.

    Raises:
        ValueError: a file is missing or not of this form: a question is there twice or without a truth, or a line and
            the header differ in length.
    """
    checks.instance("folder", folder, (str, Path))
    folder = Path(folder)
    missing = [name for name in ("answer.csv", "truth.csv") if not (folder / name).is_file()]
    require(
        not missing,
        "folder",
        "hold answer.csv and truth.csv, as the folders Datasets/NAME of "
        "https://github.com/garfieldpigljy/CrowdLabelwithTextContent do",
        str(folder),
    )
    (header, *lines), (truth_header, *truth_lines) = (_read(folder / name) for name in ("answer.csv", "truth.csv"))
    require(len(header) >= 2 and header[0] == "question_id", "answer.csv", "begin with question_id", header[:1])
    require(truth_header == ["question_id", "truth"], "truth.csv", "have the header question_id,truth", truth_header)
    for name, width, rows in (("answer.csv", len(header), lines), ("truth.csv", 2, truth_lines)):
        questions = [row[0] for row in rows]
        require(len(rows) >= 1, name, "hold at least one question", len(rows))
        require(len(set(questions)) == len(questions), name, "hold every question once", questions)
        require(all(len(row) == width for row in rows), name, f"have {width} entries per line", sorted(map(len, rows)))
    truth = dict(truth_lines)
    unknown = [row[0] for row in lines if row[0] not in truth]
    require(not unknown, "truth.csv", "hold every question of answer.csv", f"none for {unknown}")
    return np.array([[letter == truth[question] for letter in letters] for question, *letters in lines])


def _read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    require(len(rows) >= 1, path.name, "have a header", "an empty file")
    return rows
