"""The experiments on crowdsourced quizzes: what is copied from the paper, what they claim, and that they run."""

from argparse import ArgumentParser, Namespace

import numpy as np
import pytest

from experiments import (
    _fullbandit,
    fullbandit_certified,
    fullbandit_replay,
    fullbandit_table1,
    fullbandit_table2,
    report,
)
from jaxbandits import Results, Status
from jaxbandits.fullbandit import crowdsourcing_counts
from jaxbandits.fullbandit._crowdsourcing import FOLDERS

PAPER, OTHER = fullbandit_table2.PRINTED, fullbandit_table2.OTHER
OPTIONS = {"quick": False, "seeds": None, "lanes": None, "folder": None, "workers": 1, "executor": None}


@pytest.fixture
def published(tmp_path):
    """Quizzes in the published form; every worker has as many right answers as in the package."""
    rng = np.random.default_rng(0)
    for name, folder in FOLDERS.items():
        correct, questions = crowdsourcing_counts(name)
        right = np.array([rng.permutation(questions) < count for count in correct]).T
        workers = ",".join(f"worker{i}" for i in range(len(correct)))
        answers = [",".join([str(q), *np.where(row, "A", "B")]) for q, row in enumerate(right)]
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "answer.csv").write_text("\n".join([f"question_id,{workers}", *answers]))
        (tmp_path / folder / "truth.csv").write_text(
            "\n".join(["question_id,truth", *(f"{q},A" for q in range(questions))])
        )
    return tmp_path


def test_table1_is_that_of_the_paper():
    result = fullbandit_table1.run(Namespace(data=None))
    printed = [line for line in result.lines if line.printed is not None]
    assert len(printed) == 24
    assert {report.verdict(line) for line in printed} == {"agrees"}
    ours = {line.quantity: line.ours for line in result.lines}
    values = (186 / 25, 271 / 36, 147 / 24, 152 / 20, 151 / 30, 111 / 20)
    for name, value, optimal in zip(FOLDERS, values, (2, 4, 5, 1, 4, 8), strict=True):
        assert ours[f"{name}: value of the ten best"] == pytest.approx(value, rel=1e-12)
        assert ours[f"{name}: optimal sets"] == optimal
    # C(36, 10) and C(45, 10) are below the paper's 10^10; workers 10 and 11 of pokemon are one question of 20 apart.
    assert [claim.holds for claim in result.claims] == [False, True]
    assert "it 2.54e+08, medicine 3.19e+09" in result.claims[0].measured
    assert result.claims[1].measured == "0 in it, medicine, chinese, english, science, at most 0.05"


def test_table1_reads_published_answers(published):
    result = fullbandit_table1.run(Namespace(data=published))
    assert result.claims[-1].measured == "6 of 6"
    assert result.claims[-1].holds
    lines = (published / "ITMANAGE" / "answer.csv").read_text().splitlines()
    lines[1] = lines[1].replace("A", "B")
    (published / "ITMANAGE" / "answer.csv").write_text("\n".join(lines))
    assert fullbandit_table1.run(Namespace(data=published)).claims[-1].measured == "5 of 6"


def test_the_numbers_of_table2_are_typed_right():
    printed, other = ({name: sum(row) for name, row in table.items()} for table in (PAPER, OTHER))
    assert {name: printed[name] for name in ("SAQM", "ICB, ellipsoid", "SA-FOA, eps")} == {
        "SAQM": 779_792,
        "ICB, ellipsoid": 727_297,
        "SA-FOA, eps": 39_837,
    }
    assert other["SAQM"] == 908_702
    assert fullbandit_table2.at(PAPER, "ICB, Lemma 1", "pokemon") == 20_943
    assert fullbandit_table2.at(PAPER, "SA-FOA, eps/2", "science") == 15_611
    assert fullbandit_table2.at(PAPER, "spectral", "it") is None
    assert fullbandit_table2.at(fullbandit_table2.OTHER_SE, "SAQM, exact reduction", "english") == 6_909


def table2(monkeypatch, change=lambda name, quiz, columns: None, **options):
    """Table 2 from runs that are made up: they scatter by a tenth around the other program's means."""
    rng = np.random.default_rng(1)

    def made_up(heading, correct, rule, environment, supports, *, seeds, **_):
        name, quiz = heading.removeprefix("crowd table 2: ").split(": ")
        runs = supports * seeds
        columns = {
            "row": np.repeat(np.arange(supports), seeds),
            "seed": np.tile(np.arange(seeds), supports),
            "status": np.full(runs, Status.STOPPED),
            "pulls": 1000 * fullbandit_table2.at(OTHER, name, quiz) * rng.normal(1, 0.1, runs),
            "answer": np.zeros((runs, len(correct)), bool),
            "optimal": np.ones(runs, bool),
        }
        change(name, quiz, columns)
        return Results(columns, None)

    monkeypatch.setattr(_fullbandit, "random_designs", lambda count, *_, **__: count)
    monkeypatch.setattr(_fullbandit, "quiz_runs", made_up)
    return fullbandit_table2.run(Namespace(**OPTIONS | {"support_ratio": 2.0, "sampler": "normal"} | options))


