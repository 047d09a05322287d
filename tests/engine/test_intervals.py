"""Errors and intervals: against SciPy, published numbers, brute force, and their coverage."""

import numpy as np
import pytest
from scipy import stats

from jaxbandits.engine.results.comparison import compare
from jaxbandits.engine.results.intervals import clopper_pearson, newcombe, paired_phi
from jaxbandits.engine.results.pairing import paired_statistics
from jaxbandits.engine.results.runs import Results

SAMPLES = 4000
# Coverage of 95 % is estimated with a standard error of 0.35 %: four of them, and what an approximation may lack.
LOWEST, HIGHEST = 0.935, 0.965


def table(*, row, status=None, **columns):
    row = np.asarray(row)
    columns = {"row": row} | {name: np.asarray(values) for name, values in columns.items()}
    return Results(columns | {"status": np.ones(len(row), np.int32) if status is None else np.asarray(status)}, None)


def test_intervals_of_shares_are_those_of_clopper_and_pearson():
    runs = np.array([1, 7, 40, 40, 1000])
    wrong = np.array([0, 7, 3, 40, 0])
    low, high = clopper_pearson(wrong, runs)
    for n in range(len(runs)):
        expected = stats.binomtest(wrong[n], runs[n]).proportion_ci(method="exact")
        np.testing.assert_allclose([low[n], high[n]], expected, atol=1e-12)
    assert [float(side) for side in clopper_pearson(np.array(0), np.array(0))] == [0, 1]


def test_summary_has_exact_intervals_over_finished_runs():
    flags = np.array([[True, False], [True, True], [False, True], [True, True], [True, True]])
    results = table(row=[0, 0, 0, 0, 1], status=[1, 1, 4, 2, 2], right=flags[:, 0], v=flags)
    summary = results.summary()
    expected = stats.binomtest(2, 3).proportion_ci(method="exact")
    assert summary["right_mean"][0] == pytest.approx(2 / 3)
    np.testing.assert_allclose([summary["right_low"][0], summary["right_high"][0]], expected)
    np.testing.assert_allclose(summary["v_low"][0], [expected.low] * 2)
    assert np.isnan([summary["right_low"][1], summary["right_high"][1]]).all()  # no finished run
    assert "row_low" not in summary


def clustered(rng, clusters, size):
    """Draws values of clusters with a common part, in random order."""
    cluster = np.repeat(np.arange(clusters), size)
    values = rng.normal(size=clusters)[cluster] + 0.3 * rng.normal(size=len(cluster))
    order = rng.permutation(len(cluster))
    return cluster[order], values[order]


def test_errors_over_clusters_of_one_size_are_those_of_their_means():
    rng = np.random.default_rng(0)
    instance, values = clustered(rng, 12, 5)
    pair = np.stack([values, 2 * values], axis=1)
    results = table(row=instance, group=np.zeros(60, int), x=values, v=pair)
    summary = results.summary("group", cluster="row")
    means = np.array([values[instance == n].mean() for n in range(12)])
    se = means.std(ddof=1) / np.sqrt(12)
    assert summary["x_se"][0] == pytest.approx(se)
    np.testing.assert_allclose(summary["v_se"][0], [se, 2 * se])
    assert summary["clusters"].tolist() == [12]
    assert summary["x_mean"] == results.summary("group")["x_mean"]
    assert se > 1.5 * results.summary("group")["x_se"][0]


def test_errors_over_clusters_by_brute_force():
    """Clusters of different sizes, several groups, censored runs, and a cluster that two groups share."""
    rng = np.random.default_rng(1)
    group, instance, status = rng.integers(0, 3, 90), rng.integers(0, 7, 90), rng.choice([1, 1, 2], 90)
    x = rng.normal(size=90) + instance
    summary = table(row=instance, status=status, group=group, x=x).summary("group", cluster=("row",))
    for n, of_group in enumerate(summary["group"]):
        chosen = (group == of_group) & (status == 1)
        deviations = x[chosen] - x[chosen].mean()
        sums = [deviations[instance[chosen] == one].sum() for one in np.unique(instance[chosen])]
        expected = np.sqrt(len(sums) / (len(sums) - 1) * np.sum(np.square(sums))) / chosen.sum()
        assert summary["x_se"][n] == pytest.approx(expected)
        assert summary["clusters"][n] == len(sums)


