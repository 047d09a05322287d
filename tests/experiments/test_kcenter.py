"""The experiments on k-center: schedules, counts and verdicts of runs."""

from argparse import ArgumentParser
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from experiments.claims import allowed, errors
from experiments.kcenter import bounds, common, noisy, sampling, table5, table6, triangle
from experiments.kcenter import errors as error_rates
from experiments.report import line_of
from experiments.settings import Settings
from jaxbandits import Status
from jaxbandits.kcenter import Confidence, Lil, binary_rows, contrast_rows, ds_ucb, greedy, pairwise_sums
from jaxbandits.kcenter._shared.triangle import CenterBounds

OPTIONS = Settings(quick=True)
K = 10
CENTERS = np.arange(K, dtype=np.int32)
COLUMNS = {
    "answer.queries": np.array([[2**31, 2**31, 5], [10, 20, 30], [10, 20, 30], [10, 7, 0]], np.uint32),
    "answer.found": np.array([4, 4, 4, 2]),
    "status": np.array([Status.STOPPED] * 3 + [Status.MAX_ROUNDS]),
    "answer.indices": np.array([[0, 4, 2, 1], [0, 2, 4, 1], [0, 4, 2, 3], [0, 4, 2, -1]]),
    "greedy": np.tile([0, 4, 2, 1], (4, 1)),
    "ordered": np.array([True, False, False, False]),
    "members": np.array([True, True, False, False]),
}


def test_until_cuts_a_run_at_fewer_centers():
    four, three, two = (common.until(COLUMNS, k) for k in (4, 3, 2))
    assert four["pulls"].tolist() == [2**32 + 5, 60, 60, 17]
    assert three["pulls"].tolist() == [2**32, 30, 30, 17]
    assert two["pulls"].tolist() == [2**31, 10, 10, 10]
    assert (four["status"] == three["status"]).all()
    assert four["status"].tolist() == COLUMNS["status"].tolist()
    assert (two["status"] == Status.STOPPED).all()


@pytest.mark.parametrize(
    ("k", "ordered", "members"),
    [
        (4, [True, False, False, False], [True, True, False, False]),
        (3, [True, False, True, False], [True, True, True, False]),
        (2, [True, False, True, True], [True, False, True, True]),
    ],
)
def test_until_compares_the_centers_found(k, ordered, members):
    # The last run guesses its third center right, but has not found it. The second run has the order wrong.
    columns = common.until(COLUMNS, k)
    assert columns["ordered"].tolist() == ordered
    assert columns["members"].tolist() == members


def test_image_runs_compare_answers_with_greedy():
    def rule(problem, *, delta, radius_scale, leap):
        assert delta == common.DELTA
        return ds_ucb(problem, delta=delta, interval=Lil(radius_scale), leap=leap)

    points = contrast_rows(8, 16, 0)
    images = common.as_images(points, levels=None)
    rows = np.array([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]], np.int32)
    columns = common.image_runs(
        "test",
        rule,
        images,
        rows,
        k=3,
        settings={"radius_scale": (1.0, 1e-4)},
        options=OPTIONS,
        seeds=8,
        drawn={"leap": 4},
    )
    truth = np.array([greedy(images.sums[np.ix_(row, row)], k=3).centers for row in rows])
    instance, is_careful = columns["instance"], columns["radius_scale"] == 1
    assert instance.tolist() == (columns["row"] % 2).tolist()
    assert is_careful.tolist() == (columns["row"] < 2).tolist()
    assert columns["greedy"].tolist() == truth[instance].tolist()
    assert (columns["status"] == Status.STOPPED).all()
    assert columns["ordered"][is_careful].all()
    assert columns["radius"][is_careful].tolist() == [1] * 16
    wrong = ~columns["ordered"]
    assert wrong.tolist() == np.any(columns["answer.indices"] != truth[instance], axis=1).tolist()
    assert 0 < wrong.sum() < 16
    spread = columns["radius"][wrong & ~columns["members"]]
    assert len(set(spread)) > 1
    assert common.until(columns, 3)["pulls"].tolist() == columns["pulls"].tolist()