def test_table2_judges_what_it_finds(monkeypatch, tmp_path):
    result = table2(monkeypatch)
    assert len(result.lines) == 7 * 6
    assert all(claim.holds for claim in result.claims)
    verdicts = {line.quantity: report.verdict(line) for line in result.lines}
    assert {verdicts[f"ICB, Lemma 1: {quiz}"] for quiz in FOLDERS} == {"DIFFERS"}
    assert {verdicts[f"spectral: {quiz}"] for quiz in FOLDERS} == {"nothing printed"}
    assert set(result.columns["algorithm"]) == set(fullbandit_table2.RULES)
    assert set(result.columns["quiz"]) == set(FOLDERS)
    assert "answer" not in result.columns  # as wide as the quiz
    figure = report.save(result, "table2", tmp_path)[2]
    assert figure.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("case", "factor", "claims"),
    [
        (("SAQM", "it"), 1.25, ["SAQM is within 40%", "another program"]),
        (("ICB, ellipsoid", "science"), 0.6, ["ICB (ellipsoid) needs fewer", "another program"]),
        (("ICB, ellipsoid", "pokemon"), 1.5, ["ICB, ellipsoid is within 40%", "another program"]),
        (("SA-FOA, eps/2", "it"), 3.5, ["SA-FOA, eps/2 needs fewer", "another program"]),
        (("spectral", "chinese"), 2.2, ["spectral needs fewer", "another program"]),
    ],
)
def test_table2_notices(case, factor, claims, monkeypatch):
    def change(name, quiz, columns):
        columns["pulls"] *= factor if (name, quiz) == case else 1

    failed = [claim.statement for claim in table2(monkeypatch, change).claims if not claim.holds]
    assert len(failed) == len(claims)
    assert all(statement.startswith(start) for statement, start in zip(failed, claims, strict=True))


@pytest.mark.parametrize("column", ["optimal", "status"])
def test_table2_notices_one_wrong_or_censored_run(column, monkeypatch):
    def change(name, quiz, columns):
        if (name, quiz) == ("spectral", "medicine"):
            columns[column][3] = {"optimal": False, "status": Status.MAX_ROUNDS}[column]

    claim, *others = table2(monkeypatch, change).claims
    assert not claim.holds
    done, total = claim.measured.split(" of ")
    assert int(done) == int(total) - 1
    assert all(other.holds for other in others)


def test_supports_of_another_size_are_not_compared(monkeypatch):
    claims = table2(monkeypatch, support_ratio=2.2, quick=True).claims
    assert not any("another program" in claim.statement for claim in claims)


def test_real_answers_change_nothing(published, monkeypatch, tmp_path):
    """Replay end to end, on one quiz; in these files the workers' errors are independent."""
    monkeypatch.setattr(_fullbandit, "QUICK_QUIZZES", ("it",))
    result = fullbandit_replay.run(Namespace(**OPTIONS | {"quick": True, "seeds": 4, "data": published}))
    optimal, same_mean, *_ = result.claims
    assert (optimal.measured, optimal.holds, same_mean.holds) == ("24 of 24", True, True)
    (name, variance, mean, *_), (other, replayed, *_) = result.grid[1]
    assert (name, other) == ("it, independent", "it, replay")
    assert float(variance) == pytest.approx(2.2, abs=0.05)
    assert float(replayed) == pytest.approx(float(variance), rel=0.2)
    # Three supports of twenty whose mean is 86.6 million, with a standard deviation of 24.
    assert 40_000 < float(mean.replace(",", "")) < 140_000
    text, columns, figure = report.save(result, "replay", tmp_path / "out")
    assert "given answer" in text.read_text()
    assert columns.stat().st_size > 0
    assert figure.stat().st_size > 10_000


def test_deviations_are_pooled_within_groups():
    # Means 2 and 20, squares 1 + 1 and 4 + 0 + 4, over 5 - 2 degrees of freedom.
    values, group = np.array([1.0, 18, 3, 20, 22]), np.array([7, 3, 7, 3, 3])
    assert fullbandit_replay.pooled_deviation(values, group) == pytest.approx(np.sqrt(10 / 3))


def test_a_folder_without_the_quizzes_is_refused(tmp_path, capsys):
    parser = ArgumentParser()
    fullbandit_replay.add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--data", str(tmp_path)])
    assert "must hold NAME/answer.csv for NAME = ITMANAGE, MEDICINE" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parser.parse_args([])
    assert "required: --data" in capsys.readouterr().err


def test_rules_on_one_path_stop_in_the_order_of_their_guarantees():
    """Exhaustive's rule is bounded by those of spectral and of ICB, run by run; SA-FOA's is not."""
    result = fullbandit_certified.run(Namespace(**OPTIONS | {"quick": True, "seeds": 3}))
    claims = {claim.statement: claim for claim in result.claims}
    for rival in ("spectral", "ICB, ellipsoid"):
        (claim,) = (c for text, c in claims.items() if text.startswith(f"Exhaustive never stops later than {rival}"))
        assert claim.holds
        assert float(claim.measured.split("; ")[1].split(" to ")[0]) >= 1
