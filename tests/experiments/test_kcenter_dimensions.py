"""The experiments with DS-UCB on images: what is copied from the paper, what they claim of runs that are made up."""

from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from experiments import (
    _kcenter,
    _kcenter_dimensions,
    kcenter_figure1,
    kcenter_images,
    kcenter_table1,
    kcenter_table2,
    report,
)
from jaxbandits import Results, Status
from jaxbandits.kcenter import greedy, pairwise_sums

OPTIONS = {
    "quick": False,
    "seeds": None,
    "lanes": None,
    "folder": None,
    "workers": 1,
    "executor": None,
    "data": Path("data"),
    "random_up_to": None,
    "random": False,
}
K, M = 10, 12288
CENTERS = np.arange(K, dtype=np.int32)


def made_up(rows, settings, seeds, queries, *, k=K, wrong=lambda setting, run: False):
    """A sweep whose runs find centers 0 .. k-1, or a wrong last one; `queries` (setting, instance) -> (k-1,)."""
    rng = np.random.default_rng(0)
    count = len(next(iter(settings.values()))) if settings else 1
    row = np.repeat(np.arange(count * len(rows)), seeds)
    setting, run = np.divmod(row, len(rows))
    spent = np.array([queries(s, rows[r]) for s, r in zip(setting, run, strict=True)])
    spent = spent * rng.normal(1, 0.01, (len(row), 1))
    is_wrong = np.array([wrong(s, r) for s, r in zip(setting, run, strict=True)])
    indices = np.tile(CENTERS[:k], (len(row), 1))
    indices[is_wrong, -1] = 99
    return Results(
        {
            "row": row,
            "seed": np.tile(np.arange(seeds), count * len(rows)),
            "status": np.full(len(row), Status.STOPPED),
            "pulls": spent.sum(axis=1).astype(np.int64),
            "rounds": np.ones(len(row), int),
            "answer.indices": indices,
            "answer.found": np.full(len(row), k),
            "answer.queries": spent.astype(np.uint32),
            "ordered": ~is_wrong,
            "members": ~is_wrong,
            "greedy": np.tile(CENTERS[:k], (len(row), 1)),
            "radius": np.where(is_wrong, 1.04, 1.0) * rng.normal(1, 0.02, len(row)),
        },
        None,
    )


@pytest.fixture(autouse=True)
def no_data(monkeypatch):
    def images(options, count):
        points = np.broadcast_to(np.zeros((1, M), np.uint8), (count, M))
        return _kcenter.Images(points, np.zeros((1, 1), np.int32), "nothing")

    monkeypatch.setattr(_kcenter, "images", images)


def failed(result):
    return [claim.statement for claim in result.claims if not claim.holds]


def test_a_schedule_says_which_images_a_run_takes():
    plan = _kcenter_dimensions.schedule(3, 10, first=2, others=3, runs=2)
    assert plan.instance.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    # Four instances of three images have room for steps of two: they overlap, and wrap round.
    assert plan.rows[[0, 2, 4, 6]].tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6, 7, 8]]
    assert _kcenter.consecutive(10, 2, 10)[1].tolist() == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]
    assert _kcenter.consecutive(5, 2, 12).tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    setting, instance = plan.of({"row": np.array([0, 7, 8, 13])})
    assert setting.tolist() == [0, 0, 1, 1]
    assert instance.tolist() == [0, 3, 0, 2]


def test_centers_are_compared_as_far_as_they_are_wanted():
    columns = {
        "answer.indices": np.array([[0, 1, 2, 3], [0, 2, 1, 3], [0, 1, 3, -1], [0, 1, 2, -1]]),
        "answer.found": np.array([4, 4, 4, 2]),
        "greedy": np.tile(np.arange(4), (4, 1)),
    }
    three, two = (_kcenter.matches_until(columns, k) for k in (3, 2))
    assert three["ordered"].tolist() == [True, False, False, False]  # the last run only guesses its third
    assert three["members"].tolist() == [True, True, False, False]
    assert two["ordered"].tolist() == [True, False, True, True]


def test_the_first_images_and_the_instances_are_told_apart():
    columns = {
        "answer.indices": np.tile(CENTERS, (4, 1)),
        "answer.found": np.full(4, K),
        "answer.queries": np.array([[100] * 9, [140] * 9, [200] * 9, [300] * 9], np.uint32),
        "greedy": np.array([CENTERS, CENTERS, CENTERS, CENTERS[::-1]]),
        "status": np.full(4, Status.STOPPED),
        "instance": np.array([0, 0, 1, 2]),
    }
    found = _kcenter_dimensions.measured("queries", columns, unit=10.0, k=3, printed=50.0)
    assert found.first.ours == 24  # two stages of 100 and 140
    assert found.instances.tolist() == [24, 40, 60]
    assert found.first.printed_se == pytest.approx(np.std([24, 40, 60], ddof=1))
    assert (found.ordered, found.right) == ("2 of 2", (3, 4))
    assert found.range == "41.3 (24 to 60)"