def parsed(arguments):
    parser = ArgumentParser()
    common.add_arguments(parser)
    return parser.parse_args(arguments).data


def folder(tmp_path, *parts):
    for part in parts:
        (tmp_path / part).mkdir(parents=True)
    return str(tmp_path)


def test_data_must_have_images_and_shoes(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(common.VARIABLE, raising=False)
    assert parsed([]) is None
    data = folder(tmp_path, common.IMAGES)
    with pytest.raises(SystemExit):
        parsed(["--data", data])
    error = capsys.readouterr().err
    assert f"--data: must hold {tmp_path / common.SHOES}\n" in error
    folder(tmp_path, common.SHOES)
    assert parsed(["--data", data]) == tmp_path
    with pytest.raises(SystemExit):
        parsed(["--data", str(tmp_path / "nothing")])
    assert capsys.readouterr().err.count("nothing") == 2


def test_images_and_judgements_without_data_are_generated():
    crops = common.images(None, 3)
    assert crops.points.shape == (3, 12288)
    assert crops.label == "crops of two photographs"
    exact = np.square(crops.points[:, None].astype(float) - crops.points).mean(axis=-1) / 255**2
    np.testing.assert_allclose(crops.distances, exact, rtol=1e-12)
    distances, label = common.judgements(None, 5)
    assert distances.shape == (5, 5)
    assert label == "simulated judgements"


def test_bounds_instances_skip_ties():
    # Seed 6 has two nodes that are equally far from the first.
    instances = bounds.instances(7)
    seventh = binary_rows(50, 1500, 7)
    assert instances.points[-50:].tolist() == seventh.tolist()
    assert greedy(pairwise_sums(binary_rows(50, 1500, 6)), k=3).gaps.min() == 0


def test_scheduled_runs_take_consecutive_images(monkeypatch):
    def image_runs(heading, rule, images, rows, **more):
        return {"rows": rows, "instance": np.arange(len(rows))}

    monkeypatch.setattr(common, "image_runs", image_runs)
    columns = sampling.scheduled_runs("", ds_ucb, common.as_images(np.zeros((10, 1))), 3, first=2, others=3, runs=2)
    assert columns["instance"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    # Four instances of three images among ten step by two, so that they overlap. Longer ones wrap round.
    assert columns["rows"][[0, 2, 4, 6]].tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 6], [6, 7, 8]]
    assert common.consecutive(10, 2, 10)[1].tolist() == [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]
    assert common.consecutive(5, 2, 12).tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_sweeps_of_run_every_rule_as_often_as_its_size_states(monkeypatch):
    asked = {}

    def scheduled(heading, rule, images, n, *, options, **more):
        asked[heading] = more
        return {}

    monkeypatch.setattr(sampling, "scheduled_runs", scheduled)
    rules = {
        "plain": sampling.Rule("", "plain {}", ds_ucb, {}, drawn={"leap": 3}),
        "wide": sampling.Rule("", "wide {}", ds_ucb, {}, has_others=True, times=2),
        "random": sampling.Rule("", "random {}", ds_ucb, {}, is_random=True),
    }
    sizes = {3: sampling.Size(1, 2, 2, 4), 5: sampling.Size(1, random=4), 7: sampling.Size(1)}
    points = np.zeros((12, 1))
    options = OPTIONS._replace(extra={"random_up_to": 3})
    sweeps = sampling.sweeps_of(rules, sizes, common.as_images(points), options)
    assert sweeps.keys() == {*((rule, n) for rule in ("plain", "wide") for n in sizes), ("random", 3)}
    assert asked["plain 3"] == {"first": 1, "others": 0, "runs": 2, "drawn": {"leap": 3}}
    assert asked["wide 3"] == {"first": 2, "others": 2, "runs": 2, "drawn": common.LEAP}
    assert asked["random 3"] == {"first": 4, "others": 0, "runs": 2, "drawn": sampling.DRAWS, "lanes": 4}
    sampling.sweeps_of(rules, {3: sizes[3]}, common.as_images(points), options._replace(seeds=3))
    assert asked["wide 3"]["first"] == 6