def test_a_run_per_cluster_has_the_usual_error_and_one_cluster_none():
    x = np.array([3.0, 5.0, 10.0])
    runs = table(row=[0, 1, 2], group=[0, 0, 0], x=x, flag=[True, False, True])
    each, one = runs.summary("group", cluster="row"), runs.summary("row", cluster="row")
    assert each["x_se"][0] == pytest.approx(runs.summary("group")["x_se"][0])
    assert each["flag_low"][0] == pytest.approx(runs.summary("group")["flag_low"][0])
    assert np.isnan(one["x_se"]).all()
    assert np.isnan(one["flag_low"]).all()
    assert np.isnan(one["flag_high"]).all()


def test_intervals_of_means_over_clusters_cover():
    """40 instances with 5 seeds: the usual error is too small by a factor of two."""
    rng = np.random.default_rng(2)
    clusters, group = np.tile(np.arange(40), 500 * 5), np.repeat(np.arange(500), 200)
    effects = rng.normal(size=(500, 40))[group, clusters]
    runs = table(row=clusters, group=group, x=effects + rng.normal(size=len(group)))
    plain, robust = runs.summary("group"), runs.summary("group", cluster="row")
    quantile = stats.t.ppf(0.975, 39)
    covered, claimed = (np.mean(abs(s["x_mean"]) < quantile * s["x_se"]) for s in (robust, plain))
    # Standard error of a coverage over 500 samples: 1 %.
    assert 0.92 < covered < 0.98
    assert claimed < 0.8


def test_intervals_of_shares_over_clusters_cover():
    rng = np.random.default_rng(3)
    groups, clusters, size = 400, 40, 5
    chance = np.repeat(rng.beta(0.5, 2.0, (groups, clusters)), size, axis=1).ravel()
    group = np.repeat(np.arange(groups), clusters * size)
    row = np.tile(np.repeat(np.arange(clusters), size), groups)
    runs = table(row=row, group=group, wrong=rng.random(len(row)) < chance)
    plain, robust = runs.summary("group"), runs.summary("group", cluster="row")
    covered, claimed = (np.mean((s["wrong_low"] < 0.2) & (s["wrong_high"] > 0.2)) for s in (robust, plain))
    assert covered > 0.93
    assert claimed < 0.9


def test_no_error_in_any_cluster_counts_a_run_per_cluster():
    runs = table(row=np.repeat(np.arange(10), 20), group=np.zeros(200, int), wrong=np.zeros(200, bool))
    summary = runs.summary("group", cluster="row")
    assert summary["wrong_low"] == 0
    assert summary["wrong_high"][0] == pytest.approx(stats.binomtest(0, 10).proportion_ci().high)


def test_intervals_of_differences_are_those_of_welch_and_student():
    rng = np.random.default_rng(4)
    x, y = rng.normal(10, 3, 15), rng.normal(9, 1, 40)
    apart = compare(table(row=np.zeros(15, int), x=x), table(row=np.zeros(40, int), x=y))
    expected = stats.ttest_ind(x, y, equal_var=False).confidence_interval()
    np.testing.assert_allclose([apart["x_difference_low"][0], apart["x_difference_high"][0]], expected)
    paired = paired_statistics(x, y[:15])
    expected = stats.ttest_rel(x, y[:15]).confidence_interval()
    np.testing.assert_allclose([paired["difference_low"], paired["difference_high"]], expected)


def test_differences_of_shares_have_the_published_intervals():
    """Newcombe (1998), p. 873, table II, method 10, examples (a), (b) and (g)."""
    shares = np.array([56 / 70, 9 / 10, 5 / 56]), np.array([48 / 80, 3 / 10, 0 / 29])
    low, high = newcombe(shares, (np.array([70, 10, 56]), np.array([80, 10, 29])))
    np.testing.assert_allclose(low, [0.0524, 0.1705, -0.0381], atol=5e-5)
    np.testing.assert_allclose(high, [0.3339, 0.8090, 0.1926], atol=5e-5)


def test_shares_are_tested_by_fisher_and_mcnemar():
    a, b = np.arange(30) < 12, np.arange(30) % 10 == 0
    compared = compare(table(row=np.zeros(30, int), wrong=a), table(row=np.zeros(30, int), wrong=b))
    assert compared["wrong_p"][0] == pytest.approx(stats.fisher_exact([[12, 18], [3, 27]]).pvalue)
    assert compared["wrong_ks"][0] == pytest.approx(0.3)
    assert compared["wrong_ratio"][0] == pytest.approx(4)
    low, high = newcombe((np.array(0.4), np.array(0.1)), (np.array(30), np.array(30)))
    np.testing.assert_allclose([compared["wrong_difference_low"][0], compared["wrong_difference_high"][0]], [low, high])
    only_a, only_b = int(np.sum(a & ~b)), int(np.sum(b & ~a))
    expected = stats.binomtest(only_b, only_a + only_b).pvalue
    assert paired_statistics(a, b)["p"] == pytest.approx(expected)
    assert paired_statistics(a, a)["p"] == 1


