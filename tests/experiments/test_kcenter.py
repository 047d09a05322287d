"""What the experiments on k-center share, and that on bounds: runs are laid out, counted and judged as said."""

from argparse import ArgumentParser, Namespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments import _kcenter, kcenter_bounds, report
from jaxbandits import Results, Status
from jaxbandits.kcenter import (
    Distances,
    Lil,
    PairPull,
    binary_rows,
    contrast_rows,
    ds_ucb,
    greedy,
    ns_ts,
    pairwise_sums,
)

OPTIONS = Namespace(quick=True, seeds=None, lanes=None, folder=None, workers=1, executor=None, data=None)
# Distances of 0, .1, .35, .8, 1, .45 and .97 on a line; first centers 0, 3 and 1 of the rows below.
LINE = np.abs(np.subtract.outer(x := np.array([0, 0.1, 0.35, 0.8, 1, 0.45, 0.97]), x))
ROWS = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [1, 4, 5, 6]], np.int32)


@pytest.fixture
def asked(monkeypatch):
    """What `simulate` is asked for, in place of runs."""
    seen = {}

    def simulate(heading, build, tasks, **rest):
        seen.update(rest, heading=heading, build=build, tasks=tasks)
        return Results({}, None)

    monkeypatch.setattr(_kcenter, "simulate", simulate)
    return seen


def task(tasks, row):
    return jax.tree.map(lambda values: jnp.asarray(values[row]), tasks)


def rewards(environment, pull):
    return jax.tree.map(np.asarray, environment.respond(pull, environment.noise(jax.random.key(0))))


# The table of tasks


def test_the_instances_of_a_setting_stand_side_by_side(asked):
    settings = {"delta": (0.1, 0.01), "mix": (0.0, 0.9)}
    _kcenter.distance_runs(
        "test",
        ns_ts,
        LINE,
        ROWS,
        k=3,
        action=PairPull,
        noise_scale=0.7,
        settings=settings,
        options=OPTIONS,
        seeds=4,
        max_rounds=7,
    )
    tasks = asked["tasks"]
    assert tasks["settings"]["delta"].tolist() == [0.1] * 3 + [0.01] * 3
    assert tasks["settings"]["mix"].tolist() == [0] * 3 + [0.9] * 3
    assert tasks["rows"].tolist() == [*ROWS.tolist()] * 2
    # From 0: .8, then .35. From .8: 0, then .35 (node 1). From .1: 1, then .45.
    assert tasks["truth"].tolist() == [[0, 3, 2], [0, 3, 1], [0, 1, 2]] * 2
    assert "noise_scale" not in tasks
    assert (asked["seeds"], asked["max_rounds"], asked["heading"]) == (4, 7, "test")


def test_settings_may_be_missing(asked):
    _kcenter.distance_runs(
        "test", ns_ts, LINE, ROWS, k=2, action=PairPull, noise_scale=0.7, options=OPTIONS, seeds=1, max_rounds=1
    )
    assert asked["tasks"]["settings"] == {}
    assert asked["tasks"]["truth"].tolist() == [[0, 3], [0, 3], [0, 1]]


def test_an_instance_may_have_noise_of_its_own(asked):
    rules = []

    def rule(problem, **arguments):
        rules.append(arguments)
        return ns_ts(problem, **arguments)

    _kcenter.distance_runs(
        "test",
        rule,
        LINE,
        ROWS,
        k=3,
        action=PairPull,
        noise_scale=(0.05, 0.1, 0.2),
        settings={"delta": (0.1, 0.01)},
        options=OPTIONS,
        seeds=1,
        max_rounds=1,
    )
    assert asked["tasks"]["noise_scale"].tolist() == [0.05, 0.1, 0.2] * 2
    pull = PairPull(jnp.array([1, 2], jnp.int32), jnp.zeros(2, jnp.int32), jnp.zeros(2, jnp.int32), Distances(4, 3))
    noise = []
    for row in (3, 4, 5):
        _, environment = asked["build"](task(asked["tasks"], row), None)
        points = ROWS[row % 3]
        noise.append(rewards(environment, pull) - LINE[points[[1, 2]], points[0]])
    assert [float(each["noise_scale"]) for each in rules] == [0.05, 0.1, 0.2]
    assert {float(each["delta"]) for each in rules} == {0.01}
    np.testing.assert_allclose(np.array(noise[1:]) / noise[0], np.repeat([[2.0], [4.0]], 2, axis=1), rtol=1e-9)