def test_rises():
    def lines(*means):
        return [report.Line("", mean, se=0.1) for mean in means]

    assert _kcenter_dimensions.rises(lines(1, 2, 1.5, 3))
    assert not _kcenter_dimensions.rises(lines(1, 2, 1.4, 3))
    assert not _kcenter_dimensions.rises(lines(1, 1, 1))


def table1(monkeypatch, growth=1.45, of_pairs=1.25):
    def runs(heading, rule, images, rows, *, settings, seeds, **_):
        powers = np.array(kcenter_table1.OTHER) / kcenter_table1.OTHER[0]
        is_pairs = "pairs" in heading
        powers = powers ** (np.log(of_pairs if is_pairs else growth) / np.log(powers[-1]))
        return made_up(
            rows,
            settings,
            seeds,
            lambda s, row: np.full(9, 1.135e6 / 9 * (1.5 if is_pairs else 1) * powers[s] * (1 + row[0] / 40_000)),
        )

    monkeypatch.setattr(_kcenter_dimensions, "image_runs", runs)
    return kcenter_table1.run(Namespace(**OPTIONS))


def test_table1_judges_growth(monkeypatch, tmp_path):
    result = table1(monkeypatch)
    assert failed(result) == []
    assert len(result.claims) == 5
    head, rows = result.grid
    assert [row[head.index("paper")] for row in rows] == ["107", "109", "116", "123", "137", "141", "157"]
    assert {row[-1] for row in rows} == {"agrees"}  # instances differ by up to a quarter
    assert report.save(result, "table1", tmp_path)[2].stat().st_size > 10_000
    assert [text[:12] for text in failed(table1(monkeypatch, growth=1.6))] == ["with n point", "another prog"]
    assert [text[:12] for text in failed(table1(monkeypatch, of_pairs=1.4))] == ["with pairs, "]


def figure1(monkeypatch, change=None, right_from=0.1):
    mean = {1e-4: 9.05e3, 1e-3: 9.56e3} | {scale: value for scale, (value, _) in kcenter_figure1.OTHER.items()}

    def runs(heading, rule, images, rows, *, settings, seeds, **_):
        scales = settings["radius_scale"]
        return made_up(
            rows,
            settings,
            seeds,
            lambda s, row: np.full(9, mean[scales[s]] / 9 * (change or {}).get(scales[s], 1)),
            wrong=lambda s, run: scales[s] < right_from,
        )

    monkeypatch.setattr(_kcenter_dimensions, "image_runs", runs)
    return kcenter_figure1.run(Namespace(**OPTIONS))


def test_figure1_judges_its_curves(monkeypatch, tmp_path):
    result = figure1(monkeypatch)
    assert failed(result) == []
    assert report.save(result, "figure1", tmp_path)[2].stat().st_size > 10_000
    assert failed(figure1(monkeypatch, {0.1: 0.3}))[0] == "queries grow with C"
    assert [text[:16] for text in failed(figure1(monkeypatch, right_from=1e-4))] == [
        "errors fall with",
        "small radii do e",
        "another program ",
    ]


def table2(monkeypatch, change=lambda rule, n, queries: queries, **options):
    def runs(heading, rule, images, rows, *, settings, seeds, **_):
        name, n = heading.removeprefix("kcenter table 2: ").split(", n = ")
        n = int(n)
        other = kcenter_table2.OTHER[name] if name != "random" else kcenter_table2.PRINTED_RANDOM
        until = {
            k: np.mean(other[n, k]) if name == "random" else other[n, k][0] for k in (3, 5, 7, 10) if (n, k) in other
        }
        steps = np.interp(np.arange(2, K + 1), [1, *until], [0, *until.values()])
        return made_up(rows, settings, seeds, lambda s, row: change(name, n, 1e5 * np.diff(steps, prepend=0)))

    monkeypatch.setattr(_kcenter_dimensions, "image_runs", runs)
    return kcenter_table2.run(Namespace(**OPTIONS | options))


