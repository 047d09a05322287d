"""`Results.plot`, read off its axes."""

import itertools
import sys
import warnings

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.patches import PathPatch
from scipy.stats import beta

from jaxbandits import Results

RNG = np.random.default_rng(0)
DELTAS = np.repeat([0.1, 0.05, 0.001], 400)


def results_of(**columns):
    return Results({name.replace("__", "."): np.asarray(values) for name, values in columns.items()}, None)


@pytest.fixture
def ax():
    figure, ax = pyplot.subplots()
    yield ax
    pyplot.close(figure)


@pytest.fixture(autouse=True)
def closed():
    """Closes the figures that a test has opened."""
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def swept():
    """Sweeps two rules and three gaps with ten runs each; one run of the smallest gap is censored, for one rule all."""
    rule, gap = (x.ravel() for x in np.meshgrid([0, 1], [0.01, 0.1, 1.0], indexing="ij"))
    rule, gap = np.repeat(rule, 10), np.repeat(gap, 10)
    status = np.ones(60, int)
    status[0] = status[10:20] = 2
    return results_of(
        row=np.repeat(np.arange(6), 10),
        seed=np.tile(np.arange(10), 6),
        rule=np.where(rule, "A", "b"),
        task__gap=gap,
        status=status,
        pulls=RNG.integers(90, 110, 60) / gap,
        curve__pulls=np.tile([1, 10, 100], (60, 1)),
        curve__regret=RNG.normal(size=(60, 3)),
        v=RNG.normal(size=(60, 4)),
        cube=np.zeros((60, 2, 2)),
    )


@pytest.fixture(scope="module")
def curves(swept):
    """Takes the gap out of the tasks, so that a curve for each rule pools nothing that is known."""
    return Results({name: values for name, values in swept.columns.items() if name != "task.gap"}, None)


@pytest.fixture(scope="module")
def erring():
    """Makes 400 runs at three values of delta, with 20, 4 and no errors."""
    run = np.tile(np.arange(400), 3)
    wrong = run < np.repeat([20, 4, 0], 400)
    return results_of(
        row=np.repeat(np.arange(3), 400), seed=run, status=np.ones(1200, int), task__delta=DELTAS, wrong=wrong
    )


@pytest.fixture(scope="module")
def many_tasks():
    """Makes two runs of each of 24 tasks, which have a gap, a size and a random number."""
    delta, gap, d = (np.repeat(x.ravel(), 2) for x in np.meshgrid([0.1, 0.01, 0.001], [0.5, 0.2], [2, 3, 5, 8]))
    row = np.arange(48) // 2
    tasks = {"task__delta": delta, "task__gap": gap, "task__d": d, "task__offset": RNG.normal(size=24)[row]}
    return results_of(row=row, seed=np.arange(48) % 2, status=np.ones(48, int), pulls=np.arange(48), **tasks)


def lines(ax):
    return [line for line in ax.get_lines() if not line.get_label().startswith("_") and len(line.get_xdata())]


def triangles(ax):
    return [line for line in ax.get_lines() if line.get_marker() == "^" and len(line.get_xdata())]


def bands(ax):
    """Returns the shaded bands: lower and upper ends at each x."""
    shaded = []
    for band in ax.collections:
        if isinstance(band, PolyCollection):
            points = band.get_paths()[0].vertices
            points = points[np.isfinite(points).all(1)]
            shaded.append(
                {x: (min(points[points[:, 0] == x, 1]), max(points[points[:, 0] == x, 1])) for x in points[:, 0]}
            )
    return shaded


def bars(ax):
    """Returns the bars of each group, as arrays (bars, 2) of lower and upper ends."""
    groups = [part for part in ax.collections if isinstance(part, LineCollection)]
    return [np.array([segment[:, 1] for segment in group.get_segments()]) for group in groups]