def test_correlation_of_paired_answers():
    a = np.array([True] * 6 + [False] * 4)
    b = np.array([True] * 5 + [False] * 5)
    # 5 both, 4 neither, 1 only a: (20 - 0 - 5) / sqrt(6 * 4 * 5 * 5)
    assert paired_phi(a, b) == pytest.approx(15 / np.sqrt(600))
    assert paired_phi(a, ~b) == pytest.approx(-20 / np.sqrt(600))
    assert paired_phi(a, np.ones(10, bool)) == 0


def test_intervals_of_ratios_cover():
    """Stopping times with a heavy tail: 60 of a, 40 of b, whose true ratio of means is 2."""
    rng = np.random.default_rng(5)
    a, b = rng.gamma(2.0, 2.0, (SAMPLES, 60)), rng.gamma(1.0, 2.0, (SAMPLES, 40))
    row_a, row_b = np.repeat(np.arange(SAMPLES), 60), np.repeat(np.arange(SAMPLES), 40)
    # The table has few rows at a time: `compare` also computes a p-value for each.
    part = 500
    compared = compare(
        table(row=row_a[: 60 * part], x=a[:part].ravel()), table(row=row_b[: 40 * part], x=b[:part].ravel())
    )
    covered = np.mean((compared["x_ratio_low"] < 2) & (compared["x_ratio_high"] > 2))
    assert 0.92 < covered < 0.98
    swapped = compare(
        table(row=row_b[: 40 * part], x=b[:part].ravel()), table(row=row_a[: 60 * part], x=a[:part].ravel())
    )
    np.testing.assert_allclose(swapped["x_ratio_low"], 1 / compared["x_ratio_high"])


def test_intervals_of_paired_ratios_cover_and_are_shorter():
    rng = np.random.default_rng(6)
    common = rng.gamma(4.0, 1.0, (SAMPLES, 50))
    a, b = common * rng.uniform(1.5, 2.5, common.shape), common * rng.uniform(0.5, 1.5, common.shape)
    tables = [paired_statistics(x, y) for x, y in zip(a, b, strict=True)]
    low, high = (np.array([each[name] for each in tables]) for name in ("ratio_low", "ratio_high"))
    assert LOWEST < np.mean((low < 2) & (high > 2)) < HIGHEST
    apart = compare(table(row=np.zeros(50, int), x=a[0]), table(row=np.zeros(50, int), x=b[0]))
    assert high[0] - low[0] < 0.8 * (apart["x_ratio_high"] - apart["x_ratio_low"])[0]


@pytest.mark.parametrize(("p", "q", "agreement"), [(0.2, 0.1, 0.5), (0.04, 0.02, 0.0), (0.5, 0.5, 0.9)])
def test_intervals_of_paired_shares_cover(p, q, agreement):
    """A share of the pairs has one random number for both runs."""
    rng = np.random.default_rng(7)
    first, second = rng.random((2, SAMPLES, 60))
    second = np.where(rng.random(first.shape) < agreement, first, second)
    tables = [paired_statistics(x < p, y < q) for x, y in zip(first, second, strict=True)]
    low, high = (np.array([each[name] for each in tables]) for name in ("difference_low", "difference_high"))
    # Score intervals of rare events cover more often than they say.
    assert np.mean((low <= p - q) & (high >= p - q)) > LOWEST


def test_ratio_of_means_that_are_not_positive_is_nan():
    compared = compare(table(row=[0, 0, 1, 1], x=[-1, 0, 2, 2]), table(row=[0, 0, 1, 1], x=[1.0, 2, 4, 4]))
    np.testing.assert_array_equal(compared["x_ratio"], [np.nan, 0.5])
    np.testing.assert_array_equal(compared["x_ratio_low"], [np.nan, 0.5])  # constant values have no error
    assert np.isnan(paired_statistics(np.array([-1.0, 0.0]), np.array([1.0, 2.0]))["ratio_high"])
