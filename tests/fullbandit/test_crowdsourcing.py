"""The shipped counts of the crowdsourced quizzes, and the reader of the published files behind them.

The environment variable JAXBANDITS_DATA names a folder with `crowdsourcing-li2017`, a copy of the published repository.
"""

import json
import math
import os
import re
from importlib import resources
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits import fullbandit
from jaxbandits.fullbandit import Instance
from jaxbandits.fullbandit._problem.crowdsourcing import FOLDERS

DATA = os.environ.get("JAXBANDITS_DATA")
on_real_data = pytest.mark.skipif(DATA is None, reason="JAXBANDITS_DATA names no folder of data")

# Questions, workers, sum and sum of squares of the counts, the ten best, the eleventh, number of best sets.
# Average and best accuracy are from table 1 of Kuroki et al. (2020), which gives two digits.
TABLE = {
    "it": (25, 36, 483, 7097, [21, 20, 20, 20, 19, 18, 18, 17, 17, 16], 16, 2, 0.54, 0.84),
    "medicine": (36, 45, 770, 15208, [33, 31, 30, 29, 28, 27, 25, 23, 23, 22], 22, 4, 0.48, 0.92),
    "chinese": (24, 50, 449, 4797, [19, 18, 17, 14, 14, 14, 13, 13, 13, 12], 12, 5, 0.37, 0.79),
    "pokemon": (20, 55, 305, 3137, [20, 20, 19, 18, 18, 14, 12, 12, 11, 8], 7, 1, 0.28, 1.0),
    "english": (30, 63, 484, 4724, [21, 20, 19, 17, 15, 14, 12, 11, 11, 11], 11, 4, 0.26, 0.70),
    "science": (20, 111, 654, 4700, [17, 14, 11, 10, 10, 10, 10, 10, 10, 9], 9, 8, 0.29, 0.85),
}


@pytest.mark.parametrize("name", TABLE)
def test_shipped_counts(name):
    questions, workers, total, squares, ten_best, next_best, best_sets, average, best = TABLE[name]
    crowd = fullbandit.crowdsourcing_counts(name)
    falling = np.sort(crowd.correct)[::-1]
    assert (crowd.questions, len(crowd.correct)) == (questions, workers)
    assert (crowd.correct.sum(), np.sum(crowd.correct**2)) == (total, squares)
    assert (falling[:10].tolist(), falling[10]) == (ten_best, next_best)
    tied = np.sum(crowd.correct == falling[9])
    assert math.comb(tied, ten_best.count(ten_best[-1])) == best_sets
    accuracies = crowd.correct / questions
    assert (round(accuracies.mean(), 2), round(accuracies.max(), 2)) == (average, best)


@pytest.mark.parametrize("name", TABLE)
def test_instances_have_the_accuracies(name):
    questions, _, _, _, ten_best, *_ = TABLE[name]
    crowd, instance = fullbandit.crowdsourcing_counts(name), fullbandit.crowdsourcing(name)
    assert instance.k == 10
    np.testing.assert_array_equal(instance.theta, crowd.correct / questions)
    answer = jnp.zeros(len(crowd.correct), bool).at[np.argsort(-crowd.correct)[:10]].set(True)
    np.testing.assert_allclose(instance.theta[answer].sum(), sum(ten_best) / questions, rtol=1e-14)
    assert fullbandit.is_right(Instance(crowd.correct, 10), answer)


@pytest.mark.parametrize("name", TABLE)
def test_all_best_sets_are_right_and_the_next_best_is_not(name):
    """Tied workers are interchangeable; one correct answer less is an error, in integers and in floats."""
    questions, workers, *_, best_sets, _, _ = TABLE[name]
    counts = fullbandit.crowdsourcing_counts(name).correct
    order = np.argsort(-counts, kind="stable")
    tenth, above, below = (np.flatnonzero(sign(counts, counts[order[9]])) for sign in (np.equal, np.greater, np.less))
    for theta in (counts, counts / questions, (counts / questions).astype(np.float32)):
        for first in range(len(tenth)):
            chosen = np.concatenate([above, np.roll(tenth, -first)[: 10 - len(above)]])
            answer = np.isin(np.arange(workers), chosen)
            assert fullbandit.is_right(Instance(theta, 10), answer)
            answer[chosen[-1]], answer[below[np.argmax(counts[below])]] = False, True
            assert not fullbandit.is_right(Instance(theta, 10), answer)
    assert (best_sets > 1) == (len(tenth) > 10 - len(above))