def test_measured_separates_the_first_images_from_the_instances():
    columns = {
        "answer.indices": np.tile(CENTERS, (4, 1)),
        "answer.found": np.full(4, K),
        "answer.queries": np.array([[100] * 9, [140] * 9, [200] * 9, [300] * 9], np.uint32),
        "greedy": np.array([CENTERS, CENTERS, CENTERS, CENTERS[::-1]]),
        "status": np.full(4, Status.STOPPED),
        "instance": np.array([0, 0, 1, 2]),
    }
    result = sampling.measured("queries", common.until(columns, 3), unit=10.0, printed=50.0)
    assert result.line.ours == 24  # two stages of 100 and 140
    assert result.instances.tolist() == [24, 40, 60]
    assert result.line.printed_se == pytest.approx(np.std([24, 40, 60], ddof=1))
    assert (common.matches(result.first), result.right) == ("2 (2) of 2", "3 of 4")
    assert result.spread == "41.3 (24 to 60)"


# Noisy distances


def test_by_instance_has_no_mean_with_a_censored_run():
    columns = {
        "answer.found": np.array([3, 2, 1, 3]),
        "answer.queries": np.array([[10, 20], [30, 5], [7, 0], [2**31, 2**31]], np.uint32),
        "answer.indices": np.array([[0, 4, 2], [0, 4, 3], [0, 1, -1], [0, 2, 4]]),
        "greedy": np.tile([0, 4, 2], (4, 1)),
        "status": np.array([Status.STOPPED, Status.MAX_ROUNDS, Status.MAX_ROUNDS, Status.STOPPED]),
        "instance": np.array([0, 0, 1, 1]),
    }
    two, three = (common.until(columns, k) for k in (2, 3))
    first, second = noisy.by_instance(two, unit=10.0)
    assert (first.ours, first.se, first.runs) == (2, pytest.approx(1), 2)
    assert np.isinf(second.ours)
    assert np.isnan(second.se)
    assert noisy.slashed_means([first, second]) == "2/- +- 1/-"
    assert line_of("", two).ours == (10 + 30 + 2**31) / 3
    assert common.stopped(three)["pulls"].tolist() == [30, 2**32]
    assert common.matches(common.stopped(three)) == "1 (2) of 2"
    assert errors([three], "ordered") == (1, 2)
    # Run 1 has guessed its third center, not found it. Run 3 has the order wrong.
    assert table5.wrong(columns | {"greedy": np.array([[0, 4, 2], [0, 4, 2], [0, 1, 2], [0, 4, 2]])}) == 1


def test_ratio_is_geometric_over_uncensored_blocks():
    ratio = table6.ratio("ratio, log", (15, 3), np.array([0.5, 2, np.inf]))
    assert ratio.ours == pytest.approx(1)
    assert ratio.se == pytest.approx(np.log(2))
    assert (ratio.runs, ratio.censored) == (3, 1)
    assert ratio.printed == pytest.approx(85 / 137)


# Errors, savings, bounds


def test_error_claims_compare_counts_with_the_errors_that_delta_allows():
    columns = {
        "status": np.repeat([Status.STOPPED, Status.MAX_ROUNDS], [2000, 7]),
        "ordered": np.arange(2007) >= 15,
        "pulls": np.full(2007, 50),
    }
    assert errors([columns], "ordered") == (15, 2000)
    assert allowed(2000, np.array([0.001, 0.01])).tolist() == [8, 35]
    counts = {("binary", rule): np.array([[15, 15], [2000, 2000]]) for rule in error_rates.RULES}
    claims = error_rates.claims(counts, ("binary",), (0.001, 0.01))
    assert [bool(claim.holds) for claim in claims] == [False] * 4
    assert claims[0].measured == "30 of 4,000"
    assert claims[2].measured == "0.75% at 0.001, 0.75% at 0.01"
    assert claims[3].measured == "1 of 2 deltas on binary points"