def test_table2_judges_what_it_finds(monkeypatch, tmp_path):
    result = table2(monkeypatch, lambda rule, n, queries: queries * (0.9 if (rule, n) == ("random", 100) else 1))
    assert failed(result) == []
    statements = [claim.statement for claim in result.claims]
    assert sum("times fewer queries" in text for text in statements) == 2
    head, rows = result.grid
    assert [row[0] for row in rows] == [
        *("100, 10", "500, 10", "1000, 10", "5000, 10", "10000, 10"),
        *("1000, 3", "1000, 5", "1000, 7"),
    ]
    # Fewer centers are a part of the same runs.
    ours = [row[head.index("DS-UCB, paper") + 1] for row in rows]
    assert [float(text.split()[0]) for text in ours[5:]] == pytest.approx([2.83, 5.05, 8.28], rel=0.02)
    assert [row[head.index("naive")] for row in rows] == ["123", "614", "1,229", "6,144", "12,288", "369", "614", "860"]
    assert [bool(row[3]) for row in rows] == [True, True, True, False, False, True, True, True]  # random sampling
    assert report.save(result, "table2", tmp_path)[2].stat().st_size > 10_000


@pytest.mark.parametrize(
    ("rule", "n", "factor", "claims"),
    [
        ("random", 1000, 1.5, ["random sampling takes"]),
        ("random", 100, 0.5, ["and on 100 images", "another program"]),
        ("DS-UCB", 10_000, 1.4, ["DS-UCB takes at least 200", "ten times the images", "another program"]),
        ("DS-UCB", 100, 1.3, ["DS-UCB takes at least 15", "another program"]),
        ("as printed", 500, 1.1, ["another program"]),
    ],
)
def test_table2_notices(rule, n, factor, claims, monkeypatch):
    def change(name, size, queries):
        right = 0.9 if (name, size) == ("random", 100) else 1
        return queries * (factor if (name, size) == (rule, n) else right)

    found = failed(table2(monkeypatch, change))
    assert len(found) == len(claims)
    assert all(text.startswith(start) for text, start in zip(found, claims, strict=True))


def test_table2_leaves_random_sampling_out(monkeypatch):
    result = table2(monkeypatch, random_up_to=1, data=None)
    assert not any("random" in claim.statement for claim in result.claims)
    assert not any("another program" in claim.statement for claim in result.claims)
    assert "DS-UCB, n = 10000" in result.columns["sweep"]
    assert not any(name.startswith("random") for name in np.unique(result.columns["sweep"]))


def test_pictures_show_what_was_found(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    points = rng.integers(0, 256, (50, M)).astype(np.uint8)
    images = _kcenter.Images(points, pairwise_sums(points), "noise")
    exact = greedy(images.sums, k=5).centers
    monkeypatch.setattr(_kcenter, "images", lambda options, count: images)

    def runs(heading, rule, given, rows, *, k, seeds, **_):
        assert rows.shape == (1, 50)
        wrong = "C = 0.01" in heading
        results = made_up(rows, None, seeds, lambda s, row: np.full(k - 1, 1e4), k=k, wrong=lambda s, run: wrong)
        indices = np.tile(exact, (seeds, 1))
        indices[:, 1] = (exact[1] + 1) % 50 if wrong else exact[1]
        results.columns["answer.indices"] = indices
        return results

    monkeypatch.setattr(_kcenter, "image_runs", runs)
    monkeypatch.setattr(_kcenter, "distance_runs", runs)
    result = kcenter_images.run(Namespace(**OPTIONS | {"quick": True}))
    assert failed(result) == []
    head, rows = result.grid
    needed = M * (49 + 48 + 47 + 46)
    assert [row[head.index("queries")] for row in rows[:1]] == [f"{needed:,}"]
    assert [row[0] for row in rows] == ["exact greedy", "DS-UCB", "DS-UCB, C = 0.01", "DS-TS", "NS-TS"]
    assert [row[head.index("ordered")] for row in rows] == ["", "4 of 4", "0 of 4", "1 of 1", "4 of 4"]
    assert rows[-1][head.index("below greedy")] == ""  # queries of another kind

    from matplotlib.figure import Figure

    figure = Figure()
    result.draw(figure)
    shown = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    assert len(shown) == 5 * 5
    framed = [axes.spines["left"].get_visible() for axes in figure.axes if axes.images]
    assert np.flatnonzero(framed).tolist() == [11]  # the second image of the third row
    assert np.array_equal(shown[12], points[exact[2]].reshape(64, 64, 3))
    texts = [text.get_text() for text in figure.texts]
    assert texts.count("all centers right") == 3
    assert "1 of 5 centers differ" in texts
    assert report.save(result, "images", tmp_path)[2].stat().st_size > 10_000