def boxes(ax):
    return [patch for patch in ax.patches if isinstance(patch, PathPatch)]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_means_with_bands_and_triangles_where_runs_are_missing(swept, ax):
    assert swept.plot(x="gap", by="rule", ax=ax) is ax
    b, a = lines(ax)
    assert [b.get_label(), a.get_label()] == ["b", "A"]
    summary = swept.summary(by=("rule", "gap"))
    np.testing.assert_array_equal(b.get_xdata(), [0.01, 0.1, 1])
    np.testing.assert_array_equal(b.get_ydata(), summary["pulls_mean"][:3])
    np.testing.assert_array_equal(a.get_ydata(), summary["pulls_mean"][3:])
    assert np.isnan(b.get_ydata()[1])
    width = 1.96 * summary["pulls_se"][4]
    ends = pytest.approx((summary["pulls_mean"][4] - width, summary["pulls_mean"][4] + width))
    assert bands(ax)[1][0.1] == ends
    assert tuple(bars(ax)[1][1]) == ends
    assert len(bars(ax)[0]) == 2
    beside, above = triangles(ax)
    np.testing.assert_array_equal(beside.get_xdata(), [0.01])
    np.testing.assert_array_equal(above.get_xdata(), [0.1])  # there is no mean
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("gap", "mean pulls until the stop")
    assert legend(ax) == ["b", "A", "censored or failed"]
    ax.figure.canvas.draw()


def test_axes_are_linear_where_values_are_close_or_the_caller_says_so(swept, ax):
    swept.plot(x="seed", by=(), ax=ax)
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")
    ax.clear()
    swept.plot(x="gap", by=("rule",), log="x", ax=ax)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")


@pytest.mark.parametrize("kind", [None, "box"])
def test_words_are_categories_in_order_of_appearance_and_groups_stand_side_by_side(swept, ax, kind):
    swept.plot(x="rule", by="gap", kind=kind, ax=ax)
    assert ax.get_xscale() == "linear"
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["b", "A"]
    if kind is None:
        assert {line.get_linestyle() for line in lines(ax)} == {"None"}
        places = [line.get_xdata() for line in lines(ax)]
    else:
        # Only the runs of b at a gap of .1 are all censored, so that there is no box.
        assert len(boxes(ax)) == 5
        corners = [patch.get_path().vertices[:, 0] for patch in boxes(ax)]
        edges = sorted((corner.min(), corner.max()) for corner in corners)
        assert all(left[1] < right[0] for left, right in itertools.pairwise(edges))
        places = [[corner.mean()] for corner in corners]
    assert len({round(float(x), 6) for xs in places for x in xs}) == (6 if kind is None else 5)
    ax.clear()
    for _ in range(2):
        # The second call finds the places of the first.
        swept.plot(x="rule", by=(), kind=kind, ax=ax)
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["b", "A"]


def test_curves_go_over_their_marks(swept, curves, ax):
    curves.plot(y="regret", ax=ax)
    b, a = lines(ax)
    np.testing.assert_array_equal(b.get_xdata(), [1, 10, 100])
    np.testing.assert_array_equal(a.get_ydata(), swept.summary(by="rule")["curve.regret_mean"][1])
    assert (ax.get_xlabel(), ax.get_xscale(), ax.get_yscale()) == ("pulls so far", "log", "linear")
    assert ax.get_ylabel() == "mean regret"
    ax.clear()
    swept.plot(y="v", by=(), ax=ax)
    line = ax.get_lines()[0]
    np.testing.assert_array_equal(line.get_xdata(), np.arange(4))
    assert ax.get_xlabel() == "entry"


def test_quantile_bands_shade_from_5_to_95_percent_around_the_median(swept, curves, ax):
    swept.plot(x="gap", band="quantiles", ax=ax)
    summary = swept.summary(by=("rule", "gap"))
    np.testing.assert_array_equal(lines(ax)[1].get_ydata(), summary["pulls_q50"][3:])
    assert bands(ax)[1][0.1] == (summary["pulls_q05"][4], summary["pulls_q95"][4])
    assert ax.get_ylabel() == "median pulls until the stop"
    ax.clear()
    curves.plot(y="regret", band="quantiles", ax=ax)
    summary = swept.summary(by="rule")
    np.testing.assert_array_equal(lines(ax)[0].get_ydata(), summary["curve.regret_q50"][0])
    assert bands(ax)[0][10] == (summary["curve.regret_q05"][0, 1], summary["curve.regret_q95"][0, 1])
    ax.clear()
    curves.plot(y="regret", band=None, ax=ax)
    assert bands(ax) == []
    assert all(len(group) == 0 for group in bars(ax))


