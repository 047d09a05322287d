"""The experiments with DS-TS, on error rates and on the triangle inequality: what they count and what they claim."""

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from experiments import _kcenter, kcenter_errors, kcenter_table3, kcenter_table4, kcenter_triangle, report
from jaxbandits import Status
from jaxbandits.kcenter._triangle import CenterBounds

OPTIONS = {
    "quick": False,
    "seeds": None,
    "lanes": None,
    "folder": None,
    "workers": 1,
    "executor": None,
    "data": Path("data"),
    "up_to": 1000,
    "random_up_to": 100,
}
K, M = 10, 12288
CENTERS = np.arange(K, dtype=np.int32)
# Queries until k = 3, 5, 7, 10, in 1e4 (DS-UCB and random: 1e5), for the sizes at which runs are made up.
DS_UCB = {100: 6.92, 500: 10.19, 1000: 12.62}


def spent(heading):
    """Queries by stage (9,), such as the other program measured them."""
    n = int(heading.split("n = ")[1])
    if "random" in heading:
        return np.full(9, 196.5e5 / 9)
    if "DS-UCB" in heading:
        return np.full(9, DS_UCB[n] * 1e5 / 9)
    column = [f"mix {mix:g}:" in heading for mix in kcenter_table3.MIXES].index(True)
    ks, values = zip(
        *sorted((k, row[0][column]) for (at, k), row in kcenter_table3.OTHER.items() if at == n), strict=True
    )
    return np.diff(np.interp(np.arange(K), [0, *np.array(ks) - 1], [0, *np.array(values) * 1e4]))


@pytest.fixture
def tables(monkeypatch):
    """(module, change) -> report, from made-up runs; `change` (heading, columns) alters them."""

    def images(options, count):
        return _kcenter.Images(np.broadcast_to(np.zeros((1, M), np.uint8), (count, M)), np.zeros((1, 1)), "nothing")

    def make(module, change=lambda heading, columns: None, **options):
        rng = np.random.default_rng(0)

        def runs(heading, rule, images, plan, **_):
            count = len(plan.rows)
            columns = {
                "row": np.arange(count),
                "status": np.full(count, Status.STOPPED),
                "answer.indices": np.tile(CENTERS, (count, 1)),
                "answer.found": np.full(count, K),
                "answer.queries": (spent(heading) * rng.normal(1, 0.01, (count, 1))).astype(np.uint32),
                "greedy": np.tile(CENTERS, (count, 1)),
                "ordered": np.ones(count, bool),
                "instance": plan.instance,
            }
            change(heading, columns)
            return columns

        for each in (kcenter_table3, kcenter_table4):
            monkeypatch.setattr(each, "scheduled_runs", runs)
        return module.run(Namespace(**OPTIONS | options))

    monkeypatch.setattr(_kcenter, "images", images)
    return make


def failed(result):
    return [claim.statement for claim in result.claims if not claim.holds]


def test_the_printed_numbers_are_typed_right():
    assert np.sum(list(kcenter_table3.PRINTED.values()), axis=0).tolist() == [4954, 4911, 6764]
    assert sum(kcenter_table4.PRINTED.values()) == 490
    assert sum(kcenter_table4.PRINTED_RANDOM.values()) == 34_687
    # Table IV is the column 0.99 of Table III, in other units.
    for place, row in kcenter_table3.PRINTED.items():
        assert kcenter_table4.PRINTED[place] == pytest.approx(row[1] / 10, abs=0.51)


def test_table3_judges_what_it_finds(tables, tmp_path):
    result = tables(kcenter_table3)
    assert failed(result) == []
    assert len(result.lines) == 4 * 6
    assert {line.printed for line in result.lines if line.quantity == "mix 0: n = 1000, k = 5"} == {195}
    ours = {row[0]: row for row in result.grid[1]}
    assert ours["1000, 10: ours"][-2:] == ("15 of 15", "15 of 15")
    assert ours["100, 10: ours"][7].endswith(")")  # the range over instances
    assert report.save(result, "table3", tmp_path)[2].stat().st_size > 10_000


@pytest.mark.parametrize(
    ("heading", "factor", "claims"),
    [
        ("mix 0.99: n = 500", 1.05, ["mix 0.99 takes no more", "another program"]),
        ("mix 0: n = 1000", 1.3, ["mix 0 takes 1.15 to 1.5", "another program"]),
        ("mix 1: n = 500", 1.3, ["mix 1 takes fewer", "another program"]),
        ("DS-UCB, n = 1000", 0.7, ["DS-TS takes 2 to 5 times"]),
    ],
)
def test_table3_notices(heading, factor, claims, tables):
    def change(name, columns):
        if heading in name:
            columns["answer.queries"] = (columns["answer.queries"] * factor).astype(np.uint32)

    found = failed(tables(kcenter_table3, change))
    assert len(found) == len(claims)
    assert all(statement.startswith(start) for statement, start in zip(found, claims, strict=True))


def test_tables_of_other_images_are_not_judged_by_those_of_the_paper(tables):
    for module in (kcenter_table3, kcenter_table4):
        statements = [claim.statement for claim in tables(module, data=None).claims]
        assert not any("another" in text or "fewer queries than naive" in text for text in statements)