def test_instances_take_their_points_from_the_same_images(asked):
    points = np.arange(7, dtype=np.uint8)[:, None] * np.array([[1, 30]], np.uint8)
    images = _kcenter.Images(points, pairwise_sums(points), "points")
    _kcenter.image_runs("test", ds_ucb, images, ROWS, k=2, settings={"delta": (0.1,)}, options=OPTIONS, seeds=1)
    assert asked["tasks"]["truth"].tolist() == [[0, 3], [0, 3], [0, 3]]
    algorithm, environment = asked["build"](task(asked["tasks"], 2), jax.random.key(0))
    # Nodes 1 and 0 of the last instance are points 4 and 1.
    pull = algorithm.idle._replace(node=jnp.int32(1), slot=jnp.int32(0), centers=jnp.zeros(1, jnp.int32))
    sample = rewards(environment, pull)
    assert sample.rewards.shape == (_kcenter.LEAP, 1)
    assert set(sample.rewards[:, 0].tolist()) == {9, 9 * 30**2}
    assert int(sample.exact) == 9 + 9 * 30**2


def test_blocks_are_disjoint_where_there_is_room():
    assert _kcenter.blocks(2, 3).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert _kcenter.consecutive(2, 3, 7).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert _kcenter.consecutive(4, 3, 6).tolist() == [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 0, 1]]
    assert _kcenter.consecutive(6, 1, 6).tolist() == [[0, 1, 2, 3, 4, 5]]


# What is read from the runs

COLUMNS = {
    "answer.queries": np.array([[2**31, 2**31, 5], [10, 20, 30], [10, 20, 30], [10, 7, 0]], np.uint32),
    "answer.found": np.array([4, 4, 4, 2]),
    "answer.indices": np.array([[0, 4, 2, 1], [0, 2, 4, 1], [0, 4, 2, 3], [0, 4, 2, -1]]),
    "greedy": np.tile([0, 4, 2, 1], (4, 1)),
    "ordered": np.array([True, False, False, False]),
    "members": np.array([True, True, False, False]),
}


def test_a_run_for_more_centers_says_when_it_had_fewer():
    assert _kcenter.queries_until(COLUMNS, 4).tolist() == [2**32 + 5, 60, 60, 17]
    assert _kcenter.queries_until(COLUMNS, 3).tolist() == [2**32, 30, 30, 17]
    assert _kcenter.queries_until(COLUMNS, 2).tolist() == [2**31, 10, 10, 10]


@pytest.mark.parametrize(
    ("k", "ordered", "members"),
    [
        (4, [True, False, False, False], [True, True, False, False]),
        (3, [True, False, True, False], [True, True, True, False]),
        (2, [True, False, True, True], [True, False, True, True]),
    ],
)
def test_centers_are_compared_as_far_as_they_were_found(k, ordered, members):
    # The last run guesses its third center right, but has not found it. The second one has the order wrong.
    found = _kcenter.matches_until(COLUMNS, k)
    assert found["ordered"].tolist() == ordered
    assert found["members"].tolist() == members


def test_shares_are_counts_of_runs():
    assert _kcenter.share(COLUMNS) == "1 of 4"
    assert _kcenter.share(COLUMNS, "members") == "2 of 4"


def test_a_run_is_compared_with_greedy():
    def rule(problem, *, radius_scale, leap):
        return ds_ucb(problem, delta=0.1, interval=Lil(radius_scale), leap=leap)

    points = contrast_rows(8, 16, 0)
    images = _kcenter.Images(points, pairwise_sums(points), "points")
    rows = np.array([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]], np.int32)
    columns = _kcenter.image_runs(
        "test",
        rule,
        images,
        rows,
        k=3,
        settings={"radius_scale": (1.0, 1e-4)},
        options=OPTIONS,
        seeds=8,
        leap=4,
        levels=None,
    ).columns
    truth = np.array([greedy(images.sums[np.ix_(row, row)], k=3).centers for row in rows])
    instance, is_careful = columns["row"] % 2, columns["row"] < 2
    assert columns["greedy"].tolist() == truth[instance].tolist()
    assert (columns["status"] == Status.STOPPED).all()
    assert columns["ordered"][is_careful].all()
    assert columns["radius"][is_careful].tolist() == [1] * 16
    wrong = ~columns["ordered"]
    assert wrong.tolist() == np.any(columns["answer.indices"] != truth[instance], axis=1).tolist()
    assert 0 < wrong.sum() < 16
    spread = columns["radius"][wrong & ~columns["members"]]
    assert len(set(spread)) > 1
    assert _kcenter.queries_until(columns, 3).tolist() == columns["pulls"].tolist()


# The data


def parsed(arguments):
    parser = ArgumentParser()
    _kcenter.add_data_argument(parser)
    return parser.parse_args(arguments).data


def folder(tmp_path, *parts):
    for part in parts:
        (tmp_path / part).mkdir(parents=True)
    return str(tmp_path)


