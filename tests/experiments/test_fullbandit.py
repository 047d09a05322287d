"""The experiments on top-k identification: figures of the paper, and their own computations."""

import itertools
from argparse import ArgumentParser

import jax
import numpy as np
import pytest

from experiments.claims import every_run_stops
from experiments.fullbandit import certified, common, figure1, replay, table1, table2
from experiments.fullbandit.synthetic import ARMS, SIZE, tasks, uniform_design
from experiments.report import Line, verdict
from experiments.settings import Settings
from jaxbandits import Results, Status, fullbandit, run
from jaxbandits.fullbandit import crowdsourcing_counts
from jaxbandits.fullbandit._problem.crowdsourcing import FOLDERS


@pytest.fixture
def published(tmp_path):
    """Writes quizzes in the published form. Every worker has as many right answers as in the package."""
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


def test_table1_agrees_with_the_paper():
    result = table1.run(Settings())
    printed = [line for line in result.lines if line.printed is not None]
    assert len(printed) == 24
    assert {verdict(line) for line in printed} == {"agrees"}
    ours = {line.quantity: line.ours for line in result.lines}
    values = (186 / 25, 271 / 36, 147 / 24, 152 / 20, 151 / 30, 111 / 20)
    for name, value, optimal in zip(FOLDERS, values, (2, 4, 5, 1, 4, 8), strict=True):
        assert ours[f"{name}: value of the ten best"] == pytest.approx(value, rel=1e-12)
        assert ours[f"{name}: optimal sets"] == optimal
    # C(36, 10) and C(45, 10) are below the paper's 10^10. Workers 10 and 11 of pokemon differ by 1 question of 20.
    assert [claim.holds for claim in result.claims] == [False, True]
    assert "it 2.54e+08, medicine 3.19e+09" in result.claims[0].measured


def test_table1_reads_published_answers(published):
    result = table1.run(Settings(data=published))
    assert result.claims[-1].measured == "6 of 6"


def test_table2_claims_fail_at_a_mean_far_above_the_paper():
    paper = {name: table2.PRINTED.get(name, {}).get("it", 1000.0) for name in table2.RULES}
    lines = {name: {"it": Line(f"{name}: it", pulls, printed=pulls)} for name, pulls in paper.items()}
    assert all(claim.holds for claim in table2.claims(lines))
    lines["ICB, ellipsoid"]["it"] = Line("ICB", 100_000.0, printed=paper["ICB, ellipsoid"])
    assert [claim.statement for claim in table2.claims(lines) if not claim.holds] == [
        "ICB (ellipsoid) needs fewer pulls than SAQM except on science",
        "ICB, ellipsoid is within 40% of the paper (ours / paper)",
    ]


@pytest.mark.parametrize("change", [{}, {"optimal": False}, {"status": Status.MAX_ROUNDS}])
def test_claims_notice_one_wrong_or_censored_run(change):
    columns = {"optimal": np.ones(3, bool), "status": np.full(3, Status.STOPPED)}
    for name, value in change.items():
        columns[name][1] = value
    assert common.all_optimal([Results(columns, None)]).holds == (not change)
    assert every_run_stops([columns]).holds == ("status" not in change)


def test_replay_refuses_a_folder_without_the_quizzes(tmp_path, capsys):
    parser = ArgumentParser()
    replay.add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--data", str(tmp_path)])
    assert "must hold NAME/answer.csv for NAME = ITMANAGE, MEDICINE" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parser.parse_args([])
    assert "required: --data" in capsys.readouterr().err


def test_figure1_compares_with_the_largest_of_all_super_arms():
    """SAQM's ratio and difference along one run, against norms of all 252 super-arms in NumPy."""
    table = tasks((0.1,), 1, lambda r: uniform_design(r, 50))
    task = jax.tree.map(lambda x: x[0], table)
    outcome = run(
        jax.random.key(0),
        figure1.observer(task["design"]),
        fullbandit.environment(task["instance"], task["design"]),
        max_rounds=len(figure1.TIMES) + 1,
        chunk=len(figure1.TIMES) + 1,
    )
    assert outcome.status == Status.STOPPED
    quality = figure1.quality(task, outcome)
    sets = np.array([np.isin(np.arange(ARMS), chosen) for chosen in itertools.combinations(range(ARMS), SIZE)], float)
    for index in (0, len(figure1.TIMES) - 1):
        t = figure1.TIMES[index]
        counts = np.asarray(fullbandit.tracking_counts(task["design"], t))
        rows = np.asarray(task["design"].support, float)
        inverse = np.linalg.inv(rows.T @ (counts[:, None] * rows))
        largest = np.sqrt(np.einsum("si,ij,sj->s", sets, inverse, sets).max())
        radius = float(fullbandit.ellipsoid_radius(t, ARMS, SIZE, 0.05))
        ratio, difference = (float(quality[name][index]) for name in ("saqm_ratio", "saqm_difference"))
        assert 0.5 < ratio <= 1 + 1e-9
        assert difference == pytest.approx(radius * largest * (1 - ratio), rel=1e-6, abs=1e-9)
    for name in ("saqm_ratio", "sa_foa_ratio"):
        assert np.all((np.asarray(quality[name]) > 0) & (np.asarray(quality[name]) <= 1 + 1e-9))


@pytest.mark.wide
def test_rules_on_one_path_stop_in_the_order_of_their_guarantees(monkeypatch):
    """In every run spectral and ICB stop no earlier than Exhaustive. SA-FOA may stop earlier."""
    monkeypatch.setattr(certified, "TIMES", certified.TIMES[::20])
    columns = certified.paths(20, 1, Settings(quick=True))
    pulls = dict(zip(certified.RULES, columns["pulls_of"].T, strict=True))
    assert all(np.all(counts > 0) for counts in pulls.values())
    for bounded in ("spectral", "ICB, ellipsoid"):
        assert np.all(pulls[bounded] >= pulls["Exhaustive"])
    assert len(np.unique(columns["gap"])) == len(certified.GAPS)
