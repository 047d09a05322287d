"""The experiments on combinatorial pure exploration: samples are shared, and reports judge what they find."""

from argparse import Namespace
from functools import partial

import numpy as np
import pytest

from experiments import _cpe, cpe_delta, cpe_eight, cpe_gap, cpe_radius, report
from jaxbandits import Results, Status, cpe

OPTIONS = Namespace(quick=False, seeds=None, lanes=None, folder=None, workers=1, executor=None)


# Runs


def test_runs_of_one_heading_see_the_same_samples():
    pair = [_cpe.best_arm_instance((0.95, 0.1)), _cpe.without_noise(_cpe.best_arm_instance((1, 0)))]
    columns = _cpe.runs(
        "test",
        pair,
        "COCI",
        options=OPTIONS,
        replicates=[3, 1],
        settings={"delta": (0.1, 0.1, 1e-6)},
        leap=1,
        adapt=partial(_cpe.watched, tau=1),
        metrics=_cpe.was_inside,
    ).columns
    assert columns["replicate"].tolist() == [0, 1, 2, 0] * 3
    assert columns["instance"].tolist() == [0, 0, 0, 1] * 3
    assert columns["delta"].tolist() == [0.1] * 8 + [1e-6] * 4
    assert columns["right"].all()
    assert columns["inside"].all()
    first, again, surer = columns["pulls"].reshape(3, 4)
    assert first.tolist() == again.tolist()
    assert np.all(surer > first)
    assert len(set(first[:3])) > 1
    # Without noise: the radii add up to 1.005 after 64 pulls, and to 0.999 after 65.
    assert first[3] == 65
    assert columns["counts"][3].tolist() == [33, 32]


def test_clucb_is_for_linear_means():
    names = ("best5", "water3", "osa4", "paths5")
    refused = [name for name in names if _cpe.refuses("CLUCB", getattr(cpe, name)())]
    assert refused == ["water3", "osa4"]
    assert [name for name, ends in cpe_eight.NOISE_FREE.items() if len(ends) == 2] == refused
    assert not _cpe.refuses("uniform", cpe.osa4())


def test_samples_without_noise_are_theta():
    arms = _cpe.without_noise(cpe.best5()).arms
    assert np.all(arms.low == arms.high)
    assert arms.low[:, 0].tolist() == [0.85, 0.6, 0.55, 0.35, 0.1]
    assert _cpe.is_binary(cpe.best5().arms)
    assert not _cpe.is_binary(arms)
    assert not _cpe.is_binary(cpe.osa4().arms)


def test_law_of_best5():
    (law,) = _cpe.laws(cpe.best5())
    assert law.radii == pytest.approx([0.125, 0.125, 0.15, 0.25, 0.375])
    assert round(law.H, 2) == 195.56
    assert (round(law.coci), round(law.bound)) == (2681, 22734)


# Claims


def test_means_are_compared_with_the_other_program():
    def claim(*means):
        lines = {key: report.Line(f"line {key}", mean, se=2.0, runs=300) for key, mean in enumerate(means)}
        return _cpe.same_as_the_other(lines, {0: (100, 100), 1: (200, 100), 2: (300, 100)})

    # Theirs have a standard error of 2 sqrt(3), so that the difference has one of 4.
    assert claim(116, 200).holds
    found = claim(100, 217)
    assert not found.holds
    assert "4.1 apart (line 1), median 2.1" in found.measured


def test_ranges_and_orders():
    assert _cpe.in_range("x", {"a": 1.0, "b": 2.0}, 1, 2).holds
    assert not _cpe.in_range("x", {"a": 1.0, "b": 2.1}, 1, 2).holds
    assert not _cpe.in_range("x", {"a": np.nan}, 1, 2).holds
    assert _cpe.never_falls([0, 0, 1])
    assert not _cpe.never_falls([0, 1, 0.5])
    assert not _cpe.never_falls([0, np.nan])


def failing(result):
    return [claim.statement for claim in result.claims if not claim.holds]


def made_up(means, spread, **further):
    """Runs of every setting, one after the other; all of them right."""
    rng = np.random.default_rng(0)

    def runs(heading, cases, rule, *, replicates, settings=None, **_):
        case = np.arange(len(means[rule])).repeat(replicates)
        pulls = np.concatenate([rng.normal(mean, spread * mean, replicates) for mean in means[rule]])
        columns = {
            "row": np.arange(len(case)),
            "status": np.full(len(case), Status.STOPPED),
            "pulls": pulls,
            "right": np.ones(len(case), bool),
            "counts": np.zeros((len(case), 5), int),
            "instance": np.zeros(len(case), int) if settings else case,
        }
        settings = {name: np.repeat(values, replicates) for name, values in (settings or {}).items()}
        return Results(columns | settings | {key: f(case) for key, f in further.items()}, None)

    return runs