def test_data_is_a_folder_with_images_and_shoes(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(_kcenter.VARIABLE, raising=False)
    assert parsed([]) is None
    data = folder(tmp_path, _kcenter.IMAGES)
    with pytest.raises(SystemExit):
        parsed(["--data", data])
    error = capsys.readouterr().err
    assert f"--data: must hold {tmp_path / _kcenter.SHOES}\n" in error
    folder(tmp_path, _kcenter.SHOES)
    assert parsed(["--data", data]) == tmp_path
    with pytest.raises(SystemExit):
        parsed(["--data", str(tmp_path / "nothing")])
    assert capsys.readouterr().err.count("nothing") == 2


def test_data_may_come_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv(_kcenter.VARIABLE, folder(tmp_path / "a", _kcenter.IMAGES, _kcenter.SHOES))
    assert parsed([]) == tmp_path / "a"
    given = folder(tmp_path / "b", _kcenter.IMAGES, _kcenter.SHOES)
    assert parsed(["--data", given]) == tmp_path / "b"


def test_without_data_the_library_has_its_own():
    crops = _kcenter.images(OPTIONS, 3)
    assert crops.points.shape == (3, 12288)
    assert crops.label == "crops of two photographs"
    exact = np.square(crops.points[:, None].astype(float) - crops.points).mean(axis=-1) / 255**2
    np.testing.assert_allclose(crops.distances, exact, rtol=1e-12)
    judged = _kcenter.judgements(OPTIONS, 5)
    assert judged.distances.shape == (5, 5)
    assert judged.label == "simulated judgements"


# The experiment on bounds


def test_queries_are_put_over_every_bound():
    theory = kcenter_bounds.Bounds(
        lower=np.array([[10.0, 20], [30, 40]]),
        upper=np.arange(1.0, 5)[:, None].reshape(2, 2, 1) * kcenter_bounds.FACTORS,
        binary=np.array([100.0, 200]),
        unit=np.array([1.0, 1]),
    )
    columns = {"row": np.array([1, 2]), "pulls": np.array([240, 240])}
    found = kcenter_bounds.ratios(columns, (0.1, 1e-6), theory, theory.binary, is_sampled=True)
    assert found["delta"].tolist() == [0.1, 1e-6]
    assert found["instance"].tolist() == [1, 0]
    beta = np.log((1 + np.log(240)) * 50**2 / np.array([0.1, 1e-6]))
    most = 2 * 1500 * (49 + 48)
    expected = np.array(
        [
            [240 / 20, 1.2 / np.log(1 / 0.24), 1.2 / beta[0], 240 / 2, 240 / most],
            [240 / 30, 2.4 / np.log(1 / 2.4e-6), 2.4 / beta[1], 240 / 3, 240 / most],
        ]
    )
    np.testing.assert_allclose(found["ratios"], expected, rtol=1e-12)
    # 2 c and 3 c are to reach 240, c among factors that grow by 6 %.
    assert np.all(found["factor"] >= [120, 80])
    assert np.all(found["factor"] < np.array([120, 80]) * 10 ** (1 / 40) * (1 + 1e-9))
    noisy = kcenter_bounds.ratios(columns, (0.1, 1e-6), theory, np.full(2, 100.0), is_sampled=False)
    assert np.isfinite(noisy["ratios"]).tolist() == [[False, True, True, False, False]] * 2
    np.testing.assert_allclose(noisy["ratios"][0, 1:3], expected[0, 1:3] * 2, rtol=1e-12)


def made_up(queries, wrong=()):
    """In place of `image_runs` and `distance_runs`: runs of `queries(heading, delta)`, all right but those listed."""

    def runs(heading, rule, images, rows, *, k, settings, seeds, **_):
        name = heading.removeprefix("kcenter bounds: ")
        row = np.repeat(np.arange(len(settings["delta"]) * len(rows)), seeds)
        delta = np.asarray(settings["delta"])[row // len(rows)]
        right = np.full(len(row), name not in wrong)
        columns = {
            "row": row,
            "status": np.full(len(row), Status.STOPPED),
            "pulls": queries(name, delta).astype(int),
            "ordered": right,
            "members": right,
        }
        return Results(columns, None)

    return runs


def theory_of(deltas, count):
    upper = np.broadcast_to(1e5 * kcenter_bounds.FACTORS, (len(deltas), count, len(kcenter_bounds.FACTORS)))
    return kcenter_bounds.Bounds(np.full((len(deltas), count), 100.0), upper, np.full(count, 1e3), np.ones(count))


def usual(name, delta):
    if name in kcenter_bounds.SAMPLED:
        return np.full(len(delta), 5e4)
    factor = {kcenter_bounds.DIFFERENCE: 3, kcenter_bounds.THOMPSON: 2}.get(name, 1)
    return factor * kcenter_bounds.NOISY[name].time * 1.05 * (12 - np.log(delta))


def bounds_report(monkeypatch, queries=usual, wrong=()):
    found = kcenter_bounds.Instances(None, np.zeros((3, 50)), None, None, None, None)
    monkeypatch.setattr(kcenter_bounds, "instances", lambda count: found)
    monkeypatch.setattr(kcenter_bounds, "bounds", lambda found, deltas: theory_of(deltas, 3))
    for name in ("image_runs", "distance_runs"):
        monkeypatch.setattr(kcenter_bounds, name, made_up(queries, wrong))
    return kcenter_bounds.run(OPTIONS)


def failed(result):
    return [claim.statement.split(":")[0] for claim in result.claims if not claim.holds]


def test_bounds_shows_a_row_for_every_rule_and_delta(monkeypatch, tmp_path):
    result = bounds_report(monkeypatch)
    assert failed(result) == []
    head, rows = result.grid
    assert len(rows) == len(result.lines) == 3 * 9
    assert {len(row) for row in rows} == {len(head)}
    assert rows[0][:2] == (kcenter_bounds.HEURISTIC, "0.1")
    assert rows[0][head.index("/ Theorem 1")] == "500"
    assert rows[0][head.index("/ Theorem 2")] == "0.5"
    assert rows[-1][head.index("/ Theorem 1")] == "-"
    assert rows[-1][head.index("/ T* log")] == f"{1.05 * (12 + np.log(1e12)) / np.log(1 / 2.4e-12):.3g}"
    assert "1.05 +- 0.00" in result.claims[0].measured
    assert report.save(result, "bounds", tmp_path)[2].stat().st_size > 10_000


@pytest.mark.parametrize(
    ("name", "change", "claims"),
    [
        (kcenter_bounds.LONG, lambda delta: 1.12, ["ratio tracking tends to the line of slope 1"]),
        (kcenter_bounds.DIFFERENCE, lambda delta: 0.3, ["difference tracking and NS-TS take more queries than ratio"]),
        (
            kcenter_bounds.HEURISTIC,
            lambda delta: 2.1,
            ["Theorem 2 with c = 1 is enough for every run of DS-UCB, C = 0.1"],
        ),
        ("DS-TS", lambda delta: np.where(delta == 0.1, 0.001, 1), ["no run takes less than Theorem 1 says"]),
        ("DS-UCB, KL", lambda delta: 7, ["none exceeds 2 m queries for each arm"]),
    ],
)
def test_bounds_notices(name, change, claims, monkeypatch):
    def queries(rule, delta):
        return usual(rule, delta) * (change(delta) if rule == name else 1)

    found = failed(bounds_report(monkeypatch, queries))
    assert len(found) == len(claims)
    assert all(text.startswith(start) for text, start in zip(found, claims, strict=True))


def test_bounds_counts_errors_at_every_delta(monkeypatch):
    result = bounds_report(monkeypatch, wrong=[kcenter_bounds.RATIO])
    assert failed(result) == ["the rules that see noise"]
    assert result.claims[-1].measured == "3 of 15 at 0.1, 3 of 15 at 0.0001, 3 of 15 at 1e-12"


def test_bounds_are_those_of_each_instance(monkeypatch):
    def lower(distances, centers, delta):
        return distances[0, 1], centers[1] * delta

    monkeypatch.setattr(kcenter_bounds, "FACTORS", np.array([0.5, 1, 2]))
    monkeypatch.setattr(kcenter_bounds, "lower_bound", lower)
    monkeypatch.setattr(kcenter_bounds, "upper_bound", lambda distances, centers, m, delta, c: centers[1] * c + delta)
    monkeypatch.setattr(
        kcenter_bounds, "stage_times", lambda distances, centers, noise_scale: noise_scale**2 * jnp.ones(2)
    )
    distances = np.zeros((3, 50, 50))
    distances[:, 0, 1] = 100, 200, 300
    centers = np.array([[0, 5.0, 1], [0, 6, 1], [0, 7, 1]])
    bottlenecks = np.array([[0.5, 0.4], [0.5, 0.3], [0.5, 0.2]])
    found = kcenter_bounds.Instances(None, None, None, distances, centers, bottlenecks)
    theory = kcenter_bounds.bounds(found, (0.1, 0.01))
    np.testing.assert_allclose(theory.lower, [[100.5, 200.6, 300.7], [100.05, 200.06, 300.07]])
    np.testing.assert_allclose(theory.upper[:, 1], [[3.1, 6.1, 12.1], [3.01, 6.01, 12.01]])
    np.testing.assert_allclose(theory.binary, [0.49, 0.46, 0.41])
    np.testing.assert_allclose(theory.unit, 2)


def test_instances_with_ties_are_left_out():
    # Seed 6 has two nodes that are equally far from the first.
    found = kcenter_bounds.instances(7)
    seventh = binary_rows(50, 1500, 7)
    assert found.images.points[-50:].tolist() == seventh.tolist()
    assert greedy(pairwise_sums(binary_rows(50, 1500, 6)), k=3).gaps.min() == 0