def test_table4_shares_its_runs_with_table3(tables, tmp_path):
    headings = {}
    for module in (kcenter_table3, kcenter_table4):
        seen = headings[module] = []
        result = tables(module, lambda heading, columns, seen=seen: seen.append((heading, len(columns["row"]))))
    thompson = {each for each in headings[kcenter_table4] if "random" not in each[0]}
    assert thompson == {each for each in headings[kcenter_table3] if "mix 0.99" in each[0]}
    assert failed(result) == []
    assert report.save(result, "table4", tmp_path)[2].stat().st_size > 10_000


def test_table4_notices_too_few_random_queries(tables):
    def change(heading, columns):
        if "random" in heading:
            columns["answer.queries"] //= 2

    found = failed(tables(kcenter_table4, change))
    assert [text.split(" queries")[0] for text in found] == [
        "random sampling takes more",
        "random sampling takes what it takes in another program, within 5%",
    ]


def test_errors_are_counted_against_what_delta_allows():
    columns = {
        "status": np.repeat([Status.STOPPED, Status.MAX_ROUNDS], [2000, 7]),
        "ordered": np.arange(2007) >= 15,
        "pulls": np.full(2007, 50),
    }
    every = np.ones(2007, bool)
    tight, loose = (kcenter_errors.cell("", delta, columns, every) for delta in (0.001, 0.01))
    assert (tight.wrong, tight.stopped, tight.queries.censored) == (15, 2000, 7)
    assert (tight.breaks, loose.breaks) == (True, False)
    assert (tight.allowed, loose.allowed) == (8, 35)
    # Clopper and Pearson: 15 errors of 2000.
    assert tight.interval == pytest.approx((0.00420, 0.01234), abs=2e-5)
    none = kcenter_errors.cell("", 0.1, columns, (np.arange(2007) >= 15) & (np.arange(2007) < 2000))
    assert none.interval == pytest.approx((0, 1 - 0.025 ** (1 / 1985)))


def test_the_variance_that_decides_is_that_of_the_nearest_center():
    # From 0 the farthest point is 3, then 2; their rewards against the nearest centers: 1, 1, 0, 0 and 1, 0, 0, 0.
    points = np.array([[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 1, 0], [1, 1, 0, 0.5]])
    first, second = [1, 1, 0, 0.25], [1, 0, 1, 0.25]
    assert np.mean(first) == np.mean(second)
    assert kcenter_errors.decisive_variance(points) == pytest.approx((np.var(first) + np.var([0, 1, 1, 0])) / 2)


def test_instances_with_ties_are_left_out():
    def make(seed):
        return np.eye(kcenter_errors.N, 30, dtype=np.uint8) if seed == 0 else kcenter_errors.binary_rows(20, 30, seed)

    found = kcenter_errors.kind(make, 1, 3)
    assert found.images.points.shape == (60, 30)
    for rows in np.split(np.arange(60), 3):
        sums = found.images.sums[np.ix_(rows, rows)]
        assert kcenter_errors.greedy(sums, k=kcenter_errors.K).gaps.min() > 0


def test_skipped_and_raised_arms_are_counted():
    # Four nodes and three centers, 2, 0 and 1; node 3 was never queried against the second one.
    counts = jnp.array([[5, 0], [5, 5], [0, 0], [5, 0]])
    lower = jnp.zeros((4, 2)).at[3, 0].set(0.09)
    upper = jnp.full((4, 2), 0.04).at[3].set(jnp.array([0.16, jnp.inf]))
    far_apart = CenterBounds(jnp.array([[0, 0.9], [0.9, 0]]), jnp.array([[0, 1.0], [1.0, 0]]))
    outcome = SimpleNamespace(answer=SimpleNamespace(indices=jnp.array([2, 0, 1])), state=SimpleNamespace(between=None))

    def statistics(state):
        return counts, lower, upper

    found = kcenter_triangle.effect(None, outcome, statistics=statistics)
    assert {name: int(value) for name, value in found.items()} == {"arms": 5, "skipped": 1, "raised": 0}
    outcome.state.between = far_apart
    # Roots: node 1 is within 0.2 of both, so 0.7 from both; node 3 is within 0.4 of the first, 0.5 from the other.
    found = kcenter_triangle.effect(None, outcome, statistics=statistics)
    assert {name: int(value) for name, value in found.items()} == {"arms": 5, "skipped": 1, "raised": 4}


def test_savings_are_means_on_the_given_instances():
    columns = {
        "row": np.array([0, 0, 1, 1, 1]),
        "status": np.array([Status.STOPPED] * 4 + [Status.MAX_ROUNDS]),
        "pulls": np.array([90, 110, 990, 1010, 10**6]),
    }
    # Each mean has a standard error of 10, however much the instances differ.
    assert kcenter_triangle.mean_and_se(columns) == (550, pytest.approx(10 / np.sqrt(2)))


def test_digits_are_different():
    points = kcenter_triangle.different_digits()
    assert points.shape == (300, 64)
    assert len(np.unique(points, axis=0)) == 300