def test_boxes_have_quartiles_and_whiskers_from_5_to_95_percent(swept, ax):
    swept.plot(x="gap", kind="box", by=(), ax=ax)
    summary = swept.summary(by="gap")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.01", "0.1", "1"]
    for n, box in enumerate(boxes(ax)):
        heights = box.get_path().vertices[:, 1]
        assert (heights.min(), heights.max()) == (summary["pulls_q25"][n], summary["pulls_q75"][n])
    drawn = np.concatenate([line.get_ydata() for line in ax.get_lines()])
    for name in ("q05", "q50", "q95", "mean"):
        assert np.isin(summary[f"pulls_{name}"], drawn).all(), name
    assert ax.get_yscale() == "log"
    assert ax.get_ylabel() == "pulls until the stop"
    assert [len(line.get_xdata()) for line in triangles(ax)] == [1, 1]


def test_error_rates_have_exact_intervals_and_no_errors_are_an_upper_limit(erring, ax):
    erring.plot(x="delta", y="wrong", kind="error", ax=ax)
    rates = ax.get_lines()[0]
    np.testing.assert_allclose(rates.get_xdata(), [0.001, 0.05, 0.1])
    np.testing.assert_array_equal(rates.get_ydata(), [np.nan, 0.01, 0.05])
    low, high = (
        beta.ppf(tail, [k + shift for k in (4, 20)], [401 - shift - k for k in (4, 20)])
        for tail, shift in ((0.025, 0), (0.975, 1))
    )
    np.testing.assert_allclose(bars(ax)[0], np.column_stack([low, high]))
    limit = [line for line in ax.get_lines() if line.get_fillstyle() == "none"]
    np.testing.assert_allclose(
        np.concatenate([line.get_ydata() for line in limit if len(line.get_xdata())]), [1 - 0.025 ** (1 / 400)]
    )
    (delta,) = (line for line in lines(ax) if line.get_label() == "delta")
    np.testing.assert_array_equal(delta.get_xdata(), delta.get_ydata())
    assert ax.get_yscale() == "log"
    assert ax.get_ylabel() == "error rate"
    ax.clear()
    erring.plot(x="delta", y="wrong", kind="error", log="x", ax=ax)
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [0, 0.01, 0.05])
    np.testing.assert_allclose(bars(ax)[0][0], [0, 1 - 0.025 ** (1 / 400)])


@pytest.mark.parametrize(
    "bound",
    [
        [2.3, 3.0, 6.9],
        {0.001: 6.9, 0.1: 2.3, 0.05: 3.0},
        lambda delta: {0.1: 2.3, 0.05: 3.0, 0.001: 6.9}[round(delta, 6)],
    ],
    ids=["array", "mapping", "function"],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bound_is_a_line_in_the_order_of_x(erring, ax, bound, dtype):
    results = results_of(status=np.ones(1200, int), task__delta=DELTAS.astype(dtype), pulls=np.full(1200, 100.0))
    results.plot(x="delta", bound=bound, ax=ax)
    line = lines(ax)[-1]
    np.testing.assert_array_equal(line.get_xdata(), np.array([0.001, 0.05, 0.1], dtype))
    np.testing.assert_array_equal(line.get_ydata(), [6.9, 3.0, 2.3])
    assert legend(ax) == ["lower bound"]


def test_bound_is_one_number_for_all_and_a_piece_for_each_category(swept, curves, ax):
    curves.plot(y="regret", bound=2.5, ax=ax)
    np.testing.assert_array_equal(lines(ax)[-1].get_ydata(), 3 * [2.5])
    _, other = pyplot.subplots()
    swept.plot(x="rule", by=(), kind="box", bound={"A": 1.0, "b": 2.0}, ax=other)
    np.testing.assert_allclose(lines(other)[-1].get_xdata(), [-0.45, 0.45, np.nan, 0.55, 1.45, np.nan])
    np.testing.assert_array_equal(lines(other)[-1].get_ydata(), [2, 2, 2, 1, 1, 1])
    _, single = pyplot.subplots()
    swept.where(gap=1.0).plot(x="gap", bound=50, ax=single)
    assert list(lines(single)[-1].get_ydata()) == [50, 50]


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ([1, 2], "bound must be a number, an array with one number for every value of x, .*, 3 in all, got"),
        ("low", "bound must be a number"),
        (np.inf, "bound must be a number"),
        (True, "bound must be a number"),
        ({0.1: 1.0}, "bound must have a number for every value of x, got none for 0.01"),
    ],
)
def test_bound_without_a_number_for_each_value_is_refused_before_a_figure_is_made(swept, bound, message):
    with pytest.raises(ValueError, match=message):
        swept.plot(x="gap", bound=bound)
    assert pyplot.get_fignums() == []