def test_decisive_variance_is_the_variance_against_the_nearest_center():
    # The farthest point from 0 is 3, then 2; `first` and [0, 1, 1, 0] are their rewards against the nearest centers.
    points = np.array([[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0.5]])
    first, second = [1, 1, 0, 0.25], [1, 0, 1, 0.25]
    assert np.mean(first) == np.mean(second)
    assert error_rates.decisive_variance(points) == pytest.approx((np.var(first) + np.var([0, 1, 1, 0])) / 2)


def test_effect_counts_skipped_and_raised_arms():
    # Four nodes and three centers, 2, 0 and 1. Node 3 was never queried against the second center.
    lower = jnp.zeros((4, 2)).at[3, 0].set(0.09)
    upper = jnp.full((4, 2), 0.04).at[3].set(jnp.array([0.16, jnp.inf]))
    intervals = Confidence(lower, lower, upper)
    far_apart = CenterBounds(jnp.array([[0, 0.9], [0.9, 0]]), jnp.array([[0, 1.0], [1.0, 0]]))
    outcome = SimpleNamespace(answer=SimpleNamespace(indices=jnp.array([2, 0, 1])), state=SimpleNamespace(between=None))
    effect = triangle.effect(outcome, intervals)
    assert {name: int(value) for name, value in effect.items()} == {"arms": 5, "skipped": 1, "raised": 0}
    outcome.state.between = far_apart
    # Roots: node 1 is within 0.2 of both, so 0.7 from both. Node 3 is within 0.4 of the first, so 0.5 from the other.
    effect = triangle.effect(outcome, intervals)
    assert {name: int(value) for name, value in effect.items()} == {"arms": 5, "skipped": 1, "raised": 4}


def test_mean_queries_has_the_error_of_runs_on_the_given_instances():
    columns = {
        "row": np.array([0, 0, 1, 1, 1]),
        "status": np.array([Status.STOPPED] * 4 + [Status.MAX_ROUNDS]),
        "pulls": np.array([90, 110, 990, 1010, 10**6]),
    }
    # Each mean has a standard error of 10, however much the instances differ.
    assert triangle.mean_queries(columns)[1:3] == (550, pytest.approx(10 / np.sqrt(2)))


def test_ratios_are_queries_over_every_bound():
    upper = np.arange(1.0, 5)[:, None].reshape(2, 2, 1) * bounds.FACTORS
    lower = np.array([[10.0, 30], [20, 40]])
    theory = bounds.Bounds(lower, upper.swapaxes(0, 1), np.array([100.0, 200]), np.ones(2))
    columns = {"delta": np.array([0.1, 1e-6]), "instance": np.array([1, 0]), "pulls": np.array([240, 240])}
    measured = bounds.ratios(columns, (0.1, 1e-6), theory, theory.binary, is_sampled=True)
    beta = np.log((1 + np.log(240)) * 50**2 / np.array([0.1, 1e-6]))
    most = 2 * 1500 * (49 + 48)
    expected = {
        "Theorem 1": [240 / 20, 240 / 30],
        "T* log": [1.2 / np.log(1 / 0.24), 2.4 / np.log(1 / 2.4e-6)],
        "T* beta": [1.2 / beta[0], 2.4 / beta[1]],
        "Theorem 2": [240 / 2, 240 / 3],
        "most": [240 / most, 240 / most],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(measured[f"queries / {name}"], values, rtol=1e-12)
    # 2 c and 3 c must reach 240, for c among factors that grow by 6 %.
    assert np.all(measured["factor"] >= [120, 80])
    assert np.all(measured["factor"] < np.array([120, 80]) * 10 ** (1 / 40) * (1 + 1e-9))
    on_distances = bounds.ratios(columns, (0.1, 1e-6), theory, np.full(2, 100.0), is_sampled=False)
    assert not np.isfinite(on_distances["queries / Theorem 1"]).any()
    np.testing.assert_allclose(on_distances["queries / T* log"][0], 2 * expected["T* log"][0], rtol=1e-12)
