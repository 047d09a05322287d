"""`Results.plot`, read off its axes."""

import sys

import numpy as np
import pytest
from matplotlib import pyplot

from jaxbandits import Results

RNG = np.random.default_rng(0)


def results_of(**columns):
    return Results({name.replace("__", "."): np.asarray(values) for name, values in columns.items()}, None)


@pytest.fixture
def ax():
    figure, ax = pyplot.subplots()
    yield ax
    pyplot.close(figure)


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
        task__rule=np.where(rule, "b", "a"),
        task__gap=gap,
        status=status,
        pulls=RNG.integers(90, 110, 60) / gap,
        curve__pulls=np.tile([1, 10, 100], (60, 1)),
        curve__regret=RNG.normal(size=(60, 3)),
        v=RNG.normal(size=(60, 4)),
        cube=np.zeros((60, 2, 2)),
    )


def lines(ax):
    return [line for line in ax.get_lines() if line.get_linestyle() == "-"]


def triangles(ax):
    return [line for line in ax.get_lines() if line.get_marker() == "^" and len(line.get_xdata())]


def test_means_with_bands_and_triangles_where_runs_are_missing(swept, ax):
    assert swept.plot(x="gap", by="rule", ax=ax) is ax
    a, b = lines(ax)
    assert [a.get_label(), b.get_label()] == ["a", "b"]
    summary = swept.summary(by=("rule", "gap"))
    np.testing.assert_array_equal(a.get_xdata(), [0.01, 0.1, 1])
    np.testing.assert_array_equal(a.get_ydata(), summary["pulls_mean"][:3])
    np.testing.assert_array_equal(b.get_ydata(), summary["pulls_mean"][3:])
    assert np.isnan(a.get_ydata()[1])
    points = ax.collections[1].get_paths()[0].vertices  # b's band
    upper = points[np.isclose(points[:, 0], 0.1), 1].max()
    assert upper == pytest.approx(summary["pulls_mean"][4] + 1.96 * summary["pulls_se"][4])
    beside, above = triangles(ax)
    np.testing.assert_array_equal(beside.get_xdata(), [0.01])
    np.testing.assert_array_equal(above.get_xdata(), [0.1])  # there is no mean
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("gap", "mean pulls")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "runs censored or failed"]
    ax.figure.canvas.draw()


def test_axes_are_linear_where_values_are_close_or_the_caller_says_so(swept, ax):
    swept.plot(x="seed", ax=ax)
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")
    ax.clear()
    swept.plot(x="gap", by=("rule",), log="x", ax=ax)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    ax.clear()
    swept.plot(x="rule", ax=ax)  # words
    assert ax.get_xscale() == "linear"
    ax.figure.canvas.draw()


def test_curves_go_over_their_marks(swept, ax):
    swept.plot(y="regret", by="rule", ax=ax)
    (a, b) = lines(ax)
    np.testing.assert_array_equal(a.get_xdata(), [1, 10, 100])
    np.testing.assert_array_equal(b.get_ydata(), swept.summary(by="rule")["curve.regret_mean"][1])
    assert (ax.get_xlabel(), ax.get_xscale(), ax.get_yscale()) == ("pulls", "log", "linear")
    ax.clear()
    swept.plot(y="v", ax=ax)
    (line,) = lines(ax)
    np.testing.assert_array_equal(line.get_xdata(), np.arange(4))
    assert ax.get_xlabel() == "entry"


def looks(ax):
    named = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    return [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in named]


def many(lines):
    n = np.arange(4 * lines)
    columns = {"row": n // 2, "seed": n % 2, "status": np.ones(4 * lines, int), "pulls": n * 1.0}
    curves = {"curve__pulls": np.tile(np.arange(40), (4 * lines, 1)), "curve__x": RNG.normal(size=(4 * lines, 40))}
    return results_of(**columns, **curves, task__gap=n // 2 % 2, task__d=n // 4)


@pytest.mark.parametrize("settings", [{"x": "gap"}, {"x": "d"}, {"y": "x"}], ids=["marked", "one point", "curves"])
def test_plot_of_many_lines_never_repeats_a_look(ax, settings):
    """A colour recurs with four dashes and a dozen markers, then with numbers for markers."""
    ax.set_prop_cycle(color=["red", "blue"])
    many(120).plot(by="d", ax=ax, **settings)
    assert len(looks(ax)) == len(set(looks(ax))) == 120
    assert [style for _, style, _ in looks(ax)[:8]] == ["-", "-", "--", "--", "-.", "-.", ":", ":"]
    assert len({marker for *_, marker in looks(ax)[:8]}) == 1
    ax.clear()
    for _ in range(3):  # several calls on the same axes
        many(7).plot(by="d", ax=ax, **settings)
    assert len(looks(ax)) == len(set(looks(ax))) == 21


def test_plot_with_one_colour_tells_lines_apart_by_dashes(ax):
    ax.set_prop_cycle(color=["black"])
    many(9).plot(x="gap", by="d", ax=ax)
    assert [style for _, style, _ in looks(ax)] == ["-", "--", "-.", ":"] * 2 + ["-"]
    assert len(set(looks(ax))) == 9
    ax.figure.canvas.draw()


def test_axes_are_those_of_pyplot_by_default(swept):
    _, ax = pyplot.subplots()
    assert swept.plot(x="gap") is ax
    pyplot.close()


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
    ],
)
def test_what_cannot_be_drawn_is_named(swept, ax, settings, message):
    with pytest.raises(ValueError, match=message):
        swept.plot(**settings, ax=ax)


def test_a_missing_matplotlib_is_named(swept, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match="plot needs matplotlib: pip install matplotlib"):
        swept.plot(x="gap")