def test_gap_notices_another_growth(monkeypatch, tmp_path):
    monkeypatch.setattr(_cpe, "runs", made_up(cpe_gap.OTHER, 0.1))
    result = cpe_gap.run(OPTIONS)
    assert failing(result) == []
    assert result.grid[1][0][:4] == ("1.0", "154.2", "17,485", "2,053")
    assert report.save(result, "gap", tmp_path)[2].stat().st_size > 10_000
    laws = {gap: _cpe.Law(None, *(x * gap**-2 for x in (154.2, 272.1, 2053, 3610, 1e5, 1e5))) for gap in cpe_gap.GAPS}
    slow = {
        (rule, gap): report.Line("", mean * gap**-0.2)
        for rule, means in cpe_gap.OTHER.items()
        for gap, mean in zip(cpe_gap.GAPS, means, strict=True)
    }
    failed = [claim for claim in cpe_gap.growth_claims(slow, laws) if not claim.holds]
    assert failed[0].statement.startswith("the slope of log T")


def test_delta_wants_every_run_to_grow(monkeypatch):
    means = {
        "COCI": list(cpe_delta.OTHER["COCI"].values()),
        "uniform": np.interp(-np.log(cpe_delta.DELTAS), (1.2, 13.8), (4862, 7259)),
        "CLUCB": np.interp(-np.log(cpe_delta.DELTAS), (1.2, 13.8), (2140, 3320)),
    }
    monkeypatch.setattr(_cpe, "runs", made_up(means, 1e-3))
    assert failing(cpe_delta.run(OPTIONS)) == []
    steps = {rule: np.array([[10.0, 20], [11, 19], [12, 21]]) for rule in _cpe.RULES}
    claim = cpe_delta.grows(steps)
    assert not claim.holds
    assert "COCI 3 of 4 steps" in claim.measured


def test_radius_notices_errors_where_xi_holds(monkeypatch, tmp_path):
    def alternating(shares):
        """That share of each setting's 1000 runs."""
        return lambda case: np.arange(len(case)) % 1000 < 1000 * np.asarray(shares)[case]

    xi, error = ([share for share, _ in pairs] for pairs in (cpe_radius.OTHER_XI, cpe_radius.OTHER_ERROR))
    right = alternating(1 - np.asarray(error))
    means = {"COCI": cpe_radius.OTHER_PULLS}
    monkeypatch.setattr(_cpe, "runs", made_up(means, 0.1, right=right, inside=alternating(xi)))
    result = cpe_radius.run(OPTIONS)
    assert failing(result) == []
    assert result.grid[1][4][2] == "0.1300 +- 0.0106"
    assert report.save(result, "radius", tmp_path)[2].stat().st_size > 10_000
    monkeypatch.setattr(
        _cpe, "runs", made_up(means, 0.1, right=right, inside=lambda case: ~alternating(1 - np.asarray(xi))(case))
    )
    assert failing(cpe_radius.run(OPTIONS)) == ["where xi holds the answer is right, whatever the radius"]


@pytest.mark.parametrize("wrong", [None, "T", "counts"])
def test_eight_wants_the_known_ends_to_the_pull(wrong, monkeypatch, tmp_path):
    rng = np.random.default_rng(2)
    shared = rng.normal(1, 0.1, 400)

    def runs(heading, pair, rule, **_):
        name = heading.removeprefix("cpe eight: ")
        place = cpe_eight.RULES.index(rule)
        end = cpe_eight.NOISE_FREE[name][place] + (wrong == "T" and rule == "CLUCB")
        counts = np.array(cpe_eight.NOISE_FREE_COUNTS[name])
        counts[:2] += np.array([1, -1]) * (wrong == "counts")
        return Results(
            {
                "row": np.arange(401),
                "status": np.full(401, Status.STOPPED),
                "pulls": np.append(cpe_eight.OTHER[name][place] * shared, end).astype(int),
                "right": np.ones(401, bool),
                "inside": np.ones(401, bool),
                "counts": np.tile(counts, (401, 1)),
                "instance": np.repeat([0, 1], [400, 1]),
            },
            None,
        )

    monkeypatch.setattr(_cpe, "runs", runs)
    monkeypatch.setattr(cpe_eight, "NAMES", ("best5",))
    result = cpe_eight.run(OPTIONS)
    expected = {
        None: [],
        "T": ["without noise every rule stops at the known T"],
        "counts": ["without noise COCI's pulls of every arm are the known ones"],
    }
    assert failing(result) == expected[wrong]
    assert report.save(result, "eight", tmp_path)[2].stat().st_size > 10_000