def test_the_package_names_its_source_and_no_worker():
    shipped = json.loads(resources.files("jaxbandits.fullbandit").joinpath("crowdsourcing.json").read_text("utf-8"))
    assert "CC BY 4.0" in shipped["licence"]
    assert all(doi in str(shipped["references"]) for doi in ("3132847.3132971", "ICASSP48485.2024.10447803"))
    assert {"authors", "source", "changes"} < shipped.keys()
    assert list(shipped["sets"]) == list(FOLDERS) == list(TABLE)
    for entry in shipped["sets"].values():
        assert entry.keys() == {"questions", "correct"}
        assert all(type(count) is int and 0 <= count <= entry["questions"] for count in entry["correct"])


# The reader

ANSWERS = "question_id,x,y,z\n7,A,B,A\n3,C,C,D\n9,F,A,A\n12,B,B,B\n"
TRUTH = "question_id,truth\n3,C\n7,A\n9,B\n12,B\n"


def write(folder, answers=ANSWERS, truth=TRUTH):
    (folder / "answer.csv").write_bytes(answers.encode())
    (folder / "truth.csv").write_bytes(truth.encode())
    return folder


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text + "\n",
        lambda text: text.removesuffix("\n"),
    ],
)
def test_answers_are_joined_with_the_truth_by_question(tmp_path, change):
    correct = fullbandit.load_correct(write(tmp_path, change(ANSWERS), change(TRUTH)))
    assert correct.dtype == bool
    np.testing.assert_array_equal(correct, [[1, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    np.testing.assert_array_equal(correct, fullbandit.load_correct(str(tmp_path)))


def test_load_correct_ignores_truths_of_other_questions(tmp_path):
    correct = fullbandit.load_correct(write(tmp_path, truth=TRUTH + "99,A\n"))
    assert correct.shape == (4, 3)


@pytest.mark.parametrize(
    ("answers", "truth", "message"),
    [
        ("id,x\n1,A\n", TRUTH, r"answer.csv must begin with question_id, got \['id'\]"),
        ("question_id\n1\n", TRUTH, "answer.csv must begin with question_id"),
        ("question_id,x\n", TRUTH, "answer.csv must hold at least one question, got 0"),
        ("", TRUTH, "answer.csv must have a header, got 'an empty file'"),
        (ANSWERS + "7,A,A,A\n", TRUTH, "answer.csv must hold every question once"),
        (ANSWERS + "8,A,A\n", TRUTH, r"answer.csv must have 4 entries per line, got \[3, 4, 4, 4, 4\]"),
        (ANSWERS, TRUTH.replace("truth", "letter"), "truth.csv must have the header question_id,truth"),
        (ANSWERS, TRUTH + "3,D\n", "truth.csv must hold every question once"),
        (ANSWERS, TRUTH.replace("9,B", "8,B"), r"truth.csv must hold every question of answer.csv, got .*\['9'\]"),
        (ANSWERS, TRUTH.replace("9,B", "9"), "truth.csv must have 2 entries per line"),
    ],
)
def test_files_of_another_form_are_refused(tmp_path, answers, truth, message):
    with pytest.raises(ValueError, match=message):
        fullbandit.load_correct(write(tmp_path, answers, truth))


def test_missing_files_are_named_with_their_source(tmp_path):
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(ValueError, match="folder must hold answer.csv and truth.csv, as .*github.com.*, got '"):
            fullbandit.load_correct(folder)


# The published files


def folder_of(name):
    return Path(DATA or "") / "crowdsourcing-li2017" / "Datasets" / FOLDERS[name]


@on_real_data
@pytest.mark.parametrize("name", TABLE)
def test_shipped_counts_equal_the_files(name):
    correct = fullbandit.load_correct(folder_of(name))
    crowd = fullbandit.crowdsourcing_counts(name)
    assert correct.shape == (crowd.questions, len(crowd.correct))
    if name == "pokemon":  # shipped in another order on purpose
        assert not np.array_equal(correct.sum(axis=0), crowd.correct)
        np.testing.assert_array_equal(np.sort(correct.sum(axis=0)), np.sort(crowd.correct))
    else:
        np.testing.assert_array_equal(correct.sum(axis=0), crowd.correct)


@on_real_data
@pytest.mark.parametrize("name", TABLE)
def test_no_worker_of_the_files_is_named_in_the_package(name):
    header = (folder_of(name) / "answer.csv").read_text("utf-8-sig").splitlines()[0]
    names = [re.escape(worker) for worker in header.split(",")[1:]]
    pattern = re.compile(rf"(?<!\w)({'|'.join(names)})(?!\w)")
    sources = [path for path in Path(fullbandit.__file__).parent.rglob("*") if path.suffix in (".py", ".json")]
    assert len(sources) >= 2
    assert [path for path in sources if pattern.search(path.read_text("utf-8"))] == []