def looks(ax):
    named = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    return [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in named]


def many(lines):
    n = np.arange(4 * lines)
    columns = {"row": n // 2, "seed": n % 2, "status": np.ones(4 * lines, int), "pulls": n * 1.0}
    curves = {"curve__pulls": np.tile(np.arange(40), (4 * lines, 1)), "curve__x": RNG.normal(size=(4 * lines, 40))}
    return results_of(**columns, **curves, task__gap=n // 2 % 2, task__d=n // 4)


@pytest.mark.filterwarnings("ignore:a line pools runs")
@pytest.mark.parametrize("settings", [{"x": "gap"}, {"x": "d"}, {"y": "x"}], ids=["marked", "one point", "curves"])
def test_plot_of_many_lines_never_repeats_a_look(ax, settings):
    """A colour recurs with four dashes and a dozen markers, then with numbers for markers."""
    ax.set_prop_cycle(color=["red", "blue"])
    many(120).plot(by="d", ax=ax, **settings)
    assert len(looks(ax)) == len(set(looks(ax))) == 120
    assert [color for color, *_ in looks(ax)[:4]] == ["red", "blue", "red", "blue"]
    ax.clear()
    for _ in range(3):  # several calls on the same axes
        many(7).plot(by="d", ax=ax, **settings)
    assert len(looks(ax)) == len(set(looks(ax))) == 21


def test_twelve_lines_differ_in_black_and_white(ax):
    many(12).plot(x="gap", by="d", ax=ax)
    assert len({marker for *_, marker in looks(ax)}) == 12
    assert all(one[0] != two[0] and one[1] != two[1] for one, two in itertools.pairwise(looks(ax)))
    ax.figure.canvas.draw()


def test_twelve_groups_of_boxes_differ(ax):
    many(12).plot(x="gap", by="d", kind="box", ax=ax)
    named = [box for box in boxes(ax) if box.get_label()]
    assert len({(box.get_facecolor(), box.get_hatch()) for box in named}) == len(named) == 12


@pytest.mark.filterwarnings("ignore:a line pools runs")
def test_marks_of_long_curves_are_few_and_have_bars(ax):
    many(2).plot(y="x", by="d", ax=ax)
    for line, group in zip(lines(ax), bars(ax), strict=True):
        assert len(line.get_markevery()) == len(group) == 10


def test_plot_without_axes_draws_a_new_figure_with_its_labels_and_legend_inside(swept):
    first = swept.plot(x="gap")
    second = swept.plot(x="gap")
    assert first.figure is not second.figure
    assert len(first.get_lines()) == len(second.get_lines())
    for size in ((6.4, 4.8), (3.3, 2.6)):
        with pyplot.rc_context({"figure.figsize": size}):
            ax = swept.plot(x="gap", bound=80)
        ax.figure.canvas.draw()
        for artist in (ax.xaxis.label, ax.yaxis.label, ax.get_legend()):
            box, page = artist.get_window_extent(), ax.figure.bbox
            assert page.x0 <= box.x0 < box.x1 <= page.x1
            assert page.y0 <= box.y0 < box.y1 <= page.y1
        assert not ax.get_legend().get_window_extent().overlaps(ax.bbox)


def test_lines_are_those_of_the_rules_unless_groups_are_named(swept, ax):
    swept.plot(x="gap", by=(), ax=ax)
    assert len(bands(ax)) == 1
    ax.clear()
    swept.where(rule="A").plot(x="gap", ax=ax)
    assert len(bands(ax)) == 1
    assert ax.get_legend() is None
    ax.clear()
    swept.plot(x="gap", ax=ax)
    assert len(bands(ax)) == 2


def test_a_line_that_pools_tasks_unasked_warns(swept, many_tasks, ax):
    def advice(**settings):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            many_tasks.plot(**settings)
        assert all(warning.filename == __file__ and warning.category is UserWarning for warning in caught)
        return [str(warning.message) for warning in caught]

    text = "a line pools runs that differ in {}. Give by={}"
    assert advice(x="delta") == [text.format("gap, d", "('gap', 'd')")]
    assert advice(x="delta", by="d") == [text.format("gap", "('d', 'gap')")]
    assert advice(x="d", kind="box") == [text.format("delta, gap", "('delta', 'gap')")]
    # Neither groups that are asked for nor columns of random numbers warn.
    assert advice(x="delta", by=("gap", "d")) == advice(x="delta", by=()) == []
    with pytest.warns(UserWarning, match=r"differ in gap. Give by=\('rule', 'gap'\)"):
        swept.plot(y="regret", ax=ax)
    with pytest.warns(UserWarning, match=r"differ in rule. Give by=\('gap', 'rule'\)"):
        swept.plot(x="seed", by="gap", ax=ax)


def tick_labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


@pytest.mark.parametrize(
    ("values", "log", "labels"),
    [
        ([0.1, 0.001, 0.01], None, ["0.001", "0.01", "0.1"]),
        ([500, 1000, 2000], "x", ["500", "1000", "2000"]),
        ([3, 5, 8], "", ["3", "5", "8"]),
        ([0.10001, 0.10002], "", ["0.10001", "0.10002"]),
        ([1e-7, 1e-3, 20.0], None, ["$10^{-7}$", "0.001", "20"]),
        # The second label would lie on the first.
        ([1, 2, 100], "", ["1", "", "100"]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, None])
def test_few_values_of_x_are_the_ticks_in_plain_numbers(ax, values, log, labels, dtype):
    values = np.asarray(values, dtype)
    n = len(values)
    results = results_of(row=np.arange(n), seed=np.zeros(n), status=np.ones(n, int), task__n=values, pulls=np.ones(n))
    for _ in range(2):
        results.plot(x="n", log=log, ax=ax)
        ax.figure.canvas.draw()
        np.testing.assert_array_equal(ax.get_xticks(), np.sort(values))
        assert tick_labels(ax.xaxis) == labels
        assert len(ax.get_xticks(minor=True)) == 0


def test_calls_in_the_same_axes_share_ticks_until_there_are_too_many(ax):
    many(3).plot(x="d", by="gap", ax=ax)
    np.testing.assert_array_equal(ax.get_xticks(), [0, 1, 2])
    many(5).plot(x="d", by="gap", ax=ax)
    np.testing.assert_array_equal(ax.get_xticks(), [0, 1, 2, 3, 4])
    many(50).plot(x="d", by="gap", ax=ax)
    ax.figure.canvas.draw()
    assert ax.get_xticks().max() >= 49
    assert tick_labels(ax.xaxis)[1] == "0"


@pytest.mark.parametrize(
    ("pulls", "labels"), [([400, 21000], {"1000", "20000"}), ([120, 160], {"120", "140"}), ([1, 10**4], {"$10^2$"})]
)
def test_short_logarithmic_axes_have_plain_labels(ax, pulls, labels):
    results = results_of(row=[0, 1], seed=[0, 0], status=[1, 1], task__n=[1, 2], pulls=pulls)
    results.plot(x="n", log="y", ax=ax)
    ax.figure.canvas.draw()
    texts = {text.replace("mathdefault{", "").replace("\\", "").replace("}}", "}") for text in tick_labels(ax.yaxis)}
    assert labels <= {text.replace("{2}", "2") for text in texts}
    assert all(text == "" for text in (label.get_text() for label in ax.yaxis.get_minorticklabels()))


def test_error_rates_stand_at_their_x_and_their_intervals_do_not_stretch_the_axis(ax):
    n = np.arange(4000)
    results = results_of(
        row=n // 1000, seed=n % 1000, status=np.ones(4000, int), rule=np.repeat(["A", "b"], 2000),
        task__n=n // 1000 % 2 + 1, wrong=n % 1000 < np.repeat([100, 1, 0, 2], 1000),
    )  # fmt: skip
    for x, log in (("n", "y"), ("n", "xy")):
        ax.clear()
        results.plot(x=x, y="wrong", kind="error", log=log, ax=ax)
        ax.figure.canvas.draw()
        places = np.array([line.get_xdata() for line in lines(ax)])
        ends = ax.transData.transform([(x, 1) for x in (*places.ravel(), 1, 2)])[:, 0]
        assert np.abs(ends[:4] - np.tile(ends[4:], 2)).max() < 0.02 * (ends[5] - ends[4])
        assert (places[0] < [1, 2]).all()
        assert (places[1] > [1, 2]).all()
        low, high = ax.get_ylim()
        assert min(group.min() for group in bars(ax)) < 5e-5 < low < 1e-4 < 0.1 < high
    ax.clear()
    results.where(n=2).plot(x="n", y="wrong", kind="error", ax=ax)
    ax.figure.canvas.draw()
    assert np.ptp(ax.get_xlim()) > 20 * np.ptp([line.get_xdata() for line in lines(ax)])


def test_bounds_have_the_names_that_they_are_given(swept, ax):
    swept.plot(x="gap", bound=("asymptotic bound", lambda gap: 80 / gap), ax=ax)
    assert legend(ax)[2] == "asymptotic bound"
    np.testing.assert_allclose(lines(ax)[2].get_ydata(), [8000, 800, 80])
    ax.clear()
    swept.plot(x="gap", bound=[("one", 50), ("three", {1.0: 1, 0.1: 2, 0.01: 3})], ax=ax)
    assert legend(ax)[2:4] == ["one", "three"]
    np.testing.assert_array_equal([line.get_ydata() for line in lines(ax)[2:4]], [3 * [50], [3, 2, 1]])
    assert lines(ax)[2]._dash_pattern != lines(ax)[3]._dash_pattern
    with pytest.raises(ValueError, match="bound must have a number for every value of x, got none for 0.01"):
        swept.plot(x="gap", bound=("one", {1.0: 1}), ax=ax)


def test_of_two_columns_the_first_has_the_colours_and_the_second_the_shapes(many_tasks, ax):
    many_tasks.plot(x="delta", by=("gap", "d"), ax=ax)
    colors, *shapes = zip(*looks(ax), strict=True)
    assert len(looks(ax)) == 8
    assert colors[:4] == 4 * colors[:1] != colors[4:] == 4 * colors[4:5]
    for shape in shapes:
        assert shape[:4] == shape[4:]
        assert len(set(shape)) == 4
    ax.clear()
    # Lines differ in all if one of the columns has a single value.
    many_tasks.where(gap=0.5).plot(x="delta", by=("gap", "d"), ax=ax)
    assert [len(set(parts)) for parts in zip(*looks(ax), strict=True)] == [4, 4, 4]


def test_boxes_of_rules_over_the_rules_are_narrow_and_differ_in_colour(swept):
    for by in (None, "rule"):
        ax = swept.where(gap=0.01).plot(x="rule", by=by, kind="box")
        corners = [patch.get_path().vertices[:, 0] for patch in boxes(ax)]
        np.testing.assert_allclose([(x.min() + x.max()) / 2 for x in corners], [0, 1])
        assert all(0.3 < np.ptp(x) < 0.6 for x in corners)
        assert len({(box.get_facecolor(), box.get_hatch()) for box in boxes(ax)}) == 2
        assert tick_labels(ax.xaxis) == ["b", "A"]
        assert legend(ax) == ["censored or failed"]


def test_curves_of_one_line_have_the_same_marks(ax):
    results = results_of(
        row=[0, 1], status=[1, 1], task__n=[1, 2], curve__pulls=[[1, 2], [2, 4]], curve__x=[[1.0, 2.0], [3.0, 4.0]]
    )
    with pytest.raises(ValueError, match="by must part runs with different marks, got groups in which curve.pulls var"):
        results.plot(y="x", ax=ax)
    assert len(lines(results.plot(y="x", by="n", ax=ax))) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "x must name scalar columns, one of"),
        ({"x": "v"}, "x must name scalar columns, one of .* got 'v'"),
        ({"x": "gap", "y": "rule"}, "y must name a column of numbers or curves"),
        ({"x": "gap", "y": "cube"}, "y must name a column of numbers or curves"),
        ({"x": "gap", "y": "regret"}, "x must be None for 'regret', which is drawn over its own marks, got"),
        (
            {"y": "regret", "kind": "box"},
            "kind must be None for 'regret', which has several numbers per run, got 'box'",
        ),
        ({"x": "gap", "kind": "error"}, "y must name a boolean column for kind='error', .* got 'pulls'"),
        ({"x": "gap", "kind": "bars"}, "kind must be"),
        ({"x": "gap", "band": "se"}, "band must be"),
        ({"x": "gap", "log": "z"}, "log must be"),
    ],
)
def test_what_cannot_be_drawn_is_named(swept, ax, settings, message):
    with pytest.raises(ValueError, match=message):
        swept.plot(**settings, ax=ax)


def test_a_missing_matplotlib_is_named(swept, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match="plot needs matplotlib: pip install matplotlib"):
        swept.plot(x="gap")
